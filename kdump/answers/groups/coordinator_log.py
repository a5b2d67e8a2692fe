"""One partition of a coordinator's topic as the coordinator loads it: the last record of every key, by group.

Nothing is decoded but keys that are seen for the first time. All keys begin with the int16 type of the record and the
group id, so the bytes of a key say where it belongs. Source: ``CoordinatorLoaderImpl``, ``OffsetMetadataManager`` and
``GroupMetadataManager`` of Kafka 4 (``replay``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from kdump.answers.groups.history import History
from kdump.errors import DamageError
from kdump.formats.record_layout import BATCH_HEADER
from kdump.internal_topics import consumer_offsets
from kdump.internal_topics.decode import by_type, decode
from kdump.records import control

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kdump.records.record_batch import RecordBatch
    from kdump.segments.batch_runs import BriefRecord, Run
    from kdump.segments.regions import Damage

Entry: TypeAlias = tuple[bytes, int]
"""A value as it was written, and the offset of its record."""

KEY_TYPES: Final = {
    message.name: number.to_bytes(2, "big") for number, message in by_type(consumer_offsets.MESSAGES, "Key").items()
}
"""Message -> the bytes that its keys begin with."""
OFFSETS: Final = frozenset({KEY_TYPES["LegacyOffsetCommitKey"], KEY_TYPES["OffsetCommitKey"]})
GROUPS: Final = {
    KEY_TYPES["GroupMetadataKey"]: "Classic",
    KEY_TYPES["ConsumerGroupMetadataKey"]: "Consumer",
    KEY_TYPES["ShareGroupMetadataKey"]: "Share",
    KEY_TYPES["StreamsGroupMetadataKey"]: "Streams",
}
"""Keys of the records that make a group -> its type; their tombstone ends it."""
KINDS: Final = GROUPS | {
    prefix: kind for name, prefix in KEY_TYPES.items() for kind in GROUPS.values() if name.startswith(f"{kind}Group")
}
"""Keys of the records of groups -> the type of group that has such; a group may begin with any of them."""
GROUP_AT: Final = 4
"""Where the group id begins in a key: its int16 length stands before it, after the type."""


class Lost(NamedTuple):
    """A range of records that cannot be read; offsets as far as known."""

    from_offset: int | None
    until_offset: int | None
    reason: str


@dataclass(slots=True)
class GroupLog:
    """What a partition holds of one group, and what the group wrote there."""

    committed: dict[bytes, Entry] = field(default_factory=dict)
    """By what follows the group id in the key: topic and partition."""
    records: dict[bytes, Entry] = field(default_factory=dict)
    """The other records, by key."""
    kind: str | None = None
    """The type of the group by its newest record, None where it has none."""
    simple: bool = False
    """Whether commits alone made it: it stays when they are deleted, until a group record or its tombstone."""
    commits: int = 0
    tombstones: int = 0
    group_records: int = 0
    size: int = 0
    """Bytes."""
    first_timestamp: int = -1
    last_timestamp: int = -1
    history: History | None = None

    def end(self, kind: str) -> None:
        """Take the tombstone of a group of this type: all its records go."""
        self.simple = False
        self.records = {key: entry for key, entry in self.records.items() if KINDS.get(key[:2]) != kind}
        if self.kind == kind:
            self.kind = None


def is_place(data: bytes) -> bool:
    """Tell whether bytes are a topic and a partition, as they end the key of a commit: a string and an int32."""
    return len(data) > 1 and len(data) == 2 + (data[0] << 8 | data[1]) + 4


class CoordinatorLog:
    """Replays one partition of ``__consumer_offsets``.

    ``groups`` are by the bytes of their ids. ``pending`` holds the commits of open transactions: producer id to
    (group, topic and partition) to entry.
    """

    def __init__(
        self, partition: int, keeps_history: Callable[[bytes], bool] | None = None, *, keeps_writers: bool = False
    ) -> None:
        """``keeps_history`` tells whose commits to keep one by one, ``keeps_writers`` keeps groups that are gone."""
        self.partition = partition
        self.groups: dict[bytes, GroupLog] = {}
        self.pending: dict[int, dict[tuple[bytes, bytes], Entry]] = {}
        self.lost: list[Lost] = []
        self.unread: dict[str, tuple[int, int]] = {}
        """Reason -> first offset and number of records."""
        self.end_offset = 0
        self._keeps_history = keeps_history
        self._keeps_writers = keeps_writers
        self._places: dict[bytes, bytes] = {}

    def add(self, batch: RecordBatch) -> None:
        """Take the next batch. Raises DamageError where its records cannot be read."""
        self.end_offset = batch.last_offset + 1
        try:
            records = [(one.offset, one.timestamp, one.key, one.value, one.size) for one in batch.records()]
            producer = -1 if batch.producer_id is None else batch.producer_id
            if batch.is_control:
                self._end_transaction(records, producer)
            elif records:
                self.take(records, producer, BATCH_HEADER.size)
        except DamageError as damage:
            self.lost.append(Lost(batch.base_offset, batch.last_offset + 1, damage.reason))
            raise

    def add_run(self, run: Run) -> int:
        """Take the first batches of a run, all those whose records are well-formed; return how many."""
        if run.first.is_control or run.first.is_transactional:
            return 0
        records, taken = run.unpack()
        if records:
            self.take(records, -1, taken * BATCH_HEADER.size)
            self.end_offset = run.last_offset_of(taken - 1) + 1
        return taken

    def lose(self, region: Damage) -> None:
        """Take note of a damaged range."""
        self.lost.append(Lost(region.missing_from, region.missing_until, region.reason))

    def take(self, records: Sequence[BriefRecord], producer: int, headers: int) -> None:
        """Take records of ``producer`` (-1 for none). ``headers`` are the bytes of the headers of their batches."""
        groups, pending = self.groups, self.pending
        share, rest = divmod(headers, len(records))
        for record in records:
            offset, timestamp, key, value, size = record
            if key is None or len(key) < GROUP_AT:
                self._refuse(key, offset)
                continue
            end = GROUP_AT + (key[2] << 8 | key[3])
            name = key[GROUP_AT:end]
            group = groups.get(name)
            if key[:2] in OFFSETS:
                place = key[end:]
                if group is None or place not in group.committed:
                    if not is_place(place):
                        self._refuse(key, offset)
                        continue
                    place = self._places.setdefault(place, place)
                    group = group or self._group(name, timestamp)
                    group.simple = group.simple or (value is not None and group.kind is None)
                if group.history is not None:
                    group.history.add(place, record, producer)
                if value is None:
                    group.tombstones += 1
                    group.committed.pop(place, None)
                    for held in pending.values():
                        held.pop((name, place), None)
                else:
                    group.commits += 1
                    if producer < 0:
                        group.committed[place] = value, offset
                    else:
                        pending.setdefault(producer, {})[name, place] = value, offset
            else:
                group = self._group_record(key, name, record)
                if group is None:
                    continue
            group.size += size + share + rest
            group.last_timestamp = timestamp
            rest = 0
            if value is None and not self._keeps_writers:
                self._forget(name, group)

    def _group_record(self, key: bytes, name: bytes, record: BriefRecord) -> GroupLog | None:
        """Take a record that is no commit; return its group, None when the key cannot be read."""
        offset, timestamp, _, value, _ = record
        known = self.groups.get(name)
        if known is None or key not in known.records:
            decoded = decode(consumer_offsets.TOPIC, key, None)
            if decoded is None or decoded.key is None or decoded.key.reason:
                self._refuse(key, offset)
                return None
        group = self._group(name, timestamp)
        group.group_records += 1
        if value is not None:
            group.records[key] = value, offset
        else:
            group.records.pop(key, None)
        kind = KINDS.get(key[:2])
        if value is not None and kind is not None:
            group.kind, group.simple = kind, False
        elif key[:2] in GROUPS:
            group.end(GROUPS[key[:2]])
        return group

    def _group(self, name: bytes, timestamp: int) -> GroupLog:
        group = self.groups.get(name)
        if group is None:
            history = History() if self._keeps_history is not None and self._keeps_history(name) else None
            group = self.groups[name] = GroupLog(first_timestamp=timestamp, history=history)
        return group

    def _forget(self, name: bytes, group: GroupLog) -> None:
        """Drop a group of which nothing is left."""
        if group.committed or group.records or group.simple or group.history:
            return
        if not any(name == held for commits in self.pending.values() for held, _ in commits):
            self.groups.pop(name, None)

    def _refuse(self, key: bytes | None, offset: int) -> None:
        """Count a record whose key cannot be read; a newer release may know others."""
        decoded = decode(consumer_offsets.TOPIC, key, None)
        reason = decoded.key.reason if decoded is not None and decoded.key is not None else "the record has no key"
        first, count = self.unread.get(reason, (offset, 0))
        self.unread[reason] = first, count + 1

    def _end_transaction(self, records: Sequence[BriefRecord], producer: int) -> None:
        """Publish or drop what a producer holds; a commit never replaces a later one.

        Without a record the marker was cleaned away.
        """
        for _, timestamp, key, _, _ in records:
            marker = control.read_key(key).type
            if marker not in control.MARKERS:
                continue
            for (name, place), entry in self.pending.pop(producer, {}).items():
                group = self._group(name, timestamp)
                newest = group.committed.get(place)
                if marker == control.COMMIT and (newest is None or entry[1] > newest[1]):
                    group.committed[place] = entry
            for group in self.groups.values():
                if group.history is not None:
                    group.history.end(producer, committed=marker == control.COMMIT)
