"""Collects the records of one file as rows, and makes Arrow record batches of the wanted columns (:class:`Rows`).

The caller reads the file. Values of a batch are stored once, and repeated for each of its rows in the Arrow column.
:mod:`kdump.arrow.recorded` makes columns of record fields.
"""

from __future__ import annotations

from itertools import repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from kdump.arrow import recorded, schema
from kdump.arrow import typed as typed_columns
from kdump.formats.record import LARGE
from kdump.primitives import compression
from kdump.primitives.terminal import path_text
from kdump.printers import json_text
from kdump.rows import values as found
from kdump.rows.columns import DECODED, FIELD, RECORD, decoded_field
from kdump.rows.selection import SelectedBatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from kdump.arrow.typed import TypedColumns
    from kdump.log_reader.filter import Filter
    from kdump.records.magic_2 import Batch
    from kdump.rows.columns import Column
    from kdump.rows.selection import SegmentFacts

ROWS: Final = 1 << 14
"""The default number of rows with which an Arrow record batch is full."""
BYTES: Final = 2 << 20
"""A record batch is full with records of this size in bytes. DuckDB holds several record batches."""
EARLIEST_MS: Final = -62_135_596_800_000
LATEST_MS: Final = 253_402_300_799_999
"""EARLIEST_MS and LATEST_MS are the first and last millisecond of the years 1 to 9999, the range of Spark."""

_COLUMNS: Final = {column.name: column for column in (*RECORD, DECODED)}
_TYPED: Final = frozenset(typed_columns.NAMES)
_OF_CONTROL: Final = {"controlType", "coordinatorEpoch"}
_MARKS: Final = {"aboveHighWatermark": ("high_watermark", "greater_equal"), "belowLogStart": ("log_start", "less")}
"""Column -> field of :class:`kdump.rows.selection.SegmentFacts`, and the Arrow function to compare offsets with it."""


def growing(most: int) -> Iterator[int]:
    """Yield sizes of record batches: first 64 rows, so that these come soon. The size doubles up to ``most``."""
    rows = min(64, most)
    while True:
        yield rows
        rows = min(2 * rows, most)


def end_of_block(schema: pa.Schema) -> pa.RecordBatch:
    """Return the empty record batch that stands for a damaged range in a stream.

    Rows before and after it are not joined. A caller that needs only the rows before it gets no report of the damage.
    """
    import pyarrow as pa

    return pa.RecordBatch.from_pylist([], schema=schema)


def schema_of(names: Iterable[str], typed: TypedColumns | None = None) -> pa.Schema:
    """Return the schema of columns; ``typed`` has the typed ones. A field such as ``value.customer.id`` is text."""
    import pyarrow as pa

    fields = []
    for name in names:
        if typed is not None and name in typed.names:
            fields.append(typed.field(name))
        elif name in _COLUMNS:
            fields.append(schema.arrow(schema.chosen([name])).field(0))
        else:
            fields.append(pa.field(name, pa.string()))
    return pa.schema(fields)


