"""Compares ``__remote_log_metadata``, which lists copied segments, with remote storage and the local log (KIP-405).

A broker finds listed segments by leader epoch and offset. It never reads or deletes a segment that is not listed.
"""

from __future__ import annotations

import posixpath
from base64 import urlsafe_b64decode, urlsafe_b64encode
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.checks import folder
from kdump.checks.evidence import epochs_of
from kdump.errors import IncompleteCopyError, PartlyUnreadableError, Reporter, StoreError, many, offsets_are, raise_it
from kdump.findings import Finding, Level, remark
from kdump.findings.codes import Code
from kdump.internal_topics import remote_log_metadata
from kdump.log_dirs import file_names
from kdump.log_dirs.tiered_storage import folder_id, local_id
from kdump.log_reader.remote_segments import COPIED, COPYING, DELETING, TopicIdPartition
from kdump.primitives.timestamps import span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from kdump.errors import UnreadableError
    from kdump.formats.leader_epoch import EpochEntry
    from kdump.log_dirs.partition import Partition, Segment
    from kdump.log_reader.remote_segments import RemoteSegment, RemoteSegments

STUCK_MS: Final = 3_600_000
"""After so many ms an unfinished copy or deletion counts as stuck."""
LOST: Final = "Keep every replica of the partition: the disks have the only copies of these records."


class UnreadCopies(NamedTuple):
    """The unreadable parts of remote storage: ids of segments (16 bytes), and folders (shown paths)."""

    segments: frozenset[bytes] = frozenset()
    folders: tuple[str, ...] = ()

    @classmethod
    def of(cls, errors: Iterable[UnreadableError]) -> UnreadCopies:
        """Return the unreadable parts from a finder's errors. Segments with incomplete copies count as readable."""
        paths = [str(one.path) for one in errors if not isinstance(one, IncompleteCopyError | PartlyUnreadableError)]
        ids = {path: _id_of(posixpath.basename(path)) for path in paths}
        folders = tuple(path for path, segment_id in ids.items() if segment_id is None)
        return cls(frozenset(one for one in ids.values() if one is not None), folders)


NOTHING_UNREAD: Final = UnreadCopies()


class _TieredPartition(NamedTuple):
    """A partition: its local replica, its folder in remote storage, and the segments there by id (``stored``)."""

    key: TopicIdPartition
    local: Partition | None
    remote: Partition | None
    stored: dict[bytes, Segment]
    unread: UnreadCopies

    @property
    def shown(self) -> str:
        if self.remote is not None:
            return self.remote.files.shown(self.remote.folder)
        return f"{self.key.topic}-{_text(self.key.topic_id)}/{self.key.partition}"

    def file(self, listed: RemoteSegment) -> str:
        stored = self.stored.get(listed.id)
        name = f"{listed.start:020}-{_text(listed.id)}.{file_names.LOG}"
        return posixpath.join(self.shown, name) if stored is None else stored.name

    def may_hold(self, listed: RemoteSegment) -> bool:
        """Return whether a listed segment that was not found may exist: it, or its folder, is unreadable."""
        if listed.id in self.unread.segments or (self.remote is None and self.unread.folders):
            return True
        return any(f"{self.shown}/".startswith(f"{one.rstrip('/')}/") for one in self.unread.folders)

    @property
    def local_start(self) -> int | None:
        logs = self.local.logs if self.local is not None else ()
        return min((one.base_offset for one in logs if one.base_offset is not None), default=None)


def check(
    local: Iterable[Partition],
    remote: Iterable[Partition],
    listed: RemoteSegments,
    at: int | None,
    unread: UnreadCopies = NOTHING_UNREAD,
    fail: Callable[[UnreadableError], None] = raise_it,
) -> Iterator[Finding]:
    """Yield the findings on tiered topics. ``local`` and ``remote`` are partitions of log dirs and of remote storage.

    ``listed``: the segments in ``__remote_log_metadata``. Without any record of it there is at most one remark. ``at``
    is the current time in ms; if it is None, no copy or deletion is reported as stuck. Segments in ``unread`` are not
    reported as absent. If an object store does not return a topic id, ``fail`` receives the error, and missing offsets
    and leader epochs of the partition are not reported.
    """
    unsure: set[tuple[str | None, int | None]] = set()
    places = _places(_identified(local, unsure, fail), remote, listed, unread)
    if not listed.known and places:
        text = f"no record of {remote_log_metadata.TOPIC} is in the given paths: the list of remote segments is unknown"
        yield remark(next(iter(places.values())).shown, Code.UNLISTED, text)
        return
    by_partition: dict[TopicIdPartition, list[RemoteSegment]] = {key: [] for key in places}
    for segment in listed.segments.values():
        by_partition[segment.partition].append(segment)
    for key, place in places.items():
        segments = sorted(by_partition[key], key=lambda one: (one.start, one.end))
        yield from _there(place, segments, is_damaged=listed.is_damaged)
        yield from _stuck(place, segments, listed.deletions.get(key), at)
        if (key.topic, key.partition) not in unsure:
            yield from _whole(place, [one for one in segments if one.state == COPIED])


