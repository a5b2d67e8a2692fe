"""The history, the difference of images, and the tree."""

from __future__ import annotations

import pytest

from kdump.answers.metadata.answer import differences
from kdump.answers.metadata.cluster_image import ClusterImage
from kdump.answers.metadata.events import Events, without_secrets
from kdump.answers.metadata.replay import MetadataReplay
from kdump.answers.metadata.tree import leaves
from kdump.errors import UsageError
from kdump.internal_topics.secrets import HIDDEN
from tests.answers.metadata.test_replay import BEGIN, BROKER, END, ID, OTHER, PARTITION, TOPIC, batch, value


def events(*batches):
    """Return the events of batches; each batch is a list of values."""
    made, offset = Events(0), 0
    replay = MetadataReplay(ClusterImage(), lambda _: None, observer=made)
    for values in batches:
        replay.add(batch(offset, *values, timestamp=1000 + offset))
        offset += len(values)
    return made.take()


def reported(*batches):
    return [(event.offset, event.what, event.name) for event in events(*batches)]


def change(**fields):
    return value("PartitionChangeRecord", 2, partitionId=0, topicId=ID, **fields)


NEXT = value("PartitionRecord", partitionId=1, topicId=ID, replicas=[1], isr=[1], leader=1)


def test_partitions_of_a_new_topic_are_part_of_its_creation():
    (event,) = events([TOPIC, PARTITION, NEXT])
    assert (event.offset, event.timestamp_ms, event.what, event.name) == (0, 1000, "TopicCreated", "orders")
    assert event.details["partitions"] == 2
    assert event.id == "AAAAAAAAAAAAAAAAAAAABw"


def test_partitions_that_come_later_are_added():
    found = events([TOPIC, PARTITION], [NEXT])
    assert [event.what for event in found] == ["TopicCreated", "PartitionsAdded"]
    assert found[1].details == {"partitions": [1], "replicas": [1]}


def test_a_transaction_gives_its_events_at_its_end():
    assert reported([BEGIN], [TOPIC, PARTITION]) == []
    assert reported([BEGIN], [TOPIC, PARTITION], [END]) == [(1, "TopicCreated", "orders")]


def test_a_topic_is_followed_through_its_ids():
    again = value("TopicRecord", name="orders", topicId=OTHER)
    found = events([TOPIC, PARTITION], [value("RemoveTopicRecord", topicId=ID)], [again])
    assert [(event.what, event.id[-2:]) for event in found] == [
        ("TopicCreated", "Bw"),
        ("TopicDeleted", "Bw"),
        ("TopicCreated", "CA"),
    ]


def test_a_deleted_topic_shows_no_secret_config():
    configs = [
        value("ConfigRecord", resourceType=2, resourceName="orders", name=name, value=text)
        for name, text in (("my.secret", "hunter2"), ("retention.ms", "5"), ("cleanup.policy", "delete"))
    ]
    deleted = events([TOPIC, PARTITION, *configs], [value("RemoveTopicRecord", topicId=ID)])[-1]
    assert deleted.details["configs"]["my.secret"] == "hunter2"
    hidden = without_secrets(deleted).details["configs"]
    assert hidden == {"my.secret": HIDDEN, "retention.ms": "5", "cleanup.policy": "delete"}


@pytest.mark.parametrize(
    ("changes", "events_seen"),
    [
        ([{"leader": 2}], ["LeaderChanged"]),
        ([{"leader": -1}], ["LeaderChanged"]),
        ([{"isr": [1]}], ["IsrChanged"]),
        ([{"isr": [1]}, {"leader": 2, "isr": [2]}], ["IsrChanged", "UncleanElection", "LeaderChanged", "IsrChanged"]),
        (
            [{"isr": [1]}, {"leader": 2, "isr": [2], "leaderRecoveryState": 1}],
            ["IsrChanged", "UncleanElection", "LeaderChanged", "IsrChanged", "LeaderRecoveryChanged"],
        ),
        # a reassignment that ends: the new leader catches up in the same record
        (
            [{"isr": [1]}, {"replicas": [2, 1], "leader": 2, "isr": [1, 2]}],
            ["IsrChanged", "LeaderChanged", "IsrChanged", "ReassignmentStarted", "ReassignmentEnded"],
        ),
        (
            [{"isr": [1]}, {"replicas": [2], "leader": 2, "isr": [2]}],
            ["IsrChanged", "LeaderChanged", "IsrChanged", "ReassignmentStarted", "ReassignmentEnded"],
        ),
        (
            [{"isr": [1], "eligibleLeaderReplicas": [2]}, {"leader": 2}],
            ["IsrChanged", "ElrChanged", "LeaderChanged"],
        ),
        (
            [{"replicas": [3, 1, 2], "addingReplicas": [3]}, {"replicas": [3, 1], "addingReplicas": []}],
            ["ReassignmentStarted", "ReassignmentEnded"],
        ),
        ([{"replicas": [1]}], ["ReassignmentStarted", "ReassignmentEnded"]),
        ([{"directories": [ID, OTHER]}], ["DirectoriesChanged"]),
    ],
)
def test_what_befalls_a_partition(changes, events_seen):
    found = reported([TOPIC, PARTITION], *([change(**fields)] for fields in changes))[1:]
    assert [what for _, what, _ in found] == events_seen
    assert {name for _, _, name in found} == {"orders-0"}


