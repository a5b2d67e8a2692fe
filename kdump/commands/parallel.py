"""What several processes read: segments in a row, or parts of a large one, in the order of the output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdump.errors import UnreadableError
from kdump.formats.record_layout import CODEC_MASK, TRANSACTIONAL_FLAG
from kdump.log_dirs.local import LOCAL, LocalFile
from kdump.output.stdout import is_terminal
from kdump.primitives.named_tuple import NamedTuple
from kdump.segments import parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kdump.log_dirs.partition import Partition, Segment
    from kdump.segments.parts import SegmentPart


class Piece(NamedTuple):
    """What one process reads at a time: runs of segments, or a part of a segment that is all of the only run.

    ``size`` counts the bytes.
    """

    runs: list[tuple[Partition, tuple[Segment, ...]]]
    size: int
    part: SegmentPart | None = None


def pieces(partitions: Sequence[Partition], *, cut: bool) -> list[Piece]:
    """Return what the segments of partitions are read in, in order; with ``cut`` large segments are cut."""
    found: list[Piece] = []
    runs: list[tuple[Partition, tuple[Segment, ...]]] = []
    size = 0
    for partition in partitions:
        run: list[Segment] = []
        for segment in partition.segments:
            cuts = _parts(segment) if cut else []
            if size and (cuts or size + segment.size > parts.SIZE):
                found.append(Piece([*runs, (partition, tuple(run))] if run else runs, size))
                runs, run, size = [], [], 0
            found += [Piece([(partition, (segment,))], part.stop - part.start, part) for part in cuts]
            if not cuts:
                run.append(segment)
                size += segment.size
        if run:
            runs.append((partition, tuple(run)))
    if runs:
        found.append(Piece(runs, size))
    return found


def processes(partitions: Sequence[Partition], jobs: int | None, *, is_costly: bool = False) -> int:
    """Return how many processes print partitions: ``jobs``, or as many as are worth it where that is None.

    Two are not worth it for one partition without compression, unless what is made of a record ``is_costly``. Unless it
    is asked for more, one process prints to a terminal, reads archives, and reads while the page cache is watched.
    """
    is_local = all(segment.files is LOCAL for partition in partitions for segment in partition.segments)
    if jobs is None and (not is_local or LocalFile.watch is not None or is_terminal()):
        return 1
    size = sum(partition.size for partition in partitions)
    if len(partitions) == 1:
        return parts.processes_in_a_row(jobs, size, lambda: is_costly or is_packed(partitions[0]))
    return jobs or parts.processes(size)


def is_packed(partition: Partition) -> bool:
    """Tell whether a partition begins with a compressed batch."""
    return any(_begins_with(segment, CODEC_MASK) for segment in partition.segments[:1])


def is_transactional(partition: Partition) -> bool:
    """Tell, by the first batch of each segment, whether transactions are likely in a partition."""
    return any(_begins_with(segment, TRANSACTIONAL_FLAG) for segment in partition.segments)


def _begins_with(segment: Segment, attributes: int) -> bool:
    """Tell whether the first batch has any of these attributes."""
    try:
        with segment.open() as source:
            return parts.begins_with(source, attributes)
    except UnreadableError:  # the reader of the segment reports it
        return False


def _parts(segment: Segment) -> list[SegmentPart]:
    """Return the parts of a large segment, nothing where it is read whole."""
    if segment.size < 2 * parts.PACKED or segment.files is not LOCAL or LocalFile.watch is not None:
        return []
    try:
        with segment.open() as source:
            return parts.parts(source, source.size)
    except UnreadableError:  # whoever reads it says so
        return []
