"""Plans one partition: the log of its leading copy. Batches of other copies fill its damaged and missing ranges.

Nothing is written. Copies of another topic are left out. The leading copy is read completely. If it is complete and its
last leader epoch certain, only copies that differ from it are used. Else all are read and ranked again. The new log
gets the batches of the leading copy, then those of others, and last, copy by copy, those of ``.swap`` files and
corrected batches. ``committed_only`` removes batches with offsets at or above the high watermark.
"""

from __future__ import annotations

import posixpath
from contextlib import suppress
from itertools import groupby, pairwise, starmap
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.answers.log_copy import Lineage
from kdump.errors import DamageError, UnreadableError, without_path
from kdump.formats import producer_snapshot
from kdump.formats.sparse_index import MAX_RELATIVE_OFFSET
from kdump.log_dirs import file_names
from kdump.log_dirs.file_names import INDEX_NAME, SEGMENT_NAME
from kdump.log_dirs.files import read_file
from kdump.log_dirs.partition import Segment
from kdump.log_salvage.chains import LeftOutRange
from kdump.log_salvage.epoch_history import BUT, NEVER, EpochHistory, noted
from kdump.log_salvage.merge import UNREADABLE
from kdump.rebuild.copy_scan import BatchSpan, ScannedCopy, filled, has_gap, history
from kdump.rebuild.merging import MergedLog, OffsetSpan, OffsetSpans
from kdump.rebuild.partition_plan import (
    LostOffsets,
    PartitionPlan,
    PlannedPiece,
    PlannedSegment,
    SeenFile,
    SourceRange,
    State,
)
from kdump.segments.log_end import end_of_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from kdump.formats.leader_epoch import EpochEntry
    from kdump.log_salvage.chains import BatchPlace
    from kdump.rebuild.volumes import VolumeFolder

SEGMENT_BYTES: Final = 1 << 30
"""The approximate maximum size of a new segment in bytes; more if the leading copy has a larger segment."""

_OTHER_TOPIC: Final = "the folder has no topic id, and no batch in common with the copies that have a topic id"


class RemoteLog(NamedTuple):
    """The offsets ``start`` to ``end`` - 1 of a partition in remote storage, and their leader epochs."""

    start: int
    end: int
    epochs: tuple[EpochEntry, ...]


class WantedPartition(NamedTuple):
    """A partition and its copies, live ones first. Without copies ``known_end`` may have its end offset."""

    topic: str
    topic_id: bytes | None
    partition: int
    folders: tuple[VolumeFolder, ...]
    is_compacted: bool = False
    is_tiered: bool = False
    committed_only: bool = False
    known_end: int = 0
    remote: RemoteLog | None = None


