"""What a broker knows of its segments when it looks for those to delete: from names, sizes and indexes alone.

Source: Kafka's class LogSegment (``largestTimestamp``). The largest timestamp of a segment is that of its last
``.timeindex`` entry. Batches count where a start of the broker reads them: those of a segment without an ``.index``,
and those of the active one after an unclean stop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from kdump.errors import UnreadableError
from kdump.formats.time_index import TimeIndex
from kdump.records.record_batch import Batches
from kdump.segments import walk
from kdump.segments.log_end import end_of_segment
from kdump.segments.regions import DATA

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.answers.collector import Place
    from kdump.log_dirs.partition import Segment

From: TypeAlias = Literal["timeindex", "mtime"]


class AgedSegment(NamedTuple):
    """A segment. ``next_offset`` is the base of the next one, of the last one the log end offset.

    ``largest`` is None where no timestamp counts and the place does not tell when the file was written.
    """

    base_offset: int
    next_offset: int
    size: int
    largest: int | None
    largest_from: From
    modified: int | None
    is_last: bool


class LogFacts(NamedTuple):
    """The segments of a partition, and its offsets; the high watermark is None where no checkpoint has it."""

    segments: tuple[AgedSegment, ...]
    log_start: int
    high_watermark: int | None


def log_facts(place: Place) -> LogFacts:
    """Return what the files of a partition say, but for the batches of its :func:`unclean_end`.

    Files that cannot be read go to ``place.fail``.
    """
    segments = tuple(_facts(place))
    first = segments[0].base_offset if segments else 0
    log_start = first if place.log_start is None else max(first, place.log_start)
    return LogFacts(segments, log_start, place.high_watermark)


def unclean_end(place: Place) -> Segment | None:
    """Return the active segment where its batches tell the largest timestamp: after an unclean stop."""
    segments = place.partition.segments
    return None if place.log_dir.clean or not segments else segments[-1]


def _facts(place: Place) -> Iterator[AgedSegment]:
    segments = place.partition.segments
    for number, segment in enumerate(segments):
        base, size = segment.base_offset or 0, segment.size
        is_last = number == len(segments) - 1
        next_offset = base if is_last else segments[number + 1].base_offset or 0
        largest = None
        try:
            if is_last:
                end = end_of_segment(segment)
                size = end.position
                next_offset = end.offset
            largest = None if segment is unclean_end(place) else _largest(segment)
        except UnreadableError as error:
            place.fail(error)
        source: From = "mtime" if largest is None else "timeindex"
        known = segment.modified if largest is None else largest
        yield AgedSegment(base, next_offset, size, known, source, segment.modified, is_last)


def _largest(segment: Segment) -> int | None:
    """Return the largest timestamp, None where the time of the last write counts. Raises UnreadableError."""
    largest = _last_indexed(segment) if "index" in segment.siblings else _last_written(segment)
    return None if largest < 0 else largest


def _last_written(segment: Segment) -> int:
    """Return the largest timestamp of the batches, -1 without one."""
    largest = -1
    with segment.open() as source:
        for region in walk.walk(source, limit=segment.limit, runs=DATA):
            if isinstance(region, Batches):
                largest = max(largest, region.greatest("max_timestamp"))
    return largest


def _last_indexed(segment: Segment) -> int:
    """Return the timestamp of the last entry as stored, -1 without one."""
    path = segment.siblings.get("timeindex")
    if path is None:
        return -1
    entry = TimeIndex.layout
    with segment.files.open(path) as index:
        count = index.size // entry.size
        data = index.read((count - 1) * entry.size, entry.size) if count else b""
    return entry.read(data).timestamp if len(data) == entry.size else -1
