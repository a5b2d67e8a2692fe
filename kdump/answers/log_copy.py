"""Compares two replicas of a log record by record (:func:`differences`), and reads leader epochs (:func:`lineage`).

Batches with equal bytes are skipped without decoding, even in different segments. Source of the epochs: KIP-101, 279.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self

from kdump.errors import DamageError, UnreadableError, discard
from kdump.formats.leader_epoch import EpochEntry
from kdump.formats.record_layout import LOG_OVERHEAD
from kdump.log_dirs.files import next_data
from kdump.records.record_batch import Batches, RecordBatch
from kdump.segments import log_end, resync, walk
from kdump.segments.index_lookup import Seeker
from kdump.segments.log_end import end_of_log
from kdump.segments.regions import DATA, PLAIN_DATA, Damage, Region, Trailing

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from kdump.errors import Reporter
    from kdump.formats.record import Record
    from kdump.log_dirs.files import OpenSource, Source
    from kdump.log_dirs.partition import Partition, Segment
    from kdump.segments.log_end import LogEnd


FIRST, BLOCK = 1 << 14, 1 << 18
"""Sizes in bytes of the first and of the largest block that is compared. Two blocks fit in the processor's cache."""


class LogCopy:
    """A replica of a log, read forwards as bytes (``move``) or as records (``fill``). The position is a batch's start.

    ``report`` receives progress, and damage in bytes that are read as records: :func:`skip_equal` skips equal damage.
    ``damaged`` is set at the first damaged range, unless it is a truncated batch at the end of the log (``truncated``).
    """

    def __init__(self, partition: Partition, report: Reporter) -> None:
        self._segments = [segment for segment in partition.segments if segment.size]
        self._report = report
        self._number = self._position = 0
        self._open = ExitStack()
        self._source: OpenSource | None = None
        self._regions: Generator[tuple[int, Region], None, None] | None = None
        self._records: list[Record] | None = None
        self._at = self._next = 0
        self.damaged = False
        self.truncated = False
        self.batch: RecordBatch | None = None
        """The batch whose records are being read; None between batches and at the end."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        self._open.close()

    @property
    def segment(self) -> Segment | None:
        return self._segments[self._number] if self._number < len(self._segments) else None

    @property
    def source(self) -> OpenSource:
        """The open file of the current segment. Raises UnreadableError."""
        if self._source is None:
            self._source = self._open.enter_context(self._segments[self._number].open())
        return self._source

    @property
    def left(self) -> int:
        """The number of bytes from the position to the end of the segment."""
        return max(0, self.source.size - self._position)

    def bytes(self, ahead: int, size: int) -> bytes:
        """Return up to ``size`` bytes, beginning ``ahead`` bytes after the position."""
        return self.source.read(self._position + ahead, size)

    def data_ahead(self, ahead: int) -> int:
        """Return the distance to the next byte that is not in a hole of the file. It is at least ``ahead``."""
        return next_data(self.source, self._position + ahead) - self._position

    def move(self, size: int) -> None:
        """Move the position forward by ``size`` bytes. After the end of a segment comes the next segment."""
        self._position += size
        self._report.progress(size)
        if self._position >= self.source.size:
            self._go(self._number + 1)

    def skip_below(self, offset: int) -> None:
        """Move the position to the last segment that begins at or before an offset."""
        numbers = [n for n, one in enumerate(self._segments) if (one.base_offset or 0) <= offset]
        if numbers:
            self._report.progress(sum(one.size for one in self._segments[self._number : numbers[-1]]))
            self._go(numbers[-1])

    def _go(self, number: int) -> None:
        self._open.close()
        self._source, self._number, self._position = None, number, 0

    def continues(self, other: LogCopy, ahead: int) -> bool:
        """Return whether the next segment begins with offset and length of ``other``'s batch, ``ahead`` bytes away."""
        following = self._segments[self._number + 1 : self._number + 2]
        if not following:
            return False
        with following[0].open() as source:
            return source.read(0, LOG_OVERHEAD.size) == other.bytes(ahead, LOG_OVERHEAD.size)

    def near(self, ahead: int) -> int:
        """Return the distance to the last indexed batch that is at most ``ahead`` bytes after the position, or 0."""
        found = Seeker(self._segments[self._number], self.source, discard).by_position(self._position + ahead)
        return max(0, found - self._position)

    def whole(self, start: int, end: int) -> int:
        """Return the end of the last valid batch from ``start`` to ``end`` (bytes after the position), or ``start``."""
        first, last = self._position + start, self._position + end
        for region in resync.read(self.source, first, last, on_error="resync", runs=PLAIN_DATA):
            if isinstance(region, Batches):
                start = region.position + region.size - self._position
        return start

    def fill(self) -> bool:
        """Begin the next batch unless a batch is being read; return False at the end of the log."""
        if self.batch is not None:
            return True
        if self._regions is None:
            self._regions = self._read()
        for number, region in self._regions:
            if isinstance(region, RecordBatch):
                self.batch, self._records, self._next, self._at = region, None, 0, number
                return True
        return False

    def _read(self) -> Generator[tuple[int, Region], None, None]:
        start = self._position
        for number in range(self._number, len(self._segments)):
            segment = self._segments[number]
            try:
                with segment.open() as source:
                    base = segment.base_offset if not start else None
                    for region in resync.read(source, start, on_error="resync", first_offset=base):
                        if isinstance(region, Damage):
                            self._lose(segment, region.position, region.reason)
                        elif isinstance(region, Trailing) and number < len(self._segments) - 1:
                            self._lose(segment, region.position, log_end.tail(segment, region).text)
                        elif isinstance(region, Trailing):
                            self.truncated = True
                            found = log_end.tail(segment, region)
                            if found.is_damage:
                                self._report.damage(f"{segment.name}: byte {region.position}: {found.text}")
                        yield number, region
            except UnreadableError as error:
                self.damaged = True
                self._report.fail(error)
            start = 0

    def _lose(self, segment: Segment, position: int, reason: str) -> None:
        self.damaged = True
        self._report.damage(f"{segment.name}: byte {position}: {reason}")

    @property
    def fresh(self) -> bool:
        """Whether the next record is the first one of the batch."""
        return self._next == 0

    @property
    def record(self) -> Record | None:
        records = self._unpacked()
        return records[self._next] if self._next < len(records) else None

    def _unpacked(self) -> list[Record]:
        if self._records is None:
            self._records = []
            try:
                self._records += self.batch.records() if self.batch is not None else ()
            except DamageError as damage:
                if self.batch is not None:
                    self._lose(self._segments[self._at], self.batch.position, damage.reason)
        return self._records

    def take(self) -> None:
        self._next += 1

    def drop(self) -> None:
        """Leave the batch, so that :meth:`fill` begins the next one."""
        self.batch = None

    def settle(self) -> None:
        """Leave the batch, and move the position to its end, where :func:`skip_equal` continues."""
        batch, at = self.batch, self._at
        self._stop()
        if batch is not None:
            if at != self._number:
                self._go(at)
            self._position = batch.position
            self.move(batch.size)

    def finish(self) -> None:
        self._stop()
        self._go(len(self._segments))

    def _stop(self) -> None:
        if self._regions is not None:
            self._regions.close()
        self._regions, self.batch = None, None


