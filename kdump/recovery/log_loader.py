"""Simulates how a broker loads the log of a partition (:func:`dry_run`): what it recovers, truncates or deletes.

First the broker finishes an interrupted swap of the log cleaner. A ``.swap`` file replaces the segments whose offsets
it covers; the broker does not check its content. If a ``.cleaned`` file has a lower or equal base offset, the ``.swap``
file is incomplete, and the broker deletes it.

After a clean stop the broker recovers only segments without an ``.index`` or with an impossible ``.txnindex``. To find
the log end offset it reads the newest segment from the last index entry on. If no batch follows, the log ends at the
base offset of this segment. After an unclean stop the broker reads each segment from the recovery point on. It
truncates the log at the first invalid batch, and deletes all later segments. After any stop, if the log ends below its
start offset, the broker deletes all segments. Last it reads the batches after the newest producer snapshot; after a
clean stop without a snapshot, none. Sources: Kafka's LogLoader and LogSegment (``recover``, ``readNextOffset``), 4.2.

The CRC does not cover the magic, so recovery reads any magic above 1 as 2. It does not check the order of offsets. If
an entry of the new index is not above the previous one, recovery empties the segment, or fails if it lacks ``.index``.

A broker lists each ``.log`` and ``.log.swap`` file as a segment. Its base offset is the number before the first dot:
``+8.log``, ``8.log`` and ``8.x.log`` have base offset 8. Then the broker opens the name with 20 digits. If this file
does not exist, the broker creates an empty file of this name, and never reads the listed file.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.errors import DamageError, FailingDiskError
from kdump.findings.codes import Code, FindingCode
from kdump.formats import producer_snapshot, record_layout, txn_index
from kdump.formats.offset_index import OffsetIndex
from kdump.formats.sparse_index import DEFAULT_INTERVAL
from kdump.formats.time_index import TimeIndex
from kdump.log_dirs import file_names
from kdump.log_dirs.files import read_file
from kdump.log_dirs.partition import Segment
from kdump.primitives.wire import INT32_MAX
from kdump.records import control
from kdump.records.record_batch import Batches, RecordBatch
from kdump.recovery import MAX_OFFSET, first_recovered
from kdump.recovery.open_transactions import OpenTransactions
from kdump.recovery.segment_end import (
    Cut,
    FailsError,
    LoadFailure,
    base_of,
    failed,
    failure_of,
    indexed_at,
    lost,
    read_next_offset,
    search_end,
)
from kdump.recovery.split_segment import OffsetOverflowError, SegmentSlice, split
from kdump.recovery.swaps import Swaps, after_swaps
from kdump.segments import resync, walk
from kdump.segments.regions import DATA, ENDS_INSIDE, Damage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kdump.log_dirs.files import OpenSource, Source
    from kdump.log_dirs.partition import Partition
    from kdump.recovery import SoundLog
    from kdump.recovery.index_builder import IndexBuilder
    from kdump.segments.regions import Region


OPENED = (f".{file_names.LOG}", f".{file_names.LOG}.{file_names.SWAP}")


class EmptySegment(Segment):
    """The empty segment that a broker creates for a listed name without 20 digits. ``path`` is the listed file."""

    __slots__ = ()

    def open(self) -> OpenSource:
        return SegmentSlice(Segment.open(self), self.start, 0)


class OpenedNames(NamedTuple):
    partition: Partition
    unread: tuple[Segment, ...]


def opened(partition: Partition) -> OpenedNames:
    """Return the partition with the segments that a broker opens, and the listed files that empty segments replace."""
    held = {posixpath.basename(each.path): each for each in partition.segments}
    for entry in partition.others:
        if entry.name.endswith(OPENED) and file_names.offset_of(entry.name) is not None:
            held[entry.name] = Segment(partition.files, entry.path, entry.size, None, {}, limit=partition.limit)
    others = {name: file_names.opened_name(name) for name in held if name.endswith(OPENED) and not _is_opened(name)}
    if not others:
        return OpenedNames(partition, ())
    segments = [each for name, each in held.items() if name not in others]
    unread = [name for name, opens in others.items() if opens not in held]
    for name in {others[name]: name for name in unread}.values():
        each = held[name]
        base = file_names.offset_of(name)
        segments.append(EmptySegment(each.files, each.path, 0, base, {}, limit=each.limit, start=each.size))
    return OpenedNames(partition._replace(segments=tuple(segments)), tuple(held[name] for name in unread))


def _is_opened(name: str) -> bool:
    stem, _, rest = name.partition(".")
    return file_names.is_padded(stem) and f".{rest}" in OPENED


def content_of(each: Segment, code: FindingCode) -> Cut:
    """Return the loss from an ignored file. If its name and its first offset differ, it is a copy: nothing is lost."""
    name = posixpath.basename(each.path)
    base = file_names.offset_of(name)
    text = f"a broker does not read this file: it creates an empty {file_names.opened_name(name)} instead"
    if base is None or each.first_offset() != base:
        return Cut(each.name, 0, 0, text, None, None, 0, code)
    return lost(each, 0, text)._replace(code=code)


class Outcome(NamedTuple):
    """The result of loading the log of a partition. Files are given by their shown paths."""

    recovered: tuple[str, ...]
    """The segments that recovery reads."""
    recovered_bytes: int
    cuts: tuple[Cut, ...]
    fails: LoadFailure | None
    """Why the broker cannot load the log; None if it can."""
    log_start_offset: int | None
    log_end_offset: int | None
    """The log start offset and the log end offset after the broker's start. Both are None if loading fails."""
    splits: tuple[str, ...]
    """The segments that the start splits, because they have an offset 2^31 or more above their base offset."""
    hidden_by: str | None
    """The file that gives the broker a wrong log end offset; None if there is none, or if loading fails.

    It is an ``.index`` with an entry that points past the last batch of its segment, or a ``.log.swap`` whose batches
    are all below its base offset. The broker then ends the log at the segment's base offset, or finds no new records.
    """
    discarded: tuple[str, ...]
    """``.swap`` files that are deleted because of a ``.cleaned`` file."""
    swapped: tuple[str, ...]
    """``.swap`` files that become segments."""
    unread: tuple[Cut, ...] = ()
    """Files that the broker lists, but replaces by empty segments: their names are not offsets of 20 digits."""