class _Copy:
    """A partition folder, its leader epochs and its end offset. Its batches are read when they are needed."""

    def __init__(self, folder: VolumeFolder, notes: list[str], *, is_compacted: bool) -> None:
        self.folder = folder
        self.noted = noted(folder.partition, notes.append, lambda error: notes.append(f"{error}; {BUT}"))
        self.problem: str | None = None
        self.seen: tuple[SeenFile, ...] = ()
        self.swapped: tuple[SeenFile, ...] = ()
        self._is_compacted = is_compacted
        self._scanned: ScannedCopy | None = None
        try:
            end = end_of_log(folder.partition)
        except UnreadableError as error:
            self.problem, self.end, epoch = str(error), 0, -1
        else:
            self.end, epoch = end.offset, end.epoch
        self.history = EpochHistory([entry for entry in self.noted if entry.start_offset <= self.end])
        """The leader epochs of the copy, from its checkpoint, and from its batches if they were read."""
        self.newest = max(self.history.newest, epoch)

    @property
    def rank(self) -> tuple[int, int]:
        """The newest leader epoch and the end offset, as a sort key. The leading copy has the highest rank."""
        if self._scanned is None:
            return self.newest, self.end
        return self.history.newest, max(self.scanned.end_offset, self.end)

    @property
    def first(self) -> int:
        """The lowest base offset of a segment with a log; 0 without a segment."""
        return min((each.base_offset or 0 for each in self.folder.partition.segments), default=0)

    @property
    def last(self) -> int:
        """The highest base offset of a segment with a log; 0 without a segment."""
        return max((each.base_offset or 0 for each in self.folder.partition.segments), default=0)

    @property
    def begin(self) -> int:
        """The base offset of the first segment, even if it has only index files; 0 if no segment has a log."""
        return min([self.first, *(base for base, _ in self.missing_segments)])

    @property
    def scanned(self) -> ScannedCopy:
        return self.read_all()

    def read_all(self) -> ScannedCopy:
        """Read the batches, if they were not read before, and update the rank."""
        if self._scanned is None:
            segments = self.folder.partition.segments
            self.seen = _looked_at(segments)
            self._scanned = ScannedCopy(self.folder, segments, is_compacted=self._is_compacted, noted=self.noted)
            self.history = history(self._scanned, self.noted)
        return self._scanned

    def take_as_compacted(self) -> None:
        self._is_compacted = True
        if self._scanned is not None:
            self._scanned.take_as_compacted(self.noted)
            self.history = history(self._scanned, self.noted)

    def doubt_last(self) -> None:
        """Move the last batch to the doubtful batches, because its leader epoch is wrong."""
        self.scanned.doubtful.append(self.scanned.spans.pop())
        self.history = history(self.scanned, self.noted)

    @property
    def is_scanned(self) -> bool:
        return self._scanned is not None

    @property
    def missing_segments(self) -> list[tuple[int, int]]:
        """The segments that have index files but no log, each as its base offset and that of the next segment."""
        partition = self.folder.partition
        there = {each.base_offset for each in partition.segments if each.base_offset is not None}
        found = (INDEX_NAME.fullmatch(entry.name) for entry in partition.others)
        gone = {int(one["offset"]) for one in found if one is not None} - there
        bases = [*sorted(there | gone), NEVER]
        return [(base, following) for base, following in pairwise(bases) if base in gone]

    @property
    def unknown(self) -> list[tuple[int, int]]:
        """The ranges of offsets at which other copies may have more records: damaged, missing, or outside this log."""
        damaged = [_missing(one) for one in self.scanned.left_out]
        return [*damaged, *self.missing_segments, (0, self.first), (max(self.end, self.scanned.end_offset), NEVER)]

    @property
    def lineage(self) -> Lineage:
        end = self.end if self._scanned is None else max(self.end, self.scanned.end_offset)
        return Lineage(tuple(self.history.entries), end)

    def of_swapped(self) -> list[BatchSpan]:
        """Return the batches of ``.swap`` segments. A broker renames these files to segments when it starts."""
        partition = self.folder.partition
        segments = [
            Segment(partition.files, entry.path, entry.size, int(found["offset"]), {}, partition.limit)
            for entry in partition.others
            if (found := SEGMENT_NAME.fullmatch(entry.name)) and found["state"] == f".{file_names.SWAP}"
        ]
        self.swapped = _looked_at(segments)
        return ScannedCopy(self.folder, segments, is_compacted=self._is_compacted).spans


def plan(wanted: WantedPartition) -> PartitionPlan:
    """Plan a partition. Unreadable bytes count as damaged. Raises UnreadableError if a second read fails."""
    if not wanted.folders:
        return _without_copy(wanted)
    notes: list[str] = []
    copies = [_Copy(folder, notes, is_compacted=wanted.is_compacted) for folder in wanted.folders]
    planning = _Planning(wanted, copies, notes)
    if not wanted.is_compacted and planning.has_gaps():
        for copy in copies:
            copy.take_as_compacted()
        planning = _Planning(wanted._replace(is_compacted=True), copies, notes)
    return planning.plan()


