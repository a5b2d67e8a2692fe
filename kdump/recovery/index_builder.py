"""Fresh ``.index``, ``.timeindex`` and ``.txnindex`` files of a segment, as a broker writes them.

Source: Kafka's class LogSegment (``append``, ``recover`` and ``onBecomeInactiveSegment``), one decision per batch as
since 3.9 (KAFKA-806).
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, NamedTuple

from kdump.errors import DamageError
from kdump.formats import offset_index, time_index, txn_index
from kdump.formats.offset_index import OffsetPosition
from kdump.formats.sparse_index import DEFAULT_INTERVAL, MAX_RELATIVE_OFFSET
from kdump.formats.time_index import NO_TIMESTAMP, TimestampOffset
from kdump.primitives.wire import INT32_MAX

if TYPE_CHECKING:
    from kdump.formats.txn_index import AbortedTxn
    from kdump.records.record_batch import RecordBatch
    from kdump.transactions.replay import EndedTransaction


class Indexes(NamedTuple):
    """The bytes of the three files, all without padding. A broker makes no ``.txnindex`` when nothing was aborted."""

    offset_index: bytes
    time_index: bytes
    txn_index: bytes


class IndexBuilder:
    """Collects the entries of one segment while its batches pass by in order."""

    def __init__(self, base_offset: int, *, interval: int = DEFAULT_INTERVAL, first_offsets: bool = False) -> None:
        """``interval`` is in bytes. ``first_offsets`` names the first offset of a batch, as brokers before 2.0 did."""
        self.base_offset = base_offset
        self.interval = interval
        self.first_offsets = first_offsets
        self._offsets, self._positions = array("q"), array("q")
        self._times: list[TimestampOffset] = []
        self._aborted: list[AbortedTxn] = []
        self._since = 0
        self._highest = TimestampOffset(NO_TIMESTAMP, base_offset)

    def add(self, batch: RecordBatch, ended: EndedTransaction | None = None) -> None:
        """Take the next batch, and the transaction that it ends (see :class:`kdump.transactions.replay.Replay`).

        Raises DamageError when the batch cannot stand in this segment.
        """
        last = batch.last_offset
        if not 0 <= last - self.base_offset <= MAX_RELATIVE_OFFSET:
            raise DamageError(
                "offset",
                "an offset does not fit into a segment with this base offset",
                position=batch.position,
                expected=f"{self.base_offset} to {self.base_offset + MAX_RELATIVE_OFFSET}",
                found=last,
            )
        if batch.max_timestamp > self._highest.timestamp:
            self._highest = TimestampOffset(batch.max_timestamp, last)
        if self._since > self.interval:
            if batch.position > INT32_MAX:
                raise DamageError(
                    "position",
                    "an index cannot name positions above 2 GiB",
                    position=batch.position,
                    expected=f"at most {INT32_MAX}",
                )
            self._offsets.append(batch.base_offset if self.first_offsets else last)
            self._positions.append(batch.position)
            self._append_time()
            self._since = 0
        self._since += batch.size
        entry = None if ended is None else ended.as_entry()
        if entry is not None:
            self._aborted.append(entry)

    def _append_time(self) -> None:
        newest = self._times[-1].timestamp if self._times else NO_TIMESTAMP
        if self._highest.timestamp > newest:
            self._times.append(self._highest)

    def finish(self) -> Indexes:
        """Return the files as they are once the segment is closed: the largest timestamp is always in."""
        self._append_time()
        entries = map(OffsetPosition, self._offsets, self._positions)
        return Indexes(
            offset_index.encode(entries, self.base_offset),
            time_index.encode(self._times, self.base_offset),
            txn_index.encode(self._aborted),
        )
