"""Reads the metadata log: merges its copies, and makes the image or the events up to an offset or time.

The image begins with the newest valid snapshot in these limits; :mod:`.replay` applies the later records.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.answers.metadata.cluster_image import ClusterImage
from kdump.answers.metadata.records import TOPIC, MetadataRecord, Undecoded, appended, read_batch
from kdump.answers.metadata.replay import Break, MetadataReplay
from kdump.checks import kraft_snapshot
from kdump.errors import Reporter, UnreadableError, UsageError, discard, many
from kdump.log_dirs.file_names import KRAFT_SNAPSHOT_NAME, is_kraft_snapshot, snapshot_id
from kdump.primitives.timestamps import iso, iso_or_ms
from kdump.records.record_batch import Batches, RecordBatch
from kdump.segments import log_end, resync
from kdump.segments.regions import PLAIN_DATA, Damage, RunKinds, Trailing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from kdump.answers.metadata.events import Event
    from kdump.log_dirs.files import Files
    from kdump.log_dirs.partition import Partition, Segment


NOTHING: Final = (
    "no metadata log is here: expected the folder __cluster_metadata-0, or a .checkpoint file of that folder"
)


class SnapshotFile(NamedTuple):
    """A snapshot. Its name has the end offset (exclusive) and the epoch; both are 0 for ``bootstrap.checkpoint``."""

    end_offset: int
    epoch: int
    files: Files
    path: str
    limit: int
    """The size of the largest batch accepted, in bytes."""

    @property
    def name(self) -> str:
        return self.files.shown(self.path)

    def batches(self) -> Iterator[RecordBatch]:
        """Yield the batches of the snapshot up to any damage. Offsets begin at 0. Raises UnreadableError."""
        with self.files.open(self.path) as source:
            source.limit = self.limit
            for region in resync.read(source):
                if isinstance(region, RecordBatch):
                    yield region


class Copies:
    """The copies of one cluster's metadata log: partitions of its topic, or of no named topic. Others are ignored."""

    def __init__(self, partitions: Iterable[Partition], report: Reporter) -> None:
        self.report = report
        self.partitions = tuple(part for part in partitions if part.topic in (TOPIC, None))
        self._logs: list[tuple[Segment, ...]] = []
        self.snapshots: list[SnapshotFile] = []
        self.has_unread = False
        self._sound: dict[SnapshotFile, bool] = {}
        for partition in self.partitions:
            self._take(partition)
        self.snapshots.sort(key=lambda found: (found.end_offset, found.epoch, found.name))

    def __bool__(self) -> bool:
        return bool(self._logs or self.snapshots)

    def sources(self) -> Iterator[tuple[Files, str]]:
        """Yield the storage and path of each snapshot and segment."""
        yield from ((one.files, one.path) for one in self.snapshots)
        yield from ((one.files, one.path) for log in self._logs for one in log)

    def _take(self, partition: Partition) -> None:
        named = [segment.path for segment in partition.segments if is_kraft_snapshot(segment.path)]
        beside = [entry.path for entry in partition.others if KRAFT_SNAPSHOT_NAME.fullmatch(entry.name)]
        for path in named + beside:
            end, epoch = snapshot_id(posixpath.basename(path)) or (0, 0)
            self.snapshots.append(SnapshotFile(end, epoch, partition.files, path, partition.limit))
        log = tuple(segment for segment in partition.segments if segment.path not in named)
        if log:
            self._logs.append(log)

    def sound(self, snapshot: SnapshotFile) -> bool:
        """Return whether a snapshot is valid. Report its first problem, once."""
        if snapshot not in self._sound:
            self._sound[snapshot] = self._check(snapshot)
        return self._sound[snapshot]

    def _check(self, snapshot: SnapshotFile) -> bool:
        try:
            checked = kraft_snapshot.check(snapshot.files, snapshot.path, limit=snapshot.limit, copies=True)
        except UnreadableError as error:
            self.report.fail(error)
            return False
        wrong = [finding for finding in checked.findings if not finding.is_remark]
        if wrong:
            self.report.damage(f"{snapshot.name}: {wrong[0].text}; kdump does not use this snapshot")
        return not wrong

    def first_offset(self) -> int | None:
        """Return the first offset of the logs, or None without a segment."""
        return min((log[0].base_offset or 0 for log in self._logs), default=None)

    def batches(self, start: int) -> Iterator[Batches]:
        """Yield the batches that end at or after ``start``. A run of a single copy may begin earlier."""
        if len(self._logs) == 1:
            return self._log(self._logs[0], start, PLAIN_DATA)
        return self._merged([self._batches(log, start) for log in self._logs])

    def _batches(self, log: tuple[Segment, ...], start: int) -> Iterator[RecordBatch]:
        found = self._log(log, start, None)
        return (batch for batch in found if isinstance(batch, RecordBatch))

    def _log(self, log: tuple[Segment, ...], start: int, runs: RunKinds | None) -> Iterator[Batches]:
        for number, segment in enumerate(log):
            following = log[number + 1].base_offset if number + 1 < len(log) else None
            if following is not None and following <= start:
                continue
            try:
                yield from self._segment(segment, start, runs)
            except UnreadableError as error:
                self.has_unread = True
                self.report.fail(error)

    def _segment(self, segment: Segment, start: int, runs: RunKinds | None) -> Iterator[Batches]:
        for region in resync.of_segment(segment, runs):
            if isinstance(region, Batches):
                if region.last_offset >= start:
                    yield region
            elif isinstance(region, Damage | Trailing):
                log_end.report_region(segment, region, self.report)

    def _merged(self, streams: list[Iterator[RecordBatch]]) -> Iterator[RecordBatch]:
        """Yield batches in offset order; at equal offsets the batch of the newest epoch. Report different batches."""
        heads = [next(stream, None) for stream in streams]
        end, epoch = -1, -1
        while any(head is not None for head in heads):
            there = [head for head in heads if head is not None]
            first = min(there, key=lambda head: (head.base_offset, -head.leader_epoch))
            own = first.leader_epoch
            rival = max(head.leader_epoch for head in there if head.base_offset <= first.last_offset)
            if first.base_offset >= end and own >= epoch and rival == own:
                for other in there:
                    if _same_place(first, other) and other.crc != first.crc:
                        text = f"offset {first.base_offset}: copies of the metadata log have different batches of epoch"
                        why = "one copy is damaged, or the copies belong to different clusters"
                        self.report.damage(f"{text} {own}: {why}")
                end, epoch = first.last_offset + 1, own
                yield first
            elif own < max(epoch, rival):
                text = f"offset {first.base_offset}: a copy has a batch of epoch {own}"
                self.report.note(
                    f"{text} that later leaders do not have: the batch was not committed, and kdump skips it"
                )
            heads = [
                next(stream, None) if head is first or (head is not None and _same_place(first, head)) else head
                for stream, head in zip(streams, heads, strict=True)
            ]


