"""The log dirs and partition folders of a broker, and the result of loading the log of one folder (:func:`load`).

:mod:`kdump.recovery.log_loader` simulates the loading of segments. This module adds leader epochs, the topic id, and
entries of the folder that a broker cannot use. Sources: UnifiedLog (``apply``, ``initializeTopicId``), LogLoader
(``loadSegmentFiles``), LogSegment, ProducerStateManager, LeaderEpochFileCache.
"""

import os
import posixpath
import stat
import sys
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from kdump import kernel
from kdump.broker_start.outcome import LogStart, StartCause, StartOutcome
from kdump.errors import DamageError, StoreError, UnreadableError
from kdump.findings.codes import Code, FindingCode
from kdump.formats import leader_epoch, partition_metadata
from kdump.formats.checkpoint_text import NumberDamageError
from kdump.formats.sparse_index import DEFAULT_INTERVAL
from kdump.formats.time_index import TimeIndex
from kdump.internal_topics import CLUSTER_METADATA
from kdump.log_dirs import file_names
from kdump.log_dirs.files import read_file
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_dirs.local import LOCAL
from kdump.recovery import MAX_OFFSET, first_recovered

if kernel.COMPILED:
    from kdump.kernel import records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from kdump.broker_start.release import StartRelease
    from kdump.formats.leader_epoch import EpochEntry
    from kdump.log_dirs.files import Entry, Files
    from kdump.log_dirs.partition import Partition, Segment
    from kdump.recovery import SoundLog
    from kdump.recovery.log_loader import Outcome

T = TypeVar("T")
METADATA_FOLDER: Final = f"{CLUSTER_METADATA}-0"
_INDEXES: Final = tuple(f".{suffix}" for suffix in file_names.INDEXES)
_NAMED_BY_OFFSET: Final = (
    *_INDEXES,
    *(f".{each}" for each in (file_names.LOG, file_names.CLEANED, file_names.SWAP, file_names.PRODUCER_SNAPSHOT)),
)
"""A file name with one of these suffixes must begin with an offset."""
_BY_STATE: Final = {
    file_names.DELETE_FOLDER: (StartOutcome.DELETED, Code.NAMED_DELETE, "the folder's name marks it for deletion"),
    file_names.FUTURE_FOLDER: (StartOutcome.FUTURE, Code.NAMED_FUTURE, "a replica that a broker is moving here"),
    file_names.STRAY_FOLDER: (StartOutcome.STRAY, Code.NAMED_STRAY, "the folder's name marks it as stray"),
}


def _is_fixed(path: str) -> bool | None:
    """Return whether a file is immutable or append-only; None if the file system has no such attributes."""
    known = records.is_fixed(path) if kernel.COMPILED else None
    if known is not None:
        return known
    from fcntl import ioctl

    flags = bytearray(8)  # for immutable bytes, ioctl makes and drops an error
    try:
        opened = os.open(path, os.O_NONBLOCK)
    except OSError:
        return False
    try:
        ioctl(opened, _GET_FLAGS, flags)
    except OSError:
        return None
    finally:
        os.close(opened)
    return bool(int.from_bytes(flags, sys.byteorder) & _UNCHANGEABLE)


class StopsError(Exception):
    """A log cannot be loaded. With ``is_io`` the log dir goes offline; otherwise the broker does not start.

    ``is_late``: the log dir goes offline after the start, when a client reads from the log.
    """

    def __init__(self, cause: StartCause, *, is_io: bool = False, is_late: bool = False) -> None:
        super().__init__(cause.text)
        self.cause, self.is_io, self.is_late = cause, is_io, is_late


_GET_FLAGS: Final = 0x80086601
"""``FS_IOC_GETFLAGS`` of ``linux/fs.h`` on processors of 64 bits."""
_UNCHANGEABLE: Final = 0x10 | 0x20
"""``FS_IMMUTABLE_FL`` and ``FS_APPEND_FL``."""


