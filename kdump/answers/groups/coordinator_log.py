"""Replays the partitions of ``__consumer_offsets`` and ``__share_group_state`` as coordinators load them.

In ``__consumer_offsets`` the last record of each key counts, of a transaction only if committed. The bytes of a key
begin with the int16 type of the record and the group id. The rest is not checked if a kept record has the key. Source:
``replay`` of Kafka 4 in ``CoordinatorLoaderImpl``, ``OffsetMetadataManager`` and ``GroupMetadataManager``.

In ``__share_group_state`` a snapshot replaces the state of a share partition, an update changes it, and a null value
removes it (KIP-932). Source: ``ShareCoordinatorShard``. 4.2 added the count of complete deliveries (KIP-1226).
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, cast

from kdump.answers.collector import Collector, Needs, keep_best
from kdump.answers.groups.lines import MissingLine, UnreadLine
from kdump.errors import DamageError
from kdump.internal_topics import consumer_offsets, share_group_state
from kdump.internal_topics.decode import decode
from kdump.internal_topics.schema import by_type
from kdump.records import control
from kdump.segments.batch_runs import Run
from kdump.segments.log_end import NO_END, LogEnd
from kdump.segments.regions import Damage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from kdump.answers.collector import AnswerLine, Place
    from kdump.formats.leader_epoch import EpochEntry
    from kdump.records.record_batch import Batches, BriefRecord, RecordBatch
    from kdump.segments.regions import Trailing


class Lost(NamedTuple):
    """An unreadable range of records; offsets are None if unknown."""

    from_offset: int | None
    until_offset: int | None
    reason: str


class TopicLog:
    """Replays the records of one partition in order. It also collects lost ranges, and undecodable records."""

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.lost: list[Lost] = []
        self.unread: dict[str, tuple[int, int]] = {}
        """Reason -> the first offset and the number of the records that cannot be decoded."""
        self.end = NO_END
        self.epochs: tuple[EpochEntry, ...] = ()
        """The entries of the replica's leader-epoch-checkpoint."""

    @property
    def rank(self) -> tuple[int, int]:
        return self.end.with_epochs(self.epochs).rank

    def take(self, records: Sequence[BriefRecord], producer: int, counts: Sequence[int]) -> None:
        """Add the records of one or more batches of ``producer`` (-1: none). ``counts``: records per batch."""
        raise NotImplementedError

    def end_transaction(self, records: Sequence[BriefRecord], producer: int) -> None:
        """Add the records of a control batch: the marker of a transaction of ``producer``."""

    def add(self, batches: Batches) -> int:
        """Add the batches before the first malformed record, and return their number.

        A run with producer ids is not added (0): the caller then adds its batches one by one. Raises
        DamageError if the records of a single batch are unreadable.
        """
        if isinstance(batches, Run):
            return self._add_run(batches)
        for batch in batches.batches():
            self._add(batch)
        return batches.batch_count

    def _add(self, batch: RecordBatch) -> None:
        self.end = LogEnd(batch.last_offset + 1, batch.leader_epoch)
        try:
            records = [(one.offset, one.timestamp, one.key, one.value, one.size) for one in batch.records()]
            producer = -1 if batch.producer_id is None else batch.producer_id
            if batch.is_control:
                self.end_transaction(records, producer)
            elif records:
                self.take(records, producer, (len(records),))
        except DamageError as damage:
            self.lost.append(Lost(batch.base_offset, batch.last_offset + 1, damage.reason))
            raise

    def _add_run(self, run: Run) -> int:
        if run.first.is_transactional or run.greatest("producer_id") >= 0:  # a commit with a producer id is pending
            return 0
        records, taken = run.brief_records()
        if taken:
            last = taken - 1
            self.end = LogEnd(run.field("last_offset", last) + 1, run.field("partition_leader_epoch", last))
        if records:
            self.take(records, -1, run.column("records_count", 0, taken))
        return taken

    def lose(self, region: Damage) -> None:
        self.lost.append(Lost(region.missing_from, region.missing_until, region.reason))

    def refuse(self, reason: str, offset: int) -> None:
        """Count a record that cannot be decoded. A newer release may have written it."""
        first, count = self.unread.get(reason, (offset, 0))
        self.unread[reason] = first, count + 1


