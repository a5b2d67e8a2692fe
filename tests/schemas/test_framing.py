import pytest

from kdump.schemas.framing import frame_of

GUID = "00010203-0405-0607-0809-0a0b0c0d0e0f"


@pytest.mark.parametrize(
    ("payload", "framing", "number", "position"),
    [
        (b"\0\0\0\1\0", "prefix", 256, 5),
        (b"\0\0\0\0\7rest", "prefix", 7, 5),
        (b"\0\xff\xff\xff\xff", "prefix", -1, 5),
        (b"\xc3\x01" + bytes(8), "single-object", None, 10),
        (b"Obj\x01", "file", None, 0),
    ],
)
def test_frames(payload, framing, number, position):
    found = frame_of("value", payload, ())
    assert (found.framing, found.schema_id, found.position) == (framing, number, position)


@pytest.mark.parametrize(
    "payload", [b"", b"\0", b"\0\0\0\1", b"\1\0\0\0\1", b"\xc3\x01" + bytes(7), b"Obj\x02", b"text"]
)
def test_no_frames(payload):
    assert frame_of("value", payload, ()) is None


def test_of_the_headers_of_a_side_the_last_complete_one_counts():
    whole = b"\1" + bytes(range(16)) + b"\x02\x02"
    headers = [
        (b"__key_schema_id", b"\0\0\0\0\1"),
        (b"__key_schema_id", whole),
        (b"__key_schema_id", b"\1short"),
        (b"__key_schema_id", None),
        (b"other", b"\0\0\0\0\2"),
    ]
    found = frame_of("key", b"\0\0\0\0\1", headers)
    assert (found.framing, found.guid, found.indexes, found.position) == ("header", GUID, b"\x02\x02", 0)
    assert frame_of("value", b"\0\0\0\0\1", headers).framing == "prefix"
