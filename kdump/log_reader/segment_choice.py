"""Chooses the segments of a partition, and the byte range of a segment, that may hold selected records.

Segments are excluded by their names, first batches and time indexes. Byte ranges are excluded by index entries that
point at valid batches (:mod:`kdump.segments.index_lookup`). :class:`CheckpointOffsets` reads offsets for rows.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.errors import RAISING, Reporter, UnreadableError, many
from kdump.formats.record_layout import BATCH_HEADER, DELETE_HORIZON_FLAG, LOG_OVERHEAD, MAGIC_2, TIMESTAMP_TYPE_FLAG
from kdump.formats.time_index import TimeIndex
from kdump.log_dirs.file_names import HIGH_WATERMARKS, LOG_STARTS, TIME_INDEX
from kdump.log_dirs.log_dir_state import READERS, LogDirStates
from kdump.records.record_batch import Batches
from kdump.rows.selection import SegmentFacts
from kdump.segments import log_end, walk
from kdump.segments.regions import DATA, Range

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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

    ``skipped`` is called with the size (bytes) of each skipped segment. If segments after ``until`` are skipped,
    ``note`` is called with a message that they may have records with older timestamps.
    """
    if not wanted.is_bounded:
        yield from partition.segments
        return
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
        yield from within(partition, chosen, wanted, skipped, note)


def byte_range(segment: Segment, source: Source, wanted: Filter, wrong_index: Callable[[str], None]) -> Range | None:
    """Return the byte range of a segment to read, by its indexes; None if they exclude records from ``since`` on."""
    span: Range | None = Range()
    if not wanted.is_bounded:
        return span
    from kdump.segments.index_lookup import Seeker

    seeker = Seeker(segment, source, wrong_index)
    if wanted.first_offset is not None or wanted.last_offset is not None:
        span = seeker.by_offset(wanted.first_offset, wanted.last_offset)
    if wanted.since is not None and span is not None:
        later = seeker.by_time(wanted.since)
        span = None if later is None else Range(max(span.start, later.start), span.end)
    return span


def _ends_below(segment: Segment, after: Segment, offset: int) -> bool:
    """Return whether all records are below ``offset``, because the next segment (``after``) begins at or below it.

    The first offsets in the files are compared too, because a file may have been renamed.
    """
    if segment.base_offset is None or after.base_offset is None or segment.base_offset >= after.base_offset:
        return False
    begins, next_begins = _stored(segment), _stored(after)
    limit = after.base_offset if next_begins is None else max(after.base_offset, next_begins)
    return limit <= offset and (begins is None or begins < limit)


def _begins_above(segment: Segment, offset: int) -> bool:
    if segment.base_offset is None or segment.base_offset <= offset:
        return False
    begins = _stored(segment)
    return begins is None or begins > offset


def _stored(segment: Segment) -> int | None:
    try:
        return segment.first_offset()
    except UnreadableError:  # the reader of the segment reports it
        return None


class CheckpointOffsets:
    """Reads high watermarks and log starts in checkpoint files, each once. Reports damaged and unreadable files."""

    def __init__(self, report: Reporter = RAISING) -> None:
        readers = {name: READERS[name] for name in (HIGH_WATERMARKS, LOG_STARTS)}
        self._states = LogDirStates(report, readers)

    def facts(self, partition: Partition) -> SegmentFacts:
        """Return the facts of a partition that rows need. The caller sets the segment's name."""
        key = partition.topic, partition.partition
        if None in key:
            return SegmentFacts("", *key, None, None)
        state = self._states.of(partition)
        return SegmentFacts("", *key, state.high_watermarks.get(key), state.log_starts.get(key))


OPTION: Final = "--out-of-order"


class TimeSpan(NamedTuple):
    """The first timestamp of a segment's first batch and the segment's largest timestamp, in ms; None if unknown."""

    first: int | None
    largest: int | None


class _Head(NamedTuple):
    base_offset: int
    first: int
    largest: int


