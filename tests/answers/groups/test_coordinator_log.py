"""The replay of ``__consumer_offsets``: which offset is valid, which are pending, and which groups exist."""

import random

import pytest

from kdump.answers.groups.collector import GroupsWanted
from kdump.answers.groups.coordinator_log import is_commit
from kdump.internal_topics.consumer_offsets import TOPIC
from kdump.internal_topics.decode import decode
from testing import forge
from testing.damages import damage
from tests.helpers.group_topics import (
    answer,
    batches,
    commit_key,
    commit_value,
    group_key,
    group_value,
    offsets,
    write,
)
from tests.helpers.segments import ABORT, COMMIT, marker, starts

KEY = commit_key("app")


def of(tmp_path, content, **rest):
    found = offsets(write(tmp_path, content), **rest)
    return {key: line["offset"] for key, line in found.items()}


def groups(tmp_path, content, **rest):
    return {line["groupId"]: line for line in answer(write(tmp_path, content), **rest) if line["kind"] == "group"}


def test_the_last_commit_counts_and_a_tombstone_deletes(tmp_path):
    records = [(KEY, commit_value(5)), (commit_key("app", "views", 3), commit_value(1)), (KEY, commit_value(7))]
    assert of(tmp_path, batches(*records)) == {("app", "orders", 0): 7, ("app", "views", 3): 1}
    assert of(tmp_path, batches(*records, (KEY, None))) == {("app", "views", 3): 1}


def test_both_types_of_a_commit_key_name_the_same_offset(tmp_path):
    old = b"\0\0" + KEY[2:]
    assert of(tmp_path, batches((old, commit_value(5)), (KEY, commit_value(7)))) == {("app", "orders", 0): 7}


def test_a_transactional_commit_is_pending_until_its_marker(tmp_path):
    begun = batches((KEY, commit_value(5))) + batches((KEY, commit_value(9)), first=1, producer=42)
    lines = [line for line in answer(write(tmp_path, begun)) if line["kind"] == "offset"]
    assert [(line["offset"], line["pendingProducerId"]) for line in lines] == [(5, None), (9, 42)]
    assert of(tmp_path, begun + marker(2, 42, COMMIT)) == {("app", "orders", 0): 9}
    assert of(tmp_path, begun + marker(2, 42, ABORT)) == {("app", "orders", 0): 5}


@pytest.mark.parametrize("count", [1, 2])
def test_a_commit_with_a_producer_id_is_pending(tmp_path, count):
    """OffsetMetadataManager.replay asks for the producer id only (4.4.0)."""
    record = forge.record(KEY, commit_value(5))
    content = b"".join(forge.batch([record], base_offset=n, producer_id=9, producer_epoch=0) for n in range(count))
    lines = [line for line in answer(write(tmp_path, content)) if line["kind"] == "offset"]
    assert [line["pendingProducerId"] for line in lines] == [9]


def test_a_marker_does_not_publish_over_a_later_commit(tmp_path):
    content = batches((KEY, commit_value(9)), producer=42) + batches((KEY, commit_value(3)), first=1)
    assert of(tmp_path, content + marker(2, 42, COMMIT)) == {("app", "orders", 0): 3}


def test_a_tombstone_removes_pending_commits(tmp_path):
    content = batches((KEY, commit_value(9)), producer=42) + batches((KEY, None), first=1)
    assert of(tmp_path, content + marker(2, 42, COMMIT)) == {}


def test_a_group_that_is_gone_comes_back_with_the_marker(tmp_path):
    content = batches((KEY, commit_value(9)), producer=42) + batches((group_key("app"), None), first=1)
    assert groups(tmp_path, content)["app"]["isSimple"] is True
    assert of(tmp_path, content + marker(2, 42, COMMIT)) == {("app", "orders", 0): 9}


def test_a_marker_whose_record_was_cleaned_away_changes_nothing(tmp_path):
    empty = forge.batch([], base_offset=1, producer_id=42, producer_epoch=0, attributes=0x30, last_offset_delta=0)
    found = answer(write(tmp_path, batches((KEY, commit_value(9)), producer=42) + empty))
    assert [line["pendingProducerId"] for line in found if line["kind"] == "offset"] == [42]


def test_commits_make_a_simple_group_that_outlives_them(tmp_path):
    line = groups(tmp_path, batches((KEY, commit_value(5)), (KEY, None)))["app"]
    assert (line["type"], line["state"], line["isSimple"], line["coordinatorPartition"]) == (
        "Classic",
        "Empty",
        True,
        0,
    )
    assert groups(tmp_path, batches((KEY, commit_value(5)), (KEY, None), (group_key("app"), None))) == {}


def test_a_commit_after_the_end_of_a_group_makes_a_simple_one(tmp_path):
    ended = (KEY, commit_value(5)), (group_key("app"), group_value()), (group_key("app"), None)
    line = groups(tmp_path, batches(*ended, (KEY, commit_value(6)), (KEY, None)))["app"]
    assert (line["state"], line["isSimple"]) == ("Empty", True)
    assert groups(tmp_path, batches(*ended, (KEY, None))) == {}


def test_a_group_record_ends_the_simple_group(tmp_path):
    content = batches((KEY, commit_value(5)), (group_key("app"), group_value()))
    line = groups(tmp_path, content)["app"]
    assert (line["state"], line["isSimple"], line["protocolType"]) == ("Empty", False, "consumer")
    assert groups(tmp_path, content + batches((group_key("app"), None), (KEY, None), first=2)) == {}