class _BackwardsError(Exception):
    """The offset of an entry of the new index is out of order (InvalidOffsetException)."""


class _Recovered(NamedTuple):
    """A recovered segment: ``valid`` is its size in bytes after recovery, ``reason`` why recovery stopped.

    ``indexed`` and ``indexed_offset``: the position and offset in the last entry of its new index, or 0 and None.
    """

    valid: int
    reason: str
    next_offset: int
    indexed: int = 0
    indexed_offset: int | None = None
    state_end: int = 0
    """The offset after the producer state: after the last batch of magic 2, except an invalid transaction marker."""
    code: FindingCode = Code.BAD_BATCH
    blocked_by: str | None = None


class LoaderRules(NamedTuple):
    """The rules that differ between releases and topics. The defaults are those of the newest release."""

    searches_bases: bool = True
    """Whether a search for an offset compares base offsets of batches (from 4.1, KAFKA-18989) instead of last ones."""
    forgives_io: bool = True
    """Whether an I/O error of a segment or a file beside it can empty it (from 4.0). Else the log dir is offline."""
    checks_marker_size: bool = False
    """Whether a short value of a transaction marker counts as an invalid record (before 4.1, KAFKA-10864)."""
    index_size: int | None = None
    """The topic's segment.index.bytes, or None if it is unknown."""

    @property
    def searched(self) -> str:
        """The field of a batch that is compared with the searched offset."""
        return "base_offset" if self.searches_bases else "last_offset"


NEWEST_RULES: Final = LoaderRules()


