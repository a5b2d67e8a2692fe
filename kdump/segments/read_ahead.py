"""Threads that read a segment ahead of the caller, with the same regions and errors in the same order.

Threads take chunks of regions in turns (:mod:`kdump.parallel.chunks`). They release the GIL to compute checksums,
decompress large batches and make the first lines of runs (:class:`LinesAhead`). If a thread cannot decompress a batch,
the batch stays unchanged, and its reader raises the error. A caller that waits for a chunk prepares other chunks.
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
    """The result of a thread for a region. It has a size in bytes."""

    @property
    def size(self) -> int: ...


T = TypeVar("T", bound="Region")
M = TypeVar("M", bound=SizedResult)
L = TypeVar("L", bound="Lines")

FIRST: Final = 1 << 17
"""Bytes that are read before threads may start."""
CHUNK_BYTES: Final = 1 << 19
"""A chunk with this number of bytes takes no more regions."""
CHUNK_REGIONS: Final = 1024
HELD: Final = 16 << 20
"""Threads prepare no more regions while more than this number of prepared bytes waits for the caller."""
THREADS: Final = 2
"""Maximum number of threads beside the caller."""
AHEAD: Final = 6 << 20
"""About this many bytes of a run's lines are made by a thread. The printer makes the other lines."""
SPARE: Final = 4
"""Maximum number of unused compiled writers that are kept for later runs, with their buffers."""


class _EndedError(Exception):
    """Ends the read of a thread, because the caller has closed the generator."""


class RevocableSource:
    """A source whose reads raise after ``is_over`` is set. This ends a thread in the middle of a long search."""

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
    """Divides regions into chunks. With ``unpack``, single compressed batches of magic 2 count as larger."""

    def __init__(self, regions: Iterator[T], *, unpack: bool) -> None:
        self._regions, self._unpack = regions, unpack
        self._failure: BaseException | None = None

    def take(self, most: int | None = None) -> list[T]:
        """Return regions of ``most`` (or CHUNK_BYTES) bytes or more, up to CHUNK_REGIONS; fewer at an end or error."""
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
    """Regions, each with the result of ``make`` or None. ``held``: bytes of results and of decompressed records."""

    pairs: list[tuple[T, M | None]]
    held: int


class _SameStart(NamedTuple):
    """The state before a chunk. It is always the same, because chunks are independent."""

    start: bool = True


class Preparation(Generic[T, M]):
    """Prepares regions in threads: checksums and ``make``; with ``unpack`` decompression, with ``check`` records."""

    def __init__(self, make: Callable[[Run], M | None] | None, *, unpack: bool, check: bool) -> None:
        self._make, self._unpack, self._check = make, unpack, check
        self._lock = threading.Lock()
        self._held = 0

    def assume(self, _: list[T]) -> bool:
        return True

    def make(self, chunk: list[T], _: bool, turn: Turn[_SameStart]) -> PreparedRegions[T, M]:
        """Prepare regions until the chunk's turn comes or more than HELD bytes wait. Return all regions."""
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
        """Add ``size`` (negative after a read) to the number of prepared bytes that wait for the caller."""
        with self._lock:
            self._held += size

    def _prepare(self, region: T, run: Run | None) -> int:
        """Check a run's records, verify a batch, decompress a large one. Return the number of decompressed bytes."""
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
    """Yield ``regions``. Threads read ahead as in :func:`read_making`, without ``make``."""
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

    ``regions`` reads ``size`` bytes of ``source``. Threads read ahead if that is faster. With ``unpack`` they
    decompress large batches, with ``check`` they check records of runs. Any thread may call ``make`` with a run; if it
    raises MemoryError or DamageError, the result is None. An error of ``regions`` is raised after the regions before
    it. ``source`` must stay open until the generator is closed.
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
    from kdump.parallel.chunks import Threads

    work: Preparation[T, M] = Preparation(make, unpack=unpack, check=check)
    engine = Threads(min(threads, THREADS), source)
    with closing(engine.run(iter(chunks.take, []), work, _SameStart())) as results:
        for prepared, _ in results:
            yield from prepared.pairs
            work.hold(-prepared.held)


def _is_packed(region: Region) -> bool:
    return isinstance(region, Batch) and bool(region.header.attributes & CODEC_MASK)


def _is_much(taken: Sequence[Region], left: int, *, unpack: bool) -> bool:
    """Return whether threads are faster for ``left`` bytes like ``taken``: not if most are small compressed batches."""
    size = sum([region.size for region in taken])
    packed = [region.size for region in taken if _is_packed(region)] if unpack else []
    small = sum([each for each in packed if each < costs.UNPACKED_AHEAD])
    return 2 * small <= size and left * (size + (costs.UNPACKING - 1) * sum(packed)) >= costs.READING_AHEAD * size


def free_processors() -> int:
    """Return the number of processors that threads may use beside the caller; 0 if threads are not allowed."""
    return costs.processors() - 1 if threads.allowed() else 0


class MadeLines(NamedTuple):
    """The first output lines of a batch run, and the compiled writer that makes its other lines."""

    writer: Lines
    lines: Bytes

    @property
    def size(self) -> int:
        return len(self.lines)


class LinesAhead(Generic[L]):
    """Makes the output lines of batch runs.

    ``writer`` is the compiled writer of the printer; threads have their own. A thread makes the first lines of a run
    (:meth:`make`). The printer prints them and makes the rest.
    """

    def __init__(self, make_writer: Callable[[], L]) -> None:
        self.writer = make_writer()
        self._make_writer = make_writer
        self._spare: list[Lines] = []

    def make(self, run: Run, head: Shape | None, shape: Shape) -> MadeLines | None:
        """Return the first lines of a run, or None for a run of less than PRINTED_AHEAD bytes.

        ``head`` is the compiled form of a batch's line (None for no such lines), ``shape`` that of a record's line.
        """
        if run.size < costs.PRINTED_AHEAD:
            return None
        try:
            writer: Lines = self._spare.pop()
        except IndexError:
            writer = self._make_writer()
        writer.stack(run.block, run.rows, WIDTH, 0, run.batch_count)
        writer.last_offset = UNKNOWN
        return MadeLines(writer, writer.run(head, shape, AHEAD))

    def begin(self, run: Run, row: int, stop: int, made: MadeLines | None) -> MadeLines:
        """Return ``made`` if it has the lines of ``row`` to ``stop`` (exclusive), else a writer without lines yet."""
        if made is not None and (row, stop) == (0, run.batch_count):
            return made
        self.writer.stack(run.block, run.rows, WIDTH, row, stop)
        self.writer.stuck = False
        return MadeLines(self.writer, b"")

    def end(self, writer: Lines) -> None:
        """Keep the writer that :meth:`begin` returned, so that later runs use it. At most SPARE are kept."""
        if writer is not self.writer and len(self._spare) < SPARE:
            self._spare.append(writer)
