"""Collects the evidence in files about offsets of one partition, for :mod:`~kdump.answers.explain.reasons`.

:func:`evidence_of` selects the folders. :class:`PartitionEvidence` and :class:`Block` read files at first use.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from kdump.answers.explain.sightings import Sightings, find_ends, look, newest_of_keys
from kdump.answers.log_copy import lineage
from kdump.answers.metadata.image import Copies, MetadataLog
from kdump.answers.producer_state import ProducerReplay
from kdump.answers.retention_rules import largest_timestamp
from kdump.answers.topic_configs import TopicConfigs
from kdump.errors import SILENT, Reporter, discard
from kdump.log_dirs.file_names import SEGMENT_NAME, leftover_state
from kdump.log_dirs.tiered_storage import TieredFiles
from kdump.log_reader.remote_segments import RemoteSegments
from kdump.primitives.encodings import java_config_integer, java_config_is_true
from kdump.records.record_batch import RecordBatch
from kdump.recovery.segment_end import FailsError, indexed_at
from kdump.segments import walk
from kdump.segments.log_end import end_of_log

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from kdump.answers.collector import Place
    from kdump.answers.explain.sightings import Sighting
    from kdump.answers.log_copy import Lineage
    from kdump.answers.metadata.cluster_image import ClusterImage
    from kdump.answers.metadata.events import Event
    from kdump.log_dirs.file_names import Name
    from kdump.log_dirs.partition import Partition, Segment
    from kdump.log_reader.remote_segments import RemoteSegment


class TopicHistory:
    """The topics of a metadata log, and their deletions. Without a metadata log ``image`` is None."""

    def __init__(
        self,
        image: ClusterImage | None,
        past: Callable[[], Iterable[Event]],
        listed: Callable[[], RemoteSegments] = RemoteSegments,
    ) -> None:
        """``past`` (events of the metadata log) and ``listed`` (remote segments) are called only if needed."""
        self.image = image
        self._past = past
        self._listed = listed
        self._configs = None if image is None else TopicConfigs(image)

    @cached_property
    def _removals(self) -> list[Event]:
        return [event for event in self._past() if event.what == "TopicDeleted"]

    @cached_property
    def listed(self) -> RemoteSegments:
        """The segments in ``__remote_log_metadata``, except deleted ones. Some may not be copied completely."""
        return self._listed()

    def removals(self, topic: str) -> list[Event]:
        """Return the deletions of topics named ``topic``, oldest first."""
        return [event for event in self._removals if event.name == topic]

    def config(self, topic: str, name: str) -> str | None:
        """Return a config of KEYS: the topic's own, the dynamic default or Kafka's; None without a metadata log."""
        return None if self._configs is None else self._configs.of(topic, None).settings[name].value

    def number(self, topic: str, name: str) -> int | None:
        text = self.config(topic, name)
        return None if text is None else java_config_integer(text, 64)


def topic_history(
    partitions: Iterable[Partition],
    report: Reporter,
    listed: Callable[[], RemoteSegments] = RemoteSegments,
) -> TopicHistory:
    """Return the history of topics from the copies of ``__cluster_metadata``; ``listed`` reads the remote segments."""
    copies = Copies((one for one in partitions if one.topic is not None), report._replace(note=discard))
    if not copies:
        return TopicHistory(None, tuple, listed)
    log = MetadataLog(copies)
    return TopicHistory(log.image(), log.history, listed)


class OtherCopy(NamedTuple):
    """A partition folder on another broker. ``name`` is the shown path of its log dir."""

    name: str
    place: Place


class ListedFolders(NamedTuple):
    """The partitions that have a folder in the paths (``names``), and those with an unreadable folder (``unread``)."""

    names: Collection[Name] = ()
    unread: Collection[Name] = ()


class Leftover(NamedTuple):
    """A partition folder that is not the current log. ``state``, the suffix of its name, is delete, future or stray."""

    state: str
    path: str
    topic_id: bytes | None
    partition: Partition


@dataclass
class PartitionEvidence:
    """The evidence about one broker's copy of a partition. ``place`` is None if it has no folder, or only leftovers."""

    topic: str
    number: int
    place: Place | None
    history: TopicHistory
    leftovers: tuple[Leftover, ...] = ()
    others: tuple[OtherCopy, ...] = ()
    folders: ListedFolders = field(default_factory=ListedFolders)
    _largest: dict[str, int] = field(default_factory=dict)

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        return () if self.place is None else tuple(one for one in self.place.partition.segments if not _state(one))

    @cached_property
    def deleted(self) -> tuple[Segment, ...]:
        """The ``.deleted``, ``.swap`` and ``.cleaned`` segments, which are not part of the log."""
        return () if self.place is None else tuple(one for one in self.place.partition.segments if _state(one))

    def fetches(self, seen: Sighting, offset: int) -> bool:
        """Return whether a fetch of ``offset`` finds the batch of ``seen``; True outside the log's segments."""
        segment = next((one for one in self.segments if one.name == seen.batch.path), None)
        if segment is None:
            return True
        try:
            start = indexed_at(segment, offset)
        except FailsError:
            return False
        with segment.open() as source:
            for region in walk.walk(source, start):
                if not isinstance(region, RecordBatch):
                    return False
                if region.last_offset >= offset:
                    return region.position == seen.batch.position
        return False

    @cached_property
    def topic_id(self) -> bytes | None:
        return None if self.place is None else self.place.partition.topic_id(self.place.report.damage)

    @cached_property
    def _producers(self) -> ProducerReplay | None:
        if self.place is None:
            return None
        log = self.place._replace(partition=self.place.partition._replace(segments=self.segments))
        replay = ProducerReplay(log)
        replay.read(self.segments, self.place.report.damage)
        return replay

    @cached_property
    def end(self) -> int:
        return 0 if self._producers is None else max(self._producers.end_offset, self.log_start)

    @cached_property
    def known_end(self) -> int:
        """The largest of: log end offsets of all copies, high watermark, base offsets of segments outside the paths."""
        copies = [other.place.partition for other in self.others] + [one.partition for one in self.leftovers]
        mark = 0 if self.place is None else self.place.high_watermark or 0
        unnamed = () if self.place is None else self.place.partition.unnamed
        return max(self.end, mark, *(end_of_log(copy).offset for copy in copies), *unnamed, 0)

    @cached_property
    def opened(self) -> dict[int, int]:
        """Producer id -> the first offset of its open transaction."""
        state = {} if self._producers is None else self._producers.state.open
        return {producer: one.first_offset for producer, one in state.items()}

    @cached_property
    def oldest_open(self) -> tuple[int, int] | None:
        """The first offset and producer id of the oldest open transaction; None if none is open."""
        return min(((first, producer) for producer, first in self.opened.items()), default=None)

    @property
    def doubted(self) -> set[int]:
        return set() if self._producers is None else self._producers.doubted

    @property
    def first_local(self) -> int:
        """The base offset of the first segment, also of a remote one that is read; 0 without segments."""
        return (self.segments[0].base_offset or 0) if self.segments else 0

    @cached_property
    def local_start(self) -> int | None:
        """The base offset of the first local segment; None without such a segment."""
        local = (one.base_offset for one in self.segments if not isinstance(one.files, TieredFiles))
        return min((base for base in local if base is not None), default=None)

    @property
    def log_start(self) -> int:
        """The log start offset: from the checkpoint (if not tiered, first_local at least), else of a segment."""
        start = None if self.place is None else self.place.log_start
        if start is None:
            return (
                min((one.start for one in self.remote), default=self.first_local) if self.remote else self.first_local
            )
        return start if self.is_remote else max(start, self.first_local)

    @cached_property
    def is_remote(self) -> bool:
        """Whether the topic is tiered: its older segments may be in remote storage.

        If the topic's config is unknown, the files decide: either ``__remote_log_metadata`` lists its segments, or the
        log starts below the local log, as only a tiered one does (LogManager.checkpointLogStartOffsetsInDir).
        """
        enabled = self.history.config(self.topic, "remote.storage.enable")
        if enabled is not None:
            return java_config_is_true(enabled)
        start = None if self.place is None else self.place.log_start
        return bool(self.remote) or (start is not None and self.local_start is not None and start < self.local_start)

    @cached_property
    def remote(self) -> tuple[RemoteSegment, ...]:
        """The segments of this partition and topic id (any id if it is unknown) in ``__remote_log_metadata``."""
        own = self.topic_id
        return tuple(
            one
            for one in self.history.listed.segments.values()
            if (one.partition.topic, one.partition.partition) == (self.topic, self.number)
            and own in (None, one.partition.topic_id)
        )

    @property
    def first_dirty(self) -> int | None:
        """The first offset that the log cleaner has not cleaned, or None if no cleaner checkpoint has one."""
        return None if self.place is None else self.place.log_dir.cleaned.get((self.topic, self.number))

    @cached_property
    def lineage(self) -> Lineage | None:
        if self.place is None:
            return None
        return lineage(self.place.partition._replace(segments=self.segments), self.place.report)

    @cached_property
    def other_logs(self) -> tuple[tuple[OtherCopy, Partition, Lineage], ...]:
        """The replicas on other brokers, each with its log and its leader epochs."""
        found = []
        for other in self.others:
            copy = other.place.partition
            log = copy._replace(segments=tuple(one for one in copy.segments if not _state(one)))
            found.append((other, log, lineage(log, other.place.report)))
        return tuple(found)

    @cached_property
    def cut_by(self) -> tuple[int, OtherCopy, Lineage] | None:
        """The truncation of this log if the newest of the other copies leads: offset, copy, its epochs; or None."""
        newest = max(self.other_logs, key=lambda one: -1 if one[2].newest is None else one[2].newest, default=None)
        cut = None if newest is None or self.lineage is None else self.lineage.truncation(newest[2])
        return None if cut is None or newest is None else (cut, newest[0], newest[2])

    @property
    def borders(self) -> Iterator[int]:
        """The offsets at which the reason may change, such as the log start and the high watermark."""
        place = self.place
        mark = None if place is None else place.high_watermark
        first = None if self.oldest_open is None else self.oldest_open[0]
        cut = None if self.cut_by is None else self.cut_by[0]
        listed = (offset for one in self.remote for offset in (one.start, one.end + 1))
        unnamed = () if place is None else place.partition.unnamed
        for offset in (
            *(self.log_start, self.first_local, self.end, mark, self.first_dirty, first, cut),
            *(*listed, *unnamed),
        ):
            if offset is not None:
                yield offset

    @property
    def is_single_replica(self) -> bool:
        """Whether the metadata log lists one replica. Then each record is committed when it is written."""
        image = self.history.image
        topic = None if image is None else image.topics.by_name.get(self.topic)
        partition = None if topic is None else topic.partitions.get(self.number)
        return partition is not None and len(partition.replicas) == 1

    def largest_timestamp(self, segment: Segment) -> int:
        if segment.path not in self._largest:
            self._largest[segment.path] = largest_timestamp(segment)
        return self._largest[segment.path]


