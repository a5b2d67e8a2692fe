"""Timestamps in ms: the clock's, and as text."""

from __future__ import annotations

import time
from datetime import date
from functools import lru_cache
from typing import Final

_EPOCH: Final = date(1970, 1, 1).toordinal()
_DAY: Final = 86_400_000
_UNITS: Final = ((_DAY, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))
NONE: Final = -1
"""The timestamp of a batch or record without one."""
FIRST, LAST = (date.min.toordinal() - _EPOCH) * _DAY, (date.max.toordinal() - _EPOCH + 1) * _DAY


@lru_cache(maxsize=1024)
def _second(seconds: int) -> str:
    day, rest = divmod(seconds, 86_400)
    return f"{date.fromordinal(_EPOCH + day).isoformat()}T{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}."


def now() -> int:
    """Return the current time in ms since 1970."""
    return int(time.time() * 1000)


def iso_or_ms(timestamp: int) -> str:
    """Return a timestamp in ms as ISO 8601 in UTC, as a number of ms where that has no name for it."""
    return iso(timestamp) or f"{timestamp} ms"


def for_people(timestamp: int | None) -> str | None:
    """Return a timestamp in ms for a table: None for none, -1; a number of ms where ISO 8601 has no name for it."""
    return None if timestamp is None or timestamp == NONE else iso_or_ms(timestamp)


def iso(timestamp: int) -> str | None:
    """Return a timestamp in ms as ISO 8601 in UTC; None for -1, which is none, and outside the years 1 to 9999."""
    if timestamp == NONE or not FIRST <= timestamp < LAST:
        return None
    seconds, rest = divmod(timestamp, 1000)
    return f"{_second(seconds)}{rest:03}Z"


def span(ms: int) -> str:
    """Return a length of time in ms for people: its largest unit, rounded down."""
    size, unit = next(((size, unit) for size, unit in _UNITS if abs(ms) >= size), (1, "ms"))
    return f"{ms // size} {unit}" if ms >= 0 else f"-{-ms // size} {unit}"
