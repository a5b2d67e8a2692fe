"""Makes Arrow columns of record fields from objects (:class:`Objects`) or in compiled code (:class:`KernelColumns`).

Both classes collect records, and then return arrays of fields of :class:`kdump.formats.record.Record`. After that,
``clear()`` must come before the next records.
"""

from __future__ import annotations

from array import array
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, Final

from kdump import kernel
from kdump.errors import DamageError
from kdump.formats.record import Record
from kdump.log_reader.batch_selection import RECORD_COST
from kdump.primitives.encodings import java_text
from kdump.primitives.wire import INT64_END

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import pyarrow as pa

    from kdump.formats.record import Header
    from kdump.kernel.arrow import Buffers
    from kdump.kernel.lines import Lines
    from kdump.log_reader.filter import Filter
    from kdump.primitives.wire import Bytes
    from kdump.records.magic_2 import Batch

_OF_LIMIT: Final = 8
"""A batch above 1/8 of --max-batch-bytes (decompressed) is read in Python, which limits the memory of headers."""
_FIELD: Final = {name: number for number, name in enumerate(Record._fields)}


class Objects:
    """Columns from one or more record objects of any magic. ``size`` is the size of these records in bytes."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self._records: list[Record] = []
        self._turned: list[tuple[Any, ...]] | None = None
        self.size = 0

    def __len__(self) -> int:
        return len(self._records)

    def add(self, records: Sequence[Record]) -> None:
        self._records += records
        self.size += sum(record.size for record in records)

    def array(self, field: str, kind: pa.DataType) -> pa.Array:
        import pyarrow as pa

        if self._turned is None:
            self._turned = list(zip(*self._records, strict=True))
        values = self._turned[_FIELD[field]]
        if field == "headers":
            return _headers(values, kind)
        if len(values) == 1 and isinstance(values[0], bytes):
            return _of_one(values[0], kind)
        return pa.array(values, kind)


def _of_one(value: bytes, kind: pa.DataType) -> pa.Array:
    """Return an array of one value without a copy of the value, which may be as large as a batch."""
    import pyarrow as pa

    ends = array("i", [0, len(value)])
    return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(ends), pa.py_buffer(value)])


def _headers(values: Sequence[Sequence[Header]], kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    count = sum(map(len, values))
    keys, contents = _Binary(count), _Binary(count)
    for header in chain.from_iterable(values):  # a list of all header objects would take up to 40 times the memory
        keys.add(java_text(header.key))
        contents.add(header.value)
    entries = pa.StructArray.from_arrays(
        [keys.array(pa.string()), contents.array(pa.binary())], fields=list(kind.value_type)
    )
    ends = pa.array(accumulate(map(len, values), initial=0), pa.int32())
    return pa.ListArray.from_arrays(ends, entries, type=kind)


class _Binary:
    """Builds an Arrow array of ``count`` values (bytes or texts), without an object for each value."""

    def __init__(self, count: int) -> None:
        self._ends, self._content, self._valid = array("i", [0]) * (count + 1), bytearray(), bytearray(count + 7 >> 3)
        self._number = self._nulls = 0

    def add(self, value: bytes | None) -> None:
        if value is None:
            self._nulls += 1
        else:
            self._valid[self._number >> 3] |= 1 << (self._number & 7)
            self._content += value
        self._number += 1
        self._ends[self._number] = len(self._content)

    def array(self, kind: pa.DataType) -> pa.Array:
        import pyarrow as pa

        buffers = [pa.py_buffer(each) for each in (self._valid, self._ends, self._content)]
        return pa.Array.from_buffers(kind, self._number, buffers, self._nulls)


class KernelColumns:
    """Columns that compiled code makes of well-formed records of magic 2. ``size``: decompressed bytes of batches.

    Only the bounds of offsets and times in ``wanted`` are applied. With ``stops_at_frames`` a batch is not added if one
    of its records may have a schema id.
    """

    def __init__(self, fields: Collection[str], wanted: Filter, *, stops_at_frames: bool = False) -> None:
        from kdump.kernel import arrow

        self._lines: Lines | None = None
        if stops_at_frames:
            from kdump.kernel.lines import Lines

            self._lines = Lines()
            self._lines.stops_at_frames = True
        self._buffers = arrow.ArrowColumns(
            [name for name in arrow.COLUMNS if name in fields],
            _bounds(wanted.first_offset, wanted.last_offset),
            _bounds(wanted.since, None if wanted.until is None else wanted.until - 1),
        )
        self._rows = 0
        self._taken: dict[str, Buffers] | None = None

    def clear(self) -> None:
        if self._taken is None:
            self._buffers.take()
        self._taken = None

    def __len__(self) -> int:
        rows: int = self._buffers.rows
        return rows

    @property
    def size(self) -> int:
        size: int = self._buffers.size
        return size

    def add(self, batch: Batch) -> bool:
        """Add the selected records of a batch. Return False, and add none, if plain Python must read the batch."""
        if batch.count == 0:
            return True
        payload = self._payload(batch)
        if payload is None:
            return False
        lines = self._lines
        if lines is not None and not (lines.begin(*payload, batch.header, ()) and lines.sound()):
            return False
        return self._buffers.add(*payload, batch.header)

    def are_sound(self, batch: Batch) -> bool:
        """Return whether compiled code can read all records of a batch, without adding them."""
        if batch.count == 0:
            return True
        payload = self._payload(batch)
        return payload is not None and self._buffers.begin(*payload, batch.header, ()) and self._buffers.sound()

    def _payload(self, batch: Batch) -> tuple[Bytes, int] | None:
        """Return the decompressed records and their position; None if plain Python must read them."""
        try:
            data, start = batch.payload()
        except DamageError:
            return None
        too_many = batch.count * RECORD_COST + len(data) > batch.limit or len(data) > batch.limit // _OF_LIMIT
        return None if too_many else (data, start)

    def array(self, field: str, kind: pa.DataType) -> pa.Array:
        import pyarrow as pa

        if self._taken is None:
            self._rows, self._taken = len(self), self._buffers.take()
        if field in self._taken:
            return _of_buffers(self._taken[field], kind)
        return pa.nulls(self._rows, kind)  # the checksum, which records of magic 2 do not have


def _of_buffers(made: Buffers, kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    if pa.types.is_list(kind):
        inner = [kind.value_type]
    else:
        inner = [field.type for field in kind] if pa.types.is_struct(kind) else []
    return pa.Array.from_buffers(
        kind,
        made.length,
        [None if buffer is None else pa.py_buffer(buffer) for buffer in made.buffers],
        made.nulls,
        children=[_of_buffers(child, of) for child, of in zip(made.children, inner, strict=True)],
    )


def _bounds(first: int | None, last: int | None) -> tuple[int, int]:
    return -INT64_END if first is None else first, INT64_END - 1 if last is None else last


def columns(fields: Collection[str], wanted: Filter, *, stops_at_frames: bool = False) -> KernelColumns | None:
    """Return columns of these fields; None without compiled code, or if a bound does not fit into 64 bits."""
    is_usable = kernel.COMPILED and wanted.fits_64_bits
    return KernelColumns(fields, wanted, stops_at_frames=stops_at_frames) if is_usable else None
