"""Lag: log ends, last stable offsets, recreated topics, share partitions."""

import kdump
from kdump.answers.groups.collector import NEAR, ConsumerGroups, GroupsWanted, LogEnds
from kdump.formats import offset_index, producer_snapshot
from kdump.formats.offset_index import OffsetPosition
from kdump.formats.partition_metadata import PartitionMetadata, encode
from kdump.formats.producer_snapshot import ProducerEntry
from tests.helpers.group_topics import (
    TOPIC_ID,
    answer,
    batches,
    commit_key,
    commit_value,
    commit_value_4,
    feed,
    offsets,
    share_key,
    snapshot_value,
    update_value,
    write,
)
from tests.helpers.segments import data, starts

KEY = commit_key("app")


def orders(tmp_path, content, topic_id=None):
    write(tmp_path, content, topic="orders")
    if topic_id is not None:
        (tmp_path / "orders-0" / "partition.metadata").write_bytes(encode(PartitionMetadata(0, topic_id)))


def line(tmp_path, *records):
    return offsets(write(tmp_path, batches(*records)))["app", "orders", 0]


def test_lag_is_the_log_end_less_the_offset(tmp_path):
    orders(tmp_path, data(0, 10) + data(10, 5))
    found = line(tmp_path, (KEY, commit_value(4)))
    assert (found["logEndOffset"], found["lag"], found["lastStableOffset"], found["lagToStable"]) == (15, 11, 15, 11)
    assert line(tmp_path, (KEY, commit_value(20)))["lag"] == -5


def test_without_the_log_there_is_no_lag(tmp_path):
    assert line(tmp_path, (KEY, commit_value(4)))["lag"] is None


def test_an_open_transaction_holds_the_last_stable_offset(tmp_path):
    orders(tmp_path, data(0, 10) + data(10, 5, producer=9) + data(15, 1))
    found = line(tmp_path, (KEY, commit_value(4)))
    assert (found["lag"], found["lastStableOffset"], found["lagToStable"]) == (12, 10, 6)


def test_a_transaction_that_a_snapshot_has_open_counts(tmp_path):
    orders(tmp_path, data(0, 10) + data(10, 5))
    entry = ProducerEntry(9, 0, 0, 3, 0, 1000, 0, 2)
    (tmp_path / "orders-0" / f"{10:020}.snapshot").write_bytes(producer_snapshot.encode([entry]))
    assert line(tmp_path, (KEY, commit_value(4)))["lastStableOffset"] == 2


def test_the_end_of_a_log_is_that_of_its_last_sound_batch(tmp_path):
    orders(tmp_path, data(0, 10) + data(10, 5)[:-1])
    assert line(tmp_path, (KEY, commit_value(4)))["logEndOffset"] == 10


def large(tmp_path, *more):
    """Batches of 1,000 bytes, more than lag always reads, then others; return the offset of the first."""
    one = data(0, size=1000)
    count = NEAR // len(one) + 10
    content = b"".join(offset.to_bytes(8, "big") + one[8:] for offset in range(count))
    more = b"".join(data(count + number, **rest) for number, rest in enumerate(more))
    orders(tmp_path, content + more)
    every = (OffsetPosition(offset, offset * len(one)) for offset in range(4, count, 4))
    (tmp_path / "orders-0" / f"{0:020}.index").write_bytes(offset_index.encode(every, 0) + bytes(800))
    return count


def test_the_index_gives_the_end_of_a_large_log(tmp_path):
    count = large(tmp_path, {"producer": 9}, {})
    with (tmp_path / "orders-0" / f"{0:020}.log").open("r+b") as log:  # far from the end nothing is read
        log.seek(1 << 20)
        log.write(bytes(100))
    found = line(tmp_path, (KEY, commit_value(4)))
    assert (found["logEndOffset"], found["lag"]) == (count + 2, count - 2)
    assert (found["lastStableOffset"], found["lagToStable"]) == (None, None)


def test_the_last_stable_offset_is_not_below_the_log_start(tmp_path):
    write(tmp_path, data(10, 5), topic="orders")
    folder = tmp_path / "orders-0"
    (folder / f"{0:020}.log").rename(folder / f"{10:020}.log")
    (folder / f"{10:020}.snapshot").write_bytes(producer_snapshot.encode([ProducerEntry(9, 0, 0, 3, 0, 1000, 0, 2)]))
    found = line(tmp_path, (KEY, commit_value(12)))
    assert (found["lastStableOffset"], found["lagToStable"]) == (10, -2)


