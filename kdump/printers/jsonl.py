"""JSON lines: one object per record, batch or damaged range, in the columns of :mod:`kdump.rows.columns`.

Lines are ASCII where it matters to a terminal, UTF-8 elsewhere, always one object to a line. The schema is
``kdump/rows/schema.json``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from kdump.formats.record import LARGE
from kdump.printers.json_text import JsonShape, render
from kdump.printers.record_rows import RecordRows
from kdump.rows import columns as rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kdump.primitives.encodings import Encoding
    from kdump.primitives.wire import Bytes
    from kdump.printers.kernel_rows import JsonRows
    from kdump.rows.columns import Column
    from kdump.rows.redaction import Redactor
    from kdump.rows.selection import DamagedRange, SelectedBatch


class JsonLines(RecordRows):
    """Prints JSON lines. ``columns`` are those of a record; with ``batches`` it prints batches instead."""

    shows_damage = True
    around = (b"", b"\n")

    def __init__(
        self,
        out: BinaryIO,
        columns: Sequence[Column] = rows.RECORD,
        *,
        batches: bool = False,
        encoding: Encoding = "auto",
        redactor: Redactor | None = None,
    ) -> None:
        super().__init__(out, batches=batches, redactor=redactor)
        self.shape = JsonShape(columns, encoding)
        self.damage_shape = JsonShape(rows.DAMAGE)

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
        from kdump.printers.kernel_rows import JsonRows  # for rows of the kernel alone

        return JsonRows(self.shape, self.redactor, self.around, batches=self.batches)

    def lost(self, item: DamagedRange) -> None:
        self.line(self.damage_shape.whole(item))

    def line(self, text: str) -> None:
        """Write one object."""
        self.out.write(text.encode())

    def long_line(self, pieces: Iterable[str]) -> None:
        """Write one object in pieces; the last one ends the line."""
        for text in pieces:
            self.out.write(text.encode())


class JsonArray(JsonLines):
    """Prints one JSON array of the same objects."""

    around = (b",\n", b"")
    _before = b"["

    def line(self, text: str) -> None:
        self.out.write(self._before + b"\n" + text[:-1].encode())
        self._before = b","

    def long_line(self, pieces: Iterable[str]) -> None:
        self.out.write(self._before + b"\n")
        for text in pieces:
            self.out.write(text.rstrip("\n").encode())  # no piece of an object has another newline
        self._before = b","

    def region(self, rows: Bytes) -> None:
        self.out.write(rows if self._before == b"," else self._before + rows[1:])  # each begins with a comma
        self._before = b","

    def end(self) -> None:
        self.out.write(b"[]\n" if self._before == b"[" else b"\n]\n")
