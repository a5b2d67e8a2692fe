"""Simulates how a starting broker splits a segment that has an offset 2^31 or more above its base offset.

The broker copies the batches unchanged. It begins a new segment at each batch that does not fit into the previous one,
and finally loads the log again. Sources: Kafka's classes LogLoader (``retryOnOffsetOverflow``), LocalLog
(``splitOverflowedSegment``) and LogSegment (``appendFromFile``) as of 4.2; KAFKA-6264.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdump.errors import DamageError
from kdump.findings.codes import Code
from kdump.formats.sparse_index import MAX_RELATIVE_OFFSET
from kdump.log_dirs.file_names import INDEX, SWAP, TIME_INDEX
from kdump.log_dirs.partition import Segment
from kdump.records.record_batch import RecordBatch
from kdump.recovery.segment_end import FailsError, at
from kdump.segments.regions import Damage
from kdump.segments.walk import walk

if TYPE_CHECKING:
    from kdump.log_dirs.files import OpenSource

_FAILS = "the broker would try to split the segment and fail"


class OffsetOverflowError(Exception):
    """An offset does not fit into the new index of a segment. ``indexed`` is the position in the index's last entry."""

    def __init__(self, segment: Segment, position: int, offset: int, indexed: int) -> None:
        begins = f"a segment that begins at {segment.base_offset or 0}"
        super().__init__(f"{at(segment, position)}: offset {offset} does not fit into {begins}")
        self.segment, self.indexed = segment, indexed


def _refused(text: str, segment: Segment) -> FailsError:
    return FailsError(text, segment.name.removesuffix(f".{SWAP}"), Code.SPLIT_REFUSED)


class SplitPart(Segment):
    """A new segment of a split: a range of bytes of the old file, from ``start`` on. Its indexes are empty."""

    __slots__ = ()

    def open(self) -> OpenSource:
        return SegmentSlice(Segment.open(self), self.start, self.size)

    def sibling(self, suffix: str) -> bytes | None:
        return b"" if suffix in self.siblings else None


class SegmentSlice:
    """A range of bytes of an open file, as a file."""

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


def split(error: OffsetOverflowError) -> list[SplitPart]:
    """Return the new segments for the segment of ``error``. Raises FailsError if the broker cannot split it."""
    whole, place = error.segment, str(error)
    if not _overflows(whole, error.indexed):
        text = f"{place}: {_FAILS}, because the last offset of the segment fits"
        raise _refused(text, whole)
    parts: list[SplitPart] = []
    start, base = 0, -1
    with whole.open() as source:
        for region in walk(source):
            if not isinstance(region, RecordBatch):
                where = at(whole, region.position)
                text = f"{place}: {_FAILS}, because no batch begins at {where}"
                raise _refused(text, whole)
            if base >= 0 and 0 <= region.last_offset - base <= MAX_RELATIVE_OFFSET:
                continue
            if base >= 0:
                parts.append(_part(whole, start, region.position, base))
            try:
                start, base = region.position, region.base_offset
            except DamageError as damage:
                raise _refused(f"{at(whole, region.position)}: {damage.reason}", whole) from None
            if base < 0 or not 0 <= region.last_offset - base <= MAX_RELATIVE_OFFSET:
                where = at(whole, region.position)
                text = f"{place}: {_FAILS}, because no segment can hold the batch at {where}"
                raise _refused(text, whole)
        parts.append(_part(whole, start, whole.size, base))
    return parts


def _part(whole: Segment, start: int, end: int, base: int) -> SplitPart:
    siblings = {INDEX: "", TIME_INDEX: ""}
    return SplitPart(whole.files, whole.path, end - start, base, siblings, limit=whole.limit, start=whole.start + start)


def _overflows(segment: Segment, indexed: int) -> bool:
    """Return whether the last offset does not fit (``hasOverflow``): only then does a broker split the segment.

    The broker reads from the last entry of the new index on. Without an entry it reads the whole segment; the result is
    then False if all offsets are below the base offset.
    """
    base = segment.base_offset or 0
    last, found = base - 1, False
    with segment.open() as source:
        for region in walk(source, indexed):
            if isinstance(region, Damage):
                raise _refused(f"{at(segment, region.at)}: {region.reason}", segment)
            if isinstance(region, RecordBatch):
                last = region.last_offset
                found = found or indexed > 0 or last >= base
    return found and last - base > MAX_RELATIVE_OFFSET
