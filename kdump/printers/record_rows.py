"""The printers of records and batches in rows: JSON lines, a JSON array, CSV, format strings.

Compiled code makes most rows, from the bytes of records; Python code makes the others. JSON lines are UTF-8, with
control characters escaped, and have one object per line. Their schema is ``kdump/rows/schema.json``.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, BinaryIO

from kdump import kernel
from kdump.formats.record import LARGE
from kdump.printers.cells import cell_in_pieces, damage_cell, quoted, quoted_in_pieces, rows
from kdump.printers.format_string import headers, parse, raw
from kdump.printers.json_text import JsonShape, render
from kdump.printers.output_formats import Printer, PrintOptions
from kdump.rows.columns import DAMAGE, KIND
from kdump.segments.lazy_records import BatchRecords, RunRecords, holds_large, in_chunks

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kdump.formats.record import Record
    from kdump.primitives.wire import Bytes
    from kdump.printers.kernel_rows import CsvRows, FormatRows, JsonRows, KernelRows
    from kdump.rows.selection import DamagedRange, SelectedBatch
    from kdump.segments.batch_runs import Run
    from kdump.segments.read_ahead import MadeLines


class RecordRows(Printer):
    """Base class of printers with a row per record, or per batch."""

    def __init__(self, out: BinaryIO, options: PrintOptions = PrintOptions()) -> None:  # noqa: B008  a tuple
        self.out, self.options = out, options
        self.columns, self.batches, self.redactor = options.columns, options.batches, options.redactor
        self._kernel_rows: KernelRows | None = None

    def found(self, item: SelectedBatch, made: MadeLines | None = None) -> None:
        records = item.records
        if not records and not self.batches:
            return
        rows = None
        unread = RunRecords if self.batches else (BatchRecords, RunRecords)
        if kernel.COMPILED and isinstance(records, unread) and (self.batches or not holds_large(records)):
            rows = self._of_kernel().rows(item, records, made)
        if rows is not None:
            for region in rows:
                self.region(region)
        elif item.run is not None:
            for one in item.each(batches=self.batches):
                self.found(one)
        elif self.batches:
            self.batch(item)
        elif isinstance(records, BatchRecords):
            for some in in_chunks(records):
                self.found(item._replace(records=some))
        else:
            self.records(item if self.redactor is None else self.redactor(item))

    def make(self, item: SelectedBatch, run: Run) -> MadeLines | None:
        """Return a run's first rows, or None, for example if it is small. Any thread may call this."""
        return None if self._kernel_rows is None else self._kernel_rows.make(item, run)

    def batch(self, item: SelectedBatch) -> None:
        """Print a batch."""

    def records(self, item: SelectedBatch) -> None:
        """Print the one or more records of a batch."""

    def region(self, rows: Bytes) -> None:
        """Print rows of compiled code in one write, because their memory may be reused after a write."""
        self.out.write(rows)

    def kernel_rows(self) -> KernelRows:
        raise NotImplementedError

    def _of_kernel(self) -> KernelRows:
        if self._kernel_rows is None:
            self._kernel_rows = self.kernel_rows()
            self._kernel_rows.writer.memory = getattr(self.out, "room", None)  # only a worker's output lends memory
        return self._kernel_rows


class Separated(RecordRows):
    """Prints CSV. If ``kind`` is a column, each damaged range has a row, without the reason."""

    def begin(self) -> None:
        self._line([column.name for column in self.columns])

    def batch(self, item: SelectedBatch) -> None:
        self.records(item)

    def records(self, item: SelectedBatch) -> None:
        if not self.batches and any(record.size >= LARGE for record in item.records):
            for record in item.records:
                self._long_line(item, record)
            return
        for cells in rows(item, self.columns, self.options.encoding, batches=self.batches):
            self._line(cells)

    def _long_line(self, item: SelectedBatch, record: Record) -> None:
        for number, column in enumerate(self.columns):
            self.out.write(b"," if number else b"")
            for text in quoted_in_pieces(cell_in_pieces(column, item, record, self.options.encoding)):
                self.out.write(text.encode())
        self.out.write(b"\n")

    def kernel_rows(self) -> CsvRows:
        from kdump.printers.kernel_rows import CsvRows

        return CsvRows(self.options)

    def lost(self, item: DamagedRange) -> None:
        if KIND in self.columns:
            self._line([damage_cell(column, item) for column in self.columns])

    def _line(self, cells: Sequence[str | None]) -> None:
        self.out.write((",".join(map(quoted, cells)) + "\n").encode())


class Plain(RecordRows):
    """Prints each record as text, made from a format string, or its value. Raises UsageError."""

    def __init__(self, out: BinaryIO, options: PrintOptions) -> None:
        super().__init__(out, PrintOptions((), redactor=options.redactor))
        self.template = raw(options.delimiter) if options.template is None else parse(options.template)

    def records(self, item: SelectedBatch) -> None:
        for record in item.records:
            if record.size >= LARGE:
                self._large(item, record)
                continue
            parts = [part if isinstance(part, bytes) else part.write(item, record) for part in self.template]
            self.out.write(b"".join(parts))

    def _large(self, item: SelectedBatch, record: Record) -> None:
        for part in self.template:
            if isinstance(part, bytes):
                self.out.write(part)
            elif part.letter == "h":
                for number, header in enumerate(record.headers):
                    self.out.write(b"," if number else b"")
                    self.out.write(headers((header,)))
            else:
                self.out.write(part.write(item, record))

    def kernel_rows(self) -> FormatRows:
        from kdump.printers.kernel_rows import FormatRows

        return FormatRows(self.template, self.options)


class JsonLines(RecordRows):
    """Prints a line with a JSON object for each record or batch, and for each damaged range."""

    shows_damage = True
    around = (b"", b"\n")

    @cached_property
    def shape(self) -> JsonShape:
        return JsonShape(self.columns, self.options.encoding)

    @cached_property
    def damage_shape(self) -> JsonShape:
        return JsonShape(DAMAGE)

    def batch(self, item: SelectedBatch) -> None:
        self.line(self.shape.whole(item))

    def records(self, item: SelectedBatch) -> None:
        parts = self.shape.parts(item)
        for record in item.records:
            if record.size < LARGE:
                self.line(render(parts, record))
            else:
                self.long_line(self.shape.pieces(item, record))

    def kernel_rows(self) -> JsonRows:
        from kdump.printers.kernel_rows import JsonRows

        return JsonRows(self.shape, self.options, self.around)

    def lost(self, item: DamagedRange) -> None:
        self.line(self.damage_shape.whole(item))

    def line(self, text: str) -> None:
        self.out.write(text.encode())

    def long_line(self, pieces: Iterable[str]) -> None:
        """Write one object in pieces; the last piece ends the line."""
        for text in pieces:
            self.out.write(text.encode())


class JsonArray(JsonLines):
    """Prints one JSON array with the objects of :class:`JsonLines`."""

    around = (b",\n", b"")
    _before = b"["

    def line(self, text: str) -> None:
        self.out.write(self._before + b"\n" + text[:-1].encode())
        self._before = b","

    def long_line(self, pieces: Iterable[str]) -> None:
        self.out.write(self._before + b"\n")
        for text in pieces:
            self.out.write(text.rstrip("\n").encode())  # only the last piece has a newline
        self._before = b","

    def region(self, rows: Bytes) -> None:
        self.out.write(rows if self._before == b"," else self._before + rows[1:])  # rows begin with a comma
        self._before = b","

    def end(self) -> None:
        self.out.write(b"[]\n" if self._before == b"[" else b"\n]\n")
