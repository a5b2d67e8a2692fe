"""Decompresses streams in steps of bounded memory, and stores bytes in a temporary file without a name (``TMPDIR``)."""

from __future__ import annotations

import os
import tempfile
import zlib
from functools import partial
from typing import IO, TYPE_CHECKING, Any, Final

from kdump.errors import UnreadableError
from kdump.log_dirs import archive_formats

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from kdump.log_dirs.files import Source

BLOCK: Final = 1 << 20
"""Largest read and largest decompressed block in bytes. A block of zstd may be larger."""
_STEP: Final = 1 << 14
"""Bytes given to a decompressor at a time: few, because it copies the rest of them at the end of each member."""
_ZSTD_STEP: Final = 1 << 13
"""Bytes given to the zstd decompressor at a time. They are few, because 4 bytes may decompress to 128 KiB."""
_MEMORY: Final = 1 << 27
"""Maximum memory of a stream in bytes: the largest window of ``zstd -22``, and twice the dictionary of ``xz -9``."""


class OwnedDescriptor:
    """A duplicate of the descriptor of ``file``. ``file`` is closed at once; the duplicate closes with this object."""

    def __init__(self, file: IO[bytes]) -> None:
        self.fd = os.dup(file.fileno())
        file.close()

    def __del__(self, close: Callable[[int], None] = os.close) -> None:  # ``os`` may be gone when Python ends
        close(self.fd)


class Spool:
    """A temporary file without a name. Each :meth:`add` takes at most half of the disk space that is free then."""

    def __init__(self, name: str) -> None:
        """``name`` is the name of the archive, for messages. Raises UnreadableError."""
        self.name, self.size = name, 0
        try:
            self.held = OwnedDescriptor(tempfile.TemporaryFile(buffering=0))  # noqa: SIM115  OwnedDescriptor closes it
        except OSError as reason:
            raise self._failed(reason) from reason

    def add(self, blocks: Iterable[bytes]) -> int:
        """Append blocks. Return the position of the first one in the file. Raises UnreadableError."""
        start = self.size
        try:
            free = os.fstatvfs(self.held.fd)
            room = free.f_bavail * free.f_frsize // 2
            for block in _readable(blocks, self.name):
                room -= len(block)
                if room < 0:
                    raise UnreadableError(
                        self.name,
                        f"decompressed, it would take more than half of the free space of {tempfile.gettempdir()}",
                        "set TMPDIR to a folder with more room",
                    )
                rest = memoryview(block)
                while rest:  # a disk that is nearly full writes only a part
                    taken = os.pwrite(self.held.fd, rest, self.size)
                    self.size, rest = self.size + taken, rest[taken:]
        except OSError as reason:
            raise self._failed(reason) from reason
        return start

    def _failed(self, reason: OSError) -> UnreadableError:
        return UnreadableError(
            self.name,
            f"cannot be decompressed to {tempfile.tempdir or 'a temporary file'}: {reason.strerror or reason}",
            "set TMPDIR to a folder with more room",
        )


