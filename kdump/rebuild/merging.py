"""Merges copies of a partition. Batches of other copies fill the holes of the first copy, if they match its history."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.log_salvage.chains import LeftOutRange
from kdump.log_salvage.merge import left_out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from kdump.log_salvage.chains import BatchPlace
    from kdump.log_salvage.epoch_history import EpochHistory
    from kdump.rebuild.copy_scan import BatchSpan


_base_offset = attrgetter("base_offset")


class OffsetSpan(NamedTuple):
    """The offsets from ``start`` to ``stop`` - 1."""

    start: int
    stop: int


class OffsetSpans:
    """Ranges of offsets. They may be in any order and may overlap."""

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        given = list(ranges)
        self._order = sorted(range(len(given)), key=given.__getitem__)
        self._ranges = [OffsetSpan(*given[number]) for number in self._order]
        self._starts = [one.start for one in self._ranges]
        self._stops = list(accumulate((one.stop for one in self._ranges), max))
        """For each range: the highest stop of this range and of all ranges before it."""

    def meeting(self, start: int, stop: int) -> int | None:
        """Return the index, in the given order, of the overlapping range with the lowest start; None without one."""
        at = bisect_right(self._stops, start)
        return self._order[at] if at < len(self._ranges) and self._starts[at] < stop else None

    def hold(self, start: int, stop: int) -> bool:
        """Return whether one of the ranges contains all offsets from ``start`` to ``stop`` - 1."""
        before = bisect_right(self._starts, start)
        return before > 0 and self._stops[before - 1] >= stop

    def common(self, others: Iterable[OffsetSpan]) -> Iterator[OffsetSpan]:
        """Yield the parts of ``others`` that are in one of these ranges. ``others`` are in order and do not overlap."""
        for other in others:
            end = other.start
            for at in range(bisect_right(self._stops, end), bisect_left(self._starts, other.stop)):
                start, stop = max(self._starts[at], end), min(self._ranges[at].stop, other.stop)
                if start < stop:
                    yield OffsetSpan(start, stop)
                    end = stop


JOINED_BYTES: Final = 64 << 20
"""Approximate maximum size of joined spans in bytes: :meth:`MergedLog.cut` reads a whole span again."""


class MergedLog:
    def __init__(self, history: EpochHistory) -> None:
        self.taken: list[BatchSpan] = []
        self.left_out: list[LeftOutRange] = []
        self._history = history

    def add(self, copy: int, spans: Sequence[BatchSpan], allows: Callable[[int, int], bool] = lambda *_: True) -> None:
        """Take the batches that fit into holes of the log, belong to its history and are allowed.

        Batches of another history, and batches that overlap taken ones in part, are added to ``left_out``. Other
        batches are dropped. ``allows`` returns whether this copy may supply the batches of a first and a last offset.
        """
        for span in sorted((one._replace(copy=copy) for one in spans), key=_base_offset):
            limit = self._history.limit(span.base_offset, span.epoch)
            if limit <= span.base_offset:
                self._leave_span(span, "diverged", self._why(span.base_offset, span.epoch))
            elif span.last_offset < limit and self._is_covered(span.base_offset, span.last_offset):
                continue
            elif (
                span.last_offset < limit
                and self._is_free(span.base_offset, span.last_offset)
                and allows(span.base_offset, span.last_offset)
            ):
                self._take(span)
            else:
                self._by_batch(span, limit, allows)

    def add_corrected(self, copy: int, span: BatchSpan, own: int | None) -> None:
        """Take a single batch whose base offset or leader epoch is wrong in the file, if the log has a hole for it.

        ``own`` is the leader epoch that the copy has at this offset. If the log has another epoch there, the batch is
        left out: an older leader wrote it. It is taken if its own epoch differs from that of the log by one bit.
        """
        if not self._is_free(span.base_offset, span.last_offset):
            return
        expected = self._history.at(span.base_offset)
        is_flipped = expected is not None and (expected ^ span.epoch).bit_count() == 1
        if own is not None and not is_flipped and self._history.limit(span.base_offset, own) <= span.last_offset:
            self._leave_span(span, "diverged", self._why(span.base_offset, own))
            return
        epoch = span.epoch if expected is None else expected
        self._take(span._replace(epoch=max(epoch, 0), copy=copy, corrected=True))

    @property
    def end(self) -> int:
        """The end offset of the last batch; 0 without a batch."""
        return self.taken[-1].last_offset + 1 if self.taken else 0

    def cut(self, offset: int) -> None:
        """Move batches with offsets at or above the high watermark ``offset`` to ``left_out``."""
        why = f"the batch has offsets at or above the high watermark {offset}"
        spans, self.taken = self.taken, []
        for one in spans:
            if one.last_offset < offset:
                self.taken.append(one)
            elif one.corrected:  # one batch: its offsets in the file may be wrong
                self._leave_span(one, "uncommitted", why)
            else:
                for place in one.places():
                    if place.last_offset < offset:
                        self._take(_single(one, place))
                    else:
                        self._leave(place, "uncommitted", why)

    def holes(self, start: int, end: int) -> Iterator[OffsetSpan]:
        """Yield the ranges without a batch from offset ``start`` to ``end`` - 1."""
        for one in self.taken:
            if one.base_offset > start and start < end:
                yield OffsetSpan(start, min(one.base_offset, end))
            start = max(start, one.last_offset + 1)
        if start < end:
            yield OffsetSpan(start, end)

    def _by_batch(self, span: BatchSpan, limit: int, allows: Callable[[int, int], bool]) -> None:
        for place in span.places():
            if place.last_offset >= limit:
                self._leave(place, "diverged", self._why(place.base_offset, span.epoch))
            elif self._is_covered(place.base_offset, place.last_offset):
                continue
            elif not self._is_free(place.base_offset, place.last_offset):
                self._leave(
                    place, "conflict", "it overlaps a batch of another copy, but their first or last offsets differ"
                )
            elif allows(place.base_offset, place.last_offset):
                self._take(_single(span, place))

    def _leave_span(self, span: BatchSpan, kind: str, why: str) -> None:
        self.left_out.append(
            LeftOutRange(span.segment, span.position, span.size, kind, why, span.base_offset, span.last_offset + 1)
        )

    def _why(self, offset: int, epoch: int) -> str:
        expected = self._history.at(offset)
        if expected is None or expected <= epoch:
            expected = self._history.newest
        return (
            f"the batch has leader epoch {epoch}, but the cluster continued with leader epoch {expected} at its offset"
        )

    def _leave(self, place: BatchPlace, kind: str, why: str) -> None:
        last = self.left_out[-1] if self.left_out else None
        new = left_out(place, kind, why)
        if last is not None and last.segment is new.segment and last.end == new.position and last.kind == kind:
            self.left_out[-1] = last._replace(size=last.size + new.size, missing_until=new.missing_until)
        else:
            self.left_out.append(new)

    def _take(self, new: BatchSpan) -> None:
        at = bisect_right(self.taken, new.base_offset, key=_base_offset)
        extended = self.taken[at - 1].extended(new, JOINED_BYTES) if at else None
        if extended is None:
            self.taken.insert(at, new)
        else:
            self.taken[at - 1] = extended

    def _is_free(self, first: int, last: int) -> bool:
        at = bisect_right(self.taken, first, key=_base_offset)
        if at and self.taken[at - 1].last_offset >= first:
            return False
        return at == len(self.taken) or self.taken[at].base_offset > last

    def _is_covered(self, first: int, last: int) -> bool:
        at = bisect_right(self.taken, first, key=_base_offset) - 1
        while at >= 0 and at < len(self.taken) and self.taken[at].base_offset <= first <= self.taken[at].last_offset:
            first = self.taken[at].last_offset + 1
            if first > last:
                return True
            at += 1
        return False


def _single(span: BatchSpan, place: BatchPlace) -> BatchSpan:
    return span._replace(
        position=place.position, end=place.end, base_offset=place.base_offset, last_offset=place.last_offset, batches=1
    )
