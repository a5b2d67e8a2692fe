"""Work spread over several workers, in order; processes of this machine are some."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

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


def no_process(reason: OSError) -> KdumpError:
    """Return the error of a system that starts no more processes."""
    return KdumpError(f"the system starts no more processes ({reason.strerror}): --jobs 1 reads with this one alone")


@dataclass(frozen=True)
class Processes:
    """At most ``count`` forked processes, which take the work, the tasks and open files over from their parent."""

    count: int

    def results(
        self,
        work: Callable[[T], R],
        tasks: Sequence[T],
        merge: Callable[[R, R], R] | None = None,  # noqa: ARG002  results are few: the caller merges them
    ) -> Iterator[R]:
        """Yield what ``work`` returns for each task, in order. Raises KdumpError where a process is killed."""
        from concurrent.futures import ProcessPoolExecutor
        from concurrent.futures.process import BrokenProcessPool
        from multiprocessing import get_context

        try:
            count = max(1, min(self.count, len(tasks)))
            with ProcessPoolExecutor(count, get_context("fork"), _begin, (work, tasks)) as pool:
                try:
                    results = pool.map(_do, range(len(tasks)))
                except OSError as reason:
                    raise no_process(reason) from None
                yield from results
        except BrokenProcessPool:
            raise KdumpError(
                "a process was killed before it had a result; the system may lack memory (try fewer --jobs)"
            ) from None


_do_task: Callable[[int], Any]


def _begin(work: Callable[[T], R], tasks: Sequence[T]) -> None:
    global _do_task  # noqa: PLW0603  a process of the pool gets once what it works on
    _do_task = lambda number: work(tasks[number])  # noqa: E731  a name of its own would say no more


def _do(number: int) -> Any:
    return _do_task(number)
