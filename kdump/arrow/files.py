"""Writes Arrow data as Parquet (zstd) or IPC stream, converts it to pandas and Polars, and limits pyarrow's memory."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from os import fspath
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from kdump.errors import UsageError, discard
from kdump.primitives import signals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from os import PathLike

    import pyarrow as pa


ROW_GROUP: Final = 122_880
"""Maximum number of rows of a row group."""
ROW_GROUP_BYTES: Final = 8 << 20
"""Rows of this size in bytes are written as a row group. The writer uses a few times as much memory."""


def _is_payload(field: pa.Field) -> bool:
    """Return whether a column has bytes other than keys, such as the values of records."""
    import pyarrow as pa

    return bool(pa.types.is_binary(field.type)) and field.name != "key"


def _leaves(fields: Iterable[pa.Field], above: str = "") -> Iterator[str]:
    """Yield the paths of a schema's columns that have no children, as Parquet names them."""
    import pyarrow as pa

    for field in fields:
        kind, path = field.type, f"{above}{field.name}"
        if pa.types.is_struct(kind):
            yield from _leaves(kind, f"{path}.")
        elif pa.types.is_map(kind):
            yield from _leaves(
                [kind.key_field.with_name("key"), kind.item_field.with_name("value")], f"{path}.key_value."
            )
        elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
            yield from _leaves([kind.value_field.with_name("element")], f"{path}.list.")
        else:
            yield path


class ParquetFile:
    """Writes a Parquet file to ``out``. ``rows``: number of all rows. ``held_bytes``: bytes of rows not yet written.

    Raises UsageError for columns that Parquet cannot have, such as intervals.
    """

    def __init__(self, schema: pa.Schema, out: BinaryIO) -> None:
        with signals.held():  # an import of a compiled library may swallow Ctrl-C
            from pyarrow import parquet

        # statistics of payloads take five times the largest value in memory, and no reader uses them
        payloads = {field.name for field in schema if _is_payload(field)}
        others = [path for path in _leaves(schema) if path not in payloads] if payloads else True
        self._out = _Output(out)
        try:
            self._writer = parquet.ParquetWriter(self._out, schema, compression="zstd", write_statistics=others)
        except NotImplementedError as reason:
            wrong = str(reason).partition(" conversion: ")[2]
            names = ", ".join(field.name for field in schema if wrong in str(field.type))
            raise UsageError(
                f"Parquet has no type for {wrong} (columns: {names}): convert them, for example to VARCHAR"
            ) from reason
        self._held: list[pa.RecordBatch] = []
        self.rows = self._held_rows = self.held_bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self._held.append(batch)
        self.rows += batch.num_rows
        self._held_rows, self.held_bytes = self._held_rows + batch.num_rows, self.held_bytes + batch.nbytes
        if self._held_rows >= ROW_GROUP:
            self._write(self._held_rows - self._held_rows % ROW_GROUP)
        elif self.held_bytes >= ROW_GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        self._write(self._held_rows)

    def _write(self, count: int) -> None:
        import pyarrow as pa

        if count:
            table = pa.Table.from_batches(self._held)
            self._writer.write_table(table.slice(0, count), ROW_GROUP)
            self._held = table.slice(count).to_batches()
            self._held_rows, self.held_bytes = table.num_rows - count, sum(one.nbytes for one in self._held)

    def close(self) -> None:
        self.flush()
        self._writer.close()

    def abandon(self) -> None:
        """Close the writer without a footer, so that no reader accepts the incomplete file."""
        self._out.write = len
        with suppress(OSError):
            self._writer.close()


class _Output:
    """The file to which PyArrow writes. To drop all further bytes, a caller sets ``write`` to the function ``len``."""

    def __init__(self, out: BinaryIO) -> None:
        self.write: Callable[[Any], int] = out.write
        self.flush = out.flush

    @property
    def closed(self) -> bool:
        return False


def write_parquet(schema: pa.Schema, batches: Iterable[pa.RecordBatch], out: BinaryIO) -> int:
    """Write record batches; return the number of rows. About one row group is in memory."""
    file, interrupts = ParquetFile(schema, out), signals.Interrupts()
    try:
        for batch in batches:
            interrupts.check()  # pyarrow may swallow Ctrl-C in ``out``
            file.add(batch)
        file.close()
    except BaseException:
        file.abandon()  # pyarrow prints a traceback if it deletes the writer after ``out`` is closed
        raise
    interrupts.check()
    return file.rows


FORMATS: Final = ("parquet", "arrow")


_M_ARENA_MAX: Final = -8  # the parameter of mallopt for the number of heaps


