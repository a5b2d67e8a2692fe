"""Parquet files: the columns that have statistics."""

from io import BytesIO

import pyarrow as pa
import pytest
from pyarrow import parquet

from kdump.arrow import files, schema, stream

NESTED = pa.schema(
    {
        "key": pa.binary(),
        "value": pa.binary(),
        "offset": pa.int64(),
        "list": pa.list_(pa.struct({"name": pa.string(), "content": pa.binary()})),
        "map": pa.map_(pa.string(), pa.int32()),
        "struct": pa.struct({"a": pa.string(), "b": pa.struct({"c": pa.int64()})}),
    }
)


def leaves(columns, row):
    """Write a row; return path -> whether the column has statistics."""
    out = BytesIO()
    files.write_parquet(columns, [pa.RecordBatch.from_pylist([row], columns)], out)
    group = parquet.read_metadata(out).row_group(0)
    found = [group.column(number) for number in range(group.num_columns)]
    return {one.path_in_schema: one.is_stats_set for one in found}


def test_only_payloads_have_no_statistics():
    row = {"key": b"k", "value": b"v", "offset": 1, "list": [{"name": "n", "content": b"c"}], "map": [("k", 1)]}
    found = leaves(NESTED, {**row, "struct": {"a": "a", "b": {"c": 1}}})
    assert not found.pop("value")
    assert len(found) == 8
    assert set(found.values()) == {True}
    assert sorted(found) == sorted({*files._leaves(NESTED)} - {"value"})


@pytest.mark.parametrize("columns", [schema.arrow(schema.chosen(stream.NAMES)), pa.schema({"n": pa.int64()})])
def test_paths_of_leaves_are_those_of_the_file(columns):
    out = BytesIO()
    files.write_parquet(columns, [], out)
    found = parquet.read_metadata(out).schema
    assert list(files._leaves(columns)) == [found.column(number).path for number in range(len(found))]


@pytest.mark.parametrize("rows", [5, files.ROW_GROUP + 5])
def test_a_file_that_cannot_be_finished_is_no_valid_file(rows):
    batch = pa.record_batch({"offset": pa.array(range(rows))})

    def batches():
        yield batch
        raise OSError("gone")

    out = BytesIO()
    with pytest.raises(OSError, match="gone"):
        files.write_parquet(batch.schema, batches(), out)
    with pytest.raises(pa.ArrowInvalid):
        parquet.read_table(BytesIO(out.getvalue()))
    out = BytesIO()
    assert files.write_parquet(batch.schema, [batch], out) == rows
    assert parquet.read_table(BytesIO(out.getvalue())).num_rows == rows
