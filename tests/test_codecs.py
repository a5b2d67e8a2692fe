import random

import pytest
import snappy

from kdump import codecs
from kdump.errors import DamageError, LimitError

TEXTS = [b"", b"kafka", b"abc" * 50_000, random.Random(1).randbytes(200_000)]
CODECS = [codecs.GZIP, codecs.SNAPPY, codecs.LZ4, codecs.ZSTD]


def outcome(codec: int, packed: bytes) -> bytes | str:
    """What decompress returns, or the kind of damage that it raises."""
    try:
        return codecs.decompress(codec, packed)
    except DamageError as damage:
        return damage.kind


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", [codecs.NONE, *CODECS])
@pytest.mark.parametrize("text", TEXTS, ids=len)
def test_there_and_back(codec, magic, text):
    packed = codecs.compress(codec, text, magic=magic)
    assert codecs.decompress(codec, packed, magic=magic) == text
    assert codecs.decompress(codec, memoryview(packed), magic=magic) == text


@pytest.mark.parametrize("codec", CODECS, ids=codecs.NAMES.__getitem__)
def test_cut_at_every_byte_is_damage_or_less(codec):
    text = b"abcdefgh" * 40
    packed = codecs.compress(codec, text)
    for cut in range(len(packed)):
        got = outcome(codec, packed[:cut])
        assert got == "compression" or (text.startswith(got) and len(got) < len(text))


@pytest.mark.parametrize("codec", CODECS, ids=codecs.NAMES.__getitem__)
def test_flipped_bytes_never_raise_anything_else(codec):
    packed = codecs.compress(codec, b"abcdefgh" * 400)
    for position in range(len(packed)):
        for bit in (1, 0x80):
            broken = bytearray(packed)
            broken[position] ^= bit
            got = outcome(codec, bytes(broken))
            assert isinstance(got, bytes) or got in {"compression", "limit"}


@pytest.mark.parametrize("codec", CODECS, ids=codecs.NAMES.__getitem__)
def test_a_bomb_ends_at_the_limit(codec):
    packed = codecs.compress(codec, bytes(8 << 20))
    with pytest.raises(LimitError, match="more than the limit"):
        codecs.decompress(codec, packed, limit=1 << 20)
    assert len(codecs.decompress(codec, packed, limit=8 << 20)) == 8 << 20


def test_garbage_behind_the_stream():
    text = b"abcdefgh" * 40
    assert codecs.decompress(codecs.GZIP, codecs.compress(codecs.GZIP, text) + b"garbage") == text
    assert codecs.decompress(codecs.LZ4, codecs.compress(codecs.LZ4, text) + b"garbage") == text
    assert outcome(codecs.ZSTD, codecs.compress(codecs.ZSTD, text) + b"garbage") == "compression"


@pytest.mark.parametrize("codec", [codecs.GZIP, codecs.SNAPPY, codecs.ZSTD])
def test_streams_one_after_the_other(codec):
    packed = codecs.compress(codec, b"one" * 9) + codecs.compress(codec, b"two" * 9)
    assert codecs.decompress(codec, packed) == b"one" * 9 + b"two" * 9


def test_snappy_without_the_header_of_snappy_java():
    assert codecs.decompress(codecs.SNAPPY, snappy.compress(b"raw" * 99)) == b"raw" * 99


def test_snappy_java_looks_at_the_version_of_later_headers_only():
    chunk = codecs.compress(codecs.SNAPPY, b"one")[16:]
    header = codecs.SNAPPY_JAVA_MAGIC + b"\0\0\0\0\0\0\0\1"
    assert codecs.decompress(codecs.SNAPPY, header + chunk) == b"one"
    assert outcome(codecs.SNAPPY, header + chunk + header + chunk) == "compression"


def test_a_zstd_frame_that_is_cut_off_is_forgiven_behind_a_whole_one_of_the_same_read():
    frame = codecs.compress(codecs.ZSTD, b"one")
    assert codecs.decompress(codecs.ZSTD, frame + frame[:5]) == b"one"
    assert outcome(codecs.ZSTD, frame[:5]) == "compression"
    large = codecs.compress(codecs.ZSTD, random.Random(1).randbytes(140_000))  # more than a read of 131,075 bytes
    assert len(outcome(codecs.ZSTD, large + frame[:5])) == 140_000
    assert outcome(codecs.ZSTD, frame + large[:-1]) == "compression"


def test_the_wrong_header_checksum_of_old_lz4_frames():
    old = codecs.compress(codecs.LZ4, b"x" * 99, magic=0)
    assert old[6] != codecs.compress(codecs.LZ4, b"x" * 99, magic=1)[6]
    assert codecs.decompress(codecs.LZ4, old, magic=0) == b"x" * 99
    with pytest.raises(DamageError, match="checksum of its header"):
        codecs.decompress(codecs.LZ4, old, magic=2)
