"""Work spread over several workers, in order; processes of this machine are some."""

from __future__ import annotations

import gc
import os
import pickle
import select
import signal
import sys
import threading
from collections import deque
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

from kdump.errors import KdumpError
from kdump.primitives import signals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_SIZE = 8
_MUCH = 1 << 18


class GoneError(Exception):
    """The process that should send or receive has ended. ``status`` is that of a child which this ends."""

    def __init__(self, status: int = 1) -> None:
        self.status = status


class Children:
    """Processes, by their numbers from 0 on, and the results that they send.

    Whichever is asked for, all are heard: one whose pipe is full would wait, and others for it.
    """

    def __init__(self, started: Sequence[tuple[int, int]], ended: dict[int, int]) -> None:
        """``started`` has the process id of each and the pipe of its results; ``ended`` gets exit statuses."""
        self._processes = [process for process, _ in started]
        self._ended = ended
        self._heard: list[deque[Any]] = [deque() for _ in started]
        self._talking = {reader: number for number, (_, reader) in enumerate(started)}
        self._waiting = select.poll()
        for reader in self._talking:
            self._waiting.register(reader, select.POLLIN)

    def told_by(self, number: int) -> Any:
        """Return the next result of a process. Raises GoneError where it has ended."""
        heard = self._heard[number]
        while not heard:
            if number not in self._talking.values():
                raise GoneError
            self._hear()
        return heard.popleft()

    def told(self) -> Any:
        """Return the next result of any process. Raises GoneError with the status of one that has failed."""
        while True:
            for heard in self._heard:
                if heard:
                    return heard.popleft()
            failed = [status for status in map(self.status, self._hear()) if status]
            if failed or not self._talking:
                raise GoneError(*failed[:1])

    def _hear(self) -> list[int]:
        """Wait until a process sends a result; return those that have sent all."""
        through = []
        for reader, _ in self._waiting.poll():
            number = self._talking[reader]
            try:
                self._heard[number].extend(receive(reader))
            except GoneError:
                through.append(number)
                self._forget(reader)
        return through

    def let_end(self) -> None:
        """Wait until all have sent everything, which is dropped."""
        while self._talking:
            for reader, _ in self._waiting.poll():
                if not os.read(reader, _MUCH):
                    self._forget(reader)

    def _forget(self, reader: int) -> None:
        self._waiting.unregister(reader)
        del self._talking[reader]

    def status(self, number: int) -> int:
        """Return the exit status of a process that ends, -9 where that signal ended it."""
        process = self._processes[number]
        if process not in self._ended:
            self._ended[process] = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        return self._ended[process]


@contextmanager
def children(count: int, work: Callable[[int, list[object], Callable[[], None]], None]) -> Iterator[Children]:
    """Fork processes that each do ``work``, and hear them; at the end none is left.

    ``work`` is called with the number of its process, a list of results, and a function that sends and empties the
    list. At its end the rest of the list is sent, with the KdumpError, OSError or MemoryError that ``work`` raises. The
    process shows any other error: it is a bug. Raises OSError where the system starts no more processes.
    """
    started: list[tuple[int, int]] = []
    ended: dict[int, int] = {}
    gc.freeze()  # else the first collection of each process would touch, and so copy, all that they share
    try:
        with _uninterrupted():
            for number in range(count):
                started.append(_begin(partial(_child, number, work), started))
        yield Children(started, ended)
    finally:
        gc.unfreeze()
        for process, reader in started:
            os.close(reader)
            if process not in ended:
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)


