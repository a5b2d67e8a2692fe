import random
import tracemalloc
import zlib

import lz4.block
import pytest
import snappy
import zstandard

from kdump.errors import DamageError, LimitError
from kdump.primitives import compression

TEXTS = [b"", b"kafka", b"abc" * 50_000, random.Random(1).randbytes(200_000)]
CODECS = [compression.GZIP, compression.SNAPPY, compression.LZ4, compression.ZSTD]


def outcome(codec: int, packed: bytes) -> bytes | str:
    """Return the decompressed bytes, or the kind of damage."""
    try:
        return compression.decompress(codec, packed)
    except DamageError as damage:
        return damage.kind


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", [compression.NONE, *CODECS])
@pytest.mark.parametrize("text", TEXTS, ids=len)
def test_there_and_back(codec, magic, text):
    packed = compression.compress(codec, text, magic=magic)
    assert compression.decompress(codec, packed, magic=magic) == text
    assert compression.decompress(codec, memoryview(packed), magic=magic) == text


@pytest.mark.parametrize("codec", CODECS, ids=compression.NAMES.__getitem__)
def test_cut_at_every_byte_is_damage_or_less(codec):
    text = b"abcdefgh" * 40
    packed = compression.compress(codec, text)
    for cut in range(len(packed)):
        got = outcome(codec, packed[:cut])
        assert got == "compression" or (text.startswith(got) and len(got) < len(text))


@pytest.mark.parametrize("codec", CODECS, ids=compression.NAMES.__getitem__)
def test_flipped_bytes_never_raise_anything_else(codec):
    packed = compression.compress(codec, b"abcdefgh" * 400)
    for position in range(len(packed)):
        for bit in (1, 0x80):
            broken = bytearray(packed)
            broken[position] ^= bit
            got = outcome(codec, bytes(broken))
            assert isinstance(got, bytes) or got in {"compression", "limit"}


@pytest.mark.parametrize("codec", CODECS, ids=compression.NAMES.__getitem__)
def test_a_bomb_ends_at_the_limit(codec):
    packed = compression.compress(codec, bytes(8 << 20))
    with pytest.raises(LimitError, match="more than the limit"):
        compression.decompress(codec, packed, limit=1 << 20)
    assert len(compression.decompress(codec, packed, limit=8 << 20)) == 8 << 20


@pytest.mark.parametrize("codec", CODECS, ids=compression.NAMES.__getitem__)
@pytest.mark.parametrize("size", [1, 5000, 70_000, 3_000_000])
def test_the_size_of_a_stream_is_counted(codec, size):
    data = compression.compress(codec, bytes(size))
    assert compression.uncompressed_size(codec, data) == size
    assert compression.uncompressed_size(codec, b"\xff" * 30 + data) is None


def test_a_size_above_the_largest_is_not_counted(monkeypatch):
    monkeypatch.setattr(compression, "COUNTED", 4999)
    for codec in CODECS:
        assert compression.uncompressed_size(codec, compression.compress(codec, bytes(5000))) is None
    assert compression.uncompressed_size(compression.NONE, b"abc") is None
    raw = bytes(snappy.compress(bytes(4000)))
    assert compression.uncompressed_size(compression.SNAPPY, raw) == 4000


def test_garbage_after_the_stream():
    text = b"abcdefgh" * 40
    assert compression.decompress(compression.GZIP, compression.compress(compression.GZIP, text) + b"garbage") == text
    assert compression.decompress(compression.LZ4, compression.compress(compression.LZ4, text) + b"garbage") == text
    assert outcome(compression.ZSTD, compression.compress(compression.ZSTD, text) + b"garbage") == "compression"


@pytest.mark.parametrize("codec", [compression.GZIP, compression.SNAPPY, compression.ZSTD])
def test_streams_one_after_the_other(codec):
    packed = compression.compress(codec, b"one" * 9) + compression.compress(codec, b"two" * 9)
    assert compression.decompress(codec, packed) == b"one" * 9 + b"two" * 9


def test_snappy_without_the_header_of_snappy_java():
    assert compression.decompress(compression.SNAPPY, snappy.compress(b"raw" * 99)) == b"raw" * 99


def test_snappy_java_looks_at_the_version_of_later_headers_only():
    chunk = compression.compress(compression.SNAPPY, b"one")[16:]
    header = compression.SNAPPY_JAVA_MAGIC + b"\0\0\0\0\0\0\0\1"
    assert compression.decompress(compression.SNAPPY, header + chunk) == b"one"
    assert outcome(compression.SNAPPY, header + chunk + header + chunk) == "compression"


