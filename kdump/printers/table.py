"""Tables for people: the only module that needs rich.

Rows are drawn in groups, so that memory does not grow with the output; the first group settles the widths.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kdump.primitives.terminal import harmless
from kdump.printers.cells import rows
from kdump.rows.columns import CONTROL_TYPE
from kdump.rows.values import value

if TYPE_CHECKING:
    from collections.abc import Sequence

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
        self._rows: list[list[Text] | Text] = []
        self._widths: list[int] | None = None

    def begin(self) -> None:
        """Nothing stands before the first line."""

    def found(self, item: SelectedBatch) -> None:
        if self.redactor is not None:
            item = self.redactor(item)
        for number, cells in enumerate(rows(item, self.columns, self.encoding, batches=self.batches)):
            row = [_cell(cell) for cell in cells]
            if item.batch.is_control and not self.batches:
                self._mark_control(row, item, number)
            self._rows.append(row)
            if len(self._rows) >= GROUP:
                self._draw()

    def _mark_control(self, row: list[Text], item: SelectedBatch, number: int) -> None:
        """Put what a control record says in the place of its key and value, which are bytes for machines."""
        word = value(CONTROL_TYPE, item, item.records[number])
        for at, column in enumerate(self.columns):
            if column.name in {"key", "value"}:
                row[at] = Text("" if column.name == "key" or word is None else str(word), style="yellow")

    def lost(self, item: DamagedRange) -> None:
        line = f"{item.file.name}: byte {item.damage.position}: {item.damage}"
        self._rows.append(Text(harmless(line), style="bold red"))

    def end(self) -> None:
        """Draw what is left."""
        if self._rows or self._widths is None:
            self._draw()

    def _draw(self) -> None:
        if self._widths is None:
            self._widths = self._settle()
        start = not getattr(self, "_begun", False)
        self._begun = True
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
        self._rows.clear()

    def _table(self, *, header: bool) -> Table:
        table = Table(box=box.SIMPLE_HEAD, show_header=header, pad_edge=False, padding=(0, 1))
        for column, width in zip(self.columns, self._widths or [], strict=True):
            justify = "right" if column.type in NUMBERS else "left"
            table.add_column(column.name, justify=justify, width=width, no_wrap=True, overflow="ellipsis")  # type: ignore[arg-type]  # one of the two words
        return table

    def _settle(self) -> list[int]:
        """Return the widths of the columns: what the first rows need, the widest cut until they fit the console."""
        widths = [len(column.name) for column in self.columns]
        for row in self._rows:
            if not isinstance(row, Text):
                widths = [max(width, cell.cell_len) for width, cell in zip(widths, row, strict=True)]
        room = max(self.console.width - 3 * len(widths) - 1, 3 * len(widths))
        while sum(widths) > room:
            widest = widths.index(max(widths))
            widths[widest] -= 1
        return widths


def _cell(text: str | None) -> Text:
    if text is None:
        return Text("null", style="dim")
    shown = harmless(text).replace("\n", "\\n").replace("\t", "\\t")
    return Text(shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…")
