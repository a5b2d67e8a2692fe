"""Fresh ``.index``, ``.timeindex`` and ``.txnindex`` files of a segment, as a broker writes them.

Source: Kafka's class LogSegment (``append``, ``recover`` and ``onBecomeInactiveSegment``), one decision per batch as
since 3.9 (KAFKA-806).
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from kdump.errors import DamageError
from kdump.formats import offset_index, time_index, txn_index
from kdump.formats.offset_index import OffsetPosition
from kdump.formats.sparse_index import DEFAULT_INTERVAL, MAX_RELATIVE_OFFSET
from kdump.formats.time_index import NO_TIMESTAMP, TimestampOffset
from kdump.primitives.named_tuple import NamedTuple
from kdump.primitives.wire import INT32_MAX

if TYPE_CHECKING:
    from kdump.formats.txn_index import AbortedTxn
    from kdump.records.record_batch import RecordBatch
    from kdump.segments.batch_runs import Run
    from kdump.transaction_replay.replay import EndedTransaction


class Indexes(NamedTuple):
    """The bytes of the three files, all without padding. A broker makes no ``.txnindex`` when nothing was aborted."""

    offset_index: bytes
    time_index: bytes
    txn_index: bytes


class IndexBuilder:
    """Collects the entries of one segment, whose batches come in order."""

    def __init__(self, base_offset: int, *, interval: int = DEFAULT_INTERVAL, first_offsets: bool = False) -> None:
        """``interval`` is in bytes. ``first_offsets`` names the first offset of a batch, as brokers before 2.0 did."""
        self.base_offset = base_offset
        self.interval = interval
        self.first_offsets = first_offsets
        self.indexed = 0
        """The position of the batch that has the last entry, 0 before the first."""
        self.refuses = False
        """Whether an entry goes back: a broker that recovers the segment throws InvalidOffsetException."""
        self.refused_at: int | None = None
        """The position of the batch whose entry goes back; None too where only closing the segment makes one."""
        self._offsets, self._positions = array("q"), array("q")
        self._timestamps, self._time_offsets = array("q"), array("q")
        self._aborted: list[AbortedTxn] = []
        self._since = 0
        self._highest = TimestampOffset(NO_TIMESTAMP, base_offset)

    def add(self, batch: RecordBatch, ended: EndedTransaction | None = None, *, position: int | None = None) -> None:
        """Take the next batch, and the transaction that it ends (see :class:`kdump.transaction_replay.replay.Replay`).

        ``position`` is where it stands in the segment (bytes), if that is not where it was read. Raises DamageError
        where its offsets do not fit into the segment.
        """
        last = batch.last_offset
        position = batch.position if position is None else position
        self._add(last, _max_timestamp(batch), position)
        if self._since > self.interval:
            self._enter(batch.base_offset if self.first_offsets else last, position)
        self._since += batch.size
        entry = None if ended is None else ended.as_entry()
        if entry is not None:
            self._aborted.append(entry)

    def add_run(self, run: Run, position: int) -> None:
        """Take the next batches, data that stand at ``position`` in the segment. Raises DamageError likewise."""
        bases = run.column("base_offset") if self.first_offsets else run.column("last_offset")
        columns = (run.column(name) for name in ("last_offset", "max_timestamp", "size"))
        for offset, last, timestamp, size in zip(bases, *columns, strict=True):
            self._add(last, timestamp, position)
            if self._since > self.interval:
                self._enter(offset, position)
            self._since += size
            position += size

    def _add(self, last: int, timestamp: int, position: int) -> None:
        """Take the last offset and the greatest timestamp in ms of a batch."""
        if not self.fits(last):
            raise DamageError(
                "offset",
                "an offset does not fit into a segment with this base offset",
                position=position,
                expected=f"{self.base_offset} to {self.base_offset + MAX_RELATIVE_OFFSET}",
                found=last,
            )
        if timestamp > self._highest.timestamp:
            self._highest = TimestampOffset(timestamp, last)

    def _enter(self, offset: int, position: int) -> None:
        """Add the entries of a batch."""
        self.refuses = self.refuses or bool(self._offsets and offset <= self._offsets[-1])
        self._offsets.append(offset)
        self._positions.append(position)
        self.close()
        if self.refuses and self.refused_at is None:
            self.refused_at = position
        self.indexed = position
        self._since = 0

    def fits(self, offset: int) -> bool:
        """Tell whether an offset fits into the segment: indexes have it relative to the base offset, in 32 bits."""
        return 0 <= offset - self.base_offset <= MAX_RELATIVE_OFFSET

    def close(self) -> None:
        """Add the time entry of the largest timestamp, if it is not there."""
        if self._highest.timestamp > (self._timestamps[-1] if self._timestamps else NO_TIMESTAMP):
            self.refuses = self.refuses or bool(self._time_offsets and self._highest.offset < self._time_offsets[-1])
            self._timestamps.append(self._highest.timestamp)
            self._time_offsets.append(self._highest.offset)

    def finish(self) -> Indexes:
        """Return the files of the closed segment. Raises DamageError where an entry's position is above 2 GiB."""
        self.close()
        if self.indexed > INT32_MAX:
            raise DamageError(
                "position",
                "an index cannot name positions above 2 GiB",
                position=next(position for position in self._positions if position > INT32_MAX),
                expected=f"at most {INT32_MAX}",
            )
        return Indexes(
            offset_index.encode(map(OffsetPosition, self._offsets, self._positions), self.base_offset),
            time_index.encode(map(TimestampOffset, self._timestamps, self._time_offsets), self.base_offset),
            txn_index.encode(self._aborted),
        )


def _max_timestamp(batch: RecordBatch) -> int:
    try:
        return batch.max_timestamp
    except DamageError:  # a message too short for its timestamp: a broker reads on into the next one
        return NO_TIMESTAMP
