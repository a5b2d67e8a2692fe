"""Plans for all partitions of an image, and folders that belong to no partition."""

import pytest

from kdump.answers.metadata.cluster_image import ClusterImage
from kdump.rebuild.cluster import choose, unknown_folders
from kdump.rebuild.volumes import survey
from testing import forge, tiered
from tests.rebuild.replicas import TOPIC_ID, batch, batches, copy

OTHER_ID = b"2" * 16
OFFSETS_ID = b"3" * 16


def image(*topics, configs=()):
    found = ClusterImage()
    for name, topic_id, partitions in topics:
        found.handlers["TopicRecord"]({"name": name, "topicId": topic_id})
        for number in range(partitions):
            fields = {"replicas": [1], "isr": [1], "removingReplicas": [], "addingReplicas": []}
            numbers = {"topicId": topic_id, "partitionId": number, "leader": 1, "leaderEpoch": 0, "partitionEpoch": 0}
            found.handlers["PartitionRecord"](fields | numbers)
    for topic, name, value in configs:
        found.handlers["ConfigRecord"]({"resourceType": 2, "resourceName": topic, "name": name, "value": value})
    return found


def test_each_partition_of_the_image_has_a_plan(tmp_path):
    copy(tmp_path, 1, {0: batches(0, 3)})
    copy(tmp_path / "b", 2, {0: batches(0, 5)}, name="orders-1")
    copy(tmp_path / "c", 3, {0: batches(0, 5)}, name="reborn-0", topic_id=OTHER_ID)
    volumes, wanted = survey([str(tmp_path)]), image(("orders", TOPIC_ID, 3))
    done = []
    plans = choose(volumes, wanted, done=done.append)
    assert [(each.name, each.state, each.end) for each in plans] == [
        ("orders-0", "whole", 3),
        ("orders-1", "whole", 5),
        ("orders-2", "lost", 0),
    ]
    assert done == plans
    assert choose(volumes, wanted, jobs=2) == plans
    assert [each.topic for each in unknown_folders(volumes, wanted)] == ["reborn"]


def test_a_stray_folder_with_a_cut_name_is_known(tmp_path):
    topic, end = "t" * 249, f"-0.{'a' * 32}-stray"
    copy(tmp_path, 1, {0: batches(0, 3)}, name=topic[: 255 - len(end)] + end)
    volumes, wanted = survey([str(tmp_path)]), image((topic, TOPIC_ID, 1))
    assert [(each.state, each.end) for each in choose(volumes, wanted)] == [("whole", 3)]
    assert unknown_folders(volumes, wanted) == []


def test_a_topic_is_compacted_by_its_configs_or_by_the_cleaners_checkpoint(tmp_path):
    copy(tmp_path, 1, {0: batch(3), 9: batch(9)}, cleaner=9)
    volumes = survey([str(tmp_path)])
    topics = ("orders", TOPIC_ID, 1)
    (plain,) = choose(volumes, image(topics))
    assert [(each.from_offset, each.until_offset) for each in plain.lost] == [(0, 3), (4, 9)]
    (compacted,) = choose(volumes, image(topics, configs=[("orders", "cleanup.policy", "compact")]))
    assert compacted.state == "whole"
    (cleaned,) = choose(volumes, image(topics), has_configs=False)
    assert cleaned.state == "whole"


def test_a_lost_partition_begins_at_the_highest_offset_that_was_committed_or_checkpointed(tmp_path):
    def commit(partition, offset):
        key = b"\0\1" + b"\0\1g" + b"\0\6orders" + partition.to_bytes(4, "big")
        value = b"\0\3" + offset.to_bytes(8, "big") + b"\xff\xff\xff\xff" + b"\0\0" + bytes(8)
        return forge.record(key, value)

    folder = copy(
        tmp_path,
        1,
        {0: forge.batch([commit(1, 40)]) + forge.batch([commit(1, 17)], base_offset=1)},
        name="__consumer_offsets-0",
        topic_id=OFFSETS_ID,
    )
    (folder.parent / "replication-offset-checkpoint").write_text("0\n2\norders 1 30\norders 2 31\n")
    wanted = image(("__consumer_offsets", OFFSETS_ID, 1), ("orders", TOPIC_ID, 3))
    plans = choose(survey([str(tmp_path)]), wanted)
    assert [(each.name, each.state, each.log_start, each.end) for each in plans] == [
        ("__consumer_offsets-0", "whole", 0, 2),
        ("orders-0", "lost", 0, 0),
        ("orders-1", "lost", 40, 40),
        ("orders-2", "lost", 31, 31),
    ]


@pytest.mark.parametrize("on", ["true", " TRUE"])
def test_a_tiered_topic_by_its_config_or_by_its_log_start_without_configs(tmp_path, on):
    folder = copy(tmp_path, 1, {5: batches(5, 9)}, log_start=1)
    (folder.parent / "__remote_log_metadata-0").mkdir()
    volumes, topics = survey([str(tmp_path)]), ("orders", TOPIC_ID, 1)
    (tiered,) = choose(volumes, image(topics, configs=[("orders", "remote.storage.enable", on)]))
    assert (tiered.is_tiered, tiered.log_start, tiered.state) == (True, 1, "whole")
    (guessed,) = choose(volumes, image(topics), has_configs=False)
    assert guessed == tiered
    (plain,) = choose(volumes, image(topics))
    assert (plain.is_tiered, plain.log_start) == (False, 5)


@pytest.mark.parametrize("has_configs", [True, False])
def test_a_lost_partition_of_a_tiered_topic_continues_after_its_remote_log(tmp_path, has_configs):
    copy(tmp_path, 1, {80: batches(80, 90, epoch=4)}, name="t-1", topic_id=tiered.TOPIC_ID)
    segments = [
        tiered.Segment(0, 29, number=1, epochs=((0, 0), (2, 20))),
        tiered.Segment(30, 59, number=2, epochs=((2, 30), (3, 50))),
        tiered.Segment(60, 99, number=3),  # its copy did not end
        tiered.Segment(0, 79, number=4, partition=1, epochs=((1, 0), (4, 70))),
    ]
    values = [one.added() for one in segments]
    values += [one.changed(tiered.COPIED) for one in segments if one.number != 3]
    tiered.write_metadata(tmp_path / "node-1", values)
    configs = [("t", "remote.storage.enable", "true")] if has_configs else []
    wanted = image(("t", tiered.TOPIC_ID, 3), configs=configs)
    lost, there, empty = choose(survey([str(tmp_path)]), wanted, has_configs=has_configs)
    assert (lost.state, lost.log_start, lost.end, lost.lost) == ("lost", 0, 60, ())
    assert (lost.epochs, lost.leader_epoch, lost.is_tiered) == (((0, 0), (2, 20), (3, 50)), 3, True)
    assert [each.base_offset for each in lost.segments] == [60]
    # this copy has no leader-epoch-checkpoint
    assert (there.state, there.log_start, there.end, there.epochs) == ("whole", 0, 90, ((1, 0), (4, 70)))
    assert (empty.log_start, empty.end, empty.epochs) == (0, 0, ())
    (tmp_path / "node-1" / "replication-offset-checkpoint").write_text("0\n1\nt 0 75\n")
    lost = choose(survey([str(tmp_path)]), wanted, has_configs=has_configs)[0]
    assert (lost.log_start, lost.end) == (0, 75)
    assert [(one.from_offset, one.until_offset) for one in lost.lost] == [(60, 75)]
