"""The question ``diff``: compares the replicas of each pair of brokers record by record (:mod:`.log_copy`).

Source: KIP-101, KIP-279. Followers append the leader's bytes, so batches with equal base offset and leader epoch have
equal bytes. Log start offsets, segment boundaries, indexes and cleaned records may differ even between valid replicas.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar, Final, Literal, NamedTuple, TypeAlias

from kdump.answers.log_copy import LogCopy, differences, lineage
from kdump.answers.question import LineTable, LogQuestion, option
from kdump.errors import Reporter, UnreadableError, first_of, many, once
from kdump.log_dirs.tiered_storage import local_id
from kdump.primitives.encodings import to_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kdump.answers.collector import AnswerLine, Place
    from kdump.answers.log_copy import Difference, HeldRecord, Lineage
    from kdump.answers.question import Asking
    from kdump.log_dirs.partition import Partition, Segment
    from kdump.primitives.processes import Workers


Verdict: TypeAlias = Literal["same", "behind", "diverged", "cleaned", "different"]
Side: TypeAlias = Literal["left", "right"]


_MANY: Final = 3
"""The largest number of partitions that a message lists."""


class BrokerReplica(NamedTuple):
    """A replica of a partition. ``name`` is the path that the user gave for its broker."""

    name: str
    place: Place

    @property
    def log_start(self) -> int:
        """The log start offset: from the checkpoint, or the first base offset if that is higher."""
        return max(self.place.log_start or 0, self.place.first_offset)


@dataclass(frozen=True)
class HeaderFacts:
    """A header of a record. Key and value are text or base64, by ``key_encoding`` and ``encoding``."""

    key: str
    key_encoding: str | None
    value: str | None
    encoding: str | None


@dataclass(frozen=True)
class RecordFacts:
    """A record of one side. Key and value are text or base64, by ``key_encoding`` and ``value_encoding``."""

    leader_epoch: int | None
    timestamp_ms: int
    producer_id: int | None
    is_control: bool
    key: str | None
    key_encoding: str | None
    value: str | None
    value_encoding: str | None
    headers: tuple[HeaderFacts, ...]


@dataclass(frozen=True)
class RecordDifference:
    """An offset whose records differ, or that one side lacks."""

    kind: ClassVar[str] = "record"
    topic: str
    partition: int
    offset: int
    left: RecordFacts | None
    right: RecordFacts | None


@dataclass(frozen=True)
class PairDifference:
    """Two replicas of a partition, compared from the higher log start offset on.

    ``first_difference`` is the first offset with two different records; None if there is no such offset.
    ``stale`` is the side that truncates its log to ``truncate_to`` when it follows the other side, and then loses
    ``loses`` records; None for neither. ``damaged`` are the sides with damage in bytes that differ.
    """

    kind: ClassVar[str] = "pair"
    topic: str
    partition: int
    left: str
    right: str
    same: bool
    first_difference: int | None
    truncate_to: int | None
    only_left: int
    only_right: int
    differ: int
    end_left: int
    end_right: int
    verdict: Verdict
    start_left: int
    start_right: int
    epoch_left: int | None
    epoch_right: int | None
    stale: Side | None
    loses: int
    damaged: tuple[Side, ...]
    because: str


@dataclass
class _Counts:
    lineages: tuple[Lineage, Lineage]
    ids: tuple[str, str] | None
    """The topic ids of the folders if they differ: these are two topics of one name."""
    stale: Side | None
    truncate_to: int | None
    first: int | None = None
    left: int = 0
    right: int = 0
    differ: int = 0
    same_epoch: int = 0
    loses: int = 0
    below_ends: bool = False
    """Whether one side lacks a record below both log ends."""

    def add(self, one: Difference) -> None:
        if one.left is None:
            self.right += 1
        elif one.right is None:
            self.left += 1
        else:
            self.differ += 1
            self.same_epoch += one.same_epoch
            self.first = one.offset if self.first is None else self.first
        if one.left is None or one.right is None:
            self.below_ends = self.below_ends or one.offset < min(lineage.end for lineage in self.lineages)
        if self.truncate_to is not None and one.offset >= self.truncate_to:
            self.loses += (one.left if self.stale == "left" else one.right) is not None

    @property
    def same(self) -> bool:
        return not (self.left or self.right or self.differ)

    def verdict(self, damaged: bool) -> Verdict:
        """Return the verdict, as HELP describes it. ``damaged``: at least one side has unreadable bytes."""
        if self.same:
            return "same"
        if self.same_epoch or (self.differ and self.ids is not None) or (damaged and (self.below_ends or self.differ)):
            return "different"
        if self.differ or self.truncate_to is not None:
            return "diverged"
        return "cleaned" if self.below_ends else "behind"


def compare(
    left: BrokerReplica,
    right: BrokerReplica,
    *,
    records: bool,
    report: Reporter,
) -> Iterator[RecordDifference | PairDifference]:
    """Yield the differences of two replicas (if ``records``), then the PairDifference. Raises UnreadableError."""
    topic, number = left.place.key or ("", 0)
    one, other = lineage(left.place.partition, report), lineage(right.place.partition, report)
    ids = _different_ids(left.place.partition, right.place.partition, report)
    stale, cut = _truncation(one, other) if ids is None else (None, None)
    counts = _Counts((one, other), ids, stale, cut)
    start = max(left.log_start, right.log_start)
    with (
        LogCopy(left.place.partition, report) as left_log,
        LogCopy(right.place.partition, report) as right_log,
    ):
        left_log.skip_below(start)
        right_log.skip_below(start)
        for difference in differences(left_log, right_log, start):
            counts.add(difference)
            if records:
                yield RecordDifference(
                    topic, number, difference.offset, _facts(difference.left), _facts(difference.right)
                )
        sides: tuple[tuple[Side, LogCopy], ...] = (("left", left_log), ("right", right_log))
        damaged = tuple(side for side, log in sides if log.damaged)
        truncated = tuple(side for side, log in sides if log.truncated)
    verdict = counts.verdict(bool(damaged))
    yield PairDifference(
        topic=topic,
        partition=number,
        left=left.name,
        right=right.name,
        same=counts.same,
        first_difference=counts.first,
        truncate_to=cut,
        only_left=counts.left,
        only_right=counts.right,
        differ=counts.differ,
        end_left=one.end,
        end_right=other.end,
        verdict=verdict,
        start_left=left.log_start,
        start_right=right.log_start,
        epoch_left=one.newest,
        epoch_right=other.newest,
        stale=stale,
        loses=counts.loses,
        damaged=damaged,
        because=_because(verdict, counts, damaged, truncated),
    )


def _different_ids(left: Partition, right: Partition, report: Reporter) -> tuple[str, str] | None:
    """Return the topic ids of both folders if they differ, else None. An absent or invalid file has no id."""
    one, other = local_id(left, report), local_id(right, report)
    return None if one is None or other is None or one == other else (one, other)


def _truncation(left: Lineage, right: Lineage) -> tuple[Side | None, int | None]:
    """Return the side that truncates its log when it follows the other, and the offset, or (None, None)."""
    cut = left.truncation(right)
    if cut is not None:
        return "left", cut
    cut = right.truncation(left)
    return None if cut is None else "right", cut


def _facts(held: HeldRecord | None) -> RecordFacts | None:
    if held is None:
        return None
    batch, record = held
    key, key_encoding = _text(record.key)
    value, value_encoding = _text(record.value)
    return RecordFacts(
        leader_epoch=batch.partition_leader_epoch,
        timestamp_ms=record.timestamp,
        producer_id=batch.producer_id,
        is_control=batch.is_control,
        key=key,
        key_encoding=key_encoding,
        value=value,
        value_encoding=value_encoding,
        headers=tuple(HeaderFacts(*to_text(one.key, "auto"), *_text(one.value)) for one in record.headers),
    )


def _text(data: bytes | None) -> tuple[str | None, str | None]:
    return (None, None) if data is None else to_text(data, "auto")


def _because(verdict: Verdict, counts: _Counts, damaged: tuple[Side, ...], truncated: tuple[Side, ...]) -> str:
    one, other = counts.lineages
    if verdict == "same":
        return "every record is the same on both sides"
    missing = f"{many(counts.right, 'record')} missing only on the left, {counts.left} only on the right"
    if verdict == "different":
        if counts.ids is not None and counts.differ:
            return (
                f"{_differ(counts.differ)}: the topic id is {counts.ids[0]} on the left, {counts.ids[1]} on the right, "
                "so these are two topics of one name, and neither side follows the other"
            )
        which = f"unreadable bytes on the {' and the '.join(damaged)} side"
        if counts.same_epoch:
            which = which if damaged else "the files do not show which side is wrong"
            return f"{_differ(counts.same_epoch)} within one leader epoch: {which}"
        return f"{which}: {missing}"
    if verdict == "cleaned":
        return f"{missing}: most likely the log cleaner removed these records"
    if verdict == "behind":
        left, right = ("left", one.end), ("right", other.end)
        (side, end), (longer, most) = (left, right) if one.end < other.end else (right, left)
        lacks = many(counts.left + counts.right, "record")
        last = f"; the last batch of the {side} side is truncated" if side in truncated else ""
        return (
            f"the {side} side ends at offset {end}, the {longer} side at offset {most}: the {side} side lacks "
            f"{lacks}{last}"
        )
    if counts.truncate_to is None:
        return (
            f"the two sides differ from offset {counts.first} on, and leader epochs do not show which side lost records"
        )
    stale, leader = (one, other) if counts.stale == "left" else (other, one)
    return (
        f"the newest leader epoch is {stale.newest} on the {counts.stale} side, {leader.newest} on the other: when the "
        f"{counts.stale} side follows the other, it truncates its log to offset {counts.truncate_to} and loses "
        f"{many(counts.loses, 'record')}"
    )


def _differ(count: int) -> str:
    return f"{many(count, 'record')} {'differs' if count == 1 else 'differ'}"


class ReplicaPair(NamedTuple):
    left: BrokerReplica
    right: BrokerReplica

    @property
    def is_one(self) -> bool:
        """Whether both sides are the same files: the user named one folder twice, or a link to it."""
        left, right = (side.place.partition.segments for side in self)
        return bool(left) and list(map(_identity, left)) == list(map(_identity, right))


def _identity(segment: Segment) -> object:
    found = segment.files.look(segment.path)
    return segment.name if found is None else found.identity


Copies = dict[tuple[str, int], list[BrokerReplica]]


def by_partition(brokers: Iterable[Iterable[BrokerReplica]]) -> Copies:
    """Return (topic, partition) -> replicas. If a broker has several folders, the first one counts."""
    copies: Copies = {}
    for replicas in brokers:
        own = {replica.place.key: replica for replica in reversed(list(replicas))}
        for key, replica in own.items():
            if key is not None:
                copies.setdefault(key, []).append(replica)
    return dict(sorted(copies.items()))


def pairs(copies: Copies) -> list[ReplicaPair]:
    return [ReplicaPair(*two) for replicas in copies.values() for two in combinations(replicas, 2)]


@dataclass
class Compared:
    lines: list[AnswerLine] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    failed: list[UnreadableError] = field(default_factory=list)


def compare_pair(pair: ReplicaPair) -> Compared:
    done = Compared()
    try:
        done.lines.extend(compare(*pair, records=False, report=Reporter(done.damaged.append, fail=done.failed.append)))
    except UnreadableError as error:
        done.failed.append(error)
    return done


def compare_all(
    found: Sequence[ReplicaPair],
    *,
    records: bool,
    report: Reporter,
    workers: Workers | None = None,
) -> Iterator[AnswerLine]:
    """Yield the lines of all pairs in order. ``workers`` compare several pairs at a time. Damage is reported once.

    With ``records`` this process compares the pairs itself, because a worker collects all lines of a pair in memory.
    """
    report = report._replace(damage=once(report.damage))
    if workers is None or records:
        for pair in found:
            try:
                yield from compare(*pair, records=records, report=report)
            except UnreadableError as error:
                report.fail(error)
        return
    for pair, done in zip(found, workers.results(compare_pair, found), strict=True):
        for text in done.damaged:
            report.damage(text)
        for failed in done.failed:
            report.fail(failed)
        report.progress(size(pair))
        yield from done.lines


def size(pair: ReplicaPair) -> int:
    return sum(replica.place.partition.size for replica in pair)


HELP: Final = """Compare the copies that brokers have of the same partitions.

