"""The dry start of a whole broker. tools/prove/recovery.py compares logs with Kafka, and recorded starts brokers."""

import json
import os
import shutil
import socket
import subprocess
import sys
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

from kdump import cli
from kdump.answers.metadata.cluster_image import ClusterImage
from kdump.broker_start import broker_dirs, log_folder
from kdump.broker_start.broker_dirs import StartOptions
from kdump.formats import offset_index, producer_snapshot, time_index
from kdump.log_dirs.local import LOCAL
from testing import forge
from testing.processes import kdump
from tests.helpers.metadata_records import metadata_value
from tools.prove.printed_commands import environment, printed

CLUSTER = "Jcp9qHk6RnaNkgBVOvaAyg"
META = f"version=1\nnode.id=1\ncluster.id={CLUSTER}\ndirectory.id="
IDS = {"plain": bytes(15) + b"\x07", "idem": bytes(15) + b"\x08"}
DIRS = {"d1": b"\x11" * 16, "d2": b"\x12" * 16}


SNAPSHOT_HEADER = forge.batch([forge.record(b"\0\0\0\3", bytes(11))], attributes=0x20)


def text(uuid):
    return urlsafe_b64encode(uuid).decode()[:22]


def records(*values, base=0, epoch=0):
    made = [forge.record(None, value, offset=number) for number, value in enumerate(values)]
    return forge.batch(made, base_offset=base, leader_epoch=epoch)


def assignment(topic, partition, directory):
    return metadata_value(
        "PartitionRecord",
        1,
        partitionId=partition,
        topicId=IDS[topic],
        replicas=[1],
        isr=[1],
        leader=1,
        directories=[DIRS.get(directory, bytes(16))],
    )


