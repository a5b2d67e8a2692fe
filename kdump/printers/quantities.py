"""Formats sizes, times and shares for people."""

from __future__ import annotations

from typing import Final

from kdump.primitives.timestamps import iso

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def size(count: float) -> str:
    unit = 0
    while count >= 1024 and unit < len(_UNITS) - 1:
        count, unit = count / 1024, unit + 1
    return f"{count:.{min(unit, 1)}f} {_UNITS[unit]}"


def exact_size(count: int) -> str:
    """Return a number of bytes; from 1 KiB on rounded and exact: ``9.4 MiB (9,837,370 bytes)``."""
    exact = f"{count:,} byte" + ("" if count == 1 else "s")
    return exact if count < 1024 else f"{size(count)} ({exact})"


def pace(count: int, seconds: float) -> str:
    """Return a duration, and bytes per second, as text: ``in 1.2 s, 3.4 MiB/s``."""
    return f"in {seconds:.1f} s, {size(count / max(seconds, 0.001))}/s"


def optional_size(count: float | None) -> str | None:
    return None if count is None else size(count)


def time(ms: int | None) -> str | None:
    """Return a time in ms as ISO 8601 in UTC, without fractions; as a number for -1 and outside the years 1 to 9999."""
    if ms is None:
        return None
    text = iso(ms)
    return str(ms) if text is None else text[:19] + "Z"


def share(part: float, whole: float) -> str | None:
    """Return a percentage; None if the whole is 0."""
    return f"{100 * part / whole:.1f}%" if whole else None
