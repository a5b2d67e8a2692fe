"""The leader epochs of a replica's log, and the offset to which a follower truncates it.

Source: KIP-101, KIP-279 and Kafka's class LeaderEpochFileCache.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kdump.formats.leader_epoch import EpochEntry
from kdump.records.record_batch import Batches
from kdump.segments import walk
from kdump.segments.log_end import end_of_log
from kdump.segments.regions import DATA

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.errors import Reporter
    from kdump.log_dirs.files import Source
    from kdump.log_dirs.partition import Partition
    from kdump.segments.log_end import LogEnd


@dataclass(frozen=True)
class Lineage:
    """Leader epochs in order with the offsets where they begin, and the log end offset."""

    entries: tuple[EpochEntry, ...]
    end: int

    @property
    def newest(self) -> int | None:
        """The newest epoch, or None if the log has none."""
        return self.entries[-1].epoch if self.entries else None

    def end_of(self, epoch: int) -> int:
        """Return the start offset of the first epoch above this one, or the log end offset."""
        return next((entry.start_offset for entry in self.entries if entry.epoch > epoch), self.end)

    def truncation(self, leader: Lineage) -> int | None:
        """Return the offset to which this replica truncates its log when it follows ``leader``; None if it keeps all.

        That is the smaller end of the newest common epoch. A replica whose newest epoch is the same or newer truncates
        nothing.
        """
        if self.newest is None or leader.newest is None or self.newest >= leader.newest:
            return None
        common = {entry.epoch for entry in self.entries} & {entry.epoch for entry in leader.entries}
        if not common:
            return None
        cut = min(self.end_of(max(common)), leader.end_of(max(common)))
        return cut if cut < self.end else None


def lineage(partition: Partition, report: Reporter) -> Lineage:
    """Return a replica's leader epochs: from ``leader-epoch-checkpoint``, and from batches if that lags or is missing.

    A malformed checkpoint is reported as damage. Raises UnreadableError.
    """
    end = end_of_log(partition)
    entries = tuple(sorted(partition.leader_epochs(report.damage) or ()))
    if end.epoch > (entries[-1].epoch if entries else -1):
        entries = _with_batches(entries, partition, end)
    return Lineage(tuple(entry for entry in entries if entry.start_offset <= end.offset), end.offset)


def _with_batches(entries: tuple[EpochEntry, ...], partition: Partition, end: LogEnd) -> tuple[EpochEntry, ...]:
    """Return the entries, and one for each newer epoch in the headers of batches."""
    found = list(entries)
    for segment in partition.segments:
        with segment.open() as source:
            for epoch, base_offset in _epochs(source):
                if epoch <= (found[-1].epoch if found else -1):
                    continue
                found.append(EpochEntry(epoch, base_offset))
                if epoch >= end.epoch:  # epochs rise: no newer one follows
                    return tuple(found)
    return tuple(found)


def _epochs(source: Source) -> Iterator[tuple[int, int]]:
    """Yield leader epoch and base offset of each batch up to the first damage."""
    for region in walk.walk(source, runs=DATA):
        if isinstance(region, Batches) and region.first.partition_leader_epoch is not None:
            yield from zip(region.column("partition_leader_epoch"), region.column("base_offset"), strict=True)
