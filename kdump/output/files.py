"""Files that kdump writes: they appear whole or not at all, and nothing is overwritten unasked."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from kdump.errors import UnreadableError, UsageError
from kdump.log_dirs import file_names
from kdump.log_dirs.local import LOCAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class TakenError(UsageError):
    """A file is there already, and must not be overwritten."""


def write(folder: str | os.PathLike[str], contents: Mapping[str, bytes], *, force: bool = False) -> list[Path]:
    """Write files into ``folder``, which is made where it is missing; return their paths.

    Each is written under another name, flushed to the disk and then renamed, so that a reader or a crash sees all of
    it or nothing. Raises before anything is written: UsageError where ``folder`` is a file, TakenError where one of
    the files is there already and ``force`` is not given. Raises UnreadableError where the disk refuses: then nothing
    is left.
    """
    target = Path(folder)
    paths = {target / name: data for name, data in contents.items()}
    if not force:
        for path in paths:
            if os.path.lexists(path):
                raise TakenError(f"{path} is there already")
    with _errors_of(target):
        try:
            target.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise UsageError(f"{target} is a file: name a folder to write into") from None
        pending: dict[Path, Path] = {}
        placed: list[Path] = []
        try:
            for path, data in paths.items():
                pending[path] = path.with_name(f".{path.name}.{os.getpid()}.tmp")
                _write_through(pending[path], data)
            for path, temporary in pending.items():
                _place(temporary, path, force=force)
                placed.append(path)
            _flush_folder(target)
        except BaseException:
            for path in [*pending.values(), *([] if force else placed)]:
                with suppress(OSError):
                    path.unlink(missing_ok=True)
            raise
    return list(paths)


@contextmanager
def _errors_of(folder: Path) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:  # of what is told meanwhile
        raise
    except OSError as reason:
        raise UnreadableError(reason.filename or folder, f"cannot be written: {reason.strerror or reason}") from reason


def no_room(where: str | None, reason: str) -> UnreadableError:
    """Return the error of temporary files that cannot be written; None is no folder for them."""
    return UnreadableError(
        where or "a temporary file", f"cannot be written: {reason}", "set TMPDIR to a folder with more room"
    )


def _write_through(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _place(temporary: Path, path: Path, *, force: bool) -> None:
    """Give a finished file its name. Without ``force`` a link refuses a name that was taken in the meantime."""
    if force:
        temporary.replace(path)
        return
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise TakenError(f"{path} is there already") from None
    except OSError:  # a file system without links: the check before was all that can be had
        temporary.replace(path)
        return
    temporary.unlink()


def begin_flush(file: BinaryIO) -> None:
    """Let the disk begin with what is written, and the page cache drop what the disk has.

    Who flushes the file waits less. What is written next takes the pages that were dropped: new ones cost a virtual
    machine a request to its host each, and others their place in the page cache.
    """
    if hasattr(os, "posix_fadvise"):
        with suppress(OSError):  # it is advice; the flush of the file tells what the disk refuses
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _flush_folder(folder: Path) -> None:
    """Make the new names durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def outside(paths: Iterable[str], out: str) -> None:
    """Raise UsageError where the output would replace what is read, or lie in it or in a log dir: that stays as it is.

    ``paths`` are files, folders and globs.
    """
    target = Path(out).resolve()
    for path in paths:
        for found in [path] if os.path.lexists(path) else LOCAL.glob(path):
            read = Path(found).resolve()
            if target == read:
                raise UsageError(f"{out} is read and stays as it is: name another place")
            if target.is_relative_to(read):
                raise UsageError(f"{out} lies in {path}, which is read and stays as it is: name a place outside of it")
    for above in target.parents:
        if os.path.lexists(above / file_names.META_PROPERTIES):
            raise UsageError(f"{out} lies in the log dir {above}, which stays as it is: name a place outside of it")


def replaceable(out: str, *, overwrite: bool) -> None:
    """Raise where a file cannot be written at ``out``: before the work for it begins.

    UsageError where it is no name of a file, or something is there that may not be replaced; UnreadableError where its
    folder cannot be written.
    """
    if out in {"", "-"}:
        raise UsageError(f"{out!r} is no name of a file")
    path = Path(out)
    if os.path.lexists(path):
        if path.is_dir():
            raise UsageError(f"{out} is a folder: name a file in it")
        if path.exists() and not path.is_file():
            raise UsageError(f"{out} is not a file: it is not replaced")
        if not overwrite:
            raise UsageError(f"{out} is there already: --overwrite replaces it")
    folder = next(above for above in path.resolve().parents if above.exists())
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UnreadableError(folder, "cannot be written")


@contextmanager
def whole(target: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a path to write a file or a folder at; it gets the name ``target`` when all of it is there, or goes.

    Raises UsageError where ``target`` is there already (an empty folder counts as nothing), and UnreadableError where
    the disk refuses.
    """
    path = Path(target)
    if os.path.lexists(path) and not (path.is_dir() and not any(path.iterdir())):
        raise UsageError(f"{path} is there already: name a place that is free")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with _errors_of(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield temporary
            for made in [*temporary.rglob("*"), temporary]:
                _flush_folder(made)
            temporary.replace(path)
            _flush_folder(path.parent)
        except BaseException:
            if temporary.is_dir():
                from shutil import rmtree  # slow to import

                rmtree(temporary, ignore_errors=True)
            else:
                temporary.unlink(missing_ok=True)
            raise
