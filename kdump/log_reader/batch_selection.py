"""Selects the records of a batch by a filter, and yields them in the form that the caller chooses (:class:`Take`)."""

from __future__ import annotations

from enum import Enum, auto
from functools import partial
from itertools import chain, compress, count, islice
from typing import TYPE_CHECKING, Final

from kdump import kernel
from kdump.errors import DamageError, LimitError
from kdump.formats.record import MANY_HEADERS
from kdump.formats.record_layout import CODEC_MASK, MAGIC_2
from kdump.log_reader.filter import DecodedSearch, Prefilter
from kdump.primitives import compression
from kdump.primitives.compression import LIMIT_OPTION
from kdump.records.magic_2 import Batch
from kdump.rows.selection import DamagedRange, SelectedBatch
from kdump.segments.lazy_records import BatchRecords, ReadAgain, RunRecords
from kdump.segments.walk import in_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeAlias

    from kdump.formats.record import Record
    from kdump.kernel.records import Cursor
    from kdump.log_reader.filter import Filter
    from kdump.records.record_batch import Batches, RecordBatch
    from kdump.rows.selection import SegmentFacts
    from kdump.segments.batch_runs import Run
    from kdump.transaction_replay.outcomes import Outcome, Outcomes

    Offer: TypeAlias = Callable[[SegmentFacts, Batch, Outcome | None], bool]
    """A function that may read the records of a batch. If it returns True, the selection does not read them again."""

RECORD_COST: Final = 300
"""Approximate memory of a record object in bytes, in addition to the record's own size."""
HEADER_COST: Final = 8
"""Bytes that a header takes in Arrow columns in addition to its key and value: two offsets of 4 bytes."""
HELD: Final = 16 << 20
"""Maximum memory in bytes of a batch's selected records. A larger selection is read again at each iteration."""

CHUNK_BYTES: Final = 256 << 10
"""Approximate memory in bytes of the records that are read at a time."""


class Take(Enum):
    RECORDS = auto()
    """Each batch with its selected records, as objects."""
    RUNS = auto()
    """Batches whose records may be read on demand: BatchRecords, or RunRecords for several valid batches together."""
    UNCHECKED_RUNS = auto()
    """Like RUNS, but a RunRecords may contain malformed records. A caller that reads one shortens the RunRecords to the
    batches before that record. The next item is then the malformed batch alone."""
    BATCHES = auto()
    """Batches without records. Records are read only if the filter needs them."""
    BATCH_RUNS = auto()
    """Like BATCHES, but several batches may be one RunRecords, which may contain malformed records."""
    HEADERS = auto()
    """If the filter needs no records: batches of magic 2 without records, not decompressed; several may be one
    RunRecords. Older batches have records; so have malformed ones without compression (all, without compiled code)."""
    COUNT = auto()
    """Only numbers of records. If an item has a valid batch without records, the number is in the batch's header."""


def _is_plain(run: Run) -> bool:
    return not (run.first.is_control or run.first.is_transactional)


