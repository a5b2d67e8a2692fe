"""Finds the limits that files beside a log prove: its highest possible start offset and its lowest possible end offset.

Checks find missing records by these limits, and by the offsets that groups have committed (:func:`committed`).
"""

from __future__ import annotations

import posixpath
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from kdump.errors import DamageError, UnreadableError
from kdump.formats.offset_index import OffsetIndex
from kdump.formats.time_index import TimeIndex
from kdump.log_dirs import file_names
from kdump.log_dirs.file_names import INDEX, INDEX_NAME, LOG, TIME_INDEX
from kdump.records.record_batch import RecordBatch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kdump.formats.leader_epoch import EpochEntry
    from kdump.internal_topics.decode import DecodedRecord
    from kdump.log_dirs.partition import Partition, Segment


SNAPSHOT: Final = "producer snapshot"
INCREDIBLE: Final = 1 << 56
"""No log reaches this offset: ten million records a second reach it after 228 years. A file that has it is wrong."""


def is_credible(offset: int) -> bool:
    """Return whether an offset of a file can prove that a log had a record below it."""
    return 0 < offset < INCREDIBLE


def epochs_of(part: Partition) -> tuple[EpochEntry, ...] | None:
    """Return the leader epochs of a partition; None if the file is absent, unreadable or invalid."""
    try:
        return part.leader_epochs(lambda _: None)
    except UnreadableError:
        return None


def evidence_of(part: Partition, epochs: Sequence[EpochEntry] | None) -> dict[str, int]:
    """Return kind of file -> the log end offset that files of this kind prove: the log reached at least this offset.

    The name of a producer snapshot has the log end offset (ProducerStateManager.takeSnapshot). The name of an index has
    the base offset of its segment. An epoch begins at the log end offset (LeaderEpochFileCache.assign).
    """
    snapshots = [
        int(stem)
        for entry in part.others
        if entry.name.endswith(f".{file_names.PRODUCER_SNAPSHOT}")
        and file_names.is_padded(stem := entry.name.partition(".")[0])
    ]
    found = {
        SNAPSHOT: snapshots,
        "index file": [base for base, _ in _index_bases(part)],
        "leader epochs": [epochs[-1].start_offset] if epochs else [],
    }
    return {what: max(proven) for what, offsets in found.items() if (proven := list(filter(is_credible, offsets)))}


def proves_end(
    end: int, recovery_point: int | None, evidence: Mapping[str, int], *, high_watermark: int | None = None
) -> bool:
    """Return whether ``end`` is certain to be the end of the log after a clean stop.

    A broker that stops writes the log end as recovery point (LogManager.shutdown) and as the name of a producer
    snapshot. ``evidence``: kind of file -> the end that it proves. If only one kind proves a later end, its file counts
    as damaged. Give ``high_watermark`` only for a log without followers, where it equals the log end.
    """
    later = sum(offset > end for offset in evidence.values())
    return later <= 1 and (recovery_point == end or high_watermark == evidence.get(SNAPSHOT) == end)


def indexed_end(segment: Segment) -> int:
    """Return the offset after the last entry of ``.index`` or ``.timeindex``, whichever is lower; 0 if one has none.

    An entry that does not rise is ignored, with all later entries. A broker adds entries to both indexes together
    (LogSegment.append), so a single damaged index proves nothing.
    """
    base = segment.base_offset or 0
    offsets = [(each.offset, each.position) for each in OffsetIndex(segment.sibling(INDEX) or b"", base)]
    times = [(each.offset, each.timestamp) for each in TimeIndex(segment.sibling(TIME_INDEX) or b"", base)]
    return min(_last_rising(offsets), _last_rising(times)) + 1


def _last_rising(entries: Sequence[tuple[int, int]]) -> int:
    last = -1, -1
    for entry in entries:
        if entry[0] <= last[0] or entry[1] <= last[1]:
            break
        last = entry
    return last[0]


def first_evidence_of(part: Partition, epochs: Sequence[EpochEntry] | None) -> dict[str, int]:
    """Return kind of file -> the log start offset that files of this kind prove: the log began there or below.

    A broker that deletes segments or records raises the start offset of the first epoch to the log start offset
    (UnifiedLog.maybeIncrementLogStartOffset, LeaderEpochFileCache.truncateFromStart). In a tiered topic the epochs
    begin at the first remote offset. An index without a ``.log`` proves that a segment began there: a broker renames a
    deleted ``.log`` before its indexes (LogSegment.changeFileSuffixes). A segment with an empty ``.timeindex`` had no
    records, as after compaction. If all segments before the first log had no records, the result is empty.
    """
    found: dict[str, int] = {}
    logs = {posixpath.basename(each.path).partition(f".{LOG}")[0] for each in part.segments}
    bases = _index_bases(part)
    first = next((each.base_offset or 0 for each in part.logs), 0)
    if before := {stem for base, stem in bases if base < first}:
        times = {entry.name: entry.size for entry in part.others}
        if all(times.get(f"{stem}.{TIME_INDEX}") == 0 for stem in before):
            return {}
    if alone := [base for base, stem in bases if stem not in logs]:
        found["index file"] = min(alone)
    if epochs:
        found["leader epochs"] = epochs[0].start_offset
    return found


def _index_bases(part: Partition) -> list[tuple[int, str]]:
    return [named for entry in part.others if (named := _index_base(entry.name)) is not None]


@lru_cache(1 << 8)
def _index_base(name: str) -> tuple[int, str] | None:
    """Return base offset and name without suffix of an index file; None for a name that has not 20 digits."""
    found, stem = INDEX_NAME.fullmatch(name), name.partition(".")[0]
    return None if found is None or not file_names.is_padded(stem) else (int(found["offset"]), stem)


def committed(topic: str, partition: Partition, names: Mapping[bytes, str]) -> Iterator[tuple[tuple[str, int], int]]:
    """Yield topic, partition and committed offset of each readable commit; for a share group the start offset.

    ``partition`` is a partition of ``topic``, a coordinator's topic. ``names``: topic id -> name, for share groups.
    """
    for record in _records(topic, partition):
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
    from kdump.segments import resync

    for segment in partition.segments:
        try:
            with segment.open() as source:
                for region in resync.read(source, on_error="resync", first_offset=segment.base_offset):
                    if isinstance(region, RecordBatch) and not region.is_control:
                        yield from _of_batch(topic, region)
        except UnreadableError:  # the check of the partition reports it
            continue


def _of_batch(topic: str, batch: RecordBatch) -> Iterator[DecodedRecord]:
    from kdump.internal_topics.decode import decode

    try:
        for record in batch.records():
            decoded = decode(topic, record.key, record.value)
            if decoded is not None:
                yield decoded
    except DamageError:  # the records before the damage are valid
        return