def _without_copy(wanted: WantedPartition) -> PartitionPlan:
    """Return the plan of an empty log. It begins after the log in remote storage, whose epochs and start are kept.

    With a later log start, or without the epochs, a broker would delete the segments in remote storage.
    """
    remote = wanted.remote or RemoteLog(0, 0, ())
    end = max(wanted.known_end, remote.end)
    lost = (LostOffsets(remote.end, end, "no volume has them"),) if end > remote.end else ()
    return PartitionPlan(
        topic=wanted.topic,
        topic_id=wanted.topic_id,
        partition=wanted.partition,
        state="lost",
        segments=(PlannedSegment(end, ()),),
        log_start=end if wanted.remote is None else remote.start,
        end=end,
        leader_epoch=max((entry.epoch for entry in remote.epochs), default=-1),
        epochs=remote.epochs,
        lost=lost,
        is_tiered=wanted.is_tiered,
    )


class _Planning:
    def __init__(self, wanted: WantedPartition, found: list[_Copy], notes: list[str]) -> None:
        self._wanted = wanted
        copies, self._others = _of_one_topic(found)
        self._notes = list(notes)
        self._notes += [f"{copy.folder.path} is left out: {_OTHER_TOPIC}" for copy in self._others]
        self._copies = sorted(copies, key=lambda one: one.rank, reverse=True)

    def has_gaps(self) -> bool:
        """Return whether a segment of the leading copy has gaps between spans: the topic was once compacted."""
        return any(starmap(has_gap, pairwise(self._copies[0].scanned.spans)))

    def plan(self) -> PartitionPlan:
        wanted, copies = self._wanted, self._copies
        if self._is_complete(copies[0]) and not self._may_doubt_epoch(copies[0]):
            needed = [copies[0], *(copy for copy in copies[1:] if self._differs(copy))]
        else:
            for copy in copies:
                copy.read_all()
            for copy in copies:
                if self._doubts_epoch(copy):
                    copy.doubt_last()
            copies.sort(key=lambda one: one.rank, reverse=True)
            needed = copies
        self._read = needed
        others = [copy.history for copy in copies[1:]]
        copies[0].history = filled(copies[0].history, copies[0].scanned, copies[0].noted, others)
        if wanted.remote is not None:
            others.append(EpochHistory(wanted.remote.epochs))
        self._history = copies[0].history.completed(others)
        log = self._log = MergedLog(self._history)
        for number, copy in enumerate(needed):
            log.add(number, copy.scanned.spans, self._allowed(copy))
        for number, copy in enumerate(needed):
            log.add(number, copy.of_swapped())
            for span in copy.scanned.doubtful:
                log.add_corrected(number, span, copy.history.at(span.base_offset))
        watermark = self._high_watermark()
        end = max(log.end, self._evidence())
        uncommitted = 0 if watermark is None else max(0, log.end - watermark)
        if wanted.committed_only and watermark is not None and watermark < end:
            log.cut(watermark)
            cut = [one for one in log.left_out if one.kind == "uncommitted"]
            uncommitted = sum(until - start for start, until in map(_missing, cut))
            end = max(watermark, log.end)
        segments = self._segments(end)
        first = segments[0].base_offset if segments else end
        log_start = self._log_start(first, end)
        if not wanted.is_tiered:
            segments = _from(segments, log_start)
        if not segments or max(segments[-1].base_offset, log.end) < end:
            segments.append(PlannedSegment(end, ()))
        lost = tuple(self._lost(log_start if not wanted.is_tiered else max(log_start, first), end))
        sources = tuple(self._sources(log_start))
        left_out = tuple(self._left_out(lost))
        scans = [copy.scanned for copy in needed]
        state: State = "partial" if lost else "merged" if len({one.path for one in sources}) > 1 else "whole"
        return PartitionPlan(
            topic=wanted.topic,
            topic_id=wanted.topic_id,
            partition=wanted.partition,
            state=state,
            sources=sources,
            segments=tuple(segments),
            seen=self._seen(segments),
            log_start=log_start,
            end=end,
            leader_epoch=max(copy.history.newest for copy in copies),
            epochs=tuple(entry for entry in self._history.entries if entry.start_offset <= end),
            lost=lost,
            uncommitted=uncommitted,
            left_out=left_out,
            producer_snapshot=self._producers(segments[0].base_offset),
            highest_producer_id=max(one.highest_producer_id for one in scans),
            newest_ms=tuple((one.segments[-1].path, one.newest_ms) for one in scans if one.segments),
            has_transactions=any(one.has_transactions for one in scans),
            is_tiered=wanted.is_tiered,
            repaired=bool(self._others) or not all(one.is_sound for one in scans),
            notes=tuple(self._notes),
            unreadable=tuple(self._unreadable()),
        )

    def _is_complete(self, leader: _Copy) -> bool:
        scanned = leader.scanned
        if not scanned.is_sound or leader.problem is not None or leader.newest > leader.history.newest:
            return False
        if leader.missing_segments or self._evidence_of(leader) > max(scanned.end_offset, leader.end):
            return False
        starts = [leader.first, *(span.last_offset + 1 for span in scanned.spans)]
        follow = (span.base_offset == start for span, start in zip(scanned.spans, starts, strict=False))
        return self._wanted.is_compacted or all(follow)

    def _may_doubt_epoch(self, copy: _Copy) -> bool:
        """Return whether a single wrong bit may explain the leader epoch of a copy's last batch."""
        spans = copy.scanned.spans
        if not spans or spans[-1].batches > 1 or spans[-1].epoch < 0:
            return False
        others = [one for one in self._copies if one is not copy]
        known = {entry.epoch for one in self._copies for entry in one.noted}
        known |= {span.epoch for one in others if one.is_scanned for span in one.scanned.spans}
        before = [spans[-2].epoch] if len(spans) > 1 else []
        before += [entry.epoch for one in others for entry in one.history.entries]
        before += [entry.epoch for entry in copy.noted]
        return spans[-1].epoch not in known and any(_is_near(spans[-1].epoch, one) for one in before)

    def _doubts_epoch(self, copy: _Copy) -> bool:
        """Return whether the leader epoch of a copy's last batch is wrong by a single bit.

        No checksum covers the epoch of a batch. A broker writes an epoch to its checkpoint before the first batch of
        this epoch. If the copy has no checkpoint, another copy is the evidence: it has the same batch, or its
        checkpoint starts an epoch at this batch.
        """
        if not self._may_doubt_epoch(copy):
            return False
        if copy.noted:
            return True
        last = copy.scanned.spans[-1]
        noted = (entry for one in self._copies for entry in one.noted)
        if any(entry.start_offset == last.base_offset and _is_near(last.epoch, entry.epoch) for entry in noted):
            return True
        content = next(map(_content, last.places()))
        return any(
            _is_near(last.epoch, span.epoch)
            for one in self._copies
            for span in one.scanned.spans
            if one is not copy
            and span.base_offset <= last.base_offset <= span.last_offset
            and content in map(_content, span.places())
        )

    def _differs(self, copy: _Copy) -> bool:
        """Return whether a readable copy has later offsets, has earlier ones while in sync, or would be truncated."""
        leader = self._copies[0]
        if copy.problem is not None:
            return False
        if (copy.first < leader.begin and self._is_in_sync(copy)) or copy.end > leader.end:
            return True
        return copy.lineage.truncation(leader.lineage) is not None

    def _is_in_sync(self, copy: _Copy) -> bool:
        """Return whether a copy reaches the high watermark of the leading copy; True if no checkpoint has it.

        Other copies may have old records that retention or DeleteRecords has deleted from the leading copy.
        """
        watermark = self._copies[0].folder.high_watermark
        return watermark is None or copy.end >= watermark

    def _allowed(self, copy: _Copy) -> Callable[[int, int], bool]:
        """Return a function of a first and last offset: whether batches of this range may be taken from ``copy``.

        Batches before the start of the leading copy's log may not be taken from a copy that lags. Batches that the
        cleaner has removed from the leading copy may not be taken from a damaged copy of a compacted log. The same is
        true of a copy that ends before the leading copy's last segment, which the cleaner never reads. Such a copy may
        lack the tombstones of its keys.
        """
        leader = self._copies[0]
        if copy is leader:
            return lambda *_: True
        begin = 0 if self._is_in_sync(copy) else leader.begin
        has_tombstones = copy.scanned.is_sound and copy.end >= leader.last
        if not self._wanted.is_compacted or has_tombstones:
            return lambda base, _: base >= begin
        damaged = OffsetSpans(map(_missing, leader.scanned.left_out))
        first, end = leader.first, leader.scanned.end_offset

        def allows(base: int, last: int) -> bool:
            return base >= begin and (last < first or base >= end or damaged.hold(base, last + 1))

        return allows

    def _in_lineage(self) -> Iterator[_Copy]:
        """Yield the copies that a broker would not truncate as followers of the leading copy."""
        leader = self._copies[0]
        for copy in self._copies:
            if copy is leader or copy.lineage.truncation(leader.lineage) is None:
                yield copy

    def _high_watermark(self) -> int | None:
        """Return the highest high watermark of the copies of :meth:`_in_lineage`, or None if no checkpoint has one."""
        found = [copy.folder.high_watermark for copy in self._in_lineage()]
        return max((one for one in found if one is not None), default=None)

    def _evidence(self) -> int:
        """Return the highest offset in checkpoints, file names and batch headers: the log end offset or a lower one."""
        return max(map(self._evidence_of, self._in_lineage()), default=0)

    def _evidence_of(self, copy: _Copy) -> int:
        folder = copy.folder
        names = [each.base_offset or 0 for each in folder.partition.segments]
        for entry in folder.partition.others:
            stem, _, rest = entry.name.partition(".")
            if file_names.is_padded(stem) and rest in file_names.SIBLINGS:
                names.append(int(stem))
        names += [entry.start_offset for entry in copy.noted]
        if copy.is_scanned:
            names.append(copy.scanned.claimed_end)
        marks = [folder.high_watermark, folder.recovery_point]
        return max([0, *names, *(mark for mark in marks if mark is not None)])

    def _log_start(self, first: int, end: int) -> int:
        """Return the log start offset: ``first``, or a higher one in a checkpoint. Offsets above ``end`` are ignored.

        The log of a tiered topic may start before ``first``; without a checkpoint it starts at its first leader epoch.
        """
        found = [copy.folder.log_start for copy in self._copies]
        noted_start = max((one for one in found if one is not None and one <= end), default=None)
        if self._wanted.is_tiered:
            if noted_start is not None:
                return noted_start
            return self._history.entries[0].start_offset if self._history.entries else 0
        return max(first, noted_start or 0)

    def _segments(self, end: int) -> list[PlannedSegment]:
        """Return the segments to write. Segments of the leading copy keep their names."""
        leader = self._copies[0]
        bases = sorted({each.base_offset or 0 for each in leader.folder.partition.segments})
        bases = sorted({*bases, *(base for base, _ in leader.missing_segments)})
        made: list[tuple[int, list[PlannedPiece]]] = []
        following = 0
        size = 0
        most = max([SEGMENT_BYTES, *(each.size for each in leader.folder.partition.segments)])
        before: BatchSpan | None = None
        for one in self._log.taken:
            base: int | None = None
            while following < len(bases) and bases[following] <= one.base_offset:
                base = bases[following]
                following += 1
                made.append((base, []))
                size = 0
            if base is None and self._begins_another(made, size, most, before, one):
                named = one.segment.base_offset or 0
                last = -1 if before is None else before.last_offset
                made.append((named if last < named <= one.base_offset else one.base_offset, []))
                size = 0
            corrected = (one.base_offset, one.epoch) if one.corrected else None
            piece = PlannedPiece(one.segment.path, one.position, one.size, corrected)
            _append(made[-1][1], piece)
            size += piece.size
            before = one
        made += [(base, []) for base in bases[following:] if base <= end]
        kept = [(base, pieces) for number, (base, pieces) in enumerate(made) if pieces or number in (0, len(made) - 1)]
        modified = {each.base_offset: each.modified for each in leader.folder.partition.segments}
        return [PlannedSegment(base, tuple(pieces), None if pieces else modified.get(base)) for base, pieces in kept]

    def _seen(self, segments: Sequence[PlannedSegment]) -> tuple[SeenFile, ...]:
        used = {piece.path for segment in segments for piece in segment.pieces}
        return tuple(one for copy in self._read for one in (*copy.seen, *copy.swapped) if one.path in used)

    def _begins_another(
        self,
        made: list[tuple[int, list[PlannedPiece]]],
        size: int,
        most: int,
        before: BatchSpan | None,
        one: BatchSpan,
    ) -> bool:
        """Return whether the span ``one`` must start a new segment. No segment of the leading copy starts there."""
        if not made:
            return True
        if one.last_offset - made[-1][0] > MAX_RELATIVE_OFFSET:
            return True
        if one.copy != 0 and before is not None and before.segment is not one.segment:
            named = one.segment.base_offset or 0
            if before.last_offset < named <= one.base_offset:
                return True
        return size > 0 and size + one.size > most

    def _sources(self, log_start: int) -> Iterator[SourceRange]:
        kept = (one for one in self._log.taken if one.last_offset >= log_start or self._wanted.is_tiered)
        for path, group in groupby(kept, lambda one: self._read[one.copy].folder.path):
            spans = list(group)
            yield SourceRange(path, spans[0].base_offset, spans[-1].last_offset + 1, spans[-1].epoch)

    def _lost(self, start: int, end: int) -> Iterator[LostOffsets]:
        """Yield the offsets that the new log lacks.

        In a compacted log a hole below the last batch is a loss only if every copy is damaged or has no log there. If a
        copy is undamaged there, the cleaner has removed these offsets.
        """
        holes: Iterable[OffsetSpan] = self._log.holes(start, end)
        if self._wanted.is_compacted:
            within: list[OffsetSpan] = []
            past: list[OffsetSpan] = []
            for hole in holes:
                (within if hole.start < self._log.end else past).append(hole)
            for copy in self._read:
                within = list(OffsetSpans(copy.unknown).common(within))
            holes = [*within, *past]
        damages = [(one, OffsetSpans(map(_missing, one))) for copy in self._read if (one := copy.scanned.left_out)]
        missing = OffsetSpans(one for copy in self._read for one in copy.missing_segments)
        for hole in holes:
            yield LostOffsets(*hole, self._why(hole, damages, missing))

    def _why(
        self, hole: OffsetSpan, damages: list[tuple[list[LeftOutRange], OffsetSpans]], missing: OffsetSpans
    ) -> str:
        for left_out, ranges in damages:
            if (found := ranges.meeting(*hole)) is not None:
                one = left_out[found]
                kind = "unreadable" if one.kind == UNREADABLE else "damaged"
                only = "" if len(self._copies) == 1 else ", and no other copy has these offsets"
                return f"{kind} at byte {one.position} of {one.segment.name}{only}: {one.reason}"
        cut = [one for one in self._log.left_out if one.kind == "uncommitted"]
        if (found := OffsetSpans(map(_missing, cut)).meeting(*hole)) is not None:
            return f"their batch is left out by --committed-only: {cut[found].reason}"
        if hole.start >= self._log.end:
            return "no copy has these offsets, but a file name or a checkpoint proves that the log had them"
        if missing.meeting(*hole) is not None:
            return "the segment is missing: only its index files are left"
        return "no copy has these offsets"

    def _left_out(self, lost: Sequence[LostOffsets]) -> Iterator[LeftOutRange]:
        """Yield the left-out batches of the merged log, other topics, and readable damage whose offsets are lost."""
        yield from self._log.left_out
        for copy in self._others:
            for each in copy.folder.partition.segments:
                yield LeftOutRange(each, 0, each.size, "other topic", _OTHER_TOPIC)
        gone = OffsetSpans((each.from_offset, each.until_offset) for each in lost)
        for copy in self._read:
            for one in copy.scanned.left_out:
                if one.kind != UNREADABLE and gone.meeting(*_missing(one)) is not None:
                    yield one

    def _producers(self, base: int) -> SeenFile | None:
        """Return the producer snapshot at the base offset of the first segment, or None."""
        if base == 0:
            return None
        name = f"{base:020}.{file_names.PRODUCER_SNAPSHOT}"
        for copy in self._in_lineage():
            partition = copy.folder.partition
            path = posixpath.join(partition.folder, name)
            try:
                if partition.files.look(path) is not None:
                    seen = SeenFile.of(path)
                    producer_snapshot.read(read_file(partition.files, path))
                    return seen
            except (DamageError, UnreadableError) as error:
                self._notes.append(f"{partition.files.shown(path)}: {without_path(error)}")
        return None

    def _unreadable(self) -> Iterator[str]:
        for copy in self._copies:
            if copy.problem is not None:
                yield copy.problem
        for copy in self._read:
            for one in copy.scanned.left_out:
                if one.kind == UNREADABLE:
                    yield f"{one.segment.name}: byte {one.position}: {one.reason}"


