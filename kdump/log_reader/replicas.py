"""Several replicas of one partition as one: each offset comes from the replica whose leader epoch is highest.

After an unclean election replicas hold different records under one offset. What the later leader wrote is what the
cluster went on with (KIP-101); where epochs are equal the records are, and the first replica that has them is taken.
"""

from __future__ import annotations

from collections import defaultdict
from heapq import heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING

from kdump.primitives.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kdump.records.record_batch import RecordBatch

Ranges = tuple[tuple[int, int], ...]


class EpochRange(NamedTuple):
    """Offsets from ``start`` up to ``end`` that batches of one leader epoch hold, one behind the other."""

    start: int
    end: int
    epoch: int


class Replica(NamedTuple):
    """One folder of a partition: the name of its partition, and what it holds."""

    topic: str | None
    partition: int | None
    name: str
    runs: list[EpochRange]


def extend(runs: list[EpochRange], batch: RecordBatch) -> None:
    """Add a batch to the runs of a segment. Magic 0 and 1 know no leader epoch, which counts as -1."""
    epoch = -1 if batch.partition_leader_epoch is None else batch.partition_leader_epoch
    start, end = batch.base_offset, batch.last_offset + 1
    if runs and runs[-1].epoch == epoch and runs[-1].end == start:
        runs[-1] = runs[-1]._replace(end=end)
    else:
        runs.append(EpochRange(start, end, epoch))


def common(one: Ranges | None, other: Ranges | None) -> Ranges | None:
    """Return the offsets that are in both; None stands for all offsets."""
    if one is None or other is None:
        return other if one is None else one
    pairs = ((max(first, start), min(last, end)) for first, last in one for start, end in other)
    return tuple((start, end) for start, end in pairs if start < end)


def choose(replicas: list[Replica]) -> list[Ranges | None]:
    """Return, for each replica, the offsets to be read from it; None for all of them where it stands alone."""
    same: defaultdict[tuple[str | None, int | None, str], list[int]] = defaultdict(list)
    for number, replica in enumerate(replicas):
        alone = "" if replica.topic is not None else replica.name
        same[replica.topic, replica.partition, alone].append(number)
    chosen: list[Ranges | None] = [None] * len(replicas)
    for numbers in same.values():
        if len(numbers) > 1:
            ranges: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
            runs = ((number, run) for number in numbers for run in replicas[number].runs)
            for winner, start, end in _winners(runs):
                own = ranges[winner]
                if own and own[-1][1] == start:
                    own[-1] = (own[-1][0], end)
                else:
                    own.append((start, end))
            for number in numbers:
                chosen[number] = tuple(ranges[number])
    return chosen


def _winners(runs: Iterable[tuple[int, EpochRange]]) -> Iterator[tuple[int, int, int]]:
    """Yield (replica, start, end) in rising order: whose run wins between two places where any run begins or ends."""
    ordered = sorted(runs, key=lambda pair: pair[1].start)
    edges = sorted({edge for _, run in ordered for edge in (run.start, run.end)})
    waiting: list[tuple[int, int, int]] = []  # the highest epoch first, then the first replica
    following = 0
    for start, end in pairwise(edges):
        while following < len(ordered) and ordered[following][1].start <= start:
            number, run = ordered[following]
            heappush(waiting, (-run.epoch, number, run.end))
            following += 1
        while waiting and waiting[0][2] <= start:
            heappop(waiting)
        if waiting:
            yield waiting[0][1], start, end
