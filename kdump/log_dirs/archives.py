"""Reads files in archives (tar, zip), compressed files and standard input.

Uncompressed members are read in place. Other content is first decompressed or copied to an unnamed temporary file in
``TMPDIR``: compressed files and members of a zip, a pipe on standard input, and archives that are not local files.
"""

from __future__ import annotations

import fcntl
import os
import posixpath
import re
import stat
import tarfile
import threading
from bisect import bisect_right
from decimal import Decimal
from typing import TYPE_CHECKING, Final, NamedTuple, cast
from weakref import WeakValueDictionary

from kdump.errors import LimitError, UnreadableError, many
from kdump.log_dirs import archive_formats
from kdump.log_dirs.archive_formats import HEAD
from kdump.log_dirs.files import Entry, Files, OpenSource, matches, seek
from kdump.log_dirs.local import LOCAL, LocalFile
from kdump.log_dirs.unpacking import BLOCK, OwnedDescriptor, Spool, blocks_of, unpacked
from kdump.primitives.compression import DEFAULT_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kdump.log_dirs.files import Source
    from kdump.log_dirs.zip_directory import ZipMember

_LINKS_DEEP: Final = 8
_COMPRESSED_DEEP: Final = 3
"""Maximum number of nested compressions of a file. Some hostile streams decompress to themselves, without end."""
_FOLDERS_DEEP: Final = 100
_SHOWN: Final = 100
_LARGE_FILE: Final = 1 << 32
"""Largest size in bytes of a sparse or truncated member, which may be larger than its archive. Segments are smaller."""
_NEWLINE: Final = 0x0A
_FAR: Final = 1e12
"""The lowest invalid time of a member, in seconds since 1970."""
_PAX: Final = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
_ABOUT_THE_NEXT: Final = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, *_PAX)
"""Types of headers that describe the next member. tarfile reads such headers into memory."""
_ABOUT_A_MEMBER: Final = 8 << 20
"""Maximum size in bytes of the headers of one member: names, PAX records, a list of 500,000 holes."""
_MEMBERS: Final = 1 << 19
"""Maximum number of members of an archive: enough for 100,000 partitions. Memory: about 1,000 bytes per member."""
_LONGEST_NAME: Final = 1 << 14
"""Maximum length in characters of a member's path: four times PATH_MAX of Linux."""
_PAX_NAMES: Final = (b"path", b"linkpath", b"hdrcharset", b"GNU.sparse.name", b"GNU.sparse.map")
_PAX_NUMBERS: Final = (
    *(b"size", b"mtime", b"GNU.sparse.size", b"GNU.sparse.realsize", b"GNU.sparse.major", b"GNU.sparse.minor"),
    *(b"GNU.sparse.numblocks", b"GNU.sparse.offset", b"GNU.sparse.numbytes"),
)
"""_PAX_NAMES and _PAX_NUMBERS are the keywords of the PAX records that tarfile needs. Other records are dropped."""
_PAX_LENGTH: Final = re.compile(rb"([0-9]{1,20}) ")
_LONGEST_NUMBER: Final = 64
_MANY_DIGITS: Final = re.compile(rb"[0-9]{256}")
"""A PAX name with this is refused, because tarfile's regular expressions need quadratic time for long numbers."""


class Extent(NamedTuple):
    """A range of a member's data: its position in the member, its size, and its position in the archive, in bytes."""

    position: int
    size: int
    stored: int


