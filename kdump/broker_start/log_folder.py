"""The outcome of a start for one partition folder: loaded, recovered, truncated, or fatal to the broker or log dir.

Sources: Kafka's classes UnifiedLog (``apply``, ``initializeTopicId``), LogLoader, LogSegment, ProducerStateManager and
LeaderEpochFileCache. The segments themselves are the matter of :mod:`kdump.recovery.log_loader`.
"""

from __future__ import annotations

import posixpath
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from kdump.broker_start.outcome import LogStart, StartCause, StartCut, StartOutcome
from kdump.errors import DamageError
from kdump.findings.codes import Code
from kdump.formats import leader_epoch, partition_metadata
from kdump.formats.checkpoint_text import NumberDamageError
from kdump.formats.sparse_index import DEFAULT_INTERVAL
from kdump.log_dirs import file_names
from kdump.log_dirs.files import read_file
from kdump.log_dirs.finder import Finder, Wanted
from kdump.recovery import log_loader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kdump.broker_start.log_dir_files import LogDirFiles
    from kdump.broker_start.release import StartRelease
    from kdump.errors import UnreadableError
    from kdump.formats.leader_epoch import EpochEntry
    from kdump.log_dirs.files import Entry, Files
    from kdump.log_dirs.partition import Partition
    from kdump.recovery.segment_end import Cut

T = TypeVar("T")
_INDEXES: Final = tuple(f".{suffix}" for suffix in file_names.INDEXES)
_BY_STATE: Final = {
    file_names.DELETE_FOLDER: (StartOutcome.DELETED, Code.NAMED_DELETE, "the folder's name marks it for deletion"),
    file_names.FUTURE_FOLDER: (StartOutcome.FUTURE, Code.NAMED_FUTURE, "a replica on its way from another log dir"),
    file_names.STRAY_FOLDER: (StartOutcome.STRAY, Code.NAMED_STRAY, "the folder's name marks it as stray"),
}


class StopsError(Exception):
    """The log cannot be loaded: the broker ends, or where ``is_io`` its log dir goes offline."""

    def __init__(self, cause: StartCause, *, is_io: bool = False) -> None:
        super().__init__(cause.text)
        self.cause, self.is_io = cause, is_io


class LogFolder:
    """A partition folder of a log dir, listed once."""

    def __init__(self, log_dir: LogDirFiles, path: str, parsed: file_names.FolderName, limit: int) -> None:
        self.log_dir, self.path, self.parsed, self.limit = log_dir, path, parsed, limit
        self.files: Files = log_dir.files
        self.name = self.files.shown(path)

    @classmethod
    def of(cls, log_dir: LogDirFiles, entry: Entry, limit: int) -> LogFolder:
        """Return the folder of an entry whose name is that of a partition."""
        parsed = file_names.parse_folder(entry.name)
        if parsed is None:
            raise ValueError(entry.name)
        return cls(log_dir, entry.path, parsed, limit)

    @property
    def base(self) -> str:
        """The folder's name in its log dir."""
        return posixpath.basename(self.path)

    @cached_property
    def inside(self) -> dict[str, Entry]:
        """What it holds, by name. Raises UnreadableError."""
        return {entry.name: entry for entry in self.files.entries(self.path)}

    def shown(self, name: str) -> str:
        """Return the path of something in it, as messages have it."""
        return self.files.shown(posixpath.join(self.path, name))

    def read(self, name: str) -> bytes:
        """Return the content of a file in it. Raises UnreadableError."""
        return read_file(self.files, self.inside[name].path)

    @cached_property
    def partition(self) -> Partition:
        """The folder as a partition, whose segments hold leftovers too."""
        finder = Finder(Wanted(leftovers=True, max_batch_bytes=self.limit))
        name = file_names.Name(self.parsed.topic, self.parsed.partition)
        regular = [entry for entry in self.inside.values() if not entry.is_folder]
        return finder.partition(self.path, name, regular, self.files)

    @cached_property
    def epochs(self) -> tuple[EpochEntry, ...]:
        """The leader epochs, or none if the file is absent. Raises StopsError for a file that a broker refuses."""
        return _parsed(self, file_names.LEADER_EPOCHS, leader_epoch.read, Code.LEADER_EPOCHS_BROKEN) or ()