def same_batch(left: LogCopy, right: LogCopy) -> bool:
    """Return whether the next record of each copy is the first of its batch, and both batches have equal bytes."""
    one, other = left.batch, right.batch
    if one is None or other is None or not (left.fresh and right.fresh) or one.size != other.size:
        return False
    return one.last_offset == other.last_offset and one.raw.tobytes() == other.raw.tobytes()


def skip_equal(left: LogCopy, right: LogCopy) -> None:
    """Move both copies forward while their batches have equal bytes. Raises UnreadableError."""
    while left.segment is not None and right.segment is not None:
        one, other = left.left, right.left
        equal = _equal(left, right, min(one, other))
        if equal == one == other or (equal == one and left.continues(right, equal)):
            pass
        elif not (equal == other and right.continues(left, equal)):
            border = left.whole(max(left.near(equal), right.near(equal)), equal)
            left.move(border)
            right.move(border)
            return
        left.move(equal)
        right.move(equal)


def _equal(left: LogCopy, right: LogCopy, size: int) -> int:
    """Return the number of equal bytes of both copies, from their positions on, up to ``size``."""
    done, block = 0, FIRST
    while done < size:
        wanted = min(block, size - done)
        one, other = left.bytes(done, wanted), right.bytes(done, wanted)
        if one != other or len(one) < wanted:  # a file may shrink while it is read
            return done + _common(one, other)
        done += wanted
        if not one[-1]:  # skip a hole that both files have
            done = min(max(done, left.data_ahead(done)), max(done, right.data_ahead(done)), size)
        block = min(BLOCK, block * 2)
    return done


def _common(one: bytes, other: bytes) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


class HeldRecord(NamedTuple):
    batch: RecordBatch
    record: Record


class Difference(NamedTuple):
    """An offset whose records differ, or that only one replica has."""

    offset: int
    left: HeldRecord | None
    right: HeldRecord | None

    @property
    def same_epoch(self) -> bool:
        """Whether both sides have a record of one known leader epoch. Followers copy it, so both should be equal."""
        if self.left is None or self.right is None:
            return False
        return self.left.batch.leader_epoch == self.right.batch.leader_epoch != -1


def differences(left: LogCopy, right: LogCopy, start: int) -> Iterator[Difference]:
    """Yield the differences from offset ``start`` on, in offset order. Raises UnreadableError."""
    if left.segment is None or right.segment is None or left.segment.base_offset != right.segment.base_offset:
        yield from _until_equal(left, right, start)
    while left.segment is not None or right.segment is not None:
        skip_equal(left, right)
        yield from _until_equal(left, right, start)


