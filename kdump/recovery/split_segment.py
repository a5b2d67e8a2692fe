"""Splits a segment with an offset too far above its base offset, as a broker does.

The batches go unchanged into segments that each begin with the first batch that the one before could not take. Then
the broker begins to load the log again. Sources: Kafka's classes LogLoader (``retryOnOffsetOverflow``), LocalLog
(``splitOverflowedSegment``) and LogSegment (``appendFromFile``) as of 4.2; KAFKA-6264.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdump.errors import DamageError
from kdump.formats.sparse_index import MAX_RELATIVE_OFFSET
from kdump.log_dirs.file_names import INDEX, TIME_INDEX
from kdump.log_dirs.partition import Segment
from kdump.records.record_batch import RecordBatch
from kdump.segments.regions import Damage
from kdump.segments.walk import walk

if TYPE_CHECKING:
    from kdump.log_dirs.files import OpenSource


class OffsetOverflowError(Exception):
    """A segment holds an offset that does not fit: ``indexed`` is where the last entry of its new index points to."""

    def __init__(self, segment: Segment, position: int, offset: int, indexed: int) -> None:
        begins = f"a segment that begins at {segment.base_offset or 0}"
        super().__init__(f"{at(segment, position)}: offset {offset} does not fit into {begins}")
        self.segment, self.indexed = segment, indexed


class RefusedError(Exception):
    """The broker cannot split the segment ``file``, and throws."""

    def __init__(self, text: str, file: str) -> None:
        super().__init__(text)
        self.file = file


class SplitPart(Segment):
    """A segment that a split made: the bytes of a file from ``start`` on. It has an index without entries."""

    __slots__ = ()

    def open(self) -> OpenSource:
        """Open that part of the file. Raises UnreadableError."""
        return SegmentSlice(Segment.open(self), self.start, self.size)

    def sibling(self, suffix: str) -> bytes | None:
        """Return ``b""`` for a sibling that exists, else None."""
        return b"" if suffix in self.siblings else None


class SegmentSlice:
    """Bytes of an open source, as a source of their own."""

    def __init__(self, source: OpenSource, start: int, size: int) -> None:
        self._source, self._start = source, start
        self.name, self.size, self.limit = source.name, size, source.limit

    def __enter__(self) -> OpenSource:
        self._source.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self._source.__exit__(*raised)

    def read(self, position: int, size: int) -> bytes:
        return self._source.read(self._start + position, max(0, min(size, self.size - position)))


def at(segment: Segment, position: int) -> str:
    """Return a place in a segment for people: the file as it is today, and the byte in it."""
    return f"{segment.name}, byte {segment.start + position}"


def split(error: OffsetOverflowError) -> list[SplitPart]:
    """Return the segments that a broker makes of the one with the offset that does not fit. Raises RefusedError."""
    whole, place = error.segment, str(error)
    if not _overflows(whole, error.indexed):
        text = f"{place}: the broker would try to split it, and fail, since the last offset is not too high"
        raise RefusedError(text, whole.name)
    parts: list[SplitPart] = []
    start, base = 0, -1
    with whole.open() as source:
        for region in walk(source):
            if not isinstance(region, RecordBatch):
                where = at(whole, region.position)
                text = f"{place}: the broker would try to split it, and fail at what is no batch ({where})"
                raise RefusedError(text, whole.name)
            if base >= 0 and 0 <= region.last_offset - base <= MAX_RELATIVE_OFFSET:
                continue
            if base >= 0:
                parts.append(_part(whole, start, region.position, base))
            try:
                start, base = region.position, region.base_offset
            except DamageError as damage:
                raise RefusedError(f"{at(whole, region.position)}: {damage.reason}", whole.name) from None
            if base < 0 or not 0 <= region.last_offset - base <= MAX_RELATIVE_OFFSET:
                where = at(whole, region.position)
                text = f"{place}: the broker would try to split it, and fail at the batch of {where}"
                raise RefusedError(text, whole.name)
        parts.append(_part(whole, start, whole.size, base))
    return parts


def _part(whole: Segment, start: int, end: int, base: int) -> SplitPart:
    siblings = {INDEX: "", TIME_INDEX: ""}
    return SplitPart(whole.files, whole.path, end - start, base, siblings, limit=whole.limit, start=whole.start + start)


def _overflows(segment: Segment, indexed: int) -> bool:
    """Return whether the last offset does not fit, which is what a broker asks before it splits (``hasOverflow``).

    It reads from the last entry of the index that it was building, and finds nothing where all offsets lie below it.
    """
    base = segment.base_offset or 0
    last, found = base - 1, False
    with segment.open() as source:
        for region in walk(source, indexed):
            if isinstance(region, Damage):
                raise RefusedError(f"{at(segment, region.at)}: {region.reason}", segment.name)
            if isinstance(region, RecordBatch):
                last = region.last_offset
                found = found or indexed > 0 or last >= base
    return found and last - base > MAX_RELATIVE_OFFSET
