"""Holds whether readers may start threads: not with ``--jobs 1``, nor in workers made with ``threads=False``."""

from __future__ import annotations

_allowed = True


def start_none() -> None:
    """Forbid threads of readers in this process from now on."""
    global _allowed  # noqa: PLW0603  it is set once in the life of a process
    _allowed = False


def allowed() -> bool:
    return _allowed
