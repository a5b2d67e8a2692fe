"""The open transactions in the producer state of a log that a broker loads, and the batches that it refuses.

Sources: Kafka's classes ProducerAppendInfo, ProducerStateManager (``completeTxn``) and TransactionIndex (``append``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdump.formats.record_layout import TRANSACTIONAL_FLAG

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kdump.formats.producer_snapshot import ProducerEntry
    from kdump.records.record_batch import Batches


class OpenTransactions:
    """The open transactions at an offset of a log.

    A broker has two tables of them: by producer id, and by first offset. Each method returns why a broker refuses a
    batch, or "". Such an exception ends the start.
    """

    __slots__ = ("_begun", "_ended", "_firsts", "_open", "aborted_at")

    def __init__(self, entries: Iterable[ProducerEntry] = ()) -> None:
        self._open = {each.producer_id: each.current_txn_first_offset for each in entries if each.has_open_transaction}
        self._firsts = set(self._open.values())
        self._begun: list[int] = []
        self._ended: list[int] = []
        self.aborted_at = -1
        """The last offset in the ``.txnindex`` that recovery writes."""

    def copy(self) -> OpenTransactions:
        made = OpenTransactions()
        made._open, made._firsts = dict(self._open), set(self._firsts)
        return made

    def add_data(self, batches: Batches, row: int = 0, stop: int | None = None) -> str:
        """Add batches of data: those from ``row`` to ``stop`` (exclusive)."""
        stop = batches.batch_count if stop is None else stop
        if row >= stop or batches.greatest("producer_id", row, stop) < 0:
            return ""
        columns = (batches.column(name, row, stop) for name in ("producer_id", "attributes", "base_offset"))
        for producer, attributes, offset in zip(*columns, strict=True):
            if producer < 0:
                continue
            if not attributes & TRANSACTIONAL_FLAG:
                if producer in self._open:
                    return (
                        f"InvalidTxnStateException: Expected transactional write from producer {producer} at offset "
                        f"{offset}"
                    )
            elif producer not in self._open:
                self._open[producer] = offset
                self._begun.append(offset)
        return ""

    def end(self, producer: int, offset: int, *, aborts: bool = False) -> str:
        """Add the marker of a producer at ``offset``. With ``aborts`` recovery adds an entry to ``.txnindex``."""
        first = self._open.pop(producer, None)
        if first is None:
            return ""
        if aborts and offset <= self.aborted_at:
            return (
                "IllegalArgumentException: The last offset of appended transactions must increase sequentially, but "
                f"{offset} is not greater than current last offset {self.aborted_at}"
            )
        if aborts:
            self.aborted_at = offset
        self._ended.append(first)
        return ""

    def flush(self) -> str:
        """Add the begun transactions to the table by first offset, and remove the ended ones from it."""
        self._firsts.update(self._begun)
        ended, self._begun, self._ended = self._ended, [], []
        for first in ended:
            if first not in self._firsts:
                return (
                    f"IllegalArgumentException: Attempted to complete a transaction with first offset {first} which "
                    "was not started"
                )
            self._firsts.remove(first)
        return ""
