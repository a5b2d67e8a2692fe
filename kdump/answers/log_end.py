"""Where a partition's log ends, found near the end of its last segment."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kdump.records.record_batch import Batches, RecordBatch
from kdump.segments import read
from kdump.segments.index_lookup import Seeker
from kdump.segments.regions import DATA

if TYPE_CHECKING:
    from kdump.log_dirs.partition import Partition, Segment


class LogEnd(NamedTuple):
    """The offset after the last sound batch, and the last batch's leader epoch: -1 below magic 2 or without a batch."""

    offset: int
    epoch: int = -1


def log_end(partition: Partition) -> LogEnd:
    """Return the end of a log; that of an empty one is the base offset of its last segment. Raises UnreadableError."""
    least = 0
    for segment in reversed(partition.segments):
        least = max(least, segment.base_offset or 0)
        last = last_batch(segment)
        if last is not None:
            epoch = last.partition_leader_epoch
            return LogEnd(max(least, last.last_offset + 1), -1 if epoch is None else epoch)
    return LogEnd(least)


def last_batch(segment: Segment) -> RecordBatch | None:
    """Return the last sound batch of a segment. Raises UnreadableError."""
    with segment.open() as source:
        seen = source.size
        while seen:
            start = Seeker(segment, source, lambda _: None).by_position(seen - 1)
            found = None
            for region in read.read(source, start, seen, on_error="resync", runs=DATA):
                if isinstance(region, Batches):
                    found = region
            if found is not None:
                return found.last
            seen = start
    return None
