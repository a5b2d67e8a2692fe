"""One run of DumpLogSegments, as of one release, over a list of files: options, output and reports.

Standard output has the same bytes as the output of kafka-dump-log.sh; docs/kafka-dump-log.md lists the exceptions.
Where that tool stops with an exception, a KdumpError is raised after the same output.
"""

from __future__ import annotations

import posixpath
import sys
from functools import cached_property
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple, TypeAlias

from kdump.dump_log_segments.java_files import by_file
from kdump.primitives.terminal import harmless

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.dump_log_segments import Options
    from kdump.dump_log_segments.decoders.texts import Parser
    from kdump.dump_log_segments.dialects.payload import PayloadDialect
    from kdump.dump_log_segments.dialects.segments import Dialect
    from kdump.dump_log_segments.dialects.state import StateDialect
    from kdump.kernel.lines import Shape
    from kdump.log_dirs.local import LocalFile


class DumpRun:
    def __init__(
        self,
        dialect: Dialect,
        options: Options,
        out: BinaryIO,
        *,
        release: str | None = None,
        jobs: int | None = 1,
    ) -> None:
        """Create a run with ``dialect`` for segments. ``release`` (None: the newest) selects the other two dialects.

        Up to ``jobs`` processes print a large segment (None: as many as is fastest). If not 1, ``out`` must be stdout.
        """
        self.dialect, self.options, self.out = dialect, options, out
        self.release, self.jobs = release, jobs
        self.gaps: dict[str, list[tuple[int, int]]] = {}
        """Absolute path of a file -> pairs of offsets of adjacent records that do not follow each other."""
        self.reports = Reports()
        self.shapes: dict[tuple[int, bool, int | None], tuple[Shape, Shape]] = {}
        """(attributes, crc_valid, delete horizon in ms) -> the compiled lines of a batch and of its records."""
        self.parser: Parser | None = None
        if options.decoder_switch:
            from kdump.dump_log_segments.decoders import PARSERS

            self.parser = PARSERS[options.decoder_switch](self.payloads)

    @cached_property
    def state(self) -> StateDialect:
        """The dialect of the release for indexes, producer snapshots and checkpoints."""
        from kdump.dump_log_segments.dialects import state

        return state.NEWEST if self.release is None else state.find(self.release)

    @cached_property
    def payloads(self) -> PayloadDialect:
        """The dialect of the release for control records and records of Kafka's own topics."""
        from kdump.dump_log_segments.dialects import payload

        return payload.NEWEST if self.release is None else payload.find(self.release)

    @property
    def fronts(self) -> tuple[str, str]:
        """The texts that a decoder switch prints before a key, and before a payload without a key."""
        return ("| ", self.dialect.bare_payload) if self.options.skip_record_metadata else (" ", " ")

    def print(self, text: str) -> None:
        """Print a line in UTF-8. Bytes of file names that are not UTF-8 are printed unchanged."""
        self.out.write(text.encode(errors="surrogateescape") + b"\n")

    def trailing(self, source: LocalFile, size: int) -> None:
        """Print the number of bytes after the last complete batch: ``size`` less lost bytes. Print nothing for 0."""
        if size > source.lost:
            name = posixpath.basename(source.name)
            self.print(self.dialect.trailing_bytes.format(count=size - source.lost, name=name))

    def close(self, source: LocalFile) -> None:
        """Print a warning if the file has shrunk while it was read. The caller closes the file."""
        if source.lost:
            self.complain(
                f"kdump: {source.name} became {source.lost} bytes shorter while it was read; kdump prints the bytes "
                "that are left"
            )

    def complain(self, text: str) -> None:
        """Print a line to standard error, after flushing the output."""
        self.out.flush()
        print_error(text)

    def report(self) -> None:
        """Print on standard error the mismatches of indexes, then the gaps between offsets."""
        for text in self.reports.lines(self.state, self.dialect):
            print_error(text)
        for file, pairs in by_file(self.dialect, self.gaps):
            print_error(self.dialect.gaps_title.format(file=file))
            for last, current in sorted(dict(pairs).items()) if self.dialect.gaps_by_offset else reversed(pairs):
                print_error(f"  {last} is followed by {current}")


def print_error(text: str) -> None:
    """Print a line to standard error. On a terminal, control characters in file names are escaped."""
    print(harmless(text) if sys.stderr.isatty() else text, file=sys.stderr)


MISMATCH: Final = "  Index offset: {0}, log offset: {1}"
TIMESTAMP_MISMATCH: Final = ("Found timestamp mismatch in :{file}", "  Index timestamp: {0}, log timestamp: {1}")
TIMESTAMP_ORDER: Final = (
    "Found out of order timestamp in :{file}",
    "  Index timestamp: {0}, Previously indexed timestamp: {1}",
)
MISSING: Final = "Indexed offset: {0}, found log offset: {1}"


class Pair(NamedTuple):
    """A value of an index entry, and the value of the log or of the previous entry that contradicts it."""

    indexed: int
    found: int


Report: TypeAlias = dict[str, list[Pair]]
"""Path on the command line -> pairs, in the order in which they were found."""


class Reports:
    """Mismatches in offset indexes, and the three kinds of mismatches in time indexes."""

    def __init__(self) -> None:
        self.mismatches: Report = {}
        self.timestamps: Report = {}
        self.order: Report = {}
        self.missing: Report = {}

    def lines(self, state: StateDialect, dialect: Dialect) -> Iterator[str]:
        for file, pairs in by_file(dialect, self.mismatches):
            yield state.mismatches_title.format(file=file)
            by_offset = sorted(dict(pairs).items(), reverse=True) if state.mismatches_by_offset else reversed(pairs)
            for pair in by_offset:
                yield MISMATCH.format(*pair)
        yield from _section(by_file(dialect, self.timestamps), *TIMESTAMP_MISMATCH)
        yield from _section(by_file(dialect, self.order), *TIMESTAMP_ORDER)
        yield from _section(by_file(dialect, self.missing), state.missing_title, MISSING)


def _section(report: list[tuple[str, list[Pair]]], title: str, entry: str) -> Iterator[str]:
    for file, pairs in report:
        yield title.format(file=file)
        for pair in pairs:
            yield entry.format(*pair)