def _until_equal(left: LogCopy, right: LogCopy, start: int) -> Iterator[Difference]:
    """Yield differences record by record, up to the next batches with equal bytes or to the end of both logs."""
    while True:
        left.fill()
        right.fill()
        if left.batch is None and right.batch is None:
            left.finish()
            right.finish()
            return
        if same_batch(left, right):
            left.settle()
            right.settle()
            return
        if _leave(left, start) or _leave(right, start):
            continue
        one, other = _held(left), _held(right)
        if other is None or (one is not None and one.record.offset <= other.record.offset):
            left.take()
        if one is None or (other is not None and other.record.offset <= one.record.offset):
            right.take()
        yield from _difference(one, other, start)


def _leave(copy: LogCopy, start: int) -> bool:
    """Leave the batch if it has no more records from offset ``start`` on; return whether it was left."""
    batch = copy.batch
    done = batch is not None and (batch.last_offset < start or copy.record is None)
    if done:
        copy.drop()
    return done


def _held(copy: LogCopy) -> HeldRecord | None:
    record = copy.record
    return None if copy.batch is None or record is None else HeldRecord(copy.batch, record)


def _difference(one: HeldRecord | None, other: HeldRecord | None, start: int) -> Iterator[Difference]:
    """Yield the difference at the lower offset of two records, if it is at or above ``start`` and they differ there."""
    offset = min(side.record.offset for side in (one, other) if side is not None)
    left = one if one is not None and one.record.offset == offset else None
    right = other if other is not None and other.record.offset == offset else None
    if offset >= start and (left is None or right is None or not _are_equal(left, right)):
        yield Difference(offset, left, right)


def _are_equal(left: HeldRecord, right: HeldRecord) -> bool:
    """Return whether key, value, headers, leader epoch, timestamp, producer id and control flag are equal.

    A leader converts records for a follower of an older release. So a missing leader epoch equals any other. Producer
    ids of magic 0 and 1, and timestamps of magic 0, do not count (KIP-32, KIP-98).
    """
    (one, first), (other, second) = left, right
    return (
        (first.key, first.value, first.headers) == (second.key, second.value, second.headers)
        and one.is_control == other.is_control
        and (one.leader_epoch == other.leader_epoch or -1 in {one.leader_epoch, other.leader_epoch})
        and (one.producer_id == other.producer_id or min(one.magic, other.magic) < 2)
        and (first.timestamp == second.timestamp or min(one.magic, other.magic) < 1)
    )


@dataclass(frozen=True)
class Lineage:
    """The leader epochs of a log in order, with their start offsets, and the log end offset."""

    entries: tuple[EpochEntry, ...]
    end: int

    @property
    def newest(self) -> int | None:
        return self.entries[-1].epoch if self.entries else None

    def end_of(self, epoch: int) -> int:
        """Return the start offset of the first epoch after ``epoch``, or the log end offset."""
        return next((entry.start_offset for entry in self.entries if entry.epoch > epoch), self.end)

    def truncation(self, leader: Lineage) -> int | None:
        """Return the offset to which this replica truncates its log when it follows ``leader``, or None.

        The offset is the smaller of both end offsets of the newest common epoch. Nothing is truncated if there is no
        common epoch, if the leader's newest epoch is not newer, or if the log ends at or before the offset.
        """
        if self.newest is None or leader.newest is None or self.newest >= leader.newest:
            return None
        common = {entry.epoch for entry in self.entries} & {entry.epoch for entry in leader.entries}
        if not common:
            return None
        cut = min(self.end_of(max(common)), leader.end_of(max(common)))
        return cut if cut < self.end else None


def lineage(partition: Partition, report: Reporter) -> Lineage:
    """Return the leader epochs in ``leader-epoch-checkpoint``, and newer epochs that only batches have.

    Epochs that start after the log end offset are left out. ``report`` receives a malformed checkpoint as damage.
    """
    end = end_of_log(partition)
    entries = tuple(sorted(partition.leader_epochs(report.damage) or ()))
    if end.epoch > (entries[-1].epoch if entries else -1):
        entries = _with_batches(entries, partition, end)
    return Lineage(tuple(entry for entry in entries if entry.start_offset <= end.offset), end.offset)


def _with_batches(entries: tuple[EpochEntry, ...], partition: Partition, end: LogEnd) -> tuple[EpochEntry, ...]:
    found = list(entries)
    for segment in partition.segments:
        with segment.open() as source:
            for epoch, base_offset in _epochs(source):
                if epoch <= (found[-1].epoch if found else -1):
                    continue
                found.append(EpochEntry(epoch, base_offset))
                if epoch >= end.epoch:  # this is the newest epoch, because epochs only rise
                    return tuple(found)
    return tuple(found)


def _epochs(source: Source) -> Iterator[tuple[int, int]]:
    for region in walk.walk(source, runs=DATA):
        if isinstance(region, Batches) and region.first.partition_leader_epoch is not None:
            yield from zip(region.column("partition_leader_epoch"), region.column("base_offset"), strict=True)
