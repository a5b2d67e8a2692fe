"""The files of a log dir beside its partitions' folders, and what they say of one partition."""

from __future__ import annotations

import posixpath
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.checks import kraft_snapshot
from kdump.errors import DamageError, UnreadableError
from kdump.findings import Finding, Level, text_of
from kdump.formats import checkpoints, clean_shutdown, meta_properties
from kdump.formats.checkpoints import PartitionOffset
from kdump.formats.meta_properties import MetaProperties
from kdump.log_dirs import file_names
from kdump.log_dirs.file_names import FOLDER_NAME, LEFTOVER_FOLDER
from kdump.log_dirs.finder import raise_it
from kdump.log_dirs.local import LOCAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from kdump.log_dirs.files import Files
    from kdump.log_dirs.partition import Partition
    from kdump.primitives.wire import Bytes

MARK: Final = file_names.CLEAN_SHUTDOWN
"""What counts of it is that it is there, whatever it holds."""


def _properties(data: Bytes) -> MetaProperties:
    properties = meta_properties.read(data)
    meta_properties.check(properties)
    return properties


READERS: Final[dict[str, Callable[[Bytes], object]]] = {
    file_names.META_PROPERTIES: _properties,
    file_names.CLEAN_SHUTDOWN: clean_shutdown.read,
    file_names.RECOVERY_POINTS: checkpoints.read,
    file_names.HIGH_WATERMARKS: checkpoints.read,
    file_names.LOG_STARTS: checkpoints.read,
    file_names.CLEANER_OFFSETS: checkpoints.read,
}
REFUSED: Final = "A broker that cannot read it does not start."
ADVICE: Final = {
    file_names.META_PROPERTIES: f"{REFUSED} Write it anew with the ids of the cluster and of this broker.",
    file_names.CLEAN_SHUTDOWN: "What counts for a broker is that it is there; from 3.7 on it holds the broker's epoch.",
    file_names.RECOVERY_POINTS: f"{REFUSED} Without the file it reads all logs after an unclean stop.",
    file_names.HIGH_WATERMARKS: f"{REFUSED} Without the file a replica begins at its log start, and learns it again.",
    file_names.LOG_STARTS: f"{REFUSED} Without the file offsets that were deleted by request come back.",
    file_names.CLEANER_OFFSETS: f"{REFUSED} Without the file compaction begins anew.",
}


class LogDir(NamedTuple):
    """What the files of a log dir say of one partition; None where a file is not there or does not name it.

    ``known`` tells whether the folder above is a log dir at all, ``clean`` whether its broker stopped in good order.
    """

    known: bool = False
    clean: bool = False
    recovery_point: int | None = None
    high_watermark: int | None = None
    log_start: int | None = None
    cleaned: bool | None = None
    properties: MetaProperties | None = None


class Content(NamedTuple):
    """What a file of a log dir holds; nothing where it is not ``sound``. Offsets are by topic and partition."""

    offsets: Mapping[tuple[str | None, int | None], int] = MappingProxyType({})
    properties: MetaProperties | None = None
    sound: bool = True


