"""Sequences of records that are read again on each iteration: as objects in memory, records take 300 bytes each.

Compiled code can print :class:`BatchRecords` and :class:`RunRecords` without objects. Plain Python uses neither.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, overload

from kdump import kernel
from kdump.errors import DamageError
from kdump.formats.record import LARGE, LARGE_BATCH, Record
from kdump.formats.record_layout import BATCH_HEADER, CODEC_MASK
from kdump.records.magic_2 import CHUNK, Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from kdump.primitives.wire import Bytes
    from kdump.records.record_batch import Batches, RecordBatch
    from kdump.segments.batch_runs import Run
if kernel.COMPILED:
    from kdump.kernel.batches import WIDTH
    from kdump.kernel.records import Cursor, Records, Sizes

R = TypeVar("R")
MANY: Final = 1 << 16
"""Compiled code holds the sizes of at most this many records of a batch, which may have millions of 7-byte records."""


class LazyRecords(Sequence[Record]):
    """Records that are read on each iteration. A slice is also lazy, unless it steps backwards."""

    __slots__ = ()

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | Sequence[Record]:
        wanted = range(len(self))[index]
        if isinstance(wanted, range):
            return SomeRecords(self, wanted) if wanted.step > 0 else [*SomeRecords(self, wanted[::-1])][::-1]
        return next(islice(self, wanted, None))


class SomeRecords(LazyRecords):
    """The records of a sequence whose indexes are ``numbers``, in increasing order."""

    __slots__ = ("_numbers", "_records")

    def __init__(self, records: Sequence[Record], numbers: range) -> None:
        self._records, self._numbers = records, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[Record]:
        return islice(self._records, self._numbers.start, self._numbers.stop, self._numbers.step)


class ReadAgain(LazyRecords):
    """The first ``count`` records that a filter selects from a batch. An earlier read of them found no damage."""

    __slots__ = ("_batch", "_count", "_takes")

    def __init__(self, batch: RecordBatch, takes: Callable[[RecordBatch, Record], bool], count: int) -> None:
        self._batch, self._takes, self._count = batch, takes, count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Record]:
        batch, takes = self._batch, self._takes
        if not self._count:  # the batch may be unreadable
            return iter(())
        return islice((record for record in batch.records() if takes(batch, record)), self._count)


class ChangedRecords(LazyRecords):
    """The records of a sequence, each passed through ``change`` when it is read."""

    __slots__ = ("_change", "_records")

    def __init__(self, records: Sequence[Record], change: Callable[[Record], Record]) -> None:
        self._records, self._change = records, change

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Record]:
        return map(self._change, self._records)


class BatchRecords(LazyRecords):
    """All records of a batch of magic 2, decompressed in ``data`` from ``start`` on; well-formed if from :meth:`of`."""

    __slots__ = ("batch", "data", "start")

    def __init__(self, batch: Batch, data: Bytes, start: int) -> None:
        self.batch = batch
        self.data = data
        self.start = start

    @classmethod
    def of(cls, batch: RecordBatch, takes_all: Callable[[int, int, int, int], bool]) -> BatchRecords | None:
        """Return the records of a data batch of magic 2; None if one cannot be read, or if ``takes_all`` returns False.

        ``takes_all`` receives the lowest and the highest offset, then the lowest and the highest timestamp (ms) of the
        records. The result is also None for other batches, and for a batch without records.
        """
        if not isinstance(batch, Batch) or batch.is_control or batch.count <= 0:
            return None
        try:
            data, start = batch.payload()
        except DamageError:  # the reader of the records reports it
            return None
        cursor = Cursor()
        if not cursor.begin(data, start, batch.header, ()):
            return None
        spans = cursor.spans()
        return cls(batch, data, start) if spans is not None and takes_all(*spans) else None

    def __len__(self) -> int:
        return self.batch.count

    def __reduce__(self) -> tuple[Any, ...]:
        return _all_records, (self.batch,)

    def of_batch(self, kind: type[R], batch: object) -> Iterator[R]:
        """Yield the records as objects of ``kind``, a kernel.records.RecordOfBatch. Each refers to ``batch``."""
        reader = Records()
        reader.begin(self.data, self.start, self.batch.header, ())
        return chain.from_iterable(iter(partial(reader.lazy, kind, batch, CHUNK), []))

    def __iter__(self) -> Iterator[Record]:
        reader = Records()
        reader.begin(self.data, self.start, self.batch.header, ())
        size = 1  # some callers read the first record only
        while reader.left:
            yield from reader.records(size)
            size = CHUNK


def _all_records(batch: Batch) -> BatchRecords:
    return BatchRecords(batch, *batch.payload())


def in_chunks(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Yield lists of consecutive records: at most CHUNK records of LARGE bytes together, or a single larger record."""
    some: list[Record] = []
    size = 0
    for record in records:
        if some and size + record.size > LARGE:
            yield some
            some, size = [], 0
        some.append(record)
        size += record.size
        if size >= LARGE or len(some) == CHUNK:
            yield some
            some, size = [], 0
    if some:
        yield some