def _identified(
    local: Iterable[Partition],
    unsure: set[tuple[str | None, int | None]],
    fail: Callable[[UnreadableError], None],
) -> Iterator[tuple[str | None, Partition]]:
    """Yield (topic id, partition) for local partitions. ``unsure`` receives those whose id a store does not return."""
    for part in local:
        failed: list[UnreadableError] = []
        if part.topic is not None and folder.leftover_of(part) is None:
            yield local_id(part, Reporter(fail=failed.append)), part
        for error in failed:
            if isinstance(error, StoreError):
                unsure.add((part.topic, part.partition))
                fail(error)


def _places(
    local: Iterable[tuple[str | None, Partition]],
    remote: Iterable[Partition],
    listed: RemoteSegments,
    unread: UnreadCopies,
) -> dict[TopicIdPartition, _TieredPartition]:
    replicas: dict[tuple[str, str | None, int | None], Partition] = {}
    for topic_id, part in local:
        replicas.setdefault((part.topic or "", topic_id, part.partition), part)
    found = {}
    for one in remote:
        topic_id = folder_id(one)
        if one.topic is None or one.partition is None or topic_id is None:
            continue
        key = TopicIdPartition(one.topic, urlsafe_b64decode(f"{topic_id}=="), one.partition)
        stored = {segment_id: segment for segment in one.segments if (segment_id := _id(segment)) is not None}
        found[key] = _TieredPartition(key, replicas.get((key.topic, topic_id, key.partition)), one, stored, unread)
    for key in [*(segment.partition for segment in listed.segments.values()), *listed.deletions]:
        if key not in found:
            replica = replicas.get((key.topic, _text(key.topic_id), key.partition))
            found[key] = _TieredPartition(key, replica, None, {}, unread)
    return found


def _there(place: _TieredPartition, segments: list[RemoteSegment], *, is_damaged: bool) -> Iterator[Finding]:
    """Compare listed and stored segments. Unlisted ones are a remark if the list ``is_damaged``, or has no segment."""
    for one in segments:
        stored = place.stored.get(one.id)
        if one.state != COPIED:
            continue
        if stored is None and place.may_hold(one):
            continue
        if stored is None:
            start = place.local_start
            held = start is not None and start <= one.start
            text = f"the segment is listed as copied (offsets {one.start} to {one.end}), but is not in remote storage"
            yield Finding(
                level=Level.LOG,
                file=place.file(one),
                kind=Code.REMOTE_ABSENT,
                text=f"{text}; the local log still has these offsets" if held else text,
                offset=one.start,
                advice=LOST,
            )
        elif stored.size != one.size:
            yield Finding(
                level=Level.LOG,
                file=stored.name,
                kind=Code.REMOTE_SIZE,
                text=f"the size of the segment differs from its size in {remote_log_metadata.TOPIC}",
                expected=one.size,
                found=stored.size,
                advice=LOST,
            )
    known = {one.id for one in segments}
    unlisted = [segment for segment_id, segment in place.stored.items() if segment_id not in known]
    if unlisted and not segments:
        text = (
            f"remote storage has {many(len(unlisted), 'segment')} of the partition, but {remote_log_metadata.TOPIC} in "
            "the given paths lists none"
        )
        yield remark(place.shown, Code.UNLISTED, text)
        return
    for segment in unlisted:
        if is_damaged:
            yield remark(
                segment.name,
                Code.UNLISTED,
                f"the segment is not listed in the readable part of {remote_log_metadata.TOPIC}",
            )
            continue
        yield Finding(
            level=Level.DERIVED,
            file=segment.name,
            kind=Code.UNLISTED,
            text="the segment is not listed: no broker reads or deletes it",
            advice="Delete it in remote storage, with the other objects of the same name.",
        )