def _of_one_topic(copies: list[_Copy]) -> tuple[list[_Copy], list[_Copy]]:
    """Divide copies into those of the topic, and those that may belong to an older topic with the same name.

    A copy of the second kind has no topic id. It shares offsets, but no batch, with the copies that have one.
    """
    proven = [copy for copy in copies if copy.folder.topic_id is not None]
    if not any(copy.scanned.spans for copy in proven if len(proven) < len(copies)):
        return copies, []
    same: list[_Copy] = []
    others: list[_Copy] = []
    for copy in copies:
        is_same = copy in proven or _may_be_of_one_topic(copy.scanned, [one.scanned for one in proven])
        (same if is_same else others).append(copy)
    return same, others


def _may_be_of_one_topic(copy: ScannedCopy, proven: Iterable[ScannedCopy]) -> bool:
    """Return whether a copy has a batch (offsets, size, checksum) of ``proven`` copies, or none of their offsets."""
    overlaps = False
    for one in proven:
        own = list(_meeting(copy.spans, one.spans))
        if own and _has_common(_contents(own), _contents(_meeting(one.spans, own))):
            return True
        overlaps |= bool(own)
    return not overlaps


def _meeting(spans: Iterable[BatchSpan], others: Iterable[BatchSpan]) -> Iterator[BatchSpan]:
    """Yield the spans that share offsets with ``others``. Each argument is in offset order, and has no overlaps."""
    following = iter(others)
    other = next(following, None)
    for span in spans:
        while other is not None and other.last_offset < span.base_offset:
            other = next(following, None)
        if other is not None and other.base_offset <= span.last_offset:
            yield span


