"""The pass over log dirs that feeds collectors. It reads each batch once for all of them.

:func:`gather_with` reads with workers. :class:`PassTap` feeds the collectors with what a check reads.
"""

from __future__ import annotations

import copy
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, Self, TypeVar

from kdump.answers.collector import Needs, Place, Reading
from kdump.errors import DamageError, Reporter, UnreadableError, discard
from kdump.log_dirs.log_dir_state import LogDirStates
from kdump.log_dirs.partition import task_groups
from kdump.records.record_batch import Batches
from kdump.segments import log_end, resync
from kdump.segments.index_lookup import Seeker
from kdump.segments.log_end import SegmentEnd
from kdump.segments.regions import CONTROL_TOO, DATA, UNREADABLE, Damage, Padding, Trailing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from kdump.answers.collector import Collector
    from kdump.log_dirs.partition import Partition, Segment
    from kdump.primitives.processes import Workers
    from kdump.segments.regions import Region, RunKinds


class LogDirPass:
    """Reads partitions and feeds ``collectors``. ``states`` are the states of log dirs, if the caller has them."""

    def __init__(self, collectors: Sequence[Collector], report: Reporter, states: LogDirStates | None = None) -> None:
        self.collectors = collectors
        self._report = report
        self._states = LogDirStates(report) if states is None else states

    def run(self, partitions: Iterable[Partition]) -> None:
        for partition in partitions:
            self.partition(self.place(partition))

    def place(self, partition: Partition) -> Place:
        return Place(partition, self._states.of(partition), self._report, {})

    def partition(self, place: Place) -> None:
        """Feed the collectors with a partition. Batches are read only if a collector needs them."""
        reading, since = self.begin(place)
        if reading:
            self._read(place.partition.segments, reading, since)
        else:
            self._report.progress(place.partition.size)
        for collector in self.collectors:
            collector.end()

    def _read(self, segments: Sequence[Segment], reading: Sequence[Collector], since: int) -> None:
        first = first_segment(segments, since)
        for number, segment in enumerate(segments):
            if number >= first:
                since = since if number == first else 0
                self._segment(segment, reading, since=since, is_last=number == len(segments) - 1)
            else:
                self._report.progress(segment.size)

    def begin(self, place: Place) -> tuple[list[Collector], int]:
        """Begin a partition. Return the collectors that need batches, and the least offset that they need."""
        reading, offsets = [], []
        for collector in self.collectors:
            try:
                if collector.current_ids and (note := place.of_deleted_topic(collector.current_ids)):
                    self._report.note(note)
                    continue
                needs = collector.begin(place)
            except UnreadableError as error:
                self._report.fail(error)
                continue
            needs, since = needs if isinstance(needs, Reading) else (needs, 0)
            if needs is not Needs.FILES:
                reading.append(collector)
                offsets.append(since)
        return reading, min(offsets, default=0)

    def _segment(self, segment: Segment, reading: Sequence[Collector], *, since: int, is_last: bool) -> None:
        for collector in reading:
            collector.turn_to(segment)
        done = 0
        runs = CONTROL_TOO if any(collector.takes_control_runs for collector in reading) else DATA
        for region in self.regions(segment, since=since, is_last=is_last, runs=runs):
            self.feed(reading, segment, region)
            end = region.position + region.size
            self._report.progress(end - done)
            done = end
        self._report.progress(segment.size - done)

    def feed(self, reading: Sequence[Collector], segment: Segment, region: Region) -> None:
        if isinstance(region, Batches):
            is_run = region.batch_count > 1
            is_control = is_run and region.first.is_control
            for collector in reading:
                taken: int | None = 0
                if is_run and (collector.takes_control_runs or not is_control):
                    taken = collector.add(region)
                for batch in () if taken is None else region.batches(taken):
                    try:
                        collector.add(batch)
                    except DamageError as damage:
                        self._report.damage(f"{segment.name}: byte {batch.position}: {damage.reason}")
        elif isinstance(region, Damage | Trailing):
            for collector in reading:
                collector.lose(region)

    def regions(self, segment: Segment, *, is_last: bool, since: int = 0, runs: RunKinds = DATA) -> Iterator[Region]:
        """Yield the regions of a segment, and report damage. ``runs``: the kinds of batches to yield as runs.

        The first region is at or before offset ``since``, as near as the index allows. :mod:`kdump.segments.log_end`
        decides whether a truncated batch at the end is damage. After an I/O error, the rest of the file is damaged.
        """
        base, done = segment.base_offset, 0
        try:
            with segment.open() as source:
                if base is not None and since > base:
                    done = Seeker(segment, source, self._report.wrong).by_offset(since, None).start
                for region in resync.read(source, done, on_error="resync", first_offset=base, runs=runs):
                    lost = _lost(region, is_last=is_last)
                    if isinstance(region, Damage | Trailing):
                        log_end.report_region(segment, region, self._report)
                    yield region if lost is None else lost
                    done = region.position + region.size
        except UnreadableError as error:
            self._report.fail(error)
            yield Damage(done, max(0, segment.size - done), UNREADABLE, error.reason, done)


