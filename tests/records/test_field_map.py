"""The fields of a batch: every byte has a name, at its reported position."""

import gzip
import tracemalloc

import pytest

from kdump.errors import DamageError
from kdump.primitives import compression
from kdump.records import field_map
from kdump.records.magic_0_1 import Message
from kdump.records.magic_2 import Batch
from kdump.records.record_batch import RecordBatch
from kdump.segments import resync, walk
from testing import GOLDEN, forge
from tests.helpers.segments import Memory

SEGMENTS = sorted(
    path
    for path in (GOLDEN / "brokers").rglob("00000000000000000000.log")
    if path.parent.name in {"mixed-0", "fmtmix-0", "txn-0", "headers-0", "nulls-0", "librdkafka-snappy-0"}
)


def batches(data):
    return [region for region in resync.read(Memory(data)) if isinstance(region, RecordBatch)]


@pytest.mark.parametrize("path", SEGMENTS, ids=lambda path: f"{path.parent.parent.name}/{path.parent.name}")
def test_every_byte_has_a_name_and_a_place(path):
    data = path.read_bytes()
    for batch in batches(data):
        parts = list(field_map.parts(batch))
        stored = [part for part in parts if not part.unpacked]
        for part in stored:
            assert data[part.position : part.position + len(part.data)] == part.data
        unpacked = b"".join(part.data for part in parts if part.unpacked)
        if batch.codec == compression.NONE:
            assert b"".join(part.data for part in stored) == bytes(batch.raw)
        elif isinstance(batch, Message):
            assert unpacked == compression.decompress(batch.codec, batch.value, magic=batch.magic)
        else:
            assert unpacked == bytes(batch.payload()[0])


def test_one_record_of_a_batch():
    records = [forge.record(b"a", None), forge.record(b"b", b"vv", offset=1, timestamp=7, headers=[(b"h", None)])]
    (batch,) = batches(forge.batch(records, base_offset=40, base_timestamp=1000))
    reported = {part.name: part.value for part in field_map.parts(batch, 41)}
    assert (reported["baseOffset"], reported["recordsCount"], reported["key"]) == ("40", "2", "1 bytes")
    assert reported["timestampDelta"] == "7: 1007 (1970-01-01T00:00:01.007Z)"
    assert reported["offsetDelta"] == "1: offset 41"
    assert reported["headerValueLength"] == "-1: null"
    assert reported["crc"].endswith("(right)")


def test_flags_and_markers():
    marker = forge.record(b"\0\0\0\1", b"\0\0\0\0\0\7")
    (batch,) = batches(forge.batch([marker], attributes=0x30, producer_id=1))
    reported = {part.name: part.value for part in field_map.parts(batch)}
    assert reported["attributes"] == "0"
    assert reported["key"] == "version 0, type 1 (COMMIT)"
    assert reported["value"] == "version 0, coordinatorEpoch 7"
    assert "48 (none, transactional, control)" in [part.value for part in field_map.parts(batch)]


def test_a_broken_record_ends_the_batch_after_the_records_before_it():
    (batch,) = batches(forge.batch([forge.record(b"a", b"b"), b"\x7f"]))
    seen = []
    with pytest.raises(DamageError):
        seen.extend(iter_into(seen, field_map.parts(batch)))
    assert [part.name for part in seen][-3:] == ["value", "headersCount", "unread"]
    assert seen[-1].data == b"\x7f"


def test_what_cannot_be_unpacked_is_one_part():
    (batch,) = batches(forge.batch([b"no gzip"], attributes=1))
    seen = []
    with pytest.raises(DamageError):
        seen.extend(iter_into(seen, field_map.parts(batch)))
    assert b"".join(part.data for part in seen) == bytes(batch.raw)
    assert seen[-1].value == "7 bytes that cannot be decompressed"


def iter_into(seen, parts):
    for part in parts:
        seen.append(part)
    return []


def test_a_wrong_crc_says_what_the_bytes_have():
    data = forge.batch([forge.record(b"a", b"b")], crc=5)
    batch = next(region for region in walk.walk(Memory(data)) if isinstance(region, RecordBatch))
    assert any("5 (WRONG" in part.value for part in field_map.parts(batch))


def test_a_large_value_is_not_copied_for_its_bytes():
    """The fields of a record are views of the decompressed batch."""
    size = 8 << 20
    record = forge.record(b"k", bytes(size))
    data = forge.batch([record], attributes=1, payload=gzip.compress(record, 1, mtime=0))
    batch = Batch(memoryview(data), 0, len(data), 2 * size)
    tracemalloc.start()
    try:
        (value,) = [part for part in field_map.parts(batch) if part.name == "value"]
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert value.data == bytes(size)
    assert held < 1.2 * size
