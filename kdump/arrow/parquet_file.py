"""Arrow record batches as a Parquet file: zstd, with row groups of bounded size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

ROW_GROUP: Final = 122_880
"""Rows of a row group, at most."""
ROW_GROUP_BYTES: Final = 8 << 20
"""Bytes of Arrow columns from which on rows are written as a row group: what a writer holds is some times as much."""


def write(schema: pa.Schema, batches: Iterable[pa.RecordBatch], out: BinaryIO) -> int:
    """Write record batches; return how many rows there are. Of these one row group is held in memory."""
    import pyarrow as pa
    from pyarrow import parquet

    rows = held_rows = held_bytes = 0
    held: list[pa.RecordBatch] = []
    with parquet.ParquetWriter(out, schema, compression="zstd") as writer:
        for batch in batches:
            held.append(batch)
            rows, held_rows, held_bytes = rows + batch.num_rows, held_rows + batch.num_rows, held_bytes + batch.nbytes
            if held_rows >= ROW_GROUP:
                held = _row_groups(writer, held)
            elif held_bytes >= ROW_GROUP_BYTES:
                writer.write_table(pa.Table.from_batches(held), ROW_GROUP)
                held = []
            else:
                continue
            held_rows, held_bytes = sum(one.num_rows for one in held), sum(one.nbytes for one in held)
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
