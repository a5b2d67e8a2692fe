"""Record batches as files: Apache Parquet, and the stream of Arrow's IPC format."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, Final

from kdump.arrow import parquet_file

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

FORMATS: Final = ("parquet", "arrow")


def write(form: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch], out: BinaryIO) -> int:
    """Write rows as ``form``, one of FORMATS; return how many there are."""
    return (parquet_file.write if form == "parquet" else _arrow)(schema, batches, out)


def _arrow(schema: pa.Schema, batches: Iterable[pa.RecordBatch], out: BinaryIO) -> int:
    import pyarrow as pa

    rows = 0
    with pa.ipc.new_stream(out, schema) as stream:
        for batch in batches:
            stream.write_batch(batch)
            rows += batch.num_rows
    return rows
