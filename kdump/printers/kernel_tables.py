"""Draws most rows of tables without styles in compiled code. :mod:`kdump.printers.table` draws all other rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from kdump.kernel.batches import WIDTH
from kdump.kernel.lines import ROW_SLOTS, WIDEST, left, right
from kdump.primitives.encodings import to_text
from kdump.printers import cells
from kdump.printers.kernel_rows import CHUNK, KEY, LATEST, VALUE, KernelRows, is_literal, number
from kdump.rows import values
from kdump.rows.columns import SHOWN
from kdump.segments.lazy_records import BatchRecords, RunRecords, SomeRecords

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.kernel.lines import Part, Shape
    from kdump.primitives.wire import Bytes
    from kdump.printers.output_formats import PrintOptions
    from kdump.rows.selection import SelectedBatch


class DrawnTable(Protocol):
    """The interface of the table that prints the rows, after it has chosen its column widths."""

    group: tuple[bool, int]
    """Whether a group of rows is open, and the number of its rows and damaged ranges."""

    def frame(self) -> tuple[bytes, bytes]:
        """Return the lines before the rows of a group, and the lines after them."""

    def width(self, at: int) -> int:
        """Return the width of a column."""

    def fitted(self, at: int, text: str | None) -> bytes:
        """Return a cell padded or shortened to the width of column ``at``."""

    def draw(self, rows: Bytes) -> None:
        """Print rows that are already formatted."""


class TableRows(KernelRows):
    """Makes the rows of ``table`` in compiled code. After a change of its widths call ``reset_widths``."""

    whole_batches = False  # a number too wide for its column affects only its row

    def __init__(self, options: PrintOptions, table: DrawnTable) -> None:
        stored = [{SHOWN[0]: KEY, SHOWN[1]: VALUE}.get(column, column) for column in options.columns]
        super().__init__(
            options._replace(columns=stored, redactor=None),
            lambda column, data: self.table.fitted(self._at[column.name], to_text(data, options.encoding).text),
        )
        self.table = table
        self._at = {column.name: at for at, column in enumerate(options.columns)}
        self.writer.stops_at_frames = self._decodes = stored != [*options.columns]
        self.reset_widths()

    def reset_widths(self) -> None:
        self.shapes.clear()
        above, below = self.table.frame()
        self.writer.frame(above, below, group=cells.GROUP, longest=cells.LONGEST)

    def parts(self, item: SelectedBatch, nulls: set[str]) -> list[Part] | None:
        if self._decodes and not values.needs_frame(item.file.layout):
            return None
        parts: list[Part] = [ROW_SLOTS["row"], b" "]
        for at, column in enumerate(self.columns):
            slot, width = number(column), self.table.width(at)
            if slot is None and is_literal(column, item):
                text = cells.constant_cell(column, item, self.encoding)
                if column.type in cells.NUMBERS and len(text or "null") > width:
                    return None
                parts.append(self.table.fitted(at, text))
            elif column.source in nulls:
                parts.append(self.table.fitted(at, None))
            else:
                slot = _SLOTS.get(column.source) if slot is None else slot
                if slot is None or not 0 < width < WIDEST:
                    return None
                if column.type == "binary" and self.encoding in {"hex", "base64"}:
                    parts.append(ROW_SLOTS[f"general_{column.name}"])
                else:
                    parts += [ROW_SLOTS["width"], slot, right(width) if column.type in cells.NUMBERS else left(width)]
            parts.append(b"   ")
        return [*parts[:-1], b" \n", ROW_SLOTS["end_of_row"]]

    def print_rows(self, item: SelectedBatch) -> Iterator[SelectedBatch] | None:
        """Return an iterator that draws rows, and yields batches that Python must draw; None if it must draw all."""
        records = item.records
        if not isinstance(records, (BatchRecords, RunRecords)):
            return None
        shape = self.shape_of(item)
        if shape is None:
            return None
        if isinstance(records, RunRecords):
            return self._of_table(item, records, shape)
        return self._of_one(item, records, shape)

    def _of_table(self, item: SelectedBatch, records: RunRecords, shape: Shape | None) -> Iterator[SelectedBatch]:
        writer, run, row = self.writer, records.run, records.row
        while row < records.stop:
            if shape is None:
                break
            head, of_record = self.lines(shape)
            writer.stack(run.block, run.rows, WIDTH, row, records.stop)
            writer.stuck = False
            while not writer.stuck and (writer.left or writer.row < writer.rows):
                self._begin()
                self._draw(writer.run(head, of_record, CHUNK))
            if not writer.stuck:
                return
            row = writer.row - (writer.left > 0)
            (stuck,) = item._replace(records=RunRecords(run, row, row + 1)).each(batches=self.batches)
            yield _rest(stuck, writer.left)
            row += 1
            shape = self.shape_of(item)
        for one in item._replace(records=RunRecords(run, row, records.stop)).each(batches=self.batches):
            yield _rest(one, 0)

    def _of_one(self, item: SelectedBatch, records: BatchRecords, shape: Shape) -> Iterator[SelectedBatch]:
        writer = self.writer
        if not self.begin(records):
            yield _rest(item, 0)
            return
        while writer.left:
            self._begin()
            lines = writer.lines(None, shape, CHUNK)
            is_stuck = len(lines) < CHUNK and writer.left
            self._draw(lines)
            if is_stuck:
                yield _rest(item, writer.left)
                return

    def _begin(self) -> None:
        self.writer.is_open, self.writer.count = self.table.group

    def _draw(self, lines: Bytes) -> None:
        self.writer.gaps.clear()
        self.table.group = self.writer.is_open, self.writer.count
        self.table.draw(lines)


_SLOTS: Final = {
    "record.timestamp": ROW_SLOTS["iso_shown"],
    LATEST: ROW_SLOTS["iso_shown"],
    "record.key": ROW_SLOTS["shown_key"],
    "record.value": ROW_SLOTS["shown_value"],
}


def _rest(item: SelectedBatch, left: int) -> SelectedBatch:
    """Return a batch with only its last ``left`` records, or all its records if ``left`` is 0."""
    start = len(item.records) - left if left else 0
    return item._replace(records=SomeRecords(item.records, range(start, len(item.records))))
