"""A file to its pieces: the one border at which damage becomes a Damage piece.

Files are read in blocks and never mapped: a segment that shrinks while it is read must not end in SIGBUS, and a
10 GiB segment needs what a 10 MiB one needs.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, Final, Literal, Protocol, TypeAlias, cast

from kdump import codecs
from kdump.errors import DamageError, UnreadableError
from kdump.formats import batch, log, message
from kdump.pieces import Damage, Piece, RecordBatch, Trailing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.cache import Guard, Watch

BLOCK: Final = 1 << 20
"""Bytes read at a time, at most."""
FIRST_BLOCK: Final = 1 << 16
"""Bytes read at first; each further block is twice as large, so that a short look reads little."""

OnError: TypeAlias = Literal["stop", "skip", "resync"]


class Source(Protocol):
    """Something with a name and a size in bytes that can be read at any position.

    A batch in it may take ``limit`` bytes, as it stands there and unpacked.
    """

    name: str
    size: int
    limit: int

    def read(self, position: int, size: int) -> bytes:
        """Return up to ``size`` bytes from ``position`` on: fewer only at the end."""


class LocalFile:
    """A file of this machine, opened read-only. Raises UnreadableError when it cannot be."""

    watch: ClassVar[Watch | None] = None
    """What keeps the page cache as it is while files are read; by default nothing does."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = os.fspath(path)
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe would wait for its writer
            status = os.fstat(self._fd)
        except OSError as reason:
            raise UnreadableError(self.name, reason.strerror or str(reason)) from reason
        self.size = status.st_size
        self.limit = codecs.DEFAULT_LIMIT
        self._guard: Guard | None = None
        if not stat.S_ISREG(status.st_mode):
            self.close()
            what = "a folder" if stat.S_ISDIR(status.st_mode) else "a pipe or a device"
            raise UnreadableError(self.name, f"is {what}, not a file")
        if self.watch is not None:
            self._guard = self.watch(self.name, self._fd, self.size)

    def __enter__(self) -> LocalFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._guard is not None:
            self._guard.close()
        os.close(self._fd)

    @property
    def lost(self) -> int:
        """How many bytes the file has become shorter since it was opened: brokers cut live files."""
        return max(0, self.size - os.fstat(self._fd).st_size)

    @property
    def descriptor(self) -> int | None:
        """The open file for who reads it without :meth:`read`; None where the page cache is watched meanwhile."""
        return None if self._guard is not None else self._fd

    def expect(self, position: int, size: int) -> None:
        """Tell the system that much of these bytes will be read, so that it fetches them at once."""
        if self._guard is not None or not hasattr(os, "posix_fadvise"):  # it would take them for the broker's
            return
        last = min(position + size, self.size) - 1
        if position > last or not (self._cached(position) and self._cached(last)):
            with suppress(OSError):  # some file systems take no advice
                os.posix_fadvise(self._fd, position, size, os.POSIX_FADV_WILLNEED)

    def _cached(self, position: int) -> bool:
        """Tell whether a byte is known to be in memory: to ask costs far less than to fetch what is there."""
        if not hasattr(os, "RWF_NOWAIT"):
            return False
        try:
            return bool(os.preadv(self._fd, [bytearray(1)], position, os.RWF_NOWAIT))
        except OSError:  # it is not, or the file system cannot tell
            return False

    def read(self, position: int, size: int) -> bytes:
        try:
            if self._guard is not None:
                self._guard.before(position, size)
            data = os.pread(self._fd, size, position)
            while 0 < len(data) < size:  # one read returns at most 2 GiB, and less when a signal comes
                more = os.pread(self._fd, size - len(data), position + len(data))
                if not more:
                    break
                data += more
        except OSError as reason:
            raise UnreadableError(self.name, f"byte {position}: {reason.strerror or reason}") from reason
        return data


class Window:
    """The part of a source that is in memory. Views stay good: a new block never replaces the bytes of an old one."""

    def __init__(self, source: Source, end: int) -> None:
        self._source = source
        self._end = end
        self._next = FIRST_BLOCK
        self.start = 0
        """The position of the block that is in memory."""
        self.block = memoryview(b"")

    def load(self, position: int, size: int) -> tuple[memoryview, int]:
        """Return a block, and where in it ``position`` lies: ``size`` bytes or more stand there, fewer at the end."""
        at = position - self.start
        if at < 0 or at + size > len(self.block):
            if not 0 <= at <= len(self.block) + BLOCK:  # a leap: what follows is nobody's guess
                self._next = FIRST_BLOCK
            wanted = min(max(size, self._next), self._end - position)
            self._next = min(BLOCK, self._next * 2)
            self.block = memoryview(self._source.read(position, max(0, wanted)))
            self.start, at = position, 0
        return self.block, at

    def view(self, position: int, size: int) -> memoryview:
        """Return the bytes from ``position`` on, ``size`` of them or fewer at the end."""
        block, at = self.load(position, size)
        return block[at : at + size]

    def ahead(self, position: int, least: int) -> memoryview:
        """Return what is in memory from ``position`` on: ``least`` bytes or more, fewer only at the end."""
        block, at = self.load(position, min(least, self._end - position))
        return block[at:]


