"""The headers of batches as Arrow: the columns of :data:`kdump.rows.columns.BATCH` that need nothing but a header."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from kdump.arrow import schema
from kdump.arrow.columns import spark_timestamps
from kdump.errors import DamageError
from kdump.primitives import compression
from kdump.rows import columns as rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from kdump.records.record_batch import RecordBatch
    from kdump.rows.selection import SegmentFacts

ROWS: Final = 1 << 14
"""Rows of a record batch at most."""
_LEFT_OUT: Final = {"kind", "crcValid", "transactionState"}
"""Columns that only text formats need, or that depend on the batch's bytes or on other batches."""
COLUMNS: Final = tuple(
    column for column in rows.BATCH if column.name not in _LEFT_OUT and column.scope in ("file", "batch")
)
FIELDS: Final = schema.fields(COLUMNS)
_FILE: Final = tuple(dict.fromkeys(column.source for column in COLUMNS if column.scope == "file"))
_BATCH: Final = tuple(dict.fromkeys(column.source for column in COLUMNS if column.scope == "batch"))
_of_file: Final = attrgetter(*(source.removeprefix("file.") for source in _FILE))
_of_batch: Final = attrgetter(*(source.removeprefix("batch.") for source in _BATCH))


def record_batches(found: Iterable[tuple[SegmentFacts, RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """Yield a row for each batch and its file.

    An entry of magic 0 or 1 that cannot be decompressed has none.
    """
    facts: list[tuple[Any, ...]] = []
    for file, batch in found:
        try:
            facts.append((*_of_file(file), *_of_batch(batch)))
        except DamageError:
            continue
        if len(facts) == ROWS:
            yield _made(facts)
            facts = []
    if facts:
        yield _made(facts)


def _made(facts: list[tuple[Any, ...]]) -> pa.RecordBatch:
    import pyarrow as pa

    shape = schema.arrow(FIELDS)
    facts_of = dict(zip((*_FILE, *_BATCH), zip(*facts, strict=True), strict=True))
    arrays = []
    for column, field in zip(COLUMNS, shape, strict=True):
        values = facts_of[column.source]
        if column.type == "codec":
            arrays.append(pa.array([compression.NAMES[number] for number in values], field.type))
        elif column.type == "timestamp":
            arrays.append(spark_timestamps(pa.array(values, pa.int64()), field.type))
        else:
            arrays.append(pa.array(values, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=shape)
