"""``kdump rebuild-cluster`` as a user runs it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil

import pytest

from kdump.formats.partition_metadata import PartitionMetadata, encode
from testing import GOLDEN, forge
from testing.processes import kdump, on_a_terminal, patched, python
from tests.commands import test_faults
from tests.helpers.log_dirs import write
from tests.helpers.metadata_records import metadata_value
from tests.helpers.segments import data

BROKER = GOLDEN / "brokers" / "4.2.2"
TOPICS = ["multi", "one", "txn"]
NODES = ("--node", "1@k1:9092/9093", "--node", "2@k2:9092/9093")


@pytest.fixture
def volume(tmp_path):
    """A log dir of a real broker: some topics, all of Kafka's own, the metadata log."""
    log_dir = tmp_path / "volume"
    for folder in BROKER.iterdir():
        if folder.name.rpartition("-")[0] in TOPICS or folder.name.startswith("__"):
            shutil.copytree(folder, log_dir / folder.name)
    ids = "version=1\ncluster.id=nub61tcETP6KClWv92MVHg\nnode.id=1\ndirectory.id=AAAAAAAAAAAAAAAAAAAAZA\n"
    (log_dir / "meta.properties").write_text(ids)
    return log_dir


def hashes(folder):
    return {path: hashlib.sha256(path.read_bytes()).digest() for path in folder.rglob("*") if path.is_file()}


def rebuild(*args, status=3):
    done = kdump("rebuild-cluster", *args)
    assert done.returncode == status, done.stderr.decode()
    return done


def test_nodes_start_on_what_is_written(volume, tmp_path):
    before = hashes(volume)
    rebuild(volume, "--out", tmp_path / "new", *NODES)
    assert hashes(volume) == before
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [
        "account.json",
        *(["lost+found"] if (tmp_path / "new" / "lost+found").exists() else []),
        "node-1",
        "node-1.properties",
        "node-2",
        "node-2.properties",
    ]
    for number in (1, 2):
        done = kdump("check", tmp_path / "new" / f"node-{number}")
        assert f"safe to start broker {number}" in done.stdout.decode(), done.stdout.decode()
    text = (tmp_path / "new" / "node-2.properties").read_text()
    assert "controller.quorum.bootstrap.servers=k1:9093,k2:9093\n" in text
    assert f"log.dirs={tmp_path / 'new' / 'node-2'}\n" in text


def test_the_account_names_every_partition_that_no_volume_has(volume, tmp_path):
    rebuild(volume, "--out", tmp_path / "new")
    account = json.loads((tmp_path / "new" / "account.json").read_text())
    assert account["version"] == 1
    assert account["clusterId"] == "nub61tcETP6KClWv92MVHg"
    assert account["release"] == "4.2"
    assert account["metadata"]["from"] == [str(volume / "__cluster_metadata-0")]
    lost = {f"{one['topic']}-{one['partition']}" for one in account["partitions"] if one["state"] == "lost"}
    there = {path.name for path in volume.iterdir() if path.is_dir()}
    every = {f"{one['topic']}-{one['partition']}" for one in account["partitions"]}
    assert lost == every - there
    assert lost
    assert {one["state"] for one in account["partitions"]} == {"whole", "lost"}
    assert account["groups"]
    (node,) = account["nodes"]
    assert (node["id"], node["logDir"], node["roles"]) == (1, "node-1", "broker,controller")
    assert f"directory.id={node['directoryId']}" in (tmp_path / "new" / "node-1" / "meta.properties").read_text()


def test_a_plan_writes_nothing_and_prints_the_same(volume, tmp_path):
    done = rebuild(volume, "--plan", "--out", tmp_path / "new")
    assert b"Lost" in done.stdout
    assert not (tmp_path / "new").exists()
    lines = [json.loads(line) for line in rebuild(volume, "--plan", "-o", "jsonl").stdout.splitlines()]
    rebuild(volume, "--out", tmp_path / "new")
    account = json.loads((tmp_path / "new" / "account.json").read_text())
    partitions = [
        {key: value for key, value in one.items() if key != "kind"} for one in lines if one["kind"] == "partition"
    ]
    assert partitions == account["partitions"]
    assert {one["kind"] for one in lines} >= {"metadata", "node", "partition", "group"}


def test_only_some_topics_and_those_of_kafka(volume, tmp_path):
    rebuild(volume, "--out", tmp_path / "new", "--topic", "mul*,multi", status=0)
    names = {path.name.rpartition("-")[0] for path in (tmp_path / "new" / "node-1").iterdir() if path.is_dir()}
    assert {name for name in names if not name.startswith("__")} == {"multi"}
    account = json.loads((tmp_path / "new" / "account.json").read_text())
    assert "one" in {one["name"] for one in account["dropped"] if one["what"] == "topic"}
    done = rebuild(volume, "--plan", "--topic", "mutli", status=2)
    assert b"did you mean" in done.stderr.lower()


