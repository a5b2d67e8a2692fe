"""What a filter takes of a segment: batches with their records, and damaged ranges."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from kdump.segments.lazy_records import Unread, UnreadRun

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kdump.formats.record import Record
    from kdump.records.record_batch import RecordBatch
    from kdump.schemas.decoder import PayloadDecoder
    from kdump.segments.regions import Damage


class SegmentFacts(NamedTuple):
    """A segment as rows name it, and what its log dir's checkpoints say of its partition (offsets, None if nothing)."""

    name: str
    topic: str | None = None
    partition: int | None = None
    high_watermark: int | None = None
    log_start: int | None = None
    decoder: PayloadDecoder | None = None
    """What decodes payloads that carry a schema, for the column ``decoded``."""


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


def may_hold_secrets(topic: str | None) -> bool:
    """Tell whether values of a topic may hold passwords or credentials of Kafka; None is a log of an unknown topic."""
    return topic is None or topic == "__cluster_metadata" or "config" in topic


def singly(item: SelectedBatch, run: UnreadRun, *, batches: bool) -> Iterator[SelectedBatch]:
    """Yield the batches of a run one by one, with ``batches`` without their records.

    Those of a run that may break are left to its reader: the run ends before them.
    """
    if run.may_break:
        run.behind = run.row
    for batch in map(run.run.batch, range(run.row, run.behind)):
        records: Sequence[Record] = () if batches else Unread(batch, *batch.payload())
        yield item._replace(batch=batch, base_offset=batch.base_offset, records=records)


def first_of(item: SelectedBatch, count: int) -> Iterator[SelectedBatch]:
    """Yield the first ``count`` records, of one or more, of a batch or of a run of batches, which has as many."""
    run = item.records
    if not isinstance(run, UnreadRun):
        yield item if len(run) <= count else item._replace(records=run[:count])
        return
    ends = _ends(run)
    row = run.row + bisect_left(ends, count)
    row += ends[row - run.row] == count
    if row > run.row:
        yield item._replace(records=UnreadRun(run.run, run.row, row))
        count -= ends[row - run.row - 1]
    if count:
        for one in singly(item, UnreadRun(run.run, row, row + 1), batches=False):
            yield one._replace(records=one.records[:count])


def batches_of(item: SelectedBatch) -> int:
    """Return how many batches there are."""
    return item.records.count_of_batches if isinstance(item.records, UnreadRun) else 1


def last_offset_of(item: SelectedBatch) -> int:
    """Return the greatest of the last offsets of its batches."""
    return item.records.offsets[1] if isinstance(item.records, UnreadRun) else item.batch.last_offset


def last_batches_of(item: SelectedBatch, count: int) -> Iterator[SelectedBatch]:
    """Yield the last ``count`` batches, of one or more, of a batch or of a run of batches, which has as many."""
    run = item.records
    yield _from_row(item, run, run.behind - count) if isinstance(run, UnreadRun) else item


def last_of(item: SelectedBatch, count: int) -> Iterator[SelectedBatch]:
    """Yield the last ``count`` records, of one or more, of a batch or of a run of batches, which has as many."""
    run, less = item.records, len(item.records) - count
    if not isinstance(run, UnreadRun):
        yield item._replace(records=run[less:]) if less else item
        return
    ends = _ends(run)
    row = run.row + bisect_right(ends, less)
    before = ends[row - run.row - 1] if row > run.row else 0
    if less > before:
        for one in singly(item, UnreadRun(run.run, row, row + 1), batches=False):
            yield one._replace(records=one.records[less - before :])
        row += 1
    if row < run.behind:
        yield _from_row(item, run, row)


def _from_row(item: SelectedBatch, run: UnreadRun, row: int) -> SelectedBatch:
    """Return the batches of a run from a row on."""
    batch = run.run.batch(row)
    return item._replace(batch=batch, base_offset=batch.base_offset, records=UnreadRun(run.run, row, run.behind))


def _ends(run: UnreadRun) -> list[int]:
    """Return how many records there are up to each batch of a run and in it."""
    return list(accumulate(run.run.column("records_count", run.row, run.behind)))
