"""Merges the valid batches of the damaged replicas of a partition in offset order.

The first pass (:func:`merge`) stores the valid batches of each replica as chains, and puts the chains in order. The
second pass (:func:`batches`) reads them again. Duplicates are written once. If batches overlap, the batch with the
highest leader epoch is kept, as after an election. Then the lowest base offset decides, then the order of the replicas
on the command line. A single replica whose batches are in order needs only one pass (:func:`in_one_pass`).

No checksum covers the offset of a magic 2 batch. A batch is left out if it is out of order, but the batches before and
after it in its segment are in order. It is kept if it repeats or directly continues the batch before it, or
continues the last batch of its leader epoch, because the batches of two leaders may alternate.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections import deque
from contextlib import closing
from heapq import heappop, heappush, heapreplace
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from kdump.errors import StoreError, UnreadableError
from kdump.log_dirs.local import LocalFile
from kdump.log_salvage.chains import BatchPlace, Chain, LeftOutRange, MissingOffsets, PlacesInARow, in_rows, link
from kdump.records.record_batch import Batches
from kdump.segments import read_ahead, resync, shared_segment
from kdump.segments.read_ahead import RevocableSource
from kdump.segments.regions import DATA, Padding

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from typing import TypeVar

    from kdump.log_dirs.files import Source
    from kdump.log_dirs.partition import Partition, Segment
    from kdump.segments.regions import Region

    T = TypeVar("T", bound=Region)

_epoch = attrgetter("epoch")

UNREADABLE: Final = "unreadable"
"""The kind of a range that is lost because the file could not be read."""


class Account:
    """The account of a merge: what was placed in the merged log, and what was left out.

    ``first_offset``, ``last_offset`` and ``gaps`` (missing offsets) are of the merged log. ``lost``: the ranges left
    out. ``duplicates``: the number of batches left out because they equal a placed batch. ``padding`` is in bytes.
    """

    def __init__(self) -> None:
        self.first_offset: int | None = None
        self.last_offset: int | None = None
        self.lost: list[LeftOutRange] = []
        self.gaps = MissingOffsets()
        self.duplicates = 0
        self.padding = 0

    def place(self, place: BatchPlace | PlacesInARow | Chain) -> None:
        """Add the next batches of the merged log: set the first and last offset, and add the missing offsets."""
        if self.last_offset is None:
            self.first_offset = place.base_offset
        else:
            self.gaps.between(self.last_offset, place.base_offset)
        if isinstance(place, PlacesInARow):
            self.gaps.within(place)
        elif isinstance(place, Chain):
            self.gaps.add(place.gaps)
        self.last_offset = place.last_offset


def ahead(regions: Iterator[T], source: Source, revocable: RevocableSource, size: int) -> Iterator[T]:
    """Return ``regions`` of ``size`` bytes. If ``source`` is local, threads may read them ahead, with ``revocable``."""
    return read_ahead.read(regions, revocable, size, unpack=False) if isinstance(source, LocalFile) else regions


def judged(
    each: Segment,
    rows: Iterable[BatchPlace | PlacesInARow | LeftOutRange | Padding],
    account: Account,
    progress: Callable[[int], None] = lambda _: None,
) -> Iterator[tuple[BatchPlace | PlacesInARow, bool]]:
    """Yield the batches of a segment, each with True, or False if the batches before and after contradict its offset.

    Contradicted batches, other ranges left out (also unreadable ones) and padding are added to ``account``.
    ``progress`` receives the number of bytes read. Raises StoreError.
    """
    misplaced: list[LeftOutRange] = []
    before: BatchPlace | PlacesInARow | None = None
    place: BatchPlace | PlacesInARow | None = None
    ends: dict[int, int] = {}  # the last offset of each leader epoch
    for following in itertools.chain(_batches(each, rows, account, progress), (None,)):
        if isinstance(place, BatchPlace) and _is_contradicted(before, place, following, ends.get(place.epoch)):
            misplaced.append(left_out(place, "misplaced", "the batches before and after it contradict its offset"))
            yield place, False
        elif place is not None:
            yield place, True
            ends[place.epoch if isinstance(place, BatchPlace) else place.columns[2][-1]] = place.last_offset
        before, place = place, following
    account.lost += misplaced


def _batches(
    each: Segment,
    rows: Iterable[BatchPlace | PlacesInARow | LeftOutRange | Padding],
    account: Account,
    progress: Callable[[int], None],
) -> Iterator[BatchPlace | PlacesInARow]:
    end = 0
    try:
        for one in rows:
            end = one.position + one.size
            progress(one.size)
            if isinstance(one, LeftOutRange):
                account.lost.append(one)
            elif isinstance(one, Padding):
                account.padding += one.size
            else:
                yield one
    except StoreError:  # a later run may read the whole log; an output of this run would look complete
        raise
    except UnreadableError as error:  # a failing disk: use the bytes before the error, and the other copies
        account.lost.append(LeftOutRange(each, end, each.size - end, UNREADABLE, error.reason))


def left_out(place: BatchPlace, kind: str, reason: str) -> LeftOutRange:
    return LeftOutRange(
        place.segment, place.position, place.size, kind, reason, place.base_offset, place.last_offset + 1
    )


def _is_contradicted(
    before: BatchPlace | PlacesInARow | None,
    place: BatchPlace,
    following: BatchPlace | PlacesInARow | None,
    end: int | None,
) -> bool:
    """Return whether to leave a batch out (see the module). ``end``: the last offset of its leader epoch before it."""
    if before is None or following is None or place.base_offset == before.last_offset + 1:
        return False
    if end is not None and place.base_offset == end + 1:
        return False
    if before.last_offset < place.base_offset and place.last_offset < following.base_offset:
        return False
    return before.last_offset < following.base_offset and place[:2] != before[:2]


def merge(copies: Iterable[Partition], progress: Callable[[int], None] = lambda _: None) -> tuple[list[Chain], Account]:
    """Return the merged log of the replicas as chains in offset order, and the account (with unreadable ranges).

    ``progress`` receives the number of bytes read. Raises UnreadableError if overlapping batches have changed when they
    are read again, and StoreError if an object store does not answer.
    """
    account = Account()
    found: list[Chain] = []
    for copy in copies:
        for each in copy.segments:
            for place, is_credible in judged(each, _rows(each), account, progress):
                if is_credible:
                    link(found, place)
    merging = _Merging(account)
    for overlapping in _clusters(found):
        merging.place(overlapping)
    for chain in merging.placed:
        account.place(chain)
    return merging.placed, account


def batches(chains: Iterable[Chain]) -> Generator[Batches, None, None]:
    """Read chains again from the segments, and yield their batches. Raises UnreadableError if a file has changed."""
    for _, group in itertools.groupby(chains, lambda each: id(each.segment)):
        alike = list(group)
        with alike[0].segment.open() as source:
            revocable = read_ahead.RevocableSource(source)
            regions = itertools.chain.from_iterable(each.regions(revocable) for each in alike)
            yield from ahead(regions, source, revocable, sum(each.size for each in alike))


def _rows(each: Segment) -> Iterator[BatchPlace | PlacesInARow | LeftOutRange | Padding]:
    """Yield the items of :func:`in_rows` for a segment. Threads may read a large segment."""
    with each.open() as source:
        pieces = shared_segment.parts_for_threads(source)
        if not pieces:
            yield from in_rows(each, resync.read(source, on_error="resync", first_offset=each.base_offset, runs=DATA))
            return
        made = shared_segment.read_in_threads(source, pieces, each.base_offset, lambda part: list(in_rows(each, part)))
        with closing(made):
            for rows in made:
                yield from rows


def _clusters(found: list[Chain]) -> Iterator[list[tuple[int, Chain]]]:
    """Yield groups of overlapping chains, or single chains, in offset order. Each chain has its number in ``found``."""
    cluster: list[tuple[int, Chain]] = []
    last = -1
    for number, chain in sorted(enumerate(found), key=lambda one: one[1].base_offset):
        if cluster and chain.base_offset > last:
            yield cluster
            cluster = []
        cluster.append((number, chain))
        last = max(last, chain.last_offset)
    if cluster:
        yield cluster


class _Merging:
    def __init__(self, account: Account) -> None:
        self.placed: list[Chain] = []
        self._account = account

    def place(self, cluster: list[tuple[int, Chain]]) -> None:
        """Add the chosen batches of overlapping chains to ``placed``, and the other batches to the account."""
        first, *others = [chain for _, chain in cluster]
        if all(map(first.is_like, others)):
            self.placed.append(first)
            self._account.duplicates += len(others) * first.count
            return
        group: list[BatchPlace] = []
        highest: BatchPlace | None = None
        for place in _in_order(cluster):
            if highest is not None and place.base_offset > highest.last_offset:
                self._choose(group)
                group, highest = [], None
            group.append(place)
            if highest is None or place.epoch > highest.epoch:
                highest = place
        self._choose(group)

    def _choose(self, group: list[BatchPlace]) -> None:
        """Choose among all batches that overlap the one of the highest epoch, and those before them, in order."""
        kept: list[list[BatchPlace]] = []
        for place in sorted(group, key=_epoch, reverse=True):
            at = bisect_right(kept, place.last_offset, key=lambda alike: alike[0].base_offset)
            other = kept[at - 1][0] if at else None
            if other is None or other.last_offset < place.base_offset:
                kept.insert(at, [place])
            elif place[:4] == other[:4] and place.size == other.size:
                kept[at - 1].append(place)
                self._account.duplicates += 1
            else:
                self._account.lost.append(left_out(place, "conflict", _why(place, other)))
        for alike in kept:  # if the last chain continues in one of the copies, this copy is placed
            following = (place for place in alike if self.placed and self.placed[-1].goes_on(place))
            link(self.placed, next(following, alike[0]))


def _why(place: BatchPlace, other: BatchPlace) -> str:
    name = other.segment.name
    if place.base_offset < other.base_offset:
        return f"{name} has these offsets with leader epoch {other.epoch}"
    reason = f"{name} has a batch up to offset {other.last_offset}"
    if place.epoch < other.epoch:
        reason += f" with the later leader epoch {other.epoch} (this batch has {place.epoch})"
    return reason


def _in_order(chains: list[tuple[int, Chain]]) -> Iterator[BatchPlace]:
    """Yield the batches of chains, sorted by base offset, then by falling leader epoch, then by the chain's number."""
    waiting = deque(chains)
    begun: list[tuple[int, int, int, BatchPlace, Iterator[BatchPlace]]] = []
    while waiting or begun:
        while waiting and (not begun or waiting[0][1].base_offset <= begun[0][0]):
            number, chain = waiting.popleft()
            rest = chain.places()
            place = next(rest)
            heappush(begun, (place.base_offset, -place.epoch, number, place, rest))
        _, _, number, place, rest = begun[0]
        yield place
        following = next(rest, None)
        if following is None:
            heappop(begun)
        else:
            heapreplace(begun, (following.base_offset, -following.epoch, number, following, rest))


