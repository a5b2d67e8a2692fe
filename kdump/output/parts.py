"""Outputs that are being made: their names, their locks, and the step in which they get their names."""

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
from kdump.primitives import signals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kdump.output.access import Access

NAME: Final = re.compile(r"\.kdump-[0-9a-f]{16}\.part")
"""The name of what a run has not finished: it does not grow with that of the output, which may have 255 bytes."""
_NO_REPLACE: Final = 1
"""RENAME_NOREPLACE of Linux."""
_CURRENT_FOLDER: Final = -100
"""AT_FDCWD of Linux."""
_LACKS: Final = {errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK}
"""What a system answers that has no such call, or not for this file system."""
_NO_FLUSH: Final = {errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.EOPNOTSUPP}
"""What a file system answers that flushes no folders."""
_TRIES: Final = 100
_PAUSE: Final = 0.01


class TakenError(UsageError):
    """A file is there already, and must not be overwritten."""


class AnyPart:
    """A file or folder that is being made. While it is open, a lock shows that its run is alive."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path, self.descriptor = path, descriptor

    @property
    def identity(self) -> tuple[int, int]:
        """What tells it from all other files, whatever its name."""
        return identity(os.fstat(self.descriptor))

    def publish(self, target: Path, *, replaces: bool = False) -> None:
        """Give it its name. Raises TakenError where that is taken and nothing is to be replaced."""
        if replaces:
            self.path.replace(target)
            return
        try:
            put(self.path, target)
        except FileExistsError:
            raise TakenError(f"{target} is there already: it was not when this run began") from None

    def close(self) -> None:
        """Let go of it and its lock."""
        os.close(self.descriptor)


class FilePart(AnyPart):
    """A file that is being made."""

    def __init__(self, path: Path, access: Access) -> None:
        self.opened = create(path, access)
        super().__init__(path, self.opened.fileno())

    def flush(self) -> None:
        """Wait until the disk has what was written."""
        self.opened.flush()
        os.fsync(self.descriptor)

    def close(self) -> None:
        with suppress(OSError):  # what counts was flushed
            self.opened.close()


class FolderPart(AnyPart):
    """A folder that is being made: open to nobody else until it is settled."""

    def __init__(self, path: Path, access: Access) -> None:
        path.mkdir(0o700)
        try:
            self._open(path, access)
        except BaseException:
            path.rmdir()
            raise

    @classmethod
    def left_over(cls, path: Path, access: Access) -> FolderPart:
        """Take over a folder that a dead run has not finished. Raises OSError."""
        part = cls.__new__(cls)
        part._open(path, access)
        return part

    def _open(self, path: Path, access: Access) -> None:
        super().__init__(path, os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        self._access = access

    def settle(self) -> None:
        """Give the folder its mode, and wait until the disk has all that is in it."""
        for above, _, names in os.walk(self.path):
            for name in names:
                flush(Path(above, name))
            flush_folder(Path(above))
        self._access.settle(self.descriptor, is_folder=True)


P = TypeVar("P", FilePart, FolderPart)


class OutputWork:
    """What one run makes in the folder ``place`` on the way to the output ``target``."""

    def __init__(
        self,
        place: Path,
        target: Path,
        access: Access,
        note: Callable[[str], None],
        resumes: Callable[[Path], bool] | None = None,
    ) -> None:
        """``resumes`` tells of a part of a dead run whether this run goes on with it. Then parts outlive a failure."""
        self._place, self._target, self._access, self._note = place, target, access, note
        self._resumes = resumes
        self._parts: list[AnyPart] = []
        self._made: list[Path] = []
        self.is_done = False

    def begin(self) -> None:
        """Make the folder as far as it is missing; name what killed runs have left. Raises OSError, UsageError."""
        missing, above = [], self._place
        while not os.path.exists(above):  # noqa: PTH110  pathlib raises where a name is too long
            missing.append(above)
            above = above.parent
        for one in reversed(missing):
            with signals.held(), suppress(FileExistsError):  # another run was faster
                make_folder(one, self._access)
                self._made.append(one)
        if not self._place.is_dir():
            if self._place == self._target:
                raise UsageError(f"{self._place} is a file: name a folder to write into")
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(self._place))
        self.name_left_over(self._place)

    def name_left_over(self, folder: Path) -> None:
        """Name the parts in a folder that no run holds."""
        with _locked(folder):
            for path, is_dead in _left_over(folder):
                if is_dead and self._resumes is not None and self._resumes(path):
                    continue
                whose = "a run that was killed" if is_dead else "another run, which may still work,"
                self._note(f"{path}: {whose} has left it unfinished; to delete it: rm -r {shlex.quote(str(path))}")

    def file(self) -> FilePart:
        """Make a file. Raises OSError."""
        return self._add(FilePart)

    def folder(self) -> FolderPart:
        """Make a folder, or take over one of a dead run that this one resumes. Raises OSError."""
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
        """Make a part and lock it. It is renamed once: where that is refused, all that follows would be in vain."""
        with signals.held(), _locked(self._place):
            part = kind(self._place / _random_name(), self._access)
            self._parts.append(part)
            _lock(part.descriptor)
            part.path = part.path.rename(self._place / _random_name())
        return part

    def flush(self) -> None:
        """Make the new names durable."""
        for folder in {self._place, *(made.parent for made in self._made)}:
            flush_folder(folder)

    def end(self) -> None:
        """Delete the parts that have not got their names, and the folders that were made for them."""
        for part in self._parts:
            part.close()
            if self._resumes is not None and not self.is_done and self._resumes(part.path):
                self._note(
                    f"{part.path}: what is written stays there: the same command with --resume goes on; to delete it: "
                    f"rm -r {shlex.quote(str(part.path))}"
                )
                continue
            try:
                _remove(part.path)
            except OSError as reason:
                self._note(f"{part.path}: cannot be deleted: {reason.strerror}")
        for made in [] if self.is_done else reversed(self._made):
            with suppress(OSError):  # something else has come into it
                made.rmdir()

    def error(self, reason: OSError) -> UnreadableError:
        """Return an error of writing in the user's terms: what lies in a part would lie in the output."""
        name = str(self._target if reason.filename is None else reason.filename)
        for part in self._parts:
            if name == str(part.path) or name.startswith(f"{part.path}/"):
                name = f"{self._target}{name[len(str(part.path)) :]}"
        return UnreadableError(name, f"cannot be written: {reason.strerror or reason}")


