"""Compresses the records of batches, and decompresses them up to a limit of the decompressed size.

The lowest three bits of a batch's attributes are its codec (KIP-98; zstd: KIP-110). Framings:

* gzip: RFC 1952, members one after the other; other bytes after the last member are ignored (java.util.zip).
* snappy: the chunked stream of snappy-java (16-byte header, then chunks after a 4-byte big-endian size), or, without
  that header, one raw snappy block (as librdkafka may write).
* lz4: one LZ4 frame with independent blocks. As in ``Lz4BlockInputStream`` the checksum of the content is not verified,
  nor that of the header in magic 0, where it was wrong (KAFKA-3160).
* zstd: RFC 8878 frames, one after the other.

Libraries are imported on first use. A usual stream of one snappy chunk, LZ4 block or zstd frame is decompressed in one
call. Other streams are decompressed in parts. If isal is installed, it decompresses gzip streams of one member without
optional header fields, twice as fast as zlib. zlib decompresses all other gzip streams, and reports all errors.
"""

from __future__ import annotations

import struct
import zlib
from functools import cache
from importlib import import_module
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from kdump.errors import DamageError, LimitError
from kdump.primitives.wire import Bytes, read_unsigned_varint

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
NAMES: Final = ("none", "gzip", "snappy", "lz4", "zstd")

DEFAULT_LIMIT: Final = 256 << 20
"""Default limit of the decompressed size of a batch, in bytes."""

COPIES: Final = {"parquet": 3, "sql": 3}
"""Output format or command -> divisor of --max-batch-bytes, because its libraries hold several copies of a batch."""
LIMIT_OPTION: Final = "--max-batch-bytes sets it; Parquet and sql take a third of it"
SNAPPY_JAVA_MAGIC: Final = b"\x82SNAPPY\x00"
_SNAPPY_JAVA_HEADER: Final = struct.Struct(">8sii")  # magic, version, lowest compatible version
LZ4_FRAME_MAGIC: Final = b"\x04\x22\x4d\x18"
_LZ4_HEADER: Final = LZ4_FRAME_MAGIC + b"\x60\x40\x82"
"""The header that Kafka's clients write: independent blocks of up to 64 KiB, no checksums."""
_LZ4_AROUND: Final = len(_LZ4_HEADER) + 8
"""Bytes of a one-block frame outside the block: header, block size, end mark."""
_SNAPPY_AROUND: Final = _SNAPPY_JAVA_HEADER.size + 4
"""Bytes of a one-chunk stream before the chunk."""
_LZ4_BLOCK_SIZES: Final = {4: 1 << 16, 5: 1 << 18, 6: 1 << 20, 7: 1 << 22}
_ZSTD_STEP: Final = 1 << 8
"""Bytes given to zstd at a time. They decompress to at most 8 MiB, because a block of 4 bytes makes 128 KiB."""
_SNAPPY_GREATEST_RATIO: Final = 22
"""Upper limit of Snappy's compression ratio: a copy element of 3 bytes decompresses to at most 64 bytes."""
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_ZSTD_HEAD: Final = 9
"""Size of the smallest frame in bytes: its header and an empty block."""
_ZSTD_RLE, _ZSTD_COMPRESSED = 1, 2
_ZSTD_BLOCK: Final = 1 << 17
"""Largest block in bytes (RFC 8878)."""
_ZSTD_SOURCE: Final = 131075
"""Bytes that zstd-jni reads at a time. It accepts a truncated frame if a complete frame ends in the same read."""
_GZIP_STEP: Final = 1 << 14
"""Bytes given to zlib at a time. zlib copies the bytes after the end of a member, so there must be few."""
_GZIP_PLAIN_HEADER: Final = b"\x1f\x8b\x08" + bytes(7)
_GZIP_HEADER_CRC, _GZIP_EXTRA, _GZIP_NAME, _GZIP_COMMENT, _GZIP_RESERVED = 0x02, 0x04, 0x08, 0x10, 0xE0
_GZIP_MEMBER: Final = 18  # bytes of the smallest member: header and trailer


def decompress(codec: int, data: Bytes, *, magic: int = 2, limit: int = DEFAULT_LIMIT) -> bytes:
    """Decompress ``data``. ``codec``: 0 to 4. Raises DamageError; except for NONE LimitError above ``limit`` bytes."""
    if codec == LZ4:
        return _lz4(data, limit, magic)
    return _DECOMPRESS[codec](data, limit)


