import pytest

from kdump.schemas.own_layouts import mirrored

TEXT = b"\0\1a"


@pytest.mark.parametrize(
    ("topic", "side", "payload", "fields"),
    [
        ("src.checkpoints.internal", "key", TEXT + TEXT + bytes(4), {"group": "a", "topic": "a", "partition": 0}),
        (
            "src.checkpoints.internal",
            "value",
            bytes(2) + bytes(7) + b"\x01" + bytes(7) + b"\x02" + TEXT,
            {"upstreamOffset": 1, "offset": 2, "metadata": "a"},
        ),
        ("heartbeats", "key", TEXT * 2, {"sourceClusterAlias": "a", "targetClusterAlias": "a"}),
        ("src.heartbeats", "value", bytes(9) + b"\x07", {"timestamp": 7}),
        ("mm2-offset-syncs.dst.internal", "key", TEXT + bytes(4), {"topic": "a", "partition": 0}),
        ("mm2-offset-syncs.dst.internal", "value", bytes(16), {"upstreamOffset": 0, "offset": 0}),
    ],
)
def test_records(topic, side, payload, fields):
    assert mirrored(topic, side, payload) == fields
    for end in range(len(payload)):
        assert mirrored(topic, side, payload[:end]) is None
    assert mirrored(topic, side, payload + b"\0") is None
    assert mirrored("orders", side, payload) is None


def test_an_unknown_version_and_broken_text_are_no_records():
    assert mirrored("heartbeats", "value", b"\0\1" + bytes(8)) is None
    assert mirrored("heartbeats", "key", b"\0\1\xff\0\1a") is None
    assert mirrored("heartbeats", "key", b"\xff\xff\0\1a") is None
