"""Runs one export: check settings, list inputs, start Spark, lock the output, plan, write, count rows, publish."""

from __future__ import annotations

import fnmatch
import json
import re
import time
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kdump import __version__
from kdump.errors import KdumpError, UnreadableError, UsageError
from kdump.log_dirs.remote import HADOOP_NAMES, is_remote, without_secret
from kdump.log_reader.header_scan import attempt
from kdump.output import files
from kdump.primitives.encodings import is_json
from kdump.spark import session
from kdump.spark.export import account, counting, parquet
from kdump.spark.export.commit import COMMIT, publish, recover, written
from kdump.spark.export.folder import NEW
from kdump.spark.export.hold import held
from kdump.spark.export.output import CHECKPOINT, FOLDERS, FORMATS, SUBJECT, WRITING, Output, Table, beside, exists
from kdump.spark.failures import errors
from kdump.spark.source import options as words
from kdump.spark.source import planning, reading, register, schema
from kdump.spark.source.reading import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from kdump.log_dirs.partition import Partition, Segment
    from kdump.log_reader.header_scan import Survey
    from kdump.segments.regions import Damage
    from kdump.spark.export.counting import Counted
    from kdump.spark.export.hold import Hold
    from kdump.spark.source.planning import Planned, Split

SURVEY_BYTES: Final = 256 << 20
MODES: Final = ("error", "overwrite", "append")


@dataclass(frozen=True, kw_only=True)
class Export:
    """The settings of an export. ``options`` are those of the source, as text. An active session keeps its master.

    ``target_file_size`` is in bytes; if it is None, each task writes a file, or several, into each folder of its rows.
    ``format`` is one of FORMATS, or the name of a Spark writer; then ``out`` is a table. ``mode`` is one of MODES,
    and ``partition_by`` has names of FOLDERS. Raises UsageError for other values.
    """

    paths: tuple[str, ...]
    out: str
    options: dict[str, str]
    format: str = "parquet"
    partition_by: tuple[str, ...] = ("topic", "date")
    mode: str = "error"
    target_file_size: int | None = None
    master: str = "local[*]"
    conf: dict[str, str]

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise UsageError(f"--mode: expected {', '.join(MODES)}; found {self.mode}")
        for name in self.partition_by:
            if name not in FOLDERS:
                raise UsageError(f"--partition-by: expected none, or one or more of {', '.join(FOLDERS)}; found {name}")
        if self.target_file_size is not None and self.target_file_size < 1:
            raise UsageError(f"--target-file-size: expected at least 1 byte, found {self.target_file_size}")

    @property
    def account(self) -> str:
        """The folder of the manifest and of the damaged ranges."""
        return self.out if self.format in FORMATS else beside(self.out)


class Summary(NamedTuple):
    """Counts of inputs, and rows. ``damaged_bytes`` include truncated batches; ``seconds`` exclude Spark's start."""

    files: int
    batches: int
    rows: int
    damaged_ranges: int
    damaged_bytes: int
    size: int
    seconds: float
    unreadable: tuple[UnreadableError, ...] = ()


class Listener(NamedTuple):
    """Callbacks of an export. ``done`` is for :func:`run` only, not for :mod:`kdump.spark.export.following`.

    ``note`` receives sentences, such as on inputs that are left out. ``progress`` receives the current work, the number
    of tasks done, and the number of all tasks. ``done`` receives the result before the journal is deleted. If the run
    is killed between the two, the next run with the same settings reports it again, except in mode overwrite.
    """

    note: Callable[[str], None]
    progress: Callable[[str, int, int], None]
    done: Callable[[Summary], None] = lambda _: None
    damage: Callable[[str, Damage], None] = lambda *_: None
    """Receives file and range of each damaged range of the written splits, if readable; none in mode DROPMALFORMED."""

    def damages(self, run: dict[str, Any]) -> None:
        """Report the damaged ranges of a run, but not its unreadable bytes, which the summary reports."""
        for file, damage in account.damaged_ranges(run):
            if damage.kind != UNREADABLE:
                self.damage(file, damage)

    def plans(self, text: str) -> None:
        self.progress(text, 0, 0)