class Extents:
    """A source that consists of ranges of an open file. Bytes between the ranges are zero."""

    def __init__(self, descriptor: OwnedDescriptor, name: str, size: int, extents: tuple[Extent, ...]) -> None:
        self._held, self.name, self.size, self._extents = descriptor, name, size, extents
        self.limit = DEFAULT_LIMIT
        self._starts = [extent.position for extent in extents]

    def __enter__(self) -> Extents:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: other members need the open archive."""

    def next_data(self, position: int) -> int:
        for number in range(self._extent_at(position), len(self._extents)):
            start, size, stored = self._extents[number]
            at, end = max(0, position - start), stored + size
            if at < size and (found := seek(self._held.fd, stored + at, end, data=True)) < end:
                return min(start + found - stored, self.size)
        return self.size

    def next_hole(self, position: int) -> int:
        for number in range(self._extent_at(position), len(self._extents)):
            start, size, stored = self._extents[number]
            at = position - start
            if at < 0:
                break
            if at < size:
                found = seek(self._held.fd, stored + at, stored + size, data=False)
                position = start + found - stored
                if found < stored + size:
                    break
        return min(position, self.size)

    def _extent_at(self, position: int) -> int:
        """Return the index of the last extent that begins at or before a position; 0 if there is none."""
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
            raise UnreadableError.of(self.name, reason) from reason
        return parts[0] if len(parts) == 1 else b"".join(parts)


class Member(NamedTuple):
    """A file in an archive. ``modified`` is in ms; ``disk_size`` is the size in the archive in bytes."""

    size: int
    extents: tuple[Extent, ...]
    modified: int | None
    disk_size: int
    packed: ZipMember | None = None
    """The zip's own entry for the member, or None in a tar. In a zip ``extents`` is empty."""


class _Link(NamedTuple):
    """A link in an archive. Only a symbolic link can lead to a folder."""

    path: str
    target: str
    is_hard: bool = False


class Archive:
    """The files of an archive. ``left_out`` lists skipped members with reasons, except those that ``broken`` counts.

    ``identity`` is equal for two names of the same archive. ``local`` is the local file that contains the archive, or
    "". If members are unreadable, ``broken`` is a sentence about them, not None, and ``hint`` the next step, or "".
    """

    def __init__(self, descriptor: OwnedDescriptor, name: str, identity: object, local: str) -> None:
        self.name, self.local = name, local
        self._held, self._identity = descriptor, identity
        self._root = Entry("", "", True, 0, (identity, ""))
        self._folders: dict[str, dict[str, Entry]] = {"": {}}
        self._members: dict[str, Member] = {}
        self._links: dict[str, str] = {}
        """Path of a link to a folder -> this folder."""
        self.left_out: list[tuple[str, str]] = []
        self.broken: str | None = None
        self.hint = ""
        self._scan()

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle only the name: another process opens the archive again."""
        return reopened, (self.name,)

    def _scan(self) -> None:
        """Add the members. Set ``broken`` if the archive is broken."""
        raise NotImplementedError

    def _word(self) -> str:
        """Return the archive as a word of a command: FILE for standard input, and for an archive in an archive."""
        from kdump.primitives.terminal import shell_path

        return shell_path(self.name) if self.name == self.local else "FILE"

    def _stop_at(self, limit: LimitError, unread: str) -> None:
        """Set ``broken`` and ``hint`` for an archive above a limit of kdump. ``broken`` begins with ``unread``."""
        self.broken = f"{unread} not read, because {limit.reason} (a limit of kdump, not damage)"
        self.hint = "extract the archive, then name the folder; or name an archive with fewer members"

    def _takes(self, path: str, linkname: str = "") -> bool:
        """Return whether a member's path and link target are short enough. If not, add it to ``left_out``."""
        if max(len(path), len(linkname)) > _LONGEST_NAME:
            self.left_out.append((path[:_SHOWN] + "...", f"has a name of more than {_LONGEST_NAME} bytes"))
        elif path.count("/") > _FOLDERS_DEEP:
            self.left_out.append((path[:_SHOWN] + "...", f"is more than {_FOLDERS_DEEP} folders deep"))
        else:
            return True
        return False

    def _resolve(self, links: list[_Link]) -> None:
        for _ in range(_LINKS_DEEP):
            rest = []
            for link in links:
                real = self._real(link.target)
                if (member := self._members.get(real)) is not None:
                    self._add(link.path, member)
                elif real in self._folders and not link.is_hard and self.look(link.path) is None:
                    self._link(link.path, real)
                else:
                    rest.append(link)
            if len(rest) == len(links):
                break
            links = rest
        for path, target, _ in links:
            self.left_out.append((path, f"links to {target or '.'}, which is not a file or folder of the archive"))

    def _link(self, path: str, target: str) -> None:
        self._links[path] = target
        folder, name = posixpath.split(path)
        self._folder(folder)[name] = Entry(name, path, True, 0, (self._identity, target))

    def _real(self, path: str) -> str:
        """Return a path without links to folders. Links in circles, and more than _LINKS_DEEP of them, stay."""
        for _ in range(_LINKS_DEEP if self._links else 0):
            names = path.split("/")
            above = ("/".join(names[:number]) for number in range(1, len(names) + 1))
            link = next((one for one in above if one in self._links), None)
            if link is None:
                break
            path = posixpath.join(self._links[link], path[len(link) + 1 :]).rstrip("/")
        return path

    def _add(self, path: str, member: Member) -> None:
        self._members[path] = member
        folder, name = posixpath.split(path)
        identity = (self._identity, path)
        self._folder(folder)[name] = Entry(name, path, False, member.size, identity, member.modified, member.disk_size)

    def _folder(self, path: str) -> dict[str, Entry]:
        inside = self._folders.get(path)
        if inside is None:
            inside = self._folders[path] = {}
            above, name = posixpath.split(path)
            self._folder(above)[name] = Entry(name, path, True, 0, (self._identity, path))
        return inside

    def look(self, path: str) -> Entry | None:
        path = _inside(path)
        folder, name = posixpath.split(path)
        entry = self._folders.get(self._real(folder), {}).get(name) if path else self._root
        return None if entry is None else entry._replace(path=path)

    def entries(self, folder: str) -> list[Entry]:
        path = _inside(folder)
        real = self._real(path)
        inside = self._folders.get(real)
        if inside is None:
            raise UnreadableError(self.shown(folder), "No such folder in the archive")
        found = sorted(inside.values())
        return found if real == path else [one._replace(path=posixpath.join(path, one.name)) for one in found]

    def open(self, path: str) -> OpenSource:
        member = self._members.get(self._real(path))
        if member is None:
            raise UnreadableError(self.shown(path), "No such file in the archive")
        return self._source(path, member)

    def _source(self, path: str, member: Member) -> Extents:
        return Extents(self._held, self.shown(path), member.size, member.extents)

    def glob(self, pattern: str) -> list[str]:
        return matches(self, pattern)

    def shown(self, path: str) -> str:
        return self.name if path in {"", "."} else f"{self.name}:{path}"