def _contents(spans: Iterable[BatchSpan]) -> Iterator[tuple[int, int, int, int]]:
    for span in spans:
        yield from map(_content, span.places())


def _has_common(contents: Iterator[tuple[int, int, int, int]], others: Iterator[tuple[int, int, int, int]]) -> bool:
    one, other = next(contents, None), next(others, None)
    while one is not None and other is not None:
        if one == other:
            return True
        if one < other:
            one = next(contents, None)
        else:
            other = next(others, None)
    return False


def _content(place: BatchPlace) -> tuple[int, int, int, int]:
    return place.base_offset, place.last_offset, place.size, place.crc


def _is_near(epoch: int, other: int) -> bool:
    return (epoch ^ other).bit_count() == 1


def _looked_at(segments: Iterable[Segment]) -> tuple[SeenFile, ...]:
    """Return sizes and modification times of segments before they are read. Unreadable segments are left out."""
    found = []
    for each in segments:
        with suppress(UnreadableError):
            found.append(SeenFile.of(each.path))
    return tuple(found)


def _missing(one: LeftOutRange) -> tuple[int, int]:
    """Return the range of offsets that may be missing because of a left-out range; 0 and NEVER if unknown."""
    start = 0 if one.missing_from is None else one.missing_from
    stop = NEVER if one.missing_until is None else one.missing_until
    return start, max(start, stop)


def _from(segments: list[PlannedSegment], log_start: int) -> list[PlannedSegment]:
    first = max((number for number, one in enumerate(segments) if one.base_offset <= log_start), default=0)
    return segments[first:]


def _append(pieces: list[PlannedPiece], new: PlannedPiece) -> None:
    """Append a piece. If its bytes follow those of the last piece, extend the last piece instead."""
    last = pieces[-1] if pieces else None
    if (
        last is not None
        and last.path == new.path
        and last.position + last.size == new.position
        and last.corrected is None
        and new.corrected is None
    ):
        pieces[-1] = last._replace(size=last.size + new.size)
    else:
        pieces.append(new)
