"""Finds the byte range of a segment that holds certain offsets or times, by its indexes.

An offset index entry is used only if a valid batch starts at its position, with a base offset up to the entry's. A time
index entry is used only if its timestamp is the largest of the batch with its offset. Entries must rise. Otherwise the
problem is reported, and the segment is read from its start. Other entries are not compared with the log.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from typing import TYPE_CHECKING, Final

from kdump.errors import DamageError, UnreadableError
from kdump.formats import record_layout
from kdump.formats.offset_index import OffsetIndex, OffsetPosition
from kdump.formats.time_index import TimeIndex
from kdump.log_dirs.file_names import TIME_INDEX
from kdump.records.record_batch import RecordBatch
from kdump.segments import resync, walk
from kdump.segments.regions import Range

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdump.log_dirs.files import Source
    from kdump.log_dirs.partition import Segment

SMALL: Final = 1 << 18
"""Size in bytes up to which a segment is read whole, without its indexes."""


class WrongIndexError(Exception):
    """An index entry contradicts the log. It is raised and caught in this module only."""


class Seeker:
    """Finds ranges of one open segment. ``wrong`` is called with a sentence about each problem that it meets."""

    def __init__(self, where: Segment, source: Source, wrong: Callable[[str], None]) -> None:
        self._where = where
        self._source = source
        self._wrong = wrong

    @cached_property
    def offset_index(self) -> OffsetIndex | None:
        """The index; None for an unreadable or empty file, a small or unnamed segment. Of a wrong size: no entries."""
        base = self._where.base_offset
        data = None if base is None or self._source.size <= SMALL else self._beside("index")
        if base is None or not data:
            return None
        index = OffsetIndex(data, base)
        if index.ragged:
            self._wrong(
                f"{self._where.siblings['index']}: its size of {index.size} bytes is not a multiple of 8 (an entry)"
            )
            return OffsetIndex(b"", base)
        return index

    def by_offset(self, first: int | None, last: int | None) -> Range:
        """Return a byte range that holds the offsets ``first`` to ``last`` (inclusive). None means no bound."""
        index = self.offset_index
        if index is None:
            return Range()
        try:
            start = 0 if first is None else self._position(index, first)
            end = None if last is None else self._after(index, last)
        except WrongIndexError as reason:
            self._wrong(str(reason))
            return Range()
        return Range(start, None if end is not None and end <= start else end)

    def by_position(self, position: int) -> int:
        """Return the position of the last index entry up to ``position`` (bytes); 0 if there is none or it is wrong."""
        index = self.offset_index
        if index is None:
            return 0
        slot = bisect_right(range(len(index)), position, key=lambda slot: index[slot].position) - 1
        if slot < 0:
            return 0
        try:
            self._check(index, slot, index[slot])
        except WrongIndexError as reason:
            self._wrong(str(reason))
            return 0
        return index[slot].position

    def by_time(self, since: int) -> Range | None:
        """Return the byte range that by the indexes has all records from ``since`` (ms) on; None only if none exist."""
        offsets = self.offset_index
        data = self._beside(TIME_INDEX)
        base = self._where.base_offset
        if offsets is None or data is None or base is None or not data:
            return Range()
        times = TimeIndex(data, base)
        path = self._where.siblings[TIME_INDEX]
        try:
            if times.ragged:
                raise WrongIndexError(
                    f"{path}: its size of {times.size} bytes is not a multiple of {times.layout.size} (an entry)"
                )
            before = (-1, base - 1)
            for entry in times:
                if entry.timestamp <= before[0] or entry.offset <= before[1]:
                    raise WrongIndexError(f"{path}: its entries are not in order: {entry} follows {before}")
                before = entry
            slot = times.slot_for(since - 1)
            if slot is None:
                return Range()
            entry = times[slot]
            start = self._batch_of(offsets, entry.offset)
            if start is None or start.max_timestamp != entry.timestamp:
                found = (
                    "no batch has this offset" if start is None else f"the batch has timestamp {start.max_timestamp}"
                )
                raise WrongIndexError(
                    f"{path}: entry {slot} has timestamp {entry.timestamp} for offset {entry.offset}, but {found}"
                )
            closed = slot == len(times) - 1 and not times.zero_tail
            if closed and not self._later(start.end, since):
                return None
            return Range(start.end)
        except WrongIndexError as reason:
            self._wrong(str(reason))
            return Range()

    def _beside(self, suffix: str) -> bytes | None:
        try:
            return self._where.sibling(suffix)
        except UnreadableError as error:
            self._wrong(str(error))
            return None

    def _position(self, index: OffsetIndex, offset: int) -> int:
        """Return the position in the last entry up to ``offset``, or 0. Raises WrongIndexError."""
        slot = index.slot_for(offset)
        if slot is None:
            return 0
        self._check(index, slot, index[slot])
        return index[slot].position

    def _after(self, index: OffsetIndex, offset: int) -> int | None:
        """Return the position of an indexed batch that starts after ``offset``, or None.

        An entry may have the last offset of its batch. So an entry above ``offset`` may be of a batch that starts at or
        below ``offset``; the next entry (without an entry up to ``offset``, the next two) is then tried.
        """
        slot = index.slot_for(offset)
        for above in range(0 if slot is None else slot + 1, min(len(index), (slot or 0) + 3)):
            batch = self._check(index, above, index[above])
            if batch.base_offset > offset:
                return index[above].position
        return None

    def _check(self, index: OffsetIndex, slot: int, entry: OffsetPosition) -> RecordBatch:
        """Return the batch at an entry's position. Raises WrongIndexError if there is none or the entry is wrong."""
        path = self._where.siblings["index"]
        batch = self._batch(entry.position)
        if batch is None:
            raise WrongIndexError(f"{path}: entry {slot} points at byte {entry.position}, where no valid batch starts")
        try:
            base = batch.base_offset
        except DamageError:
            base = entry.offset + 1
        if base > entry.offset:
            raise WrongIndexError(
                f"{path}: entry {slot} has offset {entry.offset} for byte {entry.position}, but the batch there starts"
                f" at offset {base}"
            )
        if slot and index[slot - 1].position >= entry.position:
            raise WrongIndexError(f"{path}: the positions of entries {slot - 1} and {slot} do not increase")
        return batch

    def _batch(self, position: int) -> RecordBatch | None:
        head = self._source.read(position, record_layout.LOG_OVERHEAD.size) if position >= 0 else b""
        if len(head) < record_layout.LOG_OVERHEAD.size:
            return None
        end = position + record_layout.LOG_OVERHEAD.size + record_layout.LOG_OVERHEAD.read(head).size
        region = next(resync.read(self._source, position, end), None)
        return region if isinstance(region, RecordBatch) else None

    def _batch_of(self, index: OffsetIndex, offset: int) -> RecordBatch | None:
        start = self._position(index, offset)
        for region in resync.read(self._source, start):
            if not isinstance(region, RecordBatch) or region.last_offset >= offset:
                return region if isinstance(region, RecordBatch) and region.base_offset <= offset else None
        return None

    def _later(self, position: int, since: int) -> bool:
        """Return whether batches from ``position`` on may have records at ``since`` (ms) or later; True for damage."""
        for region in walk.walk(self._source, position):
            if isinstance(region, RecordBatch) and region.max_timestamp < since:
                continue
            return True
        return False
