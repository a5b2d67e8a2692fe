"""The interface between kdump and the places that hold Kafka's files.

A place lists folders and opens files read-only. :mod:`kdump.log_dirs.local` has the local disk,
:mod:`kdump.log_dirs.archives` archives; anything else with the methods of :class:`Files` fits in the same way.

Holes of sparse files are on no disk and read as zeros: they are passed over, not read. A file of the local disk has
them where the file system says so (``SEEK_DATA``), a member of a tar where its map of extents does. Any other source
has none.
"""

from __future__ import annotations

import errno
import os
import posixpath
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, runtime_checkable

from kdump.errors import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_WHOLE: Final = (1 << 31) - 1
"""Bytes of a file that is read as a whole: Java maps and holds no more at once."""


class Source(Protocol):
    """Something with a name and a size in bytes that can be read at any position.

    ``limit`` is the largest batch accepted, compressed or decompressed, in bytes.
    """

    name: str
    size: int
    limit: int

    def read(self, position: int, size: int) -> bytes:
        """Return up to ``size`` bytes from ``position`` on: fewer only at the end."""


class OpenSource(Source, Protocol):
    """A source that is closed by the ``with`` statement that opened it."""

    def __enter__(self) -> OpenSource: ...

    def __exit__(self, *raised: object) -> None: ...


class Entry(NamedTuple):
    """A file or folder: its name in its folder, its path in its place, its size in bytes (0 for a folder).

    ``identity`` is the same for two paths to one file, where the place can show. ``modified`` is the time in ms of the
    last write, ``disk_size`` what the file occupies in bytes: less than its size where it has holes. None = not known.
    """

    name: str
    path: str
    is_folder: bool
    size: int
    identity: object
    modified: int | None = None
    disk_size: int | None = None


class Files(Protocol):
    """A place that holds files. Paths are joined with ``/``; every method raises UnreadableError."""

    def look(self, path: str) -> Entry | None:
        """Return the entry at ``path``, or None."""

    def entries(self, folder: str) -> list[Entry]:
        """Return the entries of a folder, by name."""

    def open(self, path: str) -> OpenSource:
        """Open a file for reading."""

    def glob(self, pattern: str) -> list[str]:
        """Return the paths that match, in order; ``**`` stands for any folders."""

    def shown(self, path: str) -> str:
        """Return the path as messages and rows name it."""


@runtime_checkable
class MayHaveHoles(Protocol):
    """A source that knows its holes."""

    def next_data(self, position: int) -> int:
        """Return the first position from ``position`` on that is in no hole, in bytes; ``size`` if there is none."""

    def next_hole(self, position: int) -> int:
        """Return where the next hole begins, at ``position`` or after it, in bytes; ``size`` if there is none."""


def next_data(source: Source, position: int) -> int:
    """Return the first position from ``position`` on that is in no hole, in bytes; the source's size if none is."""
    if position >= source.size or not isinstance(source, MayHaveHoles):
        return position
    return source.next_data(position)


def next_hole(source: Source, position: int) -> int:
    """Return where the next hole begins, at ``position`` or after it, in bytes; the source's size if there is none."""
    return source.next_hole(position) if isinstance(source, MayHaveHoles) else source.size


def data_end(source: Source, start: int, end: int) -> int:
    """Return the end of the last data between two positions (bytes): a hole reaches from there to ``end``.

    It is ``start`` if all is a hole, and ``end`` if the last byte is in none.
    """
    if end <= start or next_data(source, end - 1) < end:
        return end
    low, high = start, end  # no data begins at high or after it, before the end
    while low < high:
        middle = (low + high) // 2
        if next_data(source, middle) < end:
            low = middle + 1
        else:
            high = middle
    return low


def seek(descriptor: int, position: int, size: int, *, data: bool) -> int:
    """Return the position of the next data, or of the next hole, in an open file; ``size`` (bytes) if there is none.

    Without support for holes, the whole file counts as data. The position of ``descriptor`` moves.
    """
    whence = getattr(os, "SEEK_DATA" if data else "SEEK_HOLE", None)
    try:
        if whence is not None:
            return min(os.lseek(descriptor, position, whence), size)
    except OSError as reason:
        if reason.errno == errno.ENXIO and os.fstat(descriptor).st_size >= size:  # past the last data, of a whole file
            return size
    return position if data else size


def size_of_holes(source: Source, start: int, end: int) -> int:
    """Return how many bytes between two positions are in holes."""
    if not isinstance(source, MayHaveHoles):
        return 0
    found, position = 0, start
    while position < end:
        data = min(source.next_data(position), end)
        found += data - position
        position = min(source.next_hole(data), end) if data < end else end
    return found


def read_file(files: Files, path: str) -> bytes:
    """Return all bytes of a small file: an index, a checkpoint, a producer snapshot.

    Raises UnreadableError, also for more than MOST_WHOLE bytes: a sparse file can be terabytes long.
    """
    with files.open(path) as source:
        return read_whole(source)


def read_whole(source: Source) -> bytes:
    """Return all bytes of an open small file, as :func:`read_file` does."""
    if source.size > MOST_WHOLE:
        raise UnreadableError(source.name, f"has {source.size} bytes: Kafka reads at most {MOST_WHOLE} of such a file")
    return source.read(0, source.size)


def matches(files: Files, pattern: str) -> list[str]:
    """Return the paths in a place that match a pattern, folder by folder; ``**`` stands for any folders.

    Raises UnreadableError.
    """
    root = "/" if pattern.startswith("/") else ""
    return sorted(set(_matches(files, root, pattern.strip("/").split("/"))))


def _matches(files: Files, above: str, parts: list[str]) -> Iterator[str]:
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
        yield from _matches(files, above, parts[1:] or ["*"])
    for entry in files.entries(above):
        if parts[0] == "**":
            if entry.is_folder:
                yield from _matches(files, entry.path, parts)
        elif fnmatchcase(entry.name, parts[0]) and (len(parts) == 1 or entry.is_folder):
            yield from _matches(files, entry.path, parts[1:])


def _is_pattern(name: str) -> bool:
    return any(letter in name for letter in "*?[")
