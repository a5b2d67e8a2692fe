"""The sound batches of one partition, had from one or more damaged copies of it, in the order of their offsets.

Two passes: the first finds each copy's sound batches and keeps them as chains, then these are put in order. What is
there twice is taken once. Where batches overlap, the higher leader epoch wins, then the copy that was named first: as
after an election. A batch whose offset its neighbours in the file contradict is not placed: nothing guards the offset
of a magic 2 batch. One copy whose batches stand in order needs one pass: see :mod:`kdump.salvage.one_copy`.
"""

from __future__ import annotations

import itertools
from collections import deque
from contextlib import closing
from heapq import heappop, heappush, heapreplace
from typing import TYPE_CHECKING, Final

from kdump.errors import UnreadableError
from kdump.log_dirs.local import LocalFile
from kdump.salvage.chains import BatchPlace, Chain, LeftOutRange, MissingOffsets, in_rows, link
from kdump.segments import read, read_ahead, shared_segment
from kdump.segments.regions import Padding

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator
    from typing import TypeVar

    from kdump.log_dirs.files import Source
    from kdump.log_dirs.partition import Partition, Segment
    from kdump.records.record_batch import RecordBatch
    from kdump.salvage.chains import PlacesInARow
    from kdump.segments.batch_runs import Run
    from kdump.segments.read_ahead import Leash
    from kdump.segments.regions import Region

    T = TypeVar("T", bound=Region | Run)

UNREADABLE: Final = "unreadable"
"""The kind of what is lost since the file could not be read, or not to its end."""


class Account:
    """What became of the copies of a partition: the first and the last offset that are placed, and all that is not.

    ``lost`` stands in the order of copies, ``gaps`` are the offsets that are missing between those that are placed,
    ``duplicates`` counts batches that were there twice, ``padding`` bytes.
    """

    def __init__(self) -> None:
        self.first_offset: int | None = None
        self.last_offset: int | None = None
        self.lost: list[LeftOutRange] = []
        self.gaps = MissingOffsets()
        self.duplicates = 0
        self.padding = 0

    def placed(self, base: int, last: int) -> None:
        """Take note of what is placed next, from the first to the last offset."""
        if self.last_offset is None:
            self.first_offset = base
        else:
            self.gaps.between(self.last_offset, base)
        self.last_offset = last


def merge(copies: Iterable[Partition]) -> tuple[list[Chain], Account]:
    """Return the sound batches of all copies in order. What cannot be read is among the lost.

    Raises UnreadableError where a file is not any more what it was, as far as copies overlap.
    """
    account = Account()
    found: list[Chain] = []
    for copy in copies:
        for each in copy.segments:
            for place in placed(each, _rows(each), account):
                link(found, place)
    merging = _Merging(account)
    for overlapping in _clusters(found):
        merging.place(overlapping)
    for chain in merging.placed:
        account.placed(chain.base_offset, chain.last_offset)
        account.gaps.add(chain.gaps)
    return merging.placed, account


def batches(chains: Iterable[Chain]) -> Generator[RecordBatch | Run, None, None]:
    """Yield the batches of chains, read anew, data that are alike in one go; a file stays open as long as they are its.

    Raises UnreadableError where a file is not any more what it was when its batches were placed.
    """
    for _, group in itertools.groupby(chains, lambda each: id(each.segment)):
        alike = list(group)
        with alike[0].segment.open() as source:
            leash = read_ahead.Leash(source)
            regions = itertools.chain.from_iterable(each.regions(leash) for each in alike)
            yield from ahead(regions, source, leash, sum(each.size for each in alike))


def ahead(regions: Iterator[T], source: Source, leash: Leash, size: int) -> Iterator[T]:
    """Return ``regions``, ``size`` bytes that ``leash`` reads; a thread reads a file of this machine ahead."""
    return read_ahead.read(regions, leash, size, unpack=False) if isinstance(source, LocalFile) else regions


