"""Exports the new records since the last run, once (``--incremental``) or continuously (``--follow``).

A run consists of steps. Each step plans the new records (:mod:`kdump.spark.source.streaming`), lets Spark write them to
the step's own folder (``staging``), checks the counts like any export, and commits. If a step is killed, the next run
deletes its files, or, after the commit, moves them to the output. So a kill neither loses nor doubles rows.

The commit is the file ``_checkpoint/<number>.json``. It has the offsets of the inputs after the step, the files to
move, and the account of the step. The file with the greatest number gives the position. Others keep accounts.

The accounts of steps move to the manifest at the end of a run, or at the start of the next, and earlier if they exceed
half its size. So the cost of a step does not grow with the number of steps. ``steps`` of the manifest is the number of
its last step.
"""

from __future__ import annotations

import json
import operator
import time
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kdump.errors import FailingDiskError, KdumpError, StoreError, UnreadableError, UsageError, many
from kdump.spark import session
from kdump.spark.export import account, commit, job
from kdump.spark.export.folder import NEW
from kdump.spark.export.hold import held
from kdump.spark.export.output import CHECKPOINT, FORMATS, Output
from kdump.spark.failures import MalformedError, errors, try_to
from kdump.spark.source import options as words
from kdump.spark.source import planning, reading, register, streaming
from kdump.spark.source.listings import Listings, key_of
from kdump.spark.source.marks import Mark

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from kdump.spark.export.hold import Hold
    from kdump.spark.source.streaming import Offsets


PAUSE: Final = 10.0
"""The seconds to the next listing of the inputs when all records are exported."""
STEP_BYTES: Final = 16 << 30
"""Maximum number of bytes of a step, except for one larger batch. After a kill, the work of one step is repeated."""
TRIES: Final = 3
"""The maximum number of attempts at a step while files change."""


class HeldOutput(NamedTuple):
    spark: SparkSession
    output: Output
    hold: Hold


class Added(NamedTuple):
    """The result of a run up to now. ``lost`` has messages on records that were deleted before the run read them."""

    summary: job.Summary
    steps: int
    lost: tuple[str, ...]


