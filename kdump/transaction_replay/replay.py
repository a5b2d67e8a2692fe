"""Replays the batches of a log to find open transactions, ended transactions and the last stable offset.

A transaction of a producer begins with its first transactional batch and ends at the marker, a control batch that a
broker writes for the coordinator. Source: KIP-98, Kafka's classes ProducerStateManager and ProducerAppendInfo.
"""

from __future__ import annotations

from bisect import bisect_right
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.formats.txn_index import CURRENT_VERSION, AbortedTxn
from kdump.primitives.wire import INT64_END
from kdump.records import control

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kdump.records.record_batch import Batches, RecordBatch

_ENDED_KEPT: Final = 64
"""The heap of first offsets is rebuilt when it has more entries than twice the open transactions plus this number."""


class OpenTransaction(NamedTuple):
    producer_id: int
    producer_epoch: int
    first_offset: int


class EndedTransaction(NamedTuple):
    """A transaction that a marker has committed or aborted.

    ``first_offset`` is None for an empty transaction, or if it began before the replay. ``last_offset`` is the marker's
    offset. ``last_stable_offset`` is the first offset of the oldest open transaction, or the offset after the marker.
    """

    producer_id: int
    producer_epoch: int
    first_offset: int | None
    last_offset: int
    last_stable_offset: int
    aborted: bool
    coordinator_epoch: int

    def as_entry(self) -> AbortedTxn | None:
        """Return the entry that a broker writes to ``.txnindex``; None for a commit, or without a first offset."""
        if not self.aborted or self.first_offset is None:
            return None
        return AbortedTxn(
            CURRENT_VERSION, self.producer_id, self.first_offset, self.last_offset, self.last_stable_offset
        )


class Replay:
    """Follows the transactions of one partition. The caller adds batches in offset order.

    ``open`` has the open transactions by producer id. ``end_offset`` is the offset after the last added batch, or None.
    """

    def __init__(self, opened: Iterable[OpenTransaction] = ()) -> None:
        """Start with the transactions ``opened``, such as those of a producer snapshot."""
        self.open = {transaction.producer_id: transaction for transaction in opened}
        self.end_offset: int | None = None
        self._firsts: list[tuple[int, int]] = []
        self._undo: list[tuple[int, OpenTransaction | None]] | None = None
        self._marked_end: int | None = None
        if self.open:
            self._sort()

    def mark(self) -> None:
        """Record all later changes, so that :meth:`restore` can undo them."""
        self._undo, self._marked_end = [], self.end_offset

    def restore(self) -> None:
        """Undo the changes since :meth:`mark`, in time proportional to the number of changes."""
        for producer_id, before in reversed(self._undo or ()):
            if before is None:
                self.open.pop(producer_id, None)
            else:
                self.open[producer_id] = before
                heappush(self._firsts, (before.first_offset, producer_id))
        self._undo, self.end_offset = None, self._marked_end

    def add(self, batches: Batches, row: int = 0) -> EndedTransaction | None:
        """Add a batch, or batches of data from ``row`` on. Return the transaction of a marker. Raises DamageError."""
        if row == batches.batch_count:
            return None
        self.end_offset = batches.last_offset + 1
        if batches.batch_count > 1:
            self._add_data(batches, row)
            return None
        batch = batches.first
        producer_id = batch.producer_id
        if producer_id is None or producer_id < 0:
            return None
        if batch.is_control:
            return self._end(batch, producer_id)
        if batch.is_transactional:
            self._go_on(producer_id, batch.producer_epoch or 0, batch.base_offset)
        return None

    def _add_data(self, batches: Batches, row: int) -> None:
        if batches.first.is_transactional:
            names = ("producer_id", "producer_epoch", "base_offset")
            for producer_id, epoch, offset in zip(*(batches.column(name, row) for name in names), strict=True):
                if producer_id >= 0:
                    self._go_on(producer_id, epoch, offset)

    def _go_on(self, producer_id: int, epoch: int, offset: int) -> None:
        """Add a batch of data at ``offset``: it begins a transaction unless the producer has an open one."""
        begun = self.open.get(producer_id)
        if begun is None or offset < begun.first_offset:  # a wrong offset: the checksum does not cover it
            if self._undo is not None:
                self._undo.append((producer_id, begun))
            self.open[producer_id] = OpenTransaction(producer_id, epoch, offset)
            heappush(self._firsts, (offset, producer_id))

    def _end(self, batch: RecordBatch, producer_id: int) -> EndedTransaction | None:
        for record in batch.records():
            key = control.read_key(record.key)
            if key.type not in control.MARKERS:
                return None
            marker = control.read_marker(record.value)
            ended = self.open.pop(producer_id, None)
            if ended is not None and self._undo is not None:
                self._undo.append((producer_id, ended))
            return EndedTransaction(
                producer_id,
                batch.producer_epoch or 0,
                None if ended is None else ended.first_offset,
                record.offset,
                self.first_open_offset(record.offset + 1),
                key.type == control.ABORT,
                marker.coordinator_epoch,
            )
        return None  # compaction removed the marker and kept the empty batch

    def first_open_offset(self, otherwise: int) -> int:
        """Return the smallest first offset of the open transactions, or ``otherwise`` if none is open."""
        if len(self._firsts) > 2 * len(self.open) + _ENDED_KEPT:
            self._sort()
        while self._firsts:
            first, producer_id = self._firsts[0]
            begun = self.open.get(producer_id)
            if begun is not None and begun.first_offset == first:
                return first
            heappop(self._firsts)
        return otherwise

    def _sort(self) -> None:
        self._firsts = [(one.first_offset, one.producer_id) for one in self.open.values()]
        heapify(self._firsts)

    @property
    def last_stable_offset(self) -> int | None:
        """The last stable offset; None if no batch was added and no transaction is open."""
        if self.end_offset is None and not self.open:
            return None
        return self.first_open_offset(self.end_offset or 0)


def ended(batches: Iterable[RecordBatch], replay: Replay | None = None) -> Iterator[EndedTransaction]:
    """Yield each transaction that ends. Open transactions stay in ``replay``. Raises DamageError for a bad marker."""
    replay = replay or Replay()
    for batch in batches:
        transaction = replay.add(batch)
        if transaction is not None:
            yield transaction


class AbortedRanges:
    """The offset ranges of aborted transactions by producer, which a consumer uses to skip aborted records."""

    def __init__(self, aborted: Iterable[AbortedTxn | EndedTransaction]) -> None:
        """``aborted`` are entries of ``.txnindex`` or ended transactions. Commits and empty ones are ignored."""
        ranges: dict[int, list[tuple[int, int]]] = {}
        for transaction in aborted:
            if isinstance(transaction, EndedTransaction) and not transaction.aborted:
                continue
            if transaction.first_offset is not None:
                span = (transaction.first_offset, transaction.last_offset)
                ranges.setdefault(transaction.producer_id, []).append(span)
        self._ranges = {producer_id: sorted(spans) for producer_id, spans in ranges.items()}

    def hold(self, batch: RecordBatch) -> bool:
        """Return whether a batch is data of an aborted transaction."""
        spans = self._ranges.get(-1 if batch.producer_id is None else batch.producer_id)
        if spans is None or not batch.is_transactional or batch.is_control:
            return False
        offset = batch.base_offset
        at = bisect_right(spans, (offset, INT64_END)) - 1
        return at >= 0 and offset <= spans[at][1]
