"""The first offset at or after a time, as a broker looks it up.

Source: KIP-79 and Kafka's classes UnifiedLog (``fetchOffsetByTimestamp``), LogSegment (``findOffsetByTimestamp``) and
FileRecords (``searchForTimestamp``). A broker takes the first segment whose largest timestamp is not below the time,
and only that one. The largest timestamp of a segment is its last ``.timeindex`` entry; without an entry the time of
the file's last write stands in for it, so that later segments may be missed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kdump.formats.time_index import TimeIndex

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kdump.log_dirs.partition import Segment
    from kdump.records.record_batch import Batches, RecordBatch


@dataclass(frozen=True)
class TimeAnswer:
    """What a look-up of ``time_ms`` gives: the first offset at or after it, and its timestamp; None where none is."""

    time_ms: int
    offset: int | None = None
    timestamp_ms: int | None = None


class TimeLookup:
    """Looks times (ms) up in the batches of a partition, added in order; ``start`` is the log start offset."""

    def __init__(self, segments: Sequence[Segment], times: Sequence[int], start: int) -> None:
        self._times = times
        self._start = start
        self._found: dict[int, TimeAnswer] = {}
        self._wanted = _by_segment(segments, times) if times else {}
        self._pending: list[int] = []
        """The times that are looked for in the segment being read, in rising order."""

    def turn_to(self, segment: Segment) -> None:
        """Turn to the next segment."""
        wanted = self._wanted.get(segment.path, ())
        self._pending = sorted(time for time in wanted if time not in self._found)

    @property
    def is_looking(self) -> bool:
        """Whether a time may still be found in the segment being read."""
        return bool(self._pending)

    def may_find(self, batches: Batches) -> bool:
        """Return whether a time may be found in the next batches."""
        if not self._pending or batches.greatest("last_offset") < self._start:
            return False
        return batches.greatest("max_timestamp") >= self._pending[0]

    def add(self, batch: RecordBatch) -> None:
        """Take the next batch."""
        if not self._pending or batch.max_timestamp < self._pending[0] or batch.last_offset < self._start:
            return
        for record in batch.records():
            while self._pending and record.timestamp >= self._pending[0] and record.offset >= self._start:
                time = self._pending.pop(0)
                self._found[time] = TimeAnswer(time, record.offset, record.timestamp)
            if not self._pending:
                break

    def answers(self) -> tuple[TimeAnswer, ...]:
        """Return an answer for each time, in the order asked."""
        return tuple(self._found.get(time) or TimeAnswer(time) for time in self._times)


def _by_segment(segments: Sequence[Segment], times: Sequence[int]) -> dict[str, set[int]]:
    """Return, for each segment's path, the times that may be found in it."""
    wanted: dict[str, set[int]] = {segment.path: set() for segment in segments}
    left = set(times)
    for number, segment in enumerate(segments):
        largest = None if number == len(segments) - 1 else _largest(segment)
        for time in list(left):
            if largest is None:
                wanted[segment.path].add(time)
            elif largest >= time:
                wanted[segment.path].add(time)
                left.discard(time)
    return wanted


def _largest(segment: Segment) -> int | None:
    """Return the largest timestamp of a closed segment as the broker knows it; None where its batches must tell.

    Without a ``.timeindex`` a broker would make it anew from the log.
    """
    data = segment.sibling("timeindex")
    if data is None:
        return None
    index = TimeIndex(data, segment.base_offset or 0)
    if not index.count:
        return segment.modified
    last = index.stored(max(len(index), 1) - 1)[0]
    return last if last >= 0 else segment.modified