class Loading(NamedTuple):
    """The facts outside a folder that decide how its log is loaded.

    ``sound_end`` is the next offset of a log that is known to be valid: it is not read again.
    """

    clean: bool
    recovery_point: int
    log_start: int
    release: StartRelease
    sound_end: int | None = None
    interval: int = DEFAULT_INTERVAL


def load(folder: LogFolder, how: Loading) -> LogStart:
    """Load a log. Raises StopsError where the broker cannot, UnreadableError where kdump cannot read a file."""
    folder.epochs  # noqa: B018  reading the file is what the broker does first
    _check_names(folder)
    _check_folders(folder)
    outcome = log_loader.dry_run(
        folder.partition,
        clean=how.clean or folder.parsed.state == file_names.DELETE_FOLDER,
        recovery_point=how.recovery_point,
        log_start=how.log_start,
        interval=how.interval,
        sound_end=how.sound_end,
        searches_bases=how.release.searches_bases,
    )
    if outcome.fails is not None:
        raise StopsError(StartCause(code=Code(outcome.fails_code), file=outcome.fails_at, text=outcome.fails))
    _check_snapshots(folder, outcome)
    metadata = _parsed(folder, file_names.PARTITION_METADATA, partition_metadata.read, Code.PARTITION_METADATA_BROKEN)
    return _result(folder, how, outcome, None if metadata is None else metadata.topic_id)


def _parsed(folder: LogFolder, name: str, read: Callable[[bytes], T], code: Code) -> T | None:
    """Return a text file of a folder, None without one. Raises StopsError for one that a broker refuses."""
    entry, shown = folder.inside.get(name), folder.shown(name)
    if entry is None:
        return None
    if folder.log_dir.is_dangling(entry):
        if name == file_names.PARTITION_METADATA:  # the broker asks whether the file exists
            return None
        raise StopsError(StartCause(code=code, file=shown, text="NoSuchFileException: a link to nowhere"), is_io=True)
    if entry.is_folder:
        raise StopsError(StartCause(code=code, file=shown, text="Is a directory"), is_io=True)
    try:
        return read(folder.read(name))
    except DamageError as damage:
        cause = StartCause(code=code, file=shown, text=str(damage))
        raise StopsError(cause, is_io=not isinstance(damage, NumberDamageError)) from None


def _check_names(folder: LogFolder) -> None:
    """Look for files whose names must begin with an offset."""
    named = (file_names.LOG, file_names.CLEANED, file_names.SWAP, file_names.PRODUCER_SNAPSHOT)
    ends = (*_INDEXES, *(f".{each}" for each in named))
    for entry in folder.inside.values():
        wanted = entry.name.endswith(ends) or entry.name.endswith(f".{file_names.PRODUCER_SNAPSHOT}")
        if (
            wanted
            and not entry.is_folder
            and file_names.offset_of(entry.name) is None
            and not folder.log_dir.is_dangling(entry)
        ):
            stem = entry.name.partition(".")[0]
            text = f'NumberFormatException: For input string: "{stem}"'
            raise StopsError(StartCause(code=Code.NAME_NO_OFFSET, file=folder.shown(entry.name), text=text))


def _check_folders(folder: LogFolder) -> None:
    """Look for folders in the place of index files: who opens them first fails, be it the first consumer."""
    for each in folder.partition.segments:
        stem, _, state = posixpath.basename(each.path).partition(f".{file_names.LOG}")
        for suffix in () if state else file_names.INDEXES:
            entry = folder.inside.get(f"{stem}.{suffix}")
            if entry is not None and entry.is_folder:
                cause = StartCause(code=Code.INDEX_UNREADABLE, file=folder.shown(entry.name), text="Is a directory")
                raise StopsError(cause, is_io=True)


