"""The name that a caller may have meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str], start: str = "; did") -> str:
    """Return ``; did you mean 'txn'?`` with the known name that is nearest to ``name``; nothing where none is near.

    ``start`` is what leads to that, up to the first word.
    """
    near = nearest(name, known)
    return "" if near is None else f"{start} you mean {near!r}?"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is nearest to ``name``, or None if none is near."""
    from difflib import get_close_matches

    names = sorted(known)
    alike = [other for other in names if other.lower() == name.lower()]
    return next(iter(alike or get_close_matches(name, names, 1)), None)
