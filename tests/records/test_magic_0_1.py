import gzip

import pytest

from kdump.errors import DamageError
from kdump.formats.record_layout import CREATE_TIME, LOG_APPEND_TIME
from kdump.primitives import compression
from kdump.records.magic_0_1 import Message, write_entry
from testing import forge


def opened(data: bytes) -> Message:
    return Message(memoryview(data)[12:], int.from_bytes(data[:8], "big"), 0)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize(("key", "value"), [(b"key", b"value"), (None, b""), (b"", None), (None, None)])
def test_a_message_and_its_writer(magic, key, value):
    body = forge.message(magic, key, value, timestamp=1234)
    assert write_entry(5, body) == forge.entry(5, body)
    made = opened(forge.entry(5, body))
    record = made.record()
    assert (record.offset, record.key, record.value) == (5, key, value)
    assert record.timestamp == (1234 if magic else -1)
    assert made.timestamp_type == (CREATE_TIME if magic else None)
    assert made.crc_valid
    assert bytes(made.raw) == forge.entry(5, body)
    assert (made.base_offset, made.last_offset, made.count) == (5, 5, None)


def test_relative_offsets_of_magic_1():
    inner = [(i, forge.message(1, b"%d" % i, b"v", timestamp=100 + i)) for i in range(6)]
    made = opened(forge.wrapper(1, 1030, inner, timestamp=105))
    assert [r.offset for r in made.records()] == list(range(1025, 1031))
    assert [r.timestamp for r in made.records()] == list(range(100, 106))
    assert made.base_offset == 1025


def test_log_append_time_of_a_wrapper_is_every_messages_time():
    inner = [(i, forge.message(1, None, b"v", timestamp=i)) for i in range(3)]
    made = opened(forge.wrapper(1, 12, inner, timestamp=999, attributes=9))
    assert made.timestamp_type == LOG_APPEND_TIME
    assert [(m.timestamp, m.timestamp_type) for m in made.messages()] == [(999, LOG_APPEND_TIME)] * 3


def test_absolute_offsets_of_magic_0():
    inner = [(o, forge.message(0, None, b"v")) for o in (7, 9, 10)]
    assert [r.offset for r in opened(forge.wrapper(0, 10, inner)).records()] == [7, 9, 10]


def test_a_wrapper_offset_of_zero_counts_from_zero():
    inner = [(i, forge.message(1, None, b"v", timestamp=0)) for i in range(3)]
    assert [r.offset for r in opened(forge.wrapper(1, 0, inner)).records()] == [0, 1, 2]


def test_a_cut_off_last_inner_message_ends_the_set():
    inner = forge.entry(0, forge.message(0, None, b"v")) + forge.entry(1, forge.message(0, b"", b""))[:-1]
    made = opened(forge.entry(1, forge.message(0, None, gzip.compress(inner), attributes=1)))
    assert [r.offset for r in made.records()] == [0]


def compressed(value: bytes | None, attributes: int = 1, offset: int = 0) -> bytes:
    return forge.entry(offset, forge.message(1, None, value, timestamp=0, attributes=attributes))


NESTED = forge.message(1, None, gzip.compress(b""), timestamp=0, attributes=1)
BROKEN = {
    "value size": compressed(None),
    "inner messages": compressed(gzip.compress(b"")),
    "compression": compressed(b"\x1f\x8bno gzip"),
    "message size": compressed(gzip.compress(bytes(12) + b"x")),
    "wrapper offset": compressed(gzip.compress(forge.entry(9, forge.message(1, None, b"", timestamp=0))), offset=5),
    "codec": compressed(gzip.compress(forge.entry(0, NESTED))),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_each_validation_of_wrappers_has_its_own_error(kind):
    with pytest.raises(DamageError) as caught:
        list(opened(BROKEN[kind]).records())
    assert caught.value.kind == kind


def test_zstd_has_no_place_in_magic_1():
    packed = compression.compress(compression.ZSTD, forge.entry(0, forge.message(1, None, b"", timestamp=0)))
    with pytest.raises(DamageError, match="magic 1 does not allow zstd"):
        list(opened(compressed(packed, attributes=4)).records())


@pytest.mark.parametrize("size", range(14, 22))
def test_a_message_of_magic_1_too_short_for_its_header(size):
    made = opened(forge.entry(0, forge.message(1, None, None, timestamp=5)[:size]))
    assert made.timestamp == 5
    with pytest.raises(DamageError, match="too short for its own header"):
        made.record()
    with pytest.raises(DamageError, match="ends before its"):
        assert made.value_size  # what the classic output asks for


@pytest.mark.parametrize(("field", "position"), [("key", 6), ("value", 13)])
def test_a_field_that_does_not_fit(field, position):
    body = bytearray(forge.message(0, b"key", b"value"))
    body[position : position + 4] = (100).to_bytes(4, "big")
    with pytest.raises(DamageError):
        getattr(opened(forge.entry(0, bytes(body))), field)


def test_magic_below_zero_has_no_timestamp_type():
    with pytest.raises(DamageError, match="magic -1"):
        assert opened(forge.entry(0, forge.message(-1, None, b"", timestamp=0))).timestamp_type


def test_cut_at_every_byte():
    data = forge.wrapper(1, 3, [(i, forge.message(1, b"k", b"v" * 30, timestamp=i)) for i in range(4)], timestamp=3)
    for cut in range(12, len(data)):
        with pytest.raises(DamageError):
            list(opened(data[:cut]).records())
