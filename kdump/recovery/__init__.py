"""Simulates how a broker recovers one log at its start, and makes the indexes that it rebuilds. Changes no file."""

from typing import NamedTuple


class SoundLog(NamedTuple):
    """A log whose batches are known to be valid and in order. ``end`` is the log end offset."""

    end: int
    has_sound_indexes: bool = False
    """Whether a broker that uses the indexes finds the log end offset."""
