"""The replay: it reports each error of a log, and raises no exception."""

from __future__ import annotations

import pytest

from kdump import kernel
from kdump.answers.metadata.cluster_image import ClusterImage
from kdump.answers.metadata.events import Events
from kdump.answers.metadata.records import appended
from kdump.answers.metadata.replay import BreakEffect, MetadataReplay
from kdump.log_dirs.local import LocalFile
from kdump.records.magic_2 import Batch
from kdump.segments import resync
from kdump.segments.regions import PLAIN_DATA
from kdump.segments.resync import ResyncReader
from testing import forge
from tests.answers.metadata.test_image import FOLDERS, records
from tests.helpers.metadata_records import metadata_value as value

ID, OTHER = bytes(15) + b"\7", bytes(15) + b"\x08"


def batch(offset, *values, epoch=1, timestamp=1000):
    made = [forge.record(None, each, offset=number) for number, each in enumerate(values)]
    data = forge.batch(made, base_offset=offset, leader_epoch=epoch, base_timestamp=timestamp)
    return Batch(memoryview(data), 0, len(data))


def replayed(*values, to=None):
    """Return the image after one batch per value, and the errors."""
    image, breaks = ClusterImage(), []
    replay = MetadataReplay(image, breaks.append, to=to)
    for number, each in enumerate(values):
        replay.add(batch(number, each))
    return image, breaks


TOPIC = value("TopicRecord", name="orders", topicId=ID)
PARTITION = value("PartitionRecord", partitionId=0, topicId=ID, replicas=[1, 2], isr=[1, 2], leader=1, leaderEpoch=0)
BROKER = value("RegisterBrokerRecord", brokerId=1, brokerEpoch=5, fenced=True)
BEGIN, END, ABORT = (value(f"{name}TransactionRecord") for name in ("Begin", "End", "Abort"))


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (value("TopicRecord", name="orders", topicId=OTHER), "topic orders exists already"),
        (value("RemoveTopicRecord", topicId=OTHER), "there is no topic with id AAAAAAAAAAAAAAAAAAAACA"),
        (value("PartitionRecord", topicId=OTHER), "there is no topic with id"),
        (value("PartitionRecord", 1, topicId=ID, replicas=[1], directories=[ID, ID]), "1 replicas have 2 directories"),
        (value("PartitionChangeRecord", partitionId=9, topicId=ID, leader=1), "topic orders has no partition 9"),
        (value("ClearElrRecord", topicName="gone"), "there is no topic gone"),
        (value("FenceBrokerRecord", id=1, epoch=6), "broker 1 is registered with epoch 5, not 6"),
        (value("UnfenceBrokerRecord", id=2, epoch=5), "broker 2 is not registered"),
        (value("UnregisterBrokerRecord", brokerId=2, brokerEpoch=5), "broker 2 is not registered"),
        (value("BrokerRegistrationChangeRecord", brokerId=1, brokerEpoch=5, fenced=7), "Kafka defines no such change"),
        (value("UnregisterControllerRecord", controllerId=3), "controller 3 is not registered"),
        (value("RemoveAccessControlEntryRecord", id=ID), "there is no ACL with id"),
        (value("RemoveUserScramCredentialRecord", name="bob", mechanism=1), "no credential of SCRAM-SHA-256"),
        (END, "no transaction is open"),
        (ABORT, "no transaction is open"),
    ],
)
def test_a_record_that_does_not_fit_is_a_named_break(broken, reason):
    before, none = replayed(TOPIC, PARTITION, BROKER)
    assert none == []
    image, breaks = replayed(TOPIC, PARTITION, BROKER, broken)
    assert len(breaks) == 1
    assert breaks[0].offset == 3
    assert reason in breaks[0].reason
    assert "fatal fault" in breaks[0].text
    assert breaks[0].effect is BreakEffect.NOT_APPLIED
    assert records(image) == records(before)
    assert image.end_offset == 4


