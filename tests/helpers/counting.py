"""Counts of work: tests assert these in place of seconds, which depend on the machine and its load."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def calls(work: Callable[[], object]) -> int:
    """Return how many functions, of Python and C, ``work`` calls in this thread."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


class CountedBytes(bytes):
    """Bytes that count how many bytes are copied from them in slices."""

    copied = 0

    def __getitem__(self, index):
        found = super().__getitem__(index)
        if isinstance(index, slice):
            self.copied += len(found)
        return found


def is_linear(few: int, many: int) -> bool:
    """Return whether four times as much took at most five times the work."""
    return few > 0 and many <= 5 * few
