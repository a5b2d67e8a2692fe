"""The recovery of one segment at a start: the offset after its last batch, and the loss if it is truncated.

Source: Kafka's class LogSegment (``readNextOffset``, ``translateOffset``) as of 4.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kdump.errors import DamageError
from kdump.formats.offset_index import OffsetIndex
from kdump.log_dirs import file_names
from kdump.records.record_batch import Batches
from kdump.recovery.split_segment import at
from kdump.segments import resync, walk
from kdump.segments.regions import DATA, Damage

if TYPE_CHECKING:
    from kdump.log_dirs.partition import Segment


class Cut(NamedTuple):
    """The bytes that one file would lose: ``size`` bytes, from ``position`` to its end.

    ``first_offset`` and ``last_offset`` span the offsets of the valid batches in it, ``records`` is their number; None
    and 0 where there are none.
    """

    file: str
    position: int
    size: int
    reason: str
    first_offset: int | None
    last_offset: int | None
    records: int
    code: str = "bad-batch"
    """A word for the reason: bad-batch, offsets-go-back, later-segment, swapped or start-beyond-end."""
    replaced_by: str | None = None
    """The ``.swap`` file that takes the place of these bytes."""
    superseded: int = 0
    """Of the records those that a compaction removes too: their key comes again later, or they are aborted."""
    is_replaced_by_nothing: bool = False
    """Whether the ``.swap`` file is empty."""


class FailsError(Exception):
    """The broker would throw, and not load the log: at ``file``, for the reason that ``code`` is the word for."""

    def __init__(self, text: str, file: str, code: str) -> None:
        super().__init__(text)
        self.file, self.code = file, code


def base_of(each: Segment) -> int:
    """Return the base offset in a segment's name, 0 without one."""
    return each.base_offset or 0


def lost(each: Segment, position: int, reason: str) -> Cut:
    """Return the loss when a segment is truncated at ``position``; it counts the valid batches after it."""
    first = last = None
    records = 0
    with each.open() as source:
        for region in resync.read(source, position, on_error="resync", runs=DATA):
            if isinstance(region, Batches):
                begin, end, count = _span(region)
                first = begin if first is None else min(first, begin)
                last = end if last is None else max(last, end)
                records += count
    return Cut(each.name, each.start + position, each.size - position, reason, first, last, records)


def _span(region: Batches) -> tuple[int, int, int]:
    """Return the first offset, the last one and the number of records."""
    if region.first.count is not None:
        return region.least("base_offset"), region.greatest("last_offset"), sum(region.column("records_count"))
    try:
        offsets = [record.offset for record in region.first.records()]
    except DamageError:
        return region.last_offset, region.last_offset, 1
    return offsets[0], region.last_offset, len(offsets)


def indexed_at(each: Segment, offset: int) -> int:
    """Return where a look-up of ``offset`` in the segment's own index begins to read."""
    data = each.sibling("index")
    return _position(each, OffsetIndex(data, base_of(each)).lookup(offset).position) if data else 0


def _position(each: Segment, position: int) -> int:
    """Return a position that an index names. A broker throws where it is negative."""
    if position >= 0:
        return position
    name = each.files.shown(each.siblings[file_names.INDEX])
    text = f"{name}: an entry has the position {position} (IllegalArgumentException)"
    raise FailsError(text, name, "index-unreadable")


def read_next_offset(each: Segment, searches_bases: bool) -> int | None:
    """Return the offset after the last batch as ``LogSegment.readNextOffset`` reads it.

    It reads from the newest entry of the index on. None: it finds nothing there, and takes the base offset.
    """
    data = each.sibling(file_names.INDEX) or b""
    index = OffsetIndex(data, base_of(each))
    target = index[index.count - 1].offset if index.count else base_of(each)
    position = _position(each, index.lookup(target, among=index.count).position)
    found, next_offset = False, 0
    searched = "base_offset" if searches_bases else "last_offset"
    with each.open() as source:
        for region in walk.walk(source, position, runs=DATA):
            if isinstance(region, Batches):
                try:
                    highest = region.greatest(searched)
                except DamageError as damage:  # to ask for its base offset decompresses a wrapper
                    text = f"{at(each, region.position)}: {damage.reason}"
                    raise FailsError(text, each.name, "log-unreadable") from None
                found = found or highest >= target
                next_offset = region.last_offset + 1
            elif isinstance(region, Damage):
                raise FailsError(f"{at(each, region.at)}: {region.reason}", each.name, "record-size")
    return next_offset if found or next_offset > target else None
