"""The reader of partitions: batches and records that a filter takes, in offset order, and damaged ranges.

Segments and bytes that cannot hold what is wanted are skipped (:mod:`kdump.log_reader.segment_choice`).
"""

from __future__ import annotations

from collections import deque
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kdump.errors import UnreadableError
from kdump.log_dirs import local
from kdump.log_dirs.finder import raise_it
from kdump.log_reader import region_stream, segment_choice
from kdump.log_reader.batch_selection import BatchSelection, Take
from kdump.log_reader.checkpoint_marks import CheckpointMarks
from kdump.log_reader.filter import Filter
from kdump.records.record_batch import RecordBatch
from kdump.rows.selection import DamagedRange
from kdump.segments.batch_runs import Run
from kdump.segments.index_lookup import Range
from kdump.segments.regions import Damage, Padding, Trailing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kdump.log_dirs.files import Source
    from kdump.log_dirs.partition import Partition, Segment
    from kdump.log_reader.batch_selection import Offer
    from kdump.rows.selection import SegmentFacts, SelectedBatch
    from kdump.segments.parts import SegmentPart
    from kdump.segments.regions import OnError, Region
    from kdump.transaction_replay.outcomes import Outcomes


@dataclass
class PartitionReader:
    """Reads partitions through a filter.

    ``wrong_index`` is called with what is wrong with a file beside the log, ``fail`` with a file that cannot be read
    (by default that raises), ``progress`` with the bytes that are done.
    """

    filter: Filter = field(default_factory=Filter)
    take: Take = Take.RECORDS
    outcomes: bool = True
    """Whether to tell what became of transactions, which may take a second look at the headers of a partition."""
    on_error: OnError = "resync"
    include_damaged: bool = False
    """Whether to yield batches with a wrong crc too, as far as they can be read."""
    wrong_index: Callable[[str], None] = lambda _: None
    fail: Callable[[UnreadableError], None] = raise_it
    note: Callable[[str], None] = lambda _: None
    progress: Callable[[int], None] = lambda _: None
    offer: Offer | None = None
    """What reads batches itself (:class:`kdump.log_reader.batch_selection.BatchSelection`)."""
    _followed: tuple[Partition, Outcomes] | None = None
    _ahead: dict[int, Outcomes] = field(default_factory=dict)
    """By the identity of the partition."""

    def __post_init__(self) -> None:
        self.marks = CheckpointMarks(self.wrong_index, self.fail)
        self._runs = self.take is Take.RUNS and self.filter == Filter() and not self.include_damaged

    def read(
        self, partition: Partition, only: Sequence[Segment] | None = None
    ) -> Iterator[SelectedBatch | DamagedRange]:
        """Yield what the filter takes of a partition, in offset order, and every damaged range that is met.

        ``only`` names those of its segments that are read.
        """
        whole = only is None or only[:1] == partition.segments[:1]
        selection, facts = self._begin(partition, told=not whole)
        paths = None if only is None else {segment.path for segment in only}
        for segment in segment_choice.segments(partition, self.filter, self.progress):
            if paths is None or segment.path in paths:
                yield from self._segment(segment, selection, facts._replace(name=segment.name))

    def read_part(
        self, partition: Partition, segment: Segment, part: SegmentPart
    ) -> Iterator[SelectedBatch | DamagedRange]:
        """Yield what the filter, which must be one without offsets and times, takes of a part of a segment.

        What stands there is then noted in ``part``.
        """
        selection, facts = self._begin(partition, told=part.start > 0 or segment != partition.segments[0])
        yield from self._segment(segment, selection, facts._replace(name=segment.name), part)

    def tail(self, partition: Partition, count: int) -> Iterator[SelectedBatch | DamagedRange]:
        """Yield the last ``count`` records that the filter takes (or batches), reading segments from the last one.

        The damage of a segment comes before its batches.
        """
        selection, facts = self._begin(partition)
        if not count:
            return
        parts: list[list[SelectedBatch | DamagedRange]] = []
        for segment in reversed(list(segment_choice.segments(partition, self.filter, self.progress))):
            lost: list[SelectedBatch | DamagedRange] = []
            last: deque[SelectedBatch] = deque()
            held = 0
            for item in self._segment(segment, selection, facts._replace(name=segment.name)):
                if isinstance(item, DamagedRange):
                    lost.append(item)
                    continue
                last.append(item)
                held += self._size(item)
                while held - self._size(last[0]) >= count:
                    held -= self._size(last.popleft())
            if held > count:
                last[0] = last[0]._replace(records=last[0].records[held - count :])
            parts.append(lost + list(last))
            count -= held
            if count <= 0:
                break
        for part in reversed(parts):
            yield from part

    def _size(self, item: SelectedBatch) -> int:
        return 1 if self.take is Take.BATCHES else len(item.records)

    def _begin(self, partition: Partition, *, told: bool = False) -> tuple[BatchSelection, SegmentFacts]:
        """Return what selects the batches of a partition, and what rows say of its segments.

        ``told`` says that what is held back has been told already.
        """
        knows = self.outcomes or self.filter.committed
        outcomes = (lambda: self.outcomes_of(partition)) if knows else None
        selection = BatchSelection(self.filter, self.take, outcomes, self.offer)
        if self.filter.committed and not told:
            for text in self.outcomes_of(partition).held_back:
                self.note(f"{partition.name}: {text}")
        return selection, self.marks.facts(partition)

    def outcomes_of(self, partition: Partition) -> Outcomes:
        """Return what became of a partition's transactions; that of the last partition is kept."""
        known = self._ahead.get(id(partition))
        if known is not None:
            return known
        if self._followed is None or self._followed[0] is not partition:
            from kdump.transaction_replay.outcomes import follow  # needed for transactions alone

            self._followed = (partition, follow(partition, self.wrong_index, self.fail))
        return self._followed[1]

    def follow_ahead(self, partition: Partition) -> None:
        """Find out now what became of a partition's transactions, and keep it as long as the reader."""
        self._ahead[id(partition)] = self.outcomes_of(partition)

    def _segment(
        self, segment: Segment, selection: BatchSelection, file: SegmentFacts, part: SegmentPart | None = None
    ) -> Iterator[SelectedBatch | DamagedRange]:
        """Yield what the filter takes of one segment, or of a part of it."""
        done = 0
        try:
            with segment.open() as source:
                span = segment_choice.byte_range(segment, source, self.filter, self.wrong_index)
                runs = self._runs or (selection.in_runs and not self.include_damaged and span == Range())
                if part is None:
                    stream = region_stream.stream(segment, source, span, self.on_error, runs=runs, check=self._runs)
                else:
                    stream = region_stream.part_of(segment, source, part, self.on_error, runs=runs)
                with closing(stream) as regions:
                    for region in regions:
                        if isinstance(region, RecordBatch) and selection.is_past(region):
                            break
                        yield from self._region(region, source, selection, file)
                        self.progress(region.position + region.size - done)
                        done = region.position + region.size
                if isinstance(source, local.LocalFile) and source.lost:
                    if part is None:
                        self.tell_lost(segment, source.lost)
                    else:
                        part.lost = source.lost
        except UnreadableError as error:
            if part is not None:
                part.is_over = True
            self.fail(error)
        self.progress(segment.size - done)

    def tell_lost(self, segment: Segment, lost: int) -> None:
        """Say that a segment became shorter while it was read."""
        self.note(f"{segment.name} became {lost} bytes shorter while it was read")

    def _region(
        self, region: Region | Run, source: Source, selection: BatchSelection, file: SegmentFacts
    ) -> Iterator[SelectedBatch | DamagedRange]:
        if isinstance(region, Run):
            yield from selection.select_run(region, file)
        elif isinstance(region, RecordBatch):
            yield from selection.select(region, file)
        elif not isinstance(region, Padding):
            yield DamagedRange(file, _cut_off(region) if isinstance(region, Trailing) else region)
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


def _cut_off(region: Trailing) -> Damage:
    return Damage(
        region.position, region.size, "trailing", "the file ends inside a batch", region.position, found=region.size
    )
