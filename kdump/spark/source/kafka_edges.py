"""The first offset and the end offset of each partition in a query with the options of Kafka's source.

The earliest offset is the log start offset in the checkpoint, or the first segment's base offset if higher. Times are
looked up like in a broker (:class:`~kdump.answers.offsets.TimeLookup`). The latest offset is the log end offset,
because the checkpoint of the high watermark is older than the broker's value.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from itertools import takewhile
from typing import TYPE_CHECKING

from kdump.answers.offsets import TimeLookup
from kdump.errors import DamageError, UsageError, offsets_are
from kdump.log_reader.filter import Filter
from kdump.log_reader.segment_choice import byte_range
from kdump.primitives.terminal import path_text
from kdump.records.record_batch import RecordBatch
from kdump.segments import resync
from kdump.segments.log_end import end_of_log
from kdump.spark.source.kafka_options import EARLIEST, LATEST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from kdump.log_dirs.partition import Partition, Segment
    from kdump.spark.source.kafka_options import Edge, KafkaQuery, Key


def check_partitions(query: KafkaQuery, partitions: Iterable[Partition], lost: Callable[[str], None]) -> list[str]:
    """Compare a query with the files. Return notes on partitions in several folders.

    ``lost`` is called for each missing topic or partition. Raises UsageError if some partitions lack a start or an end.
    """
    counts = Counter((one.topic or "", -1 if one.partition is None else one.partition) for one in partitions)
    topics = {topic for topic, _ in counts}
    for topic in query.topics:
        if topic not in topics:
            lost(f"there is no partition of topic {topic}")
    named: set[Key] = set(query.assigned)
    for edge in (query.start, query.end):
        if edge is not None and edge.named is not None:
            missing = ", ".join(f"{path_text(topic)}-{number}" for topic, number in sorted(counts.keys() - edge.named))
            if missing:
                raise UsageError(
                    f"the options for the start and the end must name all partitions; {missing} is not named "
                    f"({LATEST} is the latest offset, {EARLIEST} the earliest)"
                )
            named |= edge.named.keys()
    for topic, number in sorted(named - counts.keys()):
        if topic in topics or topic not in query.topics:
            lost(f"there is no partition {topic}-{number}")
    return [
        f"{path_text(topic)}-{number} is in {count} folders: option dedupe returns each offset once"
        for (topic, number), count in sorted(counts.items())
        if count > 1
    ]


def edges(
    query: KafkaQuery, partition: Partition, log_start: int | None, lost: Callable[[str], None]
) -> tuple[int, int | None]:
    """Return the first offset to read of a partition, and the end offset (None: the end of the log).

    ``lost`` is called for offsets before or after the log. If it returns, the nearest offset is used. Raises
    UnreadableError, and UsageError if the end is before the start, or if all records are before the start time
    (``query.strays`` allows this).
    """
    first = partition.segments[0].base_offset if partition.segments else None
    earliest = max(first or 0, log_start or 0)
    start = _offset(query.start, partition, earliest, lost)
    if start is None:
        if not query.strays:
            raise UsageError(
                f"{partition.name}: all records are before the start time "
                "(with startingOffsetsByTimestampStrategy=latest, the query begins at the end of the log)"
            )
        start = _latest(partition, earliest)
    end = _offset(query.end, partition, earliest, lost)
    if end is not None and end < start:
        raise UsageError(f"{partition.name}: the end offset {end} is below the start offset {start}")
    return start, end


def _offset(edge: Edge | None, partition: Partition, earliest: int, lost: Callable[[str], None]) -> int | None:
    """Return the offset of an edge; None without an edge, or if all records are before the edge's time."""
    key = partition.topic or "", partition.partition or 0
    if edge is None:
        return None
    time = edge.time if edge.times is None else edge.times[key]
    if time is not None:
        return _first_since(time, partition, earliest)
    offset = edge.offset if edge.offsets is None else edge.offsets[key]
    if offset == EARLIEST:
        return earliest
    if offset is None or offset == LATEST:
        return _latest(partition, earliest)
    if offset < earliest:
        lost(f"{partition.name}: {offsets_are(offset, earliest - 1)} gone")
        return earliest
    base = partition.segments[-1].base_offset if partition.segments else None
    if base is None or offset > base:
        latest = _latest(partition, earliest)
        if offset > latest:
            lost(f"{partition.name}: offset {offset} is above the log end offset {latest}")
            return latest
    return offset


def _latest(partition: Partition, earliest: int) -> int:
    return max(earliest, end_of_log(partition).offset)


def _first_since(time: int, partition: Partition, earliest: int) -> int | None:
    """Return the first offset whose timestamp is ``time`` (ms) or later, looked up like in a broker."""
    lookup = TimeLookup(partition.segments, (time,), earliest)
    for segment in partition.segments:
        lookup.turn_to(segment)
        if lookup.is_looking:
            for batch in takewhile(lambda _: lookup.is_looking, _batches_since(time, segment)):
                with suppress(DamageError):  # reported when the records are read
                    lookup.add(batch)
    return lookup.answers()[0].offset


def _batches_since(time: int, segment: Segment) -> Iterator[RecordBatch]:
    """Yield the valid batches that may have records at ``time`` (ms) or later."""
    with segment.open() as source:
        span = byte_range(segment, source, Filter(since=time), lambda _: None)
        if span is not None:
            for region in resync.read(source, span.start, span.end, on_error="resync"):
                if isinstance(region, RecordBatch):
                    yield region