class TarArchive(Archive):
    def _scan(self) -> None:
        links: list[_Link] = []
        size, last_end = os.fstat(self._held.fd).st_size, 0
        try:
            headers = _Headers(self._held.fd)
            with tarfile.open(fileobj=headers, mode="r:", tarinfo=_headers_within(size, headers)) as tar:  # type: ignore[call-overload]  # it reads, seeks and shows
                while (info := tar.next()) is not None:
                    headers.next_member()
                    if tar.offset <= last_end:  # a negative size in a PAX header would cause an endless loop
                        raise tarfile.ReadError(
                            f"the header at byte {info.offset} gives an earlier byte as the end of its member"
                        )
                    last_end = tar.offset
                    tar.members = []  # tarfile would keep all headers in memory
                    path = _inside(info.name)
                    if not self._takes(path, info.linkname):
                        continue
                    if info.issparse() and info.size > max(size, _LARGE_FILE):
                        self.left_out.append((path, f"claims {many(info.size, 'byte')}, but the archive has {size}"))
                    elif info.isreg():
                        self._add(path, _member(info, size))
                    elif info.islnk():
                        links.append(_Link(path, _inside(info.linkname), is_hard=True))
                    elif info.issym():
                        target = _inside(posixpath.join(posixpath.dirname(path), info.linkname))
                        links.append(_Link(path, target))
                    elif info.isdir():
                        self._folder(path)
                    else:
                        self.left_out.append((path, "is not a file"))
                self._check_end(tar.offset, size)
        except LimitError as limit:
            self._stop_at(limit, "later members are")
        except (tarfile.TarError, OSError, EOFError, ValueError, OverflowError, RecursionError) as reason:
            # ValueError, OverflowError and RecursionError come from values and the number of PAX headers
            self.broken = f"the archive is broken, so its later members are not read: {reason}"
        self._resolve(links)

    def _check_end(self, end: int, size: int) -> None:
        """Set ``broken`` if not all bytes from ``end``, where the last member ends, to the end of the file are zero."""
        position = end
        while position < size and (block := os.pread(self._held.fd, BLOCK, position)):
            if more := block.lstrip(b"\0"):
                position += (len(block) - len(more)) // tarfile.BLOCKSIZE * tarfile.BLOCKSIZE
                break
            position = seek(self._held.fd, position + len(block), size, data=True)
        else:
            return
        if position == end:
            self.broken = f"the archive is broken at byte {end}: later members are not read"
            return
        self.broken = f"the archive ends before byte {position}, where other data follow, such as another archive"
        self.hint = f"tar --ignore-zeros -xf {self._word()} extracts all; the last file of a name counts"


