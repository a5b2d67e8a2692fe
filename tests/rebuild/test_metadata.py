"""The metadata of a rebuilt cluster: what the volumes have, and the snapshot with which new nodes begin."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from kdump.answers.metadata import snapshot_writer
from kdump.answers.metadata.image import Copies, MetadataLog
from kdump.broker_start import release
from kdump.errors import FailingDiskError, Reporter, UsageError
from kdump.formats.partition_metadata import id_text
from kdump.log_dirs import local
from kdump.rebuild import metadata
from kdump.rebuild.nodes import assign, parse_nodes
from kdump.rebuild.volumes import survey
from testing import GOLDEN

LOG = GOLDEN / "brokers" / "4.2.2" / "__cluster_metadata-0"
NEWEST = f"{581:020}-{1:010}.checkpoint"
ID = "AAAAAAAAAAAAAAAAAAAAZA"


class Heard:
    """Return the notes made while volumes are read."""

    def __init__(self):
        self.damages, self.notes, self.failed = [], [], []

    @property
    def said(self):
        return Reporter(damage=self.damages.append, note=self.notes.append, fail=self.failed.append)


def log_dir(path, node=1, *, log=True, folders=(), ids=ID):
    """Write a log dir: the metadata log of a real controller, and empty folders of partitions with topic ids."""
    path.mkdir(parents=True)
    (path / "meta.properties").write_text(f"version=1\ncluster.id=c\nnode.id={node}\n")
    if log:
        shutil.copytree(LOG, path / LOG.name)
    for name in folders:
        (path / name).mkdir()
        (path / name / f"{0:020}.log").touch()
        if ids:
            (path / name / "partition.metadata").write_text(f"version: 0\ntopic_id: {ids}\n")
    return str(path)


def found(*paths, to=None, heard=None):
    return metadata.found(survey(paths), release.of(to) if to else None, (heard or Heard()).said)


def rebuilt(lost, *specs, to="4.2.2", **more):
    nodes = parse_nodes(specs or ["1@h:9092/9093"])
    cluster = metadata.NewCluster(
        release=release.of(to),
        nodes=nodes,
        replicas=assign(lost.image.topics, nodes),
        epochs=more.get("epochs", {}),
        max_producer_id=more.get("max_producer_id", -1),
    )
    return metadata.rebuilt(lost, cluster), nodes


def read_back(image, tmp_path):
    """Return the image of a written snapshot, read like any other."""
    name, data = snapshot_writer.file_name(image), snapshot_writer.encode(image)
    folder = tmp_path / "back" / LOG.name
    folder.mkdir(parents=True)
    (folder / name).write_bytes(data)
    (volume,) = survey([str(tmp_path / "back")]).log_dirs
    heard = Heard()
    again = MetadataLog(Copies([volume.metadata], heard.said)).image()
    assert not heard.damages
    return again


def areas(image):
    """Return everything that must stay unchanged."""
    return (
        image.features.levels,
        image.configs.resources,
        image.quotas.entities,
        image.acls.by_key,
        image.scram.by_key,
        image.tokens.by_key,
        {topic.name: (topic.id, sorted(topic.partitions)) for topic in image.topics.by_id.values()},
    )


def test_the_snapshot_holds_all_but_the_old_nodes(tmp_path):
    lost = found(log_dir(tmp_path / "a"))
    (image, changes), nodes = rebuilt(lost, "1@h:9092/9093", "2@i:9092")
    assert not changes
    again = read_back(image, tmp_path)
    assert areas(again) == areas(lost.image)
    assert again.scram.by_key
    assert again.acls.by_key
    assert sorted(again.cluster.brokers) == [1, 2]
    assert all(broker["fenced"] for broker in again.cluster.brokers.values())
    assert again.cluster.brokers[2]["logDirs"] == [nodes[1].directory_id]
    assert not again.cluster.controllers
    assert again.kraft_version == 1
    assert [voter["voterId"] for voter in again.voters] == [1]
    assert again.voters[0]["voterDirectoryId"] == nodes[0].directory_id


def test_every_partition_is_led_under_an_epoch_above_all_others(tmp_path):
    lost = found(log_dir(tmp_path / "a"))
    multi = lost.image.topics.by_name["multi"]
    (image, _), nodes = rebuilt(lost, epochs={(multi.id, 1): 77})
    new = image.topics.by_id[multi.id].partitions
    assert new[1].leader_epoch == 78
    assert new[0].leader_epoch == multi.partitions[0].leader_epoch + 1
    assert {(state.leader, *state.isr, *state.directories) for state in new.values()} == {(1, 1, nodes[0].directory_id)}


@pytest.mark.parametrize(("level", "isr"), [(21, 2), (22, 2), (23, 1), (29, 1)])
def test_where_unclean_brokers_leave_the_isr_the_leader_is_alone_in_it(tmp_path, level, isr):
    lost = found(log_dir(tmp_path / "a"))
    lost.image.features.levels["metadata.version"] = level
    for state in lost.image.topics.by_name["multi"].partitions.values():
        state.replicas = [1, 2]
    (image, _), _ = rebuilt(lost, "1@h:9092/9093", "2@i:9092")
    for state in image.topics.by_name["multi"].partitions.values():
        assert len(state.replicas) == 2
        assert state.isr == state.replicas[:isr]


def test_the_snapshot_ends_beyond_every_copy_and_every_election(tmp_path):
    first, second = log_dir(tmp_path / "a"), log_dir(tmp_path / "b", 2)
    state = {"leaderId": -1, "leaderEpoch": 50, "votedId": -1, "votedDirectoryId": "A", "data_version": 1}
    (tmp_path / "b" / LOG.name / "quorum-state").write_text(json.dumps(state))
    lost = found(first, second)
    assert lost.end_offset > 583
    assert lost.new_epoch > 50


@pytest.mark.parametrize("damage", [b"", b"{", b'{"data_version": 9}'])
def test_a_quorum_state_that_is_damaged_is_noted(tmp_path, damage):
    path = log_dir(tmp_path / "a")
    (tmp_path / "a" / LOG.name / "quorum-state").write_bytes(damage)
    heard = Heard()
    assert found(path, heard=heard).from_log
    assert [note for note in heard.notes if "quorum-state" in note]


def test_a_copy_on_a_failing_disk_does_not_end_it(tmp_path, monkeypatch):
    path, second = log_dir(tmp_path / "a"), log_dir(tmp_path / "b", 2)
    failing = f"{tmp_path}/a/{LOG.name}/{390:020}.log"
    real = local.LocalFile.read

    def read(self, position, size):
        if self.name == failing:
            raise FailingDiskError(failing, f"byte {position}: Input/output error")
        return real(self, position, size)

    monkeypatch.setattr(local.LocalFile, "read", read)
    heard = Heard()
    lost = found(path, second, heard=heard)
    assert heard.failed
    assert lost.end_offset > 582
    assert areas(lost.image) == areas(found(second).image)


def test_producer_ids_begin_above_all_that_are_known(tmp_path):
    lost = found(log_dir(tmp_path / "a"))
    known = lost.image.producer_ids.next
    assert rebuilt(lost)[0][0].producer_ids.next > known
    assert rebuilt(lost, max_producer_id=123_456)[0][0].producer_ids.next > 123_456


def test_a_torn_log_and_a_damaged_snapshot_are_made_up_for_by_another_copy(tmp_path):
    first, second = log_dir(tmp_path / "a"), log_dir(tmp_path / "b", 2)
    log = tmp_path / "a" / LOG.name / f"{390:020}.log"
    log.write_bytes(log.read_bytes()[:-7])
    snapshot = tmp_path / "b" / LOG.name / NEWEST
    data = bytearray(snapshot.read_bytes())
    data[300] ^= 4
    snapshot.chmod(0o600)
    snapshot.write_bytes(data)
    heard = Heard()
    lost = found(first, second, heard=heard)
    assert areas(lost.image) == areas(found(log_dir(tmp_path / "whole")).image)
    assert any(NEWEST in text for text in heard.damages)


def test_without_a_sound_snapshot_folders_report_topics_that_are_missing(tmp_path):
    path = log_dir(tmp_path / "a", folders=["forgotten-2"])
    for file in (tmp_path / "a" / LOG.name).iterdir():
        if file.suffix == ".checkpoint" or file.name == f"{0:020}.log":
            file.chmod(0o600)
            file.unlink()
    with pytest.raises(UsageError, match=r"has no metadata\.version"):
        found(path)
    lost = found(path, to="4.2.2")
    assert lost.breaks
    assert sorted(lost.image.topics.by_name["forgotten"].partitions) == [0, 1, 2]
    assert lost.image.configs.topic("forgotten")["retention.ms"] == "-1"


def test_partitions_that_a_damaged_log_has_lost_come_from_folders(tmp_path):
    folder = log_dir(tmp_path / "a", log=False, folders=["orders-3", "orders-7"])
    (tmp_path / "a" / "orders-7" / "partition.metadata").write_text("version: 0\ntopic_id: BBBBBBBBBBBBBBBBBBBBBA\n")
    image = found(folder, to="4.3.1").image
    assert sorted(image.topics.by_name["orders"].partitions)[-1] in (3, 7)
    known = [each for each in survey([folder]).folders if each.number == 3]
    image.topics.by_name["orders"].id = known[0].topic_id
    image.topics.by_name["orders"].partitions = {1: image.topics.by_name["orders"].partitions[1]}
    changes = metadata.add_partitions(image, list(survey([folder]).folders), "why")
    assert sorted(image.topics.by_name["orders"].partitions) == [0, 1, 2, 3]
    assert [(one.what, one.name, one.key) for one in changes] == [("partition", "orders", key) for key in "023"]


def test_partitions_that_were_added_after_the_end_of_an_older_log_come_from_folders(tmp_path):
    (topic,) = (each for each in found(log_dir(tmp_path / "a")).image.topics.by_id.values() if each.name == "multi")
    ids = id_text(topic.id)
    least = len(topic.partitions)
    # the last folder is a copy that a user made
    folders = [f"multi-{least + 1}", "multi-20240101", f"multi-copy-{least + 5}"]
    other = log_dir(tmp_path / "b", 2, log=False, folders=folders, ids=ids)
    (tmp_path / "b" / "multi-30").mkdir()
    lost = found(str(tmp_path / "a"), other)
    assert not lost.breaks
    assert sorted(lost.image.topics.by_id[topic.id].partitions) == list(range(least + 2))
    why = "the metadata log ends before this partition was added to the topic"
    assert [(one.name, one.key, one.why) for one in lost.changes] == [
        ("multi", str(least), why),
        ("multi", str(least + 1), why),
    ]


def test_without_a_metadata_log_a_copy_of_a_folder_is_no_partition(tmp_path):
    folders = ["orders-0", "orders-2", "orders-0-20240101", "orders-20240101", "__consumer_offsets-20240101"]
    lost = found(log_dir(tmp_path / "a", log=False, folders=folders), to="4.3.1")
    partitions = {name: sorted(topic.partitions) for name, topic in lost.image.topics.by_name.items()}
    assert partitions == {"orders": [0, 1, 2]}


@pytest.mark.parametrize("has_live", [False, True])
def test_a_topic_whose_name_a_broker_has_cut_gets_its_name_from_other_folders(tmp_path, has_live):
    topic, end = "t" * 249, f"-0.{'a' * 32}-stray"
    folders = [topic[: 255 - len(end)] + end, *([f"{topic}-1"] if has_live else [])]
    topics = found(log_dir(tmp_path / "a", log=False, folders=folders), to="4.3.1").image.topics.by_name
    partitions = {name: sorted(held.partitions) for name, held in topics.items()}
    assert partitions == ({topic: [0, 1]} if has_live else {topic[: 255 - len(end)]: [0]})


def test_without_a_metadata_log_folders_give_the_topics(tmp_path):
    names = ["orders-0", "orders-3", "__consumer_offsets-1", "__transaction_state-0"]
    first = log_dir(tmp_path / "a", log=False, folders=names)
    second = log_dir(
        tmp_path / "b", 2, log=False, folders=["orders-0", "gone-0.0123456789abcdef0123456789abcdef-delete"]
    )
    with pytest.raises(UsageError, match="--release"):
        found(first, second)
    lost = found(first, second, to="4.3.1")
    topics = lost.image.topics.by_name
    assert sorted(topics) == ["__consumer_offsets", "__transaction_state", "orders"]
    assert topics["orders"].id_text == ID
    assert sorted(topics["orders"].partitions) == [0, 1, 2, 3]
    assert len(topics["orders"].partitions[0].replicas) == 2
    assert lost.image.configs.topic("orders")["retention.ms"] == "-1"
    assert lost.image.configs.topic("__consumer_offsets")["cleanup.policy"] == "compact"
    assert lost.image.features.levels == {
        "metadata.version": 30,
        "group.version": 1,
        "transaction.version": 2,
        "share.version": 1,
        "streams.version": 1,
        "eligible.leader.replicas.version": 1,
    }
    (image, _), _ = rebuilt(lost, to="4.3.1")
    assert image.end_offset > 0


def test_of_two_ids_of_a_name_the_one_that_was_written_last_counts(tmp_path):
    other = "BBBBBBBBBBBBBBBBBBBBBA"
    old = log_dir(tmp_path / "a", log=False, folders=["orders-0"], ids=other)
    new = log_dir(tmp_path / "b", 2, log=False, folders=["orders-0"])
    os.utime(tmp_path / "a" / "orders-0" / f"{0:020}.log", (1, 1))
    lost = found(old, new, to="4.3.1")
    assert lost.image.topics.by_name["orders"].id_text == ID
    assert [(one.what, one.value) for one in lost.changes] == [("topic", other)]


def test_folders_without_ids_get_one(tmp_path):
    lost = found(log_dir(tmp_path / "a", log=False, folders=["orders-0"], ids=None), to="3.9.2")
    assert len(lost.image.topics.by_name["orders"].id) == 16
    assert lost.image.features.levels == {"metadata.version": 21}


@pytest.mark.parametrize(
    ("level", "to", "reason"),
    [
        (30, "4.2.2", r"4.2.2 is too old: metadata.version is 4.3-IV0 \(30\).* use 4.3 or later"),
        (21, "2.8.2", "no KRaft"),
    ],
)
def test_a_release_that_cannot_start_on_it_is_refused(tmp_path, level, to, reason):
    lost = found(log_dir(tmp_path / "a"))
    lost.image.features.levels["metadata.version"] = level
    with pytest.raises(UsageError, match=reason):
        metadata.release_for(lost, release.of(to))


@pytest.mark.parametrize(
    ("level", "name"), [(1, "3.3"), (7, "3.3"), (21, "3.9"), (22, "4.0"), (25, "4.0"), (30, "4.3")]
)
def test_the_oldest_release_that_knows_the_metadata_is_taken(tmp_path, level, name):
    lost = found(log_dir(tmp_path / "a"))
    lost.image.features.levels["metadata.version"] = level
    assert metadata.release_for(lost, None).name == name


def test_an_old_level_is_lifted_to_where_voters_may_stand_in_the_log(tmp_path):
    lost = found(log_dir(tmp_path / "a"))
    lost.image.features.levels["metadata.version"] = 14
    (image, changes), _ = rebuilt(lost, to="3.9.2")
    assert image.features.metadata_version == 21
    assert [(one.what, one.value) for one in changes] == [("feature", "14")]
    (image, changes), _ = rebuilt(lost, to="3.6.2")
    assert (image.features.metadata_version, image.kraft_version, changes) == (14, 0, [])


@pytest.mark.parametrize(("to", "made"), [("4.0.2", "4000"), ("4.1.2", "1048576"), ("4.4.0", "1048576")])
def test_a_config_that_the_release_refuses_is_raised(tmp_path, to, made):
    lost = found(log_dir(tmp_path / "a"))
    lost.image.features.levels["metadata.version"] = 21
    lost.image.configs.resources[2, "multi"] = {"segment.bytes": "4000", "min.insync.replicas": "2"}
    (image, changes), _ = rebuilt(lost, to=to)
    assert image.configs.topic("multi") == {"segment.bytes": made, "min.insync.replicas": "2"}
    assert [one.value for one in changes if one.name == "multi"] == (["4000"] if made != "4000" else [])
    assert lost.image.configs.topic("multi")["segment.bytes"] == "4000"


def test_before_3_7_more_in_sync_replicas_than_there_are_would_refuse_records(tmp_path):
    lost = found(log_dir(tmp_path / "a"))
    lost.image.features.levels["metadata.version"] = 14
    lost.image.configs.resources[2, "multi"] = {"min.insync.replicas": "2"}
    lost.image.configs.resources[4, ""] = {"min.insync.replicas": "2"}
    (image, changes), _ = rebuilt(lost, to="3.6.2")
    assert image.configs.topic("multi") == {"min.insync.replicas": "1"}
    assert image.configs.broker("") == {"min.insync.replicas": "1"}
    assert {(one.what, one.value) for one in changes} >= {("topic config", "2"), ("broker config", "2")}
    assert {one.why for one in changes if one.key == "min.insync.replicas"} == {
        "Kafka 3.6.2 refuses acks=all with fewer replicas: kdump has set 1, the number of replicas"
    }
