"""Tar archives as a place that holds files, and standard input.

Nothing is ever unpacked to a path: members are read where they stand in the archive. A compressed archive is first
unpacked as a whole to a temporary file without a name (in ``TMPDIR``), since it cannot be read at a position; so is
standard input, unless it is a file.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
import tarfile
import tempfile
import zlib
from bisect import bisect_right
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import IO, TYPE_CHECKING, Final

from kdump.errors import UnreadableError
from kdump.log_dirs import files
from kdump.log_dirs.files import GZIP_MAGIC, HEAD, ZSTD_MAGIC, Entry, OpenSource, is_tar
from kdump.log_dirs.local import LocalFile
from kdump.primitives.compression import DEFAULT_LIMIT
from kdump.primitives.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kdump.log_dirs.files import Source

_BLOCK: Final = 1 << 20
_GZIP_STEP: Final = 1 << 14
"""Bytes given to zlib at a time: each of many small members copies what is left of them."""
_ZSTD_STEP: Final = 1 << 13  # bounds what one step can unpack to
_LINKS_DEEP: Final = 8
_FOLDERS_DEEP: Final = 100
_SHOWN: Final = 100
"""Letters of a name that is too long to be shown."""
_SPARSE: Final = 1 << 32
"""Bytes that a file with holes may claim, however small its archive is: more than a segment can have."""
_NEWLINE: Final = 0x0A
_FAR: Final = 1e12
"""Seconds from 1970 that are no time of a file."""
_PAX: Final = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
_ABOUT_THE_NEXT: Final = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, *_PAX)
"""Headers whose content is about the next member, and is held in memory."""
_ABOUT_A_MEMBER: Final = 8 << 20
"""Bytes that all headers of one member may take: names, PAX records, a list of 500,000 holes."""
_MEMBERS: Final = 1 << 19
"""Members of an archive that are listed: those of 100,000 partitions. Each takes about 1,000 bytes of memory."""
_LONGEST_NAME: Final = 1 << 14
"""Bytes of a path that a member may have: four times PATH_MAX of Linux."""
_PAX_NAMES: Final = (b"path", b"linkpath", b"hdrcharset", b"GNU.sparse.name", b"GNU.sparse.map")
_PAX_NUMBERS: Final = (
    *(b"size", b"mtime", b"GNU.sparse.size", b"GNU.sparse.realsize", b"GNU.sparse.major", b"GNU.sparse.minor"),
    *(b"GNU.sparse.numblocks", b"GNU.sparse.offset", b"GNU.sparse.numbytes"),
)
"""Keywords of the PAX records that matter here. Records with other keywords never reach tarfile."""
_PAX_LENGTH: Final = re.compile(rb"([0-9]{1,20}) ")
_LONGEST_NUMBER: Final = 64
_MANY_DIGITS: Final = re.compile(rb"[0-9]{256}")
"""Digits in a row that no name of a file can have: the regular expressions of tarfile are quadratic in them."""


class Extent(NamedTuple):
    """A stretch of a sparse file: where it belongs, its size, and where its bytes stand in the archive."""

    position: int
    size: int
    stored: int


class OwnedDescriptor:
    """A file descriptor that is open for as long as anything refers to it."""

    def __init__(self, file: IO[bytes]) -> None:
        """Take over what ``file`` has open, and close ``file``."""
        self.fd = os.dup(file.fileno())
        file.close()

    def __del__(self, close: Callable[[int], None] = os.close) -> None:  # names may be gone when Python ends
        close(self.fd)


class Extents:
    """A source over stretches of an open file; what lies between them reads as zeros."""

    def __init__(self, held: OwnedDescriptor, name: str, size: int, extents: tuple[Extent, ...]) -> None:
        self._held, self.name, self.size, self._extents = held, name, size, extents
        self.limit = DEFAULT_LIMIT
        self._starts = [extent.position for extent in extents]

    def __enter__(self) -> Extents:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the archive open: other members are still to be read."""

    def next_data(self, position: int) -> int:
        for number in range(self._extent_at(position), len(self._extents)):
            start, size, stored = self._extents[number]
            at, end = max(0, position - start), stored + size
            if at < size and (found := files.seek(self._held.fd, stored + at, end, data=True)) < end:
                return min(start + found - stored, self.size)
        return self.size

    def next_hole(self, position: int) -> int:
        for number in range(self._extent_at(position), len(self._extents)):
            start, size, stored = self._extents[number]
            at = position - start
            if at < 0:
                break
            if at < size:
                found = files.seek(self._held.fd, stored + at, stored + size, data=False)
                position = start + found - stored
                if found < stored + size:
                    break
        return min(position, self.size)

    def _extent_at(self, position: int) -> int:
        """Return the number of the last extent that begins at a position or before it, 0 before the first."""
        return max(0, bisect_right(self._starts, position) - 1)

    def read(self, position: int, size: int) -> bytes:
        size = max(0, min(size, self.size - position))
        if len(self._extents) == 1 and self._extents[0].position == 0 and self._extents[0].size == self.size:
            return self._stored(self._extents[0].stored + position, size)
        data = bytearray(size)
        for number in range(self._extent_at(position), len(self._extents)):
            extent = self._extents[number]
            if extent.position >= position + size:
                break
            start, end = max(position, extent.position), min(position + size, extent.position + extent.size)
            if start < end:
                found = self._stored(extent.stored + start - extent.position, end - start)
                data[start - position : start - position + len(found)] = found
        return bytes(data)

    def _stored(self, position: int, size: int) -> bytes:
        parts = []
        try:
            while size > 0 and (part := os.pread(self._held.fd, size, position)):
                parts.append(part)
                position, size = position + len(part), size - len(part)
        except OSError as reason:
            raise UnreadableError(self.name, reason.strerror or str(reason)) from reason
        return parts[0] if len(parts) == 1 else b"".join(parts)