class ZipArchive(Archive):
    """The files of a zip. A compressed member is decompressed to a temporary file when it is first opened."""

    def _scan(self) -> None:
        from kdump.log_dirs import zip_directory

        self._begin()
        try:
            content = zip_directory.directory(self._held.fd)
            if len(content.members) + len(content.folders) > _MEMBERS:
                raise _too_many()
        except LimitError as limit:
            self._stop_at(limit, "its members are")
            return
        except ValueError as reason:
            self.broken = f"the zip cannot be read: {reason}"
            self.hint = f"zip -FF {self._word()} --out mended.zip repairs a truncated zip as far as possible"
            return
        links: list[_Link] = []
        self.left_out += [(_inside(path), reason) for path, reason in content.left_out]
        for path in map(_inside, content.folders):
            if self._takes(path):
                self._folder(path)
        for member in content.members:
            path = _inside(member.path)
            if not (path and self._takes(path)):
                continue
            if member.is_link:
                if (target := self._target(path, member)) is not None:
                    links.append(_Link(path, target))
                continue
            self._add(path, Member(member.size, (), member.modified, member.packed_size, member))
        self._resolve(links)
        if content.unread:
            (first, why), count = content.unread[0], len(content.unread)
            more = f" (and {count - 1} more)" if count > 1 else ""
            self.broken = f"{count:,} of {count + len(content.members):,} members cannot be read: {first} {why}{more}"
            self.hint = f"7z x {self._word()}, then name the folder"

    def _begin(self) -> None:
        """Forget the temporary file. Runs at the start and after a fork, because each process needs its own file."""
        self._process, self._lock = os.getpid(), threading.Lock()
        self._spool: Spool | None = None
        self._unpacked: dict[ZipMember, Extent] = {}

    def _target(self, path: str, member: ZipMember) -> str | None:
        """Return the target of a symbolic link. If the link is unreadable, add it to ``left_out`` and return None."""
        from kdump.log_dirs import zip_directory

        try:
            if member.size > _LONGEST_NAME:
                raise UnreadableError(path, f"has a name of more than {_LONGEST_NAME} bytes")
            data = b"".join(zip_directory.content(self._held.fd, member, self.shown(path)))
        except UnreadableError as error:
            self.left_out.append((path, f"is a link that cannot be read: {error.reason}"))
            return None
        return _inside(posixpath.join(posixpath.dirname(path), data.decode("utf-8", "surrogateescape")))

    def _source(self, path: str, member: Member) -> Extents:
        from kdump.log_dirs import zip_directory

        name, packed = self.shown(path), cast("ZipMember", member.packed)
        if zip_directory.is_stored(packed):
            start = zip_directory.start_of_content(self._held.fd, packed, name)
            return Extents(self._held, name, member.size, (Extent(0, member.size, start),))
        if self._process != os.getpid():
            self._begin()
        with self._lock:
            self._spool = self._spool or Spool(self.name)
            if packed not in self._unpacked:
                start = self._spool.add(zip_directory.content(self._held.fd, packed, name))
                self._unpacked[packed] = Extent(0, member.size, start)
            return Extents(self._spool.held, name, member.size, (self._unpacked[packed],))


