"""Runs work on chunks in several workers, although each result depends on the state after the previous chunk.

A worker assumes the state before its chunk and makes a result. When the previous chunk is finished, the state is known.
If the assumption was wrong, the result is made again. The results are yielded in the order of the chunks. There are two
executors: :class:`Threads`, and forked processes (:class:`kdump.parallel.turns.Forks`).
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

C = TypeVar("C")
C_contra = TypeVar("C_contra", contravariant=True)
R = TypeVar("R")
IN_FLIGHT: Final = 4
"""Maximum number of chunks that threads have taken, and whose results the caller has not used yet."""


class ChunkState(Protocol):
    @property
    def start(self) -> object:
        """The part of the state on which the next result depends. A worker's assumption is compared with it."""


S = TypeVar("S", bound=ChunkState)


class Turn(Generic[S]):
    """The state before a worker's chunk. ``state`` is None while it is unknown."""

    state: S | None = None

    def take(self) -> S:
        """Return ``state``. While it is None, raise TooMuchError; an OutputTurn waits instead."""
        if self.state is None:
            raise TooMuchError
        return self.state


class ChunkWork(Protocol[C_contra, S, R]):
    """The work on chunks: assume a state, make a result, and compute the next state."""

    def assume(self, chunk: C_contra) -> Any | None:
        """Return an assumption for :attr:`ChunkState.start` before a chunk, or None to wait for the real state."""

    def make(self, chunk: C_contra, start: Any, turn: Any) -> R:
        """Return a chunk's result from the known or assumed ``start`` and the :class:`Turn`. Raises TooMuchError."""

    def carry(self, before: S, made: R) -> S:
        """Return the state after a chunk, from the state before it and its result."""


class WrongAssumptionError(Exception):
    """The assumption about the state before a chunk was wrong."""


class TooMuchError(Exception):
    """A result is too large to be held until the previous chunk is finished."""


class Revocable(Protocol):
    """A source whose reads raise after ``is_over`` is set."""

    is_over: bool


class _ChunkTask(Generic[C]):
    """A chunk, its assumed ``start``, and its result ``made`` or ``failure``. All are None before they are known."""

    def __init__(self) -> None:
        self.chunk: C | None = None  # stays None if the iterator of chunks fails
        self.start: object | None = None
        self.made: Any = None
        self.failure: BaseException | None = None
        self.is_ready = False


class Threads:
    """Threads that make results. The calling thread makes results too while it waits."""

    def __init__(self, count: int, source: Revocable) -> None:
        """Use ``count`` threads, or fewer if the system refuses more. When ``run`` ends, it sets ``source.is_over``."""
        self._count, self._source = count, source

    def run(
        self,
        chunks: Iterable[C],
        work: ChunkWork[C, S, R],
        state: S,
        split: Callable[[C], Iterable[C]] = lambda chunk: (chunk,),
    ) -> Generator[tuple[R, S]]:
        """Yield the result of each chunk, and the state after the chunk.

        An error of ``chunks`` or ``work`` is raised after the results before it. After a TooMuchError only the calling
        thread makes results: ``split`` divides every chunk that has no result yet, and each part has its own result. No
        thread reads the source after the generator is closed.
        """
        threads = _ChunkThreads(iter(chunks), work)
        turn: Turn[S] = Turn()
        try:
            threads.start(self._count)
            while (task := threads.next()) is not None:
                if task.start is None or task.start != state.start:
                    if task.failure is not None and task.chunk is None:
                        raise task.failure
                    whole: C = task.chunk  # type: ignore[assignment]  # a task without a chunk has failed
                    for chunk in split(whole) if threads.has_too_much else (whole,):
                        turn.state = state
                        made = work.make(chunk, state.start, turn)
                        state = work.carry(state, made)
                        yield made, state
                else:
                    if task.failure is not None:
                        raise task.failure
                    state = work.carry(state, task.made)
                    yield task.made, state
                threads.done()
        finally:
            self._source.is_over = True
            threads.end()


class _ChunkThreads(Generic[C]):
    def __init__(self, chunks: Iterator[C], work: ChunkWork[C, Any, Any]) -> None:
        self._chunks, self._work = chunks, work
        self._changed = threading.Condition()
        self._tasks: deque[_ChunkTask[C]] = deque()
        self._in_flight = 0
        self._is_taking = False
        """Whether a thread reads ``chunks``. Only one thread may do so at a time."""
        self._is_over = False
        self.has_too_much = False
        self._threads: list[threading.Thread] = []

    def start(self, count: int) -> None:
        for _ in range(count):
            thread = threading.Thread(target=self._run, name="chunks", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the system starts no more threads
                return
            self._threads.append(thread)

    def end(self) -> None:
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def done(self) -> None:
        """Allow the threads another chunk, because the result of a chunk was used."""
        with self._changed:
            self._in_flight -= 1
            self._changed.notify_all()

    def next(self) -> _ChunkTask[C] | None:
        """Return the next task; None at the end. If its ``start`` is None, the caller makes the result or raises."""
        while True:
            with self._changed:
                while not self._tasks and self._is_taking:
                    self._changed.wait()
                first = self._tasks[0] if self._tasks else None
                if first is not None and first.is_ready:
                    return self._tasks.popleft()
            other = self._take(Exception, wait=False)  # Ctrl-C ends the work here
            if other is not None:
                with self._changed:
                    if self._tasks[0] is other:  # the caller of next() makes the result from the known state
                        return self._tasks.popleft()
                self._make(other, Exception)
                continue
            with self._changed:
                if first is None and not self._tasks and not self._is_taking:
                    return None
                if first is not None and not first.is_ready:
                    self._changed.wait()

    def _run(self) -> None:
        while (task := self._take(BaseException, wait=True)) is not None:
            self._make(task, BaseException)

    def _take(self, reraised: type[BaseException], *, wait: bool) -> _ChunkTask[C] | None:
        """Take the next chunk to work on; None at the end. Without ``wait``, None also if no chunk is available now."""
        with self._changed:
            while self._is_taking or self._in_flight >= IN_FLIGHT:
                if self._is_over or not wait:
                    return None
                self._changed.wait()
            if self._is_over:
                return None
            self._is_taking = True
        task: _ChunkTask[C] = _ChunkTask()
        is_some = False
        try:
            for chunk in self._chunks:
                task.chunk = chunk
                is_some = True
                break
        except reraised as failure:  # raised again when this chunk's turn comes
            task.failure, task.is_ready = failure, True
            is_some = True
        finally:
            with self._changed:
                self._is_taking = False
                self._is_over |= task.chunk is None
                if is_some:
                    self._tasks.append(task)
                    self._in_flight += 1
                self._changed.notify_all()
        return task if is_some else None

    def _make(self, task: _ChunkTask[C], reraised: type[BaseException]) -> None:
        """Make a chunk's result from an assumption. Keep an exception of type ``reraised`` in the task."""
        if task.chunk is None:
            return
        start = made = failure = None
        try:
            start = None if self.has_too_much else self._work.assume(task.chunk)
            if start is not None:
                made = self._work.make(task.chunk, start, Turn())
        except TooMuchError:
            self.has_too_much, start = True, None
        except reraised as reason:
            failure = reason
        finally:
            with self._changed:
                task.start, task.made, task.failure, task.is_ready = start, made, failure, True
                self._changed.notify_all()
