"""Forked processes that write standard output in turns, with the same bytes as one process.

Each of N processes makes every Nth chunk (:mod:`kdump.parallel.chunks`). It holds the output of a chunk until its
turn: all earlier output is written, and the previous process has sent the state after its chunk through a pipe. Forked
processes can read the files that their parent has open.
"""

from __future__ import annotations

import mmap
import os
import select
import time
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeVar, cast

from kdump.output.stdout import OutputError
from kdump.parallel.chunks import S, Turn, WrongAssumptionError
from kdump.primitives import processes
from kdump.primitives.processes import GoneError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from kdump.parallel.chunks import ChunkWork
    from kdump.primitives.processes import Children
    from kdump.primitives.wire import Bytes

C = TypeVar("C")
R = TypeVar("R")

HELD: Final = 16 << 20
"""Maximum number of bytes of output that a process holds. A process with more output waits for its turn."""
AT_ONCE: Final = 1 << 18
"""During a turn, output is collected up to this number of bytes before it is written."""
NONE_BEFORE: Final = 75
"""Exit status of a process that waited for its turn, but the previous process has ended."""
NONE_AFTER: Final = 76
"""Exit status of a process that could not pass the turn on, because the next process has ended."""
MISSING: Final = {NONE_BEFORE: -1, NONE_AFTER: 1}
"""Exit status of a process -> the process that ended earlier: -1 for the previous one, 1 for the next one."""
EVERY: Final = 0.1
"""Minimum number of seconds between two sends of results to the parent process, which follow a chunk."""


