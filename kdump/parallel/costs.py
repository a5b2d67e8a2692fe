"""Chooses the number of workers, and divides a segment into parts.

Starting workers takes time, and workers wait for their turns. They save most time if batches are decompressed, and
little if only headers are read. ``bench.cores`` and ``bench.endings`` measure these times.
"""

from __future__ import annotations

import os
from enum import Enum, auto
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from kdump.errors import UnreadableError
from kdump.formats.record_layout import BATCH_HEADER, CODEC_MASK, MAGIC_2, TRANSACTIONAL_FLAG
from kdump.log_dirs.files import next_data
from kdump.log_dirs.local import LOCAL, LocalFile
from kdump.output.stdout import is_terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kdump.formats.record_layout import BatchHeader
    from kdump.log_dirs.files import Source
    from kdump.log_dirs.partition import Partition, Segment

MOST: Final = 16
"""Maximum number of processes without --jobs. More do not make standard output faster."""
BUSY: Final = 2
"""Load average (1 minute) per processor above which the machine is busy (:func:`free_processors`)."""
AS_THREADS: Final = 2
"""For uncompressed segments, this number of processes is slower than one process with a second thread."""

CHUNK: Final = 6 << 20
"""Bytes of a chunk of an uncompressed segment. A worker must be able to hold the result."""
PACKED_CHUNK: Final = 1 << 19
"""Bytes of a chunk of a compressed segment."""
FINDINGS_CHUNKS: Final = 3
"""Number of chunks in a part of a segment for workers that print nothing (:mod:`kdump.segments.shared_segment`)."""

PRINTING: Final = 12 << 20
"""From this many bytes on, several processes are faster than one: for compressed records, and for costly work."""
PRINTING_PLAIN: Final = 96 << 20
"""From this many bytes on, several processes print or check uncompressed records faster than one."""
READING_PACKED: Final = 16 << 20
"""From this many bytes on, several processes read mostly compressed records for an answer faster than one."""
READING_PLAIN: Final = 64 << 20
"""From this many bytes on, several processes read mostly uncompressed records for an answer faster than one."""
READING_HEADERS: Final = 256 << 20
"""From this many bytes on, several processes read or print the headers of batches faster than one."""
TRANSACTIONS: Final = 64 << 20
"""From this many bytes on, several processes find the outcomes of a partition's transactions faster than one."""
OPENING: Final = 1 << 18
"""The cost of opening a segment, in bytes that are read in the same time."""
RECORD: Final = 1 << 10
"""The assumed size of a record in bytes, if only some records of each partition are read."""
LARGE_SEGMENTS: Final = 16 << 20
"""From this average size of uncompressed segments (bytes), one process with threads is faster than two processes."""

THREAD_OF_HEADERS: Final = 128 << 20
"""From this size of a segment (bytes), two threads read its headers faster than one."""
READING_AHEAD: Final = 12 << 20
"""Minimum bytes left in a segment for threads to read ahead. Compressed bytes count more."""
UNPACKED_AHEAD: Final = 1 << 16
"""Minimum bytes of a batch for which decompression in a thread is faster."""
PRINTED_AHEAD: Final = 1 << 16
"""Minimum bytes of a run for which printing in a thread is faster."""
SMALL_BATCHES: Final = 1 << 11
"""Several workers read a segment only if its first batch has about this many bytes or more: small ones cost more."""
UNPACKING: Final = 8
"""The cost of a compressed byte divided by the cost of an uncompressed byte."""

BUDGET: Final = 1 << 16
"""Number of records that one read may skip in vain in search of valid batches. ``FRAMED`` in resync.py adds more."""
UNKNOWN: Final = -(1 << 63)
"""The last offset before a run, while it is unknown. Any offset after this value is a gap."""


class Positioned(Protocol):
    @property
    def position(self) -> int: ...


P = TypeVar("P", bound=Positioned)


class Effort(Enum):
    """The kinds of work on the records of partitions."""

    COSTLY = auto()
    """Work that takes far longer than reading: hashes, JSON values, decoded records."""
    LINES = auto()
    """A line for each record. Threads can make such lines ahead."""
    SOME = auto()
    """Other work: records are filtered or counted, or printed as lines that threads cannot make."""
    HEADERS = auto()
    """Only headers of batches are read."""


