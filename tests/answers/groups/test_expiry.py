"""When committed offsets expire (KIP-211)."""

import pytest

from tests.helpers.group_topics import (
    DAY,
    batches,
    commit_key,
    commit_value,
    group_key,
    group_value,
    offsets,
    subscription,
    write,
)

WEEK = 7 * DAY
KEY = commit_key("app")
GROUP = group_key("app")


def expires(tmp_path, *records, producer=()):
    content = batches(*records)
    if producer:
        content += batches(*producer, first=len(records), producer=7)
    found = offsets(write(tmp_path, content))
    return found["app", "orders", 0]["expireTimestampMs"]


def test_of_a_simple_group_counts_the_commit(tmp_path):
    assert expires(tmp_path, (KEY, commit_value(1, at=500))) == 500 + WEEK


def test_of_an_empty_group_counts_when_it_became_empty(tmp_path):
    assert expires(tmp_path, (KEY, commit_value(1, at=500)), (GROUP, group_value(since=900))) == 900 + WEEK
    assert expires(tmp_path, (KEY, commit_value(1, at=500)), (GROUP, group_value(since=-1))) == 500 + WEEK


@pytest.mark.parametrize(("topics", "expected"), [(("orders",), None), (("views",), 500 + WEEK)])
def test_a_subscribed_topic_keeps_its_offsets(tmp_path, topics, expected):
    value = group_value(("m", subscription(*topics), b""))
    assert expires(tmp_path, (KEY, commit_value(1, at=500)), (GROUP, value)) == expected


def test_members_of_other_protocols_keep_all_offsets(tmp_path):
    value = group_value(("m", b"opaque", b"opaque"), kind="connect")
    assert expires(tmp_path, (KEY, commit_value(1, at=500)), (GROUP, value)) is None


def test_an_explicit_time_counts_as_it_is(tmp_path):
    assert expires(tmp_path, (KEY, commit_value(1, at=500, expire=800))) == 800
    assert offsets(write(tmp_path, batches((KEY, commit_value(1, expire=800)))), at=800)["app", "orders", 0]["expired"]
    assert not offsets(tmp_path, at=799)["app", "orders", 0]["expired"]


def test_a_pending_commit_keeps_the_offset(tmp_path):
    content = batches((KEY, commit_value(1))) + batches((KEY, commit_value(2)), first=1, producer=7)
    lines = offsets(write(tmp_path, content)).values()
    assert [line["expireTimestampMs"] for line in lines] == [None]
