"""Work spread over several workers, in order; processes of this machine are some."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Protocol, TypeVar

from kdump.errors import KdumpError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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
        from kdump.primitives import forked  # needed for several processes alone

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
                processes = stack.enter_context(forked.children(min(self.count, len(tasks)), child))
            except OSError as reason:
                raise forked.no_process(reason) from None
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
                    except forked.GoneError as gone:
                        raise forked.failure(gone.status) from None
                    if isinstance(told, BaseException):  # a result that cannot be told
                        raise told
                    results[told[0]] = told[1]
                outcome = results.pop(at)
                if isinstance(outcome, BaseException):
                    raise outcome
                yield outcome
