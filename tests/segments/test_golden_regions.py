"""Facts about every segment from a real broker, truncated in every way."""

import bisect
import functools
import random

import pytest

from kdump.formats import record_layout
from kdump.primitives import compression
from kdump.records import magic_0_1, magic_2
from kdump.records.record_batch import RecordBatch
from kdump.segments import resync, walk
from testing import GOLDEN, forge
from tests.helpers.segments import Memory, regions

SEGMENTS = sorted(path for path in GOLDEN.rglob("*") if path.suffix in {".log", ".checkpoint"} and path.is_file())
SMALL = 8 << 10
POSITIONS = 500
BEFORE = 3
"""Number of whole regions before the truncated one: more take time without changing how it is read."""


def name(path):
    return str(path.relative_to(GOLDEN))


def cuts(data: bytes) -> list[int]:
    """Return all positions of a small file; of a larger one those of batches and header fields +-1, and seeded ones."""
    if len(data) <= SMALL:
        return list(range(len(data)))
    found = set(random.Random(len(data)).sample(range(len(data)), min(POSITIONS, len(data))))
    edges = {0, 12, *record_layout.BATCH_HEADER.offsets.values(), record_layout.BATCH_HEADER.size}
    for region in walk.walk(Memory(data)):
        found |= {region.position + edge + around for edge in edges for around in (-1, 0, 1)}
    return sorted(cut for cut in found if 0 <= cut < len(data))


def test_there_are_segments_of_every_kind():
    found = set()
    for path in SEGMENTS:
        for region in walk.walk(Memory(path.read_bytes())):
            if isinstance(region, RecordBatch) and region.magic in (0, 1, 2) and (region.attributes & 7) < 5:
                found.add((region.magic, region.codec))
    assert found >= {(magic, codec) for magic in (0, 1, 2) for codec in range(4)} | {(2, compression.ZSTD)}


@pytest.mark.parametrize("path", SEGMENTS, ids=name)
def test_every_byte_belongs_to_one_piece_wherever_it_is_cut(path):
    cut_everywhere(path.read_bytes())


@functools.cache  # replicas and copies are the same bytes
def cut_everywhere(data: bytes) -> None:
    whole = regions(data, resync.read)
    regions(data, walk.walk)
    regions(data + b"garbage behind the last batch", resync.read)
    batches = [region for region in whole if isinstance(region, RecordBatch)]
    begins, ends = [batch.position for batch in batches], [batch.end for batch in batches]
    starts = [region.position for region in whole]
    for cut in cuts(data):
        # the file as it is for the first cut of each region, and for others the regions next to the cut
        first = 0 if cut in starts else starts[max(0, bisect.bisect(starts, cut) - 1 - BEFORE)]
        found = regions(data[first:cut], resync.read)
        held = bisect.bisect(ends, cut) - bisect.bisect_left(begins, first)
        assert sum(isinstance(region, RecordBatch) for region in found) == held


def rewritten(region: RecordBatch) -> bytes:
    """Return the batch, decoded to values and encoded again (compressed payloads are compared decompressed)."""
    if isinstance(region, magic_0_1.Message):
        region = magic_0_1.Message(region.raw[12:], region.offset, 0)  # apart from its wrapper: its own timestamp
        body = forge.message(
            region.magic, region.key, region.value, timestamp=region.timestamp, attributes=region.attributes
        )
        return magic_0_1.write_entry(region.offset, body)
    records = b"".join(
        magic_2.write_record(
            timestamp_delta=timestamp_delta(region, record),
            offset_delta=record.offset - region.base_offset,
            key=record.key,
            value=record.value,
            headers=record.headers,
            attributes=record.attributes,
        )
        for record in region.records()
    )
    if region.codec == compression.NONE:
        return magic_2.write_batch(region.header, records)
    payload, start = region.payload()
    assert bytes(payload[start:]) == records
    return magic_2.write_batch(region.header, bytes(region.raw[record_layout.BATCH_HEADER.size :]))


def timestamp_delta(region: magic_2.Batch, record) -> int:
    """Under LogAppendTime the record's own delta is not in its timestamp, so it is read from the bytes."""
    if region.timestamp_type == 0:
        return record.timestamp - region.base_timestamp
    plain = magic_2.Batch(memoryview(magic_2.write_batch(
        region.header._replace(attributes=region.attributes & ~(record_layout.TIMESTAMP_TYPE_FLAG |
        record_layout.CODEC_MASK)), bytes(region.payload()[0][region.payload()[1]:]),
    )), 0, record_layout.BATCH_HEADER.size + len(region.payload()[0]) - region.payload()[1])  # fmt: skip
    own = next(other for other in plain.records() if other.offset == record.offset)
    return own.timestamp - region.base_timestamp


@pytest.mark.parametrize("path", [path for path in SEGMENTS if "brokers" in path.parts], ids=name)
def test_what_brokers_wrote_is_written_again_to_the_byte(path):
    for region in resync.read(Memory(path.read_bytes())):
        if isinstance(region, RecordBatch):
            assert rewritten(region) == bytes(region.raw)
            if isinstance(region, magic_0_1.Message) and region.codec != compression.NONE:
                data = region.unpacked(region.codec)
                inner = (magic_0_1.Message(data[start:end], offset, 0) for offset, start, end in magic_0_1.frames(data))
                assert b"".join(map(rewritten, inner)) == data
