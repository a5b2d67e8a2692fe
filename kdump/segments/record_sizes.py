"""The sizes of records as columns of numbers: what sums and percentiles need, without an object for each record."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, NamedTuple

from kdump import kernel
from kdump.errors import DamageError
from kdump.formats.record_layout import BATCH_HEADER, CODEC_MASK
from kdump.records.magic_2 import Batch
from kdump.segments.batch_runs import Run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kdump.primitives.wire import Bytes
    from kdump.records.record_batch import Batches, RecordBatch
if kernel.COMPILED:
    from kdump.kernel.batches import WIDTH
    from kdump.kernel.records import Sizes


class RecordSizes(NamedTuple):
    """Offsets of records, and the sizes in bytes of their keys and values, -1 for null."""

    offsets: Sequence[int]
    keys: Sequence[int]
    values: Sequence[int]
    size: int
    """Bytes of the records with the headers of their batches, without compression."""


def of(batches: Batches) -> tuple[RecordSizes, int]:
    """Return the sizes in the batches before the first that has a malformed record, and the number of these batches.

    Raises DamageError where a single batch has one.
    """
    return _of_run(batches) if isinstance(batches, Run) else (_of_batch(batches.first), 1)


def _of_batch(batch: RecordBatch) -> RecordSizes:
    if kernel.COMPILED and isinstance(batch, Batch) and batch.count > 0:
        data, start = batch.payload()
        row = array("q", (start, len(data), *batch.header))
        columns, done = _columns(data, row, len(row), 1)
        if done:
            return RecordSizes(columns[0], columns[1], columns[2], BATCH_HEADER.size + len(data) - start)
    found = list(batch.records())
    return RecordSizes(
        [record.offset for record in found],
        [-1 if record.key is None else len(record.key) for record in found],
        [-1 if record.value is None else len(record.value) for record in found],
        sum(record.size for record in found) + (BATCH_HEADER.size if isinstance(batch, Batch) else 0),
    )


def _of_run(run: Run) -> tuple[RecordSizes, int]:
    if not run.first.attributes & CODEC_MASK:
        columns, taken = _columns(run.block, run.rows, WIDTH, run.batch_count)
        return RecordSizes(columns[0], columns[1], columns[2], sum(run.column("size", 0, taken))), taken
    offsets, keys, values = array("q"), array("q"), array("q")
    size = 0
    for row in range(run.batch_count):
        try:
            one = _of_batch(run.batch(row))
        except DamageError:
            return RecordSizes(offsets, keys, values, size), row
        offsets.extend(one.offsets)
        keys.extend(one.keys)
        values.extend(one.values)
        size += one.size
    return RecordSizes(offsets, keys, values, size), run.batch_count


def _columns(
    block: Bytes, rows: array[int], width: int, count: int
) -> tuple[tuple[array[int], array[int], array[int]], int]:
    """Return the columns of the first batches in a table of rows, and how many batches these are."""
    reader = Sizes()
    reader.stack(block, rows, width, 0, count)
    return reader.columns(), reader.row