@pytest.mark.parametrize(
    ("broken", "reason", "effect"),
    [
        (b"\1\x7f\0", "record type 127 is unknown", BreakEffect.NOT_KNOWN),
        (b"\x02\0\0", "frame version 2 is unknown", BreakEffect.NOT_KNOWN),
        (TOPIC[:-3], "short", BreakEffect.NOT_DECODED),
        (None, "its value is null", BreakEffect.NOT_DECODED),
    ],
)
def test_a_record_that_cannot_be_decoded_is_a_break_for_every_node(broken, reason, effect):
    image, breaks = replayed(TOPIC, broken)
    assert [(each.offset, each.effect) for each in breaks] == [(1, effect)]
    assert reason in breaks[0].text
    assert image.end_offset == 2


@pytest.mark.parametrize(("kind", "effect"), [(7, BreakEffect.NOT_KNOWN), (0, BreakEffect.NOT_DECODED)])
def test_a_control_record_of_an_unknown_type_is_of_a_newer_release(kind, effect):
    """RecordsIterator refuses types that its release does not know, and the markers of transactions."""
    data = forge.batch([forge.record(b"\0\0\0" + bytes([kind]), bytes(6))], attributes=0x20)
    breaks = []
    MetadataReplay(ClusterImage(), breaks.append).add(Batch(memoryview(data), 0, len(data)))
    assert [(each.reason, each.effect) for each in breaks] == [(f"control record type {kind} is unknown", effect)]


def test_a_gap_does_not_stop_a_node_but_a_missing_beginning_does():
    """KafkaRaftClient reads on at the next batch; KafkaMetadataLog needs a snapshot at the start of its log."""
    image, breaks = ClusterImage(), []
    replay = MetadataReplay(image, breaks.append)
    replay.add(batch(4, TOPIC))
    replay.add(batch(7, PARTITION))
    assert [(each.offset, each.effect) for each in breaks] == [(4, BreakEffect.NO_BEGINNING), (7, BreakEffect.GAP)]
    assert breaks[1].text == (
        "offset 7: the records from offset 5 up to this offset are missing; brokers and controllers do not notice the "
        "gap: they apply the later records without these changes"
    )


def test_transaction_counts_from_its_end_on():
    assert "orders" not in replayed(BEGIN, TOPIC)[0].topics.by_name
    assert replayed(BEGIN, TOPIC)[0].open_transaction == 0
    assert "orders" not in replayed(BEGIN, TOPIC, ABORT)[0].topics.by_name
    image, breaks = replayed(BEGIN, TOPIC, END)
    assert "orders" in image.topics.by_name
    assert image.open_transaction is None
    assert breaks == []


def test_transaction_that_begins_inside_another_is_a_break():
    image, breaks = replayed(BEGIN, TOPIC, BEGIN, PARTITION, END)
    assert [each.offset for each in breaks] == [2, 3]
    assert not image.topics.by_name


def test_change_of_a_partition_raises_epochs():
    change = value("PartitionChangeRecord", 2, partitionId=0, topicId=ID, leader=2, isr=[2])
    image, _ = replayed(TOPIC, PARTITION, change, value("PartitionChangeRecord", partitionId=0, topicId=ID, isr=[2, 1]))
    state = image.topics.by_name["orders"].partitions[0]
    assert (state.leader, state.leader_epoch, state.partition_epoch, state.isr) == (2, 1, 1, [2, 1])


def test_a_topic_goes_with_its_configs():
    config = value("ConfigRecord", resourceType=2, resourceName="orders", name="retention.ms", value="1")
    assert replayed(TOPIC, config)[0].configs.topic("orders") == {"retention.ms": "1"}
    image, _ = replayed(TOPIC, config, value("RemoveTopicRecord", topicId=ID), TOPIC)
    assert image.configs.topic("orders") == {}


def test_controller_of_4_4_can_be_unregistered():
    register = value("RegisterControllerRecord", controllerId=3)
    image, breaks = replayed(register, value("UnregisterControllerRecord", controllerId=3))
    assert breaks == []
    assert image.cluster.controllers == {}


