"""The reasons why a consumer receives the record at an offset or not.

Each function in :data:`REASONS` returns a :class:`Cause`, or None if it does not apply. :func:`cause` returns the first
cause. Source: Kafka's classes UnifiedLog, LogCleaner, ReplicaManager and LeaderEpochFileCache.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from kdump.errors import offsets_text
from kdump.internal_topics import CLUSTER_METADATA
from kdump.internal_topics.cluster_metadata import TOPIC as METADATA
from kdump.internal_topics.remote_log_metadata import TOPIC as REMOTE_METADATA
from kdump.log_dirs.file_names import DELETE_FOLDER, HIGH_WATERMARKS, LOG_STARTS, Name
from kdump.log_reader.remote_segments import COPIED, COPYING, DELETING
from kdump.primitives.messages import did_you_mean
from kdump.primitives.timestamps import iso_or_ms

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdump.answers.explain.evidence import Block, PartitionEvidence
    from kdump.answers.explain.sightings import Sighting, Span
    from kdump.log_reader.remote_segments import RemoteSegment

Reason: TypeAlias = Literal[
    "visible",
    "control-marker",
    "aborted-transaction",
    "open-transaction",
    "behind-open-transaction",
    "compacted",
    "aborted-transaction-cleaned",
    "control-marker-cleaned",
    "delete-records",
    "retention-time",
    "retention-size",
    "past-end",
    "above-high-watermark",
    "truncated",
    "topic-deleted",
    "not-copied",
    "damaged",
    "unknown",
]
Whereabouts: TypeAlias = Literal["log", "deleted-file", "empty-batch", "remote", "replica", "nowhere"]


@dataclass(frozen=True)
class Fact:
    """A piece of evidence: a path (or one of Kafka's own topics), a byte position if one matters, and a sentence."""

    path: str
    position: int | None
    says: str


class Cause(NamedTuple):
    """A reason, and whether consumers of each isolation level receive the record (None if files do not show it)."""

    reason: Reason
    where: Whereabouts
    because: str
    uncommitted: bool | None = False
    committed: bool | None = False
    facts: tuple[Fact, ...] = ()
    alternatives: tuple[Reason, ...] = ()


class Question(NamedTuple):
    """An offset, the evidence around it, and the current time in ms."""

    block: Block
    offset: int
    at: int

    @property
    def seen(self) -> Sighting | None:
        return self.block.log.records.get(self.offset)

    def bytes_left(self) -> tuple[Whereabouts, tuple[Fact, ...]]:
        """Return where else the record exists ("deleted-file", "replica", "nowhere"), and the fact that shows it."""
        aside = self.block.put_aside(self.offset)
        if aside is not None:
            return "deleted-file", (_holds(aside),)
        other = self.block.elsewhere(self.offset)
        if other is not None:
            return "replica", (_holds(other[1], f" of another broker ({other[0].name})"),)
        return "nowhere", ()


def topic_deleted(question: Question) -> Cause | None:
    """The metadata log has no topic with the folder's topic id, or the partition has no folder."""
    partition = question.block.partition
    image = partition.history.image
    if partition.place is not None:
        topic_id = partition.topic_id
        if image is None or topic_id is None or topic_id in image.topics.by_id or partition.topic == METADATA:
            return None
        return Cause(
            "topic-deleted",
            "log" if question.seen is not None else question.bytes_left()[0],
            "the metadata log has no topic with this folder's id: the topic was deleted. A broker deletes the folder, "
            "or renames it to -stray when it starts",
            facts=(
                Fact(_folder(question), None, "the metadata log has no topic with the folder's topic id"),
                *_removals(question),
            ),
        )
    where, facts = question.bytes_left()
    folders = tuple(Fact(one.path, None, f"a broker renamed the folder to -{one.state}") for one in partition.leftovers)
    facts = (*facts, *folders, *_removals(question))
    if image is not None and partition.topic in image.topics.by_name:
        return Cause("unknown", where, _no_folder(partition, "the topic exists, and "), None, None, facts)
    if partition.history.removals(partition.topic) or any(one.state == DELETE_FOLDER for one in partition.leftovers):
        alternatives: tuple[Reason, ...] = () if image is not None else ("unknown",)
        because = (
            "the topic was deleted" if image is not None else "the partition was deleted, most likely with its topic"
        )
        return Cause("topic-deleted", where, because, facts=facts, alternatives=alternatives)
    nameless = "the metadata log has no topic of this name, and " if image is not None else ""
    return Cause("unknown", where, _no_folder(partition, nameless), None, None, facts)


def _no_folder(partition: PartitionEvidence, known: str) -> str:
    """Return the sentence on a missing folder. It begins with ``known``, the topic's state in the metadata log."""
    if {Name(partition.topic, partition.number), Name(None, None)} & set(partition.folders.unread):
        return f"{known}a folder that may belong to this partition cannot be read"
    image = partition.history.image
    names = {name.topic for name in partition.folders.names if name.topic} | set(image.topics.by_name if image else ())
    near = "" if partition.topic in names else did_you_mean(partition.topic, names)
    return f"{known}no folder of this partition is in these paths{near}"


def damaged(question: Question) -> Cause | None:
    """The offset is in damaged or unreadable bytes, or after a damaged log end (below the high watermark, if known)."""
    partition = question.block.partition
    lost = question.block.log.lost_at(question.offset)
    mark = None if partition.place is None else partition.place.high_watermark
    alternatives: tuple[Reason, ...] = ()
    if lost is None and partition.end <= question.offset and (mark is None or question.offset < mark):
        lost = next((one for one in question.block.log.lost if one.until is None), None)
        alternatives = ("past-end",) if mark is None else ()
    if lost is None or question.seen is not None or question.offset < partition.log_start:
        return None
    where, facts = question.bytes_left()
    says = (
        f"offsets {lost.first} to {'the end' if lost.until is None else lost.until - 1} cannot be read: {lost.reason}"
    )
    what = "the segment with this offset cannot be read" if lost.is_unreadable else "the log is damaged at this offset"
    because = f"{what}: {lost.reason}"
    consumers = None if lost.is_unreadable else False
    if where == "replica":
        because, consumers = f"{because}; another broker has the record: consumers get it if that broker leads", None
    return Cause(
        "unknown" if lost.is_unreadable else "damaged",
        where if facts else "log",
        because,
        consumers,
        consumers,
        facts=(Fact(lost.path, lost.position, says), *facts),
        alternatives=alternatives,
    )


def past_end(question: Question) -> Cause | None:
    """The log ends before the offset: the record was truncated, lost, never written, or is only in another copy."""
    partition = question.block.partition
    if question.offset < partition.end:
        return None
    end = Fact(_folder(question), None, f"the log end offset is {partition.end}")
    for other, epochs, seen in question.block.others:
        sighting = seen.records.get(question.offset)
        if sighting is None or partition.lineage is None:
            continue
        holds = _holds(sighting, f" of another broker ({other.name})")
        cut = epochs.truncation(partition.lineage)
        if cut is not None and question.offset >= cut:
            because = (
                f"the record was lost when leader epoch {partition.lineage.newest} began. {other.name} still has the "
                f"record (leader epoch {sighting.batch.epoch}) until it follows the leader and truncates its log to "
                f"offset {cut}"
            )
            return Cause("truncated", "replica", because, facts=(end, holds))
        because = f"this copy of the log ends at offset {partition.end}; {other.name} has the record"
        return Cause("past-end", "replica", because, facts=(end, holds))
    where, facts = question.bytes_left()
    older = tuple(
        _holds(seen.records[question.offset], " of a deleted topic with the same name")
        for leftover, seen in question.block.leftovers
        if question.offset in seen.records and leftover.topic_id not in (None, partition.topic_id)
    )
    because = f"the log ends at offset {partition.end}: this offset was not written, or its record is lost"
    is_damaged = any(lost.until is None for lost in question.block.log.lost)
    if is_damaged:
        because += "; the record may have been in the damaged bytes at the end of the log"
    alternatives: tuple[Reason, ...] = ("damaged",) if is_damaged else ()
    alternatives += ("topic-deleted",) if older else ()
    return Cause("past-end", where, because, facts=(end, *facts, *older), alternatives=alternatives)


def replaced(question: Question) -> Cause | None:
    """The leader has a newer epoch and lacks the record: this replica will truncate its log before the record."""
    partition, seen = question.block.partition, question.seen
    if seen is None or partition.cut_by is None or question.offset < max(partition.cut_by[0], partition.log_start):
        return None
    cut, leader, epochs = partition.cut_by
    other = next((held for one, _, held in question.block.others if one is leader), None)
    covering = None if other is None else other.covering(question.offset)
    says = (
        f"the log of another broker ({leader.name}) has the newer leader epoch {epochs.newest}, and ends at offset "
        f"{epochs.end}"
    )
    fact = Fact(leader.place.partition.files.shown(leader.place.partition.folder), None, says)
    if covering is not None:
        fact = Fact(
            covering.path,
            covering.position,
            f"the batch of {_range(covering)} of another broker ({leader.name})",
        )
    because = (
        f"the record was lost when leader epoch {epochs.newest} began. The leader {leader.name} has "
        f"{'a different record' if covering is not None else 'no record'} at this offset. This "
        f"replica truncates its log to offset {cut} when it follows the leader"
    )
    return Cause("truncated", "log", because, facts=(_holds(seen), fact))


def above_high_watermark(question: Question) -> Cause | None:
    """The record is not known to be on all in-sync replicas."""
    place = question.block.partition.place
    mark = None if place is None else place.high_watermark
    if place is None or mark is None or question.offset < mark or question.block.partition.is_single_replica:
        return None
    says = f"the high watermark is {mark}"
    facts = (Fact(_checkpoint(question, HIGH_WATERMARKS), None, says),)
    until = "consumers get no records from this offset on until all in-sync replicas have them"
    if place.log_dir.clean:
        return Cause("above-high-watermark", "log", f"{says}: {until}", facts=facts)
    old = "After an unclean stop, or while the broker runs, the checkpoint may be some seconds old"
    because = f"{says} in the checkpoint: {until}. {old}"
    return Cause("above-high-watermark", "log", because, facts=facts, alternatives=("visible",))


def not_named(question: Question) -> Cause | None:
    """The offset is in a segment of the folder that the user did not name in the paths."""
    place, offset = question.block.partition.place, question.offset
    if place is None or not place.partition.unnamed or question.seen is not None:
        return None
    named = [one.base_offset for one in question.block.partition.segments]
    base_offset = max(
        (base for base in (*place.partition.unnamed, *named) if base is not None and base <= offset), default=None
    )
    if base_offset is None or base_offset not in place.partition.unnamed:
        return None
    because = (
        f"this offset is in segment {base_offset}, which is not among the given paths: give the folder as the path"
    )
    return Cause(
        "unknown",
        "nowhere",
        because,
        None,
        None,
        (Fact(_folder(question), None, f"the folder has a segment {base_offset}"),),
    )


def below_log_start(question: Question) -> Cause | None:
    """The offset is below the log start (DeleteRecords, retention), or its segment is only in remote storage."""
    partition = question.block.partition
    place = partition.place
    if place is None or (question.offset >= partition.first_local and question.offset >= partition.log_start):
        return None
    if partition.is_remote and question.offset >= partition.log_start:
        return _remote(question)
    where, facts = question.bytes_left()
    if question.seen is not None:
        where, facts = "log", (_holds(question.seen),)
    reasons = _deletions(question)
    start = partition.log_start
    words = {
        "delete-records": "DeleteRecords moved the log start offset",
        "retention-time": "the segment was older than retention.ms",
        "retention-size": "the log was larger than retention.bytes",
    }
    likely = "most likely " if len(reasons) > 1 else ""
    because = f"the log starts at offset {start}: {likely}{words[reasons[0]]}"
    says = Fact(
        _checkpoint(question, LOG_STARTS) if start > partition.first_local else _folder(question),
        None,
        f"the log start offset is {start}, and the first segment begins at offset {partition.first_local}",
    )
    return Cause(reasons[0], where, because, facts=(says, *facts), alternatives=tuple(reasons[1:]))


def _remote(question: Question) -> Cause:
    partition = question.block.partition
    alternatives: tuple[Reason, ...] = ("aborted-transaction", "control-marker")
    because = "the segment with this offset is only in remote storage (--remote PATH reads the storage)"
    start = Fact(_checkpoint(question, LOG_STARTS), None, f"the log start offset is {partition.log_start}")
    listed = tuple(map(_listed, _copies(question, COPIED)))
    return Cause("visible", "remote", because, True, None, (*listed, start), alternatives)


def not_copied(question: Question) -> Cause | None:
    """The local segment is gone, and no finished remote copy is listed. Brokers read finished copies only."""
    partition = question.block.partition
    local = partition.end if partition.local_start is None else partition.local_start
    if not (partition.remote and partition.is_remote and partition.log_start <= question.offset < local):
        return None
    if _copies(question, COPIED):
        return None
    where, facts = ("remote", (_holds(question.seen),)) if question.seen is not None else question.bytes_left()
    facts = (*map(_listed, _copies(question, COPYING, DELETING)), *facts)
    if _copies(question, DELETING):
        because = "the deletion of the remote segment with this offset has begun: brokers no longer read the segment"
        return Cause("retention-time", where, because, facts=facts, alternatives=("retention-size", "delete-records"))
    because = (
        "the local segment is gone, and no finished copy in remote storage is listed: brokers cannot read the record"
    )
    if question.seen is not None:
        because += "; kdump dump --remote reads the unfinished copy"
    return Cause("not-copied", where, because, facts=facts)


def _copies(question: Question, *states: int) -> list[RemoteSegment]:
    listed = question.block.partition.remote
    return [one for one in listed if one.state in states and one.start <= question.offset <= one.end]


def _listed(one: RemoteSegment) -> Fact:
    state = {COPYING: "its copy has begun", COPIED: "copied", DELETING: "its deletion has begun"}[one.state]
    return Fact(REMOTE_METADATA, None, f"remote segment of offsets {one.start} to {one.end}: {state}")


def _deletions(question: Question) -> list[Reason]:
    """Return the possible reasons why the records below the log start were deleted, the most likely reason first."""
    partition, history = question.block.partition, question.block.partition.history
    policy = history.config(partition.topic, "cleanup.policy")
    found: list[Reason] = []
    if policy is None or "delete" in policy:
        span = history.number(partition.topic, "retention.ms")
        limit = history.number(partition.topic, "retention.bytes")
        if span is None or (span >= 0 and _is_old(question, span)):
            found.append("retention-time")
        if limit is None or limit >= 0:
            found.append("retention-size")
    if partition.log_start > partition.first_local:  # retention deletes only whole segments
        return ["delete-records", *(found if question.offset < partition.first_local else [])]
    return [*found, "delete-records"]


def _is_old(question: Question, span: int) -> bool:
    """Return whether the ``.deleted`` file with the offset is older than ``span`` ms. True if this is unknown."""
    partition = question.block.partition
    segments = [one for one in partition.deleted if (one.base_offset or 0) <= question.offset]
    if not segments or question.offset not in question.block.deleted.records:
        return True
    largest = partition.largest_timestamp(segments[-1])
    return largest < 0 or question.at - largest > span


def after_damage(question: Question) -> Cause | None:
    """A fetch of the offset does not find the record, because damaged bytes come before its batch.

    A broker starts at an index entry, and reads up to the first batch that ends at or after the offset. It does not
    verify CRCs (LogSegment.translateOffset).
    """
    seen = question.seen
    damage = None if seen is None else question.block.log.damage_before(seen.batch)
    if seen is None or damage is None or question.block.partition.fetches(seen, question.offset):
        return None
    at, reason = damage
    because = (
        f"the record's batch is valid, but a fetch of this offset fails at damaged bytes before the batch (byte {at}: "
        f"{reason}): kdump salvage recovers the record"
    )
    facts = (Fact(seen.batch.path, at, f"cannot be read: {reason}"), _holds(seen))
    return Cause("damaged", "log", because, facts=facts)


def control_marker(question: Question) -> Cause | None:
    """The record is a control record of a broker: consumers skip it."""
    seen = question.seen
    if seen is None or not seen.batch.is_control:
        return None
    because = f"the record is a control record ({seen.marker}): consumers skip control records"
    return Cause("control-marker", "log", because, facts=(_holds(seen),))


def aborted_transaction(question: Question) -> Cause | None:
    seen = question.seen
    if seen is None or seen.transaction != "aborted":
        return None
    because = f"producer {seen.batch.producer_id} aborted its transaction"
    return Cause("aborted-transaction", "log", because, True, facts=(_holds(seen),))


def open_transaction(question: Question) -> Cause | None:
    """The record's transaction, or an earlier one of the partition, has not ended."""
    seen, partition = question.seen, question.block.partition
    if seen is None or partition.oldest_open is None:
        return None
    first, producer = partition.oldest_open
    if seen.transaction == "open":
        producer = -1 if seen.batch.producer_id is None else seen.batch.producer_id
        because = (
            f"the transaction that producer {producer} began at offset {partition.opened.get(producer)} has not ended"
        )
        reason: Reason = "open-transaction"
    elif question.offset >= first:
        because = (
            f"a transaction of producer {producer} has been open since offset {first}: read_committed consumers "
            "receive no records from that offset on (see kdump transactions)"
        )
        reason = "behind-open-transaction"
    else:
        return None
    unnamed = () if partition.place is None else partition.place.partition.unnamed
    if producer in partition.doubted:
        unsure = "; but damaged bytes may hold the end marker of the transaction"
    elif any(base > partition.opened.get(producer, 0) for base in unnamed):
        unsure = "; but a segment outside of the given paths may hold the end marker of the transaction"
    else:
        return Cause(reason, "log", because, True, facts=(_holds(seen),))
    alternatives: tuple[Reason, ...] = ("visible",)
    alternatives += ("aborted-transaction",) if reason == "open-transaction" else ()
    because += unsure
    return Cause(reason, "log", because, True, None, (_holds(seen),), alternatives)


def visible(question: Question) -> Cause | None:
    """The record is in the log, and consumers get it, unless an unreadable marker aborts its transaction."""
    seen = question.seen
    if seen is None:
        return None
    if seen.transaction == "unknown":
        because = (
            "the record is in the log, but the end marker of its transaction cannot be read: it may be an ABORT marker"
        )
        return Cause("visible", "log", because, True, None, (_holds(seen),), ("aborted-transaction",))
    because = "the record is in the log, and every consumer gets it"
    facts: tuple[Fact, ...] = (_holds(seen),)
    damage = question.block.log.damage_before(seen.batch)
    if damage is not None:
        at, reason = damage
        because = (
            f"the record is in the log, and a consumer that seeks to its batch gets it. A consumer that starts at an "
            f"earlier offset stops at the damage at byte {at} ({reason})"
        )
        facts = (Fact(seen.batch.path, at, f"cannot be read: {reason}"), *facts)
    return Cause("visible", "log", because, True, True, facts)


REMOVED_MARKER: Final = "the log cleaner removed the record: it was a transaction marker"


def cleaned(question: Question) -> Cause | None:
    """The offset is in a gap: the log cleaner removed the record, or its bytes were lost."""
    batch = question.block.log.covering(question.offset)
    where, facts = question.bytes_left()
    if batch is not None:
        left = "an empty batch" if batch.is_empty else "a batch without this record"
        facts = (Fact(batch.path, batch.position, f"{left} covers {offsets_text(batch.base, batch.last)}"), *facts)
        where = "empty-batch" if batch.is_empty else where
    elif (lost := _lost_bytes(question)) is not None:
        return Cause("damaged", where, lost[0], facts=facts, alternatives=lost[1])
    aside = question.block.put_aside(question.offset)
    if aside is not None:
        return _cleaned_record(question, aside, where, facts)
    if batch is not None and batch.is_control:
        because = f"{REMOVED_MARKER}, and no record of its transaction was left"
        return Cause("control-marker-cleaned", where, because, facts=facts)
    because = (
        "the log cleaner removed the record: it was superseded by a newer record of its key, or it was an expired "
        "tombstone"
    )
    if batch is None:
        facts = (Fact(_folder(question), None, "no batch of the log covers the offset"), *facts)
    if batch is not None and not batch.is_transactional:
        return Cause("compacted", where, because, facts=facts)
    alternatives: tuple[Reason, ...] = ("aborted-transaction-cleaned",)
    alternatives += ("control-marker-cleaned",) if batch is None else ()
    if batch is None and not _is_cleaned(question.block.partition):
        because, alternatives = f"most likely {because}", (*alternatives, "damaged")
    return Cause("compacted", where, because, facts=facts, alternatives=alternatives)


def _is_cleaned(partition: PartitionEvidence) -> bool:
    policy = partition.history.config(partition.topic, "cleanup.policy")
    return partition.first_dirty is not None or "compact" in (policy or "")


def _cleaned_record(question: Question, aside: Sighting, where: Whereabouts, facts: tuple[Fact, ...]) -> Cause:
    """Return why the cleaner removed a record from the log. ``aside``: the same record in a deleted file or folder."""
    if aside.batch.is_control:
        because = f"{REMOVED_MARKER} ({aside.marker}), and no record of its transaction was left"
        return Cause("control-marker-cleaned", where, because, facts=facts)
    if aside.transaction == "aborted":
        because = f"the log cleaner removed the record: producer {aside.batch.producer_id} aborted its transaction"
        return Cause("aborted-transaction-cleaned", where, because, facts=facts)
    alternatives: tuple[Reason, ...] = ("aborted-transaction-cleaned",) if aside.transaction == "unknown" else ()
    newest = question.block.newest.get(aside.key) if aside.key is not None else None
    if aside.key is None:
        because = "the log cleaner removed the record: it had no key"
    elif newest is not None and newest > question.offset:
        because = f"the log cleaner removed the record: offset {newest} has the newest record of its key"
    elif aside.is_tombstone:
        because = "the log cleaner removed the record: it was an expired tombstone"
    else:
        because = "the log cleaner removed the record because of a newer record of its key, which it removed later"
    return Cause("compacted", where, because, facts=facts, alternatives=alternatives)


def _lost_bytes(question: Question) -> tuple[str, tuple[Reason, ...]] | None:
    """Return a sentence on bytes lost between batches, and other possible reasons; None if nothing shows the loss."""
    partition = question.block.partition
    policy = partition.history.config(partition.topic, "cleanup.policy")
    missing = "no batch covers this offset, and a leader leaves no gaps in offsets: the record's bytes are lost"
    if partition.first_dirty is not None:
        if question.offset < partition.first_dirty:
            return None
        return f"{missing}; the log cleaner has reached only offset {partition.first_dirty}", ("compacted",)
    if policy is not None and "compact" not in policy:
        return f"{missing}; the topic is not compacted", ()
    if policy is None and partition.place is not None and partition.place.log_dir.is_log_dir:
        return f"{missing}; no checkpoint shows that the log cleaner ever cleaned this partition", ("compacted",)
    return None


def _holds(seen: Sighting, owner: str = "", what: str = "the record") -> Fact:
    batch = seen.batch
    return Fact(batch.path, batch.position, f"the batch of {_range(batch)}{owner} holds {what}")


def _range(batch: Span) -> str:
    epoch = "" if batch.epoch is None else f" (leader epoch {batch.epoch})"
    return f"{offsets_text(batch.base, batch.last)}{epoch}"


def _folder(question: Question) -> str:
    place = question.block.partition.place
    return "" if place is None else place.partition.files.shown(place.partition.folder)


def _checkpoint(question: Question, name: str) -> str:
    place = question.block.partition.place
    return name if place is None else posixpath.join(place.log_dir.path, name)


def _removals(question: Question) -> tuple[Fact, ...]:
    partition = question.block.partition
    return tuple(
        Fact(CLUSTER_METADATA, None, f"offset {one.offset}: the topic was deleted at {iso_or_ms(one.timestamp_ms)}")
        for one in partition.history.removals(partition.topic)
    )


REASONS: Final[tuple[Callable[[Question], Cause | None], ...]] = (
    topic_deleted,
    not_named,
    not_copied,
    damaged,
    past_end,
    replaced,
    above_high_watermark,
    below_log_start,
    after_damage,
    control_marker,
    aborted_transaction,
    open_transaction,
    visible,
    cleaned,
)


def cause(question: Question) -> Cause:
    """Return the cause of the first reason that applies, or one with the reason ``unknown``."""
    for reason in REASONS:
        found = reason(question)
        if found is not None:
            return _with_older(question, found)
    return Cause("unknown", "nowhere", "the files do not show why", None, None)


def _with_older(question: Question, found: Cause) -> Cause:
    older = question.block.log.older.get(question.offset, ())
    if not older or question.seen is None:
        return found
    epochs = " and ".join(sorted({str(one.batch.epoch) for one in older}))
    because = (
        f"{found.because}; the log also holds a different record of leader epoch {epochs} at this offset: "
        "two leaders wrote this log at once, or a follower did not truncate its log"
    )
    return found._replace(
        because=because, facts=(*found.facts, *(_holds(one, what="a different record") for one in older))
    )