class Rows:
    """Collects rows of one file for Arrow. ``names`` are the columns, in order; ``typed`` makes the typed ones.

    :meth:`read` selects the records of a batch by the bounds of ``wanted``, in compiled code. If it returns False, the
    caller selects the records and passes them to :meth:`add`. The two methods never fill the same Arrow record batch.
    A record batch is full with ``most_rows`` (default ROWS) or BYTES; the batch of the log that fills it may add more.
    With ``null_headers``, ``headers`` is null for a record without headers.
    """

    def __init__(
        self,
        file: SegmentFacts,
        names: Sequence[str],
        wanted: Filter,
        *,
        null_headers: bool = False,
        typed: TypedColumns | None = None,
        most_rows: int | None = None,
    ) -> None:
        self._most_rows = most_rows or ROWS
        self._file, self.wanted, self._null_headers, self._typed = file, wanted, null_headers, typed
        self._schema = schema_of(names, typed)
        self._objects = recorded.Objects()
        decodes = any(name == DECODED.name or name not in _COLUMNS for name in names)
        self._columns = None
        if _TYPED.isdisjoint(names) and not (decodes and not found.needs_frame(file.layout)):
            self._columns = recorded.columns(_fields(names), wanted, stops_at_frames=decodes)
        self._reads_markers = not _OF_CONTROL.isdisjoint(names)
        self._takes_all = {wanted.first_offset, wanted.last_offset, wanted.since, wanted.until} == {None}
        self._constants: dict[str, tuple[object, pa.Array]] = {}
        self._done: list[pa.RecordBatch] = []
        self._recorded: recorded.Objects | recorded.KernelColumns = self._objects
        self._ends: list[int] = []
        self._batches: list[SelectedBatch] = []

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @property
    def size(self) -> int:
        """The bytes of the records (after :meth:`read`: of decompressed batches) that are in no record batch yet."""
        return self._recorded.size

    @property
    def is_full(self) -> bool:
        return len(self) >= self._most_rows or self.size >= BYTES or bool(self._done)

    def add(self, item: SelectedBatch) -> None:
        self._turn_to(self._objects)
        if self._ends and len(item.records) == 1 and item.records[0].size >= LARGE:
            self._done.append(self._made())
        self._objects.add(item.records)
        self._ends.append(len(self._objects))
        self._batches.append(item)

    def read(self, batch: Batch, transaction: str | None, *, drop: bool = False) -> bool:
        """Add the selected records of a batch, or with ``drop`` only check it. Return False if Python must read it."""
        columns = self._columns
        if columns is None:
            return False
        is_marker = self._reads_markers and batch.is_control
        if is_marker and not self._takes_all:
            return False
        if drop:
            return columns.are_sound(batch)
        self._turn_to(columns)
        if not columns.add(batch):
            return False
        if len(columns) > len(self):
            records = tuple(batch.records()) if is_marker else ()
            self._ends.append(len(columns))
            self._batches.append(SelectedBatch(self._file, batch, batch.base_offset, records, transaction))
        return True

    def _turn_to(self, kind: recorded.Objects | recorded.KernelColumns) -> None:
        if kind is not self._recorded:
            if self._ends:
                self._done.append(self._made())
            self._recorded = kind

    def take(self) -> list[pa.RecordBatch]:
        if self._ends:
            self._done.append(self._made())
        taken, self._done = self._done, []
        return taken

    def _made(self) -> pa.RecordBatch:
        import pyarrow as pa

        made: dict[str, pa.Array] = {}
        if self._typed is not None and not _TYPED.isdisjoint(self._schema.names):
            made = self._typed.arrays((item, item.records) for item in self._batches)
        columns = [
            made[field.name] if field.name in made else self._column(_column_of(field.name), field.type)
            for field in self._schema
        ]
        self._recorded.clear()
        self._ends, self._batches = [], []
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _column(self, column: Column, kind: pa.DataType) -> pa.Array:
        import pyarrow as pa

        if column.scope == "file":
            return self._constant(column, getattr(self._file, column.attribute), kind)
        if column.name == "crcValid":  # records of magic 2 have no CRC, and their batch had a valid one
            return self._recorded.array(column.attribute, kind).fill_null(True)
        if column.scope == "batch" or column.name == "transactionState":
            return self._spread(column, kind)
        if column.name in _OF_CONTROL:
            return self._of_markers(column, kind)
        if column.name == DECODED.name or column.scope == FIELD:
            return self._decoded(column, kind)
        if column.name in _MARKS:
            return self._against_mark(column, kind)
        if column.name == "timestamp":
            return spark_timestamps(self._recorded.array(column.attribute, pa.int64()), kind)
        array = self._recorded.array(column.attribute, kind)
        return _null_where_empty(array) if column.name == "headers" and self._null_headers else array

    def _constant(self, column: Column, value: object, kind: pa.DataType) -> pa.Array:
        """Return one value for all rows. The last array of a column is cached, because values often repeat."""
        import pyarrow as pa

        rows, value = len(self), path_text(value) if isinstance(value, str) else value
        known = self._constants.get(column.name)
        if known is None or known[0] != value or len(known[1]) < rows:
            known = self._constants[column.name] = (value, pa.repeat(pa.scalar(value, kind), rows + rows // 4))
        return known[1].slice(0, rows)

    def _spread(self, column: Column, kind: pa.DataType) -> pa.Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        values = _facts(column, self._batches)
        if values.count(values[0]) == len(values):
            return self._constant(column, values[0], kind)
        return pc.run_end_decode(
            pa.RunEndEncodedArray.from_arrays(pa.array(self._ends, pa.int32()), pa.array(values, kind))
        )

    def _of_markers(self, column: Column, kind: pa.DataType) -> pa.Array:
        import pyarrow as pa

        if not any(item.batch.is_control for item in self._batches):
            return self._constant(column, None, kind)
        read = found.source(column)
        values: list[object] = []
        for item, end in zip(self._batches, self._ends, strict=True):
            values += (
                [read(item, record) for record in item.records]
                if item.batch.is_control
                else repeat(None, end - len(values))
            )
        return pa.array(values, kind)

    def _decoded(self, column: Column, kind: pa.DataType) -> pa.Array:
        """Return the decoded records, or one field of their payloads, as JSON. A field that is text has no quotes."""
        import pyarrow as pa

        if self._recorded is not self._objects:  # compiled code leaves batches with decodable records to Python
            return self._constant(column, None, kind)
        read = found.source(column)
        values = (read(item, record) for item in self._batches for record in item.records)
        return pa.array([None if value is None else json_text.plain(column, value) for value in values], kind)

    def _against_mark(self, column: Column, kind: pa.DataType) -> pa.Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        name, compare = _MARKS[column.name]
        mark = getattr(self._file, name)
        if mark is None:
            return self._constant(column, None, kind)
        return getattr(pc, compare)(self._recorded.array("offset", pa.int64()), mark)


def _column_of(name: str) -> Column:
    column = decoded_field(name)
    return _COLUMNS[name] if column is None else column


def _fields(names: Iterable[str]) -> set[str]:
    wanted = [_COLUMNS[name] for name in names if name in _COLUMNS]
    fields = {column.attribute for column in wanted if column.scope == "record"}
    return fields | {"offset"} if any(column.name in _MARKS for column in wanted) else fields


def _facts(column: Column, items: list[SelectedBatch]) -> list[Any]:
    if column.source in found.SOURCES:
        read = found.source(column)
        return [read(item, None) for item in items]
    values = list(map(attrgetter(column.source), items))
    return [compression.NAMES[value] for value in values] if column.name == "codec" else values


def _null_where_empty(lists: pa.ListArray) -> pa.ListArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    is_empty = pc.equal(pc.list_value_length(lists), 0)
    return pa.ListArray.from_arrays(lists.offsets, lists.values, type=lists.type, mask=is_empty)


def spark_timestamps(stored: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return timestamps (ms) in Spark's unit (us); null for -1, and outside the years 1 to 9999."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ends = pc.min_max(stored).as_py()
    if ends["min"] >= 0 and ends["max"] <= LATEST_MS:  # nearly always
        return pc.multiply(stored, 1000).view(kind)
    shown = pc.and_(pc.greater_equal(stored, EARLIEST_MS), pc.less_equal(stored, LATEST_MS))
    shown = pc.and_(shown, pc.not_equal(stored, -1))
    return pc.multiply(pc.if_else(shown, stored, pa.scalar(None, pa.int64())), 1000).view(kind)
