"""What the files of a log dir beside its partitions say: who its broker is, and the offsets that it remembers."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kdump.errors import DamageError, UnreadableError
from kdump.formats import checkpoints, meta_properties
from kdump.log_dirs import file_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kdump.formats.meta_properties import MetaProperties
    from kdump.log_dirs.files import Files
    from kdump.log_dirs.partition import Partition

    Offsets = Mapping[tuple[str, int], int]


@dataclass(frozen=True)
class LogDirState:
    """A log dir. Offsets are by topic and partition; a file that is missing or cannot be read gives none.

    ``path`` is as the user wrote it, as near as can be. ``is_log_dir`` says whether any such file is there, ``clean``
    whether the broker stopped in good order.
    """

    path: str
    is_log_dir: bool = False
    clean: bool = False
    properties: MetaProperties | None = None
    recovery_points: Offsets = field(default_factory=dict)
    high_watermarks: Offsets = field(default_factory=dict)
    log_starts: Offsets = field(default_factory=dict)
    cleaned: Offsets = field(default_factory=dict)
    """The first dirty offsets of the log cleaner."""

    @property
    def broker_id(self) -> str | None:
        """The id of the broker that owns the log dir (``node.id``, before KRaft ``broker.id``)."""
        return None if self.properties is None else self.properties.broker_id


class LogDirStates:
    """The log dirs that partitions lie in, each read once.

    ``wrong`` is called with each file that is not what its format says, ``fail`` with each that cannot be read.
    """

    def __init__(self, wrong: Callable[[str], None], fail: Callable[[UnreadableError], None]) -> None:
        self._wrong = wrong
        self._fail = fail
        self._known: dict[tuple[Files, str], LogDirState] = {}

    def of(self, partition: Partition) -> LogDirState:
        """Return the state of the log dir that holds a partition's folder."""
        path = posixpath.dirname(partition.path_beside("x"))
        key = partition.files, path
        if key not in self._known:
            self._known[key] = self._read(partition)
        return self._known[key]

    def _read(self, partition: Partition) -> LogDirState:
        found = {
            name: self._file(partition, name)
            for name in (
                file_names.META_PROPERTIES,
                file_names.CLEAN_SHUTDOWN,
                file_names.RECOVERY_POINTS,
                file_names.HIGH_WATERMARKS,
                file_names.LOG_STARTS,
                file_names.CLEANER_OFFSETS,
            )
        }
        folder, name = posixpath.split(partition.folder.rstrip("/"))
        shown = posixpath.dirname(partition.path_beside("x")) if name in {"", ".", ".."} else folder or "."
        return LogDirState(
            path=partition.files.shown(shown),
            is_log_dir=any(data is not None for data in found.values()),
            clean=found[file_names.CLEAN_SHUTDOWN] is not None,
            properties=self._properties(partition, found[file_names.META_PROPERTIES]),
            recovery_points=self._offsets(partition, file_names.RECOVERY_POINTS, found),
            high_watermarks=self._offsets(partition, file_names.HIGH_WATERMARKS, found),
            log_starts=self._offsets(partition, file_names.LOG_STARTS, found),
            cleaned=self._offsets(partition, file_names.CLEANER_OFFSETS, found),
        )

    def _file(self, partition: Partition, name: str) -> bytes | None:
        try:
            return partition.beside(name)
        except UnreadableError as error:
            self._fail(error)
            return None

    def _properties(self, partition: Partition, data: bytes | None) -> MetaProperties | None:
        try:
            return None if data is None else meta_properties.read(data)
        except DamageError as damage:
            self._wrong(f"{partition.files.shown(partition.path_beside(file_names.META_PROPERTIES))}: {damage}")
            return None

    def _offsets(self, partition: Partition, name: str, found: Mapping[str, bytes | None]) -> Offsets:
        data = found[name]
        try:
            entries = () if data is None else checkpoints.read(data)
        except DamageError as damage:
            self._wrong(f"{partition.files.shown(partition.path_beside(name))}: {damage}")
            entries = ()
        return {(entry.topic, entry.partition): entry.offset for entry in entries}
