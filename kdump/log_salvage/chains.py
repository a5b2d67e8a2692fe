"""Chains: the consecutive valid batches of a replica, for the merge of replicas (:mod:`.merge`).

A chain keeps offsets, counts and one checksum. If chains overlap and differ, their batches are read again and compared
one by one. The checksum also shows whether the file has changed since the first read.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from itertools import repeat
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

from kdump.errors import DamageError, UnreadableError
from kdump.formats.sparse_index import MAX_RELATIVE_OFFSET
from kdump.records import control
from kdump.records.record_batch import Batches, RecordBatch
from kdump.segments import resync
from kdump.segments.batch_runs import Run
from kdump.segments.regions import DATA, ENDS_INSIDE, Damage, Padding, Trailing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kdump.log_dirs.files import Source
    from kdump.log_dirs.partition import Segment
    from kdump.segments.regions import Region

CELL: Final = 1 << 16
"""The base offsets in a chain are between two multiples of this number, so that chains of replicas can be compared."""
WAITING: Final = 1 << 10
"""Approximate count of numbers (three per batch) that are collected before they go into the checksum of a chain."""
AT_ONCE: Final = 1 << 20
"""Approximate number of bytes of a chain that are in memory while its batches are compared one by one."""


class BatchPlace(NamedTuple):
    """The offsets of a valid batch, and its bytes, which end at ``end``. ``epoch``: leader epoch; -1 below magic 2."""

    base_offset: int
    last_offset: int
    epoch: int
    crc: int
    position: int
    size: int
    segment: Segment

    @property
    def end(self) -> int:
        return self.position + self.size


class PlacesInARow(NamedTuple):
    """The offsets and positions of consecutive batches of a run. Their offsets increase."""

    base_offset: int
    last_offset: int
    position: int
    end: int
    batches: int
    columns: tuple[array[int], array[int], array[int], array[int]]
    """First offsets, last offsets, leader epochs and checksums."""
    segment: Segment
    run: Run
    row: int
    """The number of the first batch in the batch run."""

    @property
    def size(self) -> int:
        return self.end - self.position

    def places(self) -> Iterator[BatchPlace]:
        rows = self.row, self.row + self.batches
        layout = self.run.column("position", *rows), self.run.column("size", *rows)
        return map(BatchPlace, *self.columns, *layout, repeat(self.segment))


END_OF_LOG: Final = "end of log"
"""The ``kind`` of a truncated batch at the end of a segment."""


class LeftOutRange(NamedTuple):
    """Bytes of a copy that are not in the merged log. ``missing_until`` is exclusive; unknown offsets are None."""

    segment: Segment
    position: int
    size: int
    kind: str
    reason: str
    missing_from: int | None = None
    missing_until: int | None = None

    @property
    def end(self) -> int:
        return self.position + self.size


class MissingOffsets:
    """Ranges of offsets that no batch of a chain or a merged log has, in the order in which they were added."""

    def __init__(self) -> None:
        self._ends = array("q")

    def __len__(self) -> int:
        return len(self._ends) // 2

    def __iter__(self) -> Iterator[range]:
        return map(range, self._ends[::2], self._ends[1::2])

    def between(self, last: int, base: int) -> None:
        if base > last + 1:
            self._ends.extend((last + 1, base))

    def within(self, places: PlacesInARow) -> None:
        bases, lasts, *_ = places.columns
        if sum(lasts) - sum(bases) + places.batches == places.last_offset - places.base_offset + 1:
            return
        for last, base in zip(lasts, bases[1:], strict=False):
            if base > last + 1:
                self._ends.extend((last + 1, base))

    def add(self, others: MissingOffsets) -> None:
        self._ends.extend(others._ends)


class Chain:
    """Consecutive batches of a segment with increasing offsets, which begin in one CELL."""

    __slots__ = ("_sum", "_waiting", "base_offset", "count", "end", "gaps", "last_offset", "position", "segment")

    def __init__(self, first: BatchPlace | PlacesInARow) -> None:
        self.segment = first.segment
        self.position = self.end = first.position
        self.base_offset = first.base_offset
        self.last_offset = first.base_offset - 1
        self.count = 0
        self.gaps = MissingOffsets()
        self._sum = 0
        self._waiting = array("q")
        self.extend(first)

    @property
    def size(self) -> int:
        return self.end - self.position

    def goes_on(self, place: BatchPlace | PlacesInARow) -> bool:
        """Return whether batches continue the chain: they follow directly, and begin at a higher offset in its CELL."""
        follows = self.segment is place.segment and self.end == place.position
        return follows and place.base_offset > self.last_offset and place.base_offset < _end_of_cell(self.base_offset)

    def extend(self, place: BatchPlace | PlacesInARow) -> None:
        self.gaps.between(self.last_offset, place.base_offset)
        if isinstance(place, BatchPlace):
            self._waiting.extend((place.base_offset, place.epoch, place.crc))
            self.count += 1
        else:
            bases, _, *others = place.columns
            numbers = array("q", bytes(3 * bases.itemsize * place.batches))
            numbers[::3], numbers[1::3], numbers[2::3] = bases, *others
            self._waiting += numbers
            self.count += place.batches
            self.gaps.within(place)
        if len(self._waiting) > WAITING:
            self._add_up()
        self.last_offset, self.end = place.last_offset, place.end

    def _add_up(self) -> int:
        """Return a checksum of the first offsets, leader epochs and CRCs of all batches."""
        if self._waiting:
            self._sum = crc32(self._waiting, self._sum)
            self._waiting = array("q")
        return self._sum

    def is_like(self, other: Chain) -> bool:
        """Return whether another chain has the same batches."""
        return self._numbers == other._numbers

    @property
    def _numbers(self) -> tuple[object, ...]:
        return self.base_offset, self.last_offset, self.size, self.count, self._add_up()

    def regions(self, source: Source) -> Iterator[Batches]:
        """Read the batches again; yield them singly or in batch runs. Raises UnreadableError if they have changed."""
        seen: list[Chain] = []
        for region in resync.read(source, self.position, self.end, on_error="stop", runs=DATA):
            yield self._seen(region, seen)
        self._make_sure(seen)

    def places(self) -> Iterator[BatchPlace]:
        """Read the batches again, about 1 MiB at a time; yield their places. Raises UnreadableError if they changed."""
        seen: list[Chain] = []
        at = self.position
        while at < self.end:
            held: list[Batches] = []
            with self.segment.open() as source:
                for region in resync.read(source, at, self.end, on_error="stop", runs=DATA):
                    held.append(self._seen(region, seen))
                    if seen[0].end - at >= AT_ONCE:
                        break
            if not held:
                raise changed(self.segment, at)
            at = seen[0].end
            for place in places(self.segment, held):
                if isinstance(place, BatchPlace):
                    yield place
        self._make_sure(seen)

    def _seen(self, region: Region, seen: list[Chain]) -> Batches:
        """Return a region that was read again, and add it to ``seen``. Raises UnreadableError if the file changed."""
        if isinstance(region, Run) and region.rises:
            link(seen, row_of(self.segment, region, 0, region.batch_count))
        else:
            for place in places(self.segment, [region]):
                if not isinstance(place, BatchPlace):
                    raise changed(self.segment, place.position)
                link(seen, place)
        if len(seen) > 1 or not isinstance(region, Batches):
            raise changed(self.segment, seen[-1].position)
        return region

    def _make_sure(self, seen: list[Chain]) -> None:
        if not (seen and seen[0].is_like(self)):
            raise changed(self.segment, self.position)


def changed(segment: Segment, position: int) -> UnreadableError:
    where = f"byte {position}: the file has changed since kdump first read it"
    return UnreadableError(segment.name, where, "salvage a copy that no process writes to")


def link(chains: list[Chain], place: BatchPlace | PlacesInARow) -> None:
    """Add batches to the last chain of ``chains`` if they continue it, else append a new chain."""
    if chains and chains[-1].goes_on(place):
        chains[-1].extend(place)
    else:
        chains.append(Chain(place))


def in_rows(each: Segment, regions: Iterable[Region]) -> Iterator[BatchPlace | PlacesInARow | LeftOutRange | Padding]:
    """Like :func:`places`, but a run with rising offsets has, between its first and last batch, one item per CELL."""
    for region in regions:
        if isinstance(region, Run) and region.batch_count > 2 and region.rises:
            yield from places(each, [region.batch(0)])
            yield from _rows_of(each, region)
            yield from places(each, [region.batch(region.batch_count - 1)])
        else:
            yield from places(each, [region])


def _rows_of(each: Segment, run: Run) -> Iterator[PlacesInARow]:
    bases, row = run.column("base_offset"), 1
    while row < run.batch_count - 1:
        end_row = bisect_left(bases, _end_of_cell(bases[row]), row, run.batch_count - 1)
        yield row_of(each, run, row, end_row)
        row = end_row


def _end_of_cell(offset: int) -> int:
    return (offset // CELL + 1) * CELL


def row_of(each: Segment, run: Run, row: int, end_row: int) -> PlacesInARow:
    """Return the places of the batches ``row`` to ``end_row`` (exclusive) of a run whose offsets increase."""
    names = ("base_offset", "last_offset", "partition_leader_epoch", "crc")
    bases, lasts, epochs, crcs = (run.column(name, row, end_row) for name in names)
    start, end = run.field("position", row), run.field("position", end_row - 1) + run.field("size", end_row - 1)
    return PlacesInARow(bases[0], lasts[-1], start, end, end_row - row, (bases, lasts, epochs, crcs), each, run, row)


def places(each: Segment, regions: Iterable[Region]) -> Iterator[BatchPlace | LeftOutRange | Padding]:
    """Yield the places of batches, padding, and a LeftOutRange for damage, truncated batches and unusable batches."""
    for region in regions:
        if isinstance(region, Batches):
            yield from _places(each, region)
        elif isinstance(region, Damage):
            yield LeftOutRange(
                each,
                region.position,
                region.size,
                region.kind,
                region.reason,
                region.missing_from,
                region.missing_until,
            )
        elif isinstance(region, Trailing):
            yield LeftOutRange(each, region.position, region.size, END_OF_LOG, ENDS_INSIDE)
        elif isinstance(region, Padding):
            yield region


def _places(each: Segment, batches: Batches) -> Iterator[BatchPlace | LeftOutRange]:
    if batches.batch_count > 1:
        names = ("base_offset", "last_offset", "partition_leader_epoch", "crc", "position", "size")
        columns = [batches.column(name) for name in names]
        if min(columns[0]) >= 0 and all(map(_fits, *columns[:2])):
            yield from map(BatchPlace, *columns, repeat(each))
            return
    for batch in batches.batches():
        yield _place(each, batch)


def _fits(base: int, last: int) -> bool:
    """Return whether a segment can hold a batch with these offsets."""
    return 0 <= last - base <= MAX_RELATIVE_OFFSET


def _place(each: Segment, region: RecordBatch) -> BatchPlace | LeftOutRange:
    """Return the place of a valid batch or, if a broker cannot use it, a LeftOutRange with the reason."""
    try:
        base, last = region.base_offset, region.last_offset
        if region.magic == 0:  # inner offsets are absolute; no checksum covers the wrapper's
            *_, inner = region.records()
            last = inner.offset
        if region.is_control and (region.producer_id or 0) >= 0:
            for record in region.records():
                if control.read_key(record.key).type in control.MARKERS:
                    control.read_marker(record.value)
    except DamageError as damage:
        return LeftOutRange(
            each,
            region.position,
            region.size,
            damage.kind,
            f"the CRC is correct, but the batch cannot be read: {damage.reason}",
            region.last_offset,
            region.last_offset + 1,
        )
    if base < 0 or last != region.last_offset or not _fits(base, last):
        return LeftOutRange(
            each,
            region.position,
            region.size,
            "offset",
            f"the offsets of the batch are invalid: {base} to {region.last_offset}",
        )
    return BatchPlace(base, region.last_offset, region.leader_epoch, region.crc, region.position, region.size, each)
