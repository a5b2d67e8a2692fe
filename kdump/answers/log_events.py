"""Events of logs, read off their batches: new segments, new leader epochs, damage.

A log notes no time of these: the time is that of the batch beside them, which a producer may have set.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, ClassVar, Final

from kdump.answers.collector import Collector, Needs, Place
from kdump.segments import log_end
from kdump.segments.regions import Damage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Self

    from kdump.log_dirs.partition import Segment
    from kdump.records.record_batch import Batches
    from kdump.segments.regions import Trailing

MOST: Final = 5000
"""Events that are kept: the newest."""
_EPOCH: Final = "partition_leader_epoch"


@dataclass(frozen=True, slots=True)
class LogEvent:
    """One event. ``what`` is ``segment``, ``leader epoch`` or ``damage``; the time is None if no batch has one."""

    kind: ClassVar[str] = "logEvent"
    at_ms: int | None
    what: str
    topic: str
    partition: int
    log_dir: str
    offset: int | None
    text: str


class LogEvents(Collector):
    """Gathers the newest events of all logs."""

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
        if batches.least(_EPOCH) != batches.greatest(_EPOCH) or batches.field(_EPOCH, 0) != self._epoch:
            self._epochs(batches)
        if (newest := batches.last.max_timestamp) >= 0:
            self._time = newest

    def _epochs(self, batches: Batches) -> None:
        for row, epoch in enumerate(batches.column(_EPOCH)):
            if epoch not in (self._epoch, -1):  # a batch without an epoch does not end one
                batch = batches.batch(row)
                self._add("leader epoch", batch.max_timestamp, batch.base_offset, f"leader epoch {epoch} begins")
                self._epoch = epoch

    def lose(self, region: Damage | Trailing) -> None:
        segment = self._segment
        if segment is None:
            return
        if not isinstance(region, Damage):
            if not log_end.tail(segment, region).is_damage:
                return
            region = region.damage()
        text = f"{segment.name}: byte {region.position}: {region.size} bytes are damaged: {region.reason}"
        self._add("damage", self._time, region.missing_from, text)

    def _add(self, what: str, at_ms: int | None, offset: int | None, text: str) -> None:
        place = self._place
        if place is None or place.key is None:
            return
        known = at_ms if at_ms is not None and at_ms >= 0 else None
        self._events.append(LogEvent(known, what, *place.key, place.log_dir.path, offset, text))
        if len(self._events) >= 2 * MOST:
            self._events = newest(self._events)

    def merge(self, other: Self) -> None:
        self._events = newest([*self._events, *other._events])

    def answer(self, at: int) -> Iterator[LogEvent]:  # noqa: ARG002  events have their own times
        yield from newest(self._events)


def newest(events: Iterable[LogEvent]) -> list[LogEvent]:
    """Return the newest events in the order of their times; damage without a time stands last, and is kept."""
    untimed = [event for event in events if event.at_ms is None]
    timed = sorted((event for event in events if event.at_ms is not None), key=attrgetter("at_ms"))
    return [*timed[-MOST:], *untimed[:MOST]]
