"""``__share_group_state`` as the share coordinator loads it: where each share partition stands.

A snapshot replaces what was there, an update changes it, a null value forgets it (KIP-932). Source:
``ShareCoordinatorShard``. 4.2 added the count of deliveries that are complete (KIP-1226).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, cast

from kdump.answers.groups.topic_log import TopicLog
from kdump.internal_topics import share_group_state
from kdump.internal_topics.decode import decode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kdump.segments.batch_runs import BriefRecord

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


class ShareStateLog(TopicLog):
    """Replays one partition of ``__share_group_state``."""

    def __init__(self, partition: int) -> None:
        super().__init__(partition)
        self.held: dict[ShareKey, SharePartition] = {}

    def take(self, records: Sequence[BriefRecord], producer: int, counts: Sequence[int]) -> None:  # noqa: ARG002  not needed
        """Take the next records."""
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
