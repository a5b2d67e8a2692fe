"""Formats timestamps (ms since 1970) and durations, and parses those that users write; returns the current time."""

from __future__ import annotations

import re
import time
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from kdump.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import tzinfo

_EPOCH: Final = date(1970, 1, 1).toordinal()
_START: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY: Final = 86_400_000
_UNITS: Final = ((_DAY, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))
_SPANS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_AGO: Final = r"-(?:\d{1,20}(?:ms|[smhdw]))+"
LEAST_MS: Final = 10**11
"""The smallest positive number that is accepted as a time in ms. Smaller numbers are probably seconds."""
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
    """Return :func:`iso_or_ms` of a timestamp; None if there is no timestamp (None or -1)."""
    return None if timestamp is None or timestamp == NONE else iso_or_ms(timestamp)


def iso(timestamp: int) -> str | None:
    """Return a timestamp as ISO 8601 in UTC; None for -1 and outside of the years 1 to 9999."""
    if timestamp == NONE or not FIRST <= timestamp < LAST:
        return None
    seconds, rest = divmod(timestamp, 1000)
    return f"{_second(seconds)}{rest:03}Z"


def span(ms: int) -> str:
    """Return a duration in ms as text in its largest unit, rounded towards 0, such as ``3 h``."""
    size, unit = next(((size, unit) for size, unit in _UNITS if abs(ms) >= size), (1, "ms"))
    return f"{ms // size} {unit}" if ms >= 0 else f"-{-ms // size} {unit}"


def moment(text: str, now: Callable[[], float] = time.time, tz: tzinfo = UTC, *, least_ms: int = LEAST_MS) -> int:
    """Parse ISO 8601 (in ``tz`` unless it has an offset), ms since 1970, or an age (``-2h30m``); return ms since 1970.

    Eight digits are a date; a negative number has nine or more. In ISO 8601 fractions of a ms are rounded up (after
    six digits cut): the time works as inclusive start and exclusive end. Raises UsageError for other text, and for 1 to
    ``least_ms`` - 1, which are probably seconds.
    """
    if re.fullmatch(_AGO, text):
        return int(now() * 1000) - _span(text)
    if re.fullmatch(r"-?\d{9,20}|\d{1,7}", text, re.ASCII):
        return _milliseconds(int(text), least_ms)
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{text!r} is not a time: write it as 2026-11-21T09:05:00Z, 1700000000000 (ms since 1970) or -2h30m"
        ) from None
    return rounded_up(when if when.tzinfo else when.replace(tzinfo=tz))


def rounded_up(when: datetime) -> int:
    """Return a time with a zone in ms since 1970. Fractions of a ms are rounded up."""
    return -((_START - when) // timedelta(milliseconds=1))


def _milliseconds(number: int, least: int) -> int:
    if 0 < number < least:
        raise UsageError(
            f"{number} means {iso(number)} if it is in ms since 1970, or {iso(number * 1000)} if it is in seconds. "
            f"Write {number * 1000} for seconds, or {iso(number)} for ms"
        )
    return number


def duration(text: str) -> int:
    """Parse a duration such as ``15m``, ``7d``, ``1h30m``, ``500ms``; return ms. Raises UsageError."""
    if not re.fullmatch(_AGO, f"-{text}"):
        raise UsageError(f"{text!r} is not a length of time: write it as 15m, 7d or 1h30m")
    return _span(text)


def _span(text: str) -> int:
    return sum(int(number) * _SPANS[unit] for number, unit in re.findall(r"(\d+)(ms|[smhdw])", text))
