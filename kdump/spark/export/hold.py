"""The lock of an output: one export at a time writes to a folder.

The lock is a small file, usually next to the output, that names its holder. Local disks, NFS and HDFS create it
atomically. In an object store two exports may get the lock: each reads the lock again before it changes the output, and
all but one of them end.

A holder in this boot and PID namespace is dead if its process is gone. A live holder touches the file every
:data:`BEAT` seconds. Any other holder that has not done so for :data:`SILENCE` seconds counts as dead. The seconds are
measured between two file times of one file system, because clocks of machines differ.
"""

from __future__ import annotations

import json
import os
import socket
import time
import uuid
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from kdump.errors import KdumpError
from kdump.output import files
from kdump.spark.failures import try_to, writing
from kdump.spark.session import repeated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.spark.export.folder import Folder
    from kdump.spark.export.output import Output

BEAT: Final = 10.0
SILENCE: Final = 120.0
LOCK: Final = "lock"
_GUARD: Final = "taking"
_TRIES: Final = 50
_PAUSE: Final = 0.02


class Holder(NamedTuple):
    """The process that holds a lock. :func:`_place` and :func:`_started` explain ``place`` and ``started``."""

    host: str
    place: str
    pid: int
    started: str
    since: str
    token: str

    def __str__(self) -> str:
        return f"kdump on {self.host}, process {self.pid}, since {self.since}"


def _place() -> str:
    """Return a text that identifies the boot of this machine and the PID namespace; without Linux, the machine."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"  # noqa: PTH115  it is not a path
    except OSError:  # only Linux has this file
        return f"{socket.gethostname()} {uuid.getnode():x}"


def _started(pid: int) -> str:
    """Return the start time of a process in clock ticks; empty if unknown."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # the process belongs to another user
        return True
    return True


def me() -> Holder:
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return Holder(socket.gethostname(), _place(), os.getpid(), _started(os.getpid()), now, uuid.uuid4().hex)


class LocalLock:
    """A lock file on the driver's own disks. Its text names the process that holds the lock."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def create(self, text: str) -> bool:
        """Create the lock; return False if it exists."""
        return files.create_text(self._path, text)

    def read(self) -> str | None:
        try:
            return self._path.read_text("utf-8")
        except FileNotFoundError:
            return None

    def touch(self, text: str) -> None:  # noqa: ARG002  the file has it already
        os.utime(self._path)

    def age(self) -> float | None:
        """Return the seconds since the lock was touched, or None if the lock does not exist."""
        probe = self._path.with_name(f"{self._path.name}-{uuid.uuid4().hex}")
        try:
            files.create_text(probe, "")
            return probe.stat().st_mtime - self._path.stat().st_mtime
        except FileNotFoundError:
            return None
        finally:
            _drop(probe)

    def remove(self) -> None:
        _drop(self._path)

    def guard(self) -> Lock:
        """Return the lock that a process must hold before it removes this lock of a dead holder."""
        return LocalLock(self._path.with_name(f"{self._path.name}-{_GUARD}"))


def _drop(path: Path) -> None:
    with suppress(FileNotFoundError):
        files.drop(path)


class HadoopLock:
    """Like :class:`LocalLock`, on one of Hadoop's file systems."""

    def __init__(self, lock: Folder) -> None:
        self._lock = lock

    def create(self, text: str) -> bool:
        return self._lock.create_new(text)

    def read(self) -> str | None:
        return self._lock.read_text("") if self._lock.exists() else None

    def touch(self, text: str) -> None:
        self._lock.overwrite(text)

    def age(self) -> float | None:
        probe = self._named(uuid.uuid4().hex)
        probe.create_new("")
        try:
            return probe.modified() - self._lock.modified() if self._lock.exists() else None
        finally:
            probe.delete()

    def remove(self) -> None:
        self._lock.delete()

    def guard(self) -> Lock:
        return HadoopLock(self._named(_GUARD))

    def _named(self, word: str) -> Folder:
        return self._lock.beside(f"{self._lock.path.rpartition('/')[2]}-{word}")


Lock: TypeAlias = LocalLock | HadoopLock


class Hold:
    """The lock of ``output``, held by this process."""

    def __init__(self, output: Output, place: Lock, holder: Holder) -> None:
        self._output, self._place, self._holder = output, place, holder

    def check(self) -> None:
        """Raise KdumpError if this process has lost the lock, because another process considered it dead."""
        now = _read(self._place.read())
        if now is None or now.token != self._holder.token:
            who = "no process" if now is None else str(now)
            raise KdumpError(f"{self._output.path} is now locked by {who}, which considered this export dead")

    def beat(self) -> None:
        self._place.touch(_text(self._holder))


@contextmanager
def held(output: Output) -> Iterator[Hold]:
    """Lock an output while the block runs. Raises KdumpError if it is locked, usually with the name of the holder."""
    lock = output.hidden(LOCK)
    local = lock.local
    place: Lock = HadoopLock(lock) if local is None else LocalLock(local)
    holder = me()
    with _refusals(output):
        _acquire(output, place, holder)
    hold = Hold(output, place, holder)
    try:
        with repeated(lambda: try_to(hold.beat), BEAT, "kdump-hold"):  # if this fails for long, check() raises
            yield hold
    finally:
        try_to(lambda: place.remove() if _is(place.read(), holder) else None)


@contextmanager
def _refusals(output: Output) -> Iterator[None]:
    try:
        with writing(output.shown):
            yield
    except OSError as reason:
        raise files.unwritable(output.shown, reason) from reason


def _acquire(output: Output, place: Lock, holder: Holder) -> None:
    for _ in range(_TRIES):
        if place.create(_text(holder)):
            return
        text = place.read()
        if text is None:  # the holder has ended meanwhile
            continue
        other = _read(text)
        if not _is_dead(other, place):
            who = "an export that is just beginning" if other is None else str(other)
            raise KdumpError(f"{output.path} is locked by {who}: only one export at a time can write there")
        _remove_dead(place, text, holder)
    raise KdumpError(f"{output.path} is locked by other exports again and again: try later")


def _remove_dead(place: Lock, text: str, holder: Holder) -> None:
    """Remove the lock ``text`` of a dead holder. A second lock makes sure that only one process does so."""
    guard = place.guard()
    if guard.create(_text(holder)):
        try:
            if place.read() == text:
                place.remove()
        finally:
            guard.remove()
    elif _is_silent(guard):
        guard.remove()
    else:
        time.sleep(_PAUSE)


def _is_dead(other: Holder | None, place: Lock) -> bool:
    if other is not None and other.place == _place():
        began = _started(other.pid)
        return not _lives(other.pid) or (bool(began) and began != other.started)
    return _is_silent(place)


def _is_silent(place: Lock) -> bool:
    age = place.age()
    return age is not None and age > SILENCE


def _is(text: str | None, holder: Holder) -> bool:
    found = _read(text)
    return found is not None and found.token == holder.token


def _text(holder: Holder) -> str:
    return json.dumps(holder._asdict())


def _read(text: str | None) -> Holder | None:
    try:
        return None if text is None else Holder(**json.loads(text))
    except (ValueError, TypeError):  # the lock is incomplete
        return None