_JOINED: Final = 2 << 20
"""Maximum size in bytes of a stream whose parts are joined at its end. Parts of a larger stream go into a buffer."""


class _Parts:
    """Collects the parts of a decompressed stream, without holding a large stream twice."""

    __slots__ = ("_grown", "_held", "_room")

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._room = _JOINED
        self._grown: BytesIO | None = None

    def add(self, part: bytes) -> None:
        if self._grown is not None:
            self._grown.write(part)
            return
        self._held.append(part)
        self._room -= len(part)
        if self._room < 0 and len(self._held) > 1:
            self._grown = BytesIO()
            self._grown.writelines(self._held)
            self._held = []

    def whole(self) -> bytes:
        """Return all bytes, without a copy of the buffer."""
        if self._grown is not None:
            return self._grown.getvalue()
        return self._held[0] if len(self._held) == 1 else b"".join(self._held)


class _Size(_Parts):
    """Counts the bytes of a decompressed stream, and keeps none."""

    __slots__ = ("size",)

    def __init__(self) -> None:
        super().__init__()
        self.size = 0

    def add(self, part: bytes) -> None:
        self.size += len(part)


COUNTED: Final = 1 << 31


def uncompressed_size(codec: int, data: Bytes) -> int | None:
    """Return the decompressed size of the records of a magic 2 batch, in bytes, without holding them in memory.

    Snappy blocks are not decompressed: the sizes that they claim are added. Return None for uncompressed data, for data
    found to be damaged, and if the size is 0 or above COUNTED (2 GiB).
    """
    counted = _Size()
    try:
        if codec == GZIP:
            _gzip_by_zlib(data, COUNTED, counted)
        elif codec == SNAPPY:
            counted.size = _snappy_size(data)
        elif codec == LZ4:
            decompress_lz4(data, limit=COUNTED, parts=counted)
        elif codec == ZSTD:
            _zstd_by_steps(_library("zstandard").ZstdDecompressor(), data, COUNTED, counted)
    except DamageError:
        return None
    return counted.size if 0 < counted.size <= COUNTED else None


def _snappy_size(data: Bytes) -> int:
    """Return the sum of the sizes that the blocks of a stream claim. Raises DamageError."""
    return sum(read_unsigned_varint(block, 0).value for block, _ in _snappy_blocks(data))


LEVELS: Final = {GZIP: (1, 9), LZ4: (1, 17), ZSTD: (-(1 << 17), 22)}
"""Codec -> its lowest and highest level (KIP-390)."""
_LZ4_DEFAULT: Final = 9
"""Kafka's default level of lz4. Only this level uses the fast compressor (Lz4BlockOutputStream)."""


def compress(codec: int, data: bytes, *, magic: int = 2, level: int | None = None) -> bytes:
    """Return ``data`` in the framing of Kafka's Java clients. ``level``: in LEVELS; None: Kafka's default."""
    if codec == GZIP:
        packer = zlib.compressobj(-1 if level is None else level, wbits=31)
        return packer.compress(data) + packer.flush()
    if codec == SNAPPY:
        import snappy

        out = [_SNAPPY_JAVA_HEADER.pack(SNAPPY_JAVA_MAGIC, 1, 1)]
        for start in range(0, len(data), 1 << 15):
            chunk = bytes(snappy.compress(data[start : start + (1 << 15)]))
            out.append(len(chunk).to_bytes(4, "big") + chunk)
        return b"".join(out)
    if codec == LZ4:
        return _lz4_frame(data, right_checksum=magic > 0, level=level)
    if codec == ZSTD:
        import zstandard

        return zstandard.ZstdCompressor(3 if level is None else level, write_content_size=False).compress(data)
    return data


def _broken(codec: int, reason: object, position: int = 0) -> NoReturn:
    raise DamageError("compression", f"the {NAMES[codec]} stream is broken: {reason}", position=position)


def _over(codec: int, limit: int) -> NoReturn:
    raise LimitError(
        "limit",
        f"the {NAMES[codec]} stream decompresses to more than the limit ({LIMIT_OPTION})",
        expected=f"at most {limit} bytes",
    )


@cache
def _library(name: str) -> Any:
    return import_module(name)


@cache
def _isal() -> Any:
    try:
        from isal import isal_zlib
    except ImportError:
        return None
    return isal_zlib


