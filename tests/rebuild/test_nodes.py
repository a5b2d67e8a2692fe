"""The nodes of a rebuilt cluster: options, placement, files."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from kdump.answers.metadata.topics import PartitionImage, Topics
from kdump.errors import UsageError
from kdump.formats import meta_properties
from kdump.rebuild import nodes


def topics(*factors, partitions=6, old=(101, 102, 103), adding=()):
    """Topics of some replication factors on old brokers."""
    made = Topics()
    for number, factor in enumerate(factors):
        fields = {"name": f"t{number}", "topicId": bytes([number]) * 16}
        made.handlers()["TopicRecord"](fields)
        for partition in range(partitions):
            replicas = [old[(partition + one) % len(old)] for one in range(factor)]
            made.by_id[fields["topicId"]].partitions[partition] = PartitionImage(
                replicas, [bytes(16)] * factor, replicas, [], list(adding), replicas[0], 0, 3, 4, [], []
            )
    return made


def test_a_node_is_an_id_an_address_and_a_controller_port():
    broker, both = nodes.parse_nodes(["7@[2001:db8::1]:9092", "1@k1.example.com:9092/9093"])
    assert broker[:4] == (7, "2001:db8::1", 9092, None)
    assert (broker.roles, broker.folder) == ("broker", "node-7")
    assert both[:4] == (1, "k1.example.com", 9092, 9093)
    assert both.roles == "broker,controller"
    assert broker.directory_id != both.directory_id
    assert [one[:4] for one in nodes.parse_nodes([])] == [(1, "localhost", 9092, 9093)]
    assert nodes.address(broker.host, 1) == "[2001:db8::1]:1"


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (["1@h:1/2", "1@i:1/2"], "node id 1 is given twice"),
        (["1@h:1/2", "2@h:1/3"], "address h:1 is given twice"),
        (["1@h:1/1"], "address h:1 is given twice"),
        (["1@h:9092"], "no node is a controller: .* --node 1@h:9092/9093"),
        (["h:9092"], "is not of the form ID@HOST:PORT"),
        (["1@h:0/1"], "0 is not a port"),
        (["1@h:65536/1"], "65536 is more than 65535"),
        (["2147483648@h:1/2"], "is more than 2147483647"),
        (["-1@h:1/2"], "is not of the form ID@HOST:PORT"),
        (["1@h i:1/2"], "is not of the form ID@HOST:PORT"),
    ],
)
def test_nodes_that_cannot_be(texts, reason):
    with pytest.raises(UsageError, match=reason):
        nodes.parse_nodes(texts)


@pytest.mark.parametrize(
    ("broker", "controller", "reason"),
    [
        ("", "CONTROLLER", "--listener '' is not the name of a listener"),
        ("A,B", "CONTROLLER", "--listener 'A,B' is not"),
        ("PLAINTEXT", "A:B", "--controller-listener 'A:B' is not"),
        ("internal", "INTERNAL", "have the same name internal"),
    ],
)
def test_listeners_that_kafka_refuses(broker, controller, reason):
    with pytest.raises(UsageError, match=re.escape(reason)):
        nodes.Listeners(broker, controller).checked()
    names = nodes.Listeners("REPLICATION-9091", "my.controllers_2")
    assert names.checked() is names


def test_directory_ids_are_random_and_no_reserved_ones():
    made = {nodes.new_directory_id() for _ in range(200)}
    assert len(made) == 200
    assert all(len(one) == 16 and int.from_bytes(one, "big") >= 100 for one in made)
    texts = [nodes.NewNode(1, "h", 1, 2, one).directory_text for one in made]
    assert not [text for text in texts if text.startswith("-")]


@pytest.mark.parametrize(
    ("old", "new", "wanted", "made"), [(3, 1, None, 1), (1, 3, None, 1), (3, 3, 2, 2), (2, 5, 9, 5)]
)
def test_replication_is_the_old_one_at_most_one_for_each_node(old, new, wanted, made):
    state = topics(old).by_name["t0"].partitions[0]
    assert nodes.replication_of(state, new, wanted) == made


def test_replicas_that_a_reassignment_was_adding_do_not_count():
    state = topics(3, adding=[103]).by_name["t0"].partitions[0]
    assert nodes.replication_of(state, 3, None) == 2


def test_new_nodes_lead_about_the_same_number_and_hold_each_partition_once():
    new = nodes.parse_nodes([f"{number}@h{number}:9092/9093" for number in (1, 2, 3)])
    made = nodes.assign(topics(1, 2, 3, partitions=7), new)
    assert all(len(set(held)) == len(held) for held in made.values())
    assert [len(made[bytes([number]) * 16, 0]) for number in range(3)] == [1, 2, 3]
    leads = Counter(held[0] for held in made.values())
    assert max(leads.values()) - min(leads.values()) <= 2
    followers = Counter(held for held in made.values() if len(held) == 2)
    assert len(followers) > 3  # not always the same follower of a leader


def test_brokers_with_the_old_ids_keep_their_replicas():
    old = topics(2, 3)
    new = nodes.parse_nodes([f"{number}@h{number}:9092/9093" for number in (101, 102, 103)])
    made = nodes.assign(old, new)
    assert {key: list(held) for key, held in made.items()} == {
        (topic.id, number): state.replicas for topic in old.by_id.values() for number, state in topic.partitions.items()
    }
    assert {len(held) for held in nodes.assign(old, new, 1).values()} == {1}


def test_meta_properties_are_those_of_a_node_that_starts():
    (node,) = nodes.parse_nodes(["5@h:1/2"])
    found = meta_properties.read(nodes.meta_properties_file(node, "nub61tcETP6KClWv92MVHg"))
    meta_properties.check(found)
    assert (found.cluster_id, found.broker_id, found.directory_id) == (
        "nub61tcETP6KClWv92MVHg",
        "5",
        node.directory_text,
    )
    assert nodes.uuid(node.directory_text) == node.directory_id
