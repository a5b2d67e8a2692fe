"""Computes the partition of an internal topic that coordinates a group, a transactional id or a share partition.

The partition is ``Utils.abs(id.hashCode())`` modulo the number of partitions. No record is read. Source:
``partitionFor`` of GroupCoordinator, TransactionStateManager and ShareCoordinatorService, unchanged from 0.8.2 to 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from kdump.internal_topics import consumer_offsets, share_group_state, transaction_state
from kdump.primitives.java_hash_order import java_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TOPICS: Final = {
    "group": consumer_offsets.TOPIC,
    "transaction": transaction_state.TOPIC,
    "share": share_group_state.TOPIC,
}
"""Type of id -> the topic with the state of the coordinator. A share id is written as ``group:topicId:partition``."""
PARTITIONS: Final = 50
"""The default number of partitions of each of these topics."""


class TopicPartitions(NamedTuple):
    """The number of partitions of a coordinator's topic, and the numbers of those that are in the paths."""

    whole: int
    here: frozenset[int]

    @property
    def missing(self) -> int:
        return self.whole - len(self.here)

    @property
    def is_whole(self) -> bool:
        return bool(self.whole) and not self.missing

    def absent(self) -> Iterator[int]:
        """Yield the missing partitions, which may be billions, in order."""
        return (number for number in range(self.whole) if number not in self.here)


def topic_partitions(here: Iterable[int | None], count: int | None = None) -> TopicPartitions:
    """Return the number of partitions of a topic, and those in ``here`` with lower numbers. None in it is ignored.

    ``count`` is the known number. Without it, the highest partition in ``here`` is assumed to be the last one.
    """
    numbers = {number for number in here if number is not None}
    whole = max(numbers, default=-1) + 1 if count is None else count
    return TopicPartitions(whole, frozenset(number for number in numbers if number < whole))


@dataclass(frozen=True)
class CoordinatorPartition:
    """The partition whose leader is the coordinator of ``id``. ``type`` is a key of :data:`TOPICS`."""

    kind: ClassVar[str] = "coordinator"
    id: str
    type: str
    partition: int


def coordinator_partition(text: str, partitions: int) -> int:
    value = java_hash(text)
    signed = value - ((value & 0x80000000) << 1)
    return 0 if signed == -0x80000000 else abs(signed) % partitions
