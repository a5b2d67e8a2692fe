"""Tables for people: the only module that needs rich.

Rows are drawn in groups, so that memory does not grow with the output. The first group settles the widths; a number is
never cut: a later one that is longer makes its column wider from its group on.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Final

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kdump.primitives.terminal import harmless
from kdump.printers.cells import rows
from kdump.rows.columns import CONTROL_TYPE
from kdump.rows.values import value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kdump.primitives.encodings import Encoding
    from kdump.rows.columns import Column
    from kdump.rows.redaction import Redactor
    from kdump.rows.selection import DamagedRange, SelectedBatch

GROUP: Final = 200
"""Rows drawn at a time."""
NUMBERS: Final = {"int", "long"}
WIDEST: Final = 4096
"""Characters of a line where no terminal sets a width."""
LONGEST: Final = 200
"""Characters of a cell that are shown."""


class Quiet(Console):
    """A console that leaves it to its caller what a closed pipe means."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Tables:
    """Prints records or batches as a table; damaged stretches stand in rows of their own."""

    shows_damage = True

    def __init__(
        self,
        out: IO[str],
        columns: Sequence[Column],
        *,
        batches: bool = False,
        encoding: Encoding = "auto",
        redactor: Redactor | None = None,
    ) -> None:
        self.console = Quiet(file=out, highlight=False, width=None if out.isatty() else WIDEST)
        self.columns, self.batches, self.encoding, self.redactor = columns, batches, encoding, redactor
        self._rows: list[list[Text | str] | Text] = []
        self._widths: list[int] | None = None
        self._plain = not self.console.is_terminal
        """Whether rows have no styles: they are drawn here then, many times as fast as rich does it."""
        self._begun = False
        self._fits: list[Callable[[str], str]] = []
        self._edges: tuple[list[str], str] | None = None
        """The lines around rows that follow others."""

    def begin(self) -> None:
        """Nothing stands before the first line."""

    def go_on(self, name: str) -> bytes:  # noqa: ARG002  rows do not mind which segment they are of
        """Begin amid a segment, before which nothing stands."""
        return b""

    def found(self, item: SelectedBatch) -> None:
        if self.redactor is not None:
            item = self.redactor(item)
        drawn = _shown if self._plain else _cell
        for number, cells in enumerate(rows(item, self.columns, self.encoding, batches=self.batches)):
            row = [drawn(cell) for cell in cells]
            if item.batch.is_control and not self.batches:
                self._mark_control(row, item, number)
            self._rows.append(row)
            if len(self._rows) >= GROUP:
                self._draw()

    def _mark_control(self, row: list[Text | str], item: SelectedBatch, number: int) -> None:
        """Put what a control record says in the place of its key and value, which are bytes for machines."""
        word = value(CONTROL_TYPE, item, item.records[number])
        for at, column in enumerate(self.columns):
            if column.name in {"key", "value"}:
                text = "" if column.name == "key" or word is None else str(word)
                row[at] = text if self._plain else Text(text, style="yellow")

    def lost(self, item: DamagedRange) -> None:
        line = f"{item.file.name}: byte {item.damage.position}: {item.damage}"
        self._rows.append(Text(harmless(line), style="bold red"))

    def end(self) -> None:
        """Draw what is left."""
        if self._rows or self._widths is None:
            self._draw()

    def _draw(self) -> None:
        widths = self._settle()
        if widths != self._widths:
            self._widths, self._fits, self._edges = widths, [], None
        if self._plain:
            self._draw_plain(widths)
        else:
            self._draw_styled()
        self._begun = True
        self._rows.clear()

    def _draw_plain(self, widths: Sequence[int]) -> None:
        if not self._fits:
            of_numbers = [column.type in NUMBERS for column in self.columns]
            self._fits = [_fit(width, right=right) for width, right in zip(widths, of_numbers, strict=True)]
        lines: list[str] = []
        start = not self._begun
        for row in [*self._rows, None]:
            if isinstance(row, list):
                cells = [fit(str(cell)) for fit, cell in zip(self._fits, row, strict=True)]
                lines.append(f" {'   '.join(cells)} \n")
                continue
            if lines or start:
                before, after = self._frame(header=start)
                self.console.file.write("".join([*before, *lines, after]))
                lines, start = [], False
            if row is not None:
                self.console.print(row)

    def _frame(self, *, header: bool) -> tuple[list[str], str]:
        """Return the lines before the rows of a table, and the one after them."""
        if not header and self._edges is not None:
            return self._edges
        table = self._table(header=header)
        table.add_row(*[""] * len(self.columns))
        with self.console.capture() as captured:
            self.console.print(table)
        *before, _, after = captured.get().splitlines(keepends=True)
        self._edges = None if header else (before, after)
        return before, after

    def _draw_styled(self) -> None:
        start = not self._begun
        table = self._table(header=start)
        for row in self._rows:
            if isinstance(row, Text):
                if table.row_count or start:
                    self.console.print(table)
                self.console.print(row)
                table, start = self._table(header=False), False
            else:
                table.add_row(*row)
        if table.row_count or start:
            self.console.print(table)

    def _table(self, *, header: bool) -> Table:
        table = Table(box=box.SIMPLE_HEAD, show_header=header, pad_edge=False, padding=(0, 1))
        for column, width in zip(self.columns, self._widths or [], strict=True):
            justify = "right" if column.type in NUMBERS else "left"
            table.add_column(column.name, justify=justify, width=width, no_wrap=True, overflow="ellipsis")  # type: ignore[arg-type]  # one of the two words
        return table

    def _settle(self) -> list[int]:
        """Return the widths of the columns: what the first rows need, the widest texts cut to fit the console."""
        widths = self._widths or [len(column.name) for column in self.columns]
        numbers = [at for at, column in enumerate(self.columns) if column.type in NUMBERS]
        measured = range(len(widths)) if self._widths is None else numbers
        widths = [*widths]
        for row in self._rows:
            if not isinstance(row, Text):
                for at in measured:
                    widths[at] = max(widths[at], cell_len(str(row[at])))
        if self._widths is None:
            texts = [at for at in measured if at not in numbers]
            room = max(self.console.width - 3 * len(widths) - 1, 3 * len(widths))
            while sum(widths) > room and texts:
                widest = max(texts, key=widths.__getitem__)
                if widths[widest] == 1:
                    break
                widths[widest] -= 1
        return widths


def _cell(text: str | None) -> Text:
    return Text("null", style="dim") if text is None else Text(_shown(text))


def _shown(text: str | None) -> str:
    """Return what is shown of a cell: one line, and not all of a long one."""
    if text is None:
        return "null"
    if not (text.isascii() and text.isprintable()):  # most are, and the rest takes ten times as long
        text = harmless(text).replace("\n", "\\n").replace("\t", "\\t")
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _fit(width: int, *, right: bool) -> Callable[[str], str]:
    """Return what makes a cell as wide as its column, as rich does it."""

    def fit(cell: str) -> str:
        if cell.isascii():
            if right:
                cell = cell.rstrip()
            if len(cell) > width:
                return f"{cell[: width - 1]}…"
            return cell.rjust(width) if right else cell.ljust(width)
        text = Text(cell.rstrip() if right else cell)
        text.truncate(width, overflow="ellipsis", pad=not right)
        if right:
            text.pad_left(max(0, width - text.cell_len))
        return text.plain

    return fit