\b
Examples:
  kdump diff /backup/broker-1 /backup/broker-2
  kdump diff b1.tar.gz b2.tar.gz b3.tar.gz --topic orders --records -o jsonl
  kdump diff /b1/data1,/b1/data2 /b2/data1,/b2/data2 --jobs 2

Each PATH has the files of one broker: a log dir, several separated by commas, a partition folder or an archive. The
brokers are compared in pairs. A comparison begins at the higher of the two log start offsets. Equal bytes are not
decoded; `kdump check` shows whether they are valid.

\b
same       no record differs
behind     one side lacks the last records: it fetches them when it follows
cleaned    one side or both lack records below their ends: most likely the
           cleaner removed them
diverged   the leader epochs differ: the side with the older epochs
           truncates its log at truncateTo when it follows the other, and
           loses the records from there on
different  records differ within one leader epoch or in two topics of one
           name (by their topic ids), or damage hides some

Segment boundaries, indexes, snapshots and log start offsets are not compared. Leader epochs come from
leader-epoch-checkpoint, or from the batches if it lags. Without epochs (before Kafka 0.11) truncateTo is null.

Exit status: 0 compared; 1 something cannot be read; 2 wrong usage; 3 damage was found (equal
bytes are not searched); 4 only in derived files.
"""


@dataclass(frozen=True)
class DiffOptions:
    records: bool = option(
        False, "switch", "--records", "List the records that differ, with their content; uses one process."
    )


def _answer(brokers: Sequence[Asking], options: DiffOptions) -> Iterator[AnswerLine]:
    copies = by_partition([BrokerReplica(each.where, place) for place in each.places()] for each in brokers)
    first, found = brokers[0], pairs(copies)
    alone = [f"{topic}-{number}" for (topic, number), replicas in copies.items() if len(replicas) == 1]
    if alone:
        first.report.note(f"not compared, because only one broker has a copy: {first_of(alone, _MANY)}")
    same = [
        f"{pair.left.place.key[0]}-{pair.left.place.key[1]}" for pair in found if pair.is_one and pair.left.place.key
    ]
    if same:
        are = "both sides are the same files: name two different copies"
        first.report.note(f"{first_of(same, _MANY)}: {are}")
    if options.records:
        first.reads_alone("--records")
    report = first.watched(sum(map(size, found)))
    several = len(found) > 1 and not options.records
    workers = first.workers([replica.place.partition for pair in found for replica in pair]) if several else None
    yield from compare_all(found, records=options.records, report=report, workers=workers)


QUESTION: Final = LogQuestion(
    "diff",
    HELP,
    DiffOptions,
    (PairDifference, RecordDifference),
    answer=_answer,
    tables=(LineTable("differences", PairDifference),),
    compares=True,
    unit="everything",
)
