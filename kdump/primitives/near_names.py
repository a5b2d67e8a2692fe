"""The name that somebody may have meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``; did you mean 'txn'?`` with the known name that is nearest to ``name``; nothing where none is near."""
    from difflib import get_close_matches

    names = sorted(known)
    alike = [other for other in names if other.lower() == name.lower()]
    near = alike or get_close_matches(name, names, 1)
    return f"; did you mean {near[0]!r}?" if near else ""
