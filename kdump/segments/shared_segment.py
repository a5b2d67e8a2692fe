"""Reads a large segment in parts, in several processes or threads. The results are in the order of the file.

A worker assumes the position of the first batch in its part. If the previous part shows that it was wrong, the part is
read again (:mod:`kdump.parallel.chunks`). A :class:`BriefRun` reads its records on first use.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeAlias, TypeVar

from kdump import kernel
from kdump.errors import UnreadableError
from kdump.formats.record_layout import BATCH_HEADER, BatchHeader
from kdump.log_dirs.local import LocalFile
from kdump.parallel import costs
from kdump.parallel.costs import BUDGET, SegmentPart
from kdump.primitives import compression
from kdump.records.magic_2 import Batch
from kdump.records.record_batch import Batches
from kdump.segments import batch_runs, read_ahead, resync
from kdump.segments.batch_runs import Run
from kdump.segments.regions import DATA
from kdump.segments.resync import ResyncReader
from kdump.segments.walk import Window, walk

if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable, Generator, Iterable, Iterator

    from kdump.log_dirs.files import Source
    from kdump.parallel.chunks import Turn
    from kdump.primitives.wire import Bytes
    from kdump.segments.regions import Damage, Padding, Region, Trailing
if kernel.COMPILED:
    from kdump.kernel.batches import OTHERS, WIDTH

R = TypeVar("R")
HELD: Final = 1 << 14
"""The number of batches and damaged ranges that a worker may read of a part before the part's turn."""
STEP: Final = 1 << 21
"""If a thread finds more than HELD batches in a part, the calling thread reads on in steps of this many bytes."""


class _Before(NamedTuple):
    """The state before a part: the state after the previous part. :class:`SegmentPart` explains the fields."""

    reached: int = 0
    skips_left: int = BUDGET

    @property
    def start(self) -> _Before:
        return self


class _MadeOfPart(NamedTuple, Generic[R]):
    """The result of ``make`` for a part, the error (if any) that ended the part, and the state after it."""

    made: R
    failure: UnreadableError | None
    carried: _Before


def parts_of(source: Source) -> list[SegmentPart]:
    """Return parts for several workers; empty for a small or remote segment, small or old first batch, --cache drop."""
    if source.size < costs.PRINTING or not isinstance(source, LocalFile) or costs.is_watched():
        return []
    first = costs.first_header(source)
    if first is None or first.length < costs.SMALL_BATCHES:
        return []
    return costs.segment_parts(source, source.size, costs.FINDINGS_CHUNKS)


def parts_for_threads(source: Source) -> list[SegmentPart]:
    """Return the parts for reading the headers of a segment in two threads; empty if one thread is as fast."""
    return parts_of(source) if source.size >= costs.THREAD_OF_HEADERS and read_ahead.free_processors() > 0 else []


def read(
    jobs: int,
    source: Source,
    pieces: list[SegmentPart],
    first_offset: int | None,
    make: Callable[[Iterator[Region]], R],
) -> Generator[R]:
    """Call ``make`` with consecutive regions of a segment, in ``jobs`` processes or two threads. Yield the results.

    Threads are used if processes are not faster. Processes make one result for each part; threads may make several. If
    the assumed start of a part was wrong, ``make`` is called again. The regions are those of ``resync.read(source,
    on_error="resync", first_offset=first_offset)``, but data batches may be in runs. Raises UnreadableError after the
    results before it, and KdumpError if a process ends early.
    """
    if costs.processes_of_segment(jobs, source.size, lambda: costs.is_packed(source)) == 1:
        yield from read_in_threads(source, pieces, first_offset, make)
        return
    from kdump.parallel.turns import Forks

    with closing(Forks(jobs).run(pieces, _PartWork(source, first_offset, make), _Before())) as results:
        yield from _made(results)


def read_in_threads(
    source: Source,
    pieces: list[SegmentPart],
    first_offset: int | None,
    make: Callable[[Iterator[Region]], R],
) -> Generator[R]:
    """Like :func:`read`, but always in two threads. Close the generator before the source."""
    from kdump.parallel.chunks import Threads

    revocable = read_ahead.RevocableSource(source)
    work = _PartWork(revocable, first_offset, make)
    with closing(Threads(1, revocable).run(pieces, work, _Before(), _steps)) as results:
        yield from _made(results)


def _made(results: Iterable[tuple[_MadeOfPart[R], _Before]]) -> Iterator[R]:
    for (made, failure, _), _ in results:
        yield made
        if failure is not None:
            raise failure


def _steps(piece: SegmentPart) -> Iterator[SegmentPart]:
    for stop in (*range(piece.start + STEP, piece.stop, STEP), piece.stop):
        yield SegmentPart(piece.start, stop)