def _gzip(data: Bytes, limit: int) -> bytes:
    isal = _isal()
    if isal is not None and data[:4] == _GZIP_PLAIN_HEADER[:4]:
        member = isal.decompressobj(wbits=31)
        try:
            whole: bytes = member.decompress(data, limit + 1)
        except isal.error:  # zlib reports the error
            return _gzip_by_zlib(data, limit)
        if member.eof and not member.unused_data and len(whole) <= limit:
            return whole
    return _gzip_by_zlib(data, limit)


def _gzip_by_zlib(data: Bytes, limit: int, parts: _Parts | None = None) -> bytes:
    parts = _Parts() if parts is None else parts
    remaining = limit
    position = 0
    while True:
        member = zlib.decompressobj(wbits=31)
        if len(data) - position > 3 and data[position + 3] & _GZIP_RESERVED:
            member.decompress(_GZIP_PLAIN_HEADER)
            position = _gzip_header_end(data, position)
        while not member.eof:
            region = data[position : position + _GZIP_STEP]
            if not region:
                _broken(GZIP, "it ends in the middle")
            try:
                part = member.decompress(region, remaining + 1)
            except zlib.error as reason:
                _broken(GZIP, reason)
            remaining -= len(part)
            if remaining < 0:
                _over(GZIP, limit)
            parts.add(part)
            position += len(region)
        position -= len(member.unused_data)
        if len(data) - position <= _GZIP_MEMBER or data[position : position + 3] != b"\x1f\x8b\x08":
            return parts.whole()


def _gzip_header_end(data: Bytes, start: int) -> int:
    """Return the end of the header of a gzip member that has reserved flags. Java ignores them, zlib refuses them."""
    flags = data[start + 3]
    position = start + len(_GZIP_PLAIN_HEADER)
    if data[start : start + 3] != _GZIP_PLAIN_HEADER[:3]:
        _broken(GZIP, "it does not begin with the gzip magic", start)
    if flags & _GZIP_EXTRA:
        position += 2 + int.from_bytes(data[position : position + 2], "little")
    for flag in (_GZIP_NAME, _GZIP_COMMENT):
        if flags & flag:
            position += len(bytes(data[position:]).partition(b"\0")[0]) + 1
    if flags & _GZIP_HEADER_CRC:
        if int.from_bytes(data[position : position + 2], "little") != zlib.crc32(data[start:position]) & 0xFFFF:
            _broken(GZIP, "the checksum of its header is wrong", position)
        position += 2
    if position > len(data):
        _broken(GZIP, "it ends in its header")
    return position


def _snappy(data: Bytes, limit: int) -> bytes:
    if data[:8] == SNAPPY_JAVA_MAGIC and len(data) > _SNAPPY_AROUND:
        size = len(data) - _SNAPPY_AROUND
        if data[_SNAPPY_AROUND - 4 : _SNAPPY_AROUND] == size.to_bytes(4, "big"):
            return _snappy_block(data[_SNAPPY_AROUND:], _SNAPPY_AROUND, limit)
    return _snappy_by_chunks(data, limit)


def _snappy_by_chunks(data: Bytes, limit: int) -> bytes:
    parts = _Parts()
    remaining = limit
    for block, position in _snappy_blocks(data):
        part = _snappy_block(block, position, remaining)
        remaining -= len(part)
        parts.add(part)
    return parts.whole()


def _snappy_blocks(data: Bytes) -> Iterator[tuple[Bytes, int]]:
    """Yield the blocks of a stream and their positions: the chunks after snappy-java's header, or the whole stream."""
    if len(data) < _SNAPPY_JAVA_HEADER.size or data[:8] != SNAPPY_JAVA_MAGIC:
        yield data, 0
        return
    position = 0
    while len(data) - position >= 4:
        size = int.from_bytes(data[position : position + 4], "big", signed=True)
        if data[position : position + 4] == SNAPPY_JAVA_MAGIC[:4]:  # another stream follows
            header = data[position : position + _SNAPPY_JAVA_HEADER.size]
            if len(header) < _SNAPPY_JAVA_HEADER.size:
                _broken(SNAPPY, "its header is truncated", position)
            magic, version, _ = _SNAPPY_JAVA_HEADER.unpack(header)
            if magic != SNAPPY_JAVA_MAGIC:
                break
            if version < 1 and position:  # snappy-java checks the version of later headers only
                _broken(SNAPPY, f"version {version} of the chunked stream is unknown", position)
            position += _SNAPPY_JAVA_HEADER.size
            continue
        position += 4
        chunk = data[position : position + max(0, size)]
        if size < 0 or len(chunk) < size:
            _broken(
                SNAPPY, f"a chunk claims {size} bytes, but the stream has only {len(data) - position}", position - 4
            )
        yield chunk, position
        position += size