def dry_run(
    partition: Partition,
    *,
    clean: bool,
    recovery_point: int = 0,
    log_start: int = 0,
    interval: int = DEFAULT_INTERVAL,
    sound: SoundLog | None = None,
    snapshot_folders: frozenset[int] = frozenset(),
    rules: LoaderRules = NEWEST_RULES,
) -> Outcome:
    """Return the result of loading the log of a partition. The partition's segments must include ``.swap`` files.

    ``clean``: the last shutdown was clean. ``recovery_point`` and ``log_start`` come from the checkpoints of the log
    dir. ``interval`` is index.interval.bytes. ``sound``: the batches are known to be valid; recovery does not read
    them. ``snapshot_folders`` are the offsets of producer snapshots that a broker cannot write, because folders have
    their names. If a disk fails, loading fails or, with ``rules.forgives_io``, recovery empties the segment. Other
    unreadable files raise UnreadableError. A -delete folder is only opened: its log then ends at ``log_start``.
    """
    partition, unread = opened(partition)
    sound = None if unread else sound  # ``sound`` is about the listed segments
    snapshots = {} if sound is not None else _snapshots(partition)  # only the replay of an unverified log needs them
    start = _Start(interval, log_start, snapshots, sound, rules)
    start.snapshot_folders = snapshot_folders
    fails: LoadFailure | None = None
    end, begin = log_start, log_start
    swaps = Swaps([], [], [])
    try:
        swaps = after_swaps(partition, rules.searched)
        start.cuts += swaps.cuts
        left = start.load(swaps.segments)
        if file_names.leftover_state(partition.folder) == file_names.DELETE_FOLDER:
            left = []
        if not clean:
            left = start.recover_from(left, recovery_point)
        end = start.next_offset(left[-1]) if left else log_start
        if left and (clean or recovery_point == MAX_OFFSET):
            start.find_new_records(left[-1], end)
        if left and end < log_start:
            reason = f"the log would end at offset {end}, below its log start offset {log_start}"
            for each in left:
                start.cut(each, 0, reason, Code.START_BEYOND_END)
            left, end = [], log_start
        if left:
            start.resize_indexes(left[-1])
        begin = max(log_start, base_of(left[0])) if left else log_start
        if left and sound is None:
            start.keep_snapshots(left)
            newest = [base_of(each) for each in left[-2:]]
            reads = (start.snapshots or not clean) and start.replay(left, end, writes=newest)[0]
            if reads and base_of(left[-1]) < end:
                start.find_end(left[-1], end)
        if left:
            start.write_snapshot(left[-1], end)
    except FailsError as error:
        fails = error.failure
    except FailingDiskError as error:
        fails = LoadFailure(f"IOException: {error.reason}", str(error.path), Code.LOG_UNREADABLE, is_io=True)
    return Outcome(
        recovered=tuple(each.name for each in start.read),
        recovered_bytes=sum(each.size for each in start.read),
        cuts=tuple(start.cuts),
        fails=fails,
        log_start_offset=None if fails else begin,
        log_end_offset=None if fails else end,
        splits=tuple(start.splits),
        hidden_by=None if fails else start.hidden_by,
        discarded=tuple(swaps.discarded),
        unread=tuple(content_of(each, Code.SEGMENT_NAME) for each in unread),
        swapped=tuple(each.name for each in swaps.segments if each.path.endswith(f".{file_names.SWAP}")),
    )


