import pytest

from kdump.errors import DamageError, LimitError
from kdump.formats.record import Header
from kdump.formats.record_layout import CREATE_TIME, LOG_APPEND_TIME
from kdump.primitives import compression
from kdump.records import magic_2
from testing import forge

BIG = 0x7FFFFFFF


def opened(data: bytes) -> magic_2.Batch:
    return magic_2.Batch(memoryview(data), 0, len(data))


def test_every_field_of_the_header():
    records = [forge.record(b"k", b"v"), forge.record(None, None, offset=1, timestamp=5)]
    made = opened(
        forge.batch(
            records,
            base_offset=100,
            base_timestamp=1000,
            max_timestamp=1005,
            attributes=0x10,
            leader_epoch=7,
            producer_id=9,
            producer_epoch=3,
            base_sequence=40,
        )
    )
    assert (made.base_offset, made.last_offset, made.count, made.magic) == (100, 101, 2, 2)
    assert (made.partition_leader_epoch, made.producer_id, made.producer_epoch) == (7, 9, 3)
    assert (made.base_sequence, made.last_sequence) == (40, 41)
    assert (made.base_timestamp, made.max_timestamp, made.timestamp_type) == (1000, 1005, CREATE_TIME)
    assert (made.is_transactional, made.is_control, made.delete_horizon_ms, made.codec) == (True, False, None, 0)
    assert made.crc_valid
    first, second = made.records()
    assert (first.offset, first.timestamp, first.key, first.value, first.sequence) == (100, 1000, b"k", b"v", 40)
    assert (second.offset, second.timestamp, second.key, second.value, second.sequence) == (101, 1005, None, None, 41)
    assert (second.key_size, second.value_size) == (-1, -1)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        (0x08, (LOG_APPEND_TIME, False, False, None)),
        (0x10, (CREATE_TIME, True, False, None)),
        (0x20, (CREATE_TIME, False, True, None)),
        (0x40, (CREATE_TIME, False, False, 77)),
    ],
)
def test_each_attribute_bit(attributes, expected):
    made = opened(forge.batch([forge.record(b"k", b"v")], attributes=attributes, base_timestamp=77))
    assert (made.timestamp_type, made.is_transactional, made.is_control, made.delete_horizon_ms) == expected


def test_log_append_time_is_every_records_time():
    made = opened(forge.batch([forge.record(b"", b"", timestamp=9)], attributes=8, base_timestamp=5, max_timestamp=50))
    assert next(made.records()).timestamp == 50


def test_headers_keep_order_duplicates_nulls_and_empties():
    headers = [(b"a", b"1"), (b"", b""), (b"a", None), ("ü".encode(), b"\xff")]
    made = opened(forge.batch([forge.record(b"", b"", headers=headers)]))
    record = next(made.records())
    assert record.headers == tuple(Header(*header) for header in headers)
    assert (record.key, record.value) == (b"", b"")


@pytest.mark.parametrize("codec", range(5))
def test_codecs(codec):
    plain = b"".join(forge.record(b"k", b"v" * 99, offset=i) for i in range(20))
    packed = compression.compress(codec, plain)
    made = opened(forge.batch([], payload=packed, count=20, attributes=codec))
    assert [record.offset for record in made.records()] == list(range(20))


def test_any_negative_size_is_null():
    body = bytes([0]) + forge.varint(0) * 2 + forge.varint(-7) + forge.varint(-3) + forge.varint(0)
    record = next(opened(forge.batch([forge.varint(len(body)) + body])).records())
    assert (record.key, record.value, record.key_size, record.value_size) == (None, None, -1, -1)


def bad(body: bytes) -> bytes:
    return forge.batch([forge.varint(len(body)) + body])


START = bytes([0]) + forge.varint(0) * 2
NULLS = forge.sized(None) * 2

