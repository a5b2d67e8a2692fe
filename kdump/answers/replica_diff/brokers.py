"""The copies that several brokers have of each partition, compared pair by pair."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.answers.collector import once
from kdump.answers.question import LineTable, LogQuestion, option
from kdump.answers.replica_diff.pair import BrokerReplica, PairDifference, RecordDifference, compare
from kdump.errors import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from kdump.answers.collector import AnswerLine
    from kdump.answers.question import Asking
    from kdump.primitives.processes import Workers


class ReplicaPair(NamedTuple):
    """Two replicas of one partition."""

    left: BrokerReplica
    right: BrokerReplica


Copies = dict[tuple[str, int], list[BrokerReplica]]


def by_partition(brokers: Iterable[Iterable[BrokerReplica]]) -> Copies:
    """Return the replicas of each partition, one a broker, in the order of topics and partitions."""
    held: Copies = {}
    for replicas in brokers:
        own = {replica.place.key: replica for replica in reversed(list(replicas))}
        for key, replica in own.items():
            if key is not None:
                held.setdefault(key, []).append(replica)
    return dict(sorted(held.items()))


def pairs(copies: Copies) -> list[ReplicaPair]:
    """Return each pair of replicas of one partition."""
    return [ReplicaPair(*two) for replicas in copies.values() for two in combinations(replicas, 2)]


@dataclass
class Compared:
    """What one pair gave: lines, and what could not be read."""

    lines: list[AnswerLine] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    failed: list[UnreadableError] = field(default_factory=list)


def compare_pair(pair: ReplicaPair) -> Compared:
    """Compare a pair: the work of a process."""
    done = Compared()
    try:
        done.lines.extend(compare(*pair, records=False, damage=done.damaged.append))
    except UnreadableError as error:
        done.failed.append(error)
    return done


def compare_all(
    found: Sequence[ReplicaPair],
    *,
    records: bool,
    damage: Callable[[str], None],
    fail: Callable[[UnreadableError], None],
    workers: Workers | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Iterator[AnswerLine]:
    """Yield the lines of all pairs in order; ``workers`` compare several pairs at a time.

    With ``records`` this process does all: there may be more records than memory holds.
    ``damage`` is called once with what several pairs meet.
    """
    damage = once(damage)
    if workers is None or records:
        for pair in found:
            try:
                yield from compare(*pair, records=records, damage=damage, progress=progress)
            except UnreadableError as error:
                fail(error)
        return
    for pair, done in zip(found, workers.results(compare_pair, found), strict=True):
        for text in done.damaged:
            damage(text)
        for failed in done.failed:
            fail(failed)
        progress(size(pair))
        yield from done.lines


def size(pair: ReplicaPair) -> int:
    """Return the bytes of both copies."""
    return sum(replica.place.partition.size for replica in pair)


@dataclass(frozen=True)
class DiffOptions:
    """The options of the question ``diff``."""

    records: bool = option(
        False, "switch", "--records", "List the records that differ, with their content; one process does it."
    )


def _answer(brokers: Sequence[Asking], options: DiffOptions) -> Iterator[AnswerLine]:
    copies = by_partition([BrokerReplica(each.where, place) for place in each.places()] for each in brokers)
    say = brokers[0].say
    yield from compare_all(pairs(copies), records=options.records, damage=say.damage, fail=say.fail)


QUESTION: Final = LogQuestion(
    "diff",
    "Compare the copies that brokers have of the same partitions.",
    DiffOptions,
    (PairDifference, RecordDifference),
    answer=_answer,
    tables=(LineTable("differences", PairDifference),),
    compares=True,
    unit="everything",
)
