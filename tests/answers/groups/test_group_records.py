"""Groups and members as read from their records."""

import struct

from kdump.answers.groups.coordinator_log import GroupLog
from kdump.answers.groups.group_records import read_group
from kdump.internal_topics import consumer_offsets, interpreter
from kdump.internal_topics.schema import by_type
from tests.helpers.group_topics import (
    answer,
    assignment,
    batches,
    commit_key,
    commit_value,
    group_key,
    group_value,
    subscription,
    write,
)


def group(tmp_path, *records):
    (line,) = [line for line in answer(write(tmp_path, batches(*records))) if line["kind"] == "group"]
    return line


def test_a_classic_group_with_members_is_stable(tmp_path):
    member = ("m-1", subscription("orders", "views"), assignment(orders=[1, 0], views=[10, 9]))
    line = group(tmp_path, (group_key("app"), group_value(member)))
    assert (line["type"], line["state"], line["protocolType"], line["protocol"]) == (
        "Classic",
        "Stable",
        "consumer",
        "range",
    )
    (held,) = line["members"]
    assert held["topicPartitions"] == ["orders-0", "orders-1", "views-9", "views-10"]
    assert held["subscribedTopics"] == ["orders", "views"]
    assert (held["clientHost"], held["memberEpoch"], held["targetTopicPartitions"]) == ("/127.0.0.1", None, None)


def test_bytes_of_other_protocols_are_not_read(tmp_path):
    line = group(
        tmp_path, (group_key("c"), group_value(("m", b"opaque", b"too"), kind="connect", protocol="sessioned"))
    )
    assert (line["protocolType"], line["members"][0]["topicPartitions"]) == ("connect", None)


def test_a_consumer_that_writes_what_no_consumer_would(tmp_path):
    line = group(tmp_path, (group_key("c"), group_value(("m", b"\1", b"\0\0\0\0\0\x09"))))
    assert line["state"] == "Stable"
    assert line["members"][0]["topicPartitions"] is None
    assert line["members"][0]["subscribedTopics"] is None


def test_no_assigned_bytes_are_no_partitions(tmp_path):
    assert (
        group(tmp_path, (group_key("c"), group_value(("m", subscription(), b""))))["members"][0]["topicPartitions"]
        == []
    )


def test_a_group_record_that_cannot_be_read_is_named(tmp_path):
    line = group(tmp_path, (commit_key("app"), commit_value(1)), (group_key("app"), b"\0\x63"))
    assert (line["state"], line["problem"]) == ("Unknown", "offset 1: version 99 of GroupMetadataValue is unknown")


def test_a_group_subscribes_to_the_topics_of_all_its_regular_expressions():
    """Otherwise the offsets of the other topics would be said to expire."""
    name = "ConsumerGroupRegularExpression"
    keys = {one.name: (number, one) for number, one in by_type(consumer_offsets.MESSAGES, "Key").items()}
    number, key = keys[f"{name}Key"]
    value = consumer_offsets.MESSAGES[f"{name}Value"].struct(0)
    log = GroupLog(kind="Consumer")
    for offset, (expression, topic) in enumerate([("a.*", "alpha"), ("b.*", "beta")]):
        fields = {"groupId": "g", "regularExpression": expression}
        found = {"topics": [topic], "version": 1, "timestamp": 1}
        made = struct.pack(">h", number) + interpreter.write(key.struct(0), fields)
        log.records[made] = struct.pack(">h", 0) + interpreter.write(value, found), offset
    assert read_group("g", 0, log, lambda _: None).subscribed == {"alpha", "beta"}
