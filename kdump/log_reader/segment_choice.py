"""Which segments of a partition, and which bytes of one, may hold what a filter takes.

Names and the first offset of each file rule out segments, and so do time indexes (:mod:`kdump.log_reader.time_spans`).
Indexes that are shown to be right (:mod:`kdump.segments.index_lookup`) rule out the bytes before and after.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdump.errors import UnreadableError
from kdump.segments.regions import Range

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kdump.log_dirs.files import Source
    from kdump.log_dirs.partition import Partition, Segment
    from kdump.log_reader.filter import Filter


def segments(
    partition: Partition,
    wanted: Filter,
    skipped: Callable[[int], None],
    note: Callable[[str], None] = lambda _: None,
) -> Iterator[Segment]:
    """Yield the segments that may hold the offsets and times of a filter.

    ``skipped`` takes the size of each other, in bytes. ``note`` takes a sentence where older records may be in them.
    """
    first, last = wanted.first_offset, wanted.last_offset
    following = [*partition.segments[1:], None]
    chosen: list[Segment] = []
    for segment, after in zip(partition.segments, following, strict=False):  # a folder may have no segment
        below = first is not None and after is not None and _ends_below(segment, after, first)
        if below or (last is not None and _begins_above(segment, last)):
            skipped(segment.size)
        elif not wanted.is_timed:
            yield segment
        else:
            chosen.append(segment)
    if chosen:
        from kdump.log_reader import time_spans  # for a range of times alone

        yield from time_spans.within(partition, chosen, wanted, skipped, note)


def byte_range(segment: Segment, source: Source, wanted: Filter, wrong_index: Callable[[str], None]) -> Range | None:
    """Return the bytes of a segment to read, as far as its indexes can tell; None for nothing."""
    span: Range | None = Range()
    if not wanted.is_bounded:
        return span
    from kdump.segments.index_lookup import Seeker  # for a part of a log alone

    seeker = Seeker(segment, source, wrong_index)
    if wanted.first_offset is not None or wanted.last_offset is not None:
        span = seeker.by_offset(wanted.first_offset, wanted.last_offset)
    if wanted.since is not None and span is not None:
        later = seeker.by_time(wanted.since)
        span = None if later is None else Range(max(span.start, later.start), span.end)
    return span


def _ends_below(segment: Segment, after: Segment, offset: int) -> bool:
    """Tell whether all of a segment lies below an offset, because the next one begins there or before.

    Names are compared with the first offset of each file: a renamed file must not hide what it holds.
    """
    if segment.base_offset is None or after.base_offset is None or segment.base_offset >= after.base_offset:
        return False
    begins, next_begins = _stored(segment), _stored(after)
    limit = after.base_offset if next_begins is None else max(after.base_offset, next_begins)
    return limit <= offset and (begins is None or begins < limit)


def _begins_above(segment: Segment, offset: int) -> bool:
    """Tell whether all of a segment lies above an offset, by its name and its first offset."""
    if segment.base_offset is None or segment.base_offset <= offset:
        return False
    begins = _stored(segment)
    return begins is None or begins > offset


def _stored(segment: Segment) -> int | None:
    try:
        return segment.first_offset()
    except UnreadableError:  # the reader of the segment reports it
        return None