def test_what_ends_a_key_is_judged_as_the_schema_does():
    whole = commit_key("app", "views", 3)
    for key in [whole[:end] for end in range(len(whole) + 1)] + [whole + b"?", commit_key("app", "")]:
        assert is_commit(key) == (not decode(TOPIC, key, None).key.reason), key


def test_keys_that_cannot_be_read_are_counted(tmp_path):
    content = batches(
        (b"\0\1\0\xffapp", commit_value(1)),
        (b"\0\x63\0\3app", b"?"),
        (b"\0\x63\0\3new", b"?"),
        (b"\0", b"?"),
        (None, b"?"),
    )
    found = answer(write(tmp_path, content + batches((KEY, commit_value(5)), first=5)))
    unread = {line["reason"]: (line["firstOffset"], line["records"]) for line in found if line["kind"] == "unread"}
    assert unread["record type 99 is unknown"] == (1, 2)
    assert sorted(unread.values()) == [(0, 1), (1, 2), (3, 1), (4, 1)]
    assert [line["offset"] for line in found if line["kind"] == "offset"] == [5]


def test_a_value_that_cannot_be_read_is_shown_as_it_is(tmp_path):
    (line,) = offsets(write(tmp_path, batches((KEY, b"\0\x63abc")))).values()
    assert (line["offset"], line["lag"], line["expired"], line["raw"]) == (None, None, False, "AGNhYmM=")
    assert line["problem"] == "version 99 of OffsetCommitValue is unknown"


@pytest.mark.parametrize("history", [False, True])
def test_a_log_that_is_cut_or_damaged_gives_what_is_sound(tmp_path, history):
    content = batches(
        (KEY, commit_value(5)),
        (group_key("app"), group_value()),
        (commit_key("b"), commit_value(1)),
        (KEY, commit_value(7)),
    )
    content += batches((KEY, commit_value(8)), first=4, producer=42) + marker(5, 42, COMMIT)
    wanted = GroupsWanted(history=history)
    for end in range(0, len(content), 7):
        answer(write(tmp_path, content[:end]), wanted)
    rng = random.Random(21)
    for _ in range(60):
        broken = bytearray(content)
        damage(broken, rng, starts(content))
        answer(write(tmp_path, bytes(broken)), wanted)


def test_a_group_is_chosen_by_its_id_or_by_a_glob(tmp_path):
    write(tmp_path, batches(*((commit_key(name), commit_value(5)) for name in ("a[1]", "a1", "b1"))))
    for wanted, expected in (("a[1]", {"a[1]", "a1"}), ("b*", {"b1"}), ("a", set())):
        assert {line["groupId"] for line in answer(tmp_path, GroupsWanted((wanted,)))} == expected


def test_what_is_lost_is_said(tmp_path):
    content = bytearray(batches((KEY, commit_value(5)), (KEY, commit_value(6)), (KEY, commit_value(7))))
    second = starts(bytes(content))[1]
    content[second + 70] ^= 1
    (lost,) = [line for line in answer(write(tmp_path, bytes(content))) if line["kind"] == "missing"]
    assert (lost["topic"], lost["partition"]) == ("__consumer_offsets", 0)
    assert (lost["fromOffset"], lost["untilOffset"]) == (1, 2)


def test_of_two_replicas_the_longer_one_counts(tmp_path):
    write(tmp_path / "a", batches((KEY, commit_value(5)), (KEY, commit_value(6))))
    write(tmp_path / "b", batches((KEY, commit_value(5))))
    assert of(tmp_path / "a", batches((KEY, commit_value(5)), (KEY, commit_value(6)))) == {("app", "orders", 0): 6}
    (line,) = offsets(tmp_path).values()
    assert line["offset"] == 6


def test_of_two_replicas_the_one_with_the_newest_epoch_counts(tmp_path):
    """KIP-101: the other one truncates its longer tail when it follows the leader."""
    old = [forge.batch([forge.record(KEY, commit_value(n))], base_offset=n, leader_epoch=3) for n in range(5)]
    new = forge.batch([forge.record(KEY, commit_value(60))], base_offset=2, leader_epoch=5)
    newest = write(tmp_path / "b", b"".join(old[:2]) + new)
    write(tmp_path / "a", b"".join(old))
    write(tmp_path / "c", b"".join(old))
    assert [line["offset"] for line in offsets(tmp_path).values()] == [60]
    write(newest, b"".join(old[:2]))
    (newest / "__consumer_offsets-0" / "leader-epoch-checkpoint").write_text("0\n2\n3 0\n5 2\n")
    assert [line["offset"] for line in offsets(tmp_path).values()] == [1]


def test_history_marks_rewinds_and_outcomes(tmp_path):
    content = batches((KEY, commit_value(5)), (KEY, commit_value(3)), (KEY, None), (KEY, commit_value(1)))
    content += batches((KEY, commit_value(9)), first=4, producer=42) + marker(5, 42, ABORT)
    content += batches((KEY, commit_value(4)), (commit_key("other"), commit_value(4)), first=6)
    found = answer(write(tmp_path, content), GroupsWanted(("a*",), history=True))
    commits = [line for line in found if line["kind"] == "commit"]
    assert [(one["at"]["offset"], one["offset"], one["rewind"], one["outcome"]) for one in commits] == [
        (0, 5, False, "committed"),
        (1, 3, True, "committed"),
        (2, None, False, "committed"),
        (3, 1, False, "committed"),
        (4, 9, False, "aborted"),
        (6, 4, False, "committed"),
    ]
    assert [one["tombstone"] for one in commits] == [False, False, True, False, False, False]
    assert [one["timestampMs"] for one in commits][:2] == [1000, 1001]
