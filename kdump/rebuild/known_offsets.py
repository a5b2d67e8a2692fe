"""How far partitions reached that no volume has: offsets that groups have committed, and that checkpoints have.

A new log begins there, so that consumers go on with the next record, and no offset is given twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kdump.errors import DamageError, UnreadableError
from kdump.internal_topics import consumer_offsets, share_group_state
from kdump.internal_topics.decode import decode
from kdump.records.record_batch import RecordBatch
from kdump.segments import read

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from kdump.internal_topics.decode import DecodedRecord
    from kdump.log_dirs.partition import Partition
    from kdump.rebuild.volumes import Volumes


def of(
    volumes: Volumes, wanted: AbstractSet[tuple[str, int]], names: Mapping[bytes, str]
) -> dict[tuple[str, int], int]:
    """Return the highest offset that is known of each wanted partition: the smallest end that its log can have.

    ``names`` are the names of topics by id. What cannot be read is left out: the partition may then begin lower.
    """
    found: dict[tuple[str, int], int] = {}

    def reached(key: tuple[str, int], offset: int) -> None:
        if key in wanted and offset > found.get(key, 0):
            found[key] = offset

    for each in volumes.log_dirs:
        state = each.state
        for marks in (state.high_watermarks, state.recovery_points, state.log_starts, state.cleaned):
            for (topic, partition), offset in marks.items():
                if topic is not None and partition is not None:
                    reached((topic, partition), offset)
    for folder in volumes.folders:
        if not folder.state and folder.topic in {consumer_offsets.TOPIC, share_group_state.TOPIC}:
            for key, offset in _committed(_records(folder.topic, folder.partition), names):
                reached(key, offset)
    return found


def _committed(records: Iterable[DecodedRecord], names: Mapping[bytes, str]) -> Iterator[tuple[tuple[str, int], int]]:
    """Yield topic and partition with an offset that a group has committed, or a share group begins at."""
    for record in records:
        if record.key is None or record.value is None:
            continue
        key: Any = record.key.values
        value: Any = record.value.values
        if key is None or value is None:
            continue
        if record.key.name.endswith("OffsetCommitKey"):
            yield (key["topic"], key["partition"]), value["offset"]
        elif record.key.name in {"ShareSnapshotKey", "ShareUpdateKey"} and key["topicId"] in names:
            yield (names[key["topicId"]], key["partition"]), value["startOffset"]


def _records(topic: str, partition: Partition) -> Iterator[DecodedRecord]:
    """Yield the records of a copy that can be read."""
    for segment in partition.segments:
        try:
            with segment.open() as source:
                for region in read.read(source, on_error="resync", first_offset=segment.base_offset):
                    if isinstance(region, RecordBatch) and not region.is_control:
                        yield from _of_batch(topic, region)
        except UnreadableError:  # the plan of the partition names it
            continue


def _of_batch(topic: str, batch: RecordBatch) -> Iterator[DecodedRecord]:
    try:
        for record in batch.records():
            decoded = decode(topic, record.key, record.value)
            if decoded is not None:
                yield decoded
    except DamageError:  # the records before it count
        return