def placed(
    each: Segment, rows: Iterable[BatchPlace | PlacesInARow | LeftOutRange | Padding], account: Account
) -> Iterator[BatchPlace | PlacesInARow]:
    """Yield the batches among what stands in a segment whose offsets their neighbours do not contradict.

    The account is told of all else, and of what of the segment cannot be read.
    """
    misplaced: list[LeftOutRange] = []
    before: BatchPlace | PlacesInARow | None = None
    place: BatchPlace | PlacesInARow | None = None
    for behind in itertools.chain(_batches(each, rows, account), (None,)):
        if isinstance(place, BatchPlace) and _is_contradicted(before, place, behind):
            misplaced.append(_lost(place, "misplaced", "its neighbours in the file contradict its offset"))
        elif place is not None:
            yield place
        before, place = place, behind
    account.lost += misplaced


def _batches(
    each: Segment, rows: Iterable[BatchPlace | PlacesInARow | LeftOutRange | Padding], account: Account
) -> Iterator[BatchPlace | PlacesInARow]:
    """Yield the batches of a segment."""
    end = 0
    try:
        for one in rows:
            end = one.position + one.size
            if isinstance(one, LeftOutRange):
                account.lost.append(one)
            elif isinstance(one, Padding):
                account.padding += one.size
            else:
                yield one
    except UnreadableError as error:  # a disk that dies: what was read of it counts, and so do other copies
        account.lost.append(LeftOutRange(each, end, each.size - end, UNREADABLE, error.reason))


def _rows(each: Segment) -> Iterator[BatchPlace | PlacesInARow | LeftOutRange | Padding]:
    """Yield what stands in a segment; a thread reads parts of a large one."""
    with each.open() as source:
        pieces = shared_segment.parts_for_threads(source)
        if not pieces:
            yield from in_rows(each, read.read_runs(source, on_error="resync", first_offset=each.base_offset))
            return
        made = shared_segment.read_in_threads(source, pieces, each.base_offset, lambda part: list(in_rows(each, part)))
        with closing(made):
            for rows in made:
                yield from rows


def _clusters(found: list[Chain]) -> Iterator[list[tuple[int, Chain]]]:
    """Yield chains in the order of their offsets, those that overlap together, each with its number in ``found``."""
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
    """Chooses among batches that overlap."""

    def __init__(self, account: Account) -> None:
        self.placed: list[Chain] = []
        self._account = account

    def place(self, cluster: list[tuple[int, Chain]]) -> None:
        """Place what the chains hold that overlap with each other."""
        first, *others = [chain for _, chain in cluster]
        if all(map(first.is_like, others)):
            self.placed.append(first)
            self._account.duplicates += len(others) * first.count
            return
        last = same = None
        for place in _in_order(cluster):
            if last is None or same is None or place.base_offset > last.last_offset:
                if same is not None:
                    link(self.placed, same)
                last = same = place
            elif place[:4] == last[:4] and place.size == last.size:
                self._account.duplicates += 1
                if self.placed and self.placed[-1].goes_on(place):  # the same bytes, with less to remember
                    same = place
            elif place.epoch > last.epoch:
                self._account.lost.append(
                    _lost(last, "conflict", f"{place.segment.name} has leader epoch {place.epoch} there")
                )
                last = same = place  # the one before it ends below ``last``, which begins no later than this one
            else:
                reason = f"{last.segment.name} has offsets up to {last.last_offset} there"
                self._account.lost.append(_lost(place, "conflict", reason))
        if same is not None:
            link(self.placed, same)


def _in_order(chains: list[tuple[int, Chain]]) -> Iterator[BatchPlace]:
    """Yield the batches of chains by offset, the higher leader epoch first, then the chain with the lower number."""
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


def _lost(place: BatchPlace, kind: str, reason: str) -> LeftOutRange:
    return LeftOutRange(
        place.segment, place.position, place.size, kind, reason, place.base_offset, place.last_offset + 1
    )


def _is_contradicted(
    before: BatchPlace | PlacesInARow | None, place: BatchPlace, behind: BatchPlace | PlacesInARow | None
) -> bool:
    """Tell whether the batches before and behind in the file agree with each other, and not with this one."""
    if before is None or behind is None:
        return False
    if before.last_offset < place.base_offset and place.last_offset < behind.base_offset:
        return False
    return before.last_offset < behind.base_offset and place[:2] != before[:2]
