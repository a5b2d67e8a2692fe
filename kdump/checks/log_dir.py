"""Checks the files of a log dir that are not in partition folders, and returns their values for a partition."""

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
    file_names.CLEAN_SHUTDOWN: "The existence of the file marks a clean stop. Its content, from 3.7 on, is the broker "
    "epoch.",
    file_names.RECOVERY_POINTS: f"{REFUSED} If the file is missing, it reads all logs after an unclean stop.",
    file_names.HIGH_WATERMARKS: f"{REFUSED} If the file is missing, high watermarks begin at the log start offset and "
    "rise again.",
    file_names.LOG_STARTS: f"{REFUSED} If the file is missing, records that a client deleted are served again.",
    file_names.CLEANER_OFFSETS: f"{REFUSED} If the file is missing, compaction begins again at the log start.",
}


class LogDir(NamedTuple):
    """The values of one partition in the files of its log dir. A value is None if no file has it.

    ``known``: the parent folder is a log dir. ``clean``: its broker had a clean shutdown.
    """

    known: bool = False
    clean: bool = False
    recovery_point: int | None = None
    high_watermark: int | None = None
    log_start: int | None = None
    first_dirty: int | None = None
    """The first offset that the log cleaner has not read (0 if it has read none); None without its checkpoint."""
    cleaned: bool | None = None
    """Whether the checkpoint of the log cleaner has the partition; None without its checkpoint."""
    properties: MetaProperties | None = None


class LogDirs(LogDirStates):
    """The log dirs of the checked partitions. Each file is read once, and each problem is reported once."""

    def __init__(self) -> None:
        super().__init__(SILENT, READERS)
        self._wrong_files: set[str] = set()
        self._folders: set[str] = set()
        self._news: list[Finding] = []

    def news(self) -> list[Finding]:
        """Return the findings since the last call."""
        found, self._news = self._news, []
        return found

    def facts(self, partition: Partition, fail: Callable[[UnreadableError], None] = raise_it) -> LogDir:
        """Return the values of a partition.

        For each partition ``fail`` receives each unreadable file of the log dir; by default it raises.
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
        """Add the finding on a broken file, once: the user may name a file that is in a log dir too."""
        if path not in self._wrong_files:
            self._wrong_files.add(path)
            advice = ADVICE[name]
            if isinstance(damage, NumberDamageError):
                advice = advice.replace(REFUSED, NO_NUMBER)
            self._news.append(broken(path, damage, advice, fatal=advice.startswith(REFUSED)))


def check(files: Files, folder: str, fail: Callable[[UnreadableError], None] = raise_it) -> Iterator[Finding]:
    """Yield the findings on a log dir itself. The files in :data:`READERS` are not checked here.

    ``fail`` receives unreadable files; by default it raises.
    """
    try:
        entries = files.entries(folder)
    except UnreadableError as error:  # its partition folders may still be readable
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
            text = (
                "a folder with the name of the clean shutdown marker: a broker starts as after a clean stop, and "
                "removes the folder if it is empty"
            )
            yield remark(path, Code.FOLDER, text)
        elif entry.is_folder and file_names.is_foreign(entry.name):
            yield Finding(
                level=Level.DERIVED,
                file=path,
                kind=Code.FOLDER,
                text="a broker does not start if a log dir has a folder of this name",
                expected="TOPIC-PARTITION",
                found=entry.name,
                fatal=True,
                advice="Move the folder out of the log dir, or set log.dirs to a folder below the mount point.",
            )


def of_a_dispensable(finding: Finding) -> Finding:
    """Return a finding for a log dir without which the broker starts: an unreadable file only takes it offline.

    Some contents of ``meta.properties`` still prevent the start: the dry start reports them.
    """
    if not finding.advice.startswith(REFUSED):
        return finding
    is_of_ids = finding.file.endswith(file_names.META_PROPERTIES)
    advice = finding.advice.replace(REFUSED, "" if is_of_ids else LEFT_OUT).lstrip()
    return replace(finding, fatal=False, advice=advice)


HALF_WRITTEN: Final = "a broker stopped while it wrote this file: it uses the file of the same name without .tmp"


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
