"""Reads the files of a log dir outside its partition folders: the broker's ids, and checkpointed offsets."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from kdump.errors import DamageError, UnreadableError, refused
from kdump.log_dirs import file_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kdump.errors import Reporter
    from kdump.formats.checkpoints import PartitionOffset
    from kdump.formats.meta_properties import MetaProperties
    from kdump.log_dirs.files import Files
    from kdump.log_dirs.partition import Partition
    from kdump.primitives.wire import Bytes

    Offsets = Mapping[tuple[str | None, int | None], int]


def _properties(data: Bytes) -> MetaProperties:
    from kdump.formats import meta_properties  # many partitions are in no log dir

    return meta_properties.read(data)


def _checkpoint(data: Bytes) -> tuple[PartitionOffset, ...]:
    from kdump.formats import checkpoints  # as above

    return checkpoints.read(data)


READERS: Final[dict[str, Callable[[Bytes], object]]] = {
    file_names.META_PROPERTIES: _properties,
    file_names.CLEAN_SHUTDOWN: bytes,
    file_names.RECOVERY_POINTS: _checkpoint,
    file_names.HIGH_WATERMARKS: _checkpoint,
    file_names.LOG_STARTS: _checkpoint,
    file_names.CLEANER_OFFSETS: _checkpoint,
}
"""File name -> its reader. Only the existence of ``.kafka_cleanshutdown`` counts, not its content."""


class LogDirState(NamedTuple):
    """The content of the files of a log dir. A missing or unreadable file has no offsets.

    ``path`` is as the user wrote it, as far as possible. ``sound`` has the names of the valid files, ``failed`` the
    errors of the unreadable files.
    """

    path: str
    sound: frozenset[str]
    properties: MetaProperties | None
    recovery_points: Offsets
    high_watermarks: Offsets
    log_starts: Offsets
    cleaned: Offsets
    """The log cleaner's first dirty offset of each partition."""
    failed: tuple[UnreadableError, ...]

    @property
    def is_log_dir(self) -> bool:
        """Whether the folder has a valid file of a log dir's state, such as meta.properties or a checkpoint."""
        return bool(self.sound)

    @property
    def clean(self) -> bool:
        """Whether the broker had a clean shutdown."""
        return file_names.CLEAN_SHUTDOWN in self.sound

    @property
    def broker_id(self) -> str | None:
        """The id of the broker that owns the log dir (``node.id``, before KRaft ``broker.id``)."""
        return None if self.properties is None else self.properties.broker_id


class LogDirStates:
    """Reads the files named in ``readers`` of each log dir once.

    ``report`` receives broken files as damage, unreadable ones as failures. ``known`` are log dirs that were read
    before.
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
        """Return the state of the log dir that holds a partition's folder."""
        key = partition.files, partition.log_dir
        if key not in self._known:
            self._known[key] = self._read(partition)
        return self._known[key]

    def _read(self, partition: Partition) -> LogDirState:
        found: dict[str, object] = {}
        failed: list[UnreadableError] = []
        for name in self._readers:
            path = partition.files.shown(posixpath.join(partition.log_dir, name))
            try:
                data = b"" if name == file_names.CLEAN_SHUTDOWN and _is_folder(partition) else partition.beside(name)
            except UnreadableError as error:
                failed.append(error.on(path))
                self._report.fail(failed[-1])
                continue
            if data is not None and (content := self.judge(name, path, data)) is not None:
                found[name] = content
        return LogDirState(
            path=partition.files.shown(partition.log_dir or "."),
            sound=frozenset(found),
            properties=cast("MetaProperties | None", found.get(file_names.META_PROPERTIES)),
            recovery_points=_offsets(found, file_names.RECOVERY_POINTS),
            high_watermarks=_offsets(found, file_names.HIGH_WATERMARKS),
            log_starts=_offsets(found, file_names.LOG_STARTS),
            cleaned=_offsets(found, file_names.CLEANER_OFFSETS),
            failed=tuple(failed),
        )

    def judge(self, name: str, path: str, data: Bytes) -> object | None:
        """Return the parsed content of a file, or None if it is broken. For a broken file :meth:`wrong` is called."""
        try:
            return self._readers[name](data)
        except DamageError as damage:
            self.wrong(name, path, damage)
            return data if name == file_names.CLEAN_SHUTDOWN else None

    def wrong(self, _: str, path: str, damage: DamageError) -> None:
        """Report a broken file. ``path`` is in the form for messages."""
        self._report.damage(refused(path, damage))


def _is_folder(partition: Partition) -> bool:
    """Return whether the marker of a clean shutdown is a folder, which counts too (CleanShutdownFileHandler.exists)."""
    marker = partition.files.look(partition.path_beside(file_names.CLEAN_SHUTDOWN))
    return marker is not None and marker.is_folder


def _offsets(found: Mapping[str, object], name: str) -> Offsets:
    entries = cast("tuple[PartitionOffset, ...]", found.get(name, ()))
    return {entry[:2]: entry.offset for entry in entries}
