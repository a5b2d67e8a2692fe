"""Standard output that several processes write in turns: the bytes that one process would write, in the same order.

The work is cut into pieces, of which each process does every so-manieth. What it prints it holds until its turn comes;
then it writes to standard output itself, so that nothing is copied from one process to another. A turn hands on a
state: what those who come later must know of what was done before. A piece may be begun on a guess; where the state
says otherwise, what is held is dropped, and the piece is done once more with the state known.

Processes are forked, so that they read what their parent has open.
"""

from __future__ import annotations

import gc
import mmap
import os
import pickle
import select
import signal
import sys
import time
from collections import deque
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Generic, TypeVar, cast

from kdump.errors import KdumpError
from kdump.output.stdout import OutputError
from kdump.primitives.processes import no_process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import NoReturn

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
_SIZE: Final = 8


class WrongGuessError(BaseException):
    """A piece was begun on a guess that its turn shows to be wrong."""


class _GoneError(BaseException):
    """The process that should send or receive has ended. ``status`` is a key of MISSING."""

    def __init__(self, status: int) -> None:
        self.status = status


class Turn(Generic[S]):
    """The output of one process for one piece after the other, as a file.

    ``state`` is None until the turn has come. It is what the next piece is told once this one is done.
    """

    def __init__(self, receive: Callable[[], S], has_come: Callable[[], object]) -> None:
        """``receive`` waits for the state that the piece before hands on; ``has_come`` says that it need not."""
        self._receive, self._has_come = receive, has_come
        memory = mmap.mmap(-1, HELD)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with suppress(OSError):  # the system has none
                memory.madvise(mmap.MADV_HUGEPAGE)
        self._buffer = memoryview(memory)
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
    children: list[tuple[int, int]] = []
    gc.freeze()  # else the first collection of each process would touch, and so copy, all that they share
    try:
        with _uninterrupted():
            try:
                for _ in range(jobs):
                    turns.append(os.pipe())  # noqa: PERF401  those that there are must be closed where one fails
                for number in range(jobs):
                    children.append(_begin(partial(_child, number, jobs, pieces, work, turns), children))
            except OSError as reason:
                raise no_process(reason) from None
        _send(turns[0][1], state)
        for pair in turns:
            os.close(pair[0])
            os.close(pair[1])
        turns.clear()
        news = _News([reader for _, reader in children])
        for number, piece in enumerate(pieces):
            try:
                result = news.of(number % jobs)
            except _GoneError:
                _let_end([reader for _, reader in children])
                _blame(number % jobs, [process for process, _ in children])
            if isinstance(result, BaseException):
                raise _told(result)
            take(piece, result)
        last: S = news.of((len(pieces) - 1) % jobs)
        return last
    finally:
        gc.unfreeze()
        for process, reader in children:
            os.close(reader)
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
        for pair in turns:
            os.close(pair[0])
            os.close(pair[1])


class _News:
    """What processes tell, each in its order.

    Whoever is asked for, all are heard: one whose pipe is full would wait, and the others for its turn.
    """

    def __init__(self, readers: Sequence[int]) -> None:
        self._heard: list[deque[Any]] = [deque() for _ in readers]
        self._talking = {reader: number for number, reader in enumerate(readers)}
        self._waiting = select.poll()
        for reader in readers:
            self._waiting.register(reader, select.POLLIN)

    def of(self, number: int) -> Any:
        """Return the next that a process tells. Raises _GoneError where it has ended."""
        heard = self._heard[number]
        while not heard:
            if number not in self._talking.values():
                raise _GoneError(NONE_BEFORE)
            for reader, _ in self._waiting.poll():
                try:
                    self._heard[self._talking[reader]].extend(_receive(reader))
                except _GoneError:
                    self._waiting.unregister(reader)
                    del self._talking[reader]
        return heard.popleft()


