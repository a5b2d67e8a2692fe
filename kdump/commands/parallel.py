"""What several processes read: segments in a row, or parts of a large one, in the order of the output."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.errors import UnreadableError
from kdump.formats.record_layout import CODEC_MASK, TRANSACTIONAL_FLAG
from kdump.log_dirs.local import LOCAL, LocalFile
from kdump.output.stdout import is_terminal
from kdump.segments import parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kdump.formats.record_layout import BatchHeader
    from kdump.log_dirs.partition import Partition, Segment
    from kdump.segments.parts import SegmentPart


MUCH_PLAIN: Final = 96 << 20
"""Bytes without compression from which on two processes are sooner done than one."""
MUCH_OF_HEADERS: Final = 256 << 20
"""The same, compressed or not, where only headers of batches are printed."""
OPENING: Final = 1 << 18
"""What opening one segment costs, in bytes that could be read in that time."""
LARGE: Final = 16 << 20
"""Average bytes of a segment without compression from which on one process with threads is faster than two."""


class Effort(Enum):
    """What is made of the records of partitions."""

    COSTLY = auto()
    """What takes far longer than reading: hashes, values of JSON, decoded records."""
    LINES = auto()
    """A line of each record, which threads can make ahead of time."""
    SOME = auto()
    """Anything else: records are filtered or counted, or no thread can make their lines."""
    HEADERS = auto()
    """Nothing: only headers of batches are read."""


class Piece(NamedTuple):
    """What one process reads at a time: runs of segments, or a part of a segment that is all of the only run.

    ``size`` counts the bytes, ``ends_segment`` is False for a part with others of its segment after it.
    """

    runs: list[tuple[Partition, tuple[Segment, ...]]]
    size: int
    part: SegmentPart | None = None
    ends_segment: bool = True


def pieces(partitions: Sequence[Partition], *, cut: bool, unpacks: bool) -> list[Piece]:
    """Return what the segments of partitions are read in, in order; with ``cut`` large segments are cut.

    With ``unpacks``, compressed segments are cut into smaller parts.
    """
    found: list[Piece] = []
    runs: list[tuple[Partition, tuple[Segment, ...]]] = []
    size = 0
    for partition in partitions:
        run: list[Segment] = []
        for segment in partition.segments:
            cuts = _parts(segment, unpacks=unpacks) if cut else []
            if size and (cuts or size + segment.size > parts.SIZE):
                found.append(Piece([*runs, (partition, tuple(run))] if run else runs, size))
                runs, run, size = [], [], 0
            only: list[tuple[Partition, tuple[Segment, ...]]] = [(partition, (segment,))]
            found += [Piece(only, part.stop - part.start, part, part is cuts[-1]) for part in cuts]
            if not cuts:
                run.append(segment)
                size += segment.size
        if run:
            runs.append((partition, tuple(run)))
    if runs:
        found.append(Piece(runs, size))
    return found


def processes(partitions: Sequence[Partition], jobs: int | None, effort: Effort) -> int:
    """Return how many processes print partitions: ``jobs``, or as many as are worth it where that is None.

    It is one where two are no faster, even if ``jobs`` is 2: for few headers; for few bytes without compression, unless
    the effort is costly; for lines of large segments without compression, which threads of one process make (for a
    single partition whatever the number of processors). Without ``jobs`` it is one also for a terminal, for archives,
    and while the page cache is watched. ``jobs`` above 2 is taken as it is.
    """
    is_local = all(segment.files is LOCAL for partition in partitions for segment in partition.segments)
    if jobs is None and (not is_local or LocalFile.watch is not None or is_terminal()):
        return 1
    size = sum(partition.size for partition in partitions)
    count = jobs or parts.processes(size)
    if count == 1 or effort is Effort.COSTLY or jobs not in (None, parts.AS_THREADS):
        return count
    segments = sum(len(partition.segments) for partition in partitions)
    if effort is Effort.HEADERS:
        return count if size + OPENING * segments >= MUCH_OF_HEADERS else 1
    has_threads = effort is Effort.LINES and (len(partitions) == 1 or count == parts.AS_THREADS)
    is_enough = size + OPENING * segments < MUCH_PLAIN or (has_threads and size >= LARGE * segments)
    return 1 if is_enough and are_plain(partitions) else count


def are_plain(partitions: Sequence[Partition]) -> bool:
    """Tell, by the first batch of each partition, whether most bytes are of local files without compression.

    Messages of magic 0 and 1 count as compressed: threads do not read them ahead.
    """
    plain = sum(partition.size for partition in partitions if _is_plain(partition))
    return 2 * plain >= sum(partition.size for partition in partitions)


def _is_plain(partition: Partition) -> bool:
    """Tell whether a partition begins with a local file, and this with a batch of magic 2 without compression."""
    first = _first(partition)
    header = None if first is None or first.files is not LOCAL else _first_header(first)
    return header is not None and not header.attributes & CODEC_MASK


def is_packed(partition: Partition) -> bool:
    """Tell whether a partition begins with a compressed batch."""
    first = _first(partition)
    return first is not None and _has(_first_header(first), CODEC_MASK)


def is_transactional(partition: Partition) -> bool:
    """Tell, by the first batch of each segment, whether transactions are likely in a partition."""
    return any(_has(_first_header(segment), TRANSACTIONAL_FLAG) for segment in partition.segments)


def _has(header: BatchHeader | None, attributes: int) -> bool:
    """Tell whether there is a header, and any of these attributes in it."""
    return header is not None and bool(header.attributes & attributes)


def _first(partition: Partition) -> Segment | None:
    """Return the first segment that is not empty."""
    return next((segment for segment in partition.segments if segment.size), None)


def _first_header(segment: Segment) -> BatchHeader | None:
    """Return the header of the first batch, None where it is none of magic 2 or the segment cannot be read."""
    try:
        with segment.open() as source:
            return parts.first_header(source)
    except UnreadableError:  # the reader of the segment reports it
        return None


def _parts(segment: Segment, *, unpacks: bool) -> list[SegmentPart]:
    """Return the parts of a large segment, nothing where it is read whole."""
    if segment.size < 2 * parts.PACKED or segment.files is not LOCAL or LocalFile.watch is not None:
        return []
    try:
        with segment.open() as source:
            return parts.parts(source, source.size, unpacks=unpacks)
    except UnreadableError:  # whoever reads it says so
        return []
