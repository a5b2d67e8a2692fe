"""Reads the files that describe a log dir: ``meta.properties``, checkpoints, and the clean shutdown marker.

Broken files are reported as damage, unreadable files as failures. Partition folders are not read.
"""

from __future__ import annotations

import posixpath
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from kdump.errors import DamageError, UnreadableError, refused
from kdump.log_dirs import file_names
from kdump.log_dirs.files import read_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kdump.errors import Reporter
    from kdump.formats.checkpoints import PartitionOffset
    from kdump.formats.meta_properties import MetaProperties
    from kdump.log_dirs.files import Files
    from kdump.log_dirs.partition import Partition
    from kdump.primitives.wire import Bytes

    Offsets = Mapping[tuple[str | None, int | None], int]


def _properties(data: Bytes) -> MetaProperties:
    from kdump.formats import meta_properties

    return meta_properties.read(data)


def _checkpoint(data: Bytes) -> tuple[PartitionOffset, ...]:
    from kdump.formats import checkpoints

    return checkpoints.read(data)


READERS: Final[dict[str, Callable[[Bytes], object]]] = {
    file_names.META_PROPERTIES: _properties,
    file_names.CLEAN_SHUTDOWN: bytes,
    file_names.RECOVERY_POINTS: _checkpoint,
    file_names.HIGH_WATERMARKS: _checkpoint,
    file_names.LOG_STARTS: _checkpoint,
    file_names.CLEANER_OFFSETS: _checkpoint,
}
"""File name -> its reader. The content of ``.kafka_cleanshutdown`` does not matter."""


class LogDirState(NamedTuple):
    """The files of a log dir with the shown ``path``. ``sound``: names of valid ones, and of any marker."""

    path: str
    sound: frozenset[str]
    properties: MetaProperties | None
    offsets: Mapping[str, Offsets]
    """The name of each valid checkpoint file -> its offsets."""
    failed: tuple[UnreadableError, ...]

    @property
    def recovery_points(self) -> Offsets:
        return self.offsets.get(file_names.RECOVERY_POINTS, {})

    @property
    def high_watermarks(self) -> Offsets:
        return self.offsets.get(file_names.HIGH_WATERMARKS, {})

    @property
    def log_starts(self) -> Offsets:
        return self.offsets.get(file_names.LOG_STARTS, {})

    @property
    def cleaned(self) -> Offsets:
        """The log cleaner's first dirty offset of each partition."""
        return self.offsets.get(file_names.CLEANER_OFFSETS, {})

    @property
    def is_log_dir(self) -> bool:
        """Whether the folder has a valid file of a log dir's state, such as meta.properties or a checkpoint."""
        return bool(self.sound)

    @property
    def clean(self) -> bool:
        return file_names.CLEAN_SHUTDOWN in self.sound

    @property
    def broker_id(self) -> str | None:
        """The id of the broker that owns the log dir (``node.id``, before KRaft ``broker.id``)."""
        return None if self.properties is None else self.properties.broker_id


class LogDirStates:
    """Reads the files of each log dir path once. ``readers``: file name -> function that parses the file.

    ``report`` receives broken files as damage, unreadable files as failures. ``known``: (place, path) -> earlier state.
    """

    def __init__(
        self,
        report: Reporter,
        readers: Mapping[str, Callable[[Bytes], object]] = READERS,
        known: Mapping[tuple[Files, str], LogDirState] | None = None,
    ) -> None:
        self._report = report
        self._readers = readers
        self._known = dict(known or {})

    def of(self, partition: Partition) -> LogDirState:
        """Return the state of the log dir that holds a partition folder."""
        key = partition.files, partition.log_dir
        if key not in self._known:
            self._known[key] = self._read(*key, self._readers, partition.beside, partition.path_beside)
        return self._known[key]

    def inside(self, partition: Partition) -> LogDirState:
        """Return the state of a folder that may itself be a log dir. Its files are read in order of name."""
        key = partition.files, partition.folder
        if key not in self._known:
            path_of = partial(posixpath.join, partition.folder)
            paths = {entry.name: entry.path for entry in partition.entries}

            def content_of(name: str) -> bytes | None:
                is_there = name in paths
                if name == file_names.CLEAN_SHUTDOWN:  # as for Java's File.exists, a broken link does not exist
                    is_there = is_there and partition.files.look(paths[name]) is not None
                return read_file(partition.files, paths[name]) if is_there else None

            self._known[key] = self._read(*key, sorted(self._readers), content_of, path_of)
        return self._known[key]

    def _read(
        self,
        files: Files,
        folder: str,
        names: Iterable[str],
        content_of: Callable[[str], bytes | None],
        path_of: Callable[[str], str],
    ) -> LogDirState:
        found: dict[str, object] = {}
        failed: list[UnreadableError] = []
        for name in names:
            path = files.shown(posixpath.join(folder, name))
            try:
                is_marker = name == file_names.CLEAN_SHUTDOWN and _is_folder(files, path_of(name))
                data = b"" if is_marker else content_of(name)
            except UnreadableError as error:
                failed.append(error.on(path))
                self._report.fail(failed[-1])
                continue
            if data is not None and (content := self.judge(name, path, data)) is not None:
                found[name] = content
        return LogDirState(
            path=files.shown(folder or "."),
            sound=frozenset(found),
            properties=cast("MetaProperties | None", found.get(file_names.META_PROPERTIES)),
            offsets={name: _offsets(content) for name, content in found.items() if READERS[name] is _checkpoint},
            failed=tuple(failed),
        )

    def read_so_far(self) -> dict[str, LogDirState]:
        """Return the states that were read so far and the ``known`` ones, by the shown path of the log dir."""
        return {state.path: state for state in self._known.values()}

    def judge(self, name: str, path: str, data: Bytes) -> object | None:
        """Return the parsed content of a file. If it is broken, call :meth:`wrong`, and return None (or the marker)."""
        try:
            return self._readers[name](data)
        except DamageError as damage:
            self.wrong(name, path, damage)
            return data if name == file_names.CLEAN_SHUTDOWN else None  # for a broker it is enough that it exists

    def wrong(self, _: str, path: str, damage: DamageError) -> None:
        """Report a broken file. ``path`` is its shown path. Subclasses also use its name."""
        self._report.damage(refused(path, damage))


def _is_folder(files: Files, path: str) -> bool:
    """Return whether the clean shutdown marker is a folder. A broker accepts a folder too."""
    marker = files.look(path)
    return marker is not None and marker.is_folder


def _offsets(content: object) -> Offsets:
    return {entry[:2]: entry.offset for entry in cast("tuple[PartitionOffset, ...]", content)}
