"""Parts: unfinished outputs with random names, and the rename that publishes them. A lock shows that a run is alive."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shlex
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, TypeVar

from kdump.errors import UnreadableError, UsageError
from kdump.primitives import signals, supervision

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kdump.output.access import Access

NAME: Final = re.compile(r"\.kdump-[0-9a-f]{16}\.part")
"""The name of a part. It does not contain the output's name, which may already have 255 bytes, the maximum."""
_NO_REPLACE: Final = 1
"""RENAME_NOREPLACE of Linux."""
_CURRENT_FOLDER: Final = -100
"""AT_FDCWD of Linux."""
_LACKS: Final = {errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK}
"""The errors of a system call that the operating system or the file system does not support."""
_NO_FLUSH: Final = {errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.EOPNOTSUPP}
"""The errors of a file system that cannot flush folders."""
_TRIES: Final = 100
_PAUSE: Final = 0.01
_NO_ROOM: Final = "free some room there, or name a place on another disk"
_NOT_ALLOWED: Final = "name a place in which this user may write"
_HINTS: Final = {
    errno.ENOSPC: _NO_ROOM,
    errno.EDQUOT: _NO_ROOM,
    errno.EFBIG: "the file system, or a limit of this shell (ulimit -f), allows no larger file: name another place",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EACCES: _NOT_ALLOWED,
    errno.EPERM: _NOT_ALLOWED,
    errno.EROFS: _NOT_ALLOWED,
}
_HINT: Final = "name another place"


def unwritable(target: object, error: OSError, *, within: str = "") -> UnreadableError:
    """Return the error, with a hint, for the output ``target`` of the user. ``within``: another path that caused it."""
    reason = f"{within}: " if within else ""
    hint = _HINT if error.errno is None else _HINTS.get(error.errno, _HINT)
    return UnreadableError(target, f"cannot be written: {reason}{error.strerror or error}", hint)


class TakenError(UsageError):
    """A file or folder exists, and must not be replaced."""