def within(
    partition: Partition,
    chosen: Sequence[Segment],
    wanted: Filter,
    skipped: Callable[[int], None],
    note: Callable[[str], None],
) -> Iterator[Segment]:
    """Yield the segments among ``chosen`` that may hold records within the times of a filter.

    Segments after ``until`` are left out if their times are known, and the known times of all segments are in order;
    with ``wanted.out_of_order`` they are yielded. ``skipped`` and ``note`` are those of :func:`segments`.
    """
    spans = dict(_spans(partition))
    since = wanted.since
    kept = [one for one in chosen if since is None or (last := spans[one.path].largest) is None or last >= since]
    after = 0
    if wanted.until is not None and not wanted.out_of_order:
        after = _after([spans[one.path] for one in kept], wanted.until)
    later = {one.path for one in kept[len(kept) - after :]}
    if later and _is_in_order([(one.path in later, spans[one.path]) for one in partition.segments]):
        kept = kept[: len(kept) - after]
        note(
            f"{partition.name}: {many(after, 'segment')} after --until {'was' if after == 1 else 'were'} skipped. "
            f"Later segments may have records with older timestamps: {OPTION} reads them too"
        )
    paths = {one.path for one in kept}
    for one in chosen:
        if one.path in paths:
            yield one
        else:
            skipped(one.size)


def _after(spans: Sequence[TimeSpan], until: int) -> int:
    count = 0
    for span in reversed(spans):
        if span.first is None or span.first < until:
            break
        count += 1
    return count


def _is_in_order(spans: Sequence[tuple[bool, TimeSpan]]) -> bool:
    """Return whether no segment is known to begin before the largest timestamp of the previous segment.

    ``spans`` has a pair for each segment: whether it may be skipped, and its times. For a segment that may be skipped,
    the result is also False if its first timestamp, or the largest timestamp of the previous segment, is unknown.
    """
    for (_, before), (is_later, span) in pairwise(spans):
        if before.largest is None or span.first is None:
            if is_later:
                return False
        elif span.first < before.largest:
            return False
    return True


def _spans(partition: Partition) -> Iterator[tuple[str, TimeSpan]]:
    """Yield the path and the times of each segment. The last segment may grow: its largest time is None."""
    following = [*partition.segments[1:], None]
    for segment, after in zip(partition.segments, following, strict=True):
        head = _head(segment, after)
        largest = None if after is None else largest_timestamp(segment, after, head)
        yield segment.path, TimeSpan(None if head is None else head.first, largest)


def _head(segment: Segment, after: Segment | None) -> _Head | None:
    """Return the offset and the times of the first batch, or None if it or one of them cannot be used."""
    try:
        with segment.open() as source:
            data = source.read(0, BATCH_HEADER.size)
    except UnreadableError:  # the reader of the segment reports it
        return None
    if len(data) < BATCH_HEADER.size:
        return None
    header = BATCH_HEADER.read(data)
    fits = BATCH_HEADER.size <= LOG_OVERHEAD.size + header.length <= segment.size
    if header.magic != MAGIC_2 or not fits or not _is_of(segment, after, header.base_offset):
        return None
    if header.attributes & DELETE_HORIZON_FLAG:  # the base timestamp is the delete horizon
        return None
    by_broker = bool(header.attributes & TIMESTAMP_TYPE_FLAG)
    first = header.max_timestamp if by_broker else header.base_timestamp
    return _Head(header.base_offset, first, header.max_timestamp)


def _is_of(segment: Segment, after: Segment | None, offset: int) -> bool:
    base = segment.base_offset
    if base is None or offset < base:
        return False
    return after is None or after.base_offset is None or offset < after.base_offset


def largest_timestamp(segment: Segment, after: Segment, head: _Head | None = None) -> int | None:
    """Return the last timestamp of a closed segment's time index; None if that is unusable or contradicts the log.

    A broker appends the largest timestamp when it closes a segment, so the index of the active segment is incomplete.
    """
    try:
        data = segment.sibling(TIME_INDEX)
    except UnreadableError:  # the log is read without it
        return None
    if not data or segment.base_offset is None:
        return None
    index = TimeIndex(data, segment.base_offset)
    if index.ragged or index.zero_tail or not index.rises():
        return None
    timestamp, offset = index[len(index) - 1]
    if timestamp < 0 or not _is_of(segment, after, offset):
        return None
    if head is not None and (head.largest > timestamp or head.base_offset > offset):
        return None
    is_whole = after is not None and after.base_offset is not None and after.base_offset <= offset + 1
    return timestamp if is_whole or not _has_later(segment, timestamp) else None


def _has_later(segment: Segment, timestamp: int) -> bool:
    """Return whether batches after the last offset index entry are later than ``timestamp``, or cannot be read.

    A broker writes the last entry of a time index when it rolls the segment. A truncated index lacks it.
    """
    try:
        with segment.open() as source:
            start = log_end.last_indexed(segment, source)
            regions = walk.walk(source, start, limit=segment.limit, runs=DATA)
            return any(not isinstance(one, Batches) or one.greatest("max_timestamp") > timestamp for one in regions)
    except UnreadableError:  # the reader of the segment reports it
        return True
