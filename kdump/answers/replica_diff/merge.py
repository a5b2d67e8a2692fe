"""Two copies of a log side by side: the offsets at which they hold different records."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kdump.answers.replica_diff.log_copy import same_batch, skip_equal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.answers.replica_diff.log_copy import LogCopy
    from kdump.formats.record import Record
    from kdump.records.record_batch import RecordBatch


class HeldRecord(NamedTuple):
    """A record, and the batch that it stands in."""

    batch: RecordBatch
    record: Record

    @property
    def epoch(self) -> int:
        """The leader epoch, -1 below magic 2."""
        epoch = self.batch.partition_leader_epoch
        return -1 if epoch is None else epoch


class Difference(NamedTuple):
    """An offset that only one copy holds a record of, or each another one."""

    offset: int
    left: HeldRecord | None
    right: HeldRecord | None

    @property
    def same_epoch(self) -> bool:
        """Whether both copies claim that one leader wrote their records: followers append a leader's very bytes."""
        return self.left is not None and self.right is not None and self.left.epoch == self.right.epoch != -1


def differences(left: LogCopy, right: LogCopy, start: int) -> Iterator[Difference]:
    """Yield the differences from offset ``start`` on, in the order of the logs. Raises UnreadableError."""
    if left.segment is None or right.segment is None or left.segment.base_offset != right.segment.base_offset:
        yield from _until_equal(left, right, start)
    while left.segment is not None or right.segment is not None:
        skip_equal(left, right)
        yield from _until_equal(left, right, start)


def _until_equal(left: LogCopy, right: LogCopy, start: int) -> Iterator[Difference]:
    """Yield differences up to the end of the first batches that are equal byte by byte, or of both logs."""
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
    """Leave a batch that has no more records, or none from ``start`` on; tell whether it was one."""
    batch = copy.batch
    done = batch is not None and (batch.last_offset < start or copy.record is None)
    if done:
        copy.drop()
    return done


def _held(copy: LogCopy) -> HeldRecord | None:
    record = copy.record
    return None if copy.batch is None or record is None else HeldRecord(copy.batch, record)


def _difference(one: HeldRecord | None, other: HeldRecord | None, start: int) -> Iterator[Difference]:
    """Yield the difference that the lower of two offsets makes, if any."""
    offset = min(held.record.offset for held in (one, other) if held is not None)
    left = one if one is not None and one.record.offset == offset else None
    right = other if other is not None and other.record.offset == offset else None
    if offset >= start and (left is None or right is None or _content(left) != _content(right)):
        yield Difference(offset, left, right)


def _content(held: HeldRecord) -> tuple[object, ...]:
    """Return what cleaning leaves as it is, and an upgrade of the format too."""
    batch, record = held
    producer = -1 if batch.producer_id is None else batch.producer_id
    return (held.epoch, batch.is_control, producer, record.timestamp, record.key, record.value, record.headers)
