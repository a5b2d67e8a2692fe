"""The Spark source over tiered partitions: local and remote segments as one log."""

import json
import pickle

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'kdump[spark]'")

from kdump.errors import UsageError
from kdump.spark.source import options as words
from kdump.spark.source import planning, reading
from kdump.spark.source.data_source import KdumpDataSource
from testing.tiered import Store
from tests.log_dirs.test_tiered import REAL, described, flip, local, of

REMOTE = {"remote": REAL / "store", "remoteKey": f"key1={REAL / 'private.pem'}"}


def rows(path, **given):
    """Return the rows of a source whose splits were pickled, as for another process."""
    given = {"mode": "PERMISSIVE", **given}
    options = words.parse({"path": str(path), **{name: str(value) for name, value in given.items()}})
    splits = [split for planned in planning.plan(options) for split in planned.splits]
    return [row for split in splits for batch in reading.read(sent(split), options) for row in batch.to_pylist()]


def sent(split):
    return pickle.loads(pickle.dumps(split))


@pytest.mark.parametrize("more", [{}, {"columns": "offset,key,value,partition,timestamp"}, {"splitBytes": 2000}])
def test_rows_are_what_a_consumer_got(more):
    theirs = [json.loads(line) for line in (REAL / "consumed.jsonl").read_text().splitlines()]
    found = rows(REAL / "logs", topic="orders", **REMOTE, **more)
    assert [(f"orders-{row['partition']}", row["offset"]) for row in found] == [(one[0], one[1]) for one in theirs]
    assert len(found) == 132


@pytest.mark.parametrize("more", [{}, {"columns": "offset"}, {"isolation": "read_committed"}])
def test_each_offset_is_given_once(tmp_path, more):
    log_dir = local(tmp_path / "logs", 7, end=9)
    store = Store(tmp_path / "store", compress=True)
    for number, (first, end, epoch) in enumerate(((0, 4, 0), (0, 4, 1), (2, 8, 1), (6, 9, 1))):
        segment = of(first, end, number, epoch=epoch)
        store.write(segment, **described(segment))
    assert [row["offset"] for row in rows(log_dir, remote=store.root, **more)] == [*range(9)]


def test_records_after_a_broken_chunk_are_given_and_the_chunk_is_damage(tmp_path, capsys):
    store = Store(tmp_path / "store", 100, compress=True)
    segment = of(0, 20)
    store.write(segment)
    flip(store.paths(segment)[0], 0)
    log_dir = local(tmp_path / "logs", 20, end=22)
    assert [row["offset"] for row in rows(log_dir, remote=store.root, columns="offset")] == [*range(2, 22)]
    assert "chunk 0, bytes 0 to " in capsys.readouterr().err
    (lost,) = rows(log_dir, remote=store.root, output="damaged")
    assert (lost["position"], lost["file"].endswith(".log")) == (0, True)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"remoteKey": "a=b"}, "remoteKey: it needs the option remote"),
        ({"remote": "x", "remoteKey": "a"}, "remoteKey: expected NAME=FILE"),
        ({"remote": "x", "output": "account"}, "output=account covers only files"),
        ({"remote": "x", "output": "batches"}, "output=batches covers only files"),
    ],
)
def test_what_does_not_go_together_is_refused(given, says):
    with pytest.raises(UsageError, match=says):
        words.parse({"path": "x", **given})


def test_a_session_reads_it(spark):
    reader = spark.read.format("kdump").option("topic", "orders")
    for name, value in REMOTE.items():
        reader = reader.option(name, str(value))
    assert reader.load(str(REAL / "logs")).count() == 132


def test_a_stream_refuses_it():
    with pytest.raises(UsageError, match="a stream does not support the option remote"):
        KdumpDataSource({"path": "x", "remote": "y"}).streamReader(None)
