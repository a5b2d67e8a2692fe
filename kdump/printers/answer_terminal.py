"""Answers on a terminal: tables in its width."""

from __future__ import annotations

from itertools import chain
from textwrap import wrap
from typing import IO, TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.text import Text

from kdump.primitives.terminal import harmless_line
from kdump.printers.table import Quiet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from kdump.printers.answer_lines import AnswerTable

WHOLE: Final = 24
"""Characters up to which a text is never folded: times are as long."""
MANY: Final = 3
"""Rows from which on what all of them share is said once."""
GAP: Final = 2
"""Columns between two cells."""


def draw(tables: Iterable[AnswerTable], out: IO[str], width: int | None = None) -> None:
    """Draw tables one after the other, in ``width`` columns, by default those of the terminal.

    Numbers, times and names stay whole, sentences are folded. Where a line has no room for that, what all rows share is
    said once, above them; then many rows do without columns of ``spare``, which is said too; and where there still is
    no room, each row is a block.
    """
    console = Quiet(file=out, highlight=False, width=width)
    for number, table in enumerate(tables):
        if number:
            console.print()
        if table.title:
            console.print(Text(harmless_line(table.title), style="bold"))
        for line in chain(_drawn(console, table), table.below()):
            out.write(line + "\n")


def _drawn(console: Quiet, table: AnswerTable) -> Iterator[str]:
    """Return the lines of the rows of a table."""
    if not table.rows:
        return iter(())
    rows = [["-" if cell is None else harmless_line(str(cell)) for cell in row] for row in table.rows]
    widths = _widths(table, rows)
    lines: Iterator[str] = iter(())
    if len(rows) >= MANY and not _fits(widths, console.width):
        shared, table, rows, widths = _without_shared(table, rows, widths)
        lines = _block(console, shared, console.width) if shared else lines
        table, rows, widths, missing = _without_spare(table, rows, widths, console.width)
        if missing:
            told = f"no room for: {', '.join(missing)} (-o jsonl or a wider terminal has them)"
            lines = chain(lines, _fold(told, console.width))
    if _fits(widths, console.width):
        return chain(lines, _lines(console, table, rows, _fitting(widths, console.width)))
    return chain(lines, _blocks(console, table, rows))


def _widths(table: AnswerTable, rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(cell_len, column)) for column in zip(table.columns, *rows, strict=True)]


def _fits(widths: Sequence[int], most: int) -> bool:
    return sum(min(wide, WHOLE) + GAP for wide in widths) - GAP <= most


def _without_shared(
    table: AnswerTable, rows: list[list[str]], widths: list[int]
) -> tuple[dict[str, str], AnswerTable, list[list[str]], list[int]]:
    """Return the cells that all rows share, by column, but for dashes; then the table, rows and widths without them."""
    same = [len(set(column)) == 1 for column in zip(*rows, strict=True)]
    if all(same):
        return {}, table, rows, widths
    shared = {name: cell for name, cell, is_same in zip(table.columns, rows[0], same, strict=True) if is_same}
    left = [number for number, is_same in enumerate(same) if not is_same]
    return {name: cell for name, cell in shared.items() if cell != "-"}, *_only(left, table, rows, widths)


def _only(
    left: Sequence[int], table: AnswerTable, rows: list[list[str]], widths: list[int]
) -> tuple[AnswerTable, list[list[str]], list[int]]:
    """Return the table, rows and widths with the columns of these numbers alone."""
    kept = table._replace(columns=[table.columns[number] for number in left])
    return kept, [[row[number] for number in left] for row in rows], [widths[number] for number in left]


def _without_spare(
    table: AnswerTable, rows: list[list[str]], widths: list[int], most: int
) -> tuple[AnswerTable, list[list[str]], list[int], list[str]]:
    """Return the table, rows and widths without as few spare columns as let it fit, and their names.

    Where it does not fit without all of them, none is left out.
    """
    left, missing = list(range(len(widths))), set[str]()
    for name in (name for name in table.spare if name in table.columns):
        if _fits([widths[number] for number in left], most):
            break
        missing.add(name)
        left = [number for number in left if table.columns[number] != name]
    if not missing or not _fits([widths[number] for number in left], most):
        return table, rows, widths, []
    return *_only(left, table, rows, widths), [name for name in table.columns if name in missing]


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
    for number, row in enumerate(rows):
        if number:
            yield ""
        yield from _block(console, dict(zip(table.columns, row, strict=True)), console.width)


def _block(console: Quiet, cells: Mapping[str, str], width: int) -> Iterator[str]:
    """Yield a line for each name and its value, more where values are folded."""
    widest = max(map(cell_len, cells)) + GAP
    for name, cell in cells.items():
        first, *others = _fold(cell, max(1, width - widest))
        yield _styled(console, name, "cyan") + " " * (widest - cell_len(name)) + first
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
