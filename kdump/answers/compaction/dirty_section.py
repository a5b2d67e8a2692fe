"""The part of a compacted log that the cleaner would clean, and whether it would begin now.

Source: Kafka's classes LogCleanerManager (``cleanableOffsets``, ``maxCompactionDelay``) and LogToClean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from kdump.answers.producer_state import ProducerReplay
from kdump.errors import DamageError
from kdump.records.record_batch import Batches, RecordBatch
from kdump.segments import resync, walk
from kdump.segments.regions import DATA

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kdump.answers.collector import Place
    from kdump.answers.retention.rules import AgedSegment, LogFacts
    from kdump.answers.topic_configs import TopicConfig
    from kdump.log_dirs.partition import Segment


Holder: TypeAlias = Literal["activeSegment", "openTransaction", "highWatermark", "minCompactionLag"]


@dataclass(frozen=True, slots=True)
class HeldBack:
    """What keeps the cleaner from the segments from ``from_offset`` on: ``bytes`` of them come free without it."""

    by: Holder
    why: str
    from_offset: int
    bytes: int


class _Limit(NamedTuple):
    """The offset at which the cleaner stops, and why."""

    offset: int
    by: Holder
    why: str


class DirtySection(NamedTuple):
    """Offsets from ``first_dirty`` to before ``first_uncleanable`` are cleaned. Sizes are of whole segments, in bytes.

    The cleaner cannot reach ``held_back``; the first of these ends the section.
    """

    first_dirty: int
    first_uncleanable: int
    clean_bytes: int
    dirty_bytes: int
    held_back: tuple[HeldBack, ...]
    is_due: bool
    why: str

    @property
    def ratio(self) -> float:
        """The part of the cleanable bytes that is dirty."""
        whole = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / whole if whole else 0.0


def dirty_section(place: Place, facts: LogFacts, config: TopicConfig, at: int) -> DirtySection:
    """Return the section at a time (ms). Raises UnreadableError."""
    segments = facts.segments
    end = segments[-1].next_offset
    first_dirty, begins = _first_dirty(place, facts, end)
    limits = [_Limit(segments[-1].base_offset, "activeSegment", "the active segment"), _last_stable(place, end)]
    lag = config.number("min.compaction.lag.ms")
    for segment in segments[:-1]:
        if lag > 0 and segment.next_offset > first_dirty and (segment.largest or 0) > at - lag:
            limits.append(_Limit(segment.base_offset, "minCompactionLag", f"min.compaction.lag.ms = {lag}"))
            break
    limits.sort(key=lambda limit: limit.offset)
    uncleanable = _holding(segments, limits[0].offset)
    clean = sum(segment.size for segment in segments if segment.base_offset < first_dirty)
    start = max((s.base_offset for s in segments if s.base_offset <= min(first_dirty, uncleanable)), default=0)
    dirty = sum(segment.size for segment in segments if start <= segment.base_offset < uncleanable)
    held_back = tuple(_held_back(segments, limits))
    found = DirtySection(first_dirty, max(uncleanable, first_dirty), clean, dirty, held_back, False, begins)
    is_due, why = _due(place.partition.segments, segments, found, config, at)
    return found._replace(is_due=is_due, why=f"{begins}; it ends at {limits[0].why}; {why}")


def _holding(segments: Sequence[AgedSegment], offset: int) -> int:
    """Return the base offset of the segment that holds an offset, of the first one where it is before all."""
    return max(
        (segment.base_offset for segment in segments if segment.base_offset <= offset), default=segments[0].base_offset
    )


def _held_back(segments: Sequence[AgedSegment], limits: Sequence[_Limit]) -> Iterator[HeldBack]:
    """Yield what each limit, in their order, holds back up to the next; of several in one segment the first counts."""
    bounds: dict[int, _Limit] = {}
    for limit in limits:
        bounds.setdefault(_holding(segments, limit.offset), limit)
    for (start, limit), following in zip(bounds.items(), [*list(bounds)[1:], None], strict=False):
        held = sum(
            segment.size
            for segment in segments
            if segment.base_offset >= start and (following is None or segment.base_offset < following)
        )
        if held:
            yield HeldBack(limit.by, limit.why, start, held)


def _first_dirty(place: Place, facts: LogFacts, end: int) -> tuple[int, str]:
    known = None if place.key is None else place.log_dir.cleaned.get(place.key)
    if known is None:
        return facts.log_start, "no checkpoint of the cleaner: it begins at the log start"
    if not facts.log_start <= known <= end:
        return facts.log_start, f"the cleaner's checkpoint {known} is outside the log: it begins at the log start"
    return known, f"the cleaner's checkpoint is {known}"


def _last_stable(place: Place, end: int) -> _Limit:
    """Return the last stable offset: what open transactions and the high watermark leave."""
    replay = ProducerReplay(place)
    for segment, following in zip(place.partition.segments, [*place.partition.segments[1:], None], strict=False):
        if following is not None and (following.base_offset or 0) <= replay.since:
            continue
        for region in _batches(segment):
            try:
                replay.add(region)
            except DamageError as damage:
                place.report.damage(f"{segment.name}: byte {region.position + damage.position}: {damage}")
    replay.end()
    first_open, watermark = replay.first_open_offset, place.high_watermark
    if first_open is not None and (watermark is None or first_open < watermark):
        return _Limit(first_open, "openTransaction", f"the open transaction that begins at offset {first_open}")
    return _Limit(end if watermark is None else min(watermark, end), "highWatermark", "the high watermark")


def _batches(segment: Segment) -> Iterator[Batches]:
    """Yield the valid batches of a segment."""
    with segment.open() as source:
        for region in resync.read(source, on_error="resync", first_offset=segment.base_offset, runs=DATA):
            if isinstance(region, Batches):
                yield region


def _due(
    files: Sequence[Segment], segments: Sequence[AgedSegment], found: DirtySection, config: TopicConfig, at: int
) -> tuple[bool, str]:
    ratio, least = found.ratio, config.real("min.cleanable.dirty.ratio")
    if ratio > least:
        return True, f"its dirty ratio {ratio:.3f} is above min.cleanable.dirty.ratio = {least}"
    lag = max(0, config.number("max.compaction.lag.ms"))
    if found.dirty_bytes:
        dirty = (
            file
            for file, segment in zip(files, segments, strict=True)
            if not segment.is_last and segment.next_offset > found.first_dirty
        )
        oldest = min((time for time in map(_first_time, dirty) if time > 0), default=at)
        if oldest < at - lag:
            return True, f"its oldest dirty segment begins {at - oldest} ms ago, above max.compaction.lag.ms = {lag}"
    return False, f"its dirty ratio {ratio:.3f} is not above min.cleanable.dirty.ratio = {least}"


def _first_time(segment: Segment) -> int:
    """Return the largest timestamp of a segment's first batch, -1 without one."""
    with segment.open() as source:
        region = next(walk.walk(source), None)
    return region.max_timestamp if isinstance(region, RecordBatch) else -1
