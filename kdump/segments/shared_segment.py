"""A large segment that several processes go through, a part each: what they make of it comes in the order of the file.

Where a part begins is guessed, and checked when the part before is read (:mod:`kdump.segments.parts`).
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from kdump.errors import UnreadableError
from kdump.formats.record_layout import BATCH_HEADER
from kdump.log_dirs.local import LocalFile
from kdump.primitives import compression
from kdump.records.magic_2 import Batch
from kdump.records.record_batch import RecordBatch
from kdump.segments import parts, read_ahead, resync
from kdump.segments.batch_runs import Run
from kdump.segments.parts import BUDGET, SegmentPart
from kdump.segments.resync import ResyncReader
from kdump.segments.walk import walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    from kdump.log_dirs.files import Source
    from kdump.output.in_turns import Turn
    from kdump.primitives.wire import Bytes
    from kdump.segments.regions import Damage, Padding, Region, Trailing

    Facts: TypeAlias = tuple[int, int, int]

R = TypeVar("R")
WORTH_IT: Final = parts.MUCH
"""Bytes of a segment from which on processes share it."""
TIMES: Final = 4
"""How many times as large as elsewhere the parts are: no output of theirs waits for its turn."""


class _Before(NamedTuple):
    """What the process of a part is told by the one before: see :class:`kdump.segments.parts.SegmentPart`."""

    reached: int = 0
    hops: int = BUDGET


def parts_of(source: Source) -> list[SegmentPart]:
    """Return the parts in which processes share a segment, nothing where one reads it."""
    if source.size < WORTH_IT or not isinstance(source, LocalFile) or LocalFile.watch is not None:
        return []
    return parts.parts(source, source.size, TIMES)


def read(
    jobs: int,
    source: Source,
    pieces: list[SegmentPart],
    first_offset: int | None,
    make: Callable[[Iterator[Region | Run]], R],
    take: Callable[[R], None],
) -> None:
    """Hand to ``take`` what ``make``, called in another process, makes of the regions of each part.

    Regions are those of ``kdump.segments.read.read(source, on_error="resync", first_offset=first_offset)``; runs are
    among them. Raises UnreadableError behind what is made of the regions before, and KdumpError where a process ends.
    """

    from kdump.output import in_turns  # needed for several processes alone

    def work(piece: SegmentPart, turn: Turn[_Before]) -> tuple[R, UnreadableError | None]:
        read_ahead.alone()
        part = SegmentPart(piece.start, piece.stop)
        failures: list[UnreadableError] = []

        def readable(regions: Iterator[Region | Run]) -> Iterator[Region | Run]:
            try:
                yield from regions
            except UnreadableError as failure:
                failures.append(failure)

        guess = _guess(source, part) if piece.start and turn.state is None else None

        def check(before: _Before) -> None:
            if before != (guess, BUDGET):
                raise in_turns.WrongGuessError

        if guess is None:
            part.start, part.hops = turn.take()
        else:
            part.start, turn.check = guess, check
        first = None if piece.start else first_offset
        runs = source.limit >= compression.DEFAULT_LIMIT
        reader = ResyncReader(source, part.start, source.size, "resync", first, limit=None, runs=runs, packed=False)
        if part.start < part.stop:
            made = make(readable(reader.read_part(part.stop, part.hops)))
            state = _Before(reader.reached, reader.hops)
        else:
            made = make(iter(()))
            state = _Before(part.start, part.hops)
        turn.take()
        turn.state = state
        return made, failures[0] if failures else None

    def taken(_: SegmentPart, result: tuple[R, UnreadableError | None]) -> None:
        made, failure = result
        take(made)
        if failure is not None:
            raise failure

    in_turns.run(jobs, pieces, work, _Before(), taken)


def _guess(source: Source, part: SegmentPart) -> int | None:
    try:
        return resync.guess(source, part)
    except UnreadableError:  # whoever reads the part says so
        return None


def singly(regions: Iterator[Region | Run]) -> Iterator[Region]:
    """Yield regions, the batches of runs one by one."""
    for region in regions:
        if isinstance(region, Run):
            yield from map(region.batch, range(region.count))
        else:
            yield region


class BriefBatch(Batch):
    """A sound batch of magic 2 of which the header is in memory; the records are read when somebody asks for them.

    ``facts`` is what was found out about them: see :meth:`kdump.kernel.cursor.Cursor.facts`; None: nothing.
    """

    __slots__ = ("_source", "facts")

    def __init__(self, head: memoryview, position: int, size: int, source: Source, facts: Facts | None) -> None:
        super().__init__(head, position, size, source.limit, crc_valid=True)
        self._source = source
        self.facts = facts

    @property
    def raw(self) -> memoryview:
        if len(self._data) < self.size:
            self._data = memoryview(self._source.read(self.position, self.size))
        return self._data

    def payload(self, limit: int | None = None, *, in_chunks: bool = True) -> tuple[Bytes, int]:
        _ = self.raw
        return super().payload(limit, in_chunks=in_chunks)


class Brief(NamedTuple):
    """Sound batches of magic 2 from ``position`` on, one behind the other: headers, sizes in bytes, facts."""

    position: int
    heads: bytearray
    sizes: array[int]
    facts: list[Facts | None]

    def batches(self, source: Source) -> Iterator[BriefBatch]:
        """Yield the batches, which stand in ``source``."""
        position, at, heads = self.position, 0, memoryview(self.heads)
        for size, facts in zip(self.sizes, self.facts, strict=True):
            yield BriefBatch(heads[at : at + BATCH_HEADER.size], position, size, source, facts)
            at += BATCH_HEADER.size
            position += size


class Old(NamedTuple):
    """A sound entry of magic 0 or 1, by its position."""

    position: int


def brief(
    regions: Iterator[Region | Run], look: Callable[[Batch], Facts | None]
) -> list[Brief | Old | Damage | Padding | Trailing]:
    """Return regions without the records; ``look`` finds out about those of a batch."""
    made: list[Brief | Old | Damage | Padding | Trailing] = []
    last: Brief | None = None
    for region in singly(regions):
        if not isinstance(region, Batch):
            last = None
            made.append(Old(region.position) if isinstance(region, RecordBatch) else region)
            continue
        if last is None:
            last = Brief(region.position, bytearray(), array("q"), [])
            made.append(last)
        last.heads.extend(region.raw[: BATCH_HEADER.size])
        last.sizes.append(region.size)
        last.facts.append(look(region))
    return made


def whole(made: list[Brief | Old | Damage | Padding | Trailing], source: Source) -> Iterator[Region]:
    """Yield the regions that :func:`brief` took."""
    for each in made:
        if isinstance(each, Brief):
            yield from each.batches(source)
        elif isinstance(each, Old):
            yield next(walk(source, each.position))
        else:
            yield each