def test_a_part_of_a_batch_is_applied_up_to_the_offset():
    image, breaks = ClusterImage(), []
    assert not MetadataReplay(image, breaks.append, to=1).add(batch(0, TOPIC, PARTITION))
    assert (image.end_offset, image.cut_batch) == (1, 0)
    assert image.topics.by_name["orders"].partitions == {}


def golden(folder):
    for path in sorted(folder.glob("*.log")):
        with LocalFile(path) as source:
            for region in resync.read(source):
                yield bytes(region.raw), len(list(region.records()))


def replay_all(blobs, breaks):
    image = ClusterImage()
    replay = MetadataReplay(image, breaks.append)
    for data in blobs:
        replay.add(Batch(memoryview(data), 0, len(data)))
    return image


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_cut_at_each_batch_a_log_still_replays(folder):
    blobs = [data for data, _ in golden(folder)]
    image, breaks = ClusterImage(), []
    replay = MetadataReplay(image, breaks.append)
    for data in blobs:
        region = Batch(memoryview(data), 0, len(data))
        replay.add(region)
        assert image.end_offset == region.last_offset + 1
        assert all(record.plain["data"] for record in image.records())
    assert breaks == []


def outcome(regions, to):
    """Return the result of a replay up to an offset: the image's place, its records, and the history."""
    image, breaks, events = ClusterImage(), [], Events(0)
    replay = MetadataReplay(image, breaks.append, to=to, observer=events)
    wanted = [replay.add(region) for region in regions]
    place = (image.end_offset, image.epoch, image.timestamp, image.cut_batch)
    return all(wanted), place, records(image), events.take(), breaks


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_a_run_of_batches_replays_as_batch_after_batch(folder):
    for path in sorted(folder.glob("*.log")):
        with LocalFile(path) as source:
            reader = ResyncReader(source, 0, source.size, runs=PLAIN_DATA)
            runs, batches = list(reader.read()), list(resync.read(source))
        assert len(runs) < len(batches) or not kernel.COMPILED
        first, end = batches[0].base_offset, batches[-1].last_offset + 1
        for to in (*range(first, end, 61), end):
            assert outcome(runs, to) == outcome(batches, to)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_with_a_batch_dropped_the_gap_is_named(folder):
    blobs = [data for data, _ in golden(folder)]
    for number in range(0, len(blobs) - 1, 11):
        breaks = []
        image = replay_all(blobs[:number] + blobs[number + 1 :], breaks)
        assert "are missing" in breaks[0].reason
        assert image.end_offset == replay_all(blobs[-1:], []).end_offset


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_with_each_record_dropped_once_the_gap_is_named_and_the_rest_replays(folder):
    log = decoded(folder)
    end, dependents = log[-1].last_offset + 1, 0
    for number, batch in enumerate(log):
        for at, dropped in enumerate(batch.records):
            kept = batch._replace(records=[*batch.records[:at], *batch.records[at + 1 :]])
            events = Events(0) if dropped.offset % 16 == 0 else None
            image, breaks = replay_decoded([*log[:number], kept, *log[number + 1 :]], events)
            assert f"from offset {dropped.offset} up to this offset are missing" in breaks[0].reason
            assert all(each.offset > dropped.offset for each in breaks)
            assert image.end_offset == end
            assert list(image.records()) or image.open_transaction is not None  # its end was dropped
            dependents += len(breaks) > 1
    assert dependents > 20


def decoded(folder):
    """Return the batches of a golden log, each decoded once for any number of replays."""
    regions = (Batch(memoryview(data), 0, len(data)) for data, _ in golden(folder))
    return [batch._replace(records=list(batch.records)) for region in regions for batch in appended(region)]


def replay_decoded(log, observer):
    image, breaks = ClusterImage(), []
    replay = MetadataReplay(image, breaks.append, observer=observer)
    assert all(map(replay.append, log))
    return image, breaks