class OutOfOrderError(Exception):
    """A replica needs two passes: its batches are not in offset order, or two segments have the same base offset."""


def in_one_pass(
    copy: Partition, account: Account, progress: Callable[[int], None] = lambda _: None
) -> Generator[Batches, None, None]:
    """Yield the batches and batch runs of the merged log of a single replica, and read the replica only once.

    ``account`` gets the same entries as from :func:`merge`. ``progress`` receives the number of bytes read. Raises
    StoreError, and OutOfOrderError (``account`` is then wrong).
    """
    if any(one.base_offset == other.base_offset for one, other in pairwise(copy.segments)):
        raise OutOfOrderError
    for each in copy.segments:
        held: deque[Batches] = deque()
        spans: list[tuple[int, int]] = []
        with closing(_regions(each)) as regions:
            for place, is_credible in judged(each, _held_rows(each, regions, held), account, progress):
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


def _held_rows(
    each: Segment, regions: Iterable[Region], held: deque[Batches]
) -> Iterator[BatchPlace | PlacesInARow | LeftOutRange | Padding]:
    """Yield the items of :func:`in_rows` for regions of a segment. ``held`` receives regions with usable batches."""
    for region in regions:
        rows = list(in_rows(each, [region]))
        if isinstance(region, Batches) and any(isinstance(row, (BatchPlace, PlacesInARow)) for row in rows):
            held.append(region)
        yield from rows


def _cut(region: Batches, spans: list[tuple[int, int]]) -> Iterator[Batches]:
    """Yield the batches of a region that are inside ``spans`` (start and end positions in the file)."""
    if region.size == sum([end - start for start, end in spans]):
        yield region
    else:
        starts = region.column("position")
        for start, end in spans:
            yield from map(region.batch, range(bisect_left(starts, start), bisect_left(starts, end)))
