"""A large segment, printed by several processes: the same lines in the same order."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from kdump.dump_log_segments.java_paths import absolute
from kdump.dump_log_segments.log_printer import LogPrinter, end_of, print_part
from kdump.log_dirs.local import LocalFile
from kdump.output.stdout import is_terminal
from kdump.parallel import costs
from kdump.parallel.costs import UNKNOWN, SegmentPart
from kdump.primitives.wire import to_int64
from kdump.segments import read_ahead

if TYPE_CHECKING:
    from kdump.dump_log_segments.decoder_classes import Decoders
    from kdump.dump_log_segments.run import DumpRun
    from kdump.parallel.turns import OutputTurn


class LinesSoFar(NamedTuple):
    """The state after a part: where the next one starts, the last offset that was printed, and the gaps up to it."""

    start: int = 0
    last_offset: int = -1


class PartLines(NamedTuple):
    """The result of a part: where the next one starts, the last offset that was printed, and the gaps.

    The last offset before the part is UNKNOWN in the gaps, and so is the last offset where nothing was printed.
    """

    reached: int
    last_offset: int
    gaps: list[tuple[int, int]]


def dump(run: DumpRun, path: str, decoders: Decoders) -> None:
    """Print the lines of one segment. Raises what ends the original, with the same lines printed before."""
    with LocalFile(path) as source:
        end = end_of(source.size, run.options)
        jobs = costs.processes_of_segment(run.jobs, end, lambda: costs.is_packed(source))
        may_share = jobs > 1 and not costs.is_watched() and not is_terminal()
        pieces = costs.segment_parts(source, end) if may_share else []
        printer = LogPrinter(run, path, decoders)
        if pieces:
            _share(run, printer, source, pieces, jobs)
        else:
            print_part(printer, source, SegmentPart(0, end))
        printer.end()
        run.close(source)


def _share(run: DumpRun, printer: LogPrinter, source: LocalFile, pieces: list[SegmentPart], jobs: int) -> None:
    from kdump.parallel.turns import Forks  # needed for large segments alone

    run.out.flush()
    found: list[tuple[int, int]] = []
    before = LinesSoFar()
    with closing(Forks(jobs).run(pieces, PartPrinting(printer, source), before)) as results:
        for made, after in results:
            found += _gaps(printer, before.last_offset, made)
            before = after
    if found:
        run.gaps.setdefault(absolute(printer.path), []).extend(found)


class PartPrinting:
    """The work of processes that print a part at a time."""

    def __init__(self, printer: LogPrinter, source: LocalFile) -> None:
        self._printer, self._source = printer, source

    def assume(self, part: SegmentPart) -> int | None:
        """Assume that a part begins with the first credible batch in it, if there is one."""
        from kdump.segments import resync

        return resync.guess(self._source, part) if part.start else 0

    def make(self, part: SegmentPart, start: int, turn: OutputTurn[LinesSoFar]) -> PartLines:
        """Print a part."""
        read_ahead.alone()
        printer, run = self._printer, self._printer.run
        printer.out = run.out = turn.file
        printer.last_offset = UNKNOWN
        run.gaps.clear()
        rest = SegmentPart(start, part.stop)
        if start < part.stop:
            print_part(printer, self._source, rest)
        else:
            rest.reached = start
        return PartLines(rest.reached, printer.last_offset, run.gaps.get(absolute(printer.path), []))

    def carry(self, before: LinesSoFar, made: PartLines) -> LinesSoFar:
        """Return the state after a part."""
        last = before.last_offset if made.last_offset == UNKNOWN else made.last_offset
        return LinesSoFar(made.reached, last)


def _gaps(printer: LogPrinter, last: int, made: PartLines) -> list[tuple[int, int]]:
    """Return the gaps of a part as they are after the ``last`` offset before it, which was UNKNOWN to the part."""
    if made.last_offset == UNKNOWN:
        return []
    gaps, first = made.gaps, UNKNOWN + 1  # the one offset that is no gap after UNKNOWN
    if gaps and gaps[0][0] == UNKNOWN:
        first, gaps = gaps[0][1], gaps[1:]
    is_gap = (last != -1 or printer.armed) and first != to_int64(last + 1)
    return [(last, first), *gaps] if is_gap else gaps
