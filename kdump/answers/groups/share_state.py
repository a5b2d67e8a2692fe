"""``__share_group_state`` as the share coordinator loads it: where each share partition stands.

A snapshot replaces what was there, an update changes it, a null value forgets it (KIP-932). Source:
``ShareCoordinatorShard``. 4.2 added the count of deliveries that are complete (KIP-1226).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, cast

from kdump.answers.groups.coordinator_log import Lost
from kdump.errors import DamageError
from kdump.internal_topics import share_group_state
from kdump.internal_topics.decode import decode

if TYPE_CHECKING:
    from kdump.formats.record import Record
    from kdump.records.record_batch import RecordBatch
    from kdump.segments.regions import Damage

UNCHANGED: Final = -1
"""In an update: as the snapshot has it. In a snapshot: not begun, or not known."""


class SharePartition(NamedTuple):
    """The state of a share partition. The start offset is -1 where it has not begun, the count -1 where unknown."""

    start_offset: int
    leader_epoch: int
    delivery_complete_count: int
    partition: int
    """Of ``__share_group_state``."""
    offset: int
    """Of the last record."""


class ShareKey(NamedTuple):
    """A share partition."""

    group_id: str
    topic_id: bytes
    partition: int


class ShareStateLog:
    """Replays one partition of ``__share_group_state``."""

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.held: dict[ShareKey, SharePartition] = {}
        self.lost: list[Lost] = []
        self.unread: dict[str, tuple[int, int]] = {}
        """Reason -> first offset and number of records."""
        self.end_offset = 0

    def add(self, batch: RecordBatch) -> None:
        """Take the next batch. Raises DamageError where its records cannot be read."""
        self.end_offset = batch.last_offset + 1
        if batch.is_control:
            return
        try:
            records = list(batch.records())
        except DamageError as damage:
            self.lost.append(Lost(batch.base_offset, batch.last_offset + 1, damage.reason))
            raise
        for record in records:
            self._take(record)

    def lose(self, region: Damage) -> None:
        """Take note of a damaged range."""
        self.lost.append(Lost(region.missing_from, region.missing_until, region.reason))

    def _take(self, record: Record) -> None:
        decoded = decode(share_group_state.TOPIC, record.key, record.value)
        if decoded is None or decoded.key is None or decoded.key.values is None:
            reason = "the record has no key" if decoded is None or decoded.key is None else decoded.key.reason
            self._refuse(reason, record.offset)
            return
        names = decoded.key.values
        key = ShareKey(str(names["groupId"]), cast("bytes", names["topicId"]), cast("int", names["partition"]))
        if decoded.value is None:
            self.held.pop(key, None)
            return
        values = cast("dict[str, int] | None", decoded.value.values)
        if values is None:
            self._refuse(decoded.value.reason, record.offset)
            return
        start, epoch, count = values["startOffset"], values["leaderEpoch"], values.get("deliveryCompleteCount", -1)
        before = self.held.get(key)
        if decoded.key.name == "ShareUpdateKey" and before is not None:
            start = before.start_offset if start == UNCHANGED else start
            epoch = before.leader_epoch if epoch == UNCHANGED else epoch
            count = before.delivery_complete_count if count == UNCHANGED else count
        self.held[key] = SharePartition(start, epoch, count, self.partition, record.offset)

    def _refuse(self, reason: str, offset: int) -> None:
        first, count = self.unread.get(reason, (offset, 0))
        self.unread[reason] = first, count + 1
