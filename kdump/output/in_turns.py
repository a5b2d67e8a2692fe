"""Standard output that several processes write in turns: the bytes that one process would write, in the same order.

The work is cut into pieces, of which each process does every so-manieth. What it prints it holds until its turn comes;
then it writes to standard output itself, so that nothing is copied from one process to another. A turn hands on a
state: what those who come later must know of what was done before. A piece may be begun on a guess; where the state
says otherwise, what is held is dropped, and the piece is done once more with the state known.

Processes are forked, so that they read what their parent has open.
"""

from __future__ import annotations

import mmap
import os
import select
import time
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Generic, TypeVar, cast

from kdump.output.stdout import OutputError
from kdump.primitives import forked
from kdump.primitives.forked import GoneError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kdump.primitives.forked import Children
    from kdump.primitives.wire import Bytes

P = TypeVar("P")
S = TypeVar("S")
R = TypeVar("R")

HELD: Final = 16 << 20
"""Bytes of output that a process holds. One that has more waits for its turn."""
AT_ONCE: Final = 1 << 18
"""Bytes of output that go out in one go once the turn has come."""
NONE_BEFORE: Final = 75
"""Exit status of a process that waits for a turn which the process before it, now gone, does not hand on."""
NONE_AFTER: Final = 76
"""Exit status of a process that cannot hand its turn on: the one after it is gone."""
MISSING: Final = {NONE_BEFORE: -1, NONE_AFTER: 1}
"""Exit status of a process that misses a neighbour -> how far from it that one stands."""
EVERY: Final = 0.1
"""Seconds after which a process tells what came of its pieces: the parent wakes to hear it."""


class WrongGuessError(BaseException):
    """A piece was begun on a guess that its turn shows to be wrong."""


