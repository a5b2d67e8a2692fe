"""What a filter takes of a segment: batches with their records, and damaged ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kdump.segments.lazy_records import Unread

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kdump.formats.record import Record
    from kdump.records.record_batch import RecordBatch
    from kdump.segments.lazy_records import UnreadRun
    from kdump.segments.regions import Damage


class SegmentFacts(NamedTuple):
    """A segment as rows name it, and what its log dir's checkpoints say of its partition (offsets, None if nothing)."""

    name: str
    topic: str | None = None
    partition: int | None = None
    high_watermark: int | None = None
    log_start: int | None = None


class SelectedBatch(NamedTuple):
    """A batch, and the records of it that were asked for.

    ``base_offset`` is known even of a wrapper of magic 0 or 1; ``transaction`` is a word of the column
    transactionState.
    """

    file: SegmentFacts
    batch: RecordBatch
    base_offset: int
    records: Sequence[Record]
    transaction: str | None = "none"
    crc_valid: bool = True


class DamagedRange(NamedTuple):
    """A stretch of a file that cannot be read."""

    file: SegmentFacts
    damage: Damage


def singly(item: SelectedBatch, run: UnreadRun, *, batches: bool) -> Iterator[SelectedBatch]:
    """Yield the batches of a run one by one, with ``batches`` without their records."""
    for batch in map(run.run.batch, range(run.row, run.behind)):
        records: Sequence[Record] = () if batches else Unread(batch, *batch.payload())
        yield item._replace(batch=batch, base_offset=batch.base_offset, records=records)
