"""The check of ``.txnindex`` against the transaction markers of its log. The callers pass bytes and transactions.

A broker writes one entry for each ABORT marker of a transaction with data, in the order of the markers. If an entry is
missing, read_committed consumers receive the records of the aborted transaction. The ABORT marker of a transaction
without data may have an entry too. The first offset of such an entry is the offset of the marker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdump.checks.offset_index import ADVICE, Fault, IndexFileCheck
from kdump.errors import many
from kdump.findings import Finding, Level
from kdump.findings.codes import Code
from kdump.formats import txn_index
from kdump.formats.txn_index import ABORTED_TXN, AbortedTxn
from kdump.primitives.wire import INT64_END

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.transaction_replay.replay import EndedTransaction


class TxnIndexCheck(IndexFileCheck):
    """Checks one ``.txnindex``. The caller passes the transactions that end in the segment, in order."""

    advice = ADVICE

    def __init__(self, file: str, data: bytes | None, base_offset: int) -> None:
        """``data`` is None if the file is missing, which is valid if no transaction with data was aborted."""
        super().__init__(file)
        self.exists = data is not None
        self.data = data or b""
        self.base_offset = base_offset
        self.entries = tuple(txn_index.entries(self.data)) if data else ()
        self._low: dict[int, tuple[Fault, bool]] = {}
        self._missing: list[EndedTransaction] = []
        self._empty = 0
        for slot, entry in enumerate(self.entries):
            fault = self._alone(entry)
            if fault is not None:
                self.faults[slot] = fault
        sound = [(entry.last_offset, slot) for slot, entry in enumerate(self.entries) if slot not in self.faults]
        self._slots = [slot for _, slot in sorted(sound)]
        self._at = 0

    def _alone(self, entry: AbortedTxn) -> Fault | None:
        if entry.version != txn_index.CURRENT_VERSION:
            return Fault(Code.VERSION, "has an unknown version", str(txn_index.CURRENT_VERSION), entry.version)
        if entry.producer_id < 0:
            return Fault(Code.PRODUCER_ID, "has no producer id", "0 or more", entry.producer_id)
        if not 0 <= entry.first_offset <= entry.last_offset:
            expected = f"0 to {entry.last_offset}"
            return Fault(Code.FIRST_OFFSET, "has a first offset above its last offset", expected, entry.first_offset)
        if not 0 <= entry.last_stable_offset <= entry.last_offset + 1:
            expected = f"0 to {entry.last_offset + 1}"
            return Fault(
                Code.LAST_STABLE_OFFSET, "has an impossible last stable offset", expected, entry.last_stable_offset
            )
        if entry.last_offset < self.base_offset:
            return Fault(
                Code.LAST_OFFSET,
                "has a last offset below the base offset of the segment",
                f"{self.base_offset} or more",
                entry.last_offset,
            )
        return None

    def ended(self, transaction: EndedTransaction) -> None:
        """Compare the next transaction with the entry of its last offset. Entries up to there need an ABORT marker."""
        offset = transaction.last_offset
        found = False
        while self._next() <= offset:
            slot = self._slots[self._at]
            entry = self.entries[slot]
            self._at += 1
            if entry.last_offset < offset or not transaction.aborted:
                self._no_marker(slot, entry)
            else:
                found = True
                self._judge(slot, entry, transaction)
        if transaction.aborted and not found:
            if transaction.first_offset is not None:
                self._missing.append(transaction)
            else:
                self._empty += 1

    @property
    def lacks(self) -> bool:
        """Whether an entry is missing for a transaction that was passed so far."""
        return bool(self._missing)

    def _next(self) -> int:
        return self.entries[self._slots[self._at]].last_offset if self._at < len(self._slots) else INT64_END

    def _no_marker(self, slot: int, entry: AbortedTxn) -> None:
        text = "ends at an offset without an ABORT marker"
        self.faults[slot] = Fault(Code.LAST_OFFSET, text, "the offset of an ABORT marker", entry.last_offset)

    def _judge(self, slot: int, entry: AbortedTxn, transaction: EndedTransaction) -> None:
        first, stable = transaction.first_offset, transaction.last_stable_offset
        if entry.producer_id != transaction.producer_id:
            text = "names another producer than the marker at its last offset"
            self.faults[slot] = Fault(Code.PRODUCER_ID, text, str(transaction.producer_id), entry.producer_id)
        elif first is None and entry.first_offset != entry.last_offset:
            text = "begins at an offset at which its producer has no batch"
            self._below(slot, Code.FIRST_OFFSET, text, "no data before the marker", entry.first_offset)
        elif first is not None and entry.first_offset > first:
            text = "begins after the first batch of the transaction"
            self.faults[slot] = Fault(Code.FIRST_OFFSET, text, str(first), entry.first_offset)
        elif first is not None and entry.first_offset < first:
            self._below(slot, Code.FIRST_OFFSET, "begins before its transaction begins", str(first), entry.first_offset)
        elif entry.last_stable_offset > stable:
            text = "has a higher last stable offset than the log had when the transaction ended"
            self.faults[slot] = Fault(Code.LAST_STABLE_OFFSET, text, str(stable), entry.last_stable_offset)
        elif entry.last_stable_offset < stable:
            text = "has a lower last stable offset than the log had when the transaction ended"
            self._below(slot, Code.LAST_STABLE_OFFSET, text, str(stable), entry.last_stable_offset)

    def _below(self, slot: int, kind: str, text: str, expected: str, found: int) -> None:
        """Save the fault of an offset that is too low: compaction or unread earlier segments may explain it."""
        self._low[slot] = (Fault(kind, text, expected, found), found < self.base_offset)

    def finish(
        self, *, complete: bool, compacted: bool, readable: bool = True, alone: bool = False
    ) -> Iterator[Finding]:
        """Yield the findings.

        ``complete``: the partition was replayed from offset 0. ``compacted``: the log lacks batches or records; an
        entry may then have offsets of removed data, but its marker must exist. If ``readable`` is false, the log was
        not read to its end: entries after the last transaction need no marker. ``alone``: the ``.index`` is missing,
        and a broker rebuilds all index files. A missing ``.txnindex`` is then one remark, not a finding per entry.
        """
        if not (self.data or self._missing or self._empty):
            return
        if readable:
            for slot in self._slots[self._at :]:
                self._no_marker(slot, self.entries[slot])
        for slot, (fault, before_segment) in self._low.items():
            if not compacted and (complete or not before_segment):
                self.faults.setdefault(slot, fault)
        yield from self.of_size(len(self.data), ABORTED_TXN.size)
        yield from self._entries()
        yield from self._absent(alone=alone)

    def _entries(self) -> Iterator[Finding]:
        last, stable = -1, -1
        for slot, entry in enumerate(self.entries):
            fault = self.faults.get(slot)
            if fault is None and entry.last_offset <= last:
                text = "has a last offset at or below that of an earlier entry"
                fault = Fault(Code.ORDER, text, f"above {last}", entry.last_offset)
            if fault is None and entry.last_stable_offset < stable:
                text = "has a last stable offset below that of an earlier entry"
                fault = Fault(Code.ORDER, text, f"{stable} or more", entry.last_stable_offset)
            if fault is None:
                last, stable = entry.last_offset, entry.last_stable_offset
                continue
            self.faults[slot] = fault
            what = f"producer {entry.producer_id}, offsets {entry.first_offset} to {entry.last_offset}"
            yield self.of_entry(slot, what, fault, ABORTED_TXN.size)

    def _absent(self, *, alone: bool) -> Iterator[Finding]:
        is_rebuilt = alone and not self.exists
        if is_rebuilt and self._missing:
            count = many(len(self._missing), "aborted transaction")
            text = f"the file and the .index are missing. The log has {count}"
            yield self.finding(Code.ABSENT, text, level=Level.REMARK, found=len(self._missing))
        for transaction in () if is_rebuilt else self._missing:
            state = "is missing" if self.exists else "is missing, because the file is missing"
            first, last = transaction.first_offset, transaction.last_offset
            yield self.finding(
                Code.MISSING,
                f"the entry for the aborted transaction of producer {transaction.producer_id} at offsets {first} to "
                f"{last} {state}: read_committed consumers get its records",
                expected=f"an entry for offsets {first} to {last}",
            )
        if self._empty:
            markers = many(self._empty, "ABORT marker of a transaction", "ABORT markers of transactions")
            text = f"no entry for {markers} without data"
            yield self.finding(Code.EMPTY_ABORT, text, level=Level.REMARK, found=self._empty)
