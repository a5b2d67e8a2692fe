"""The question ``offsets``: offsets like those of ``kafka-get-offsets.sh`` and ``Admin.listOffsets``, from files.

A broker looks up a time in the first segment whose largest timestamp is at or above the time, and in no later one. The
largest timestamp is the last one in the ``.timeindex``, or the last write time of a segment whose index is empty. If
there is no such segment, the newest is searched; also each earlier one without a ``.timeindex``. Source: KIP-79 and
UnifiedLog (``fetchOffsetByTimestamp``), LogSegment (``findOffsetByTimestamp``), FileRecords (``searchForTimestamp``).
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from kdump.answers.collector import Collector, Needs, keep_best
from kdump.answers.producer_state import ProducerReplay
from kdump.answers.question import EXIT_STATUS, LineTable, LogQuestion, option
from kdump.answers.topic_configs import tiered_topics
from kdump.errors import DamageError
from kdump.formats.time_index import TimeIndex
from kdump.internal_topics import cluster_metadata
from kdump.segments.log_end import damage_of
from kdump.segments.regions import Damage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kdump.answers.collector import Place
    from kdump.answers.metadata.cluster_image import ClusterImage
    from kdump.log_dirs.partition import Segment
    from kdump.records.record_batch import Batches, RecordBatch
    from kdump.segments.regions import Trailing

NO_TIMESTAMP: Final = -1


@dataclass(frozen=True)
class TimeAnswer:
    """Offset and timestamp (ms) of the first record at or after ``time_ms``. None if a broker's search finds none."""

    time_ms: int
    offset: int | None = None
    timestamp_ms: int | None = None


class TimeLookup:
    """Looks up times (ms) in the batches of a partition, added in log order. ``start``: log start offset."""

    def __init__(self, segments: Sequence[Segment], times: Sequence[int], start: int) -> None:
        self._times = times
        self._start = start
        self._found: dict[int, TimeAnswer] = {}
        self._wanted = _by_segment(segments, times) if times else {}
        self._pending: list[int] = []
        """The times that are looked up in the current segment and not found yet, in rising order."""

    def turn_to(self, segment: Segment) -> None:
        wanted = self._wanted.get(segment.path, ())
        self._pending = sorted(time for time in wanted if time not in self._found)

    @property
    def is_looking(self) -> bool:
        return bool(self._pending)

    def may_find(self, batches: Batches) -> bool:
        if not self._pending or batches.greatest("last_offset") < self._start:
            return False
        return batches.greatest("max_timestamp") >= self._pending[0]

    def add(self, batch: RecordBatch) -> None:
        if not self._pending or batch.max_timestamp < self._pending[0] or batch.last_offset < self._start:
            return
        for record in batch.records():
            while self._pending and record.timestamp >= self._pending[0] and record.offset >= self._start:
                time = self._pending.pop(0)
                self._found[time] = TimeAnswer(time, record.offset, record.timestamp)
            if not self._pending:
                break

    def answers(self) -> tuple[TimeAnswer, ...]:
        return tuple(self._found.get(time) or TimeAnswer(time) for time in self._times)


def _by_segment(segments: Sequence[Segment], times: Sequence[int]) -> dict[str, set[int]]:
    """Return path of a segment -> the times to look up in it."""
    wanted: dict[str, set[int]] = {segment.path: set() for segment in segments}
    pending = set(times)
    for number, segment in enumerate(segments):
        largest = None if number == len(segments) - 1 else _largest(segment)
        for time in list(pending):
            if largest is None:
                wanted[segment.path].add(time)
            elif largest >= time:
                wanted[segment.path].add(time)
                pending.discard(time)
    return wanted


def _largest(segment: Segment) -> int | None:
    """Return the largest timestamp that a broker assumes for a closed segment; None if it must be searched."""
    data = segment.sibling("timeindex")
    if data is None:
        return None
    index = TimeIndex(data, segment.base_offset or 0)
    if not index.count:
        return segment.modified
    last = index.stored(max(len(index), 1) - 1)[0]
    return last if last >= 0 else segment.modified


