"""The groups and transactions of a rebuilt cluster, and the number of partitions of the coordinators' topics.

:func:`read` reads the planned new logs of ``__consumer_offsets``, ``__share_group_state`` and ``__transaction_state``.
At its start a broker deletes expired committed offsets (``offsets.retention.minutes``, KIP-211). The transaction
coordinator takes over the open transactions in ``__transaction_state``. Other open transactions in the logs hang.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from kdump.answers.collector import Place
from kdump.answers.coordinator import TOPICS, coordinator_partition
from kdump.answers.groups.collector import ConsumerGroups, GroupsWanted
from kdump.answers.groups.coordinator_log import CoordinatorLog, ShareStateLog
from kdump.answers.groups.lines import CommittedLine, GroupLine
from kdump.answers.log_dir_pass import LogDirPass
from kdump.answers.transactional_ids import TransactionalIds
from kdump.errors import SILENT, DamageError, Reporter
from kdump.formats.partition_metadata import id_text
from kdump.internal_topics import consumer_offsets, share_group_state, transaction_state
from kdump.log_dirs.local import LOCAL
from kdump.log_dirs.log_dir_state import LogDirState, LogDirStates
from kdump.log_dirs.partition import Partition
from kdump.primitives.encodings import java_utf8
from kdump.records.record_batch import RecordBatch
from kdump.segments.resync import read as read_regions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from kdump.answers.collector import Collector
    from kdump.answers.transactional_ids import TransactionalId
    from kdump.errors import UnreadableError
    from kdump.rebuild.partition_plan import PartitionPlan
    from kdump.rebuild.volumes import VolumeFolder


OPEN: Final = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"})
"""The states of open transactions, which a coordinator takes over at its start."""
_NO_STATE: Final = LogDirState("", frozenset(), None, {}, ())


class OpenProducer(NamedTuple):
    """A producer whose transaction is open in the log of a partition."""

    producer_id: int
    topic: str
    partition: int


@dataclass(frozen=True)
class RebuiltTransaction:
    """A transaction that is open in the logs, or in the state of a coordinator."""

    kind: ClassVar[str] = "transaction"

    transactional_id: str | None
    """None if no coordinator's topic has the producer."""
    producer_id: int
    state: str | None
    partitions: tuple[str, ...]
    hangs: bool
    """Whether no coordinator takes over the transaction after the start; then ``state`` is None."""


@dataclass(frozen=True)
class RebuiltGroup:
    """A group, the number of its committed ``offsets``, and their first known expiry (ms) by the default retention."""

    kind: ClassVar[str] = "group"

    group_id: str
    type: str
    state: str
    offsets: int
    oldest_commit_ms: int | None
    expire_timestamp_ms: int | None
    expired: bool
    """Whether some offsets have expired by the default retention of 7 days: a broker deletes them at its start."""


@dataclass
class Coordinators:
    groups: list[RebuiltGroup] = field(default_factory=list)
    transactions: list[RebuiltTransaction] = field(default_factory=list)
    max_producer_id: int = -1
    """The highest producer id of a transactional id; -1 if there is none."""


def read(
    plans: Sequence[PartitionPlan], still_open: Iterable[OpenProducer], at: int, damage: Callable[[str], None]
) -> Coordinators:
    """Return groups and transactions at ``at`` (ms), given those ``still_open`` in logs. Raises UnreadableError."""
    groups, ids = ConsumerGroups(GroupsWanted()), TransactionalIds()
    for plan in plans:
        if plan.topic in (consumer_offsets.TOPIC, share_group_state.TOPIC):
            feed(groups, plan, damage)
        elif plan.topic == transaction_state.TOPIC:
            feed(ids, plan, damage)
    known = list(ids.answer(at))
    return Coordinators(
        groups=list(_groups(groups, at)),
        transactions=list(transactions_of(known, still_open)),
        max_producer_id=max((number for one in known for number in one.producer_ids), default=-1),
    )


def feed(collector: Collector, plan: PartitionPlan, damage: Callable[[str], None]) -> None:
    """Add the batches of the new log of a partition to a collector. Raises UnreadableError."""
    partition = Partition(LOCAL, f"{plan.topic}-{plan.partition}", plan.topic, plan.partition, ())
    collector.begin(Place(partition, _NO_STATE, SILENT._replace(damage=damage)))
    for batch in batches(plan):
        try:
            collector.add(batch)
        except DamageError as error:
            damage(f"{partition.name}: offset {batch.base_offset}: {error.reason}")
    collector.end()


def _groups(collector: ConsumerGroups, at: int) -> Iterator[RebuiltGroup]:
    """Yield the groups with their offsets. Share groups without a group record come last."""
    found: dict[str, GroupLine] = {}
    offsets: dict[str, list[CommittedLine]] = {}
    for line in collector.answer(at):
        if isinstance(line, GroupLine):
            found[line.group_id] = line
        elif isinstance(line, CommittedLine):
            offsets.setdefault(line.group_id, []).append(line)
    for group_id in [*found, *(one for one in offsets if one not in found)]:
        group, held = found.get(group_id), offsets.get(group_id, [])
        commits = [line.commit_timestamp_ms for line in held if line.commit_timestamp_ms is not None]
        expiries = [_expiry(line, group) for line in held]
        first = min((each for each in expiries if each is not None), default=None)
        yield RebuiltGroup(
            group_id=group_id,
            type="Share" if group is None else group.type,
            state="" if group is None else group.state,
            offsets=len(held),
            oldest_commit_ms=min(commits, default=None),
            expire_timestamp_ms=first,
            expired=first is not None and first <= at,
        )


