"""What every command that reads logs shares: words on standard error, the exit status, progress."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Final

import click

from kdump.text import harmless_line

if TYPE_CHECKING:
    from kdump.errors import UnreadableError

UNREADABLE, DAMAGED, DERIVED = 1, 3, 4
"""Exit statuses; of several the first of these counts."""
_EVERY: Final = 0.2
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


@dataclass
class Session:
    """One run of a command. Whatever is said goes to standard error; what was met makes the exit status."""

    quiet: bool = False
    met: set[int] = field(default_factory=set)
    progress: Progress | None = None
    _failed: set[str] = field(default_factory=set)

    def note(self, text: str) -> None:
        """Say something that changes nothing."""
        if not self.quiet:
            self._say(text)

    def fail(self, error: UnreadableError) -> None:
        """Say what cannot be read, once."""
        self.met.add(UNREADABLE)
        if str(error) not in self._failed:
            self._failed.add(str(error))
            self._say(str(error))

    def wrong_index(self, text: str) -> None:
        """Say what is wrong with a file that can be made again from the log."""
        self.met.add(DERIVED)
        self._say(f"{text}; it is not used (kdump verify-index says more)")

    def damage(self, text: str) -> None:
        """Say what is damaged."""
        self.met.add(DAMAGED)
        self._say(text)

    @property
    def status(self) -> int:
        """The exit status."""
        return next((status for status in (UNREADABLE, DAMAGED, DERIVED) if status in self.met), 0)

    def _say(self, text: str) -> None:
        if self.progress is not None:
            self.progress.clear()
        click.echo(f"kdump: {harmless_line(text)}", err=True)


class Progress:
    """Bytes done and time left, in one line of a terminal."""

    def __init__(self, total: int, out: IO[str] | None = None) -> None:
        self.total = total
        self.done = 0
        self._out = out or sys.stderr
        self._began = time.monotonic()
        self._shown = self._began
        self._length = 0

    def __call__(self, count: int) -> None:
        """Count bytes that are done with."""
        self.done += count
        now = time.monotonic()
        if now - self._shown >= _EVERY:
            self._shown = now
            self._show(now - self._began)

    def _show(self, seconds: float) -> None:
        line = f"{size(self.done)} of {size(self.total)}"
        if self.done and self.total:
            left = max(0, round(seconds * (self.total - self.done) / self.done))
            line = f"{min(100, 100 * self.done // self.total):3}%  {line}  {left // 60}:{left % 60:02} left"
        self._out.write("\r" + line.ljust(self._length))
        self._out.flush()
        self._length = len(line)

    def clear(self) -> None:
        """Take the line away."""
        if self._length:
            self._out.write("\r" + " " * self._length + "\r")
            self._out.flush()
            self._length = 0


def progress(total: int) -> Progress | None:
    """Return a progress line, None where nobody would see it, or where it would stand among the output."""
    return Progress(total) if sys.stderr.isatty() and not sys.stdout.isatty() else None


def size(count: float) -> str:
    """Return a number of bytes for people."""
    unit = 0
    while count >= 1024 and unit < len(_UNITS) - 1:
        count, unit = count / 1024, unit + 1
    return f"{count:.1f} {_UNITS[unit]}" if unit else f"{count} B"
