"""Threads that take the regions of a segment ahead of whoever reads them: see :mod:`kdump.segments.read_ahead`."""

from __future__ import annotations

import threading
from collections import deque
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from kdump.errors import DamageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdump.segments.batch_runs import Entries, Run
    from kdump.segments.regions import Region

T = TypeVar("T", bound="Region | Run | Entries")

STRETCHES: Final = 4
"""Stretches that are under way."""
HELD: Final = 16 << 20
"""Unpacked bytes that wait to be read and keep a thread from unpacking more."""
MADE: Final = 12 << 20
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


class Crew(Generic[T]):
    """Threads that take stretches and make them ready; they end with the walk, when they are told to, or when they die.

    ``tasks`` is what they have taken, in order; None behind it says that no thread takes more.
    """

    def __init__(self, stretches: Supply[T], leash: Tether, make: Callable[[T], int] | None) -> None:
        self.tasks: SimpleQueue[Task[T] | None] = SimpleQueue()
        self._make = make
        self._waiting: deque[Task[T]] = deque()
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
        """Start ``threads`` or THREADS, as many as the system gives."""
        threads = min(threads, THREADS)
        self._threads = threads  # one that has yet to begin counts: without it, none of the others is the last
        for _ in range(threads):
            try:
                threading.Thread(target=self._run, name="reader", daemon=True).start()
            except RuntimeError:  # it gives no more: those that it gave do, or none
                self._leave()

    def done(self, task: Task[T]) -> None:
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

    def _take(self) -> Task[T] | None:
        while not self._room.acquire(blocking=False):
            if not self._make_last():
                self._room.acquire()
                break
        with self._turn:
            if self._over:
                return None
            task: Task[T] = Task()
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

    def _prepare(self, task: Task[T]) -> None:
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
