"""Records of partitions as Arrow record batches, in a stream of bounded memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.arrow import schema
from kdump.arrow.columns import Rows
from kdump.errors import UsageError
from kdump.primitives.near_names import did_you_mean
from kdump.rows import columns
from kdump.rows.selection import SelectedBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from kdump.log_dirs.partition import Partition
    from kdump.log_reader.reader import PartitionReader
    from kdump.records.magic_2 import Batch
    from kdump.rows.selection import DamagedRange, SegmentFacts

NAMES: Final = tuple(column.name for column in columns.RECORD if column.name in schema.RECORD_NAMES)
"""The columns of a record, in the order of JSON lines."""


def names(wanted: Iterable[str] | None) -> tuple[str, ...]:
    """Return the names of columns, by default all but ``decoded``. Raises UsageError for one that is none."""
    chosen = NAMES if wanted is None else tuple(wanted)
    known = (*NAMES, columns.DECODED.name)
    for name in chosen:
        if name not in known:
            raise UsageError(f"{name!r} is no column{did_you_mean(name, known)}")
    if not chosen:
        raise UsageError("no column is named")
    return chosen


class RowStream:
    """The rows of segments, one segment after the other, that a reader finds. ``wanted`` are the columns."""

    def __init__(self, reader: PartitionReader, wanted: tuple[str, ...], lost: Callable[[DamagedRange], None]) -> None:
        """``lost`` is called with damaged ranges; the reader is made to offer its batches."""
        self._reader, self._names, self._lost = reader, wanted, lost
        self._file: SegmentFacts | None = None
        self._rows: Rows | None = None
        self._before: list[pa.RecordBatch] = []
        reader.offer = self._read
        reader.outcomes = "transactionState" in wanted

    def batches(self, partitions: Iterable[Partition]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of partitions. Raises UnreadableError."""
        for partition in partitions:
            for item in self._reader.read(partition):
                if not isinstance(item, SelectedBatch):
                    self._lost(item)
                    continue
                if item.records:
                    self._turn_to(item.file).add(item)
                if self._before or (self._rows is not None and self._rows.is_full):
                    yield from self._take()
        yield from self._take()

    def _read(self, file: SegmentFacts, batch: Batch, outcome: str | None) -> bool:
        return self._turn_to(file).read(batch, outcome)

    def _turn_to(self, file: SegmentFacts) -> Rows:
        """Return the rows of a segment, those of the one before put aside."""
        if self._rows is None or file is not self._file:
            self._before = self._take()
            self._file, self._rows = file, Rows(file, self._names, self._reader.filter)
        return self._rows

    def _take(self) -> list[pa.RecordBatch]:
        """Return all rows so far."""
        taken, self._before = self._before, []
        return taken if self._rows is None else taken + self._rows.take()