def run(export: Export, listener: Listener) -> Summary:
    """Run an export and return its summary. The commit of a killed export is completed before the plan.

    If that had the same settings, and not mode overwrite, its summary is returned instead; nothing else is exported.
    Raises UsageError, UnreadableError, MalformedError (damage in mode FAILFAST), and KdumpError if Spark fails or the
    counts of rows differ. After an error no file is published, or the next run completes the commit. But Spark itself
    commits a table, so the table may have the rows after an error.
    """
    options = source_options(export)
    check(export, adds=False)
    options = with_schemas(options)
    inputs = planning.look(options, listener.note, listener.plans)
    listener.plans("")  # Spark itself prints here
    spark = session.start(export.master, export.conf, session.SparkOutput())
    with errors():
        began = time.monotonic()
        register(spark)
        if export.format in FORMATS:
            output = Output(spark, export.out, export.format)
        else:
            output = Table(spark, export.out, export.format, export.mode)
        with held(output) as hold:
            done = _committed_before(export, output, listener)
            if done is None:
                runs = output.check(export.mode, skip_unreadable=options.skip_unreadable)
                done = _exported(spark, export, options, inputs, output, runs, hold, listener)
            result = summary(done, time.monotonic() - began)
            listener.damages(done)
            listener.done(result)
            _forget(output)
    return result


def check(export: Export, *, adds: bool) -> None:
    """Apply store settings. Raise UsageError or KdumpError for wrong settings. ``adds``: the run adds to an output."""
    session.check()
    settings = session.configured(export.conf)
    session.check_store(export.out, settings)
    session.use_stores(settings)
    place = _LOCAL.fullmatch(export.out)
    if place is None or is_remote(export.out):  # also hdfs:/PATH, on Hadoop's default name node
        _be_outside(export)
        return
    out = place[1]
    files.outside(export.paths, out)
    if export.mode == "error" and not adds and export.format in FORMATS and not _is_free(Path(out)):
        raise exists(export.out)


_LOCAL: Final = re.compile(r"(?:file:(?://)?)?((?!.*://).*)", re.DOTALL)
"""A path on the driver's own disks, or its ``file:`` URI."""


def _is_free(folder: Path) -> bool:
    """Return whether a path does not exist, is empty, or has an unfinished export."""
    try:
        names = {path.name for path in folder.iterdir()}
        new = COMMIT + NEW
        if COMMIT in names or (new in names and is_json((folder / new).read_text("utf-8", "replace"))):
            return True
        return all(name.startswith(".kdump-") or name == new for name in names)
    except FileNotFoundError:
        return True
    except OSError:  # Spark reports it
        return not folder.is_file()


def _be_outside(export: Export) -> None:
    """Raise UsageError if an output in a store is inside an input."""
    scheme, authority, folders = _parts(export.out)
    for path in filter(is_remote, export.paths):
        known, other, above = _parts(path)
        is_same = scheme == known and (not authority or not other or fnmatch.fnmatchcase(authority, other))
        if is_same and len(folders) >= len(above) and all(map(fnmatch.fnmatchcase, folders, above)):
            where = f"{export.out} is in the input {without_secret(path)}"
            raise UsageError(f"{where}, which kdump does not change: choose an --out outside of it")


def _parts(uri: str) -> tuple[str, str, list[str]]:
    """Return scheme, authority and folders of a URI. An empty authority means the one of Hadoop's settings."""
    scheme, _, rest = without_secret(uri).partition(":")
    authority, _, path = rest[2:].partition("/") if rest.startswith("//") else ("", "", rest)
    return HADOOP_NAMES.get(scheme, scheme), authority, [name for name in path.split("/") if name]


def _forget(output: Output) -> None:
    """Delete the journal and the mark of a table's writer, after the run is reported or superseded."""
    output.delete(WRITING)
    output.delete(COMMIT)


def _committed_before(export: Export, output: Output, listener: Listener) -> dict[str, Any] | None:
    """Complete the commit of a killed export. Return its run if the settings are equal, but not in mode overwrite."""
    if output.exists(CHECKPOINT):
        return None
    commit = recover(output)
    if commit is None:
        return None
    is_ours = commit["request"] == _request(export)
    if is_ours and export.mode != "overwrite":
        listener.note(
            f"this export, begun {commit['run']['started']}, was killed after its commit, and is complete now"
        )
        run: dict[str, Any] = commit["run"]
        return run
    _forget(output)
    return None


def _request(export: Export) -> dict[str, Any]:
    return {
        "paths": list(export.paths),
        "options": export.options,
        "format": export.format,
        "partitionBy": list(export.partition_by),
        "mode": export.mode,
    }


def _exported(
    spark: SparkSession,
    export: Export,
    options: words.SourceOptions,
    inputs: list[Partition],
    output: Output,
    runs: list[Any],
    hold: Hold,
    listener: Listener,
) -> dict[str, Any]:
    with output.staging(listener.note) as (name, staging):
        planned = planning.plan(
            replace(options, surveyed=True),
            listener.note,
            lambda *what: _survey_there(spark, listener, *what),
            inputs,
            listener.plans,
        )
        run = Work(spark, export, options, numbered(planned), staging, listener).run()
        staging.write_runs([*(runs if export.mode == "append" else []), run])
    commit = {
        "request": _request(export),
        "run": run,
        "staging": name,
        "replaces": export.mode == "overwrite",
        "removes": written(runs) if export.mode == "overwrite" else [],
    }
    publish(output, staging, commit, hold.check)
    return run