class Follower:
    """One run that adds records to one output. ``added`` is the result of the commits up to now."""

    def __init__(self, export: job.Export, listener: job.Listener) -> None:
        if export.format not in FORMATS:
            raise UsageError(
                f"--format {export.format}: --incremental and --follow can only write {', '.join(FORMATS)}; for "
                'a table use a stream: spark.readStream.format("kdump")'
            )
        if export.mode != "error":
            raise UsageError(f"--mode {export.mode} cannot be combined with --incremental or --follow")
        self._export, self._listener = export, listener
        options = self._options = job.source_options(export)
        unfit = {"--dedupe": options.dedupe, "option remote": options.remote}
        if options.kafka is not None:
            unfit[f"option {options.kafka.asked}"] = True
        for option, is_given in unfit.items():
            if is_given:
                raise UsageError(f"{option} cannot be combined with --incremental or --follow")
        self._done = job.Summary(0, 0, 0, 0, 0, 0, 0)
        self._files: set[str] = set()
        self._lost: list[str] = []
        self._unreadable: dict[str, UnreadableError] = {}
        self._steps = 0
        self._listings = Listings()
        self._forever = False
        self._began = time.monotonic()

    @property
    def added(self) -> Added:
        summary = self._done._replace(
            files=len(self._files),
            seconds=time.monotonic() - self._began,
            unreadable=tuple(self._unreadable.values()),
        )
        return Added(summary, self._steps, tuple(self._lost))

    def run(self, *, forever: bool, pause: float = PAUSE) -> Added:
        """Write all new records. If ``forever``, list the inputs again ``pause`` seconds after all are written.

        Raises the errors of :func:`kdump.spark.export.job.run`, and KeyboardInterrupt; ``added`` then has the result.
        """
        self._forever = forever
        job.check(self._export, adds=True)
        job.with_schemas(self._options)  # raises before Spark starts
        # unreadable inputs are reported before Spark starts
        found = streaming.partitions(self._options, self._listener.note, self._fail, self._listener.plans)
        self._listings.remember(found)
        self._listener.plans("")
        if not found and self._unreadable:
            raise next(iter(self._unreadable.values()))
        spark = session.start(self._export.master, self._export.conf, session.SparkOutput())
        self._began = time.monotonic()
        with errors():
            register(spark)
            output = Output(spark, self._export.out, self._export.format)
            with held(output) as hold:
                self._go_on(HeldOutput(spark, output, hold), pause)
            return self.added

    def _go_on(self, place: HeldOutput, pause: float) -> None:
        checkpoint = Checkpoint(place.output, _settings(self._export, self._options))
        state = checkpoint.open(skip_unreadable=self._options.skip_unreadable)
        try:
            while True:
                state, is_complete = self._step(place, checkpoint, state)
                if is_complete and not self._forever:
                    break
                if is_complete:
                    self._wait(pause)
                    session.check_alive(place.spark)
        except (KeyboardInterrupt, MalformedError):
            checkpoint.write_manifest()
            raise
        checkpoint.write_manifest()

    def _fail(self, error: UnreadableError) -> None:
        """Raise a read error, or keep it: the step then reads its folder only up to the unreadable bytes.

        Mode FAILFAST raises all errors. Otherwise ``--follow`` keeps them, and ``skip_unreadable`` those of a disk.
        """
        skips = self._options.skip_unreadable and isinstance(error, FailingDiskError)
        if self._options.mode == words.FAILFAST or not (self._forever or skips):
            raise error
        if self._forever and str(error) not in self._unreadable:
            self._listener.note(f"{error}; continuing with the other folders")
        self._unreadable[str(error)] = error

    def _wait(self, pause: float) -> None:
        total = self.added.summary
        text = f"{many(total.rows, 'record')} added in {many(self._steps, 'step')}; waiting for more (Ctrl-C ends)"
        self._listener.progress(text, 0, 0)
        time.sleep(pause)

    def _step(self, place: HeldOutput, checkpoint: Checkpoint, state: State) -> tuple[State, bool]:
        """Export new records. Return the state after them, and whether no more records can be exported now.

        If a task cannot read a folder, and the error may be kept, the driver reads all its bytes for the next attempt.
        """
        tries = TRIES
        checked: set[str] = set()
        while True:
            limits = _limits(self._options)
            advance = streaming.advance(
                self._options, state.offsets, limits, fail=self._fail, listings=self._listings, checked=checked
            )
            if advance.offsets == state.offsets:
                return state, advance.is_complete
            planned: list[planning.Planned] = []
            try:
                planned = job.numbered([_planned(taken, self._options) for taken in advance.taken])
                return self._take(place, checkpoint, state, advance, planned), advance.is_complete
            except KdumpError as error:
                tries -= 1
                if isinstance(error, MalformedError):
                    raise
                if tries and _has_changed(advance, planned):
                    self._listener.note(f"{error}; files have changed meanwhile, trying again")
                    continue
                if not isinstance(error, UnreadableError) or not (self._forever or self._options.skip_unreadable):
                    raise
                folder = _folder_of(error, advance)
                if folder is None:
                    raise
                if folder in checked:
                    self._fail(error)
                    return state, True
                checked.add(folder)

    def _take(
        self,
        place: HeldOutput,
        checkpoint: Checkpoint,
        state: State,
        advance: streaming.Advance,
        planned: list[planning.Planned],
    ) -> State:
        started = datetime.now(UTC)
        lost = _losses(advance, state.offsets)
        options = job.with_schemas(replace(self._options, skip_unreadable=False))  # new records may have new schemas
        with place.output.staging(self._listener.note) as staged, errors():
            work = job.Work(place.spark, self._export, options, planned, staged[1], self._listener)
            written = work.write(always=not self._steps) if planned else job.WrittenRows(0, {}, {}, {})
            step = work.accounted(started, written)
            place.hold.check()
        for file, segment in zip(step["files"], planned, strict=True):
            file |= {"start": segment.splits[0].start, "end": segment.splits[-1].end}
        step["lost"] = lost
        since = state.offsets
        state = checkpoint.commit(state, advance.offsets, step, staged, is_first=not self._steps)
        self._steps += 1
        done = job.summary(step)
        self._done = job.Summary(*map(operator.add, self._done, done))
        self._files.update(file["file"] for file in step["files"])
        self._listener.damages(step)
        self._lost += lost
        for text in (*lost, *_unknown(advance, since)):
            self._listener.note(text)
        counts = f"{many(done.files, 'file')}, {many(done.damaged_ranges, 'damaged range')}"
        self._listener.note(f"{many(done.rows, 'record')} added: {counts}")
        return state


