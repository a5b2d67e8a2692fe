"""Draws tables of answers on a terminal. By default columns are omitted and cells shortened so that rows fit a line."""

from __future__ import annotations

import re
from itertools import chain
from textwrap import wrap
from typing import IO, TYPE_CHECKING, Final, Literal, TypeAlias

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from kdump.primitives.terminal import MEASURE, harmless_line, prose_width
from kdump.printers.table import Quiet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from kdump.printers.answer_lines import AnswerTable

WHOLE: Final = 24
"""Cells of up to this width are not shortened, unless only one column is left. A time has this width."""
MANY: Final = 3
"""Tables with fewer rows print shared values in each row, and may have a line per field (:func:`draw`)."""
GAP: Final = 2
CUT: Final = "…"
Layout: TypeAlias = Literal["fitting", "all columns", "expanded"]
"""The layout of rows: one line in the width of the terminal, one line of any length, or one line per field."""


def draw(tables: Iterable[AnswerTable], out: IO[str], width: int | None = None, *, layout: Layout = "fitting") -> None:
    """Draw tables in ``width`` columns, by default those of the terminal.

    With ``fitting`` a row is one line. If the columns are too wide, values (except dashes) that all of ``MANY`` or more
    rows share are printed once, above the rows. Then columns are omitted, first those in ``spare``, and cells wider
    than ``WHOLE`` are shortened. Below the rows are the names of these columns. If a table has fewer than ``MANY``
    rows, and its sentences do not fit beside the other cells at width ``WHOLE``, it has a line per field instead.
    """
    console = Quiet(file=out, width=width)
    for number, table in enumerate(tables):
        if number:
            console.print()
        if table.title:
            for line in _fold(harmless_line(table.title), _prose(console)):
                out.write(_styled(console, line, "bold") + "\n")
        for line in chain(_drawn(console, table, layout), table.below()):
            out.write(line + "\n")


def _drawn(console: Quiet, table: AnswerTable, layout: Layout) -> Iterator[str]:
    if not table.rows:
        return iter(())
    rows = [["-" if cell is None else harmless_line(str(cell)) for cell in row] for row in table.rows]
    widths = _widths(table, rows)
    if layout == "expanded":
        return _blocks(console, table, rows)
    if layout == "all columns" or _sum(widths) <= console.width:
        return _lines(console, table, rows, widths)
    return _fitted(console, table, rows, widths)


def _fitted(console: Quiet, table: AnswerTable, rows: list[list[str]], widths: list[int]) -> Iterator[str]:
    needed = [number for number, name in enumerate(table.columns) if name not in table.spare]
    _, rows_needed, widths_needed = _only(needed, table, rows, widths)
    if len(rows) < MANY and not _fits(widths_needed, console.width, rows_needed):
        yield from _blocks(console, table, rows)
        return
    if len(rows) >= MANY:
        shared, table, rows, widths = _without_shared(table, rows, widths)
        if shared:
            yield from _block(console, shared, _prose(console))
    table, rows, widths, missing = _without_spare(table, rows, widths, console.width)
    narrow = _fitting(widths, console.width)
    yield from _lines(console, table, rows, narrow)
    cut = [number for number, width in enumerate(narrow) if width < widths[number]]
    left_out = [f"not shown: {', '.join(missing)}"] if missing else []
    if cut:
        left_out.append(f"cut: {', '.join(table.columns[number] for number in cut)}")
    if left_out:
        yield from _fold(f"({'; '.join(left_out)}; --all-columns or -x shows all)", _prose(console))


def _prose(console: Quiet) -> int:
    return min(console.width, MEASURE)


def _widths(table: AnswerTable, rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(cell_len, column)) for column in zip(table.columns, *rows, strict=True)]


