"""The sound batches of one partition, had from one or more damaged copies of it, in the order of their offsets.

Two passes: the first finds each copy's sound batches and keeps them as chains, then these are put in order. What is
there twice is taken once. Where batches overlap, the higher leader epoch wins, then the copy that was named first: as
after an election. A batch whose offset its neighbours in the file contradict is not placed: nothing guards the offset
of a magic 2 batch.
"""

from __future__ import annotations

from collections import deque
from contextlib import closing
from heapq import heappop, heappush, heapreplace
from typing import TYPE_CHECKING, Final

from kdump.errors import UnreadableError
from kdump.primitives.named_tuple import NamedTuple
from kdump.salvage.chains import BatchPlace, Chain, LeftOutRange, MissingOffsets, in_rows, link
from kdump.segments import read, shared_segment
from kdump.segments.regions import Padding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kdump.log_dirs.files import Source
    from kdump.log_dirs.partition import Partition, Segment
    from kdump.salvage.chains import PlacesInARow

UNREADABLE: Final = "unreadable"
"""The kind of what is lost since the file could not be read, or not to its end."""


class Merged(NamedTuple):
    """What was had back: ``placed`` in offset order, ``lost`` in the order of copies, and the gaps that are left."""

    placed: list[Chain]
    lost: list[LeftOutRange]
    gaps: MissingOffsets
    duplicates: int
    padding: int


def merge(copies: Iterable[Partition]) -> Merged:
    """Put the sound batches of all copies in order. What cannot be read is among the lost.

    Raises UnreadableError where a file is not any more what it was, as far as copies overlap.
    """
    found: list[Chain] = []
    lost: list[LeftOutRange] = []
    padding = 0
    for copy in copies:
        for each in copy.segments:
            padding += _find(each, found, lost)
    merging = _Merging(lost)
    for overlapping in _clusters(found):
        merging.place(overlapping)
    gaps = MissingOffsets()
    before: Chain | None = None
    for chain in merging.placed:
        if before is not None:
            gaps.between(before.last_offset, chain.base_offset)
        gaps.add(chain.gaps)
        before = chain
    return Merged(merging.placed, lost, gaps, merging.duplicates, padding)


def _find(each: Segment, found: list[Chain], lost: list[LeftOutRange]) -> int:
    """Add what stands in a segment to ``found`` and ``lost``; return the bytes of padding."""
    others: list[LeftOutRange | Padding] = []
    misplaced: list[LeftOutRange] = []
    before: BatchPlace | PlacesInARow | None = None
    place: BatchPlace | PlacesInARow | None = None
    for behind in _batches(each, others):
        if place is not None:
            _judge(before, place, behind, found, misplaced)
        before, place = place, behind
    if place is not None:
        _judge(before, place, None, found, misplaced)
    lost += [one for one in others if isinstance(one, LeftOutRange)]
    lost += misplaced
    return sum(one.size for one in others if isinstance(one, Padding))


def _batches(each: Segment, others: list[LeftOutRange | Padding]) -> Iterator[BatchPlace | PlacesInARow]:
    """Yield the batches of a segment; what else stands in it is added to ``others``."""
    end = 0
    try:
        with each.open() as source:
            for one in _rows(each, source):
                if isinstance(one, (LeftOutRange, Padding)):
                    others.append(one)
                    end = one.position + one.size
                else:
                    end = one.end
                    yield one
    except UnreadableError as error:  # a disk that dies: what was read of it counts, and so do other copies
        others.append(LeftOutRange(each, end, each.size - end, UNREADABLE, error.reason))


def _rows(each: Segment, source: Source) -> Iterator[BatchPlace | PlacesInARow | LeftOutRange | Padding]:
    """Yield what stands in a segment; a thread reads parts of a large one."""
    pieces = shared_segment.parts_for_threads(source)
    if not pieces:
        yield from in_rows(each, read.read_runs(source, on_error="resync", first_offset=each.base_offset))
        return
    made = shared_segment.read_in_threads(source, pieces, each.base_offset, lambda part: list(in_rows(each, part)))
    with closing(made):
        for rows in made:
            yield from rows


def _judge(
    before: BatchPlace | PlacesInARow | None,
    place: BatchPlace | PlacesInARow,
    behind: BatchPlace | PlacesInARow | None,
    found: list[Chain],
    misplaced: list[LeftOutRange],
) -> None:
    """Add a batch to what is found, or to the misplaced. Those in the middle of a row have good neighbours."""
    if isinstance(place, BatchPlace) and _is_contradicted(before, place, behind):
        misplaced.append(_lost(place, "misplaced", "its neighbours in the file contradict its offset"))
    else:
        link(found, place)


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

    def __init__(self, lost: list[LeftOutRange]) -> None:
        self.placed: list[Chain] = []
        self.duplicates = 0
        self._lost = lost

    def place(self, cluster: list[tuple[int, Chain]]) -> None:
        """Place what the chains hold that overlap with each other."""
        first, *others = [chain for _, chain in cluster]
        if all(map(first.is_like, others)):
            self.placed.append(first)
            self.duplicates += len(others) * first.count
            return
        last = same = None
        for place in _in_order(cluster):
            if last is None or same is None or place.base_offset > last.last_offset:
                if same is not None:
                    link(self.placed, same)
                last = same = place
            elif place[:4] == last[:4] and place.size == last.size:
                self.duplicates += 1
                if self.placed and self.placed[-1].goes_on(place):  # the same bytes, with less to remember
                    same = place
            elif place.epoch > last.epoch:
                self._lost.append(_lost(last, "conflict", f"{place.segment.name} has leader epoch {place.epoch} there"))
                last = same = place  # the one before it ends below ``last``, which begins no later than this one
            else:
                reason = f"{last.segment.name} has offsets up to {last.last_offset} there"
                self._lost.append(_lost(place, "conflict", reason))
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
