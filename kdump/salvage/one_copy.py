"""The sound batches of a partition of which there is one copy, read once: as a rule they stand in order."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from contextlib import closing
from typing import TYPE_CHECKING

from kdump.records.record_batch import RecordBatch
from kdump.salvage.chains import PlacesInARow, in_rows
from kdump.salvage.merge import ahead, placed
from kdump.segments import read
from kdump.segments.batch_runs import Run, of_data
from kdump.segments.read_ahead import Leash

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from kdump.log_dirs.partition import Partition, Segment
    from kdump.salvage.merge import Account
    from kdump.segments.regions import Region


class OutOfOrderError(Exception):
    """An offset is not above all that stand before it: the copy takes two passes."""


def batches(copy: Partition, account: Account) -> Generator[RecordBatch | Run, None, None]:
    """Yield what :func:`kdump.salvage.merge.merge` places of a copy, data that are alike in one go.

    Tells the account the same. Raises OutOfOrderError where batches do not stand in order: then the account is wrong.
    """
    for each in copy.segments:
        held: deque[RecordBatch | Run] = deque()
        spans: list[tuple[int, int]] = []
        with closing(_regions(each)) as regions:
            for place in placed(each, in_rows(each, _hold(regions, held)), account):
                if account.last_offset is not None and place.base_offset <= account.last_offset:
                    raise OutOfOrderError
                account.placed(place.base_offset, place.last_offset)
                if isinstance(place, PlacesInARow):
                    account.gaps.within(place)
                while place.position >= held[0].end:
                    yield from _cut(held.popleft(), spans)
                    spans.clear()
                spans.append((place.position, place.end))
            for region in held:
                yield from _cut(region, spans)
                spans.clear()


def _regions(each: Segment) -> Generator[Region | Run, None, None]:
    with each.open() as source:
        leash = Leash(source)
        regions = read.read_runs(leash, on_error="resync", first_offset=each.base_offset)
        yield from ahead(regions, source, leash, source.size)


def _hold(regions: Iterable[Region | Run], held: deque[RecordBatch | Run]) -> Iterator[Region | Run]:
    """Yield regions; batches are held until it is known which of them are placed."""
    for region in of_data(regions):
        if isinstance(region, (Run, RecordBatch)):
            held.append(region)
        yield region


def _cut(region: RecordBatch | Run, spans: list[tuple[int, int]]) -> Iterator[RecordBatch | Run]:
    """Yield the batches of a region that stand in ``spans`` of the file."""
    if region.size == sum([end - start for start, end in spans]):
        yield region
    elif isinstance(region, Run):
        starts = region.column("position")
        for start, end in spans:
            yield region.part(bisect_left(starts, start), bisect_left(starts, end))