class SegmentPart:
    """A part of a segment: the batches that begin at byte ``start`` or later, and before byte ``stop``.

    Its reader sets the other attributes. ``reached``: the position of the first batch after the part. ``is_over``:
    later parts are not needed. ``skips_left``: the unused rest of BUDGET. ``lost``: bytes by which the file shrank.
    """

    __slots__ = ("is_over", "lost", "reached", "skips_left", "start", "stop")

    def __init__(self, start: int, stop: int) -> None:
        self.start, self.stop = start, stop
        self.skips_left = BUDGET
        self.reached = self.lost = 0
        self.is_over = False

    def cut(self, regions: Iterator[P], end: int) -> Iterator[P]:
        """Yield the regions that begin before ``self.stop``; set ``self.reached``. ``end``: end of the file (bytes)."""
        for region in regions:
            if region.position >= self.stop:
                self.reached = region.position
                return
            yield region
        self.reached = end


def processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def free_processors() -> int:
    """Return the number of processors to use: 1 on a busy machine, where a late process would delay the others."""
    count = processors()
    try:
        return 1 if os.getloadavg()[0] > BUSY * count else count
    except OSError:  # the system does not report its load
        return count


def is_watched() -> bool:
    """Return whether this process watches the page cache (``--cache drop``)."""
    return LocalFile.watch is not None


