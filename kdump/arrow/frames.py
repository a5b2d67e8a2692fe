"""Converts results to DataFrames of pandas and Polars, and writes them to Parquet files."""

from __future__ import annotations

from os import fspath
from typing import TYPE_CHECKING, Any

from kdump.errors import discard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from os import PathLike

    import pyarrow as pa


class TableResult:
    """A result in memory that is an Arrow table. ``paths`` are the inputs."""

    __slots__ = ()
    paths: tuple[str, ...]

    def to_arrow(self) -> pa.Table:
        """Return the result as an Arrow table."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """Return the table of :meth:`to_arrow` as a pandas DataFrame. Requires pandas.

        Integers are exact: a column of integers with nulls has a type such as ``Int64``.
        """
        return to_pandas(self.to_arrow())

    def to_polars(self) -> Any:
        """Return the table of :meth:`to_arrow` as a Polars DataFrame. Requires Polars."""
        return to_polars(self.to_arrow())

    def to_parquet(self, path: str | PathLike[str], *, overwrite: bool = False) -> int:
        """Write the table to a Parquet file, which appears when it is complete; return the number of rows.

        Raises UsageError if ``path`` is in an input, or exists without ``overwrite``; UnreadableError for a disk error.
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
    """Return a table as a Polars DataFrame."""
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
    """Write a stream of record batches to a new Parquet file outside of the inputs; return the number of rows.

    Raises UsageError if ``path`` cannot be written, and UnreadableError if the disk returns an error.
    """
    from kdump.arrow.files import write_parquet
    from kdump.output import files

    files.outside(inputs, fspath(path))
    files.writable_file(fspath(path), overwrite=overwrite, option="overwrite=True")
    with files.new_file(path, force=overwrite, note=note) as out:
        return write_parquet(reader.schema, reader, out)