class Member(NamedTuple):
    """A file in an archive; ``modified`` is in ms."""

    size: int
    extents: tuple[Extent, ...]
    modified: int | None


class Archive:
    """The files of a tar archive.

    ``left_out`` names the members that are neither files nor folders, and why; ``broken`` says where the archive ends
    too early, if it does.
    """

    def __init__(self, held: OwnedDescriptor, name: str) -> None:
        self.name = name
        self._held = held
        self._folders: dict[str, dict[str, Entry]] = {"": {}}
        self._members: dict[str, Member] = {}
        self.left_out: list[tuple[str, str]] = []
        self.broken: str | None = None
        self._scan()

    def _scan(self) -> None:
        links: list[tuple[str, str]] = []
        size, behind = os.fstat(self._held.fd).st_size, 0
        try:
            headers = _Headers(self._held.fd)
            with tarfile.open(fileobj=headers, mode="r:", tarinfo=_headers_within(size, headers)) as tar:  # type: ignore[call-overload]  # it reads, seeks and tells
                while (info := tar.next()) is not None:
                    headers.next_member()
                    if tar.offset <= behind:  # a size below zero, from a PAX header: it would be read for ever
                        raise tarfile.ReadError(f"the header at byte {info.offset} leads back")
                    behind = tar.offset
                    tar.members = []  # else every header ever read stays in memory
                    path = _inside(info.name)
                    if max(len(path), len(info.linkname)) > _LONGEST_NAME:
                        self.left_out.append((path[:_SHOWN] + "...", f"has a name of more than {_LONGEST_NAME} bytes"))
                    elif path.count("/") > _FOLDERS_DEEP:
                        self.left_out.append((path[:_SHOWN] + "...", f"lies in more than {_FOLDERS_DEEP} folders"))
                    elif info.issparse() and info.size > max(size, _SPARSE):
                        self.left_out.append((path, f"claims {info.size} bytes, and the archive has {size}"))
                    elif info.isreg():
                        self._add(path, _member(info))
                    elif info.islnk():
                        links.append((path, _inside(info.linkname)))
                    elif info.issym():
                        links.append((path, _inside(posixpath.join(posixpath.dirname(path), info.linkname))))
                    elif not info.isdir():
                        self.left_out.append((path, "is no file"))
                if os.pread(self._held.fd, tarfile.BLOCKSIZE, tar.offset).strip(b"\0"):
                    self.broken = f"the archive is broken at byte {tar.offset}: what follows is not read"
        except (tarfile.TarError, OSError, EOFError, ValueError, OverflowError, RecursionError) as reason:
            # the last three come of what PAX headers say, and of how many there are
            self.broken = f"the archive is broken, what follows is not read: {reason}"
        self._resolve(links)

    def _resolve(self, links: list[tuple[str, str]]) -> None:
        """Make links within the archive files of their own; those to folders and out of it are left out."""
        for _ in range(_LINKS_DEEP):
            rest = []
            for path, target in links:
                member = self._members.get(target)
                if member is None:
                    rest.append((path, target))
                else:
                    self._add(path, member)
            if len(rest) == len(links):
                break
            links = rest
        self.left_out += [(path, f"links to {target}, which is no file of the archive") for path, target in links]

    def _add(self, path: str, member: Member) -> None:
        self._members[path] = member
        folder, name = posixpath.split(path)
        self._folder(folder)[name] = Entry(
            name, path, False, member.size, path, member.modified, sum(extent.size for extent in member.extents)
        )

    def _folder(self, path: str) -> dict[str, Entry]:
        inside = self._folders.get(path)
        if inside is None:
            inside = self._folders[path] = {}
            above, name = posixpath.split(path)
            self._folder(above)[name] = Entry(name, path, True, 0, path)
        return inside

    def look(self, path: str) -> Entry | None:
        folder, name = posixpath.split(path)
        return self._folders.get(folder, {}).get(name)

    def entries(self, folder: str) -> list[Entry]:
        return sorted(self._folders[folder].values())

    def open(self, path: str) -> OpenSource:
        if path not in self._members:
            raise UnreadableError(self.shown(path), "No such file in the archive")
        member = self._members[path]
        return Extents(self._held, self.shown(path), member.size, member.extents)

    def glob(self, pattern: str) -> list[str]:
        return sorted(path for path in self._members if fnmatchcase(path, pattern))

    def shown(self, path: str) -> str:
        return f"{self.name}:{path}"


