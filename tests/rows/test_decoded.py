from kdump.rows.selection import SegmentFacts
from kdump.rows.values import decoded


class Named:
    """The parts of a file, a batch and a record that the texts need."""

    def __init__(self, **fields):
        vars(self).update(fields)


def words(topic, key, value, *, is_control=False):
    found = Named(file=SegmentFacts("f", topic), batch=Named(is_control=is_control))
    return decoded(found, Named(key=key, value=value))


KEY = bytes.fromhex("0001 0001 67 0001 74 00000002")


def test_a_record_in_words():
    value = bytes.fromhex("0004 000000000000002a 00000007 01 000000000000006f 01 00 10") + bytes(range(16))
    assert words("__consumer_offsets", KEY, value) == {
        "type": 1,
        "key": {"name": "OffsetCommitKey", "version": 0, "data": {"group": "g", "topic": "t", "partition": 2}},
        "value": {
            "name": "OffsetCommitValue",
            "version": 4,
            "data": {
                "offset": 42,
                "leaderEpoch": 7,
                "metadata": "",
                "commitTimestamp": 111,
                "topicId": "AAECAwQFBgcICQoLDA0ODw",
            },
        },
    }


def test_a_tombstone_has_no_value():
    assert words("__consumer_offsets", KEY, None)["value"] is None


def test_bytes_left_over_are_reported_beside_what_was_read():
    value = words("__consumer_offsets", KEY, bytes.fromhex("0000 000000000000002a 0000 000000000000006f 05"))["value"]
    assert value["data"]["offset"] == 42
    assert value["reason"] == "bytes are left over after OffsetCommitValue v0: 1"


def test_what_cannot_be_read_has_its_name_as_far_as_it_is_known_and_the_reason():
    assert words("__consumer_offsets", KEY, b"\0\x09")["value"] == {
        "name": "OffsetCommitValue",
        "version": 9,
        "reason": "version 9 of OffsetCommitValue is unknown",
    }
    assert words("__cluster_metadata", None, b"\7")["value"] == {"reason": "frame version 7 is unknown"}


def test_topics_of_users_and_control_records_have_no_words():
    assert words("orders", b"k", b"v") is None
    assert words(None, b"k", b"v") is None
    assert words("__consumer_offsets", KEY, b"", is_control=True) is None
