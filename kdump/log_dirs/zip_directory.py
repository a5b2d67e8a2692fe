"""Reads the central directory of a zip (its list of members), and the content of the members.

The standard library's ``zipfile`` reads the directory. :mod:`kdump.log_dirs.unpacking` decompresses members, in steps
of bounded memory. Source: PKWARE's APPNOTE 6.3.10; the extra field ``UT`` (0x5455) is Info-ZIP's.
"""

from __future__ import annotations

import os
import stat
import struct
import zipfile
import zlib
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.errors import LimitError, UnreadableError
from kdump.log_dirs import archive_formats
from kdump.log_dirs.unpacking import BLOCK, inflated, unpacked

if TYPE_CHECKING:
    from collections.abc import Iterator

_LARGEST: Final = 32 << 20
"""Largest accepted directory in bytes: enough for 40,000 partitions. Its entries need ten times as much memory."""
_LOCAL: Final = struct.Struct("<4s22xHH")
"""The header of a member: signature, and the sizes of the name and of the extra fields that follow."""
_LOCAL_SIGNATURE: Final = b"PK\x03\x04"
_STORED, _DEFLATED, _BZIP2, _XZ, _ZSTD, _OLD_ZSTD = 0, 8, 12, 95, 93, 20
_UNPACKED: Final = {
    _BZIP2: archive_formats.BZIP2,
    _XZ: archive_formats.XZ,
    _ZSTD: archive_formats.ZSTD,
    _OLD_ZSTD: archive_formats.ZSTD,
}
_METHODS: Final = {1: "shrink", 6: "implode", 9: "deflate64", 14: "LZMA", 97: "WavPack", 98: "PPMd"}
_ENCRYPTED: Final = 0x0001 | 0x0040 | 0x2000
"""Flags of a member whose content or header is encrypted."""
_UT: Final = 0x5455
_FAT: Final = 0
"""The ``create_system`` of members that some Windows programs write. The names of these members have backslashes."""


class ZipMember(NamedTuple):
    """A file of a zip. ``header`` is the position of its local header, ``modified`` is in ms, UTC."""

    path: str
    size: int
    packed_size: int
    method: int
    header: int
    crc: int
    modified: int | None
    is_link: bool


class ZipContent(NamedTuple):
    """The members of a zip. ``unread`` and ``left_out`` (not a file, link or folder) are pairs of name and reason."""

    members: list[ZipMember]
    folders: list[str]
    unread: list[tuple[str, str]]
    left_out: list[tuple[str, str]]


class _Bounded:
    """The file object that zipfile reads. Raises LimitError for a directory of more than _LARGEST bytes."""

    def __init__(self, descriptor: int) -> None:
        self._fd, self._position = descriptor, 0
        self._size = os.fstat(descriptor).st_size

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise OSError("a position before the start of the file")
        self._position = base + offset
        return self._position

    def read(self, size: int = -1) -> bytes:
        left = max(0, self._size - self._position)
        wanted = left if size < 0 else min(size, left)
        if wanted > _LARGEST:
            raise LimitError("limit", f"its list of members takes more than {_LARGEST >> 20} MiB")
        data = os.pread(self._fd, wanted, self._position)
        self._position += len(data)
        return data


def directory(descriptor: int) -> ZipContent:
    """Return the members of an open zip. Raises ValueError for a broken directory, LimitError for a large one."""
    try:
        with zipfile.ZipFile(_Bounded(descriptor)) as found:
            listed = found.infolist()
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError, struct.error, OverflowError) as reason:
        raise ValueError(str(reason)) from reason
    content = ZipContent([], [], [], [])
    overlapping = _overlapping(listed)
    for info in listed:
        name = info.filename.replace("\\", "/") if info.create_system == _FAT else info.filename
        mode = info.external_attr >> 16
        if name.endswith("/"):
            content.folders.append(name)
            continue
        if info.flag_bits & _ENCRYPTED:
            content.unread.append((name, "is encrypted"))
        elif info.compress_type not in {_STORED, _DEFLATED, *_UNPACKED}:
            method = _METHODS.get(info.compress_type, f"method {info.compress_type}")
            content.unread.append((name, f"is compressed with {method}"))
        elif info in overlapping:
            content.unread.append((name, f"overlaps another member (at byte {info.header_offset})"))
        elif stat.S_IFMT(mode) not in {0, stat.S_IFREG, stat.S_IFLNK}:
            content.left_out.append((name, "is not a file"))
        else:
            content.members.append(
                ZipMember(
                    name,
                    info.file_size,
                    info.compress_size,
                    info.compress_type,
                    info.header_offset,
                    info.CRC,
                    _modified(info.extra),
                    stat.S_ISLNK(mode),
                )
            )
    return content


