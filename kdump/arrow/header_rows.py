"""Makes Arrow rows from batch headers: a row per record (:class:`HeaderRows`) or per batch (the functions).

In magic 2 the rows of a batch's records are equal, and the header has their number: nothing is decompressed. Batches in
a run (:class:`kdump.segments.batch_runs.Run`) become objects only for columns of ``_OF_EACH``.
"""

from __future__ import annotations

from itertools import accumulate, repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from kdump.arrow import schema
from kdump.arrow.columns import ROWS, Rows, end_of_block, growing, spark_timestamps
from kdump.errors import DamageError
from kdump.formats.record_layout import TIMESTAMP_TYPES
from kdump.log_reader.filter import Filter
from kdump.primitives import compression
from kdump.primitives.terminal import path_text
from kdump.records.magic_2 import Batch
from kdump.rows import columns as rows
from kdump.rows import values
from kdump.rows.selection import SelectedBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

    from kdump.records.record_batch import RecordBatch
    from kdump.rows.columns import Column
    from kdump.rows.selection import DamagedRange, SegmentFacts


_NOT_OF_HEADERS: Final = {"kind", "crcValid"}
RECORD_COLUMNS: Final = frozenset(
    column.name
    for column in rows.RECORD
    if column.name not in _NOT_OF_HEADERS
    and (column.scope in {"file", "batch"} or column.source == "state.transaction")
)
"""The record columns with one value for all records of a batch of magic 2, except ``kind`` and ``crcValid``."""
_RUN_COLUMNS: Final = {
    "batch.base_offset": "base_offset",
    "batch.last_offset": "last_offset",
    "batch.count": "records_count",
    "batch.max_timestamp": "max_timestamp",
    "batch.position": "position",
    "batch.size": "size",
    "batch.crc": "crc",
    "batch.partition_leader_epoch": "partition_leader_epoch",
    "batch.producer_id": "producer_id",
    "batch.producer_epoch": "producer_epoch",
    "batch.base_sequence": "base_sequence",
    "batch.last_sequence": "last_sequence",
}
"""``source`` of a column (:class:`kdump.rows.columns.Column`) -> the column of a batch run that has its values."""


