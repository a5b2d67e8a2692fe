"""The sound batches of one partition, had from one or more damaged copies of it, in the order of their offsets.

Two passes: the first finds each copy's sound batches and keeps where they stand (some 100 bytes per batch), then they
are put in order. What is there twice is taken once. Where batches overlap, the higher leader epoch wins, then the copy
that was named first: as after an election. A batch whose offset its neighbours in the file contradict is not placed:
nothing guards the offset of a magic 2 batch.
"""

from __future__ import annotations

from itertools import pairwise, repeat
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.errors import DamageError, UnreadableError
from kdump.formats.sparse_index import MAX_RELATIVE_OFFSET
from kdump.records import control
from kdump.records.record_batch import RecordBatch
from kdump.segments import read
from kdump.segments.batch_runs import Run
from kdump.segments.regions import Damage, Padding, Trailing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kdump.log_dirs.partition import Partition, Segment
    from kdump.segments.regions import Region

UNREADABLE: Final = "unreadable"
"""The kind of what is lost since the file could not be read, or not to its end."""


class BatchPlace(NamedTuple):
    """A sound batch: its offsets, and where it stands. ``epoch`` is its leader epoch, -1 in magic 0 and 1."""

    base_offset: int
    last_offset: int
    epoch: int
    crc: int
    position: int
    size: int
    segment: Segment


class LeftOutRange(NamedTuple):
    """Bytes of a copy that are not in the merged log.

    The offsets from ``missing_from`` to before ``missing_until`` are lost with them, as far as they are known.
    """

    segment: Segment
    position: int
    size: int
    kind: str
    reason: str
    missing_from: int | None = None
    missing_until: int | None = None


class Merged(NamedTuple):
    """What was had back: ``placed`` in offset order, ``lost`` in the order of copies, and the gaps that are left."""

    placed: list[BatchPlace]
    lost: list[LeftOutRange]
    gaps: list[range]
    duplicates: int
    padding: int


def merge(copies: Iterable[Partition]) -> Merged:  # noqa: C901, PLR0912  one case per contradiction
    """Put the sound batches of all copies in order. What cannot be read is among the lost."""
    found_places: list[BatchPlace] = []
    lost: list[LeftOutRange] = []
    padding = 0
    for copy in copies:
        for each in copy.segments:
            found: list[BatchPlace] = []
            met: list[BatchPlace | LeftOutRange | Padding] = []
            try:
                _read(each, met)
            except UnreadableError as error:  # a disk that dies: what was read of it counts, and so do other copies
                end = met[-1].position + met[-1].size if met else 0
                met.append(LeftOutRange(each, end, each.size - end, UNREADABLE, error.reason))
            for one in met:
                if isinstance(one, Padding):
                    padding += one.size
                elif isinstance(one, BatchPlace):
                    found.append(one)
                else:
                    lost.append(one)
            for before, place, behind in zip([None, *found], found, [*found[1:], None], strict=False):
                if _is_contradicted(before, place, behind):
                    lost.append(_lost(place, "misplaced", "its neighbours in the file contradict its offset"))
                else:
                    found_places.append(place)
    placed: list[BatchPlace] = []
    duplicates = 0
    for place in sorted(found_places, key=lambda place: (place.base_offset, -place.epoch)):
        last = placed[-1] if placed else None
        if last is None or place.base_offset > last.last_offset:
            placed.append(place)
        elif place[:4] == last[:4] and place.size == last.size:
            duplicates += 1
        elif place.epoch > last.epoch:
            lost.append(_lost(last, "conflict", f"{place.segment.name} has leader epoch {place.epoch} there"))
            placed[-1] = place  # the one before it ends below ``last``, which begins no later than this one
        else:
            lost.append(_lost(place, "conflict", f"{last.segment.name} has offsets up to {last.last_offset} there"))
    gaps = [
        range(one.last_offset + 1, other.base_offset)
        for one, other in pairwise(placed)
        if other.base_offset > one.last_offset + 1
    ]
    return Merged(placed, lost, gaps, duplicates, padding)


def _lost(place: BatchPlace, kind: str, reason: str) -> LeftOutRange:
    return LeftOutRange(
        place.segment, place.position, place.size, kind, reason, place.base_offset, place.last_offset + 1
    )


def _is_contradicted(before: BatchPlace | None, place: BatchPlace, behind: BatchPlace | None) -> bool:
    """Tell whether the batches before and behind in the file agree with each other, and not with this one."""
    if before is None or behind is None:
        return False
    if before.last_offset < place.base_offset and place.last_offset < behind.base_offset:
        return False
    return before.last_offset < behind.base_offset and place[:2] != before[:2]


def _read(each: Segment, found: list[BatchPlace | LeftOutRange | Padding]) -> None:
    """Append what stands in a segment to ``found``. Raises UnreadableError behind what could be read."""
    with each.open() as source:
        for one in places(each, read.read_runs(source, on_error="resync", first_offset=each.base_offset)):
            found.append(one)  # noqa: PERF402  what was met stays where the source fails


def places(each: Segment, regions: Iterable[Region | Run]) -> Iterator[BatchPlace | LeftOutRange | Padding]:
    """Yield where the batches stand that regions are, and what else there is."""
    for region in regions:
        if isinstance(region, Run):
            yield from _places_of_run(each, region)
        elif isinstance(region, RecordBatch):
            yield _place(each, region)
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
            yield LeftOutRange(each, region.position, region.size, "end of log", "the end of the file cuts a batch off")
        else:
            yield region


def _places_of_run(each: Segment, run: Run) -> Iterator[BatchPlace | LeftOutRange]:
    names = ("base_offset", "last_offset", "partition_leader_epoch", "crc", "position", "size")
    columns = [run.column(name) for name in names]
    if run.first.is_control or min(columns[0]) < 0 or not all(map(_fits, *columns[:2])):
        for batch in run.batches():
            yield _place(each, batch)
    else:
        yield from map(BatchPlace, *columns, repeat(each))


def _fits(base: int, last: int) -> bool:
    """Tell whether the offsets of a batch are such that a segment can hold it."""
    return 0 <= last - base <= MAX_RELATIVE_OFFSET


def _place(each: Segment, region: RecordBatch) -> BatchPlace | LeftOutRange:
    """Return where a batch stands, or why a broker could not live with it."""
    try:
        base, last = region.base_offset, region.last_offset
        if region.magic == 0:  # inner offsets are absolute: nothing guards the wrapper's, which is that of the last
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
            f"the crc is right, and it cannot be read: {damage.reason}",
            region.last_offset,
            region.last_offset + 1,
        )
    epoch = -1 if region.partition_leader_epoch is None else region.partition_leader_epoch
    if base < 0 or last != region.last_offset or not _fits(base, last):
        return LeftOutRange(
            each, region.position, region.size, "offset", f"it has offsets {base} to {region.last_offset}"
        )
    return BatchPlace(base, region.last_offset, epoch, region.crc, region.position, region.size, each)