def _begin(child: Callable[[int], None], others: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Start a process that ends with ``child``; return its number, and where it tells its results. Raises OSError.

    ``child`` is called with the place to tell them to.
    """
    reader, writer = os.pipe()
    try:
        process = os.fork()
    except OSError:
        os.close(reader)
        os.close(writer)
        raise
    if not process:
        for end in (reader, *(other for _, other in others)):
            os.close(end)
        child(writer)
    os.close(writer)
    return process, reader


def _told(failure: BaseException) -> BaseException:
    """Return what to raise for what a process raised: what readers cannot read they tell in words of their own."""
    if isinstance(failure, OSError) and not isinstance(failure, BrokenPipeError):
        return OutputError(failure)
    return failure


def _let_end(readers: Sequence[int]) -> None:
    """Wait for processes of which one has ended: each writes what has its turn, and misses a neighbour."""
    waiting = select.poll()
    for reader in readers:
        waiting.register(reader, select.POLLIN)
    left = len(readers)
    while left:
        for reader, _ in waiting.poll():
            if not os.read(reader, AT_ONCE):
                waiting.unregister(reader)
                left -= 1


def _blame(number: int, processes: Sequence[int]) -> NoReturn:
    """Raise the error of a process without a result: with its exit status, or that of the neighbour that it misses."""
    status = _end(processes[number])
    for _ in processes:
        if status in MISSING:
            number = (number + MISSING[status]) % len(processes)
            status = _end(processes[number])
    if status == -signal.SIGINT:
        raise KeyboardInterrupt from None
    raise KdumpError(f"a process that read with others ended with {status}") from None


def _end(process: int) -> int:
    """Return the exit status of a process that ends, which stays to be waited for: -9 where that signal ended it."""
    ended = os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
    if ended is None:  # the call waits, so that it always has an answer
        return 1
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let Ctrl-C wait until new processes are listed: else they would go on alone."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _child(
    number: int,
    jobs: int,
    pieces: Sequence[P],
    work: Callable[[P, Turn[S]], R],
    turns: list[tuple[int, int]],
    results: int,
) -> None:
    """Do the work of one process, and end it."""
    status = 1
    news: list[object] = []
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        mine, following = turns[number][0], turns[(number + 1) % jobs][1]
        for pair in turns:
            for end in pair:
                if end not in (mine, following):
                    os.close(end)
        waiting = select.poll()
        waiting.register(mine, select.POLLIN)
        turn: Turn[S] = Turn(lambda: _receive(mine), lambda: waiting.poll(0))
        told = time.monotonic()
        for at in range(number, len(pieces), jobs):
            news.append(_piece(pieces[at], work, turn))
            if at + 1 < len(pieces):
                _send(following, turn.state)
            else:
                news.append(turn.state)
            if time.monotonic() - told > EVERY:
                _send(results, news)
                news.clear()
                told = time.monotonic()
        status = 0
    except _GoneError as gone:  # the parent says so
        status = gone.status
    except (KdumpError, OSError, MemoryError) as failure:
        news.append(failure)
    except BaseException:  # a bug: the parent says that a process ended
        sys.excepthook(*sys.exc_info())
    finally:
        if news:
            with suppress(_GoneError, OSError):
                _send(results, news)
        with suppress(OSError):
            sys.stderr.flush()
        os._exit(status)


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


def _send(end: int, what: object) -> None:
    data = pickle.dumps(what)
    view = memoryview(len(data).to_bytes(_SIZE, "big") + data)
    try:
        while view:
            view = view[os.write(end, view) :]
    except BrokenPipeError:
        raise _GoneError(NONE_AFTER) from None


def _receive(end: int) -> Any:
    """Return what the other end sends."""
    return pickle.loads(_read(end, int.from_bytes(_read(end, _SIZE), "big")))  # noqa: S301  kdump's own


def _read(end: int, size: int) -> bytes:
    parts = []
    while size:
        part = os.read(end, size)
        if not part:
            raise _GoneError(NONE_BEFORE)
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
