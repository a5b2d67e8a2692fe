"""What a reader has read: the proof that records were looked at, or that they were not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdump.errors import DamageError
from kdump.records.record_batch import RecordBatch
from kdump.segments.batch_runs import Run

if TYPE_CHECKING:
    from kdump.segments.regions import Region


class ReadStats:
    """Counts segments, bytes, batches and records, as :class:`kdump.log_reader.reader.PartitionReader` reads them.

    ``segments`` holds their paths; ``bytes`` are those of batches, damage and padding.
    """

    def __init__(self) -> None:
        self.segments: set[str] = set()
        self.bytes = self.batches = self.records = 0

    def add(self, region: Region | Run) -> None:
        """Count a region of a segment."""
        self.bytes += region.size
        if isinstance(region, Run):
            self.batches += region.count
            self.records += region.records(0, region.count)
        elif isinstance(region, RecordBatch):
            self.batches += 1
            self.records += _records(region)


def _records(batch: RecordBatch) -> int:
    """Return how many records a batch holds; below magic 2 reading them tells."""
    if batch.count is not None:
        return batch.count
    try:
        return sum(1 for _ in batch.records())
    except DamageError:  # it is reported where the records are selected
        return 0