class TopicLogs(Collector):
    """Collects partitions of coordinators' topics. It keeps the replica with the greatest rank."""

    def __init__(self) -> None:
        self.logs: dict[tuple[str, int], TopicLog] = {}
        self._key = ("", 0)
        self._now: TopicLog | None = None

    def log_of(self, topic: str, partition: int) -> TopicLog | None:
        """Return an empty log for a partition, or None for a topic that is not needed."""
        raise NotImplementedError

    def begin(self, place: Place) -> Needs:
        self._key = place.key or ("", 0)
        self._now = self.log_of(*self._key)
        if self._now is None:
            return Needs.FILES
        self._now.epochs = place.leader_epochs()
        return Needs.RECORDS

    def add(self, batches: Batches) -> int | None:
        return None if self._now is None else self._now.add(batches)

    def lose(self, region: Damage | Trailing) -> None:
        if self._now is not None and isinstance(region, Damage):
            self._now.lose(region)

    def end(self) -> None:
        if self._now is not None:
            keep_best(self.logs, {self._key: self._now}, attrgetter("rank"))
            self._now = None

    def merge(self, other: TopicLogs) -> None:
        keep_best(self.logs, other.logs, attrgetter("rank"))

    def missing(self) -> Iterator[AnswerLine]:
        """Yield lines of the lost and the undecodable records of each partition."""
        for (topic, number), log in sorted(self.logs.items(), key=lambda one: one[0]):
            for lost in log.lost:
                yield MissingLine(topic, number, *lost)
            for reason, (offset, count) in log.unread.items():
                yield UnreadLine(topic, number, offset, count, reason)


UNCHANGED: Final = -1
"""In an update: keep the value of the earlier records. In a snapshot: the value is not initialized, or unknown."""


class SharePartition(NamedTuple):
    """The state of a share partition. The start offset is -1 if not initialized, the count -1 if unknown."""

    start_offset: int
    leader_epoch: int
    delivery_complete_count: int
    partition: int
    """The partition of ``__share_group_state`` that has this state."""
    offset: int
    """The offset of the last record that made this state."""


class ShareKey(NamedTuple):
    group_id: str
    topic_id: bytes
    partition: int


class ShareStateLog(TopicLog):
    def __init__(self, partition: int) -> None:
        super().__init__(partition)
        self.held: dict[ShareKey, SharePartition] = {}

    def take(self, records: Sequence[BriefRecord], producer: int, counts: Sequence[int]) -> None:  # noqa: ARG002  not needed
        for offset, _, key, value, _ in records:
            self._take(offset, key, value)

    def _take(self, offset: int, raw_key: bytes | None, value: bytes | None) -> None:
        decoded = decode(share_group_state.TOPIC, raw_key, value)
        if decoded is None or decoded.key is None or decoded.key.values is None:
            reason = "the record has no key" if decoded is None or decoded.key is None else decoded.key.reason
            self.refuse(reason, offset)
            return
        names = decoded.key.values
        key = ShareKey(str(names["groupId"]), cast("bytes", names["topicId"]), cast("int", names["partition"]))
        if decoded.value is None:
            self.held.pop(key, None)
            return
        values = cast("dict[str, int] | None", decoded.value.values)
        if values is None:
            self.refuse(decoded.value.reason, offset)
            return
        start, epoch, count = values["startOffset"], values["leaderEpoch"], values.get("deliveryCompleteCount", -1)
        before = self.held.get(key)
        if decoded.key.name == "ShareUpdateKey" and before is not None:
            start = before.start_offset if start == UNCHANGED else start
            epoch = before.leader_epoch if epoch == UNCHANGED else epoch
            count = before.delivery_complete_count if count == UNCHANGED else count
        self.held[key] = SharePartition(start, epoch, count, self.partition, offset)


KEY_TYPES: Final = {
    message.name: number.to_bytes(2, "big") for number, message in by_type(consumer_offsets.MESSAGES, "Key").items()
}
"""Message name -> the first two bytes of its keys: the type."""
COMMIT: Final = KEY_TYPES["OffsetCommitKey"]
OFFSETS: Final = frozenset({KEY_TYPES["LegacyOffsetCommitKey"], COMMIT})
GROUPS: Final = {
    KEY_TYPES["GroupMetadataKey"]: "Classic",
    KEY_TYPES["ConsumerGroupMetadataKey"]: "Consumer",
    KEY_TYPES["ShareGroupMetadataKey"]: "Share",
    KEY_TYPES["StreamsGroupMetadataKey"]: "Streams",
}
"""Key type -> type of group, for the records that create a group. A tombstone with such a key deletes the group."""
KINDS: Final = GROUPS | {
    prefix: kind for name, prefix in KEY_TYPES.items() for kind in GROUPS.values() if name.startswith(f"{kind}Group")
}
"""Key type -> type of group, for all records of groups. Any of them may be the first record of a group."""
_GROUP_AT: Final = 4


def group_of(key: bytes) -> bytes:
    return key[_GROUP_AT : _group_end(key)]


def committed_in(key: bytes) -> bytes:
    """Return the end of a commit's key: the size of the topic's name, the name, and the partition."""
    return key[_group_end(key) :]


def _group_end(key: bytes) -> int:
    return _GROUP_AT + (key[2] << 8 | key[3])


