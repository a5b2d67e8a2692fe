"""The check of ``.timeindex`` against its log. The callers pass bytes and batches; no file is read here.

An entry has the last offset of a batch. The timestamp of the entry must be the largest of this batch, and above all
timestamps of earlier batches. Brokers 0.11 to 3.8 may write the offset of the record with this timestamp instead. The
last entry of a closed segment has the largest timestamp of the segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kdump.checks.offset_index import Fault, IndexFileCheck, and_all_after, first_beyond
from kdump.errors import DamageError
from kdump.findings import Finding, Level
from kdump.findings.codes import Code
from kdump.formats.time_index import NO_TIMESTAMP, TimeIndex, TimestampOffset
from kdump.primitives.wire import INT64_END

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kdump.records.record_batch import RecordBatch
    from kdump.segments.batch_runs import Run


class Uncovered(NamedTuple):
    """An entry of ``.index`` that has no time entry: its number, and its position in the log.

    ``highest`` is the largest timestamp of the log up to this position, ``newest`` that of the time entries; in ms.
    """

    slot: int
    position: int
    highest: int
    newest: int


class TimeIndexCheck(IndexFileCheck):
    """Checks one ``.timeindex``. The caller passes the batches of its log in order.

    ``highest`` is the largest timestamp of the passed batches, ``newest`` that of their entries without a fault; in ms.
    """

    def __init__(self, file: str, data: bytes, base_offset: int) -> None:
        super().__init__(file)
        self.index = TimeIndex(data, base_offset)
        self.highest = NO_TIMESTAMP
        self.newest = NO_TIMESTAMP
        self.uncovered: Uncovered | None = None
        self._previous_last = base_offset - 1
        self._rises = False
        self._slots = self._in_order()
        self._starts_at = base_offset + self.index.stored(0)[1] if self.index.filled else INT64_END
        self._timestamp = NO_TIMESTAMP
        self._advance(0)

    def _in_order(self) -> Sequence[int]:
        """Check the entries without the log. Return the numbers of the valid entries, sorted by offset."""
        filled = self.index.filled
        if filled and self.index.rises() and min(self.index.stored(0)) >= 0:
            self._rises = True
            return range(filled)
        held: list[tuple[int, int]] = []
        for slot, entry in enumerate(self.index):
            if entry.offset < self.index.base_offset:
                expected = f"{self.index.base_offset} or more"
                self.faults[slot] = Fault(Code.OFFSET, "is below the base offset", expected, entry.offset)
            elif entry.timestamp < 0:
                self.faults[slot] = Fault(Code.TIMESTAMP, "has no timestamp", "0 or more", entry.timestamp)
            else:
                held.append((entry.offset, slot))
        return [slot for _, slot in sorted(held)]

    def _advance(self, at: int) -> None:
        self._at = at
        if at < len(self._slots):
            self._timestamp, relative = self.index.stored(self._slots[at])
            self.next_offset = self.index.base_offset + relative
        else:
            self.next_offset = INT64_END

    def batch(self, batch: RecordBatch, last: int) -> None:
        """Compare the next batch with its entries. ``last`` is its last offset."""
        highest = batch.max_timestamp
        while self.next_offset <= last:
            fault = self._judge(self._timestamp, self.next_offset, batch, last, highest)
            if fault is None:
                if self._timestamp > self.newest:  # noqa: PLR1730  max() costs more than the other code of this loop
                    self.newest = self._timestamp
            else:
                self.faults[self._slots[self._at]] = fault
            self._advance(self._at + 1)
        if highest > self.highest:  # noqa: PLR1730  faster than max()
            self.highest = highest
        if last > self._previous_last:  # noqa: PLR1730  faster than max()
            self._previous_last = last

    def free(self, run: Run, row: int, until: int) -> int:
        """Return the number of the first batch, from ``row`` on, that may have an entry, or ``until``."""
        if row == until or run.greatest("last_offset", row, until) < self.next_offset:
            return until
        return next(at for at in range(row, until) if run.field("last_offset", at) >= self.next_offset)

    def pass_over(self, last: int, highest: int) -> None:
        """Skip batches without an entry: ``last`` is their last offset, ``highest`` their largest timestamp in ms."""
        self._previous_last = max(last, self._previous_last)
        self.highest = max(highest, self.highest)

    def _judge(self, timestamp: int, offset: int, batch: RecordBatch, last: int, highest: int) -> Fault | None:
        if offset <= self._previous_last or (batch.magic >= 2 and offset < batch.base_offset):
            return Fault(Code.OFFSET, "names an offset that no batch has", "an offset in the log", offset)
        if offset != last and not _has(batch, timestamp, offset):
            text = f"names an offset inside the batch at byte {batch.position} whose record has another timestamp"
            return Fault(Code.OFFSET, text, str(last), offset)
        if timestamp != highest and not _is_highest(batch, timestamp):
            text = f"has a timestamp that is not the largest of the batch at byte {batch.position}"
            return Fault(Code.TIMESTAMP, text, str(highest), timestamp)
        if timestamp <= self.highest:
            text = f"has a timestamp at or below the largest timestamp before byte {batch.position}"
            return Fault(Code.TIMESTAMP, text, f"above {self.highest}", timestamp)
        return None

    def covers(self, slot: int, position: int, last: int, highest: int) -> None:
        """Check that a time entry exists for entry ``slot`` of ``.index``, whose batch ends at offset ``last``.

        With each entry of ``.index`` a broker adds a time entry with the largest timestamp so far (``highest``), unless
        the time index already has this timestamp. Batches before the first time entry are not checked.
        """
        if self.newest < highest and highest > 0 and last >= self._starts_at and self.uncovered is None:
            self.uncovered = Uncovered(slot, position, highest, self.newest)

    def finish(self, *, closed: bool, offsets_good: bool, readable: bool = True) -> Iterator[Finding]:
        """Yield the findings.

        ``closed``: no broker writes to the segment. ``offsets_good``: all entries of ``.index`` are correct. If not
        ``readable``, the log is damaged: missing entries are not reported, and later entries not compared with it.
        """
        if readable:
            for slot in self._slots[self._at :]:
                text = f"names an offset past the end of the log, whose last offset is {self._previous_last}"
                expected = f"at most {self._previous_last}"
                self.faults[slot] = Fault(Code.BEYOND_THE_LOG, text, expected, self.index[slot].offset)
        yield from self.of_size(self.index.size, self.index.layout.size)
        yield from self.entries()
        yield from self._remarks()
        if readable:
            yield from self._coverage(closed=closed, offsets_good=offsets_good)

    def entries(self) -> Iterator[Finding]:
        """Yield the findings on the entries. Each entry is compared with the last correct entry."""
        if self._rises and not self.faults:
            return
        good = TimestampOffset(NO_TIMESTAMP, self.index.base_offset - 1)
        lost = first_beyond(self.faults, self.index.filled)
        for slot, entry in enumerate(self.index):
            if slot > lost:
                break
            fault = self.faults.get(slot)
            if fault is None and (entry.timestamp <= good.timestamp or entry.offset <= good.offset):
                of_time = entry.timestamp <= good.timestamp
                was, found = (good.timestamp, entry.timestamp) if of_time else (good.offset, entry.offset)
                what = "a timestamp" if of_time else "an offset"
                fault = Fault(Code.ORDER, f"has {what} at or below that of an earlier entry", f"above {was}", found)
            if fault is None:
                good = entry
                continue
            self.faults[slot] = fault
            tail = and_all_after(slot, lost, self.index.filled)
            entry_text = f"timestamp {entry.timestamp}, offset {entry.offset}"
            yield self.of_entry(slot, entry_text, fault, self.index.layout.size, tail)

    def _remarks(self) -> Iterator[Finding]:
        if not self.index.filled:
            past = f", but the log has timestamps up to {self.highest}" if self.highest > 0 else ""
            yield self.finding(Code.EMPTY, f"the index has no entries{past}", level=Level.REMARK)
        elif self.index.zero_tail:
            text = f"{self.index.zero_tail} bytes of zeros follow the entries"
            yield self.finding(
                Code.ZERO_TAIL, text, level=Level.REMARK, position=self.index.position(self.index.filled)
            )

    def _coverage(self, *, closed: bool, offsets_good: bool) -> Iterator[Finding]:
        if not self.index.filled or self.faults or self.index.ragged:  # the cause was already reported
            return
        slot = self.index.filled - 1
        last = self.index.stored(slot)[0]
        if last < self.highest:
            text = f"the timestamp of the last entry ({slot}) is below the largest timestamp of the log"
            if closed:
                text += ": retention by time deletes the segment too early, and look-ups by time skip it"
            yield self.finding(
                Code.COVERAGE,
                text,
                level=Level.DERIVED if closed else Level.REMARK,
                entry=slot,
                position=self.index.position(slot),
                expected=self.highest,
                found=last,
            )
        elif self.uncovered is not None and offsets_good:
            at = self.uncovered
            yield self.finding(
                Code.COVERAGE,
                f"an entry is missing: the log up to byte {at.position} (entry {at.slot} of the .index) has timestamps "
                f"up to {at.highest}, but the entries for this part of the log only have timestamps up to {at.newest}",
                expected=at.highest,
                found=at.newest,
            )


def _has(batch: RecordBatch, timestamp: int, offset: int) -> bool:
    try:
        return any(record.offset == offset and record.timestamp == timestamp for record in batch.records())
    except DamageError:
        return True


def _is_highest(batch: RecordBatch, timestamp: int) -> bool:
    """Return whether a timestamp is the largest of the batch's records; True if they are unreadable."""
    try:
        return timestamp == max((record.timestamp for record in batch.records()), default=NO_TIMESTAMP)
    except DamageError:
        return True
