"""Finds the valid batches of a segment, and collects the other bytes in an account.

No checksum covers the offset of a magic 2 batch, so each batch is compared with the batches before and after it. A
batch that contradicts both is left out, unless it continues its own leader epoch: batches of two leaders may alternate.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from kdump.errors import StoreError, UnreadableError
from kdump.log_dirs.local import LocalFile
from kdump.log_salvage.chains import BatchPlace, Chain, LeftOutRange, MissingOffsets, PlacesInARow
from kdump.segments import read_ahead
from kdump.segments.regions import Padding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TypeVar

    from kdump.log_dirs.files import Source
    from kdump.log_dirs.partition import Segment
    from kdump.segments.read_ahead import RevocableSource
    from kdump.segments.regions import Region

    T = TypeVar("T", bound=Region)

UNREADABLE: Final = "unreadable"
"""The kind of a range that is lost because the file could not be read."""


class Account:
    """The result of reading the replicas of a partition.

    ``first_offset`` and ``last_offset`` belong to the placed batches, ``gaps`` are the missing offsets between them.
    ``lost`` has the ranges that were left out. ``duplicates`` is the number of batches that equal a placed batch,
    ``padding`` the number of bytes of padding.
    """

    def __init__(self) -> None:
        self.first_offset: int | None = None
        self.last_offset: int | None = None
        self.lost: list[LeftOutRange] = []
        self.gaps = MissingOffsets()
        self.duplicates = 0
        self.padding = 0

    def place(self, place: BatchPlace | PlacesInARow | Chain) -> None:
        """Add the next batches of the merged log to the counts."""
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
    """Return ``regions``. If ``source`` is local, a thread reads its ``size`` bytes ahead through ``revocable``."""
    return read_ahead.read(regions, revocable, size, unpack=False) if isinstance(source, LocalFile) else regions


def judged(
    each: Segment,
    rows: Iterable[BatchPlace | PlacesInARow | LeftOutRange | Padding],
    account: Account,
    progress: Callable[[int], None] = lambda _: None,
) -> Iterator[tuple[BatchPlace | PlacesInARow, bool]]:
    """Yield the batches of a segment, each with whether it is credible: no neighbour contradicts its offset.

    Batches that are not credible, damaged and unreadable ranges, and padding are added to ``account``. ``progress``
    receives the number of bytes read. Raises StoreError.
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
    """Return the range for a valid batch that is left out of the merged log."""
    return LeftOutRange(
        place.segment, place.position, place.size, kind, reason, place.base_offset, place.last_offset + 1
    )


def _is_contradicted(
    before: BatchPlace | PlacesInARow | None,
    place: BatchPlace,
    following: BatchPlace | PlacesInARow | None,
    end: int | None,
) -> bool:
    """Return whether a batch is out of order, but the batches before and after it are in order.

    ``end`` is the last offset of the batches before it with the same leader epoch; None if there is none.
    """
    if before is None or following is None or place.base_offset == before.last_offset + 1:
        return False
    if end is not None and place.base_offset == end + 1:
        return False
    if before.last_offset < place.base_offset and place.last_offset < following.base_offset:
        return False
    return before.last_offset < following.base_offset and place[:2] != before[:2]
