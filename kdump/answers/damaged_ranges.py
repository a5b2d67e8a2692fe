"""The ranges of logs that cannot be read, as the lines of ``kdump dump --batches`` name them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from kdump.answers.collector import Collector, Needs
from kdump.segments.regions import Damage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.answers.collector import Place
    from kdump.log_dirs.partition import Segment
    from kdump.records.record_batch import RecordBatch
    from kdump.segments.batch_runs import Run
    from kdump.segments.regions import Trailing

MOST: Final = 200
"""Ranges of one file that are kept; of the others their number."""


@dataclass(frozen=True, slots=True)
class DamagedBytes:
    """A range. ``damage`` is a short stable word, ``missing_until`` the first offset that is there again."""

    kind: ClassVar[str] = "damage"
    topic: str
    partition: int
    file: str
    position: int
    size: int
    damage: str
    reason: str
    missing_from: int | None
    missing_until: int | None


@dataclass(frozen=True, slots=True)
class DamagedFile:
    """A segment with damaged ranges: its size in bytes, how many ranges it has, and the bytes of all of them."""

    kind: ClassVar[str] = "damagedFile"
    topic: str
    partition: int
    file: str
    size: int
    ranges: int
    damaged_bytes: int


class DamagedRanges(Collector):
    """Gathers the damaged ranges of each segment; a batch that the end of a log cuts off is none."""

    takes_runs = True

    def __init__(self) -> None:
        self._ranges: list[DamagedBytes] = []
        self._files: list[DamagedFile] = []
        self._key: tuple[str, int] | None = None
        self._segment: Segment | None = None

    def begin(self, place: Place) -> Needs:
        self._key = place.key
        return Needs.FILES if place.key is None else Needs.HEADERS

    def turn_to(self, segment: Segment) -> None:
        self._segment = segment

    def add(self, batch: RecordBatch) -> None:
        """Take a sound batch: nothing is to be said of it."""

    def add_run(self, run: Run) -> int:
        return run.count

    def lose(self, region: Damage | Trailing) -> None:
        segment, key = self._segment, self._key
        if segment is None or key is None or not isinstance(region, Damage):
            return
        name = segment.name
        ranges, damaged = 0, 0
        if self._files and self._files[-1].file == name:
            last = self._files.pop()
            ranges, damaged = last.ranges, last.damaged_bytes
        self._files.append(DamagedFile(*key, name, segment.size, ranges + 1, damaged + region.size))
        if ranges < MOST:
            self._ranges.append(
                DamagedBytes(
                    *key,
                    file=name,
                    position=region.position,
                    size=region.size,
                    damage=region.kind,
                    reason=region.reason,
                    missing_from=region.missing_from,
                    missing_until=region.missing_until,
                )
            )

    def end(self) -> None:
        self._key = self._segment = None

    def merge(self, other: DamagedRanges) -> None:
        self._ranges += other._ranges
        self._files += other._files

    def answer(self, at: int) -> Iterator[DamagedFile | DamagedBytes]:  # noqa: ARG002  damage is of no time
        """Yield the files in the order of the pass, then their ranges."""
        yield from self._files
        yield from self._ranges
