"""The batches of a log as the cleaner goes through them: data of one kind together, and markers.

With the kernel, records become facts (:mod:`kdump.answers.compaction.key_tables`) without objects.

Source: Kafka's class CleanedTransactionMetadata. The aborted transactions are those of the ``.txnindex`` files.
"""

from __future__ import annotations

from heapq import heapify, heappop
from typing import TYPE_CHECKING, Final

from kdump import kernel
from kdump.answers.compaction.key_tables import KeyFacts
from kdump.errors import DamageError, discard
from kdump.formats import txn_index
from kdump.log_reader.region_stream import wrong_crc
from kdump.records import control
from kdump.records.magic_2 import Batch
from kdump.records.record_batch import RecordBatch
from kdump.segments import log_end, resync
from kdump.segments.batch_runs import Run
from kdump.segments.regions import PLAIN_DATA, Damage, Trailing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from kdump.answers.collector import Place
    from kdump.answers.compaction.key_tables import AnyFacts
    from kdump.kernel import digests as compiled
    from kdump.log_dirs.files import Source
    from kdump.log_dirs.partition import Segment


def aborted_transactions(place: Place, segments: Iterable[Segment]) -> list[tuple[int, int]]:
    """Return first offset and producer id of transactions that are aborted in segments. Raises UnreadableError."""
    found = []
    for segment in segments:
        data = segment.sibling("txnindex")
        try:
            entries = () if data is None else txn_index.read(data)
        except DamageError as damage:
            place.report.wrong(f"{segment.files.shown(segment.siblings['txnindex'])}: {damage}")
            entries = ()
        found += [(entry.first_offset, entry.producer_id) for entry in entries]
    return found


class CleanedTransactions:
    """Follows transactions through batches in offset order."""

    def __init__(self, aborted: Iterable[tuple[int, int]]) -> None:
        self._aborted = list(aborted)
        heapify(self._aborted)
        self._ongoing_aborted: dict[int, bool] = {}
        """Producer id -> whether a batch of the transaction is still in the log."""
        self._ongoing_committed: set[int] = set()

    def discards(self, batch: RecordBatch) -> bool:
        """Return whether a batch is aborted data, or a marker that marks nothing. Raises DamageError."""
        while self._aborted and self._aborted[0][0] <= batch.last_offset:
            self._ongoing_aborted.setdefault(heappop(self._aborted)[1], False)
        producer_id = -1 if batch.producer_id is None else batch.producer_id
        if batch.is_control:
            return self._discards_marker(batch, producer_id)
        if not batch.is_transactional:
            return False
        if producer_id in self._ongoing_aborted:
            self._ongoing_aborted[producer_id] = True
            return True
        self._ongoing_committed.add(producer_id)
        return False

    def _discards_marker(self, batch: RecordBatch, producer_id: int) -> bool:
        record = next(iter(batch.records()), None)
        if record is None:  # cleaned before
            return True
        kind = control.read_key(record.key).type
        if kind == control.ABORT:
            return not self._ongoing_aborted.pop(producer_id, False)
        if kind == control.COMMIT:
            was_there = producer_id in self._ongoing_committed
            self._ongoing_committed.discard(producer_id)
            return not was_there
        return False


if kernel.COMPILED:
    from kdump.kernel.batches import WIDTH

CHUNK: Final = 1 << 13
"""Records whose facts are held at a time, or one batch's of a run more."""


class CleanerWalk:
    """Goes through segments in order. ``say`` is called with what cannot be read.

    A batch with a wrong checksum is read as any other: neither Cleaner nor MemoryRecords.filterTo verifies the CRC, and
    its records are written again with a right one. ``spoiled`` is called with it.
    """

    def __init__(
        self, transactions: CleanedTransactions, say: Callable[[str], None], spoiled: Callable[[str], None] = discard
    ) -> None:
        self._transactions, self._say, self._spoiled = transactions, say, spoiled

    def batches(self, segment: Segment) -> Iterator[CleanerBatch]:
        """Yield the batches of a segment that a cleaner can parse. Raises UnreadableError."""
        with segment.open() as source:
            for region in resync.read(source, on_error="resync", first_offset=segment.base_offset, runs=PLAIN_DATA):
                if isinstance(region, Run):
                    yield from self._of_run(segment, region)
                elif isinstance(region, Damage):
                    yield from self._of_damage(segment, source, region)
                elif isinstance(region, Trailing):
                    found = log_end.tail(segment, region)
                    if found.is_damage:
                        self._spoiled(f"{segment.name}: byte {region.position}: {found.text}")
                elif isinstance(region, RecordBatch):
                    yield self._of_batch(segment, region)

    def _of_damage(self, segment: Segment, source: Source, damage: Damage) -> Iterator[CleanerBatch]:
        """Yield the batches of a damaged range that only have a wrong checksum, up to the first other bytes."""
        end = damage.position
        for batch in wrong_crc(source, damage) if damage.kind == "crc" else ():
            try:
                for _ in batch.records():
                    pass
            except DamageError:  # a cleaner cannot parse it either
                break
            self._spoiled(f"{segment.name}: byte {batch.position}: {damage.reason}")
            end = batch.position + batch.size
            yield self._of_batch(segment, batch)
        if end < damage.position + damage.size:
            self._say(f"{segment.name}: byte {end}: {damage.reason}")

    def _of_run(self, segment: Segment, run: Run) -> Iterator[CleanerBatch]:
        """Yield the batches of a run: as one, unless transactions decide of each."""
        if not run.first.is_transactional:
            yield CleanerRun(segment, run, 0, run.batch_count, self._say, discards=False)
        else:
            first, discards = 0, self._discards(segment, run.first)
            for row in range(1, run.batch_count):
                now = self._discards(segment, run.batch(row))
                if now != discards:
                    yield CleanerRun(segment, run, first, row, self._say, discards=discards)
                    first, discards = row, now
            yield CleanerRun(segment, run, first, run.batch_count, self._say, discards=discards)

    def _of_batch(self, segment: Segment, batch: RecordBatch) -> CleanerBatch:
        return CleanerBatch(segment, batch, self._say, discards=self._discards(segment, batch))

    def _discards(self, segment: Segment, batch: RecordBatch) -> bool:
        """Return whether transactions let a batch go; a marker that cannot be read stays."""
        try:
            return self._transactions.discards(batch)
        except DamageError as damage:
            self._say(f"{segment.name}: byte {batch.position + damage.position}: {damage}")
            return False