def _snappy_block(block: Bytes, position: int, limit: int) -> bytes:
    snappy = _library("snappy")
    try:
        size = read_unsigned_varint(block, 0).value
    except DamageError:
        _broken(SNAPPY, "the size of a block cannot be read", position)
    if size > len(block) * _SNAPPY_GREATEST_RATIO:
        _broken(SNAPPY, f"a block of {len(block)} bytes claims to hold {size} bytes", position)
    if size > limit:
        _over(SNAPPY, limit)
    try:
        out = bytes(snappy.decompress(bytes(block)))
    except (snappy.UncompressError, ValueError, OSError) as reason:
        _broken(SNAPPY, reason, position)
    return out


class _Lz4Header(NamedTuple):
    """The header of an LZ4 frame: flags, largest block in bytes, and the position of the first block."""

    flags: int
    largest: int
    end: int


def _lz4_header(data: Bytes, magic: int) -> _Lz4Header:
    if len(data) < 7:
        _broken(LZ4, "its header is truncated")
    if data[:4] != LZ4_FRAME_MAGIC:
        _broken(LZ4, f"it does not start with the frame magic but with {bytes(data[:4]).hex()}")
    flags, descriptor = data[4], data[5]
    largest = _LZ4_BLOCK_SIZES.get(descriptor >> 4 & 7)
    if flags >> 6 != 1 or flags & 0x02 or not flags & 0x20 or descriptor & 0x8F or largest is None:
        _broken(LZ4, f"flags {flags:#04x} {descriptor:#04x} of its header are not supported", 4)
    checksum_at = 14 if flags & 0x08 else 6
    if len(data) <= checksum_at:
        _broken(LZ4, "its header is truncated")
    if magic > 0 and data[checksum_at] != _xxh32(data[4:checksum_at]) >> 8 & 0xFF:
        _broken(LZ4, "the checksum of its header is wrong", checksum_at)
    return _Lz4Header(flags, largest, checksum_at + 1)


class UnpackedLz4(NamedTuple):
    """Decompressed LZ4 data, and the rising positions in it of empty blocks. No known writer creates empty blocks."""

    data: bytes
    empty: list[int]


def _lz4(data: Bytes, limit: int, magic: int = 2) -> bytes:
    size = len(data) - _LZ4_AROUND
    if (
        0 < size <= 1 << 16
        and data[:7] == _LZ4_HEADER
        and data[7:11] == size.to_bytes(4, "little")
        and data[-4:] == b"\0\0\0\0"
    ):
        lz4 = _library("lz4.block")
        try:
            whole: bytes = lz4.decompress(data[11:-4], uncompressed_size=1 << 16)
        except lz4.LZ4BlockError:  # decompress_lz4() reports it
            whole = b""
        if 0 < len(whole) <= limit:
            return whole
    return decompress_lz4(data, magic=magic, limit=limit).data


def decompress_lz4(
    data: Bytes, *, magic: int = 2, limit: int = DEFAULT_LIMIT, parts: _Parts | None = None
) -> UnpackedLz4:
    """Return a decompressed LZ4 stream. Raises DamageError and LimitError like :func:`decompress`."""
    import lz4.block

    flags, largest, position = _lz4_header(data, magic)
    parts = _Parts() if parts is None else parts
    empty: list[int] = []
    remaining = limit
    while True:
        if len(data) - position < 4:
            _broken(LZ4, "its end mark is missing", position)
        size = int.from_bytes(data[position : position + 4], "little")
        plain, size = size >> 31, size & 0x7FFFFFFF
        position += 4
        if size == 0:
            if flags & 0x04 and len(data) - position < 4:
                _broken(LZ4, "its checksum is truncated", position)
            return UnpackedLz4(parts.whole(), empty)
        if size > largest or size > len(data) - position:
            _broken(LZ4, f"a block claims {size} bytes, but the stream has only {len(data) - position}", position - 4)
        block = data[position : position + size]
        try:
            part = bytes(block) if plain else lz4.block.decompress(block, uncompressed_size=largest)
        except lz4.block.LZ4BlockError as reason:
            _broken(LZ4, reason, position)
        position += size
        if flags & 0x10:
            if len(data) - position < 4 or _xxh32(block) != int.from_bytes(data[position : position + 4], "little"):
                _broken(LZ4, "the checksum of a block is wrong", position)
            position += 4
        if not part:
            empty.append(limit - remaining)
        remaining -= len(part)
        if remaining < 0:
            _over(LZ4, limit)
        parts.add(part)