@dataclass
class Block:
    """A range of offsets of a partition, and the records, batches and damage in the files at these offsets."""

    partition: PartitionEvidence
    offsets: range

    @cached_property
    def log(self) -> Sightings:
        return self._look(self.partition.segments, self.partition.opened)

    @cached_property
    def deleted(self) -> Sightings:
        seen = self._look(self.partition.deleted)
        find_ends(seen, self.partition.segments)
        return seen

    @cached_property
    def leftovers(self) -> tuple[tuple[Leftover, Sightings], ...]:
        return tuple((one, self._look(one.partition.segments)) for one in self.partition.leftovers)

    @cached_property
    def others(self) -> tuple[tuple[OtherCopy, Lineage, Sightings], ...]:
        return tuple((other, epochs, self._look(log.segments)) for other, log, epochs in self.partition.other_logs)

    @cached_property
    def newest(self) -> dict[bytes, int]:
        """Key -> its newest committed offset in the log, for the keys of records that only deleted segments have."""
        records = self.deleted.records.items()
        keys = frozenset(one.key for offset, one in records if offset not in self.log.records and one.key is not None)
        return newest_of_keys(self.partition.segments, self.offsets[0], keys) if keys else {}

    @property
    def turning_points(self) -> Iterable[int]:
        """The first offset, and each later offset at which the reason may change; all offsets if most have records."""
        if 2 * len(self.log.records) > len(self.offsets):  # if most offsets have records, filtering costs more
            return self.offsets
        found = {self.offsets[0], *self.partition.borders}
        for _, epochs, _ in self.others:
            found.add((self.partition.lineage and epochs.truncation(self.partition.lineage)) or 0)
        every = [self.log, self.deleted, *(seen for _, seen in self.leftovers), *(seen for _, _, seen in self.others)]
        for seen in every:
            found.update(seen.borders())
        return sorted(offset for offset in found if offset in self.offsets)

    def put_aside(self, offset: int) -> Sighting | None:
        """Return the record at an offset in a deleted segment, or in a renamed folder of no other topic id; or None."""
        if offset in self.deleted.records:
            return self.deleted.records[offset]
        own = self.partition.topic_id
        for leftover, seen in self.leftovers:
            if offset in seen.records and (own is None or leftover.topic_id in (None, own)):
                return seen.records[offset]
        return None

    def elsewhere(self, offset: int) -> tuple[OtherCopy, Sighting] | None:
        """Return the record at an offset, if another broker's copy has it."""
        for other, _, seen in self.others:
            if offset in seen.records:
                return other, seen.records[offset]
        return None

    def _look(self, segments: Sequence[Segment], opened: dict[int, int] | None = None) -> Sightings:
        place = self.partition.place
        return look(segments, self.offsets, opened=opened, report=SILENT if place is None else place.report)


