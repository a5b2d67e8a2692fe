"""Framings of the codecs that differ from those of Kafka's Java clients: valid ones, and nearly valid ones."""

import zlib
from collections.abc import Callable
from random import Random

import lz4.block
import lz4.frame
import snappy
import zstandard

from kdump.primitives import compression
from kdump.primitives.wire import write_unsigned_varint
from tools.fuzz.mutations.whole import lie


def halves(random: Random, body: bytes) -> tuple[bytes, bytes]:
    at = random.randrange(len(body) + 1)
    return body[:at], body[at:]


def gzip_with_extras(random: Random, body: bytes) -> bytes:
    """Return a gzip member with optional header fields, sometimes with flags that RFC 1952 reserves."""
    flags = random.randrange(random.choice((32, 256)))
    header = bytes([0x1F, 0x8B, 8, flags]) + random.randbytes(4) + b"\x00\xff"
    if flags & 4:
        header += b"\x03\x00abc"
    if flags & 8:
        header += b"name\x00"
    if flags & 16:
        header += b"comment\x00"
    if flags & 2:
        header += (zlib.crc32(header) & 0xFFFF).to_bytes(2, "little")
    packer = zlib.compressobj(random.randrange(10), wbits=-15)
    trailer = zlib.crc32(body).to_bytes(4, "little") + len(body).to_bytes(4, "little")
    return header + packer.compress(body) + packer.flush() + trailer


def gzip_members(random: Random, body: bytes) -> bytes:
    parts = [
        gzip_with_extras(random, part) if random.random() < 0.3 else compression.compress(compression.GZIP, part)
        for part in halves(random, body)
    ]
    return b"".join(parts) + random.choice((b"", b"\0" * 18, b"\x1f\x8b\x08", b"garbage that is no gzip member"))


def gzip_wrong_trailer(random: Random, body: bytes) -> bytes:
    out = bytearray(compression.compress(compression.GZIP, body))
    out[-random.randint(1, 8)] ^= 1 << random.randrange(8)
    return bytes(out)


def zlib_stream(_random: Random, body: bytes) -> bytes:
    return zlib.compress(body)


def snappy_raw(_random: Random, body: bytes) -> bytes:
    return bytes(snappy.compress(body))


def snappy_chunks(random: Random, body: bytes) -> bytes:
    """Return the stream of snappy-java in unusual chunks, with other versions, empty chunks, or a second header."""
    version = random.choice((1, 1, 1, 0, 2, -1))
    header = compression.SNAPPY_JAVA_MAGIC + version.to_bytes(4, "big", signed=True) + b"\0\0\0\x01"
    chunks = [bytes(snappy.compress(part)) for part in (*halves(random, body), b"")]
    random.shuffle(chunks) if random.random() < 0.1 else None
    out = [len(chunk).to_bytes(4, "big") + chunk for chunk in chunks]
    if random.random() < 0.3:
        out.insert(random.randrange(3), header)
    return header + b"".join(out)


def snappy_lying_size(random: Random, body: bytes) -> bytes:
    chunk = write_unsigned_varint(abs(lie(random, len(body), 32)) & 0x3FFFFF) + snappy_raw(random, body)[2:]
    whole = compression.compress(compression.SNAPPY, b"")[:16] + len(chunk).to_bytes(4, "big") + chunk
    return random.choice((chunk, whole))


def lz4_frame(random: Random, body: bytes) -> bytes:
    """Return an LZ4 frame with random options."""
    return lz4.frame.compress(
        body,
        block_size=random.choice((4, 5, 6, 7)),
        block_linked=random.random() < 0.2,
        content_checksum=random.random() < 0.5,
        block_checksum=random.random() < 0.5,
        store_size=random.random() < 0.3,
        compression_level=random.choice((0, 9)),
    )


def lz4_broken_option(random: Random, body: bytes) -> bytes:
    """Return an LZ4 frame with a slightly wrong descriptor or checksum."""
    out = bytearray(lz4_frame(random, body))
    at = random.choice((4, 5, 6, 7, 8, 9, 10, 11, -1, -2, -3, -4, -5))
    out[min(at, len(out) - 1)] ^= 1 << random.randrange(8)  # a frame without data has 11 bytes
    return bytes(out)


def lz4_blocks(random: Random, body: bytes) -> bytes:
    """Return a frame like Kafka's in a few blocks, some empty, sometimes with the header checksum of magic 0."""
    blocks = [lz4.block.compress(part, store_size=False) for part in (*halves(random, body), b"")]
    blocks.insert(random.randrange(3), b"\0")
    header = compression.compress(compression.LZ4, b"", magic=random.choice((0, 1, 1)))[:-4]
    return header + b"".join(len(block).to_bytes(4, "little") + block for block in blocks) + b"\0\0\0\0"


def two_streams(random: Random, body: bytes) -> bytes:
    first, second = halves(random, body)
    codec = random.choice((compression.LZ4, compression.ZSTD, compression.SNAPPY))
    return compression.compress(codec, first) + compression.compress(codec, second)


def zstd_frame(random: Random, body: bytes) -> bytes:
    """Return a zstd frame with random options."""
    packer = zstandard.ZstdCompressor(
        level=random.choice((-5, 1, 3, 19)),
        write_checksum=random.random() < 0.5,
        write_content_size=random.random() < 0.5,
    )
    return packer.compress(body)


def zstd_frames(random: Random, body: bytes) -> bytes:
    """Return several zstd frames, some of them skippable."""
    skippable = b"\x50\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"01234"
    parts = [zstd_frame(random, part) for part in halves(random, body)]
    parts.insert(random.randrange(3), random.choice((skippable, zstd_frame(random, b""))))
    return b"".join(parts) + random.choice((b"", b"", b"\0", b"garbage", b"\x28\xb5\x2f"))


def zstd_broken_option(random: Random, body: bytes) -> bytes:
    out = bytearray(zstd_frame(random, body))
    out[random.choice((4, 4, 5, 5, 6, 7, 8, 9, -1, -2, -3, -4))] ^= 1 << random.randrange(8)
    return bytes(out)


FRAMINGS: dict[int, tuple[Callable[[Random, bytes], bytes], ...]] = {
    compression.GZIP: (gzip_with_extras, gzip_members, gzip_wrong_trailer, zlib_stream),
    compression.SNAPPY: (snappy_raw, snappy_chunks, snappy_chunks, snappy_lying_size, two_streams),
    compression.LZ4: (lz4_frame, lz4_blocks, lz4_broken_option, two_streams),
    compression.ZSTD: (zstd_frame, zstd_frames, zstd_broken_option, two_streams),
}
