"""Runs ``kdump dump`` with several processes: divides the input into pieces, and prints the pieces in order.

A process assumes the start of its part of a large segment. If the earlier part ends elsewhere, the part is redone.
"""

from __future__ import annotations

from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from kdump.command_line import session
from kdump.command_line.session import ReportedSoFar
from kdump.errors import UnreadableError
from kdump.log_dirs.local import LOCAL
from kdump.parallel import costs
from kdump.parallel.costs import BUDGET, SegmentPart
from kdump.parallel.turns import Forks
from kdump.segments import resync

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kdump.command_line.dump_run import Dump
    from kdump.log_dirs.partition import Partition, Segment
    from kdump.log_reader.reader import PartitionReader
    from kdump.parallel.turns import OutputTurn
    from kdump.printers.output_formats import Printer


class Piece(NamedTuple):
    """Segments of partitions in order, or one part of a large segment (``ends_segment``: its last). Size in bytes.

    With --head and --tail a piece has all segments of its partitions, because their records are counted together.
    """

    runs: list[tuple[Partition, tuple[Segment, ...]]]
    size: int
    part: SegmentPart | None = None
    ends_segment: bool = True


def pieces(partitions: Sequence[Partition], *, cut: bool, unpacks: bool) -> list[Piece]:
    """Return the pieces in order. ``cut`` divides large local segments; ``unpacks`` makes compressed parts smaller."""
    found: list[Piece] = []
    runs: list[tuple[Partition, tuple[Segment, ...]]] = []
    size = cost = 0
    for partition in partitions:
        run: list[Segment] = []
        for segment in partition.segments:
            cuts = _parts(segment, unpacks=unpacks) if cut else []
            own = costs.OPENING + segment.size
            if cost and (cuts or cost + own > costs.CHUNK):
                found.append(Piece([*runs, (partition, tuple(run))] if run else runs, size))
                runs, run, size, cost = [], [], 0, 0
            only: list[tuple[Partition, tuple[Segment, ...]]] = [(partition, (segment,))]
            found += [Piece(only, part.stop - part.start, part, part is cuts[-1]) for part in cuts]
            if not cuts:
                run.append(segment)
                size, cost = size + segment.size, cost + own
        if run:
            runs.append((partition, tuple(run)))
    if runs:
        found.append(Piece(runs, size))
    return found


def whole_pieces(partitions: Iterable[Partition], per_partition: int | None) -> Iterator[Piece]:
    """Yield pieces of whole partitions. ``per_partition``: see :func:`costs.size_to_print`."""
    runs: list[tuple[Partition, tuple[Segment, ...]]] = []
    cost = 0
    for partition in partitions:
        runs.append((partition, partition.segments))
        cost += costs.OPENING + costs.size_to_print(partition, per_partition)
        if cost >= costs.CHUNK:
            yield Piece(runs, 0)
            runs, cost = [], 0
    if runs:
        yield Piece(runs, 0)


def _parts(segment: Segment, *, unpacks: bool) -> list[SegmentPart]:
    if segment.size < 2 * costs.PACKED_CHUNK or segment.files is not LOCAL or costs.is_watched():
        return []
    try:
        with segment.open() as source:
            return costs.segment_parts(source, source.size, unpacks=unpacks)
    except UnreadableError:  # the reader of the segment reports it
        return []


class ChunkStart(NamedTuple):
    """The position of the first batch of a part; see :class:`kdump.parallel.costs.SegmentPart` for the fields."""

    reached: int = 0
    skips_left: int = BUDGET
    is_over: bool = False


class PrintedSoFar(NamedTuple):
    """The state after a piece: the reports so far, whether anything was found, and the number of records or batches.

    The other fields are for a segment of several parts. ``start``: the start of the next part. ``has_printed``: an
    earlier part has printed something. ``has_reported``: a message said that the segment has become shorter.
    """

    reported: ReportedSoFar
    found: bool = False
    records: int = 0
    start: ChunkStart = ChunkStart()
    has_printed: bool = False
    has_reported: bool = False


class PrintedPiece(NamedTuple):
    """The result of printing one piece. ``reported`` is None only if the piece has reported nothing."""

    reported: ReportedSoFar | None
    found: bool
    records: int
    size: int
    start: ChunkStart = ChunkStart()
    has_printed: bool = False
    has_reported: bool = False
    ends_segment: bool = True