def _too_many() -> LimitError:
    return LimitError("limit", f"it has more than {_MEMBERS} members")


class _Headers:
    """The file object that tarfile reads to list the members. It checks PAX headers, and drops unneeded records.

    Reasons: Python before 3.11.10 and 3.12.6 needs quadratic time for the digits in a PAX header (CVE-2024-6232).
    tarfile stops at an invalid header without an error, and copies all global records for each member.
    """

    def __init__(self, descriptor: int) -> None:
        self._fd, self._position, self._members = descriptor, 0, 0
        self._left = _ABOUT_A_MEMBER
        self.pax_size: int | None = None
        """The size in bytes of the PAX header that the next call reads, or None if it reads something else."""

    def next_member(self) -> None:
        """Start the count of header bytes for the next member. Raises LimitError for too many members."""
        self._left, self._members = _ABOUT_A_MEMBER, self._members + 1
        if self._members > _MEMBERS:
            raise _too_many()

    def tell(self) -> int:
        return self._position

    def seek(self, position: int) -> None:
        self._position = position

    def read(self, size: int) -> bytes:
        """Return the next ``size`` bytes. In a PAX header, replace the unneeded records by zeros at its end.

        Raises ReadError for an invalid PAX header, and LimitError for headers of more than _ABOUT_A_MEMBER bytes.
        """
        start, self._left = self._position, self._left - size
        if self._left < 0:
            raise LimitError(
                "limit", f"one member has more than {_ABOUT_A_MEMBER} bytes of headers, before byte {start}"
            )
        data = os.pread(self._fd, size, start)
        self._position += len(data)
        pax_size, self.pax_size = self.pax_size, None
        if pax_size is None:
            return data
        if len(data) < pax_size:
            raise tarfile.ReadError(f"the file ends inside the PAX header at byte {start}")
        return _pax_records(data[:pax_size], start).ljust(size, b"\0")


def _pax_records(data: bytes, start: int) -> bytes:
    """Return the needed records of a PAX header at byte ``start`` (POSIX.1-2008, pax, "Extended Header").

    A record is its own length, a space, keyword=value and a newline. Raises ReadError for others, or too many digits.
    """
    at, kept = 0, []
    while at < len(data) and data[at]:
        match = _PAX_LENGTH.match(data, at)
        end = at + int(match[1]) if match else 0
        keyword, equals, value = data[match.end() : end - 1].partition(b"=") if match else (b"", b"", b"")
        if not (match and match.end() < end <= len(data) and keyword and equals and data[end - 1] == _NEWLINE):
            raise tarfile.ReadError(f"the record of a PAX header at byte {start + at} is malformed")
        is_number = keyword in _PAX_NUMBERS
        if (is_number and len(value) > _LONGEST_NUMBER) or (keyword in _PAX_NAMES and _MANY_DIGITS.search(value)):
            shown = keyword.decode("ascii")
            raise tarfile.ReadError(f"the value of {shown} in the PAX header at byte {start + at} has too many digits")
        if is_number or keyword in _PAX_NAMES:
            kept.append(data[at:end])
        at = end
    return b"".join(kept)


def _headers_within(size: int, headers: _Headers) -> type[tarfile.TarInfo]:
    """Return a TarInfo class that rejects wrong sizes, and truncates a member at the archive's end (byte ``size``)."""

    class BoundedTarInfo(tarfile.TarInfo):
        @classmethod
        def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> BoundedTarInfo:
            made = super().frombuf(buf, encoding, errors)
            if made.isreg() and size < made.size <= _LARGE_FILE:
                made.size = size  # the archive ends inside this member
            if not 0 <= made.size <= (size if made.type not in _ABOUT_THE_NEXT else BLOCK):
                raise tarfile.HeaderError(f"the size of a member is {made.size} bytes, but the archive has {size}")
            headers.pax_size = made.size if made.type in _PAX else None
            return made

    return BoundedTarInfo


