"""Scans the batch headers of a segment for Spark: batches, counts, transactions, and the positions of chunks for tasks.

Any process can scan a segment. The driver combines the results of a partition's segments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.errors import DamageError, FailingDiskError
from kdump.formats.record_layout import BATCH_HEADER, CONTROL_FLAG, LOG_OVERHEAD, MAGIC_2, TRANSACTIONAL_FLAG
from kdump.log_dirs import files, local
from kdump.log_reader.replicas import EpochRange, extend
from kdump.primitives.wire import INT64_END
from kdump.records import magic_2
from kdump.records.log_entry import is_sound
from kdump.records.record_batch import RecordBatch
from kdump.segments import resync
from kdump.segments import walk as log
from kdump.segments.regions import Damage, Padding
from kdump.transaction_replay.outcomes import MARKER_BYTES, TransactionFollower

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.log_dirs.partition import Segment
    from kdump.segments.regions import Region
    from kdump.transaction_replay.outcomes import SegmentOutcomes


IN_TRANSACTIONS: Final = TRANSACTIONAL_FLAG | CONTROL_FLAG
FAR: Final = 4096
"""Minimum size of a batch, in bytes, for which reading only the next header is faster than reading the batch."""


@dataclass(slots=True)
class ChunkSummary:
    """Counts of a chunk: the part of a segment from ``start`` to ``end`` (bytes) that one task reads.

    ``counts_known`` is False if a wrapper cannot be decompressed or the disk fails. Offsets are None without a batch.
    Malformed records are not counted as damage. Wrong checksums are counted if :func:`survey` verifies them.
    """

    start: int
    end: int
    batches: int = 0
    records: int = 0
    control_records: int = 0
    batch_bytes: int = 0
    damaged_ranges: int = 0
    damaged_bytes: int = 0
    padding_bytes: int = 0
    trailing_bytes: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    max_timestamp: int = -1
    counts_known: bool = True

    @property
    def offsets(self) -> tuple[int, int] | None:
        """The first and the last offset; None if they are unknown or there is no batch."""
        if not self.counts_known or self.first_offset is None or self.last_offset is None:
            return None
        return self.first_offset, self.last_offset

    def add(self, region: Region) -> None:
        self.end = region.position + region.size
        if isinstance(region, RecordBatch):
            self._add_batch(region)
        elif isinstance(region, Damage):
            self.damaged_ranges += 1
            self.damaged_bytes += region.size
        elif isinstance(region, Padding):
            self.padding_bytes += region.size
        else:
            self.trailing_bytes += region.size

    def _add_batch(self, batch: RecordBatch) -> None:
        try:
            count, first, last = _count(batch), batch.base_offset, batch.last_offset
        except DamageError:
            self.batches += 1
            self.batch_bytes += batch.size
            self.counts_known = False
            return
        self.count(batch.size, first, last, count, batch.max_timestamp)
        self.control_records += count if batch.is_control else 0

    def count(self, size: int, first: int, last: int, records: int, max_timestamp: int) -> None:
        self.batches += 1
        self.batch_bytes += size
        self.records += records
        if self.first_offset is None or first < self.first_offset:
            self.first_offset = first
        if self.last_offset is None or last > self.last_offset:
            self.last_offset = last
        self.max_timestamp = max(self.max_timestamp, max_timestamp)


def _count(batch: RecordBatch) -> int:
    """Return the number of records of a batch. A wrapper of magic 0 or 1 is decompressed. Raises DamageError."""
    if batch.count is not None:
        return batch.count
    return sum(1 for _ in batch.records()) if batch.codec else 1


class Survey(NamedTuple):
    chunks: list[ChunkSummary]
    transactions: SegmentOutcomes
    runs: list[EpochRange]
    """Ranges of consecutive offsets with one leader epoch. Only :func:`survey` with ``checked`` fills them."""


class _AstrayError(Exception):
    """The header scan found an invalid header, a damaged transaction marker, or bytes that are not a batch."""


def survey(segment: Segment, split_bytes: int, *, checked: bool = False) -> Survey:
    """Return the survey of a segment, in chunks of about ``split_bytes``. Those after the first start at valid batches.

    Usually only headers are read. If one is invalid or ``checked`` is true, every checksum is verified, and reading
    continues after damage at the next valid batch. Raises UnreadableError.
    """
    with segment.open() as source:
        if not checked:
            try:
                follower, chunks = TransactionFollower(segment), [ChunkSummary(0, 0)]
                start = 0 if follower.has_index else _plain(source, chunks, follower, split_bytes)
                return _survey(_headers(source, start), source, follower, split_bytes, chunks)
            except _AstrayError:
                pass
        regions = resync.read(source, on_error="resync")
        return _survey(
            regions, source, TransactionFollower(segment), split_bytes, [ChunkSummary(0, 0)], with_runs=checked
        )


def attempt(segment: Segment, split_bytes: int, *, checked: bool = False) -> Survey:
    """Like :func:`survey`, but return one chunk with unknown counts if the disk fails.

    The outcomes of transactions then come only from the ``.txnindex``. The task that reads the chunk raises the error.
    Other errors raise UnreadableError here: a later read of the chunk may succeed, but the outcomes would be missing.
    """
    try:
        return survey(segment, split_bytes, checked=checked)
    except FailingDiskError:
        return Survey([ChunkSummary(0, segment.size, counts_known=False)], TransactionFollower(segment).unread(), [])


def _plain(source: files.Source, chunks: list[ChunkSummary], follower: TransactionFollower, split_bytes: int) -> int:
    """Add to ``chunks`` the batches of magic 2 before the first one in a transaction or as small as a marker.

    This fast path returns the position after these batches. It reads only the headers of large local batches.
    """
    is_local = isinstance(source, local.LocalFile)
    block_size = log.FIRST_BLOCK if is_local else log.BLOCK
    position = loaded = size = last = 0
    block = b""
    chunk = chunks[-1]
    while True:
        at = position - loaded
        if at + BATCH_HEADER.size > len(block):
            ahead = BATCH_HEADER.size if is_local and size >= FAR else block_size
            block, loaded, at = source.read(position, ahead), position, 0
            if len(block) < BATCH_HEADER.size:
                break
        header = BATCH_HEADER.read(block, at)
        size = header.length
        end = position + LOG_OVERHEAD.size + size
        is_plain = header.magic == MAGIC_2 and not header.attributes & IN_TRANSACTIONS
        is_plain = is_plain and MARKER_BYTES < size <= source.limit
        end_offset = header.base_offset + header.last_offset_delta
        if not is_plain or end > source.size or not -INT64_END <= end_offset < INT64_END:
            break
        if position - chunk.start >= split_bytes and log.is_sound_at(source, position):
            chunk = ChunkSummary(position, position)
            chunks.append(chunk)
        last = end_offset
        chunk.end = end
        chunk.count(end - position, header.base_offset, last, header.records_count, header.max_timestamp)
        position = end
    if position:
        follower.skip(last + 1)
    return position


def _headers(source: files.Source, start: int) -> Iterator[Region]:
    """Yield batches and padding from ``start`` on. Verify only small and transactional batches. Raises _AstrayError."""
    for region in log.walk(source, start):
        if isinstance(region, RecordBatch):
            if not 0 <= region.magic <= MAGIC_2:
                raise _AstrayError
            may_be_marker = region.is_transactional or region.is_control or region.size <= MARKER_BYTES
            if may_be_marker and not is_sound(region):
                raise _AstrayError  # a damaged marker would change the outcome of other batches
            yield region
        elif resync.zero_tail(source, region.position, source.size) == region.position:
            yield resync.padding(source, region.position, source.size)
        else:
            raise _AstrayError


def _survey(
    regions: Iterator[Region],
    source: files.Source,
    follower: TransactionFollower,
    split_bytes: int,
    chunks: list[ChunkSummary],
    *,
    with_runs: bool = False,
) -> Survey:
    runs: list[EpochRange] = []
    for region in regions:
        if isinstance(region, RecordBatch):
            if region.position - chunks[-1].start >= split_bytes and is_sound(region):
                chunks.append(ChunkSummary(region.position, region.position))
            follower.add(region)
            if with_runs:
                extend(runs, region)
        else:
            follower.lose(source, region)
        chunks[-1].add(region)
    return Survey(chunks, follower.result(), runs)


def batches(source: files.Source, start: int, end: int) -> Iterator[RecordBatch]:
    """Yield the batches between two positions (bytes). Checksums are verified only after an invalid header."""
    for region in regions(source, start, end, strict=False):
        if isinstance(region, RecordBatch):
            yield region


def regions(source: files.Source, start: int, end: int, *, strict: bool = True) -> Iterator[Region]:
    """Yield batches that are found by length fields. From the batch before an invalid header on, yield all regions.

    Before this and before the first older batch, only headers are in memory. With ``strict``, an offset that does not
    rise is invalid too, and so is a wrong checksum of the last batch, which a broker may still be writing.
    """
    held: RecordBatch | None = None
    for region in _by_length(source, start, end):
        if not isinstance(region, RecordBatch) or not 0 <= region.magic <= MAGIC_2:
            break
        if strict and held is not None and region.last_offset <= held.last_offset:
            break
        if held is not None:
            yield held
        held = region
    else:
        if held is None:
            return
        if not strict or log.is_sound_at(source, held.position):
            yield held
            return
    # the length of the batch before may be wrong
    yield from resync.read(source, start if held is None else held.position, end, on_error="resync")


def _by_length(source: files.Source, start: int, end: int) -> Iterator[Region]:
    """Yield magic 2 batches by their length fields. After the first other magic or invalid length, read all bytes."""
    is_local = isinstance(source, local.LocalFile)
    position, loaded, size = start, 0, 0
    block = memoryview(b"")
    while position < end:
        at = position - loaded
        if not 0 <= at <= len(block) - BATCH_HEADER.size:
            ahead = FAR if is_local and size >= FAR else log.FIRST_BLOCK
            block, loaded, at = memoryview(source.read(position, min(ahead, end - position))), position, 0
            if len(block) < BATCH_HEADER.size:
                break
        batch = magic_2.Batch(block[at : at + BATCH_HEADER.size], position, 0, source.limit)
        size = batch.header.length + LOG_OVERHEAD.size
        if batch.magic != MAGIC_2 or not BATCH_HEADER.size <= size <= min(source.limit, end - position):
            break
        batch.size = size
        yield batch
        position += size
    if position < end:
        yield from log.walk(source, position, end)
