"""The reader of partitions: the batches and records that a filter selects, and damaged ranges, in file order.

It skips segments and bytes that cannot hold selected records (:mod:`kdump.log_reader.segment_choice`). Errors of
unreadable segments go to ``report.fail``, which raises them by default.
"""

from __future__ import annotations

from contextlib import closing
from itertools import dropwhile
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from kdump.errors import Reporter, UnreadableError, discard
from kdump.log_dirs import local
from kdump.log_reader import last_records, region_stream, segment_choice
from kdump.log_reader.batch_selection import BatchSelection, Take
from kdump.log_reader.filter import Filter
from kdump.log_reader.last_records import TailRanges
from kdump.log_reader.segment_choice import CheckpointOffsets
from kdump.primitives.terminal import path_text
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

_ITEM: Final = itemgetter(0)


class ReadStart(NamedTuple):
    """The start of reading: the shown path of a segment, and the position of a batch or damaged range in it."""

    file: str
    position: int

    def is_in(self, partition: Partition) -> bool:
        return any(path_text(segment.name) == self.file for segment in partition.segments)


class PartitionReader:
    offer: Offer | None = None
    offer_all = False
    for_columns = False
    """:class:`kdump.log_reader.batch_selection.BatchSelection` explains offer, offer_all and for_columns."""
    stats: ReadStats | None = None
    begin: ReadStart | None = None
    """The position at which :meth:`read` starts in the partition with this segment. It has no effect on others."""

    def __init__(
        self,
        filter: Filter = Filter(),  # noqa: A002, B008  the clearest name; an immutable tuple
        take: Take = Take.RECORDS,
        *,
        outcomes: bool = True,
        on_error: OnError = "resync",
        include_damaged: bool = False,
        report: Reporter = Reporter(),  # noqa: B008  an immutable tuple
        decoder: PayloadDecoder | None = None,
    ) -> None:
        """With ``outcomes``, items have the outcome of their transaction. To find it, headers may be scanned first.

        With ``include_damaged``, the reader also yields readable records of batches with a wrong checksum and a
        plausible header. ``decoder`` decodes payloads for the column ``decoded`` and for a ``decoded`` filter.
        """
        self.filter, self.take, self.outcomes = filter, take, outcomes
        self.on_error, self.include_damaged = on_error, include_damaged
        self.report, self.decoder = report, decoder
        self._followed: tuple[Partition, Outcomes] | None = None
        self._ahead: dict[int, Outcomes] = {}
        """``id(partition)`` -> the outcomes of its transactions, if :meth:`follow_ahead` was called."""
        self.checkpoints = CheckpointOffsets(report)
        in_runs = self.take not in (Take.RECORDS, Take.BATCHES)
        self._of_batches = self.take in (Take.BATCHES, Take.BATCH_RUNS)
        self._runs = in_runs and self.filter.takes_runs and not self.include_damaged
        self._packed = self.take not in (Take.BATCH_RUNS, Take.HEADERS)

    def read(
        self, partition: Partition, only: Sequence[Segment] | None = None
    ) -> Iterator[SelectedBatch | DamagedRange]:
        """Return the selected batches and the damaged ranges in file order. ``only``: read only these segments."""
        return map(_ITEM, self._read(partition, None, only))

    def read_making(
        self, partition: Partition, make: Callable[[SelectedBatch, Run], M | None]
    ) -> Iterator[tuple[SelectedBatch | DamagedRange, M | None]]:
        """Yield the items of :meth:`read`, each with the result of ``make``, or None if ``make`` was not called.

        Threads that read ahead call ``make`` with an item and its run, if the filter selects all records of the run.
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
        note = self.report.note if whole else discard
        if self.begin is not None and self.begin.is_in(partition):
            after = dropwhile(lambda one: self._first_byte(one) is None, partition.segments)
            paths = {segment.path for segment in after if paths is None or segment.path in paths}
        for segment in segment_choice.segments(partition, self.filter, self.report.progress, note):
            if paths is None or segment.path in paths:
                yield from self._pairs(segment, selection, facts._replace(name=segment.name), None, make)

    def _first_byte(self, segment: Segment) -> int | None:
        return self.begin.position if self.begin is not None and self.begin.file == path_text(segment.name) else None

    def records(
        self, partitions: Iterable[Partition], lost: Callable[[DamagedRange], None] = lambda _: None
    ) -> Iterator[Record]:
        """Yield the selected records of partitions, without control records. Call ``lost`` with damaged ranges."""
        for partition in partitions:
            for item in self.read(partition):
                if not isinstance(item, SelectedBatch):
                    lost(item)
                elif not item.batch.is_control:
                    yield from item.records

    def read_part(
        self, partition: Partition, segment: Segment, part: SegmentPart
    ) -> Iterator[SelectedBatch | DamagedRange]:
        """Yield the items of a part, then set the results in ``part``. The filter must not be ``is_bounded``."""
        selection, facts = self._begin(partition, reported=part.start > 0 or segment != partition.segments[0])
        yield from self._segment(segment, selection, facts._replace(name=segment.name), part)

    def tail(self, partition: Partition, count: int) -> Iterator[SelectedBatch | DamagedRange]:
        """Yield the last ``count`` selected records, or batches if the reader yields batches.

        Segments are read from the last one back, until ``count`` records or batches are found. The bytes that hold them
        are then read again in offset order. The damaged ranges of a segment are yielded before its batches.
        """
        selection, facts = self._begin(partition)
        if not count:
            return
        found: list[tuple[Segment, list[TailRanges]]] = []
        remaining = count
        report = self.report
        for segment in reversed(list(segment_choice.segments(partition, self.filter, report.progress, report.note))):
            found.append((segment, self._last_of(segment, selection, facts._replace(name=segment.name), remaining)))
            remaining -= sum(part.held for part in found[-1][1])
            if remaining <= 0:
                break
        again = self._silent()
        for segment, parts in reversed(found):
            file = facts._replace(name=segment.name)
            for part in parts:
                yield from part.lost
            batches = again._selected_again(segment, selection, file, parts)
            if remaining <= 0:  # the first segment has -remaining more records or batches than needed
                last = last_batches_of if self._of_batches else last_of
                batches = last_records.without_first(batches, -remaining, self._size, last)
                remaining = 1
            yield from batches

    def _silent(self) -> PartitionReader:
        from copy import copy

        again = copy(self)
        again.report = Reporter(fail=self.report.fail)
        again.checkpoints = CheckpointOffsets(again.report)
        again.stats = None
        return again

    def _last_of(self, segment: Segment, selection: BatchSelection, file: SegmentFacts, count: int) -> list[TailRanges]:
        """Return the ranges of a segment that hold its last ``count`` records or batches, and perhaps some more."""
        parts: list[TailRanges] = []
        remaining, lost = count, 0
        in_parts = not self.filter.is_bounded and self.on_error == "resync"
        for part in self._backwards(segment) if in_parts else ():
            stop = part.stop
            parts.append(TailRanges(self._segment(segment, selection, file, part), remaining, self._size))
            lost = lost or part.lost
            remaining -= parts[-1].held
            if part.reached != stop and not part.is_over:  # the part began inside a record
                in_parts = False
            if remaining <= 0 or not in_parts:
                break
        if not in_parts:
            return [TailRanges(self._segment(segment, selection, file), count, self._size)]
        if lost:
            self.note_lost(segment, lost)
        return parts[::-1]

    def _selected_again(
        self, segment: Segment, selection: BatchSelection, file: SegmentFacts, parts: list[TailRanges]
    ) -> Iterator[SelectedBatch]:
        if all(part.is_empty for part in parts):  # or the segment is unreadable, which is reported
            return
        try:
            with segment.open() as source:
                for kept in last_records.joined(parts):
                    held = 0
                    for item in self._range(source, kept, selection, file):
                        if isinstance(item, SelectedBatch):
                            held += self._size(item)
                            yield item
                    if held != kept.held:
                        raise UnreadableError(
                            segment.name, f"byte {kept.start}: the file has changed since kdump first read it"
                        )
        except UnreadableError as error:
            self.report.fail(error)

    def _range(
        self, source: Source, tail_range: TailRange, selection: BatchSelection, file: SegmentFacts
    ) -> Iterator[SelectedBatch | DamagedRange]:
        start, end = tail_range.start, tail_range.end
        if not tail_range.crc_valid:
            damage = Damage(start, end - start, "crc", "", start)
            yield from self._wrong_crc(region_stream.wrong_crc(source, damage), selection, file)
            return
        runs = self._runs or selection.in_runs
        with closing(region_stream.batches_of(source, start, end, runs=runs, packed=self._packed)) as regions:
            for region in regions:
                yield from self._region(region, source, selection, file)

    def _backwards(self, segment: Segment) -> Iterator[SegmentPart]:
        try:
            yield from last_records.backwards(segment)
        except UnreadableError as error:
            self.report.fail(error)

    def _size(self, item: SelectedBatch) -> int:
        return item.batch_count if self._of_batches else len(item.records)

    def _begin(self, partition: Partition, *, reported: bool = False) -> tuple[BatchSelection, SegmentFacts]:
        """Return selection and facts. Unless ``reported``, note records that a ``committed`` filter holds back."""
        knows = self.outcomes or self.filter.committed
        outcomes = (lambda: self.outcomes_of(partition)) if knows else None
        selection = BatchSelection(
            self.filter, self.take, outcomes, self.offer, offer_all=self.offer_all, for_columns=self.for_columns
        )
        if self.filter.committed and not reported:
            for text in self.outcomes_of(partition).held_back:
                self.report.note(f"{partition.name}: {text}")
        return selection, self._facts(partition)

    def _facts(self, partition: Partition) -> SegmentFacts:
        facts = self.checkpoints.facts(partition)
        if self.decoder is None:
            return facts
        content = None
        if partition.topic is None and partition.is_named:
            from kdump.log_reader.unnamed_logs import own_topic

            content = own_topic(partition)
        return facts._replace(decoder=self.decoder, content=content)

    def outcomes_of(self, partition: Partition) -> Outcomes:
        """Return the outcomes of a partition's transactions. The outcomes of the last partition are cached."""
        known = self._ahead.get(id(partition))
        if known is not None:
            return known
        if self._followed is None or self._followed[0] is not partition:
            from kdump.transaction_replay.outcomes import follow

            self._followed = (partition, follow(partition, self.report))
        return self._followed[1]

    def follow_ahead(self, partition: Partition, scans: Iterable[Scan]) -> None:
        """Compute the outcomes of a partition's transactions from scans of its segments, for :meth:`outcomes_of`."""
        from kdump.transaction_replay.outcomes import follow

        self._ahead[id(partition)] = follow(partition, self.report, scans)

    def _segment(
        self, segment: Segment, selection: BatchSelection, file: SegmentFacts, part: SegmentPart | None = None
    ) -> Iterator[SelectedBatch | DamagedRange]:
        return map(_ITEM, self._pairs(segment, selection, file, part, None))

    def _pairs(
        self,
        segment: Segment,
        selection: BatchSelection,
        file: SegmentFacts,
        part: SegmentPart | None,
        make: Callable[[SelectedBatch, Run], M | None] | None,
    ) -> Iterator[tuple[SelectedBatch | DamagedRange, M | None]]:
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
                            self.report.note(f"{segment.name}: byte {region.position}: {found.text}")
                        else:
                            for item in self._region(region, source, selection, file):
                                yield item, made
                                made = None  # the lines belong to the first item, which is the whole run
                        if isinstance(region, Batches) and stop < region.batch_count:
                            break
                        self.report.progress(region.position + region.size - done)
                        done = region.position + region.size
                if isinstance(source, local.LocalFile) and source.lost:
                    if part is None:
                        self.note_lost(segment, source.lost)
                    else:
                        part.lost = source.lost
        except UnreadableError as error:
            if part is not None:
                part.is_over = True
            self.report.fail(error)
        self.report.progress(end - done)

    def _regions(
        self,
        segment: Segment,
        source: OpenSource,
        selection: BatchSelection,
        file: SegmentFacts,
        part: SegmentPart | None,
        make: Callable[[SelectedBatch, Run], M | None] | None,
    ) -> Generator[tuple[Region, M | None], None, None]:
        span = segment_choice.byte_range(segment, source, self.filter, self.report.wrong)
        if span is not None and (first := self._first_byte(segment)) is not None:
            span = span._replace(start=max(span.start, first))
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
            check=self._runs and self.take is Take.RUNS,  # for a count, the idle main thread checks them
            make=None if make is None or not self._runs else _making(make, selection, file),
        )

    def note_lost(self, segment: Segment, lost: int) -> None:
        self.report.note(f"{segment.name} became {lost} bytes shorter while it was read")

    def _region(
        self, region: Region, source: Source, selection: BatchSelection, file: SegmentFacts
    ) -> Iterable[SelectedBatch | DamagedRange]:
        if isinstance(region, RecordBatch):
            return selection.select(region, file)
        if isinstance(region, Run):
            return selection.select_run(region, file)
        return self._lost(region, source, selection, file) if isinstance(region, Damage | Trailing) else ()

    def _lost(
        self, region: Damage | Trailing, source: Source, selection: BatchSelection, file: SegmentFacts
    ) -> Iterator[SelectedBatch | DamagedRange]:
        damage = region.damage() if isinstance(region, Trailing) else region
        yield DamagedRange(file, damage)
        if self.include_damaged:
            found = region_stream.wrong_crc(source, damage, searches=self.on_error != "stop")
            yield from self._wrong_crc(found, selection, file)

    def _wrong_crc(
        self, batches: Iterable[RecordBatch], selection: BatchSelection, file: SegmentFacts
    ) -> Iterator[SelectedBatch]:
        for batch in batches:
            for item in selection.select(batch, file):
                if isinstance(item, DamagedRange):  # the damaged range with this batch is already yielded
                    self.report.note(
                        f"{file.name}: byte {batch.position}: the batch has a wrong crc. Only its records before the "
                        f"damage are printed ({item.damage.kind} at byte {item.damage.at})"
                    )
                else:
                    yield item
            if self.on_error == "stop":
                return


def _making(
    make: Callable[[SelectedBatch, Run], M | None], selection: BatchSelection, file: SegmentFacts
) -> Callable[[Run], M | None]:
    """Return a function that calls ``make`` for a run, or returns None if the filter does not select the whole run."""

    def made(run: Run) -> M | None:
        found = selection.in_one(run, file)
        if found is None or found[1].stop < found[1].run.batch_count:
            return None
        item, records = found
        return make(item, records.run)

    return made