@contextmanager
def work_in(
    place: Path,
    target: Path,
    access: Access,
    note: Callable[[str], None],
    resumes: Callable[[Path], bool] | None = None,
) -> Iterator[OutputWork]:
    """Begin work on an output; delete at its end what has not got its name, unless a later run ``resumes`` it.

    Raises UnreadableError where the disk refuses.
    """
    work = OutputWork(place, target, access, note, resumes)
    with signals.cleaned_up(work.end):
        try:
            work.begin()
            yield work
            work.is_done = True
        except BrokenPipeError:  # of what is told meanwhile
            raise
        except OSError as reason:
            raise work.error(reason) from reason


def put(part: Path, target: Path) -> None:
    """Rename a file or folder within its file system, in one step that replaces nothing.

    RENAME_NOREPLACE does that; else a link of a file does. Where a file system has neither, an empty file or folder
    takes the name first, and is replaced: a kill between the two leaves it. Raises FileExistsError, and OSError.
    """
    rename = _rename_without_replacing()
    if rename is not None:
        with _lacking():
            rename(part, target)
            return
    if part.is_dir() and not part.is_symlink():
        target.mkdir(0o700)  # a rename replaces a folder only where it is empty
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
    """Pass over the error of a call that there is not."""
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
    """Return Linux's call that renames and replaces nothing; None where there is none."""
    import ctypes  # slow to import

    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)  # of glibc 2.28
    if function is None:
        return None

    def rename(old: Path, new: Path) -> None:
        if function(_CURRENT_FOLDER, os.fsencode(old), _CURRENT_FOLDER, os.fsencode(new), _NO_REPLACE):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(old), None, str(new))

    return rename


def create(path: Path, access: Access) -> BinaryIO:
    """Make a file and return it, open for writing. Raises OSError, FileExistsError where there is one."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    access.settle(descriptor, is_folder=False)
    return open(descriptor, "wb")  # noqa: PTH123  it is open already


def append(path: Path, access: Access) -> BinaryIO:
    """Open a file for more at its end; it is made where it is missing. Raises OSError."""
    if not path.exists():
        create(path, access).close()
    return path.open("ab")


def make_folder(path: Path, access: Access) -> None:
    """Make a folder. Raises OSError, FileExistsError where there is one."""
    path.mkdir(0o700)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    access.settle(descriptor, is_folder=True)
    os.close(descriptor)


def identity(status: os.stat_result) -> tuple[int, int]:
    """Return what tells a file from all others, whatever its name."""
    return status.st_dev, status.st_ino


def flush(path: Path) -> None:
    """Wait until the disk has a file. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def flush_folder(path: Path) -> None:
    """Wait until the disk has the names in a folder; where that cannot be had, it is not.

    That is of a folder that may be written and not read, and of file systems that flush no folders. Raises OSError.
    """
    with _opened(path) as descriptor:
        if descriptor is not None:
            try:
                os.fsync(descriptor)
            except OSError as reason:
                if reason.errno not in _NO_FLUSH:
                    raise


@contextmanager
def _opened(folder: Path) -> Iterator[int | None]:
    """Open a folder; None where it may not be read."""
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
    """Let no other run make a part in a folder, or look for those of dead runs: a new one has no lock at first."""
    with _opened(folder) as descriptor:
        for _ in range(_TRIES):
            if descriptor is None:
                break
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_PAUSE)
                continue
            except OSError:  # a file system without such locks
                pass
            break
        yield


def _lock(descriptor: int) -> None:
    """Lock a part for as long as it is open here or in a child. NFS locks folders for reading only."""
    for kind in (fcntl.LOCK_EX, fcntl.LOCK_SH):
        with suppress(OSError):
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            return


def _left_over(folder: Path) -> Iterator[tuple[Path, bool]]:
    """Yield the parts in a folder that no run is known to hold, and whether it is certain that none does."""
    try:
        names = sorted(path.name for path in folder.iterdir() if NAME.fullmatch(path.name))
    except OSError:  # it may be written and not read
        return
    for name in names:
        try:
            descriptor = os.open(folder / name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:  # it is gone, or another user's
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield folder / name, True
        except BlockingIOError:  # its run is alive
            pass
        except OSError:
            yield folder / name, False
        finally:
            os.close(descriptor)


def _remove(path: Path) -> None:
    """Delete a file, or a folder with all that is in it, if it is there. Raises OSError."""
    try:
        path.unlink()
    except FileNotFoundError:
        pass
    except (IsADirectoryError, PermissionError):  # Linux, and POSIX, of a folder
        from shutil import rmtree  # slow to import

        rmtree(path)
