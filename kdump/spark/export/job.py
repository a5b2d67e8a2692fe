"""One export from beginning to end: plan, write, account, check."""

from __future__ import annotations

import json
import re
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kdump import __version__
from kdump.errors import KdumpError, UnreadableError
from kdump.log_reader.header_scan import attempt
from kdump.spark.export import account, session
from kdump.spark.export.commit import COMMIT, publish, recover, written
from kdump.spark.export.failures import errors, scratch
from kdump.spark.export.hold import held
from kdump.spark.export.output import CHECKPOINT, FOLDERS, Output
from kdump.spark.source import options as words
from kdump.spark.source import planning, register, schema
from kdump.spark.source.reading import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from kdump.log_dirs.partition import Segment
    from kdump.log_reader.header_scan import Survey
    from kdump.spark.export.hold import Hold
    from kdump.spark.source.planning import Planned, Split

BITS: Final = 32768
"""Splits that Spark's bitmap tells apart; of more, two that share a bit are both looked at again."""
SURVEY_BYTES: Final = 256 << 20
"""Bytes of segments whose headers one task walks."""


@dataclass(frozen=True, kw_only=True)
class Export:
    """What to export, and how. ``options`` are those of the source, as text."""

    paths: tuple[str, ...]
    out: str
    options: dict[str, str]
    format: str = "parquet"
    partition_by: tuple[str, ...] = ("topic", "date")
    mode: str = "error"
    master: str = "local[*]"
    conf: dict[str, str]


class Summary(NamedTuple):
    """What was done. ``seconds`` is the time of all of it but the start of Spark."""

    files: int
    batches: int
    rows: int
    damaged_ranges: int
    damaged_bytes: int
    size: int
    seconds: float
    unreadable: tuple[UnreadableError, ...] = ()


class Listener(NamedTuple):
    """Who is told: ``note`` what is left out, ``progress`` what is being done and how many tasks of how many are.

    ``done`` is told what was done while a run that is killed would still be known to have done it.
    """

    note: Callable[[str], None]
    progress: Callable[[str, int, int], None]
    done: Callable[[Summary], None] = lambda _: None


def run(export: Export, listener: Listener) -> Summary:
    """Export; return what was done.

    Raises UsageError, UnreadableError (where nothing can be read, and in mode FAILFAST), MalformedError (damage in
    mode FAILFAST), and KdumpError where Spark fails or where rows that went in did not come out.
    """
    given = {**export.options, "paths": paths(export)}
    options = words.parse(given)
    session.check()
    inputs = planning.look(options, listener.note, strict=False)
    spark = session.start(export.master, export.conf)
    with errors():
        began = time.monotonic()
        register(spark)
        output = Output(spark, export.out, export.format)
        with held(output) as hold:
            done = _committed_before(export, output, listener)
            if done is None:
                runs = output.check(export.mode)
                done = _exported(spark, export, options, inputs, output, runs, hold, listener)
            told = summary(done, time.monotonic() - began)
            listener.done(told)
            output.delete(COMMIT)
    return told


def _committed_before(export: Export, output: Output, listener: Listener) -> dict[str, Any] | None:
    """Finish what an export that was killed had committed; return its account where it was this very export.

    One that overwrites is made anew: that doubles nothing.
    """
    if output.exists(CHECKPOINT):
        return None
    commit = recover(output)
    if commit is None:
        return None
    is_ours = commit["request"] == _request(export)
    if is_ours and export.mode != "overwrite":
        listener.note(f"this export, begun {commit['run']['started']}, was killed after its commit: now it is done")
        run: dict[str, Any] = commit["run"]
        return run
    output.delete(COMMIT)
    return None


def _request(export: Export) -> dict[str, Any]:
    """Return what makes an export the same as another one."""
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
    inputs: planning.Inputs,
    output: Output,
    runs: list[Any],
    hold: Hold,
    listener: Listener,
) -> dict[str, Any]:
    """Prepare an export beside its output and publish it; return its account."""
    with scratch() as folder, output.staging(listener.note) as (name, staging):
        with _watched(spark, "reading headers", listener):
            planned = planning.plan(
                _surveyed(options), listener.note, lambda *what: _survey_there(spark, *what), inputs
            )
        run = Work(spark, export, options, numbered(planned), staging, folder, listener).run()
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


def paths(export: Export) -> str:
    """Return the paths as Spark hands several of them to a source."""
    return json.dumps(export.paths)


