"""The current time, and timestamps (ms since 1970) as text."""

from __future__ import annotations

import time
from datetime import date
from functools import lru_cache
from typing import Final

_EPOCH: Final = date(1970, 1, 1).toordinal()
_DAY: Final = 86_400_000
_UNITS: Final = ((_DAY, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))
NONE: Final = -1
"""The stored value of a missing timestamp."""
FIRST, LAST = (date.min.toordinal() - _EPOCH) * _DAY, (date.max.toordinal() - _EPOCH + 1) * _DAY


@lru_cache(maxsize=1024)
def _second(seconds: int) -> str:
    day, rest = divmod(seconds, 86_400)
    return f"{date.fromordinal(_EPOCH + day).isoformat()}T{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}."


def now() -> int:
    return int(time.time() * 1000)


def iso_or_ms(timestamp: int) -> str:
    """Return a timestamp as ISO 8601 in UTC; as ``N ms`` for -1 and outside of the years 1 to 9999."""
    return iso(timestamp) or f"{timestamp} ms"


def for_people(timestamp: int | None) -> str | None:
    """Return :func:`iso_or_ms`, or None for None and -1."""
    return None if timestamp is None or timestamp == NONE else iso_or_ms(timestamp)


def iso(timestamp: int) -> str | None:
    """Return a timestamp as ISO 8601 in UTC; None for -1 and outside of the years 1 to 9999."""
    if timestamp == NONE or not FIRST <= timestamp < LAST:
        return None
    seconds, rest = divmod(timestamp, 1000)
    return f"{_second(seconds)}{rest:03}Z"


def span(ms: int) -> str:
    """Return a duration in ms as a number of its largest unit, rounded down, such as ``3 h``."""
    size, unit = next(((size, unit) for size, unit in _UNITS if abs(ms) >= size), (1, "ms"))
    return f"{ms // size} {unit}" if ms >= 0 else f"-{-ms // size} {unit}"
