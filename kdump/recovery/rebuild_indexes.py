"""Fresh indexes of a segment from its log, and from earlier segments where its transactions began there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kdump.errors import DamageError
from kdump.log_dirs.finder import Finder, Wanted
from kdump.records.log_entry import check
from kdump.records.record_batch import Batches
from kdump.recovery.index_builder import IndexBuilder, Indexes
from kdump.segments import walk
from kdump.segments.regions import DATA, Trailing
from kdump.segments.resync import padding, zero_tail
from kdump.transaction_replay.replay import Replay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kdump.log_dirs.partition import Partition, Segment


@dataclass(frozen=True, kw_only=True)
class Rebuild:
    """The options of rebuilt indexes: as a broker writes them with ``interval`` bytes of log between two entries.

    ``first_offsets`` names the first offset of a batch in an entry, as brokers before 2.0 did. ``progress`` is called
    with the bytes read.
    """

    interval: int
    first_offsets: bool
    note: Callable[[str], None] = lambda _: None
    progress: Callable[[int], None] = lambda _: None

    def of(self, partition: Partition) -> Iterator[tuple[Segment, Indexes | DamageError]]:
        """Yield each segment with its indexes. The first one that holds an invalid batch ends them.

        What later segments hold of transactions depends on it. Raises UnreadableError.
        """
        replay = Replay()
        for segment in partition.segments:
            try:
                if segment is partition.segments[0]:
                    indexes, replay = self._first(partition, segment)
                else:
                    indexes, _ = self._read(segment, replay)
            except DamageError as damage:
                yield segment, damage
                return
            yield segment, indexes

    def _first(self, partition: Partition, segment: Segment) -> tuple[Indexes, Replay]:
        """Read the first segment; those before it in the folder are read where transactions may reach into it."""
        replay = Replay()
        indexes, aborts = self._read(segment, replay)
        if (aborts or len(partition.segments) > 1) and (earlier := _earlier(partition, segment)):
            replay = Replay()
            for before in earlier:
                for region in _batches(before, self.note, lambda _: None):
                    replay.add(region)
            indexes, _ = self._read(segment, replay)
        return indexes, replay

    def _read(self, segment: Segment, replay: Replay) -> tuple[Indexes, bool]:
        """Return the indexes of a segment, and whether it ends aborted transactions."""
        builder = IndexBuilder(segment.base_offset or 0, interval=self.interval, first_offsets=self.first_offsets)
        aborts = False
        for region in _batches(segment, self.note, self.progress):
            ended = replay.add(region)
            aborts = aborts or (ended is not None and ended.aborted)
            builder.add(region, ended)
        return builder.finish(), aborts


def _earlier(partition: Partition, segment: Segment) -> list[Segment]:
    """Return the segments of the folder that come before this one, in order."""
    finder = Finder(Wanted(max_batch_bytes=partition.limit))
    here = [folder for folder in finder.find([partition.folder], partition.files) if folder.folder == partition.folder]
    base = segment.base_offset or 0
    return [one for folder in here for one in folder.segments if one.base_offset is not None and one.base_offset < base]


def _batches(segment: Segment, note: Callable[[str], None], done: Callable[[int], None]) -> Iterator[Batches]:
    """Yield the batches of a segment, data that are alike as one run, each checked as a broker checks it.

    Raises DamageError at the first bad one.
    """
    with segment.open() as source:
        for region in walk.walk(source, runs=DATA):
            if isinstance(region, Batches):
                try:
                    check(region.first)
                except DamageError as damage:
                    raise damage.at(region.position) from None
                yield region
                done(region.size)
            elif zero_tail(source, region.position, source.size) == region.position:
                note(f"{segment.name}: {padding(source, region.position, source.size)} follow the last batch")
            else:
                reason = str(region) if isinstance(region, Trailing) else getattr(region, "reason", "")
                raise DamageError("end of log", f"after the last whole batch {reason}", position=region.position)
