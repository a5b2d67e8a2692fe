"""The question ``du``: the sizes of folders and files of log dirs. Only the start and the end of a log are read.

``log_bytes`` is the size that a broker returns for DescribeLogDirs (``kafka-log-dirs.sh``): ``.log`` files without the
zeros of a preallocated active segment. Source of the folder names: class UnifiedLog.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Literal, NamedTuple, TypeAlias

from kdump.answers.collector import Collector, Needs
from kdump.answers.question import LineTable, LogQuestion, option
from kdump.errors import UnreadableError
from kdump.internal_topics import CLUSTER_METADATA
from kdump.log_dirs import file_names
from kdump.log_dirs.file_names import LOG_DIR_FILE, SEGMENT_NAME, is_sibling, leftover_state
from kdump.segments import log_end
from kdump.segments.log_end import first_batch, last_batch
from kdump.segments.regions import Damage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kdump.answers.collector import AnswerLine, Place
    from kdump.log_dirs.files import Entry
    from kdump.log_dirs.partition import Partition, Segment
    from kdump.records.record_batch import RecordBatch


_STATES: Final = {
    file_names.DELETE_FOLDER: "deleted",
    file_names.FUTURE_FOLDER: "future",
    file_names.STRAY_FOLDER: "stray",
}
_KINDS: Final = {
    file_names.REMOTE_INDEX_CACHE: "indexes of remote segments",
    file_names.LOST_AND_FOUND: "the file system's",
    file_names.REMOTE_LOG_SNAPSHOT: "snapshots of remote log metadata",
}
_OWN: Final = frozenset({file_names.LOCK, file_names.BOOTSTRAP_SNAPSHOT})
By: TypeAlias = Literal["partition", "folder", "topic", "segment"]


class Bytes(NamedTuple):
    """The sizes of files, and the space that they occupy on disk (None if the storage does not report it), in bytes."""

    size: int
    disk_size: int | None

    @classmethod
    def of(cls, files: Iterable[Entry | Segment | Bytes]) -> Bytes:
        size, disk_size = 0, 0
        known = True
        for file in files:
            size += file.size
            known = known and file.disk_size is not None
            disk_size += file.disk_size or 0
        return cls(size, disk_size if known else None)


@dataclass(frozen=True, slots=True)
class PartitionUsage:
    """A partition folder. ``state``: current, metadata, unknown (no file of a log); deleted, future, stray by suffix.

    ``deleted_bytes``: ``.log.deleted`` files. ``oldest_ms``, ``newest_ms``: largest times of its first and last batch.
    """

    kind: ClassVar[str] = "partition"
    log_dir: str
    folder: str
    topic: str
    partition: int
    state: str
    log_bytes: int
    all_bytes: int
    segments: int
    deleted_bytes: int
    earliest: int | None
    latest: int | None
    oldest_ms: int | None
    newest_ms: int | None
    disk_bytes: int | None
    broker_id: str | None


@dataclass(frozen=True, slots=True)
class SegmentUsage:
    """A ``.log`` file, with its indexes and producer snapshot. ``state``: log, deleted, swap, cleaned."""

    kind: ClassVar[str] = "segment"
    log_dir: str
    folder: str
    topic: str
    partition: int
    base_offset: int
    state: str
    bytes: int
    index_bytes: int
    disk_bytes: int | None
    modified_ms: int | None


@dataclass(frozen=True, slots=True)
class TopicUsage:
    """The current replicas of a topic. ``replicas`` counts folders, ``partitions`` counts different partitions."""

    kind: ClassVar[str] = "topic"
    topic: str
    partitions: int
    log_bytes: int
    all_bytes: int
    replicas: int
    disk_bytes: int | None


@dataclass(frozen=True, slots=True)
class OtherUsage:
    """The size of another folder with its contents, of a file, or of the broker's own files in a log dir."""

    kind: ClassVar[str] = "other"
    path: str
    what: str
    bytes: int
    disk_bytes: int | None


class _OtherFolder(NamedTuple):
    """A folder whose name is not TOPIC-PARTITION, with its files."""

    is_log_dir: bool
    own: Bytes
    foreign: tuple[tuple[str, Bytes], ...]


