"""The same output made by several processes, in order.

A task is a run of segments; its process writes to a temporary file without a name, which is copied out when its turn
comes. Processes are forked, so that they read what their parent has open (an archive, standard input).
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections import deque
from contextlib import contextmanager
from multiprocessing import get_context
from typing import IO, TYPE_CHECKING, BinaryIO, Final, NamedTuple, TypeAlias

from kdump.errors import KdumpError
from kdump.output.files import no_room
from kdump.primitives.terminal import harmless_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from multiprocessing.process import BaseProcess

    from kdump.log_dirs.partition import Partition, Segment

Part: TypeAlias = "tuple[Partition, tuple[Segment, ...]]"

TASK: Final = 16 << 20
"""Bytes of segments that one process reads, if there are no larger ones."""
_DONE: Final = 64
"""Exit status of a process, and its result on top of that; of one without room for its output, with the errno."""
_NO_ROOM: Final = 128


class Task(NamedTuple):
    """Segments for one process, and the size of them in bytes."""

    parts: list[Part]
    size: int


def tasks(partitions: Iterable[Partition]) -> Iterator[Task]:
    """Yield runs of segments in order, of TASK bytes or one segment."""
    parts: list[Part] = []
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


def run(
    todo: Iterable[Task],
    jobs: int,
    work: Callable[[list[Part], BinaryIO], int],
    take: Callable[[IO[bytes], int, Task], None],
) -> None:
    """Do ``work`` on each task in a process; hand output, result (0 to 63) and task to ``take``, in order.

    Raises UnreadableError where the temporary files find no room, KdumpError when a process ends otherwise than by
    itself.
    """
    running: deque[tuple[BaseProcess, IO[bytes], Task]] = deque()
    context = get_context("fork")
    try:
        for task in todo:
            if len(running) >= jobs:
                _collect(*running[0], take)
                running.popleft()  # not before: who interrupts this must not leave a process behind
            file = _temporary()
            process = context.Process(target=_work, args=(work, task, file))
            with _uninterrupted():
                process.start()
                running.append((process, file, task))
        while running:
            _collect(*running[0], take)
            running.popleft()
    finally:
        for left in running:
            left[0].terminate()
            left[0].join()
            left[1].close()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let Ctrl-C wait: a process that it kept from being noted would go on alone."""
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


def _work(work: Callable[[list[Part], BinaryIO], int], task: Task, file: BinaryIO) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    try:
        result = work(task.parts, file)
        file.flush()
    except OSError as reason:  # readers of files tell of theirs themselves: this is the output's
        os._exit(_NO_ROOM + min(reason.errno or 0, 127))
    except KdumpError as reason:
        sys.stderr.write(f"kdump: {harmless_line(str(reason))}\n")
        sys.stderr.flush()
        os._exit(1)
    os._exit(_DONE + result)


def _collect(process: BaseProcess, file: IO[bytes], task: Task, take: Callable[[IO[bytes], int, Task], None]) -> None:
    process.join()
    with file:
        code = process.exitcode
        if code is not None and code >= _NO_ROOM:
            raise no_room(tempfile.gettempdir(), os.strerror(code - _NO_ROOM))
        if code is None or code < _DONE:
            first = task.parts[0][1][0].name
            raise KdumpError(f"the process that read {first} and what follows ended with {code}")
        file.seek(0)
        take(file, code - _DONE, task)


def copy(file: IO[bytes], out: BinaryIO) -> None:
    """Copy what a process wrote."""
    shutil.copyfileobj(file, out, 1 << 20)