def processes(size: int, segments: int = 0) -> int:
    """Return the default number of processes: one per CHUNK, up to MOST and free processors.

    The result is 1 below PRINTING bytes, unless to open this number of ``segments`` takes as long as READING_HEADERS.
    """
    cost = size + OPENING * segments
    return 1 if size < PRINTING and cost < READING_HEADERS else min(free_processors(), MOST, cost // CHUNK)


def size_to_print(partition: Partition, per_partition: int | None) -> int:
    """Return the bytes of a partition that are read for about ``per_partition`` of its records (None: for all)."""
    return partition.size if per_partition is None else min(partition.size, per_partition * RECORD)


def processes_of_segment(jobs: int | None, size: int, is_costly: Callable[[], bool]) -> int:
    """Return the number of processes for ``size`` bytes of a segment: ``jobs``, or the fastest number for None.

    If the work is not costly and ``jobs`` is None or 2, the result is 1: one process with two threads is as fast.
    """
    if jobs not in (None, AS_THREADS):
        return jobs
    return (jobs or processes(size)) if is_costly() else 1


def processes_of_dump(
    partitions: Sequence[Partition], jobs: int | None, effort: Effort, per_partition: int | None = None
) -> int:
    """Return the number of processes that print partitions: ``jobs``, or the fastest number for None.

    ``jobs`` above 2 is returned unchanged. For 2 and None the result is 1 where one process is as fast: for few
    headers, for few uncompressed bytes without costly work, and for large uncompressed segments whose lines threads can
    make. The last case needs a single partition, or 2 processes. For None it is also 1 for few bytes in few segments,
    for output to a terminal, for archives and stores, and while the page cache is watched. ``per_partition``: see
    :func:`size_to_print`.
    """
    if jobs is None and (is_terminal() or not _is_shareable(partitions)):
        return 1
    size = sum(size_to_print(partition, per_partition) for partition in partitions)
    segments = sum(len(partition.segments) if per_partition is None else 1 for partition in partitions)
    count = jobs or processes(size, segments)
    if count == 1 or effort is Effort.COSTLY or jobs not in (None, AS_THREADS):
        return count
    if effort is Effort.HEADERS:
        return count if size + OPENING * segments >= READING_HEADERS else 1
    has_threads = effort is Effort.LINES and (len(partitions) == 1 or count == AS_THREADS)
    is_enough = size + OPENING * segments < PRINTING_PLAIN or (has_threads and size >= LARGE_SEGMENTS * segments)
    return 1 if is_enough and _are_plain(partitions) else count


def processes_within(partitions: Sequence[Partition], much: int, jobs: int | None) -> int:
    """Return the number of processes that read one segment together, if partitions are read one after the other.

    The result is above 1 only if most bytes are in the largest partition: one process per partition is then slower. If
    ``jobs`` is None, the result is the fastest number: 1 for less than ``much`` bytes. If the largest partition is then
    uncompressed, the result is at most 2 for a single partition, and 1 for several.
    """
    sizes = [partition.size for partition in partitions]
    largest, total = max(sizes, default=0), sum(sizes)
    count = min(free_processors(), MOST) if jobs is None else jobs
    if largest * (2 * count - 1) <= count * total:  # that is, largest / count + total - largest >= largest
        return 1
    if jobs is None and total < much:
        return 1
    if jobs is None and not _begins_with(partitions[sizes.index(largest)], CODEC_MASK):
        return min(count, AS_THREADS) if len(partitions) == 1 else 1
    return count


def processes_beside(partitions: Sequence[Partition], much: int, *, least: int = 1) -> int:
    """Return the default number of processes (without --jobs), if each reads one partition at a time.

    The result is 1 for less than ``much`` bytes, for archives and stores, and while the page cache is watched. Else it
    is the number of free processors, but at least ``least``, and at most MOST and the number of partitions. A ``least``
    above 1 is for work that waits for the disk.
    """
    if not _is_shareable(partitions):
        return 1
    size = sum(partition.size for partition in partitions)
    return 1 if size < much else min(max(free_processors(), least), MOST, len(partitions))


def enough_records(partitions: Sequence[Partition]) -> int:
    """Return READING_PLAIN; READING_PACKED only for a size between the two that is not mostly uncompressed."""
    size = sum(partition.size for partition in partitions)
    compression_decides = READING_PACKED <= size < READING_PLAIN
    return READING_PACKED if compression_decides and not _are_plain(partitions) else READING_PLAIN


def segment_parts(source: Source, end: int, times: int = 1, *, unpacks: bool = True) -> list[SegmentPart]:
    """Return the parts of a segment up to byte ``end``: none if it is too small for two, or begins without magic 2.

    A part has ``times`` chunks; more bytes with a hole of a sparse file, fewer at the end. If the caller ``unpacks``
    (decompresses) batches, chunks of compressed segments are smaller.
    """
    header = first_header(source)
    packed = unpacks and header is not None and header.attributes & CODEC_MASK
    size = times * (PACKED_CHUNK if packed else CHUNK)
    if header is None or end < 2 * size:
        return []
    starts, position = [], 0
    while position < end:
        starts.append(position)
        position = max(position + size, next_data(source, position + size) // size * size)  # a hole is not divided
    return [SegmentPart(start, min(stop, end)) for start, stop in pairwise([*starts, end])]


def is_transactional(partition: Partition) -> bool:
    """Return whether any readable segment begins with a transactional batch of magic 2."""
    return any(_has(_first_header(segment), TRANSACTIONAL_FLAG) for segment in partition.segments)


def is_packed(source: Source) -> bool:
    """Return whether a segment begins with a compressed batch of magic 2."""
    return _has(first_header(source), CODEC_MASK)


def first_header(source: Source) -> BatchHeader | None:
    """Return the unchecked header of the first batch, or None unless it is complete and has magic 2."""
    head = source.read(0, BATCH_HEADER.size)
    header = BATCH_HEADER.read(head) if len(head) == BATCH_HEADER.size else None
    return header if header is not None and header.magic == MAGIC_2 else None


def _is_shareable(partitions: Sequence[Partition]) -> bool:
    return not is_watched() and all(segment.files is LOCAL for part in partitions for segment in part.segments)


def _are_plain(partitions: Sequence[Partition]) -> bool:
    """Return whether at least half of the bytes are in partitions for which :func:`_is_plain` is true."""
    plain = sum(partition.size for partition in partitions if _is_plain(partition))
    return 2 * plain >= sum(partition.size for partition in partitions)


def _is_plain(partition: Partition) -> bool:
    """Return whether a partition begins with an uncompressed batch of magic 2 in a local file."""
    first = _first(partition)
    header = None if first is None or first.files is not LOCAL else _first_header(first)
    return header is not None and not header.attributes & CODEC_MASK


def _begins_with(partition: Partition, attributes: int) -> bool:
    first = _first(partition)
    return first is not None and _has(_first_header(first), attributes)


def _has(header: BatchHeader | None, attributes: int) -> bool:
    return header is not None and bool(header.attributes & attributes)


def _first(partition: Partition) -> Segment | None:
    return next((segment for segment in partition.segments if segment.size), None)


def _first_header(segment: Segment) -> BatchHeader | None:
    try:
        with segment.open() as source:
            return first_header(source)
    except UnreadableError:  # the reader of the segment reports it
        return None
