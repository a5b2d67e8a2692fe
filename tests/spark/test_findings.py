"""The output findings: the same rows as `kdump check -o jsonl`."""

import json
import shutil

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kdump[spark]'")

from testing import GOLDEN
from testing.processes import kdump

BROKERS = GOLDEN / "brokers"


def rows(spark, *paths, **options):
    frame = (
        spark.read.format("kdump")
        .option("paths", json.dumps([str(path) for path in paths]))
        .option("output", "findings")
    )
    return [row.asDict() for row in frame.options(**options).load().collect()]


OF_A_START = {"version", "code", "missing", "loses", "commands"}
"""Findings that rows lack: only a reader of all log dirs of a broker predicts a start, and Spark distributes them."""


def lines(*paths, status):
    """Return the output of check in the form of rows; files that cannot be read come first."""
    done = kdump("check", "-o", "jsonl", *paths)
    assert done.returncode == status, done.stderr.decode()
    reported = [json.loads(line) for line in done.stdout.splitlines()]
    found = [
        {name: value for name, value in line.items() if name not in OF_A_START}
        for line in reported
        if line["kind"] in ("finding", "remark") and line["check"] != "directory id twice"  # of a start, too
    ]
    for line in found:
        line |= {name: None if line[name] is None else str(line[name]) for name in ("expected", "found")}
    return found


def in_order(found):
    return sorted(json.dumps(row, sort_keys=True) for row in found)


@pytest.mark.parametrize("partitions", [1, 40])
def test_rows_are_the_lines_of_check(spark, tmp_path, partitions):
    for broker in ("one", "two"):  # two copies of a log dir, with something wrong in the log dir itself
        ids = shutil.ignore_patterns("_logdir")  # with valid ids, check would predict the start of their broker
        shutil.copytree(BROKERS / "4.2.2", tmp_path / broker, ignore=ids)
        (tmp_path / broker / "meta.properties").write_text("version=1\nnode.id=one\n")
        (tmp_path / broker / "not a partition").mkdir()
    damaged = next((tmp_path / "two" / "txn-0").glob("*.log"))
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    expected = lines(tmp_path, status=3)
    found = rows(spark, tmp_path, minPartitions=partitions)
    assert in_order(found) == in_order(expected)
    assert {row["level"] for row in found} == {"remark", "derived", "log"}


def test_topics_are_chosen(spark):
    found = rows(spark, BROKERS, topic="txn")
    assert found
    assert all("/txn-" in row["file"] for row in found)
