"""Where the batches of a segment end, found from the last entry of its offset index on.

The file of an active segment may be longer than its batches (``preallocate=true``: zeros follow), and its index nearly
always is: a broker makes it 10 MiB long and cuts it when the segment is rolled or the broker stops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.formats import offset_index
from kdump.records.record_batch import Batches, RecordBatch
from kdump.records.soundness import is_sound
from kdump.segments import read, resync, walk
from kdump.segments.regions import DATA, Damage, Trailing

if TYPE_CHECKING:
    from kdump.log_dirs.files import Source
    from kdump.log_dirs.partition import Segment

SMALL: Final = 1 << 14
"""Bytes up to which a segment is walked from its start: its index would save nothing."""


class SegmentEnd(NamedTuple):
    """The last sound batch, None when there is none, and where the bytes of the segment end without the zeros.

    ``damage`` is the last of what was found at the end that cannot be read. ``first`` is the segment's first batch
    where the walk to the end began there.
    """

    last: RecordBatch | None
    position: int
    damage: Damage | Trailing | None = None
    first: RecordBatch | None = None


def segment_end(segment: Segment) -> SegmentEnd:
    """Return the end of a segment. What lies before its last index entry is not looked at. Raises UnreadableError."""
    with segment.open() as source:
        start = _last_indexed(segment, source) if source.size > SMALL else 0
        first: RecordBatch | None = None
        last: RecordBatch | None = None
        for region in walk.walk(source, start, runs=DATA):
            if isinstance(region, Batches):
                first, last = first or region.first, region.last
        end = 0 if last is None else last.end
        if (last is None or is_sound(last)) and (
            end == source.size or resync.zero_tail(source, end, source.size) == end
        ):
            return SegmentEnd(last, end, first=None if start else first)
        return _end_after_damage(source, start)


def _end_after_damage(source: Source, start: int) -> SegmentEnd:
    last: RecordBatch | None = None
    damage: Damage | Trailing | None = None
    end = start
    for region in read.read(source, start, on_error="resync"):
        if isinstance(region, RecordBatch):
            last = region
        elif isinstance(region, Damage | Trailing):
            damage = region
        else:
            break
        end = region.position + region.size
    return SegmentEnd(last, end, damage)


def _last_indexed(segment: Segment, source: Source) -> int:
    """Return the position of the batch that the last index entry names, 0 where no such batch stands there."""
    path = segment.siblings.get("index")
    if path is None:
        return 0
    with segment.files.open(path) as index:
        position = _last_position(index)
    region = next(walk.walk(source, position), None) if 0 < position < source.size else None
    if not isinstance(region, RecordBatch) or not is_sound(region):
        return 0
    return position if region.last_offset >= (segment.base_offset or 0) else 0


def _last_position(index: Source) -> int:
    """Return the position that the last entry before the zeros names: found by halving, for there may be 10 MiB."""
    layout = offset_index.OffsetIndex.layout
    low, high = 0, index.size // layout.size
    found = 0
    while low < high:
        middle = (low + high) // 2
        entry = index.read(middle * layout.size, layout.size)
        if len(entry) == layout.size and any(entry):
            found = layout.read(entry).position
            low = middle + 1
        else:
            high = middle
    return found