def needed(export: Export, columns: tuple[str, ...]) -> list[str]:
    """Return the columns asked for, and those that folders are made of."""
    made_of = [column for name in export.partition_by for column in FOLDERS[name][1]]
    return list(dict.fromkeys([*columns, *made_of]))


def _surveyed(options: words.SourceOptions) -> words.SourceOptions:
    return replace(options, surveyed=True)


def numbered(planned: list[Planned]) -> list[Planned]:
    """Return the plan with a number for each split."""
    number = count()
    return [
        segment._replace(splits=tuple(replace(split, number=next(number)) for split in segment.splits))
        for segment in planned
    ]


def _survey_there(spark: SparkSession, segments: list[Segment], split_bytes: int, checked: bool) -> list[Survey]:
    """Survey segments on the executors."""
    if not segments:
        return []
    context = spark.sparkContext
    tasks = max(context.defaultParallelism * 2, sum(segment.size for segment in segments) // SURVEY_BYTES)
    spread = context.parallelize(segments, min(len(segments), tasks))
    return spread.map(lambda segment: attempt(segment, split_bytes, checked=checked)).collect()


class WrittenRows(NamedTuple):
    """What was written: rows, what the bytes of each split are, the damaged stretches, and the files.

    ``files`` are those of records, by their paths in the output, with their rows; None where nothing in them tells.
    """

    rows: int
    parts: dict[int, account.SplitAccount]
    lost: list[account.ListedDamage]
    files: dict[str, int | None]


def summary(manifest: dict[str, Any], seconds: float = 0) -> Summary:
    """Return what the account of a run says."""
    totals = manifest["totals"]
    lost = [(file["file"], one) for file in manifest["files"] for one in file["damaged"]]
    unreadable = {name: UnreadableError(name, one["reason"]) for name, one in lost if one["damage"] == UNREADABLE}
    ranges = sum(one["damage"] != UNREADABLE for _, one in lost) or totals["damagedRanges"]
    damaged = totals["bytes"]["damaged"] + totals["bytes"]["trailing"]
    counts = (totals["files"], totals["batches"], manifest["rowsWritten"], ranges, damaged, totals["size"])
    return Summary(*counts, seconds, tuple(unreadable.values()))


@dataclass
class Work:
    """One plan, written to ``output``."""

    spark: SparkSession
    export: Export
    options: words.SourceOptions
    planned: list[Planned]
    output: Output
    scratch: Path
    listener: Listener

    @property
    def splits(self) -> list[Split]:
        return [split for segment in self.planned for split in segment.splits]

    def run(self) -> dict[str, Any]:
        """Write all; return the account of it."""
        started = datetime.now(UTC)
        return self.accounted(started, self.write())

    def write(self, *, always: bool = True) -> WrittenRows:
        """Write the records and what is damaged, and check the count of rows.

        Damage is written, if there is none as an empty file, unless ``always`` is false.
        """
        with session.interruptible(self.spark):
            return self._written(always=always)

    def _written(self, *, always: bool) -> WrittenRows:
        rows, marked = self._write()
        again = [split for split in self.splits if self._told(split) is None or split.number % BITS in marked]
        parts = {split.number: part for split in self.splits if (part := self._told(split)) is not None}
        parts |= self._look_again(again)
        lost = self._write_damaged(again) if again or always else []
        files = self._check(rows, parts)
        return WrittenRows(rows, parts, lost, files)

    def accounted(self, started: datetime, written: WrittenRows) -> dict[str, Any]:
        """Return the account of what was written."""
        output = [
            {"file": name, "rows": written.files.get(name), "bytes": self.output.size(name)}
            for name in self.output.files()
        ]
        settings = {**self._settings(started, written.rows), "output": output}
        return account.manifest(self.planned, written.parts, written.lost, settings)

    def _load(self, output: str, splits: list[Split]) -> DataFrame:
        plan = self.scratch / f"{output}.plan"
        planning.save(splits, str(plan))
        tasks = {"minPartitions": str(2 * self.spark.sparkContext.defaultParallelism)}
        options = {**tasks, **self.export.options, "output": output, "plan": str(plan)}
        if output != words.MARKED:
            options.pop("columns", None)
        elif self.options.columns:
            options["columns"] = ",".join(needed(self.export, self.options.columns))
        return self.spark.read.format("kdump").options(**options).load(self.export.paths[0])

    def _write(self) -> tuple[int, frozenset[int]]:
        """Write the records; return how many left the source, and which splits have damage (modulo BITS)."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as spark_sql

        seen = Observation("kdump")
        mark = schema.SPLIT.name
        frame = self._load(words.MARKED, self.splits).observe(
            seen,
            spark_sql.count(spark_sql.when(spark_sql.col(mark).isNull(), 1)).alias("rows"),
            spark_sql.expr(f"bitmap_construct_agg({mark} % {BITS})").alias("marked"),
        )
        records = frame.where(spark_sql.col(mark).isNull()).drop(mark)
        with _watched(self.spark, "writing", self.listener):
            self.output.write(records, self.export.partition_by, self.options.names)
        bits = bytes(seen.get["marked"])
        marked = frozenset(at for at in range(len(bits) * 8) if bits[at >> 3] >> (at & 7) & 1)
        return int(seen.get["rows"]), marked

    def _told(self, split: Split) -> account.SplitAccount | None:
        options = self.options
        bounds = (options.starting_offset, options.ending_offset, options.starting_timestamp, options.ending_timestamp)
        outcomes = split.outcomes
        drops = outcomes is not None and (outcomes.aborted or outcomes.doubts or split.stable is not None)
        filtered = any(bound is not None for bound in bounds) or split.offsets is not None
        filtered = filtered or bool(options.committed and drops)
        return account.told(split, control=options.include_control, filtered=filtered)

    def _look_again(self, splits: list[Split]) -> dict[int, account.SplitAccount]:
        """Return the exact account of splits that have damage, or whose headers did not tell."""
        if not splits:
            return {}
        numbers = {(split.name, split.start): split.number for split in splits}
        with _watched(self.spark, "accounting for damage", self.listener):
            rows = self._load(words.ACCOUNT, splits).collect()
        return {
            numbers[row.file, row.start]: account.SplitAccount(
                row.batches,
                row.rows,
                row.batchBytes,
                row.damagedRanges,
                row.damagedBytes,
                row.paddingBytes,
                row.trailingBytes,
                row.unreadableBytes,
            )
            for row in rows
        }

    def _write_damaged(self, splits: list[Split]) -> list[account.ListedDamage]:
        """Write the damaged stretches; return them without their bytes."""
        with _watched(self.spark, "writing damage", self.listener):
            frame = self._load(words.DAMAGED, splits)
            self.output.write_damaged(frame)
            if not splits:
                return []
            return [account.ListedDamage(*row) for row in frame.select(*account.ListedDamage._fields).collect()]

    def _check(self, rows: int, parts: dict[int, account.SplitAccount]) -> dict[str, int | None]:
        """Return the rows of each file that was written.

        Raises KdumpError unless the rows that the headers promise, left the source and are in the files are the same.
        """
        with _watched(self.spark, "counting", self.listener):
            files = self.output.rows()
        written = [count for count in files.values() if count is not None]
        if len(written) == len(files) and sum(written) != rows:
            raise KdumpError(f"{rows} rows were read, but {sum(written)} are in {self.output.shown}: do not use them")
        promised = [part.rows for part in parts.values()]
        if None not in promised and (total := sum(part or 0 for part in promised)) != rows:
            raise KdumpError(f"the segments hold {total} records to export, but {rows} were read: do not use them")
        return files

    def _settings(self, started: datetime, rows: int) -> dict[str, Any]:
        return {
            "kdump": __version__,
            "started": started.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "paths": [re.sub(r"//[^/@]*@", "//", path.partition("?")[0]) for path in self.export.paths],
            "options": self.export.options,
            "format": self.export.format,
            "partitionBy": list(self.export.partition_by),
            "rowsWritten": rows,
        }


@contextmanager
def _watched(spark: SparkSession, what: str, listener: Listener) -> Iterator[None]:
    """Tell how far Spark has come, for as long as the block runs."""
    done = threading.Event()
    tracker = spark.sparkContext.statusTracker()

    def watch() -> None:
        while not done.wait(0.5):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            tasks = [(stage.numCompletedTasks, stage.numTasks) for stage in stages if stage is not None]
            listener.progress(what, sum(task[0] for task in tasks), sum(task[1] for task in tasks))

    watcher = threading.Thread(target=watch, name="kdump-progress", daemon=True)
    listener.progress(what, 0, 0)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
