"""What a filter takes of a segment: batches with their records, and damaged ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kdump.formats.record import Record
    from kdump.records.record_batch import RecordBatch
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