@pytest.mark.parametrize(
    ("records", "what", "name"),
    [
        ([BROKER], "BrokerRegistered", "1"),
        ([BROKER, value("FenceBrokerRecord", id=1, epoch=5)], "BrokerFenced", "1"),
        ([BROKER, value("UnfenceBrokerRecord", id=1, epoch=5)], "BrokerUnfenced", "1"),
        (
            [BROKER, value("BrokerRegistrationChangeRecord", brokerId=1, brokerEpoch=5, fenced=-1)],
            "BrokerUnfenced",
            "1",
        ),
        ([BROKER, value("UnregisterBrokerRecord", brokerId=1, brokerEpoch=5)], "BrokerUnregistered", "1"),
        ([value("ConfigRecord", resourceType=4, resourceName="", name="a", value="1")], "ConfigChanged", ""),
        (
            [value("AccessControlEntryRecord", id=ID, resourceType=2, resourceName="orders", principal="User:bob")],
            "AclAdded",
            "orders",
        ),
        ([value("UserScramCredentialRecord", name="bob", mechanism=1, iterations=4096)], "ScramChanged", "bob"),
        ([value("FeatureLevelRecord", name="metadata.version", featureLevel=29)], "FeatureChanged", "metadata.version"),
        ([value("DelegationTokenRecord", tokenId="t", owner="User:bob")], "TokenChanged", "t"),
        ([value("RegisterControllerRecord", controllerId=3)], "ControllerRegistered", "3"),
        ([value("ProducerIdsRecord", brokerId=1, nextProducerId=1000)], "ProducerIdsAllocated", "1"),
    ],
)
def test_what_befalls_the_cluster(records, what, name):
    assert reported(*([record] for record in records))[-1][1:] == (what, name)


def test_log_dirs_are_cordoned_and_released():
    lists = ({}, {"cordonedLogDirs": [ID]}, {"cordonedLogDirs": [ID]}, {"fenced": -1}, {"cordonedLogDirs": []})
    changes = [value("BrokerRegistrationChangeRecord", 3, brokerId=1, brokerEpoch=5, **fields) for fields in lists]
    found = [event for event in events([BROKER], changes) if event.what == "BrokerDirectoriesChanged"]
    assert [(event.offset, event.details["cordonedLogDirs"]) for event in found] == [
        (2, ["AAAAAAAAAAAAAAAAAAAABw"]),
        (5, []),
    ]


def test_a_quota_names_its_entity():
    entity = [{"entityType": "user", "entityName": "alice"}, {"entityType": "client-id", "entityName": None}]
    (event,) = events([value("ClientQuotaRecord", entity=entity, key="producer_byte_rate", value=5.0)])
    assert event.details["entity"] == {"user": "alice", "client-id": None}
    assert event.name == "client-id=<default>,user=alice"


def test_secrets_are_in_no_event():
    (event,) = events([value("UserScramCredentialRecord", name="bob", mechanism=2, salt=b"salt", iterations=1)])
    assert event.details == {"mechanism": "SCRAM-SHA-512", "iterations": 1, "removed": False}


def test_a_break_is_an_event_and_its_record_none():
    (event,) = events([value("RemoveTopicRecord", topicId=ID)])
    assert (event.what, event.details["record"]) == ("ReplayBroken", "RemoveTopicRecord")


def image(*values):
    made = ClusterImage()
    replay = MetadataReplay(made, lambda _: None)
    for number, each in enumerate(values):
        replay.add(batch(number, each))
    return made


LEVEL = value("FeatureLevelRecord", name="metadata.version", featureLevel=29)


def test_difference_of_two_images():
    config = value("ConfigRecord", resourceType=2, resourceName="orders", name="retention.ms", value="1")
    before = image(LEVEL, TOPIC, PARTITION, config)
    later = image(LEVEL, TOPIC, PARTITION, NEXT, change(leader=2))
    found = {line.kind: line for line in differences(before, later)}
    assert set(found) == {"added", "removed", "changed"}
    assert (found["added"].type, found["added"].topic) == ("PARTITION_RECORD", "orders")
    assert found["removed"].data["name"] == "retention.ms"
    assert (found["changed"].was["data"]["leader"], found["changed"].data["leader"]) == (1, 2)
    assert list(differences(later, later)) == []


def test_tree_has_the_nodes_of_the_shell():
    found = image(LEVEL, TOPIC, PARTITION)
    nodes = {line.path: line.value for line in leaves(found, "/")}
    assert nodes["/features/metadataVersion"] == "Optional[4.2-IV1]"
    assert nodes["/topics/byName/orders/0"].startswith("PartitionRegistration(replicas=[1, 2], ")
    assert [line.path for line in leaves(found, "/image/topics/orders/id")] == ["/topics/byName/orders/id"]
    with pytest.raises(UsageError, match="the tree has no node /topics/byName/gone"):
        list(leaves(found, "/topics/gone"))
