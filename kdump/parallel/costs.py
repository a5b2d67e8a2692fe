"""Divides a segment into parts, and chooses the number of workers: measured in ``bench.cores`` and ``bench.endings``.

Workers cost a start, and turns that they wait for. They gain most where batches are decompressed, and little where only
headers are read. A worker assumes where its part begins (:mod:`kdump.parallel.chunks`): at the first credible batch
after its first byte, which may also be a batch in the value of a record.
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
"""Most processes without --jobs: standard output takes no more than these make."""
BUSY: Final = 2
"""Processes that run or wait to run, by processor, from which on a system is too busy for several of kdump's."""
AS_THREADS: Final = 2
"""Processes that use as many processors as one with its thread, which is faster without compression."""

CHUNK: Final = 6 << 20
"""Bytes of a chunk: a worker must be able to hold the result until its turn comes."""
PACKED_CHUNK: Final = 1 << 19
"""The same where batches are compressed."""
FINDINGS_CHUNKS: Final = 3
"""Chunks read at a time when no output waits for its turn."""

PRINTING: Final = 12 << 20
"""Bytes from which on several processes print or check, if these are compressed or the work on them is costly."""
PRINTING_PLAIN: Final = 96 << 20
"""The same without compression."""
READING_PACKED: Final = 16 << 20
"""Bytes from which on several processes read records for an answer, if most are compressed."""
READING_PLAIN: Final = 64 << 20
"""The same if most are not."""
READING_HEADERS: Final = 256 << 20
"""Bytes from which on several processes read, or print, headers of batches alone."""
OPENING: Final = 1 << 18
"""The cost of opening a segment, in bytes that could be read in that time."""
LARGE_SEGMENTS: Final = 16 << 20
"""Average bytes of a segment without compression from which on one process with threads is faster than two."""
TRANSACTIONS: Final = 64 << 20
"""Bytes of a partition from which on processes share the outcomes of its transactions."""

THREAD_OF_HEADERS: Final = 128 << 20
"""Bytes of a segment from which on a second thread pays off that reads headers and checks batches."""
SMALL_BATCHES: Final = 1 << 11
"""Bytes of a first batch below which one worker reads a segment: to hand over the findings of each takes longer."""
READING_AHEAD: Final = 12 << 20
"""Bytes still to be read from which on threads pay off that read ahead. Compressed bytes count as the work on them."""
UNPACKING: Final = 8
"""The cost of a compressed byte divided by that of an uncompressed one."""
UNPACKED_AHEAD: Final = 1 << 16
"""Smallest compressed batch, in bytes, that a thread decompresses: smaller ones change the lock too often."""
PRINTED_AHEAD: Final = 1 << 16
"""Bytes of consecutive batches from which on a thread prints them."""


BUDGET: Final = 1 << 16
"""Records that a search through damage may skip in vain, beyond those that the size of the file grants."""
UNKNOWN: Final = -(1 << 63)
"""The last offset before what is read before that is known: whatever offset comes first, there is a gap."""


class Positioned(Protocol):
    """Bytes of a file that begin at ``position``."""

    @property
    def position(self) -> int: ...


P = TypeVar("P", bound=Positioned)


class Effort(Enum):
    """The work on the records of partitions."""

    COSTLY = auto()
    """It takes far longer than reading: hashes, values of JSON, decoded records."""
    LINES = auto()
    """A line of each record, which threads can make ahead of time."""
    SOME = auto()
    """Anything else: records are filtered or counted, or no thread can make their lines."""
    HEADERS = auto()
    """None: only headers of batches are read."""


