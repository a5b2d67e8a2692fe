"""Where files come from: one small seam between kdump and the places that hold Kafka's files.

A place lists folders and opens files read-only. This module has the local disk; :mod:`kdump.log_dirs.archives` has tar
archives; anything else that can do the four things of :class:`Files` fits in the same way.
"""

from __future__ import annotations

from typing import Final, Protocol

from kdump.primitives.named_tuple import NamedTuple

GZIP_MAGIC: Final = b"\x1f\x8b\x08"
ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
HEAD: Final = 512
"""Bytes at the start of a file that tell an archive: one block of a tar."""
_CHECKSUM: Final = slice(148, 156)
_LARGE: Final = (b"\x80", b"\xff")
"""What the form of large numbers in a tar's header begins with."""
_OCTAL: Final = b"01234567oO_+- \t\n\r\f\v\x1c\x1d\x1e\x1f"
"""What any other number there is made of: octal digits as Python reads them."""


class Source(Protocol):
    """Something with a name and a size in bytes that can be read at any position.

    A batch in it may take ``limit`` bytes, as it stands there and unpacked.
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

    ``identity`` is the same for two paths to one file, where the place can tell. ``modified`` is the time in ms of the
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
        """Return what stands at ``path``, or None."""

    def entries(self, folder: str) -> list[Entry]:
        """Return what a folder holds, by name."""

    def open(self, path: str) -> OpenSource:
        """Open a file for reading."""

    def glob(self, pattern: str) -> list[str]:
        """Return the paths that match, in order; ``**`` stands for any folders."""

    def shown(self, path: str) -> str:
        """Return the path as messages and rows name it."""


def is_archive(head: bytes) -> bool:
    """Tell whether a file that begins with ``head`` is compressed or a tar: no segment begins so."""
    return head.startswith((GZIP_MAGIC, ZSTD_MAGIC)) or is_tar(head)


def is_tar(head: bytes) -> bool:
    """Tell whether ``head`` is the first block of a tar; its checksum makes sure of it."""
    number = head[_CHECKSUM].partition(b"\0")[0]
    if not number or (number.strip(_OCTAL) and not number.startswith(_LARGE)):  # of a segment, nearly always
        return False
    import tarfile  # slow to import

    try:
        tarfile.TarInfo.frombuf(head[:HEAD], "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True
