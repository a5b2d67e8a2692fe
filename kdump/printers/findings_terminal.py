"""Findings on a terminal: the lines of a pipe, coloured and folded to a readable width."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.primitives.messages import folded
from kdump.primitives.terminal import harmless_line, has_colours, prose_width
from kdump.printers.findings_report import WORD, PlainReport

if TYPE_CHECKING:
    from typing import IO

    from kdump.printers.findings_report import Shown, Tone

STYLES: Final[dict[Tone, str]] = {"title": "1", "note": "2", "derived": "33", "log": "1;31", "good": "1;32", "": ""}
"""SGR parameters."""


class TerminalReport(PlainReport):
    """Prints findings on a terminal. A finding has the colour of its level in its first word, other lines in all."""

    is_timed = True

    def __init__(self, out: IO[str], show: Shown) -> None:
        super().__init__(out, show)
        self._width = prose_width()
        self._has_colours = has_colours(out, 1)

    def _say(self, text: str, tone: Tone = "", indent: int = 0, *, word: str = "") -> None:
        text, before = harmless_line(text), f"  {word:{WORD}}" if word else ""
        first = len(before) or indent
        lines = [text] if text.startswith("kdump ") else folded(text, self._width - first, indent=0 if word else 2)
        style = STYLES[tone] if self._has_colours else ""
        for number, line in enumerate(lines):
            start = " " * first if number or not before else before
            shown = (
                f"{start}{line}" if not style else f"{_in(style, start)}{line}" if word else _in(style, start + line)
            )
            self._out.write(f"{shown}\n")


def _in(style: str, text: str) -> str:
    return f"\x1b[{style}m{text}\x1b[m" if text.strip() else text
