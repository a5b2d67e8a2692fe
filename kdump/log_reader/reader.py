"""The reader of partitions: batches and records that a filter takes, in offset order, and damaged ranges.

Segments and bytes that cannot hold what is wanted are skipped (:mod:`kdump.log_reader.segment_choice`).
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, TypeVar

from kdump.errors import UnreadableError, raise_it
from kdump.log_dirs import local
from kdump.log_reader import region_stream, segment_choice
from kdump.log_reader.batch_selection import BatchSelection, Take
from kdump.log_reader.filter import Filter
from kdump.log_reader.last_records import TailRanges, joined, without_first
from kdump.log_reader.segment_choice import CheckpointOffsets
from kdump.records.record_batch import Batches, RecordBatch
from kdump.rows.selection import DamagedRange, SelectedBatch, last_batches_of, last_of
from kdump.segments import log_end
from kdump.segments.batch_runs import Run
from kdump.segments.regions import Damage, Trailing

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    from kdump.formats.record import Record
    from kdump.log_dirs.files import OpenSource, Source
    from kdump.log_dirs.partition import Partition, Segment
    from kdump.log_reader.batch_selection import Offer
    from kdump.log_reader.last_records import TailRange
    from kdump.log_reader.region_stream import ReadStats
    from kdump.parallel.costs import SegmentPart
    from kdump.rows.selection import SegmentFacts
    from kdump.schemas.decoder import PayloadDecoder
    from kdump.segments.read_ahead import SizedResult
    from kdump.segments.regions import OnError, Region
    from kdump.transaction_replay.outcomes import Outcomes, Scan

M = TypeVar("M", bound="SizedResult")


class PartitionReader:
    """Reads partitions through a filter.

    ``wrong_index`` is called with a fault of a file that a broker rebuilds, ``damage`` with a file beside the log that
    a broker refuses. ``fail`` is called with an unreadable file (by default it raises), ``progress`` with the bytes
    that are done.
    """

    offer: Offer | None = None
    """What reads batches itself (:class:`kdump.log_reader.batch_selection.BatchSelection`)."""
    offer_all = False
    """Whether what reads batches itself applies the filter: it is offered all batches that may hold what is taken."""
    stats: ReadStats | None = None
    """Counts what is read, where that is wanted."""

    def __init__(  # noqa: PLR0913  each option by its name
        self,
        filter: Filter = Filter(),  # noqa: A002, B008  what it is; a tuple
        take: Take = Take.RECORDS,
        *,
        outcomes: bool = True,
        on_error: OnError = "resync",
        include_damaged: bool = False,
        wrong_index: Callable[[str], None] = lambda _: None,
        damage: Callable[[str], None] = lambda _: None,
        fail: Callable[[UnreadableError], None] = raise_it,
        note: Callable[[str], None] = lambda _: None,
        progress: Callable[[int], None] = lambda _: None,
        decoder: PayloadDecoder | None = None,
    ) -> None:
        """Without ``outcomes`` it does not show the outcome of transactions, which may take a second look at headers.

        ``decoder`` decodes payloads for the column ``decoded``.
        With ``include_damaged`` batches with a wrong crc are yielded too, as far as they can be read.
        """
        self.filter, self.take, self.outcomes = filter, take, outcomes
        self.on_error, self.include_damaged = on_error, include_damaged
        self.wrong_index, self.fail, self.note, self.progress = wrong_index, fail, note, progress
        self.decoder = decoder
        self._followed: tuple[Partition, Outcomes] | None = None
        self._ahead: dict[int, Outcomes] = {}
        """By the identity of the partition."""
        self.checkpoints = CheckpointOffsets(damage, self.fail)
        in_runs = self.take not in (Take.RECORDS, Take.BATCHES)
        self._of_batches = self.take in (Take.BATCHES, Take.BATCH_RUNS)
        self._runs = in_runs and self.filter.takes_runs and not self.include_damaged
        self._packed = self.take not in (Take.BATCH_RUNS, Take.HEADERS)

    def read(
        self, partition: Partition, only: Sequence[Segment] | None = None
    ) -> Iterator[SelectedBatch | DamagedRange]:
        """Yield what the filter takes of a partition, in offset order, and every damaged range that is met.

        ``only`` names those of its segments that are read.
        """
        for item, _ in self._read(partition, None, only):
            yield item

    def read_making(
        self, partition: Partition, make: Callable[[SelectedBatch, Run], M | None]
    ) -> Iterator[tuple[SelectedBatch | DamagedRange, M | None]]:
        """Yield what :meth:`read` yields, each with a result of ``make`` or None.

        Threads that read ahead call ``make`` with runs of batches, all of whose records are selected.
        """
        return self._read(partition, make)

    def _read(
        self,
        partition: Partition,
        make: Callable[[SelectedBatch, Run], M | None] | None,
        only: Sequence[Segment] | None = None,
    ) -> Iterator[tuple[SelectedBatch | DamagedRange, M | None]]:
        whole = only is None or only[:1] == partition.segments[:1]
        selection, facts = self._begin(partition, reported=not whole)
        paths = None if only is None else {segment.path for segment in only}
        note = self.note if whole else _ignore
        for segment in segment_choice.segments(partition, self.filter, self.progress, note):
            if paths is None or segment.path in paths:
                yield from self._pairs(segment, selection, facts._replace(name=segment.name), None, make)

    def records(
        self, partitions: Iterable[Partition], lost: Callable[[DamagedRange], None] = lambda _: None
    ) -> Iterator[Record]:
        """Yield the records that the filter takes of partitions, without markers; ``lost`` takes damaged ranges."""
        for partition in partitions:
            for item in self.read(partition):
                if not isinstance(item, SelectedBatch):
                    lost(item)
                elif not item.batch.is_control:
                    yield from item.records

    def read_part(
        self, partition: Partition, segment: Segment, part: SegmentPart
    ) -> Iterator[SelectedBatch | DamagedRange]:
        """Yield what the filter, which must be one without offsets and times, takes of a part of a segment.

        What stands there is then noted in ``part``.
        """
        selection, facts = self._begin(partition, reported=part.start > 0 or segment != partition.segments[0])
        yield from self._segment(segment, selection, facts._replace(name=segment.name), part)

    def tail(self, partition: Partition, count: int) -> Iterator[SelectedBatch | DamagedRange]:
        """Yield the last ``count`` records that the filter takes (or batches), reading segments from the last one.

        A segment is read from its end, and no further than these stand in it; then what was counted is read again, in
        order. The damage that is met in a segment comes before its batches.
        """
        selection, facts = self._begin(partition)
        if not count:
            return
        found: list[tuple[Segment, list[TailRanges]]] = []
        left = count
        for segment in reversed(list(segment_choice.segments(partition, self.filter, self.progress, self.note))):
            found.append((segment, self._last_of(segment, selection, facts._replace(name=segment.name), left)))
            left -= sum(marks.held for marks in found[-1][1])
            if left <= 0:
                break
        again = self._silent()
        for segment, parts in reversed(found):
            file = facts._replace(name=segment.name)
            for marks in parts:
                yield from marks.lost
            batches = again._marked(segment, selection, file, parts)
            if left <= 0:  # there are as many and more: some of the first segment are too many
                batches = without_first(batches, -left, self._size, last_batches_of if self._of_batches else last_of)
                left = 1
            yield from batches

    def _silent(self) -> PartitionReader:
        """Return a copy of the reader that reports nothing again."""
        from copy import copy  # needed for the last records alone

        again = copy(self)
        again.wrong_index = again.note = again.progress = _ignore
        again.checkpoints = CheckpointOffsets(_ignore, self.fail)
        again.stats = None
        return again

    def _last_of(self, segment: Segment, selection: BatchSelection, file: SegmentFacts, count: int) -> list[TailRanges]:
        """Return where the last ``count`` records or batches of a segment stand, and perhaps some before them."""
        parts: list[TailRanges] = []
        left, lost = count, 0
        in_parts = not self.filter.is_bounded and self.on_error == "resync"
        for part in self._backwards(segment) if in_parts else ():
            stop = part.stop
            parts.append(self._marks(self._segment(segment, selection, file, part), left))
            lost = lost or part.lost
            left -= parts[-1].held
            if part.reached != stop and not part.is_over:  # what seemed a batch is part of a damaged one
                in_parts = False
            if left <= 0 or not in_parts:
                break
        if not in_parts:
            return [self._marks(self._segment(segment, selection, file), count)]
        if lost:
            self.note_lost(segment, lost)
        return parts[::-1]

    def _marks(self, items: Iterator[SelectedBatch | DamagedRange], count: int) -> TailRanges:
        marks = TailRanges(count)
        marks.read(items, self._size)
        return marks

    def _marked(
        self, segment: Segment, selection: BatchSelection, file: SegmentFacts, parts: list[TailRanges]
    ) -> Iterator[SelectedBatch]:
        """Yield the marked batches of a segment. Its damaged ranges were already yielded."""
        if all(marks.is_empty for marks in parts):  # also where it cannot be read, which has been reported
            return
        try:
            with segment.open() as source:
                for kept in joined(parts):
                    held = 0
                    for item in self._range(source, kept, selection, file):
                        if isinstance(item, SelectedBatch):
                            held += self._size(item)
                            yield item
                    if held != kept.held:
                        raise UnreadableError(
                            segment.name, f"byte {kept.start}: it has changed since kdump read it first"
                        )
        except UnreadableError as error:
            self.fail(error)

    def _range(
        self, source: Source, kept: TailRange, selection: BatchSelection, file: SegmentFacts
    ) -> Iterator[SelectedBatch | DamagedRange]:
        """Yield the filter's selection from a marked range."""
        start, end = kept.start, kept.end
        if not kept.crc_valid:
            yield from self._wrong_crc(Damage(start, end - start, "crc", "", start), source, selection, file)
            return
        runs = self._runs or selection.in_runs
        with closing(region_stream.batches_of(source, start, end, runs=runs, packed=self._packed)) as regions:
            for region in regions:
                yield from self._region(region, source, selection, file)

    def _backwards(self, segment: Segment) -> Iterator[SegmentPart]:
        from kdump.log_reader import last_records  # needed for the last records alone

        try:
            yield from last_records.backwards(segment)
        except UnreadableError as error:
            self.fail(error)

    def _size(self, item: SelectedBatch) -> int:
        return item.batch_count if self._of_batches else len(item.records)

    def _begin(self, partition: Partition, *, reported: bool = False) -> tuple[BatchSelection, SegmentFacts]:
        """Return the selection of a partition's batches, and the facts on its segments for rows.

        With ``reported`` the reasons for held-back offsets are not noted again.
        """
        knows = self.outcomes or self.filter.committed
        outcomes = (lambda: self.outcomes_of(partition)) if knows else None
        selection = BatchSelection(self.filter, self.take, outcomes, self.offer, offer_all=self.offer_all)
        if self.filter.committed and not reported:
            for text in self.outcomes_of(partition).held_back:
                self.note(f"{partition.name}: {text}")
        return selection, self.checkpoints.facts(partition)._replace(decoder=self.decoder)

    def outcomes_of(self, partition: Partition) -> Outcomes:
        """Return the outcome of a partition's transactions; that of the last partition is kept."""
        known = self._ahead.get(id(partition))
        if known is not None:
            return known
        if self._followed is None or self._followed[0] is not partition:
            from kdump.transaction_replay.outcomes import follow  # needed for transactions alone

            self._followed = (partition, follow(partition, self.wrong_index, self.fail))
        return self._followed[1]

    def follow_ahead(self, partition: Partition, scans: Iterable[Scan]) -> None:
        """Put together the outcome of a partition's transactions, and keep it as long as the reader.

        ``scans`` are those of its segments.
        """
        from kdump.transaction_replay.outcomes import follow

        self._ahead[id(partition)] = follow(partition, self.wrong_index, self.fail, scans)

    def _segment(
        self, segment: Segment, selection: BatchSelection, file: SegmentFacts, part: SegmentPart | None = None
    ) -> Iterator[SelectedBatch | DamagedRange]:
        """Yield what the filter takes of one segment, or of a part of it."""
        for item, _ in self._pairs(segment, selection, file, part, None):
            yield item

    def _pairs(
        self,
        segment: Segment,
        selection: BatchSelection,
        file: SegmentFacts,
        part: SegmentPart | None,
        make: Callable[[SelectedBatch, Run], M | None] | None,
    ) -> Iterator[tuple[SelectedBatch | DamagedRange, M | None]]:
        """Yield the same, each with the result of ``make`` or None."""
        done, end = (0, segment.size) if part is None else (part.start, part.stop)
        if self.stats is not None:
            self.stats.segments.add(segment.name)
        try:
            with segment.open() as source:
                with closing(self._regions(segment, source, selection, file, part, make)) as regions:
                    for region, made in regions:
                        stop = selection.first_past(region) if isinstance(region, Batches) else 1
                        if not stop and isinstance(region, RecordBatch):
                            break
                        if self.stats is not None:
                            self.stats.add(region)
                        if isinstance(region, Trailing) and not (found := log_end.tail(segment, region)).is_damage:
                            self.note(f"{segment.name}: byte {region.position}: {found.text}")
                        else:
                            for item in self._region(region, source, selection, file):
                                yield item, made
                                made = None  # it is of the first item, which is all of the run
                        if isinstance(region, Batches) and stop < region.batch_count:
                            break
                        self.progress(region.position + region.size - done)
                        done = region.position + region.size
                if isinstance(source, local.LocalFile) and source.lost:
                    if part is None:
                        self.note_lost(segment, source.lost)
                    else:
                        part.lost = source.lost
        except UnreadableError as error:
            if part is not None:
                part.is_over = True
            self.fail(error)
        self.progress(end - done)

    def _regions(
        self,
        segment: Segment,
        source: OpenSource,
        selection: BatchSelection,
        file: SegmentFacts,
        part: SegmentPart | None,
        make: Callable[[SelectedBatch, Run], M | None] | None,
    ) -> Generator[tuple[Region, M | None], None, None]:
        """Return the regions of a segment or of a part of it, each with the result of ``make`` or None."""
        span = segment_choice.byte_range(segment, source, self.filter, self.wrong_index)
        runs = self._runs or selection.in_runs
        if part is not None:
            return region_stream.part_of(segment, source, part, self.on_error, runs=runs, packed=self._packed)
        return region_stream.stream(
            segment,
            source,
            span,
            self.on_error,
            runs=runs,
            packed=self._packed,
            check=self._runs and self.take is Take.RUNS,  # a reader that counts has nothing else to do
            make=None if make is None or not self._runs else _making(make, selection, file),
        )

    def note_lost(self, segment: Segment, lost: int) -> None:
        """Report that a segment became shorter while it was read."""
        self.note(f"{segment.name} became {lost} bytes shorter while it was read")

    def _region(
        self, region: Region, source: Source, selection: BatchSelection, file: SegmentFacts
    ) -> Iterator[SelectedBatch | DamagedRange]:
        if isinstance(region, Run):
            yield from selection.select_run(region, file)
        elif isinstance(region, RecordBatch):
            yield from selection.select(region, file)
        elif isinstance(region, Damage | Trailing):
            yield DamagedRange(file, region.damage() if isinstance(region, Trailing) else region)
            if self.include_damaged and isinstance(region, Damage) and region.kind == "crc":
                yield from self._wrong_crc(region, source, selection, file)

    def _wrong_crc(
        self, damage: Damage, source: Source, selection: BatchSelection, file: SegmentFacts
    ) -> Iterator[SelectedBatch]:
        """Yield the batches with a wrong crc at the start of a damaged range, as far as they can be read."""
        for batch in region_stream.wrong_crc(source, damage):
            for item in selection.select(batch, file):
                if isinstance(item, DamagedRange):  # it is part of the damaged range
                    self.note(
                        f"{file.name}: byte {batch.position}: the batch with a wrong crc cannot be shown whole: "
                        f"{item.damage.kind}, byte {item.damage.at}"
                    )
                else:
                    yield item
            if self.on_error == "stop":
                return


def _ignore(_: object) -> None:
    """Discard a note that was already reported."""


def _making(
    make: Callable[[SelectedBatch, Run], M | None], selection: BatchSelection, file: SegmentFacts
) -> Callable[[Run], M | None]:
    """Return a function that calls ``make`` with a run if all of its records are selected at once."""

    def made(run: Run) -> M | None:
        found = selection.in_one(run, file)
        if found is None or found[1].stop < found[1].run.batch_count:
            return None
        item, records = found
        return make(item, records.run)

    return made
