"""LZ4 streams with empty blocks, read as by Kafka 3.6 and later (recorded from 4.3.1 and 3.6.2)."""

from itertools import pairwise

import lz4.block
import pytest

from kdump.errors import DamageError
from kdump.formats.record_layout import LOG_OVERHEAD
from kdump.primitives import compression
from kdump.records import log_entry
from testing import forge
from testing.processes import kdump

LZ4 = 3
RECORDS = [(b"k%d" % number, b"value-%d" % number if number != 3 else b"L" * 5003) for number in range(5)]


def stream(magic, data, empty):
    """Return an LZ4 frame of ``data`` with an empty block before each position of ``empty``."""
    cuts = [0, *empty, len(data)]
    blocks = []
    for number, (start, end) in enumerate(pairwise(cuts)):
        if number:
            blocks.append(b"\1\0\0\0\0")
        if end > start:
            block = lz4.block.compress(data[start:end], store_size=False)
            blocks.append(len(block).to_bytes(4, "little") + block)
    return compression.compress(LZ4, b"", magic=magic)[:7] + b"".join(blocks) + bytes(4)


def parts(magic):
    if magic == 2:
        return [forge.record(key, value, offset=number) for number, (key, value) in enumerate(RECORDS)]
    return [forge.entry(number, forge.message(magic, key, value)) for number, (key, value) in enumerate(RECORDS)]


def segment(magic, empty):
    packed = stream(magic, b"".join(parts(magic)), empty)
    if magic == 2:
        return forge.batch(parts(magic), payload=packed, attributes=LZ4)
    return forge.entry(4, forge.message(magic, None, packed, attributes=LZ4))


def starts(magic):
    at = [0]
    for part in parts(magic):
        at.append(at[-1] + len(part))
    return at


def read(data):
    overhead = LOG_OVERHEAD.read(data)
    return log_entry.read(memoryview(data), overhead.offset, overhead.size, data[16], 0)


@pytest.mark.parametrize("empty", [(0,), (7,), (0, 0, 9), (20,)])
def test_positions_are_those_of_empty_blocks(empty):
    data = bytes(range(20))
    packed = stream(2, data, list(empty))
    assert compression.decompress_lz4(packed).empty == list(empty)
    assert compression.decompress(LZ4, packed) == data


def test_data_that_looks_like_an_empty_block_is_none():
    packed = compression.compress(LZ4, b"\1\0\0\0\0" + bytes(range(256)))
    assert b"\1\0\0\0\0" in packed
    assert compression.decompress_lz4(packed).empty == []


AT, LATE = starts(2), starts(2)[4]


@pytest.mark.parametrize("empty", [[0], [AT[1]], [AT[3]], [AT[2] + 1], [LATE - 50], [LATE - 2047], [AT[1], AT[1]]])
def test_a_batch_ends_at_an_empty_block(empty):
    with pytest.raises(DamageError, match=f"an empty block ends it at byte {empty[0]}"):
        list(read(segment(2, empty)).records())


@pytest.mark.parametrize("empty", [[AT[5]], [AT[3] + 100], [LATE - 2048], [AT[3] + 6, AT[3] + 300]])
def test_a_batch_is_read_past_empty_blocks_in_large_records(empty):
    assert [record.value for record in read(segment(2, empty)).records()] == [value for _, value in RECORDS]


@pytest.mark.parametrize(
    ("empty", "ends"),
    [
        *((at, True) for at in (0, AT[1], AT[3], AT[3] + 1, AT[5])),
        *((at, False) for at in (AT[1] + 1, AT[2] + 5, LATE - 50, LATE - 1)),
    ],
)
@pytest.mark.parametrize("release", ["2.8.2", "3.5.2"])
def test_before_3_6_a_batch_ends_where_one_byte_is_read(tmp_path, empty, ends, release):
    """At the size of a record, a varint, and after the last one (recorded from 0.11.0.3, 1.1.1 and 2.8.2)."""
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(segment(2, [empty]))
    done = kdump("--files", path, "--print-data-log", "--compat", release)
    assert (done.stdout.count(b"payload: "), done.returncode) == ((0, 1) if ends else (5, 0))
    assert (f"an empty block ends it at byte {empty}" in done.stderr.decode()) == ends


OLD = starts(1)
ENDS = {0: 0, OLD[1]: 1, OLD[3]: 3, OLD[1] + 12: 1, OLD[3] + 100: 5, OLD[4] - 2048: 5, OLD[4] - 2047: 3, OLD[5]: 5}


@pytest.mark.parametrize(("empty", "left"), ENDS.items())
@pytest.mark.parametrize("release", ["4.3.1", "3.6.2", "3.5.2", "2.8.2"])
def test_a_wrapper_ends_at_an_empty_block_since_3_6(tmp_path, empty, left, release):
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(segment(1, [empty]))
    done = kdump("--files", path, "--print-data-log", "--compat", release)
    left = left if release > "3.6" else 5
    assert done.stdout.count(b"payload: ") == left
    assert done.returncode == (0 if left else 1)
    assert len(list(read(segment(1, [empty])).records())) == 5