class OutputTurn(Turn[S]):
    """The output of one process, as a file. The process uses it for all of its chunks, one after the other."""

    def __init__(self, receive: Callable[[], S], has_come: Callable[[], object]) -> None:
        """``receive`` waits for the state before the chunk. ``has_come`` returns whether this state is available."""
        self._receive, self._has_come = receive, has_come
        memory = mmap.mmap(-1, HELD, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with suppress(OSError):  # the system has no huge pages
                memory.madvise(mmap.MADV_HUGEPAGE)
        self._memory, self._buffer = memory, memoryview(memory)
        self._used = 0
        self.assumed: object | None = None
        """The ``start`` that the worker assumed for the state before the chunk; None if that state was known."""
        self._on_turn: Callable[[S], None] = lambda _: None
        self.lead = b""
        """Bytes to write before the chunk's output, if there is any. Set them before the turn, or in ``when_come``."""
        self.has_written = False

    def begin(self, assumed: object | None) -> None:
        self.state = None
        self._restart(assumed)

    def again(self) -> None:
        """Drop the output of a chunk. The next output of this chunk is made from the known state."""
        self._restart(None)

    def _restart(self, assumed: object | None) -> None:
        self._used, self.assumed, self.lead, self.has_written = 0, assumed, b"", False
        self._on_turn = lambda _: None

    def take(self) -> S:
        """Wait for the turn, and return the state before the chunk. Raises WrongAssumptionError and GoneError."""
        has_come = self.state is None
        if self.state is None:
            self.state = self._receive()
        if self.assumed is not None and self.assumed != self.state.start:
            raise WrongAssumptionError
        if has_come:
            self._on_turn(self.state)
        return self.state

    def when_come(self, do: Callable[[S], None]) -> None:
        """Call ``do`` with the state when the turn comes, before any output. If it has come, call ``do`` at once."""
        if self.state is None:
            self._on_turn = do
        else:
            do(self.state)

    def room(self, size: int) -> memoryview | None:
        """Return memory for ``size`` bytes or more of held output; None if too little is left, or if the turn has come.

        The caller fills the start of the memory, and gives this slice to :meth:`write`, which holds it uncopied.
        """
        return self._buffer[self._used :] if self.state is None and self._used + size <= HELD else None

    def write(self, data: Bytes) -> int:
        """Write ``data``, or hold it until the chunk's turn. Return its size. Raises OSError and errors of ``take``."""
        size = len(data)
        if not size:
            return 0
        self.has_written = True
        if self.state is None and self._used // AT_ONCE != (self._used + size) // AT_ONCE and self._has_come():
            self.take()
        most = HELD if self.state is None else AT_ONCE
        if self._used + size > most:
            self.flush()
            if size > AT_ONCE:
                _write(memoryview(data))
                return size
            data = bytes(data)  # ``data`` may be a part of the memory that :meth:`room` returned
        if not (isinstance(data, memoryview) and data.obj is self._memory):
            self._buffer[self._used : self._used + size] = data
        self._used += size
        return size

    def flush(self) -> None:
        """Wait for the turn, and write the held output. Raises OSError, and the errors of ``take``."""
        self.take()
        if self.has_written and self.lead:
            _write(memoryview(self.lead))
            self.lead = b""
        if self._used:
            _write(self._buffer[: self._used])
            self._used = 0

    @property
    def file(self) -> BinaryIO:
        """The output for printers, which call only ``write`` and ``flush``."""
        return cast("BinaryIO", self)


class Forks:
    def __init__(self, count: int) -> None:
        self._count = count

    def run(self, chunks: Sequence[C], work: ChunkWork[C, S, R], state: S) -> Generator[tuple[R, S]]:
        """Yield the result of each chunk, in order, and the state after the chunk.

        ``work.make`` gets an :class:`OutputTurn`. The caller must flush standard output first. An error of ``make`` is
        raised after the earlier output; an OSError becomes an OutputError, except BrokenPipeError. Raises KdumpError if
        a process ends without a result or cannot be started.
        """
        if not chunks:
            return
        jobs = min(self._count, len(chunks))
        turns: list[tuple[int, int]] = []

        def child(number: int, news: list[object], send_news: Callable[[], None]) -> None:
            _do(number, jobs, chunks, work, turns, news, send_news)

        with ExitStack() as stack:
            stack.callback(_close, turns)
            try:
                for _ in range(jobs):
                    turns.append(os.pipe())  # noqa: PERF401  if a call fails, the earlier pipes must be closed
                workers = stack.enter_context(processes.children(jobs, child, threads=False))
            except OSError as reason:
                raise processes.no_process(reason) from None
            processes.send(turns[0][1], state)
            _close(turns)
            for number in range(len(chunks)):
                try:
                    result = workers.result_of(number % jobs)
                except GoneError:
                    workers.let_end()  # the other processes end, because they cannot pass the state on
                    raise processes.failure(_first_to_end(workers, number % jobs, jobs)) from None
                if isinstance(result, BaseException):
                    raise _raised(result)
                state = work.carry(state, result)
                yield result, state


def _close(turns: list[tuple[int, int]]) -> None:
    for pair in turns:
        os.close(pair[0])
        os.close(pair[1])
    turns.clear()


def _raised(failure: BaseException) -> BaseException:
    if isinstance(failure, OSError) and not isinstance(failure, BrokenPipeError):
        return OutputError(failure)
    return failure


def _first_to_end(workers: Children, number: int, jobs: int) -> int:
    """Return the exit status of the process that ended first. ``number`` is a process that sent no result."""
    status = workers.status(number)
    for _ in range(jobs):
        if status in MISSING:
            number = (number + MISSING[status]) % jobs
            status = workers.status(number)
    return status


def _do(
    number: int,
    jobs: int,
    chunks: Sequence[C],
    work: ChunkWork[C, S, R],
    turns: Sequence[tuple[int, int]],
    news: list[object],
    send_news: Callable[[], None],
) -> None:
    mine, following = turns[number][0], turns[(number + 1) % jobs][1]
    for pair in turns:
        for end in pair:
            if end not in (mine, following):
                os.close(end)
    waiting = select.poll()
    waiting.register(mine, select.POLLIN)
    turn: OutputTurn[S] = OutputTurn(partial(_receive, mine), lambda: waiting.poll(0))
    sent = time.monotonic()
    for at in range(number, len(chunks), jobs):
        made = _chunk(chunks[at], work, turn)
        news.append(made)
        if at + 1 < len(chunks):
            _hand_on(following, work.carry(turn.take(), made))
        if time.monotonic() - sent > EVERY:
            send_news()
            sent = time.monotonic()


def _receive(mine: int) -> Any:
    try:
        return processes.receive(mine)
    except GoneError:
        raise GoneError(NONE_BEFORE) from None


def _hand_on(following: int, state: object) -> None:
    try:
        processes.send(following, state)
    except GoneError:
        raise GoneError(NONE_AFTER) from None


def _chunk(chunk: C, work: ChunkWork[C, S, R], turn: OutputTurn[S]) -> R:
    """Make the result of a chunk, and write its output. If the assumed state was wrong, make the result again."""
    turn.begin(work.assume(chunk))
    try:
        made = _made(chunk, work, turn)
    except WrongAssumptionError:
        turn.again()
        made = _made(chunk, work, turn)
    turn.flush()
    return made


def _made(chunk: C, work: ChunkWork[C, S, R], turn: OutputTurn[S]) -> R:
    """Make the result of a chunk, and wait for its turn. An error is raised in the turn, after the output so far."""
    try:
        made = work.make(chunk, turn.take().start if turn.assumed is None else turn.assumed, turn)
    except (GoneError, WrongAssumptionError):
        raise
    except Exception:
        turn.flush()  # raises WrongAssumptionError if the assumption caused the error
        raise
    turn.take()
    return made


def _write(data: memoryview) -> None:
    while data:
        data = data[os.write(1, data) :]
