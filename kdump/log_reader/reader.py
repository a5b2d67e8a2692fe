"""Filters over the stream of a partition, and how little of its files they need.

Segments and batches that cannot hold what is asked for are passed over: by the offsets of their names, by indexes
that can be shown to be right (:mod:`kdump.segments.index_lookup`), by their headers.
"""

from __future__ import annotations

from collections import deque
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kdump import kernel
from kdump.errors import DamageError, LimitError, UnreadableError
from kdump.formats import checkpoints, record_layout
from kdump.log_dirs import local
from kdump.log_reader.filter import Filter
from kdump.primitives import compression
from kdump.records.magic_2 import Batch
from kdump.records.record_batch import RecordBatch
from kdump.rows.selection import DamagedRange, SegmentFacts, SelectedBatch
from kdump.segments import read as segments_read
from kdump.segments import read_ahead, resync, walk
from kdump.segments.batch_runs import Run
from kdump.segments.index_lookup import Range, Seeker
from kdump.segments.lazy_records import Unread, UnreadRun
from kdump.segments.regions import Damage, Padding, Trailing
from kdump.transactions.outcomes import Outcomes, follow

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from kdump.formats.record import Record
    from kdump.kernel.cursor import Cursor
    from kdump.log_dirs.files import Files, Source
    from kdump.log_dirs.partition import Partition, Segment
    from kdump.segments.regions import OnError, Region
    from kdump.transactions.outcomes import Outcome


RECORD_COST: Final = 300
"""Bytes that a record takes in memory beyond its own size, about."""
_CHECKPOINTS: Final = 8


