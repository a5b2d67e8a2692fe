"""Standard output that several processes write in turns: the bytes that one process would write, in the same order.

Each process makes every Nth chunk. It holds the output until its turn comes and then writes to standard output itself:
nothing is copied from one process to another. See :mod:`kdump.parallel.chunks`.

Processes are forked, so that they read the files that their parent has open.
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
"""Bytes of output that a process holds. One that has more waits for its turn."""
AT_ONCE: Final = 1 << 18
"""Bytes of output that are written at a time once the turn has come."""
NONE_BEFORE: Final = 75
"""Exit status of a process that waits for a turn which the process before it, now gone, does not hand on."""
NONE_AFTER: Final = 76
"""Exit status of a process that cannot hand its turn on: the one after it is gone."""
MISSING: Final = {NONE_BEFORE: -1, NONE_AFTER: 1}
"""Exit status of a process that misses a neighbour -> how far from it that one stands."""
EVERY: Final = 0.1
"""Seconds after which a process sends its results: the parent wakes to receive them."""


class OutputTurn(Turn[S]):
    """The output of one process for one chunk after the other, as a file."""

    def __init__(self, receive: Callable[[], S], has_come: Callable[[], object]) -> None:
        """``receive`` waits for the state that the chunk before hands on; ``has_come`` returns whether it need not."""
        self._receive, self._has_come = receive, has_come
        memory = mmap.mmap(-1, HELD, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with suppress(OSError):  # the system has none
                memory.madvise(mmap.MADV_HUGEPAGE)
        self._memory, self._buffer = memory, memoryview(memory)
        self._used = 0
        self.assumed: object | None = None
        """The start that the chunk was begun on, or None if it was begun on a known state."""
        self._on_turn: Callable[[S], None] = lambda _: None
        self.lead = b""
        """Written before the first byte of the chunk, if it has any. It may be set until the turn has come."""
        self.has_written = False
        """Whether the chunk has any output."""

    def begin(self, assumed: object | None) -> None:
        """Begin a chunk."""
        self.state = None
        self._restart(assumed)

    def again(self) -> None:
        """Drop the output of a chunk, to make it again from the state that is known now."""
        self._restart(None)

    def _restart(self, assumed: object | None) -> None:
        self._used, self.assumed, self.lead, self.has_written = 0, assumed, b"", False
        self._on_turn = lambda _: None

    def take(self) -> S:
        """Wait for the turn; return the state. Raises WrongAssumptionError where the assumed start is not its own."""
        has_come = self.state is None
        if self.state is None:
            self.state = self._receive()
        if self.assumed is not None and self.assumed != self.state.start:
            raise WrongAssumptionError
        if has_come:
            self._on_turn(self.state)
        return self.state

    def when_come(self, do: Callable[[S], None]) -> None:
        """Call ``do`` with the state when the turn has come, before anything is written: now, if it has."""
        if self.state is None:
            self._on_turn = do
        else:
            do(self.state)

    def room(self, size: int) -> memoryview | None:
        """Return memory for the next bytes to be written, ``size`` or more, if they have to wait for the turn.

        Bytes that are made there and written before anything else, from its first byte on, are not copied.
        """
        return self._buffer[self._used :] if self.state is None and self._used + size <= HELD else None

    def write(self, data: Bytes) -> int:
        """Print ``data``: later, if the turn has not come. Raises OSError."""
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
            data = bytes(data)  # it may be a part of the memory that :meth:`room` gave
        if not (isinstance(data, memoryview) and data.obj is self._memory):
            self._buffer[self._used : self._used + size] = data
        self._used += size
        return size

    def flush(self) -> None:
        """Wait for the turn and write the bytes that are held."""
        self.take()
        if self.has_written and self.lead:
            _write(memoryview(self.lead))
            self.lead = b""
        if self._used:
            _write(self._buffer[: self._used])
            self._used = 0

    @property
    def file(self) -> BinaryIO:
        """This as an output of printers, which write and flush alone."""
        return cast("BinaryIO", self)


class Forks:
    """``count`` forked processes: each makes every Nth chunk."""

    def __init__(self, count: int) -> None:
        self._count = count

    def run(self, chunks: Sequence[C], work: ChunkWork[C, S, R], state: S) -> Generator[tuple[R, S]]:
        """Yield the result of each chunk, in order, and the state after it.

        ``work.make`` is called with an :class:`OutputTurn`. The caller's own standard output must be flushed before. An
        error of ``make`` is raised here after the earlier output is written; later output is dropped. Also raises
        OutputError, BrokenPipeError, and KdumpError if a process ends without a result.
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
                    turns.append(os.pipe())  # noqa: PERF401  those that there are must be closed where one fails
                workers = stack.enter_context(processes.children(jobs, child))
            except OSError as reason:
                raise processes.no_process(reason) from None
            processes.send(turns[0][1], state)
            _close(turns)
            for number in range(len(chunks)):
                try:
                    result = workers.result_of(number % jobs)
                except GoneError:
                    workers.let_end()  # each writes the output of its turn, and misses a neighbour
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
    """Return the error to raise for that of a process. An OSError is one of output: readers raise errors of kdump."""
    if isinstance(failure, OSError) and not isinstance(failure, BrokenPipeError):
        return OutputError(failure)
    return failure


def _first_to_end(workers: Children, number: int, jobs: int) -> int:
    """Return the exit status of a process without a result, or of the neighbour that it misses."""
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
    """Do the work of one process."""
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
    """Return the state that the process before hands on."""
    try:
        return processes.receive(mine)
    except GoneError:
        raise GoneError(NONE_BEFORE) from None


def _hand_on(following: int, state: object) -> None:
    """Give the turn to the process after this one."""
    try:
        processes.send(following, state)
    except GoneError:
        raise GoneError(NONE_AFTER) from None


def _chunk(chunk: C, work: ChunkWork[C, S, R], turn: OutputTurn[S]) -> R:
    """Make a chunk, and once more where it was begun on a wrong assumption; write its output."""
    turn.begin(work.assume(chunk))
    try:
        made = _made(chunk, work, turn)
    except WrongAssumptionError:
        turn.again()
        made = _made(chunk, work, turn)
    turn.flush()
    return made


def _made(chunk: C, work: ChunkWork[C, S, R], turn: OutputTurn[S]) -> R:
    """Make a chunk up to its turn. An error is raised in the turn, with the output before it written."""
    try:
        made = work.make(chunk, turn.take().start if turn.assumed is None else turn.assumed, turn)
    except (GoneError, WrongAssumptionError):
        raise
    except Exception:
        turn.flush()  # an error that only a wrong assumption has met is none
        raise
    turn.take()
    return made


def _write(data: memoryview) -> None:
    while data:
        data = data[os.write(1, data) :]
