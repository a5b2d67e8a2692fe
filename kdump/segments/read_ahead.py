"""A segment that threads read ahead: the same regions in the same order, and the same errors.

Reading a file, decompression and the kernel's printing run without the GIL, so that several cores do it. Threads take
chunks of regions in turns (:mod:`kdump.parallel.chunks`): they compute checksums, decompress large batches and make
lines of runs. A batch that a thread cannot decompress stays as it was, so that its reader meets the same damage as
without threads. The caller prepares chunks too while it waits. Formatting is faster on the core that read the bytes:
they are in its cache.
"""

from __future__ import annotations

import threading
from contextlib import closing
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, Protocol, TypeVar

from kdump.errors import DamageError
from kdump.formats.record_layout import CODEC_MASK
from kdump.log_dirs import files
from kdump.parallel import costs
from kdump.records.magic_2 import Batch
from kdump.segments.batch_runs import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from kdump.log_dirs.files import Source
    from kdump.parallel.chunks import Turn
    from kdump.segments.regions import Region


class SizedResult(Protocol):
    """The result that a thread made of a region, and its size in bytes."""

    @property
    def size(self) -> int: ...


T = TypeVar("T", bound="Region")
M = TypeVar("M", bound=SizedResult)

FIRST: Final = 1 << 17
"""Bytes that are read before the decision whether threads pay off."""
CHUNK_BYTES: Final = 1 << 19
"""Bytes of a chunk, at least. A run that fills a block is a chunk of its own."""
CHUNK_REGIONS: Final = 1024
"""Regions of a chunk, at most: the smallest batches are the slowest."""
HELD: Final = 16 << 20
"""Decompressed and made bytes that wait for the caller and keep a thread from preparing more."""
THREADS: Final = 2
_alone = False


class _EndedError(Exception):
    """The caller has ended: the bytes that a thread would read are not used."""


class RevocableSource:
    """A source whose reads raise once ``is_over`` is set: a search through damage may take gigabytes."""

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
    """Cuts regions into lists. ``unpack``: compressed batches count as the work of their decompression."""

    def __init__(self, regions: Iterator[T], *, unpack: bool) -> None:
        self._regions, self._unpack = regions, unpack
        self._failure: BaseException | None = None

    def take(self, most: int | None = None) -> list[T]:
        """Return the next regions, ``most`` bytes (CHUNK_BYTES) or a region more; none at the end.

        An error is raised after the regions before it.
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
    """Regions, each with its result; ``held`` counts the bytes that were decompressed and made."""

    pairs: list[tuple[T, M | None]]
    held: int


class _SameStart(NamedTuple):
    """The state before a chunk: its result depends on no other chunk."""

    start: bool = True


class Preparation(Generic[T, M]):
    """The work on chunks of regions. ``check``: the reader wants to know whether records are well-formed."""

    def __init__(self, make: Callable[[Run], M | None] | None, *, unpack: bool, check: bool) -> None:
        self._make, self._unpack, self._check = make, unpack, check
        self._lock = threading.Lock()
        self._held = 0

    def assume(self, _: list[T]) -> bool:
        """Return the only start there is."""
        return True

    def make(self, chunk: list[T], _: bool, turn: Turn[_SameStart]) -> PreparedRegions[T, M]:
        """Prepare regions up to HELD bytes. Stop when the chunk's turn has come: its caller then does the work."""
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
        """Return the state after a chunk."""
        return before

    def hold(self, size: int) -> None:
        """Count bytes that wait for the caller; a negative size counts those that it has read."""
        with self._lock:
            self._held += size

    def _prepare(self, region: T, run: Run | None) -> int:
        """Compute what the reader of a region will need; return how many bytes were decompressed."""
        try:
            if self._check and run is not None:
                _ = run.sound
            if not isinstance(region, Batch):
                return 0
            _ = region.crc_valid
            return region.unpack() if self._unpack and region.size >= costs.UNPACKED_AHEAD else 0
        except (DamageError, MemoryError, ImportError):  # the reader of the batch meets it too, in its place
            return 0

    def _made(self, run: Run) -> M | None:
        try:
            return None if self._make is None else self._make(run)
        except (DamageError, MemoryError):  # the caller meets it too, in its place
            return None


def read(
    regions: Iterator[T], source: RevocableSource, size: int, *, unpack: bool, check: bool = False
) -> Generator[T, None, None]:
    """Yield the regions of :func:`read_making`."""
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
    """Yield ``regions``, ``size`` bytes that ``source`` reads, each with the result of ``make`` or None.

    Threads take regions ahead of time if that pays off. With ``unpack``, compressed batches may already be
    decompressed; with ``check``, the records of runs are validated. Any thread may call ``make`` with a run before the
    run is yielded. If ``make`` raises MemoryError or DamageError, its result is None and the caller raises it again. An
    error of ``regions`` is raised after the regions before it. Keep the source open until the generator is closed.
    """
    chunks = RegionChunks(regions, unpack=unpack)
    threads = helpers()
    done = 0
    taken: list[T] = []
    while threads <= 0 or done < FIRST or not _is_much(taken, size - done, unpack=unpack):
        taken = chunks.take(FIRST)
        if not taken:
            return
        for region in taken:
            yield region, None
        done += sum([region.size for region in taken])
    from kdump.parallel.chunks import Threads  # needed for large segments alone

    work: Preparation[T, M] = Preparation(make, unpack=unpack, check=check)
    engine = Threads(min(threads, THREADS), source)
    with closing(engine.run(iter(chunks.take, []), work, _SameStart())) as results:
        for prepared, _ in results:
            yield from prepared.pairs
            work.hold(-prepared.held)


def _is_packed(region: Region) -> bool:
    return isinstance(region, Batch) and bool(region.header.attributes & CODEC_MASK)


def _is_much(taken: Sequence[Region], left: int, *, unpack: bool) -> bool:
    """Return whether threads pay off for ``left`` bytes, assuming that these are like ``taken``.

    They do not if most of the bytes are of compressed batches that are too small for threads.
    """
    size = sum([region.size for region in taken])
    packed = [region.size for region in taken if _is_packed(region)] if unpack else []
    small = sum([each for each in packed if each < costs.UNPACKED_AHEAD])
    return 2 * small <= size and left * (size + (costs.UNPACKING - 1) * sum(packed)) >= costs.READING_AHEAD * size


def alone() -> None:
    """Start no threads in this process from now on: others of the same work use the processors."""
    global _alone  # noqa: PLW0603  it is set once in the life of a process
    _alone = True


def helpers() -> int:
    """Return how many threads may read beside this one, at most."""
    return 0 if _alone else costs.processors() - 1