class _Start:
    def __init__(
        self,
        interval: int,
        log_start: int,
        snapshots: dict[int, OpenTransactions],
        sound: SoundLog | None,
        rules: LoaderRules,
    ) -> None:
        self.interval, self.log_start, self.snapshots = interval, log_start, snapshots
        self.sound, self.rules = sound, rules
        self.hidden_by: str | None = None
        self.read: list[Segment] = []
        self.cuts: list[Cut] = []
        self.splits: list[str] = []
        self.snapshot_folders: frozenset[int] = frozenset()
        self._done: dict[int, _Recovered] = {}

    def load(self, segments: list[Segment]) -> list[Segment]:
        """Recover the segments that a broker recovers even after a clean stop. Return all segments after splits.

        Raises FailsError for a segment that a broker cannot open, as it is too large (``FileRecords``).
        """
        number = 0
        while number < len(segments):
            each = segments[number]
            if each.size > INT32_MAX:
                text = f"KafkaException: The size of segment {each.name} ({each.size}) is larger than the maximum "
                raise FailsError(f"{text}allowed segment size of {INT32_MAX}", each.name, Code.SEGMENT_TOO_LARGE)
            try:
                if base_of(each) not in self._done and _loads_by_recovery(each):
                    self.recover(each, segments[:number], loading=True)
            except OffsetOverflowError as error:
                segments, number = self._split(segments, error), 0  # the broker loads all segments again
                continue
            number += 1
        return segments

    def _split(self, segments: list[Segment], error: OffsetOverflowError) -> list[Segment]:
        """Return the segments after a split. A new segment replaces one with the same base offset."""
        parts = split(error)
        self.splits.append(error.segment.name)
        self.snapshots.pop(base_of(error.segment), None)
        bases = {base_of(part) for part in parts}
        rest = [each for each in segments if each is not error.segment and base_of(each) not in bases]
        return sorted([*rest, *parts], key=base_of)

    def recover(self, each: Segment, before: list[Segment], *, loading: bool) -> bool:
        """Recover a segment; return whether it is truncated. ``loading``: all errors but an overflow stop loading."""
        if self.sound is None or each not in self.read:  # a valid segment is not in _done, so it may come again
            self.read.append(each)
        if self.sound is not None:
            return False
        # ProducerStateManager.truncateAndReload deletes the other snapshots
        last = base_of(each)
        self.snapshots = {end: had for end, had in self.snapshots.items() if self.log_start < end <= last}
        state = OpenTransactions()
        try:
            is_read, state = self.replay(before, base_of(each))
            if is_read and loading and before:
                self.find_end(before[-1], base_of(each))  # later segments are not loaded yet
            self.write_snapshot(each, base_of(each))
            self.snapshots[base_of(each)] = state
            done = _recover(each, self.interval, after := state.copy(), self.rules)
            self.write_snapshot(each, done.state_end)
            state = after
        except _BackwardsError as reason:
            if loading:
                raise FailsError(f"{each.name}: {reason}", each.name, Code.OFFSET_REFUSED) from None
            done = _Recovered(0, str(reason), base_of(each), state_end=base_of(each), code=Code.OFFSETS_GO_BACK)
        except FailsError as reason:
            if loading or not reason.failure.is_io or not self.rules.forgives_io:
                raise
            text = "recovery cannot write a file beside this segment, so it empties the segment"
            code, file = reason.failure.code, reason.failure.file
            done = _Recovered(0, text, base_of(each), state_end=base_of(each), code=code, blocked_by=file)
        except FailingDiskError as reason:
            if loading or not self.rules.forgives_io:
                raise
            with each.open() as source:  # the broker reads this header again to truncate the segment
                source.read(0, record_layout.UP_TO_MAGIC)
            text = f"the disk cannot read this segment, so recovery empties it: {reason.reason}"
            done = _Recovered(0, text, base_of(each), state_end=base_of(each), code=Code.LOG_UNREADABLE)
        self.snapshots[done.state_end] = state
        self._done[base_of(each)] = done
        self.cut(each, done.valid, done.reason, done.code, done.blocked_by)
        return done.valid < each.size

    def recover_from(self, segments: list[Segment], recovery_point: int) -> list[Segment]:
        """Recover the segments from the recovery point on. Return the segments that are kept."""
        while True:
            try:
                return self._recover_once(segments, recovery_point)
            except OffsetOverflowError as error:
                segments = self._split(segments, error)  # then the broker recovers the log again

    def _recover_once(self, segments: list[Segment], recovery_point: int) -> list[Segment]:
        for number in range(first_recovered([base_of(each) for each in segments], recovery_point), len(segments)):
            each = segments[number]
            if base_of(each) not in self._done and self.recover(each, segments[:number], loading=False):
                for later in segments[number + 1 :]:
                    reason = f"{each.name} is truncated, and all later segments are deleted"
                    self.cut(later, 0, reason, Code.LATER_SEGMENT)
                return segments[: number + 1]
        return segments

    def cut(self, each: Segment, position: int, reason: str, code: FindingCode, blocked_by: str | None = None) -> None:
        """Add the loss of the bytes from ``position`` on, if any, in place of earlier losses of the segment."""
        if position < each.size:
            begin = each.start
            others = (cut for cut in self.cuts if cut.file != each.name or not 0 <= cut.position - begin < each.size)
            self.cuts = [*others, lost(each, position, reason)._replace(code=code, blocked_by=blocked_by)]

    def resize_indexes(self, newest: Segment) -> None:
        """Raise FailsError if an index of the newest segment, unless it is rebuilt, exceeds segment.index.bytes.

        ``AbstractIndex.resize`` cannot set the position of the last entry in a smaller file.
        """
        size = self.rules.index_size
        if size is None or newest in self.read:
            return
        for suffix, layout in ((file_names.INDEX, OffsetIndex.layout), (file_names.TIME_INDEX, TimeIndex.layout)):
            count = len(newest.sibling(suffix) or b"") // layout.size
            if count > size // layout.size:
                name = newest.files.shown(newest.siblings[suffix])
                text = f"{name}: IllegalArgumentException: the file has {count * layout.size} bytes, more than "
                text += f"segment.index.bytes, which is {size}"
                raise FailsError(text, name, Code.INDEX_TOO_LARGE)

    def write_snapshot(self, beside: Segment, offset: int) -> None:
        """Raise FailsError if a folder has the name of the producer snapshot that a broker writes at ``offset``."""
        if offset in self.snapshot_folders and offset > self.log_start:
            name = f"{offset:020}.{file_names.PRODUCER_SNAPSHOT}"
            path = beside.files.shown(posixpath.join(posixpath.dirname(beside.path), name))
            raise FailsError("Is a directory", path, Code.SNAPSHOT_UNREADABLE, is_io=True)

    def keep_snapshots(self, segments: list[Segment]) -> None:
        """Drop producer snapshots without a segment, except the newest after all bases (``removeStraySnapshots``)."""
        bases = {base_of(each) for each in segments}
        newest = max((offset for offset in self.snapshots if offset not in bases), default=-1)
        kept = bases | ({newest} if newest >= max(bases) else set())
        self.snapshots = {offset: state for offset, state in self.snapshots.items() if offset in kept}

    def replay(self, segments: list[Segment], end: int, writes: Sequence[int] = ()) -> tuple[bool, OpenTransactions]:
        """Read the batches from the newest producer snapshot up to offset ``end`` (``rebuildProducerState``).

        Return whether batches are read, and the producer state at ``end``. None are read if the snapshot is at ``end``.
        ``writes`` are the base offsets at which the broker writes snapshots. Raises FailsError at a wrong size field, a
        wrong transaction marker, and a batch that the producer state refuses. Also raises it for a wrapper that cannot
        be decompressed, and for a snapshot that cannot be written.
        """
        start = max((offset for offset in self.snapshots if self.log_start < offset <= end), default=self.log_start)
        state = self.snapshots[start].copy() if start in self.snapshots else OpenTransactions()
        if start >= end:
            return False, state
        floor = max((base_of(each) for each in segments if base_of(each) <= start), default=start)
        for each in segments:
            done = self._done.get(base_of(each))
            is_done = done is not None and done.state_end == done.next_offset
            if base_of(each) < floor or base_of(each) >= end or is_done:
                continue
            if base_of(each) > start and base_of(each) in writes:
                self.write_snapshot(each, base_of(each))
            self._replay_segment(each, start, state)
        return True, state

    def _replay_segment(self, each: Segment, start: int, state: OpenTransactions) -> None:
        searching = True
        done = self._done.get(base_of(each))
        begin, stop = (0, done.valid) if done else (indexed_at(each, start) if base_of(each) < start else 0, None)
        with each.open() as source:
            for region in walk.walk(source, begin, stop, runs=DATA):
                row = 0
                if isinstance(region, Damage):
                    resync.raise_above_limit(source, region)
                    raise failed(each, region.at, region.reason, Code.RECORD_SIZE)
                if not isinstance(region, Batches):
                    break
                if searching:
                    try:
                        column = region.column(self.rules.searched)
                    except DamageError as damage:  # the base offset is inside a compressed wrapper message
                        raise failure_of(each, region.position, damage) from None
                    row = next((row for row, offset in enumerate(column) if offset >= start), len(column))
                    searching = row == len(column)
                if fault := _marker_fault(each, region.first, self.rules):
                    raise _fails(each, region.first, fault)
                _add(state, each, region, row)
        _check(state.flush(), each, each.size)

    def find_end(self, last: Segment, end: int) -> None:
        """Search for offset ``end`` from the last index entry on, as a broker does for its producer state.

        Raises FailsError for a wrapper that cannot be decompressed: ``FileRecords.searchForOffsetFromPosition`` reads
        the base offset of each batch. Before 4.1 ``searchForOffsetWithSize`` reads only last offsets, and cannot fail.
        """
        if not self.rules.searches_bases:
            return
        known = self._done.get(base_of(last))
        start, stop = (known.indexed, known.valid) if known else (indexed_at(last, end), last.size)
        with last.open() as source:
            for region in walk.walk(source, start, stop, runs=DATA):
                if isinstance(region, RecordBatch) and region.magic < record_layout.MAGIC_2:
                    try:
                        region.base_offset  # noqa: B018  reading it decompresses the wrapper
                    except DamageError as damage:
                        raise failure_of(last, region.position, damage) from None

    def find_new_records(self, last: Segment, end: int) -> None:
        """Set ``hidden_by`` if a fetch at the log end offset begins past the end of the segment, by its ``.index``."""
        is_sound = self.sound is not None and self.sound.has_sound_indexes
        if is_sound or last in self.read or base_of(last) >= end or file_names.INDEX not in last.siblings:
            return
        if indexed_at(last, end) > last.size:
            self.hidden_by = _hiding(last)

    def next_offset(self, each: Segment) -> int:
        if known := self._done.get(base_of(each)):
            target = base_of(each) if known.indexed_offset is None else known.indexed_offset
            found = search_end(each, self.rules.searched, target, known.indexed, known.valid)
            return base_of(each) if found is None else found
        sound = self.sound
        if sound is not None and (each in self.read or (sound.has_sound_indexes and sound.end > base_of(each))):
            return sound.end
        found = read_next_offset(each, self.rules.searched)
        if found is None and each.size:
            self.hidden_by = _hiding(each)
        return base_of(each) if found is None else found


