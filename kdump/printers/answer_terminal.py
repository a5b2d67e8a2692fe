"""Answers on a terminal: tables in its width, drawn with rich."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from kdump.primitives.terminal import harmless_line
from kdump.printers.table import Quiet

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console

    from kdump.printers.answer_lines import AnswerTable

WHOLE: Final = 24
"""Characters up to which a text is never folded: times are as long."""
GAP: Final = 2
"""Columns between two cells."""


def draw(tables: Iterable[AnswerTable], out: IO[str], width: int | None = None) -> None:
    """Draw tables one after the other, in ``width`` columns, by default those of the terminal.

    Numbers, times and names stay whole, sentences are folded. Where a line has no room for that, each row is a block.
    """
    console = Quiet(file=out, highlight=False, width=width)
    for number, table in enumerate(tables):
        if number:
            console.print()
        if table.title:
            console.print(Text(harmless_line(table.title), style="bold"))
        if not table.rows:
            continue
        rows = [["-" if cell is None else harmless_line(str(cell)) for cell in row] for row in table.rows]
        widths = [max(map(len, column)) for column in zip(table.columns, *rows, strict=True)]
        if sum(min(wide, WHOLE) + GAP for wide in widths) - GAP > console.width:
            _draw_blocks(console, table, rows)
        else:
            _draw_table(console, table, rows, widths)


def _draw_table(console: Console, table: AnswerTable, rows: Sequence[Sequence[str]], widths: Sequence[int]) -> None:
    drawn = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold cyan")
    for name, wide in zip(table.columns, widths, strict=True):
        justify = "right" if name in table.right else "left"
        is_whole = wide <= WHOLE
        drawn.add_column(
            name,
            justify=justify,  # type: ignore[arg-type]  # one of the two words
            no_wrap=is_whole,
            min_width=wide if is_whole else WHOLE,
            overflow="fold",
        )
    for row in rows:
        drawn.add_row(*map(Text, row))
    console.print(drawn)


def _draw_blocks(console: Console, table: AnswerTable, rows: Sequence[Sequence[str]]) -> None:
    """Draw each row as a block of its own: a name and its value to a line."""
    widest = max(map(len, table.columns))
    for number, row in enumerate(rows):
        if number:
            console.print()
        block = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), show_header=False)
        block.add_column(style="cyan", no_wrap=True, min_width=widest)
        block.add_column(overflow="fold")
        for name, cell in zip(table.columns, row, strict=True):
            block.add_row(Text(name), Text(cell))
        console.print(block)