def _settings(export: job.Export, options: words.SourceOptions) -> dict[str, Any]:
    return {
        "format": export.format,
        "partitionBy": list(export.partition_by),
        "columns": list(options.columns),
        "decode": options.decode,
        "schema": options.schema,
        "isolation": options.isolation,
        "includeControl": options.include_control,
    }


def _limits(options: words.SourceOptions) -> streaming.TriggerLimits:
    return streaming.TriggerLimits(
        options.max_files_per_trigger,
        min(options.max_bytes_per_trigger or STEP_BYTES, STEP_BYTES),
        options.max_records_per_trigger,
    )


def _folder_of(error: UnreadableError, advance: streaming.Advance) -> str | None:
    """Return the partition folder of the segment that caused an error; None if the plan does not have the segment."""
    return next((key_of(one.partition) for one in advance.taken if one.segment.name == str(error.path)), None)


def _has_changed(advance: streaming.Advance, planned: list[planning.Planned]) -> bool:
    """Return whether a planned file was deleted, truncated or replaced; False if a store does not answer."""
    try:
        is_gone = any(one.segment.files.look(one.segment.path) is None for one in advance.taken)
        return is_gone or any(_has_file_changed(segment.splits) for segment in planned)
    except StoreError:  # the store cannot show whether a file has changed
        return False


def _has_file_changed(splits: Sequence[planning.Split]) -> bool:
    try:
        with splits[0].files.open(splits[0].path) as source:
            for split in splits:
                reading.check_live(split, source)
    except StoreError:
        raise
    except UnreadableError:
        return True
    return False


def _losses(advance: streaming.Advance, start: streaming.Offsets) -> list[str]:
    found: list[str] = []
    for key, fields in advance.offsets.items():
        since, until = Mark(**start.get(key, {})), Mark(**fields)
        if since != until:
            found += streaming.losses(key, advance.partitions.get(key), since, until)
    return found


def _unknown(advance: streaming.Advance, start: streaming.Offsets) -> list[str]:
    first = {key_of(taken.partition): taken for taken in reversed(advance.taken)}
    return [
        text
        for key, taken in first.items()
        for text in streaming.unknown(key, taken.outcomes, Mark(**start.get(key, {})).offset)
    ]


def _planned(taken: streaming.Taken, options: words.SourceOptions) -> planning.Planned:
    splits = taken.splits(options.split_bytes)
    return planning.planned(taken.partition, taken.segment, splits, taken.end - taken.start)


KEPT: Final = 2


class State(NamedTuple):
    """The position of an output: the number of the last commit (0 before the first) and the offsets of the inputs."""

    number: int
    offsets: Offsets