class Turn(Generic[S]):
    """The output of one process for one piece after the other, as a file.

    ``state`` is None until the turn has come. It is what the next piece is told once this one is done.
    """

    def __init__(self, receive: Callable[[], S], has_come: Callable[[], object]) -> None:
        """``receive`` waits for the state that the piece before hands on; ``has_come`` says that it need not."""
        self._receive, self._has_come = receive, has_come
        memory = mmap.mmap(-1, HELD, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with suppress(OSError):  # the system has none
                memory.madvise(mmap.MADV_HUGEPAGE)
        self._memory, self._buffer = memory, memoryview(memory)
        self._used = 0
        self.state: S | None = None
        self.check: Callable[[S], None] = lambda _: None
        """Called when the turn has come; raises WrongGuessError where the piece must be done anew."""
        self.lead = b""
        """What stands before the first byte of the piece, if there is one. It may be set until the turn has come."""
        self.has_written = False
        """Whether the piece has printed anything."""

    def begin(self, state: S | None) -> None:
        """Begin a piece; with ``state`` its turn has come."""
        self._used, self.state, self.lead, self.has_written = 0, state, b"", False
        self.check = lambda _: None

    def take(self) -> S:
        """Wait for the turn; return the state. Raises WrongGuessError as ``check`` does."""
        if self.state is None:
            self.state = self._receive()
            self.check(self.state)
        return self.state

    def room(self, size: int) -> memoryview | None:
        """Return memory for the next bytes to be written, ``size`` or more, if they have to wait for the turn.

        What is made there and written before anything else, from its first byte on, is not copied.
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
            data = bytes(data)  # it may be what :meth:`room` gave
        if not (isinstance(data, memoryview) and data.obj is self._memory):
            self._buffer[self._used : self._used + size] = data
        self._used += size
        return size

    def flush(self) -> None:
        """Wait for the turn and write what is held."""
        self.take()
        if self.has_written and self.lead:
            _write(memoryview(self.lead))
            self.lead = b""
        if self._used:
            _write(self._buffer[: self._used])
            self._used = 0

    @property
    def file(self) -> BinaryIO:
        """This as what printers print to, which write and flush alone."""
        return cast("BinaryIO", self)


def run(jobs: int, pieces: Sequence[P], work: Callable[[P, Turn[S]], R], state: S, take: Callable[[P, R], None]) -> S:
    """Do ``work`` on the pieces in processes; hand what comes of each to ``take``, in order; return the last state.

    ``work`` is called with a turn that has not come, and then perhaps once more with one that has. What standard output
    holds must be written before. What ``work`` raises is raised here, with all written that was printed before it, and
    nothing behind it; also OutputError, BrokenPipeError, and KdumpError where a process ends without a result.
    """
    if not pieces:
        return state
    jobs = min(jobs, len(pieces))
    turns: list[tuple[int, int]] = []

    def child(number: int, news: list[object], tell: Callable[[], None]) -> None:
        _do(number, jobs, pieces, work, turns, news, tell)

    with ExitStack() as stack:
        stack.callback(_close, turns)
        try:
            for _ in range(jobs):
                turns.append(os.pipe())  # noqa: PERF401  those that there are must be closed where one fails
            processes = stack.enter_context(forked.children(jobs, child))
        except OSError as reason:
            raise forked.no_process(reason) from None
        forked.send(turns[0][1], state)
        _close(turns)
        for number, piece in enumerate(pieces):
            try:
                result = processes.told_by(number % jobs)
            except GoneError:
                processes.let_end()  # each writes what has its turn, and misses a neighbour
                raise forked.failure(_first_to_end(processes, number % jobs, jobs)) from None
            if isinstance(result, BaseException):
                raise _told(result)
            take(piece, result)
        last: S = processes.told_by((len(pieces) - 1) % jobs)
        return last


def _close(turns: list[tuple[int, int]]) -> None:
    for pair in turns:
        os.close(pair[0])
        os.close(pair[1])
    turns.clear()


def _told(failure: BaseException) -> BaseException:
    """Return what to raise for what a process raised: what readers cannot read they tell in words of their own."""
    if isinstance(failure, OSError) and not isinstance(failure, BrokenPipeError):
        return OutputError(failure)
    return failure


def _first_to_end(processes: Children, number: int, jobs: int) -> int:
    """Return the exit status of a process without a result, or of the neighbour that it misses."""
    status = processes.status(number)
    for _ in range(jobs):
        if status in MISSING:
            number = (number + MISSING[status]) % jobs
            status = processes.status(number)
    return status


def _do(
    number: int,
    jobs: int,
    pieces: Sequence[P],
    work: Callable[[P, Turn[S]], R],
    turns: Sequence[tuple[int, int]],
    news: list[object],
    tell: Callable[[], None],
) -> None:
    """Do the work of one process."""
    mine, following = turns[number][0], turns[(number + 1) % jobs][1]
    for pair in turns:
        for end in pair:
            if end not in (mine, following):
                os.close(end)
    waiting = select.poll()
    waiting.register(mine, select.POLLIN)
    turn: Turn[S] = Turn(partial(_receive, mine), lambda: waiting.poll(0))
    told = time.monotonic()
    for at in range(number, len(pieces), jobs):
        news.append(_piece(pieces[at], work, turn))
        if at + 1 < len(pieces):
            _hand_on(following, turn.state)
        else:
            news.append(turn.state)
        if time.monotonic() - told > EVERY:
            tell()
            told = time.monotonic()


def _receive(mine: int) -> Any:
    """Return the state that the process before hands on."""
    try:
        return forked.receive(mine)
    except GoneError:
        raise GoneError(NONE_BEFORE) from None


def _hand_on(following: int, state: object) -> None:
    """Give the turn to the process behind this one."""
    try:
        forked.send(following, state)
    except GoneError:
        raise GoneError(NONE_AFTER) from None


def _piece(piece: P, work: Callable[[P, Turn[S]], R], turn: Turn[S]) -> R:
    """Do the work on a piece, and once more where it was begun on a wrong guess; write what it prints."""
    turn.begin(None)
    try:
        try:
            result = work(piece, turn)
        except Exception:
            turn.take()  # what only a wrong guess has met is no error
            turn.flush()
            raise
        turn.take()
    except WrongGuessError:
        turn.begin(turn.state)
        try:
            result = work(piece, turn)
        except Exception:
            turn.flush()
            raise
    turn.flush()
    return result


def _write(data: memoryview) -> None:
    while data:
        data = data[os.write(1, data) :]