class LogDirFiles:
    """A path given as a log dir; it may be absent, or a file. Its entries come from ``listed``, or are listed once."""

    def __init__(self, files: "Files", path: str, listed: "Partition | None" = None) -> None:
        self.files, self.path, self._listed = files, path, listed
        self.name = files.shown(path or ".")

    @cached_property
    def _found(self) -> "Entry | None":
        return self.files.look(self.path or ("." if self.files is LOCAL else ""))

    @property
    def exists(self) -> bool:
        return self.is_folder or self._found is not None

    @cached_property
    def is_folder(self) -> bool:
        """Whether it is a folder. True if this cannot be read: then :attr:`entries` raises UnreadableError."""
        try:
            return self._found is not None and self._found.is_folder
        except StoreError:
            raise
        except UnreadableError:
            return True

    @cached_property
    def entries(self) -> "dict[str, Entry]":
        """The entries of the log dir by name; empty if it is absent or no folder. Raises UnreadableError."""
        if not self.is_folder:
            return {}
        found = self.files.entries(self.path or ".") if self._listed is None else self._listed.entries
        return {entry.name: entry for entry in found}

    def entry(self, name: str) -> "Entry | None":
        return self.entries.get(name)

    def shown(self, name: str) -> str:
        return self.files.shown(posixpath.join(self.path, name))

    def read(self, name: str) -> bytes:
        return read_file(self.files, self.entries[name].path)

    def read_if_present(self, name: str) -> bytes | None:
        """Return the content of a file in the log dir, or None if the file is absent. Raises UnreadableError."""
        return self.read(name) if name in self.entries else None

    def is_dangling(self, entry: "Entry") -> bool:
        """Return whether an entry is a symbolic link whose target does not exist, or that leads back to itself."""
        return not entry.is_folder and not entry.size and self.files.look(entry.path) is None

    def is_loop(self, entry: "Entry") -> bool:
        """Return whether an entry that is dangling is a link that leads back to itself."""
        return self.files is LOCAL and os.path.islink(os.path.realpath(entry.path))  # noqa: PTH114  as below

    def blocked(self, entry: "Entry | None") -> StartCause | None:
        """Return the cause if no file can be opened or made in the place of an entry. A link's target is made."""
        if entry is None or (entry.is_regular and not self.is_dangling(entry)):
            return None
        what = entry.special or "folder"
        if entry.is_regular:
            above = posixpath.dirname(os.path.realpath(entry.path))
            if self.files is not LOCAL or (not self.is_loop(entry) and os.path.isdir(above)):  # noqa: PTH112  as below
                return None
            what = "broken link"
        shown = self.files.shown(entry.path)
        return StartCause(code=Code.FILE_BLOCKED, file=shown, text=f"IOException: {shown}: it is a {what}")

    def closed(self, paths: "Iterable[str]") -> "Iterator[str]":
        """Yield the paths in a local log dir for which its owner has no write permission (:func:`may_write`)."""
        if self.files is LOCAL:
            with suppress(OSError):  # the part of the start that reads the log dir reports it
                owner = os.stat(self.path or ".")  # noqa: PTH116  pathlib is slow to import
                for path in paths:
                    with suppress(OSError):
                        if not may_write(owner, os.stat(path)):  # noqa: PTH116  as above
                            yield path

    def immutable(self, paths: "Iterable[str]") -> str | None:
        """Return the first path in a local log dir that is immutable or append-only (``chattr`` on Linux), or None."""
        if self.files is not LOCAL or sys.platform != "linux":
            return None
        for path in paths:
            found = _is_fixed(path)
            if found is None:
                return None  # this file system has no attributes
            if found:
                return path
        return None

    def no_writes(self) -> str:
        """Return why the file system of a local log dir cannot be written: full or mounted read-only; else ""."""
        if self.files is not LOCAL:
            return ""
        try:
            system = os.statvfs(self.path or ".")
        except OSError:  # the part of the start that reads the log dir reports it
            return ""
        if system.f_flag & os.ST_RDONLY:
            return "mounted read-only"
        return "full" if system.f_blocks and not system.f_bavail else ""

    def is_full_folder(self, entry: "Entry") -> bool:
        """Return whether an entry is a folder that is not empty: a broker cannot delete it. It can delete a link."""
        is_link = self.files is LOCAL and os.path.islink(entry.path)  # noqa: PTH114  pathlib is slow to import
        return entry.is_folder and not is_link and next(iter(self.files.entries(entry.path)), None) is not None


