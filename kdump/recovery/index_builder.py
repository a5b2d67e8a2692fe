"""Makes the content of new ``.index``, ``.timeindex`` and ``.txnindex`` files from batches. Writes no file.

The entries are those of Kafka 3.9.2, 4.0.1 and later: each batch may get one. Older brokers write at most one entry
per append, and an append may have several batches (KAFKA-806). Source: Kafka's class LogSegment (``append``,
``recover`` and ``onBecomeInactiveSegment``).
"""

from __future__ import annotations

from array import array
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from kdump import kernel
from kdump.errors import DamageError, discard
from kdump.formats import offset_index, time_index, txn_index
from kdump.formats.sparse_index import DEFAULT_INTERVAL, MAX_RELATIVE_OFFSET
from kdump.formats.time_index import NO_TIMESTAMP
from kdump.log_dirs.finder import Finder, Wanted
from kdump.primitives.wire import INT32_MAX
from kdump.records.log_entry import check
from kdump.records.record_batch import Batches
from kdump.segments import walk
from kdump.segments.regions import DATA, Trailing
from kdump.segments.resync import padding, zero_tail
from kdump.transaction_replay.replay import Replay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kdump.formats.txn_index import AbortedTxn
    from kdump.log_dirs.partition import Partition, Segment
    from kdump.records.record_batch import RecordBatch
    from kdump.transaction_replay.replay import EndedTransaction
if kernel.COMPILED:
    from kdump.kernel.indexes import add_run


class Indexes(NamedTuple):
    """The contents of the three files, without zeros at the end. Callers must not write an empty ``.txnindex``."""

    offset_index: bytes
    time_index: bytes
    txn_index: bytes


class IndexBuilder:
    """Collects the index entries of one segment from its batches in order."""

    def __init__(self, base_offset: int, *, interval: int = DEFAULT_INTERVAL, first_offsets: bool = False) -> None:
        """``interval``: index.interval.bytes. ``first_offsets``: write first offsets of batches, as before 2.0."""
        self.base_offset = base_offset
        self.interval = interval
        self.first_offsets = first_offsets
        self.refuses = False
        """Whether an entry's offset is out of order: a broker's recovery then throws InvalidOffsetException."""
        self.refused_at: int | None = None
        """The position of the batch with the first such entry. None without one, or if it is the last time entry."""
        self.offsets, self.positions = array("q"), array("q")
        self.timestamps, self.time_offsets = array("q"), array("q")
        """The entries of the ``.timeindex``, in ms."""
        self.since = 0
        """The bytes of log since the last entry."""
        self.highest, self.held_by = NO_TIMESTAMP, base_offset
        """The largest timestamp in ms, and the last offset of the batch that has it."""
        self._aborted: list[AbortedTxn] = []

    def add(self, batches: Batches, ended: EndedTransaction | None = None, *, position: int | None = None) -> None:
        """Add the next batches. For a control batch, ``ended`` is the transaction that its marker ends.

        ``position`` is the first byte of the batches in the new segment, by default their position in the old one.
        Raises DamageError if an offset does not fit into the segment.
        """
        position = batches.position if position is None else position
        taken = 0 if batches.rows is None else add_run(self, batches.rows, position)
        for batch in batches.batches(taken):  # compiled code stops at a batch that it cannot handle
            self._add(batch, ended, position + batch.position - batches.position)

    def _add(self, batch: RecordBatch, ended: EndedTransaction | None, position: int) -> None:
        offset = last = batch.last_offset
        if self.first_offsets:
            with _placed(batch):  # a wrapper is decompressed for its base offset
                offset = batch.base_offset
        if not self.fits(last):
            raise DamageError(
                "offset",
                "an offset does not fit into a segment with this base offset",
                position=position,
                expected=f"{self.base_offset} to {self.base_offset + MAX_RELATIVE_OFFSET}",
                found=last,
            )
        timestamp = _max_timestamp(batch)
        if timestamp > self.highest:
            self.highest, self.held_by = timestamp, last
        if self.since > self.interval:
            self._enter(offset, position)
            self.since = 0
        self.since += batch.size
        entry = None if ended is None else ended.as_entry()
        if entry is not None:
            self._aborted.append(entry)

    def _enter(self, offset: int, position: int) -> None:
        if self.offsets and offset <= self.offsets[-1]:
            self.refuses = True
        self.offsets.append(offset)
        self.positions.append(position)
        self.close()
        if self.refuses and self.refused_at is None:
            self.refused_at = position

    @property
    def indexed(self) -> int:
        """The position in the last entry; 0 without an entry."""
        return self.positions[-1] if self.positions else 0

    @property
    def timed(self) -> int:
        """The timestamp in the last time entry in ms; NO_TIMESTAMP without an entry."""
        return self.timestamps[-1] if self.timestamps else NO_TIMESTAMP

    def fits(self, offset: int) -> bool:
        """Return whether an offset fits into the segment: indexes store 32 bits, relative to the base offset."""
        return 0 <= offset - self.base_offset <= MAX_RELATIVE_OFFSET

    def close(self) -> None:
        """Add a time entry for the largest timestamp, unless the last time entry has it."""
        if self.highest > self.timed:
            self.refuses = self.refuses or bool(self.time_offsets and self.held_by < self.time_offsets[-1])
            self.timestamps.append(self.highest)
            self.time_offsets.append(self.held_by)

    def finish(self) -> Indexes:
        """Return the contents of the index files. Raises DamageError for a position above 2 GiB."""
        self.close()
        if self.indexed > INT32_MAX:
            raise DamageError(
                "position",
                "an index cannot store positions above 2 GiB",
                position=next(position for position in self.positions if position > INT32_MAX),
                expected=f"at most {INT32_MAX}",
            )
        return Indexes(
            offset_index.encode(zip(self.offsets, self.positions, strict=True), self.base_offset),
            time_index.encode(zip(self.timestamps, self.time_offsets, strict=True), self.base_offset),
            txn_index.encode(self._aborted),
        )