def evidence_of(
    topic: str, number: int, places: Iterable[Place], history: TopicHistory, folders: ListedFolders
) -> PartitionEvidence:
    """Return the evidence of the first broker with a current log of the partition, else with a leftover of it.

    Log dirs with the same broker id in meta.properties are one broker. Each log dir without an id counts as a broker.
    """
    brokers: dict[str, list[Place]] = {}
    for place in places:
        if place.key == (topic, number):
            brokers.setdefault(place.log_dir.broker_id or place.log_dir.path, []).append(place)
    current_first = sorted(brokers.values(), key=lambda held: all(leftover_of(one.partition) for one in held))
    own, *others = current_first or [[]]
    return PartitionEvidence(
        topic,
        number,
        next((place for place in own if leftover_of(place.partition) is None), None),
        history,
        tuple(one for place in own if (one := leftover_of(place.partition)) is not None),
        tuple(
            OtherCopy(place.log_dir.path, place)
            for copies in others
            for place in copies
            if leftover_of(place.partition) is None
        ),
        folders,
    )


def current(partitions: Iterable[Partition]) -> Iterator[Partition]:
    """Yield the partitions whose folders are not leftovers, with only the segments of their logs."""
    for one in partitions:
        if leftover_state(one.files.shown(one.folder)) is None:
            yield one._replace(segments=tuple(segment for segment in one.segments if not _state(segment)))


def leftover_of(partition: Partition) -> Leftover | None:
    """Return the partition as a leftover, or None for the folder of a current log."""
    path = partition.files.shown(partition.folder)
    state = leftover_state(path)
    return None if state is None else Leftover(state, path, partition.topic_id(discard), partition)


def _state(segment: Segment) -> str | None:
    found = SEGMENT_NAME.fullmatch(segment.path.rpartition("/")[2])
    return None if found is None else found["state"]