def _hiding(each: Segment) -> str:
    """Return the shown path for :attr:`Outcome.hidden_by`: the segment if it is a ``.swap``, else its index."""
    is_swap = each.path.endswith(f".{file_names.SWAP}")
    return each.name if is_swap else each.files.shown(each.siblings[file_names.INDEX])


def _snapshots(partition: Partition) -> dict[int, OpenTransactions]:
    found = {}
    for entry in partition.others:
        offset = file_names.offset_of(entry.name)
        if entry.name.endswith(f".{file_names.PRODUCER_SNAPSHOT}") and offset is not None:
            try:
                found[offset] = OpenTransactions(producer_snapshot.read(read_file(partition.files, entry.path)))
            except DamageError:
                continue  # the broker deletes this snapshot, and reads an older one
    return found


def _loads_by_recovery(each: Segment) -> bool:
    """Return whether a broker recovers a segment even after a clean stop: it lacks ``.index``, or ``.txnindex`` is bad.

    A ``.swap`` always has an ``.index``: to find its end, a broker opens ``.index.swap`` (LogSegment.readNextOffset),
    and creates it without entries if it is missing. Raises FailsError for an entry of an unknown version.
    """
    if file_names.INDEX not in each.siblings and not each.path.endswith(f".{file_names.SWAP}"):
        return True
    for entry in txn_index.entries(each.sibling(file_names.TXN_INDEX) or b""):
        if entry.shown_version > txn_index.CURRENT_VERSION:
            name = each.files.shown(each.siblings[file_names.TXN_INDEX])
            text = f"{name}: Unexpected aborted transaction version {entry.shown_version}"
            raise FailsError(text, name, Code.TXN_INDEX_VERSION)
        if entry.last_offset < base_of(each):
            return True
    return False


