"""Parts of a large segment, which several processes or threads read side by side.

Where a part begins is guessed: at the first batch behind its first byte that can be believed. That may be a batch in
the value of a record. Who reads the part before knows; see :mod:`kdump.parallel.chunks`.
"""

from __future__ import annotations

import os
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from kdump.formats.record_layout import BATCH_HEADER, CODEC_MASK, MAGIC_2
from kdump.log_dirs.files import next_data
from kdump.segments.read_ahead import processors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    from kdump.formats.record_layout import BatchHeader
    from kdump.log_dirs.files import Source
    from kdump.segments.regions import Region

    T = TypeVar("T", bound=Region)

MUCH: Final = 12 << 20
"""Bytes from which on several processes read, where nobody says how many: with less, one is as fast."""
MOST: Final = 16
"""Processes that read, where nobody says how many: standard output takes no more than these make."""
BUSY: Final = 2
"""Processes that run or wait to run, by processor, from which on a system is too busy for several of kdump's."""
AS_THREADS: Final = 2
"""Processes as many as the processors that one and its thread use, which are sooner done without compression."""
SIZE: Final = 6 << 20
"""Bytes of a part: what is made of it has to fit into what a process or a thread holds until its turn comes."""
PACKED: Final = 1 << 19
"""The same where batches are compressed."""
BUDGET: Final = 1 << 16
"""Records that a search through damage may hop over in vain, beyond those that the size of the file grants."""
UNKNOWN: Final = -(1 << 63)
"""The last offset before what is read before that is known: whatever offset comes first, there is a gap."""


class SegmentPart:
    """A part of a segment: from the batch at ``start`` to the first one at ``stop`` or behind it (bytes).

    ``reached`` is where that batch stands once the part is read, ``is_over`` says that nothing behind it is wanted.
    ``hops`` are what is left to a search through damage (:class:`kdump.segments.resync.ResyncReader`), ``lost`` the
    bytes that the file became shorter while it was read.
    """

    __slots__ = ("hops", "is_over", "lost", "reached", "start", "stop")

    def __init__(self, start: int, stop: int) -> None:
        self.start, self.stop = start, stop
        self.hops = BUDGET
        self.reached = self.lost = 0
        self.is_over = False

    def cut(self, regions: Iterator[T], end: int) -> Iterator[T]:
        """Yield regions that begin in front of ``stop``; ``end`` is that of the file."""
        for region in regions:
            if region.position >= self.stop:
                self.reached = region.position
                return
            yield region
        self.reached = end


def parts(source: Source, end: int, times: int = 1, *, unpacks: bool = True) -> list[SegmentPart]:
    """Return what the bytes of a segment up to ``end`` are read in, nothing where it is not to be cut.

    Parts are so many ``times`` as large where little is made of them. Without ``unpacks``, the parts of compressed
    segments are as large as those of others.
    """
    header = first_header(source)
    size = times * (PACKED if unpacks and header is not None and header.attributes & CODEC_MASK else SIZE)
    if header is None or end < 2 * size:
        return []
    starts, position = [], 0
    while position < end:
        starts.append(position)
        position = max(position + size, next_data(source, position + size) // size * size)  # a hole is of one part
    return [SegmentPart(start, min(stop, end)) for start, stop in pairwise([*starts, end])]


def is_packed(source: Source) -> bool:
    """Tell whether a segment begins with a compressed batch: unpacking is what several processes gain most from.

    What one process and its thread make of uncompressed ones need not wait for its turn in memory.
    """
    header = first_header(source)
    return header is not None and bool(header.attributes & CODEC_MASK)


def first_header(source: Source) -> BatchHeader | None:
    """Return the header of the first batch, None where it is none of magic 2."""
    head = source.read(0, BATCH_HEADER.size)
    header = BATCH_HEADER.read(head) if len(head) == BATCH_HEADER.size else None
    return header if header is not None and header.magic == MAGIC_2 else None


def processes(size: int) -> int:
    """Return how many processes read so many bytes where nobody says how many."""
    return 1 if size < MUCH else min(free_processors(), MOST, size // SIZE)


def processes_in_a_row(jobs: int | None, size: int, is_costly: Callable[[], bool]) -> int:
    """Return how many processes read ``size`` bytes in a row: ``jobs``, or where that is None as many as are worth it.

    It is one where what is made of them costs little, unless more than two are asked for: its thread is the second.
    """
    if jobs not in (None, AS_THREADS):
        return jobs
    return (jobs or processes(size)) if is_costly() else 1


def free_processors() -> int:
    """Return how many processors there are for a run: one where many others wait for them.

    Processes that write in turns would wait for each other then.
    """
    count = processors()
    try:
        return 1 if os.getloadavg()[0] > BUSY * count else count
    except OSError:  # the system does not tell
        return count
