"""Simulates how a broker recovers one log at its start, and makes the indexes that it rebuilds. Changes no file."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class SoundLog(NamedTuple):
    """A log whose batches are known to be valid and in order. ``end`` is the log end offset."""

    end: int
    has_sound_indexes: bool = False
    """Whether a broker that uses the indexes finds the log end offset."""
    is_plain: bool = False
    """Whether the folder is :attr:`kdump.log_dirs.partition.Partition.is_plain`."""


def first_recovered(bases: Sequence[int], recovery_point: int) -> int:
    """Return the number of the first segment, by sorted base offsets, that recovery reads after an unclean stop."""
    return max(bisect_right(bases, recovery_point) - 1, 0)
