"""The same output made by several processes, in order.

A task is segments in a row. Its process writes to a temporary file without a name, which is copied out in its turn, and
sends its result through a pipe. Processes are forked, so that they read what their parent has open (an archive,
standard input).
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections import deque
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from typing import IO, TYPE_CHECKING, BinaryIO, Final, NamedTuple, TypeAlias, TypeVar

from kdump.errors import KdumpError
from kdump.output.files import no_room
from kdump.primitives.terminal import harmless_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    from kdump.log_dirs.partition import Partition, Segment

TaskPart: TypeAlias = "tuple[Partition, tuple[Segment, ...]]"
R = TypeVar("R")

TASK: Final = 16 << 20
"""Bytes of segments that one process reads, if there are no larger ones."""


class NoRoom(NamedTuple):
    """What a process sends that cannot write its output."""

    reason: str


class Task(NamedTuple):
    """Segments for one process, and their size in bytes."""

    parts: list[TaskPart]
    size: int


def tasks(partitions: Iterable[Partition]) -> Iterator[Task]:
    """Yield runs of segments in order, of TASK bytes or one segment."""
    parts: list[TaskPart] = []
    size = 0
    for partition in partitions:
        run: list[Segment] = []
        for where in partition.segments:
            if size and size + where.size > TASK:
                yield Task([*parts, (partition, tuple(run))] if run else parts, size)
                parts, run, size = [], [], 0
            run.append(where)
            size += where.size
        if run:
            parts.append((partition, tuple(run)))
    if parts:
        yield Task(parts, size)


class Worker(NamedTuple):
    """A process with its task, the file it writes to, and where its result comes from."""

    process: BaseProcess
    task: Task
    file: IO[bytes]
    results: Connection


def run(
    todo: Iterable[Task],
    jobs: int,
    work: Callable[[list[TaskPart], BinaryIO], R],
    take: Callable[[IO[bytes], R, Task], None],
) -> None:
    """Do ``work`` on each task in a process; hand output, result (pickled) and task to ``take``, in order.

    Raises UnreadableError where the temporary files find no room, KdumpError where a process sends no result.
    """
    running: deque[Worker] = deque()
    context = get_context("fork")
    try:
        for task in todo:
            if len(running) >= jobs:
                _collect(running[0], take)
                running.popleft()  # not before: an interrupt must leave no process
            file = _temporary()
            results, sender = context.Pipe(duplex=False)
            process = context.Process(target=_work, args=(work, task, file, sender))
            with _uninterrupted():
                process.start()
                running.append(Worker(process, task, file, results))
            sender.close()
        while running:
            _collect(running[0], take)
            running.popleft()
    finally:
        for left in running:
            left.process.terminate()
            left.process.join()
            left.file.close()
            left.results.close()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let Ctrl-C wait until a new process is listed: else it would go on alone."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _temporary() -> IO[bytes]:
    try:
        return tempfile.TemporaryFile()
    except OSError as reason:
        raise no_room(tempfile.tempdir, reason.strerror or str(reason)) from reason


def _work(work: Callable[[list[TaskPart], BinaryIO], R], task: Task, file: BinaryIO, sender: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    result: R | NoRoom
    try:
        result = work(task.parts, file)
        file.flush()
    except OSError as reason:  # readers raise UnreadableError for theirs: this is the output's
        result = NoRoom(reason.strerror or str(reason))
    except KdumpError as reason:
        sys.stderr.write(f"kdump: {harmless_line(str(reason))}\n")
        sys.stderr.flush()
        os._exit(1)
    with suppress(BrokenPipeError):  # the parent is gone
        sender.send(result)
    os._exit(0)


def _collect(worker: Worker, take: Callable[[IO[bytes], R, Task], None]) -> None:
    with worker.file as file, worker.results as results:
        try:
            result = results.recv()
        except EOFError:
            worker.process.join()
            first = worker.task.parts[0][1][0].name
            raise KdumpError(
                f"the process that read {first} and what follows ended with {worker.process.exitcode}"
            ) from None
        worker.process.join()
        if isinstance(result, NoRoom):
            raise no_room(tempfile.gettempdir(), result.reason)
        file.seek(0)
        take(file, result, worker.task)


def copy(file: IO[bytes], out: BinaryIO) -> None:
    """Copy what a process wrote."""
    shutil.copyfileobj(file, out, 1 << 20)
