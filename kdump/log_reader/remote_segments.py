"""Lists the segments in remote storage, from ``__remote_log_metadata`` (KIP-405, Kafka's RemoteLogMetadataCache)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kdump.errors import DamageError, UnreadableError, discard, many
from kdump.formats.leader_epoch import EpochEntry
from kdump.internal_topics import remote_log_metadata
from kdump.internal_topics.decode import decode
from kdump.log_reader.replicas import each_once
from kdump.log_reader.topic_ids import of_present_topics
from kdump.records.record_batch import RecordBatch
from kdump.segments import log_end, resync
from kdump.segments.regions import Damage, Trailing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kdump.errors import Reporter
    from kdump.log_dirs.partition import Partition, Segment

COPYING: Final = 0
"""The state of a segment whose copy has begun (Kafka's RemoteLogSegmentState)."""
COPIED: Final = 1
DELETING: Final = 2
DELETED: Final = 3
PARTITION_DELETED: Final = 2
"""The last state of a partition that is deleted."""


class TopicIdPartition(NamedTuple):
    topic: str
    topic_id: bytes
    partition: int


class RemoteSegment(NamedTuple):
    """A segment in remote storage: id (16 bytes), offsets (both ends included), leader epochs, size in bytes, state."""

    partition: TopicIdPartition
    id: bytes
    start: int
    end: int
    epochs: tuple[EpochEntry, ...]
    size: int
    state: int
    changed_at: int
    """The time of the last change of the state, in ms."""


class RemoteSegments:
    """The listed segments, also those being copied or deleted, and the last copied offset of each partition."""

    def __init__(self) -> None:
        self.known = False
        """Whether a record of a segment or of a deletion was decoded. If not, the copied segments are unknown."""
        self.is_damaged = False
        """Whether bytes or batches are damaged, so that segments may be missing. Undecodable values do not count."""
        self.segments: dict[bytes, RemoteSegment] = {}
        """Segment id -> segment. Deleted segments and partitions are removed, as in Kafka."""
        self.deletions: dict[TopicIdPartition, tuple[int, int]] = {}
        """Partition that is being deleted -> the state of the deletion, and the time of that state in ms."""
        self.last_copied: dict[TopicIdPartition, int] = {}

    def read(self, segment: Segment, report: Reporter) -> None:
        """Replay the records of a segment of the topic. Report those that cannot be read. Raises UnreadableError."""
        unread: dict[bool, tuple[str, int]] = {}
        for region in resync.of_segment(segment):
            if isinstance(region, Damage | Trailing):
                self.is_damaged |= isinstance(region, Damage)
                log_end.report_region(segment, region, report)
            elif isinstance(region, RecordBatch) and not region.is_control:
                try:
                    for record in region.records():
                        made = decode(remote_log_metadata.TOPIC, None, record.value)
                        value = None if made is None else made.value
                        if value is not None and value.values is not None:
                            self._add(value.values)
                        elif value is not None:
                            first, count = unread.get(value.known, (f"offset {record.offset}: {value.reason}", 0))
                            unread[value.known] = first, count + 1
                except DamageError as damage:
                    self.is_damaged = True
                    report.damage(f"{segment.name}: byte {region.position}: {damage.reason}")
        for known, (first, count) in unread.items():
            receive = report.damage if known else report.note  # no damage if a newer release may have written it
            receive(f"{segment.name}: {many(count, 'record')} cannot be decoded, the first at {first}")

    def _add(self, fields: Any) -> None:
        if "remotePartitionDeleteState" in fields:
            place = fields["topicIdPartition"]
            key = TopicIdPartition(place["name"], place["id"], place["partition"])
            self.known = True
            self.deletions[key] = fields["remotePartitionDeleteState"], fields["eventTimestampMs"]
            if fields["remotePartitionDeleteState"] == PARTITION_DELETED:
                self.only(key.__ne__)
        if "remoteLogSegmentId" not in fields:
            return
        self.known = True
        segment_id, state = fields["remoteLogSegmentId"], fields["remoteLogSegmentState"]
        if "endOffset" in fields:
            place = segment_id["topicIdPartition"]
            self.segments[segment_id["id"]] = RemoteSegment(
                TopicIdPartition(place["name"], place["id"], place["partition"]),
                segment_id["id"],
                fields["startOffset"],
                fields["endOffset"],
                tuple(EpochEntry(one["leaderEpoch"], one["offset"]) for one in fields["segmentLeaderEpochs"]),
                fields["segmentSizeInBytes"],
                state,
                fields["eventTimestampMs"],
            )
        listed = self.segments.get(segment_id["id"])
        if listed is None:
            return
        self.segments[listed.id] = listed._replace(state=state, changed_at=fields["eventTimestampMs"])
        if state == COPIED:
            self.last_copied[listed.partition] = max(listed.end, self.last_copied.get(listed.partition, listed.end))
        if state == DELETED:
            del self.segments[listed.id]

    def only(self, takes: Callable[[TopicIdPartition], bool]) -> None:
        """Remove the partitions for which ``takes`` returns False."""
        self.segments = {name: one for name, one in self.segments.items() if takes(one.partition)}
        self.deletions = {key: state for key, state in self.deletions.items() if takes(key)}
        self.last_copied = {key: end for key, end in self.last_copied.items() if takes(key)}


def of_partitions(partitions: Iterable[Partition], report: Reporter) -> RemoteSegments:
    """Return the segments that ``__remote_log_metadata`` lists. Other topics in ``partitions`` are ignored.

    Each partition of the topic is read from its best replica (:func:`kdump.log_reader.replicas.spares`).
    """
    found = RemoteSegments()
    of_topic = [one for one in partitions if one.topic == remote_log_metadata.TOPIC]
    for partition in each_once(of_present_topics(of_topic, report.note), discard, ""):
        for segment in partition.segments:
            try:
                found.read(segment, report)
            except UnreadableError as error:
                report.fail(error)
    return found
