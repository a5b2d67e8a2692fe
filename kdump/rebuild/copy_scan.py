"""Reads and verifies a copy of a partition, and returns its valid batches as spans.

A span has consecutive batches of one leader epoch in one segment. No checksum covers base offsets and leader epochs:
the scan compares them with the batches around them and the leader epoch checkpoint.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate, pairwise, starmap
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.errors import UnreadableError
from kdump.formats.leader_epoch import EpochEntry
from kdump.formats.record_layout import BATCH_HEADER, LOG_OVERHEAD, MAGIC_2
from kdump.formats.sparse_index import MAX_RELATIVE_OFFSET
from kdump.log_salvage.chains import BatchPlace, LeftOutRange, in_rows, places
from kdump.log_salvage.epoch_history import NEVER, EpochHistory
from kdump.log_salvage.merge import Account, judged
from kdump.records.record_batch import Batches
from kdump.segments import resync
from kdump.segments.regions import DATA

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kdump.log_dirs.partition import Segment
    from kdump.log_salvage.chains import PlacesInARow
    from kdump.rebuild.volumes import VolumeFolder
    from kdump.segments.regions import Region

IS_TRANSACTIONAL: Final = 1 << 4
"""A batch with attributes of at least this value is transactional, a control batch, or has a delete horizon."""
SPAN_BYTES: Final = 4 << 20
"""A span of this size in bytes or more is not extended. To compare single batches, a merge reads spans again."""


_position, _end = attrgetter("position"), attrgetter("end")
_base_offset, _last_offset = attrgetter("base_offset"), attrgetter("last_offset")

NEAR: Final = 1 << 20
"""Spans of a compacted log with a larger gap between them are not joined: it may come from a wrong bit."""


class BatchSpan(NamedTuple):
    """Consecutive valid batches of one leader epoch (-1 below magic 2) in a segment of copy number ``copy``.

    If it is ``corrected``, it is one batch whose ``base_offset`` and ``epoch`` replace those of the header.
    """

    segment: Segment
    position: int
    end: int
    base_offset: int
    last_offset: int
    epoch: int
    batches: int
    copy: int = 0
    corrected: bool = False

    @property
    def size(self) -> int:
        return self.end - self.position

    def extended(self, new: BatchSpan, most_bytes: int, most_ahead: int = 1) -> BatchSpan | None:
        """Return this span and ``new`` as one, or None if ``new`` does not continue it.

        A span of ``most_bytes`` or more is not extended. ``most_ahead``: how much offsets may rise between the two.
        """
        if (
            self.segment is new.segment
            and self.end == new.position
            and (self.epoch, self.copy) == (new.epoch, new.copy)
            and self.size < most_bytes
            and not (self.corrected or new.corrected)
            and 0 < new.base_offset - self.last_offset <= most_ahead
        ):
            return self._replace(end=new.end, last_offset=new.last_offset, batches=self.batches + new.batches)
        return None

    def places(self) -> Iterator[BatchPlace]:
        """Read the batches again, and yield the offsets and position of each. Raises UnreadableError."""
        with self.segment.open() as source:
            for place in places(self.segment, resync.read(source, self.position, self.end, on_error="stop", runs=DATA)):
                if isinstance(place, BatchPlace):
                    yield place


class ScannedCopy:
    """The contents of segments of a folder: the spans in the order of the files, and the invalid bytes.

    ``doubtful``: valid batches whose base offset or leader epoch contradicts their neighbours or the checkpoint. Their
    base offset is corrected; their leader epoch is as in the file. ``left_out``: damaged ranges, and batches with a
    wrong base offset. The offsets ``missing_from`` to ``missing_until`` - 1 (None: to the log end) may be missing.
    """

    def __init__(
        self,
        folder: VolumeFolder,
        segments: Iterable[Segment],
        *,
        is_compacted: bool,
        noted: Sequence[EpochEntry] = (),
    ) -> None:
        """Read all segments. ``noted``: leader epochs of the checkpoint. Unless ``is_compacted``, a gap ends a span."""
        self.folder = folder
        self.segments = tuple(segments)
        self.highest_producer_id = -1
        self.has_transactions = False
        self.newest_ms = -1
        """The newest time of a record in the last segment, in ms; -1 if it has none."""
        self.spans: list[BatchSpan] = []
        self.doubtful: list[BatchSpan] = []
        self.left_out: list[LeftOutRange] = []
        self.claimed_end = 0
        """The end offset according to batch headers in a damaged range at the end of the log; 0 if there are none."""
        self._is_compacted = is_compacted
        self._contents: list[tuple[list[BatchSpan], list[LeftOutRange]]] = []
        """The valid batches and the damaged ranges of each segment."""
        for each in self.segments:
            account, self.newest_ms = Account(), -1
            spans: list[BatchSpan] = []
            regions = map(self._seen, resync.of_segment(each, DATA))
            for place, is_credible in judged(each, in_rows(each, regions), account):
                if is_credible:
                    self._add(spans, place)
            self._contents.append((spans, account.lost))
        self._judge(noted)

    def take_as_compacted(self, noted: Sequence[EpochEntry]) -> None:
        """Treat the log as compacted: gaps between offsets are allowed. Valid batches are not read again."""
        self._is_compacted = True
        for number, (spans, lost) in enumerate(self._contents):
            linked: list[BatchSpan] = []
            for span in spans:
                self._link(linked, span)
            self._contents[number] = linked, lost
        self._judge(noted)

    def _judge(self, noted: Sequence[EpochEntry]) -> None:
        self.spans, self.doubtful, self.left_out, self.claimed_end = [], [], [], 0
        bases = [each.base_offset for each in self.segments]
        for each, following, (spans, lost) in zip(self.segments, [*bases[1:], None], self._contents, strict=False):
            kept, wrong = self._doubt_offsets(each, spans, following, lost)
            self._take_lost([*lost, *wrong], kept, following)
            self.spans += kept
        self._doubt_epochs(EpochHistory(noted))

    @property
    def is_sound(self) -> bool:
        """Whether no range is left out, and no batch is doubtful."""
        return not (self.left_out or self.doubtful)

    @property
    def end_offset(self) -> int:
        """The highest end offset of a span; 0 without a span."""
        return max((span.last_offset + 1 for span in self.spans), default=0)

    def _seen(self, region: Region) -> Region:
        if isinstance(region, Batches):
            self.highest_producer_id = max(self.highest_producer_id, region.greatest("producer_id"))
            self.newest_ms = max(self.newest_ms, region.greatest("max_timestamp"))
            self.has_transactions |= region.greatest("attributes") >= IS_TRANSACTIONAL
        return region

    def _take_lost(self, found: Iterable[LeftOutRange], spans: Sequence[BatchSpan], following: int | None) -> None:
        """Add the damaged ranges of a segment. A range gets the offsets between the spans before and after it.

        In a compacted log it gets the offsets of its batch headers, if they fill it and end before the next span. In
        another log, a batch whose base offset alone is wrong may also be added to ``doubtful`` (:func:`_replaced`).
        """
        for one in found:
            before = bisect_right(spans, one.position, key=_end)
            after = bisect_left(spans, one.end, key=_position)
            start = spans[before - 1].last_offset + 1 if before else one.segment.base_offset or 0
            stop = spans[after].base_offset if after < len(spans) else following
            claimed = _claimed(one, start, is_compacted=self._is_compacted)
            if stop is None:
                self.claimed_end = max(self.claimed_end, claimed.stop)
            elif self._is_compacted and claimed.is_whole and claimed.stop <= stop:
                start, stop = claimed.start, claimed.stop
            self.left_out.append(one._replace(missing_from=start, missing_until=stop))
            if (
                one.kind in {"misplaced", "offset"}
                and not self._is_compacted
                and (one.position == (spans[before - 1].end if before else 0))
            ):
                self.doubtful += _replaced(one, start, stop)

    def _add(self, spans: list[BatchSpan], place: BatchPlace | PlacesInARow) -> None:
        if isinstance(place, BatchPlace):
            self._link(spans, _span(place, place.epoch))
            return
        bases, lasts, epochs, _ = place.columns
        is_even = epochs.count(epochs[0]) == len(epochs)
        if is_even and not self._is_compacted:
            is_even = sum(lasts) - sum(bases) + place.batches == place.last_offset - place.base_offset + 1
        if is_even:
            self._link(spans, _span(place, epochs[0], place.batches))
            return
        for one in place.places():
            self._link(spans, _span(one, one.epoch))

    def _link(self, spans: list[BatchSpan], new: BatchSpan) -> None:
        extended = spans[-1].extended(new, SPAN_BYTES, NEAR if self._is_compacted else 1) if spans else None
        if extended is None:
            spans.append(new)
        else:
            spans[-1] = extended

    def _doubt_epochs(self, noted: EpochHistory) -> None:
        """Move batches whose epoch is likely wrong to ``doubtful``. Right epochs never decrease in a log."""
        known = {entry.epoch for entry in noted.entries}
        starts = {entry.start_offset for entry in noted.entries}
        kept: list[BatchSpan] = []
        for number, span in enumerate(self.spans):
            expected = noted.at(span.base_offset)
            is_noted = span.epoch in known and span.base_offset not in starts
            if span.epoch < -1 or (_is_flipped_low(span, expected) and not is_noted):
                self.doubtful.append(span)
                continue
            after = self.spans[number + 1].epoch if number + 1 < len(self.spans) else None
            while kept and span.epoch < kept[-1].epoch and _is_higher_wrong(kept, span, after, noted):
                self.doubtful.append(kept.pop())
            if kept and span.epoch < kept[-1].epoch and span.batches == 1 and span.epoch >= 0:
                self.doubtful.append(span)
            else:
                kept.append(span)
        self.spans = kept

    def _doubt_offsets(
        self, each: Segment, spans: Sequence[BatchSpan], following: int | None, damaged: Sequence[LeftOutRange]
    ) -> tuple[list[BatchSpan], list[LeftOutRange]]:
        """Return the spans without a contradiction, and those with an unknown base offset as left-out ranges.

        The offsets of a segment increase from its base offset to ``following``, the base offset of the next segment. If
        the log is not compacted, a batch starts at the end offset of the batch before it. If the neighbours of a batch
        determine another offset, the batch is added with it to ``self.doubtful``, and its bytes to ``self.left_out``.
        """
        low = each.base_offset or 0
        high = low + MAX_RELATIVE_OFFSET + 1 if following is None else following
        kept: list[BatchSpan] = []
        wrong: list[BatchSpan] = []
        neighbours = _Neighbours(spans, damaged, is_last=following is None)
        least = low
        for number, span in enumerate(spans):
            while kept and span.base_offset <= kept[-1].last_offset and kept[-1].batches == 1 < span.batches:
                wrong.append(kept.pop())
                least = kept[-1].last_offset + 1 if kept else low
            right = None if self._is_compacted or span.batches > 1 else neighbours.right_offset(number, least)
            after = least if right is None else right + span.last_offset - span.base_offset + 1
            if right is not None and right != span.base_offset and least <= right and after <= high:
                self.doubtful.append(span._replace(base_offset=right, last_offset=after - 1))
                self.left_out.append(_misplaced(span)._replace(missing_from=right, missing_until=after))
                least = after
            elif span.base_offset < least or span.last_offset >= high:
                wrong.append(span)
            else:
                kept.append(span)
                least = span.last_offset + 1
        return kept, [_misplaced(span) for span in wrong]


class _Neighbours:
    """The spans and damaged ranges of a segment of a log that is not compacted."""

    def __init__(self, spans: Sequence[BatchSpan], damaged: Sequence[LeftOutRange], *, is_last: bool) -> None:
        self._spans, self._is_last = spans, is_last
        self._before = {one.end: one for one in damaged}
        self._has_gap = [False, *starmap(has_gap, pairwise(spans)), False]
        """For each span, whether a gap is before it. The last item is for the end of the segment."""
        self._gaps = sum(self._has_gap)

    def right_offset(self, number: int, least: int) -> int | None:
        """Return the right base offset of a one-batch span; None if uncertain. ``least``: the end of earlier spans."""
        span = self._spans[number]
        count = span.last_offset - span.base_offset + 1
        after = self._spans[number + 1] if number + 1 < len(self._spans) else None
        after = after if after is not None and after.position == span.end else None
        right = self._end_before(number, least)
        if right is not None and after is not None and after.base_offset == right + count:
            return right
        if right is None and after is not None:
            right = after.base_offset - count
        elif right is None or after is not None:
            return None
        # After a change of cleanup.policy gaps are normal, except in the last segment: a cleaner does not read it.
        may_have_gaps = self._gaps > sum(self._has_gap[number : number + 2]) or not self._is_last
        is_far = abs(span.base_offset - right) > NEAR
        return right if (is_far or not may_have_gaps) and _is_flipped(span.base_offset, right) else None

    def _end_before(self, number: int, least: int) -> int | None:
        """Return the end offset of the valid or damaged batches directly before a span; None if unknown."""
        position = self._spans[number].position
        if position == (self._spans[number - 1].end if number else 0):
            return least
        damaged = self._before.get(position)
        claimed = None if damaged is None else _claimed(damaged, least, is_compacted=False)
        return claimed.stop if claimed is not None and claimed.is_whole else None


def _span(place: BatchPlace | PlacesInARow, epoch: int, batches: int = 1) -> BatchSpan:
    return BatchSpan(place.segment, place.position, place.end, place.base_offset, place.last_offset, epoch, batches)


def has_gap(one: BatchSpan, following: BatchSpan) -> bool:
    """Return whether offsets are missing between two spans without bytes between them: a log cleaner removed them."""
    is_next = one.segment is following.segment and one.end == following.position
    return is_next and one.last_offset + 1 < following.base_offset


def _is_flipped(offset: int, right: int) -> bool:
    """Return whether ``offset`` is ``right`` with at most two flipped bits, or with its first bytes set to zero."""
    return (offset ^ right).bit_count() <= 2 or any(offset == right & (1 << bits) - 1 for bits in range(8, 64, 8))


def _is_flipped_low(span: BatchSpan, expected: int | None) -> bool:
    """Return whether a span is one batch whose leader epoch is below ``expected`` and differs from it by one bit."""
    if expected is None or span.batches > 1 or not 0 <= span.epoch < expected:
        return False
    return (span.epoch ^ expected).bit_count() == 1


def _is_higher_wrong(kept: Sequence[BatchSpan], span: BatchSpan, after: int | None, noted: EpochHistory) -> bool:
    """Return whether the last span of ``kept``, with a higher epoch than the next ``span``, likely has a wrong one.

    ``after`` is the epoch of the span after ``span`` (None at the end). ``noted`` has the epochs of the checkpoint.
    """
    higher, before = kept[-1], kept[-2].epoch if len(kept) > 1 else -1
    if higher.batches > 1 or before > span.epoch:
        return False
    if span.batches > 1:
        return True
    if noted.at(higher.base_offset) == higher.epoch or noted.at(span.base_offset) == span.epoch:
        return noted.at(higher.base_offset) != higher.epoch
    return before == span.epoch if after is None else after < higher.epoch


def _misplaced(span: BatchSpan) -> LeftOutRange:
    why = f"offsets {span.base_offset} to {span.last_offset} contradict the batches before and after them"
    return LeftOutRange(span.segment, span.position, span.size, "misplaced", why)


def _replaced(one: LeftOutRange, start: int, stop: int | None) -> Iterator[BatchSpan]:
    """Yield the only batch of a range, moved to ``start``; nothing below magic 2, or if it misses a given ``stop``."""
    with one.segment.open() as source:
        header = source.read(one.position, BATCH_HEADER.size)
    if len(header) == BATCH_HEADER.size:
        batch = BATCH_HEADER.read(header)
        end = start + batch.last_offset_delta + 1
        is_alone = LOG_OVERHEAD.size + batch.length == one.size
        if batch.magic == MAGIC_2 and is_alone and (stop is None or end == stop):
            yield BatchSpan(one.segment, one.position, one.end, start, end - 1, batch.partition_leader_epoch, 1)


class ClaimedOffsets(NamedTuple):
    """The offsets in the batch headers of a damaged range. ``is_whole``: these batches fill the range exactly."""

    start: int
    stop: int
    is_whole: bool


def _claimed(one: LeftOutRange, expected: int, *, is_compacted: bool) -> ClaimedOffsets:
    """Return the offsets of the batches in a damaged range, by their headers. Without batches both offsets are 0.

    The first batch must start at ``expected``, and each later batch at the end of the previous batch. In a compacted
    log a batch may start at a higher offset. Reading ends at the first other batch, or impossible header.
    """
    start = stop = 0
    position = one.position
    try:
        with one.segment.open() as source:
            while position < one.end:
                header = source.read(position, BATCH_HEADER.size)
                if len(header) < BATCH_HEADER.size:
                    break
                batch = BATCH_HEADER.read(header)
                follows = expected <= batch.base_offset if is_compacted else expected == batch.base_offset
                is_near = batch.base_offset - expected <= MAX_RELATIVE_OFFSET
                is_batch = batch.magic == MAGIC_2 and batch.length >= BATCH_HEADER.size - LOG_OVERHEAD.size
                has_room = batch.records_count - 1 <= batch.last_offset_delta <= batch.length
                has_room = has_room and (is_compacted or batch.records_count - 1 == batch.last_offset_delta)
                if not (follows and is_near and is_batch and has_room and batch.last_offset_delta >= 0):
                    break
                start = batch.base_offset if position == one.position else start
                stop = expected = batch.base_offset + batch.last_offset_delta + 1
                position += batch.length + LOG_OVERHEAD.size
    except UnreadableError:
        return ClaimedOffsets(start, stop, False)
    return ClaimedOffsets(start, stop, position == one.end)


def history(scanned: ScannedCopy, noted: Sequence[EpochEntry]) -> EpochHistory:
    """Return the leader epochs of a copy, from its batches and from those entries of its checkpoint that match them.

    After an election followers truncate their logs to match the log of the new leader (KIP-101, KIP-279). So the copy
    with the newest leader epoch has the history of the log. A batch of another copy belongs to this log if the history
    has the batch's leader epoch at its offset.
    """
    spans = [span for span in scanned.spans if span.epoch >= 0]
    lowest = [*accumulate((span.epoch for span in reversed(spans)), min, initial=NEVER)][::-1]
    believed = [
        entry for entry in noted if lowest[bisect_left(spans, entry.start_offset, key=_last_offset)] >= entry.epoch
    ]
    known = {entry.epoch for entry in believed}
    made: list[EpochEntry] = []
    for span in spans:
        if not made or span.epoch > made[-1].epoch:
            made.append(EpochEntry(span.epoch, span.base_offset))
    return EpochHistory([*believed, *(entry for entry in made if entry.epoch not in known)])


def filled(
    own: EpochHistory, scanned: ScannedCopy, noted: Sequence[EpochEntry], others: Sequence[EpochHistory]
) -> EpochHistory:
    """Return ``own`` with epochs of ``others`` in its holes. Up to a common leader epoch logs are equal."""
    known = {entry.epoch for entry in noted}
    found: list[EpochEntry] = []
    for entry in own.entries[1:]:
        before = bisect_left(scanned.spans, entry.start_offset, key=_base_offset)
        end = scanned.spans[before - 1].last_offset + 1 if before else 0
        if entry.epoch in known or end == entry.start_offset:
            continue
        for other in others:
            if any(one.epoch == entry.epoch for one in other.entries):
                found += [one for one in other.entries if end <= one.start_offset < entry.start_offset]
    return EpochHistory([*own.entries, *found])
