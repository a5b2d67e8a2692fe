"""The columns of JSON lines as shapes for the kernel: the fast branch of :mod:`kdump.printers.jsonl`.

What a record's number or text says goes to a slot, what is the same in all records of one kind of batch is literal.
Columns that the kernel does not know leave all lines to the general path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.dump_log_segments.line_template import KINDS
from kdump.errors import KdumpError
from kdump.kernel.batches import OTHERS, WIDTH
from kdump.kernel.cursor import RECORD_NUMBERS, slots
from kdump.kernel.json_lines import SLOTS, General, ObjectLines
from kdump.kernel.lines import Shape
from kdump.primitives import timestamps
from kdump.printers import json_text
from kdump.rows import columns, values
from kdump.segments.lazy_records import UnreadRun

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.kernel.lines import Part
    from kdump.primitives.wire import Bytes
    from kdump.rows.columns import Column
    from kdump.rows.selection import SegmentFacts, SelectedBatch
    from kdump.segments.lazy_records import Unread

CHUNK: Final = 1 << 20
"""Bytes of output after which a batch's lines go out."""
NUMBERS: Final = {
    f"{'record' if name in RECORD_NUMBERS else 'batch'}.{name}": slot for name, slot in slots(OTHERS).items()
}
"""The slots of numbers, by their source in the row."""
_PLAIN: Final = {"auto", "utf8"}


class KernelObjects:
    """Makes the lines of batches whose records nobody has read. ``before`` and ``after`` stand around each object."""

    def __init__(self, shape: json_text.JsonShape, before: bytes, after: bytes) -> None:
        self.columns = shape.columns
        self.shape = shape
        self.before = before
        self.after = after
        self.marks = [column for column in self.columns if column.source in values.MARKS]
        self.file: SegmentFacts | None = None
        self.marked: list[Column] = []  # of ``marks``, where the file has such a mark
        self.shapes: dict[object, Shape] = {}
        key, value = (next(column for column in columns.RECORD if column.name == name) for name in ("key", "value"))
        general = General(
            quote=json_text.quote,
            key=lambda data: json_text.content(key, data, shape.encoding).encode(),
            value=lambda data: json_text.content(value, data, shape.encoding).encode(),
            headers=lambda pairs: json_text.headers(pairs, shape.encoding).encode(),
            first=timestamps.FIRST,
            last=timestamps.LAST,
        )
        self.kernel = ObjectLines(general, plain=shape.encoding in _PLAIN)

    def lines(self, item: SelectedBatch, records: Unread | UnreadRun) -> Iterator[Bytes] | None:
        """Return the lines of a batch, or of a run of them, in regions, each good until the next.

        None leaves them to the general path; the batches of a run may be given to this one by one.
        """
        batch = item.batch
        if item.file is not self.file:
            self.file = item.file
            self.shapes.clear()
            self.marked = [column for column in self.marks if values.mark(column, item) is not None]
        if self.marked and isinstance(records, UnreadRun):
            return None
        if self.marked and not all(values.is_constant(column, item) for column in self.marked):
            return None
        marks = tuple([values.value(column, item) for column in self.marked]) if self.marked else ()
        kind = (batch.attributes, item.crc_valid, batch.delete_horizon_ms, item.transaction, marks)
        shape = self.shapes.get(kind) or self.compile(kind, item)
        if isinstance(records, UnreadRun):
            if shape is None:
                return None
            self.kernel.stack(records.run.block, records.run.rows, WIDTH, records.row, records.behind)
            return self.runs(shape)
        if shape is None or not self.kernel.begin(
            records.data, records.start, records.batch.header, [getattr(records.batch, name) for name in OTHERS]
        ):
            return None
        return self.regions(shape)

    def regions(self, shape: Shape) -> Iterator[Bytes]:
        """Yield the lines of the batch that the kernel has turned to."""
        kernel = self.kernel
        while kernel.left:
            lines = kernel.lines(None, shape, CHUNK)
            kernel.gaps.clear()
            if not lines:
                raise self.stuck()
            yield lines

    def runs(self, shape: Shape) -> Iterator[Bytes]:
        """Yield the lines of the batches that the kernel has turned to."""
        kernel = self.kernel
        while kernel.left or kernel.row < kernel.rows:
            lines = kernel.run(None, shape, CHUNK)
            kernel.gaps.clear()
            if kernel.stuck:
                raise self.stuck()
            if lines:  # the last batches may hold no records
                yield lines

    def stuck(self) -> KdumpError:
        """Return what ends a run of kdump whose kernel cannot print what it has found to be sound."""
        name = self.file.name if self.file else "-"
        return KdumpError(f"{name}: the kernel cannot print records that it found sound; KDUMP_KERNEL=off does without")

    def compile(self, kind: object, item: SelectedBatch) -> Shape | None:
        """Return the shape of lines for batches of this kind, None when a column is unknown to the kernel."""
        variants = []
        for null in range(4):
            nulls = {"record.key": bool(null & 1), "record.value": bool(null & 2)}
            parts: list[Part] = [b""]
            for column in self.columns:
                part = self.part(column, item, null=nulls.get(column.source, False))
                if part is None:
                    return None
                parts += part
            variants.append(self.closed(parts))
        if len(self.shapes) > KINDS:  # each delete horizon is one
            self.shapes.clear()
        shape = self.shapes[kind] = Shape(variants)
        return shape

    def part(self, column: Column, item: SelectedBatch, *, null: bool) -> list[Part] | None:
        """Return a column's literals and slots, None when the kernel does not know it."""
        number = NUMBERS.get(column.source) if column.type in {"int", "long"} else None
        if number is None and values.is_constant(column, item):
            return [self.shape.constant(column, item).encode()]
        name = f',"{column.name}":'.encode()
        if null:
            return [name + b"null"]
        slot = SLOTS.get(column.source) if number is None else number
        return None if slot is None else [name, slot]

    def closed(self, parts: list[Part]) -> list[Part]:
        """Return the parts of an object: literals joined, braces around them, no comma in front."""
        joined: list[Part] = []
        for part in [*parts, b"}" + self.after]:
            if isinstance(part, bytes) and joined and isinstance(joined[-1], bytes):
                joined[-1] += part
            else:
                joined.append(part)
        first = joined[0]
        if isinstance(first, bytes):
            joined[0] = self.before + b"{" + first.removeprefix(b",")
        return joined