@dataclass(frozen=True)
class PartitionOffsets:
    """The offsets of a partition. Times are in ms. None means unknown, or that there is none."""

    kind: ClassVar[str] = "offsets"
    topic: str
    partition: int
    earliest: int
    """The log start offset."""
    earliest_local: int
    """The first offset in local segments."""
    latest: int
    """The log end offset."""
    high_watermark: int | None
    """The high watermark in the checkpoint. The checkpoint of a running broker is some seconds old."""
    last_stable: int
    """The first offset of the oldest open transaction, else the log end offset. At least the log start offset."""
    leader_epoch: int | None
    """The leader epoch in the metadata log, else the newest epoch in leader-epoch-checkpoint."""
    max_timestamp_ms: int | None
    """The largest timestamp; -1 if no record has a timestamp."""
    max_timestamp_offset: int | None
    """The first offset with the largest timestamp."""
    by_time: tuple[TimeAnswer, ...] = ()
    """For each --time the first offset at or after it."""


class OffsetsFacts(NamedTuple):
    """Facts from the metadata log: the leader epoch of each partition, and whether a topic has remote storage."""

    leader_epochs: Mapping[tuple[str, int], int]
    remote: Mapping[str, bool]


def facts_of(image: ClusterImage | None) -> OffsetsFacts:
    if image is None:
        return OffsetsFacts({}, {})
    topics = image.topics.by_name
    epochs = {
        (name, number): partition.leader_epoch
        for name, topic in topics.items()
        for number, partition in topic.partitions.items()
    }
    tiered = tiered_topics(image)
    return OffsetsFacts(epochs, {name: name in tiered for name in topics})


class Offsets(Collector):
    """Gathers offsets and looks up ``times`` (ms). It reports the replica with the newest epoch, then highest end."""

    def __init__(self, times: Sequence[int] = (), facts: OffsetsFacts | None = None) -> None:
        self._times = tuple(dict.fromkeys(times))
        self._facts = facts or facts_of(None)
        self._found: dict[tuple[str, int], tuple[tuple[int, int], PartitionOffsets]] = {}
        self._partition: _PartitionPass | None = None

    def begin(self, place: Place) -> Needs:
        if place.key is None:
            return Needs.FILES
        self._partition = _PartitionPass(place, place.key, self._times, self._facts)
        return Needs.HEADERS

    def turn_to(self, segment: Segment) -> None:
        if self._partition is not None:
            self._partition.turn_to(segment)

    def add(self, batches: Batches) -> int | None:
        return None if self._partition is None else self._partition.add(batches)

    def lose(self, region: Damage | Trailing) -> None:
        """Drop a replica with an unreadable file, because the file may have higher offsets."""
        if isinstance(region, Damage) and region.is_unreadable:
            self._partition = None
        elif self._partition is not None:
            self._partition.lose(region)

    def end(self) -> None:
        if self._partition is not None:
            rank, found = self._partition.end()
            keep_best(self._found, {(found.topic, found.partition): (rank, found)}, itemgetter(0))
            self._partition = None

    def merge(self, other: Offsets) -> None:
        keep_best(self._found, other._found, itemgetter(0))

    def answer(self, at: int) -> Iterator[PartitionOffsets]:  # noqa: ARG002  offsets do not depend on the time
        for key in sorted(self._found):
            yield self._found[key][1]


