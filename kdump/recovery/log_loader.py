"""What a broker does to a partition's log when it starts: a dry run that touches nothing.

After a clean stop a broker reads no log: only a segment without its ``.index``, or with a ``.txnindex`` that cannot
be, is recovered. After an unclean stop each segment from the recovery point on is: batches are read one after the
other, and the first that is not valid ends the segment there and deletes all later ones. Sources: Kafka's classes
LogLoader and LogSegment (``recover``) as of 4.2.

What it believes: every length; any magic above 1 is read as 2 (the magic lies outside the crc); no offset order, but
the entries of the new index must rise, so that offsets that go back between two index entries cost the whole segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdump.errors import DamageError
from kdump.formats import producer_snapshot, record_layout, txn_index
from kdump.formats.offset_index import OffsetIndex
from kdump.formats.sparse_index import DEFAULT_INTERVAL
from kdump.log_dirs import file_names
from kdump.primitives.named_tuple import NamedTuple
from kdump.records import control
from kdump.records.record_batch import RecordBatch
from kdump.recovery.index_builder import IndexBuilder
from kdump.recovery.split_segment import OffsetOverflowError, RefusedError, at, split
from kdump.segments import read
from kdump.segments.batch_runs import Run, of_data
from kdump.segments.regions import Damage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.log_dirs.files import Source
    from kdump.log_dirs.partition import Partition, Segment
    from kdump.segments.regions import Region


class Cut(NamedTuple):
    """What would go from one file: from ``position`` (bytes) to its end, ``size`` bytes.

    ``first_offset`` and ``last_offset`` span the offsets of the sound batches in it, ``records`` is their number; None
    and 0 where there are none.
    """

    file: str
    position: int
    size: int
    reason: str
    first_offset: int | None
    last_offset: int | None
    records: int


class Outcome(NamedTuple):
    """What a start makes of a partition.

    ``recovered`` are the segments that would be read; ``log_end_offset`` is the next offset afterwards, None where
    ``fails`` says why the broker could not load the log. ``splits`` names the segments that would be split first,
    since they hold an offset that does not fit behind their base offset.
    """

    clean: bool
    recovery_point: int
    recovered: tuple[str, ...]
    recovered_bytes: int
    cuts: tuple[Cut, ...]
    log_end_offset: int | None
    fails: str | None = None
    splits: tuple[str, ...] = ()


class _FailsError(Exception):
    """The broker would throw, and not load the log."""


class _BackwardsError(Exception):
    """An index that is built anew would refuse an entry (InvalidOffsetException)."""


class _Recovered(NamedTuple):
    """A segment after its recovery: its valid bytes, why it ends there, the next offset, where its last index entry
    points to."""

    valid: int
    reason: str
    next_offset: int
    indexed: int = 0


def dry_run(
    partition: Partition,
    *,
    clean: bool,
    recovery_point: int = 0,
    log_start: int = 0,
    interval: int = DEFAULT_INTERVAL,
) -> Outcome:
    """Say what a broker would do to a partition, whose segments hold the swap files too.

    ``clean`` tells whether it stopped in good order, ``recovery_point`` and ``log_start`` are what the log dir's
    checkpoints say of the partition. Raises UnreadableError.
    """
    start = _Start(interval, log_start, _snapshots(partition))
    left = _after_swaps(list(partition.segments))
    fails, end = None, None
    try:
        left = start.load(left)
        if not clean:
            left = start.recover_from(left, recovery_point)
        end = start.next_offset(left[-1]) if left else log_start
        if left and end < log_start:
            for each in left:
                start.cut(each, 0, f"the log would end at {end}, before its log start offset {log_start}")
            left, end = [], log_start
        if left:
            if start.snapshots or not clean:
                start.replay(left, end)
            start.find_end(left[-1], end)
    except (_FailsError, RefusedError) as reason:
        fails = str(reason)
    return Outcome(
        clean,
        recovery_point,
        tuple(each.name for each in start.read),
        sum(each.size for each in start.read),
        tuple(start.cuts),
        None if fails else end,
        fails,
        tuple(start.splits),
    )


class _Start:
    """One start of a broker, for one partition."""

    def __init__(self, interval: int, log_start: int, snapshots: set[int]) -> None:
        self.interval, self.log_start, self.snapshots = interval, log_start, snapshots
        self.read: list[Segment] = []
        self.cuts: list[Cut] = []
        self.splits: list[str] = []
        self._done: dict[int, _Recovered] = {}

    def load(self, segments: list[Segment]) -> list[Segment]:
        """Recover what has no sound index of its own; return the segments, which a split may have changed."""
        number = 0
        while number < len(segments):
            each = segments[number]
            try:
                if _base(each) not in self._done and _loads_by_recovery(each):
                    self.recover(each, segments[:number], loading=True)
            except OffsetOverflowError as error:
                segments, number = self._split(segments, error), 0  # the broker begins again
                continue
            number += 1
        return segments

    def _split(self, segments: list[Segment], error: OffsetOverflowError) -> list[Segment]:
        """Return the segments after a split; those of another base offset keep their place in the log."""
        parts = split(error)
        self.splits.append(error.segment.name)
        self.snapshots.discard(_base(error.segment))
        bases = {_base(part) for part in parts}
        rest = [each for each in segments if each is not error.segment and _base(each) not in bases]
        return sorted([*rest, *parts], key=_base)

    def recover(self, each: Segment, before: list[Segment], *, loading: bool) -> bool:
        """Recover a segment behind those ``before`` it; tell whether it is cut."""
        self.read.append(each)
        if self.replay(before, _base(each)) and loading and before:
            self.find_end(before[-1], _base(each))  # what comes later is not loaded yet: there the broker looks for it
        try:
            done = _recover(each, self.interval)
        except _BackwardsError as reason:
            if loading:
                raise _FailsError(f"{each.name}: {reason}") from None
            done = _Recovered(0, str(reason), _base(each))
        self._done[_base(each)] = done
        self.snapshots.add(done.next_offset)
        self.cut(each, done.valid, done.reason)
        return done.valid < each.size

    def recover_from(self, segments: list[Segment], recovery_point: int) -> list[Segment]:
        """Recover what is not flushed for certain; return the segments that stay."""
        while True:
            try:
                return self._recover_once(segments, recovery_point)
            except OffsetOverflowError as error:
                segments = self._split(segments, error)  # the broker begins again

    def _recover_once(self, segments: list[Segment], recovery_point: int) -> list[Segment]:
        """Do so up to the first segment whose offsets do not fit: then OffsetOverflowError is raised."""
        below = [number for number, each in enumerate(segments) if _base(each) <= recovery_point]
        for number in range(below[-1] if below else 0, len(segments)):
            each = segments[number]
            if _base(each) not in self._done and self.recover(each, segments[:number], loading=False):
                for later in segments[number + 1 :]:
                    self.cut(later, 0, f"{each.name} is cut, and all later segments are deleted")
                return segments[: number + 1]
        return segments

    def cut(self, each: Segment, position: int, reason: str) -> None:
        """Take note of what goes when a file is cut at ``position``; sound batches behind it are counted."""
        if position < each.size:
            begin = each.start
            others = (cut for cut in self.cuts if cut.file != each.name or not 0 <= cut.position - begin < each.size)
            self.cuts = [*others, _lost(each, position, reason)]

    def replay(self, segments: list[Segment], end: int) -> bool:
        """Read the batches from the newest producer snapshot up to the offset ``end``: their lengths must be right.

        Return whether there was anything to read. (``UnifiedLog.rebuildProducerState``; a segment that has been
        recovered is sound.)
        """
        start = max((offset for offset in self.snapshots if self.log_start < offset <= end), default=self.log_start)
        if start >= end:
            return False
        floor = max((_base(each) for each in segments if _base(each) <= start), default=start)
        for each in segments:
            if _base(each) < floor or _base(each) >= end or _base(each) in self._done:
                continue
            self._replay_segment(each, start)
        return True

    def _replay_segment(self, each: Segment, start: int) -> None:
        searching = True
        with each.open() as source:
            for region in of_data(read.walk_runs(source, _indexed(each, start) if _base(each) < start else 0)):
                if isinstance(region, Run):
                    searching = searching and region.greatest("base_offset") < start
                    continue
                fault = ""
                if isinstance(region, Damage):
                    raise _FailsError(f"{at(each, region.at)}: {region.reason}")
                if not isinstance(region, RecordBatch):
                    return
                if searching:
                    try:
                        searching = region.base_offset < start
                    except DamageError as damage:
                        fault = damage.reason
                if fault or (region.magic >= record_layout.MAGIC_2 and (fault := _marker_fault(each, region))):
                    raise _FailsError(f"{at(each, region.position)}: {fault}")

    def find_end(self, last: Segment, end: int) -> None:
        """Look for the log's end as the broker does for its producers: it unpacks each wrapper behind the last entry.

        (``FileRecords.searchForOffsetFromPosition`` asks every batch for its base offset.)
        """
        known = self._done.get(_base(last))
        start, stop = (known.indexed, known.valid) if known else (_indexed(last, end), last.size)
        with last.open() as source:
            for region in read.walk_runs(source, start, stop):
                if isinstance(region, RecordBatch) and region.magic < record_layout.MAGIC_2:
                    try:
                        region.base_offset  # noqa: B018  reading it unpacks the wrapper
                    except DamageError as damage:
                        raise _FailsError(f"{at(last, region.position)}: {damage.reason}") from None

    def next_offset(self, each: Segment) -> int:
        known = self._done.get(_base(each))
        return known.next_offset if known else _walk_next_offset(each)


def _base(each: Segment) -> int:
    return each.base_offset or 0


def _snapshots(partition: Partition) -> set[int]:
    """Return the offsets of the producer snapshots that can be read."""
    found = set()
    for entry in partition.others:
        stem, _, suffix = entry.name.partition(".")
        if suffix == file_names.PRODUCER_SNAPSHOT and stem.isdecimal():
            with partition.files.open(entry.path) as source:
                try:
                    producer_snapshot.read(source.read(0, source.size))
                except DamageError:
                    continue  # the broker deletes it, and takes an older one
            found.add(int(stem))
    return found


def _after_swaps(segments: list[Segment]) -> list[Segment]:
    """Return the segments that are loaded: an interrupted swap is finished first, unless its cleaning was not."""
    by_state: dict[str, list[Segment]] = {file_names.CLEANED: [], file_names.SWAP: [], "": []}
    for each in sorted(segments, key=_base):
        state = each.path.rpartition(f".{file_names.LOG}")[2].removeprefix(".")
        if state in by_state:
            by_state[state].append(each)
    cleaned_from = min((_base(each) for each in by_state[file_names.CLEANED]), default=None)
    swaps = [each for each in by_state[file_names.SWAP] if cleaned_from is None or _base(each) < cleaned_from]
    if not swaps:
        return by_state[""]
    first, end = _base(swaps[0]), max(_walk_next_offset(each) for each in swaps)
    return sorted([each for each in by_state[""] if not first <= _base(each) < end] + swaps, key=_base)


def _loads_by_recovery(each: Segment) -> bool:
    """Tell whether a segment is recovered whatever the stop was like: no ``.index``, or an impossible ``.txnindex``."""
    if file_names.INDEX not in each.siblings:
        return True
    aborted = each.sibling(file_names.TXN_INDEX)
    if not aborted:
        return False
    try:
        return any(entry.last_offset < _base(each) for entry in txn_index.read(aborted))
    except DamageError:
        return True


def _recover(each: Segment, interval: int) -> _Recovered:
    """Read a segment as LogSegment.recover does."""
    index = IndexBuilder(_base(each), interval=interval)
    valid, next_offset = 0, _base(each)
    reason = ""
    with each.open() as source:
        for region in _recoverable(source, index):
            if isinstance(region, Run):
                index.add_run(region, region.position)
                if index.refused_at is not None:
                    row = region.column("position").index(index.refused_at)
                    raise _BackwardsError(_goes_back(region.field("last_offset", row), index.refused_at))
                valid, next_offset = region.end, region.last_offset + 1
                continue
            if not isinstance(region, RecordBatch):
                reason = getattr(region, "reason", "the end of the file cuts a batch off")
                break
            if reason := _invalid(region):
                break
            last = region.last_offset
            if not index.fits(last):
                raise OffsetOverflowError(each, region.position, last, index.indexed)
            index.add(region)
            if index.refuses:
                raise _BackwardsError(_goes_back(last, valid))
            valid += region.size
            next_offset = last + 1
            if region.magic >= record_layout.MAGIC_2 and (reason := _marker_fault(each, region)):
                break
    index.close()
    if index.refuses:
        raise _BackwardsError("the offset of the largest timestamp goes back behind an index entry")
    return _Recovered(valid, reason, next_offset, index.indexed)


def _recoverable(source: Source, index: IndexBuilder) -> Iterator[Region | Run]:
    """Yield what Kafka's own reader finds; runs are of data, with offsets that fit into the segment."""
    for region in of_data(read.walk_runs(source)):
        if isinstance(region, Run) and not (
            index.fits(region.least("last_offset")) and index.fits(region.greatest("last_offset"))
        ):
            yield from region.batches()
        else:
            yield region