class SegmentPart:
    """A part of a segment: from the batch at ``start`` to the first one at ``stop`` or after it (bytes).

    ``reached`` is where that batch stands once the part is read, ``is_over`` says that nothing after it is wanted.
    ``hops`` are what is left to a search through damage (:class:`kdump.segments.resync.ResyncReader`), ``lost`` the
    bytes that the file became shorter while it was read.
    """

    __slots__ = ("hops", "is_over", "lost", "reached", "start", "stop")

    def __init__(self, start: int, stop: int) -> None:
        self.start, self.stop = start, stop
        self.hops = BUDGET
        self.reached = self.lost = 0
        self.is_over = False

    def cut(self, regions: Iterator[P], end: int) -> Iterator[P]:
        """Yield regions that begin before ``stop``; ``end`` is that of the file."""
        for region in regions:
            if region.position >= self.stop:
                self.reached = region.position
                return
            yield region
        self.reached = end


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def free_processors() -> int:
    """Return how many processors there are for a run: one where many other processes wait for them.

    Processes that write in turns would wait for each other then.
    """
    count = processors()
    try:
        return 1 if os.getloadavg()[0] > BUSY * count else count
    except OSError:  # the system does not report it
        return count


def is_watched() -> bool:
    """Return whether the page cache is watched, which one process does for itself (``--cache drop``)."""
    return LocalFile.watch is not None