def is_commit(key: bytes) -> bool:
    """Return whether the key of a commit is valid: it has exactly a group, a topic and an int32 partition."""
    if len(key) < _GROUP_AT:
        return False
    topic = _group_end(key)
    return len(key) > topic + 1 and len(key) == topic + 2 + (key[topic] << 8 | key[topic + 1]) + 4


def problem_of(key: bytes | None) -> str | None:
    """Return the reason why a key is unreadable; None if it is readable."""
    if key is not None and key[:2] in OFFSETS and is_commit(key):
        return None
    decoded = decode(consumer_offsets.TOPIC, key, None)
    if decoded is None or decoded.key is None:
        return "the record has no key"
    return decoded.key.reason or None


COMMITTED, ABORTED, PENDING = range(3)
OUTCOMES = ("committed", "aborted", "pending")
"""The possible outcomes of a commit. A commit outside a transaction is committed at once."""
_UNKNOWN = -(1 << 63)
_WIDTH = 6


class KeptCommit(NamedTuple):
    """A commit record. ``committed`` is None for a tombstone and for an unreadable value."""

    key: bytes
    offset: int
    timestamp: int
    committed: int | None
    tombstone: bool
    producer: int
    outcome: str
    rewind: bool


class History:
    """The commits of a group in log order. A commit takes 48 bytes of memory."""

    def __init__(self) -> None:
        self._rows = array("q")
        self._keys: dict[bytes, int] = {}
        self._open: dict[int, list[int]] = {}

    def add(self, key: bytes, record: BriefRecord, producer: int) -> None:
        """Add the next commit or tombstone. ``key`` is an OffsetCommitKey in bytes, ``producer`` -1 for none."""
        offset, timestamp, _, value, _ = record
        number = self._keys.setdefault(key, len(self._keys))
        committed = _UNKNOWN if value is None else committed_offset(key, value)
        outcome = COMMITTED
        if producer >= 0:
            outcome = PENDING
            self._open.setdefault(producer, []).append(len(self._rows))
        self._rows.extend((offset, timestamp, committed, number << 1 | (value is None), producer, outcome))

    def end(self, producer: int, *, committed: bool) -> None:
        """Set the outcome of the commits in a producer's open transaction."""
        for row in self._open.pop(producer, ()):
            self._rows[row + _WIDTH - 1] = COMMITTED if committed else ABORTED

    def commits(self) -> Iterator[KeptCommit]:
        """Yield the commits. ``rewind``: the offset is below the last committed one; no tombstone is between."""
        keys = list(self._keys)
        last: dict[int, int] = {}
        for row in range(0, len(self._rows), _WIDTH):
            offset, timestamp, committed, mixed, producer, outcome = self._rows[row : row + _WIDTH]
            number, tombstone = mixed >> 1, bool(mixed & 1)
            known = committed != _UNKNOWN
            rewind = known and number in last and committed < last[number]
            if tombstone:
                last.pop(number, None)
            elif known and outcome == COMMITTED:
                last[number] = committed
            yield KeptCommit(
                keys[number],
                offset,
                timestamp,
                committed if known else None,
                tombstone,
                producer,
                OUTCOMES[outcome],
                rewind,
            )


def committed_offset(key: bytes, value: bytes) -> int:
    decoded = decode(consumer_offsets.TOPIC, key, value)
    values = None if decoded is None or decoded.value is None else decoded.value.values
    offset = None if values is None else values.get("offset")
    return offset if isinstance(offset, int) else _UNKNOWN


Entry: TypeAlias = tuple[bytes, int]
"""A raw value, and the offset of its record."""


@dataclass(slots=True)
class GroupLog:
    """The records of one group in a partition of ``__consumer_offsets``."""

    records: dict[bytes, Entry] = field(default_factory=dict)
    """The records of the group by key, without committed offsets."""
    kind: str | None = None
    """The type of the group by its newest group record. None before the first one, and after its tombstone."""
    simple: bool = False
    """Whether the group exists by its commits alone, without a group record."""
    offsets: int = 0
    ended_at: int = -1
    """The offset of the last tombstone that deleted the group."""

    def end(self, kind: str, offset: int) -> None:
        """Apply a group tombstone: remove the group's records of this type."""
        self.simple, self.ended_at = False, offset
        self.records = {key: entry for key, entry in self.records.items() if KINDS.get(key[:2]) != kind}
        if self.kind == kind:
            self.kind = None


class HeldOffset(NamedTuple):
    """An offset of a group, committed or (with ``producer``) pending. ``key`` is an OffsetCommitKey in bytes."""

    key: bytes
    entry: Entry
    producer: int | None


class HeldGroup(NamedTuple):
    name: bytes
    partition: int
    log: GroupLog
    offsets: list[HeldOffset]
    history: History | None