class AnyPart:
    """An unfinished file or folder. While it is open, a lock shows that its run is alive."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path, self.descriptor = path, descriptor

    @property
    def identity(self) -> tuple[int, int]:
        return identity(os.fstat(self.descriptor))

    def publish(self, target: Path, *, replaces: bool = False) -> None:
        publish(self.path, target, replaces=replaces)

    def close(self) -> None:
        os.close(self.descriptor)


class FilePart(AnyPart):
    def __init__(self, path: Path, access: Access) -> None:
        self.opened = create(path, access)
        super().__init__(path, self.opened.fileno())

    def flush(self) -> None:
        self.opened.flush()
        os.fsync(self.descriptor)

    def close(self) -> None:
        with suppress(OSError):  # the contents have been flushed
            self.opened.close()


class FolderPart(AnyPart):
    """An unfinished folder that only this user can enter before :meth:`settle`."""

    def __init__(self, path: Path, access: Access) -> None:
        path.mkdir(0o700)
        try:
            self._open(path, access)
        except BaseException:
            path.rmdir()
            raise

    @classmethod
    def left_over(cls, path: Path, access: Access) -> FolderPart:
        """Open the unfinished folder of a dead run, to continue it. Raises OSError."""
        part = cls.__new__(cls)
        part._open(path, access)
        return part

    def _open(self, path: Path, access: Access) -> None:
        super().__init__(path, os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        self._access = access

    def settle(self) -> None:
        """Flush everything in the folder to the disk, and then set the mode of the folder."""
        for above, _, names in os.walk(self.path):
            for name in names:
                flush(Path(above, name))
            flush_folder(Path(above))
        self._access.settle(self.descriptor, is_folder=True)


P = TypeVar("P", FilePart, FolderPart)


class OutputWork:
    """The parts that one run creates in the folder ``place``, for the output ``target``."""

    def __init__(
        self,
        place: Path,
        target: Path,
        access: Access,
        note: Callable[[str], None],
        resumes: Callable[[Path], bool] | None = None,
    ) -> None:
        """``resumes`` returns whether a part can be continued. Such a part of this run is kept after a failure."""
        self._place, self._target, self._access, self._note = place, target, access, note
        self._resumes = resumes
        self._parts: list[AnyPart] = []
        self._made: list[Path] = []
        self.is_done = False
        self.at = target
        """The output that is being written. An OSError that names no path in the output is reported with this path."""

    def make_folders(self, folder: Path, access: Access) -> None:
        """Create the missing folders of a path. :meth:`end` deletes the new ones that are empty. Raises OSError."""
        missing, above = [], folder
        while not os.path.exists(above):  # noqa: PTH110  pathlib raises where a name is too long
            missing.append(above)
            above = above.parent
        for one in reversed(missing):
            with signals.held(), suppress(FileExistsError):  # another run has created the folder
                make_folder(one, access)
                self._made.append(one)

    def begin(self) -> None:
        """Create the missing folders. Raises OSError, UsageError."""
        self.make_folders(self._place, self._access)
        if not self._place.is_dir():
            if self._place == self._target:
                raise UsageError(f"{self._place} is a file: name a folder to write into")
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(self._place))

    def name_left_over(self, folder: Path) -> None:
        """Report each part in ``folder`` that this user can open, no kdump has locked, and this run does not resume."""
        with _locked(folder):
            for path, is_dead in _left_over(folder):
                if is_dead and self._resumes is not None and self._resumes(path):
                    continue
                whose = "a run that was killed" if is_dead else "another run, which may still work on it"
                self._note(f"{path}: an unfinished output of {whose}; to delete it: rm -r {shlex.quote(str(path))}")

    def file(self) -> FilePart:
        return self._add(FilePart)

    def folder(self) -> FolderPart:
        """Create a folder, or take over the folder of a dead run that this run resumes. Raises OSError."""
        return self._resumed() or self._add(FolderPart)

    def _resumed(self) -> FolderPart | None:
        if self._resumes is None:
            return None
        with signals.held(), _locked(self._place):
            found = [path for path, is_dead in _left_over(self._place) if is_dead and self._resumes(path)]
            for path in found[:1]:
                part = FolderPart.left_over(path, self._access)
                self._parts.append(part)
                _lock(part.descriptor)
                return part
        return None

    def _add(self, kind: Callable[[Path, Access], P]) -> P:
        """Create a part and lock it. Rename it once to test that the output can be published."""
        with signals.held(), _locked(self._place):
            part = kind(self._place / _random_name(), self._access)
            self._parts.append(part)
            _lock(part.descriptor)
            part.path = part.path.rename(self._place / _random_name())
            supervision.owns(part.path)
        return part

    def flush(self) -> None:
        """Flush the names of published parts and new folders to the disk."""
        for folder in {self._place, *(made.parent for made in self._made)}:
            flush_folder(folder)

    def end(self) -> None:
        """Delete unpublished parts, and created folders that are empty. After a failure keep resumable parts."""
        for part in self._parts:
            part.close()
            if self._resumes is not None and not self.is_done and self._resumes(part.path):
                self._note(
                    f"{part.path} keeps the written files. To continue, run the same command with --resume. To "
                    f"delete them: rm -r {shlex.quote(str(part.path))}"
                )
                continue
            try:
                remove(part.path)
            except OSError as reason:
                self._note(f"{part.path}: cannot be deleted: {reason.strerror}")
        for made in reversed(self._made):
            with suppress(OSError):  # the folder has the output or another file
                made.rmdir()

    def error(self, reason: OSError) -> UnreadableError:
        """Return the error for the user: it names the output (or a path in it) instead of the part."""
        if reason.filename is None:
            return unwritable(self.at, reason)
        path = Path(os.fsdecode(reason.filename))
        if path == self._target or self._target in path.parents:
            first, *inside = path.relative_to(self._target).parts or ("",)
            return unwritable(self._target.joinpath(*inside) if NAME.fullmatch(first) else path, reason)
        if path.is_relative_to(self._place):
            first, *inside = path.relative_to(self._place).parts or ("",)
            if NAME.fullmatch(first):
                return unwritable(self._target.joinpath(*inside), reason)
        return unwritable(self.at, reason, within=str(path))


@contextmanager
def work_in(
    place: Path,
    target: Path,
    access: Access,
    note: Callable[[str], None],
    resumes: Callable[[Path], bool] | None = None,
) -> Iterator[OutputWork]:
    """Begin work on an output. At the end of the block delete unpublished parts; if it fails, except resumable ones.

    Unlocked parts of other runs in ``place`` are reported. Raises UnreadableError if writing fails, UsageError if
    ``place`` is the target and a file.
    """
    work = OutputWork(place, target, access, note, resumes)
    with signals.cleaned_up(work.end):
        try:
            work.begin()
            work.name_left_over(place)
            yield work
            work.is_done = True
        except BrokenPipeError:  # a message could not be printed
            raise
        except OSError as reason:
            raise work.error(reason) from reason


def publish(part: Path, target: Path, *, replaces: bool) -> None:
    """Rename a file or folder. Raises TakenError if ``target`` exists and ``replaces`` is false, and OSError."""
    if replaces:
        part.replace(target)
        return
    try:
        put(part, target)
    except FileExistsError:
        raise TakenError(f"{target} exists now: another program created it during this run") from None


def put(part: Path, target: Path) -> None:
    """Rename a file or folder within its file system, and replace nothing.

    Uses RENAME_NOREPLACE (one step), else, for a file, a hard link. Without these, create an empty file or folder and
    then replace it; a kill in between leaves it empty. Raises FileExistsError, and OSError.
    """
    rename = _rename_without_replacing()
    if rename is not None:
        with _lacking():
            rename(part, target)
            return
    if part.is_dir() and not part.is_symlink():
        target.mkdir(0o700)  # a rename replaces only an empty folder
        _take_over(part, target, target.rmdir)
        return
    is_linked = False
    with _lacking():
        os.link(part, target, follow_symlinks=False)
        is_linked = True
    if is_linked:
        part.unlink()
        return
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    _take_over(part, target, target.unlink)


@contextmanager
def _lacking() -> Iterator[None]:
    try:
        yield
    except OSError as reason:
        if reason.errno not in _LACKS:
            raise


def _take_over(part: Path, target: Path, give_back: Callable[[], None]) -> None:
    try:
        part.rename(target)
    except BaseException:
        with suppress(OSError):
            give_back()
        raise


def _rename_without_replacing() -> Callable[[Path, Path], None] | None:
    """Return a function that renames and replaces nothing (``renameat2`` of Linux), or None if libc lacks it."""
    import ctypes

    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)  # glibc has it since 2.28
    if function is None:
        return None

    def rename(old: Path, new: Path) -> None:
        if function(_CURRENT_FOLDER, os.fsencode(old), _CURRENT_FOLDER, os.fsencode(new), _NO_REPLACE):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(old), None, str(new))

    return rename


def create(path: Path, access: Access) -> BinaryIO:
    """Create a file, open for writing. Raises OSError, FileExistsError if it exists."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    access.settle(descriptor, is_folder=False)
    return open(descriptor, "wb")  # noqa: PTH123  it is open already


