"""Which batches of aborted transactions go, and which markers have nothing left to mark.

Source: Kafka's class CleanedTransactionMetadata. Which transactions were aborted stands in the ``.txnindex`` files.
"""

from __future__ import annotations

from heapq import heapify, heappop
from typing import TYPE_CHECKING

from kdump.errors import DamageError
from kdump.formats import txn_index
from kdump.records import control

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kdump.answers.collector import Place
    from kdump.log_dirs.partition import Segment
    from kdump.records.record_batch import RecordBatch


def aborted_transactions(place: Place, segments: Iterable[Segment]) -> list[tuple[int, int]]:
    """Return first offset and producer id of transactions that are aborted in segments. Raises UnreadableError."""
    found = []
    for segment in segments:
        data = segment.sibling("txnindex")
        try:
            entries = () if data is None else txn_index.read(data)
        except DamageError as damage:
            place.wrong(f"{segment.files.shown(segment.siblings['txnindex'])}: {damage}")
            entries = ()
        found += [(entry.first_offset, entry.producer_id) for entry in entries]
    return found


class CleanedTransactions:
    """Follows transactions through batches in offset order."""

    def __init__(self, aborted: Iterable[tuple[int, int]]) -> None:
        self._aborted = list(aborted)
        heapify(self._aborted)
        self._ongoing_aborted: dict[int, bool] = {}
        """Producer id -> whether a batch of the transaction is still in the log."""
        self._ongoing_committed: set[int] = set()

    def discards(self, batch: RecordBatch) -> bool:
        """Tell whether a batch is aborted data, or a marker that marks nothing. Raises DamageError."""
        while self._aborted and self._aborted[0][0] <= batch.last_offset:
            self._ongoing_aborted.setdefault(heappop(self._aborted)[1], False)
        producer_id = -1 if batch.producer_id is None else batch.producer_id
        if batch.is_control:
            return self._discards_marker(batch, producer_id)
        if not batch.is_transactional:
            return False
        if producer_id in self._ongoing_aborted:
            self._ongoing_aborted[producer_id] = True
            return True
        self._ongoing_committed.add(producer_id)
        return False

    def _discards_marker(self, batch: RecordBatch, producer_id: int) -> bool:
        record = next(iter(batch.records()), None)
        if record is None:  # cleaned before
            return True
        kind = control.read_key(record.key).type
        if kind == control.ABORT:
            return not self._ongoing_aborted.pop(producer_id, False)
        if kind == control.COMMIT:
            was_there = producer_id in self._ongoing_committed
            self._ongoing_committed.discard(producer_id)
            return not was_there
        return False