class LogDirs:
    """The log dirs that partitions lie in. A file is read once, and what is wrong with it told once."""

    def __init__(self) -> None:
        self._files: dict[str, Content | UnreadableError | None] = {}
        self._folders: set[str] = set()
        self._news: list[Finding] = []

    def news(self) -> list[Finding]:
        """Return what was found since this was last asked."""
        told, self._news = self._news, []
        return told

    def of(self, partition: Partition, fail: Callable[[UnreadableError], None] = raise_it) -> LogDir:
        """Return what the log dir says of a partition.

        ``fail`` is told of files that cannot be read, which are passed over; by default that raises.
        """
        folder = partition.folder if partition.topic is None else above(partition)
        if folder not in self._folders:
            self._folders.add(folder)
            self._news += check(partition.files, folder or ("." if partition.files is LOCAL else ""), fail)
        here = partition.topic, partition.partition
        found = {name: self._file(partition, name, fail) for name in READERS}
        readable = {name for name, content in found.items() if content and (content.sound or name == MARK)}
        if not readable:
            return LogDir()
        offsets = {
            name: content.offsets[here] for name, content in found.items() if content and here in content.offsets
        }
        properties = found[file_names.META_PROPERTIES]
        return LogDir(
            known=True,
            clean=MARK in readable,
            recovery_point=offsets.get(file_names.RECOVERY_POINTS),
            high_watermark=offsets.get(file_names.HIGH_WATERMARKS),
            log_start=offsets.get(file_names.LOG_STARTS),
            cleaned=file_names.CLEANER_OFFSETS in offsets if file_names.CLEANER_OFFSETS in readable else None,
            properties=properties.properties if properties else None,
        )

    def _file(self, partition: Partition, name: str, fail: Callable[[UnreadableError], None]) -> Content | None:
        """Return what a file of the log dir holds that a partition lies in, None where there is none."""
        path = partition.files.shown(posixpath.join(above(partition), name))
        if path not in self._files:
            try:
                data = partition.beside(name)
            except UnreadableError as error:
                self._files[path] = UnreadableError(path, error.reason, error.hint)
            else:
                self._files[path] = None if data is None else self._judge(name, path, data)
        content = self._files[path]
        if isinstance(content, UnreadableError):  # each partition is told: it lacks what stands there
            fail(content)
            return None
        return content

    def judge(self, name: str, path: str, data: Bytes) -> None:
        """Look at a file of a log dir that was named itself."""
        if path not in self._files:
            self._files[path] = self._judge(name, path, data)

    def _judge(self, name: str, path: str, data: Bytes) -> Content:
        try:
            content = READERS[name](data)
        except DamageError as damage:
            self._news.append(broken(path, damage, ADVICE[name]))
            return Content(sound=False)
        if isinstance(content, MetaProperties):
            return Content(properties=content)
        entries = content if isinstance(content, tuple) else ()
        return Content({entry[:2]: entry.offset for entry in entries if isinstance(entry, PartitionOffset)})


def above(partition: Partition) -> str:
    """Return the path of the log dir that holds a partition's folder, as near as can be to what the user wrote."""
    folder, name = posixpath.split(partition.folder.rstrip("/"))
    return posixpath.dirname(partition.path_beside("x")) if name in {"", ".", ".."} else folder


def check(files: Files, folder: str, fail: Callable[[UnreadableError], None] = raise_it) -> Iterator[Finding]:
    """Yield what is wrong in a log dir itself, but for the files of :data:`READERS`.

    ``fail`` is told of files that cannot be read, which are passed over; by default that raises.
    """
    try:
        entries = files.entries(folder)
    except UnreadableError:  # it may be closed to us and the partition's folder open: then nothing can be told
        return
    names = {entry.name for entry in entries}
    if not names & set(READERS):
        return
    for entry in entries:
        path = files.shown(entry.path)
        if entry.name == file_names.BOOTSTRAP_SNAPSHOT:
            try:
                yield from kraft_snapshot.check(files, entry.path).findings
            except UnreadableError as error:
                fail(error)
        elif entry.name.endswith(f".{file_names.TMP}"):
            yield Finding(level=Level.REMARK, file=path, kind="leftover", text=HALF_WRITTEN)
        elif entry.is_folder and entry.name != file_names.REMOTE_INDEX_CACHE and not _is_partition(entry.name):
            yield Finding(
                level=Level.DERIVED,
                file=path,
                kind="folder",
                text="a broker does not start on a log dir that holds a folder of this name",
                expected="TOPIC-PARTITION",
                found=entry.name,
                advice="Move the folder out of the log dir, or let log.dirs name a folder below the mount point.",
            )


HALF_WRITTEN: Final = "what was being written when a broker stopped: the file of the same name without .tmp counts"


def _is_partition(name: str) -> bool:
    return FOLDER_NAME.fullmatch(name) is not None or LEFTOVER_FOLDER.fullmatch(name) is not None


def broken(path: str, damage: DamageError, advice: str) -> Finding:
    """Return the finding for a file that cannot be read."""
    return Finding(
        level=Level.DERIVED,
        file=path,
        kind=damage.kind,
        text=f"it cannot be read: {damage.reason}",
        position=damage.position,
        expected=text_of(damage.expected),
        found=text_of(damage.found),
        advice=advice,
    )