def _same_place(one: RecordBatch, other: RecordBatch) -> bool:
    return one.base_offset == other.base_offset and one.leader_epoch == other.leader_epoch


MOST_BREAKS: Final = 20


def image_of(
    partitions: Iterable[Partition], report: Reporter, *, offset: int | None = None, at: int | None = None
) -> ClusterImage | None:
    """Like :meth:`MetadataLog.image`; None without ``__cluster_metadata``. Batches that a merge drops get no note."""
    copies = Copies((one for one in partitions if one.topic is not None), report._replace(note=discard))
    return MetadataLog(copies).image(offset=offset, at=at) if copies else None


def topic_names(image: ClusterImage | None) -> dict[bytes, str]:
    """Return the names of topics by id; empty without an image."""
    return {} if image is None else {number: topic.name for number, topic in image.topics.by_id.items()}


def topic_ids(image: ClusterImage | None) -> dict[str, bytes]:
    """Return the ids of topics by name; empty without an image."""
    return {name: number for number, name in topic_names(image).items()}


def partition_count(image: ClusterImage | None, topic: str) -> int | None:
    """Return the number of partitions of a topic; None if there is no image or no such topic."""
    found = None if image is None else image.topics.by_name.get(topic)
    return None if found is None else len(found.partitions)


class MetadataLog:
    """The metadata log, merged from its copies. :class:`Breaks` reports records that cannot be applied as damage."""

    def __init__(self, copies: Copies) -> None:
        self.copies = copies
        self.breaks = 0
        """The number of :class:`Break` found by the last call of :meth:`image`."""

    def image(self, *, offset: int | None = None, at: int | None = None) -> ClusterImage:
        """Return the image of the records below ``offset``, before the first that was appended after ``at`` (ms).

        Replay begins with the newest valid snapshot in these limits, else with an empty image. Missing records are
        reported as damage. Raises UsageError if the oldest valid snapshot is later, and the log does not start at 0.
        """
        breaks = Breaks(self.copies)
        image = self._begin(offset, at, breaks)
        replay = MetadataReplay(image, breaks, to=offset, at=at)
        for batch in self.copies.batches(image.end_offset):
            if not replay.add(batch):
                break
        breaks.finish()
        self.breaks = breaks.count
        return image

    def known_image(self, where: str, *, offset: int | None = None, at: int | None = None) -> ClusterImage:
        """Like :meth:`image`. Raises UsageError for a time before the log, UnreadableError if no record is readable."""
        image = self.image(offset=offset, at=at)
        if image.end_offset == 0 and offset != 0:
            begins = None if at is None else self.begins_at()
            if at is not None and begins is not None and at < begins:
                raise UsageError(f"the log begins at {iso_or_ms(begins)}: there is no image at {iso_or_ms(at)}")
            raise UnreadableError(where, "no record of the metadata log can be read")
        return image

    def begins_at(self) -> int | None:
        """Return the largest timestamp of the first batch of the log in ms; None for an empty log."""
        first = next(iter(self.copies.batches(self.copies.first_offset() or 0)), None)
        return None if first is None else next(iter(appended(first))).timestamp

    def history(self, *, offset: int | None = None, at: int | None = None) -> Iterator[Event]:
        """Yield the events of the records of :meth:`image`. Events before the start of the log are unknown."""
        breaks, snapshots = Breaks(self.copies), self.copies.snapshots
        image = self._oldest(breaks)
        from kdump.answers.metadata.events import Events

        events = Events(snapshots[-1].end_offset if snapshots else 0)
        replay = MetadataReplay(image, breaks, to=offset, at=at, observer=events)
        for batch in self.copies.batches(image.end_offset):
            wanted = replay.add(batch)
            yield from events.take()
            if not wanted:
                break
        breaks.finish()

    def _begin(self, offset: int | None, at: int | None, breaks: Breaks) -> ClusterImage:
        """Return the image of the newest valid snapshot up to ``offset`` and ``at``, or empty. Raises UsageError."""
        for snapshot in reversed(self.copies.snapshots):
            if offset is not None and snapshot.end_offset > offset:
                continue
            if self.copies.sound(snapshot) and (at is None or last_time(snapshot) <= at):
                return load(snapshot, breaks)
        if self.copies.first_offset() != 0 and (offset is not None or at is not None):
            oldest = next(filter(self.copies.sound, self.copies.snapshots), None)
            if oldest is None:
                return ClusterImage()
            time = iso(last_time(oldest))
            raise UsageError(
                f"the log no longer has this state: the oldest image is at offset {oldest.end_offset}, {time}"
            )
        return ClusterImage()

    def _oldest(self, breaks: Breaks) -> ClusterImage:
        """Return the image of the newest valid snapshot that is not after the start of the log.

        Without one, return the oldest valid snapshot's image; an empty image without one, or without a log after 0.
        """
        first = self.copies.first_offset() or 0
        there = self.copies.snapshots
        below = [snapshot for snapshot in there if snapshot.end_offset <= first]
        above = [snapshot for snapshot in there if snapshot.end_offset > first and first]
        for snapshot in [*reversed(below), *above]:
            if self.copies.sound(snapshot):
                return load(snapshot, breaks)
        return ClusterImage()


