"""Answers on a terminal: tables in its width."""

from __future__ import annotations

from textwrap import wrap
from typing import IO, TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.text import Text

from kdump.primitives.terminal import harmless_line
from kdump.printers.table import Quiet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

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
        widths = [max(map(cell_len, column)) for column in zip(table.columns, *rows, strict=True)]
        if sum(min(wide, WHOLE) + GAP for wide in widths) - GAP > console.width:
            lines = _blocks(console, table, rows)
        else:
            lines = _lines(console, table, rows, _fitting(widths, console.width))
        for line in lines:
            out.write(line + "\n")


def _fitting(widths: Sequence[int], most: int) -> list[int]:
    """Return widths of columns that fit into ``most``: the wide ones give way, down to WHOLE."""
    room = most - GAP * (len(widths) - 1)
    found = list(widths)
    left = len(widths)
    for number in sorted(range(len(widths)), key=widths.__getitem__):
        found[number] = min(widths[number], max(WHOLE, room // left))
        room -= found[number]
        left -= 1
    return found


def _lines(console: Quiet, table: AnswerTable, rows: Sequence[Sequence[str]], widths: Sequence[int]) -> Iterator[str]:
    """Yield a line for each row, more where cells are folded."""
    right = [name in table.right for name in table.columns]
    yield from (_styled(console, line, "bold cyan") for line in _row(table.columns, widths, right))
    for row in rows:
        yield from _row(row, widths, right)


def _row(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> Iterator[str]:
    folded = [_fold(cell, width) for cell, width in zip(row, widths, strict=True)]
    for number in range(max(map(len, folded))):
        cells = (lines[number] if number < len(lines) else "" for lines in folded)
        padded = (
            " " * (width - cell_len(cell)) + cell if is_right else cell + " " * (width - cell_len(cell))
            for cell, width, is_right in zip(cells, widths, right, strict=True)
        )
        yield (" " * GAP).join(padded).rstrip()


def _blocks(console: Quiet, table: AnswerTable, rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a block for each row: a name and its value to a line."""
    widest = max(map(cell_len, table.columns)) + GAP
    room = max(1, console.width - widest)
    names = [_styled(console, name, "cyan") + " " * (widest - cell_len(name)) for name in table.columns]
    for number, row in enumerate(rows):
        if number:
            yield ""
        for name, cell in zip(names, row, strict=True):
            first, *others = _fold(cell, room)
            yield name + first
            yield from (" " * widest + line for line in others)


def _fold(cell: str, width: int) -> list[str]:
    """Return the lines of a text in so many columns."""
    if cell_len(cell) <= width:
        return [cell]
    if cell.isascii():
        return wrap(cell, width, break_on_hyphens=False) or [""]
    return [line.plain for line in Text(cell).wrap(Quiet(width=width), width)]


def _styled(console: Quiet, text: str, style: str) -> str:
    with console.capture() as drawn:
        console.print(Text(text, style=style), end="", soft_wrap=True)
    return drawn.get()
