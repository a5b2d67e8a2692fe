"""The local disk as a place of files (:class:`kdump.log_dirs.files.Files`): lists folders and reads files."""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from contextlib import suppress
from sys import intern
from typing import TYPE_CHECKING, ClassVar, Final

from kdump import kernel
from kdump.errors import DISK_FAILS, FailingDiskError, UnreadableError
from kdump.log_dirs import files
from kdump.log_dirs.files import Entry, OpenSource
from kdump.primitives import compression

if TYPE_CHECKING:
    from kdump.log_dirs.page_cache import Guard, Watch

BLOCK: Final = 512
"""Bytes of a block in ``st_blocks``, independent of the file system."""
_HEADER: Final = 61


class Meter:
    """Counts the bytes that :meth:`LocalFile.read` returns from each file, in any thread."""

    def __init__(self) -> None:
        self._read: list[tuple[str, int]] = []

    def add(self, path: str, position: int, size: int) -> None:
        """Count a read of ``size`` bytes. Reads of at most 61 bytes (a batch header) at byte 0 are not counted."""
        if position == 0 and size <= _HEADER:
            return
        self._read.append((path, size))  # append() is atomic: no lock is needed

    def totals(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for path, size in self._read:
            found[path] = found.get(path, 0) + size
        return found


class LocalFiles:
    """The files of this machine. Symbolic links are followed."""

    def __reduce__(self) -> str:
        """Pickle as the name ``LOCAL``, so that ``is LOCAL`` is true in every process."""
        return "LOCAL"

    def look(self, path: str) -> Entry | None:
        try:
            status = os.stat(path)  # noqa: PTH116  pathlib is slow to import
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as reason:
            if getattr(reason, "errno", None) == errno.ELOOP:  # as for Java's File.exists
                return None
            raise UnreadableError.of(path, reason) from reason
        return _entry(posixpath.basename(posixpath.abspath(path)), path.rstrip("/") or path[:1], status)

    def entries(self, folder: str) -> list[Entry]:
        try:
            found = sorted(listing(folder, Entry))
            if found and found[0].modified is None and not os.access(folder, os.X_OK):  # else it is a broken link
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except (OSError, ValueError) as reason:
            raise UnreadableError.of(folder, reason) from reason
        return found

    def open(self, path: str) -> OpenSource:
        return LocalFile(path)

    def glob(self, pattern: str) -> list[str]:
        from glob import glob

        return sorted(glob(pattern, recursive=True))  # noqa: PTH207  Path.glob takes no absolute pattern

    def shown(self, path: str) -> str:
        return path


def plain_listing(folder: str, _: type[Entry]) -> list[Entry]:
    """Return what ``listing`` of :mod:`kdump.kernel.records` returns. Raises OSError and ValueError."""
    found = []
    with os.scandir(folder) as inside:
        for item in inside:
            try:
                found.append(_entry(intern(item.name), item.path, item.stat()))
            except OSError:  # a broken link or a deleted file: open() reports it
                found.append(Entry(item.name, item.path, False, 0, item.path))
    return found


def _entry(name: str, path: str, status: os.stat_result) -> Entry:
    identity = status.st_dev << 64 | status.st_ino  # a number is smaller than a pair, and listings are long
    modified, mode = status.st_mtime_ns // 1_000_000, status.st_mode
    if stat.S_ISREG(mode):
        fields = name, path, False, status.st_size, identity, modified, status.st_blocks * BLOCK, ""
        return tuple.__new__(Entry, fields)  # half the time of Entry(): each file of a log dir has an entry
    is_folder, special = stat.S_ISDIR(mode), ""
    if not is_folder:
        special = "pipe" if stat.S_ISFIFO(mode) else "socket" if stat.S_ISSOCK(mode) else "device"
    return Entry(name, path, is_folder, 0, identity, modified, 0, special)


if kernel.COMPILED:
    from kdump.kernel.records import listing
else:
    listing = plain_listing  # type: ignore[assignment]  # the kernel knows no Entry
LOCAL = LocalFiles()


def folder_identity(place: files.Files, folder: str) -> object:
    """Return a value that is equal for two paths of one local folder, such as ``d1`` and a link to it."""
    if place is not LOCAL:
        return place.shown(folder)
    try:
        status = os.stat(folder or ".")  # noqa: PTH116  pathlib is slow to import
    except (OSError, ValueError):  # the finder reports it
        return posixpath.abspath(folder)
    return status.st_dev << 64 | status.st_ino


class LocalFile:
    """A regular file of this machine, opened read-only. Raises UnreadableError for any other, or if this fails."""

    watch: ClassVar[Watch | None] = None
    """Makes the guard that evicts the pages of a file, for each opened file; None without ``--cache drop``."""
    meter: ClassVar[Meter | None] = None
    limit = compression.DEFAULT_LIMIT
    _guard: Guard | None = None

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = os.fspath(path)
        try:
            self._fd = os.open(
                path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
            )  # without O_NONBLOCK a pipe waits for its writer
            status = os.fstat(self._fd)
        except (OSError, ValueError) as reason:  # ValueError: a name with a NUL
            raise UnreadableError.of(self.name, reason) from reason
        self.size = status.st_size
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
        """The number of bytes that the file lost at its end since it was opened: brokers truncate live files."""
        return max(0, self.size - os.fstat(self._fd).st_size)

    @property
    def descriptor(self) -> int | None:
        """The file descriptor, for callers that read the file themselves; None if ``--cache drop`` evicts its pages."""
        return None if self._guard is not None else self._fd

    def expect(self, position: int, size: int) -> None:
        """Let the system read these bytes ahead, unless the first and last are cached, or ``--cache drop`` is used."""
        if self._guard is not None or not hasattr(os, "posix_fadvise"):  # pages read ahead would not be evicted
            return
        last = min(position + size, self.size) - 1
        if position > last or not (self._cached(position) and self._cached(last)):
            with suppress(OSError):  # some file systems do not support the advice
                os.posix_fadvise(self._fd, position, size, os.POSIX_FADV_WILLNEED)

    def _cached(self, position: int) -> bool:
        """Return whether a byte is in the page cache. This check is much cheaper than an unneeded read ahead."""
        if not hasattr(os, "RWF_NOWAIT"):
            return False
        try:
            return bool(os.preadv(self._fd, [bytearray(1)], position, os.RWF_NOWAIT))
        except OSError:  # the byte is not cached, or the file system does not support the flag
            return False

    def next_data(self, position: int) -> int:
        return files.seek(self._fd, position, self.size, data=True)

    def next_hole(self, position: int) -> int:
        return files.seek(self._fd, position, self.size, data=False)

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
            kind = FailingDiskError if reason.errno in DISK_FAILS else UnreadableError
            raise kind.of(self.name, reason, f"byte {position}: ") from reason
        if self.meter is not None:
            self.meter.add(self.name, position, len(data))
        return data
