"""Arrow record batches as a Parquet file: zstd, with row groups of one size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

ROW_GROUP: Final = 122_880
"""Rows of a row group."""


def write(schema: pa.Schema, batches: Iterable[pa.RecordBatch], out: BinaryIO) -> int:
    """Write record batches; return how many rows there are. One row group is held in memory."""
    import pyarrow as pa
    from pyarrow import parquet

    rows = 0
    held: list[pa.RecordBatch] = []
    with parquet.ParquetWriter(out, schema, compression="zstd") as writer:
        for batch in batches:
            held.append(batch)
            rows += batch.num_rows
            if sum(one.num_rows for one in held) >= ROW_GROUP:
                held = _row_groups(writer, held)
        if held:
            writer.write_table(pa.Table.from_batches(held), ROW_GROUP)
    return rows


def _row_groups(writer: Any, held: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Write whole row groups; return the rows after them."""
    import pyarrow as pa

    table = pa.Table.from_batches(held)
    whole = table.num_rows - table.num_rows % ROW_GROUP
    writer.write_table(table.slice(0, whole), ROW_GROUP)
    rest: list[pa.RecordBatch] = table.slice(whole).to_batches()
    return rest
