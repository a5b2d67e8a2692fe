"""The valid batches of a partition with one replica, in one pass: usually they are in offset order."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from contextlib import closing
from itertools import pairwise
from typing import TYPE_CHECKING

from kdump.log_salvage.chains import BatchPlace, PlacesInARow, in_rows
from kdump.log_salvage.valid_batches import ahead, judged
from kdump.records.record_batch import Batches
from kdump.segments import resync
from kdump.segments.read_ahead import RevocableSource
from kdump.segments.regions import DATA

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from kdump.log_dirs.partition import Partition, Segment
    from kdump.log_salvage.chains import LeftOutRange
    from kdump.log_salvage.valid_batches import Account
    from kdump.segments.regions import Padding, Region


class OutOfOrderError(Exception):
    """An offset is not above all offsets before it: the replica takes two passes."""


def batches(
    copy: Partition, account: Account, progress: Callable[[int], None] = lambda _: None
) -> Generator[Batches, None, None]:
    """Yield the batches that :func:`kdump.log_salvage.merge.merge` places of a replica, as runs.

    The account gets the same entries; ``progress`` is called with the bytes read. Raises OutOfOrderError where batches
    are not in offset order: then the account is wrong.
    """
    if any(one.base_offset == other.base_offset for one, other in pairwise(copy.segments)):
        raise OutOfOrderError
    for each in copy.segments:
        held: deque[Batches] = deque()
        spans: list[tuple[int, int]] = []
        with closing(_regions(each)) as regions:
            for place, is_credible in judged(each, _rows(each, regions, held), account, progress):
                if place.position >= held[0].end:
                    yield from _cut(held.popleft(), spans)
                    spans.clear()
                if is_credible:
                    if account.last_offset is not None and place.base_offset <= account.last_offset:
                        raise OutOfOrderError
                    account.place(place)
                    spans.append((place.position, place.end))
            if held:
                yield from _cut(held.popleft(), spans)


def _regions(each: Segment) -> Generator[Region, None, None]:
    with each.open() as source:
        revocable = RevocableSource(source)
        regions = resync.read(revocable, on_error="resync", first_offset=each.base_offset, runs=DATA)
        yield from ahead(regions, source, revocable, source.size)


def _rows(
    each: Segment, regions: Iterable[Region], held: deque[Batches]
) -> Iterator[BatchPlace | PlacesInARow | LeftOutRange | Padding]:
    """Yield the places and ranges of a segment; ``held`` keeps regions with batches until these are judged."""
    for region in regions:
        rows = list(in_rows(each, [region]))
        if isinstance(region, Batches) and any(isinstance(row, (BatchPlace, PlacesInARow)) for row in rows):
            held.append(region)
        yield from rows


def _cut(region: Batches, spans: list[tuple[int, int]]) -> Iterator[Batches]:
    """Yield the batches of a region within ``spans``, positions in the file."""
    if region.size == sum([end - start for start, end in spans]):
        yield region
    else:
        starts = region.column("position")
        for start, end in spans:
            yield from map(region.batch, range(bisect_left(starts, start), bisect_left(starts, end)))
