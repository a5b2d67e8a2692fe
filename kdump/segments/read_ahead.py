"""A segment read by threads ahead of whoever reads its regions, in the same order and with the same outcome.

Reading a file, unpacking a batch and the kernel's printing go without Python's global lock, so that several processors
do it. Threads take turns at the walk. Each makes ready what it has taken: it reckons checksums, unpacks large batches
and makes lines of runs. A batch that it cannot unpack stays as it was, so that its reader meets the same damage as
without threads. The reader of the regions does the same while it waits for a thread. A processor takes longer to print
bytes that another has read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar

from kdump.errors import DamageError
from kdump.formats.record_layout import CODEC_MASK
from kdump.log_dirs import files
from kdump.parallel import costs
from kdump.records.magic_2 import Batch
from kdump.segments.batch_runs import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from kdump.log_dirs.files import Source
    from kdump.segments.regions import Region

T = TypeVar("T", bound="Region")

FIRST: Final = 1 << 17
"""Bytes that are read before it is decided whether threads are started: what they would do shows by then."""
STRETCH: Final = 1 << 19
"""Bytes of a stretch, at least: what a thread takes at a time. A run that fills a block is a stretch of its own."""
PIECES: Final = 1024
"""Regions of a stretch, at most: the smallest batches are the slowest."""
_alone = False


class _EndedError(Exception):
    """The reader has ended: what a thread goes on to read is not used."""


class Leash:
    """A source that threads read only until they are called back: a search through damage may go on for gigabytes."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.name, self.size, self.limit = source.name, source.size, source.limit
        self.is_over = False

    def read(self, position: int, size: int) -> bytes:
        if self.is_over:
            raise _EndedError
        return self._source.read(position, size)

    def next_data(self, position: int) -> int:
        return files.next_data(self._source, position)

    def next_hole(self, position: int) -> int:
        return files.next_hole(self._source, position)


class Stretches(Generic[T]):
    """Regions, cut into lists of some. Not for two threads at once.

    With ``unpack`` somebody is going to look into the batches, with ``check`` to ask whether records are well-formed.
    """

    def __init__(self, regions: Iterator[T], *, unpack: bool, check: bool) -> None:
        self._regions = regions
        self._unpack = unpack
        self._check = check
        self._failure: BaseException | None = None

    def take(self, most: int | None = None) -> list[T]:
        """Return the next regions, ``most`` bytes of them (STRETCH) or a region more; none at the end.

        What ends them is raised behind what stands before it.
        """
        if self._failure is not None:
            raise self._failure
        regions: list[T] = []
        size = 0
        most = STRETCH if most is None else most
        try:
            while not regions or (size < most and len(regions) < PIECES):
                region = next(self._regions, None)
                if region is None:
                    break
                size += region.size * costs.UNPACKING if self._unpack and _is_packed(region) else region.size
                regions.append(region)
        except BaseException as failure:  # it is raised again, behind these regions
            if not regions:
                raise
            self._failure = failure
        return regions

    def prepare(self, region: T) -> int:
        """Reckon what whoever reads the region will ask for; return how many bytes are unpacked for it."""
        try:
            if self._check and isinstance(region, Run):
                _ = region.sound
            if not isinstance(region, Batch):
                return 0
            _ = region.crc_valid
            return region.unpack() if self._unpack and region.size >= costs.UNPACKED_AHEAD else 0
        except (DamageError, MemoryError, ImportError):  # whoever reads the batch meets it too, in its place
            return 0


def read(
    regions: Iterator[T],
    leash: Leash,
    size: int,
    *,
    unpack: bool,
    check: bool = False,
    make: Callable[[T], int] | None = None,
) -> Generator[T, None, None]:
    """Yield ``regions``, ``size`` bytes that are read by ``leash``; threads take them ahead of time when that is much.

    With ``unpack``, compressed batches may be unpacked already, with ``check`` the records of runs looked at. ``make``
    may be called with a region before it is yielded, in any thread; it returns how many bytes it made. A MemoryError or
    a DamageError of ``make`` is passed over: the reader of the region meets it again. An error of ``regions`` is raised
    after the regions before it. The source must stay open until this is closed.
    """
    stretches = Stretches(regions, unpack=unpack, check=check)
    threads = helpers()
    done = 0
    taken: list[T] = []
    while threads <= 0 or done < FIRST or not _is_much(taken, size - done, unpack=unpack):
        taken = stretches.take(FIRST)
        if not taken:
            return
        yield from taken
        done += sum([region.size for region in taken])
    from kdump.segments.reader_threads import Crew  # needed for large segments alone

    crew = Crew(stretches, leash, make)
    try:
        crew.start(threads)
        while (task := crew.next()) is not None:
            if task.failure is not None:
                raise task.failure
            if not task.regions:
                return
            yield from task.regions
            crew.done(task)
    finally:
        crew.end()
    leash.is_over = False
    while taken := stretches.take():  # there is no thread, or none is left
        yield from taken


def _is_packed(region: Region) -> bool:
    return isinstance(region, Batch) and bool(region.header.attributes & CODEC_MASK)


def _is_much(taken: Sequence[Region], left: int, *, unpack: bool) -> bool:
    """Tell whether threads are worth it for ``left`` bytes, assuming that these are like ``taken``.

    They are not where most of the bytes are of compressed batches that are too small for threads.
    """
    size = sum([region.size for region in taken])
    packed = [region.size for region in taken if _is_packed(region)] if unpack else []
    small = sum([each for each in packed if each < costs.UNPACKED_AHEAD])
    return 2 * small <= size and left * (size + (costs.UNPACKING - 1) * sum(packed)) >= costs.READING_AHEAD * size


def alone() -> None:
    """Start no threads in this process from now on: others of the same work use the processors."""
    global _alone  # noqa: PLW0603  it is said once in the life of a process
    _alone = True


def helpers() -> int:
    """Return how many threads may read beside this one, at most."""
    return 0 if _alone else costs.processors() - 1
