"""The parts of a segment from its end backwards: whoever wants the last records reads no more than these stand in.

Where a part begins the offset index tells, where it can be shown to be right, or the lengths of batches do.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from kdump.errors import UnreadableError
from kdump.formats.record_layout import LOG_OVERHEAD, SMALLEST_ENTRY
from kdump.log_dirs import local
from kdump.parallel.costs import SegmentPart
from kdump.segments.index_lookup import SMALL, Seeker
from kdump.segments.walk import is_sound_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kdump.log_dirs.files import Source
    from kdump.log_dirs.partition import Segment

FIRST: Final = 1 << 18
"""Bytes of the last part, about; each before it is twice as large."""
MOST: Final = 1 << 24
"""Bytes of a part, at most about."""
AT_ONCE: Final = 1 << 12
"""Bytes that are read for the lengths of batches where these are small."""


def backwards(segment: Segment) -> Iterator[SegmentPart]:
    """Yield the parts of a segment, the last one first; each begins with a sound batch, or the file does.

    Only a local file comes in parts. Raises UnreadableError.
    """
    with segment.open() as source:
        stop, size = source.size, FIRST
        start_before: Callable[[int], int] = lambda _: 0  # noqa: E731  it is read whole
        if isinstance(source, local.LocalFile) and stop > SMALL:
            start_before = _starts(segment, source)
        while stop:
            try:
                start = start_before(max(0, stop - size))
            except UnreadableError:  # who reads the part says so
                start = 0
            yield SegmentPart(start, stop)
            stop, size = start, min(2 * size, MOST)


def _starts(segment: Segment, source: Source) -> Callable[[int], int]:
    """Return what says where a sound batch, or the file, starts at or before a byte."""
    seeker = Seeker(segment, source, lambda _: None)  # where an index is wrong, the segment is read whole
    if seeker.offset_index:
        return seeker.by_position
    starts = _apart(source)

    def start_before(position: int) -> int:
        at = bisect_right(starts, position) - 1
        while at and not is_sound_at(source, starts[at]):
            at -= 1
        return starts[at]

    return start_before


def _apart(source: Source) -> list[int]:
    """Return where batches start, about FIRST bytes apart, as far as their lengths lead and can be read."""
    starts = [0]
    position = at = size = 0
    block = b""
    while True:
        if at + LOG_OVERHEAD.size > len(block):
            try:
                block, at = source.read(position, AT_ONCE if 4 * size < AT_ONCE else LOG_OVERHEAD.size), 0
            except UnreadableError:  # who reads the part says so
                break
            if len(block) < LOG_OVERHEAD.size:
                break
        size = LOG_OVERHEAD.size + LOG_OVERHEAD.read(block, at).size
        if size < LOG_OVERHEAD.size + SMALLEST_ENTRY:
            break
        position += size
        at += size
        if position - starts[-1] >= FIRST:
            starts.append(position)
    return starts