def _inside(path: str) -> str:
    """Return a path inside the archive without leading ``/`` and without ``..``."""
    return posixpath.normpath(posixpath.join("/", path)).lstrip("/")


def _member(info: tarfile.TarInfo, end: int) -> Member:
    """Return a member. The archive ends at byte ``end``, so the last member may be truncated."""
    sparse: list[tuple[int, int]] | None = getattr(info, "sparse", None)
    modified = _milliseconds(info)
    if sparse is None:
        there = max(0, min(info.size, end - info.offset_data))
        return Member(there, (Extent(0, there, info.offset_data),), modified, there)
    stored, extents = info.offset_data, []
    for position, size in sparse:
        extents.append(Extent(position, size, stored))
        stored += size
    return Member(info.size, tuple(sorted(extents)), modified, sum(size for _, size in sparse))


def _milliseconds(info: tarfile.TarInfo) -> int | None:
    """Return the time of the last write in ms, or None for an impossible time. A float of tarfile would be inexact."""
    if not abs(info.mtime) < _FAR:
        return None
    try:
        return int(Decimal(info.pax_headers.get("mtime", info.mtime)) * 1000)
    except ArithmeticError:  # the header has no number
        return None


class OneFile:
    """Storage with a single file that has no path: standard input, or the content of a compressed file.

    ``broken`` and ``hint`` are as in :class:`Archive`, for a compressed stream that is broken or ends too early.
    """

    left_out: Sequence[tuple[str, str]] = ()

    def __init__(self, descriptor: OwnedDescriptor, name: str, local: str = "") -> None:
        self._held, self.name, self.local = descriptor, name, local
        self.broken: str | None = None
        self.hint = ""
        self._size = os.fstat(descriptor.fd).st_size

    def __reduce__(self) -> tuple[object, ...]:
        return reopened, (self.name,)

    def look(self, path: str) -> Entry | None:
        return Entry(self.name, self.name, False, self._size, self.name) if path == self.name else None

    def entries(self, folder: str) -> list[Entry]:  # noqa: ARG002  there is only one folder
        return [Entry(self.name, self.name, False, self._size, self.name)]

    def open(self, path: str) -> OpenSource:
        return Extents(self._held, path, self._size, (Extent(0, self._size, 0),))

    def glob(self, pattern: str) -> list[str]:  # noqa: ARG002  there is only one file
        return [self.name]

    def shown(self, path: str) -> str:
        return path


_OPENED: Final[WeakValueDictionary[tuple[object, ...], Archive | OneFile]] = WeakValueDictionary()
"""The archives in use, so that each archive is decompressed and listed only once."""


def opened(files: Files, entry: Entry) -> Archive | OneFile | None:
    """Open an archive or a compressed file; return None for any other file. Raises UnreadableError."""
    shown = files.shown(entry.path)
    key = (shown, entry.identity, entry.size, entry.modified)
    place = _OPENED.get(key)
    if place is None:
        with files.open(entry.path) as source:
            if archive_formats.format_of(source.read(0, HEAD)) is None:
                return None
            place = open_archive(source, shown, entry.identity, getattr(files, "local", entry.path))
        _OPENED[key] = place
    return place


def reopened(name: str) -> Archive | OneFile:
    """Open the archive or compressed file of this name, which may be in an archive. Raises UnreadableError."""
    files: Files = LOCAL
    path = name
    if LOCAL.look(name) is None and (inside := within(name)) is not None:
        files, path = inside
    entry = files.look(path)
    place = None if entry is None or entry.is_folder else opened(files, entry)
    if place is None or place.name != name:
        raise UnreadableError(name, "is not an archive on this machine")
    return place


