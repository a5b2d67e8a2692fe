"""Answers on a terminal: tables in its width, drawn with rich."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from kdump.primitives.terminal import harmless_line
from kdump.printers.table import Quiet

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kdump.printers.answer_lines import AnswerTable


def draw(tables: Iterable[AnswerTable], out: IO[str]) -> None:
    """Draw tables one after the other; numbers stay whole, long texts are folded."""
    console = Quiet(file=out, highlight=False)
    for number, table in enumerate(tables):
        if number:
            console.print()
        if table.title:
            console.print(Text(harmless_line(table.title), style="bold"))
        if not table.rows:
            continue
        drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold cyan")
        for name in table.columns:
            is_number = name in table.right
            drawn.add_column(name, justify="right" if is_number else "left", no_wrap=is_number, overflow="fold")
        for row in table.rows:
            drawn.add_row(*(Text("-" if cell is None else harmless_line(str(cell))) for cell in row))
        console.print(drawn)