class HeaderRows:
    """Makes rows of records from headers (magic 2) or records. ``names``: of RECORD_COLUMNS. ``lost`` gets damage."""

    def __init__(self, names: Sequence[str], lost: Callable[[DamagedRange], None]) -> None:
        self._names, self._lost = names, lost
        known = {column.name: column for column in rows.RECORD}
        self._columns = [known[name] for name in names]
        self._schema = schema.arrow(schema.chosen(names))
        self._values: list[list[Any]] = [[] for _ in names]
        self._counts: list[int] = []
        self._rows = 0

    def batches(self, items: Iterable[SelectedBatch | DamagedRange]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of ``items``, read in the mode ``Take.HEADERS``, and an empty record batch for damage."""
        sizes = growing(ROWS)
        most = next(sizes)
        for item in items:
            if not isinstance(item, SelectedBatch):
                yield from self._take()
                yield end_of_block(self._schema)
                self._lost(item)
                continue
            if isinstance(item.batch, Batch) and (item.run is not None or not item.records):
                for found, count in _parts(item, self._columns):
                    while count:
                        some = min(count, most - self._rows)
                        self._add(found, some)
                        count -= some
                        if self._rows == most:
                            yield from self._take()
                            most = next(sizes)
            elif item.records:
                yield from self._take()
                one = Rows(item.file, self._names, Filter())
                one.add(item)
                yield from one.take()
        yield from self._take()

    def _add(self, found: list[Any], count: int) -> None:
        for held, value in zip(self._values, found, strict=True):
            held.append(value)
        self._counts.append(count)
        self._rows += count

    def _take(self) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        if not self._rows:
            return
        ends = pa.array(accumulate(self._counts), pa.int64())
        arrays = [
            _spread(ends, self._rows, values_of, column, field.type)
            for column, values_of, field in zip(self._columns, self._values, self._schema, strict=True)
        ]
        made = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        self._values, self._counts, self._rows = [[] for _ in self._names], [], 0
        yield made


def _spread(ends: pa.Array, count: int, found: list[Any], column: Column, kind: pa.DataType) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    if found.count(found[0]) == len(found):
        return pa.repeat(_array(column, found[:1], kind)[0], count)
    return pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(ends, _array(column, found, kind)))


def _parts(item: SelectedBatch, columns: Sequence[Column]) -> Iterator[tuple[list[Any], int]]:
    """Yield the values of ``columns`` and the number of their rows: for each batch, or once if all are equal."""
    run = item.run
    if run is None:
        yield [values.source(column)(item, None) for column in columns], item.batch.count or 0
        return
    alike = [None if column.source in _RUN_COLUMNS else values.source(column)(item, None) for column in columns]
    counts = run.run.column("records_count", run.row, run.stop)
    if all(column.source not in _RUN_COLUMNS for column in columns):
        yield alike, sum(counts)
        return
    differing = [
        run.run.column(_RUN_COLUMNS[column.source], run.row, run.stop)
        if column.source in _RUN_COLUMNS
        else repeat(value)
        for column, value in zip(columns, alike, strict=True)
    ]
    yield from zip(map(list, zip(*differing, strict=False)), counts, strict=False)


BATCH_COLUMNS: Final = tuple(column for column in rows.BATCH if column.name != "kind")
_BATCH_ROWS: Final = 1 << 13
"""Rows of a full Arrow record batch; the first ones are smaller. The batch run that fills it is not divided."""


def of_batches(
    items: Iterable[SelectedBatch | DamagedRange], names: Sequence[str], lost: Callable[[DamagedRange], None]
) -> Iterator[pa.RecordBatch]:
    """Yield Arrow record batches with a row per batch of ``items``; null if unknown. ``lost`` gets damage."""
    known = {column.name: column for column in BATCH_COLUMNS}
    columns = [known[name] for name in names]
    values: list[list[Any]] = [[] for _ in columns]
    sizes = growing(_BATCH_ROWS)
    most = next(sizes)
    for item in items:
        if not isinstance(item, SelectedBatch):
            if values[0]:
                yield _batches(columns, values)
                values = [[] for _ in columns]
            lost(item)
            continue
        found = [_of_item(column, item, item.batch_count) for column in columns]
        for into, more in zip(values, found, strict=True):
            into += more
        if len(values[0]) >= most:
            yield _batches(columns, values)
            values, most = [[] for _ in columns], next(sizes)
    if values[0]:
        yield _batches(columns, values)


def _of_item(column: Column, item: SelectedBatch, count: int) -> Iterable[Any]:
    run = item.run
    if run is None:
        try:
            return [values.source(column)(item, None)]
        except DamageError:  # a compressed message of magic 0 or 1 that cannot be decompressed
            return [None]
    if column.source in _RUN_COLUMNS:
        return run.run.column(_RUN_COLUMNS[column.source], run.row, run.stop)
    if column.name == "crcValid" or column.source not in _OF_EACH:
        return repeat(values.source(column)(item, None), count)
    batches = map(run.run.batch, range(run.row, run.stop))
    read = values.source(column)
    return [read(item._replace(batch=batch, base_offset=batch.base_offset), None) for batch in batches]


_OF_EACH: Final = {"state.above_high_watermark", "state.below_log_start"}
"""Sources that are computed for each batch, because a batch run has no column for them."""


def _batches(columns: Sequence[Column], values: list[list[Any]]) -> pa.RecordBatch:
    import pyarrow as pa

    shape = batch_schema(columns)
    return pa.RecordBatch.from_arrays(
        [_array(column, found, field.type) for column, found, field in zip(columns, values, shape, strict=True)],
        schema=shape,
    )


def _array(column: Column, found: Sequence[Any], kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    if column.type == "timestamp":
        return spark_timestamps(pa.array(found, pa.int64()), kind)
    if column.type == "codec":
        found = [compression.NAMES[one] for one in found]
    elif column.type == "timestampType" and pa.types.is_string(kind):
        found = [None if one is None else TIMESTAMP_TYPES[one] for one in found]
    elif pa.types.is_string(kind):
        found = [None if one is None else path_text(one) for one in found]
    return pa.array(found, kind)


def batch_schema(columns: Iterable[Column]) -> pa.Schema:
    """Return the Arrow schema of batches. Timestamp types are texts."""
    import pyarrow as pa

    columns = list(columns)
    shape = schema.arrow(schema.fields(columns))
    return pa.schema(
        [
            pa.field(field.name, pa.string()) if column.type == "timestampType" else field
            for column, field in zip(columns, shape, strict=True)
        ]
    )


_LEFT_OUT: Final = {"kind", "crcValid", "transactionState"}
"""Columns of batches that HEADER_COLUMNS, the columns of Spark's output ``batches``, leave out."""
HEADER_COLUMNS: Final = tuple(
    column for column in rows.BATCH if column.name not in _LEFT_OUT and column.scope in ("file", "batch")
)
HEADER_FIELDS: Final = schema.fields(HEADER_COLUMNS)
_FILE: Final = tuple(dict.fromkeys(column.source for column in HEADER_COLUMNS if column.scope == "file"))
_BATCH: Final = tuple(dict.fromkeys(column.source for column in HEADER_COLUMNS if column.scope == "batch"))
_of_file: Final = attrgetter(*(source.removeprefix("file.") for source in _FILE))
_of_batch: Final = attrgetter(*(source.removeprefix("batch.") for source in _BATCH))


def record_batches(found: Iterable[tuple[SegmentFacts, RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """Yield Arrow record batches with one row per batch. Broken compressed batches of magic 0 and 1 are left out."""
    facts: list[tuple[Any, ...]] = []
    for file, batch in found:
        try:
            facts.append((*_of_file(file), *_of_batch(batch)))
        except DamageError:
            continue
        if len(facts) == ROWS:
            yield _of_headers(facts)
            facts = []
    if facts:
        yield _of_headers(facts)


def _of_headers(facts: list[tuple[Any, ...]]) -> pa.RecordBatch:
    import pyarrow as pa

    shape = schema.arrow(HEADER_FIELDS)
    facts_of = dict(zip((*_FILE, *_BATCH), zip(*facts, strict=True), strict=True))
    arrays = [
        _array(column, facts_of[column.source], field.type) for column, field in zip(HEADER_COLUMNS, shape, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=shape)
