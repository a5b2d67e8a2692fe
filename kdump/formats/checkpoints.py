"""The offset checkpoints of a log directory: topic, partition and offset per line.

Source: Kafka's class OffsetCheckpointFile. One layout serves ``recovery-point-offset-checkpoint`` (up to which offset
a partition is on disk for certain, 0.8), ``replication-offset-checkpoint`` (high watermarks, 0.8),
``cleaner-offset-checkpoint`` (up to where compaction has come, 0.8.1) and ``log-start-offset-checkpoint`` (0.11).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from kdump.formats import checkpoint_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kdump.wire import Bytes

SHAPE = "topic, partition and offset"


class PartitionOffset(NamedTuple):
    """An offset that a log directory remembers of a partition."""

    topic: str
    partition: int
    offset: int


def read(data: Bytes) -> tuple[PartitionOffset, ...]:
    """Return the entries in the file's order. Raises DamageError."""
    return checkpoint_text.read(data, _parse)


def encode(entries: Iterable[PartitionOffset]) -> bytes:
    """Return the bytes of a checkpoint."""
    return checkpoint_text.encode(f"{entry.topic} {entry.partition} {entry.offset}" for entry in entries)


def _parse(line: checkpoint_text.Line) -> PartitionOffset:
    parts = re.split(r"\s+", line.text.rstrip())
    if len(parts) != 3:
        checkpoint_text.malformed(line, SHAPE)
    topic, partition, offset = parts
    return PartitionOffset(
        topic, checkpoint_text.integer(partition, line, SHAPE), checkpoint_text.integer(offset, line, SHAPE, 64)
    )