def _recover(each: Segment, interval: int, state: OpenTransactions, rules: LoaderRules) -> _Recovered:
    """Do ``LogSegment.recover``. Raises OffsetOverflowError, _BackwardsError and FailsError."""
    from kdump.recovery.index_builder import IndexBuilder

    index = IndexBuilder(base_of(each), interval=interval)
    valid, next_offset = 0, base_of(each)
    state_end = base_of(each)
    reason = ""
    with each.open() as source:
        for region in _recoverable(source, index):
            if not isinstance(region, Batches):
                resync.raise_above_limit(source, region)
                reason = getattr(region, "reason", ENDS_INSIDE)
                break
            if reason := _invalid(region.first):
                break
            last = region.last_offset
            if not index.fits(last):
                raise OffsetOverflowError(each, region.position, last, index.indexed)
            index.add(region)
            if index.refused_at is not None:
                row = region.column("position").index(index.refused_at)
                _add(state, each, region, 0, row)
                offset = region.field("last_offset", row)
                raise _BackwardsError(
                    f"the new index entry for offset {offset} (byte {index.refused_at}) is out of order"
                )
            if rules.index_size is not None and _is_full(index, rules.index_size):
                text = f"IllegalArgumentException: an index of {rules.index_size} bytes (segment.index.bytes) is too "
                text += "small for the entries that recovery adds"
                raise FailsError(f"{each.name}: {text}", each.name, Code.INDEX_TOO_LARGE)
            if fault := _marker_fault(each, region.first, rules):
                reason = fault
            valid, next_offset = region.end, last + 1
            if fault:
                break
            if region.first.magic >= record_layout.MAGIC_2:
                state_end = next_offset
            _add(state, each, region, recovers=True)
            _check(state.flush(), each, region.position)
    index.close()
    if index.refuses:
        raise _BackwardsError("the offset of the largest timestamp is below the offset of the last time index entry")
    indexed_offset = index.offsets[-1] if index.offsets else None
    return _Recovered(valid, reason, next_offset, index.indexed, indexed_offset, state_end)


