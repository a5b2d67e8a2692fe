"""Topics whose folder name is not UTF-8: all outputs write it in the same way."""

import csv
import io
import json
import os
import shutil

import pyarrow as pa
import pyarrow.parquet
import pytest

import kdump as python
from testing import GOLDEN
from testing.processes import kdump

SHOWN = "t\\xff\\xfe"


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("log_dir")
    target = os.path.join(os.fsencode(folder), b"t\xff\xfe-0")  # noqa: PTH118  a path of bytes
    shutil.copytree(os.fsencode(GOLDEN / "brokers" / "4.2.2" / "c-none-0"), target)
    return folder


def topics(*args):
    done = kdump(*args)
    assert done.returncode == 0, done.stderr
    return {line["topic"] for line in map(json.loads, done.stdout.splitlines()) if "topic" in line}


@pytest.mark.parametrize("command", ["dump", "stats", "offsets", "du", "retention", "ls"])
def test_json_lines_and_csv(log_dir, command):
    assert topics(command, log_dir, "-o", "jsonl") - {None} == {SHOWN}
    text = kdump(command, log_dir, "-o", "csv").stdout.decode()
    assert "\r" not in text
    first = next(csv.DictReader(io.StringIO(text)))
    assert first["topic"] == SHOWN or command == "du"
    assert SHOWN in text


@pytest.mark.parametrize(
    "query",
    [
        "select topic, count(*) as n from records group by 1",
        "select topic, \"offset\" from records where topic = 't\\xff\\xfe' limit 1",
        "select topic, file, count from batches limit 1",
        "select topic from stats",
        "select topic from offsets",
    ],
)
def test_sql(log_dir, query):
    assert topics("sql", query, log_dir, "-o", "jsonl") == {SHOWN}


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_columns(log_dir, tmp_path, form):
    out = tmp_path / f"out.{form}"
    done = kdump("dump", log_dir, "-o", form, "--out", out)
    assert (done.returncode, done.stderr) == (0, b"")
    table = pa.parquet.read_table(out) if form == "parquet" else pa.ipc.open_stream(out).read_all()
    assert set(table["topic"].to_pylist()) == {SHOWN}
    assert table.num_rows == 223


def test_python(log_dir):
    rows = python.open(log_dir).to_arrow().read_all()
    assert set(rows["topic"].to_pylist()) == {SHOWN}
    assert set(python.stats(log_dir).to_arrow()["topic"].to_pylist()) - {None} == {SHOWN}