@contextmanager
def _placed(batch: RecordBatch) -> Iterator[None]:
    """Raise a DamageError of the batch again, with the position in the segment."""
    try:
        yield
    except DamageError as damage:
        raise walk.in_batch(damage, batch).error() from None


def _max_timestamp(batch: RecordBatch) -> int:
    try:
        return batch.max_timestamp
    except DamageError:  # the message is too short for a timestamp
        return NO_TIMESTAMP


@dataclass(frozen=True, kw_only=True)
class Rebuild:
    """Rebuilds the indexes of a partition. ``note`` receives remarks, ``progress`` receives numbers of bytes read."""

    interval: int
    first_offsets: bool
    note: Callable[[str], None] = lambda _: None
    progress: Callable[[int], None] = lambda _: None

    def of(self, partition: Partition) -> Iterator[tuple[Segment, Indexes | DamageError]]:
        """Yield each segment with its new indexes. At an invalid batch, yield its segment with the error, and stop.

        Later segments are left out, because their ``.txnindex`` depends on the invalid batch. If the user named only
        later segments of the folder, the earlier ones may be read for transactions that end in the named ones. An
        invalid batch in them is yielded too. Raises UnreadableError.
        """
        replay = Replay()
        for number, segment in enumerate(partition.segments):
            read = segment
            try:
                indexes, aborts = self._read(segment, replay)
                if not number and (aborts or len(partition.segments) > 1) and (earlier := _earlier(partition, segment)):
                    replay = Replay()
                    for read in earlier:
                        for region in _batches(read, self.note, discard):
                            with _placed(region.first):
                                replay.add(region)
                    read = segment
                    indexes, _ = replace(self, note=discard, progress=discard)._read(segment, replay)
            except DamageError as damage:
                yield read, damage
                return
            yield segment, indexes

    def _read(self, segment: Segment, replay: Replay) -> tuple[Indexes, bool]:
        builder = IndexBuilder(segment.base_offset or 0, interval=self.interval, first_offsets=self.first_offsets)
        aborts = False
        for region in _batches(segment, self.note, self.progress):
            with _placed(region.first):
                ended = replay.add(region)
            aborts = aborts or (ended is not None and ended.aborted)
            builder.add(region, ended)
        return builder.finish(), aborts


def _earlier(partition: Partition, segment: Segment) -> list[Segment]:
    finder = Finder(Wanted(max_batch_bytes=partition.limit))
    here = [folder for folder in finder.find([partition.folder], partition.files) if folder.folder == partition.folder]
    base = segment.base_offset or 0
    return [one for folder in here for one in folder.segments if one.base_offset is not None and one.base_offset < base]


def _batches(segment: Segment, note: Callable[[str], None], done: Callable[[int], None]) -> Iterator[Batches]:
    """Yield the batches of a segment. Raises DamageError at the first other bytes, except zeros up to the end."""
    with segment.open() as source:
        for region in walk.walk(source, runs=DATA):
            if isinstance(region, Batches):
                with _placed(region.first):
                    check(region.first)
                yield region
                done(region.size)
            elif zero_tail(source, region.position, source.size) == region.position:
                note(f"{segment.name}: {padding(source, region.position, source.size)} follow the last batch")
            else:
                reason = str(region) if isinstance(region, Trailing) else getattr(region, "reason", "")
                raise DamageError("end of log", reason, position=region.position)