class _PartitionPass:
    def __init__(self, place: Place, key: tuple[str, int], times: tuple[int, ...], facts: OffsetsFacts) -> None:
        self._key = key
        segments = place.partition.segments
        self._first = place.first_offset
        self._earliest = place.earliest(self._first, is_remote=facts.remote.get(key[0]))
        self._high_watermark = place.high_watermark
        epoch = facts.leader_epochs.get(key)
        if epoch is None:
            epoch = max((one.epoch for one in place.leader_epochs(place.report.damage)), default=None)
        self._epoch = epoch
        self._place = place
        self._producers = ProducerReplay(place)
        self.times = TimeLookup(segments, times, self._earliest)
        self._largest: RecordBatch | None = None
        self._largest_timestamp = NO_TIMESTAMP - 1
        self._segment: Segment | None = None
        self._ends_damaged = False

    def turn_to(self, segment: Segment) -> None:
        self._segment, self._ends_damaged = segment, False
        self.times.turn_to(segment)

    def lose(self, region: Damage | Trailing) -> None:
        self._ends_damaged = self._segment is None or damage_of(self._segment, region) is not None

    def add(self, batches: Batches) -> int | None:
        """Add batches and return None. Return 0 for a run that may have a wanted time: add its batches one by one."""
        if batches.batch_count > 1 and self.times.may_find(batches):
            return 0
        self._producers.add(batches)
        self._ends_damaged = False
        timestamp = batches.greatest("max_timestamp")
        if timestamp > self._largest_timestamp:
            row = batches.column("max_timestamp").index(timestamp)
            self._largest, self._largest_timestamp = batches.batch(row), timestamp
        if batches.batch_count == 1:
            self.times.add(batches.first)
        return None

    def end(self) -> tuple[tuple[int, int], PartitionOffsets]:
        self._producers.end()
        latest = max(self._producers.end_offset, self._earliest)
        stable = self._producers.first_open_offset
        timestamp, offset = self._max_timestamp()
        if self._ends_damaged:
            name = self._place.partition.name
            self._place.report.note(f"{name}: damage follows the last valid batch: the log may have had higher offsets")
        return self._producers.rank, PartitionOffsets(
            *self._key,
            earliest=self._earliest,
            earliest_local=max(self._earliest, self._first),
            latest=latest,
            high_watermark=self._high_watermark,
            last_stable=latest if stable is None else max(stable, self._earliest),
            leader_epoch=self._epoch,
            max_timestamp_ms=timestamp,
            max_timestamp_offset=offset,
            by_time=self.times.answers(),
        )

    def _max_timestamp(self) -> tuple[int | None, int | None]:
        if self._largest is None:
            return None, None
        try:
            for record in self._largest.records():
                if record.timestamp == self._largest_timestamp:
                    return self._largest_timestamp, record.offset
        except DamageError as damage:
            from kdump.rows.redaction import shown_in

            self._place.report.damage(
                f"{self._place.partition.name}: batch of offset {self._largest.last_offset}:"
                f" {shown_in(damage, self._place.partition.folder)}"
            )
        return self._largest_timestamp, None


HELP: Final = f"""Show the first offset and the end offset of each partition.

\b
Examples:
  kdump offsets /var/kafka
  kdump offsets /var/kafka --topic orders --time 2026-11-21T09:00:00Z
  kdump offsets /var/kafka -o jsonl | jq 'select(.lastStable < .latest)'

\b
earliest         log start offset: from the checkpoint, else the base offset
                 of the first segment
earliestLocal    first offset in local segments (tiered topics)
latest           log end offset
highWatermark    from the checkpoint, which lags on a running broker
lastStable       where a read_committed consumer stops: the first offset of
                 the oldest open transaction, else the log end offset
leaderEpoch      from __cluster_metadata in the paths, else the newest in
                 leader-epoch-checkpoint
maxTimestampMs   the largest timestamp, -1 if no record has one;
                 maxTimestampOffset is the first offset with it
byTime           for each --time the first offset with this time or a later
                 one, searched as a broker does: in the segment that the
                 time indexes select

null means that no file has the value, or that there is no such offset. A transaction that is open in the newest valid
producer snapshot counts as open until its marker is read. A truncated batch at the end of a log is left out.
{EXIT_STATUS}"""


@dataclass(frozen=True)
class OffsetsOptions:
    times: tuple[int, ...] = option(
        (), "moments", "--time", "Look up the first offset at or after this time", metavar="TIME"
    )


QUESTION: Final = LogQuestion(
    "offsets",
    HELP,
    OffsetsOptions,
    (PartitionOffsets,),
    lambda asking, options: Offsets(options.times, facts_of(asking.image)),
    tables=(LineTable("offsets", PartitionOffsets),),
    also=(cluster_metadata.TOPIC,),
    unit="replicas",
)
