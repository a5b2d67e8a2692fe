"""Simulates how a broker recovers one log at a start, and makes the indexes that a broker rebuilds. Changes no file."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_OFFSET: Final = (1 << 63) - 1


class SoundLog(NamedTuple):
    """A log whose batches are known to be valid and in order. ``end`` is the log end offset."""

    end: int
    has_sound_indexes: bool = False
    """Whether a broker finds the log end offset by the indexes."""
    is_plain: bool = False
    """Whether the folder is :attr:`kdump.log_dirs.partition.Partition.is_plain`."""


def first_recovered(bases: Sequence[int], recovery_point: int) -> int:
    """Return the index, in the sorted ``bases``, of the first segment that recovery reads after an unclean stop.

    For the highest 64-bit number no segment is read: ``LogSegments.values`` finds an empty range.
    """
    return len(bases) if recovery_point == MAX_OFFSET else max(bisect_right(bases, recovery_point) - 1, 0)
