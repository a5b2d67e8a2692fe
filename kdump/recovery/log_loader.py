"""What a broker does to a partition's log when it starts: a dry run that touches nothing.

First an interrupted swap is finished: a ``.swap`` file takes the place of the segments that it covers, unread, unless a
``.cleaned`` file of a lower or equal base offset says that it was not complete.

After a clean stop a broker reads no log: only a segment without its ``.index``, or with a ``.txnindex`` that cannot
be, is recovered. The log ends where the newest segment does, read from its newest index entry on; where nothing of the
segment lies there, it ends at the segment's base offset. After an unclean stop each segment from the recovery point on
is read, batch after batch. The first batch that is not valid ends the segment there, and all later ones are deleted.
Sources: Kafka's classes LogLoader and LogSegment (``recover``, ``readNextOffset``) as of 4.2.

What it believes: every length; any magic above 1 is read as 2 (the magic lies outside the crc); no offset order, but
the entries of the new index must rise, so that offsets that go back between two index entries cost the whole segment.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Final

from kdump.errors import DamageError
from kdump.formats import producer_snapshot, record_layout, txn_index
from kdump.formats.offset_index import OffsetIndex
from kdump.formats.sparse_index import DEFAULT_INTERVAL
from kdump.log_dirs import file_names
from kdump.log_dirs.files import read_whole
from kdump.log_dirs.partition import Segment
from kdump.primitives.named_tuple import NamedTuple
from kdump.records import control
from kdump.records.record_batch import RecordBatch
from kdump.recovery.index_builder import IndexBuilder
from kdump.recovery.split_segment import OffsetOverflowError, RefusedError, SegmentSlice, at, split
from kdump.segments import read
from kdump.segments.batch_runs import Run, of_data
from kdump.segments.regions import Damage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.log_dirs.files import OpenSource, Source
    from kdump.log_dirs.partition import Partition
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
    code: str = "bad-batch"
    """A word for the reason: bad-batch, offsets-go-back, later-segment, swapped or start-beyond-end."""
    replaced_by: str | None = None
    """The ``.swap`` file that takes the place of these bytes."""


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
    log_start_offset: int | None = None
    fails_at: str | None = None
    """The file at which it fails."""
    fails_code: str = ""
    """A word for why: record-size, control-record, split-refused, offset-refused, txn-index-version, log-unreadable."""
    hidden_by: str | None = None
    """The ``.index`` whose newest entry points past the end of its log, so that no record of the segment is seen."""
    discarded: tuple[str, ...] = ()
    """``.swap`` files that are deleted, because of a ``.cleaned`` file."""
    swapped: tuple[str, ...] = ()
    """``.swap`` files that become segments."""


class _FailsError(Exception):
    """The broker would throw, and not load the log: at ``file``, for the reason that ``code`` is the word for."""

    def __init__(self, text: str, file: str, code: str) -> None:
        super().__init__(text)
        self.file, self.code = file, code


class _BackwardsError(Exception):
    """An index that is built anew would refuse an entry (InvalidOffsetException)."""


class _Recovered(NamedTuple):
    """A segment after its recovery: its valid bytes, why it ends there, the next offset, where its last index entry
    points to."""

    valid: int
    reason: str
    next_offset: int
    indexed: int = 0
    code: str = "bad-batch"


def dry_run(
    partition: Partition,
    *,
    clean: bool,
    recovery_point: int = 0,
    log_start: int = 0,
    interval: int = DEFAULT_INTERVAL,
    sound_end: int | None = None,
    searches_bases: bool = True,
) -> Outcome:
    """Say what a broker would do to a partition, whose segments hold the swap files too.

    ``clean`` tells whether it stopped in good order, ``recovery_point`` and ``log_start`` are what the log dir's
    checkpoints say of the partition. ``sound_end`` is the next offset of a log all of whose batches are known to be
    valid and in order: it is not read again. ``searches_bases`` tells how the release looks for an offset: by the base
    offsets of batches, from 4.1 on (KAFKA-18989), or by their last offsets. Raises UnreadableError.
    """
    start = _Start(interval, log_start, _snapshots(partition), sound_end, searches_bases)
    fails, end, begin = None, None, log_start
    swaps = _Swaps([], [], [])
    try:
        swaps = _after_swaps(partition, searches_bases)
        left = [each if _is_padded(each) else _Empty.of(each) for each in swaps.segments]
        start.cuts += swaps.cuts
        left = start.load(left)
        if not clean:
            left = start.recover_from(left, recovery_point)
        end = start.next_offset(left[-1]) if left else log_start
        if left and end < log_start:
            reason = f"the log would end at {end}, before its log start offset {log_start}"
            for each in left:
                start.cut(each, 0, reason, "start-beyond-end")
            left, end = [], log_start
        begin = max(log_start, _base(left[0])) if left else log_start
        if left and sound_end is None:
            start.keep_snapshots(left)
            if start.snapshots or not clean:
                start.replay(left, end)
            start.find_end(left[-1], end)
    except _FailsError as failed:
        fails = failed
    except RefusedError as refused:
        fails = _FailsError(str(refused), refused.file.removesuffix(f".{file_names.SWAP}"), "split-refused")
    return Outcome(
        clean,
        recovery_point,
        tuple(each.name for each in start.read),
        sum(each.size for each in start.read),
        tuple(start.cuts),
        None if fails else end,
        None if fails is None else str(fails),
        tuple(start.splits),
        None if fails else begin,
        None if fails is None else fails.file,
        "" if fails is None else fails.code,
        start.hidden_by if not fails else None,
        tuple(swaps.discarded),
        tuple(each.name for each in swaps.segments if each.path.endswith(f".{file_names.SWAP}")),
    )


class _Start:
    """One start of a broker, for one partition."""

    def __init__(
        self,
        interval: int,
        log_start: int,
        snapshots: set[int],
        sound_end: int | None,
        searches_bases: bool,
    ) -> None:
        self.interval, self.log_start, self.snapshots = interval, log_start, snapshots
        self.sound_end, self.searches_bases = sound_end, searches_bases
        self.hidden_by: str | None = None
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
        if self.sound_end is not None:
            return False
        if self.replay(before, _base(each)) and loading and before:
            self.find_end(before[-1], _base(each))  # what comes later is not loaded yet: there the broker looks for it
        try:
            done = _recover(each, self.interval)
        except _BackwardsError as reason:
            if loading:
                raise _FailsError(f"{each.name}: {reason}", each.name, "offset-refused") from None
            done = _Recovered(0, str(reason), _base(each), code="offsets-go-back")
        self._done[_base(each)] = done
        self.snapshots.add(done.next_offset)
        self.cut(each, done.valid, done.reason, done.code)
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
                    reason = f"{each.name} is cut, and all later segments are deleted"
                    self.cut(later, 0, reason, "later-segment")
                return segments[: number + 1]
        return segments

    def cut(self, each: Segment, position: int, reason: str, code: str) -> None:
        """Take note of what goes when a file is cut at ``position``; sound batches behind it are counted."""
        if position < each.size:
            begin = each.start
            others = (cut for cut in self.cuts if cut.file != each.name or not 0 <= cut.position - begin < each.size)
            self.cuts = [*others, lost(each, position, reason)._replace(code=code)]

    def keep_snapshots(self, segments: list[Segment]) -> None:
        """Forget the producer snapshots that are of no segment, but the newest (``removeStraySnapshots``)."""
        bases = {_base(each) for each in segments}
        newest = max((offset for offset in self.snapshots if offset not in bases), default=-1)
        self.snapshots &= bases | ({newest} if newest >= max(bases) else set())

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
                    raise _FailsError(f"{at(each, region.at)}: {region.reason}", each.name, "record-size")
                if not isinstance(region, RecordBatch):
                    return
                if searching:
                    try:
                        searching = region.base_offset < start
                    except DamageError as damage:
                        fault = damage.reason
                if fault or (region.magic >= record_layout.MAGIC_2 and (fault := _marker_fault(each, region))):
                    raise _FailsError(f"{at(each, region.position)}: {fault}", each.name, "control-record")

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
                        text = f"{at(last, region.position)}: {damage.reason}"
                        raise _FailsError(text, last.name, "log-unreadable") from None

    def next_offset(self, each: Segment) -> int:
        """Return the offset after the last batch of a segment."""
        if known := self._done.get(_base(each)):
            return known.next_offset
        if self.sound_end is not None and each in self.read:
            return self.sound_end
        found = _read_next_offset(each, self.searches_bases)
        if found is None:
            self.hidden_by = each.files.shown(each.siblings[file_names.INDEX]) if each.size else None
        return _base(each) if found is None else found


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
                    producer_snapshot.read(read_whole(source))
                except DamageError:
                    continue  # the broker deletes it, and takes an older one
            found.add(int(stem))
    return found


class _Swaps(NamedTuple):
    """The segments that are loaded, what goes by it, and the ``.swap`` files that are deleted."""

    segments: list[Segment]
    cuts: list[Cut]
    discarded: list[str]


def _after_swaps(partition: Partition, searches_bases: bool) -> _Swaps:
    """Finish an interrupted swap, unless its cleaning was not (``removeTempFilesAndCollectSwapFiles``)."""
    live: list[Segment] = []
    swaps: list[Segment] = []
    cleaned: list[int] = []
    for each in sorted(partition.segments, key=_base):
        state = each.path.rpartition(f".{file_names.LOG}")[2].removeprefix(".")
        if state == file_names.CLEANED:
            cleaned.append(_base(each))
        elif state == file_names.SWAP:
            swaps.append(each)
        elif not state:
            live.append(each)
    for entry in partition.others:
        stem, _, suffix = entry.name.partition(".")
        if suffix.endswith(f".{file_names.CLEANED}") and stem.isdecimal():
            cleaned.append(int(stem))
    least = min(cleaned, default=None)
    valid = [each for each in swaps if least is None or _base(each) < least]
    discarded = [each.name for each in swaps if each not in valid]
    if not valid:
        return _Swaps(live, [], discarded)
    first, end = _base(valid[0]), max(_read_next_offset(each, searches_bases) or _base(each) for each in valid)
    bases = {_base(each) for each in valid}
    gone = [each for each in live if first <= _base(each) < end or _base(each) in bases]
    kept = [each for each in live if each not in gone]
    overwritten = {_base(each): each for each in gone if not first <= _base(each) < end}
    swapped = [_with_siblings(each, overwritten.get(_base(each))) for each in valid]
    return _Swaps(sorted(kept + swapped, key=_base), _replaced(gone, valid), discarded)


def _with_siblings(swap: Segment, under: Segment | None) -> Segment:
    """Return a swapped segment with its index files: those of the segment that it is renamed over stay."""
    return swap if under is None else swap._replace(siblings=under.siblings | swap.siblings)


AT_ONCE: Final = 1 << 20
"""Bytes of two logs that are compared at a time."""


def _replaced(gone: list[Segment], swaps: list[Segment]) -> list[Cut]:
    """Return what goes of segments whose place swap files take: all that does not stand in these, byte by byte."""
    cuts: list[Cut] = []
    left = _same_bytes(gone, swaps)
    for number, each in enumerate(gone):
        if left >= each.size:
            left -= each.size
            continue
        swap = next((swap for swap in swaps if _base(swap) == _base(each)), swaps[min(number, len(swaps) - 1)])
        cut = lost(each, max(left, 0), f"{swap.name} takes its place, unread")
        cuts.append(cut._replace(code="swapped", replaced_by=swap.name))
        left = 0
    kept = sum(_count(each) for each in swaps) - sum(_count(each) for each in gone) + sum(cut.records for cut in cuts)
    for number, cut in enumerate(cuts):  # records that the swap files hold too, elsewhere
        stays = max(0, min(kept, cut.records))
        kept -= stays
        cuts[number] = cut._replace(records=cut.records - stays)
    return cuts


def _same_bytes(gone: list[Segment], swaps: list[Segment]) -> int:
    """Return how many bytes two rows of segments have in common at their beginning."""
    same, old, new = 0, _bytes_of(gone), _bytes_of(swaps)
    one = other = b""
    while True:
        one = one or next(old, b"")
        other = other or next(new, b"")
        size = min(len(one), len(other))
        if not size:
            return same
        if one[:size] != other[:size]:
            return same + next(at for at in range(size) if one[at] != other[at])
        same, one, other = same + size, one[size:], other[size:]


def _bytes_of(segments: list[Segment]) -> Iterator[bytes]:
    for each in segments:
        with each.open() as source:
            for position in range(0, source.size, AT_ONCE):
                yield source.read(position, AT_ONCE)


def _count(each: Segment) -> int:
    """Return how many records the batches of a segment hold."""
    return lost(each, 0, "").records


def _is_padded(each: Segment) -> bool:
    """Tell whether a segment has the name that a broker opens for its base offset."""
    name = posixpath.basename(each.path).partition(".")[0]
    return not name.isdecimal() or len(name) == STEM


STEM: Final = 20
"""Digits of the base offset in the name of a segment."""


class _Empty(Segment):
    """The empty segment that a broker begins where a name has too few digits: it opens the name that has them all."""

    __slots__ = ()

    @classmethod
    def of(cls, each: Segment) -> _Empty:
        return cls(each.files, each.path, 0, each.base_offset, {}, limit=each.limit, start=each.size)

    def open(self) -> OpenSource:
        """Open nothing: the end of the file."""
        return SegmentSlice(Segment.open(self), self.start, 0)


def _loads_by_recovery(each: Segment) -> bool:
    """Tell whether a segment is recovered whatever the stop was like: no ``.index``, or an impossible ``.txnindex``."""
    if file_names.INDEX not in each.siblings:
        return True
    for entry in txn_index.entries(each.sibling(file_names.TXN_INDEX) or b""):  # what follows the last is not read
        if entry.shown_version > txn_index.CURRENT_VERSION:
            name = each.files.shown(each.siblings[file_names.TXN_INDEX])
            text = f"{name}: Unexpected aborted transaction version {entry.shown_version}"
            raise _FailsError(text, name, "txn-index-version")
        if entry.last_offset < _base(each):
            return True
    return False


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
                text = f"{at(each, region.position)}: a control batch of a producer holds no transaction marker"
                raise _FailsError(text, each.name, "control-record")
            control.read_marker(record.value)
            break
    except DamageError as damage:
        return damage.reason
    return ""


def lost(each: Segment, position: int, reason: str) -> Cut:
    """Return what goes when a segment is cut at ``position``: the valid batches after it are counted."""
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
    return _position(each, OffsetIndex(data, _base(each)).lookup(offset).position) if data else 0


def _position(each: Segment, position: int) -> int:
    """Return a position that an index names. A broker throws where it is negative."""
    if position >= 0:
        return position
    name = each.files.shown(each.siblings[file_names.INDEX])
    text = f"{name}: an entry has the position {position} (IllegalArgumentException)"
    raise _FailsError(text, name, "index-unreadable")


def _read_next_offset(each: Segment, searches_bases: bool) -> int | None:
    """Return the offset after the last batch as ``LogSegment.readNextOffset`` reads it.

    It reads from the newest entry of the index on. None: it finds nothing there, and takes the base offset.
    """
    data = each.sibling(file_names.INDEX) or b""
    index = OffsetIndex(data, _base(each))
    target = index[index.count - 1].offset if index.count else _base(each)
    position = _position(each, index.lookup(target, among=index.count).position)
    found, next_offset = False, 0
    searched = "base_offset" if searches_bases else "last_offset"
    with each.open() as source:
        for region in read.walk_runs(source, position):
            if isinstance(region, RecordBatch | Run):
                try:
                    highest = region.greatest(searched) if isinstance(region, Run) else getattr(region, searched)
                except DamageError as damage:  # to ask for its base offset unpacks a wrapper
                    text = f"{at(each, region.position)}: {damage.reason}"
                    raise _FailsError(text, each.name, "log-unreadable") from None
                found = found or highest >= target
                next_offset = region.last_offset + 1
            elif isinstance(region, Damage):
                raise _FailsError(f"{at(each, region.at)}: {region.reason}", each.name, "record-size")
    return next_offset if found or next_offset > target else None