def holds_large(records: object) -> bool:
    """Return whether a batch of LARGE_BATCH bytes or more has a record of LARGE bytes or more: it is printed in pieces.

    False for types other than BatchRecords and RunRecords, and for a run whose block has fewer than LARGE_BATCH bytes.
    """
    if isinstance(records, BatchRecords):
        return len(records.data) >= LARGE_BATCH and _largest(records) >= LARGE
    if not isinstance(records, RunRecords) or len(records.run.block) < LARGE_BATCH:
        return False
    return any(len(one.data) >= LARGE_BATCH and _largest(one) >= LARGE for one in records.batches())


def _largest(records: BatchRecords) -> int:
    reader = Sizes()
    reader.begin(records.data, records.start, records.batch.header, ())
    return reader.largest()


class RunRecords(LazyRecords):
    """All records of the batches ``row`` to ``stop`` (exclusive) of a run.

    Records may be malformed if ``may_break`` is true or only headers are needed. A caller that finds a malformed record
    sets ``stop`` to the number of the first batch that it has not used.
    """

    __slots__ = ("may_break", "row", "run", "stop")

    def __init__(self, run: Run, row: int, stop: int, *, may_break: bool = False) -> None:
        self.run = run
        self.row = row
        self.stop = stop
        self.may_break = may_break

    @property
    def offsets(self) -> tuple[int, int]:
        """The lowest and the highest offset in the headers. Offsets go back if batches were written twice."""
        rows = self.row, self.stop
        return self.run.least("base_offset", *rows), self.run.greatest("last_offset", *rows)

    @property
    def end(self) -> int:
        return self.run.field("position", self.stop - 1) + self.run.field("size", self.stop - 1)

    @property
    def first_records_are_valid(self) -> bool:
        """Whether the first batch with records is well-formed and uncompressed."""
        counts = self.run.column("records_count", self.row, self.stop)
        upto = next((number for number, count in enumerate(counts, 1) if count), len(counts))
        return self.run.part(self.row, self.row + upto).sound == upto

    @property
    def count_of_batches(self) -> int:
        return self.stop - self.row

    def batches(self) -> Iterator[BatchRecords]:
        for row in range(self.row, self.stop):
            batch = self.run.batch(row)
            yield BatchRecords(batch, *batch.payload())

    def __bool__(self) -> bool:
        return any(self.run.column("records_count", self.row, self.stop))

    def __len__(self) -> int:
        return self.run.records(self.row, self.stop)

    def __iter__(self) -> Iterator[Record]:
        for batch in self.batches():
            yield from batch


class RecordSizes(NamedTuple):
    """Offsets of records, and the sizes of their keys and values in bytes; -1 for null."""

    offsets: Sequence[int]
    keys: Sequence[int]
    values: Sequence[int]
    size: int
    """The uncompressed size of the records with the headers of magic 2 in bytes; 0 in further parts of a batch."""


def read_sizes(batches: Batches, add: Callable[[RecordSizes], None]) -> int:
    """Call ``add`` with the sizes of a run of small uncompressed batches, a batch, or MANY records of a large batch.

    Returns the number of batches that were read. Reading stops before a batch with a malformed record; a single
    batch, not in a run, raises DamageError instead. Of ``Entries`` only the first message is read.
    """
    if batches.rows is not None:
        return _of_run(batches, batches.rows, add)
    _of_batch(batches.first, add)
    return 1


def _of_batch(batch: RecordBatch, add: Callable[[RecordSizes], None]) -> None:
    if not (kernel.COMPILED and isinstance(batch, Batch) and batch.count > 0 and _compiled(batch, add)):
        offsets, keys, values, size = array("q"), array("q"), array("q"), 0
        for record in batch.records():
            offsets.append(record.offset)
            keys.append(-1 if record.key is None else len(record.key))
            values.append(-1 if record.value is None else len(record.value))
            size += record.size
        add(RecordSizes(offsets, keys, values, size + (BATCH_HEADER.size if isinstance(batch, Batch) else 0)))


def _compiled(batch: Batch, add: Callable[[RecordSizes], None]) -> bool:
    """Read a batch of magic 2 in compiled code. Return False if it has a malformed record."""
    data, start = batch.payload()
    reader = Sizes()
    if not reader.begin(data, start, batch.header, ()) or (batch.count > MANY and not reader.sound()):
        return False
    columns = reader.some(MANY)
    if len(columns[0]) < min(MANY, batch.count):
        return False
    add(RecordSizes(*columns, BATCH_HEADER.size + len(data) - start))
    while reader.left:
        add(RecordSizes(*reader.some(MANY), 0))
    return True


def _of_run(run: Batches, rows: array[int], add: Callable[[RecordSizes], None]) -> int:
    if not run.first.attributes & CODEC_MASK and max(run.column("records_count", 0, run.batch_count)) <= MANY:
        reader = Sizes()
        reader.stack(run.block, rows, WIDTH, 0, run.batch_count)
        columns = reader.columns()
        add(RecordSizes(*columns, sum(run.column("size", 0, reader.row))))
        return reader.row
    for row in range(run.batch_count):
        try:
            _of_batch(run.batch(row), add)
        except DamageError:
            return row
    return run.batch_count
