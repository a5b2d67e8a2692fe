"""Ranges of offsets that are looked up many times."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class OffsetSpan(NamedTuple):
    """Offsets from ``start`` to before ``stop``."""

    start: int
    stop: int


class OffsetSpans:
    """Ranges in any order; they may overlap."""

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        given = list(ranges)
        self._order = sorted(range(len(given)), key=given.__getitem__)
        self._ranges = [OffsetSpan(*given[number]) for number in self._order]
        self._starts = [one.start for one in self._ranges]
        self._stops = list(accumulate((one.stop for one in self._ranges), max))
        """The highest stop of the ranges up to each one."""

    def meeting(self, start: int, stop: int) -> int | None:
        """Return the number, as given, of the lowest range that shares offsets with this one; None if none does."""
        at = bisect_right(self._stops, start)
        return self._order[at] if at < len(self._ranges) and self._starts[at] < stop else None

    def hold(self, start: int, stop: int) -> bool:
        """Return whether a single range has all offsets of this one."""
        before = bisect_right(self._starts, start)
        return before > 0 and self._stops[before - 1] >= stop

    def common(self, others: Iterable[OffsetSpan]) -> Iterator[OffsetSpan]:
        """Yield the parts of other ranges that are in a range. The others are in order and do not overlap."""
        for other in others:
            end = other.start
            for at in range(bisect_right(self._stops, end), bisect_left(self._starts, other.stop)):
                start, stop = max(self._starts[at], end), min(self._ranges[at].stop, other.stop)
                if start < stop:
                    yield OffsetSpan(start, stop)
                    end = stop