def _begin(child: Callable[[int], NoReturn], others: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Start a process that ends with ``child``, called with a pipe for its results; return its number and theirs.

    Raises OSError.
    """
    parent = os.getpid()
    is_main = threading.current_thread() is threading.main_thread()  # the system counts the end of a thread as well
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
        if is_main:
            signals.end_with(parent)
        child(writer)
    os.close(writer)
    return process, reader


def _child(number: int, work: Callable[[int, list[object], Callable[[], None]], None], results: int) -> NoReturn:
    """Do the work of one process, and end it, whatever happens."""
    status = 1
    news: list[object] = []

    def tell() -> None:
        told = news[:]
        news.clear()  # what cannot be sent is not sent again
        send(results, told)

    try:
        signals.by_default()
        try:
            work(number, news, tell)
            status = 0
        except (KdumpError, OSError, MemoryError) as failure:
            news.append(failure)
        except GoneError as gone:  # the parent says so
            status = gone.status
        if news:
            tell()
    except GoneError:  # the parent has ended
        pass
    except BaseException:  # a bug: the parent says that a process ended
        status = 1
        sys.excepthook(*sys.exc_info())
    finally:
        try:
            sys.stderr.flush()
        finally:
            os._exit(status)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let Ctrl-C and the like wait until new processes are listed: else they would go on alone."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals.ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def failure(status: int) -> BaseException:
    """Return what to raise for a process that has ended without a result."""
    if status == -signal.SIGINT:
        return KeyboardInterrupt()
    if status == -signal.SIGKILL:
        return KdumpError("a process was killed before it had a result; the system may lack memory (try fewer --jobs)")
    if status in (-signal.SIGTERM, -signal.SIGHUP):
        return KdumpError(f"a process that read with others was ended by {signal.Signals(-status).name}")
    return KdumpError(f"a process that read with others ended with {status}")


def no_process(reason: OSError) -> KdumpError:
    """Return the error of a system that starts no more processes."""
    return KdumpError(f"the system starts no more processes ({reason.strerror}): --jobs 1 reads with this one alone")


def send(end: int, what: object) -> None:
    """Send an object through a pipe. Raises GoneError where its other end is closed."""
    data = pickle.dumps(what)
    try:
        for part in (len(data).to_bytes(_SIZE, "big"), data):
            view = memoryview(part)
            while view:
                view = view[os.write(end, view) :]
    except BrokenPipeError:
        raise GoneError from None


def receive(end: int) -> Any:
    """Return the next object out of a pipe. Raises GoneError where its other end is closed."""
    return pickle.loads(_read(end, int.from_bytes(_read(end, _SIZE), "big")))  # noqa: S301  kdump's own


def _read(end: int, size: int) -> bytearray:
    data = bytearray(size)
    left = memoryview(data)
    while left:
        count = os.readv(end, [left])
        if not count:
            raise GoneError
        left = left[count:]
    return data


T = TypeVar("T")
R = TypeVar("R")


class Workers(Protocol):
    """Who does a list of tasks: processes of this machine, or the executors of a cluster."""

    @property
    def count(self) -> int:
        """How many tasks are done at a time."""

    def results(
        self, work: Callable[[T], R], tasks: Sequence[T], merge: Callable[[R, R], R] | None = None
    ) -> Iterator[R]:
        """Yield what ``work`` returns for each task, in order. Raises KdumpError where a worker has no result.

        With ``merge`` the results of tasks in a row may come as one.
        """


_AHEAD = 512
"""Tasks that wait in the queue, at most: a pipe takes so many numbers in one go."""
_NUMBER = 8


class Processes:
    """At most ``count`` forked processes, which take the work, the tasks and open files over from their parent.

    Each does the next task that none has begun.
    """

    def __init__(self, count: int) -> None:
        self.count = count

    def results(
        self,
        work: Callable[[T], R],
        tasks: Sequence[T],
        merge: Callable[[R, R], R] | None = None,  # noqa: ARG002  results are few: the caller merges them
    ) -> Iterator[R]:
        """Yield what ``work`` returns for each task, in order.

        Raises KdumpError, OSError and MemoryError as ``work`` does, and KdumpError where a process has no result.
        """

        def child(_: int, news: list[object], tell: Callable[[], None]) -> None:
            os.close(last)
            while number := os.read(queue, _NUMBER):
                at = int.from_bytes(number, "big")
                try:
                    news.append((at, work(tasks[at])))
                except (KdumpError, OSError, MemoryError) as failure:
                    news.append((at, failure))
                tell()

        queue, last = os.pipe()
        with ExitStack() as stack:
            stack.callback(os.close, queue)
            end_of_queue = stack.enter_context(ExitStack())
            end_of_queue.callback(os.close, last)
            try:
                processes = stack.enter_context(children(min(self.count, len(tasks)), child))
            except OSError as reason:
                raise no_process(reason) from None
            results: dict[int, R | BaseException] = {}
            queued = 0
            for at in range(len(tasks)):
                if queued < len(tasks):
                    wanted = range(queued, min(at + _AHEAD, len(tasks)))
                    os.write(last, b"".join([number.to_bytes(_NUMBER, "big") for number in wanted]))
                    queued = wanted.stop
                    if queued == len(tasks):
                        end_of_queue.close()
                while at not in results:
                    try:
                        told = processes.told()
                    except GoneError as gone:
                        raise failure(gone.status) from None
                    if isinstance(told, BaseException):  # a result that cannot be sent
                        raise told
                    results[told[0]] = told[1]
                outcome = results.pop(at)
                if isinstance(outcome, BaseException):
                    raise outcome
                yield outcome
