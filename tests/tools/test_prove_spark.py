"""The comparison of an export with JSON lines finds every kind of difference."""

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kdump[spark]'")

from kdump.arrow import schema
from tools.prove import spark as prove_spark

BASE = {field.name: None for field in schema.RECORDS} | {
    "file": "a.log",
    "position": 0,
    "offset": 7,
    "sequence": -1,
}


def line(**given):
    reported = BASE | {"kind": "record", "key": None, "value": "v", "headers": [], "timestampType": "CreateTime"}
    return json.dumps(reported | {"timestamp": "2023-11-14T22:13:20.005Z"} | given).encode()


def row(**given):
    time = datetime(2023, 11, 14, 22, 13, 20, 5000, tzinfo=UTC)
    return BASE | {"value": b"v", "headers": [], "timestampType": 0, "timestamp": time} | given


def test_equal_rows_have_no_differences():
    header = {"key": "h", "value": "ff", "encoding": "hex"}
    lines = [line(), line(offset=8, value="/w==", valueEncoding="base64", headers=[header])]
    rows = [row(offset=8, value=b"\xff", headers=[{"key": "h", "value": b"\xff"}]), row(aboveHighWatermark=False)]
    assert list(prove_spark.differences(lines, rows)) == []


@pytest.mark.parametrize(
    ("lines", "rows", "reported"),
    [
        ([line()], [], "not in Spark"),
        ([], [row()], "only in Spark"),
        ([line(), line()], [row()], "not in Spark"),
        ([line(value="")], [row(value=None)], "only in Spark"),
        ([line(timestamp=None)], [row()], "timestamp is '2023-11-14T22:13:20.005Z', in the JSON lines None"),
        ([line(headers=[{"key": "h", "value": None}])], [row(headers=[{"key": "h", "value": b""}])], "headers is"),
        ([line(transactionState="aborted")], [row(transactionState="committed")], "transactionState is 'committed'"),
        ([line(belowLogStart=True)], [row(belowLogStart=None)], "belowLogStart is False"),
    ],
)
def test_differences_are_reported(lines, rows, reported):
    assert reported in next(iter(prove_spark.differences(lines, rows)))


def test_bytes_that_nothing_accounts_for_are_reported(tmp_path):
    path = tmp_path / "a.log"
    path.write_bytes(bytes(10))
    entry = {"file": str(path), "size": 10, "bytes": {"batches": 4, "notRead": 6}}
    assert list(prove_spark.unaccounted({"files": [entry]})) == []
    entry["bytes"] = {"batches": 4}
    assert list(prove_spark.unaccounted({"files": [entry]})) == [f"{path}: 4 bytes are accounted for, 10 are there"]


def test_folders_without_a_segment_are_left_out(tmp_path, capsys):
    empty, held = tmp_path / "empty-0", tmp_path / "held-0"
    for folder in (empty, held):
        folder.mkdir()
        (folder / "partition.metadata").write_text("version: 0")
    log = held / "00000000000000000000.log"
    log.touch()
    assert prove_spark.with_segments([str(empty), str(tmp_path), str(held), str(log)]) == [
        *map(str, (tmp_path, held, log)),
    ]
    assert capsys.readouterr().out == f"{empty} holds no segment and is left out\n"


def test_a_proof_that_compared_no_row_fails(tmp_path, monkeypatch, capsys):
    def run(command, **_):
        out = Path(command[command.index("--out") + 1])
        out.mkdir()
        totals = {"files": 0, "size": 0, "damagedRanges": 0}
        (out / "_manifest.json").write_text(json.dumps({"runs": [{"files": [], "totals": totals}]}))
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(prove_spark.subprocess, "run", run)
    assert prove_spark.prove([str(tmp_path)], "local[1]", [], 5) is False
    assert "no row was compared" in capsys.readouterr().out
