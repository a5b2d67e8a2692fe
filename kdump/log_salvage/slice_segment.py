"""Copies the batches with offsets of a range to one new segment file. Their bytes and checksums stay the same."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from kdump.errors import DamageError
from kdump.output import files
from kdump.output.access import ANY
from kdump.primitives.wire import INT64_END
from kdump.records.record_batch import Batches, RecordBatch
from kdump.segments import resync
from kdump.segments.log_end import damage_of
from kdump.segments.regions import DATA, Damage, Trailing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kdump.log_dirs.partition import Segment
    from kdump.output.access import Access


class Slice(NamedTuple):
    """A written slice: first and last offset of its first batch and of its last batch, and the number of batches."""

    first: tuple[int, int]
    last: tuple[int, int]
    batches: int


class SliceRange(NamedTuple):
    """A range of offsets from ``first`` to ``last``, both included. None means no bound."""

    first: int | None
    last: int | None

    def may_hold(self, segment: Segment, after: Segment | None) -> bool:
        """Return whether a segment may have offsets of the range, by its name and that of the next one (``after``)."""
        end = None if after is None else after.base_offset
        if self.first is not None and end is not None and end <= self.first:
            return False
        return self.last is None or (segment.base_offset or 0) <= self.last

    def may_have_lost(self, damage: Damage) -> bool:
        missing = damage.missing
        if missing is None:
            return True
        return (self.first is None or missing.stop > self.first) and (self.last is None or missing.start <= self.last)

    def rows(self, batches: Batches) -> list[int]:
        """Return the numbers of the batches that have offsets of the range."""
        bases = batches.column("base_offset") if batches.batch_count > 1 else (_first(batches.first),)
        spans = zip(bases, batches.column("last_offset"), strict=True)
        first, last = self.first, self.last
        return [
            row
            for row, (base, end) in enumerate(spans)
            if (first is None or end >= first) and (last is None or base <= last)
        ]


class _NothingError(Exception):
    """No batch has an offset of the range."""


def write(
    segments: Sequence[Segment],
    wanted: SliceRange,
    out: str,
    lost: Callable[[Segment, Damage], None],
    access: Access = ANY,
    note: Callable[[str], None] = lambda _: None,
) -> Slice | None:
    """Write the batches with offsets of the range to a new file ``out``. If there are none, write no file, return None.

    ``lost`` receives damage that may have had such offsets, ``note`` messages on leftover files of killed processes.
    Raises UsageError if ``out`` exists, UnreadableError if a segment cannot be read or ``out`` cannot be written.
    """
    first: tuple[int, int] | None = None
    count, last = 0, (0, 0)
    with suppress(_NothingError), files.new_file(out, access=access, note=note) as file:
        for region in _batches(segments, wanted, lost):
            first = first or (_first(region.first), region.first.last_offset)
            last = _first(region.last), region.last_offset
            count += region.batch_count
            file.write(region.raw)
        if first is None:
            raise _NothingError
    return None if first is None else Slice(first, last, count)


def _batches(
    segments: Sequence[Segment], wanted: SliceRange, lost: Callable[[Segment, Damage], None]
) -> Iterator[Batches]:
    """Yield the batches with offsets of the range. A run is yielded whole if all its batches have such offsets."""
    for segment, after in zip(segments, [*segments[1:], None], strict=False):
        if not wanted.may_hold(segment, after):
            continue
        following, end = segment.base_offset or 0, INT64_END if after is None else after.base_offset
        for region in resync.of_segment(segment, DATA):
            if isinstance(region, Batches):
                following = region.last_offset + 1
                rows = wanted.rows(region)
                yield from (region,) if len(rows) == region.batch_count else map(region.batch, rows)
            elif isinstance(region, Damage | Trailing):
                damage = damage_of(segment, region)
                if damage is not None and isinstance(region, Trailing):
                    damage = damage._replace(missing_from=following, missing_until=end)
                if damage is not None and wanted.may_have_lost(damage):
                    lost(segment, damage)


def _first(batch: RecordBatch) -> int:
    try:
        return batch.base_offset
    except DamageError:
        return batch.last_offset