def _is_full(index: IndexBuilder, size: int) -> bool:
    """Return whether an entry of the index was refused because one of the two files was full.

    A time index is full one entry before its end, also for an entry that repeats its newest timestamp.
    """
    most, times = size // TimeIndex.layout.size - 1, len(index.timestamps)
    repeats = times == most and len(index.offsets) > 1 and index.time_offsets[-1] <= index.offsets[-2]
    return len(index.offsets) > size // OffsetIndex.layout.size or times > most or repeats


def _recoverable(source: Source, index: IndexBuilder) -> Iterator[Region]:
    """Yield the regions of a segment. Yield the batches of a run singly if an offset is too high for the index."""
    for region in walk.walk(source, runs=DATA):
        if isinstance(region, Batches) and not all(map(index.fits, region.column("last_offset"))):
            yield from region.batches()
        else:
            yield region


def _invalid(region: RecordBatch) -> str:
    """Return the reason why ``ensureValid`` rejects a batch; an empty text for a valid batch."""
    smallest = (
        record_layout.BATCH_HEADER.size
        if region.magic >= record_layout.MAGIC_2
        else record_layout.LOG_OVERHEAD.size + record_layout.SMALLEST_MESSAGE[0]
    )
    if region.size < smallest:
        return f"a batch of {region.size} bytes is smaller than its header"
    return "" if region.crc_valid else "the checksum is wrong"


def _is_marker(batch: RecordBatch) -> bool:
    return batch.is_control and batch.producer_id is not None and batch.producer_id >= 0


def _marker_fault(each: Segment, region: RecordBatch, rules: LoaderRules) -> str:
    """Return why a transaction marker is malformed (recovery ends after such a batch); "" for any other batch.

    Raises FailsError if a producer's control batch holds another control record, or a field that is null or, from 4.1
    on, too short: ``EndTransactionMarker.deserialize`` then throws an exception that recovery does not catch.
    """
    if not _is_marker(region):
        return ""
    try:
        for record in region.records():
            if record.key is None:
                raise _fails(each, region, "NullPointerException: the key of a transaction marker is null")
            key = control.read_key(record.key)
            if key.type not in control.MARKERS:
                raise _fails(each, region, "a control batch of a producer holds no transaction marker")
            if record.value is None:
                raise _fails(each, region, "NullPointerException: the value of a transaction marker is null")
            control.read_marker(record.value)
            break
    except DamageError as damage:
        is_short = damage.kind == Code.CONTROL_VALUE.kind and isinstance(damage.expected, str)
        if is_short and not rules.checks_marker_size:
            raise _fails(each, region, f"BufferUnderflowException: {damage.reason}") from None
        return damage.reason
    return ""


def _fails(each: Segment, batch: RecordBatch, text: str) -> FailsError:
    return failed(each, batch.position, text, Code.CONTROL_RECORD)


def _add(
    state: OpenTransactions,
    each: Segment,
    region: Batches,
    row: int = 0,
    stop: int | None = None,
    *,
    recovers: bool = False,
) -> None:
    """Add data, or a valid marker, to the producer state. Raises FailsError if a broker refuses a batch."""
    batch = region.first
    if batch.magic < record_layout.MAGIC_2 or (row and batch.is_control):
        return
    if not _is_marker(batch):
        _check(state.add_data(region, row, stop), each, region.position)
        return
    marker = next(iter(batch.records()), None)
    if marker is not None:
        aborts = recovers and control.read_key(marker.key).type == control.ABORT
        _check(state.end(batch.producer_id or 0, batch.base_offset, aborts=aborts), each, region.position)


def _check(refusal: str, each: Segment, position: int) -> None:
    """Raise FailsError for the reason why the producer state refuses a batch, unless it is empty."""
    if refusal:
        raise failed(each, position, refusal, Code.PRODUCER)