def _goes_back(offset: int, position: int) -> str:
    return f"offset {offset} at byte {position} goes back behind an index entry"


def _invalid(region: RecordBatch) -> str:
    """Return why ``ensureValid`` refuses a batch; empty when it does not."""
    smallest = (
        record_layout.BATCH_HEADER.size
        if region.magic >= record_layout.MAGIC_2
        else record_layout.LOG_OVERHEAD.size + record_layout.SMALLEST_MESSAGE[0]
    )
    if region.size < smallest:
        return f"a batch of {region.size} bytes is smaller than its header"
    return "" if region.crc_valid else "the checksum is wrong"


def _marker_fault(each: Segment, region: RecordBatch) -> str:
    """Return why the batch ends the recovery behind it: a marker that cannot be read."""
    if not region.is_control or region.producer_id is None or region.producer_id < 0:
        return ""
    try:
        for record in region.records():
            key = control.read_key(record.key)
            if key.type not in control.MARKERS:
                raise _FailsError(
                    f"{at(each, region.position)}: a control batch of a producer holds no transaction marker"
                )
            control.read_marker(record.value)
            break
    except DamageError as damage:
        return damage.reason
    return ""


def _lost(each: Segment, position: int, reason: str) -> Cut:
    first = last = None
    records = 0
    with each.open() as source:
        for region in read.read_runs(source, position, on_error="resync"):
            if isinstance(region, RecordBatch | Run):
                begin, end, count = _span(region)
                first = begin if first is None else min(first, begin)
                last = end if last is None else max(last, end)
                records += count
    return Cut(each.name, each.start + position, each.size - position, reason, first, last, records)


def _span(region: RecordBatch | Run) -> tuple[int, int, int]:
    """Return the first offset, the last one and the number of records."""
    if isinstance(region, Run):
        count = sum(region.column("records_count"))
        return region.least("base_offset"), region.greatest("last_offset"), count
    if region.count is not None:
        return region.base_offset, region.last_offset, region.count
    try:
        offsets = [record.offset for record in region.records()]
    except DamageError:
        return region.last_offset, region.last_offset, 1
    return offsets[0], region.last_offset, len(offsets)


def _indexed(each: Segment, offset: int) -> int:
    """Return where a look-up of ``offset`` in the segment's own index begins to read."""
    data = each.sibling("index")
    return OffsetIndex(data, _base(each)).lookup(offset).position if data else 0


def _walk_next_offset(each: Segment) -> int:
    """Return the offset behind the last batch as a broker reads it from a segment that it does not recover."""
    next_offset = _base(each)
    with each.open() as source:
        for region in read.walk_runs(source):
            if isinstance(region, RecordBatch | Run):
                next_offset = region.last_offset + 1
            elif isinstance(region, Damage):
                raise _FailsError(f"{at(each, region.at)}: {region.reason}")
    return next_offset
