"""Fresh ``.index``, ``.timeindex`` and ``.txnindex`` files of a segment, as a broker writes them.

Source: Kafka's class LogSegment (``append``, ``recover`` and ``onBecomeInactiveSegment``), one decision per batch as
since 3.9 (KAFKA-806).
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from kdump.errors import DamageError
from kdump.formats import offset_index, time_index, txn_index
from kdump.formats.sparse_index import DEFAULT_INTERVAL, MAX_RELATIVE_OFFSET
from kdump.formats.time_index import NO_TIMESTAMP, TimestampOffset
from kdump.primitives.named_tuple import NamedTuple
from kdump.primitives.wire import INT32_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable

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
        offset = batch.base_offset if self.first_offsets else last
        position = batch.position if position is None else position
        self._add([(offset, last, _max_timestamp(batch), batch.size)], position)
        entry = None if ended is None else ended.as_entry()
        if entry is not None:
            self._aborted.append(entry)

    def add_run(self, run: Run, position: int) -> None:
        """Take the next batches, data that stand at ``position`` in the segment. Raises DamageError likewise."""
        offset = "base_offset" if self.first_offsets else "last_offset"
        columns = [run.column(name) for name in (offset, "last_offset", "max_timestamp", "size")]
        self._add(zip(*columns, strict=True), position)

    def _add(self, batches: Iterable[tuple[int, int, int, int]], position: int) -> None:
        """Take batches in a row: the offset of an entry, the last offset, the greatest timestamp in ms, the size."""
        base, interval, since = self.base_offset, self.interval, self._since
        highest, held_by = self._highest
        offsets, positions = self._offsets, self._positions
        timed = self._timestamps[-1] if self._timestamps else NO_TIMESTAMP
        for offset, last, timestamp, size in batches:
            if not 0 <= last - base <= MAX_RELATIVE_OFFSET:
                raise DamageError(
                    "offset",
                    "an offset does not fit into a segment with this base offset",
                    position=position,
                    expected=f"{base} to {base + MAX_RELATIVE_OFFSET}",
                    found=last,
                )
            if timestamp > highest:
                highest, held_by = timestamp, last
            if since > interval:
                if offsets and offset <= offsets[-1]:
                    self.refuses = True
                offsets.append(offset)
                positions.append(position)
                if highest > timed:
                    self._enter_time(highest, held_by)
                    timed = highest
                if self.refuses and self.refused_at is None:
                    self.refused_at = position
                since = 0
            since += size
            position += size
        self._highest, self._since = TimestampOffset(highest, held_by), since

    def _enter_time(self, timestamp: int, offset: int) -> None:
        self.refuses = self.refuses or bool(self._time_offsets and offset < self._time_offsets[-1])
        self._timestamps.append(timestamp)
        self._time_offsets.append(offset)

    @property
    def indexed(self) -> int:
        """The position of the batch that has the last entry, 0 before the first."""
        return self._positions[-1] if self._positions else 0

    def fits(self, offset: int) -> bool:
        """Tell whether an offset fits into the segment: indexes have it relative to the base offset, in 32 bits."""
        return 0 <= offset - self.base_offset <= MAX_RELATIVE_OFFSET

    def close(self) -> None:
        """Add the time entry of the largest timestamp, if it is not there."""
        if self._highest.timestamp > (self._timestamps[-1] if self._timestamps else NO_TIMESTAMP):
            self._enter_time(*self._highest)

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
            offset_index.encode(zip(self._offsets, self._positions, strict=True), self.base_offset),
            time_index.encode(zip(self._timestamps, self._time_offsets, strict=True), self.base_offset),
            txn_index.encode(self._aborted),
        )


def _max_timestamp(batch: RecordBatch) -> int:
    try:
        return batch.max_timestamp
    except DamageError:  # a message too short for its timestamp: a broker reads on into the next one
        return NO_TIMESTAMP
