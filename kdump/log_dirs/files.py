"""The interface of places that hold Kafka's files: a place lists folders and opens files read-only.

Places are the local disk (:mod:`.local`), archives (:mod:`.archives`), object stores (:mod:`.remote`) and remote
storage (:mod:`.tiered_storage`).

Holes of sparse files occupy no disk space and read as zeros; readers skip them. The file system reports the holes of a
local file or archive (``SEEK_DATA``), and a tar lists the extents of its members. Other sources have no holes.
"""

from __future__ import annotations

import errno
import os
import posixpath
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeGuard

from kdump.errors import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_WHOLE: Final = (1 << 31) - 1
"""Maximum size in bytes of a file that is read whole: the limit of Java's arrays and mappings."""


SMALL: Final = 1 << 16
"""Up to this size in bytes, reading a file is as fast as asking the system for its holes."""


class Source(Protocol):
    """Named bytes, which can be read at any position. ``limit``: the size of the largest batch accepted, in bytes."""

    name: str
    size: int
    limit: int

    def read(self, position: int, size: int) -> bytes:
        """Return ``size`` bytes from ``position`` on; fewer only at the end."""


class OpenSource(Source, Protocol):
    """A source for a ``with`` statement, which closes the file unless other sources share it."""

    def __enter__(self) -> OpenSource: ...

    def __exit__(self, *raised: object) -> None: ...


class Entry(NamedTuple):
    """A file or folder: its name, its path in the :class:`Files`, and its size in bytes (0 if not a regular file).

    ``identity`` is equal for two paths of the same file, if the system can determine this. ``modified`` is the time of
    the last write in ms. ``disk_size`` is the occupied disk space in bytes: less than ``size`` if the file has holes.
    These two are None if unknown. ``special`` is "pipe", "socket" or "device", or "" for regular files and folders.
    """

    name: str
    path: str
    is_folder: bool
    size: int
    identity: object
    modified: int | None = None
    disk_size: int | None = None
    special: str = ""

    @property
    def is_regular(self) -> bool:
        """Whether the entry is a regular file, or a broken link. Kafka lists only regular files."""
        return not self.is_folder and not self.special


class Files(Protocol):
    """A file system, archive or store. Paths are joined with ``/``. Methods may raise UnreadableError."""

    def look(self, path: str) -> Entry | None:
        """Return the file or folder at ``path``, or None."""

    def entries(self, folder: str) -> list[Entry]:
        """Return the entries of a folder, sorted by name."""

    def open(self, path: str) -> OpenSource:
        """Open a file for reading."""

    def glob(self, pattern: str) -> list[str]:
        """Return the paths that match, in order; ``**`` matches any folders, but no wildcard a ``.`` at the start."""

    def shown(self, path: str) -> str:
        """Return the shown path: the path as messages and rows show it."""


class MayHaveHoles(Protocol):
    def next_data(self, position: int) -> int:
        """Return the position of the first byte from ``position`` on that is not in a hole; ``size`` without one."""

    def next_hole(self, position: int) -> int:
        """Return the position of the first byte from ``position`` on that is in a hole; ``size`` without one."""


def may_have_holes(source: Source) -> TypeGuard[MayHaveHoles]:
    """Return whether a source has the methods of :class:`MayHaveHoles`. isinstance() would be much slower."""
    return hasattr(source, "next_hole")


def next_data(source: Source, position: int) -> int:
    if position >= source.size or not may_have_holes(source):
        return position
    return source.next_data(position)


def next_hole(source: Source, position: int) -> int:
    return source.next_hole(position) if may_have_holes(source) else source.size


def data_end(source: Source, start: int, end: int) -> int:
    """Return the start of the hole that ends at ``end``, but at least ``start``; ``end`` if no hole ends there."""
    if end <= start or next_data(source, end - 1) < end:
        return end
    low, high = start, end  # all bytes from high to end are a hole
    while low < high:
        middle = (low + high) // 2
        if next_data(source, middle) < end:
            low = middle + 1
        else:
            high = middle
    return low


def seek(descriptor: int, position: int, size: int, *, data: bool) -> int:
    """Return the first byte from ``position`` on that is in data or, without ``data``, in a hole; else ``size``.

    If the file system does not report holes, all bytes are data. The file position of ``descriptor`` changes.
    """
    whence = getattr(os, "SEEK_DATA" if data else "SEEK_HOLE", None)
    try:
        if whence is not None:
            return min(os.lseek(descriptor, position, whence), size)
    except OSError as reason:
        if reason.errno == errno.ENXIO and os.fstat(descriptor).st_size >= size:  # ``position`` is in the last hole
            return size
    return position if data else size


def size_of_holes(source: Source, start: int, end: int) -> int:
    """Return the number of bytes between two positions that are in holes."""
    if not may_have_holes(source):
        return 0
    found, position = 0, start
    while position < end:
        data = min(source.next_data(position), end)
        found += data - position
        position = min(source.next_hole(data), end) if data < end else end
    return found


def read_file(files: Files, path: str) -> bytes:
    """Return all bytes of a small file, such as an index. Raises UnreadableError, also above MOST_WHOLE bytes."""
    with files.open(path) as source:
        return read_whole(source)


def read_index(files: Files, path: str) -> bytes:
    """Return the bytes of an index; a BeforeHole if it has more than SMALL bytes, and its only hole is at its end."""
    with files.open(path) as source:
        hole = source.size if source.size <= SMALL else next_hole(source, 0)
        if source.size > MOST_WHOLE or not hole < source.size <= next_data(source, hole):
            return read_whole(source)
        from kdump.formats.sparse_index import BeforeHole

        return BeforeHole.of(source.read(0, hole), source.size - hole)


def read_whole(source: Source) -> bytes:
    """Return all bytes of an open small file, like :func:`read_file`."""
    if source.size > MOST_WHOLE:
        raise UnreadableError(source.name, f"has {source.size} bytes: Kafka reads at most {MOST_WHOLE} of such a file")
    return source.read(0, source.size)


def matches(files: Files, pattern: str) -> list[str]:
    """Return the sorted paths in a place that match ``pattern``, like :meth:`Files.glob`. Raises UnreadableError."""
    root = "/" if pattern.startswith("/") else ""
    return sorted(set(_matches(files, root, pattern.strip("/").split("/"), set())))


def _matches(files: Files, above: str, parts: list[str], seen: set[object]) -> Iterator[str]:
    """Yield the paths below ``above`` that match. ``seen``: the folders that ``**`` entered, perhaps through links."""
    fixed = 0
    while fixed < len(parts) and not _is_pattern(parts[fixed]):
        fixed += 1
    above = posixpath.join(above, *parts[:fixed])
    parts = parts[fixed:]
    if fixed or not parts:
        found = files.look(above)
        if found is None or (parts and not found.is_folder):
            return
    if not parts:
        yield above
        return
    if parts[0] == "**":
        yield from _matches(files, above, parts[1:] or ["*"], seen)
    for entry in files.entries(above):
        if entry.name.startswith(".") and not parts[0].startswith("."):
            continue
        if parts[0] == "**":
            if entry.is_folder and (place := (entry.identity, len(parts))) not in seen:
                seen.add(place)
                yield from _matches(files, entry.path, parts, seen)
        elif fnmatchcase(entry.name, parts[0]) and (len(parts) == 1 or entry.is_folder):
            yield from _matches(files, entry.path, parts[1:], seen)


def _is_pattern(name: str) -> bool:
    return any(letter in name for letter in "*?[")