class PassTap:
    """Feeds the collectors of a pass with what a check reads from a partition. The caller must close the tap.

    The collectors begin after the check has parsed the files beside the log. No progress is reported.
    """

    def __init__(self, through: LogDirPass, place: Place) -> None:
        self.parsed: dict[str, Any] = {} if place.parsed is None else place.parsed
        self._through, self._place = through, place
        self._segments = place.partition.segments
        self._next = 0

    @cached_property
    def _reading(self) -> list[Collector]:
        return self._through.begin(self._place)[0]

    def __call__(self, segment: Segment, regions: Iterator[Region]) -> Iterator[Region]:
        """Feed each region of a segment and yield it. A repeated or late segment is not fed."""
        number = next((number for number, one in enumerate(self._segments) if one.path == segment.path), None)
        if number is None or number < self._next:
            yield from regions
            return
        self._skip(number)
        self._turn_to(segment)
        done, is_last = 0, number == len(self._segments) - 1
        first: Batches | None = None
        last: Batches | None = None
        is_sound = True
        try:
            for region in regions:
                lost = _lost(region, is_last=is_last)
                self._through.feed(self._reading, segment, region if lost is None else lost)
                done = region.position + region.size
                if isinstance(region, Batches):
                    first, last = first or region, region
                else:
                    is_sound = is_sound and isinstance(region, Padding)
                yield region
        except UnreadableError as error:
            self._lose(segment, done, error.reason)
            raise
        if is_last and is_sound and first and last:
            self.parsed[segment.path] = SegmentEnd(last.last, last.end, segment.base_offset or 0, first=first.first)

    def close(self) -> None:
        """Pass the unread segments to the collectors as damage. Then call ``end`` of each collector."""
        _ = self._reading  # without a segment they begin here
        self._skip(len(self._segments))
        for collector in self._through.collectors:
            collector.end()

    def _skip(self, number: int) -> None:
        for segment in self._segments[self._next : number]:
            self._turn_to(segment)
            self._lose(segment, 0, "the segment was not read")
        self._next = number + 1

    def _turn_to(self, segment: Segment) -> None:
        for collector in self._reading:
            collector.turn_to(segment)

    def _lose(self, segment: Segment, done: int, reason: str) -> None:
        lost = Damage(done, max(0, segment.size - done), UNREADABLE, reason, done)
        self._through.feed(self._reading, segment, lost)


def _lost(region: Region, *, is_last: bool) -> Damage | None:
    """Return a region as damage, or None for another region. A truncated batch is damage except in the last segment."""
    if isinstance(region, Trailing) and not is_last:
        return region.damage()
    return region if isinstance(region, Damage) else None


def first_segment(segments: Sequence[Segment], offset: int) -> int:
    """Return the number of the last segment that begins at or before an offset; 0 if there is none."""
    later = (number for number, segment in enumerate(segments) if (segment.base_offset or 0) > offset)
    return max(0, next(later, len(segments)) - 1)


def size_after(partition: Partition, offset: int) -> int:
    """Return the approximate bytes of the log from ``offset`` on, by the offset index. Raises UnreadableError."""
    segments = partition.segments[first_segment(partition.segments, offset) :]
    size = sum(segment.size for segment in segments)
    if segments and offset > (segments[0].base_offset or 0):
        with segments[0].open() as source:
            size -= Seeker(segments[0], source, discard).by_offset(offset, None).start
    return size


class Merging(Protocol):
    """The result for some partitions, which can be merged with the result for later partitions."""

    def merge(self, other: Self) -> None:
        """Add the results of later partitions."""


M = TypeVar("M", bound=Merging)


class Collectors(list["Collector"]):
    def merge(self, other: Collectors) -> None:
        for collector, more in zip(self, other, strict=True):
            collector.merge(more)


def feed(collectors: Collectors, partitions: Sequence[Partition], report: Reporter) -> None:
    LogDirPass(collectors, report).run(partitions)


class Gathered(NamedTuple, Generic[M]):
    """The result of some partitions, their ``size`` in bytes, and the reporter's ``calls``: (field, argument)."""

    into: M
    size: int
    calls: list[tuple[str, Any]]

    def merge(self, other: Gathered[M]) -> Gathered[M]:
        self.into.merge(other.into)
        return Gathered(self.into, self.size + other.size, self.calls + other.calls)


def gather_with(
    workers: Workers,
    into: M,
    work: Callable[[M, Sequence[Partition], Reporter], None],
    partitions: Sequence[Partition],
    report: Reporter,
) -> None:
    """Let workers call ``work`` for groups of partitions, and merge the results into ``into``, in order.

    Each call gets a copy of the empty ``into``. ``report`` gets the calls in order, but progress at most once per task.
    """
    for gathered in workers.results(
        partial(_gathered, copy.deepcopy(into), work), task_groups(partitions, workers.count), Gathered.merge
    ):
        into.merge(gathered.into)
        for name, what in gathered.calls:
            getattr(report, name)(what)
        report.progress(gathered.size)


def _gathered(
    empty: M, work: Callable[[M, Sequence[Partition], Reporter], None], partitions: Sequence[Partition]
) -> Gathered[M]:
    done = Gathered(copy.deepcopy(empty), sum(partition.size for partition in partitions), [])
    receivers: dict[str, Any] = {
        name: lambda what, name=name: done.calls.append((name, what)) for name in Reporter._fields if name != "progress"
    }
    work(done.into, partitions, Reporter(**receivers))
    return done