def _readable(blocks: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Yield ``blocks``. An OSError of a read becomes UnreadableError, so that only write errors are OSErrors."""
    try:
        yield from blocks
    except OSError as reason:
        raise UnreadableError.of(name, reason, "cannot be read: ") from reason


def unpacked(kind: str, blocks: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Decompress streams of format ``kind``. Raises UnreadableError, also if zstd or xz needs more than _MEMORY."""
    return _STREAMS[kind](blocks, name)


def blocks_of(source: Source, position: int = 0, size: int | None = None) -> Iterator[bytes]:
    """Yield ``size`` bytes (by default all) of a source from ``position`` on, in blocks of up to 1 MiB."""
    end = source.size if size is None else position + size
    while position < end and (block := source.read(position, min(BLOCK, end - position))):
        yield block
        position += len(block)


def _steps(blocks: Iterable[bytes], step: int) -> Iterator[bytes]:
    for block in blocks:
        for start in range(0, len(block), step):
            yield block[start : start + step]


def inflated(blocks: Iterable[bytes], name: str, *, wbits: int = 31) -> Iterator[bytes]:
    """Yield the decompressed bytes of consecutive gzip members, or (``wbits`` -15) of one raw deflate stream."""
    member = zlib.decompressobj(wbits=wbits)
    what = "gzip" if wbits > 0 else "deflate"
    for step in _steps(blocks, _STEP):
        block = step
        try:
            while block:
                if member.eof:
                    if wbits < 0 or not (block := _next_stream(block, name, what, (b"\x1f\x8b",))):
                        break
                    member = zlib.decompressobj(wbits=wbits)
                yield (part := member.decompress(block, BLOCK))
                block = member.unused_data if member.eof else member.unconsumed_tail
                if not part and not block:
                    break
        except zlib.error as reason:
            raise UnreadableError(name, f"the {what} stream is broken: {reason}") from reason
    while not member.eof and (part := member.decompress(member.unconsumed_tail, BLOCK)):
        yield part
    if not member.eof:
        raise UnreadableError(name, f"the {what} stream is truncated")


def _zstd(blocks: Iterable[bytes], name: str) -> Iterator[bytes]:
    import zstandard

    decompressor = zstandard.ZstdDecompressor(max_window_size=_MEMORY)
    frame = decompressor.decompressobj()
    for step in _steps(blocks, _ZSTD_STEP):
        block = step
        try:
            while block:
                if frame.eof:
                    frame = decompressor.decompressobj()
                yield frame.decompress(block)
                block = frame.unused_data if frame.eof else b""
        except zstandard.ZstdError as reason:
            if "memory" in str(reason):
                raise _too_large(name, "zstd", "zstd -d --long=31") from reason
            raise UnreadableError(name, f"the zstd stream is broken: {reason}") from reason
    if not frame.eof:
        raise UnreadableError(name, "the zstd stream is truncated")


def _xz(blocks: Iterable[bytes], name: str) -> Iterator[bytes]:
    import lzma

    def too_large(reason: Exception) -> bool:
        return "memory" in str(reason).lower()

    make = partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, _MEMORY)
    return _several(blocks, name, "xz", make, (lzma.LZMAError, EOFError), (b"\xfd7zXZ\0",), too_large)


def _bzip2(blocks: Iterable[bytes], name: str) -> Iterator[bytes]:
    import bz2

    return _several(blocks, name, "bzip2", bz2.BZ2Decompressor, (OSError, ValueError, EOFError), (b"BZh",))


def _lz4(blocks: Iterable[bytes], name: str) -> Iterator[bytes]:
    from lz4.frame import LZ4FrameDecompressor

    magics = (b"\x04\x22\x4d\x18", *archive_formats.SKIPPABLE)
    return _several(blocks, name, "lz4", LZ4FrameDecompressor, (RuntimeError, EOFError), magics)


def _several(
    blocks: Iterable[bytes],
    name: str,
    what: str,
    make: Callable[[], Any],
    errors: tuple[type[Exception], ...],
    magics: Sequence[bytes],
    is_too_large: Callable[[Exception], bool] = lambda _: False,
) -> Iterator[bytes]:
    """Yield the decompressed bytes of consecutive streams. ``make`` returns a decompressor like ``BZ2Decompressor``."""
    stream = make()
    for step in _steps(blocks, _STEP):
        block = step
        try:
            while block or not (stream.eof or stream.needs_input):
                if stream.eof:
                    if not (block := _next_stream(block, name, what, magics)):
                        break
                    stream = make()
                yield stream.decompress(block, BLOCK)
                block = (stream.unused_data or b"") if stream.eof else b""
        except errors as reason:
            if is_too_large(reason):
                raise _too_large(name, what, f"{what} -dk") from reason
            raise UnreadableError(name, f"the {what} stream is broken: {reason}") from reason
    if not stream.eof:
        raise UnreadableError(name, f"the {what} stream is truncated")


def _next_stream(block: bytes, name: str, what: str, magics: Sequence[bytes]) -> bytes:
    """Return ``block`` without zeros before the next stream. Raises UnreadableError if it begins with other bytes."""
    block = block.lstrip(b"\0")
    if not block.startswith(tuple(magic[: len(block)] for magic in magics)):
        raise UnreadableError(name, f"bytes after a complete {what} stream are neither zeros nor another stream")
    return block


def _too_large(name: str, what: str, command: str) -> UnreadableError:
    from kdump.primitives.terminal import shell_path

    return UnreadableError(
        name, f"the {what} stream needs more than {_MEMORY >> 20} MiB of memory", f"{command} {shell_path(name)}"
    )


_STREAMS: Final[dict[str, Callable[[Iterable[bytes], str], Iterator[bytes]]]] = {
    archive_formats.GZIP: inflated,
    archive_formats.ZSTD: _zstd,
    archive_formats.XZ: _xz,
    archive_formats.BZIP2: _bzip2,
    archive_formats.LZ4: _lz4,
}
