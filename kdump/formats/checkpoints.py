"""The offset checkpoints of a log directory: an offset of each partition.

Source: Kafka's class OffsetCheckpointFile. One layout serves all four files: topic, partition and offset per line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.formats import checkpoint_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kdump.primitives.wire import Bytes

RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
"""Up to which offset a partition is on disk for certain (0.8)."""
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
"""Up to which offset all replicas in sync have a partition (0.8)."""
CLEANED: Final = "cleaner-offset-checkpoint"
"""Up to where compaction has come (0.8.1)."""
LOG_STARTS: Final = "log-start-offset-checkpoint"
"""Below which offset records have been deleted for consumers (0.11)."""

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


def _parse(line: checkpoint_text.TextLine) -> PartitionOffset:
    topic, partition, offset = checkpoint_text.parts(line, 3, SHAPE)
    return PartitionOffset(
        topic, checkpoint_text.integer(partition, line, SHAPE), checkpoint_text.integer(offset, line, SHAPE, 64)
    )