class _Headers:
    """An archive as tarfile reads it to list the members: headers alone, PAX records after a check of their framing.

    tarfile takes time that is quadratic in the digits of a PAX header (CVE-2024-6232, Python before 3.11.10 and
    3.12.6), ends quietly at one that it cannot read, and copies every global record for each member.
    """

    def __init__(self, descriptor: int) -> None:
        self._fd, self._position, self._members = descriptor, 0, 0
        self._left = _ABOUT_A_MEMBER
        self.pax_size: int | None = None
        """Bytes of the PAX header that is read next; None for anything else."""

    def next_member(self) -> None:
        """Begin with the headers of another member. Raises ReadError where there are too many."""
        self._left, self._members = _ABOUT_A_MEMBER, self._members + 1
        if self._members > _MEMBERS:
            raise tarfile.ReadError(f"it has more than {_MEMBERS} members: extract it, or name an archive of a part")

    def tell(self) -> int:
        return self._position

    def seek(self, position: int) -> None:
        self._position = position

    def read(self, size: int) -> bytes:
        """Return the next bytes; of a PAX header the records that matter, then zeros. Raises ReadError."""
        start, self._left = self._position, self._left - size
        if self._left < 0:
            raise tarfile.ReadError(
                f"the headers of the member before byte {start} take more than {_ABOUT_A_MEMBER} bytes"
            )
        data = os.pread(self._fd, size, start)
        self._position += len(data)
        pax_size, self.pax_size = self.pax_size, None
        if pax_size is None:
            return data
        if len(data) < pax_size:
            raise tarfile.ReadError(f"the PAX header at byte {start} ends with the file")
        return _pax_records(data[:pax_size], start).ljust(size, b"\0")