def _check_snapshots(folder: LogFolder, outcome: log_loader.Outcome) -> None:
    """Look for a folder in the place of the producer snapshots that are written at the end of the load."""
    ends = {outcome.log_end_offset}
    if outcome.recovered:
        ends |= {each.base_offset for each in folder.partition.segments if each.name in outcome.recovered[1:]}
    for end in ends:
        entry = folder.inside.get(f"{end or 0:020}.{file_names.PRODUCER_SNAPSHOT}")
        if entry is not None and entry.is_folder:
            cause = StartCause(code=Code.SNAPSHOT_UNREADABLE, file=folder.shown(entry.name), text="Is a directory")
            raise StopsError(cause, is_io=True)


def _result(folder: LogFolder, how: Loading, outcome: log_loader.Outcome, topic_id: bytes | None) -> LogStart:
    cuts = tuple(cut_of(cut) for cut in outcome.cuts)
    logs = [each for each in folder.partition.segments if each.path.endswith(f".{file_names.LOG}")]
    if cuts:
        word = StartOutcome.TRUNCATED
    else:
        word = StartOutcome.LOADED if how.clean or not (logs or outcome.swapped) else StartOutcome.RECOVERED
    result = LogStart(
        topic=folder.parsed.topic,
        partition=folder.parsed.partition,
        folder=folder.base,
        log_dir=folder.log_dir.name,
        outcome=word,
        log_start_offset=outcome.log_start_offset,
        log_end_offset=outcome.log_end_offset,
        causes=tuple(_causes(folder, outcome, cuts, has_logs=bool(logs or outcome.swapped))),
        cuts=cuts,
        recovered=outcome.recovered,
        recovered_bytes=outcome.recovered_bytes,
        splits=outcome.splits,
        topic_id=topic_id,
        path=folder.name,
    )
    if folder.parsed.state not in _BY_STATE:
        return result
    word, code, text = _BY_STATE[folder.parsed.state]
    result = with_causes(result._replace(outcome=word), StartCause(code=code, file=folder.name, text=text))
    if word is StartOutcome.DELETED:
        return result._replace(log_start_offset=None, log_end_offset=None)
    return result


def _causes(
    folder: LogFolder, outcome: log_loader.Outcome, cuts: tuple[StartCut, ...], *, has_logs: bool
) -> Iterator[StartCause]:
    """Yield why a log that loads is not what its files hold."""
    for cut in cuts:
        yield StartCause(code=cut.code, file=cut.file, text=cut.reason)
    if outcome.hidden_by is not None:
        text = (
            "the newest index entry points past the end of the log: after a clean stop the log ends at the base "
            f"offset of the segment, {outcome.log_end_offset}"
        )
        yield StartCause(code=Code.INDEX_BEYOND_LOG, file=outcome.hidden_by, text=text)
    for name in outcome.discarded:
        text = "it is deleted: a .cleaned file of a lower or equal base offset says that it is not complete"
        yield StartCause(code=Code.CLEANED_DISCARDS_SWAP, file=name, text=text)
    if not has_logs:
        yield StartCause(
            code=Code.NO_SEGMENT, file=folder.name, text="the folder holds no segment: an empty log is begun"
        )


def cut_of(cut: Cut) -> StartCut:
    """Return a cut of the log loader as one of this room."""
    return StartCut(
        code=Code(cut.code),
        file=cut.file,
        position=cut.position,
        size=cut.size,
        reason=cut.reason,
        first_offset=cut.first_offset,
        last_offset=cut.last_offset,
        records=cut.records,
        replaced_by=cut.replaced_by,
        superseded=cut.superseded,
        is_replaced_by_nothing=cut.is_replaced_by_nothing,
    )


def with_causes(log: LogStart, *causes: StartCause) -> LogStart:
    """Return a log with graver causes before its own."""
    return log._replace(causes=(*causes, *log.causes))


def unreadable(error: UnreadableError) -> StartCause:
    """Return the cause of a file that the system does not give to kdump."""
    return StartCause(code=Code.FILE_UNREADABLE, file=str(error.path), text=f"kdump cannot read it: {error.reason}")
