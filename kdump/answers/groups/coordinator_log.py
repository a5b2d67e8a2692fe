"""One partition of ``__consumer_offsets`` as the coordinator loads it: the last record of every key, by group.

Nothing is decoded but keys that are seen for the first time. Source: ``CoordinatorLoaderImpl``,
``OffsetMetadataManager`` and ``GroupMetadataManager`` of Kafka 4 (``replay``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from kdump.answers.groups.history import History
from kdump.answers.groups.record_keys import COMMIT, GROUPS, KINDS, OFFSETS, group_of, prefix_of, problem_of
from kdump.answers.groups.topic_log import TopicLog
from kdump.records import control

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from kdump.segments.batch_runs import BriefRecord

Entry: TypeAlias = tuple[bytes, int]
"""A value as it was written, and the offset of its record."""


@dataclass(slots=True)
class GroupLog:
    """What a partition holds of one group."""

    records: dict[bytes, Entry] = field(default_factory=dict)
    """Its records but for the offsets, by key."""
    kind: str | None = None
    """The type of the group by its newest record, None where it has none."""
    simple: bool = False
    """Whether commits that are deleted made it: it stays until a group record or its tombstone."""
    offsets: int = 0
    """How many offsets are committed."""
    ended_at: int = -1
    """The offset of the last tombstone of a group record."""

    def end(self, kind: str, offset: int) -> None:
        """Take the tombstone of a group of this type: all its records go."""
        self.simple, self.ended_at = False, offset
        self.records = {key: entry for key, entry in self.records.items() if KINDS.get(key[:2]) != kind}
        if self.kind == kind:
            self.kind = None


class HeldOffset(NamedTuple):
    """An offset of a group. ``producer`` is that of its open transaction, None where it is published."""

    key: bytes
    entry: Entry
    producer: int | None


class HeldGroup(NamedTuple):
    """A group in one partition of ``__consumer_offsets``."""

    name: bytes
    partition: int
    log: GroupLog
    offsets: list[HeldOffset]
    history: History | None


class CoordinatorLog(TopicLog):
    """Replays one partition.

    ``committed`` has the published offsets of all groups, ``pending`` those of open transactions by producer id, both
    by the key of an OffsetCommit record. ``groups`` and ``histories`` are by the bytes of the group ids.
    """

    def __init__(self, partition: int, keeps_history: Callable[[bytes], bool] | None = None) -> None:
        """``keeps_history`` tells of which groups to keep the commits one by one."""
        super().__init__(partition)
        self.committed: dict[bytes, Entry] = {}
        self.pending: dict[int, dict[bytes, Entry]] = {}
        self.groups: dict[bytes, GroupLog] = {}
        self.histories: dict[bytes, History] = {}
        self._keeps_history = keeps_history

    def take(self, records: Sequence[BriefRecord], producer: int, counts: Sequence[int]) -> None:  # noqa: ARG002  not counted
        """Take records of ``producer`` (-1 for none)."""
        committed = self.committed
        plain = producer < 0 and self._keeps_history is None
        for record in records:
            offset, _, key, value, _ = record
            if plain and value is not None and key is not None and key in committed:  # nearly every record
                committed[key] = value, offset
            else:
                self._take(record, producer)

    def held(self) -> Iterable[HeldGroup]:
        """Return the groups, each with its offsets: the published ones first."""
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
        """Tell whether a record with this key is held, so that the key can be read."""
        if key in self.committed:
            return True
        group = self.groups.get(group_of(key)) if len(key) > 3 else None
        return group is not None and key in group.records

    def _take_commit(self, group: GroupLog, key: bytes, value: bytes | None, offset: int, producer: int) -> None:
        if value is None:
            held = self.committed.pop(key, None)
            if held is not None:
                group.offsets -= 1
                group.simple = group.simple or (group.kind is None and held[1] > group.ended_at)
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
        """Drop the group of a key when nothing of it is left."""
        if group.offsets or group.records or group.simple:
            return
        prefix = prefix_of(key)
        if not any(held.startswith(prefix) for commits in self.pending.values() for held in commits):
            self.groups.pop(group_of(key), None)

    def end_transaction(self, records: Sequence[BriefRecord], producer: int) -> None:
        """Publish or drop what a producer holds; a commit never replaces a later one.

        Without a record the marker was cleaned away.
        """
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