@pytest.fixture
def broker(tmp_path):
    """Two log dirs after a clean stop: plain-0 in d1, idem-0 in d2, each of two batches of one record."""
    for name, uuid in DIRS.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "meta.properties").write_text(f"{META}{text(uuid)}\n")
        (folder / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":7}')
    for name, directory in (("plain", "d1"), ("idem", "d2")):
        folder = tmp_path / directory / f"{name}-0"
        folder.mkdir()
        (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {text(IDS[name])}")
        (folder / f"{0:020}.log").write_bytes(records(b"a") + records(b"b", base=1))
        (folder / f"{0:020}.index").write_bytes(b"")
    values = [
        metadata_value("FeatureLevelRecord", name="metadata.version", featureLevel=21),
        *(metadata_value("TopicRecord", name=name, topicId=uuid) for name, uuid in IDS.items()),
        assignment("plain", 0, "d1"),
        assignment("idem", 0, "d2"),
    ]
    log = tmp_path / "d1" / "__cluster_metadata-0"
    log.mkdir()
    (log / f"{0:020}.log").write_bytes(records(*values))
    return tmp_path


def started(broker, *dirs, configs=("node.id=1", "process.roles=broker,controller"), release="4.4.0"):
    words = [word for config in configs for word in ("--config", config)] + ["--release", release]
    done = kdump("check", *(str(broker / each) for each in dirs or DIRS), "-o", "jsonl", *words)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    (start,) = [line for line in lines if line["kind"] == "start"]
    logs = {
        (line["topic"], line["partition"], line["folder"]): (
            line["outcome"],
            line["logStartOffset"],
            line["logEndOffset"],
        )
        for line in lines
        if line["kind"] == "startLog"
    }
    return start, logs


def codes(causes):
    return [cause["code"] for cause in causes]


def test_a_sound_broker_starts(broker):
    start, logs = started(broker)
    assert (start["starts"], start["fatal"], start["offlineLogDirs"], start["nodeId"]) == (True, [], [], 1)
    assert logs == {
        ("plain", 0, "plain-0"): ("loaded", 0, 2),
        ("idem", 0, "idem-0"): ("loaded", 0, 2),
        ("__cluster_metadata", 0, "__cluster_metadata-0"): ("recovered", 0, 5),
    }


def test_log_dirs_of_one_broker_are_found_by_their_ids(broker):
    assert started(broker, configs=()) == started(broker)


def test_a_broker_loads_no_log_of_a_metadata_log_dir_that_is_none_of_its_log_dirs(broker):
    """A broker of 4.3.1 started so, and created the partitions of d1 empty in d2."""
    (broker / "d1" / "lost+found").mkdir()
    (broker / "d1" / "recovery-point-offset-checkpoint").write_bytes(bytes(9))
    configs = ("node.id=1", "process.roles=broker,controller", f"metadata.log.dir={broker / 'd1'}")
    start, logs = started(broker, "d2", configs=configs)
    assert (start["starts"], start["fatal"], start["offlineLogDirs"]) == (True, [], [])
    assert logs == {
        ("plain", 0, "plain-0"): ("ignored", None, None),
        ("plain", 0, None): ("created-empty", 0, 0),
        ("idem", 0, "idem-0"): ("loaded", 0, 2),
        ("__cluster_metadata", 0, "__cluster_metadata-0"): ("recovered", 0, 5),
    }
    assert findings(broker, "d2", configs=configs)[0] == 3
    words = ("--config", "node.id=1", "--config", "metadata.log.dir=d1")
    done = kdump("check", "d2", *words, cwd=broker).stdout.decode()
    assert "d1/plain-0 has the partition, but the broker loads no logs from d1. Add d1 to log.dirs" in done


ONLY_CONTROLLER = ("node.id=1", "process.roles=controller")


def test_the_roles_are_those_of_the_node_id_in_any_log_dir(tmp_path):
    for name, content in (("d1", ""), ("d2", f"{META}{text(DIRS['d2'])}\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "meta.properties").write_text(content)
    (found,) = broker_dirs.brokers([(LOCAL, f"{tmp_path}/{name}") for name in ("d1", "d2")], StartOptions())
    image = ClusterImage()
    image.voter_ids = [1]
    found.with_roles(image)
    assert found.is_only_controller


def test_a_node_that_is_only_a_controller_loads_no_log(broker):
    """A controller of 4.3.1 started with ``lost+found`` and a checkpoint of zeros in its log dir."""
    (broker / "d1" / "lost+found").mkdir()
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint", "cleaner-offset-checkpoint"):
        (broker / "d1" / name).write_bytes(bytes(9))
    (broker / "d1" / "plain-0" / "partition.metadata").write_bytes(bytes(9))
    done = kdump("check", "d1", *(word for config in ONLY_CONTROLLER for word in ("--config", config)), cwd=broker)
    assert done.returncode == 4
    assert done.stdout.decode().splitlines()[-1] == (
        "safe to start controller 1: no record is lost; 4 files can be rebuilt"
    )
    assert b"The node loads no logs from this log dir, and does not read this file." in done.stdout
    start, logs = started(broker, "d1", configs=ONLY_CONTROLLER)
    assert (start["starts"], start["fatal"], start["offlineLogDirs"]) == (True, [], [])
    assert logs == {
        ("plain", 0, "plain-0"): ("ignored", None, None),
        ("__cluster_metadata", 0, "__cluster_metadata-0"): ("recovered", 0, 5),
    }
    assert findings(broker, "d1")[0] == 3


def test_a_controller_ignores_two_folders_of_a_partition(broker):
    shutil.copytree(broker / "d1" / "plain-0", broker / "d2" / "plain-0")
    assert findings(broker)[0] == 3
    assert findings(broker, configs=ONLY_CONTROLLER) == (0, set())


def test_a_controller_needs_the_ids_and_the_metadata_log_of_its_first_log_dir(broker):
    (broker / "d2" / "meta.properties").write_text("version=2\n")
    assert started(broker, configs=ONLY_CONTROLLER)[0]["fatal"] == []
    (broker / "d1" / "__cluster_metadata-0" / "quorum-state").write_text("{")
    assert codes(started(broker, configs=ONLY_CONTROLLER)[0]["fatal"]) == ["quorum-state-broken"]
    (broker / "d2" / "meta.properties").unlink()
    assert "meta-properties-missing" in codes(started(broker, configs=ONLY_CONTROLLER)[0]["fatal"])


@pytest.mark.parametrize(
    ("changed", "is_controller"),
    [
        ("nothing", True),
        ("a registration as a broker", False),
        ("a replica on it", False),
        ("a partition folder", False),
        ("a checkpoint of LogManager", False),
        ("no registration as a controller", False),
        ("process.roles", False),
    ],
)
def test_files_show_a_node_that_is_only_a_controller(broker, changed, is_controller):
    log, node = broker / "d1" / "__cluster_metadata-0" / f"{0:020}.log", 1 if changed == "a replica on it" else 3000
    (broker / "d1" / ".kafka_cleanshutdown").unlink()
    (broker / "d1" / "plain-0").rename(broker / "d2" / "plain-0")
    (broker / "d1" / "meta.properties").write_text(META.replace("node.id=1", f"node.id={node}") + text(DIRS["d1"]))
    if changed != "no registration as a controller":
        controller = metadata_value("RegisterControllerRecord", controllerId=node)
        log.write_bytes(log.read_bytes() + records(controller, base=5))
    if changed == "a registration as a broker":
        registered = metadata_value("RegisterBrokerRecord", brokerId=node)
        log.write_bytes(log.read_bytes() + records(registered, base=6))
    elif changed == "a partition folder":
        (broker / "d1" / "orders-0").mkdir()
    elif changed == "a checkpoint of LogManager":
        (broker / "d1" / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    (broker / "d1" / "lost+found").mkdir()
    roles = ["--config", "process.roles=broker,controller"] if changed == "process.roles" else []
    done = kdump("check", "d1", *roles, "--notes", cwd=broker)
    said = " ".join(done.stdout.decode().split())
    assert (done.returncode, "safe to start controller 3000: nothing is lost" in said) == (
        (0, True) if is_controller else (3, False)
    )
    assert ("lost+found: the node loads no logs from this log dir" in said) == is_controller


def test_only_the_lock_of_a_controller_is_opened_for_writing(broker):
    closed = [broker / "d1" / ".lock", broker / "d2" / ".lock", broker / "d1" / "plain-0" / f"{0:020}.log"]
    for path in closed:
        path.touch()
        path.chmod(0o444)
    if os.getuid() == 0:
        for name in DIRS:
            os.chown(broker / name, 65534, 65534)
    words = [word for config in ONLY_CONTROLLER for word in ("--config", config)]
    said = " ".join(kdump("check", *DIRS, *words, cwd=broker).stdout.decode().split())
    assert "the owner of the log dir may not write 1 file or folder in it: d1/.lock." in said


def test_a_relative_path_and_an_absolute_metadata_log_dir_are_one_log_dir(broker):
    words = ["check", "d2", "d1", "--config", "node.id=1", "--config", f"metadata.log.dir={broker / 'd1'}{os.sep}"]
    assert kdump(*words, cwd=broker).returncode == 0


@pytest.mark.parametrize(
    ("dirs", "configs", "fatal"),
    [
        (("d1", "d2", "link"), (), True),
        (("d1", "d2"), ("metadata.log.dir=link",), True),
        (("d1", "d2", "link"), ("process.roles=controller",), True),
        (("d1", "d2", "d1"), (), False),
        (("link", "d2"), ("metadata.log.dir=link",), False),
    ],
)
def test_a_broker_does_not_start_with_two_paths_of_one_log_dir(broker, dirs, configs, fatal):
    """LogManager compares canonical paths, MetaPropertiesEnsemble the directory ids in the files of each path."""
    (broker / "link").symlink_to("d1")
    words = [word for config in ("node.id=1", *configs) for word in ("--config", config)]
    done = kdump("check", *dirs, *words, cwd=broker)
    lines = done.stdout.decode().splitlines()
    assert done.returncode == (3 if fatal else 0)
    if fatal:
        node = "controller" if "process.roles=controller" in configs else "broker"
        text = "link: Duplicate log directory found: d1 and link are the same folder"
        assert f"DO NOT START {node} 1: {text}" in lines
        assert not any(line.startswith("  ") and (" mv " in line or "sed " in line) for line in lines)


def test_only_directory_ids_show_a_controller_two_paths_of_one_log_dir(broker):
    (broker / "link").symlink_to("d2")
    for name in DIRS:
        (broker / name / "meta.properties").write_text(META.removesuffix("directory.id="))
    assert started(broker, "d1", "d2", "link", configs=ONLY_CONTROLLER)[0]["fatal"] == []
    assert codes(started(broker, "d1", "d2", "link")[0]["fatal"]) == ["log-dir-twice"]


def test_without_its_node_id_two_paths_are_one_log_dir(broker):
    (broker / "link").symlink_to("d1")
    assert started(broker, "d1", "d2", "link", configs=(f"metadata.log.dir={broker / 'link'}",))[0]["fatal"] == []


def test_after_a_kill_logs_are_recovered_in_that_log_dir(broker):
    (broker / "d2" / ".kafka_cleanshutdown").unlink()
    _, logs = started(broker)
    assert logs["plain", 0, "plain-0"][0] == "loaded"
    assert logs["idem", 0, "idem-0"] == ("recovered", 0, 2)


def test_a_folder_without_topic_id_is_stray_and_an_empty_log_begun(broker):
    (broker / "d2" / "idem-0" / "partition.metadata").unlink()
    _, logs = started(broker)
    assert logs["idem", 0, "idem-0"] == ("stray", 0, 2)
    assert logs["idem", 0, None] == ("created-empty", 0, 0)


def test_an_empty_swap_replaces_a_log(broker):
    (broker / "d2" / "idem-0" / f"{0:020}.log.swap").write_bytes(b"")
    _, logs = started(broker)
    assert logs["idem", 0, "idem-0"] == ("truncated", 0, 0)


@pytest.mark.parametrize("has_metadata", [True, False])
def test_a_swap_without_a_batch_of_its_offsets_hides_new_records(broker, has_metadata):
    """Brokers of 4.2.2 and 4.4.0 then refused each new record, and consumers stopped before the segment."""
    folder = broker / "d2" / "idem-0"
    (folder / f"{700:020}.log.swap").write_bytes((folder / f"{0:020}.log").read_bytes())
    dirs, configs = (DIRS, ("node.id=1",)) if has_metadata else (["d2"], ())
    assert started(broker, *dirs, configs=configs)[1]["idem", 0, "idem-0"][2] == 700
    code, found = findings(broker, *dirs, configs=configs)
    assert (code, "swapped" in {kind for kind, _ in found}) == (3, True)


@pytest.mark.parametrize("configs", [(), ("node.id=1", "process.roles=broker")])
def test_the_losses_of_a_log_do_not_depend_on_the_metadata_log(broker, configs):
    """Whether the folder becomes stray is unknown, but a broker that serves the partition loses the records."""
    (broker / "d2" / "idem-0" / f"{0:020}.log.swap").write_bytes(b"")
    code, found = findings(broker, "d2", configs=configs)
    assert (code, ("swapped", None) in found) == (3, True)


def test_a_broken_file_in_the_second_log_dir_takes_it_offline(broker):
    (broker / "d2" / "idem-0" / "leader-epoch-checkpoint").write_bytes(bytes(10))
    start, logs = started(broker)
    assert (start["starts"], [each[-2:] for each in start["offlineLogDirs"]]) == (True, ["d2"])
    assert logs["idem", 0, "idem-0"] == ("offline", None, None)


def test_the_same_in_the_metadata_log_dir_ends_the_broker(broker):
    (broker / "d1" / "plain-0" / "leader-epoch-checkpoint").write_bytes(bytes(10))
    start, _ = started(broker)
    assert (start["starts"], codes(start["fatal"])) == (False, ["leader-epochs-broken"])


@pytest.mark.parametrize(
    ("file", "data", "code"),
    [
        ("d2/idem-0/leader-epoch-checkpoint", b"0\n2\n0 0\n-1 -1\n", "leader-epochs-broken"),
        ("d2/meta.properties", bytes(80), "node-id-missing"),
        ("d2/meta.properties", None, "meta-properties-missing"),
        ("d2/lost+found/x", b"", "foreign-folder"),
        ("d2/idem-0/copy.log", b"", "name-no-offset"),
        ("d2/idem-0/partition.metadata", b"", "partition-metadata-broken"),
        ("d2/plain-0/x", b"", "two-folders"),
        ("d1/__cluster_metadata-0/quorum-state", b"", "quorum-state-broken"),
        ("d1/__cluster_metadata-0/quorum-state/x", b"", "quorum-state-broken"),
        ("d2/meta.properties", f"{META}AAAAAAAAAAAAAAAAAAAAAQ\n".encode(), "directory-id-reserved"),
        ("d2/__cluster_metadata-0/x", b"", "metadata-log-misplaced"),
        ("d1/bootstrap.checkpoint", b"", "bootstrap-broken"),
        ("d1/bootstrap.checkpoint", forge.batch([b"\x28\x00"], attributes=0x20), "bootstrap-broken"),
    ],
)
def test_what_a_broker_does_not_start_with(broker, file, data, code):
    path = broker / file
    path.parent.mkdir(exist_ok=True)
    if data is None:
        path.unlink()
    else:
        path.write_bytes(data)
    if code == "two-folders":
        content = (broker / "d1" / "plain-0" / "partition.metadata").read_bytes()
        (broker / "d2" / "plain-0" / "partition.metadata").write_bytes(content)
    start, _ = started(broker)
    assert start["starts"] is False
    assert code in codes(start["fatal"])


def test_a_lost_metadata_log_makes_every_folder_stray(broker):
    (broker / "d1" / "__cluster_metadata-0" / f"{0:020}.log").unlink()
    start, logs = started(broker)
    assert start["starts"]
    assert {logs["plain", 0, "plain-0"], logs["idem", 0, "idem-0"]} == {("stray", 0, 2)}


def test_a_topic_twice_in_the_metadata_log_ends_a_controller(broker):
    log = broker / "d1" / "__cluster_metadata-0" / f"{0:020}.log"
    twice = metadata_value("TopicRecord", name="plain", topicId=bytes(15) + b"\x09")
    log.write_bytes(log.read_bytes() + records(twice, base=5))
    start, _ = started(broker)
    assert codes(start["fatal"]) == ["metadata-replay-broken"]


def test_a_broker_applies_the_records_after_one_that_it_skips(broker):
    """MetadataBatchLoader.replay: a broker's fault handler only logs the error."""
    log = broker / "d1" / "__cluster_metadata-0"
    level = metadata_value("FeatureLevelRecord", name="metadata.version", featureLevel=21)
    plain, idem = (metadata_value("TopicRecord", name=name, topicId=uuid) for name, uuid in IDS.items())
    later = records(idem, assignment("plain", 0, "d1"), assignment("idem", 0, "d2"), base=3)
    (log / f"{0:020}.log").write_bytes(records(level, plain, plain))
    (log / f"{3:020}.log").write_bytes(later)
    start, logs = started(broker, configs=("node.id=1", "process.roles=broker", "controller.quorum.voters=2@b:9093"))
    assert (start["starts"], start["fatal"]) == (True, [])
    assert (logs["plain", 0, "plain-0"], logs["idem", 0, "idem-0"]) == (("loaded", 0, 2), ("loaded", 0, 2))


def test_one_log_dir_of_two_leaves_open_what_the_other_holds(broker):
    start, logs = started(broker, "d1", configs=())
    assert start["starts"]
    assert logs["idem", 0, None] == (None, None, None)
    assert codes(start["unknown"]) == ["metadata-elsewhere"]
    _, logs = started(broker, "d2", configs=())
    assert logs["idem", 0, "idem-0"][1:] == (0, 2)


@pytest.mark.parametrize(("words", "last"), [(["."], True), (["d1", "d2", "--config", "node.id=1"], False)])
def test_a_broker_does_not_start_without_a_lost_log_dir_until_its_log_dirs_change(broker, words, last):
    """A broker of 3.9.2 ended: No `meta.properties` found in d2."""
    shutil.rmtree(broker / "d2")
    shown = kdump("check", *words, cwd=broker).stdout.decode()
    way_out = "is lost: remove it from log.dirs, or format an empty folder in its place (kafka-storage.sh format"
    assert way_out in (shown.splitlines()[-1] if last else shown)


def test_after_a_kill_the_partitions_of_a_log_dir_that_fails_are_begun_elsewhere(broker):
    (broker / "d2" / ".kafka_cleanshutdown").unlink()
    (broker / "d2" / "idem-0" / "leader-epoch-checkpoint").write_bytes(bytes(10))
    _, logs = started(broker)
    assert ("idem", 0, None) not in logs  # the first of the failed log dir is not
    log = broker / "d1" / "__cluster_metadata-0" / f"{0:020}.log"
    log.write_bytes(log.read_bytes() + records(*(assignment("idem", number, "d2") for number in (1, 2)), base=5))
    _, logs = started(broker)
    begun = [key for key, what in logs.items() if key[2] is None and what == ("created-empty", 0, 0)]
    assert len(begun) == 2


def test_a_log_dir_of_a_broker_with_zookeeper_leaves_the_start_open(tmp_path):
    folder = tmp_path / "d1" / "plain-0"
    folder.mkdir(parents=True)
    (folder / f"{0:020}.log").write_bytes(records(b"a"))
    (tmp_path / "d1" / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    start, _ = started(tmp_path, "d1", configs=())
    assert (start["starts"], start["fatal"]) == (None, [])
    (tmp_path / "d1" / "meta.properties").write_text("version=0\nbroker.id=3\n")
    start, logs = started(tmp_path, "d1", configs=())
    assert (start["starts"], start["nodeId"], logs["plain", 0, "plain-0"][1:]) == (None, 3, (0, 1))
    assert [cause["text"].partition(":")[0] for cause in start["unknown"]] == [
        "meta.properties belongs to a broker with ZooKeeper"
    ]


@pytest.mark.parametrize(
    ("file", "content", "offline"),
    [
        ("meta.properties", "version=9\n", True),
        ("recovery-point-offset-checkpoint", "x", True),
        ("meta.properties", None, False),
        ("meta.properties", "", False),
    ],
)
@pytest.mark.parametrize("migrates", [False, True])
@pytest.mark.parametrize("failed", ["d1", "d2"])
def test_with_zookeeper_no_log_dir_is_that_of_the_metadata(tmp_path, file, content, offline, migrates, failed):
    """KafkaServer of 3.9 names a metadata.log.dir only in a migration, and completes each meta.properties."""
    for name in DIRS:
        folder = tmp_path / name / f"{name}-0"
        folder.mkdir(parents=True)
        (folder / f"{0:020}.log").write_bytes(records(b"a"))
        (tmp_path / name / "meta.properties").write_text("version=0\nbroker.id=3\n")
        (tmp_path / name / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    changed = tmp_path / failed / file
    changed.unlink() if content is None else changed.write_text(content)
    migration = "zookeeper.metadata.migration.enable=true"
    start, _ = started(tmp_path, configs=("broker.id=3", *((migration,) if migrates else ())), release="3.9.2")
    ends = offline and migrates and failed == "d1"
    assert (start["starts"], bool(start["fatal"])) == (False if ends else None, ends)
    assert [each.rpartition("/")[2] for each in start["offlineLogDirs"]] == [failed] * offline


@pytest.mark.parametrize("migrates", [False, True])
def test_with_zookeeper_a_broker_creates_a_missing_log_dir(tmp_path, migrates):
    """KafkaServer of 3.9 calls Files.createDirectories before it writes ``meta.properties``."""
    folder = tmp_path / "d1" / "plain-0"
    folder.mkdir(parents=True)
    (folder / f"{0:020}.log").write_bytes(records(b"a"))
    (tmp_path / "d1" / "meta.properties").write_text("version=0\nbroker.id=3\n")
    migration = "zookeeper.metadata.migration.enable=true"
    start, _ = started(tmp_path, configs=("broker.id=3", *((migration,) if migrates else ())), release="3.9.2")
    assert (start["starts"], start["fatal"], start["offlineLogDirs"]) == (None, [], [])
    assert findings(tmp_path, configs=("broker.id=3",)) == (3, {("log-dir-missing", 0)})
    done = kdump("check", "d1", "d2", "--config", "broker.id=3", cwd=tmp_path).stdout.decode()
    assert ("does not start" in done, "DO NOT START" in done) == (False, True)


def test_a_marker_does_not_change_which_logs_begin_elsewhere(broker):
    """The leader in the metadata decides (``TopicDelta.localChanges``), not the marker of the log dir."""
    log = broker / "d1" / "__cluster_metadata-0" / f"{0:020}.log"
    log.write_bytes(log.read_bytes() + records(*(assignment("idem", number, "d2") for number in (1, 2)), base=5))
    (broker / "d2" / "idem-0" / "leader-epoch-checkpoint").write_bytes(bytes(10))
    _, logs = started(broker)
    assert len([key for key, what in logs.items() if key[2] is None and what == ("created-empty", 0, 0)]) == 2
    change = metadata_value("PartitionChangeRecord", partitionId=1, topicId=IDS["idem"], leader=-1)
    log.write_bytes(log.read_bytes() + records(change, base=7))
    _, logs = started(broker)
    assert len([key for key, what in logs.items() if key[2] is None and what == ("created-empty", 0, 0)]) == 1


def test_a_segment_that_is_a_swap_file_is_restored(broker):
    """The log reaches its high watermark after the start: nothing is missing."""
    (broker / "d1" / "replication-offset-checkpoint").write_text("0\n1\nplain 0 2\n")
    log = broker / "d1" / "plain-0" / f"{0:020}.log"
    log.rename(f"{log}.swap")
    _, logs = started(broker)
    assert logs["plain", 0, "plain-0"][1:] == (0, 2)
    done = kdump("check", *(str(broker / each) for each in DIRS))
    assert b"offsets below" not in done.stdout
    assert b"are missing" not in done.stdout
    log.with_name(f"{log.name}.swap").unlink()
    done = kdump("check", *(str(broker / each) for each in DIRS))
    assert done.returncode == 3
    assert b"2 records are missing" in done.stdout


@pytest.mark.parametrize(
    ("voters", "fatal"),
    [
        (', "currentVoters": null', True),
        (', "currentVoters": []', False),
        (', "currentVoters": [{"voterId": 1}]', False),
        (', "currentVoters": [{"voterId": "1"}]', True),
        (', "currentVoters": [1]', True),
        (', "currentVoters": 1', True),
        ("", True),
    ],
)
def test_quorum_state_of_version_0_needs_a_list_of_voters(broker, voters, fatal):
    """Without the field a broker of 4.4.0 ended: QuorumStateData: unable to locate field 'currentVoters'.

    With null one of 4.3.1 ended: NullPointerException in ElectionState.fromQuorumStateData.
    """
    state = '{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,"data_version":0'
    (broker / "d1" / "__cluster_metadata-0" / "quorum-state").write_text(f"{state}{voters}}}")
    assert codes(started(broker)[0]["fatal"]) == ["quorum-state-broken"] * fatal


@pytest.mark.parametrize(
    ("feature", "level", "release", "fatal"),
    [
        ("share.version", 1, "4.0.1", True),
        ("share.version", 1, "4.1.1", False),
        ("share.version", 2, "4.3.1", True),
        ("share.version", 2, "4.4.0", False),
        ("share.version", 0, "3.9.2", False),
        ("streams.version", 1, "4.1.1", True),
        ("streams.version", 1, "4.2.2", False),
        ("group.version", 1, "3.9.2", True),
        ("metadata.version", 7, "4.4.0", False),
        ("metadata.version", 6, "4.4.0", True),
        ("metadata.version", 6, "3.9.2", False),
    ],
)
def test_a_release_needs_to_know_the_level_of_each_feature(broker, feature, level, release, fatal):
    """Brokers of 4.0.1 and 4.3.1 ended on log dirs of 4.4.0 with share.version 1 and 2, as with share groups."""
    log = broker / "d1" / "__cluster_metadata-0" / f"{0:020}.log"
    record = metadata_value("FeatureLevelRecord", name=feature, featureLevel=level)
    log.write_bytes(log.read_bytes() + records(record, base=5))
    start, _ = started(broker, release=release)
    assert (start["starts"], codes(start["fatal"])) == (not fatal, ["metadata-too-new"] * fatal)


@pytest.mark.parametrize("roles", ["broker", "broker,controller"])
@pytest.mark.parametrize("release", ["4.3.1", "4.4.0"])
@pytest.mark.parametrize(
    ("value", "code"),
    [
        (b"\x02\x0c\x00", "metadata-too-new"),  # frame version 2
        (b"\x01\x7d\x00", "metadata-too-new"),  # record type 125
        (b"\x01\x02\x7d", "metadata-too-new"),  # version 125
        (b"\x01\x02\x00", "metadata-replay-broken"),  # no fields
        (b"\x01", "metadata-replay-broken"),
        (b"", "metadata-replay-broken"),
        (None, "metadata-replay-broken"),
    ],
)
def test_no_node_starts_with_a_metadata_record_that_cannot_be_decoded(broker, value, code, release, roles):
    """RecordsIterator decodes the whole log when a node starts (KRaftControlRecordStateMachine)."""
    log = broker / "d1" / "__cluster_metadata-0" / f"{0:020}.log"
    log.write_bytes(log.read_bytes() + forge.batch([forge.record(None, value)], base_offset=5))
    start, _ = started(broker, configs=("node.id=1", f"process.roles={roles}"), release=release)
    assert (start["starts"], codes(start["fatal"])) == (False, [code])


PREVIEW = b"\x00\x02\x00\x00\x03old" + bytes(15) + b"\x0a"
"""A TopicRecord of 2.8."""


@pytest.mark.parametrize("release", ["3.9.2", "4.4.0"])
@pytest.mark.parametrize("is_first", [True, False])
def test_no_release_after_the_preview_reads_its_metadata_records(broker, release, is_first):
    """AbstractApiMessageSerde refuses frame version 0, which only KRaft's preview in 2.8 wrote."""
    log = broker / "d1" / "__cluster_metadata-0" / f"{0:020}.log"
    log.write_bytes(records(PREVIEW) if is_first else log.read_bytes() + records(PREVIEW, base=5))
    start, _ = started(broker, release=release)
    assert (start["starts"], codes(start["fatal"])) == (False, ["metadata-too-new"])
    assert "Could not deserialize metadata record with frame version 0" in start["fatal"][0]["text"]


@pytest.mark.parametrize(
    ("value", "release", "fatal"),
    [
        (b"\x02\x02\x00", "4.4.0", True),
        (b"\x01\x63\x00", "4.4.0", True),
        (b"\x01\x02\x09", "4.4.0", True),
        (b"", "4.4.0", True),
        (metadata_value("RegisterControllerRecord"), "4.4.0", False),
        (metadata_value("RegisterControllerRecord"), "3.5.2", True),
        (metadata_value("FeatureLevelRecord", name="share.version", featureLevel=2), "3.9.2", False),
    ],
)
def test_a_node_decodes_each_record_of_its_bootstrap_checkpoint(broker, value, release, fatal):
    """BatchFileReader: "unable to deserialize record at offset 1"."""
    version = metadata_value("FeatureLevelRecord", name="metadata.version", featureLevel=1)
    log = broker / "d1" / "__cluster_metadata-0" / f"{0:020}.log"
    log.write_bytes(records(version))
    (broker / "d1" / "bootstrap.checkpoint").write_bytes(records(version, value))
    start, _ = started(broker, release=release)
    assert ("bootstrap-broken" in codes(start["fatal"])) == fatal


def test_a_node_starts_with_a_gap_in_the_metadata_log(broker):
    log = broker / "d1" / "__cluster_metadata-0" / f"{0:020}.log"
    log.write_bytes(log.read_bytes() + records(metadata_value("NoOpRecord"), base=7))
    assert started(broker)[0]["starts"] is True


@pytest.mark.parametrize(
    ("old", "new", "fatal"),
    [
        ("}", "} x", False),
        ("}", "}\nx", False),
        ("{", "  {", False),
        ("{", '{"note":[1],', False),
        ('Epoch":1', 'Epoch":-5', False),
        ('Id":1,', 'Id":2,', False),
        ("}", "}\rx", False),
        ("{", "\n{", True),
        ("{", "\r{", True),
        (',"leaderEpoch', ',\r"leaderEpoch', True),
        ("{", "\ufeff{", True),
        ("{", '{"note":NaN,', True),
        ('Epoch":1', 'Epoch":1.0', True),
        ('Epoch":1', 'Epoch":2147483647', True),
        ('Epoch":1', 'Epoch":2147483648', True),
        ('Offset":0', 'Offset":1180591620717411303424', True),
    ],
)
def test_quorum_state_is_read_as_java_reads_it(broker, old, new, fatal):
    """As a broker of 4.4.0 with each of these files, and with UTF-16."""
    state = '{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,"currentVoters":[],'
    state = f'{state}"data_version":0}}'.replace(old, new, 1)
    file = broker / "d1" / "__cluster_metadata-0" / "quorum-state"
    file.write_text(state)
    assert codes(started(broker)[0]["fatal"]) == ["quorum-state-broken"] * fatal
    file.write_bytes(state.encode("utf-16-le"))
    assert codes(started(broker)[0]["fatal"]) == ["quorum-state-broken"]


@pytest.mark.parametrize(
    ("name", "fatal"),
    [
        ("copy.checkpoint", True),
        ("7-1.checkpoint", True),
        ("copy.checkpoint.part", True),
        ("x.checkpoint.deleted", True),
        ("copy.checkpoint.bak", False),
        (f"{1:020}-{0:010} (1).checkpoint", False),
        (f"{1:021}-{0:011}.checkpoint", False),
        (f"{99:020}-{9:010}.checkpoint.part", False),
        (f"{99:020}-{9:010}.checkpoint.deleted", False),
    ],
)
def test_a_node_reads_offset_and_epoch_from_the_name_of_each_snapshot(broker, name, fatal):
    """As a broker of 4.4.0 (``Snapshots.parse``)."""
    version = forge.record(None, metadata_value("FeatureLevelRecord", name="metadata.version", featureLevel=21))
    control = [
        forge.batch([forge.record(bytes([0, 0, 0, kind]), value)], base_offset=offset, attributes=0x20)
        for offset, kind, value in ((0, 3, bytes(11)), (2, 4, bytes(3)))
    ]
    snapshot = control[0] + forge.batch([version], base_offset=1) + control[1]
    folder = broker / "d1" / "__cluster_metadata-0"
    (folder / f"{1:020}-{0:010}.checkpoint").write_bytes(snapshot)
    (folder / name).write_bytes(b"x")
    start, _ = started(broker)
    assert (start["starts"], codes(start["fatal"])) == (not fatal, ["name"] * fatal)
    for command in printed(broker, list(DIRS)):
        subprocess.run(["bash", "-c", command], cwd=broker, check=True)
    assert findings(broker) == (0, set())


def add_voters(broker, *ids):
    """Append a VotersRecord (KIP-853): the voters have these ids, and the directory id of d1."""
    voters = b"".join(node.to_bytes(4, "big") + DIRS["d1"] + b"\x01" + bytes(3) + b"\x01" + bytes(2) for node in ids)
    record = forge.record(bytes([0, 0, 0, 6]), bytes([0, 0, len(ids) + 1]) + voters + b"\x00")
    with (broker / "d1" / "__cluster_metadata-0" / f"{0:020}.log").open("ab") as log:
        log.write(forge.batch([record], base_offset=5, attributes=0x20))


@pytest.mark.parametrize(
    ("ids", "line", "fatal"),
    [
        ([1], text(DIRS["d1"]), False),
        ([1], text(b"\x13" * 16), True),
        ([1], None, True),
        ([1, 2], text(b"\x13" * 16), False),
        ([], text(b"\x13" * 16), False),
    ],
)
def test_a_sole_voter_with_another_directory_id_finds_no_leader(broker, ids, line, fatal):
    """A broker of 4.4.0, formatted with --standalone, ended: no controller acknowledged that it was caught up."""
    if ids:
        add_voters(broker, *ids)
    properties = broker / "d1" / "meta.properties"
    properties.write_text(META.removesuffix("directory.id=") if line is None else f"{META}{line}\n")
    assert codes(started(broker)[0]["fatal"]) == ["voter-directory-differs"] * fatal
    for command in printed(broker, ["d1", "d2"]):
        subprocess.run(["bash", "-c", command], cwd=broker, check=True)
    assert (properties.read_text() == f"{META}{text(DIRS['d1'])}\n") == (fatal or line == text(DIRS["d1"]))
    assert started(broker)[0]["starts"]


@pytest.mark.parametrize(("voted", "fatal"), [("A" * 22, False), ("A" * 22 + "==", False), ("!!", True), ("", True)])
def test_quorum_state_of_version_1_needs_a_uuid(broker, voted, fatal):
    """A broker of 4.4.0 ended with "!!", and started with the id of another directory."""
    state = '{"leaderId":1,"leaderEpoch":1,"votedId":-1,"data_version":1,"votedDirectoryId":'
    (broker / "d1" / "__cluster_metadata-0" / "quorum-state").write_text(f'{state}"{voted}"}}')
    assert codes(started(broker)[0]["fatal"]) == ["quorum-state-broken"] * fatal


def test_a_broken_link_in_the_place_of_quorum_state_counts_as_no_file(broker):
    (broker / "d1" / "__cluster_metadata-0" / "quorum-state").symlink_to("nothing")
    assert started(broker)[0]["starts"]


def test_quorum_state_names_the_voters(broker):
    """A node that is not a voter gets the metadata from the controllers."""
    state = (
        '{"clusterId":"","leaderId":9,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,'
        '"currentVoters":[{"voterId":9}],"data_version":0}'
    )
    (broker / "d1" / "__cluster_metadata-0" / "quorum-state").write_text(state)
    (broker / "d1" / "__cluster_metadata-0" / f"{0:020}.log").write_bytes(b"")
    start, logs = started(broker, configs=("node.id=1",))
    assert codes(start["unknown"]) == ["metadata-elsewhere"]
    assert logs["plain", 0, "plain-0"] == (None, 0, 2)


def findings(broker, *dirs, configs=("node.id=1", "process.roles=broker,controller")):
    words = [word for config in configs for word in ("--config", config)]
    done = kdump("check", *(str(broker / each) for each in dirs or DIRS), "-o", "jsonl", *words)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, {(line["code"], line["missing"]) for line in lines if line["kind"] == "finding"}


def test_a_batch_at_which_only_consumers_stop_needs_no_salvage(broker):
    """Salvage keeps the batch. The advice to put its copy in the place of the log would never end."""
    log = broker / "d2" / "idem-0" / f"{0:020}.log"
    log.write_bytes(records(b"a") + forge.batch([b"\xff\xff"], base_offset=1))
    done = kdump("check", *(str(broker / each) for each in DIRS), "--config", "node.id=1")
    assert done.returncode == 3
    verdict = done.stdout.decode().splitlines()[-1]
    assert verdict.startswith(f"broker 1 starts, but consumers stop in 1 log file: {log}")
    assert b"DO NOT START" not in done.stdout
    assert b"kdump salvage d" not in done.stdout


@pytest.mark.parametrize(
    ("release", "keeps_log", "fatal"), [("4.4.0", True, True), ("4.4.0", False, True), ("3.9.2", True, False)]
)
def test_a_snapshot_that_is_cut_before_its_metadata_version_ends_a_broker(broker, release, keeps_log, fatal):
    """Brokers of 4.2.2, 4.3.1 and 4.4.0 ended so, and started without the snapshot; one of 3.9.2 started with it."""
    folder = broker / "d1" / "__cluster_metadata-0"
    snapshot = folder / f"{5:020}-{0:010}.checkpoint"
    snapshot.write_bytes(SNAPSHOT_HEADER + records(metadata_value("NoOpRecord"), base=1))
    if not keeps_log:
        (folder / f"{0:020}.log").unlink()
    start, _ = started(broker, release=release)
    assert (start["starts"], codes(start["fatal"])) == ((False, ["metadata-snapshot-broken"]) if fatal else (True, []))
    text = kdump("check", "d1", "d2", "--release", release, "--config", "node.id=1", cwd=broker).stdout.decode()
    assert ("Unknown metadata version: the snapshot has no record of metadata.version\n" in text) == fatal
    assert (f"  mkdir -p d1.aside/files/{folder.name}/ && mv d1/{folder.name}/{snapshot.name} " in text) == (
        fatal and keeps_log
    )
    assert ("Copy the snapshot from another controller or from a backup." in text) == (fatal and not keeps_log)
    assert ("-stray" in text) != fatal  # without the records of the snapshot nothing is known of the partitions


@pytest.mark.parametrize("zeroed", ["d1", "d2"])
@pytest.mark.parametrize("is_missing", [False, True])
def test_a_log_dir_with_lost_ids_belongs_to_the_only_other_broker(broker, zeroed, is_missing):
    """The command writes the ids that the other log dir has, not those of a new cluster."""
    (broker / zeroed / "meta.properties").write_bytes(bytes(80))
    if is_missing:
        (broker / zeroed / "meta.properties").unlink()
    text = kdump("check", "d1", "d2", cwd=broker).stdout.decode()
    assert f"DO NOT START broker 1: {zeroed}/meta.properties: " in text
    assert is_missing or f"Error: node ID not found in {zeroed}\n" in text
    moved = "" if is_missing else f"mkdir -p {zeroed}.aside/ && mv {zeroed}/meta.properties {zeroed}.aside/ && "
    assert f"  {moved}printf '%s\\n' version=1 node.id=1 cluster.id={CLUSTER}" in text
    assert "not among the paths" not in text
    assert "2 brokers" not in text
    other = next(each for each in DIRS if each != zeroed)
    copied = broker / zeroed / ("plain-0" if other == "d1" else "idem-0")
    shutil.copytree(broker / other / copied.name, copied)  # now it may be a copy of the other log dir
    assert "these are log dirs of 2 brokers" in kdump("check", "d1", "d2", cwd=broker).stdout.decode()


@pytest.mark.parametrize(
    ("broken", "line", "words"),
    [("d2", "node.id=1", ["./d1", "./d2"]), ("d1", "version=1", ["./d1", "--config", "node.id=1"])],
)
def test_the_ids_that_a_broken_file_still_has_are_kept(broker, broken, line, words):
    file = broker / broken / "meta.properties"
    file.write_text(file.read_text().replace(line, "version=2" if line == "version=1" else ""))
    done = kdump("check", *words, cwd=broker).stdout.decode()
    ids = f"version=1 node.id=1 cluster.id={CLUSTER} directory.id={text(DIRS[broken])}"
    moved = f"mkdir -p {broken}.aside/ && mv ./{broken}/meta.properties {broken}.aside/"
    assert f"  {moved} && printf '%s\\n' {ids} > ./{broken}/meta.properties\n" in done
    assert "not among the paths" not in done
    assert "/dev/urandom" not in done


def epochs(folder, *entries):
    lines = ["0", str(len(entries)), *(f"{epoch} {start}" for epoch, start in entries), ""]
    (folder / "leader-epoch-checkpoint").write_text("\n".join(lines))


@pytest.mark.parametrize(("begins", "line"), [(0, 0), (1, 1), (7, 0)])
def test_a_start_offset_past_the_end_is_corrected_to_that_of_the_first_epoch(broker, begins, line):
    """DeleteRecords raises the start of the first epoch: with a start offset of 0 the deleted records would be back."""
    (broker / "d1" / "log-start-offset-checkpoint").write_text("0\n1\nplain 0 9\n")
    epochs(broker / "d1" / "plain-0", (0, begins))
    text = kdump("check", "d1", "d2", cwd=broker).stdout.decode()
    assert f"  sed -i.bak 's/^plain 0 .*/plain 0 {line}/' d1/log-start-offset-checkpoint\n" in text


@pytest.mark.parametrize("given", [2, 9])
def test_a_damaged_log_that_recovery_truncates_below_its_start_is_salvaged(broker, given):
    """A corrected log start offset alone saves no record after the damage, so its command comes after the salvage."""
    folder = broker / "d2" / "idem-0"
    damaged = bytearray(records(b"b", base=1))
    damaged[-1] ^= 1
    (folder / f"{0:020}.log").write_bytes(records(b"a") + bytes(damaged) + records(b"c", base=2))
    (folder / f"{3:020}.log").write_bytes(records(b"d", b"e", base=3))
    (folder / f"{3:020}.index").write_bytes(b"")
    (broker / "d2" / "log-start-offset-checkpoint").write_text(f"0\n1\nidem 0 {given}\n")
    (broker / "d2" / ".kafka_cleanshutdown").unlink()
    text = kdump("check", "d1", "d2", cwd=broker).stdout.decode()
    beyond = "log start offset 9 of idem-0 is above the log end offset 5: a start deletes all segments of the log"
    after = "after recovery the log would end at offset 1, below its log start offset 2: a start then deletes all "
    assert (f"  DAMAGED {after}segments of idem-0 (4 records)\n" if given == 2 else f"  LOST    {beyond} (4 r") in text
    assert "2 segments and lose offsets 0 to 4, 4 records" in text
    assert "DO NOT START broker 1 yet: a start loses 4 records: " in text
    sed = "  sed -i.bak 's/^idem 0 .*/idem 0 0/' d2/log-start-offset-checkpoint\n" if given == 9 else ""
    assert f"  kdump salvage d2/idem-0 --out salvaged\n{sed}" in text
    assert ("sed" in text, "keeps all segments" in text) == (given == 9, False)


@pytest.mark.parametrize("is_hidden", [False, True])
def test_a_folder_that_only_checkpoints_name_belongs_to_their_log_dir(broker, is_hidden):
    """Checkpoints of two log dirs do not prove one log; metadata without a directory id does not name the log dir."""
    shutil.rmtree(broker / "d1" / "__cluster_metadata-0")
    for name, log_dir in (("replication", "d2"), ("recovery-point", "d1" if is_hidden else "d2")):
        (broker / log_dir / f"{name}-offset-checkpoint").write_text("0\n1\nlost 0 50\n")
    done = kdump("check", "d1", "d2", "--config", "node.id=1", "--config", "process.roles=broker", cwd=broker)
    text = done.stdout.decode()
    assert ("50 records are missing: d2/lost-0: " in text, "lost-0" in text) == (not is_hidden, not is_hidden)
    assert "d1/lost-0" not in text


def test_an_assigned_folder_without_a_directory_id_was_in_the_log_dir_whose_checkpoints_name_it(broker):
    log = broker / "d1" / "__cluster_metadata-0" / f"{0:020}.log"
    lost = assignment("idem", 1, None)
    log.write_bytes(log.read_bytes() + records(lost, base=5))
    (broker / "d2" / "replication-offset-checkpoint").write_text("0\n1\nidem 1 50\n")
    found = kdump("check", "d1", "d2", cwd=broker).stdout.decode()
    assert f"d2/idem-1: idem-1 is assigned to broker 1 in d2 (directory.id {text(DIRS['d2'])})" in found
    assert b"d2/idem-1: idem-1 is assigned to broker 1, but has no folder" in kdump("du", "d1", "d2", cwd=broker).stderr


@pytest.mark.parametrize(
    ("mark", "point", "status", "text"),
    [
        (0, 0, 0, "the partition was empty"),
        (1 << 62, 0, 3, "a start creates an empty log"),
        (-7, -7, 3, "a start creates an empty log"),
        (1 << 62, 5, 3, "5 records are missing (recovery point: 5)"),
    ],
)
def test_an_incredible_offset_does_not_prove_that_a_missing_partition_was_empty(broker, mark, point, status, text):
    shutil.rmtree(broker / "d2" / "idem-0")
    (broker / "d2" / "replication-offset-checkpoint").write_text(f"0\n1\nidem 0 {mark}\n")
    (broker / "d2" / "recovery-point-offset-checkpoint").write_text(f"0\n1\nidem 0 {point}\n")
    done = kdump("check", "d1", "d2", "--notes", cwd=broker)
    assert f"but has no folder: {text}" in done.stdout.decode()
    assert done.returncode == status


@pytest.mark.parametrize(("mark", "missing"), [(2, None), (8, 6)])
def test_a_promoted_future_folder_lacks_the_records_that_checkpoints_prove(broker, mark, missing):
    """A broker of 3.9.2 made the folder the current one, without 20 records that were cut from it."""
    (broker / "d1" / "plain-0").rename(broker / "d1" / f"plain-0.{'0' * 32}-future")
    for name in ("recovery-point", "replication"):
        (broker / "d1" / f"{name}-offset-checkpoint").write_text(f"0\n1\nplain 0 {mark}\n")
    status, found = findings(broker)
    assert (status, found) == ((3, {("records-missing", missing)}) if missing else (0, set()))


def future_of(broker, *, beside=True):
    """Copy or move the folder of plain-0 to the other log dir, as a broker does that moves the replica."""
    current, future = broker / "d1" / "plain-0", broker / "d2" / f"plain-0.{'0' * 32}-future"
    shutil.copytree(current, future)
    if not beside:
        shutil.rmtree(current)
    return current, future


@pytest.mark.parametrize("beside", [True, False])
def test_a_start_loses_the_records_that_only_a_future_folder_has(broker, beside):
    """Brokers of 4.4.0 truncated such copies to the current log, even to an empty one, and then served these."""
    current, future = future_of(broker, beside=beside)
    if beside:
        (current / f"{0:020}.log").write_bytes(records(b"a"))
    text = kdump("check", "d1", "d2", cwd=broker).stdout.decode()
    lost = "loses 1 record: " if beside else "loses 2 records: "
    assert f"DO NOT START broker 1 yet: a start {lost}d2/{future.name}: " in text
    move = f"  mv d2/{future.name} d2/plain-0\n"
    assert (f"  mkdir -p d1.aside/ && mv d1/plain-0 d1.aside/ && {move.lstrip()}" if beside else move) in text
    for command in printed(broker, ["d1", "d2"]):
        subprocess.run(["bash", "-c", command], cwd=broker, check=True)
    assert findings(broker) == (0, set())
    assert started(broker)[1]["plain", 0, "plain-0"] == ("loaded", 0, 2)


@pytest.mark.parametrize(("mark", "missing"), [(2, 0), (5, 3)])
def test_records_that_a_future_folder_restores_are_not_missing(broker, mark, missing):
    """The commands change both log dirs, so both are copied first."""
    current, _ = future_of(broker)
    (current / f"{0:020}.log").write_bytes(records(b"a"))
    for each in DIRS:
        (broker / each / ".kafka_cleanshutdown").unlink()
    (broker / "d1" / "replication-offset-checkpoint").write_text(f"0\n1\nplain 0 {mark}\n")
    text = kdump("check", "d1", "d2", cwd=broker).stdout.decode()
    assert "DO NOT START broker 1 yet: a start loses 1 record: " in text
    already = f"; {missing} records are missing already: d1/plain-0\n"
    assert ("missing already" in text, already in text) == (missing > 0, missing > 0)
    copies = [line.split()[2] for line in text.splitlines() if line.startswith("  [ -e ")]
    assert sorted(copies) == ["d1.copy", "d2.copy"]
    commands = printed(broker, ["d1", "d2"])
    assert sum("mv d1/plain-0 " in command for command in commands) == 1
    for command in commands:
        subprocess.run(["bash", "-c", command], cwd=broker, check=True)
    assert missing or findings(broker) == (0, set())


@pytest.mark.parametrize("records_left", [0, 1, 2])
def test_a_future_folder_that_ends_below_the_current_log_loses_nothing(broker, records_left):
    _, future = future_of(broker)
    (future / f"{0:020}.log").write_bytes(b"".join(records(b"a", base=base) for base in range(records_left)))
    assert findings(broker) == (0, set())


@pytest.mark.parametrize("damaged", ["future", "current", "both"])
def test_a_damaged_copy_that_takes_the_place_of_a_valid_log_is_moved_away(broker, damaged):
    """A broker of 4.4.0 let such a copy become the current folder, and consumers failed at it."""
    for folder, name in zip(future_of(broker), ("current", "future"), strict=True):
        if damaged in {name, "both"}:
            data = bytearray((folder / f"{0:020}.log").read_bytes())
            data[-1] ^= 1
            (folder / f"{0:020}.log").write_bytes(data)
    found = printed(broker, ["d1", "d2"])
    future = f"d2/plain-0.{'0' * 32}-future"
    assert (f"mkdir -p d2.aside/ && mv {future} d2.aside/" in found) == (damaged == "future")


def test_a_future_folder_without_a_topic_id_is_stray_but_only_a_copy(broker):
    """A broker of 4.4.0 renamed it and served the current folder."""
    current, future = future_of(broker)
    (future / "partition.metadata").unlink()
    assert findings(broker) == (0, set())
    assert started(broker)[1]["plain", 0, future.name] == ("stray", 0, 2)
    (current / f"{0:020}.log").write_bytes(records(b"a"))
    assert findings(broker) == (3, {("becomes-stray", None)})


FOLLOW = "\nFollow the advice of the findings (what to do), and run kdump check again."


def kill(broker):
    for each in DIRS:
        (broker / each / ".kafka_cleanshutdown").unlink()


def with_future(broker):
    shutil.copytree(broker / "d1" / "plain-0", broker / "d1" / f"plain-0.{'0' * 32}-future")


def with_broken_swap(broker):
    (broker / "d1" / "plain-0" / f"{0:020}.log.swap").write_bytes(records(b"a") + bytes(64))


def with_swap_of_other_offsets(broker):
    kill(broker)
    (broker / "d1" / "plain-0" / f"{5:020}.log.swap").write_bytes(records(b"a") + records(b"b", base=1))


def with_segment_of_other_offsets(broker):
    kill(broker)
    folder = broker / "d1" / "plain-0"
    (folder / f"{0:020}.log").rename(folder / f"{1:020}.log")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (with_future, "future-beside-current"),
        (with_broken_swap, "record-size"),
        (with_swap_of_other_offsets, "split-refused"),
        (with_segment_of_other_offsets, "split-refused"),
    ],
)
def test_commands_make_a_broker_start_that_fails_at_a_log(broker, change, code):
    change(broker)
    assert codes(started(broker)[0]["fatal"]) == [code]
    for command in printed(broker, ["d1", "d2"]):
        subprocess.run(["bash", "-c", command], cwd=broker, env=environment(), check=True)
    start, logs = started(broker)
    assert (start["starts"], logs["plain", 0, "plain-0"][1:]) == (True, (0, 2))


def test_a_verdict_without_commands_has_a_next_step(broker):
    config = metadata_value("ConfigRecord", resourceType=2, resourceName="idem", name="segment.bytes", value="2500")
    log = broker / "d1" / "__cluster_metadata-0" / f"{0:020}.log"
    log.write_bytes(log.read_bytes() + records(config, base=5))
    shown = kdump("check", "d1", "d2", "--release", "4.4.0", cwd=broker).stdout.decode()
    assert "Invalid value 2500 for configuration segment.bytes" in shown
    assert shown.endswith(f"{FOLLOW}\n")


def test_a_partition_in_two_log_dirs_is_compared_and_one_folder_moved(broker):
    shutil.copytree(broker / "d1" / "plain-0", broker / "d2" / "plain-0")
    shown = kdump("check", "d1", "d2", cwd=broker).stdout.decode()
    assert (
        "\nDO NOT START broker 1: d2/plain-0: another log dir of the same broker, d1, has plain-0 too: the broker does "
        "not start\nThis shows which folder lacks records:\n  kdump diff d1 d2 --topic plain\nOnly if d1/plain-0 lacks "
        "no record of the other:\n"
    ) in shown
    for command in printed(broker, ["d1", "d2"]):
        subprocess.run(["bash", "-c", command], cwd=broker, env=environment(), check=True)
    start, logs = started(broker)
    assert (start["starts"], logs["plain", 0, "plain-0"][1:]) == (True, (0, 2))


def test_of_two_folders_the_one_with_more_records_is_kept(broker):
    """Also if it is the second one: pasted in order, the commands move no record away."""
    shutil.copytree(broker / "d1" / "plain-0", broker / "d2" / "plain-0")
    longer = records(b"a") + records(b"b", base=1) + records(b"c", base=2)
    (broker / "d2" / "plain-0" / f"{0:020}.log").write_bytes(longer)
    for command in printed(broker, ["d1", "d2"]):
        subprocess.run(["bash", "-c", command], cwd=broker, env=environment(), check=False)
    assert started(broker)[1]["plain", 0, "plain-0"][1:] == (0, 3)


def test_a_metadata_log_in_two_log_dirs_is_kept_in_the_metadata_log_dir(broker):
    shutil.copytree(broker / "d1" / "__cluster_metadata-0", broker / "d2" / "__cluster_metadata-0")
    shown = kdump("check", "d1", "d2", cwd=broker).stdout.decode()
    assert "The folder that stays must be in metadata.log.dir (by default the first of log.dirs)." in shown
    for command in printed(broker, ["d1", "d2"]):
        subprocess.run(["bash", "-c", command], cwd=broker, env=environment(), check=True)
    start, _ = started(broker)
    assert start["starts"]
    assert (broker / "d1" / "__cluster_metadata-0").is_dir()


def test_a_future_folder_with_more_records_takes_the_place_of_the_current_one(broker):
    with_future(broker)
    longer = records(b"a") + records(b"b", base=1) + records(b"c", base=2)
    (broker / "d1" / f"plain-0.{'0' * 32}-future" / f"{0:020}.log").write_bytes(longer)
    for command in printed(broker, ["d1", "d2"]):
        subprocess.run(["bash", "-c", command], cwd=broker, check=True)
    assert started(broker)[1]["plain", 0, "plain-0"] == ("loaded", 0, 3)


def test_an_empty_folder_without_a_topic_id_is_named_once(broker):
    """A folder that a start makes stray exists, and has no records to lose."""
    folder = broker / "d1" / "plain-0"
    (folder / f"{0:020}.log").write_bytes(b"")
    (folder / "partition.metadata").unlink()
    (broker / "d1" / "replication-offset-checkpoint").write_text("0\n1\nplain 0 0\n")
    shown = kdump("check", "d1", "d2", "--notes", cwd=broker).stdout.decode()
    assert "a start renames plain-0 to plain-0.UUID-stray and creates an empty log\n" in shown
    assert "plain-0 is assigned" not in shown


def test_a_start_that_makes_an_unknown_folder_stray_is_a_choice(broker):
    folder = shutil.copytree(broker / "d1" / "plain-0", broker / "d1" / "old-0")
    (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {text(bytes(15) + bytes([9]))}")
    shown = kdump("check", "d1", "d2", cwd=broker).stdout.decode()
    choice = "Or start the broker (kafka-server-start.sh server.properties), if these effects of a start are intended."
    assert shown.endswith(f"{FOLLOW} {choice}\n")


def begin_at(folder, base):
    """Let a folder of the fixture begin with another segment, as when the first was lost or deleted."""
    (folder / f"{0:020}.log").unlink()
    (folder / f"{0:020}.index").unlink()
    (folder / f"{base:020}.log").write_bytes(records(b"c", base=base))
    (folder / f"{base:020}.index").write_bytes(b"")


def test_a_lost_first_segment_is_reported_by_the_leader_epochs(broker):
    folder = broker / "d2" / "idem-0"
    begin_at(folder, 24)
    epochs(folder, (0, 0))
    assert findings(broker) == (3, {("records-missing", 24)})
    epochs(folder, (0, 24))  # a broker that deletes a segment moves the first epoch up
    assert findings(broker) == (0, set())


def test_without_a_metadata_log_the_topic_may_be_in_remote_storage(broker):
    begin_at(broker / "d2" / "idem-0", 24)
    epochs(broker / "d2" / "idem-0", (0, 0))
    assert findings(broker, "d2", configs=("process.roles=broker",))[0] == 0


def test_an_index_without_its_log_reports_a_lost_first_segment(broker):
    folder = broker / "d2" / "idem-0"
    begin_at(folder, 24)
    (folder / f"{0:020}.index").write_bytes(b"")
    status, found = findings(broker)
    assert (status, ("records-missing", 24) in found) == (3, True)
    (broker / "d2" / "log-start-offset-checkpoint").write_text("0\n1\nidem 0 24\n")  # DeleteRecords
    status, found = findings(broker)
    assert (status, [code for code, _ in found]) == (4, ["no-log"])


def test_a_lost_segment_that_compaction_left_empty_had_no_records(broker):
    folder = broker / "d2" / "idem-0"
    log = broker / "d1" / "__cluster_metadata-0" / f"{0:020}.log"
    compacts = metadata_value(
        "ConfigRecord", resourceType=2, resourceName="idem", name="cleanup.policy", value="compact"
    )
    log.write_bytes(log.read_bytes() + records(compacts, base=5))
    begin_at(folder, 24)
    epochs(folder, (0, 0))
    done = kdump("check", *(str(broker / each) for each in DIRS))
    assert done.returncode == 3
    assert b"the first segment is missing: the log begins at offset 24" in done.stdout
    assert b"compaction may have removed some of the 24 records" in done.stdout
    for suffix in ("index", "timeindex"):
        (folder / f"{0:020}.{suffix}").write_bytes(b"")
    status, found = findings(broker)
    assert (status, [code for code, _ in found]) == (4, ["no-log"])


def test_a_log_start_above_the_leader_epochs_hides_records(broker):
    checkpoint = broker / "d2" / "log-start-offset-checkpoint"
    checkpoint.write_text("0\n1\nidem 0 1\n")
    epochs(broker / "d2" / "idem-0", (0, 0))
    status, found = findings(broker)
    assert (status, [code for code, _ in found]) == (3, ["log-start-raised"])
    epochs(broker / "d2" / "idem-0", (0, 1))
    assert findings(broker) == (0, set())


def test_the_command_lets_hidden_records_be_served_again(broker):
    checkpoint = broker / "d2" / "log-start-offset-checkpoint"
    checkpoint.write_text("0\n1\nidem 0 1\n")
    epochs(broker / "d2" / "idem-0", (0, 0))
    done = kdump("check", str(broker / "d1"), str(broker / "d2"))
    (command,) = (line.strip() for line in done.stdout.decode().splitlines() if line.strip().startswith("sed "))
    subprocess.run(["bash", "-c", command], check=True)
    assert checkpoint.read_text() == "0\n1\nidem 0 0\n"
    assert findings(broker)[0] == 0


def test_names_that_no_broker_writes_are_no_evidence_of_records(broker):
    folder = broker / "d2" / "idem-0"
    (folder / f"{0:020}.log").with_name("9999.timeindex").write_bytes(b"")
    assert ("records-missing", 9997) not in findings(broker)[1]
    (folder / f"{9999:020}.timeindex").write_bytes(b"")
    assert ("records-missing", 9997) in findings(broker)[1]


def test_zeros_after_an_older_segment_stop_consumers(broker):
    folder = broker / "d2" / "idem-0"
    first = folder / f"{0:020}.log"
    sound = first.read_bytes()
    (folder / f"{2:020}.log").write_bytes(records(b"c", base=2))
    first.write_bytes(sound + bytes(11))  # no header of a batch: a consumer does not look at it
    assert findings(broker) == (0, set())
    first.write_bytes(sound + bytes(12))
    status, found = findings(broker)
    assert (status, "zero-tail" in {code for code, _ in found}) == (3, True)


@pytest.mark.parametrize("damage", [b"\xff" * 40, b""])
def test_the_metadata_log_is_recovered_after_a_clean_stop_too(broker, damage):
    log = broker / "d1" / "__cluster_metadata-0" / f"{0:020}.log"
    log.write_bytes(log.read_bytes() + damage)
    start, _ = started(broker)
    status, found = findings(broker)
    assert (start["starts"], status) == (True, 3 if damage else 0)
    assert "clean-marker" not in {code for code, _ in found}


def test_a_folder_in_the_place_of_the_marker_counts(broker):
    marker = broker / "d2" / ".kafka_cleanshutdown"
    marker.unlink()
    marker.mkdir()
    start, logs = started(broker)
    assert (start["starts"], logs["idem", 0, "idem-0"]) == (True, ("loaded", 0, 2))
    assert findings(broker) == (0, set())
    (marker / "file").touch()
    start, logs = started(broker)
    assert (start["starts"], [each[-2:] for each in start["offlineLogDirs"]]) == (True, ["d2"])
    assert findings(broker)[0] == 3


def test_a_broker_alone_takes_a_lost_metadata_log_from_the_controllers(broker):
    shutil.rmtree(broker / "d1" / "__cluster_metadata-0")
    assert findings(broker)[0] == 3
    configs = ("node.id=1", "process.roles=broker")
    status, found = findings(broker, configs=configs)
    assert (status, found) == (0, set())
    marks = {"replication-offset-checkpoint": 2, "recovery-point-offset-checkpoint": 2}
    for name, offset in marks.items():
        (broker / "d2" / name).write_text(f"0\n1\nidem 0 {offset}\n")
    (broker / "d1" / "log-start-offset-checkpoint").write_text("0\n1\nplain 0 1\n")
    epochs(broker / "d1" / "plain-0", (0, 0))
    assert findings(broker, configs=configs) == (3, {("log-start-raised", None)})
    (broker / "d1" / "remote-log-index-cache").mkdir()  # the topic may be in remote storage
    assert findings(broker, configs=configs) == (0, set())
    shutil.rmtree(broker / "d2" / "idem-0")
    assert findings(broker, configs=configs) == (3, {("partition-missing", 2)})
    (broker / "d1" / ".kafka_cleanshutdown").unlink()  # a deletion may be newer than the checkpoints
    assert findings(broker, configs=configs)[1] == set()


def test_a_file_in_the_place_of_a_partition_takes_its_log_dir_offline(broker):
    shutil.rmtree(broker / "d2" / "idem-0")
    (broker / "d2" / "idem-0").write_text("x")
    start, logs = started(broker)
    assert (start["starts"], [each[-2:] for each in start["offlineLogDirs"]]) == (True, ["d2"])
    assert logs["idem", 0, None] == ("offline", None, None)


def test_the_high_watermark_is_that_of_the_replica_in_use(broker):
    (broker / "d2" / "replication-offset-checkpoint").write_text("0\n1\nidem 0 2\n")
    stray = broker / "d2" / f"idem-0.{IDS['idem'].hex()}-stray"
    shutil.copytree(broker / "d2" / "idem-0", stray)
    (stray / f"{0:020}.log").write_bytes(records(b"a"))
    assert findings(broker) == (0, set())


def test_a_stray_folder_of_another_topic_id_does_not_hide_that_the_folder_is_missing(broker):
    (broker / "d2" / "replication-offset-checkpoint").write_text("0\n1\nidem 0 2\n")
    stray = (broker / "d2" / "idem-0").rename(broker / "d2" / f"idem-0.{'a' * 32}-stray")
    assert findings(broker) == (3, {("only-copy-is-stray", 2)})
    shutil.copy(broker / "d1" / "plain-0" / "partition.metadata", stray)
    assert findings(broker) == (3, {("partition-missing", 2)})


def test_of_two_stray_folders_the_one_with_more_records_replaces_the_missing_folder(broker):
    larger, smaller = (broker / "d2" / f"idem-0.{each * 32}-stray" for each in "ba")
    shutil.copytree(broker / "d2" / "idem-0", smaller)
    (smaller / f"{0:020}.log").write_bytes(records(b"a"))
    (broker / "d2" / "idem-0").rename(larger)
    done = kdump("check", *(str(broker / each) for each in DIRS), "--config", "node.id=1").stdout.decode()
    assert "a start does not serve 2 records of idem-0: the commands below restore them\n" in done
    assert [line for line in done.splitlines() if line.startswith("  mv ")] == [
        f"  mv {larger} {broker / 'd2' / 'idem-0'}"
    ]


def add_replica(broker):
    """Add the record that gives idem-0 a second replica, on broker 2."""
    log = broker / "d1" / "__cluster_metadata-0" / f"{0:020}.log"
    change = {"replicas": [1, 2], "directories": [DIRS["d2"], b"\x13" * 16]}
    value = metadata_value("PartitionChangeRecord", 1, partitionId=0, topicId=IDS["idem"], **change)
    log.write_bytes(log.read_bytes() + records(value, base=5))


def emptied(broker, moved_to):
    """Move the records of idem-0 to another folder, and leave an empty log after which a checkpoint has offset 2."""
    live = broker / "d2" / "idem-0"
    (broker / moved_to).parent.mkdir(exist_ok=True)
    live.rename(broker / moved_to)
    live.mkdir()
    shutil.copy(broker / moved_to / "partition.metadata", live)
    (live / f"{0:020}.log").write_bytes(b"")
    (broker / "d2" / "recovery-point-offset-checkpoint").write_text("0\n1\nidem 0 2\n")


@pytest.mark.parametrize("state", ["delete", "stray"])
@pytest.mark.parametrize("dirs", [("d1", "d2"), ("d2",)])
def test_a_marked_folder_has_the_records_of_an_empty_log(broker, state, dirs):
    """The live log has the same topic id. Without d1 the metadata log does not show the id."""
    name = f"idem-0.{'b' * 32}-{state}"
    emptied(broker, f"d2/{name}")
    status, found = findings(broker, *dirs, configs=())
    assert (status, found - {("metadata-elsewhere", None)}) == (3, {("only-copy-is-stray", 2)})
    done = kdump("check", *dirs, cwd=broker).stdout.decode()
    (command,) = (line.strip() for line in done.splitlines() if "-0.bbb" in line and " mv " in line)
    subprocess.run(["bash", "-c", command], check=True, cwd=broker)
    assert len((broker / "d2" / "idem-0" / f"{0:020}.log").read_bytes()) > 0
    assert findings(broker) == (0, set())


def test_a_folder_named_as_the_first_segment_of_a_folder_to_be_deleted_takes_its_log_dir_offline(broker):
    """A broker opens an empty segment with base offset 0 in it, also with another log start offset (LogLoader)."""
    folder = broker / "d2" / f"gone-0.{'b' * 32}-delete"
    (folder / f"{0:020}.log").mkdir(parents=True)
    (broker / "d2" / "log-start-offset-checkpoint").write_text("0\n1\ngone 0 7\n")
    start, _ = started(broker)
    assert (start["starts"], start["offlineLogDirs"]) == (True, [str(broker / "d2")])
    (folder / f"{0:020}.log").rename(folder / f"{7:020}.log")
    assert started(broker)[0]["offlineLogDirs"] == []


def test_a_marked_folder_of_another_topic_id_has_no_records_of_an_empty_log(broker):
    name = f"d2/idem-0.{'b' * 32}-delete"
    emptied(broker, name)
    (broker / name / "partition.metadata").write_text(f"version: 0\ntopic_id: {text(bytes(15) + b'x')}")
    assert findings(broker) == (3, {("records-missing", 2)})


@pytest.mark.parametrize("state", ["delete", "stray"])
def test_a_marked_folder_that_ends_where_an_empty_log_begins_lacks_nothing(broker, state):
    """DeleteRecords or retention has emptied the log after a move to another log dir."""
    emptied(broker, f"d2/idem-0.{'b' * 32}-{state}")
    (broker / "d2" / "idem-0" / f"{0:020}.log").rename(broker / "d2" / "idem-0" / f"{2:020}.log")
    (broker / "d2" / "log-start-offset-checkpoint").write_text("0\n1\nidem 0 2\n")
    assert findings(broker) == (0, set())


def test_another_replica_may_have_the_records_of_an_empty_log(broker):
    """A partition came back within file.delete.delay.ms after a reassignment: the broker fetches its records again."""
    emptied(broker, f"d2/idem-0.{'b' * 32}-delete")
    (broker / "d2" / "recovery-point-offset-checkpoint").unlink()
    add_replica(broker)
    done = kdump("check", *DIRS, "--notes", cwd=broker)
    assert done.returncode == 0
    assert "the name of this folder marks it for deletion" in " ".join(done.stdout.decode().split())
    (broker / "d2" / "recovery-point-offset-checkpoint").write_text("0\n1\nidem 0 2\n")
    assert findings(broker) == (3, {("only-copy-is-stray", 2)})


@pytest.mark.parametrize("place", ["d2/idem-0.bak", "d2/old/idem-0", "d2/backup", "old/idem-0", "old/copy of idem-0"])
@pytest.mark.parametrize("is_empty", [False, True])
def test_a_folder_under_another_name_is_put_in_the_place_of_a_partition(broker, place, is_empty):
    emptied(broker, place)
    if not is_empty:
        shutil.rmtree(broker / "d2" / "idem-0")
    done = kdump("check", ".", cwd=broker).stdout.decode()
    assert f"./{place} has 138 bytes of log with the topic id of idem" in " ".join(done.split())
    for command in printed(broker, list(DIRS) if place.startswith("d2") else ["."]):
        subprocess.run(["bash", "-c", command], cwd=broker, check=True)
    assert (broker / "d2" / "idem-0" / f"{0:020}.index").is_file()
    assert findings(broker) == (0, set())


@pytest.mark.parametrize(
    ("place", "named"), [("d2/idem-1.bak", False), ("d2/idem-00", False), ("d2/backup", True), ("d2/idem-0.bak", True)]
)
def test_a_folder_under_another_name_is_no_copy_of_another_partition(broker, place, named):
    """Brokers 1 and 2 have replicas of two partitions: no command, because the broker fetches the records."""
    add_replica(broker)
    (broker / "d2" / "idem-0").rename(broker / place)
    said = " ".join(kdump("check", *DIRS, cwd=broker).stdout.decode().split())
    assert ("may be a copy of idem-0" in said) == named
    assert "give it its name back" not in said


def test_a_folder_with_the_id_of_another_topic_here_is_no_all_clear(broker):
    shutil.copy(broker / "d2" / "idem-0" / "partition.metadata", broker / "d1" / "plain-0" / "partition.metadata")
    status, found = findings(broker)
    assert (status, found) == (3, {("becomes-stray", None)})
    done = kdump("check", str(broker / "d1"), str(broker / "d2"))
    (command,) = (line.strip() for line in done.stdout.decode().splitlines() if " && printf " in line)
    subprocess.run(["bash", "-c", command], check=True)
    assert (broker / "d1.aside" / "files" / "plain-0" / "partition.metadata").is_file()
    assert findings(broker) == (0, set())


@pytest.mark.parametrize("name", ["x-+1", "x-01", "x-0.y-stray"])
def test_a_folder_with_an_odd_name_of_a_partition_does_no_harm(broker, name):
    """Empty folders of topics that the metadata does not know: a broker of 4.4.0 started with `plain-+1`."""
    (broker / "d2" / name).mkdir()
    done = kdump("check", str(broker / "d1"), str(broker / "d2"), "--config", "node.id=1")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, b"safe to start broker 1: nothing is lost")


def test_two_spellings_of_one_partition_are_two_folders(broker):
    shutil.copytree(broker / "d1" / "plain-0", broker / "d1" / "plain-+00")
    start, _ = started(broker)
    assert (start["starts"], codes(start["fatal"])) == (False, ["two-folders"])


@pytest.mark.parametrize(("release", "begun"), [("4.3.1", True), ("3.9.2", False)])
def test_after_a_kill_the_partitions_of_a_log_dir_that_is_a_file_are_begun_elsewhere(broker, release, begun):
    """4.2.2, 4.3.1 and 4.4.0 did so, and 3.9.2 did not; after a clean stop, without leaders, none did."""
    log = broker / "d1" / "__cluster_metadata-0" / f"{0:020}.log"
    log.write_bytes(log.read_bytes() + records(*(assignment("idem", number, "d2") for number in (1, 2)), base=5))
    shutil.rmtree(broker / "d2")
    (broker / "d2").touch()
    start, logs = started(broker, release=release)
    assert (start["starts"], [each[-2:] for each in start["offlineLogDirs"]]) == (True, ["d2"])
    outcomes = [what[0] for key, what in logs.items() if key[0] == "idem"]
    assert sorted(outcomes) == (["created-empty", "created-empty", "offline"] if begun else ["offline"] * 3)


@pytest.mark.parametrize("is_file", [True, False])
def test_a_log_that_is_begun_elsewhere_names_the_offline_log_dir(broker, is_file):
    """The folder is there, or may be: no advice to restore it from a backup."""
    log = broker / "d1" / "__cluster_metadata-0" / f"{0:020}.log"
    log.write_bytes(log.read_bytes() + records(assignment("idem", 1, "d2"), base=5))
    shutil.copytree(broker / "d2" / "idem-0", broker / "d2" / "idem-1")
    if is_file:
        shutil.rmtree(broker / "d2")
        (broker / "d2").touch()
    else:
        (broker / "d2" / "idem-0" / "leader-epoch-checkpoint").write_bytes(bytes(10))
    done = kdump("check", str(broker / "d1"), str(broker / "d2"), "--config", "node.id=1")
    assert b"is offline: a start can create an empty log in " in done.stdout
    assert (done.returncode, b"but has no folder" in done.stdout, b"backup" in done.stdout) == (3, False, False)


@pytest.mark.parametrize(("data", "status"), [(b"", 0), (records(b"a"), 3)])
def test_a_second_folder_of_a_served_partition_is_not_made_a_replica(broker, data, status):
    """With `partition.metadata` in it a broker would not start: Duplicate log directories."""
    (broker / "d2" / "plain-0").mkdir()
    (broker / "d2" / "plain-0" / f"{0:020}.log").write_bytes(data)
    done = kdump("check", str(broker / "d1"), str(broker / "d2"), "--config", "node.id=1")
    assert (done.returncode, b"topic_id" in done.stdout) == (status, False)
    assert (b"the broker serves another folder of plain-0 instead" in done.stdout) == bool(data)


@pytest.mark.parametrize(
    ("file", "data"),
    [
        ("idem-0/leader-epoch-checkpoint", bytes(10)),
        ("idem-0/partition.metadata", b"garbage"),
        ("recovery-point-offset-checkpoint", b"0\n7\n"),
        ("log-start-offset-checkpoint", b"garbage\n"),
        ("replication-offset-checkpoint", b"0\n7\n"),
        ("meta.properties", b"version=7\n"),
    ],
)
@pytest.mark.parametrize("of_one", [True, False])
def test_a_file_that_takes_the_second_log_dir_offline_does_not_stop_the_broker(broker, file, data, of_one):
    (broker / "d2" / file).write_bytes(data)
    words = ["--config", "node.id=1", "--config", "process.roles=broker,controller"] if of_one else []
    done = kdump("check", "d1", "d2", "-o", "jsonl", *words, cwd=broker)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["offlineLogDirs"] for line in lines if line["kind"] == "start"] == [["d2"]]
    assert [line["file"] for line in lines if line["kind"] == "finding" and line["fatal"]] == []
    text = kdump("check", "d1", "d2", *words, cwd=broker).stdout.decode()
    assert "DO NOT START broker 1: " not in text
    assert "does not start" not in text
    assert "DO NOT START broker 1 yet: a start loses 2 records: " in text
    assert done.returncode == 3


def test_a_malformed_number_in_a_checkpoint_counts_as_no_entries(broker):
    (broker / "d1" / "recovery-point-offset-checkpoint").write_bytes(b"0\n1\nplain 0 x\n")
    done = kdump("check", "d1", "d2", "-o", "jsonl", cwd=broker)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["starts"] for line in lines if line["kind"] == "start"] == [True]
    (finding,) = [line for line in lines if line["kind"] == "finding"]
    assert (finding["fatal"], finding["advice"].partition(".")[0]) == (
        False,
        "A broker starts as if the file had no entries",
    )
    assert done.returncode == 4


def test_log_dirs_of_two_clusters_are_two_brokers_unless_one_is_named(broker):
    other = (broker / "d2" / "meta.properties").read_text().replace(CLUSTER, CLUSTER[::-1])
    (broker / "d2" / "meta.properties").write_text(other)
    done = kdump("check", "d1", "d2", "-o", "jsonl", cwd=broker)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    (finding,) = [line for line in lines if line.get("code") == "cluster-id"]
    assert (finding["file"], finding["fatal"], finding["level"]) == ("d2/meta.properties", False, "log")
    text = kdump("check", "d1", "d2", cwd=broker).stdout.decode()
    assert all(" yet: " in line for line in text.splitlines() if line.startswith("DO NOT START"))
    assert "If the log.dirs of one broker name all of them, it does not start: Invalid cluster.id in: d2" in text
    assert done.returncode == 3
    start, _ = started(broker)
    assert (start["starts"], codes(start["fatal"])) == (False, ["cluster-id-differs"])


@pytest.fixture
def foreign(broker):
    """Give d2 to broker 1 of another cluster: its metadata log has a topic idem with another id, and no topic plain."""
    other, metadata = broker / "d2", broker / "d2" / "__cluster_metadata-0"
    ids = (other / "meta.properties").read_text().replace(CLUSTER, CLUSTER[::-1])
    (other / "meta.properties").write_text(ids)
    (other / "idem-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {text(bytes(15) + bytes([9]))}")
    metadata.mkdir()
    values = [
        metadata_value("FeatureLevelRecord", name="metadata.version", featureLevel=21),
        metadata_value("TopicRecord", name="idem", topicId=bytes(15) + b"\x09"),
        metadata_value(
            "PartitionRecord",
            1,
            partitionId=0,
            topicId=bytes(15) + b"\x09",
            replicas=[1],
            isr=[1],
            leader=1,
            directories=[DIRS["d2"]],
        ),
    ]
    (metadata / f"{0:020}.log").write_bytes(records(*values, epoch=1))
    return broker


def test_log_dirs_of_two_clusters_have_two_metadata_logs(foreign):
    log = foreign / "d1" / "__cluster_metadata-0" / f"{0:020}.log"
    log.write_bytes(log.read_bytes() + records(assignment("plain", 1, "d2"), base=5))
    done = kdump("check", "d1", "d2", cwd=foreign)
    printed_text = done.stdout.decode()
    assert (done.returncode, done.stderr) == (3, b"")
    assert (
        "2 partitions of broker 1 are in a log dir that is not among the paths: idem-0, plain-1. No other"
        in printed_text
    )
    assert (
        f"\nsafe to start broker 1 of cluster {CLUSTER[::-1]} with only d2 in its log.dirs: nothing is lost\n"
        in printed_text
    )


@pytest.mark.parametrize("dirs", [("d1", "d2"), ("./d1", "./d2")])
def test_the_only_command_for_log_dirs_of_two_brokers_is_the_check_of_one(foreign, dirs):
    """A command that made d2 fit the metadata log in d1 would make its own broker lose the records."""
    (foreign / "d2" / "meta.properties").write_text(
        (foreign / "d2" / "meta.properties").read_text().replace(text(DIRS["d2"]), text(DIRS["d1"]))
    )
    done = kdump("check", *dirs, "--config", "node.id=1", cwd=foreign)
    lines = done.stdout.decode().splitlines()
    assert [line for line in lines if " && " in line or " > " in line] == []
    after = "After the removal of d2 from log.dirs:"
    assert lines[lines.index(after) :] == [after, f"  kdump check {dirs[0]} --config node.id=1"]


def test_a_log_dir_without_the_metadata_log_is_not_all_of_its_broker(broker):
    (broker / "d2" / "idem-0" / "leader-epoch-checkpoint").write_bytes(bytes(10))
    done = kdump("check", "d2", "-o", "jsonl", cwd=broker)
    (start,) = [line for line in map(json.loads, done.stdout.splitlines()) if line["kind"] == "start"]
    assert (start["starts"], start["offlineLogDirs"]) == (None, ["d2"])
    assert b"DO NOT START broker 1: " not in kdump("check", "d2", cwd=broker).stdout


@pytest.fixture
def killed(broker):
    """The same after a kill: idem-0 has three segments of two records, and its recovery point is that of the second."""
    for name in DIRS:
        (broker / name / ".kafka_cleanshutdown").unlink()
    for base in (2, 4):
        log = broker / "d2" / "idem-0" / f"{base:020}.log"
        log.write_bytes(records(b"a", base=base) + records(b"b", base=base + 1))
        log.with_suffix(".index").write_bytes(b"")
    (broker / "d2" / "recovery-point-offset-checkpoint").write_text("0\n1\nidem 0 2\n")
    return broker


@pytest.mark.parametrize(
    ("release", "offset", "offline", "outcome"),
    [
        ("4.4.0", 0, [], ("recovered", 0, 6)),
        ("4.4.0", 2, ["d2"], ("offline", None, None)),
        ("4.4.0", 4, [], ("truncated", 0, 2)),
        ("4.2.2", 4, [], ("truncated", 0, 2)),
        ("4.4.0", 6, [], ("truncated", 0, 4)),
        ("4.4.0", 5, [], ("recovered", 0, 6)),
        ("3.9.2", 2, ["d2"], ("offline", None, None)),
        ("3.9.2", 4, ["d2"], ("offline", None, None)),
        ("3.9.2", 6, ["d2"], ("offline", None, None)),
    ],
)
def test_a_folder_with_the_name_of_a_snapshot_that_recovery_writes(killed, release, offset, offline, outcome):
    """Since 4.0 recovery takes each IOException for corruption: it empties the segment and deletes later ones."""
    (killed / "d2" / "idem-0" / f"{offset:020}.snapshot").mkdir()
    start, logs = started(killed, release=release)
    assert (start["starts"], [each[-2:] for each in start["offlineLogDirs"]]) == (True, offline)
    assert logs["idem", 0, "idem-0"] == outcome


@pytest.mark.parametrize("missing", [True, False])
def test_the_recovery_of_a_segment_deletes_later_snapshots(broker, missing):
    """Then the broker writes them again, also where a folder has the name (a broker of 4.4.0, after a clean stop)."""
    place = broker / "d2" / "idem-0"
    for base in (2, 4, 6):
        (place / f"{base:020}.log").write_bytes(records(b"c", base=base) + records(b"d", base=base + 1))
        for suffix in ("index", "timeindex"):
            (place / f"{base:020}.{suffix}").write_bytes(b"")
    (place / f"{8:020}.snapshot").write_bytes(producer_snapshot.encode([]))
    (place / f"{6:020}.snapshot").mkdir()
    if missing:
        (place / f"{2:020}.index").unlink()
    start, logs = started(broker)
    assert (start["starts"], [each[-2:] for each in start["offlineLogDirs"]]) == (True, ["d2"] * missing)
    assert logs["idem", 0, "idem-0"][0] == ("offline" if missing else "loaded")


def test_a_folder_with_the_name_of_the_snapshot_at_the_end_after_a_clean_stop(broker):
    (broker / "d2" / "idem-0" / f"{2:020}.snapshot").mkdir()
    start, _ = started(broker)
    assert [each[-2:] for each in start["offlineLogDirs"]] == ["d2"]


def test_what_recovery_empties_for_a_folder_is_a_loss_with_a_command(killed):
    (killed / "d2" / "idem-0" / f"{4:020}.snapshot").mkdir()
    done = kdump("check", "d1", "d2", cwd=killed)
    assert done.returncode == 3
    assert "DO NOT START broker 1 yet: a start loses 4 records: " in done.stdout.decode()
    assert "mv d2/idem-0/00000000000000000004.snapshot d2.aside/files/idem-0/" in done.stdout.decode()


ARABIC_2 = "".join(chr(0x660 + int(digit)) for digit in f"{2:020}")


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(
    ("name", "end", "status"),
    [
        ("+1.log", 1, 3),
        (f"+{1:020}.log", 1, 3),
        ("1.x.log", 1, 3),
        ("1.log", 1, 3),
        (f"{1:025}.log", 1, 3),
        (f"{ARABIC_2}.log", 2, 0),
        ("-5.log", 2, 0),
        ("-0.log", 2, 0),
        ("0.log", 2, 0),
        ("+0.log", 2, 0),
        ("0.x.log", 2, 0),
        ("+0.log.swap", 0, 3),
        ("0.log.swap", 0, 3),
        ("+0.log.cleaned", 2, 0),
        ("+0.log.deleted", 2, 0),
        ("+1.index", 2, 0),
        ("+0.index", 2, 0),
    ],
)
def test_a_broker_opens_the_name_with_twenty_digits(broker, name, end, status, clean):
    """Recorded of 4.4.0: each of these is a segment of the number before the first dot, and its file is not read."""
    place = broker / "d2" / "idem-0"
    content = (place / f"{0:020}.log").read_bytes()
    (place / name).write_bytes(content)
    if not clean:
        (broker / "d2" / ".kafka_cleanshutdown").unlink()
    start, logs = started(broker)
    assert start["starts"] is True
    assert logs["idem", 0, "idem-0"][1:] == (0, end)
    done = kdump("check", "d1", "d2", cwd=broker)
    assert done.returncode == status, done.stdout.decode()
    assert ("safe to start broker 1" in done.stdout.decode()) == (status == 0)


def test_a_segment_whose_name_lost_its_zeros_gets_it_back(broker):
    place = broker / "d2" / "idem-0"
    (place / f"{2:020}.log").write_bytes(records(b"c", base=2) + records(b"d", base=3))
    (place / f"{0:020}.log").rename(place / "0.log")
    text = kdump("check", "d1", "d2", cwd=broker).stdout.decode()
    assert "DO NOT START broker 1 yet: a start loses 2 records: d2/idem-0/0.log: " in text
    assert f"\n  mv d2/idem-0/0.log d2/idem-0/{0:020}.log\n" in text


def test_two_segments_without_zeros_do_not_get_the_same_name(broker):
    place = broker / "d2" / "idem-0"
    (place / "0.x.log").write_bytes((place / f"{0:020}.log").read_bytes())
    (place / f"{0:020}.log").rename(place / "0.log")
    text = kdump("check", "d1", "d2", cwd=broker).stdout.decode()
    commands = [line.strip() for line in text.splitlines() if line.startswith("  m")]
    assert [line for line in commands if line.startswith("mv ")] == [f"mv d2/idem-0/0.log d2/idem-0/{0:020}.log"]
    assert "mkdir -p d2.aside/files/idem-0/ && mv d2/idem-0/0.x.log d2.aside/files/idem-0/" in commands


def _segments_with_a_folder(broker, name):
    """Put two segments and a folder ``name`` into idem-0 of d2, beside idem-1 and idem-2 in the same log dir."""
    log = broker / "d1" / "__cluster_metadata-0" / f"{0:020}.log"
    log.write_bytes(log.read_bytes() + records(*(assignment("idem", number, "d2") for number in (1, 2)), base=5))
    folder = broker / "d2" / "idem-0"
    for number in (1, 2):
        shutil.copytree(folder, folder.with_name(f"idem-{number}"))
    (folder / f"{2:020}.log").write_bytes(records(b"c", base=2))
    (folder / f"{2:020}.index").write_bytes(b"")
    (folder / name).unlink(missing_ok=True)
    (folder / name).mkdir()


def _begun(logs):
    return [key for key, what in logs.items() if key[2] is None and what[0] == "created-empty"]


@pytest.mark.parametrize(("base", "begun"), [(0, 0), (2, 2)])
def test_a_folder_as_index_of_an_old_segment_fails_after_the_start(broker, base, begun):
    """The first fetch opens it (``LazyIndex``). The broker then knows all partitions, so it begins none elsewhere."""
    _segments_with_a_folder(broker, f"{base:020}.index")
    start, logs = started(broker)
    assert (start["starts"], [each[-2:] for each in start["offlineLogDirs"]]) == (True, ["d2"])
    assert (logs["idem", 1, "idem-1"][0], len(_begun(logs))) == ("offline", begun)


@pytest.mark.parametrize(
    ("base", "point", "outcome"),
    [(0, None, "loaded"), (0, 2, "recovered"), (0, 0, "offline"), (2, None, "offline")],
)
def test_a_folder_as_time_index_of_an_old_segment_is_not_opened_by_a_start(broker, base, point, outcome):
    """Brokers of 4.3.1 and 4.4.0 served such a log. ``point`` is the recovery point after a kill."""
    _segments_with_a_folder(broker, f"{base:020}.timeindex")
    if point is not None:
        (broker / "d2" / ".kafka_cleanshutdown").unlink()
        (broker / "d2" / "recovery-point-offset-checkpoint").write_text(f"0\n1\nidem 0 {point}\n")
    _, logs = started(broker)
    assert logs["idem", 0, "idem-0"][0] == outcome
    assert b"index-unreadable" in kdump("check", str(broker / "d1"), str(broker / "d2"), "-o", "jsonl").stdout


def _after_a_kill(broker, *, closed):
    """Remove the marker of d2, and give idem-0 to idem-9 indexes as a running broker has; ``closed``: trimmed ones."""
    (broker / "d2" / ".kafka_cleanshutdown").unlink()
    folder = broker / "d2" / "idem-0"
    for number in range(10):
        place = folder.with_name(f"idem-{number}")
        if number:
            shutil.copytree(folder, place)
        trims = number < closed
        (place / f"{0:020}.index").write_bytes(b"" if trims else bytes(1200))
        (place / f"{0:020}.timeindex").write_bytes((5).to_bytes(8, "big") + bytes(4) if trims else bytes(1200))
    log = broker / "d1" / "__cluster_metadata-0" / f"{0:020}.log"
    log.write_bytes(log.read_bytes() + records(*(assignment("idem", number, "d2") for number in range(1, 10)), base=5))


@pytest.mark.parametrize(("closed", "reported"), [(0, 0), (1, 1), (2, 2), (3, 0), (10, 0)])
def test_a_closed_segment_beside_open_logs_shows_that_a_newer_one_is_lost(broker, closed, reported):
    """A broker trims the indexes of a segment when it rolls the segment. Many closed logs: it was loading its logs."""
    _after_a_kill(broker, closed=closed)
    said = kdump("check", *(str(broker / each) for each in DIRS), "-o", "jsonl")
    lines = [json.loads(line) for line in said.stdout.splitlines()]
    missing = [line["file"][-6:] for line in lines if line.get("code") == "records-missing" and line["level"] == "log"]
    assert missing == [f"idem-{number}" for number in range(reported)]


def test_a_salvaged_folder_is_no_closed_segment(broker):
    """kdump salvage writes trimmed indexes. The printed commands move the damaged folder to d2.aside."""
    _after_a_kill(broker, closed=1)
    done = kdump("check", "d1", "d2", cwd=broker).stdout.decode()
    assert "\nFollow the advice of the findings (what to do), and run kdump check again. If no segment is " in done
    assert "salvage" not in done
    (broker / "d2.aside" / "idem-0").mkdir(parents=True)
    assert ("records-missing", None) not in findings(broker)[1]


@pytest.mark.parametrize("suffix", ["index", "timeindex"])
def test_an_open_log_with_one_changed_index_is_not_closed(broker, suffix):
    _after_a_kill(broker, closed=0)
    (broker / "d2" / "idem-0" / f"{0:020}.{suffix}").write_bytes(b"")
    assert ("records-missing", None) not in findings(broker)[1]


def test_a_clean_stop_closes_all_segments(broker):
    _after_a_kill(broker, closed=1)
    (broker / "d2" / ".kafka_cleanshutdown").touch()
    assert ("records-missing", None) not in findings(broker)[1]


@pytest.mark.parametrize(("times", "missing"), [([(10, 3), (20, 5)], 4), ([], None)])
def test_both_indexes_of_an_emptied_segment_prove_its_records(broker, times, missing):
    folder = broker / "d2" / "idem-0"
    (broker / "d2" / ".kafka_cleanshutdown").unlink()
    (folder / f"{2:020}.log").write_bytes(b"")
    (folder / f"{2:020}.index").write_bytes(offset_index.encode([(3, 90), (5, 180)], 2))
    (folder / f"{2:020}.timeindex").write_bytes(time_index.encode(times, 2))
    found = [held for code, held in findings(broker)[1] if code == "records-missing"]
    assert found == ([] if missing is None else [missing])


def test_a_file_marked_for_deletion_may_have_the_only_copy(broker):
    folder = broker / "d2" / "idem-0"
    for base in (2, 3):
        (folder / f"{base:020}.log").write_bytes(records(b"c", base=base))
        (folder / f"{base:020}.index").write_bytes(b"")
    (folder / f"{2:020}.log.deleted").write_bytes((folder / f"{2:020}.log").read_bytes())
    assert findings(broker)[0] == 0
    (folder / f"{2:020}.log").unlink()
    (folder / f"{2:020}.index").unlink()
    done = kdump("check", *(str(broker / each) for each in DIRS))
    assert (done.returncode, b"only-in-deleted" in kdump("check", str(folder), "-o", "jsonl").stdout) == (3, True)
    (command,) = (line.strip() for line in done.stdout.decode().splitlines() if line.strip().startswith("mv "))
    subprocess.run(["bash", "-c", command], check=True)
    assert findings(broker)[0] == 0


@pytest.mark.parametrize(("target", "marked"), [("/usr", True), ("/nowhere/at/all", False)])
def test_a_link_in_the_place_of_the_marker_counts_if_it_has_a_target(broker, target, marked):
    """A broker of 4.4.0 removes the link, not the files of the folder; for a broken link it recovers the logs."""
    marker = broker / "d2" / ".kafka_cleanshutdown"
    marker.unlink()
    marker.symlink_to(target)
    start, logs = started(broker)
    assert (start["starts"], start["offlineLogDirs"]) == (True, [])
    assert logs["idem", 0, "idem-0"] == ("loaded" if marked else "recovered", 0, 2)
    assert findings(broker) == (0, set())


def _special(path, kind):
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as bound:
            before = Path.cwd()
            os.chdir(path.parent)  # a path of a socket is short
            bound.bind(path.name)
            os.chdir(before)
    else:
        path.symlink_to(kind)


@pytest.mark.parametrize("kind", ["pipe", "socket", "/dev/null", "/dev/zero"])
def test_a_segment_that_is_no_file_is_not_read(broker, kind):
    """As brokers of 4.4.0, which list regular files only (File.isFile)."""
    _segments_with_a_folder(broker, f"{9:020}.x")
    folder = broker / "d2" / "idem-0"
    (folder / f"{0:020}.index").write_bytes(offset_index.encode([(1, 69)], 0))
    _special(folder / f"{0:020}.log", kind)
    start, logs = started(broker)
    assert (start["starts"], start["offlineLogDirs"]) == (True, [])
    assert logs["idem", 0, "idem-0"] == ("loaded", 2, 3)
    status, found = findings(broker)
    assert status == 1  # kdump cannot read it either
    assert ("no-file", 0) in found
    advice = kdump("check", str(broker / "d1"), str(broker / "d2")).stdout
    assert b"one replica: with the broker stopped, move the file away, and take the segment from a backup." in advice


@pytest.mark.parametrize(
    ("kind", "base", "suffix", "offline"),
    [
        ("pipe", 0, "index", False),
        ("/dev/null", 0, "index", False),
        ("socket", 0, "index", True),
        ("pipe", 2, "index", True),
        ("/dev/zero", 2, "index", True),
        ("socket", 2, "timeindex", True),
        ("/dev/zero", 2, "txnindex", False),
        ("pipe", 0, "txnindex", True),
    ],
)
def test_an_index_that_is_no_file(broker, kind, base, suffix, offline):
    """A broker of 4.4.0 reads no entries from a pipe or device. It sets the size of the newest index, which fails."""
    _segments_with_a_folder(broker, f"{9:020}.x")
    _special(broker / "d2" / "idem-0" / f"{base:020}.{suffix}", kind)
    start, logs = started(broker)
    assert (start["starts"], [each[-2:] for each in start["offlineLogDirs"]]) == (True, ["d2"] if offline else [])
    assert logs["idem", 0, "idem-0"] == (("offline", None, None) if offline else ("loaded", 0, 3))
    status, found = findings(broker)
    assert status == (3 if offline else 0)
    assert ("index-unreadable" in {code for code, _ in found}) == offline


@pytest.mark.parametrize(
    ("kind", "suffix", "release", "starts"),
    [
        ("pipe", "index", "4.4.0", False),
        ("/dev/null", "timeindex", "4.2.2", False),
        ("/dev/null", "index", "3.9.2", True),
        ("socket", "index", "4.4.0", True),
        ("pipe", "txnindex", "4.4.0", True),
    ],
)
def test_after_a_kill_an_index_that_is_no_file_can_end_a_broker(broker, kind, suffix, release, starts):
    """Recovery of 4.0 and later truncates a segment whose indexes it cannot resize, and reads them again."""
    _segments_with_a_folder(broker, f"{9:020}.x")
    (broker / "d2" / ".kafka_cleanshutdown").unlink()
    _special(broker / "d2" / "idem-0" / f"{2:020}.{suffix}", kind)
    start, _ = started(broker, release=release)
    assert (start["starts"], codes(start["fatal"])) == ((True, []) if starts else (False, ["index-unreadable"]))
    assert [each[-2:] for each in start["offlineLogDirs"]] == (["d2"] if starts else [])


@pytest.mark.parametrize(("kind", "offline"), [("pipe", True), ("socket", True), ("/dev/null", False)])
def test_a_log_cannot_begin_with_a_segment_that_is_no_file(broker, kind, offline):
    folder = broker / "d2" / "idem-0"
    _special(folder / f"{0:020}.log", kind)
    start, logs = started(broker)
    assert [each[-2:] for each in start["offlineLogDirs"]] == (["d2"] if offline else [])
    assert logs["idem", 0, "idem-0"] == (("offline", None, None) if offline else ("loaded", 0, 0))
    assert findings(broker)[0] == 1


@pytest.mark.parametrize(("reserved", "outcome"), [(0, "offline"), (1, "created-empty"), (2, "offline")])
@pytest.mark.parametrize("offline", [False, True])
def test_a_log_without_a_log_dir_begins_unless_it_may_be_in_an_offline_one(broker, reserved, outcome, offline):
    """Directory ids MIGRATING, UNASSIGNED and LOST (``DirectoryId``), as brokers of 4.4.0."""
    log = broker / "d1" / "__cluster_metadata-0" / f"{0:020}.log"
    change = metadata_value(
        "PartitionChangeRecord", 1, partitionId=0, topicId=IDS["plain"], directories=[reserved.to_bytes(16, "big")]
    )
    log.write_bytes(log.read_bytes() + records(change, base=5))
    shutil.rmtree(broker / "d1" / "plain-0")
    if offline:
        shutil.rmtree(broker / "d2")
        (broker / "d2").write_text("x")
    start, logs = started(broker)
    assert start["starts"]
    assert logs["plain", 0, None][0] == (outcome if offline else "created-empty")


@pytest.mark.parametrize("line", ["plain 0 9223372036854775808", "plain x 2", "plain 0 1e3"])
def test_a_malformed_number_in_the_high_watermarks_leaves_all_partitions_without_a_leader(broker, line):
    """Brokers of 4.4.0 and 3.9.2 started, and a consumer got no record of either log dir; without the file, all."""
    checkpoint = broker / "d2" / "replication-offset-checkpoint"
    checkpoint.write_text(f"0\n1\n{line}\n")
    start, logs = started(broker)
    assert (start["starts"], logs["plain", 0, "plain-0"]) == (True, ("loaded", 0, 2))
    done = kdump("check", *(str(broker / each) for each in DIRS), "--config", "node.id=1")
    said = " ".join(done.stdout.decode().split())
    assert done.returncode == 3
    assert "broker 1 starts, but serves none of its 2 partitions (4 records): NumberFormatException" in said
    for command in printed(broker, list(DIRS)):
        subprocess.run(["bash", "-c", command], cwd=broker, check=True)
    assert (checkpoint.exists(), findings(broker)) == (False, (0, set()))


@pytest.mark.parametrize(
    ("mode", "uid", "gid", "writable"),
    [
        (0o100644, 5, 5, True),
        (0o100444, 5, 5, False),
        (0o100644, 0, 0, False),
        (0o100664, 0, 5, True),
        (0o100666, 0, 0, True),
        (0o040755, 0, 5, False),
        (0o040775, 0, 5, True),
        (0o040666, 5, 5, False),
    ],
)
def test_the_mode_of_a_file_decides_who_may_write_it(mode, uid, gid, writable):
    """A broker of 4.4.0 whose user owned the log dir, but not a folder, a segment or .lock, took the log dir offline.

    With recovery-point-offset-checkpoint of root it started.
    """
    owner, root = (os.stat_result([0o040755, 0, 0, 0, user, user, 0, 0, 0, 0]) for user in (5, 0))
    found = os.stat_result([mode, 0, 0, 0, uid, gid, 0, 0, 0, 0])
    assert (log_folder.may_write(owner, found), log_folder.may_write(root, found)) == (writable, True)


def test_a_segment_that_the_owner_of_the_log_dir_may_not_write_is_noted(broker):
    log = broker / "d2" / "idem-0" / f"{0:020}.log"
    log.chmod(0o444)
    if os.getuid() == 0:
        os.chown(broker / "d2", 65534, 65534)
    done = kdump("check", *(str(broker / each) for each in DIRS), "--config", "node.id=1")
    said = " ".join(done.stdout.decode().split())
    assert (done.returncode, "the owner of the log dir may not write" in said, "safe to start" in said) == (
        0,
        True,
        True,
    )
    log.chmod(0o666)
    log.parent.chmod(0o777)
    assert b"may not write" not in kdump("check", *(str(broker / each) for each in DIRS)).stdout


@pytest.mark.parametrize(
    ("flags", "free", "reason"), [(os.ST_RDONLY, 9, "mounted read-only"), (0, 0, "full"), (0, 9, "")]
)
def test_a_file_system_that_takes_no_writes_is_noted(broker, monkeypatch, capsys, flags, free, reason):
    """A real 4.4.0 broker took a log dir that was mounted read-only offline. On a full disk it did not start."""
    system = os.statvfs_result([4096, 4096, 10, free, free, 10, 9, 9, flags, 255])
    monkeypatch.setattr(os, "statvfs", lambda _: system)
    monkeypatch.setattr(sys, "argv", ["kdump", "check", str(broker / "d1"), str(broker / "d2")])
    assert cli.main() == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.count(f"the file system of the log dir is {reason}:") == (2 if reason else 0)
    assert ("the file system of the log dir" in said, "safe to start" in said) == (bool(reason), True)


def reassign(broker, directory, **fields):
    log = broker / "d1" / "__cluster_metadata-0" / f"{0:020}.log"
    change = metadata_value(
        "PartitionChangeRecord", 1, partitionId=0, topicId=IDS["plain"], directories=[directory], **fields
    )
    log.write_bytes(log.read_bytes() + records(change, base=5))


def delayed_leaders(broker):
    """Return the remarks of a check on partitions that wait for a leader, and the last line of the text."""
    done = kdump("check", *(str(broker / each) for each in DIRS), "--config", "node.id=1")
    assert done.returncode == 0
    lines = done.stdout.decode().splitlines()
    said = " ".join(" ".join(lines).split())
    return said.partition("can be without a leader")[0].rpartition("note")[2].strip(), lines[-1]


@pytest.mark.parametrize(
    ("directory", "delayed"),
    [
        (bytes(16), False),
        (bytes(15) + b"\1", False),
        (bytes(15) + b"\2", True),
        (b"\x77" * 16, True),
        (DIRS["d2"], False),
    ],
)
def test_a_partition_in_no_log_dir_of_the_broker_waits_for_a_leader(broker, directory, delayed):
    """MIGRATING, UNASSIGNED, LOST (``DirectoryId``), an unknown id, the other log dir; brokers of 3.9.2 and 4.4.0.

    With leader.imbalance.check.interval.seconds=300 the partition had no leader for 45 s, with 20 for 19 s.
    """
    reassign(broker, directory)
    said, last = delayed_leaders(broker)
    assert ("1 partition" in said, "safe to start" in last) == (delayed, True)


def test_a_new_directory_id_delays_the_leaders_of_a_log_dir(broker):
    """As brokers of 3.9.2 and 4.4.0 after a clean stop."""
    (broker / "d2" / "meta.properties").write_text(f"{META}{text(bytes([0x55]) * 16)}\n")
    assert "1 partition" in delayed_leaders(broker)[0]


def test_another_replica_can_be_the_leader(broker):
    reassign(broker, bytes(15) + b"\2", leader=2, isr=[2])
    assert "partition" not in delayed_leaders(broker)[0]


def test_other_voters_have_a_lost_metadata_log(broker):
    shutil.rmtree(broker / "d1" / "__cluster_metadata-0")
    assert findings(broker)[0] == 3
    configs = ("node.id=1", "process.roles=broker,controller", "controller.quorum.voters=1@a:1,2@b:1,3@c:1")
    start, _ = started(broker, configs=configs)
    assert (start["starts"], findings(broker, configs=configs)[0]) == (True, 0)


def test_a_future_folder_takes_the_place_of_a_folder_that_becomes_stray(broker):
    """A consumer of brokers of 4.2.2 got all records."""
    folder = broker / "d1" / "plain-0"
    shutil.copytree(folder, folder.with_name(f"plain-0.{1:032x}-future"))
    (folder / "partition.metadata").unlink()
    start, logs = started(broker)
    assert (start["starts"], logs["plain", 0, "plain-0"][0]) == (True, "stray")
    assert findings(broker) == (0, set())


@pytest.mark.parametrize(("point", "outcome"), [((1 << 63) - 1, "loaded"), ((1 << 63) - 2, "recovered")])
def test_an_offset_that_no_log_reaches_proves_no_records(broker, point, outcome):
    """After a kill brokers of 4.4.0 and 3.9.2 recover no segment if the recovery point is the highest number."""
    (broker / "d2" / ".kafka_cleanshutdown").unlink()
    for name in ("recovery-point", "replication"):
        (broker / "d2" / f"{name}-offset-checkpoint").write_text(f"0\n1\nidem 0 {point}\n")
    (broker / "d2" / "idem-0" / f"{(1 << 63) - 1:020}.snapshot").write_bytes(b"")
    assert started(broker)[1]["idem", 0, "idem-0"] == (outcome, 0, 2)
    status, found = findings(broker)
    assert (status, "checkpoint-offset" in dict(found), "records-missing" in dict(found)) == (4, True, False)
    done = kdump("check", *(str(broker / each) for each in DIRS))
    assert b"no log reaches the offsets that the file has for idem-0" in done.stdout


@pytest.mark.parametrize(
    ("release", "value", "starts"),
    [
        ("4.0.1", "2500", True),
        ("4.1.1", "2500", False),
        ("4.4.0", "2500", False),
        ("4.4.0", "1048576", True),
    ],
)
def test_a_release_refuses_a_segment_size_that_older_ones_accept(broker, release, value, starts):
    """A broker of 4.3.1 does not start on log dirs of 3.9.2 that have a topic with a segment.bytes of 2500."""
    log = broker / "d1" / "__cluster_metadata-0" / f"{0:020}.log"
    config = metadata_value("ConfigRecord", resourceType=2, resourceName="idem", name="segment.bytes", value=value)
    log.write_bytes(log.read_bytes() + records(config, base=5))
    start = started(broker, release=release)[0]
    assert (start["starts"], codes(start["fatal"])) == (starts, [] if starts else ["config-refused"])


@pytest.mark.parametrize("flag", ["+i", "+a"])
@pytest.mark.parametrize(
    "name",
    ["d2", "d2/idem-0", f"d2/idem-0/{0:020}.log", f"d2/idem-0/{0:020}.index", "d2/.kafka_cleanshutdown"],
)
def test_a_file_that_a_broker_cannot_change_takes_the_log_dir_offline(broker, name, flag):
    """A broker of 4.3.1 stops with FileSystemException: Operation not permitted, also if it runs as root."""
    (broker / "d2/.kafka_cleanshutdown").touch()
    (broker / f"d2/idem-0/{0:020}.index").touch()
    if subprocess.run(["chattr", flag, name], cwd=broker, check=False, capture_output=True).returncode:
        pytest.skip("needs root and a file system with these attributes")
    try:
        start = started(broker)[0]
        done = kdump("check", "d1", "d2", cwd=broker)
        assert (start["starts"], [each[-2:] for each in start["offlineLogDirs"]]) == (True, ["d2"])
        assert done.returncode == 3
        assert f"  chattr -R -i -a {name}\n" in done.stdout.decode()
    finally:
        subprocess.run(["chattr", "-R", "-i", "-a", "d2"], cwd=broker, check=True)
    assert kdump("check", "d1", "d2", cwd=broker).returncode == 0


@pytest.mark.parametrize(("level", "status"), [(25, 0), (26, 3)])
def test_the_metadata_version_shows_that_a_broker_refuses_a_segment_size(broker, level, status):
    """4.0 has level 25 (4.0-IV3) and accepts the value, 4.1 has level 26 (4.1-IV0) and refuses it."""
    log = broker / "d1" / "__cluster_metadata-0" / f"{0:020}.log"
    config = metadata_value("ConfigRecord", resourceType=2, resourceName="idem", name="segment.bytes", value="2500")
    version = metadata_value("FeatureLevelRecord", name="metadata.version", featureLevel=level)
    log.write_bytes(log.read_bytes() + records(config, version, base=5))
    done = kdump("check", "d1", "d2", cwd=broker)
    assert (done.returncode, b"Invalid value 2500 for configuration segment.bytes" in done.stdout) == (
        status,
        status == 3,
    )


def test_damage_of_the_metadata_log_is_no_reason_to_salvage_it(broker):
    """A salvaged metadata log lacks changes, so a controller could not replay it. A snapshot can have the changes."""
    folder = broker / "d1" / "__cluster_metadata-0"
    log, no_op = folder / f"{0:020}.log", metadata_value("NoOpRecord")
    whole = log.read_bytes()
    bad = bytearray(records(no_op, base=5))
    bad[-1] ^= 1
    log.write_bytes(whole + bad + records(no_op, base=6))
    for end, lost, loses in ((0, "lose offset 6, 1 record", True), (7, "below offset 7", False)):
        if end:
            snapshot = folder / f"{end:020}-{0:010}.checkpoint"
            snapshot.write_bytes(SNAPSHOT_HEADER + (1).to_bytes(8, "big") + whole[8:])
        done = kdump("check", "d1", "d2", cwd=broker).stdout.decode()
        assert (lost in done, "a start loses 1 record" in done, "kdump salvage" in done) == (True, loses, False)
        assert (
            "\nCopy __cluster_metadata-0 from another controller or from a backup, and run kdump check again. " in done
        )


def test_a_snapshot_replaces_a_metadata_log_from_the_first_missing_record_on(broker):
    log = broker / "d1" / "__cluster_metadata-0" / f"{0:020}.log"
    node = metadata_value("RegisterBrokerRecord", brokerId=1, brokerEpoch=5, fenced=True)
    twice = metadata_value("TopicRecord", name="plain", topicId=bytes(15) + b"\x09")
    log.write_bytes(log.read_bytes() + records(node, base=5) + records(twice, base=9))
    commands = printed(broker, ["d1", "d2"])
    assert "kdump metadata d1 --offset 6 --write-snapshot d1.snapshot" in commands
    for command in commands:
        subprocess.run(["bash", "-c", command], cwd=broker, env=environment(), check=True)
    assert started(broker)[0]["starts"]


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("fault", ["size", "index", "start"])
def test_a_start_does_not_read_the_log_of_a_folder_that_it_deletes(broker, clean, fault):
    """LogLoader.load neither recovers a -delete folder nor resizes its indexes, and takes 0 as its log end offset."""
    name = f"idem-9.{'0' * 32}-delete"
    folder = shutil.copytree(broker / "d2" / "idem-0", broker / "d2" / name)
    log = folder / f"{0:020}.log"
    if fault == "size":
        log.write_bytes(log.read_bytes() + bytes(8) + b"\xff\xff\xff\xff" + bytes(9))
    elif fault == "index":
        (folder / f"{0:020}.index").unlink()
        (folder / f"{0:020}.index").mkdir()
    else:
        (broker / "d2" / "log-start-offset-checkpoint").write_text("0\n1\nidem 9 7\n")
    if not clean:
        (broker / "d2" / ".kafka_cleanshutdown").unlink()
    start, logs = started(broker)
    assert (start["starts"], start["offlineLogDirs"], logs["idem", 9, name]) == (True, [], ("deleted", None, None))
    assert "recovery" not in {code for code, _ in findings(broker)[1]}, "a start truncates no log that it deletes"


def test_a_folder_with_the_id_but_not_the_name_of_a_topic_is_loaded(broker):
    """A broker finds the partition of a folder by the topic id alone (``LogManager.isStrayKraftReplica``)."""
    (broker / "d1" / "plain-0").rename(broker / "d1" / "old-0")
    log = broker / "d1" / "__cluster_metadata-0" / f"{0:020}.log"
    change = metadata_value("PartitionChangeRecord", 1, partitionId=0, topicId=IDS["plain"], directories=[b"\x19" * 16])
    log.write_bytes(log.read_bytes() + records(change, base=5))
    start, logs = started(broker)
    assert start["starts"] is True
    assert (logs["old", 0, "old-0"][0], logs["plain", 0, None][0]) == ("loaded", "created-empty")


@pytest.mark.parametrize(("release", "reason"), [("4.0", "is too short"), ("4.1", "BufferUnderflowException")])
def test_a_malformed_marker_in_a_log_that_is_read_ends_the_start(broker, release, reason):
    """From 4.1 on the exception is another one (KAFKA-10864), and the start of 4.3.1 ends with it."""
    short = forge.record(b"\0\0\0\1", b"\0\0\0\0\0")
    bad = forge.batch([short], base_offset=2, attributes=0x30, producer_id=5, producer_epoch=0)
    folder = broker / "d2" / "idem-0"
    with (folder / f"{0:020}.log").open("ab") as log:
        log.write(bad)
    (folder / f"{1:020}.snapshot").write_bytes(producer_snapshot.encode([]))
    start, _ = started(broker, release=release)
    assert start["starts"] is False
    (cause,) = [each for each in start["fatal"] if each["file"].startswith(str(folder))]
    assert reason in cause["text"]


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(
    ("of_topic", "of_broker", "starts"),
    [(None, None, True), ("15", None, False), ("1000", None, True), ("4000", "15", True), (None, "15", False)],
)
def test_an_index_larger_than_segment_index_bytes_ends_the_start(broker, clean, of_topic, of_broker, starts):
    """``AbstractIndex.resize`` and ``OffsetIndex.append`` throw IllegalArgumentException (UnifiedLog of 4.3.1)."""
    folder, log = broker / "d2" / "idem-0", broker / "d1" / "__cluster_metadata-0" / f"{0:020}.log"
    entries = [(0, 0), (1, 69)] if clean else []  # else recovery needs more entries than 15 bytes can hold
    (folder / f"{0:020}.index").write_bytes(offset_index.encode(entries, 0))
    configs = {"index.interval.bytes": "0", **({} if of_topic is None else {"segment.index.bytes": of_topic})}
    if not clean:
        (broker / "d2" / ".kafka_cleanshutdown").unlink()
    values = [
        metadata_value("ConfigRecord", resourceType=2, resourceName="idem", name=name, value=value)
        for name, value in configs.items()
    ]
    log.write_bytes(log.read_bytes() + records(*values, base=5))
    given = ("node.id=1", "process.roles=broker,controller")
    given += () if of_broker is None else (f"log.index.size.max.bytes={of_broker}",)
    start = started(broker, configs=given)[0]
    assert (start["starts"], codes(start["fatal"])) == (starts, [] if starts else ["index-too-large"])


def test_a_segment_above_2_gib_gets_the_command_that_splits_it(broker):
    folder = broker / "d2" / "idem-0"
    os.truncate(folder / f"{0:020}.log", 1 << 31)
    start = started(broker)[0]
    assert (start["starts"], codes(start["fatal"])) == (False, ["segment-too-large"])
    done = kdump("check", *(str(broker / each) for each in DIRS))
    assert b"kdump salvage" in done.stdout


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (SNAPSHOT_HEADER, None),
        (b"", "First batch is not a control batch"),
        (forge.batch([forge.record(b"\0\0\0\4", bytes(3))], attributes=0x20), "is not a snapshot header"),
    ],
)
def test_a_snapshot_begins_with_its_header(broker, first, reason):
    """RecordsSnapshotReader throws IllegalStateException otherwise: a node of 4.3.1 ended with it."""
    folder = broker / "d1" / "__cluster_metadata-0"
    whole = (folder / f"{0:020}.log").read_bytes()
    records_after_it = (1).to_bytes(8, "big") + whole[8:]
    (folder / f"{5:020}-{0:010}.checkpoint").write_bytes(first + records_after_it)
    start, _ = started(broker)
    assert codes(start["fatal"]) == ["metadata-snapshot-broken"] * (reason is not None)
    assert reason is None or reason in start["fatal"][0]["text"]


@pytest.mark.parametrize(("zeros", "fatal"), [(11, False), (12, True), (17, True), (18, True)])
def test_zeros_after_a_snapshot_end_the_start(broker, zeros, fatal):
    """ByteBufferLogInputStream throws as soon as it has a size of 0: a node of 4.3.1 ended with CorruptRecordException.

    FileLogInputStream, which reads the segments of a log, ignores up to 17 zeros.
    """
    folder = broker / "d1" / "__cluster_metadata-0"
    whole = (1).to_bytes(8, "big") + (folder / f"{0:020}.log").read_bytes()[8:]
    (folder / f"{5:020}-{0:010}.checkpoint").write_bytes(SNAPSHOT_HEADER + whole + bytes(zeros))
    assert codes(started(broker)[0]["fatal"]) == ["metadata-snapshot-broken"] * fatal


@pytest.mark.parametrize(("twice", "roles"), [("all", "broker,controller"), ("data", "controller"), ("all", "broker")])
def test_a_snapshot_with_its_records_twice_stops_a_controller_only(broker, twice, roles):
    """ReplicationControlManager of 4.3.1: Found duplicate TopicRecord. A broker applies a topic again to its image."""
    folder = broker / "d1" / "__cluster_metadata-0"
    whole = (1).to_bytes(8, "big") + (folder / f"{0:020}.log").read_bytes()[8:]
    (folder / f"{5:020}-{0:010}.checkpoint").write_bytes(
        SNAPSHOT_HEADER + whole + SNAPSHOT_HEADER * (twice == "all") + whole
    )
    start, _ = started(broker, configs=("node.id=1", f"process.roles={roles}"))
    assert codes(start["fatal"]) == ["metadata-replay-broken"] * ("controller" in roles)


@pytest.mark.parametrize(("count", "fatal"), [(1, []), (2, ["metadata-snapshot-broken"])])
@pytest.mark.parametrize("number", [5, 6])
def test_a_snapshot_has_one_record_of_the_version_and_of_the_voters(broker, number, count, fatal):
    """TreeMapLogHistory of 4.3.1: Next offset 166 must be greater than the last offset 166."""
    folder = broker / "d1" / "__cluster_metadata-0"
    whole = (1).to_bytes(8, "big") + (folder / f"{0:020}.log").read_bytes()[8:]
    value = {5: bytes(5), 6: bytes((0, 0, 1, 0))}[number]  # without voters
    more = forge.batch([forge.record(bytes((0, 0, 0, number)), value)], attributes=0x20)
    (folder / f"{5:020}-{0:010}.checkpoint").write_bytes(SNAPSHOT_HEADER + more * count + whole)
    assert codes(started(broker)[0]["fatal"]) == fatal


def _in_place(path, kind):
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    if kind in {"folder", "full folder"}:
        path.mkdir()
        if kind == "full folder":
            (path / "x").write_bytes(b"")
    elif kind in {"socket", "pipe", "/dev/null"}:
        _special(path, kind)
    else:
        path.symlink_to({"loop": path.name, "nowhere": "nowhere/x", "target": "nowhere"}[kind])


@pytest.mark.parametrize(
    ("name", "kind", "offline"),
    [
        ("d2/idem-0/leader-epoch-checkpoint.tmp", "folder", ["d2"]),
        ("d2/idem-0/leader-epoch-checkpoint.tmp", "full folder", ["d2"]),
        ("d2/idem-0/leader-epoch-checkpoint.tmp", "loop", ["d2"]),
        ("d2/idem-0/leader-epoch-checkpoint.tmp", "nowhere", ["d2"]),
        ("d2/idem-0/leader-epoch-checkpoint.tmp", "socket", ["d2"]),
        ("d2/idem-0/leader-epoch-checkpoint.tmp", "/dev/null", ["d2"]),
        ("d2/idem-0/leader-epoch-checkpoint.tmp", "target", []),
        ("d2/idem-0/partition.metadata.tmp", "folder", []),
        ("d2/idem-0.0123456789abcdef0123456789abcdef-stray/leader-epoch-checkpoint.tmp", "folder", []),
        ("d2/replication-offset-checkpoint.tmp", "loop", ["d2"]),
        ("d2/recovery-point-offset-checkpoint.tmp", "nowhere", ["d2"]),
        ("d2/log-start-offset-checkpoint.tmp", "socket", ["d2"]),
        ("d2/meta.properties.tmp", "loop", []),
        ("d2/.lock", "loop", ["d2"]),
        ("d2/.lock", "nowhere", ["d2"]),
        ("d2/.lock", "socket", ["d2"]),
        ("d2/.lock", "target", []),
        ("d2/.lock", "pipe", []),
        ("d2/.lock", "/dev/null", []),
        ("d2/.kafka_cleanshutdown", "loop", []),
        ("d2/meta.properties", "loop", ["d2"]),
    ],
)
def test_a_file_that_a_broker_cannot_write_takes_its_log_dir_offline(broker, name, kind, offline):
    """As brokers of 4.3.1 (CheckpointFile.write, FileLock). The broker creates the missing target of a link."""
    _in_place(broker / name, kind)
    start, _ = started(broker)
    assert (start["starts"], start["offlineLogDirs"]) == (True, [str(broker / each) for each in offline])


@pytest.mark.parametrize(
    ("name", "kind", "fatal"),
    [
        ("d1/.lock", "loop", ["file-blocked"]),
        ("d1/__cluster_metadata-0/leader-epoch-checkpoint.tmp", "folder", ["file-blocked"]),
        ("d1/__cluster_metadata-0/leader-epoch-checkpoint.tmp", "loop", ["file-blocked"]),
        ("d1/__cluster_metadata-0/quorum-state.tmp", "full folder", ["file-blocked"]),
        ("d1/__cluster_metadata-0/quorum-state.tmp", "folder", []),
        ("d1/__cluster_metadata-0/quorum-state.tmp", "loop", []),
        ("d1/__cluster_metadata-0/quorum-state.tmp", "socket", []),
        ("d1/__cluster_metadata-0/partition.metadata.tmp", "folder", []),
    ],
)
def test_a_file_of_the_metadata_log_that_a_node_cannot_write_ends_the_start(broker, name, kind, fatal):
    """As nodes of 4.3.1. FileQuorumStateStore first deletes what is in the place of ``quorum-state.tmp``."""
    _in_place(broker / name, kind)
    start, _ = started(broker)
    assert codes(start["fatal"]) == fatal
    if fatal:
        assert f"mv {broker / name} " in kdump("check", *(str(broker / each) for each in DIRS)).stdout.decode()


def test_a_folder_in_the_place_of_leader_epochs_is_reported_without_a_log_dir(broker):
    (broker / "d2" / "idem-0" / "leader-epoch-checkpoint.tmp").mkdir()
    done = kdump("check", str(broker / "d2" / "idem-0"))
    assert (done.returncode, b"takes its log dir offline" in done.stdout) == (3, True)