class Checkpoint:
    """The folder ``_checkpoint`` of an output that the caller has locked. All runs must have equal ``settings``."""

    def __init__(self, output: Output, settings: dict[str, Any]) -> None:
        self._output, self._settings = output, settings
        self._runs = 0
        self._waiting: list[tuple[int, dict[str, Any]]] = []
        self._size = self._manifest_size = 0

    def open(self, *, skip_unreadable: bool = False) -> State:
        """Complete the last commit of a killed run, delete its other files, and return the position of the output.

        Raises UsageError if the output is not an incremental export, has other settings, or lacks unreadable bytes that
        an earlier run left out. The last is permitted if both runs have ``skip_unreadable``.
        """
        output = self._output
        numbers = self._numbers()
        if not numbers:
            if output.exists("") and not output.exists(CHECKPOINT):
                raise UsageError(f"{output.path} exists and has no {CHECKPOINT}: choose another --out")
            self._clear()
            return State(0, {})
        last = self._read(numbers[-1])
        for name, value in self._settings.items():
            before = last["settings"].get(name)
            if before != value:
                raise UsageError(
                    f"{output.path} was written with {name} {before}, not {value}: "
                    "choose another --out, or the same options"
                )
        self._finish(last)
        self._clear()
        reported = self._output.steps()
        self._waiting = [(number, self._read(number)) for number in numbers if number > reported]
        self.write_manifest()
        runs = self._output.runs() or []
        hint = "choose another --out: kdump then exports all records again"
        account.refuse_unread(runs, output.path, skip_unreadable=skip_unreadable, hint=hint)
        self._runs = len(runs)
        return State(numbers[-1], last["offsets"])

    def commit(
        self, state: State, offsets: Offsets, step: dict[str, Any], staged: tuple[str, Output], *, is_first: bool
    ) -> State:
        """Write the commit of a step, then move its files from ``staged`` (name, folder) to the output.

        ``is_first``: the first step of a run. Raises KdumpError if another run has written here.
        """
        staging = staged[1]
        number = state.number + 1
        if self._output.exists(f"{CHECKPOINT}/{number}.json"):
            raise KdumpError(f"{self._output.path}: another run has written here meanwhile; run one at a time")
        self._runs += is_first
        moves = staging.files()
        made = {
            "settings": self._settings,
            "offsets": offsets,
            "staging": staged[0],
            "moves": moves,
            "run": self._runs - 1,
            "account": step,
        }
        staging.flush(moves)
        text = json.dumps(made)
        name = f"{CHECKPOINT}/{number}.json"
        try:
            self._output.write_text(name, text)
        except BaseException:
            try_to(lambda: commit.abandon(self._output, name, staging))
            raise
        self._finish(made)
        self._waiting.append((number, made))
        self._size += len(text)
        if 2 * self._size > self._manifest_size:
            self.write_manifest()
        return State(number, offsets)

    def _finish(self, made: dict[str, Any]) -> None:
        staging = self._output.hidden(made["staging"])
        commit.move(self._output, staging, made["moves"])
        staging.delete()

    def write_manifest(self) -> None:
        """Add the accounts of the steps that the manifest lacks, and delete all commits but the last KEPT."""
        if not self._waiting:
            return
        runs = self._output.runs() or []
        for at, group in groupby(self._waiting, key=lambda numbered: numbered[1]["run"]):
            steps = [made["account"] for _, made in group]
            if at < len(runs):
                runs[at] = account.plus(runs[at], steps)
            else:
                runs.append(account.plus(steps[0], steps[1:]))
        self._manifest_size = self._output.write_runs(runs, self._waiting[-1][0])
        self._waiting, self._size = [], 0
        for old in self._numbers()[:-KEPT]:
            self._output.delete(f"{CHECKPOINT}/{old}.json")

    def _numbers(self) -> list[int]:
        stems = (name.removesuffix(".json") for name in self._output.files(CHECKPOINT, deep=False))
        return sorted(int(stem) for stem in stems if stem.isascii() and stem.isdecimal())

    def _clear(self) -> None:
        commit.delete_hidden(self._output)
        for name in self._output.files(CHECKPOINT, deep=False):
            if name.endswith(NEW):
                self._output.delete(f"{CHECKPOINT}/{name}")

    def _read(self, number: int) -> dict[str, Any]:
        fields = ("settings", "offsets", "staging", "moves", "run", "account")
        return self._output.read_json(f"{CHECKPOINT}/{number}.json", fields)
