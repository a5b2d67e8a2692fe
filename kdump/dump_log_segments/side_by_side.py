"""A large segment, printed by several processes: the same lines in the same order."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kdump.dump_log_segments.java_paths import absolute
from kdump.dump_log_segments.log_printer import LogPrinter, end_of, print_part
from kdump.log_dirs.local import LocalFile
from kdump.output.stdout import is_terminal
from kdump.primitives.wire import to_int64
from kdump.segments import parts, read_ahead
from kdump.segments.parts import UNKNOWN, SegmentPart

if TYPE_CHECKING:
    from kdump.dump_log_segments.decoder_classes import Decoders
    from kdump.dump_log_segments.run import DumpRun
    from kdump.output.in_turns import Turn


class LinesSoFar(NamedTuple):
    """What a process tells the next one: where that begins, and the last offset that was printed."""

    reached: int = 0
    last_offset: int = -1


def dump(run: DumpRun, path: str, decoders: Decoders) -> None:
    """Print the lines of one segment. Raises what ends the original, with the same lines printed before."""
    with LocalFile(path) as source:
        end = end_of(source.size, run.options)
        jobs = parts.processes_in_a_row(run.jobs, end, lambda: parts.is_packed(source))
        may_share = jobs > 1 and LocalFile.watch is None and not is_terminal()
        pieces = parts.parts(source, end) if may_share else []
        printer = LogPrinter(run, path, decoders)
        if pieces:
            _dump_parts(run, printer, source, pieces, jobs)
        else:
            print_part(printer, source, SegmentPart(0, end))
        printer.end()
        run.close(source)


def _dump_parts(run: DumpRun, printer: LogPrinter, source: LocalFile, pieces: list[SegmentPart], jobs: int) -> None:
    from kdump.output import in_turns  # needed for large segments alone, as is the other
    from kdump.segments import resync

    def work(piece: SegmentPart, turn: Turn[LinesSoFar]) -> list[tuple[int, int]]:
        """Print a part; return its gaps, with that before it."""
        read_ahead.alone()
        printer.out = run.out = turn.file
        run.gaps.clear()
        part = SegmentPart(piece.start, piece.stop)
        guess = resync.guess(source, part) if piece.start and turn.state is None else None
        if guess is None:
            part.start, printer.last_offset = turn.take()
        else:
            part.start, printer.last_offset = guess, UNKNOWN

        def check(before: LinesSoFar) -> None:
            if before.reached != guess:
                raise in_turns.WrongGuessError

        turn.check = check
        if part.start < part.stop:
            print_part(printer, source, part)
        else:
            part.reached = part.start
        before = turn.take()
        gaps = run.gaps.get(absolute(printer.path), [])
        if guess is not None and printer.last_offset == UNKNOWN:
            printer.last_offset = before.last_offset
        elif guess is not None:
            gaps = _joined(printer, before.last_offset, gaps)
        turn.state = LinesSoFar(part.reached, printer.last_offset)
        return gaps

    def take(_: SegmentPart, gaps: list[tuple[int, int]]) -> None:
        if gaps:
            run.gaps.setdefault(absolute(printer.path), []).extend(gaps)

    run.out.flush()
    in_turns.run(jobs, pieces, work, LinesSoFar(), take)


def _joined(printer: LogPrinter, last: int, gaps: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the gaps of a part that was begun without its predecessor's ``last`` offset, as they are with it."""
    from kdump.output import in_turns

    if not gaps or gaps[0][0] != UNKNOWN:  # its first offset follows UNKNOWN
        raise in_turns.WrongGuessError
    first = gaps[0][1]
    is_gap = (last != -1 or printer.armed) and first != to_int64(last + 1)
    return [(last, first), *gaps[1:]] if is_gap else gaps[1:]
