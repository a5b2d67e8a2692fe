"""Collectors for the report: the events of logs (:class:`LogEvents`), and damaged ranges (:class:`DamagedRanges`).

An event is the first valid batch of a second or later segment, a batch that begins a leader epoch, or damage. Its
time is the largest timestamp of this batch; for damage, that of an earlier batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, ClassVar, Final

from kdump.answers.collector import Collector, Needs, Place
from kdump.segments.log_end import damage_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Self

    from kdump.log_dirs.partition import Segment
    from kdump.records.record_batch import Batches
    from kdump.segments.regions import Damage, Trailing

MOST: Final = 5000
"""Maximum number of events with a time (the newest are kept), and of events without a time."""
_EPOCH: Final = "partition_leader_epoch"


@dataclass(frozen=True, slots=True)
class LogEvent:
    """One event. ``what`` is ``segment``, ``leader epoch`` or ``damage``; the time is None if its batch has none."""

    kind: ClassVar[str] = "logEvent"
    at_ms: int | None
    what: str
    topic: str
    partition: int
    log_dir: str
    offset: int | None
    text: str


class LogEvents(Collector):
    takes_control_runs = True

    def __init__(self) -> None:
        self._events: list[LogEvent] = []
        self._place: Place | None = None
        self._segment: Segment | None = None
        self._is_new = False
        self._epoch: int | None = None
        self._time: int | None = None

    def begin(self, place: Place) -> Needs:
        self._place, self._segment, self._epoch, self._time = place, None, None, None
        return Needs.FILES if place.key is None else Needs.HEADERS

    def turn_to(self, segment: Segment) -> None:
        self._is_new, self._segment = self._segment is not None, segment

    def add(self, batches: Batches) -> None:
        if self._is_new:
            first = batches.first
            self._add("segment", first.max_timestamp, first.base_offset, f"segment {first.base_offset} begins")
            self._is_new = False
        if not batches.least(_EPOCH) == batches.greatest(_EPOCH) == self._epoch:
            self._epochs(batches)
        if (newest := batches.last.max_timestamp) >= 0:
            self._time = newest

    def _epochs(self, batches: Batches) -> None:
        for row, epoch in enumerate(batches.column(_EPOCH)):
            if epoch not in (self._epoch, -1):  # a batch without an epoch (-1) changes nothing
                batch = batches.batch(row)
                self._add("leader epoch", batch.max_timestamp, batch.base_offset, f"leader epoch {epoch} begins")
                self._epoch = epoch

    def lose(self, region: Damage | Trailing) -> None:
        segment = self._segment
        damage = None if segment is None else damage_of(segment, region)
        if segment is not None and damage is not None:
            text = f"{segment.name}: byte {damage.position}: {damage.size} bytes are damaged: {damage.reason}"
            self._add("damage", self._time, damage.missing_from, text)

    def _add(self, what: str, at_ms: int | None, offset: int | None, text: str) -> None:
        place = self._place
        if place is None or (key := place.key) is None:
            return
        known = at_ms if at_ms is not None and at_ms >= 0 else None
        self._events.append(LogEvent(known, what, *key, place.log_dir.path, offset, text))
        if len(self._events) >= 2 * MOST:
            self._events = _limited(self._events)

    def end(self) -> None:
        self._place = self._segment = None

    def merge(self, other: Self) -> None:
        self._events = _limited([*self._events, *other._events])

    def answer(self, at: int) -> Iterator[LogEvent]:  # noqa: ARG002  events have their own times
        yield from _limited(self._events)


def _limited(events: Iterable[LogEvent]) -> list[LogEvent]:
    untimed = [event for event in events if event.at_ms is None]
    timed = sorted((event for event in events if event.at_ms is not None), key=attrgetter("at_ms"))
    return [*timed[-MOST:], *untimed[:MOST]]


MOST_RANGES: Final = 200
"""Maximum number of damaged ranges listed for one file. If a file has more, its damaged bytes are counted by part."""
PARTS: Final = 100
"""Number of equal parts of a file."""


@dataclass(frozen=True, slots=True)
class DamagedBytes:
    """A damaged range. ``damage`` is a short stable word. ``missing_until``: the next valid offset, if known."""

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
    """A segment with damaged ranges. ``parts``: the damaged bytes of each hundredth, if not all ranges are listed."""

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
    key: tuple[str, int]
    file: str
    size: int
    kept: list[DamagedBytes] = field(default_factory=list)
    ranges: int = 0
    parts: list[int] = field(default_factory=lambda: [0] * PARTS)

    def add(self, region: Damage) -> None:
        self.ranges += 1
        part, start = min(PARTS - 1, region.position * PARTS // max(1, self.size)), region.position
        while start < region.end:
            stop = -(-self.size * (part + 1) // PARTS) if part < PARTS - 1 else region.end
            self.parts[part] += min(stop, region.end) - start
            start, part = min(stop, region.end), part + 1
        if self.ranges <= MOST_RANGES:
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
        parts = tuple(self.parts) if self.ranges > MOST_RANGES else None
        return DamagedFile(*self.key, self.file, self.size, self.ranges, sum(self.parts), parts)


class DamagedRanges(Collector):
    """Collects the damaged ranges of each segment. A batch that a broker is still writing does not count."""

    def __init__(self) -> None:
        self._files: list[_FileDamage] = []
        self._key: tuple[str, int] | None = None
        self._segment: Segment | None = None

    def begin(self, place: Place) -> Needs:
        self._key = place.key
        return Needs.FILES if self._key is None else Needs.HEADERS

    def turn_to(self, segment: Segment) -> None:
        self._segment = segment

    def lose(self, region: Damage | Trailing) -> None:
        segment, key = self._segment, self._key
        if segment is None or key is None:
            return
        damage = damage_of(segment, region)
        if damage is None:
            return
        if not self._files or self._files[-1].file != segment.name:
            self._files.append(_FileDamage(key, segment.name, segment.size))
        self._files[-1].add(damage)

    def end(self) -> None:
        self._key = self._segment = None

    def merge(self, other: DamagedRanges) -> None:
        self._files += other._files

    def answer(self, at: int) -> Iterator[DamagedFile | DamagedBytes]:  # noqa: ARG002  damage has no time
        yield from (file.line() for file in self._files)
        for file in self._files:
            yield from file.kept
