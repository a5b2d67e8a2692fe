"""Fresh ``.index``, ``.timeindex`` and ``.txnindex`` files of a segment, as a broker writes them.

Source: Kafka's class LogSegment (``append``, ``recover`` and ``onBecomeInactiveSegment``), one decision per batch as
since 3.9 (KAFKA-806).
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, NamedTuple

from kdump import kernel
from kdump.errors import DamageError
from kdump.formats import offset_index, time_index, txn_index
from kdump.formats.sparse_index import DEFAULT_INTERVAL, MAX_RELATIVE_OFFSET
from kdump.formats.time_index import NO_TIMESTAMP
from kdump.primitives.wire import INT32_MAX

if TYPE_CHECKING:
    from kdump.formats.txn_index import AbortedTxn
    from kdump.records.record_batch import Batches, RecordBatch
    from kdump.transaction_replay.replay import EndedTransaction
if kernel.COMPILED:
    from kdump.kernel.indexes import add_run


class Indexes(NamedTuple):
    """The bytes of the three files, all without padding. A broker makes no ``.txnindex`` when nothing was aborted."""

    offset_index: bytes
    time_index: bytes
    txn_index: bytes


class IndexBuilder:
    """Collects the entries of one segment, whose batches come in order; the kernel adds those of runs."""

    def __init__(self, base_offset: int, *, interval: int = DEFAULT_INTERVAL, first_offsets: bool = False) -> None:
        """``interval`` is in bytes. ``first_offsets`` names the first offset of a batch, as brokers before 2.0 did."""
        self.base_offset = base_offset
        self.interval = interval
        self.first_offsets = first_offsets
        self.refuses = False
        """Whether an entry goes back: a broker that recovers the segment throws InvalidOffsetException."""
        self.refused_at: int | None = None
        """The position of the batch whose entry goes back; None too where only closing the segment makes one."""
        self.offsets, self.positions = array("q"), array("q")
        """The entries of the ``.index``."""
        self.timestamps, self.time_offsets = array("q"), array("q")
        """The entries of the ``.timeindex``, in ms."""
        self.since = 0
        """Bytes since the last entry."""
        self.highest, self.held_by = NO_TIMESTAMP, base_offset
        """The greatest timestamp in ms, and the last offset of the batch that has it."""
        self._aborted: list[AbortedTxn] = []

    def add(self, batches: Batches, ended: EndedTransaction | None = None, *, position: int | None = None) -> None:
        """Take the next batches, and the transaction that a single one ends.

        ``position`` is the place in the segment (bytes) of the first one, by default the one where it was read. Raises
        DamageError where an offset does not fit into the segment.
        """
        position = batches.position if position is None else position
        taken = 0 if batches.rows is None else add_run(self, batches.rows, position)
        for batch in batches.batches(taken):  # the first of a run does not fit, unless the kernel cannot decide
            self._add(batch, ended, position + batch.position - batches.position)

    def _add(self, batch: RecordBatch, ended: EndedTransaction | None, position: int) -> None:
        last = batch.last_offset
        offset = batch.base_offset if self.first_offsets else last
        if not self.fits(last):
            raise DamageError(
                "offset",
                "an offset does not fit into a segment with this base offset",
                position=position,
                expected=f"{self.base_offset} to {self.base_offset + MAX_RELATIVE_OFFSET}",
                found=last,
            )
        timestamp = _max_timestamp(batch)
        if timestamp > self.highest:
            self.highest, self.held_by = timestamp, last
        if self.since > self.interval:
            self._enter(offset, position)
            self.since = 0
        self.since += batch.size
        entry = None if ended is None else ended.as_entry()
        if entry is not None:
            self._aborted.append(entry)

    def _enter(self, offset: int, position: int) -> None:
        if self.offsets and offset <= self.offsets[-1]:
            self.refuses = True
        self.offsets.append(offset)
        self.positions.append(position)
        self.close()
        if self.refuses and self.refused_at is None:
            self.refused_at = position

    @property
    def indexed(self) -> int:
        """The position of the batch that has the last entry, 0 before the first."""
        return self.positions[-1] if self.positions else 0

    @property
    def timed(self) -> int:
        """The timestamp of the last time entry in ms, NO_TIMESTAMP before the first."""
        return self.timestamps[-1] if self.timestamps else NO_TIMESTAMP

    def fits(self, offset: int) -> bool:
        """Return whether an offset fits into the segment: indexes have it relative to the base offset, in 32 bits."""
        return 0 <= offset - self.base_offset <= MAX_RELATIVE_OFFSET

    def close(self) -> None:
        """Add the time entry of the largest timestamp, if it is not there."""
        if self.highest > self.timed:
            self.refuses = self.refuses or bool(self.time_offsets and self.held_by < self.time_offsets[-1])
            self.timestamps.append(self.highest)
            self.time_offsets.append(self.held_by)

    def finish(self) -> Indexes:
        """Return the files of the closed segment. Raises DamageError where an entry's position is above 2 GiB."""
        self.close()
        if self.indexed > INT32_MAX:
            raise DamageError(
                "position",
                "an index cannot name positions above 2 GiB",
                position=next(position for position in self.positions if position > INT32_MAX),
                expected=f"at most {INT32_MAX}",
            )
        return Indexes(
            offset_index.encode(zip(self.offsets, self.positions, strict=True), self.base_offset),
            time_index.encode(zip(self.timestamps, self.time_offsets, strict=True), self.base_offset),
            txn_index.encode(self._aborted),
        )


def _max_timestamp(batch: RecordBatch) -> int:
    try:
        return batch.max_timestamp
    except DamageError:  # a message too short for its timestamp: a broker reads on into the next one
        return NO_TIMESTAMP
