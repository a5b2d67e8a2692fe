"""The output format ``table``: records or batches as a table for people, as rich draws it.

Rows are drawn in groups, so that memory does not grow with the output. The first group determines the widths. Numbers
are never shortened. A number wider than its column widens the column for its row and all later rows; with styles, for
its whole group.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Final

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kdump import kernel
from kdump.primitives.terminal import MEASURE, harmless, terminal_width
from kdump.printers.cells import GROUP, LONGEST, NUMBERS, rows
from kdump.printers.output_formats import Printer, PrintOptions
from kdump.rows.columns import CONTROL_TYPE
from kdump.rows.values import value
from kdump.segments.lazy_records import BatchRecords, RunRecords, holds_large, in_chunks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kdump.primitives.wire import Bytes
    from kdump.printers.kernel_tables import TableRows
    from kdump.rows.selection import DamagedRange, SelectedBatch
    from kdump.segments.read_ahead import MadeLines

WIDEST: Final = 4096
"""Maximum width of a line if the output is not a terminal."""
HEIGHT: Final = 25
"""Height of the console, which rich requires together with a width."""
WIDE_GAP: Final = 3
NARROW_GAP: Final = 1
TIME: Final = "timestamp"
"""The column of text that is shortened last, because shortened times are useless."""
LEAST: Final = 5
"""Columns of text are not shortened below this width while columns can be removed."""
NEEDED: Final = (
    "topic",
    TIME,
    "partition",
    "codec",
    "key",
    "count",
    "value",
    "lastOffset",
    "position",
    "baseOffset",
    "offset",
)
"""The columns that are removed last if the terminal is too narrow, in the order of removal."""


class Quiet(Console):
    """A console of rich, by default as wide as the terminal, that raises BrokenPipeError for a closed pipe."""

    def __init__(self, *, file: IO[str] | None = None, width: int | None = None) -> None:
        columns = terminal_width() if width is None else width
        super().__init__(file=file, width=columns, height=HEIGHT, highlight=False)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Tables(Printer):
    """Prints records or batches as a table, and each damaged range as a line between the rows."""

    shows_damage = True

    def __init__(self, out: IO[str], options: PrintOptions) -> None:
        self.console = Quiet(file=out, width=None if out.isatty() else WIDEST)
        self._options = options
        self.columns, self.batches, self.redactor = options.columns, options.batches, options.redactor
        self._rows: list[list[Text | str] | Text] = []
        self._widths: list[int] | None = None
        self._shown: Sequence[int] = range(len(self.columns))
        """The indexes of the columns that fit the terminal."""
        self._gap = WIDE_GAP
        self._plain = not self.console.is_terminal
        """Whether rows have no styles. Then this class draws them, many times faster than rich."""
        self._begun = False
        self._fits: list[Callable[[str], str]] = []
        self._numbers = [at for at, column in enumerate(self.columns) if column.type in NUMBERS]
        self._edges: tuple[str, str] | None = None
        """The lines before and after each group of rows. The first group has other lines."""
        self.group = False, 0
        """Whether a group of rows is open, and the number of its rows and damaged ranges."""
        self._kernel_rows: TableRows | None = None

    def found(self, item: SelectedBatch, made: MadeLines | None = None) -> None:  # noqa: ARG002  none are made
        records = item.records
        if not isinstance(records, (BatchRecords, RunRecords)):
            self._records(item)
        elif self._widths is not None and not holds_large(records) and (rest := self._of_kernel(item)) is not None:
            for one in rest:
                self._records(one)
        elif item.run is not None:
            for one in item.each(batches=self.batches):
                self.found(one)
        else:
            for some in in_chunks(records):
                self._records(item._replace(records=some))

    def _of_kernel(self, item: SelectedBatch) -> Iterator[SelectedBatch] | None:
        """Return the iterator of :meth:`TableRows.print_rows`, or None if compiled code cannot draw the rows."""
        if (self.redactor is not None and not self.batches) or not self._plain or not kernel.COMPILED:
            return None
        if self._kernel_rows is None:
            from kdump.printers.kernel_tables import TableRows

            self._kernel_rows = TableRows(self._options, self)
        return self._kernel_rows.print_rows(item)

    def frame(self) -> tuple[bytes, bytes]:
        above, below = self._frame(header=False)
        return above.encode(), below.encode()

    def width(self, at: int) -> int:
        return 0 if self._widths is None else self._widths[at]

    def fitted(self, at: int, text: str | None) -> bytes:
        return self._fits[at](_shown(text)).encode()

    def draw(self, rows: Bytes) -> None:
        self.console.file.write(str(rows, "utf-8"))

    def _records(self, item: SelectedBatch) -> None:
        if self.redactor is not None:
            item = self.redactor(item)
        drawn = _shown if self._plain else _cell
        encoding = self._options.encoding
        for number, cells in enumerate(rows(item, self.columns, encoding, batches=self.batches, most=LONGEST + 1)):
            row = [drawn(cell) for cell in cells]
            if item.batch.is_control and not self.batches:
                self._mark_control(row, item, number)
            self._add(row)

    def _add(self, row: list[Text | str] | Text) -> None:
        if self._plain and self._widths is not None:
            self._stream(row)
            return
        self._rows.append(row)
        if len(self._rows) >= GROUP and not isinstance(row, Text):
            self._draw()

    def _mark_control(self, row: list[Text | str], item: SelectedBatch, number: int) -> None:
        word = value(CONTROL_TYPE, item, item.records[number])
        for at, column in enumerate(self.columns):
            if column.name in {"key", "value"}:
                text = "" if column.name == "key" or word is None else str(word)
                row[at] = text if self._plain else Text(text, style="yellow")

    def lost(self, item: DamagedRange) -> None:
        line = f"{item.file.name}: byte {item.damage.position}: {item.damage}"
        self._add(Text(harmless(line), style="bold red"))

    def end(self) -> None:
        if self._rows or self._widths is None:
            self._draw()
        self._close()
        if missing := [column.name for number, column in enumerate(self.columns) if number not in self._shown]:
            text = f"(not shown: {', '.join(missing)}; --fields chooses columns, -o csv has all)"
            self.console.print(Text(text, style="dim"), width=min(self.console.width, MEASURE))

    def _draw(self) -> None:
        self._widen(self._settle())
        if not self._plain:
            self._draw_styled()
        else:
            for row in self._rows:
                self._stream(row)
            if not self._begun:
                self._open()
        self._begun = True
        self._rows.clear()

    def _widen(self, widths: list[int]) -> None:
        if widths == self._widths:
            return
        self._widths, self._edges = widths, None
        self._fits = [_fit(width, right=at in self._numbers) for at, width in enumerate(widths)]
        if self._kernel_rows is not None:
            self._kernel_rows.reset_widths()

    def _stream(self, row: list[Text | str] | Text) -> None:
        """Draw a row without styles, or a damaged range. Widen columns if a number does not fit."""
        if isinstance(row, Text):
            if not self._begun:
                self._open()
            count = self.group[1]
            self._close()
            self.group = False, count
            self.console.print(row)
        else:
            cells = [str(cell) for cell in row]
            wider = [at for at in self._numbers if len(cells[at]) > self.width(at)]
            if wider:
                self._close()
                self._widen([max(self.width(at), len(cell) * (at in wider)) for at, cell in enumerate(cells)])
            self._open()
            line = "   ".join([fit(cell) for fit, cell in zip(self._fits, cells, strict=True)])
            self.console.file.write(f" {line} \n")
        self.group = self.group[0], self.group[1] + 1
        if self.group[1] == GROUP:
            self._close()

    def _open(self) -> None:
        is_open, count = self.group
        if not is_open:
            self.console.file.write(self._frame(header=not self._begun)[0])
            self._begun, self.group = True, (True, count)

    def _close(self) -> None:
        if self.group[0]:
            self.console.file.write(self._frame(header=False)[1])
        self.group = False, 0

    def _frame(self, *, header: bool) -> tuple[str, str]:
        if not header and self._edges is not None:
            return self._edges
        table = self._table(header=header)
        table.add_row(*[""] * len(self._shown))
        with self.console.capture() as captured:
            self.console.print(table)
        *above, _, below = captured.get().splitlines(keepends=True)
        edges = "".join(above), below
        self._edges = None if header else edges
        return edges

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
                table.add_row(*(row[number] for number in self._shown))
        if table.row_count or start:
            self.console.print(table)

    def _table(self, *, header: bool) -> Table:
        padding = (self._gap - 1) // 2
        table = Table(box=box.SIMPLE_HEAD, show_header=header, pad_edge=False, padding=(0, padding))
        for number in self._shown:
            column, width = self.columns[number], self.width(number)
            justify = "right" if column.type in NUMBERS else "left"
            table.add_column(column.name, justify=justify, width=width, no_wrap=True, overflow="ellipsis")  # type: ignore[arg-type]  # one of the two words
        return table

    def _settle(self) -> list[int]:
        """Return the column widths for ``_rows``. The first ones fit the console; later only numbers widen columns."""
        widths = self._widths or [len(column.name) for column in self.columns]
        measured = range(len(widths)) if self._widths is None else self._numbers
        widths = [*widths]
        for row in self._rows:
            if not isinstance(row, Text):
                for at in measured:
                    widths[at] = max(widths[at], cell_len(str(row[at])))
        if self._widths is None:
            if not self._plain and sum(widths) + WIDE_GAP * len(widths) >= self.console.width:
                self._gap = NARROW_GAP
            texts = [at for at in measured if at not in self._numbers]
            times = [at for at in texts if self.columns[at].name == TIME]
            least = [
                min(width, max(len(column.name), LEAST)) if at in texts and at not in times else width
                for at, (column, width) in enumerate(zip(self.columns, widths, strict=True))
            ]
            self._shown = self._with_room(least)
            room = self._room(self._shown) + sum(width for at, width in enumerate(widths) if at not in self._shown)
            for group in ([at for at in texts if at not in times], times):
                _shrink(widths, [at for at in group if at in self._shown], room)
        return widths

    def _room(self, shown: Sequence[int]) -> int:
        """Return the total width available for the cells of the columns ``shown``."""
        return max(self.console.width - self._gap * len(shown) - 1, 3 * len(shown))

    def _with_room(self, least: Sequence[int]) -> Sequence[int]:
        """Return the indexes of the columns (at least one) that fit with their minimum widths ``least``."""
        shown = list(range(len(least)))
        order = [column.name for column in self.columns if column.name not in NEEDED][::-1]
        for name in (*order, *NEEDED):
            if len(shown) == 1 or self._plain or sum(least[at] for at in shown) <= self._room(shown):
                break
            shown = [at for at in shown if self.columns[at].name != name] or shown
        return shown


def _shrink(widths: list[int], group: Sequence[int], room: int) -> None:
    """Narrow the widest columns of a group until all columns fit, or each of the group has width 1."""
    while sum(widths) > room and group:
        widest = max(group, key=widths.__getitem__)
        if widths[widest] == 1:
            break
        widths[widest] -= 1


def _cell(text: str | None) -> Text:
    return Text("null", style="dim") if text is None else Text(_shown(text))


def _shown(text: str | None) -> str:
    if text is None:
        return "null"
    text = text[: LONGEST + 1]  # escaping does not shorten the text
    if not (text.isascii() and text.isprintable()):  # escaping takes ten times as long
        text = harmless(text).replace("\n", "\\n").replace("\t", "\\t")
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _fit(width: int, *, right: bool) -> Callable[[str], str]:
    """Return a function that pads or shortens a cell to the width of its column, like rich."""

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