class _NotInstalled:
    """An import hook: pandas and NumPy cannot be imported, as if they were not installed."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:  # noqa: ARG004  as importlib calls it
        if name in {"pandas", "numpy"}:
            raise ModuleNotFoundError(name)


def small_arrow() -> None:
    """Reduce the memory of this process before it imports pyarrow: no pandas, no NumPy, no pool of Arrow, one heap.

    pyarrow and DuckDB import pandas and NumPy if installed, which takes 65 MiB and 0.4 s of CPU. These imports are
    blocked for good: DuckDB repeats them at each connection, and a late import of NumPy crashes pyarrow. Arrow's pool
    keeps up to 40 MiB of free memory (ARROW_DEFAULT_MEMORY_POOL names another). With values of 1 MB, the heaps of
    glibc, one per thread, keep up to 100 MiB. One heap is as fast.
    """
    from ctypes import CDLL

    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    with suppress(AttributeError):  # another C library than glibc
        CDLL(None).mallopt(_M_ARENA_MAX, 1)
    if _NotInstalled not in sys.meta_path:
        sys.meta_path.insert(0, _NotInstalled)


def write(form: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch], out: BinaryIO) -> int:
    """Write rows as ``form``, one of FORMATS; return their number."""
    return (write_parquet if form == "parquet" else _arrow)(schema, batches, out)


def _arrow(schema: pa.Schema, batches: Iterable[pa.RecordBatch], out: BinaryIO) -> int:
    import pyarrow as pa

    rows, interrupts = 0, signals.Interrupts()
    with pa.ipc.new_stream(out, schema) as stream:
        for batch in batches:
            interrupts.check()
            stream.write_batch(batch)
            rows += batch.num_rows
    interrupts.check()
    return rows


class TableResult:
    """Base class of results that convert to an Arrow table in memory. ``paths`` are the input paths."""

    __slots__ = ()
    paths: tuple[str, ...]

    def to_arrow(self) -> pa.Table:
        """Return the result as an Arrow table."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """Return :meth:`to_arrow` as a DataFrame; integers with nulls have a type such as ``Int64``. Needs pandas."""
        return to_pandas(self.to_arrow())

    def to_polars(self) -> Any:
        """Return the table of :meth:`to_arrow` as a Polars DataFrame. Requires Polars."""
        return to_polars(self.to_arrow())

    def to_parquet(self, path: str | PathLike[str], *, overwrite: bool = False) -> int:
        """Write the table to a Parquet file; return the number of rows. The file appears when it is complete.

        Raises UsageError if ``path`` is in an input, or exists without ``overwrite``; UnreadableError if writing fails.
        """
        return to_parquet(self.to_arrow().to_reader(), path, overwrite=overwrite, inputs=self.paths)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return a stream for libraries with Arrow's PyCapsule interface, such as pandas, Polars and DuckDB."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)


def to_pandas(table: pa.Table) -> Any:
    """Return a table as a pandas DataFrame. Integers with nulls stay integers: floats are exact only up to 2**53."""
    import pandas as pd  # type: ignore[import-untyped,unused-ignore]  # without pandas-stubs
    import pyarrow as pa

    nulls = {}
    for place, column in enumerate(table.columns):
        if pa.types.is_integer(column.type) and column.null_count:
            nulls[place] = column.is_null().to_numpy()
            table = table.set_column(place, table.schema.names[place], column.fill_null(0))
    frame = table.to_pandas(integer_object_nulls=True)  # for integers in structs and lists
    for place, missing in nulls.items():
        numbers = frame.iloc[:, place].to_numpy(copy=True)
        frame.isetitem(place, pd.arrays.IntegerArray(numbers, missing))
    return frame


def to_polars(table: pa.Table) -> Any:
    import polars as pl

    return pl.from_arrow(table)


def to_parquet(
    reader: pa.RecordBatchReader,
    path: str | PathLike[str],
    *,
    overwrite: bool,
    inputs: Iterable[str],
    note: Callable[[str], None] = discard,
) -> int:
    """Write a stream of record batches to a Parquet file; return the number of rows.

    Raises UsageError if ``path`` cannot be replaced, exists without ``overwrite`` or is in one of ``inputs``, and
    UnreadableError if writing fails or is not permitted.
    """
    from kdump.output import files

    files.outside(inputs, fspath(path))
    files.writable_file(fspath(path), overwrite=overwrite, option="overwrite=True")
    with files.new_file(path, force=overwrite, note=note) as out:
        return write_parquet(reader.schema, reader, out)