def read_headers(source: Source) -> Generator[Region, None, None]:
    """Yield the regions of ``kdump.segments.resync.read(source, on_error="resync", runs=DATA)``.

    If that is faster, two threads read the segment. Its valid data batches of magic 2 are then in runs of class
    :class:`BriefRun`, which read records on first use.
    """
    pieces = parts_for_threads(source) if kernel.COMPILED else []
    if not pieces:
        yield from resync.read(source, on_error="resync", runs=DATA)
        return

    def make(regions: Iterator[Region]) -> Headers:
        return brief(regions, lambda _: bytearray())

    with closing(read_in_threads(source, pieces, None, make)) as made:
        for each in made:
            yield from whole(each, source)


class _PartWork(Generic[R]):
    def __init__(self, source: Source, first_offset: int | None, make: Callable[[Iterator[Region]], R]) -> None:
        self._source, self._first_offset, self._make = source, first_offset, make

    def assume(self, piece: SegmentPart) -> _Before | None:
        """Return the assumed state before a part: the position of a batch, probably its first, or None without one."""
        if not piece.start:
            return _Before()
        try:
            start = resync.guess(self._source, piece)
        except UnreadableError:  # make() reports it
            return None
        return None if start is None else _Before(start)

    def make(self, piece: SegmentPart, start: _Before, turn: Turn[_Before]) -> _MadeOfPart[R]:
        """Return the caller's result for a part. After HELD batches :meth:`Turn.take` is called, and may raise."""
        if start.reached >= piece.stop:
            return _MadeOfPart(self._make(iter(())), None, start)
        failures: list[UnreadableError] = []

        def readable(regions: Iterator[Region]) -> Iterator[Region]:
            count = 0
            try:
                for region in regions:
                    count += region.batch_count if isinstance(region, Batches) else 1
                    if count > HELD:
                        turn.take()
                    yield region
            except UnreadableError as failure:
                failures.append(failure)

        source = self._source
        first = None if piece.start else self._first_offset
        runs = DATA if source.limit >= compression.DEFAULT_LIMIT else None
        reader = ResyncReader(source, start.reached, source.size, "resync", first, runs=runs)
        made = self._make(readable(reader.read_part(piece.stop, start.skips_left)))
        return _MadeOfPart(made, failures[0] if failures else None, _Before(reader.reached, reader.skips_left))

    def carry(self, _: _Before, made: _MadeOfPart[R]) -> _Before:
        return made.carried


class BriefBatch(Batch):
    """A valid batch of magic 2 with only its header in memory. The records are read on first use."""

    __slots__ = ("_source",)

    def __init__(self, head: memoryview, position: int, size: int, source: Source) -> None:
        super().__init__(head, position, size, source.limit, crc_valid=True)
        self._source = source

    @property
    def raw(self) -> memoryview:
        if len(self._data) < self.size:
            self._data = memoryview(self._source.read(self.position, self.size))
        return self._data

    def payload(self, limit: int | None = None, *, in_chunks: bool = True) -> tuple[Bytes, int]:
        _ = self.raw
        return super().payload(limit, in_chunks=in_chunks)


class Brief(NamedTuple):
    """A batch run without records: the table of headers, and the bytes that ``look`` of :func:`brief` returned."""

    rows: array[int]
    found: bytearray


class BriefRun(Run):
    """A batch run with only its headers in memory: ``block`` is empty. Its batches read their records on first use."""

    __slots__ = ("_source", "found")
    found: bytearray

    def __init__(self, made: Brief, source: Source) -> None:
        self.rows, self.found = made
        self._source = source
        first = self.batch(0)
        super().__init__(first, memoryview(b""), first.position, self.rows, sum(self.rows[WIDTH - 1 :: WIDTH]))

    def batch(self, row: int) -> BriefBatch:
        fields = self.rows[row * WIDTH + 2 : (row + 1) * WIDTH - len(OTHERS)]
        position, size = self.rows[(row + 1) * WIDTH - 2 : (row + 1) * WIDTH]
        head = BATCH_HEADER.write(BatchHeader(*fields))
        return BriefBatch(memoryview(head), position, size, self._source)


class Old(NamedTuple):
    """A valid message of magic 0 or 1. Only its position is kept."""

    position: int


Headers: TypeAlias = "list[Brief | Old | Damage | Padding | Trailing]"
"""Regions without the records."""


def brief(regions: Iterator[Region], look: Callable[[Run], bytearray]) -> Headers:
    """Return regions without the records. ``look`` returns one byte for each batch of a run, or none at all."""
    made: Headers = []
    for region in regions:
        run = batch_runs.alone(region) if isinstance(region, Batch) else region
        if isinstance(run, Run):
            made.append(Brief(run.rows, look(run)))
        else:
            made.append(Old(run.position) if isinstance(run, Batches) else run)
    return made


def whole(made: Headers, source: Source) -> Iterator[Region]:
    """Yield the regions of a result of :func:`brief`, batches of magic 2 in runs. ``source`` must stay open."""
    window = Window(source, source.size)
    for each in made:
        if isinstance(each, Brief):
            run = BriefRun(each, source)
            yield run.first if run.first.is_control else run
        elif isinstance(each, Old):
            yield next(walk(source, each.position, window=window))
        else:
            yield each
