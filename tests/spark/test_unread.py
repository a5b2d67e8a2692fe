"""The outputs of findings and answers: an unreadable file ends the job, as for records, and is not a row."""

import shutil

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kdump[spark]'")

from pyspark.errors import PySparkException

from kdump.errors import FailingDiskError, StoreError
from kdump.log_dirs import remote
from kdump.log_dirs.local import LocalFile
from kdump.spark.source import answers
from kdump.spark.source import options as words
from testing import GOLDEN
from testing.stores import Clock, FlakyStore, Outage

BROKER = GOLDEN / "brokers" / "4.2.2"
AWAY = "When reading: AWS Error NETWORK_CONNECTION during GetObject operation: curlCode: 7, Couldn't connect to server"
OUTPUTS = [words.FINDINGS, *words.ANSWERS]


def rows(output, path, **options):
    """Return the rows of an output's tasks, run in this process."""
    parsed = words.parse({"path": str(path), "output": output, **options})
    plan, read = (answers.plan, answers.read)
    if output == words.FINDINGS:
        plan, read = (answers.plan_checks, answers.read_checks)
    tasks = plan(parsed, lambda _: None)
    return [row for task in tasks for batch in read(task, parsed) for row in batch.to_pylist()]


@pytest.fixture
def store(monkeypatch, tmp_path):
    """A copy of a broker's log dir in a store; return the function that sets the store's fault."""
    monkeypatch.setattr(remote, "time", Clock())
    monkeypatch.setattr(remote, "notify", lambda _: None)
    (tmp_path / "broker").mkdir()
    for topic in ("txn-0", "c-none-0", "__consumer_offsets-0"):
        found = next(iter(BROKER.glob(topic)), None)
        if found is not None:
            shutil.copytree(found, tmp_path / "broker" / topic)
    (tmp_path / "broker" / "meta.properties").write_text("version=1\ncluster.id=AbCdEfGhIjKlMnOpQrStUw\nnode.id=1\n")
    held = FlakyStore(tmp_path)

    class FileSystem:
        @staticmethod
        def from_uri(uri):
            return held, uri.partition("bucket/")[2]

    monkeypatch.setattr("pyarrow.fs.FileSystem", FileSystem)
    return held


@pytest.mark.parametrize("output", OUTPUTS)
def test_an_outage_ends_the_job_wherever_it_begins(store, output):
    store.fault = counted = Outage(lambda: OSError(AWAY), count=0)
    sound = rows(output, "s3://bucket/broker", at="2026-11-22T00:00:00Z")
    assert all(row["kind"] != "unreadable" for row in sound)
    assert counted.met > 3
    for first in range(counted.met):
        store.fault = Outage(lambda: OSError(AWAY), first=first, count=None)
        with pytest.raises(StoreError, match="could not be read: When reading"):
            rows(output, "s3://bucket/broker", at="2026-11-22T00:00:00Z", skipUnreadable="true")


@pytest.mark.parametrize("output", [words.FINDINGS, "stats", "offsets"])
def test_an_object_that_is_gone_ends_the_job(store, output):
    store.fault = Outage(lambda: FileNotFoundError("gone"), names="open", count=None, part="txn-0/")
    with pytest.raises(StoreError, match=r"s3://\S+/txn-0/\S+: No such file or directory"):
        rows(output, "s3://bucket/broker")


@pytest.mark.parametrize("output", [words.FINDINGS, "stats"])
def test_a_failing_disk_makes_rows_where_that_is_asked_for(monkeypatch, tmp_path, output):
    shutil.copytree(BROKER / "txn-0", tmp_path / "txn-0")
    failing = str(next((tmp_path / "txn-0").glob("*.log")))
    plain = LocalFile.read

    def read(source, position, size):
        if source.name == failing:
            raise FailingDiskError(source.name, "Input/output error")
        return plain(source, position, size)

    monkeypatch.setattr(LocalFile, "read", read)
    with pytest.raises(FailingDiskError, match=failing):
        rows(output, tmp_path)
    found = rows(output, tmp_path, skipUnreadable="true")
    unreadable = [row for row in found if row["kind"] == "unreadable"]
    assert unreadable
    assert all(failing in {row.get("file"), row["text"].partition(": ")[0]} for row in unreadable)


@pytest.mark.parametrize("output", [words.FINDINGS, "stats"])
@pytest.mark.parametrize("skips", ["false", "true"])
def test_a_local_file_that_cannot_be_opened_ends_the_job_in_spark(spark, tmp_path, output, skips):
    shutil.copytree(BROKER / "txn-0", tmp_path / "txn-0")
    lost = tmp_path / "txn-0" / f"{10**6:020}.log"
    lost.symlink_to(tmp_path / "gone")
    frame = spark.read.format("kdump").option("output", output).option("skipUnreadable", skips)
    with pytest.raises(PySparkException, match=f"{lost}: No such file or directory"):
        frame.load(str(tmp_path)).collect()
