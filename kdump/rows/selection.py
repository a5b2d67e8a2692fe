"""The items that a reader selects from a segment: batches with records, and damaged ranges."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from kdump.internal_topics import CLUSTER_METADATA
from kdump.segments.lazy_records import BatchRecords, RunRecords

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kdump.formats.record import Record
    from kdump.records.record_batch import RecordBatch
    from kdump.schemas.decoder import PayloadDecoder
    from kdump.segments.regions import Damage


class SegmentFacts(NamedTuple):
    """The facts about a segment that rows show. The offsets come from checkpoints of the log dir; None if missing."""

    name: str
    topic: str | None = None
    partition: int | None = None
    high_watermark: int | None = None
    log_start: int | None = None
    decoder: PayloadDecoder | None = None
    """Decodes payloads with a schema, for the column ``decoded``."""
    content: str | None = None
    """For a log without a topic: the internal topic of its records. None if unknown, or if payloads are not decoded."""

    @property
    def layout(self) -> str | None:
        """The topic whose layouts decode the records: ``topic``, else ``content``."""
        return self.topic if self.topic is not None else self.content


class SelectedBatch(NamedTuple):
    """A batch and its selected records; or a batch run: its first batch, and the selected records of all its batches.

    ``base_offset``: the first offset, also of a wrapper of magic 0 or 1. ``transaction``: as column transactionState.
    """

    file: SegmentFacts
    batch: RecordBatch
    base_offset: int
    records: Sequence[Record]
    transaction: str | None = "none"
    crc_valid: bool = True

    @property
    def run(self) -> RunRecords | None:
        """The records of a batch run, None for a single batch."""
        return self.records if isinstance(self.records, RunRecords) else None

    @property
    def batch_count(self) -> int:
        return 1 if self.run is None else self.run.count_of_batches

    @property
    def last_offset(self) -> int:
        return self.batch.last_offset if self.run is None else self.run.offsets[1]

    @property
    def end(self) -> int:
        return self.batch.end if self.run is None else self.run.end

    def each(self, *, batches: bool) -> Iterator[SelectedBatch]:
        """Yield a single batch unchanged, or the batches of a run one by one, without records if ``batches`` is true.

        A run with ``may_break`` yields nothing and loses its batches: the reader then selects these one by one.
        """
        run = self.run
        if run is None:
            yield self
            return
        if run.may_break:
            run.stop = run.row
        for batch in map(run.run.batch, range(run.row, run.stop)):
            records: Sequence[Record] = () if batches else BatchRecords(batch, *batch.payload())
            yield self._replace(batch=batch, base_offset=batch.base_offset, records=records)


class DamagedRange(NamedTuple):
    file: SegmentFacts
    damage: Damage


def may_hold_secrets(topic: str | None) -> bool:
    """Return whether values of a topic, by its name (None: unknown), may hold secrets of Kafka or Kafka Connect."""
    return topic is None or topic == CLUSTER_METADATA or "config" in topic


def first_of(item: SelectedBatch, count: int) -> Iterator[SelectedBatch]:
    """Yield items with the first ``count`` (1 or more) records of a batch, or of a run that has at least that many."""
    run = item.run
    if run is None:
        yield item if len(item.records) <= count else item._replace(records=item.records[:count])
        return
    ends = _ends(run)
    row = run.row + bisect_left(ends, count)
    row += ends[row - run.row] == count
    if row > run.row:
        yield item._replace(records=RunRecords(run.run, run.row, row))
        count -= ends[row - run.row - 1]
    if count:
        for one in item._replace(records=RunRecords(run.run, row, row + 1)).each(batches=False):
            yield one._replace(records=one.records[:count])


def last_batches_of(item: SelectedBatch, count: int) -> Iterator[SelectedBatch]:
    """Yield the last ``count`` (1 or more) batches of a run, which has at least that many, or yield a single batch."""
    run = item.run
    yield item if run is None else _from_row(item, run, run.stop - count)


def last_of(item: SelectedBatch, count: int) -> Iterator[SelectedBatch]:
    """Yield items with the last ``count`` (1 or more) records of a batch or run, which has at least that many."""
    run, less = item.run, len(item.records) - count
    if run is None:
        yield item._replace(records=item.records[less:]) if less else item
        return
    ends = _ends(run)
    row = run.row + bisect_right(ends, less)
    before = ends[row - run.row - 1] if row > run.row else 0
    if less > before:
        for one in item._replace(records=RunRecords(run.run, row, row + 1)).each(batches=False):
            yield one._replace(records=one.records[less - before :])
        row += 1
    if row < run.stop:
        yield _from_row(item, run, row)


def _from_row(item: SelectedBatch, run: RunRecords, row: int) -> SelectedBatch:
    batch = run.run.batch(row)
    return item._replace(batch=batch, base_offset=batch.base_offset, records=RunRecords(run.run, row, run.stop))


def _ends(run: RunRecords) -> list[int]:
    return list(accumulate(run.run.column("records_count", run.row, run.stop)))