def test_a_zstd_frame_that_is_cut_off_is_forgiven_after_a_whole_one_of_the_same_read():
    frame = compression.compress(compression.ZSTD, b"one")
    assert compression.decompress(compression.ZSTD, frame + frame[:5]) == b"one"
    assert outcome(compression.ZSTD, frame[:5]) == "compression"
    large = compression.compress(
        compression.ZSTD, random.Random(1).randbytes(140_000)
    )  # more than a read of 131,075 bytes
    assert len(outcome(compression.ZSTD, large + frame[:5])) == 140_000
    assert outcome(compression.ZSTD, frame + large[:-1]) == "compression"


def test_a_zstd_frame_that_lies_about_its_size_is_refused():
    text = b"abcdefgh" * 40
    frame = compression.compress(compression.ZSTD, text)
    window, blocks = frame[5:6], frame[6:]
    assert compression.decompress(compression.ZSTD, frame[:4] + b"\x40" + window + b"\x40\0" + blocks) == text
    for reported in (b"\x40\x3f\0", b"\x80\0\0\0\0", b"\xc0" + bytes(8), b"\xc0" + b"\xf0" * 8):
        lying = frame[:4] + reported[:1] + window + reported[1:] + blocks
        assert outcome(compression.ZSTD, lying) == "compression"
    with pytest.raises(LimitError):
        compression.decompress(compression.ZSTD, frame, limit=len(text) - 1)


@pytest.mark.parametrize("checksum", [True, False])
def test_what_follows_a_zstd_frame_is_read_too(checksum):
    frame = zstandard.ZstdCompressor(write_content_size=False, write_checksum=checksum).compress(b"one" * 9)
    assert compression.decompress(compression.ZSTD, frame) == b"one" * 9
    assert compression.decompress(compression.ZSTD, frame * 3) == b"one" * 27
    for end in range(1, len(frame)):
        assert outcome(compression.ZSTD, frame[:end]) == "compression"
    assert outcome(compression.ZSTD, frame + b"garbage") == "compression"


def test_the_wrong_header_checksum_of_old_lz4_frames():
    old = compression.compress(compression.LZ4, b"x" * 99, magic=0)
    assert old[6] != compression.compress(compression.LZ4, b"x" * 99, magic=1)[6]
    assert compression.decompress(compression.LZ4, old, magic=0) == b"x" * 99
    with pytest.raises(DamageError, match="checksum of its header"):
        compression.decompress(compression.LZ4, old, magic=2)


def gzip_member(flags: int, text: bytes) -> bytes:
    header = bytes([0x1F, 0x8B, 8, flags]) + b"\1\2\3\4\0\xff"
    header += b"\3\0abc" if flags & 4 else b""
    header += b"name\0" if flags & 8 else b""
    header += b"comment\0" if flags & 16 else b""
    header += (zlib.crc32(header) & 0xFFFF).to_bytes(2, "little") if flags & 2 else b""
    packer = zlib.compressobj(wbits=-15)
    trailer = zlib.crc32(text).to_bytes(4, "little") + len(text).to_bytes(4, "little")
    return header + packer.compress(text) + packer.flush() + trailer


@pytest.mark.parametrize("flags", range(0, 256, 2))
def test_reserved_flags_of_gzip_are_passed_over_as_java_does(flags):
    text = b"some text, twice: some text"
    packed = gzip_member(flags, text)
    assert compression.decompress(compression.GZIP, packed + packed) == text + text
    for cut in range(len(packed)):
        assert outcome(compression.GZIP, packed[:cut]) == "compression"
    if flags & 2:
        broken = bytearray(packed)
        broken[5] ^= 1
        assert outcome(compression.GZIP, bytes(broken)) == "compression"


def lz4_of(*blocks: bytes) -> bytes:
    frame = compression.compress(compression.LZ4, b"")
    return frame[:-4] + b"".join(len(block).to_bytes(4, "little") + block for block in blocks) + frame[-4:]


def test_empty_blocks_of_lz4_unpack_to_nothing():
    empty, block = b"\0", lz4.block.compress(b"some text", store_size=False)
    for blocks in ((empty, block), (block, empty), (block, empty, block), (empty, empty, block)):
        assert compression.decompress(compression.LZ4, lz4_of(*blocks)) == b"some text" * blocks.count(block)
    assert compression.decompress(compression.LZ4, lz4_of(empty, empty)) == b""