def _stuck(
    place: _TieredPartition, segments: list[RemoteSegment], deletion: tuple[int, int] | None, at: int | None
) -> Iterator[Finding]:
    if at is None:
        return
    for one in segments:
        age = at - one.changed_at
        if one.state in {COPYING, DELETING} and age > STUCK_MS:
            what = "copy" if one.state == COPYING else "deletion"
            yield Finding(
                level=Level.DERIVED,
                file=place.file(one),
                kind=Code.REMOTE_COPY if one.state == COPYING else Code.REMOTE_DELETION,
                text=f"the {what} of the segment began {span(age)} ago and is not listed as finished",
                offset=one.start,
                advice="A leader deletes the segment after its next election, or when the retention time is over.",
            )
    if deletion is not None and at - deletion[1] > STUCK_MS:
        yield Finding(
            level=Level.DERIVED,
            file=place.shown,
            kind=Code.REMOTE_DELETION,
            text=f"the deletion of the partition began {span(at - deletion[1])} ago and is not listed as finished",
        )


def _whole(place: _TieredPartition, copied: list[RemoteSegment]) -> Iterator[Finding]:
    """Yield the findings on leader epochs, and on offsets that neither a copied segment nor the local log has."""
    lineage = epochs_of(place.local) if place.local is not None else None
    if lineage:
        known = {entry.epoch for entry in lineage}
        for one in copied:
            if not known & {entry.epoch for entry in one.epochs}:
                epochs = ", ".join(str(entry.epoch) for entry in one.epochs)
                yield remark(
                    place.file(one),
                    Code.REMOTE_EPOCH,
                    f"the local log has none of the leader epochs of this segment ({epochs})",
                )
        copied = [one for one in copied if known & {entry.epoch for entry in one.epochs}]
    end, start = None, place.local_start
    for one in copied:
        if end is not None and one.start > end + 1 and (start is None or end + 1 < start):
            yield _hole(place, end + 1, min(one.start, one.start if start is None else start) - 1)
        end = one.end if end is None else max(end, one.end)
        yield from _epochs(place, one, lineage)
    if end is not None and start is not None and start > end + 1:
        yield _hole(place, end + 1, start - 1)


def _hole(place: _TieredPartition, first: int, last: int) -> Finding:
    return Finding(
        level=Level.LOG,
        file=place.shown,
        kind=Code.REMOTE_HOLE,
        text=f"{offsets_are(first, last)} missing: no remote or local segment has them",
        offset=first,
        advice=LOST,
    )


def _epochs(place: _TieredPartition, one: RemoteSegment, lineage: tuple[EpochEntry, ...] | None) -> Iterator[Finding]:
    text = None
    if not one.epochs or one.epochs[0].start_offset > one.start:
        first = one.epochs[0].start_offset if one.epochs else one.end + 1
        text = f"the leader epochs of the segment begin at offset {first}, but the segment begins at {one.start}"
    elif any(a.epoch >= b.epoch or a.start_offset >= b.start_offset for a, b in pairwise(one.epochs)):
        text = "the leader epochs of the segment and their start offsets are not in rising order"
    elif lineage:
        listed = {entry.epoch for entry in one.epochs}
        ends = [*(entry.start_offset for entry in lineage[1:]), one.end + 1]
        for entry, until in zip(lineage, ends, strict=True):
            if entry.epoch not in listed and max(entry.start_offset, one.start) < min(until, one.end + 1):
                text = (
                    f"leader epoch {entry.epoch}, from offset {entry.start_offset} on, is not listed with the segment"
                )
                break
    if text is not None:
        yield Finding(
            level=Level.LOG,
            file=place.file(one),
            kind=Code.REMOTE_EPOCH,
            text=f"{text}: a broker does not find these offsets",
            offset=one.start,
        )


def _id(segment: Segment) -> bytes | None:
    return _id_of(posixpath.basename(segment.path))


def _id_of(name: str) -> bytes | None:
    found = file_names.SEGMENT_NAME.fullmatch(f"{name.rpartition('.')[0]}.{file_names.LOG}")
    text = None if found is None else found["stem"][len(found["offset"]) + 1 :]
    return urlsafe_b64decode(f"{text}==") if text else None


def _text(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")
