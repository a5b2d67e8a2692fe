"""Dates and times of Avro and Protobuf as text."""

from __future__ import annotations

from datetime import date
from functools import lru_cache
from typing import Final

_EPOCH: Final = date(1970, 1, 1).toordinal()
FIRST_DAY: Final = 1 - _EPOCH
"""0001-01-01 in days since 1970-01-01; LAST_DAY is 9999-12-31."""
LAST_DAY: Final = date.max.toordinal() - _EPOCH


@lru_cache(maxsize=4096)
def day(days: int) -> str:
    """Return a number of days since 1970, from FIRST_DAY to LAST_DAY, as ``2026-11-21``."""
    return date.fromordinal(days + _EPOCH).isoformat()


def date_text(days: int) -> str | int:
    """Return days since 1970 as a date; outside the years 1 to 9999, return ``days``."""
    return day(days) if FIRST_DAY <= days <= LAST_DAY else days


def time_text(value: int, digits: int) -> str | int:
    """Return a time of day in units of 10**-digits s as ``10:11:12.345``; outside 24 hours, return ``value``."""
    seconds, fraction = divmod(value, 10**digits)
    if not 0 <= seconds < 86400:
        return value
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour:02d}:{minute:02d}:{second:02d}.{fraction:0{digits}d}"


def timestamp_text(value: int, digits: int, zone: str) -> str | int:
    """Return a time since 1970 in 10**-digits s as ISO 8601 with ``zone``; ``value`` outside the years 1 to 9999."""
    days, rest = divmod(value, 86400 * 10**digits)
    if not FIRST_DAY <= days <= LAST_DAY:
        return value
    return f"{day(days)}T{time_text(rest, digits)}{zone}"


def fraction(nanoseconds: int) -> str:
    """Return the fraction of a second with 3, 6 or 9 digits: the fewest that show it."""
    digits = f"{nanoseconds:09d}"
    return digits[:3] if digits.endswith("000000") else digits[:6] if digits.endswith("000") else digits