def processes(size: int) -> int:
    """Return how many processes read ``size`` bytes without --jobs."""
    return 1 if size < PRINTING else min(free_processors(), MOST, size // CHUNK)


def processes_of_segment(jobs: int | None, size: int, is_costly: Callable[[], bool]) -> int:
    """Return how many processes share ``size`` bytes of a segment: ``jobs``, or as many as pay off where it is None.

    It is one where the work is not costly, unless more than two are asked for: its thread is the second.
    """
    if jobs not in (None, AS_THREADS):
        return jobs
    return (jobs or processes(size)) if is_costly() else 1


def processes_of_dump(partitions: Sequence[Partition], jobs: int | None, effort: Effort) -> int:
    """Return how many processes print partitions: ``jobs``, or as many as pay off where that is None.

    It is one where two are no faster, even if ``jobs`` is 2: for few headers; for few bytes without compression, unless
    the effort is costly; for lines of large segments without compression, which threads of one process make (for a
    single partition whatever the number of processors). Without ``jobs`` it is one also for a terminal, for archives,
    and while the page cache is watched. ``jobs`` above 2 is taken as it is.
    """
    if jobs is None and (is_terminal() or not _is_shareable(partitions)):
        return 1
    size = sum(partition.size for partition in partitions)
    count = jobs or processes(size)
    if count == 1 or effort is Effort.COSTLY or jobs not in (None, AS_THREADS):
        return count
    segments = sum(len(partition.segments) for partition in partitions)
    if effort is Effort.HEADERS:
        return count if size + OPENING * segments >= READING_HEADERS else 1
    has_threads = effort is Effort.LINES and (len(partitions) == 1 or count == AS_THREADS)
    is_enough = size + OPENING * segments < PRINTING_PLAIN or (has_threads and size >= LARGE_SEGMENTS * segments)
    return 1 if is_enough and _are_plain(partitions) else count


def processes_within(partitions: Sequence[Partition], much: int, jobs: int | None) -> int:
    """Return how many processes share the large segments of partitions, which are read one after the other then.

    That is one unless the largest partition has so much of all bytes that this is faster than reading each in one
    process. ``jobs`` of None stands for as many as pay off: one for less than ``much`` bytes, one and its thread for a
    single partition without compression.
    """
    sizes = [partition.size for partition in partitions]
    largest, total = max(sizes, default=0), sum(sizes)
    count = min(free_processors(), MOST) if jobs is None else jobs
    if largest * (2 * count - 1) <= count * total:  # largest / count + total - largest is no less than largest
        return 1
    if jobs is None and total < much:
        return 1
    if jobs is None and not _begins_with(partitions[sizes.index(largest)], CODEC_MASK):
        return min(count, AS_THREADS) if len(partitions) == 1 else 1
    return count


def processes_beside(partitions: Sequence[Partition], much: int) -> int:
    """Return how many processes read partitions, each of them in one process, without --jobs.

    It is one for less than ``much`` bytes, in an archive and while the page cache is watched.
    """
    if not _is_shareable(partitions):
        return 1
    size = sum(partition.size for partition in partitions)
    return 1 if size < much else min(free_processors(), MOST, len(partitions))


def enough_records(partitions: Sequence[Partition]) -> int:
    """Return the size in bytes above which several processes read ``partitions`` faster than one."""
    size = sum(partition.size for partition in partitions)
    compression_decides = READING_PACKED <= size < READING_PLAIN
    return READING_PACKED if compression_decides and not _are_plain(partitions) else READING_PLAIN


def segment_parts(source: Source, end: int, times: int = 1, *, unpacks: bool = True) -> list[SegmentPart]:
    """Return the parts in which a segment is read up to ``end``; empty if one process reads it whole.

    Parts are ``times`` as large for cheap output. Without ``unpacks``, the parts of compressed
    segments are as large as those of others.
    """
    header = first_header(source)
    packed = unpacks and header is not None and header.attributes & CODEC_MASK
    size = times * (PACKED_CHUNK if packed else CHUNK)
    if header is None or end < 2 * size:
        return []
    starts, position = [], 0
    while position < end:
        starts.append(position)
        position = max(position + size, next_data(source, position + size) // size * size)  # a hole is of one part
    return [SegmentPart(start, min(stop, end)) for start, stop in pairwise([*starts, end])]


def is_transactional(partition: Partition) -> bool:
    """Return, by the first batch of each segment, whether transactions are likely in a partition."""
    return any(_has(_first_header(segment), TRANSACTIONAL_FLAG) for segment in partition.segments)


def is_packed(source: Source) -> bool:
    """Return whether a segment begins with a compressed batch: several processes gain most from decompression.

    The results of one process and its thread without compression need not wait for their turn in memory.
    """
    return _has(first_header(source), CODEC_MASK)


def first_header(source: Source) -> BatchHeader | None:
    """Return the header of the first batch, or None if that is not of magic 2."""
    head = source.read(0, BATCH_HEADER.size)
    header = BATCH_HEADER.read(head) if len(head) == BATCH_HEADER.size else None
    return header if header is not None and header.magic == MAGIC_2 else None


def _is_shareable(partitions: Sequence[Partition]) -> bool:
    return not is_watched() and all(segment.files is LOCAL for part in partitions for segment in part.segments)


def _are_plain(partitions: Sequence[Partition]) -> bool:
    """Return, by the first batch of each partition, whether most bytes are of local files without compression.

    Messages of magic 0 and 1 count as compressed: threads do not read them ahead.
    """
    plain = sum(partition.size for partition in partitions if _is_plain(partition))
    return 2 * plain >= sum(partition.size for partition in partitions)


def _is_plain(partition: Partition) -> bool:
    """Return whether a partition begins with a local file, and this with a batch of magic 2 without compression."""
    first = _first(partition)
    header = None if first is None or first.files is not LOCAL else _first_header(first)
    return header is not None and not header.attributes & CODEC_MASK


def _begins_with(partition: Partition, attributes: int) -> bool:
    """Return whether the first batch of a partition has any of these attributes."""
    first = _first(partition)
    return first is not None and _has(_first_header(first), attributes)


def _has(header: BatchHeader | None, attributes: int) -> bool:
    """Return whether there is a header, and any of these attributes in it."""
    return header is not None and bool(header.attributes & attributes)


def _first(partition: Partition) -> Segment | None:
    """Return the first segment that is not empty."""
    return next((segment for segment in partition.segments if segment.size), None)


def _first_header(segment: Segment) -> BatchHeader | None:
    """Return the header of the first batch, or None if it is none of magic 2 or the segment cannot be read."""
    try:
        with segment.open() as source:
            return first_header(source)
    except UnreadableError:  # the reader of the segment reports it
        return None