def _sum(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _fits(widths: Sequence[int], most: int, rows: Sequence[Sequence[str]] = ()) -> bool:
    """Return whether columns fit into ``most``. Columns without sentences in ``rows`` count as shortened to WHOLE."""
    whole = {number for row in rows for number, cell in enumerate(row) if " " in cell}
    return _sum([wide if number in whole else min(wide, WHOLE) for number, wide in enumerate(widths)]) <= most


def _without_shared(
    table: AnswerTable, rows: list[list[str]], widths: list[int]
) -> tuple[dict[str, str], AnswerTable, list[list[str]], list[int]]:
    """Remove the columns of equal cells, if others remain. Return their cells (without dashes), and the others."""
    same = [len(set(column)) == 1 for column in zip(*rows, strict=True)]
    if all(same):
        return {}, table, rows, widths
    shared = {name: cell for name, cell, is_same in zip(table.columns, rows[0], same, strict=True) if is_same}
    left = [number for number, is_same in enumerate(same) if not is_same]
    return {name: cell for name, cell in shared.items() if cell != "-"}, *_only(left, table, rows, widths)


def _only(
    left: Sequence[int], table: AnswerTable, rows: list[list[str]], widths: list[int]
) -> tuple[AnswerTable, list[list[str]], list[int]]:
    kept = table._replace(columns=[table.columns[number] for number in left])
    return kept, [[row[number] for number in left] for row in rows], [widths[number] for number in left]


def _without_spare(
    table: AnswerTable, rows: list[list[str]], widths: list[int], most: int
) -> tuple[AnswerTable, list[list[str]], list[int], list[str]]:
    """Remove columns until the others fit: ``spare``, then the rightmost, never the first. Return the names too."""
    spare = [name for name in table.spare if name in table.columns]
    others = [name for name in table.columns if name not in table.spare]
    left, missing = list(range(len(widths))), set[str]()
    for name in (*spare, *others[:0:-1]):
        if _fits([widths[number] for number in left], most):
            break
        missing.add(name)
        left = [number for number in left if table.columns[number] != name]
    return *_only(left, table, rows, widths), [name for name in table.columns if name in missing]


def _fitting(widths: Sequence[int], most: int) -> list[int]:
    """Return widths that fit into ``most`` if possible. Only a single column is shortened to less than WHOLE."""
    room = most - GAP * (len(widths) - 1)
    found = list(widths)
    left = len(widths)
    for number in sorted(range(len(widths)), key=widths.__getitem__):
        found[number] = min(widths[number], max(WHOLE if len(widths) > 1 else 1, room // left))
        room -= found[number]
        left -= 1
    return found


def _lines(console: Quiet, table: AnswerTable, rows: Sequence[Sequence[str]], widths: Sequence[int]) -> Iterator[str]:
    right = [name in table.right for name in table.columns]
    yield _styled(console, _row(table.columns, widths, right), "bold cyan")
    for row in rows:
        yield _row(row, widths, right)


def _row(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    cells = []
    for cell, width, is_right in zip(row, widths, right, strict=True):
        shown = cell if cell_len(cell) <= width else shortened(cell, width)
        blanks = " " * (width - cell_len(shown))
        cells.append(blanks + shown if is_right else shown + blanks)
    return (" " * GAP).join(cells).rstrip()


def shortened(text: str, width: int) -> str:
    """Return a text shortened to ``width`` columns. A path or name loses its middle if there is room for its ends."""
    if cell_len(text) <= width:
        return text
    if " " in text:
        return set_cell_size(text, width - 1).rstrip() + CUT
    last = (width - 1) * 2 // 3
    first = set_cell_size(text, width - 1 - last).rstrip()
    while cell_len(text) > last:
        text = text[1:]
    return f"{first}{CUT}{text}"


def _blocks(console: Quiet, table: AnswerTable, rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for number, row in enumerate(rows):
        if number:
            yield ""
        yield from _block(console, dict(zip(table.columns, row, strict=True)), _prose(console))


def _block(console: Quiet, cells: Mapping[str, str], width: int) -> Iterator[str]:
    widest = max(map(cell_len, cells)) + GAP
    for name, cell in cells.items():
        first, *others = _fold(cell, max(1, width - widest))
        yield _styled(console, name, "cyan") + " " * (widest - cell_len(name)) + first
        yield from (" " * widest + line for line in others)


def _fold(cell: str, width: int) -> list[str]:
    if cell_len(cell) <= width:
        return [cell]
    if cell.isascii():
        return wrap(cell, width, break_on_hyphens=False) or [""]
    return [line.plain for line in Text(cell).wrap(Quiet(width=width), width)]


def _styled(console: Quiet, text: str, style: str) -> str:
    with console.capture() as drawn:
        console.print(Text(text, style=style), end="", soft_wrap=True)
    return drawn.get()


def draw_page(page: str, out: IO[str]) -> None:
    from rich.markdown import Markdown

    page = re.sub(r"^```(\w*).*$", r"```\1", page, flags=re.MULTILINE)  # remove titles of code blocks
    Quiet(file=out, width=prose_width()).print(Markdown(page, hyperlinks=False, code_theme="ansi_dark"))
