"""Runs tasks in forked processes, which send results through pipes, and yields the results in the tasks' order."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections import deque
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

from kdump.errors import KdumpError
from kdump.primitives import signals
from kdump.primitives.threads import start_none

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_SIZE = 8
_MUCH = 1 << 18


class GoneError(Exception):
    """The process at the other end of a pipe has ended. A child process that raises this exits with ``status``."""

    def __init__(self, status: int = 1) -> None:
        self.status = status


class Children:
    """Forked processes, numbered from 0, and the results that they send.

    A call that waits for one process receives the results of the others too: a process with a full pipe blocks.
    """

    def __init__(self, started: Sequence[tuple[int, int]], ended: dict[int, int]) -> None:
        """``started``: the id and the result pipe of each process. ``ended`` gets process ids -> exit statuses."""
        self._processes = [process for process, _ in started]
        self._ended = ended
        self._received: list[deque[Any]] = [deque() for _ in started]
        self._sending = {reader: number for number, (_, reader) in enumerate(started)}
        import select

        self._waiting = select.poll()
        for reader in self._sending:
            self._waiting.register(reader, select.POLLIN)

    def result_of(self, number: int) -> Any:
        """Return the next result or error of a process. Raises GoneError if it has ended without another result."""
        results = self._received[number]
        while not results:
            if number not in self._sending.values():
                raise GoneError
            self._receive()
        return results.popleft()

    def next_result(self) -> Any:
        """Return the next result or error of any process. Raises GoneError if one failed, or if all have ended."""
        while True:
            for results in self._received:
                if results:
                    return results.popleft()
            failed = [status for status in map(self.status, self._receive()) if status]
            if failed or not self._sending:
                raise GoneError(*failed[:1])

    def _receive(self) -> list[int]:
        """Wait for results of any process. Return the numbers of the processes that have ended."""
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
        while self._sending:
            for reader, _ in self._waiting.poll():
                if not os.read(reader, _MUCH):
                    self._forget(reader)

    def _forget(self, reader: int) -> None:
        self._waiting.unregister(reader)
        del self._sending[reader]

    def status(self, number: int) -> int:
        """Wait until a process ends. Return its exit status, or the negative number of the signal that ended it."""
        process = self._processes[number]
        if process not in self._ended:
            self._ended[process] = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        return self._ended[process]


@contextmanager
def children(
    count: int, work: Callable[[int, list[object], Callable[[], None]], None], *, threads: bool
) -> Iterator[Children]:
    """Fork ``count`` processes that run ``work``. They are killed at the end of the block.

    ``work`` is called with the number of its process, a list for results, and a function that sends and empties the
    list. When ``work`` ends, the rest of the list is sent. A KdumpError, OSError or MemoryError of ``work`` is a result
    too. A GoneError ends the process; any other exception is a bug, which the process prints. Without ``threads`` no
    process starts threads. Raises OSError if the system starts no more processes.
    """
    started: list[tuple[int, int]] = []
    ended: dict[int, int] = {}
    gc.freeze()  # a garbage collection in a child would copy all shared memory pages
    try:
        # Block signals until all new processes are listed, so that none is left running.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signals.ENDING)
        try:
            for number in range(count):
                started.append(_begin(partial(_child, number, work, threads), started))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        yield Children(started, ended)
    finally:
        gc.unfreeze()
        for process, reader in started:
            os.close(reader)
            if process not in ended:
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)


def _begin(child: Callable[[int], NoReturn], others: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Fork a process that runs ``child``. Return its id, and the reading end of its pipe. Raises OSError."""
    parent = os.getpid()
    is_main = threading.current_thread() is threading.main_thread()  # prctl also reacts to the end of a thread
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


