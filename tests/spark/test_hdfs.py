"""Exports from HDFS into HDFS, with a real name node and data node."""

import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kdump[spark]'")
pytest.importorskip("hdfs_native", reason="hdfs-native is not installed: pip install 'kdump[hdfs]'")

from kdump.spark.export import following, job
from testing import GOLDEN
from testing.processes import dump
from tests.conftest import java_is_missing
from tools.prove import spark as prove_spark
from tools.prove import stores
from tools.prove.store_examples import named
from tools.record.fetch_jars import CACHE

FOLDERS = ("txn-0", "c-zstd-0", "multi-0")


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory):
    if reason := java_is_missing():
        pytest.skip(reason)
    if not any((CACHE.parent / f"hdfs-{stores.HADOOP}").glob("*.jar")):
        pytest.skip("the jars of HDFS are not here: python -m tools.prove.store_examples downloads them")
    with stores.Hdfs(tmp_path_factory.mktemp("hdfs")) as running:
        yield running


@pytest.fixture(scope="module")
def logs(hdfs, tmp_path_factory):
    """Return the URI of a log dir in HDFS, and the JSON lines of its records."""
    local = tmp_path_factory.mktemp("logs")
    for name in FOLDERS:
        shutil.copytree(GOLDEN / "brokers" / "4.2.2" / name, local / name)
    stores.HdfsLake(Path("/logs"), hdfs).put_all(local)
    lines = dump("dump", "-o", "jsonl", "--type", "data,tombstone", local).splitlines()
    return f"{hdfs.uri}/logs", [named(line, str(local), f"{hdfs.uri}/logs") for line in lines]


def listener(notes):
    return job.Listener(notes.append, lambda *_: None)


def test_an_export_and_its_replacement_have_the_rows_of_the_json_lines(spark, hdfs, logs, tmp_path):
    source, lines = logs
    for number, mode in enumerate(("error", "overwrite", "append")):
        notes = []
        asked = job.Export(paths=(source,), out=f"{hdfs.uri}/lake", options={}, conf={}, mode=mode)
        assert job.run(asked, listener(notes)).rows == len(lines) > 100
        assert not any("Spark's own writer" in note for note in notes)
        found = tmp_path / str(number)
        stores.HdfsLake(Path("/lake"), hdfs).get_all(found)
        rows = prove_spark.exported(found)
        assert list(prove_spark.differences(lines * (2 if mode == "append" else 1), rows)) == []
        assert len(json.loads((found / "_manifest.json").read_text())["runs"]) == 1 + (mode == "append")
    assert {name.split("/")[0] for name in stores.HdfsLake(Path("/"), hdfs).names()} == {"logs", "lake"}


def test_incremental_exports_add_what_is_new(spark, hdfs, logs, tmp_path):
    source, lines = logs
    lines = [line for line in lines if json.loads(line)["topic"] != "txn"]  # whose outcomes are not read
    out = f"{hdfs.uri}/grown"
    added = []
    for topic in ("multi", "multi,c-*"):
        asked = job.Export(paths=(source,), out=out, options={"topic": topic}, conf={})
        added.append(following.Follower(asked, listener([])).run(forever=False).summary.rows)
    assert sum(added) == len(lines)
    assert min(added) > 0
    stores.HdfsLake(Path("/grown"), hdfs).get_all(tmp_path / "grown")
    assert list(prove_spark.differences(lines, prove_spark.exported(tmp_path / "grown"))) == []
