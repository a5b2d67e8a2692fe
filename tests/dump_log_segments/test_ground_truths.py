"""Sizes, checksums and lines of the real tool, each rebuilt from its parts."""

import pytest

from kdump.formats import record_layout
from kdump.records import magic_0_1, magic_2
from testing import forge
from testing.processes import dump


def test_magic_0(tmp_path):
    first = forge.entry(0, forge.message(0, b"key", b"value"))
    second = forge.entry(1, forge.message(0, None, b"value"))
    assert len(first) == 34
    assert len(first + second) == 65
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(first)
    out = dump("--compat", "0.8.2.1", "--files", path)
    assert out.endswith(
        b"\noffset: 0 position: 0 isvalid: true payloadsize: 5 magic: 0 compresscodec: NoCompressionCodec "
        b"crc: 592888119 keysize: 3\n"
    )


def test_ten_small_messages():
    values = [b"value%d" % i for i in range(10)]
    assert len(forge.entry(0, forge.message(1, b"key", b"value"))) == 42
    assert sum(len(forge.entry(0, forge.message(0, None, v))) for v in values) == 320
    assert sum(len(forge.entry(0, forge.message(1, None, v))) for v in values) == 400
    records = [magic_2.write_record(timestamp_delta=0, offset_delta=i, key=None, value=v) for i, v in enumerate(values)]
    assert len(forge.batch(records)) == 191
    alone = magic_2.write_record(timestamp_delta=0, offset_delta=0, key=None, value=b"value0")
    assert len(forge.batch([alone])) * 10 == 740


def test_magic_2(tmp_path):
    stamp = 1524709879130
    first = forge.batch([forge.record(b"key", b"value")], base_timestamp=stamp)
    second = forge.batch([forge.record(None, b"value")], base_offset=1, base_timestamp=stamp)
    deltas = [0, 22, 22, 22, 22, 22, 23, 23, 23, 23]
    records = [forge.record(None, b"value%d" % i, offset=i, timestamp=delta) for i, delta in enumerate(deltas)]
    third = forge.batch(records, base_offset=2, base_timestamp=1524712213748, max_timestamp=1524712213771)
    assert [len(made) for made in (first, second, third)] == [76, 73, 191]
    assert [record_layout.BATCH_HEADER.read(made).crc for made in (first, third)] == [2857248333, 820363253]
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(first + second + third)
    last = dump("--compat", "1.0.0", "--files", path).splitlines()[-1]
    assert last.startswith(b"baseOffset: 2 lastOffset: 11 ")
    assert last.endswith(
        b" position: 149 CreateTime: 1524712213771 isvalid: true size: 191 magic: 2 compresscodec: NONE crc: 820363253"
    )


def test_offsets_from_291173(tmp_path):
    path = tmp_path / "00000000000000291173.log"
    keys = [b"1", b"3", b"5", b"7", b"9", b"11"]
    path.write_bytes(
        b"".join(magic_0_1.write_entry(291173 + i, forge.message(0, k, b"Message_" + k)) for i, k in enumerate(keys))
    )
    out = dump("--compat", "0.8.2.1", "--files", path, "--print-data-log")
    assert out.endswith(
        b"\noffset: 291178 position: 180 isvalid: true payloadsize: 10 magic: 0 compresscodec: NoCompressionCodec "
        b"crc: 576249152 keysize: 2 key: 11 payload: Message_11\n"
    )


def test_a_large_value():
    record = magic_2.write_record(timestamp_delta=0, offset_delta=0, key=None, value=bytes(16384))
    assert len(forge.batch([record])) == 16456


@pytest.mark.parametrize("size", range(14, 22))
def test_a_message_of_magic_1_without_room_for_its_header(tmp_path, size):
    path = tmp_path / "00000000000000000000.log"
    covered = forge.message(1, None, None, timestamp=5)[4:size]
    path.write_bytes(forge.entry(0, forge.crc32(covered).to_bytes(4, "big") + covered))
    assert dump("--files", path).endswith(b"isvalid: true\n")
    assert dump("--files", path, "--deep-iteration", status=1).endswith(b"isvalid: true\n")
