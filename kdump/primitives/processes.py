"""Spread work over several workers, such as forked processes, and return the results in order."""

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
    """Processes, by their numbers from 0, and the results that they send.

    A call reads the results of all: a process whose pipe is full would wait, and others would wait for it.
    """

    def __init__(self, started: Sequence[tuple[int, int]], ended: dict[int, int]) -> None:
        """``started`` has the process id of each and the pipe of its results; ``ended`` gets exit statuses."""
        self._processes = [process for process, _ in started]
        self._ended = ended
        self._received: list[deque[Any]] = [deque() for _ in started]
        self._sending = {reader: number for number, (_, reader) in enumerate(started)}
        self._waiting = select.poll()
        for reader in self._sending:
            self._waiting.register(reader, select.POLLIN)

    def result_of(self, number: int) -> Any:
        """Return the next result of a process. Raises GoneError if it has ended."""
        results = self._received[number]
        while not results:
            if number not in self._sending.values():
                raise GoneError
            self._receive()
        return results.popleft()

    def next_result(self) -> Any:
        """Return the next result of any process. Raises GoneError with the status of one that has failed."""
        while True:
            for results in self._received:
                if results:
                    return results.popleft()
            failed = [status for status in map(self.status, self._receive()) if status]
            if failed or not self._sending:
                raise GoneError(*failed[:1])

    def _receive(self) -> list[int]:
        """Wait until a process sends results. Return the processes that have ended."""
        through = []
        for reader, _ in self._waiting.poll():
            number = self._sending[reader]
            try:
                self._received[number].extend(receive(reader))
            except GoneError:
                through.append(number)
                self._forget(reader)
        return through

    def let_end(self) -> None:
        """Wait until all have sent everything, which is dropped."""
        while self._sending:
            for reader, _ in self._waiting.poll():
                if not os.read(reader, _MUCH):
                    self._forget(reader)

    def _forget(self, reader: int) -> None:
        self._waiting.unregister(reader)
        del self._sending[reader]

    def status(self, number: int) -> int:
        """Return the exit status of a process that ends, -9 where that signal ended it."""
        process = self._processes[number]
        if process not in self._ended:
            self._ended[process] = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        return self._ended[process]


@contextmanager
def children(count: int, work: Callable[[int, list[object], Callable[[], None]], None]) -> Iterator[Children]:
    """Fork processes that each do ``work``. At the end none is left.

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
    """Start a process that runs ``child`` with a pipe for its results. Return its id and the pipe's reading end.

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

    def send_news() -> None:
        sent = news[:]
        news.clear()  # what cannot be sent is not sent again
        send(results, sent)

    try:
        signals.by_default()
        try:
            work(number, news, send_news)
            status = 0
        except (KdumpError, OSError, MemoryError) as failure:
            news.append(failure)
        except GoneError as gone:  # the parent says so
            status = gone.status
        if news:
            send_news()
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
    """Return the exception for a process that ended without a result."""
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
    """Workers that do a list of tasks: processes of this machine, or the executors of a cluster."""

    @property
    def count(self) -> int:
        """How many tasks are done at a time."""

    def results(
        self, work: Callable[[T], R], tasks: Sequence[T], merge: Callable[[R, R], R] | None = None
    ) -> Iterator[R]:
        """Yield the result of ``work`` for each task, in order. Raises KdumpError if a worker ends without one.

        With ``merge`` the results of tasks in a row may come as one.
        """


_AHEAD = 512
"""Most tasks in the queue: a pipe takes so many numbers at once."""
_NUMBER = 8


class Processes:
    """At most ``count`` forked processes, which inherit the work, the tasks and open files from their parent.

    Each takes the next task.
    """

    def __init__(self, count: int) -> None:
        self.count = count

    def results(
        self,
        work: Callable[[T], R],
        tasks: Sequence[T],
        merge: Callable[[R, R], R] | None = None,  # noqa: ARG002  results are few: the caller merges them
    ) -> Iterator[R]:
        """Yield the result of ``work`` for each task, in order.

        Raises KdumpError, OSError and MemoryError as ``work`` does, and KdumpError where a process has no result.
        """

        def child(_: int, news: list[object], send_news: Callable[[], None]) -> None:
            os.close(last)
            while number := os.read(queue, _NUMBER):
                at = int.from_bytes(number, "big")
                try:
                    news.append((at, work(tasks[at])))
                except (KdumpError, OSError, MemoryError) as failure:
                    news.append((at, failure))
                send_news()

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
                        received = processes.next_result()
                    except GoneError as gone:
                        raise failure(gone.status) from None
                    if isinstance(received, BaseException):  # a result that cannot be sent
                        raise received
                    results[received[0]] = received[1]
                outcome = results.pop(at)
                if isinstance(outcome, BaseException):
                    raise outcome
                yield outcome
