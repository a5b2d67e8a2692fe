"""The division of input between processes: consecutive segments, or parts of a large one, in output order."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kdump.errors import UnreadableError
from kdump.log_dirs.local import LOCAL
from kdump.parallel import costs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kdump.log_dirs.partition import Partition, Segment
    from kdump.parallel.costs import SegmentPart


class Piece(NamedTuple):
    """The unit of work of a process: runs of segments, or one part of a large segment.

    ``size`` counts the bytes, ``ends_segment`` is False for a part with others of its segment after it.
    """

    runs: list[tuple[Partition, tuple[Segment, ...]]]
    size: int
    part: SegmentPart | None = None
    ends_segment: bool = True


def pieces(partitions: Sequence[Partition], *, cut: bool, unpacks: bool) -> list[Piece]:
    """Return the parts in which segments are read, in order; ``cut``: large segments are divided.

    With ``unpacks``, compressed segments are split into smaller parts.
    """
    found: list[Piece] = []
    runs: list[tuple[Partition, tuple[Segment, ...]]] = []
    size = 0
    for partition in partitions:
        run: list[Segment] = []
        for segment in partition.segments:
            cuts = _parts(segment, unpacks=unpacks) if cut else []
            if size and (cuts or size + segment.size > costs.CHUNK):
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


def _parts(segment: Segment, *, unpacks: bool) -> list[SegmentPart]:
    """Return the parts of a large segment; nothing if it is read as a whole."""
    if segment.size < 2 * costs.PACKED_CHUNK or segment.files is not LOCAL or costs.is_watched():
        return []
    try:
        with segment.open() as source:
            return costs.segment_parts(source, source.size, unpacks=unpacks)
    except UnreadableError:  # its reader reports it
        return []
