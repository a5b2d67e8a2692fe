"""Comma-separated values (RFC 4180): a line of names, then one line per record or batch.

Null is an empty cell, the empty text ``""``. Lines end in a newline alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from kdump.formats.record import LARGE
from kdump.printers.cells import cell_in_pieces, damage_cell, quoted, quoted_in_pieces, rows
from kdump.printers.record_rows import RecordRows
from kdump.rows.columns import KIND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kdump.formats.record import Record
    from kdump.primitives.encodings import Encoding
    from kdump.printers.kernel_rows import CsvRows
    from kdump.rows.columns import Column
    from kdump.rows.redaction import Redactor
    from kdump.rows.selection import DamagedRange, SelectedBatch


class Separated(RecordRows):
    """Prints CSV. A damaged range has a row only where the column ``kind`` tells it from a record, without a reason."""

    def __init__(
        self,
        out: BinaryIO,
        columns: Sequence[Column],
        *,
        batches: bool = False,
        encoding: Encoding = "auto",
        redactor: Redactor | None = None,
    ) -> None:
        super().__init__(out, batches=batches, redactor=redactor)
        self.columns, self.encoding = columns, encoding

    def begin(self) -> None:
        """Print the names of the columns."""
        self._line([column.name for column in self.columns])

    def batch(self, item: SelectedBatch) -> None:
        self.records(item)

    def records(self, item: SelectedBatch) -> None:
        if not self.batches and any(record.size >= LARGE for record in item.records):
            for record in item.records:
                self._long_line(item, record)
            return
        for cells in rows(item, self.columns, self.encoding, batches=self.batches):
            self._line(cells)

    def _long_line(self, item: SelectedBatch, record: Record) -> None:
        """Print the line of a large record in pieces."""
        for number, column in enumerate(self.columns):
            self.out.write(b"," if number else b"")
            for text in quoted_in_pieces(cell_in_pieces(column, item, record, self.encoding)):
                self.out.write(text.encode())
        self.out.write(b"\n")

    def kernel_rows(self) -> CsvRows:
        from kdump.printers.kernel_rows import CsvRows  # for rows of the kernel alone

        return CsvRows(self.columns, self.encoding, self.redactor, batches=self.batches)

    def lost(self, item: DamagedRange) -> None:
        """Print the columns that a damaged range shares with a record or batch."""
        if KIND in self.columns:
            self._line([damage_cell(column, item) for column in self.columns])

    def _line(self, cells: Sequence[str | None]) -> None:
        self.out.write((",".join(map(quoted, cells)) + "\n").encode())