@dataclass
class PartitionReader:
    """Reads partitions through a filter.

    ``batches`` asks for batches without their records, unless the filter must look into them. ``wrong_index`` is told
    what is wrong with a file beside the log, ``fail`` which file cannot be read (by default that raises), ``progress``
    the bytes that are done with.
    """

    filter: Filter = field(default_factory=Filter)
    batches: bool = False
    counting: bool = False
    """Whether only the number of records is wanted: a batch without records holds as many as its header says."""
    outcomes: bool = True
    """Whether to tell what became of transactions, which may take a second look at the headers of a partition."""
    on_error: OnError = "resync"
    include_damaged: bool = False
    """Whether to yield batches whose crc is wrong too, as such, as far as they can be read."""
    wrong_index: Callable[[str], None] = lambda _: None
    fail: Callable[[UnreadableError], None] | None = None
    note: Callable[[str], None] = lambda _: None
    progress: Callable[[int], None] = lambda _: None
    unread: bool = False
    """Whether records may come as :class:`kdump.segments.lazy_records.Unread`, where all records of a sound batch are
    taken.
    """
    runs: bool = False
    """Whether the records of many batches may come as one :class:`kdump.segments.lazy_records.UnreadRun`, if the
    filter takes all.
    """
    _marks: dict[tuple[Files, str], dict[tuple[str, int], int]] = field(default_factory=dict)
    _at: Partition | None = None
    _outcomes: tuple[Partition, Outcomes] | None = None
    _stable: int | None = None
    _cursor: Cursor | None = None

    def read(
        self, partition: Partition, only: Sequence[Segment] | None = None
    ) -> Iterator[SelectedBatch | DamagedRange]:
        """Yield what the filter takes of a partition, in offset order, and every damaged stretch that was met.

        ``only`` names those of its segments that are read.
        """
        file = self._begin(partition)
        paths = None if only is None else {where.path for where in only}
        for where in self.segments(partition):
            if paths is not None and where.path not in paths:
                continue
            yield from self.segment(where, file._replace(name=where.name))

    def tail(self, partition: Partition, count: int) -> Iterator[SelectedBatch | DamagedRange]:
        """Yield the last ``count`` records that the filter takes (or batches), reading segments from the last one.

        Damage met on the way comes in front of what its segment holds.
        """
        file = self._begin(partition)
        if not count:
            return
        parts: list[list[SelectedBatch | DamagedRange]] = []
        for where in reversed(list(self.segments(partition))):
            lost: list[SelectedBatch | DamagedRange] = []
            last: deque[SelectedBatch] = deque()
            held = 0
            for item in self.segment(where, file._replace(name=where.name)):
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
        return 1 if self.batches else len(item.records)

    def _begin(self, partition: Partition) -> SegmentFacts:
        """Turn to a partition; return what rows say of its files."""
        self._at = partition
        if self.filter.committed:
            outcomes = self.outcomes_of(partition)
            self._stable = outcomes.last_stable_offset
            for text in outcomes.held_back:
                self.note(f"{partition.name}: {text}")
        return self.file(partition)

    def outcomes_of(self, partition: Partition) -> Outcomes:
        """Return what became of a partition's transactions; that of the last partition is kept."""
        if self._outcomes is None or self._outcomes[0] is not partition:
            self._outcomes = (partition, follow(partition, self.wrong_index, self._failed))
        return self._outcomes[1]

    def file(self, partition: Partition) -> SegmentFacts:
        """Return what rows say of every file of the partition; its name is still open."""
        return SegmentFacts(
            "",
            partition.topic,
            partition.partition,
            self._mark(partition, checkpoints.HIGH_WATERMARKS),
            self._mark(partition, checkpoints.LOG_STARTS),
        )

    def _mark(self, partition: Partition, name: str) -> int | None:
        """Return the offset that a checkpoint of the log dir has for the partition, None when it has none."""
        if partition.topic is None or partition.partition is None:
            return None
        path = partition.path_beside(name)
        known = self._marks.get((partition.files, path))
        if known is None:
            if len(self._marks) > _CHECKPOINTS:
                self._marks.clear()
            known = self._marks[partition.files, path] = self._checkpoint(partition, name)
        return known.get((partition.topic, partition.partition))

    def _checkpoint(self, partition: Partition, name: str) -> dict[tuple[str, int], int]:
        try:
            data = partition.beside(name)
            entries = checkpoints.read(data) if data is not None else ()
        except DamageError as damage:
            self.wrong_index(f"{partition.path_beside(name)} is not believed: {damage}")
            return {}
        except UnreadableError as error:
            self._failed(error)
            return {}
        return {entry[:2]: entry.offset for entry in entries}

    def _failed(self, error: UnreadableError) -> None:
        if self.fail is None:
            raise error
        self.fail(error)

    def segments(self, partition: Partition) -> Iterator[Segment]:
        """Yield the segments that may hold the offsets asked for, by their names and what they begin with."""
        first, last = self.filter.first_offset, self.filter.last_offset
        following = [*partition.segments[1:], None]
        for where, behind in zip(partition.segments, following, strict=False):  # a folder may have no segment
            below = first is not None and behind is not None and _ends_below(where, behind, first)
            if below or (last is not None and _begins_above(where, last)):
                self.progress(where.size)
            else:
                yield where

    def segment(self, where: Segment, file: SegmentFacts) -> Iterator[SelectedBatch | DamagedRange]:
        """Yield what the filter takes of one segment."""
        done = 0
        try:
            with where.open() as source:
                span = self._range(where, source)
                with closing(self._stream(where, source, span)) as stream:
                    for region in stream:
                        if isinstance(region, Run):
                            yield from self._run(region, file)
                        elif isinstance(region, RecordBatch):
                            if self._is_behind(region):
                                break
                            yield from self.batch(region, file)
                        elif not isinstance(region, Padding):
                            yield DamagedRange(file, _trailing(region) if isinstance(region, Trailing) else region)
                            if self.include_damaged and isinstance(region, Damage) and region.kind == "crc":
                                yield from self._damaged(source, region, file)
                        self.progress(region.position + region.size - done)
                        done = region.position + region.size
                if isinstance(source, local.LocalFile) and source.lost:
                    self.note(f"{where.name} became {source.lost} bytes shorter while it was read")
        except UnreadableError as error:
            self._failed(error)
        self.progress(where.size - done)

    def _run(self, run: Run, file: SegmentFacts) -> Iterator[SelectedBatch | DamagedRange]:
        """Yield batches that are like each other, as many in one go as can be."""
        first = run.first
        row, sound = 0, run.sound
        while row < run.count:
            if row < sound and not (first.is_control or first.is_transactional):
                unread = UnreadRun(run, row, sound)
                yield SelectedBatch(file, first, run.batch(row).base_offset, unread)
                row = sound
            else:
                yield from self.batch(run.batch(row), file)
                row += 1

    def _damaged(self, source: Source, damage: Damage, file: SegmentFacts) -> Iterator[SelectedBatch | DamagedRange]:
        """Yield the batches with a wrong crc that a damaged stretch begins with, as far as they can be read."""
        behind = -1
        for region in walk.walk(source, damage.position, damage.end):
            if (
                not isinstance(region, RecordBatch)
                or region.crc_valid
                or region.attributes & record_layout.CODEC_MASK >= len(compression.NAMES)
            ):
                return
            if region.position > damage.position and not _is_plausible(region, behind):
                return
            for item in self.batch(region, file):
                if isinstance(item, SelectedBatch):
                    yield item
                else:  # it belongs to the damage that was told of
                    self.note(
                        f"{file.name}: byte {region.position}: the batch with a wrong crc cannot be shown whole: "
                        f"{item.damage.kind}, byte {item.damage.at}"
                    )
            if self.on_error == "stop":
                return
            behind = region.last_offset

    def _range(self, where: Segment, source: Source) -> Range | None:
        """Return what to read of a segment, as far as its indexes can tell; None for nothing."""
        wanted = self.filter
        seeker = Seeker(where, source, self.wrong_index)
        span: Range | None = Range()
        if wanted.first_offset is not None or wanted.last_offset is not None:
            span = seeker.by_offset(wanted.first_offset, wanted.last_offset)
        if wanted.since is not None and span is not None:
            later = seeker.by_time(wanted.since)
            span = None if later is None else Range(max(span.start, later.start), span.end)
        return span

    def _stream(self, where: Segment, source: Source, span: Range | None) -> Generator[Region | Run, None, None]:
        """Yield the regions of a range; where all of a file is taken, threads read ahead."""
        if span is None:
            return
        whole = self.runs and self.filter == Filter() and source.limit >= compression.DEFAULT_LIMIT
        if not (whole and isinstance(source, local.LocalFile) and not self.include_damaged):  # which reads it too
            yield from self._regions(where, source, span)
            return
        leash = read_ahead.Leash(source)
        regions = resync.ResyncReader(
            leash, 0, source.size, self.on_error, where.base_offset, limit=None, runs=True
        ).read()
        yield from read_ahead.read(regions, leash, source.size, unpack=True, check=True)

    def _regions(self, where: Segment, source: Source, span: Range) -> Iterator[Region]:
        """Yield the regions of a range; where its end, which came from an index, is not that of a batch, go on."""
        for region in segments_read.read(
            source,
            span.start,
            span.end,
            on_error=self.on_error,
            first_offset=where.base_offset if span.start == 0 else None,
        ):
            if span.end is not None and not isinstance(region, RecordBatch):
                span = Range(region.position)
                break
            yield region
        else:
            return
        yield from segments_read.read(source, span.start, on_error=self.on_error)

    def _is_behind(self, batch: RecordBatch) -> bool:
        """Tell whether a batch lies behind the last offset that is asked for, and with it all that follow."""
        last = self.filter.last_offset
        if last is None or batch.last_offset <= last:
            return False
        return batch.base_offset > last if batch.magic > 1 else batch.codec == compression.NONE

    def batch(self, batch: RecordBatch, file: SegmentFacts) -> Iterator[SelectedBatch | DamagedRange]:
        """Yield a batch with the records that the filter takes, and the damage met in it."""
        if not self.filter.may_hold(batch):
            return
        outcome = self._outcome(batch)
        if self.filter.committed and (outcome in ("aborted", None) or self._is_unstable(batch)):
            return
        if self.counting and not self.filter.looks_into_records and self._is_sound(batch):
            yield SelectedBatch(file, batch, batch.base_offset, (), outcome)
            return
        look = not self.batches or self.filter.looks_into_records
        if look and self.unread and not self.filter.looks_into_fields:
            unread = Unread.of(batch, self.filter.takes_all, RECORD_COST)
            if unread is not None:
                yield SelectedBatch(file, batch, batch.base_offset, unread, outcome, batch.crc_valid)
                return
        records: list[Record] = []
        first: int | None = batch.base_offset if batch.magic > 1 else None
        damage: DamageError | None = None
        empty = True
        left = batch.limit
        try:
            for record in batch.records() if look else ():
                if empty and first is None:
                    first = record.offset
                empty = False
                if self.filter.takes(batch, record):
                    left -= RECORD_COST + record.size
                    if left < 0:
                        raise _too_many(batch)
                    records.append(record)
            if first is None:
                first = batch.base_offset
        except DamageError as error:
            damage = error
        if first is not None and (records or not (self.counting or self.filter.looks_into_records or not empty)):
            yield SelectedBatch(file, batch, first, records, outcome, batch.crc_valid)
        if damage is not None:
            yield DamagedRange(file, _in_batch(damage, batch))

    def _is_sound(self, batch: RecordBatch) -> bool:
        """Tell, as fast as can be, whether a batch holds as many records as its header says."""
        if not kernel.COMPILED or not isinstance(batch, Batch):
            return False
        if self._cursor is None:
            from kdump.kernel.cursor import Cursor

            self._cursor = Cursor()
        try:
            data, start = batch.payload()
        except DamageError:  # told of where the records are read
            return False
        return self._cursor.begin(data, start, batch.header, ()) and self._cursor.sound()

    def _outcome(self, batch: RecordBatch) -> Outcome | None:
        if not batch.is_transactional:
            return "none"
        if self._at is None or not (self.outcomes or self.filter.committed):
            return None
        return self.outcomes_of(self._at).of(batch)

    def _is_unstable(self, batch: RecordBatch) -> bool:
        return self._stable is not None and batch.last_offset >= self._stable


