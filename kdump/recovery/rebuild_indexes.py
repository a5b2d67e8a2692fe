"""Fresh indexes of a segment from its log, and from earlier segments where its transactions began there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdump.errors import DamageError
from kdump.log_dirs.finder import Finder, Wanted
from kdump.records.record_batch import RecordBatch
from kdump.records.soundness import check
from kdump.recovery.index_builder import IndexBuilder, Indexes
from kdump.segments.regions import Trailing
from kdump.segments.resync import zero_tail
from kdump.segments.walk import walk
from kdump.transactions.replay import Replay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kdump.log_dirs.partition import Partition, Segment


def rebuild(
    partition: Partition,
    segment: Segment,
    *,
    interval: int,
    first_offsets: bool,
    note: Callable[[str], None] = lambda _: None,
    progress: Callable[[int], None] = lambda _: None,
) -> Indexes:
    """Return the indexes of a segment, as a broker writes them with ``interval`` bytes of log between two entries.

    ``first_offsets`` names the first offset of a batch in an entry, as brokers before 2.0 did. ``progress`` is called
    with the bytes read. Raises DamageError at the first batch that is not sound, UnreadableError.
    """

    def once(replay: Replay) -> tuple[Indexes, bool]:
        builder = IndexBuilder(segment.base_offset or 0, interval=interval, first_offsets=first_offsets)
        aborts = False
        for batch in _batches(segment, note, progress):
            ended = replay.add(batch)
            aborts = aborts or (ended is not None and ended.aborted)
            builder.add(batch, ended)
        return builder.finish(), aborts

    indexes, aborts = once(Replay())
    earlier = _earlier(partition, segment) if aborts else []
    if earlier:
        replay = Replay()
        for before in earlier:
            for batch in _batches(before, note, lambda _: None):
                replay.add(batch)
        indexes, _ = once(replay)
    return indexes


def _earlier(partition: Partition, segment: Segment) -> list[Segment]:
    """Return the segments of the folder that come before this one, in order."""
    finder = Finder(Wanted(max_batch_bytes=partition.limit))
    here = [folder for folder in finder.find([partition.folder], partition.files) if folder.folder == partition.folder]
    base = segment.base_offset or 0
    return [one for folder in here for one in folder.segments if one.base_offset is not None and one.base_offset < base]


def _batches(segment: Segment, note: Callable[[str], None], read: Callable[[int], None]) -> Iterator[RecordBatch]:
    """Yield the batches of a segment, each checked as a broker checks it. Raises DamageError at the first bad one."""
    with segment.open() as source:
        for region in walk(source):
            if isinstance(region, RecordBatch):
                try:
                    check(region)
                except DamageError as damage:
                    raise damage.at(region.position) from None
                yield region
                read(region.size)
            elif zero_tail(source, region.position, source.size) == region.position:
                note(f"{segment.name}: {region.size} bytes of zeros follow the last batch")
            else:
                reason = "the last batch is cut off" if isinstance(region, Trailing) else getattr(region, "reason", "")
                raise DamageError("end of log", f"behind the last whole batch {reason}", position=region.position)