def walk(
    source: Source,
    start: int = 0,
    end: int | None = None,
    window: Window | None = None,
    *,
    limit: int | None = None,
) -> Iterator[Piece]:
    """Yield what Kafka's own reader finds: batches, then Trailing bytes or the Damage that stops it.

    It believes every length up to ``limit`` bytes (by default the source's), checks no crc and takes any magic: this
    is what ``DumpLogSegments`` sees. ``end`` cuts the file there (in bytes). The sizes of the pieces sum to what was
    asked for.
    """
    end = source.size if end is None else min(end, source.size)
    limit = source.limit if limit is None else limit
    window = window or Window(source, end)
    position, last = start, end - log.UP_TO_MAGIC
    block, at = window.block, position - window.start
    while position < last:
        if not 0 <= at <= len(block) - log.UP_TO_MAGIC:
            block, at = window.load(position, log.UP_TO_MAGIC)
            if len(block) - at < log.UP_TO_MAGIC:  # the file has shrunk since its size was taken
                break
        offset, size, _, magic = log.START.struct.unpack_from(block, at)
        try:
            log.check_size(size)
            if position > end - log.OVERHEAD.size - size:
                break
            log.check_limit(size, limit)
            needed = log.needs(size, magic)
            if needed > len(block) - at:
                block, at = window.load(position, needed)
                if len(block) - at < log.OVERHEAD.size + size:  # it has shrunk
                    break
            piece = log.read(block[at : at + needed], offset, size, magic, position, limit=limit)
        except DamageError as damage:
            yield as_piece(damage, position, end - position)
            return
        yield piece
        position += piece.size
        at += piece.size
    if position < end:
        yield Trailing(position, end - position)


def as_piece(damage: DamageError, position: int, size: int) -> Damage:
    """Return the piece for ``damage``, whose own position counts from ``position``."""
    return Damage(position, size, damage.kind, damage.reason, position + damage.position, damage.expected, damage.found)


def read(
    source: Source,
    start: int = 0,
    end: int | None = None,
    *,
    on_error: OnError = "stop",
    first_offset: int | None = None,
    limit: int | None = None,
) -> Iterator[Piece]:
    """Yield the pieces of a segment, each batch checked: magic, structure of its header, codec and crc.

    After damage the rest of the file is one Damage piece ("stop"), the next piece begins where the length of the bad
    batch says ("skip"), or with the next sound batch wherever it stands ("resync"). Zeros at the end are Padding.
    ``first_offset`` is the segment's base offset, for the account of what is missing at its beginning. A batch of more
    than ``limit`` bytes (by default the source's) is damage.
    """
    from kdump.salvage import Reader  # it needs the walk

    end = source.size if end is None else min(end, source.size)
    found = Reader(source, start, end, on_error, first_offset, limit=limit).read()
    return cast("Iterator[Piece]", found)  # there are no runs unless one asks for them


def check(piece: RecordBatch) -> None:
    """Raise DamageError when the batch cannot be trusted: the broker's checks, and the magic that no crc covers."""
    if isinstance(piece, batch.Batch):
        header = piece.header
        if header.magic == batch.MAGIC and header.attributes & batch.CODEC_MASK <= codecs.ZSTD and piece.crc_valid:
            return
    if not 0 <= piece.magic <= batch.MAGIC:
        raise DamageError(
            "magic",
            f"magic {piece.magic} is none of Kafka's",
            position=log.MAGIC_POSITION,
            expected="0, 1 or 2",
            found=piece.magic,
        )
    smallest = batch.HEADER.size if piece.magic == batch.MAGIC else log.OVERHEAD.size + message.SMALLEST[piece.magic]
    if piece.size < smallest:
        raise DamageError(
            "batch size",
            f"a batch of magic {piece.magic} is too short for its own header",
            position=log.OVERHEAD.offsets["size"],
            expected=f"{smallest} bytes or more",
            found=piece.size,
        )
    if not piece.crc_valid:
        raise DamageError("crc", "the checksum is wrong", position=crc_position(piece.magic), found=piece.crc)
    if piece.codec == codecs.ZSTD and piece.magic < batch.MAGIC:
        raise DamageError("codec", f"zstd in magic {piece.magic}", found=piece.codec)


def crc_position(magic: int) -> int:
    """Return where the crc stands in a batch of this magic, in bytes."""
    return batch.HEADER.offsets["crc"] if magic >= batch.MAGIC else log.OVERHEAD.size


def zero_tail(source: Source, start: int, end: int) -> int:
    """Return where the zeros at the end begin: not before ``start``, and ``end`` when there are none."""
    while end > start:
        at = max(start, end - BLOCK)
        block = source.read(at, end - at)
        left = len(block.rstrip(b"\0"))
        if left or not block:
            return at + left
        end = at
    return end
