"""Finds the remaining log dirs of a cluster in the given volumes.

A log dir is a folder with ``meta.properties``, a broker's checkpoint, or a partition folder. The log dir of a container
is often some folders below the root of its volume (``/data-0/kafka-log0``), so all other folders are searched.
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NoReturn

from kdump.errors import RAISING, Reporter, UnreadableError, UsageError
from kdump.internal_topics.cluster_metadata import TOPIC as METADATA_TOPIC
from kdump.log_dirs import archive_formats, file_names
from kdump.log_dirs.file_names import KRAFT_SNAPSHOT_NAME, Name
from kdump.log_dirs.finder import Finder, Wanted, closed_lost_and_found
from kdump.log_dirs.local import LOCAL
from kdump.log_dirs.log_dir_state import LogDirStates
from kdump.log_dirs.partition import Partition
from kdump.log_dirs.remote import is_remote, shown_paths, without_secret
from kdump.output.files import NAME_BYTES
from kdump.primitives.terminal import shell_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kdump.log_dirs.files import Entry
    from kdump.log_dirs.log_dir_state import LogDirState

_CHECKPOINT: Final = re.compile(r".*-offset-checkpoint")
_OF_PARTITION: Final = re.compile(
    rf"\d{{20}}\.(?:{file_names.LOG}|{'|'.join(file_names.SIBLINGS)})(?:\.\w+)?|"
    rf"{file_names.PARTITION_METADATA}|{file_names.LEADER_EPOCHS}",
)
"""The names of files that identify a partition folder. Files in remote storage have other names, with a segment id."""


@dataclass(frozen=True)
class VolumeFolder:
    """A partition folder in a log dir.

    ``state`` is empty for a live replica, else ``delete``, ``future`` or ``stray``. ``topic_id`` has 16 bytes, or is
    None without a readable and valid ``partition.metadata``. ``high_watermark``, ``log_start`` and ``recovery_point``
    come from the checkpoints of the log dir, and are None if they are missing there, or the replica is not live.
    """

    topic: str
    number: int
    state: str
    topic_id: bytes | None
    partition: Partition
    log_dir: LogDirState

    @property
    def key(self) -> tuple[str, int]:
        return self.topic, self.number

    @property
    def path(self) -> str:
        return self.partition.folder

    @property
    def is_name_cut(self) -> bool:
        """Whether ``topic`` may be the beginning of a longer name, but ``topic_id`` is known.

        If the name of a -delete or -stray folder would be too long, a broker cuts the topic
        (``UnifiedLog.logDirNameWithSuffixCappedLength``).
        """
        return bool(self.state and self.topic_id) and len(posixpath.basename(self.path)) == NAME_BYTES

    @property
    def high_watermark(self) -> int | None:
        return None if self.state else self.log_dir.high_watermarks.get(self.key)

    @property
    def log_start(self) -> int | None:
        return None if self.state else self.log_dir.log_starts.get(self.key)

    @property
    def recovery_point(self) -> int | None:
        return None if self.state else self.log_dir.recovery_points.get(self.key)

    @property
    def newest_ms(self) -> int:
        """The newest write time of a segment, in ms since 1970; 0 without a segment."""
        return max((segment.modified or 0 for segment in self.partition.segments), default=0)


@dataclass(frozen=True)
class Volume:
    """A log dir: its checkpoints and ids (``state``), its copy of the metadata log, and its other partition folders."""

    path: str
    state: LogDirState
    folders: tuple[VolumeFolder, ...]
    metadata: Partition | None

    @property
    def cluster_id(self) -> str | None:
        return None if self.state.properties is None else self.state.properties.cluster_id


@dataclass(frozen=True)
class Volumes:
    """The log dirs that were found. Folders are in the order of log dirs, then of topics and partitions."""

    log_dirs: tuple[Volume, ...]

    @property
    def cluster_id(self) -> str | None:
        return next((each.cluster_id for each in self.log_dirs if each.cluster_id is not None), None)

    @property
    def metadata_copies(self) -> list[Partition]:
        """The copies of the metadata log: segments, snapshots and other files (``others``)."""
        return [each.metadata for each in self.log_dirs if each.metadata is not None]

    @property
    def folders(self) -> Iterator[VolumeFolder]:
        return (folder for each in self.log_dirs for folder in each.folders)

    @cached_property
    def _by_name(self) -> dict[tuple[str | bytes | None, int], list[VolumeFolder]]:
        """The folders by topic (by topic id if the name is cut) and partition, with any topic id."""
        found: defaultdict[tuple[str | bytes | None, int], list[VolumeFolder]] = defaultdict(list)
        for folder in self.folders:
            found[folder.topic_id if folder.is_name_cut else folder.topic, folder.number].append(folder)
        return found

    def of(self, topic: str, topic_id: bytes | None, number: int) -> list[VolumeFolder]:
        """Return the copies of a partition, live replicas first. If a topic id is unknown, only live replicas count."""
        found = [each for name in (topic, topic_id) for each in self._by_name.get((name, number), ())]
        same = [each for each in found if (each.topic_id == topic_id if each.topic_id and topic_id else not each.state)]
        return sorted(same, key=lambda each: (_ORDER.index(each.state), each.topic_id is None))


_ORDER: Final = ("", file_names.FUTURE_FOLDER, file_names.STRAY_FOLDER, file_names.DELETE_FOLDER)
"""The states of folders. A copy in an earlier state is preferred."""


def survey(paths: Sequence[str], report: Reporter = RAISING) -> Volumes:
    """Find the log dirs of one cluster. ``paths`` are log dirs, or folders that contain log dirs.

    ``report.damage`` receives a sentence on each invalid checkpoint, ``meta.properties`` or ``partition.metadata``,
    ``note`` one on each closed ``lost+found``, and ``fail`` the error of each other unreadable file. Raises UsageError
    for a path to a file, archive or object store, if no path has a log dir, and for log dirs of several clusters.
    Raises UnreadableError if no log dir is found and a file is unreadable.
    """
    search = _Survey(report)
    found = tuple(search.log_dirs(paths))
    if not found:
        if search.failed:
            raise search.failed[0]
        raise UsageError(
            f"{shown_paths(paths)}: no log dir found (a folder with meta.properties, or with folders such as "
            "orders-0): name the folders of log.dirs"
        )
    _one_cluster(found)
    return Volumes(found)


def _one_cluster(found: Iterable[Volume]) -> None:
    paths: defaultdict[str, list[str]] = defaultdict(list)
    for each in found:
        if each.cluster_id is not None:
            paths[each.cluster_id].append(each.path)
    if len(paths) > 1:
        clusters = "; ".join(f"cluster.id {name} in {', '.join(where)}" for name, where in paths.items())
        raise UsageError(f"the volumes belong to {len(paths)} clusters ({clusters}): name the volumes of one cluster")


def _refuse(path: str, entry: Entry | None) -> NoReturn:
    """Raise the error for a path that is not a local folder: UnreadableError if it does not exist, else UsageError.

    A rebuild needs local files, because it verifies them, copies them later, and must notice changes in between.
    """
    local = "a rebuild copies from local disks"
    name, held = (path, entry) if entry is not None else _outermost(path)
    if held is not None:
        with LOCAL.open(name) as source:
            found = archive_formats.format_of(source.read(0, archive_formats.HEAD))
        if found is None:
            raise UsageError(f"{name} is a file: name a log dir, or a folder that contains log dirs")
        extract = f"{'unzip' if found == archive_formats.ZIP else 'tar -xf'} {shell_path(name)}"
        raise UsageError(f"{name} is an archive, but {local}: extract it ({extract}), and name the extracted folder")
    if is_remote(path):
        raise UsageError(f"{without_secret(path)} is in an object store, but {local}: copy it, and name the copy")
    raise UnreadableError(path, "No such file or directory")


def _outermost(path: str) -> tuple[str, Entry | None]:
    """Return the file before a colon of ``path``, such as ``bundle.zip:d1``, and its entry; else ``path`` and None."""
    at = path.find(":")
    while at > 0:
        entry = LOCAL.look(path[:at])
        if entry is not None and not entry.is_folder:
            return path[:at], entry
        at = path.find(":", at + 1)
    return path, None


class _Survey:
    """A search through folders that follows links and visits each folder once."""

    def __init__(self, report: Reporter) -> None:
        self.failed: list[UnreadableError] = []
        self._report = report
        self._finder = Finder(Wanted(siblings=True, log_dirs=True))
        self._states = LogDirStates(Reporter(report.damage, fail=self._fail))
        self._seen: set[object] = set()

    def _fail(self, error: UnreadableError) -> None:
        self.failed.append(error)
        self._report.fail(error)

    def log_dirs(self, paths: Sequence[str]) -> Iterator[Volume]:
        for path in paths:
            try:
                entry = LOCAL.look(path)
                if entry is None or not entry.is_folder:
                    _refuse(path, entry)
            except UnreadableError as error:
                self._fail(error)
                continue
            if entry is not None:
                yield from self._below(entry, is_given=True)

    def _below(self, folder: Entry, *, is_given: bool = False) -> Iterator[Volume]:
        """Yield the log dirs among a folder and all folders below it. ``is_given``: the user named the folder."""
        entries = self._entries(folder, is_given=is_given)
        if entries is None:
            return
        names = {entry.name for entry in entries if not entry.is_folder}
        is_named = file_names.META_PROPERTIES in names or any(map(_CHECKPOINT.fullmatch, names))
        partitions: list[tuple[Entry, list[Entry]]] = []
        others: list[Entry] = []
        for entry in entries:
            if not entry.is_folder:
                continue
            inside = self._partition(entry, is_named=is_named)
            if inside is None:
                others.append(entry)
            else:
                self._seen.add(entry.identity)
                partitions.append((entry, inside))
        if is_named or partitions:
            yield self._log_dir(folder, partitions)
        for entry in others:
            yield from self._below(entry)

    def _entries(self, folder: Entry, *, is_given: bool) -> list[Entry] | None:
        """Return the entries of a folder, or None if it was listed before or cannot be read."""
        if folder.identity in self._seen:
            return None
        self._seen.add(folder.identity)
        try:
            return LOCAL.entries(folder.path)
        except UnreadableError as error:
            text = "" if is_given else closed_lost_and_found(error)
            if text:
                self._report.note(text)
            else:
                self._fail(error)
            return None

    def _partition(self, folder: Entry, *, is_named: bool) -> list[Entry] | None:
        """Return the files of a partition folder, or None for another folder, and for one that was seen before.

        ``is_named``: the parent has log dir files. Then a folder with the right name counts, unless it has subfolders.
        """
        parsed = file_names.parse_folder(folder.name)
        if parsed is None or folder.identity in self._seen:
            return None
        try:
            inside = LOCAL.entries(folder.path)
        except UnreadableError as error:
            self._fail(error)
            return [] if is_named else None
        files = [entry for entry in inside if not entry.is_folder]
        if any(entry.name == file_names.META_PROPERTIES for entry in files):
            return None
        if any(_OF_PARTITION.fullmatch(entry.name) or KRAFT_SNAPSHOT_NAME.fullmatch(entry.name) for entry in files):
            return files
        return files if is_named and not any(entry.is_folder for entry in inside) else None

    def _log_dir(self, folder: Entry, found: Sequence[tuple[Entry, list[Entry]]]) -> Volume:
        state = self._states.of(Partition(LOCAL, posixpath.join(folder.path, "any"), None, None, ()))
        folders: list[VolumeFolder] = []
        metadata: Partition | None = None
        for entry, inside in found:
            parsed = file_names.parse_folder(entry.name)
            if parsed is None:
                continue
            partition = self._finder.partition(entry.path, Name(parsed.topic, parsed.partition), inside, LOCAL)
            if parsed.topic == METADATA_TOPIC:
                metadata = partition if not parsed.state else metadata
                continue
            topic_id = self._topic_id(partition)
            folders.append(VolumeFolder(parsed.topic, parsed.partition, parsed.state, topic_id, partition, state))
        folders.sort(key=lambda each: (each.key, each.path))
        return Volume(folder.path, state, tuple(folders), metadata)

    def _topic_id(self, partition: Partition) -> bytes | None:
        try:
            return partition.topic_id(
                lambda text: self._report.damage(f"{text}; kdump takes the topic from the folder name")
            )
        except UnreadableError as error:
            self._fail(error)
            return None