def _is_plausible(batch: RecordBatch, behind: int) -> bool:
    """Tell whether a batch with a wrong crc, where only the lengths of others with one lead, is likely to be one."""
    if not behind < batch.last_offset or not 0 <= batch.magic <= record_layout.MAGIC_2:
        return False
    if not isinstance(batch, Batch):
        return True
    header = batch.header
    return behind < header.base_offset and 0 <= header.records_count <= header.last_offset_delta + 1


def _too_many(batch: RecordBatch) -> LimitError:
    return LimitError(
        "limit",
        f"the records of the batch take more memory than the limit ({compression.LIMIT_OPTION})",
        expected=f"at most {batch.limit} bytes",
        found=f"{batch.count} records" if batch.count is not None else None,
    )


def _ends_below(where: Segment, behind: Segment, offset: int) -> bool:
    """Tell whether all of a segment lies below an offset: the next one begins there at the latest.

    Names are held against what the files begin with: a renamed file must not hide what it holds.
    """
    if where.base_offset is None or behind.base_offset is None or where.base_offset >= behind.base_offset:
        return False
    begins, next_begins = _stored(where), _stored(behind)
    limit = behind.base_offset if next_begins is None else max(behind.base_offset, next_begins)
    return limit <= offset and (begins is None or begins < limit)


def _begins_above(where: Segment, offset: int) -> bool:
    """Tell whether all of a segment lies above an offset, by its name and by what it begins with."""
    if where.base_offset is None or where.base_offset <= offset:
        return False
    begins = _stored(where)
    return begins is None or begins > offset


def _stored(where: Segment) -> int | None:
    try:
        return where.first_offset()
    except UnreadableError:  # whoever reads the segment says so
        return None


def _trailing(region: Trailing) -> Damage:
    return Damage(
        region.position, region.size, "trailing", "the file ends inside a batch", region.position, found=region.size
    )


def _in_batch(damage: DamageError, batch: RecordBatch) -> Damage:
    """Return the region for damage among the records of a batch; positions in unpacked records are not the file's."""
    if batch.codec != compression.NONE:
        damage = DamageError(damage.kind, damage.reason, expected=damage.expected, found=damage.found)
    return walk.as_region(damage, batch.position, batch.size)
