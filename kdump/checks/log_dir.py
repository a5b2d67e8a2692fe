"""Checks the files of a log dir outside its partition folders, and returns their values for a partition."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.checks import kraft_snapshot
from kdump.errors import SILENT, StoreError, UnreadableError, raise_it
from kdump.findings import Finding, Level, remark, text_of
from kdump.findings.codes import Code
from kdump.formats import clean_shutdown, meta_properties
from kdump.formats.checkpoint_text import NumberDamageError
from kdump.log_dirs import file_names, log_dir_state
from kdump.log_dirs.local import LOCAL
from kdump.log_dirs.log_dir_state import LogDirStates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kdump.errors import DamageError
    from kdump.formats.meta_properties import MetaProperties
    from kdump.log_dirs.files import Files
    from kdump.log_dirs.partition import Partition
    from kdump.primitives.wire import Bytes


def _properties(data: Bytes) -> MetaProperties:
    properties = meta_properties.read(data)
    meta_properties.check(properties)
    return properties


READERS: Final = {
    **log_dir_state.READERS,
    file_names.META_PROPERTIES: _properties,
    file_names.CLEAN_SHUTDOWN: clean_shutdown.read,
}
REFUSED: Final = "A broker that cannot read it does not start."
LEFT_OUT: Final = "A broker that cannot read it starts without this log dir."
NO_NUMBER: Final = "A broker starts as if the file had no entries."
ADVICE: Final = {
    file_names.META_PROPERTIES: f"{REFUSED} Write it again with the ids of the cluster and of this broker.",
    file_names.CLEAN_SHUTDOWN: "What counts for a broker is that it is there; from 3.7 on it holds the broker's epoch.",
    file_names.RECOVERY_POINTS: f"{REFUSED} Without the file it reads all logs after an unclean stop.",
    file_names.HIGH_WATERMARKS: f"{REFUSED} Without the file a replica begins at its log start, and learns it again.",
    file_names.LOG_STARTS: f"{REFUSED} Without the file offsets that were deleted by request come back.",
    file_names.CLEANER_OFFSETS: f"{REFUSED} Without the file compaction begins again.",
}


class LogDir(NamedTuple):
    """The values of one partition in the files of its log dir; None if a file is absent or has no value for it.

    ``known``: the parent folder is a log dir. ``clean``: its broker had a clean shutdown.
    """

    known: bool = False
    clean: bool = False
    recovery_point: int | None = None
    high_watermark: int | None = None
    log_start: int | None = None
    first_dirty: int | None = None
    """The first offset that the log cleaner has not read (0: none read); None without its checkpoint."""
    cleaned: bool | None = None
    """Whether the checkpoint of the log cleaner has the partition."""
    properties: MetaProperties | None = None


class LogDirs(LogDirStates):
    """The log dirs of partitions. Each file is read once, and each problem is reported once."""

    def __init__(self) -> None:
        super().__init__(SILENT, READERS)
        self._wrong_files: set[str] = set()
        self._folders: set[str] = set()
        self._news: list[Finding] = []

    def news(self) -> list[Finding]:
        """Return the new findings since the last call."""
        found, self._news = self._news, []
        return found

    def facts(self, partition: Partition, fail: Callable[[UnreadableError], None] = raise_it) -> LogDir:
        """Return the values of a partition.

        ``fail`` receives each unreadable file, once for each partition; by default it raises.
        """
        folder = partition.folder if partition.topic is None else partition.log_dir
        if folder not in self._folders:
            self._folders.add(folder)
            self._news += check(partition.files, folder or ("." if partition.files is LOCAL else ""), fail)
        state, here = self.of(partition), (partition.topic, partition.partition)
        for error in state.failed:
            fail(error)
        return LogDir(
            known=state.is_log_dir,
            clean=state.clean,
            recovery_point=state.recovery_points.get(here),
            high_watermark=state.high_watermarks.get(here),
            log_start=state.log_starts.get(here),
            first_dirty=state.cleaned.get(here, 0) if file_names.CLEANER_OFFSETS in state.sound else None,
            cleaned=here in state.cleaned if file_names.CLEANER_OFFSETS in state.sound else None,
            properties=state.properties,
        )

    def wrong(self, name: str, path: str, damage: DamageError) -> None:
        """Add the finding on a broken file, once: a file may be named by the user and be in a log dir too."""
        if path not in self._wrong_files:
            self._wrong_files.add(path)
            advice = ADVICE[name]
            if isinstance(damage, NumberDamageError):
                advice = advice.replace(REFUSED, NO_NUMBER)
            self._news.append(broken(path, damage, advice, fatal=advice.startswith(REFUSED)))


def check(files: Files, folder: str, fail: Callable[[UnreadableError], None] = raise_it) -> Iterator[Finding]:
    """Yield the findings on a log dir itself, without those on the files in :data:`READERS`.

    ``fail`` receives unreadable files; by default it raises.
    """
    try:
        entries = files.entries(folder)
    except UnreadableError as error:  # the folders in it may be readable all the same
        if isinstance(error, StoreError):
            fail(error)
        return
    names = {entry.name for entry in entries}
    if not names & set(READERS):
        return
    for entry in entries:
        path = files.shown(entry.path)
        if entry.name == file_names.BOOTSTRAP_SNAPSHOT:
            try:
                found = kraft_snapshot.check(files, entry.path).findings
                yield from (replace(one, level=Level.DERIVED) if one.level is Level.LOG else one for one in found)
            except UnreadableError as error:
                fail(error)
        elif entry.name.endswith(f".{file_names.TMP}"):
            yield remark(path, Code.LEFTOVER, HALF_WRITTEN)
        elif entry.is_folder and entry.name == file_names.CLEAN_SHUTDOWN:
            text = "a folder: a broker takes it for the marker of a clean stop, and removes it where it is empty"
            yield remark(path, Code.FOLDER, text)
        elif entry.is_folder and file_names.is_foreign(entry.name):
            yield Finding(
                level=Level.DERIVED,
                file=path,
                kind=Code.FOLDER,
                text="a broker does not start on a log dir that holds a folder of this name",
                expected="TOPIC-PARTITION",
                found=entry.name,
                fatal=True,
                advice="Move the folder out of the log dir, or let log.dirs name a folder below the mount point.",
            )


def of_a_dispensable(finding: Finding) -> Finding:
    """Return a finding in a log dir without which the broker starts: an unreadable file takes it offline.

    Some contents of ``meta.properties`` stop the broker all the same: the dry start reports them.
    """
    if not finding.advice.startswith(REFUSED):
        return finding
    is_of_ids = finding.file.endswith(file_names.META_PROPERTIES)
    advice = finding.advice.replace(REFUSED, "" if is_of_ids else LEFT_OUT).lstrip()
    return replace(finding, fatal=False, advice=advice)


HALF_WRITTEN: Final = "a broker stopped while it wrote this file: the file of the same name without .tmp counts"


def broken(path: str, damage: DamageError, advice: str, *, fatal: bool = False) -> Finding:
    """Return the finding on a file that a broker cannot read."""
    return Finding(
        level=Level.DERIVED,
        file=path,
        kind=damage.kind,
        text=f"it cannot be read: {damage.reason}",
        position=damage.position,
        expected=text_of(damage.expected),
        found=text_of(damage.found),
        advice=advice,
        fatal=fatal,
    )