class CoordinatorLog(TopicLog):
    """Replays one partition of ``__consumer_offsets``.

    ``committed``: key -> committed offset, of all groups. ``pending``: producer id -> key -> offset in its open
    transaction. A key is an OffsetCommitKey in bytes. ``groups`` and ``histories`` have group ids in bytes as keys.
    """

    def __init__(self, partition: int, keeps_history: Callable[[bytes], bool] | None = None) -> None:
        """``keeps_history`` returns whether to keep the history of a group, by its id in bytes."""
        super().__init__(partition)
        self.committed: dict[bytes, Entry] = {}
        self.pending: dict[int, dict[bytes, Entry]] = {}
        self.groups: dict[bytes, GroupLog] = {}
        self.histories: dict[bytes, History] = {}
        self._keeps_history = keeps_history

    def take(self, records: Sequence[BriefRecord], producer: int, counts: Sequence[int]) -> None:  # noqa: ARG002  not counted
        committed = self.committed
        plain = producer < 0 and self._keeps_history is None
        for record in records:
            offset, _, key, value, _ = record
            if plain and value is not None and key is not None and key in committed:  # nearly every record
                committed[key] = value, offset
            else:
                self._take(record, producer)

    def held(self) -> Iterable[HeldGroup]:
        """Return the groups, each with its offsets: committed offsets, then those of open transactions."""
        found = {
            name: HeldGroup(name, self.partition, self.groups.get(name) or GroupLog(), [], self.histories.get(name))
            for name in {**self.groups, **self.histories}
        }
        for key, entry in self.committed.items():
            found[group_of(key)].offsets.append(HeldOffset(key, entry, None))
        for producer, commits in self.pending.items():
            for key, entry in commits.items():
                found[group_of(key)].offsets.append(HeldOffset(key, entry, producer))
        return found.values()

    def _take(self, record: BriefRecord, producer: int) -> None:
        offset, _, key, value, _ = record
        if key is None or not self._is_known(key):
            problem = problem_of(key)
            if key is None or problem is not None:
                self.refuse(problem or "", offset)
                return
        name = group_of(key)
        group = self.groups.get(name)
        if group is None:
            group = self.groups[name] = GroupLog()
        if key[:2] in OFFSETS:
            if self._keeps_history is not None and self._keeps_history(name):
                self.histories.setdefault(name, History()).add(COMMIT + key[2:], record, producer)
            self._take_commit(group, COMMIT + key[2:], value, offset, producer)
        else:
            _take_group_record(group, key, value, offset)
        if value is None:
            self._forget(key, group)

    def _is_known(self, key: bytes) -> bool:
        """Return whether a kept record has this key. Such a key is valid."""
        if key in self.committed:
            return True
        group = self.groups.get(group_of(key)) if len(key) > 3 else None
        return group is not None and key in group.records

    def _take_commit(self, group: GroupLog, key: bytes, value: bytes | None, offset: int, producer: int) -> None:
        if value is None:
            previous = self.committed.pop(key, None)
            if previous is not None:
                group.offsets -= 1
                group.simple = group.simple or (group.kind is None and previous[1] > group.ended_at)
            for commits in self.pending.values():
                commits.pop(key, None)
            return
        group.simple = group.simple or group.kind is None
        if producer < 0:
            group.offsets += key not in self.committed
            self.committed[key] = value, offset
        else:
            self.pending.setdefault(producer, {})[key] = value, offset

    def _forget(self, key: bytes, group: GroupLog) -> None:
        if group.offsets or group.records or group.simple:
            return
        prefix = COMMIT + key[2 : _group_end(key)]  # of the keys of all offsets of the group
        if not any(pending_key.startswith(prefix) for commits in self.pending.values() for pending_key in commits):
            self.groups.pop(group_of(key), None)

    def end_transaction(self, records: Sequence[BriefRecord], producer: int) -> None:
        """Commit or drop a producer's pending offsets; a newer commit stays. A cleaned marker changes nothing."""
        for _, _, key, _, _ in records:
            marker = control.read_key(key).type
            if marker not in control.MARKERS:
                continue
            for where, entry in self.pending.pop(producer, {}).items():
                newest = self.committed.get(where)
                if marker == control.COMMIT and (newest is None or entry[1] > newest[1]):
                    self.groups[group_of(where)].offsets += newest is None
                    self.committed[where] = entry
            for history in self.histories.values():
                history.end(producer, committed=marker == control.COMMIT)


def _take_group_record(group: GroupLog, key: bytes, value: bytes | None, offset: int) -> None:
    if value is not None:
        group.records[key] = value, offset
    else:
        group.records.pop(key, None)
    kind = KINDS.get(key[:2])
    if value is not None and kind is not None:
        group.kind, group.simple = kind, False
    elif key[:2] in GROUPS:
        group.end(GROUPS[key[:2]], offset)
