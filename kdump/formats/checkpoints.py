"""The offset checkpoints of a log dir, such as ``replication-offset-checkpoint``: offsets of partitions.

Source: Kafka's class OffsetCheckpointFile. Each entry of the four files is a topic, a partition and an offset.
"""

from __future__ import annotations

from sys import intern
from typing import TYPE_CHECKING, NamedTuple

from kdump.formats import checkpoint_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kdump.primitives.wire import Bytes

SHAPE = "topic, partition and offset"


class PartitionOffset(NamedTuple):
    topic: str
    partition: int
    offset: int


def read(data: Bytes) -> tuple[PartitionOffset, ...]:
    """Return the entries in the file's order. Raises DamageError."""
    return checkpoint_text.read(data, _parse)


def encode(entries: Iterable[PartitionOffset]) -> bytes:
    return checkpoint_text.encode(f"{entry.topic} {entry.partition} {entry.offset}" for entry in entries)


def _parse(line: checkpoint_text.TextLine) -> PartitionOffset:
    topic, partition, offset = checkpoint_text.parts(line, 3, SHAPE)
    return PartitionOffset(
        intern(topic), checkpoint_text.integer(partition, line, SHAPE), checkpoint_text.integer(offset, line, SHAPE, 64)
    )