class CleanerBatch:
    """One batch, ``first``. ``discards``: it is aborted data, or a marker without data."""

    count = 1
    """How many batches there are."""

    def __init__(self, segment: Segment, first: RecordBatch, say: Callable[[str], None], *, discards: bool) -> None:
        self.first, self.discards = first, discards
        self._segment, self._say = segment, say

    @property
    def last_offset(self) -> int:
        """The last offset of the last batch."""
        return self.first.last_offset

    def batch(self, number: int) -> RecordBatch:  # noqa: ARG002  there is one
        """Return one of the batches."""
        return self.first

    def read_into(self, keys: AnyFacts) -> Iterator[None]:
        """Fill ``keys`` with the facts of the records, some at a time: they are good until the next are asked for."""
        yield from self._read(self.first, keys)

    def _read(self, batch: RecordBatch, keys: AnyFacts) -> Iterator[None]:
        keys.clear()
        if isinstance(keys, KeyFacts) or not isinstance(batch, Batch) or not self._begins(batch, keys):
            yield from self._read_each(batch, keys)
            return
        while keys.left > CHUNK:  # all of them are well-formed
            keys.read_records(CHUNK)
            yield
            keys.clear()
        if keys.read_records(CHUNK):
            keys.end_batch(batch.last_offset)
            yield
        else:
            yield from self._read_each(batch, keys)

    def _begins(self, batch: Batch, keys: compiled.FactBuffer) -> bool:
        """Turn to the records of a batch; return whether the kernel can. More than CHUNK of them are well-formed."""
        try:
            data, start = batch.payload()
        except DamageError:  # it is reported where the records are read
            return False
        return keys.begin(data, start, batch.header, ()) and keys.left > 0 and (keys.left <= CHUNK or keys.sound())

    def _read_each(self, batch: RecordBatch, keys: AnyFacts) -> Iterator[None]:
        """Read by the general path, up to the first record that cannot be read."""
        keys.clear()
        try:
            for record in batch.records():
                keys.add(record.offset, record.size, record.key, record.value is not None)
                if len(keys) >= CHUNK:
                    yield
                    keys.clear()
        except DamageError as damage:
            self._say(f"{self._segment.name}: byte {batch.position + damage.position}: {damage}")
        keys.end_batch(batch.last_offset)
        yield


class CleanerRun(CleanerBatch):
    """Data batches of a run, from a row on and before another: all are discarded, or none."""

    def __init__(
        self, segment: Segment, run: Run, row: int, after: int, say: Callable[[str], None], *, discards: bool
    ) -> None:
        super().__init__(segment, run.first, say, discards=discards)
        self._run, self._row, self._after = run, row, after
        self.count = after - row

    @property
    def last_offset(self) -> int:
        return self._run.field("last_offset", self._after - 1)

    def batch(self, number: int) -> RecordBatch:
        return self._run.batch(self._row + number)

    def read_into(self, keys: AnyFacts) -> Iterator[None]:
        row = self._row
        while row < self._after:
            if isinstance(keys, KeyFacts):
                yield from self._read(self._run.batch(row), keys)
                row += 1
                continue
            keys.clear()
            keys.stack(self._run.block, self._run.rows, WIDTH, row, self._after)
            is_broken = keys.read_batches(CHUNK)
            row = keys.row
            if len(keys):
                yield
            if is_broken:
                yield from self._read_each(self._run.batch(row), keys)
                row += 1
