"""Compressed streams in limited steps: whole, truncated at every byte, with garbage after them, several in a row."""

import bz2
import gzip
import lzma
import zlib

import lz4.frame
import pytest
import zstandard

from kdump.errors import UnreadableError
from kdump.log_dirs import archive_formats, unpacking
from kdump.log_dirs.unpacking import Spool, unpacked

PACKED = {
    "gzip": gzip.compress,
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
    "xz": lzma.compress,
    "bzip2": bz2.compress,
    "lz4": lz4.frame.compress,
}
DATA = bytes(range(256)) * 7


def read(kind, *blocks):
    return b"".join(unpacked(kind, blocks, "x"))


@pytest.mark.parametrize("kind", PACKED)
def test_streams(kind):
    data = PACKED[kind](DATA)
    assert read(kind, data) == DATA
    assert read(kind, *(data[at : at + 1] for at in range(len(data)))) == DATA
    assert read(kind, data + data) == DATA + DATA
    for size in range(len(data)):
        with pytest.raises(UnreadableError, match="is truncated"):
            read(kind, data[:size])
    large = bytes(5 << 20)
    assert read(kind, PACKED[kind](large)) == large
    assert max(map(len, unpacked(kind, [PACKED[kind](bytes(64 << 20))], "x"))) <= 64 << 20


@pytest.mark.parametrize("kind", ["gzip", "xz", "bzip2", "lz4"])
def test_zeros_between_and_after_streams_are_padding(kind):
    data = PACKED[kind](DATA)
    assert read(kind, data + bytes(600)) == DATA
    assert read(kind, data + bytes(8) + data) == DATA + DATA
    assert max(map(len, unpacked(kind, [PACKED[kind](bytes(64 << 20))], "x"))) <= unpacking.BLOCK


@pytest.mark.parametrize("kind", PACKED)
@pytest.mark.parametrize("step", [1, 9999])
def test_bytes_after_a_stream_that_are_no_stream_are_an_error(kind, step):
    """They may be a stream with a damaged first byte, whose records would be lost silently."""
    data = PACKED[kind](DATA)
    for more in (b"garbage", b"\0\0" + data[:1] + b"x" + data[2:], b"x" + data[1:]):
        found: list[bytes] = []
        blocks = [(data + more)[at : at + step] for at in range(0, len(data + more), step)]
        with pytest.raises(UnreadableError, match=r"neither zeros nor another stream|is broken"):
            found.extend(unpacked(kind, blocks, "x"))
        assert b"".join(found) == DATA


@pytest.mark.parametrize("step", [1, 9999])
@pytest.mark.parametrize("kind", ["lz4", "zstd"])
def test_a_skippable_frame_has_no_data(kind, step):
    data = PACKED[kind](DATA) + b"\x5a\x2a\x4d\x18\3\0\0\0abc" + PACKED[kind](DATA)
    assert read(kind, *(data[at : at + step] for at in range(0, len(data), step))) == DATA + DATA


@pytest.mark.parametrize("kind", ["lz4", "zstd"])
def test_a_skippable_frame_may_be_the_first(kind):
    frame = b"\x50\x2a\x4d\x18\4\0\0\0" + bytes(4)
    data = frame * 2 + PACKED[kind](DATA)
    assert archive_formats.format_of(data) == kind
    assert read(kind, data) == DATA
    for other in (frame, frame + b"PK\3\4", frame[:4] + b"\xff" * 4, frame[:5]):
        assert archive_formats.format_of(other) is None


@pytest.mark.parametrize("kind", PACKED)
def test_broken_streams(kind):
    data = bytearray(PACKED[kind](DATA * 40))
    data[len(data) // 2] ^= 0xFF
    with pytest.raises(UnreadableError, match=r"is broken|in the middle"):
        read(kind, bytes(data))


@pytest.mark.parametrize("kind", ["xz", "zstd"])
def test_a_stream_that_needs_much_memory_names_what_decompresses_it(kind):
    if kind == "xz":
        data = lzma.compress(DATA, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 28}])
    else:
        # one block of a frame with a window of 256 MiB (RFC 8878, 3.1.1)
        data = b"\x28\xb5\x2f\xfd\x00" + bytes([18 << 3]) + b"\x09\x00\x00x"
    with pytest.raises(UnreadableError, match=r"needs more than 128 MiB of memory \((xz|zstd) -d"):
        read(kind, data)


def test_many_small_gzip_members_take_linear_time(monkeypatch):
    """Each copies the rest of zlib's input, which is short."""
    given = []

    class Counting:
        def __init__(self, wbits):
            self.made = zlib.decompressobj(wbits=wbits)

        def decompress(self, data, most):
            given.append(len(data))
            return self.made.decompress(data, most)

        def __getattr__(self, name):
            return getattr(self.made, name)

    class Zlib:
        decompressobj, error = Counting, zlib.error

    monkeypatch.setattr(unpacking, "zlib", Zlib)
    assert read("gzip", gzip.compress(b"", mtime=0) * 50_000) == b""
    assert max(given) <= 1 << 16


def test_a_spool_appends():
    spool = Spool("x")
    assert spool.add([b"one", b"two"]) == 0
    assert spool.add([b"three"]) == 6
    assert spool.size == 11
