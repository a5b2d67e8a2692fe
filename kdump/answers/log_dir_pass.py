"""One pass over log dirs that feeds collectors: every batch is read once, whatever the number of questions."""

from __future__ import annotations

import copy
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from kdump.answers.collector import Needs, Place
from kdump.errors import UnreadableError
from kdump.log_dirs.log_dir_state import LogDirStates
from kdump.records.record_batch import RecordBatch
from kdump.segments import read
from kdump.segments.regions import Damage, Trailing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from kdump.answers.collector import Collector
    from kdump.log_dirs.partition import Partition, Segment


class LogDirPass:
    """Feeds ``collectors``.

    ``damage`` is called with each range that cannot be read, as a sentence; ``fail`` with each file that cannot be
    read; ``progress`` with the bytes that are done.
    """

    def __init__(
        self,
        collectors: Sequence[Collector],
        states: LogDirStates,
        *,
        damage: Callable[[str], None],
        fail: Callable[[UnreadableError], None],
        progress: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.collectors = collectors
        self._states = states
        self._damage = damage
        self._fail = fail
        self._progress = progress

    def run(self, partitions: Iterable[Partition]) -> None:
        """Go through partitions in order."""
        for partition in partitions:
            self.partition(Place(partition, self._states.of(partition)))

    def partition(self, place: Place) -> None:
        """Go through one partition: the batches of its segments, if any collector wants them."""
        reading = [collector for collector in self.collectors if collector.begin(place) > Needs.FILES]
        for segment in place.partition.segments:
            if reading:
                self._segment(segment, reading)
            self._progress(segment.size)
        for collector in self.collectors:
            collector.end()

    def _segment(self, segment: Segment, reading: Sequence[Collector]) -> None:
        try:
            with segment.open() as source:
                for region in read.read(source, on_error="resync", first_offset=segment.base_offset):
                    if isinstance(region, RecordBatch):
                        for collector in reading:
                            collector.add(segment, region)
                    elif isinstance(region, Damage | Trailing):
                        if isinstance(region, Damage):
                            self._damage(f"{segment.name}: byte {region.position}: {region.reason}")
                        for collector in reading:
                            collector.lose(segment, region)
        except UnreadableError as error:
            self._fail(error)


class Gathered(NamedTuple):
    """What a process gathered from a stretch of partitions, and what went wrong there."""

    collectors: list[Collector]
    size: int
    """Bytes of the segments."""
    damaged: list[str]
    wrong: list[str]
    failed: list[UnreadableError]


def gather(collectors: Sequence[Collector], partitions: Sequence[Partition]) -> Gathered:
    """Go through partitions with collectors of one's own: the work of a process, or of a task of Spark."""
    done = Gathered(list(collectors), sum(map(_size, partitions)), [], [], [])
    states = LogDirStates(done.wrong.append, done.failed.append)
    LogDirPass(collectors, states, damage=done.damaged.append, fail=done.failed.append).run(partitions)
    return done


def run_over_processes(
    jobs: int, collectors: Sequence[Collector], partitions: Sequence[Partition]
) -> Iterator[Gathered]:
    """Go through partitions with ``jobs`` processes; yield what each stretch gives when it is merged.

    ``collectors`` must be new; they end as if one pass had gone through all partitions in order.
    """
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    empty = copy.deepcopy(list(collectors))
    with ProcessPoolExecutor(jobs, get_context("fork")) as pool:
        for gathered in pool.map(partial(gather, empty), stretches(partitions, jobs)):
            for collector, more in zip(collectors, gathered.collectors, strict=True):
                collector.merge(more)
            yield gathered


def stretches(partitions: Sequence[Partition], jobs: int) -> list[list[Partition]]:
    """Return partitions in order, cut into stretches of about the same size in bytes, some for each job."""
    room = max(1, sum(map(_size, partitions)) // (4 * jobs))
    cut: list[list[Partition]] = []
    held = room
    for partition in partitions:
        if held >= room:
            cut.append([])
            held = 0
        cut[-1].append(partition)
        held += _size(partition)
    return cut


def _size(partition: Partition) -> int:
    return sum(segment.size for segment in partition.segments)
