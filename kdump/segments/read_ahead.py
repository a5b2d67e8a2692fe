"""A segment read by threads ahead of whoever reads its regions, in the same order and with the same outcome.

Reading a file, unpacking a batch and the kernel's printing go without Python's global lock, so that one processor reads
while another prints. Threads take turns at the walk; what a thread has taken it makes ready: checksums are reckoned,
large batches unpacked. What it cannot unpack stays as it was: whoever asks for it meets the same damage as without
threads. Where it has read enough, it does a part of the printing: it makes lines of what will be asked for last.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from kdump.errors import DamageError
from kdump.formats.record_layout import CODEC_MASK
from kdump.records.magic_2 import Batch
from kdump.segments.batch_runs import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from kdump.log_dirs.files import Source
    from kdump.segments.batch_runs import Entries
    from kdump.segments.regions import Region

T = TypeVar("T", bound="Region | Run | Entries")

WORTH_IT: Final = 1 << 17
"""Bytes of a file before and behind the place where threads are started: with less, they cost more than they bring."""
LARGE: Final = 1 << 16
"""Bytes of a compressed batch from which on a thread unpacks it: for smaller ones the lock changes hands too often."""
STRETCH: Final = 1 << 20
"""Bytes of a stretch, at most, and of what a thread takes at a time."""
UNPACKING: Final = 8
"""Times that a byte which is to be unpacked counts as one that is not."""
PIECES: Final = 1024
"""Regions of a stretch, at most: the smallest batches are the slowest."""
STRETCHES: Final = 4
"""Stretches that are under way."""
HELD: Final = 16 << 20
"""Unpacked bytes that wait to be read and keep a thread from unpacking more."""
MADE: Final = 4 << 20
"""Unpacked and made bytes that wait to be read and keep a thread from making more."""
THREADS: Final = 2
_alone = False


class _EndedError(BaseException):
    """Nobody waits for what a thread reads any more."""


class Leash:
    """A source that threads read only until they are called back: a search through damage may go on for gigabytes."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.name, self.size, self.limit = source.name, source.size, source.limit
        self.is_over = False

    def read(self, position: int, size: int) -> bytes:
        if self.is_over:
            raise _EndedError
        return self._source.read(position, size)


class Stretches(Generic[T]):
    """Regions, cut into lists of some. Not for two threads at once.

    With ``unpack`` somebody is going to look into the batches, with ``check`` to ask whether records are well-formed.
    """

    def __init__(self, regions: Iterator[T], *, unpack: bool, check: bool) -> None:
        self._regions = regions
        self._unpack = unpack
        self._check = check
        self._failure: BaseException | None = None

    def take(self, most: int = STRETCH) -> list[T]:
        """Return the next regions, ``most`` bytes of them or a region more; none at the end.

        What ends them is raised behind what stands before it.
        """
        if self._failure is not None:
            raise self._failure
        regions: list[T] = []
        size = 0
        try:
            while not regions or (size < most and len(regions) < PIECES):
                region = next(self._regions, None)
                if region is None:
                    break
                size += region.size * UNPACKING if self._unpack and _is_packed(region) else region.size
                regions.append(region)
        except BaseException as failure:  # it is raised again, behind these regions
            if not regions:
                raise
            self._failure = failure
        return regions

    def prepare(self, region: T) -> int:
        """Reckon what whoever reads the region will ask for; return how many bytes are unpacked for it."""
        try:
            if self._check and isinstance(region, Run):
                _ = region.sound
            if not isinstance(region, Batch):
                return 0
            _ = region.crc_valid
            return region.unpack() if self._unpack and region.size >= LARGE else 0
        except (DamageError, MemoryError, ImportError):  # whoever reads the batch meets it too, in its place
            return 0


class _Task(Generic[T]):
    """Regions that a thread makes ready, or what was raised instead; neither at the end of the walk.

    ``ready`` is locked until the thread is through with it, and for ever once somebody reads it. ``held`` counts the
    bytes that are unpacked and made of it, ``is_made`` says that a thread has made what it can.
    """

    def __init__(self) -> None:
        self.regions: list[T] = []
        self.failure: BaseException | None = None
        self.held = 0
        self.is_made = False
        self.ready = threading.Lock()
        self.ready.acquire()


