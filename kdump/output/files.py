"""Writes the files and folders that kdump creates on this machine, except unnamed temporary files.

- A command writes its outputs, except private and appended files, as a part: with a random name beside the target, or
  in a target folder that exists (:mod:`kdump.output.parts`). It flushes the part to the disk, and renames it. The
  rename fails if the target exists, unless the user allows kdump to replace a file. The files for a folder that exists
  are moved one by one.
- Before the first byte, kdump checks that the folder can be written. After an error, Ctrl-C, SIGTERM or SIGHUP it
  deletes its own unfinished files and no others, except a folder that a later run can resume. After SIGKILL or a
  power failure a part may remain; the next run that writes into the same folder reports it.
- Outputs with log bytes, and their parts, have no wider permissions than the source (:mod:`kdump.output.access`).
- Errors name the path that the user gave.

docs/outputs.md lists for each command the files that remain after a kill at each step.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, TypeAlias

from kdump.errors import UnreadableError, UsageError, discard
from kdump.log_dirs import file_names
from kdump.log_dirs.local import LOCAL
from kdump.log_dirs.remote import as_written, is_remote, without_secret
from kdump.output import parts
from kdump.output.access import ANY, Access
from kdump.output.parts import TakenError, append, create, identity, unwritable
from kdump.primitives import signals, supervision

__all__ = ["TakenError", "append", "create", "unwritable"]
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from kdump.log_dirs.local import LocalFile
    from kdump.log_dirs.partition import Partition

    Note: TypeAlias = Callable[[str], None]

_DELETIONS: Final = 20
_PAUSE: Final = 0.1
NAME_BYTES: Final = 255
"""The longest file name, in bytes."""


def left_out_name(number: int, path: str, position: int) -> str:
    """Return a file name for bytes of ``path``: a number, as much of the file's name as fits, and the position."""
    end = f"@{position}"
    name = os.fsencode(f"{number:06}-{path.rpartition('/')[2]}")[: NAME_BYTES - len(end)]
    return os.fsdecode(name) + end


class NewFiles:
    """Files to be written into one folder, which may have other files. None appears before all are written."""

    def __init__(self, work: parts.OutputWork, part: Path, folder: Path) -> None:
        self._work, self._part, self._folder = work, part, folder
        self._access: dict[str, Access] = {}

    def add(self, name: str, data: bytes, access: Access) -> None:
        """Write the file ``name``, such as ``orders-0/00000000000000000000.index``. Raises OSError."""
        self._work.at = self._folder / name
        make_folders(self._part, *Path(name).parts[:-1], access=ANY)  # only this user can enter the part
        fill(self._part / name, data, access)
        self._access[name] = access
        self._work.at = self._folder

    def publish(self, *, replaces: bool) -> list[Path]:
        """Move the files to their names, and return the paths. If a move fails, delete the moved files.

        With ``replaces``, replace existing files, and keep the moved files after an error. Raises TakenError, OSError.
        """
        placed: dict[Path, tuple[int, int]] = {}
        try:
            for name, access in self._access.items():
                target = self._folder / name
                self._work.make_folders(target.parent, access)
                own = identity((self._part / name).lstat())
                parts.publish(self._part / name, target, replaces=replaces)
                placed[target] = own
            for folder in {target.parent for target in placed}:
                parts.flush_folder(folder)
        except BaseException:
            _take_back({} if replaces else placed)
            raise
        return list(placed)


@contextmanager
def new_files(
    folder: str | os.PathLike[str],
    *,
    force: bool = False,
    access: Access = ANY,
    note: Note = discard,
    written: Callable[[Path], object] = discard,
) -> Iterator[NewFiles]:
    """Yield a :class:`NewFiles` of ``folder``, which is created if it is missing. The files appear when the block ends.

    If the block fails, no file appears. Else ``written`` receives the path of each file. Without ``force``, raises
    TakenError if one of the files exists already at the end of the block. Raises UsageError if ``folder`` is a file,
    UnreadableError if writing fails. ``note`` receives a message for each leftover part.
    """
    target = Path(folder)
    with parts.work_in(target, target, access, note) as work:
        part = work.folder()
        made = NewFiles(work, part.path, target)
        yield made
        part.settle()
        with signals.held():
            paths = made.publish(replaces=force)
            work.flush()
    for path in paths:
        written(path)