def _overlapping(listed: list[zipfile.ZipInfo]) -> set[zipfile.ZipInfo]:
    """Return the members whose bytes overlap the next member. A hostile zip can list the same bytes many times."""
    ordered = sorted(listed, key=attrgetter("header_offset"))
    return {
        one
        for one, following in pairwise(ordered)
        if following.header_offset < one.header_offset + _LOCAL.size + one.compress_size
    }


def start_of_content(descriptor: int, member: ZipMember, name: str) -> int:
    """Return the position of a member's content. Raises UnreadableError."""
    head = _read(descriptor, member.header, _LOCAL.size, name)
    if len(head) < _LOCAL.size or not head.startswith(_LOCAL_SIGNATURE):
        raise UnreadableError(
            name, f"the zip has no member at byte {member.header}, where its directory expects this one"
        )
    _, name_size, extra_size = _LOCAL.unpack(head)
    start: int = member.header + _LOCAL.size + name_size + extra_size
    if start + member.packed_size > os.fstat(descriptor).st_size:
        raise UnreadableError(name, f"the zip ends inside this member, which has {member.packed_size} bytes")
    return start


def content(descriptor: int, member: ZipMember, name: str) -> Iterator[bytes]:
    """Yield the decompressed content of a member. Raises UnreadableError, also for a wrong size or CRC at the end."""
    blocks = _packed(descriptor, start_of_content(descriptor, member, name), member.packed_size, name)
    if member.method == _DEFLATED:
        blocks = inflated(blocks, name, wbits=-zlib.MAX_WBITS)
    elif member.method in _UNPACKED:
        blocks = unpacked(_UNPACKED[member.method], blocks, name)
    size = crc = 0
    for block in blocks:
        size, crc = size + len(block), zlib.crc32(block, crc)
        if size > member.size:
            break
        yield block
    if size != member.size:
        raise UnreadableError(
            name,
            f"its size in the zip's directory is {member.size} bytes, but its content has {_amount(size, member.size)}",
        )
    if crc != member.crc:
        raise UnreadableError(
            name, f"its checksum in the zip is wrong (expected {member.crc:#010x}, found {crc:#010x})"
        )


def is_stored(member: ZipMember) -> bool:
    return member.method == _STORED and member.packed_size == member.size


def _amount(size: int, expected: int) -> str:
    return "more" if size > expected else str(size)


def _packed(descriptor: int, position: int, size: int, name: str) -> Iterator[bytes]:
    while size > 0 and (block := _read(descriptor, position, min(BLOCK, size), name)):
        yield block
        position, size = position + len(block), size - len(block)


def _read(descriptor: int, position: int, size: int, name: str) -> bytes:
    try:
        return os.pread(descriptor, size, position)
    except OSError as reason:
        raise UnreadableError.of(name, reason) from reason


def _modified(extra: bytes) -> int | None:
    """Return the last write time in ms from the extra field, else None: the DOS time of a zip has no time zone."""
    at = 0
    while at + 4 <= len(extra):
        kind, size = struct.unpack_from("<HH", extra, at)
        if kind == _UT and size >= 5 and at + 4 + size <= len(extra) and extra[at + 4] & 1:
            return 1000 * int.from_bytes(extra[at + 5 : at + 9], "little", signed=True)
        at += 4 + size
    return None
