"""A real standalone cluster on loopback: a master and two workers as separate processes."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kdump[spark]'")
import pyarrow.compute as pc
import pyarrow.dataset as dataset

from testing import GOLDEN, ROOT, forge
from testing.processes import dump
from testing.spark_java import BRIEF_JAVA
from tools.prove import spark as prove_spark
from tools.prove import spark_cluster

pytestmark = pytest.mark.xdist_group("spark-processes")
RECORDS = 500_000
PER_BATCH = 5000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    if shutil.which("java") is None:
        pytest.skip("Java is not installed: Spark needs Java 17 or later")
    with spark_cluster.running(tmp_path_factory.mktemp("cluster")) as running:
        yield running


def export(cluster, source, out, *options):
    command = [sys.executable, "-m", "kdump", "spark-export", *source, "--out", out, *cluster.options]
    java = os.environ.get("SPARK_SUBMIT_OPTS", BRIEF_JAVA)  # with the archive of classes
    command += ["--conf", f"spark.executor.extraJavaOptions={java}", *options]
    env = {**os.environ, **spark_cluster.LOOPBACK}
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=env)


def table(out, *columns):
    files = [str(path) for path in Path(out).rglob("*.parquet") if "_damaged" not in path.parts]
    return dataset.dataset(files).to_table(columns=list(columns) or None)


def test_a_cluster_exports_what_the_json_lines_hold(cluster, tmp_path):
    folders = [GOLDEN / "brokers" / name for name in ("4.2.2/txn-0", "4.2.2/c-lz4-0", "2.8.2/fmtmix-0", "0.8.2.1")]
    running = export(cluster, folders, tmp_path / "out", "--partition-by", "none", "--min-partitions", "4")
    _, reported = running.communicate(timeout=400)
    assert running.returncode == 0, reported
    lines = dump(
        "dump", "-o", "jsonl", "--show-secrets", "--every-replica", "--type", "data,tombstone", *folders
    ).splitlines()
    assert len(lines) > 1000
    assert list(prove_spark.differences(lines, prove_spark.exported(tmp_path / "out"))) == []


def executors(worker):
    """Return the processes that a worker of this test has started."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
            command = (status.parent / "cmdline").read_bytes()
        except OSError:  # it has ended since
            continue
        if int(fields[1]) == worker.pid and b"CoarseGrainedExecutorBackend" in command:
            found.append(int(status.parent.name))
    return found


def test_an_executor_killed_in_the_middle_loses_and_doubles_nothing(cluster, tmp_path):
    folder = tmp_path / "many-0"
    folder.mkdir()
    records = [forge.record(b"k", b"value", offset=number, timestamp=number) for number in range(PER_BATCH)]
    batch = forge.batch(records, base_timestamp=1_700_000_000_000, max_timestamp=1_700_000_000_000 + PER_BATCH)
    with (folder / f"{0:020}.log").open("wb") as file:
        for base in range(0, RECORDS, PER_BATCH):
            file.write(base.to_bytes(8, "big") + batch[8:])  # no checksum covers the offset
    running = export(
        cluster,
        [folder],
        tmp_path / "out",
        "--partition-by",
        "none",
        "--split-bytes",
        "512k",
        "--columns",
        "topic,partition,offset,value",
    )
    try:
        spark_cluster.wait_for(
            "the first file of a task",
            300,
            lambda: list(tmp_path.glob(".out.kdump-*/_parts/*/*.parquet")) or running.poll() is not None,
        )
        (victim,) = executors(cluster.workers[0])
        os.kill(victim, signal.SIGKILL)
        assert running.poll() is None, "the export was still going on"
        _, reported = running.communicate(timeout=500)
    finally:
        running.kill()
    assert running.returncode == 0, reported
    found = table(tmp_path / "out", "offset", "value")
    assert found.num_rows == RECORDS
    assert pc.count_distinct(found["offset"]).as_py() == RECORDS
    (run,) = json.loads((tmp_path / "out" / "_manifest.json").read_text())["runs"]
    assert run["rowsWritten"] == run["totals"]["rows"] == RECORDS