def write(
    folder: str | os.PathLike[str],
    contents: Mapping[str, bytes],
    *,
    force: bool = False,
    access: Access = ANY,
    note: Note = discard,
) -> list[Path]:
    """Write files into ``folder``, create it if it is missing, and return the paths.

    Each file appears whole, also after a crash, if the file system allows it (``parts.put``). An existing file without
    ``force`` is refused before the first write, and again at the end. Raises the errors of :func:`new_files`.
    """
    for name in () if force else contents:
        must_be_free(Path(folder) / name)
    paths: list[Path] = []
    with new_files(folder, force=force, access=access, note=note, written=paths.append) as made:
        for name, data in contents.items():
            made.add(name, data, access)
    return paths


def _take_back(placed: Mapping[Path, tuple[int, int]]) -> None:
    """Delete published files. ``placed``: path -> identity; a file with another identity is kept."""
    for path, own in placed.items():
        with suppress(OSError):
            if identity(path.lstat()) == own:
                path.unlink()


@contextmanager
def new_file(
    target: str | os.PathLike[str], *, force: bool = False, access: Access = ANY, note: Note = discard
) -> Iterator[BinaryIO]:
    """Return a file to write, and create missing folders. It becomes ``target`` when the block ends without an error.

    ``force`` replaces an existing file. Without it, raises TakenError if ``target`` exists at the start or at the end
    of the block. Raises UnreadableError if writing fails. ``note`` receives a message for each leftover part.
    """
    path = Path(target)
    if not force:
        must_be_free(path)
    with parts.work_in(path.parent, path, access, note) as work:
        part = work.file()
        yield part.opened
        part.flush()
        with signals.held():
            part.publish(path, replaces=force)
            work.flush()


@contextmanager
def new_folder(
    target: str | os.PathLike[str],
    *,
    last: str = "",
    access: Access = ANY,
    note: Note = discard,
    resumes: Callable[[Path], bool] | None = None,
) -> Iterator[Path]:
    """Return a folder to fill, and create missing folders above it. It becomes ``target`` when the block ends.

    ``resumes`` gets the path of a dead run's folder, and returns whether this run continues in it. If the block fails,
    the folder is deleted, unless ``resumes`` returns True. If ``target`` is a folder that is empty or has only an empty
    ``lost+found``, it gets the entries of the returned folder. The entry ``last`` is moved last: if it is there, all
    are. Raises the errors of :func:`new_file`, and UsageError if this ``lost+found`` is not writable.
    """
    path = Path(target)
    folder_must_be_free(path)
    inside = os.path.isdir(path)  # noqa: PTH112  pathlib raises where a name is too long
    with parts.work_in(path if inside else path.parent, path, access, note, resumes) as work:
        if inside:  # report parts of a run that was killed before the folder existed
            work.name_left_over(resolved(path).parent)
        part = work.folder()
        yield part.path
        part.settle()
        with signals.held():
            if inside:
                _move_into(part.path, path, last)
            else:
                part.publish(path)
            work.flush()


def private_file(path: str) -> None:
    """Create a file that only this user may read, unless it exists, and the missing folders above. Raises OSError."""
    Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))


@contextmanager
def scratch_folder(place: str | None) -> Iterator[Path]:
    """Return a new folder for temporary files that only this user may enter, and delete it when the block ends.

    ``place`` is its parent folder; None means the system's folder. Raises UnreadableError if it cannot be created.
    """
    import tempfile
    from shutil import rmtree

    made: list[Path] = []

    def delete() -> None:
        for folder in made:
            rmtree(folder, ignore_errors=True)

    with signals.cleaned_up(delete):  # a signal during the creation is raised in this block
        try:
            with signals.held():
                made.append(Path(tempfile.mkdtemp(prefix="kdump-", dir=place)))
                supervision.owns(made[0])
        except OSError as reason:
            text = f"cannot be written: {reason.strerror or reason}"
            hint = "name another folder" if place else "set TMPDIR to another folder"
            raise UnreadableError(place or "a temporary file", text, hint) from reason
        yield made[0]