def test_without_a_metadata_log_folders_give_the_topics(volume, tmp_path):
    shutil.rmtree(volume / "__cluster_metadata-0")
    assert b"--release" in rebuild(volume, "--plan", status=2).stderr
    rebuild(volume, "--out", tmp_path / "new", "--release", "4.2.2", status=0)
    done = kdump("metadata", tmp_path / "new" / "node-1", "--topics", "--topic", "multi")
    assert b"retention.ms=-1" in done.stdout
    assert b"safe to start" in kdump("check", tmp_path / "new" / "node-1").stdout


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (["--plan", "--node", "1@h:9092/9093", "--node", "1@i:9092/9093"], b"node id 1 is given twice"),
        (["--plan", "--release", "4.0.2"], b"4.0.2 is too old"),
        (["--plan", "--release", "9.9"], b"9.9"),
        (["--plan", "--replication", "2"], b"only 1 node; add nodes"),
        (["--plan", "--cluster-id", "a b"], b"--cluster-id"),
        ([], b"give --out DIR"),
    ],
)
def test_what_cannot_be(volume, args, reason):
    assert reason in rebuild(volume, *args, status=2).stderr


def test_an_output_that_is_taken_or_lies_in_an_input_is_refused(volume, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    assert b"holds file" in rebuild(volume, "--out", tmp_path / "full", status=2).stderr
    assert b"which kdump does not change" in rebuild(volume, "--out", volume / "new", status=2).stderr
    assert b"which kdump does not change" in rebuild(volume, "--out", volume, status=2).stderr
    (tmp_path / "empty").mkdir()
    rebuild(volume, "--out", tmp_path / "empty")
    assert (tmp_path / "empty" / "account.json").exists()


def test_volumes_of_two_clusters_are_refused_with_both_ids(volume, tmp_path):
    shutil.copytree(volume, tmp_path / "other")
    (tmp_path / "other" / "meta.properties").write_text("version=1\ncluster.id=another\nnode.id=2\n")
    stderr = rebuild(volume, tmp_path / "other", "--plan", status=2).stderr
    assert b"another" in stderr
    assert b"nub61tcETP6KClWv92MVHg" in stderr


def test_a_volume_that_is_not_there_ends_it_before_anything_is_written(volume, tmp_path):
    done = rebuild(volume, tmp_path / "gone", "--out", tmp_path / "new", status=1)
    assert b"No such file" in done.stderr
    assert not (tmp_path / "new").exists()


def test_each_volume_that_is_not_there_is_named(tmp_path):
    done = rebuild(tmp_path / "gone", tmp_path / "lost", "--out", tmp_path / "new", status=1)
    assert [line.count(b"No such file") for line in done.stderr.splitlines()] == [1, 1, 0]
    assert all(name in done.stderr for name in (b"gone", b"lost", b"nothing was written"))


FAILS = """
import errno, os
from kdump.log_dirs import local
real = local.LocalFiles.entries
def entries(self, folder):
    if folder.endswith("one-0"):
        raise local.UnreadableError.of(folder, OSError(errno.{0}, os.strerror(errno.{0})))
    return real(self, folder)
local.LocalFiles.entries = entries
"""


@pytest.mark.parametrize(("error", "goes_on"), [("EIO", True), ("EACCES", False)])
def test_a_failing_disk_is_damage_and_a_closed_folder_ends_it(volume, tmp_path, error, goes_on):
    done = patched(FAILS.format(error), "rebuild-cluster", volume, "--out", tmp_path / "new")
    assert done.returncode == 1
    assert b"one-0" in done.stderr
    assert (tmp_path / "new").exists() == goes_on


def test_who_sees_a_terminal_is_asked_before_something_is_left_out(volume, tmp_path):
    shutil.copytree(volume / "one-0", volume / "unknown-0")
    (volume / "unknown-0" / "partition.metadata").write_text("version: 0\ntopic_id: BBBBBBBBBBBBBBBBBBBBBA\n")
    for typed, written in ((b"n\n", False), (b"y\n", True)):
        args = ("rebuild-cluster", volume, "--out", tmp_path / "new")
        done, shown = on_a_terminal(kdump, *args, streams=("stdin", "stderr"), typed=typed)
        assert b"unknown-0" in shown
        assert b"Write the new cluster?" in shown
        assert done.returncode == (3 if written else 2)
        assert (tmp_path / "new").exists() == written


@pytest.mark.parametrize(
    ("name", "log", "status"),
    [("ghost-0", data(0, 3), 3), ("orders-0", data(0, 3), 3), ("gone-0", data(0, 3), 0), ("ghost-0", b"", 0)],
    ids=["of no topic", "of another id", "of a deleted topic", "empty"],
)
def test_a_live_folder_of_no_topic_is_data_at_risk(tmp_path, name, log, status):
    """The remaining copy of the metadata log may be older than the topic."""
    own, other = bytes(range(16)), bytes(range(1, 17))
    fields = {"partitionId": 0, "topicId": own, "replicas": [1], "isr": [1], "leader": 1}
    values = (
        metadata_value("FeatureLevelRecord", name="metadata.version", featureLevel=25),
        metadata_value("TopicRecord", name="orders", topicId=own),
        metadata_value("PartitionRecord", **fields),
        metadata_value("TopicRecord", name="gone", topicId=other),
        metadata_value("PartitionRecord", **fields | {"topicId": other}),
        metadata_value("RemoveTopicRecord", topicId=other),
    )
    records = [forge.record(None, value, offset=number) for number, value in enumerate(values)]
    write(tmp_path / "1", "__cluster_metadata-0", {0: forge.batch(records)})
    write(tmp_path / "1", "orders-0", {0: data(0)})
    (tmp_path / "1" / "meta.properties").write_text("version=1\ncluster.id=nub61tcETP6KClWv92MVHg\nnode.id=1\n")
    folder = write(tmp_path / "2", name, {0: log})
    (tmp_path / "2" / "meta.properties").write_text("version=1\ncluster.id=nub61tcETP6KClWv92MVHg\nnode.id=2\n")
    topic_id = other if name == "gone-0" else bytes(range(2, 18))
    for path, number in ((tmp_path / "1" / "orders-0", own), (folder, topic_id)):
        (path / "partition.metadata").write_bytes(encode(PartitionMetadata(0, number)))
    done = rebuild(tmp_path / "1", tmp_path / "2", "--plan", status=status)
    text = f"{folder} is not in the new cluster: the metadata has no partition with its name and topic id. Its batches"
    assert (text.encode() in done.stderr) == (status == 3)


KILLED = """
import os
from kdump.rebuild import copying
real, done = copying._copy, []
def copy(*args, **options):
    if len(done) == 5:
        os.kill(os.getpid(), 9)
    done.append(real(*args, **options))
copying._copy = copy
"""


NO_ROOM_FOR_ALL = """
from kdump.rebuild import copying
real, asked = copying.free_bytes, []
def free_bytes(out):
    asked.append(out)
    return 0 if len(asked) == 1 else real(out)
copying.free_bytes = free_bytes
"""


@pytest.mark.parametrize("jobs", ["1", "3"])
def test_partitions_are_written_as_they_are_planned_or_when_the_needed_room_is_known(volume, tmp_path, jobs):
    args = ("rebuild-cluster", volume, "--node", "1@a:1/2", "--node", "2@b:1", "--jobs", jobs, "--out")
    assert kdump(*args, tmp_path / "early").returncode == 3
    assert patched(NO_ROOM_FOR_ALL, *args, tmp_path / "late").returncode == 3
    early, late = (
        {
            path.relative_to(tmp_path / name): path.read_bytes()
            for path in (tmp_path / name).rglob("*")
            if path.is_file() and path.parent.name not in (name, "node-1", "node-2", "__cluster_metadata-0")
        }
        for name in ("early", "late")
    )
    assert early
    assert early == late


def test_a_killed_run_leaves_no_output_and_another_goes_on_with_what_it_copied(volume, tmp_path):
    args = ("rebuild-cluster", volume, "--out", tmp_path / "new", "--jobs", "1")
    assert patched(KILLED, *args).returncode == -9
    assert not (tmp_path / "new").exists()
    (part,) = tmp_path.glob(".kdump-*.part")
    segments = list(part.rglob("*.log"))
    inodes = {path.stat().st_ino for path in segments}
    assert segments
    done = kdump(*args, "--resume")
    assert done.returncode == 3, done.stderr.decode()
    assert not list(tmp_path.glob(".kdump-*.part"))
    written = {path.stat().st_ino for path in (tmp_path / "new").rglob("*.log")}
    assert len(inodes & written) >= 4
    assert not (tmp_path / "new" / "rebuild-journal").exists()
    assert b"safe to start" in kdump("check", tmp_path / "new" / "node-1").stdout


@pytest.mark.parametrize(("number", "status"), [("SIGTERM", 143), ("SIGHUP", 129), ("SIGINT", 130)])
def test_a_signal_leaves_no_output(volume, tmp_path, number, status):
    code = test_faults.SENDS.format(number=number)
    before = sorted(path.name for path in tmp_path.iterdir())
    done = python("-c", code, "rebuild-cluster", volume, "--out", tmp_path / "new", *NODES, "-q", "--jobs", "1")
    assert done.returncode == status, done.stderr.decode()
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_a_closed_pipe_and_a_full_disk_at_standard_output(volume):
    line = ["rebuild-cluster", volume, "--plan", "-q"]
    reader, writer = os.pipe()
    os.close(reader)
    assert test_faults.child(line, stdout=writer).returncode == 141
    os.close(writer)
    with open("/dev/full", "wb") as full:  # noqa: PTH123  a device
        done = test_faults.child(line, stdout=full)
    assert (done.returncode, done.stderr.splitlines(keepends=True)[-1]) == (1, test_faults.FULL)


def test_a_full_disk_leaves_no_output(volume, tmp_path):
    before = sorted(path.name for path in tmp_path.iterdir())
    done = test_faults.child(["rebuild-cluster", volume, "--out", tmp_path / "new", "-q"], "ulimit -f 0;")
    assert done.returncode == 1, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == before