class _Crew(Generic[T]):
    """Threads that take stretches and make them ready; they end with the walk, when they are told to, or when they die.

    ``tasks`` is what they have taken, in order; None behind it says that no thread takes more.
    """

    def __init__(self, stretches: Stretches[T], leash: Leash, make: Callable[[T], int] | None) -> None:
        self.tasks: SimpleQueue[_Task[T] | None] = SimpleQueue()
        self._make = make
        self._waiting: deque[_Task[T]] = deque()
        """The tasks that are not read to their end."""
        self._stretches = stretches
        self._leash = leash
        self._turn = threading.Lock()
        self._over = False
        self._left = False
        """Whether nobody waits for them any more."""
        self._room = threading.Semaphore(STRETCHES)
        self._lock = threading.Lock()
        self._held = 0
        self._threads = 0

    def start(self, threads: int) -> None:
        """Start threads, as many as the system gives."""
        self._threads = threads  # one that has yet to begin counts: without it, none of the others is the last
        for _ in range(threads):
            try:
                threading.Thread(target=self._run, name="reader", daemon=True).start()
            except RuntimeError:  # it gives no more: those that it gave do, or none
                self._leave()

    def done(self, task: _Task[T]) -> None:
        """Make room for another stretch: whoever read this one is through with it."""
        self._waiting.popleft()
        self._hold(-task.held)
        self._room.release()

    def end(self) -> None:
        """Let the threads end. None of them reads the source any more when this returns."""
        self._left = self._leash.is_over = True
        with self._turn:
            self._over = True
        self._room.release(THREADS)

    def _hold(self, size: int) -> None:
        with self._lock:
            self._held += size

    def _run(self) -> None:
        try:
            while (task := self._take()) is not None:
                try:
                    self._prepare(task)
                finally:
                    task.ready.release()
        finally:
            self._leave()

    def _leave(self) -> None:
        """With the last thread, tell the reader that nobody takes more: it waits."""
        with self._lock:
            self._threads -= 1
            if not self._threads:
                self.tasks.put(None)

    def _take(self) -> _Task[T] | None:
        while not self._room.acquire(blocking=False):
            if not self._make_last():
                self._room.acquire()
                break
        with self._turn:
            if self._over:
                return None
            task: _Task[T] = _Task()
            try:
                task.regions = self._stretches.take()
            except BaseException as failure:  # it is raised again where the regions would be read
                task.failure = failure
            self._over = not task.regions
            self._waiting.append(task)
            self.tasks.put(task)
        if self._over:
            self._room.release(THREADS)
        return task

    def _prepare(self, task: _Task[T]) -> None:
        for region in task.regions:
            if self._left or self._held > HELD:
                break
            size = self._stretches.prepare(region)
            if size:
                task.held += size
                self._hold(size)

    def _made(self, region: T) -> int:
        """Make what can be made of a region; return how many bytes that is."""
        try:
            return self._make(region) if self._make is not None else 0
        except (DamageError, MemoryError):  # the printer meets it too, in its place
            return 0

    def _make_last(self) -> bool:
        """Make what may be made of the stretch that is read last of those that wait; return whether there is one."""
        if self._make is None or self._held > MADE:
            return False
        for task in reversed(list(self._waiting)):
            if not task.is_made and task.ready.acquire(blocking=False):
                try:
                    task.is_made = True
                    for region in task.regions:
                        if self._left or self._held > MADE:
                            break
                        size = self._made(region)
                        task.held += size
                        self._hold(size)
                finally:
                    task.ready.release()
                return True
        return False


def read(
    regions: Iterator[T],
    leash: Leash,
    size: int,
    *,
    unpack: bool,
    check: bool = False,
    make: Callable[[T], int] | None = None,
) -> Generator[T, None, None]:
    """Yield ``regions``, ``size`` bytes that are read by ``leash``; threads take them ahead of time when that is much.

    With ``unpack``, compressed batches may be unpacked already, with ``check`` the records of runs looked at. A thread
    may call ``make`` with a region before it is yielded; ``make`` returns how many bytes it made. A MemoryError or a
    DamageError of ``make`` is passed over: the reader of the region meets it again. This raises an error of ``regions``
    after the regions before it. The source must stay open until this is closed.
    """
    stretches = Stretches(regions, unpack=unpack, check=check)
    threads = 0 if _alone else min(THREADS, processors() - 1)
    done = 0
    taken: list[T] = []
    while threads <= 0 or not WORTH_IT <= done <= size - WORTH_IT or (unpack and _is_slow(taken)):
        taken = stretches.take(WORTH_IT)
        if not taken:
            return
        yield from taken
        done += sum([region.size for region in taken])
    crew = _Crew(stretches, leash, make)
    try:
        crew.start(threads)
        while (task := crew.tasks.get()) is not None:
            task.ready.acquire()
            if task.failure is not None:
                raise task.failure
            if not task.regions:
                return
            yield from task.regions
            crew.done(task)
    finally:
        crew.end()
    leash.is_over = False
    while taken := stretches.take():  # there is no thread, or none is left
        yield from taken


def _is_packed(region: Region | Run | Entries) -> bool:
    return isinstance(region, Batch) and bool(region.header.attributes & CODEC_MASK)


def _is_slow(regions: Sequence[Region | Run | Entries]) -> bool:
    """Tell whether most of the bytes are of compressed batches that are too small for threads."""
    small = sum([region.size for region in regions if region.size < LARGE and _is_packed(region)])
    return 2 * small > sum([region.size for region in regions])


def alone() -> None:
    """Start no threads in this process from now on: others of the same work use the processors."""
    global _alone  # noqa: PLW0603  it is said once in the life of a process
    _alone = True


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