def source_options(export: Export) -> words.SourceOptions:
    """Return the options of the source, with PERMISSIVE as the default mode. Raises UsageError."""
    options = words.parse({"mode": words.PERMISSIVE, **export.options, "paths": json.dumps(export.paths)})
    if options.output != words.RECORDS:
        raise UsageError("option output: an export writes records")
    if options.kafka is not None:
        options = replace(options, kafka=options.kafka.for_batch())
    if SUBJECT not in export.partition_by:
        return options
    if export.format != "parquet" or export.target_file_size is not None:
        what = "--target-file-size" if export.format == "parquet" else f"--format {export.format}"
        raise UsageError(
            f"--partition-by subject cannot be combined with {what}: kdump writes these tables itself, as Parquet"
        )
    if options.schema is not None:
        raise UsageError("--partition-by subject cannot be combined with --schema: each subject gets its own columns")
    return replace(options, by_subject=True)


def with_schemas(options: words.SourceOptions) -> words.SourceOptions:
    """Return the options with the schemas of the log. Raises UsageError if an export by subject has none."""
    made = schema.with_schemas(options)
    if made.by_subject and not made.store:
        raise UsageError(
            f"--partition-by subject: the given paths have no schema in the topic {options.schemas_topic}: "
            "name the log dir of this topic with --schemas"
        )
    return made


def needed(export: Export, columns: tuple[str, ...]) -> list[str]:
    """Return the requested columns, and the columns from which folder names are made."""
    made_of = [column for name in export.partition_by for column in FOLDERS[name][1]]
    return list(dict.fromkeys([*columns, *made_of]))


def numbered(planned: list[Planned]) -> list[Planned]:
    number = count()
    return [
        segment._replace(splits=tuple(replace(split, number=next(number)) for split in segment.splits))
        for segment in planned
    ]


