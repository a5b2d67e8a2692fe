"""Work spread over processes, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from kdump.errors import KdumpError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

T = TypeVar("T")
R = TypeVar("R")


def over_processes(
    jobs: int, work: Callable[[T], R], tasks: Iterable[T], begin: Callable[..., None] | None = None, *given: Any
) -> Iterator[R]:
    """Yield what ``work`` returns for each task, in order, from ``jobs`` forked processes.

    Each process calls ``begin`` with ``given`` first. Raises KdumpError where a process ends without a result.
    """
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    try:
        with ProcessPoolExecutor(jobs, get_context("fork"), begin, given) as pool:
            yield from pool.map(work, tasks)
    except BrokenProcessPool:
        raise KdumpError(
            "a process was killed before it had a result; the system may lack memory (try fewer --jobs)"
        ) from None