def _lz4_frame(data: bytes, *, right_checksum: bool, level: int | None = None) -> bytes:
    """Return a frame like KafkaLZ4BlockOutputStream's: independent blocks of 64 KiB, no checksums of content."""
    import lz4.block

    header = b"\x60\x40"
    summed = header if right_checksum else LZ4_FRAME_MAGIC + header  # KAFKA-3160: the checksum covered the frame magic
    how = {} if level in {None, _LZ4_DEFAULT} else {"mode": "high_compression", "compression": level}
    out = [LZ4_FRAME_MAGIC, header, bytes([_xxh32(summed) >> 8 & 0xFF])]
    for start in range(0, len(data), 1 << 16):
        plain = data[start : start + (1 << 16)]
        block = lz4.block.compress(plain, store_size=False, **how)
        if len(block) < len(plain):
            out += [len(block).to_bytes(4, "little"), block]
        else:
            out += [(len(plain) | 1 << 31).to_bytes(4, "little"), plain]
    return b"".join([*out, b"\0\0\0\0"])


def _xxh32(data: Bytes) -> int:
    import xxhash

    return xxhash.xxh32_intdigest(data)


@cache
def _of_thread() -> threading.local:
    from threading import local

    return local()


def _zstd(data: Bytes, limit: int) -> bytes:
    zstandard = _library("zstandard")
    own = _of_thread()
    decompressor = getattr(own, "zstd", None)
    if decompressor is None:
        decompressor = own.zstd = zstandard.ZstdDecompressor()
    most = _zstd_most(data)
    if 0 < most <= limit:
        try:
            plain: bytes = decompressor.decompress(data, max_output_size=most)
        except zstandard.ZstdError:
            pass  # the steps below report the error
        else:
            return plain
    return _zstd_by_steps(decompressor, data, limit, _Parts())


def _zstd_by_steps(decompressor: Any, data: Bytes, limit: int, parts: _Parts) -> bytes:
    zstandard = _library("zstandard")
    remaining = limit
    position = whole = 0
    while position < len(data):
        frame = decompressor.decompressobj()
        while not frame.eof:
            if position >= len(data):
                if whole > (len(data) - 1) // _ZSTD_SOURCE * _ZSTD_SOURCE:
                    return parts.whole()
                _broken(ZSTD, "it ends in the middle")
            region = data[position : position + _ZSTD_STEP]
            try:
                part = frame.decompress(region)
            except zstandard.ZstdError as reason:
                _broken(ZSTD, reason)
            remaining -= len(part)
            if remaining < 0:
                _over(ZSTD, limit)
            parts.add(part)
            position += len(region)
        whole = position = position - len(frame.unused_data)
    return parts.whole()


def _zstd_most(data: Bytes) -> int:
    """Return an upper bound in bytes of a frame's decompressed size, from its block headers (RFC 8878).

    Return 0 if the data is not exactly one frame, or if the header has a content size of 0 or above the bound: the
    library trusts that size.
    """
    if len(data) < _ZSTD_HEAD or data[:4] != _ZSTD_MAGIC:
        return 0
    flags = data[4]
    is_single = flags >> 5 & 1  # Single_Segment_flag: content size instead of window size
    start = 6 - is_single + (0, 1, 2, 4)[flags & 3]
    position = start + (is_single, 2, 4, 8)[flags >> 6]
    announced = int.from_bytes(data[start:position], "little") + (256 if flags >> 6 == 1 else 0)
    has_size = position > start
    most = 0
    while position + 3 <= len(data):
        head = data[position] | data[position + 1] << 8 | data[position + 2] << 16
        kind, size = head >> 1 & 3, head >> 3
        most += _ZSTD_BLOCK if kind == _ZSTD_COMPRESSED else size
        position += 3 + (1 if kind == _ZSTD_RLE else size)
        if head & 1:
            is_whole = position + (4 if flags & 4 else 0) == len(data)
            return most if is_whole and (not has_size or 0 < announced <= most) else 0
    return 0


_DECOMPRESS: Final[tuple[Callable[[Bytes, int], bytes], ...]] = (
    lambda data, _: bytes(data),
    _gzip,
    _snappy,
    _lz4,
    _zstd,
)