class DiskUsage(Collector):
    """Gathers the sizes of all folders. ``by`` is the unit of a line. With ``by`` topic, other files have no line."""

    def __init__(self, by: By = "partition") -> None:
        self._by = by
        self._partitions: list[tuple[str, PartitionUsage]] = []
        self._segments: list[SegmentUsage] = []
        self._others: dict[str, _OtherFolder] = {}
        self._parents: dict[str, str] = {}
        """Path of a folder -> the path of its parent, which may be an archive."""

    def begin(self, place: Place) -> Needs:
        partition = place.partition
        path = _path(partition)
        if partition.folder:
            self._parents[path] = partition.files.shown(posixpath.dirname(partition.folder.rstrip("/")))
        if partition.topic is None or partition.partition is None:
            self._others[path] = _other_folder(partition)
        else:
            folder = posixpath.basename(path)
            self._partitions.append((path, _usage(place, folder, partition.topic, partition.partition)))
            if self._by == "segment":
                self._segments += _segment_lines(place, folder, partition.topic, partition.partition)
        return Needs.FILES

    def merge(self, other: DiskUsage) -> None:
        self._partitions += other._partitions
        self._segments += other._segments
        self._others |= other._others
        self._parents |= other._parents

    def answer(self, at: int) -> Iterator[AnswerLine]:  # noqa: ARG002  sizes do not depend on the time
        lines: list[PartitionUsage] = [line for _, line in self._partitions]
        if self._by == "topic":
            yield from self.topics()
            return
        if self._by == "segment":
            yield from sorted(self._segments, key=lambda line: (-line.bytes - line.index_bytes, line.folder))
        else:
            yield from sorted(lines, key=lambda line: (-line.all_bytes, line.log_dir, line.folder))
        yield from sorted(self._other_lines(), key=lambda line: (-line.bytes, line.path))

    def topics(self) -> list[TopicUsage]:
        found = _topics([line for _, line in self._partitions])
        return sorted(found, key=lambda line: (-line.all_bytes, line.topic))

    def _other_lines(self) -> Iterator[OtherUsage]:
        holding = {path for path, found in self._others.items() if found.is_log_dir}
        holding |= {self._parent(path) for path, _ in self._partitions}
        holders = {above for path in holding for above in self._above(path)}
        folders: dict[str, list[Bytes]] = {}
        for path, found in self._others.items():
            if path in holders:
                if found.own.size:
                    yield OtherUsage(path, "the broker's own files", *found.own)
                for file, size in found.foreign:
                    yield OtherUsage(file, "a foreign file", *size)
            else:
                top = path
                while (above := self._parent(top)) in self._others and above not in holders:
                    top = above
                folders.setdefault(top, []).extend((found.own, *(size for _, size in found.foreign)))
        for path, sizes in folders.items():
            what = _KINDS.get(posixpath.basename(path), "a foreign folder")
            yield OtherUsage(path, what, *Bytes.of(sizes))

    def _above(self, path: str) -> Iterator[str]:
        while path:
            yield path
            above = self._parent(path)
            if above == path:
                return
            path = above

    def _parent(self, path: str) -> str:
        return self._parents.get(path) or posixpath.dirname(path)


def _usage(place: Place, folder: str, topic: str, number: int) -> PartitionUsage:
    partition = place.partition
    state = _state(partition, folder, topic)
    live = partition.logs
    deleted = [segment for segment in partition.segments if segment.path.endswith(".deleted")]
    everything = Bytes.of((*partition.segments, *partition.others))
    oldest = newest = latest = None
    unused = 0
    try:
        if live:
            end = place.end_of(live[-1])
            unused = live[-1].size - end.position
            if end.damage is not None:
                log_end.report_region(live[-1], end.damage, place.report)
            latest = None if isinstance(end.damage, Damage) else end.offset
            first = end.first if len(live) == 1 and end.first is not None else first_batch(live)
            oldest, newest = largest_time(first), largest_time(end.last or last_batch(live[:-1]))
    except UnreadableError as error:
        place.report.fail(error)
    earliest = (live[0].base_offset or 0) if live else None
    if state == "current" and (live or place.log_start is not None):
        earliest = place.earliest(earliest or 0)
    return PartitionUsage(
        log_dir=place.log_dir.path,
        folder=folder,
        topic=topic,
        partition=number,
        state=state,
        log_bytes=sum([segment.size for segment in live]) - unused,
        all_bytes=everything.size,
        segments=len(live),
        deleted_bytes=sum([segment.size for segment in deleted]),
        earliest=earliest,
        latest=latest,
        oldest_ms=oldest,
        newest_ms=newest,
        disk_bytes=everything.disk_size,
        broker_id=place.log_dir.broker_id,
    )


