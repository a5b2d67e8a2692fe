"""The ranges of logs that cannot be read, as the lines of ``kdump dump --batches`` name them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final

from kdump.answers.collector import Collector, Needs
from kdump.segments import log_end
from kdump.segments.regions import Damage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.answers.collector import Place
    from kdump.log_dirs.partition import Segment
    from kdump.segments.regions import Trailing

MOST: Final = 200
"""Ranges of one file that are kept; of the others their number, and where they lie."""
PARTS: Final = 100
"""Equal parts of a file of whose damage the bytes are counted."""


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
    """A segment with damaged ranges: its size in bytes, how many ranges it has, and the bytes of all of them.

    Where not all ranges are named, ``parts`` has the damaged bytes of each hundredth of the file.
    """

    kind: ClassVar[str] = "damagedFile"
    topic: str
    partition: int
    file: str
    size: int
    ranges: int
    damaged_bytes: int
    parts: tuple[int, ...] | None


@dataclass(slots=True)
class _FileDamage:
    """What is gathered of a segment."""

    key: tuple[str, int]
    file: str
    size: int
    kept: list[DamagedBytes] = field(default_factory=list)
    ranges: int = 0
    parts: list[int] = field(default_factory=lambda: [0] * PARTS)

    def add(self, region: Damage) -> None:
        """Take a damaged range."""
        self.ranges += 1
        part, start = min(PARTS - 1, region.position * PARTS // max(1, self.size)), region.position
        while start < region.end:
            stop = -(-self.size * (part + 1) // PARTS) if part < PARTS - 1 else region.end
            self.parts[part] += min(stop, region.end) - start
            start, part = min(stop, region.end), part + 1
        if self.ranges <= MOST:
            line = DamagedBytes(
                *self.key,
                file=self.file,
                position=region.position,
                size=region.size,
                damage=region.kind,
                reason=region.reason,
                missing_from=region.missing_from,
                missing_until=region.missing_until,
            )
            self.kept.append(line)

    def line(self) -> DamagedFile:
        """Return the sums."""
        parts = tuple(self.parts) if self.ranges > MOST else None
        return DamagedFile(*self.key, self.file, self.size, self.ranges, sum(self.parts), parts)


class DamagedRanges(Collector):
    """Gathers the damaged ranges of each segment; a batch that a broker is writing is none."""

    def __init__(self) -> None:
        self._files: list[_FileDamage] = []
        self._key: tuple[str, int] | None = None
        self._segment: Segment | None = None

    def begin(self, place: Place) -> Needs:
        self._key = place.key
        return Needs.FILES if place.key is None else Needs.HEADERS

    def turn_to(self, segment: Segment) -> None:
        self._segment = segment

    def lose(self, region: Damage | Trailing) -> None:
        segment, key = self._segment, self._key
        if segment is None or key is None:
            return
        if not isinstance(region, Damage):
            if not log_end.tail(segment, region).is_damage:
                return
            region = region.damage()
        if not self._files or self._files[-1].file != segment.name:
            self._files.append(_FileDamage(key, segment.name, segment.size))
        self._files[-1].add(region)

    def end(self) -> None:
        self._key = self._segment = None

    def merge(self, other: DamagedRanges) -> None:
        self._files += other._files

    def answer(self, at: int) -> Iterator[DamagedFile | DamagedBytes]:  # noqa: ARG002  damage is of no time
        """Yield the files in the order of the pass, then their ranges."""
        yield from (file.line() for file in self._files)
        for file in self._files:
            yield from file.kept