def _survey_there(
    spark: SparkSession, listener: Listener, segments: list[Segment], split_bytes: int, checked: bool
) -> list[Survey]:
    if not segments:
        return []
    context = spark.sparkContext
    tasks = max(context.defaultParallelism * 2, sum(segment.size for segment in segments) // SURVEY_BYTES)
    spread = context.parallelize(segments, min(len(segments), tasks))
    surveyed = spread.map(lambda segment: attempt(segment, split_bytes, checked=checked))
    with session.interruptible(spark), session.watched(spark, "reading headers", listener.progress):
        return session.awaited(spark, surveyed.collect)


class WrittenRows(NamedTuple):
    """The number of rows, the account of each split, damage by input file, rows by output file (None: unknown)."""

    rows: int
    parts: dict[int, account.SplitAccount]
    lost: dict[str, list[dict[str, Any]]]
    files: dict[str, int | None]


def summary(manifest: dict[str, Any], seconds: float = 0) -> Summary:
    totals, lost = manifest["totals"], list(account.damaged_ranges(manifest))
    unreadable = {name: UnreadableError(name, one.reason) for name, one in lost if one.kind == UNREADABLE}
    ranges = sum(one.kind != UNREADABLE for _, one in lost) or totals["damagedRanges"]
    damaged = totals["bytes"]["damaged"] + totals["bytes"]["trailing"]
    counts = (totals["files"], totals["batches"], manifest["rowsWritten"], ranges, damaged, totals["size"])
    return Summary(*counts, seconds, tuple(unreadable.values()))


@dataclass
class Work:
    spark: SparkSession
    export: Export
    options: words.SourceOptions
    planned: list[Planned]
    output: Output
    listener: Listener

    @property
    def splits(self) -> list[Split]:
        return [split for segment in self.planned for split in segment.splits]

    def run(self) -> dict[str, Any]:
        started = datetime.now(UTC)
        return self.accounted(started, self.write())

    def write(self, *, always: bool = True) -> WrittenRows:
        """Write records and damaged ranges, check the row count. ``always``: write `damaged` even if it has no rows."""
        with session.interruptible(self.spark):
            return self._written(always=always)

    def _written(self, *, always: bool) -> WrittenRows:
        counted = self._write()
        parts = {number: account.SplitAccount(*one.counts) for number, one in counted.items()}
        lost = [(split, ranges) for split in self.splits if (ranges := self._lost(counted[split.number]))]
        if lost or always:
            with session.watched(self.spark, "writing damage", self.listener.progress):
                self.output.write_damaged(counting.damaged(self.spark, lost, self.options) if lost else None)
        files = self._check(counted)
        listed: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for split, ranges in lost:
            listed[split.name] += [
                {"position": position, "length": length, "damage": damage.kind, "reason": damage.reason}
                for damage in ranges
                for position, length in reading.chunks(damage)
            ]
        return WrittenRows(sum(part.rows for part in parts.values()), parts, listed, files)

    def _lost(self, counted: reading.Tally) -> list[Damage]:
        return [damage for damage in counted.lost if reading.is_reported(damage, self.options)]

    def accounted(self, started: datetime, written: WrittenRows) -> dict[str, Any]:
        output = [
            {"file": name, "rows": written.files.get(name), "bytes": size}
            for name, size in sorted(self.output.sizes().items())
        ]
        settings = {**self._settings(started, written.rows), "output": output}
        return account.manifest(self.planned, written.parts, written.lost, settings)

    def _write(self) -> Counted:
        options = self.options
        if options.columns:
            options = replace(options, columns=tuple(needed(self.export, options.columns)))
        if not any(name.lower() == "minpartitions" for name in self.export.options):
            options = replace(options, min_partitions=2 * self.spark.sparkContext.defaultParallelism)
        with session.watched(self.spark, "writing", self.listener.progress):
            by_workers = self.export.target_file_size is None and self.output.is_parquet
            parts = parquet.parts_of(self.output, self.listener.note) if by_workers else None
            if parts is None and options.by_subject:
                raise KdumpError(
                    f"{self.output.shown}: --partition-by subject needs an output that Spark's workers can write; the "
                    "note above gives the reason"
                )
            if parts is not None:
                folders = {name: FOLDERS[name][0] for name in self.export.partition_by}
                layout = parquet.FolderLayout(folders, self.options.names)
                counted = parquet.write(self.spark, self.splits, options, self.output, layout, parts)
            else:
                frame, counts = counting.records(self.spark, self.splits, options)
                self.output.will_hold(self._offsets())
                self.output.write(
                    frame, self.export.partition_by, self.options.names, target_file_size=self.export.target_file_size
                )
                counted = counts.value
        missing = [split.name for split in self.splits if split.number not in counted]
        if missing:
            raise KdumpError(f"{missing[0]}: no task has reported how many bytes it read: run the export again")
        return counted

    def _offsets(self) -> dict[str, tuple[int, int]]:
        """Return the first and last offset of the batches to export, if their headers were read, by partition."""
        found: dict[str, tuple[int, int]] = {}
        for split in self.splits:
            summary = split.summary
            if summary is None or summary.first_offset is None or summary.last_offset is None:
                continue
            name = f"{split.file.topic}-{split.partition}" if split.topic is not None else split.name
            first, last = found.get(name, (summary.first_offset, summary.last_offset))
            found[name] = min(first, summary.first_offset), max(last, summary.last_offset)
        return found

    def _check(self, counted: Counted) -> dict[str, int | None]:
        """Return the number of rows in each file. Raises KdumpError if the counts that are known differ."""
        rows = sum(one.rows for one in counted.values())
        with session.watched(self.spark, "counting", self.listener.progress):
            files = self.output.rows()
        written = [count for count in files.values() if count is not None]
        if len(written) == len(files) and sum(written) != rows:
            raise KdumpError(
                f"{rows} rows were read, but {sum(written)} are in {self.output.shown}: do not use that output"
            )
        promised = sum(self._promised(split, counted[split.number]) for split in self.splits)
        if promised != rows:
            raise KdumpError(
                f"the segments hold {promised} records to export, but {rows} were read: do not use the exported files"
            )
        return files

    def _promised(self, split: Split, counted: reading.Tally) -> int:
        """Return the number of rows in a split by its headers; if unknown or damaged, the number of rows read."""
        options, summary, outcomes = self.options, split.summary, split.outcomes
        bounds = (options.starting_offset, options.ending_offset, options.starting_timestamp, options.ending_timestamp)
        drops = outcomes is not None and (outcomes.aborted or outcomes.doubts or split.stable is not None)
        filtered = any(bound is not None for bound in bounds) or split.offsets is not None
        if filtered or (options.committed and drops) or counted.lost or summary is None or not summary.counts_known:
            return counted.rows
        return summary.records - (0 if options.include_control else summary.control_records)

    def _settings(self, started: datetime, rows: int) -> dict[str, Any]:
        return {
            "kdump": __version__,
            "started": started.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "paths": list(map(without_secret, self.export.paths)),
            "options": self.export.options,
            "format": self.export.format,
            "partitionBy": list(self.export.partition_by),
            "rowsWritten": rows,
        }
