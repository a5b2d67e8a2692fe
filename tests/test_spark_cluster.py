"""A real standalone cluster on loopback: a master and two workers as processes of their own."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kdump[spark]'")
import pyarrow.compute as pc
import pyarrow.dataset as dataset
import pyspark

from kdump.spark_source import options as words
from kdump.spark_source import planning, reading
from tests import forge
from tests.support import GOLDEN, ROOT

pytestmark = pytest.mark.xdist_group("spark")
SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
RECORDS = 2_000_000
PER_BATCH = 5000


def wait_for(what, seconds, happened):
    end = time.monotonic() + seconds
    while not (result := happened()):
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        time.sleep(0.2)
    return result


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A master and two workers with one core each; yields the master's address, the workers and a folder."""
    if shutil.which("java") is None:
        pytest.skip("Java is not installed: Spark needs Java 17 or later")
    place = tmp_path_factory.mktemp("cluster")
    with zipfile.ZipFile(place / "kdump.zip", "w") as archive:
        for package in ("kdump", "pyspark_kdump"):
            for path in (ROOT / package).rglob("*.py"):
                archive.write(path, path.relative_to(ROOT))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"spark://127.0.0.1:{port}"
    env = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m", "PYSPARK_PYTHON": sys.executable}
    env.pop("PYTHONPATH", None)  # the executors get kdump from the archive
    processes = []

    def start(name, *arguments):
        with (place / f"{name}.log").open("wb") as log:
            command = [SPARK_CLASS, f"org.apache.spark.deploy.{name.partition('-')[0]}", *arguments]
            processes.append(subprocess.Popen(command, stdout=log, stderr=log, env=env, cwd=place))
        return processes[-1]

    try:
        start("master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        wait_for("the master", 120, lambda: "Starting Spark master" in (place / "master.Master.log").read_text())
        workers = [
            start(
                f"worker.Worker-{number}",
                "--host",
                "127.0.0.1",
                "--cores",
                "1",
                "--memory",
                "768m",
                "--webui-port",
                "0",
                "--work-dir",
                str(place / f"work{number}"),
                address,
            )
            for number in (1, 2)
        ]
        for number in (1, 2):
            log = place / f"worker.Worker-{number}.log"
            wait_for("a worker", 120, lambda log=log: "Successfully registered with master" in log.read_text())
        yield address, workers, place
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(60)


def export(cluster, source, out, *options):
    address, _, place = cluster
    conf = {
        "spark.submit.pyFiles": str(place / "kdump.zip"),
        "spark.executor.memory": "600m",
        "spark.driver.memory": "600m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    settings = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "kdump",
            "spark-export",
            *source,
            "--out",
            out,
            "--master",
            address,
            *settings,
            *options,
        ],
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
    )


def table(out, *columns):
    files = [str(path) for path in Path(out).rglob("*.parquet") if "_damaged" not in path.parts]
    return dataset.dataset(files).to_table(columns=list(columns) or None)


def test_a_cluster_exports_what_one_process_reads(cluster, tmp_path):
    folders = [GOLDEN / "brokers" / name for name in ("4.2.2/txn-0", "4.2.2/c-lz4-0", "2.8.2/fmtmix-0", "0.8.2.1")]
    running = export(cluster, folders, tmp_path / "out", "--partition-by", "none", "--min-partitions", "4")
    _, told = running.communicate(timeout=400)
    assert running.returncode == 0, told
    options = words.Options(paths=tuple(map(str, folders)))
    splits = [split for planned in planning.plan(options) for split in planned.splits]
    expected = [row for split in splits for batch in reading.read(split, options) for row in batch.to_pylist()]

    def place(row):
        return (row["file"], row["position"], row["offset"], str(row["key"]), str(row["value"]))

    assert sorted(table(tmp_path / "out").to_pylist(), key=place) == sorted(expected, key=place)


def executors(worker):
    """The processes that a worker of this test has started."""
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
        "2m",
        "--columns",
        "topic,partition,offset,value",
    )
    try:
        unfinished = tmp_path / "out" / "_temporary"
        wait_for(
            "the first finished task", 300, lambda: list(unfinished.glob("0/task_*")) or running.poll() is not None
        )
        (victim,) = executors(cluster[1][0])
        os.kill(victim, signal.SIGKILL)
        assert running.poll() is None, "the export was still going on"
        _, told = running.communicate(timeout=500)
    finally:
        running.kill()
    assert running.returncode == 0, told
    found = table(tmp_path / "out", "offset", "value")
    assert found.num_rows == RECORDS
    assert pc.count_distinct(found["offset"]).as_py() == RECORDS
    (run,) = json.loads((tmp_path / "out" / "_manifest.json").read_text())["runs"]
    assert run["rowsWritten"] == run["totals"]["rows"] == RECORDS
