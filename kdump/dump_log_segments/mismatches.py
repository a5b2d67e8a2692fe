"""What the run over a list of files reports at its end: entries of indexes that do not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from kdump.dump_log_segments.java_paths import by_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.dump_log_segments.dialects.segments import Dialect
    from kdump.dump_log_segments.dialects.state import StateDialect

MISMATCH: Final = "  Index offset: {0}, log offset: {1}"
TIMESTAMP_MISMATCH: Final = ("Found timestamp mismatch in :{file}", "  Index timestamp: {0}, log timestamp: {1}")
TIMESTAMP_ORDER: Final = (
    "Found out of order timestamp in :{file}",
    "  Index timestamp: {0}, Previously indexed timestamp: {1}",
)
MISSING: Final = "Indexed offset: {0}, found log offset: {1}"


class Pair(NamedTuple):
    """What an index says, and what stands in the log or in the entry before."""

    indexed: int
    found: int


Report: TypeAlias = dict[str, list[Pair]]
"""By path as given, each in order of discovery."""


class Reports:
    """What did not fit in offset indexes, and in time indexes: timestamps, their order, offsets."""

    def __init__(self) -> None:
        self.mismatches: Report = {}
        self.timestamps: Report = {}
        self.order: Report = {}
        self.missing: Report = {}

    def lines(self, state: StateDialect, dialect: Dialect) -> Iterator[str]:
        """Yield the report: offset indexes; then the three of time indexes, oldest first."""
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