def may_write(owner: os.stat_result, found: os.stat_result) -> bool:
    """Return whether the mode of ``found`` lets the ``owner`` of a log dir (or root) read and write a file or folder.

    A broker opens segments and ``.lock`` for writing. It only reads checkpoints, and replaces them.
    """
    bits = 0o700 if found.st_uid == owner.st_uid else 0o070 if found.st_gid == owner.st_gid else 0o007
    needed = bits & (0o777 if stat.S_ISDIR(found.st_mode) else 0o666)
    return not owner.st_uid or found.st_mode & needed == needed


class LogFolder:
    """A partition folder. Its entries come from ``listed``, an earlier listing with leftovers, or are listed once."""

    def __init__(
        self,
        log_dir: LogDirFiles,
        path: str,
        parsed: file_names.FolderName,
        limit: int,
        listed: "Partition | None" = None,
    ) -> None:
        self.log_dir, self.path, self.parsed, self.limit = log_dir, path, parsed, limit
        self.files: Files = log_dir.files
        self.listed = listed if listed is not None and listed.is_listed and listed.files is self.files else None
        self.name = self.files.shown(path)

    @classmethod
    def of(cls, log_dir: LogDirFiles, entry: "Entry", limit: int) -> "LogFolder":
        """Return the folder of a directory entry. Raises ValueError if its name has no topic and partition."""
        parsed = file_names.parse_folder(entry.name)
        if parsed is None:
            raise ValueError(entry.name)
        return cls(log_dir, entry.path, parsed, limit)

    @property
    def base(self) -> str:
        return posixpath.basename(self.path)

    @cached_property
    def inside(self) -> "dict[str, Entry]":
        """The entries of the folder by name. Raises UnreadableError."""
        if self.listed is None:
            return {entry.name: entry for entry in self.files.entries(self.path)}
        return {entry.name: entry for entry in self.listed.entries}

    def shown(self, name: str) -> str:
        return self.files.shown(posixpath.join(self.path, name))

    def read(self, name: str) -> bytes:
        return read_file(self.files, self.inside[name].path)

    @cached_property
    def partition(self) -> "Partition":
        """The folder as a partition: regular files only, with ``.swap``, ``.cleaned`` and ``.deleted`` segments."""
        if self.listed is not None:
            found = tuple([each for each in self.listed.segments if not each.special])
            return self.listed if len(found) == len(self.listed.segments) else self.listed._replace(segments=found)
        finder = Finder(Wanted(leftovers=True, max_batch_bytes=self.limit))
        name = file_names.Name(self.parsed.topic, self.parsed.partition)
        regular = [entry for entry in self.inside.values() if entry.is_regular]
        return finder.partition(self.path, name, regular, self.files)

    @property
    def newest(self) -> "Segment | None":
        """The newest segment with a ``.log``; None if there is none, or if the folder cannot be listed."""
        with suppress(UnreadableError):  # loading the log reports it
            return next(iter(self.partition.logs[-1:]), None)
        return None

    @cached_property
    def epochs(self) -> "tuple[EpochEntry, ...]":
        """The leader epochs; () without the file. Raises UnreadableError, and StopsError if a broker cannot read it."""
        return _parsed(self, file_names.LEADER_EPOCHS, leader_epoch.read, Code.LEADER_EPOCHS_BROKEN) or ()


class KnownLog(NamedTuple):
    """The facts that a check has found about a log, and the folder as the check listed it."""

    partition: "Partition | None" = None
    sound: "SoundLog | None" = None
    has_sound_files: bool = False
    """Whether the files of the leader epochs and of ``topic_id`` are known to be valid or absent."""
    topic_id: bytes | None = None
    wrong_indexes: "Sequence[str]" = ()
    """The ``.index`` and ``.index.swap`` files (shown paths) with wrong entries."""


NOTHING: Final = KnownLog()


