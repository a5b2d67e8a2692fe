"""Finds the batches of a segment by their headers. Most checksums are not checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.formats.record_layout import BATCH_HEADER, LOG_OVERHEAD, MAGIC_2
from kdump.log_dirs.local import LocalFile
from kdump.records import magic_2
from kdump.records.record_batch import RecordBatch
from kdump.segments import resync
from kdump.segments import walk as log

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.log_dirs.files import Source
    from kdump.segments.regions import Region

FEW_BYTES: Final = 4096
"""The number of bytes that one read of a local file returns if the batches are larger."""


def batches(source: Source, start: int, end: int) -> Iterator[RecordBatch]:
    """Yield the batches between two positions (bytes), found by their headers. Damaged ranges are skipped."""
    for region in regions(source, start, end, strict=False):
        if isinstance(region, RecordBatch):
            yield region


def regions(source: Source, start: int, end: int, *, strict: bool = True) -> Iterator[Region]:
    """Yield batches by their headers. From an invalid header on, read all bytes and yield the regions.

    Only the headers of batches of magic 2 are in memory. If ``strict``, offsets must rise, and the last batch must have
    the right checksum, because a broker may still be writing it.
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


def _by_length(source: Source, start: int, end: int) -> Iterator[Region]:
    """Yield magic 2 batches by their lengths. From another magic or a wrong length on, read all bytes."""
    is_local = isinstance(source, LocalFile)
    position, loaded, size = start, 0, 0
    block = memoryview(b"")
    while position < end:
        at = position - loaded
        if not 0 <= at <= len(block) - BATCH_HEADER.size:
            ahead = FEW_BYTES if is_local and size >= FEW_BYTES else log.FIRST_BLOCK
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
