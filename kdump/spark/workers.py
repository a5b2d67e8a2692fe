"""Runs tasks on the executors of Spark, and returns results in order: :class:`kdump.primitives.processes.Workers`."""

from __future__ import annotations

import os
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kdump.spark import session
from kdump.spark.failures import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark import RDD
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")

TASKS: Final = 4
"""The number of Spark tasks for each place at which Spark runs tasks. More than one balances uneven tasks."""
FAN: Final = 16
"""The maximum number of results that the driver merges. Executors first merge groups of this many adjacent results."""


@dataclass(frozen=True)
class SparkWorkers:
    """The executors of a session.

    ``report`` is called with the current work, the number of finished tasks, and the number of all tasks. ``output``
    keeps Spark's own output, which is printed only if Spark fails.
    """

    spark: SparkSession
    report: Callable[[str, int, int], None]
    output: session.SparkOutput | None = None

    @classmethod
    def start(cls, master: str, settings: Mapping[str, str], report: Callable[[str, int, int], None]) -> SparkWorkers:
        """Start Spark on ``master``, with its output kept in a file. Raises UsageError, KdumpError."""
        output = session.SparkOutput()
        return cls(session.start(master, settings, output), report, output)

    @property
    def count(self) -> int:
        """The number of tasks that Spark runs at the same time."""
        return self.spark.sparkContext.defaultParallelism

    def results(
        self, work: Callable[[T], R], tasks: Sequence[T], merge: Callable[[R, R], R] | None = None
    ) -> Iterator[R]:
        """Yield the result of ``work`` for each task, in order.

        If ``merge`` is given, results of adjacent tasks are merged until at most FAN are left. Tasks run in the current
        folder if it exists on the executor. Raises KdumpError if Spark fails.
        """
        context = self.spark.sparkContext
        with (
            self.output or nullcontext(),
            errors(),
            session.interruptible(self.spark),
            session.watched(self.spark, "reading", self.report),
        ):
            spread = context.parallelize(tasks, min(len(tasks), TASKS * self.count))
            done: RDD[Any] = spread.map(partial(_in_folder, work, _here()))
            if merge is not None:
                done = _merged(done, merge)
            found = session.collected(done)
        yield from found


def _here() -> Path | None:
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def _in_folder(work: Callable[[T], R], folder: Path | None, task: T) -> R:
    before = _here()
    _go_to(folder)
    try:
        return work(task)
    finally:
        _go_to(before)


def _go_to(folder: Path | None) -> None:
    if folder is not None:
        with suppress(OSError):
            os.chdir(folder)


def _merged(results: RDD[Any], merge: Callable[[Any, Any], Any]) -> RDD[Any]:
    """Merge adjacent results on the executors until at most FAN are left. ``treeReduce`` would change their order."""

    def one(rows: Iterable[Any]) -> list[Any]:
        held = list(rows)
        return [reduce(merge, held)] if held else []

    results = results.mapPartitions(one)
    while (count := results.getNumPartitions()) > FAN:
        keyed = results.mapPartitionsWithIndex(lambda number, rows: ((number, row) for row in rows))
        rows = keyed.partitionBy(-(-count // FAN), lambda number: number // FAN)
        results = rows.mapPartitions(lambda pairs: one(row for _, row in sorted(pairs, key=lambda pair: pair[0])))
    return results
