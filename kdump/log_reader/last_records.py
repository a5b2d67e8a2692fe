"""Finds the byte ranges of a segment that hold its last selected records, without keeping the records in memory.

The caller reads a segment in parts from its end (:func:`backwards`) until it has enough records.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.errors import UnreadableError
from kdump.formats.record_layout import LOG_OVERHEAD, SMALLEST_ENTRY
from kdump.log_dirs import local
from kdump.parallel.costs import SegmentPart
from kdump.rows.selection import DamagedRange, SelectedBatch
from kdump.segments.index_lookup import SMALL, Seeker
from kdump.segments.walk import is_sound_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from kdump.log_dirs.files import Source
    from kdump.log_dirs.partition import Segment

RANGE_BYTES: Final = 1 << 16
"""Consecutive items become one range of up to this size in bytes."""


class TailRange(NamedTuple):
    """The bytes from ``start`` to ``end`` (exclusive), which hold ``held`` selected records or batches."""

    start: int
    end: int
    held: int
    crc_valid: bool
    """Whether the checksums of all these batches are right; if not, all are wrong."""


class TailRanges:
    """Part of a segment: its damaged ranges (``lost``), and the byte ranges of its last selected records or batches."""

    def __init__(
        self, items: Iterable[SelectedBatch | DamagedRange], most: int, size: Callable[[SelectedBatch], int]
    ) -> None:
        """Find ranges with the last ``most`` records or batches, and perhaps more. ``size`` counts those of an item."""
        self.lost: list[DamagedRange] = []
        self.held = 0
        self._most = most
        self._numbers = array("q")
        self._from = 0
        self._is_cut = True
        for item in items:
            if isinstance(item, DamagedRange):
                self.lost.append(item)
                self._is_cut = True
            else:
                self._add(item, size(item))

    def _add(self, item: SelectedBatch, count: int) -> None:
        start = item.batch.position
        end = item.end
        numbers = self._numbers
        self.held += count
        if (
            not self._is_cut
            and (numbers[-3] == start or (numbers[-3] < start and item.crc_valid))
            and end - numbers[-4] <= RANGE_BYTES
            and numbers[-1] == item.crc_valid
        ):
            numbers[-3] = end
            numbers[-2] += count
        else:
            numbers.extend((start, end, count, item.crc_valid))
            self._is_cut = False
        while self.held - numbers[self._from + 2] >= self._most:
            self.held -= numbers[self._from + 2]
            self._from += len(TailRange._fields)

    @property
    def is_empty(self) -> bool:
        return not self._numbers

    def ranges(self) -> Iterator[TailRange]:
        width = len(TailRange._fields)
        for at in range(self._from, len(self._numbers), width):
            start, end, held, crc_valid = self._numbers[at : at + width]
            yield TailRange(start, end, held, bool(crc_valid))


def joined(parts: Iterable[TailRanges]) -> Iterator[TailRange]:
    """Yield the ranges of all parts. Adjacent ranges with the same ``crc_valid`` become one."""
    last: TailRange | None = None
    for one in chain.from_iterable(part.ranges() for part in parts):
        if last is None:
            last = one
        elif (last.end, last.crc_valid) == (one.start, one.crc_valid):
            last = last._replace(end=one.end, held=last.held + one.held)
        else:
            yield last
            last = one
    if last is not None:
        yield last


def without_first(
    items: Iterator[SelectedBatch],
    less: int,
    size: Callable[[SelectedBatch], int],
    last: Callable[[SelectedBatch, int], Iterator[SelectedBatch]],
) -> Iterator[SelectedBatch]:
    """Yield the items without the first ``less`` records or batches. Leading empty items are dropped.

    ``size`` returns the number of records or batches in an item. ``last(item, n)`` yields its last ``n`` of them.
    """
    for item in items:
        held = size(item)
        if held > less:
            yield from last(item, held - less) if less else (item,)
            yield from items
            return
        less -= held


FIRST: Final = 1 << 18
"""Approximate size in bytes of the part at the end. Each earlier part is twice as large, up to MOST."""
MOST: Final = 1 << 24
AT_ONCE: Final = 1 << 12
"""Bytes per read while only the length fields of small batches are read."""


def backwards(segment: Segment) -> Iterator[SegmentPart]:
    """Yield the parts of a segment from the last to the first. Each starts at a valid batch or at byte 0.

    A small segment, or one that is not a local file, is one part. Raises UnreadableError if it cannot be opened.
    """
    with segment.open() as source:
        stop, size = source.size, FIRST
        start_before: Callable[[int], int] = lambda _: 0  # noqa: E731  makes one part
        if isinstance(source, local.LocalFile) and stop > SMALL:
            start_before = _starts(segment, source)
        while stop:
            try:
                start = start_before(max(0, stop - size))
            except UnreadableError:  # the reader of the part reports it
                start = 0
            yield SegmentPart(start, stop)
            stop, size = start, min(2 * size, MOST)


def _starts(segment: Segment, source: Source) -> Callable[[int], int]:
    """Return a function: position -> start of a valid batch at or before this position, or 0 if none is known."""
    seeker = Seeker(segment, source, lambda _: None)  # without a valid index the length fields are followed
    if seeker.offset_index:
        return seeker.by_position
    starts = _apart(source)

    def start_before(position: int) -> int:
        at = bisect_right(starts, position) - 1
        while at and not is_sound_at(source, starts[at]):
            at -= 1
        return starts[at]

    return start_before


def _apart(source: Source) -> list[int]:
    """Return positions of batches, FIRST bytes or more apart, by length fields up to the first invalid length."""
    starts = [0]
    position = at = size = 0
    block = b""
    while True:
        if at + LOG_OVERHEAD.size > len(block):
            try:
                block, at = source.read(position, AT_ONCE if 4 * size < AT_ONCE else LOG_OVERHEAD.size), 0
            except UnreadableError:  # the reader of the part reports it
                break
            if len(block) < LOG_OVERHEAD.size:
                break
        size = LOG_OVERHEAD.size + LOG_OVERHEAD.read(block, at).size
        if size < LOG_OVERHEAD.size + SMALLEST_ENTRY:
            break
        position += size
        at += size
        if position - starts[-1] >= FIRST:
            starts.append(position)
    return starts