def _expiry(line: CommittedLine, group: GroupLine | None) -> int | None:
    """Return the expiry of a committed offset in ms; None for share groups, and for topics with a subscribed member."""
    return None if group is None or group.type == "Share" else line.expire_timestamp_ms


def batches(plan: PartitionPlan) -> Iterator[RecordBatch]:
    """Yield the batches of the new log of a partition, uncorrected as in their files. Raises UnreadableError."""
    for segment in plan.segments:
        for piece in segment.pieces:
            with LOCAL.open(piece.path) as source:
                for region in read_regions(source, piece.position, piece.position + piece.size):
                    if isinstance(region, RecordBatch):
                        yield region


def transactions_of(
    known: Iterable[TransactionalId], still_open: Iterable[OpenProducer]
) -> Iterator[RebuiltTransaction]:
    """Yield the open transactions of transactional ids, then the hanging transactions, by producer."""
    ended: set[tuple[int, str]] = set()
    names: dict[int, str] = {}
    for one in known:
        names |= dict.fromkeys(one.producer_ids, one.transactional_id)
        if one.state in OPEN:
            ended |= {(number, partition) for number in one.producer_ids for partition in one.partitions}
            yield RebuiltTransaction(one.transactional_id, one.producer_id, one.state, one.partitions, hangs=False)
    hanging: dict[int, list[str]] = {}
    for producer, topic, partition in still_open:
        if (producer, f"{topic}-{partition}") not in ended:
            hanging.setdefault(producer, []).append(f"{topic}-{partition}")
    for producer, partitions in sorted(hanging.items()):
        yield RebuiltTransaction(names.get(producer), producer, None, tuple(partitions), hangs=True)


def retention_minutes(groups: Iterable[RebuiltGroup], at: int) -> int:
    """Return the age of the oldest commit at ``at`` (ms) in minutes, plus SPARE_MINUTES."""
    oldest = min((one.oldest_commit_ms for one in groups if one.oldest_commit_ms is not None), default=at)
    return max(0, at - oldest) // 60_000 + SPARE_MINUTES


SPARE_MINUTES: Final = 30 * 24 * 60
"""The oldest committed offset is kept for this number of minutes after a rebuild: 30 days (a broker's default: 7)."""


MOST: Final = 1_000
""":func:`partition_count` tries only numbers of partitions below this limit."""
CHANCE: Final = 1e-7


def partition_counts(folders: Iterable[VolumeFolder], fail: Callable[[UnreadableError], None]) -> dict[str, int]:
    """Return the likely number of partitions of each coordinator's topic that has a folder, by :func:`partition_count`.

    A broker stores an id in partition ``hash(id) % count``. So ids in some partitions may determine the count, even if
    the last partition is lost. With a wrong count coordinators read wrong partitions. ``fail`` gets unreadable files.
    """
    kept = [folder for folder in folders if folder.topic in TOPICS.values()]
    groups, ids = ConsumerGroups(GroupsWanted()), TransactionalIds()
    states = {(one.partition.files, one.partition.log_dir): one.log_dir for one in kept}
    report = Reporter(fail=fail)
    LogDirPass([groups, ids], report, LogDirStates(report, known=states)).run(folder.partition for folder in kept)
    found: dict[str, set[tuple[int, str]]] = {}
    for topic, partition, text in _ids(groups, ids):
        found.setdefault(topic, set()).add((partition, text))
    least: dict[str, int] = {}
    for folder in kept:
        least[folder.topic] = max(least.get(folder.topic, 0), folder.number + 1)
    return {topic: partition_count(found.get(topic, ()), number) for topic, number in least.items()}


def _ids(groups: ConsumerGroups, ids: TransactionalIds) -> Iterator[tuple[str, int, str]]:
    for (topic, partition), log in groups.logs.items():
        if isinstance(log, CoordinatorLog):
            for held in log.held():
                yield topic, partition, java_utf8(held.name)
        elif isinstance(log, ShareStateLog):
            for key in log.held:
                yield topic, partition, f"{key.group_id}:{id_text(key.topic_id)}:{key.partition}"
    for one in ids.answer(0):
        yield transaction_state.TOPIC, one.coordinator_partition, one.transactional_id


def partition_count(ids: Iterable[tuple[int, str]], least: int) -> int:
    """Return the likely number of partitions, at least ``least``. ``ids`` are pairs of partition and id.

    A number fits if it gives each id the partition in which the id was found. The result is the greatest number that
    fits by chance with a probability below CHANCE, else the smallest that fits. Without ids or a fit it is ``least``.
    """
    known = tuple(ids)
    fits = [
        number
        for number in range(least, MOST)
        if all(coordinator_partition(text, number) == partition for partition, text in known)
    ]
    if not known or not fits:
        return least
    smallest = fits[0]
    return next((number for number in reversed(fits) if (smallest / number) ** len(known) < CHANCE), smallest)