def _pax_records(data: bytes, start: int) -> bytes:
    """Return the records of a PAX header that matter (POSIX.1-2008, pax, "Extended Header").

    A record is its own length in decimal, a space, keyword=value, and a newline. ``start`` is the header's position.
    Raises ReadError for any other framing, and for numbers and names that no file can have.
    """
    at, kept = 0, []
    while at < len(data) and data[at]:
        match = _PAX_LENGTH.match(data, at)
        end = at + int(match[1]) if match else 0
        keyword, equals, value = data[match.end() : end - 1].partition(b"=") if match else (b"", b"", b"")
        if not (match and match.end() < end <= len(data) and keyword and equals and data[end - 1] == _NEWLINE):
            raise tarfile.ReadError(f"byte {start + at} begins no record of a PAX header")
        is_number = keyword in _PAX_NUMBERS
        if (is_number and len(value) > _LONGEST_NUMBER) or (keyword in _PAX_NAMES and _MANY_DIGITS.search(value)):
            shown = keyword.decode("ascii")
            raise tarfile.ReadError(f"the value of {shown} in the PAX header at byte {start + at} has too many digits")
        if is_number or keyword in _PAX_NAMES:
            kept.append(data[at:end])
        at = end
    return b"".join(kept)


def _headers_within(size: int, headers: _Headers) -> type[tarfile.TarInfo]:
    """Return the reader of headers for an archive of ``size`` bytes: it takes none that claims more, or less than 0."""

    class BoundedTarInfo(tarfile.TarInfo):
        @classmethod
        def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> BoundedTarInfo:
            made = super().frombuf(buf, encoding, errors)
            if not 0 <= made.size <= (size if made.type not in _ABOUT_THE_NEXT else _BLOCK):
                raise tarfile.HeaderError(f"a member of {made.size} bytes")
            headers.pax_size = made.size if made.type in _PAX else None
            return made

    return BoundedTarInfo


def _inside(path: str) -> str:
    """Return a path that cannot lead out of the archive."""
    return posixpath.normpath(posixpath.join("/", path)).lstrip("/")


def _member(info: tarfile.TarInfo) -> Member:
    sparse: list[tuple[int, int]] | None = getattr(info, "sparse", None)
    modified = _milliseconds(info)
    if sparse is None:
        return Member(info.size, (Extent(0, info.size, info.offset_data),), modified)
    stored, extents = info.offset_data, []
    for position, size in sparse:
        extents.append(Extent(position, size, stored))
        stored += size
    return Member(info.size, tuple(sorted(extents)), modified)


def _milliseconds(info: tarfile.TarInfo) -> int | None:
    """Return the time of the last write in ms, None where it makes no sense. A float does not hold it whole."""
    if not abs(info.mtime) < _FAR:
        return None
    try:
        return int(Decimal(info.pax_headers.get("mtime", info.mtime)) * 1000)
    except ArithmeticError:  # the header has no number
        return None


class OneFile:
    """A place that holds one file without a path: standard input, or what a compressed file unpacks to."""

    def __init__(self, held: OwnedDescriptor, name: str) -> None:
        self._held, self.name = held, name
        self._size = os.fstat(held.fd).st_size

    def look(self, path: str) -> Entry | None:
        return Entry(self.name, self.name, False, self._size, self.name) if path == self.name else None

    def entries(self, folder: str) -> list[Entry]:  # noqa: ARG002  there is one folder
        return [Entry(self.name, self.name, False, self._size, self.name)]

    def open(self, path: str) -> OpenSource:
        return Extents(self._held, path, self._size, (Extent(0, self._size, 0),))

    def glob(self, pattern: str) -> list[str]:  # noqa: ARG002  nothing to choose from
        return [self.name]

    def shown(self, path: str) -> str:
        return path


