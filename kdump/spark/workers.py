"""The executors of Spark as workers: what processes do of a list of tasks, they do on any machine."""

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
"""Tasks of Spark for each that it does at a time, where there are enough of ours: not all take the same time."""
FAN: Final = 16
"""Results that are merged in one place: of more, executors merge so many in a row first."""


@dataclass(frozen=True)
class SparkWorkers:
    """The executors of a session. ``tell`` is called with how far they are: what is done, tasks done, all tasks.

    ``said`` holds what Spark says, where no process sees it: it is shown when Spark fails.
    """

    spark: SparkSession
    tell: Callable[[str, int, int], None]
    said: session.SaidBySpark | None = None

    @classmethod
    def start(cls, master: str, settings: Mapping[str, str], tell: Callable[[str, int, int], None]) -> SparkWorkers:
        """Start Spark on ``master``, without a word of its own. Raises UsageError, KdumpError."""
        said = session.SaidBySpark()
        return cls(session.start(master, settings, said), tell, said)

    @property
    def count(self) -> int:
        """How many tasks Spark does at a time."""
        return self.spark.sparkContext.defaultParallelism

    def results(
        self, work: Callable[[T], R], tasks: Sequence[T], merge: Callable[[R, R], R] | None = None
    ) -> Iterator[R]:
        """Yield what ``work`` returns for each task, in order; with ``merge``, of tasks in a row.

        Relative paths mean what they mean here where an executor has this folder. Raises KdumpError where Spark fails.
        """
        context = self.spark.sparkContext
        with (
            self.said or nullcontext(),
            errors(),
            session.interruptible(self.spark),
            session.watched(self.spark, "reading", self.tell),
        ):
            spread = context.parallelize(tasks, min(len(tasks), TASKS * self.count))
            done: RDD[Any] = spread.map(partial(_in_folder, work, _here()))
            if merge is not None:
                done = _merged(done, merge)
            found = session.collected(done)
        yield from found


def _here() -> Path | None:
    """Return the current folder, or None if it is gone."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def _in_folder(work: Callable[[T], R], folder: Path | None, task: T) -> R:
    """Do work in the folder from which relative paths are meant, where the machine has it."""
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
    """Merge results in rows, on the executors, until FAN rows or fewer are left. Spark's own tree keeps no order."""

    def one(rows: Iterable[Any]) -> list[Any]:
        held = list(rows)
        return [reduce(merge, held)] if held else []

    results = results.mapPartitions(one)
    while (count := results.getNumPartitions()) > FAN:
        keyed = results.mapPartitionsWithIndex(lambda number, rows: ((number, row) for row in rows))
        rows = keyed.partitionBy(-(-count // FAN), lambda number: number // FAN)
        results = rows.mapPartitions(lambda pairs: one(row for _, row in sorted(pairs, key=lambda pair: pair[0])))
    return results