class PieceWork:
    """Prints one piece after the other in a worker process; see :mod:`kdump.parallel.turns`."""

    def __init__(self, dump: Dump, reader: PartitionReader) -> None:
        self._dump, self._reader, self._session = dump, reader, dump.session
        self._printer: Printer | None = None

    def assume(self, piece: Piece) -> ChunkStart | None:
        """Return the assumed start: of a later part a valid batch, probably its first; None if none is found."""
        part = piece.part
        if part is None or not part.start:
            return ChunkStart()
        (_, (segment,)), *_ = piece.runs
        try:
            with segment.open() as source:
                reached = resync.guess(source, part)
        except UnreadableError:  # the reader of the segment reports it
            return None
        return None if reached is None else ChunkStart(reached)

    def make(self, piece: Piece, start: ChunkStart, turn: OutputTurn[PrintedSoFar]) -> PrintedPiece:
        self._session.before, self._session.reported = turn.take, ReportedSoFar()
        if self._printer is None and not self._dump.options.count:
            self._printer = self._dump.printer(turn.file)
        if piece.part is not None:
            return self._part(piece, SegmentPart(piece.part.start, piece.part.stop), start, turn)
        turn.when_come(self._hear)
        items = (item for run in piece.runs for item in self._dump.stream(self._reader, *run))
        found, records = self._dump.print_items(items, self._printer)
        return PrintedPiece(self._reported(turn), found, records, piece.size)

    def _hear(self, before: PrintedSoFar) -> None:
        self._session.reported = before.reported

    def _reported(self, turn: OutputTurn[PrintedSoFar]) -> ReportedSoFar | None:
        return None if turn.state is None else self._session.reported

    def _part(self, piece: Piece, part: SegmentPart, start: ChunkStart, turn: OutputTurn[PrintedSoFar]) -> PrintedPiece:
        (partition, (segment,)), *_ = piece.runs
        is_first = part.start == 0
        lead = b"" if is_first or self._printer is None else self._printer.go_on(segment.name)

        def hear(before: PrintedSoFar) -> None:
            turn.lead = b"" if before.has_printed else lead
            self._hear(before)

        turn.when_come(hear)
        found, records, has_reported = False, 0, False
        part.start, part.skips_left, part.is_over = (0, part.skips_left, False) if is_first else start
        if part.is_over or part.start >= part.stop:
            part.reached = part.start
        else:
            found, records = self._dump.print_items(self._reader.read_part(partition, segment, part), self._printer)
        if part.lost:
            before = turn.take()
            has_reported = is_first or not before.has_reported
            if has_reported:
                self._reader.note_lost(segment, part.lost)
        after = ChunkStart(part.reached, part.skips_left, part.is_over)
        reported = self._reported(turn)
        return PrintedPiece(
            reported, found, records, piece.size, after, turn.has_written, has_reported, ends_segment=piece.ends_segment
        )

    def carry(self, before: PrintedSoFar, made: PrintedPiece) -> PrintedSoFar:
        after = PrintedSoFar(
            before.reported if made.reported is None else made.reported,
            before.found or made.found,
            before.records + made.records,
        )
        if made.ends_segment:
            return after
        return after._replace(
            start=made.start,
            has_printed=made.has_printed or before.has_printed,
            has_reported=made.has_reported or before.has_reported,
        )


def print_pieces(dump: Dump, partitions: Sequence[Partition], jobs: int, out: BinaryIO) -> None:
    """Like :meth:`kdump.command_line.dump_run.Dump.run`, with ``jobs`` processes. ``out`` is standard output."""
    run = dump.session
    progress, run.progress = run.progress, session.Progress()
    reader = dump.reader()
    _read_shared(dump, reader, partitions, jobs)
    options = dump.options
    if options.stops_early:
        found = [*whole_pieces(partitions, options.per_partition)]
    else:
        unpacks = options.effort is not costs.Effort.HEADERS
        found = pieces(partitions, cut=not options.filter.is_bounded, unpacks=unpacks)
    if not options.count:
        dump.printer(out).begin()
    out.flush()
    last = PrintedSoFar(run.reported)
    with closing(Forks(jobs).run(found, PieceWork(dump, reader), last)) as results:
        for made, last in results:  # noqa: B007  the last one counts
            progress(made.size)
    run.progress = progress
    run.reported = last.reported
    dump.finish(out, last.records, found=last.found)


def _read_shared(dump: Dump, reader: PartitionReader, partitions: Sequence[Partition], jobs: int) -> None:
    """Read what all processes need: schemas, checkpoints and, if needed, the transactions of large partitions."""
    if dump.decoder is not None:
        dump.decoder.store  # noqa: B018  so that it is read and reported only once
    committed = dump.options.filter.committed
    for one_of_log_dir in {(each.files, each.log_dir): each for each in partitions if each.topic is not None}.values():
        reader.checkpoints.facts(one_of_log_dir)
    shared = [
        partition
        for partition in partitions
        if partition.size > costs.TRANSACTIONS
        and (committed or (reader.outcomes and costs.is_transactional(partition)))
    ]
    if shared:
        _follow_ahead(reader, shared, jobs)


def _follow_ahead(reader: PartitionReader, partitions: Sequence[Partition], jobs: int) -> None:
    from kdump.primitives.processes import Processes
    from kdump.transaction_replay.outcomes import scan

    segments = [segment for partition in partitions for segment in partition.segments]
    in_processes = len(segments) > 1 and all(segment.files is LOCAL for segment in segments)
    scans = Processes(jobs, threads=False).results(scan, segments) if in_processes else map(scan, segments)
    for partition in partitions:
        reader.follow_ahead(partition, islice(scans, len(partition.segments)))
