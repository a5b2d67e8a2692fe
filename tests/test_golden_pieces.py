"""What holds for every segment that a real broker wrote, and for every way of cutting it."""

import random

import pytest

from kdump import codecs, segment
from kdump.formats import batch, message
from kdump.pieces import RecordBatch
from tests.segments import Memory, pieces
from tests.support import GOLDEN

SEGMENTS = sorted(path for path in GOLDEN.rglob("*") if path.suffix in {".log", ".checkpoint"} and path.is_file())
SMALL = 8 << 10
POSITIONS = 500


def name(path):
    return str(path.relative_to(GOLDEN))


def cuts(data: bytes) -> list[int]:
    """Every byte of a small file; of a larger one each batch's start and header fields +-1, and seeded positions."""
    if len(data) <= SMALL:
        return list(range(len(data)))
    found = set(random.Random(len(data)).sample(range(len(data)), min(POSITIONS, len(data))))
    edges = {0, 12, *batch.HEADER.offsets.values(), batch.HEADER.size}
    for piece in segment.walk(Memory(data)):
        found |= {piece.position + edge + around for edge in edges for around in (-1, 0, 1)}
    return sorted(cut for cut in found if 0 <= cut < len(data))


def test_there_are_segments_of_every_kind():
    found = set()
    for path in SEGMENTS:
        for piece in segment.walk(Memory(path.read_bytes())):
            if isinstance(piece, RecordBatch) and piece.magic in (0, 1, 2) and (piece.attributes & 7) < 5:
                found.add((piece.magic, piece.codec))
    assert found >= {(magic, codec) for magic in (0, 1, 2) for codec in range(4)} | {(2, codecs.ZSTD)}


@pytest.mark.parametrize("path", SEGMENTS, ids=name)
def test_every_byte_belongs_to_one_piece_wherever_it_is_cut(path):
    data = path.read_bytes()
    whole = pieces(data, segment.read)
    pieces(data, segment.walk)
    pieces(data + b"garbage behind the last batch", segment.read)
    batches = [piece for piece in whole if isinstance(piece, RecordBatch)]
    for cut in cuts(data):
        found = pieces(data[:cut], segment.read)
        held = sum(piece.end <= cut for piece in batches)
        assert sum(isinstance(piece, RecordBatch) for piece in found) == held


def rewritten(piece: RecordBatch) -> bytes:
    """The batch, decoded to values and encoded again (compressed payloads are compared unpacked)."""
    if isinstance(piece, message.Message):
        piece = message.Message(piece.raw[12:], piece.offset, 0)  # apart from its wrapper: its own timestamp
        body = message.write_message(
            piece.magic, key=piece.key, value=piece.value, timestamp=piece.timestamp, attributes=piece.attributes
        )
        return message.write_entry(piece.offset, body)
    records = b"".join(
        batch.write_record(
            timestamp_delta=timestamp_delta(piece, record),
            offset_delta=record.offset - piece.base_offset,
            key=record.key,
            value=record.value,
            headers=record.headers,
            attributes=record.attributes,
        )
        for record in piece.records()
    )
    if piece.codec == codecs.NONE:
        return batch.write_batch(piece.header, records)
    payload, start = piece.payload()
    assert bytes(payload[start:]) == records
    return batch.write_batch(piece.header, bytes(piece.raw[batch.HEADER.size :]))


def timestamp_delta(piece: batch.Batch, record) -> int:
    """Under LogAppendTime the record's own delta is not in its timestamp: take it from the bytes."""
    if piece.timestamp_type == 0:
        return record.timestamp - piece.base_timestamp
    plain = batch.Batch(memoryview(batch.write_batch(
        piece.header._replace(attributes=piece.attributes & ~(batch.TIMESTAMP_TYPE_FLAG | batch.CODEC_MASK)),
        bytes(piece.payload()[0][piece.payload()[1]:]),
    )), 0, batch.HEADER.size + len(piece.payload()[0]) - piece.payload()[1])  # fmt: skip
    own = next(other for other in plain.records() if other.offset == record.offset)
    return own.timestamp - piece.base_timestamp


@pytest.mark.parametrize("path", [path for path in SEGMENTS if "brokers" in path.parts], ids=name)
def test_what_brokers_wrote_is_written_again_to_the_byte(path):
    for piece in segment.read(Memory(path.read_bytes())):
        if isinstance(piece, RecordBatch):
            assert rewritten(piece) == bytes(piece.raw)
            if isinstance(piece, message.Message) and piece.codec != codecs.NONE:
                data = piece.unpacked(piece.codec)
                inner = (message.Message(data[start:end], offset, 0) for offset, start, end in message.frames(data))
                assert b"".join(map(rewritten, inner)) == data
