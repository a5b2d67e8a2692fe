"""The check of ``.index`` against its log. The callers pass bytes and batches; no file is read here.

An entry is correct if a batch starts at its position and ends with its offset. Brokers before 2.0 wrote the first
offset of the batch. Brokers 2.0 to 3.8 wrote the last offset of the append that starts at the position. An append may
have several batches; the last one is before the next entry. An entry must be above the last correct entry, not above
the previous entry, so one wrong entry gives one finding.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kdump.errors import DamageError, many
from kdump.findings import Finding, Level
from kdump.findings.codes import Code
from kdump.formats.offset_index import OffsetIndex, OffsetPosition
from kdump.primitives.wire import INT64_END
from kdump.records.record_batch import RecordBatch
from kdump.segments.batch_runs import Run
from kdump.segments.walk import in_batch

if TYPE_CHECKING:
    from kdump.segments.regions import Damage

ADVICE: Final = (
    "A broker can rebuild the indexes from the log. With the broker stopped, move the .index of the segment away: a "
    "start then rebuilds its .index, .timeindex and .txnindex. Or use kdump rebuild-index."
)

NO_END: Final = "names an offset at which no batch ends between this entry and the next"
UNKNOWN, EITHER, FIRST, LAST, APPEND = range(5)
CONVENTIONS: Final = {
    FIRST: "first offset of the batch (brokers before 2.0)",
    LAST: "last offset of the batch (brokers since 2.0)",
    APPEND: "last offset of a whole append (brokers 2.0 to 3.8)",
}


class Fault(NamedTuple):
    """The problem of an entry: kind, a predicate such as "points past the last whole batch", and the values."""

    kind: str
    text: str
    expected: str
    found: int


class IndexFileCheck:
    """The base class of checks of one index file. ``faults``: number of an entry -> its problem."""

    advice = ADVICE

    def __init__(self, file: str) -> None:
        self.file = file
        self.faults: dict[int, Fault] = {}

    def finding(self, kind: str, text: str, *, level: Level = Level.DERIVED, **more: Any) -> Finding:
        """Return a finding on the file; ``more`` are further fields of :class:`Finding`."""
        advice = "" if level is Level.REMARK else self.advice
        return Finding(level=level, file=self.file, kind=kind, text=text, advice=advice, **more)

    def of_entry(self, slot: int, entry: str, fault: Fault, size: int, tail: str = "") -> Finding:
        """Return the finding on entry ``slot``. ``entry`` is its text. ``size`` is in bytes. ``tail`` ends the text."""
        return self.finding(
            fault.kind,
            f"entry {slot} ({entry}) {fault.text}{tail}",
            entry=slot,
            position=slot * size,
            expected=fault.expected,
            found=fault.found,
        )

    def of_size(self, total: int, size: int) -> Iterator[Finding]:
        """Yield a finding if the size of the file (``total``) is not a multiple of the size of an entry, in bytes."""
        if rest := total % size:
            more = many(rest, "byte follows", "bytes follow")
            text = f"the size of the file is not a multiple of {size}: {more} the last entry"
            yield self.finding(Code.SIZE, text, position=total - rest, expected=f"a multiple of {size}", found=total)


class OffsetIndexCheck(IndexFileCheck):
    """Checks one ``.index``. The caller passes the batches of its log in order."""

    def __init__(self, file: str, data: bytes, base_offset: int, log_size: int | None) -> None:
        """``log_size`` is in bytes. It is None without a log; entries are then checked without it."""
        super().__init__(file)
        self.index = OffsetIndex(data, base_offset)
        self.first_fault_of_log: Damage | None = None
        self._log_size = log_size
        self._verdicts = bytearray(self.index.filled)
        self._rises = False
        self._slots = self._in_order()
        self._pending: int | None = None
        self._previous_last = base_offset - 1
        self._gaps = Gaps()
        self._offset = 0
        self._advance(0)
        self.met_slot = -1
        """The number of the latest entry whose batch was passed to :meth:`batch`; -1 if there is none."""

    def _in_order(self) -> Sequence[int]:
        """Check the entries without batches. Return the numbers of the valid entries, sorted by position."""
        filled, size = self.index.filled, INT64_END if self._log_size is None else self._log_size
        if not filled:
            return ()
        if self.index.rises():
            first, last = self.index.stored(0), self.index.stored(filled - 1)
            if first[0] >= 0 < first[1] and last[1] < size:
                self._rises = True
                return range(filled)
        held: list[tuple[int, int]] = []
        previous, rising = 0, True
        for slot, entry in enumerate(self.index):
            if entry.offset < self.index.base_offset:
                fault = Fault(
                    Code.OFFSET, "is below the base offset", f"{self.index.base_offset} or more", entry.offset
                )
            elif entry.position <= 0:
                fault = Fault(
                    Code.POSITION,
                    "has a position of 0 or below: the first batch of a segment never gets an entry",
                    "above 0",
                    entry.position,
                )
            elif self._log_size is not None and entry.position >= self._log_size:
                fault = Fault(
                    Code.BEYOND_THE_LOG, "points past the end of the log", f"below {self._log_size}", entry.position
                )
            else:
                rising = rising and entry.position >= previous
                previous = entry.position
                held.append((entry.position, slot))
                continue
            self.faults[slot] = fault
        if rising and not self.faults:
            return range(len(held))
        return [slot for _, slot in sorted(held)]

    def _advance(self, at: int) -> None:
        self._at = at
        if at < len(self._slots):
            relative, self.next_position = self.index.stored(self._slots[at])
            self._offset = self.index.base_offset + relative
        else:
            self.next_position = INT64_END

    def batch(self, batch: RecordBatch, last: int) -> bool:
        """Compare the next batch with its entries. ``last``: its last offset. Return whether an entry points to it."""
        met = False
        position, end = batch.position, batch.position + batch.size
        if self.next_position < end:
            if self._pending is not None:
                self._give_up()
            while self.next_position < end:
                slot = self._slots[self._at]
                if self.next_position == position:
                    met = True
                    self.met_slot = slot
                    self._judge(slot, self._offset, batch, last)
                else:
                    text = f"points into the batch at byte {position}"
                    fault = Fault(Code.POSITION, text, f"{position} or {end}", self.next_position)
                    self.faults[slot] = fault
                self._advance(self._at + 1)
        elif self._pending is not None:
            self._append_ends(self._pending, last)
        self._gaps.batch(batch, met)
        self._previous_last = last
        return met

    def free(self, run: Run, row: int) -> int:
        """Return the number of the first batch, from ``row`` on, that may have an entry, or the batch count."""
        if self._pending is not None:
            return row
        if self.next_position >= run.end:
            return run.batch_count
        if run.field("position", row) == self.next_position:  # usual for batches larger than index.interval.bytes
            return row
        at = bisect_left(range(run.batch_count), self.next_position, row, key=lambda at: run.field("position", at))
        is_there = at < run.batch_count and run.field("position", at) == self.next_position
        return at if is_there else max(row, at - 1)

    def pass_over(self, position: int, last: int) -> None:
        """Skip batches without an entry. The last of them begins at ``position`` and has last offset ``last``."""
        self._gaps.pass_over(position)
        self._previous_last = last

    def _judge(self, slot: int, offset: int, batch: RecordBatch, last: int) -> None:
        if offset == last and batch.magic >= 2:
            self._verdicts[slot] = LAST if batch.base_offset != last else EITHER
            return
        first = self._first_offset(batch)
        if offset == last:
            self._verdicts[slot] = EITHER if first in (last, None) else LAST
        elif first is None:
            self._verdicts[slot] = EITHER
        elif offset == first:
            self._verdicts[slot] = FIRST
        elif offset > last:
            self._give_up()
            self._pending = slot
        else:
            if offset <= self._previous_last:
                text = "names an offset in an earlier batch than the one at its position"
            elif offset < first:
                text = "names an offset in a gap before the batch at its position"
            else:
                text = "names an offset inside the batch at its position"
            expected = f"{last} (the batch at byte {batch.position} holds {first} to {last})"
            self.faults[slot] = Fault(Code.OFFSET, text, expected, offset)

    def _first_offset(self, batch: RecordBatch) -> int | None:
        try:
            return batch.base_offset
        except DamageError as damage:
            self.first_fault_of_log = self.first_fault_of_log or in_batch(damage, batch)
            return None

    def _append_ends(self, slot: int, last: int) -> None:
        offset = self.index[slot].offset
        if last >= offset:
            self._pending = None
        if last == offset:
            self._verdicts[slot] = APPEND
        elif last > offset:
            self._no_end(slot, NO_END)

    def _give_up(self) -> None:
        """Add the fault of the pending entry, if there is one: its offset was not found before the next entry."""
        if self._pending is not None:
            self._no_end(self._pending, NO_END)
            self._pending = None

    def _no_end(self, slot: int, text: str) -> None:
        entry = self.index[slot]
        self.faults[slot] = Fault(
            Code.OFFSET, text, f"the last offset of the batch at byte {entry.position}", entry.offset
        )

    def finish(self, valid_end: int, *, closed: bool, readable: bool = True) -> Iterator[Finding]:
        """Yield the findings. ``valid_end`` is the position after the last batch that was read.

        ``closed``: no broker writes to the segment. If not ``readable``, the log is damaged at ``valid_end``: later
        entries are not compared with it.
        """
        if self._pending is not None:
            if readable:
                self._no_end(
                    self._pending,
                    f"names an offset past the end of the log, whose last offset is {self._previous_last}",
                )
            self._pending = None
        unread = self._slots[self._at :]
        if not readable:
            self.faults = {slot: fault for slot, fault in self.faults.items() if fault.kind != Code.BEYOND_THE_LOG}
        if readable and self._log_size is not None:
            for slot in unread:
                text = "points past the last whole batch"
                self.faults[slot] = Fault(Code.BEYOND_THE_LOG, text, f"below {valid_end}", self.index[slot].position)
        yield from self.of_size(self.index.size, self.index.layout.size)
        yield from self._entries()
        yield from self._remarks(closed=closed)

    def _entries(self) -> Iterator[Finding]:
        if not self.index.filled or (self._rises and not self.faults and FIRST not in self._verdicts):
            return
        good = OffsetPosition(self.index.base_offset - 1, 0)
        names_last = False
        lost = first_beyond(self.faults, self.index.filled)
        for slot, entry in enumerate(self.index):
            if slot > lost:
                break
            fault = self.faults.get(slot)
            verdict = self._verdicts[slot]
            if fault is None and (entry.offset <= good.offset or entry.position <= good.position):
                of_offset = entry.offset <= good.offset
                was, found = (good.offset, entry.offset) if of_offset else (good.position, entry.position)
                what = "an offset" if of_offset else "a position"
                fault = Fault(Code.ORDER, f"has {what} at or below that of an earlier entry", f"above {was}", found)
            if fault is None and verdict == FIRST and names_last:
                fault = Fault(
                    Code.OFFSET,
                    "has the first offset of its batch, but earlier entries have the last offset of theirs",
                    "the batch's last offset",
                    entry.offset,
                )
            if fault is None:
                good = entry
                names_last = names_last or verdict in (LAST, APPEND)
                continue
            self.faults[slot] = fault
            tail = and_all_after(slot, lost, self.index.filled)
            what = f"offset {entry.offset}, position {entry.position}"
            yield self.of_entry(slot, what, fault, self.index.layout.size, tail)

    @property
    def conventions(self) -> dict[int, int]:
        """Kind of offset (FIRST, LAST, APPEND) -> number of entries with it. Entries that fit two are omitted."""
        return {verdict: count for verdict in CONVENTIONS if (count := self._verdicts.count(verdict))}

    def _remarks(self, *, closed: bool) -> Iterator[Finding]:
        for verdict, count in self.conventions.items() if self._verdicts else ():
            sentence = f"{many(count, 'entry names', 'entries name')} the {CONVENTIONS[verdict]}"
            yield self.finding(Code.CONVENTION, sentence, level=Level.REMARK, found=count)
        if not self.index.filled:
            yield self.finding(Code.EMPTY, "the index has no entries", level=Level.REMARK)
        elif self.index.zero_tail:
            text = f"{self.index.zero_tail} bytes of zeros follow the entries"
            position = self.index.position(self.index.filled)
            yield self.finding(Code.ZERO_TAIL, text, level=Level.REMARK, position=position)
        hole = None if self.faults else self._gaps.hole(closed=closed)
        if hole is not None:
            yield self.finding(
                Code.COVERAGE,
                f"the {hole.gap} bytes of log before byte {hole.position} have no entry, but other entries are only "
                f"{hole.indexed} bytes apart. This is normal after a restart of the broker",
                level=Level.REMARK,
                expected=f"an entry every {hole.indexed} bytes or less",
                found=hole.gap,
            )


def first_beyond(faults: dict[int, Fault], count: int) -> int:
    """Return the number of the first of two or more last entries that point past the log; else ``count``."""
    slot = count
    while slot and slot - 1 in faults and faults[slot - 1].kind == Code.BEYOND_THE_LOG:
        slot -= 1
    return slot if count - slot > 1 else count


def and_all_after(slot: int, lost: int, count: int) -> str:
    """Return the end of the message on entry ``slot``; "" unless it is ``lost``, the result of :func:`first_beyond`."""
    if slot != lost:
        return ""
    others = count - slot - 1
    also = "the last entry does too" if others == 1 else f"all {others} later entries do too"
    return f" ({also}): the log is truncated, or the index belongs to another log"


class EntryGap(NamedTuple):
    """The longest range without an entry: its bytes and its end. ``indexed``: smallest distance between entries."""

    gap: int
    position: int
    indexed: int


_NONE: Final = (0, 0)


class Gaps:
    """Measures the distances between entries, which suggest index.interval.bytes. The log start counts as an entry."""

    def __init__(self) -> None:
        self._previous = 0
        self._smallest_indexed = INT64_END
        self._open = _NONE
        self._widest = _NONE
        self._legacy = False

    def batch(self, batch: RecordBatch, indexed: bool) -> None:
        """Measure the next batch. If it is of magic 0 or 1, :meth:`hole` returns None: messages may share an entry."""
        self._legacy = self._legacy or batch.magic < 2
        position = batch.position
        gap = position - self._previous
        if indexed:
            if gap < self._smallest_indexed:  # noqa: PLR1730  min() and max() cost more than the other code here
                self._smallest_indexed = gap
            if self._open > self._widest:  # noqa: PLR1730  faster than max()
                self._widest = self._open
            self._previous, self._open = position, _NONE
        else:
            self.pass_over(position)

    def pass_over(self, position: int) -> None:
        """Skip batches of magic 2 without an entry. The last of them begins at ``position``."""
        gap = position - self._previous
        if gap > self._open[0]:
            self._open = (gap, position)

    def hole(self, *, closed: bool) -> EntryGap | None:
        """Return the longest range from an entry to a later batch, without an entry in between.

        Batches after the last entry count only if ``closed``. The result is None for a log with magic 0 or 1, and if
        the range is shorter than all distances between entries.
        """
        gap, position = max(self._widest, self._open) if closed else self._widest
        if self._legacy or gap < self._smallest_indexed:
            return None
        return EntryGap(gap, position, self._smallest_indexed)
