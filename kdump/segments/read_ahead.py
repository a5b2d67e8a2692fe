"""Threads that read a segment ahead of its reader: the same regions and errors in the same order.

Threads take chunks of regions in turns (:mod:`kdump.parallel.chunks`). They compute checksums, decompress large batches
and make the first lines of runs (:class:`LinesAhead`): all of this runs without the GIL. A batch that a thread cannot
decompress stays unchanged, and its reader raises the error. The caller prepares chunks too while it waits.
"""

from __future__ import annotations

import threading
from contextlib import closing
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, Protocol, TypeVar

from kdump import kernel
from kdump.errors import DamageError
from kdump.formats.record_layout import CODEC_MASK
from kdump.log_dirs import files
from kdump.parallel import costs
from kdump.parallel.costs import UNKNOWN
from kdump.primitives import threads
from kdump.records.magic_2 import Batch
from kdump.segments.batch_runs import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from kdump.kernel.lines import Lines, Shape
    from kdump.log_dirs.files import Source
    from kdump.parallel.chunks import Turn
    from kdump.primitives.wire import Bytes
    from kdump.segments.regions import Region
if kernel.COMPILED:
    from kdump.kernel.batches import WIDTH


class SizedResult(Protocol):
    """A result that a thread makes of a region, with its size in bytes."""

    @property
    def size(self) -> int: ...


T = TypeVar("T", bound="Region")
M = TypeVar("M", bound=SizedResult)
L = TypeVar("L", bound="Lines")

FIRST: Final = 1 << 17
"""Bytes that are read before threads may start."""
CHUNK_BYTES: Final = 1 << 19
"""Smallest size of a chunk in bytes, except the last one."""
CHUNK_REGIONS: Final = 1024
"""Most regions of a chunk."""
HELD: Final = 16 << 20
"""Threads stop preparing while at least this number of bytes (decompressed records and lines) waits for the caller."""
THREADS: Final = 2
AHEAD: Final = 6 << 20
"""Bytes of lines of a run after which a thread stops; the printer makes the rest."""
SPARE: Final = 4
"""Most kernel writers that are kept for the next runs, each with the memory of its lines."""


class _EndedError(Exception):
    """The caller has ended; a thread must read no more."""


class RevocableSource:
    """A source whose reads raise once ``is_over`` is set. It ends a thread in the middle of a long search."""

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


class RegionChunks(Generic[T]):
    """Divides regions into chunks. With ``unpack`` compressed bytes count more, by the cost of decompression."""

    def __init__(self, regions: Iterator[T], *, unpack: bool) -> None:
        self._regions, self._unpack = regions, unpack
        self._failure: BaseException | None = None

    def take(self, most: int | None = None) -> list[T]:
        """Return the next regions, at least ``most`` bytes (by default CHUNK_BYTES); empty at the end.

        An error is raised after the regions before it were returned.
        """
        if self._failure is not None:
            raise self._failure
        regions: list[T] = []
        size = 0
        most = CHUNK_BYTES if most is None else most
        try:
            while not regions or (size < most and len(regions) < CHUNK_REGIONS):
                region = next(self._regions, None)
                if region is None:
                    break
                size += region.size * costs.UNPACKING if self._unpack and _is_packed(region) else region.size
                regions.append(region)
        except BaseException as failure:  # raised again, after these regions
            if not regions:
                raise
            self._failure = failure
        return regions


class PreparedRegions(NamedTuple, Generic[T, M]):
    """Regions, each with the result of ``make`` or None. ``held`` is the size of all prepared bytes."""

    pairs: list[tuple[T, M | None]]
    held: int


class _SameStart(NamedTuple):
    """The state before a chunk, which is always the same: chunks are independent."""

    start: bool = True


class Preparation(Generic[T, M]):
    """The work of threads on chunks of regions. With ``check`` they also check that the records of runs are valid."""

    def __init__(self, make: Callable[[Run], M | None] | None, *, unpack: bool, check: bool) -> None:
        self._make, self._unpack, self._check = make, unpack, check
        self._lock = threading.Lock()
        self._held = 0

    def assume(self, _: list[T]) -> bool:
        return True

    def make(self, chunk: list[T], _: bool, turn: Turn[_SameStart]) -> PreparedRegions[T, M]:
        """Prepare regions of a chunk until HELD bytes wait, or the chunk's turn comes. Return the rest unprepared."""
        pairs: list[tuple[T, M | None]] = []
        held = 0
        for region in chunk:
            made = None
            if turn.state is None and self._held <= HELD:
                run = region if isinstance(region, Run) else None
                size = self._prepare(region, run)
                made = None if run is None else self._made(run)
                size += 0 if made is None else made.size
                if size:
                    held += size
                    self.hold(size)
            pairs.append((region, made))
        return PreparedRegions(pairs, held)

    def carry(self, before: _SameStart, _: PreparedRegions[T, M]) -> _SameStart:
        return before

    def hold(self, size: int) -> None:
        """Add to the prepared bytes that wait for the caller; a negative size removes those that it has read."""
        with self._lock:
            self._held += size

    def _prepare(self, region: T, run: Run | None) -> int:
        """Compute the checksum of a region and decompress it; return the number of decompressed bytes."""
        try:
            if self._check and run is not None:
                _ = run.sound
            if not isinstance(region, Batch):
                return 0
            _ = region.crc_valid
            return region.unpack() if self._unpack and region.size >= costs.UNPACKED_AHEAD else 0
        except (DamageError, MemoryError, ImportError):  # raised again by the reader of the batch
            return 0

    def _made(self, run: Run) -> M | None:
        try:
            return None if self._make is None else self._make(run)
        except (DamageError, MemoryError):  # raised again by the caller
            return None


