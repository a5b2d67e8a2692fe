"""A large segment that processes or threads go through, a part each: what is made of it comes in the order of the file.

Where a part begins is guessed, and checked when the part before is read (:mod:`kdump.segments.parts`).
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from kdump import kernel
from kdump.errors import UnreadableError
from kdump.log_dirs.local import LocalFile
from kdump.primitives import compression
from kdump.segments import parts, read_ahead, resync
from kdump.segments import read as segments_read
from kdump.segments.batch_runs import Run
from kdump.segments.parts import BUDGET, SegmentPart
from kdump.segments.resync import ResyncReader

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from kdump.log_dirs.files import Source
    from kdump.output.in_turns import Turn
    from kdump.segments.brief_runs import Headers
    from kdump.segments.regions import Region

R = TypeVar("R")
WORTH_IT: Final = parts.MUCH
"""Bytes of a segment from which on processes or threads share it."""
LARGE: Final = 128 << 20
"""Two threads read the headers of a segment of so many bytes, and check its batches, sooner than one does."""
SMALL: Final = 1 << 11
"""Bytes of a first batch that one process reads a segment below: to hand over what is found of each takes longer."""
TIMES: Final = 3
"""How many times as large as elsewhere the parts are: no output of theirs waits for its turn."""
HELD: Final = 1 << 14
"""Regions, at most, that are held of a part before its turn comes."""
STEP: Final = 1 << 21
"""Bytes whose regions are held at a time where these are more."""


class _Before(NamedTuple):
    """What is told of the part before: see :class:`kdump.segments.parts.SegmentPart`."""

    reached: int = 0
    hops: int = BUDGET


class _MadeOfPart(NamedTuple, Generic[R]):
    """What ``make`` returned for a part, the error that ended the part, and what the next part starts from."""

    made: R
    failure: UnreadableError | None
    behind: _Before


def parts_of(source: Source) -> list[SegmentPart]:
    """Return the parts in which processes or threads share a segment, nothing where one reads it."""
    if source.size < WORTH_IT or not isinstance(source, LocalFile) or LocalFile.watch is not None:
        return []
    first = parts.first_header(source)
    if first is None or first.length < SMALL:
        return []
    return parts.parts(source, source.size, TIMES)


def parts_for_threads(source: Source) -> list[SegmentPart]:
    """Return the parts whose headers two threads read, nothing where one thread is as fast."""
    return parts_of(source) if source.size >= LARGE and read_ahead.helpers() > 0 else []


def read(
    jobs: int,
    source: Source,
    pieces: list[SegmentPart],
    first_offset: int | None,
    make: Callable[[Iterator[Region | Run]], R],
    take: Callable[[R], None],
) -> None:
    """Hand to ``take`` what ``make``, called in another process or thread, makes of the regions of each part.

    Regions are those of ``kdump.segments.read.read(source, on_error="resync", first_offset=first_offset)``; runs are
    among them. Raises UnreadableError after the regions before it, and KdumpError where a process ends.
    """
    if parts.processes_in_a_row(jobs, source.size, lambda: parts.is_packed(source)) == 1:
        with closing(read_in_threads(source, pieces, first_offset, make)) as made:
            for each in made:
                take(each)
        return
    from kdump.output import in_turns  # needed for several processes alone

    def work(piece: SegmentPart, turn: Turn[_Before]) -> tuple[R, UnreadableError | None]:
        read_ahead.alone()
        guess = _guess(source, piece) if turn.state is None else None

        def check(before: _Before) -> None:
            if before != guess:
                raise in_turns.WrongGuessError

        if guess is not None:
            turn.check = check
        made, failure, behind = _make(source, piece, guess or turn.take(), first_offset, make)
        turn.take()
        turn.state = behind
        return made, failure

    def taken(_: SegmentPart, result: tuple[R, UnreadableError | None]) -> None:
        made, failure = result
        take(made)
        if failure is not None:
            raise failure

    in_turns.run(jobs, pieces, work, _Before(), taken)


def read_in_threads(
    source: Source,
    pieces: list[SegmentPart],
    first_offset: int | None,
    make: Callable[[Iterator[Region | Run]], R],
) -> Generator[R, None, None]:
    """Yield what ``make``, called in this thread or another, makes of the regions of each part; see :func:`read`.

    The source must stay open until this is closed.
    """
    from kdump.primitives.thread_beside import ThreadBeside, TooMuchError  # needed for large segments alone

    leash = read_ahead.Leash(source)

    def few(regions: Iterator[Region | Run]) -> Iterator[Region | Run]:
        count = 0
        for region in regions:
            count += region.count if isinstance(region, Run) else 1
            if count > HELD:
                raise TooMuchError
            yield region

    def attempt(number: int) -> tuple[_Before, _MadeOfPart[R]] | None:
        guess = _guess(leash, pieces[number])
        if guess is None:
            return None
        return guess, _make(leash, pieces[number], guess, first_offset, lambda regions: make(few(regions)))

    before = _Before()
    beside = ThreadBeside(len(pieces), attempt)
    try:
        for number, piece in enumerate(pieces):
            done = beside.take(number)
            if done is not None and done[0] == before:
                made, failure, before = done[1]
                yield made
                if failure is not None:
                    raise failure
                continue
            step = STEP if beside.has_too_much else piece.stop - piece.start
            for stop in (*range(piece.start + step, piece.stop, step), piece.stop):
                part = SegmentPart(piece.start, stop)
                made, failure, before = _make(leash, part, before, first_offset, make)
                yield made
                if failure is not None:
                    raise failure
    finally:
        leash.is_over = True
        beside.end()


def read_headers(source: Source) -> Generator[Region | Run, None, None]:
    """Yield the regions of ``kdump.segments.read.read_runs(source, on_error="resync")``.

    Two threads read the parts of a large segment. Each sound batch of magic 2 is in a run then, and a run holds no
    records: it reads them when somebody asks.
    """
    pieces = parts_for_threads(source) if kernel.COMPILED else []
    if not pieces:
        yield from segments_read.read_runs(source, on_error="resync")
        return

    from kdump.segments import brief_runs  # needed for large segments alone

    def make(regions: Iterator[Region | Run]) -> Headers:
        return brief_runs.brief(regions, lambda _: bytearray())

    with closing(read_in_threads(source, pieces, None, make)) as made:
        for each in made:
            yield from brief_runs.whole(each, source)


def _make(
    source: Source,
    piece: SegmentPart,
    before: _Before,
    first_offset: int | None,
    make: Callable[[Iterator[Region | Run]], R],
) -> _MadeOfPart[R]:
    """Return what ``make`` makes of the regions of a part."""
    if before.reached >= piece.stop:
        return _MadeOfPart(make(iter(())), None, before)
    failures: list[UnreadableError] = []

    def readable(regions: Iterator[Region | Run]) -> Iterator[Region | Run]:
        try:
            yield from regions
        except UnreadableError as failure:
            failures.append(failure)

    first = None if piece.start else first_offset
    runs = source.limit >= compression.DEFAULT_LIMIT
    reader = ResyncReader(source, before.reached, source.size, "resync", first, limit=None, runs=runs, packed=False)
    made = make(readable(reader.read_part(piece.stop, before.hops)))
    return _MadeOfPart(made, failures[0] if failures else None, _Before(reader.reached, reader.hops))


def _guess(source: Source, piece: SegmentPart) -> _Before | None:
    """Return what a part is told, most likely, None where there is no batch in it."""
    if not piece.start:
        return _Before()
    try:
        start = resync.guess(source, piece)
    except UnreadableError:  # whoever reads the part says so
        return None
    return None if start is None else _Before(start)