BROKEN = {
    "record size": [
        forge.batch([forge.varint(50) + b"abc"]),
        forge.batch([forge.varint(-5)]),
        forge.batch([forge.varint(0)]),
        bad(START + NULLS + forge.varint(0) + b"left over"),
    ],
    "key size": [bad(START + forge.varint(100) + b"short")],
    "value size": [bad(START + forge.sized(b"k") + forge.varint(100))],
    "header count": [bad(START + NULLS + forge.varint(-1)), bad(START + NULLS + forge.varint(BIG))],
    "header key size": [bad(START + NULLS + forge.varint(1) + forge.varint(-1) + forge.sized(None))],
    "header value size": [bad(START + NULLS + forge.varint(1) + forge.sized(b"h") + forge.varint(99))],
    "varint": [bad(START + b"\xff" * 6), forge.batch([b"\xff" * 9])],
    "record count": [
        forge.batch([forge.record(b"k", b"v")], count=-1),
        forge.batch([forge.record(b"k", b"v")] * 2, count=1),
    ],
    "batch size": [forge.batch([])],
}


@pytest.mark.parametrize(("kind", "data"), [(kind, data) for kind, many in BROKEN.items() for data in many])
def test_each_validation_of_kafkas_reader_has_its_own_error(kind, data):
    made = magic_2.Batch(memoryview(data), 0, 60 if kind == "batch size" else len(data))
    with pytest.raises(DamageError) as caught:
        list(made.records())
    assert caught.value.kind == kind
    assert 0 <= caught.value.position <= len(data)


def test_records_before_the_bad_one_are_read_unless_compressed():
    payload = forge.record(b"good", b"") + forge.varint(50) + b"abc"
    reader = opened(forge.batch([], payload=payload, count=2)).records()
    assert next(reader).key == b"good"
    with pytest.raises(DamageError, match="record 2 of 2"):
        next(reader)
    with pytest.raises(DamageError):
        opened(forge.batch([], payload=compression.compress(1, payload), count=2, attributes=1)).records()


def test_a_count_of_zero_has_no_records_whatever_follows():
    assert list(opened(forge.batch([], payload=b"garbage", count=0, attributes=1)).records()) == []


@pytest.mark.parametrize(
    ("base", "delta", "last"), [(0, 0, 0), (BIG, 1, 0), (BIG - 1, 3, 1), (5, -7, BIG - 1), (-1, 9, -1), (-3, 1, -2)]
)
def test_sequences_wrap_after_the_greatest(base, delta, last):
    made = opened(forge.batch([], base_sequence=base, last_offset_delta=delta))
    assert made.last_sequence == last


def test_written_as_read():
    headers = [(b"h", None), (b"", b"x")]
    record = magic_2.write_record(timestamp_delta=300, offset_delta=2, key=None, value=b"v" * 200, headers=headers)
    assert record == forge.record(None, b"v" * 200, offset=2, timestamp=300, headers=headers)
    data = forge.batch([record], base_offset=9, base_timestamp=5, producer_id=4, producer_epoch=0, base_sequence=1)
    assert magic_2.write_batch(opened(data).header, record) == data


def test_cut_at_every_byte():
    data = forge.batch([forge.record(b"key", b"value", headers=[(b"h", b"v")]), forge.record(b"k", b"v", offset=1)])
    for cut in range(len(data)):
        with pytest.raises(DamageError):
            list(opened(data[:cut]).records())
    assert len(list(magic_2.Batch(memoryview(data + b"garbage"), 0, len(data)).records())) == 2


@pytest.mark.parametrize(
    "codec",
    [compression.GZIP, compression.SNAPPY, compression.LZ4, compression.ZSTD],
    ids=compression.NAMES.__getitem__,
)
def test_a_batch_that_unpacks_to_much_is_left_to_its_reader(codec):
    record = forge.record(b"k", bytes(magic_2.AHEAD))
    data = forge.batch([record], attributes=codec, payload=compression.compress(codec, record))
    large = magic_2.Batch(memoryview(data), 0, len(data))
    with pytest.raises(LimitError):
        large.unpack()
    assert large.unpacked_size == 0
    assert len(large.payload()[0]) == len(record)
    assert large.unpack(1 << 25) == len(record)
    with pytest.raises(LimitError):
        magic_2.Batch(memoryview(data), 0, len(data), 1 << 20).unpack(1 << 25)