def take_place(part: Path, target: Path, *, is_durable: bool = True) -> None:
    """Rename a file or folder, and replace nothing (``parts.put``), for callers that write the output, such as Spark.

    If ``is_durable`` is false, the caller flushes the folder. Raises FileExistsError if the target exists, and OSError.
    """
    with signals.held():
        parts.put(part, target)
        if is_durable:
            parts.flush_folder(target.parent)


def create_text(path: Path, text: str) -> bool:
    """Write a small file, and create missing folders. Return False if the file exists. Raises OSError."""
    for above in reversed([one for one in path.parents if not one.exists()]):
        with suppress(FileExistsError):
            parts.make_folder(above, ANY)
    try:
        fill(path, text.encode(), ANY)
    except FileExistsError:
        return False
    return True


def fill(path: Path, data: bytes, access: Access) -> None:
    """Write a new file, without a flush to the disk. Raises OSError."""
    with create(path, access) as file:
        file.write(data)


def flush(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def set_time(file: BinaryIO, modified_ms: int) -> None:
    """Set the times of the last read and the last write of a file (ms since 1970). Raises OSError."""
    os.utime(file.fileno(), ns=(modified_ms * 1_000_000,) * 2)


def make_folders(root: Path, *names: str, access: Access) -> Path:
    """Create the missing folders of a path in an unpublished folder, and return the last one. Raises OSError."""
    for name in ("", *names):
        root /= name
        with suppress(FileExistsError):  # another worker may create it
            parts.make_folder(root, access)
    return root


def delete_folder(path: Path) -> bool:
    """Delete a folder of this run, into which workers may still write: try for 2 s. Return whether it is gone."""
    from shutil import rmtree

    for _ in range(_DELETIONS):
        rmtree(path, ignore_errors=True)
        if not path.exists():
            return True
        time.sleep(_PAUSE)
    return False


def drop(path: Path) -> None:
    """Delete a file or an empty folder. Raises OSError."""
    if path.is_dir():
        path.rmdir()
    else:
        path.unlink()


def begin_flush(file: BinaryIO) -> None:
    """On Linux start writing a file to the disk, and drop its written pages: later writes reuse these pages."""
    if hasattr(os, "posix_fadvise"):
        with suppress(OSError):  # this is only advice; the flush of the file raises errors of the disk
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def resolved(path: str | os.PathLike[str]) -> Path:
    """Return an absolute path without links. A link that leads to itself stays; ``Path.resolve`` fails on it."""
    return Path(os.path.realpath(path))


def _entry(path: Path) -> Path:
    """Return the absolute path of an entry whose folder has no links. The entry itself may be a link."""
    return resolved(path.parent) / path.name


def must_be_named(out: str) -> None:
    """Raise UsageError if an output is named "" or ``-``, or by a URI, which would create a folder ``s3:``."""
    if not out:
        raise UsageError("the name of the output is empty: name a file or folder")
    if out == "-":
        raise UsageError("'-' is not the name of an output: name a file or folder")
    if "://" in out or is_remote(out) or out.startswith("file:/"):
        raise UsageError(f"{without_secret(out)} is a URI. kdump writes only to this machine: name a local path")


def outside(paths: Iterable[str], out: str, partitions: Iterable[Partition] = ()) -> None:
    """Raise UsageError if the output would replace an input, become a file of its log, or be in an input or log dir.

    ``paths`` are files, folders and globs. ``partitions`` are the partitions found in them; their folders may be links.
    A log dir is a folder with meta.properties. Paths are compared by device and inode, because links and bind mounts
    lead to the same folders. Raises the errors of :func:`must_be_named` too.
    """
    must_be_named(out)
    paths, partitions = list(paths), list(partitions)
    for target in (resolved(out), *([_entry(Path(out))] if os.path.islink(out) else [])):  # noqa: PTH114  as below
        _outside(paths, target, out, partitions)


def _outside(paths: Iterable[str], target: Path, out: str, partitions: Iterable[Partition]) -> None:
    around: dict[tuple[int, int], Path] = {}
    for above in [target, *target.parents]:
        with suppress(OSError):
            around.setdefault(identity(above.stat()), above)
    alone: set[Path | None] = set()  # folders of files in ``paths``; other files in them are not inputs
    for path in paths:
        local = path if is_remote(path) else as_written(path)[1]  # a file: URI may name an input
        for found in [local] if os.path.lexists(local) else LOCAL.glob(local):
            read = Path(found)
            _be_outside(target, _within(around, read), out, path)
            if not read.is_dir():
                alone.add(_within(around, read.parent))
    if target.parent in alone and (
        file_names.is_sibling(target.name) or file_names.SEGMENT_NAME.fullmatch(target.name)
    ):
        raise UsageError(f"{out} would become a file of the input log: name a file outside of its folder")
    for part in partitions:
        if part.files is LOCAL and (read_folder := _within(around, Path(part.folder))) not in alone:
            _be_outside(target, read_folder, out, part.folder)
    for above in [target, *target.parents]:
        if os.path.lexists(above / file_names.META_PROPERTIES):
            raise UsageError(
                f"{out} is in the log dir {above}, which kdump does not change: name a place outside of it"
            )


def _within(around: Mapping[tuple[int, int], Path], read: Path) -> Path | None:
    """Return the path in ``around`` (identity -> path) that is ``read``, or None; for a broken link, where it leads."""
    try:
        return around.get(identity(read.stat()))
    except OSError:  # a broken link
        return resolved(read)


def _be_outside(target: Path, read: Path | None, out: str, path: str) -> None:
    if read == target:
        raise UsageError(f"{out} is an input, which kdump does not change: name another place")
    if read in target.parents:
        raise UsageError(f"{out} is in the input {path}, which kdump does not change: name a place outside of it")


def writable_file(out: str, *, overwrite: bool | None = None, option: str = "--overwrite") -> None:
    """Raise UsageError if ``out`` is not the name of a file or must not be replaced.

    ``overwrite``: whether an existing file may be replaced, None if the command has no option for it. ``option``: the
    name of this option. Raises UnreadableError if this user may not write in the folder.
    """
    if out in {"", "-"}:
        raise UsageError(f"{out!r} is not the name of a file")
    path = Path(out)
    if out.endswith("/") or os.path.isdir(path):  # noqa: PTH112  as above
        raise UsageError(f"{out} is a folder: name a file in it")
    if overwrite is None:
        must_be_free(path)
    elif os.path.lexists(path):
        if path.exists() and not path.is_file():
            raise UsageError(f"{out} is not a regular file, and cannot be replaced: name another file")
        if not overwrite:
            raise TakenError(f"{out} exists already: {option} replaces it")
        if _is_mounted(path) or _is_anothers(path):
            raise UsageError(
                f"{out} is a mount point or belongs to another user, and cannot be replaced: name another file"
            )
    folder = next(above for above in _entry(path).parents if above.exists())
    if not os.access(folder, os.W_OK | os.X_OK):
        reason = f"this user may not write in {folder}, or the file system is read-only"
        raise UnreadableError(out, f"cannot be written: {reason}", "name another place")


def must_be_free(path: Path) -> None:
    """Raise TakenError if ``path`` exists, UnreadableError if this is unknown, for example if the name is too long."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):  # a missing folder is reported later
        return
    except OSError as reason:
        raise unwritable(path, reason) from reason
    raise TakenError(f"{path} exists already: name a file or folder that does not exist")


def folder_must_be_free(path: Path) -> None:
    """Raise the errors of :func:`new_folder` for a ``path`` that exists, unless it is a folder that may be filled."""
    if os.path.isdir(path):  # noqa: PTH112  pathlib raises where a name is too long
        _must_be_empty(path)
    else:
        must_be_free(path)


def _must_be_empty(folder: Path) -> None:
    """Raise TakenError if a folder has more than parts and an empty lost+found; UsageError if that is unwritable."""
    names = [name for name in _names(folder) if not parts.NAME.fullmatch(name)]
    lost = folder / file_names.LOST_AND_FOUND
    if names == [file_names.LOST_AND_FOUND] and lost.is_dir() and not lost.is_symlink():
        if not os.access(lost, os.R_OK | os.W_OK | os.X_OK):
            raise UsageError(f"{lost} cannot be written: name a folder in {folder}, such as {folder / 'kdump'}")
        names = [f"{file_names.LOST_AND_FOUND}/{name}" for name in _names(lost)]
    if names:
        raise TakenError(
            f"{folder} exists already, and holds {names[0]}: name a folder that is empty or does not exist"
        )


def _names(folder: Path) -> list[str]:
    with _refused(folder):
        return sorted(path.name for path in folder.iterdir())


@contextmanager
def _refused(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as reason:
        raise UnreadableError(folder, f"cannot be read: {reason.strerror}") from reason


def _move_into(part: Path, target: Path, last: str) -> None:
    """Move entries into a folder, ``last`` last. An error undoes the moves. Raises TakenError, OSError."""
    moves: list[Path] = []
    for name in sorted(_names(part), key=lambda name: (name == last, name)):
        is_there = name == file_names.LOST_AND_FOUND and (target / name).is_dir()
        moves += [Path(name, inner) for inner in _names(part / name)] if is_there else [Path(name)]
    done: list[Path] = []
    try:
        for move in moves:
            parts.put(part / move, target / move)
            done.append(move)
    except BaseException as reason:
        for move in reversed(done):
            with suppress(OSError):
                parts.put(target / move, part / move)
        if isinstance(reason, FileExistsError):
            taken = target / moves[len(done)]
            raise TakenError(f"{taken} exists now: another program created it during this run") from None
        raise


def _is_mounted(path: Path) -> bool:
    """Return whether a file is a mount point, which a rename cannot replace. Outside of Linux this is False."""
    try:
        mounts = Path("/proc/self/mountinfo").read_bytes().splitlines()
    except OSError:  # only Linux has this file
        return False
    found = (re.sub(rb"\\(\d{3})", lambda code: bytes([int(code[1], 8)]), line.split()[4]) for line in mounts)
    return os.fsencode(_entry(path)) in found


def _is_anothers(path: Path) -> bool:
    """Return whether a sticky folder, such as /tmp, keeps this user from replacing a file of another user."""
    folder, own = path.parent.stat(), os.geteuid()
    return bool(folder.st_mode & stat.S_ISVTX) and own not in (0, folder.st_uid, path.lstat().st_uid)


AT_ONCE: Final = 32 << 20
"""Maximum number of bytes of one system call."""
BLOCK: Final = 1 << 20
_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def copy_range(source: LocalFile, position: int, size: int, target: BinaryIO) -> None:
    """Append ``size`` bytes to ``target``. Raises OSError, UnreadableError if ``source`` is unreadable or too short."""
    target.flush()
    end = position + size
    while position < end:
        copied = _by_system(source, position, min(AT_ONCE, end - position), target)
        if not copied:
            copied = _by_hand(source, position, min(BLOCK, end - position), target)
        position += copied
        begin_flush(target)


def _by_system(source: LocalFile, position: int, size: int, target: BinaryIO) -> int:
    """Copy with ``copy_file_range``, which clones on Btrfs and XFS. Return the number of bytes; 0 if it cannot copy."""
    descriptor = source.descriptor
    if descriptor is None or not hasattr(os, "copy_file_range"):
        return 0
    try:
        return os.copy_file_range(descriptor, target.fileno(), size, offset_src=position)
    except OSError as reason:
        if reason.errno in _FULL:
            raise
        return 0


def _by_hand(source: LocalFile, position: int, size: int, target: BinaryIO) -> int:
    """Copy in this process, whose errors name the file. Return the number of bytes."""
    data = source.read(position, size)
    if not data:
        raise UnreadableError(source.name, f"the file ends at byte {position}: it became shorter while kdump read it")
    target.write(data)
    target.flush()
    return len(data)
