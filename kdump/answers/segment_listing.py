"""The segments of partitions: bytes, offsets and times of each; only its two ends are read."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from kdump.answers.collector import Collector, Needs
from kdump.errors import UnreadableError
from kdump.log_dirs.file_names import SEGMENT_NAME
from kdump.records.record_batch import RecordBatch
from kdump.segments import walk
from kdump.segments.log_end import end_of_segment
from kdump.segments.regions import Damage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.answers.collector import AnswerLine, Place
    from kdump.log_dirs.partition import Segment


@dataclass(frozen=True, slots=True)
class SegmentSpan:
    """A segment. ``state`` ends the file's name: log, deleted, swap, ...

    ``end_offset`` is the offset after its last valid batch, or None if damage comes after that; ``oldest_ms`` and
    ``newest_ms`` are the largest times of its first and last batch, None without one.
    """

    kind: ClassVar[str] = "segmentSpan"
    file: str
    topic: str
    partition: int
    base_offset: int | None
    end_offset: int | None
    bytes: int
    oldest_ms: int | None
    newest_ms: int | None
    state: str


class SegmentListing(Collector):
    """Collects the segments of every partition."""

    def __init__(self) -> None:
        self._found: list[SegmentSpan] = []

    def begin(self, place: Place) -> Needs:
        """Take the segments of a partition; what damages the end of one is reported."""
        if place.key is not None:
            for segment in place.partition.segments:
                try:
                    self._found.append(_listed(segment, *place.key, place))
                except UnreadableError as error:
                    place.report.fail(error)
        return Needs.FILES

    def merge(self, other: SegmentListing) -> None:
        """Take over the segments of another."""
        self._found += other._found

    def answer(self, at: int) -> Iterator[AnswerLine]:  # noqa: ARG002  a list is of no time
        """Yield the segments by topic, partition and base offset."""
        yield from sorted(self._found, key=lambda line: (line.topic, line.partition, line.base_offset or 0, line.file))


def _listed(segment: Segment, topic: str, number: int, place: Place) -> SegmentSpan:
    end = end_of_segment(segment)
    first = end.first
    if first is None and segment.size:
        with segment.open() as source:
            region = next(walk.walk(source), None)
        first = region if isinstance(region, RecordBatch) else None
    is_damaged = isinstance(end.damage, Damage)
    if is_damaged:
        place.report.damage(f"{segment.name}: byte {end.damage.position}: {end.damage.reason}")  # type: ignore[union-attr]  # it is damaged
    base = segment.base_offset
    name = SEGMENT_NAME.fullmatch(posixpath.basename(segment.path))
    return SegmentSpan(
        file=segment.name,
        topic=topic,
        partition=number,
        base_offset=base,
        end_offset=None if is_damaged else base if end.last is None else end.last.last_offset + 1,
        bytes=segment.size,
        oldest_ms=_time(first),
        newest_ms=_time(end.last),
        state=((name and name["state"]) or ".log").lstrip("."),
    )


def _time(batch: RecordBatch | None) -> int | None:
    return None if batch is None or batch.max_timestamp < 0 else batch.max_timestamp