class Breaks:
    """Counts breaks of a replay. Reports MOST_BREAKS as damage, without their effect if a segment is unreadable."""

    def __init__(self, copies: Copies) -> None:
        self._copies, self._damage = copies, copies.report.damage
        self.count = 0

    def __call__(self, found: Break) -> None:
        self.count += 1
        if self.count <= MOST_BREAKS:
            self._damage(found.cause if self._copies.has_unread else found.text)

    def finish(self) -> None:
        if self.count > MOST_BREAKS:
            self._damage(f"{many(self.count - MOST_BREAKS, 'more record')} cannot be replayed")


def load(snapshot: SnapshotFile, broken: Callable[[Break], None]) -> ClusterImage:
    """Return the image in a snapshot. Raises UnreadableError."""
    image = ClusterImage()
    replay = MetadataReplay(image, broken)
    for batch in snapshot.batches():
        image.end_offset = min(image.end_offset, batch.base_offset)  # a node does not compare these offsets
        replay.add(batch)
    image.end_offset, image.epoch, image.timestamp = snapshot.end_offset, snapshot.epoch, last_time(snapshot)
    return image


def last_time(snapshot: SnapshotFile) -> int:
    """Return the time of the last log record that a snapshot covers, in ms; -1 if the snapshot has no header."""
    for batch in snapshot.batches():
        for record in read_batch(batch):
            if isinstance(record, Undecoded) or record.name != "SnapshotHeaderRecord":
                return -1
            return _time_of(record)
    return -1


def _time_of(header: MetadataRecord) -> int:
    return int(header.fields["lastContainedLogTimestamp"])
