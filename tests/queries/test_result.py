"""``kdump.sql``: the rows of a query in Python."""

import json
import subprocess
import sys
import tempfile
from datetime import UTC, datetime

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

import pyarrow as pa

import kdump
from kdump.errors import KdumpError, UnreadableError, UsageError
from testing import ROOT
from testing.processes import kdump as run

BROKER = str(ROOT / "golden" / "brokers" / "4.2.2")
DAMAGED = str(ROOT / "golden" / "damaged" / "fuzz000")


def test_rows_and_the_forms_of_other_libraries():
    query = "select topic, count(*) as n, any_value(key) as k from records where topic = 'one' group by 1"
    result = kdump.sql(query, BROKER)
    rows = [{"topic": "one", "n": 1, "k": next(iter(kdump.open(BROKER, topic="one"))).key}]
    assert result.rows() == result.to_arrow().to_pylist() == pa.table(result).to_pylist() == rows
    assert result.to_pandas().to_dict("records") == result.to_polars().to_dicts() == rows
    assert repr(result) == "<QueryResult: 1 row of topic, n, k>"
    assert "<th>topic</th>" in result._repr_html_()


def test_arguments():
    count = "select count(*) as n from records"
    assert kdump.sql(count, BROKER, topic="txn", isolation="read_committed").rows() == [{"n": 52}]
    assert kdump.sql(count, BROKER, topic=["c-*"], partition=0).rows() == [{"n": 1114}]
    assert kdump.sql("select $a::bigint + 1 as a", BROKER, params={"a": 4}).rows() == [{"a": 5}]
    key = 'select min("offset") as n from records where key = $key and timestamp > $since'
    since = datetime(2023, 11, 14, tzinfo=UTC)
    assert kdump.sql(key, BROKER, topic="compact", params={"key": b"ck-6", "since": since}).rows() == [{"n": 174}]
    with pytest.raises(KdumpError, match="object"):
        kdump.sql("select $a", BROKER, params={"a": object()})
    assert kdump.sql("select 1 as a, 2 as a", BROKER).rows() == [{"a": 1, "a_1": 2}]
    age = "select ageMs from transactions where state = 'open'"
    assert kdump.sql(age, BROKER, at="2026-11-22").rows() != kdump.sql(age, BROKER, at="2026-11-23").rows() != []


@pytest.mark.parametrize("name", ["none-body-first-crcok", "v0none-len-zero"])
def test_a_log_whose_records_show_no_secret_has_damage_as_dump_prints_it(name):
    """The records before the damage decide whether its values may be shown, although no column needs them."""
    path = ROOT / "golden" / "damaged" / name
    lines = map(json.loads, run("dump", path, "-o", "jsonl", "-q").stdout.splitlines())
    expected = [
        (line["reason"], str(line["expected"]), str(line["found"])) for line in lines if line["kind"] == "damage"
    ]
    result = kdump.sql("select reason, expected, found from damage", str(path))
    assert [tuple(row.values()) for row in result.rows()] == expected != []


def test_damage_is_in_the_result():
    result = kdump.sql("select count(*) as n from records", DAMAGED)
    assert len(result.damage) == 1
    assert "byte 798" in result.damage[0]
    assert repr(result).endswith("of n, 1 report of damage>")


def test_errors(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(UsageError, match="syntax error"):
        kdump.sql("selec 1", BROKER)
    with pytest.raises(UsageError, match="DROP is refused"):
        kdump.sql("drop view records", BROKER)
    with pytest.raises(UsageError, match="no path was given"):
        kdump.sql("select 1")
    for words, text in (
        ({"timeout": 0}, "timeout=0: expected a number of seconds above 0"),
        ({"timeout": "5"}, "timeout='5': expected a number of seconds above 0"),
        ({"timeout": float("nan")}, "timeout=nan: expected a number of seconds above 0"),
        ({"memory": -1}, "memory=-1: expected a whole number, 1 or more"),
        ({"memory": "1g"}, "memory='1g': expected a whole number, 1 or more"),
        ({"params": [1]}, r"params=\[1\]: expected a dict"),
        ({"schemas": 5, "decode": "auto"}, "5 is not a path"),
    ):
        with pytest.raises(UsageError, match=text):
            kdump.sql("select 1", BROKER, **words)
    with pytest.raises(UsageError, match="the query comes first"):
        kdump.sql(tmp_path, "select 1")
    with pytest.raises(UnreadableError, match="No such file"):
        kdump.sql("from records", tmp_path / "nope")
    with pytest.raises(KdumpError, match="Conversion Error"):
        kdump.sql("select 'x'::int", BROKER)
    with pytest.raises(KdumpError, match=r"stopped after 0\.5 s"):
        kdump.sql("select count(*) from range(1000000000000)", BROKER, timeout=0.5)
    assert list(tmp_path.iterdir()) == []


def test_the_function_stays_after_the_command_was_imported():
    text = "import kdump.commands.sql, kdump.queries.engine, kdump; print(callable(kdump.sql))"
    assert subprocess.run([sys.executable, "-c", text], capture_output=True, check=True).stdout == b"True\n"


def test_findings_are_a_table():
    report = kdump.check(DAMAGED)
    assert report.to_arrow().column("check").to_pylist() == [one.kind for one in report.findings]
    assert report.to_pandas()["position"].tolist()[0] == 798
    assert kdump.check(f"{BROKER}/one-0").to_arrow().schema == report.to_arrow().schema