def test_only_magic_0_has_the_wrong_checksum_of_the_lz4_header():
    wrong = compression.compress(compression.LZ4, b"some text", magic=0)
    right = compression.compress(compression.LZ4, b"some text", magic=1)
    assert wrong != right == compression.compress(compression.LZ4, b"some text")
    for packed in (wrong, right):
        assert compression.decompress(compression.LZ4, packed, magic=0) == b"some text"
    with pytest.raises(DamageError, match="checksum of its header is wrong"):
        compression.decompress(compression.LZ4, wrong, magic=1)


def test_only_the_default_level_of_lz4_uses_the_fast_compressor():
    """As in Kafka's Lz4BlockOutputStream: level 9 is the default, and the others are levels of LZ4 HC."""
    data = b" ".join(b"%d" % number for number in random.Random(1).choices(range(1000), k=30_000))
    sizes = {level: len(compression.compress(compression.LZ4, data, level=level)) for level in (None, 3, 8, 9, 12)}
    assert sizes[None] == sizes[9] > sizes[3] > sizes[8] >= sizes[12]
    assert compression.decompress(compression.LZ4, compression.compress(compression.LZ4, data, level=12)) == data


@pytest.fixture(params=["isal", "zlib"])
def gzip_by(request, monkeypatch):
    if request.param == "isal":
        pytest.importorskip("isal")
    else:
        monkeypatch.setattr(compression, "_isal", lambda: None)


def by_steps(codec, packed, limit):
    """Decompress without the short cut for usual streams."""
    if codec == compression.GZIP:
        return compression._gzip_by_zlib(packed, limit)
    if codec == compression.LZ4:
        return compression.decompress_lz4(packed, limit=limit).data
    return compression._snappy_by_chunks(packed, limit)


def reported(unpack, *args):
    try:
        return unpack(*args)
    except DamageError as damage:
        return type(damage), damage.kind, damage.reason, damage.position


@pytest.mark.usefixtures("gzip_by")
@pytest.mark.parametrize("codec", CODECS[:3], ids=compression.NAMES.__getitem__)
def test_what_is_unpacked_in_one_call_is_unpacked_by_steps_alike(codec):
    seed = random.Random(codec)
    text = b"".join(b'{"user":%d,"state":"paid"}' % seed.randrange(1000) for _ in range(60))
    packed = compression.compress(codec, text)
    streams = [packed, packed * 2, packed + b"\0", packed[:-1], b"", packed[:4], packed[:20]]
    for _ in range(3000):
        broken = bytearray(packed)
        for _ in range(seed.choice([1, 1, 2])):
            broken[seed.randrange(min(len(packed), seed.choice([24, len(packed)])))] = seed.randrange(256)
        streams.append(bytes(broken) + seed.choice([b"", b"", b"\0\0", packed]))
    for stream in streams:
        fast, slow = (
            reported(unpack, codec, stream, 1 << 20)
            for unpack in (lambda codec, data, limit: compression.decompress(codec, data, limit=limit), by_steps)
        )
        assert fast == slow


@pytest.mark.usefixtures("gzip_by")
@pytest.mark.parametrize("codec", CODECS, ids=compression.NAMES.__getitem__)
@pytest.mark.parametrize("size", [1, 5000, 70_000, 200_000])
def test_the_limit_is_the_same_in_one_call(codec, size):
    packed = compression.compress(codec, b"a" * size)
    assert compression.decompress(codec, packed, limit=size) == b"a" * size
    for limit in (0, size - 1):
        with pytest.raises(LimitError):
            compression.decompress(codec, packed, limit=limit)


@pytest.mark.parametrize("codec", [compression.SNAPPY, compression.LZ4, compression.ZSTD])
def test_the_parts_of_a_large_stream_are_not_held_beside_the_whole(monkeypatch, codec):
    monkeypatch.setattr(compression, "_JOINED", 1 << 20)
    size = 8 << 20
    packed = compression.compress(codec, bytes(size))
    compression.decompress(codec, packed)  # the libraries are loaded
    tracemalloc.start()
    try:
        whole = compression.decompress(codec, packed)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert whole == bytes(size)
    assert peak < 1.4 * size


@pytest.mark.parametrize("at", range(1, 9))
def test_isal_does_not_believe_a_wrong_trailer(at):
    pytest.importorskip("isal")
    packed = bytearray(compression.compress(compression.GZIP, b"kafka" * 100))
    packed[-at] ^= 1
    with pytest.raises(DamageError):
        compression.decompress(compression.GZIP, bytes(packed))