def append(path: Path, access: Access) -> BinaryIO:
    """Open a file to append; create it if it is missing. Raises OSError."""
    if not path.exists():
        create(path, access).close()
    return path.open("ab")


def make_folder(path: Path, access: Access) -> None:
    path.mkdir(0o700)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    access.settle(descriptor, is_folder=True)
    os.close(descriptor)


def identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def flush_folder(path: Path) -> None:
    """Flush the names in a folder to the disk, if it is readable and the file system supports this. Raises OSError."""
    with _opened(path) as descriptor:
        if descriptor is not None:
            try:
                os.fsync(descriptor)
            except OSError as reason:
                if reason.errno not in _NO_FLUSH:
                    raise


@contextmanager
def _opened(folder: Path) -> Iterator[int | None]:
    """Open a folder and yield its descriptor, or None if this user may not read it."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _random_name() -> str:
    return f".kdump-{os.urandom(8).hex()}.part"


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Let no other run create or search parts, if locks work here. After 1 s, go on without the lock."""
    with _opened(folder) as descriptor:
        for _ in range(_TRIES):
            if descriptor is None:
                break
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_PAUSE)
                continue
            except OSError:  # the file system has no such locks
                pass
            break
        yield


def _lock(descriptor: int) -> None:
    """Lock a part while it is open in this process or a child process. NFS has only shared locks for folders."""
    for kind in (fcntl.LOCK_EX, fcntl.LOCK_SH):
        with suppress(OSError):
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            return


def _left_over(folder: Path) -> Iterator[tuple[Path, bool]]:
    """Yield each unlocked part that this user can open, and whether its run has ended (False: there are no locks)."""
    try:
        names = sorted(path.name for path in folder.iterdir() if NAME.fullmatch(path.name))
    except OSError:  # the user may have only the permission to write
        return
    for name in names:
        try:
            descriptor = os.open(folder / name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:  # the part was deleted, or belongs to another user
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield folder / name, True
        except BlockingIOError:  # the part belongs to a live run
            pass
        except OSError:
            yield folder / name, False
        finally:
            os.close(descriptor)


def remove(path: Path) -> None:
    """Delete a file, or a folder with its contents, if it exists. Raises OSError."""
    try:
        path.unlink()
    except FileNotFoundError:
        pass
    except (IsADirectoryError, PermissionError):  # the errors for a folder on Linux, and on other POSIX systems
        if path.is_symlink() or not path.is_dir():
            raise
        from shutil import rmtree

        rmtree(path)