def open_archive(source: Source, name: str) -> Archive | OneFile:
    """Return the place that a file holds which :func:`kdump.log_dirs.files.is_archive` knows: a tar, or one compressed
    file.

    Raises UnreadableError when it is broken, or when there is no room for what it unpacks to.
    """
    head = source.read(0, HEAD)
    unpack = _UNPACK.get(head[:3]) or _UNPACK.get(head[:4])
    if unpack is None:
        if isinstance(source, LocalFile):
            return Archive(OwnedDescriptor(open(source.name, "rb", buffering=0)), name)  # noqa: PTH123  OwnedDescriptor closes it
        return Archive(_spool(_blocks(source), name), name)
    held = _spool(unpack(source, name), name)
    return _place(held, name)


def _place(held: OwnedDescriptor, name: str) -> Archive | OneFile:
    return Archive(held, name) if is_tar(os.pread(held.fd, HEAD, 0)) else OneFile(held, name)


def standard_input() -> OneFile | Archive:
    """Return the place that standard input holds: an archive, or one segment."""
    name = "stdin"
    if os.isatty(0):
        raise UnreadableError("-", "standard input is a terminal", "kdump dump - < FILE, or a pipe")
    with os.fdopen(0, "rb", buffering=0, closefd=False) as stdin:
        if stat.S_ISREG(os.fstat(0).st_mode):
            held = OwnedDescriptor(os.fdopen(os.dup(0), "rb", buffering=0))
        else:
            held = _spool(iter(lambda: stdin.read(_BLOCK), b""), name)
    place = _place(held, name)
    head = os.pread(held.fd, HEAD, 0)
    if head[:3] in _UNPACK or head[:4] in _UNPACK:
        return open_archive(place.open(name), name)
    return place


def _spool(blocks: Iterator[bytes], name: str) -> OwnedDescriptor:
    """Write ``blocks`` to a temporary file without a name."""
    try:
        with tempfile.TemporaryFile(buffering=0) as file:
            free = os.fstatvfs(file.fileno())
            left = free.f_bavail * free.f_frsize // 2
            for block in blocks:
                left -= len(block)
                if left < 0:
                    raise UnreadableError(
                        name,
                        f"unpacks to more than half of what is free in {tempfile.gettempdir()}",
                        "set TMPDIR to a folder with more room",
                    )
                rest = memoryview(block)
                while rest:  # a disk that is nearly full takes a part
                    rest = rest[file.write(rest) :]
            return OwnedDescriptor(file)
    except OSError as reason:
        raise UnreadableError(
            name,
            f"cannot be unpacked to {tempfile.tempdir or 'a temporary file'}: {reason.strerror or reason}",
            "set TMPDIR to a folder with more room",
        ) from reason


def _blocks(source: Source, size: int = _BLOCK) -> Iterator[bytes]:
    position = 0
    while block := source.read(position, size):
        yield block
        position += len(block)


def _gunzip(source: Source, name: str) -> Iterator[bytes]:
    member = zlib.decompressobj(wbits=31)
    for block in _blocks(source, _GZIP_STEP):
        try:
            while block:
                if member.eof:
                    if not block.startswith(b"\x1f"):  # padding behind the last member
                        return
                    member = zlib.decompressobj(wbits=31)
                yield (part := member.decompress(block, _BLOCK))
                block = member.unused_data if member.eof else member.unconsumed_tail
                if not part and not block:
                    break
        except zlib.error as reason:
            raise UnreadableError(name, f"the gzip stream is broken: {reason}") from reason
    if not member.eof:
        raise UnreadableError(name, "the gzip stream ends in the middle")


def _unzstd(source: Source, name: str) -> Iterator[bytes]:
    import zstandard

    decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 31)
    frame = decompressor.decompressobj()
    for block in _blocks(source, _ZSTD_STEP):
        try:
            while block:
                if frame.eof:
                    frame = decompressor.decompressobj()
                yield frame.decompress(block)
                block = frame.unused_data if frame.eof else b""
        except zstandard.ZstdError as reason:
            raise UnreadableError(name, f"the zstd stream is broken: {reason}") from reason
    if not frame.eof:
        raise UnreadableError(name, "the zstd stream ends in the middle")


_UNPACK: Final[dict[bytes, Callable[[Source, str], Iterator[bytes]]]] = {GZIP_MAGIC: _gunzip, ZSTD_MAGIC: _unzstd}
