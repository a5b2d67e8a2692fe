"""What a reader has read: the proof that records were looked at, or that they were not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdump.errors import DamageError
from kdump.records.record_batch import Batches

if TYPE_CHECKING:
    from kdump.segments.regions import Region


class ReadStats:
    """Counts segments, bytes, batches and records, as :class:`kdump.log_reader.reader.PartitionReader` reads them.

    ``segments`` holds their paths; ``bytes`` are those of batches, damage and padding.
    """

    def __init__(self) -> None:
        self.segments: set[str] = set()
        self.bytes = self.batches = self.records = 0

    def add(self, region: Region) -> None:
        """Count a region of a segment."""
        self.bytes += region.size
        if isinstance(region, Batches):
            self.batches += region.batch_count
            self.records += _records(region)


def _records(batches: Batches) -> int:
    """Return the number of records; those of magic 0 and 1 are read to count them."""
    if batches.first.count is not None:
        return sum(batches.column("records_count"))
    try:
        return sum(1 for _ in batches.first.records())
    except DamageError:  # it is reported where the records are selected
        return 0
