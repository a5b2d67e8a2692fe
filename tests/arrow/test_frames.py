"""Results as DataFrames and Parquet files."""

import dataclasses

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pandas")
pytest.importorskip("polars")

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import kdump
from kdump.arrow import files
from kdump.errors import DamageWarning, NoteWarning, UsageError
from testing import GOLDEN

BROKER = GOLDEN / "brokers" / "4.2.2"
DAMAGED = GOLDEN / "damaged" / "fuzz000"
EXACT = 2**53 + 1
"""An integer that a float cannot hold."""


def test_integers_stay_exact_beside_nulls():
    table = pa.table(
        {
            "plain": pa.array([1, EXACT], pa.int64()),
            "gaps": pa.array([EXACT, None], pa.int64()),
            "small": pa.array([None, 7], pa.int32()),
            "unsigned": pa.array([2**64 - 1, None], pa.uint64()),
            "struct": pa.array([{"x": EXACT}, {"x": None}], pa.struct([("x", pa.int64())])),
            "list": pa.array([[EXACT, None], None], pa.list_(pa.int64())),
            "map": pa.array([[("k", EXACT), ("n", None)], None], pa.map_(pa.string(), pa.int64())),
        }
    )
    frame = files.to_pandas(table)
    assert [str(frame[name].dtype) for name in ("plain", "gaps", "small", "unsigned")] == [
        "int64", "Int64", "Int32", "UInt64",
    ]  # fmt: skip
    assert frame["gaps"].tolist() == [EXACT, pd.NA]
    assert frame["small"].tolist() == [pd.NA, 7]
    assert frame["unsigned"][0] == 2**64 - 1
    assert frame["struct"].tolist() == [{"x": EXACT}, {"x": None}]
    assert list(frame["list"][0]) == [EXACT, None]
    assert frame["map"][0] == [("k", EXACT), ("n", None)]


def test_columns_of_one_name_and_no_rows():
    table = pa.table([pa.array([1, None]), pa.array([None, 2])], names=["n", "n"])
    frame = files.to_pandas(table)
    assert frame.iloc[0].tolist() == [1, pd.NA]
    assert frame.iloc[1].tolist() == [pd.NA, 2]
    assert files.to_pandas(table.slice(0, 0)).shape == (0, 2)


def test_an_integer_of_a_query_is_exact():
    query = f"select * from (values ({EXACT}::bigint), (null)) as t(n) order by n nulls last"
    assert kdump.sql(query, BROKER / "one-0").to_pandas()["n"].tolist() == [EXACT, pd.NA]


@pytest.mark.parametrize(
    "result",
    [
        lambda: kdump.groups(BROKER),
        lambda: kdump.check(DAMAGED),
        lambda: kdump.sql("select topic, partition, latest from offsets", BROKER),
    ],
    ids=["answer", "check", "sql"],
)
def test_every_result_has_every_form(result, tmp_path):
    made = result()
    table = made.to_arrow()
    assert table.num_rows > 1
    assert len(made.to_pandas()) == made.to_polars().height == pl.DataFrame(made).height == table.num_rows
    path = tmp_path / "result.parquet"
    assert made.to_parquet(path) == table.num_rows
    assert pq.read_table(path).select(table.schema.names).to_pylist() == table.to_pylist()
    with pytest.raises(UsageError, match="overwrite=True"):
        made.to_parquet(path)
    assert made.to_parquet(path, overwrite=True) == table.num_rows


def test_no_file_is_written_into_a_log_dir(tmp_path):
    logs = tmp_path / "logs"
    (logs / "a-0").mkdir(parents=True)
    (logs / "a-0" / f"{0:020}.log").write_bytes((BROKER / "one-0" / f"{0:020}.log").read_bytes())
    for path in (logs / "a.parquet", logs / "a-0" / "a.parquet"):
        with pytest.raises(UsageError):
            kdump.offsets(logs).to_parquet(path)
        assert not path.exists()


def test_damage_is_a_warning_at_the_line_of_the_caller():
    for read in (
        lambda: list(kdump.open(DAMAGED)),
        lambda: kdump.open(DAMAGED).to_pandas(),
        lambda: kdump.stats(DAMAGED),
        lambda: kdump.sql("select topic from records", DAMAGED),
    ):
        with pytest.warns(DamageWarning, match="byte 798: .*the checksum is wrong") as caught:
            read()
        assert len(caught) == 1
        assert caught[0].filename == __file__


def test_a_misspelled_topic_is_a_warning():
    for read in (
        lambda: list(kdump.open(BROKER, topic="c-zstdd")),
        lambda: kdump.open(BROKER, topic="c-zstdd").to_polars(),
        lambda: kdump.scan(BROKER, topic="c-zstdd").collect(),
    ):
        with pytest.warns(NoteWarning, match="did you mean 'c-zstd'"):
            read()


def test_short_reprs():
    assert repr(kdump.check(DAMAGED)) == "<CheckReport: 2 findings, status 3>"
    assert repr(kdump.groups(BROKER, group="eos")) == "<Answer: 1 line of group, 1 line of offset>"
    assert repr(dataclasses.replace(kdump.groups(BROKER), lines=())) == "<Answer: no lines>"