class BatchSelection:
    def __init__(
        self,
        wanted: Filter,
        take: Take = Take.RECORDS,
        outcomes: Callable[[], Outcomes] | None = None,
        offer: Offer | None = None,
        *,
        offer_all: bool = False,
        for_columns: bool = False,
    ) -> None:
        """Select from one partition. ``outcomes`` returns the outcomes of its transactions; without it, they are None.

        ``offer`` is called with batches of magic 2, and must apply the filter to records. If it returns True, the batch
        is yielded without records. If the filter has conditions on fields of records, ``offer`` is called only with
        ``offer_all``. ``for_columns``: a record whose headers, as Arrow columns, exceed the batch limit is damage.
        """
        self._filter, self._take, self._outcomes = wanted, take, outcomes
        self._chunks = _for_columns if for_columns else _in_chunks
        looks = wanted.looks_into_fields
        self._offer = None if looks and not offer_all else offer
        self._of_batches = take in (Take.BATCHES, Take.BATCH_RUNS)
        self._is_lazy = kernel.COMPILED and take is not Take.RECORDS and not looks
        self._stable = outcomes().last_stable_offset if wanted.committed and outcomes is not None else None
        self._cursor: Cursor | None = None
        self._search: DecodedSearch | None = None
        self._prefilter = Prefilter.of(wanted)
        self._prefilters_offers = offer_all and self._prefilter is not None
        self.in_runs = not self._of_batches and self._prefilter is not None
        """Whether batches may come in runs (:meth:`select_run`) even if the filter selects only some records."""

    def select(self, batch: RecordBatch, file: SegmentFacts) -> Iterator[SelectedBatch | DamagedRange]:
        """Yield the batch unless the filter excludes all its records; then damage, if a malformed record is read."""
        if not self._filter.may_hold(batch):
            return
        outcome = self._outcome(batch)
        is_unstable = self._stable is not None and batch.last_offset >= self._stable
        if self._filter.committed and (outcome in ("aborted", None) or is_unstable):
            return
        if self._offer is not None and isinstance(batch, Batch):
            if self._prefilters_offers and self._wanted(batch) == 0:
                return
            if self._offer(file, batch, outcome):
                yield SelectedBatch(file, batch, batch.base_offset, (), outcome)
                return
        if self._take is Take.HEADERS and not self._filter.looks_into_records and self._counts(batch):
            yield SelectedBatch(file, batch, batch.base_offset, (), outcome)
            return
        looks = not self._of_batches or self._filter.looks_into_records
        wanted = self._wanted(batch) if looks else -1
        if wanted == 0:
            return
        takes_all = self._takes_all(batch, wanted)
        is_lazy = self._is_lazy or takes_all
        counts = self._take is Take.COUNT and (takes_all or not self._filter.looks_into_records)
        if counts and (takes_all or self._is_sound(batch)):
            yield SelectedBatch(file, batch, batch.base_offset, (), outcome)
        elif looks and is_lazy and (unread := BatchRecords.of(batch, self._filter.takes_all)) is not None:
            records = () if self._of_batches else unread
            del unread  # free the decompressed records
            yield SelectedBatch(file, batch, batch.base_offset, records, outcome, batch.crc_valid)
        else:
            yield from self._read(batch, file, outcome, looks=looks)

    def in_one(self, run: Run, file: SegmentFacts) -> tuple[SelectedBatch, RunRecords] | None:
        """Return the batches at the start of a run as one item, and the item's records. Any thread may call this.

        The item ends before the first malformed batch, unless the form (:class:`Take`) may have such batches. Return
        None if it is empty, if the run has control or transactional batches, or if the filter is ``committed`` and a
        batch reaches the last stable offset. The filter must select all, or all committed, records.
        """
        if not _is_plain(run):
            return None
        if self._take is Take.UNCHECKED_RUNS:
            records = RunRecords(run, 0, run.batch_count, may_break=True)
        elif self._of_batches:
            records = RunRecords(run, 0, run.batch_count if run.has_usual_numbers else 0)
        elif self._take is Take.HEADERS:
            packed = run.first.codec != compression.NONE and run.least("records_count") >= 0
            records = RunRecords(run, 0, run.batch_count if packed else run.sound)
        else:
            records = RunRecords(run, 0, run.sound)
        if not records.stop or (self._stable is not None and records.offsets[1] >= self._stable):
            return None
        return SelectedBatch(file, run.first, run.first.base_offset, records), records

    def select_run(self, run: Run, file: SegmentFacts) -> Iterator[SelectedBatch | DamagedRange]:
        """Yield the selected batches of a run, if possible several in one item, and damaged ranges."""
        if self._prefilter is not None:
            yield from self._select_some(run, file, self._prefilter)
            return
        done = 0
        if (found := self.in_one(run, file)) is not None:
            item, records = found
            yield item
            done = records.stop
        for row in range(done, run.batch_count):
            yield from self.select(run.batch(row), file)

    def _select_some(
        self, run: Run, file: SegmentFacts, prefilter: Prefilter
    ) -> Iterator[SelectedBatch | DamagedRange]:
        end = self.first_past(run)
        counts = [] if run.first.is_control else prefilter.of_run(run, end)
        held = self._filter.may_hold_rows(run)
        shows_empty = not self._filter.looks_into_records
        whole: list[bool] = []
        is_stable = self._stable is None or run.greatest("last_offset") < self._stable
        if prefilter.exact and _is_plain(run) and self._take in (Take.RUNS, Take.COUNT) and is_stable:
            columns = held, counts, run.column("records_count")
            whole = [may and wanted == of_batch for may, wanted, of_batch in zip(*columns, strict=False)]
        done = 0
        some = range(len(counts)) if shows_empty else compress(count(), counts)
        for row in chain(some, range(len(counts), end)):
            if row < done or not held[row]:
                continue
            stop = row
            while stop < len(whole) and whole[stop] and (shows_empty or counts[stop]):
                stop += 1
            batch = run.batch(row)
            if stop > row:
                yield SelectedBatch(file, batch, batch.base_offset, RunRecords(run, row, stop))
                done = stop
            else:
                yield from self.select(batch, file)

    def first_past(self, batches: Batches) -> int:
        """Return the number of the first batch after the filter's last offset, or the batch count if there is none.

        Compressed wrappers of magic 0 and 1 are not compared, because their base offsets require decompression.
        """
        last, first = self._filter.last_offset, batches.first
        if last is None or (first.magic < MAGIC_2 and first.attributes & CODEC_MASK):
            return batches.batch_count
        offsets = zip(batches.column("base_offset"), batches.column("last_offset"), strict=True)
        return next((row for row, both in enumerate(offsets) if min(both) > last), batches.batch_count)

    def _wanted(self, batch: RecordBatch) -> int:
        """Return the prefilter's number of selected records in a batch, or -1 if the prefilter does not count them."""
        if self._prefilter is None or not self._prefilter.looks or not isinstance(batch, Batch) or batch.is_control:
            return -1
        return self._prefilter.of_batch(batch)

    def _takes_all(self, batch: RecordBatch, wanted: int) -> bool:
        exact = self._prefilter is not None and self._prefilter.exact and not self._filter.committed
        return exact and self._take is not Take.RECORDS and not self._of_batches and 0 < wanted == batch.count

    def _read(
        self, batch: RecordBatch, file: SegmentFacts, outcome: Outcome | None, *, looks: bool
    ) -> Iterator[SelectedBatch | DamagedRange]:
        """Yield a batch with its selected records up to a malformed record, then damage. ``looks``: read records."""
        records: list[Record] | None = None if self._of_batches else []
        count, room = 0, min(batch.limit, HELD)
        first: int | None = batch.base_offset if batch.magic > 1 else None
        empty = True
        search = self._search_of(file) if self._filter.decoded else None
        takes = partial(self._filter.takes, batch, search=search) if self._filter.looks_into_records else None
        damage: DamageError | None = None
        try:
            for chunk in self._chunks(batch) if looks else ():
                first = chunk[0].offset if first is None else first
                empty = False
                taken = chunk if takes is None else list(filter(takes, chunk))
                count += len(taken)
                room -= sum([RECORD_COST + record.size for record in taken])
                if room < 0:
                    records = None
                elif records is not None:
                    records += taken
            first = batch.base_offset if first is None else first
        except DamageError as error:
            damage = error
        chunk = taken = []  # free the records: they may be as large as the batch
        shows_empty = empty and self._take is not Take.COUNT and not self._filter.looks_into_records
        if first is not None and (count or shows_empty):
            held: Sequence[Record] | None = () if self._of_batches else records
            if held is None:
                held = ReadAgain(batch, partial(self._filter.takes, search=search), count)
            yield SelectedBatch(file, batch, first, held, outcome, batch.crc_valid)
        if damage is not None:
            yield DamagedRange(file, in_batch(damage, batch))

    def _search_of(self, file: SegmentFacts) -> DecodedSearch | None:
        if self._search is None and file.decoder is not None:
            self._search = DecodedSearch(file.decoder, file.topic or "")
        return self._search

    def _counts(self, batch: RecordBatch) -> bool:
        """Return whether to use the header's number of records, which is verified if the batch is not compressed."""
        if not isinstance(batch, Batch) or batch.count < 0:
            return False
        return batch.codec != compression.NONE or self._is_sound(batch)

    def _is_sound(self, batch: RecordBatch) -> bool:
        if not kernel.COMPILED or not isinstance(batch, Batch):
            return False
        if self._cursor is None:
            from kdump.kernel.records import Cursor

            self._cursor = Cursor()
        try:
            data, start = batch.payload()
        except DamageError:  # the reader of the records reports it
            return False
        return self._cursor.begin(data, start, batch.header, ()) and self._cursor.sound()

    def _outcome(self, batch: RecordBatch) -> Outcome | None:
        if not batch.is_transactional:
            return "none"
        return None if self._outcomes is None else self._outcomes().of(batch)


def _in_chunks(batch: RecordBatch) -> Iterator[list[Record]]:
    """Yield the records in lists of about ``CHUNK_BYTES``. Raises DamageError after the records before the damage."""
    records, most = batch.records(), 1
    while True:
        chunk: list[Record] = []
        try:
            chunk.extend(islice(records, most))
        finally:
            if chunk:
                yield chunk
        if len(chunk) < most:
            return
        most = max(1, CHUNK_BYTES // (RECORD_COST + max([record.size for record in chunk])))


def _for_columns(batch: RecordBatch) -> Iterator[list[Record]]:
    """Like :func:`_in_chunks`, but raise LimitError at a record whose headers are too large as Arrow columns."""
    for chunk in _in_chunks(batch):
        for number, record in enumerate(chunk):
            count = len(record.headers)
            if count > MANY_HEADERS and record.size + count * HEADER_COST > batch.limit:
                if number:
                    yield chunk[:number]
                raise LimitError(
                    "limit",
                    f"a record has {count:,} headers, which take more memory than the limit ({LIMIT_OPTION})",
                    expected=f"at most {batch.limit} bytes",
                )
        yield chunk