def _child(
    number: int, work: Callable[[int, list[object], Callable[[], None]], None], threads: bool, results: int
) -> NoReturn:
    if not threads:
        start_none()
    status = 1
    news: list[object] = []

    def send_news() -> None:
        sent = news[:]
        news.clear()  # before sending, so that results that cannot be sent are not tried again
        send(results, sent)

    try:
        signals.by_default()
        try:
            work(number, news, send_news)
            status = 0
        except (KdumpError, OSError, MemoryError) as failure:
            news.append(failure)
        except GoneError as gone:  # the parent reports it
            status = gone.status
        if news:
            send_news()
    except GoneError:  # the parent has ended
        pass
    except BaseException:  # a bug; the parent reports that the process ended
        status = 1
        sys.excepthook(*sys.exc_info())
    finally:
        try:
            sys.stderr.flush()
        finally:
            os._exit(status)


def failure(status: int) -> BaseException:
    """Return the exception for a process that ended without a result."""
    if status == -signal.SIGINT:
        return KeyboardInterrupt()
    if status == -signal.SIGKILL:
        return KdumpError("a worker process was killed; the system may lack memory (try fewer --jobs)")
    if status in (-signal.SIGTERM, -signal.SIGHUP):
        return KdumpError(f"a worker process was ended by {signal.Signals(-status).name}: run the command again")
    return KdumpError(f"a worker process ended with exit status {status} (--jobs 1 starts no process)")


def no_process(reason: OSError) -> KdumpError:
    return KdumpError(f"the system starts no more processes ({reason.strerror}): use --jobs 1")


def send(end: int, what: object) -> None:
    """Send an object through a pipe. Raises GoneError if the other end is closed."""
    import pickle

    data = pickle.dumps(what)
    try:
        for part in (len(data).to_bytes(_SIZE, "big"), data):
            view = memoryview(part)
            while view:
                view = view[os.write(end, view) :]
    except BrokenPipeError:
        raise GoneError from None


def receive(end: int) -> Any:
    """Return the next object from a pipe. Raises GoneError if the other end is closed."""
    import pickle

    return pickle.loads(_read(end, int.from_bytes(_read(end, _SIZE), "big")))  # noqa: S301  kdump's own


def _read(end: int, size: int) -> bytearray:
    data = bytearray(size)
    rest = memoryview(data)
    while rest:
        count = os.readv(end, [rest])
        if not count:
            raise GoneError
        rest = rest[count:]
    return data


T = TypeVar("T")
R = TypeVar("R")


class Workers(Protocol):
    """Workers for a list of tasks: processes on this machine, or the executors of a cluster."""

    @property
    def count(self) -> int:
        """The maximum number of tasks that run at the same time."""

    def results(
        self, work: Callable[[T], R], tasks: Sequence[T], merge: Callable[[R, R], R] | None = None
    ) -> Iterator[R]:
        """Yield the result of ``work`` for each task, in order. Raises KdumpError if a worker ends without a result.

        With ``merge`` the results of consecutive tasks may be merged.
        """


_AHEAD = 512
"""Maximum number of tasks in the queue. The queue is a pipe with the numbers of tasks, and must not be full."""
_NUMBER = 8


class Processes:
    """At most ``count`` forked processes, which inherit open files. Without ``threads`` they start no threads."""

    def __init__(self, count: int, *, threads: bool = True) -> None:
        self.count, self._threads = count, threads

    def results(
        self,
        work: Callable[[T], R],
        tasks: Sequence[T],
        merge: Callable[[R, R], R] | None = None,  # noqa: ARG002  the caller merges the few results
    ) -> Iterator[R]:
        """Like :meth:`Workers.results`, without merging. Raises KdumpError, OSError and MemoryError of ``work`` too."""

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
                processes = stack.enter_context(children(min(self.count, len(tasks)), child, threads=self._threads))
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
                    if isinstance(received, BaseException):  # the result could not be sent
                        raise received
                    results[received[0]] = received[1]
                outcome = results.pop(at)
                if isinstance(outcome, BaseException):
                    raise outcome
                yield outcome
