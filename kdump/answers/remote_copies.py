"""How far partitions are copied to remote storage: what ``__remote_log_metadata`` of the given paths says (KIP-405)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kdump.errors import DamageError, UnreadableError
from kdump.internal_topics import remote_log_metadata
from kdump.internal_topics.decode import decode
from kdump.records.record_batch import RecordBatch
from kdump.segments import read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kdump.answers.metadata.cluster_image import ClusterImage
    from kdump.log_dirs.partition import Partition
    from kdump.segments.regions import Region

COPYING: Final = 0
"""The state of a segment whose copy has begun."""


class RemoteCopies:
    """The last copied offset of each partition, inclusive, by topic name, topic id and partition."""

    def __init__(self) -> None:
        self.known = False
        """Whether any record was met: else nothing says what is copied."""
        self._copied: dict[tuple[str, bytes, int], int] = {}
        self._begun: dict[bytes, tuple[tuple[str, bytes, int], int]] = {}

    def read(self, regions: Iterable[Region], damage: Callable[[str], None]) -> None:
        """Take the records of a segment of the topic."""
        for region in regions:
            if isinstance(region, RecordBatch) and not region.is_control:
                try:
                    for record in region.records():
                        self._add(record.value)
                except DamageError as reason:
                    damage(f"{remote_log_metadata.TOPIC}: {reason}")

    def _add(self, value: bytes | None) -> None:
        decoded = decode(remote_log_metadata.TOPIC, None, value)
        fields: Any = None if decoded is None or decoded.value is None else decoded.value.values
        if fields is None or "remoteLogSegmentId" not in fields:
            return
        self.known = True
        segment, state = fields["remoteLogSegmentId"], fields["remoteLogSegmentState"]
        place = segment["topicIdPartition"]
        if "endOffset" in fields:
            key = place["name"], place["id"], place["partition"]
            self._begun[segment["id"]] = key, fields["endOffset"]
        if state != COPYING and segment["id"] in self._begun:
            key, end = self._begun.pop(segment["id"])
            self._copied[key] = max(end, self._copied.get(key, end))

    def last_offsets(self, topic_ids: Mapping[str, bytes]) -> dict[tuple[str, int], int]:
        """Return the last copied offset by topic and partition, of the topics of these ids where an id is known."""
        found: dict[tuple[str, int], int] = {}
        for (topic, topic_id, partition), end in self._copied.items():
            if topic_ids.get(topic, topic_id) == topic_id:
                found[topic, partition] = max(end, found.get((topic, partition), end))
        return found


def copied_offsets(
    partitions: Iterable[Partition],
    image: ClusterImage | None,
    *,
    damage: Callable[[str], None],
    fail: Callable[[UnreadableError], None],
) -> dict[tuple[str, int], int]:
    """Return the last offset of each partition that is in remote storage, as its topic among ``partitions`` says."""
    copies = RemoteCopies()
    for partition in partitions:
        if partition.topic == remote_log_metadata.TOPIC:
            for segment in partition.segments:
                try:
                    with segment.open() as source:
                        copies.read(read.read(source, on_error="resync"), damage)
                except UnreadableError as error:
                    fail(error)
    ids = {} if image is None else {name: topic.id for name, topic in image.topics.by_name.items()}
    return copies.last_offsets(ids)
