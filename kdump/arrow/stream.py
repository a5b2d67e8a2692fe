"""Turns the records that a reader selects into a stream of Arrow record batches, in bounded memory."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

from kdump.arrow import columns as blocks
from kdump.arrow import schema
from kdump.arrow.columns import Rows
from kdump.errors import UsageError
from kdump.primitives.messages import did_you_mean
from kdump.rows import columns
from kdump.rows.selection import SelectedBatch
from kdump.segments.lazy_records import in_chunks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from kdump.arrow.typed import TypedColumns
    from kdump.log_dirs.partition import Partition
    from kdump.log_reader.reader import PartitionReader
    from kdump.records.magic_2 import Batch
    from kdump.rows.selection import DamagedRange, SegmentFacts

NAMES: Final = tuple(column.name for column in columns.RECORD if column.name in schema.RECORD_NAMES)
"""The Arrow columns of a record, in the order of JSON lines."""


def names(wanted: Iterable[str] | None, *, decoded: bool = False, typed: TypedColumns | None = None) -> tuple[str, ...]:
    """Return the column names in ``wanted``, or all names if it is None. Raises UsageError for unknown names.

    Only with ``decoded`` there are the column ``decoded`` and fields such as ``value.customer.id``.
    """
    own = () if typed is None else typed.names
    known = (*NAMES, *([columns.DECODED.name] if decoded else []), *own)
    chosen = known if wanted is None else tuple(wanted)
    for name in chosen:
        is_decoded = name == columns.DECODED.name or columns.decoded_field(name) is not None
        if is_decoded and not decoded:
            raise UsageError(f"the column {name!r} needs decode='auto'")
        if typed is None and any(name == column.name for column in columns.TYPED):
            raise UsageError(f"the column {name!r} needs schema='SUBJECT'")
        if name not in known and not is_decoded:
            raise UsageError(f"{name!r} is not a column{did_you_mean(name, known)}")
    return chosen


def joined(batches: Iterable[pa.RecordBatch], most_rows: int | None = None) -> Iterator[pa.RecordBatch]:
    """Join consecutive small record batches, such as those of small segments.

    The first results are small, so that the first row comes soon; later results grow. An empty batch
    (:func:`kdump.arrow.columns.end_of_block`) ends the current result, and is dropped.
    """
    held: list[pa.RecordBatch] = []
    rows = size = 0
    most_rows = most_rows or blocks.ROWS
    sizes = blocks.growing(most_rows // 2)
    least = next(sizes)
    for batch in batches:
        ends = not batch.num_rows
        if held and (ends or rows + batch.num_rows > most_rows or size + batch.nbytes > blocks.BYTES):
            yield _in_one(held)
            held, rows, size = [], 0, 0
        if ends:
            continue
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= least or size >= blocks.BYTES // 2:
            yield _in_one(held)
            held, rows, size = [], 0, 0
            least = next(sizes)
    if held:
        yield _in_one(held)


def limited(batches: Iterable[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    """Yield the first ``limit`` rows, or all if it is None, and read no further."""
    remaining = limit
    if remaining == 0:
        return
    for batch in batches:
        if remaining is not None and batch.num_rows >= remaining:
            yield batch.slice(0, remaining)
            return
        yield batch
        remaining = None if remaining is None else remaining - batch.num_rows


def _in_one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    import pyarrow as pa

    return pa.concat_batches(batches)


class RowStream:
    """The rows of the records that a reader selects, segment by segment. ``wanted`` are the columns.

    ``lost`` receives each damaged range, after the rows before it and an empty record batch. ``change`` yields a batch
    without secrets; it is called only for partitions for which ``changes`` returns true. ``typed`` makes the columns
    from a registry's schema. ``most_rows``: see :class:`kdump.arrow.columns.Rows`.
    """

    def __init__(
        self,
        reader: PartitionReader,
        wanted: tuple[str, ...],
        lost: Callable[[DamagedRange], None],
        *,
        change: Callable[[SelectedBatch], Iterator[SelectedBatch]] | None = None,
        changes: Callable[[Partition], bool] = lambda _: True,
        typed: TypedColumns | None = None,
        most_rows: int | None = None,
    ) -> None:
        self.reader, self._names, self._lost, self._change, self._changes = reader, wanted, lost, change, changes
        self._typed, self._most_rows = typed, most_rows
        self._file: SegmentFacts | None = None
        self._rows: Rows | None = None
        self._before: list[pa.RecordBatch] = []
        self.batch_count = 0
        reader.outcomes = "transactionState" in wanted
        reader.for_columns = True

    @cached_property
    def _end(self) -> pa.RecordBatch:
        return blocks.end_of_block(blocks.schema_of(self._names, self._typed))

    def batches(self, partitions: Iterable[Partition]) -> Iterator[pa.RecordBatch]:
        for partition in partitions:
            change = self._change if self._changes(partition) else None
            self.reader.offer = self._read if change is None else None
            yield from self._of(self.reader.read(partition), change)
        yield from self._take()

    def of_items(self, partition: Partition, items: Iterable[SelectedBatch | DamagedRange]) -> Iterator[pa.RecordBatch]:
        """Yield record batches of a partition's ``items`` from a reader. The ``offer`` of ``reader`` must be None."""
        yield from self._of(items, self._change if self._changes(partition) else None)
        yield from self._take()

    def _of(
        self,
        items: Iterable[SelectedBatch | DamagedRange],
        change: Callable[[SelectedBatch], Iterator[SelectedBatch]] | None,
    ) -> Iterator[pa.RecordBatch]:
        for item in items:
            if not isinstance(item, SelectedBatch):
                yield from self._take()
                yield self._end
                self._lost(item)
                continue
            self.batch_count += item.batch_count
            for one in [item] if change is None else change(item):
                for some in in_chunks(one.records):
                    self._turn_to(item.file).add(one._replace(records=some))
                    yield from self._full()
            yield from self._full()

    def _read(self, file: SegmentFacts, batch: Batch, outcome: str | None) -> bool:
        return self._turn_to(file).read(batch, outcome)

    def _turn_to(self, file: SegmentFacts) -> Rows:
        """Return the :class:`Rows` of the segment ``file``. At a new segment keep earlier rows for :meth:`_full`."""
        if self._rows is None or file is not self._file:
            self._before = self._take()
            self._file = file
            self._rows = Rows(file, self._names, self.reader.filter, typed=self._typed, most_rows=self._most_rows)
        return self._rows

    def _full(self) -> list[pa.RecordBatch]:
        """Return all rows so far if a record batch is full or a segment has ended, else an empty list."""
        return self._take() if self._before or (self._rows is not None and self._rows.is_full) else []

    def _take(self) -> list[pa.RecordBatch]:
        taken, self._before = self._before, []
        return taken if self._rows is None else taken + self._rows.take()