class Loading(NamedTuple):
    """The facts outside the folder that decide the loading of a log: see :func:`kdump.recovery.log_loader.dry_run`."""

    clean: bool
    """Whether the last stop was clean."""
    recovery_point: int
    log_start: int
    release: "StartRelease"
    known: KnownLog = NOTHING
    interval: int = DEFAULT_INTERVAL
    index_size: int | None = None
    """segment.index.bytes, or None if it is unknown."""

    def may_overflow(self, folder: LogFolder) -> bool:
        """Return whether an index of the folder, or one that recovery rebuilds, may exceed ``index_size``."""
        if self.index_size is None:
            return False
        most = (self.index_size // TimeIndex.layout.size - 1) * (self.interval + 1)
        most_by_suffix = {".log": most, ".index": self.index_size, ".timeindex": self.index_size}
        return any(
            entry.size >= most_by_suffix.get(posixpath.splitext(name)[1], entry.size + 1)
            for name, entry in folder.inside.items()
        )


def load(folder: LogFolder, how: Loading) -> LogStart:
    """Return the result of loading the log of a folder. Raises UnreadableError and :class:`StopsError`."""
    known, may_overflow = how.known, how.may_overflow(folder)
    if not may_overflow and (loaded := _loaded_unchanged(folder, how)) is not None:
        return loaded
    if not known.has_sound_files:
        folder.epochs  # noqa: B018  the broker reads this file first
    from kdump.recovery import log_loader

    _check_names(folder)
    unread = _unusable_indexes(folder, how)
    blocked = _unusable_snapshots(folder)
    outcome = log_loader.dry_run(
        folder.partition,
        clean=how.clean,
        recovery_point=how.recovery_point,
        log_start=how.log_start,
        interval=how.interval,
        sound=None if blocked or may_overflow else known.sound,
        snapshot_folders=blocked,
        rules=log_loader.LoaderRules(
            how.release.searches_bases,
            how.release.forgives_io,
            how.release.checks_marker_size,
            how.index_size if may_overflow else None,
        ),
    )
    if outcome.fails is not None:
        cause = StartCause(code=outcome.fails.code, file=outcome.fails.file, text=outcome.fails.text)
        raise StopsError(cause, is_io=outcome.fails.is_io)
    if not outcome.swapped:
        _check_first_log(folder, how.log_start)
    topic_id = known.topic_id
    if not known.has_sound_files:
        of = _parsed(folder, file_names.PARTITION_METADATA, partition_metadata.read, Code.PARTITION_METADATA_BROKEN)
        topic_id = None if of is None else of.topic_id
    skipping = _skipping(folder, how, outcome) if known.wrong_indexes else ()
    return _result(folder, how, outcome, topic_id).with_causes(*unread, *skipping)


def blocked_epochs(folder: LogFolder) -> StartCause | None:
    """Return the cause if a folder is in the place of the ``.tmp`` file of the leader epochs (CheckpointFile.write)."""
    return folder.log_dir.blocked(folder.inside.get(f"{file_names.LEADER_EPOCHS}.{file_names.TMP}"))


def _loaded_unchanged(folder: LogFolder, how: Loading) -> LogStart | None:
    """Return the result for a plain folder that a check found valid, without a dry run; None in other cases."""
    sound, logs = how.known.sound, () if folder.listed is None else folder.listed.segments
    if sound is None or not (sound.is_plain and how.known.has_sound_files and sound.has_sound_indexes and logs):
        return None
    bases = [each.base_offset or 0 for each in logs]
    if folder.parsed.state or max(how.log_start - 1, bases[-1]) >= sound.end:
        return None
    recovered = () if how.clean else logs[first_recovered(bases, how.recovery_point) :]
    return LogStart(
        topic=folder.parsed.topic,
        partition=folder.parsed.partition,
        folder=folder.base,
        log_dir=folder.log_dir.name,
        outcome=StartOutcome.RECOVERED if recovered else StartOutcome.LOADED,
        log_start_offset=max(how.log_start, bases[0]),
        log_end_offset=sound.end,
        recovered=tuple([each.name for each in recovered]),
        recovered_bytes=sum([each.size for each in recovered]),
        topic_id=how.known.topic_id,
        path=folder.name,
    )


def _parsed(folder: LogFolder, name: str, read: "Callable[[bytes], T]", code: FindingCode) -> T | None:
    """Return the parsed file of a folder, or None if it is absent. Raises StopsError if a broker cannot read it."""
    entry, shown = folder.inside.get(name), folder.shown(name)
    if entry is None:
        return None
    if folder.log_dir.is_dangling(entry):
        if name == file_names.PARTITION_METADATA:  # for a broker the target of a broken link is absent
            return None
        raise StopsError(StartCause(code=code, file=shown, text="NoSuchFileException: a broken link"), is_io=True)
    if entry.is_folder:
        raise StopsError(StartCause(code=code, file=shown, text="Is a directory"), is_io=True)
    try:
        return read(folder.read(name))
    except DamageError as damage:
        cause = StartCause(code=code, file=shown, text=str(damage))
        raise StopsError(cause, is_io=not isinstance(damage, NumberDamageError)) from None


def _check_names(folder: LogFolder) -> None:
    """Raise StopsError if the name of a file does not begin with an offset, as it must."""
    for entry in folder.inside.values():
        if (
            entry.name.endswith(_NAMED_BY_OFFSET)
            and entry.is_regular
            and file_names.offset_of(entry.name) is None
            and not folder.log_dir.is_dangling(entry)
        ):
            stem = entry.name.partition(".")[0]
            text = f'NumberFormatException: For input string: "{stem}"'
            raise StopsError(StartCause(code=Code.NAME_NO_OFFSET, file=folder.shown(entry.name), text=text))


def _check_first_log(folder: LogFolder, log_start: int) -> None:
    """Raise StopsError if a log has no segment, and a folder, pipe or socket has the name of its first segment.

    A broker can open a device. It cannot set the position of a pipe (``FileRecords.openChannel``). The new segment of
    a -delete folder has base offset 0 (LogLoader).
    """
    base = 0 if folder.parsed.state == file_names.DELETE_FOLDER else log_start
    entry = folder.inside.get(f"{base:020}.{file_names.LOG}")
    if entry is None or entry.is_regular or entry.special == "device":
        return
    if not folder.partition.logs:
        cause = StartCause(code=Code.NO_FILE, file=folder.shown(entry.name), text=_refusal(entry))
        raise StopsError(cause, is_io=True)


def _unusable_indexes(folder: LogFolder, how: Loading) -> list[StartCause]:
    """Return causes for folders and sockets that have the name of a time index, and that a start does not open.

    Raises StopsError for a folder or socket that a broker opens: any ``.txnindex`` and, except in a -delete folder, any
    index of the newest or a recovered segment, and the ``.index`` of other segments. The start opens this ``.index`` if
    it reads the segment for the producer state; otherwise the first fetch opens it (``LazyIndex.get``).

    A broker can open a pipe or a device, and reads no entries from it. But it cannot resize it as an index of the
    newest or a recovered segment (``AbstractIndex.resize``). It cannot set the position of a pipe as a ``.txnindex``
    (``TransactionIndex.openChannel``). From 4.0 on, recovery truncates the segment after a failed resize. Then
    NullPointerException ends the broker, because the index has no memory map (4.2.2, 4.4.0).
    """
    logs, is_deleted = folder.partition.logs, folder.parsed.state == file_names.DELETE_FOLDER
    bases = [each.base_offset or 0 for each in logs]
    late: list[StopsError] = []
    unread = []
    for number, each in enumerate(logs):
        stem = posixpath.basename(each.path).removesuffix(f".{file_names.LOG}")
        for suffix in file_names.INDEXES:
            entry = folder.inside.get(f"{stem}.{suffix}")
            if entry is None or entry.is_regular or (is_deleted and suffix != file_names.TXN_INDEX):
                continue
            cause = StartCause(code=Code.INDEX_UNREADABLE, file=folder.shown(entry.name), text=_refusal(entry))
            is_flushed = number + 1 < len(bases) and (how.clean or bases[number + 1] <= how.recovery_point)
            is_txn = suffix == file_names.TXN_INDEX
            if entry.special == "device" if is_txn else is_flushed and entry.special in {"pipe", "device"}:
                continue
            if is_txn or not is_flushed:
                ends = not (is_txn or how.clean) and how.release.forgives_io and entry.special in {"pipe", "device"}
                text = f"NullPointerException: it is a {entry.special}, and recovery cannot use it as an index"
                raise StopsError(cause._replace(text=text) if ends else cause, is_io=not ends)
            if suffix == file_names.TIME_INDEX:
                unread.append(cause)
            else:
                is_replayed = _is_replayed(folder, bases[number + 1], how)
                late.append(StopsError(cause, is_io=True, is_late=not is_replayed))
    if late:
        raise min(late, key=lambda each: each.is_late)
    return unread


def _is_replayed(folder: LogFolder, end: int, how: Loading) -> bool:
    """Return whether a segment that ends at ``end`` is read for producer state: if all snapshots are below its end.

    After a clean stop it is not read if there is no snapshot.
    """
    ends = (f".{file_names.PRODUCER_SNAPSHOT}",)
    snapshots = [file_names.offset_of(name) or 0 for name in folder.inside if name.endswith(ends)]
    return max(snapshots, default=0) < end and bool(snapshots or not how.clean)


def _refusal(entry: "Entry") -> str:
    """Return the text of the error if a broker opens a folder, pipe, socket or device as a file."""
    texts = {"": "Is a directory", "socket": "No such device or address: it is a socket"}
    return texts.get(entry.special, f"Invalid argument: it is a {entry.special}")


def _unusable_snapshots(folder: LogFolder) -> frozenset[int]:
    stems = (
        entry.name.removesuffix(f".{file_names.PRODUCER_SNAPSHOT}")
        for entry in folder.inside.values()
        if not entry.is_regular and entry.name.endswith(f".{file_names.PRODUCER_SNAPSHOT}")
    )
    return frozenset(int(stem) for stem in stems if file_names.is_padded(stem))


def _result(folder: LogFolder, how: Loading, outcome: "Outcome", topic_id: bytes | None) -> LogStart:
    cuts = outcome.cuts
    logs = folder.partition.logs
    if cuts:
        word = StartOutcome.TRUNCATED
    else:
        is_read = not how.clean and how.recovery_point != MAX_OFFSET and (logs or outcome.swapped)
        word = StartOutcome.RECOVERED if is_read else StartOutcome.LOADED
    result = LogStart(
        topic=folder.parsed.topic,
        partition=folder.parsed.partition,
        folder=folder.base,
        log_dir=folder.log_dir.name,
        outcome=word,
        log_start_offset=outcome.log_start_offset,
        log_end_offset=outcome.log_end_offset,
        causes=tuple(_causes(folder, outcome, has_logs=bool(logs or outcome.swapped))),
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
    result = result.with_causes(StartCause(code=code, file=folder.name, text=text))
    return result.not_served(word) if word is StartOutcome.DELETED else result._replace(outcome=word)


def _skipping(folder: LogFolder, how: Loading, outcome: "Outcome") -> "Iterator[StartCause]":
    """Yield a cause for each wrong index that makes searches skip records, and that the start keeps as it is.

    A broker does not verify the entries of such an index (``LogSegment.sanityCheck``).
    """
    from kdump.recovery.segment_end import skipped
    from kdump.recovery.swaps import after_swaps

    if folder.parsed.state in {file_names.DELETE_FOLDER, file_names.STRAY_FOLDER}:
        return
    changed = {*outcome.recovered, *(cut.file for cut in outcome.cuts)}
    for each in after_swaps(folder.partition, "last_offset").segments:
        index = folder.files.shown(each.siblings.get(file_names.INDEX, ""))
        if index not in how.known.wrong_indexes or each.name in changed or index == outcome.hidden_by:
            continue
        if records := skipped(each, outcome.log_start_offset or 0):
            text = "a start keeps this index, and its wrong entries point past batches"
            yield StartCause(code=Code.INDEX_SKIPS, file=index, text=text, records=records)


def _causes(folder: LogFolder, outcome: "Outcome", *, has_logs: bool) -> "Iterator[StartCause]":
    for cut in outcome.cuts:
        yield StartCause(code=cut.code, file=cut.file, text=cut.reason)
    if outcome.hidden_by is not None:
        is_swap = outcome.hidden_by.endswith(f".{file_names.SWAP}")
        text = (
            "no batch in this file is at or above its base offset"
            if is_swap
            else "an entry of the newest index points past the end of the log"
        )
        end = outcome.log_end_offset
        text += f": after the clean stop a broker does not check this log, and takes offset {end} as its end"
        yield StartCause(code=Code.INDEX_BEYOND_LOG, file=outcome.hidden_by, text=text)
    for unread in outcome.unread:
        yield StartCause(code=unread.code, file=unread.file, text=unread.reason, records=unread.records)
    for name in outcome.discarded:
        text = (
            "a start deletes this file, because a .cleaned file of a lower or equal base offset marks it as incomplete"
        )
        yield StartCause(code=Code.CLEANED_DISCARDS_SWAP, file=name, text=text)
    if not has_logs:
        yield StartCause(
            code=Code.NO_SEGMENT, file=folder.name, text="the folder has no segment: a start creates an empty log"
        )


def unreadable(error: UnreadableError) -> StartCause:
    return StartCause(
        code=Code.FILE_UNREADABLE, file=str(error.path), text=f"kdump cannot read the file: {error.reason}"
    )