def test_the_last_stable_offset_of_a_large_log_is_left_out_or_read(tmp_path):
    count = large(tmp_path, {}, {"producer": 9}, {})
    write(tmp_path, batches((KEY, commit_value(4))))
    groups = ConsumerGroups(GroupsWanted())
    feed(groups, tmp_path)
    for stable, expected in ((False, None), (True, count + 1)):
        ends = LogEnds(groups.partitions(), stable=stable)
        feed(ends, tmp_path, coordinators=False)
        assert ends.found["orders", 0][:2] == (count + 3, expected)
        assert bool(ends.passed_over) != stable


def test_a_snapshot_near_the_end_gives_the_last_stable_offset(tmp_path):
    count = large(tmp_path, {"producer": 9}, {})
    entry = ProducerEntry(8, 0, 0, 3, 0, 1000, 0, 2)
    (tmp_path / "orders-0" / f"{count:020}.snapshot").write_bytes(producer_snapshot.encode([entry]))
    assert line(tmp_path, (KEY, commit_value(4)))["lastStableOffset"] == 2
    (tmp_path / "orders-0" / f"{count:020}.snapshot").write_bytes(producer_snapshot.encode([]))
    assert line(tmp_path, (KEY, commit_value(4)))["lastStableOffset"] == count


def test_after_damage_the_last_stable_offset_is_not_known(tmp_path):
    content = bytearray(data(0, 10, producer=9) + data(10, 5) + data(15, 1))
    content[starts(bytes(content))[1] + 70] ^= 1
    orders(tmp_path, bytes(content))
    found = line(tmp_path, (KEY, commit_value(4)))
    assert (found["logEndOffset"], found["lastStableOffset"]) == (16, None)


def test_an_empty_segment_ends_at_its_base_offset(tmp_path):
    folder = tmp_path / "orders-0"
    folder.mkdir(parents=True)
    (folder / f"{70:020}.log").write_bytes(b"")
    assert line(tmp_path, (KEY, commit_value(4)))["lag"] == 66


def test_a_topic_that_was_created_again_has_no_lag(tmp_path):
    orders(tmp_path, data(0, 10), TOPIC_ID)
    found = line(tmp_path, (KEY, commit_value_4(4, bytes(15) + b"\7")))
    assert (found["recreated"], found["lag"], found["topicId"]) == (True, None, "AAAAAAAAAAAAAAAAAAAABw")
    same = line(tmp_path, (KEY, commit_value_4(4, TOPIC_ID)))
    assert (same["recreated"], same["lag"]) == (False, 6)


def share(tmp_path, *records):
    write(tmp_path, batches(*records), topic="__share_group_state")
    return [found for found in answer(tmp_path) if found["kind"] == "offset"]


def test_an_update_changes_the_snapshot_of_a_share_partition(tmp_path):
    orders(tmp_path, data(0, 30), TOPIC_ID)
    (found,) = share(
        tmp_path,
        (share_key(0, "s"), snapshot_value(5, 2)),
        (share_key(1, "s"), update_value(9, 4)),
        (share_key(1, "s"), update_value(-1)),
    )
    assert (found["groupId"], found["topic"], found["offset"], found["leaderEpoch"]) == ("s", "orders", 9, 3)
    assert (found["lag"], found["deliveryCompleteCount"], found["metadata"]) == (17, 4, None)


def test_a_share_partition_that_has_not_begun_or_was_deleted_has_no_line(tmp_path):
    assert share(tmp_path, (share_key(0, "s"), snapshot_value(-1))) == []
    assert share(tmp_path, (share_key(0, "s"), snapshot_value(5)), (share_key(0, "s"), None)) == []


def test_a_share_partition_of_an_unknown_topic_keeps_its_id(tmp_path):
    (found,) = share(tmp_path, (share_key(0, "s", 3), snapshot_value(5)))
    assert (found["topic"], found["topicId"], found["partition"], found["lag"]) == (
        None,
        "AAECAwQFBgcICQoLDA0ODw",
        3,
        None,
    )


def test_absent_partitions_of_the_coordinators_topic_are_noted_in_python_and_sql(tmp_path):
    path = write(tmp_path, batches((KEY, commit_value(5))), topic="__consumer_offsets", partition=1)
    note = (
        "1 of at least 2 partitions of __consumer_offsets are in these paths (absent: 0). Groups of the absent "
        "partitions are unknown: name the log dirs of these partitions too"
    )
    assert kdump.groups(path).notes == (note,)
    assert kdump.sql("from group_offsets", path).notes == (note,)
