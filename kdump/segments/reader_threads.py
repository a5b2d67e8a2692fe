"""Threads that take the regions of a segment ahead of whoever reads them: see :mod:`kdump.segments.read_ahead`."""

from __future__ import annotations

import threading
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from kdump.errors import DamageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdump.segments.regions import Region

T = TypeVar("T", bound="Region")

STRETCHES: Final = 4
"""Stretches that are under way."""
HELD: Final = 16 << 20
"""Unpacked bytes that wait to be read and keep a thread from unpacking more."""
MADE: Final = 16 << 20
"""Unpacked and made bytes that wait to be read and keep a thread from making more."""
THREADS: Final = 2


class Tether(Protocol):
    """A source that is read no more once ``is_over`` is set."""

    is_over: bool


class Supply(Protocol[T]):
    """The regions of a segment, in stretches: see :class:`kdump.segments.read_ahead.Stretches`."""

    def take(self) -> list[T]:
        """Return the next regions, none at the end."""

    def prepare(self, region: T) -> int:
        """Make a region ready; return how many bytes are unpacked for it."""


class Task(Generic[T]):
    """Regions to be made ready, or what was raised instead; neither at the end of the walk.

    ``ready`` is locked until they are, and for ever once somebody reads them. ``held`` counts the bytes that are
    unpacked and made of them.
    """

    def __init__(self) -> None:
        self.regions: list[T] = []
        self.failure: BaseException | None = None
        self.held = 0
        self.ready = threading.Lock()
        self.ready.acquire()


class Crew(Generic[T]):
    """Threads that take stretches and make them ready; they end with the walk, when they are told to, or when they die.

    Whoever reads the regions takes stretches too: what one thread has read, it makes lines of sooner than another.
    """

    def __init__(self, stretches: Supply[T], leash: Tether, make: Callable[[T], int] | None) -> None:
        self._tasks: SimpleQueue[Task[T] | None] = SimpleQueue()
        """What is taken and not yet read, in order; None behind it says that no thread takes more."""
        self._make = make
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
        """Start ``threads`` or THREADS, as many as the system gives."""
        threads = min(threads, THREADS)
        self._threads = threads  # one that has yet to begin counts: without it, none of the others is the last
        for _ in range(threads):
            try:
                threading.Thread(target=self._run, name="reader", daemon=True).start()
            except RuntimeError:  # it gives no more: those that it gave do, or none
                self._leave()

    def next(self) -> Task[T] | None:
        """Return the next task, None when no thread takes more. While it is not ready, others are made ready here."""
        if self._tasks.empty() and (task := self._begin()) is not None:
            task.ready.release()  # its regions are made ready as they are read
        task = self._tasks.get()
        while task is not None and not task.ready.acquire(blocking=False):
            other = self._begin()
            if other is None:
                task.ready.acquire()
                break
            with suppress(Exception):  # the reader of these regions meets the same error, in its place
                self._prepare(other)
        return task

    def done(self, task: Task[T]) -> None:
        """Make room for another stretch: whoever read this one is through with it."""
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
            while True:
                self._room.acquire()
                with self._turn:
                    if self._over:
                        return
                    task = self._take(BaseException)
                self._prepare(task)
        finally:
            self._leave()

    def _leave(self) -> None:
        """With the last thread, tell the reader that nobody takes more: it waits."""
        with self._lock:
            self._threads -= 1
            if not self._threads:
                self._tasks.put(None)

    def _begin(self) -> Task[T] | None:
        """Take a stretch in place of a thread; return None where one is at it, or where enough are under way."""
        if not self._room.acquire(blocking=False):
            return None
        if self._turn.acquire(blocking=False):
            try:
                if not self._over:
                    return self._take(Exception)  # Ctrl-C ends the work here
            finally:
                self._turn.release()
        self._room.release()
        return None

    def _take(self, kept: type[BaseException]) -> Task[T]:
        """Take the next stretch; what is raised of a ``kept`` kind is raised again where its regions would be read."""
        task: Task[T] = Task()
        try:
            task.regions = self._stretches.take()
        except kept as failure:
            task.failure = failure
        self._over = not task.regions
        self._tasks.put(task)
        if self._over:
            self._room.release(THREADS)
        return task

    def _prepare(self, task: Task[T]) -> None:
        """Make regions ready as far as there is memory for it."""
        try:
            for region in task.regions:
                if self._left or self._held > HELD:
                    break
                size = self._stretches.prepare(region)
                if self._make is not None and self._held <= MADE:
                    size += self._made(self._make, region)
                if size:
                    task.held += size
                    self._hold(size)
        finally:
            task.ready.release()

    def _made(self, make: Callable[[T], int], region: T) -> int:
        """Make what can be made of a region; return how many bytes that is."""
        try:
            return make(region)
        except (DamageError, MemoryError):  # the printer meets it too, in its place
            return 0