def within(path: str, files: Files = LOCAL) -> tuple[Archive, str] | None:
    """Return the archive at the beginning of ``path``, and the path in it: ``bundle.tgz:d1/orders-0``.

    An archive may be in another archive: ``outer.tgz:bundle.zip:d1``. Names may contain colons. The path in the archive
    need not exist. The result is None if no text before a colon is the path of an archive. Raises UnreadableError.
    """
    nowhere = None
    at = path.find(":")
    while at > 0:
        entry = files.look(path[:at])
        place = None if entry is None or entry.is_folder else opened(files, entry)
        if isinstance(place, Archive):
            inside = _inside(path[at + 1 :])
            if place.look(inside) is not None or place.glob(inside):
                return place, inside
            if (deeper := within(inside, place)) is not None:
                return deeper
            nowhere = nowhere or (place, inside)
        at = path.find(":", at + 1)
    return nowhere


def open_archive(source: Source, name: str, identity: object = None, local: str | None = None) -> Archive | OneFile:
    """Open an archive or compressed file of a format in :func:`kdump.log_dirs.archive_formats.format_of`.

    :class:`Archive` explains ``identity`` and ``local``. If a compressed stream is broken, the result has the bytes
    before the break, and ``broken`` is set. Raises UnreadableError, for example if there is no such byte.
    """
    identity, local = object() if identity is None else identity, source.name if local is None else local
    kind = archive_formats.format_of(source.read(0, HEAD))
    if kind in _PLACES and isinstance(source, LocalFile):
        return _place(OwnedDescriptor(open(source.name, "rb", buffering=0)), name, identity, local)  # noqa: PTH123  OwnedDescriptor closes it
    broken: list[UnreadableError] = []
    for _ in range(_COMPRESSED_DEEP):
        spool, blocks = Spool(name), blocks_of(source)
        spool.add(blocks if kind is None or kind in _PLACES else _until_broken(unpacked(kind, blocks, name), broken))
        if broken and not spool.size:
            raise broken[0]
        kind = archive_formats.format_of(os.pread(spool.held.fd, HEAD, 0))
        if kind is None or kind in _PLACES:
            made = _place(spool.held, name, identity, local)
            if broken:
                made.broken = broken[0].reason
            return made
        source = OneFile(spool.held, name).open(name)
    raise UnreadableError(name, f"it is compressed more than {_COMPRESSED_DEEP} times", "decompress it first")


def _until_broken(blocks: Iterator[bytes], broken: list[UnreadableError]) -> Iterator[bytes]:
    try:
        yield from blocks
    except UnreadableError as error:
        broken.append(error)


_PLACES: Final = {archive_formats.TAR: TarArchive, archive_formats.ZIP: ZipArchive}


def _place(descriptor: OwnedDescriptor, name: str, identity: object, local: str) -> Archive | OneFile:
    kind = archive_formats.format_of(os.pread(descriptor.fd, HEAD, 0))
    return _PLACES[kind](descriptor, name, identity, local) if kind in _PLACES else OneFile(descriptor, name, local)


def standard_input() -> OneFile | Archive:
    """Return the content of standard input: an archive, or one file. Raises UnreadableError."""
    name = "stdin"
    if os.isatty(0):
        raise UnreadableError("-", "standard input is a terminal", "redirect a file or a pipe to it")
    if fcntl.fcntl(0, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY:
        reason = "standard input is closed, or open for writing only"
        raise UnreadableError("-", reason, "redirect a file or a pipe to it")
    with os.fdopen(0, "rb", buffering=0, closefd=False) as stdin:
        if stat.S_ISREG(os.fstat(0).st_mode):
            descriptor = OwnedDescriptor(os.fdopen(os.dup(0), "rb", buffering=0))
        else:
            spool = Spool(name)
            spool.add(iter(lambda: stdin.read(BLOCK), b""))
            descriptor = spool.held
    if not os.fstat(descriptor.fd).st_size:
        raise UnreadableError("-", "standard input is empty", "check that the command before the pipe has succeeded")
    kind = archive_formats.format_of(os.pread(descriptor.fd, HEAD, 0))
    if kind is None or kind in _PLACES:
        return _place(descriptor, name, object(), "")
    return open_archive(OneFile(descriptor, name).open(name), name, None, "")