def _path(partition: Partition) -> str:
    return partition.files.shown(partition.folder).rstrip("/")


def _state(partition: Partition, folder: str, topic: str) -> str:
    if leftover := leftover_state(folder):
        return _STATES[leftover]
    if topic == CLUSTER_METADATA:
        return "metadata"
    known = partition.segments or any(is_sibling(entry.name) for entry in partition.others)
    return "current" if known else "unknown"


def largest_time(batch: RecordBatch | None) -> int | None:
    return None if batch is None or batch.max_timestamp < 0 else batch.max_timestamp


def _segment_lines(place: Place, folder: str, topic: str, number: int) -> Iterator[SegmentUsage]:
    partition = place.partition
    beside = {entry.path: entry for entry in partition.others}
    for segment in partition.segments:
        siblings = [beside[path] for path in segment.siblings.values() if path in beside]
        yield SegmentUsage(
            log_dir=place.log_dir.path,
            folder=folder,
            topic=topic,
            partition=number,
            base_offset=segment.base_offset or 0,
            state=state_of(segment),
            bytes=segment.size,
            index_bytes=Bytes.of(siblings).size,
            disk_bytes=Bytes.of([segment, *siblings]).disk_size,
            modified_ms=segment.modified,
        )


def state_of(segment: Segment) -> str:
    name = SEGMENT_NAME.fullmatch(posixpath.basename(segment.path))
    return ((name and name["state"]) or ".log").lstrip(".")


def _other_folder(partition: Partition) -> _OtherFolder:
    own = [entry for entry in partition.others if entry.name in _OWN or LOG_DIR_FILE.fullmatch(entry.name)]
    foreign: list[Entry | Segment] = [entry for entry in partition.others if entry not in own]
    foreign += partition.segments
    return _OtherFolder(
        is_log_dir=any(LOG_DIR_FILE.fullmatch(entry.name) for entry in own),
        own=Bytes.of(own),
        foreign=tuple((partition.files.shown(file.path), Bytes.of([file])) for file in foreign),
    )


def _topics(lines: Iterable[PartitionUsage]) -> Iterator[TopicUsage]:
    topics: dict[str, list[PartitionUsage]] = {}
    for line in lines:
        if line.state in {"current", "metadata"}:
            topics.setdefault(line.topic, []).append(line)
    for topic, found in topics.items():
        yield TopicUsage(
            topic=topic,
            partitions=len({line.partition for line in found}),
            log_bytes=sum(line.log_bytes for line in found),
            all_bytes=sum(line.all_bytes for line in found),
            replicas=len(found),
            disk_bytes=Bytes.of(Bytes(line.all_bytes, line.disk_bytes) for line in found).disk_size,
        )


HELP: Final = """Show what fills the disk: every folder and file of log dirs.

\b
Examples:
  kdump du /var/kafka
  kdump du /var/kafka-1 /var/kafka-2 --by topic
  kdump du /var/kafka -o jsonl | jq 'select(.state == "deleted")'

'log' is the size that kafka-log-dirs.sh reports: the .log files, without the zeros of a preallocated active segment.
'all files' adds indexes, snapshots and .deleted files. 'on disk' is the space that all files occupy, which is less
than their size if files have holes. A broker deletes .deleted files and -delete folders a minute after it renames
them (file.delete.delay.ms), and never deletes -stray folders. 'earliest' is the log start offset, 'latest' the log
end offset; 'oldest' and 'newest' are the largest times of the first and of the last batch. Null means unknown or
none: the space on disk in an object store, the end of a damaged log, the times of a log without batches.

Exit status: 0 all could be read; 1 something cannot be read; 2 wrong usage; 3 the end of a log is damaged.
"""


@dataclass(frozen=True)
class UsageOptions:
    by: By = option(
        "partition",
        "choice",
        "--by",
        "Print a line for each topic, partition or segment; 'folder' is the same as 'partition'.",
        choices=("topic", "partition", "folder", "segment"),
        shown=True,
    )


QUESTION: Final = LogQuestion(
    "du",
    HELP,
    UsageOptions,
    (PartitionUsage, SegmentUsage, TopicUsage, OtherUsage),
    lambda _, options: DiskUsage(options.by),
    tables=(
        LineTable("partitions", PartitionUsage),
        LineTable("segments", SegmentUsage, "--by segment", {"by": "segment"}),
        LineTable("other_files", OtherUsage),
    ),
    every_folder=True,
    unit="everything",
)
