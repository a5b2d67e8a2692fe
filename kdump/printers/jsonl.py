"""JSON lines: one object per record, batch or damaged stretch, in the columns of :mod:`kdump.rows.columns`.

Lines are ASCII where it matters to a terminal, UTF-8 elsewhere, always one object to a line. The schema is
``kdump/rows/schema.json``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, TypeAlias

from kdump import kernel
from kdump.printers.json_text import JsonShape, render
from kdump.rows import columns as rows
from kdump.segments.lazy_records import Unread, UnreadRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kdump.formats.record import Record
    from kdump.primitives.encodings import Encoding
    from kdump.primitives.wire import Bytes
    from kdump.printers.kernel_jsonl import KernelObjects
    from kdump.rows.columns import Column
    from kdump.rows.selection import DamagedRange, SelectedBatch

    Part: TypeAlias = str | Callable[[Record], str]


class JsonLines:
    """Prints JSON lines. ``columns`` are those of a record, ``batches`` prints batches in place of records."""

    shows_damage = True
    around = (b"", b"\n")

    def __init__(
        self,
        out: BinaryIO,
        columns: Sequence[Column] = rows.RECORD,
        *,
        batches: bool = False,
        encoding: Encoding = "auto",
    ) -> None:
        self.out = out
        self.batches = batches
        self.shape = JsonShape(columns, encoding)
        self.damage_shape = JsonShape(rows.DAMAGE)
        self.fast: KernelObjects | None = None

    def begin(self) -> None:
        """Nothing stands before the first line."""

    def found(self, item: SelectedBatch) -> None:
        if self.batches:
            self.line(self.shape.whole(item))
        elif (regions := self._fast(item)) is not None:
            for lines in regions:
                self.region(lines)
        elif isinstance(item.records, UnreadRun):
            for records in item.records.batches():
                self.found(item._replace(batch=records.batch, base_offset=records.batch.base_offset, records=records))
        elif item.records:
            parts = self.shape.parts(item)
            for record in item.records:
                self.line(render(parts, record))

    def _fast(self, item: SelectedBatch) -> Iterator[Bytes] | None:
        """Return the lines of a batch as the kernel makes them, None where it does not, or where it has no records."""
        if not kernel.COMPILED or not isinstance(item.records, (Unread, UnreadRun)) or not item.records:
            return None
        if self.fast is None:
            from kdump.printers.kernel_jsonl import KernelObjects  # for lines of the kernel alone

            self.fast = KernelObjects(self.shape, *self.around)
        return self.fast.lines(item, item.records)

    def lost(self, item: DamagedRange) -> None:
        self.line(self.damage_shape.whole(item))

    def line(self, text: str) -> None:
        """Write one object."""
        self.out.write(text.encode())

    def region(self, lines: Bytes) -> None:
        """Write objects."""
        self.out.write(lines)

    def end(self) -> None:
        """Nothing stands behind the last line."""


class JsonArray(JsonLines):
    """Prints one JSON array of the same objects."""

    around = (b",\n", b"")
    _before = b"["

    def line(self, text: str) -> None:
        self.out.write(self._before + b"\n" + text[:-1].encode())
        self._before = b","

    def region(self, lines: Bytes) -> None:
        self.out.write(self._before)
        self.out.write(lines[1:])
        self._before = b","

    def end(self) -> None:
        self.out.write(b"[]\n" if self._before == b"[" else b"\n]\n")