def read(
    regions: Iterator[T], source: RevocableSource, size: int, *, unpack: bool, check: bool = False
) -> Generator[T, None, None]:
    with closing(read_making(regions, source, size, None, unpack=unpack, check=check)) as pairs:
        for region, _ in pairs:
            yield region


def read_making(
    regions: Iterator[T],
    source: RevocableSource,
    size: int,
    make: Callable[[Run], M | None] | None,
    *,
    unpack: bool,
    check: bool = False,
) -> Generator[tuple[T, M | None], None, None]:
    """Yield ``regions``, each with the result of ``make`` or None.

    ``regions`` are ``size`` bytes that are read from ``source``. Threads read them ahead if that is faster. With
    ``unpack`` threads decompress batches, with ``check`` they check the records of runs. Any thread may call ``make``
    with a run; if it raises MemoryError or DamageError, the result is None. An error of ``regions`` is raised after the
    regions before it. The source must stay open until the generator is closed.
    """
    chunks = RegionChunks(regions, unpack=unpack)
    threads = free_processors()
    done = 0
    taken: list[T] = []
    while threads <= 0 or done < FIRST or not _is_much(taken, size - done, unpack=unpack):
        taken = chunks.take(FIRST)
        if not taken:
            return
        for region in taken:
            yield region, None
        done += sum([region.size for region in taken])
    from kdump.parallel.chunks import Threads  # needed only for large segments

    work: Preparation[T, M] = Preparation(make, unpack=unpack, check=check)
    engine = Threads(min(threads, THREADS), source)
    with closing(engine.run(iter(chunks.take, []), work, _SameStart())) as results:
        for prepared, _ in results:
            yield from prepared.pairs
            work.hold(-prepared.held)


def _is_packed(region: Region) -> bool:
    return isinstance(region, Batch) and bool(region.header.attributes & CODEC_MASK)


def _is_much(taken: Sequence[Region], left: int, *, unpack: bool) -> bool:
    """Return whether threads make reading ``left`` bytes faster, if these are like the regions ``taken``.

    They do not if most bytes are in compressed batches that are too small to be decompressed by a thread.
    """
    size = sum([region.size for region in taken])
    packed = [region.size for region in taken if _is_packed(region)] if unpack else []
    small = sum([each for each in packed if each < costs.UNPACKED_AHEAD])
    return 2 * small <= size and left * (size + (costs.UNPACKING - 1) * sum(packed)) >= costs.READING_AHEAD * size


def free_processors() -> int:
    """Return the number of processors for additional threads."""
    return costs.processors() - 1 if threads.allowed() else 0


class MadeLines(NamedTuple):
    """The first lines of a run, and the kernel's writer that makes the rest."""

    kernel: Lines
    lines: Bytes

    @property
    def size(self) -> int:
        return len(self.lines)


class LinesAhead(Generic[L]):
    """Makes the lines of runs with the kernel. ``kernel`` is the printer's own writer; threads use others.

    A thread makes the first lines of a run (:meth:`make`). The printer prints them and makes the rest.
    """

    def __init__(self, make_kernel: Callable[[], L]) -> None:
        self.kernel = make_kernel()
        self._make_kernel = make_kernel
        self._spare: list[Lines] = []

    def make(self, run: Run, head: Shape | None, shape: Shape) -> MadeLines | None:
        """Return the first lines of a run: ``head`` for each batch, ``shape`` for each record. None for a small run."""
        if run.size < costs.PRINTED_AHEAD:
            return None
        try:
            kernel: Lines = self._spare.pop()
        except IndexError:
            kernel = self._make_kernel()
        kernel.stack(run.block, run.rows, WIDTH, 0, run.batch_count)
        kernel.last_offset = UNKNOWN
        return MadeLines(kernel, kernel.run(head, shape, AHEAD))

    def begin(self, run: Run, row: int, stop: int, made: MadeLines | None) -> MadeLines:
        """Return the first lines of batches from ``row`` to before ``stop``: ``made`` if these are the whole run."""
        if made is not None and (row, stop) == (0, run.batch_count):
            return made
        self.kernel.stack(run.block, run.rows, WIDTH, row, stop)
        self.kernel.stuck = False
        return MadeLines(self.kernel, b"")

    def end(self, kernel: Lines) -> None:
        """Keep the writer that :meth:`begin` returned for the next runs."""
        if kernel is not self.kernel and len(self._spare) < SPARE:
            self._spare.append(kernel)
