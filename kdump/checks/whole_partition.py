"""The whole check of a partition: other files in its folder, snapshots, its log with indexes, and its recovery.

:func:`check` returns counts, findings, and facts for the broker's dry start (:mod:`kdump.broker_start`).
"""

import posixpath
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kdump.checks import evidence, folder, log_dir, partition
from kdump.checks.log import COMPACTED_TOPICS, GapLimits, LogCheck
from kdump.errors import SILENT, Reporter, UnreadableError, many, offsets_text
from kdump.findings import MAY_HAVE, Finding, Level, labelled, of_a_copy, of_one_replica, remark, salvage
from kdump.findings.codes import Code
from kdump.formats.sparse_index import DEFAULT_INTERVAL
from kdump.internal_topics import CLUSTER_METADATA
from kdump.log_dirs import file_names
from kdump.log_dirs.local import LOCAL
from kdump.log_dirs.partition import Segment, index_swaps, least_cleaned, with_index_swaps
from kdump.primitives.terminal import shell_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from kdump.checks.kraft_snapshot import Snapshot
    from kdump.checks.log_dir import LogDir, LogDirs
    from kdump.checks.partition import Tap
    from kdump.formats.leader_epoch import EpochEntry
    from kdump.log_dirs.files import Entry
    from kdump.log_dirs.partition import Partition
    from kdump.recovery.log_loader import Outcome
    from kdump.recovery.segment_end import Cut
    from kdump.recovery.swaps import Swaps

IRRELEVANT: Final = frozenset({file_names.META_PROPERTIES, file_names.PARTITION_METADATA})
"""Files without effect on the recovery of a log. The recovery is predicted even if these files are unreadable."""
NEEDED: Final = frozenset({file_names.LEADER_EPOCHS, file_names.PARTITION_METADATA})
"""Files that a broker, if they exist, must be able to read when it loads a log."""
COPY_OF_A_RUNNING_BROKER: Final = " (this is normal in a copy of a running broker)"
KEEP_METADATA: Final = (
    "Copy __cluster_metadata-0 from another controller or from a backup, or start without the later changes. Do not "
    "replace the folder by salvaged batches: a controller cannot replay a metadata log that lacks changes."
)
READABLE_CHANGES: Final = "to list the metadata changes that can be read"


class CheckOptions(NamedTuple):
    """The options of a check. ``records``: check not only control records, but all.

    ``interval``: the index.interval.bytes of a topic that is not in ``intervals``.
    ``at`` is the current time in ms, or None. Timestamps more than an hour after it are reported.
    """

    records: bool = True
    interval: int = DEFAULT_INTERVAL
    intervals: Mapping[str, int] = {}
    """Topic -> its own index.interval.bytes, from the metadata log."""
    at: int | None = None
    starts: bool = True
    """Whether a broker can start on these files. False for remote storage."""
    jobs: int = 1
    """The number of processes that share a large segment."""
    compacted: frozenset[str] = frozenset()
    """The topics with ``cleanup.policy=compact`` in the metadata log: gaps in their offsets are normal."""
    alone: frozenset[str] = frozenset()
    """The topics whose partitions all have one replica, from the metadata log."""
    ids: Mapping[str, str] = {}
    """Topic name -> id in base64, from the metadata log."""
    release: tuple[int, ...] = ()
    """The number of the release of the dry starts; () for the newest."""
    dispensable: frozenset[str] = frozenset()
    """The log dirs that may be offline when their broker starts: see :class:`kdump.checks.log_dir.LogDirs`."""
    not_loaded: frozenset[str] = frozenset()
    """The log dirs whose logs their node does not load: see :class:`kdump.checks.log_dir.LogDirs`."""

    def log_dirs(self, report: Reporter = SILENT) -> "LogDirs":
        """Return the log dirs for one process of a check. Each process has its own."""
        return log_dir.LogDirs(self.dispensable, self.not_loaded, report)


class CheckedPartition(NamedTuple):
    """The counts and findings of a checked partition. ``segments``, ``batches``, ``size`` (bytes) include snapshots.

    ``folder`` is the shown path of the partition folder. ``failed`` has the unreadable files.
    """

    segments: int
    batches: int
    size: int
    findings: tuple[Finding, ...]
    folder: str = ""
    failed: tuple[UnreadableError, ...] = ()
    start: int | None = None
    """The base offset of the first segment; None if the log has no segment."""
    end: int | None = None
    """The offset after the last batch, or after damage of known end; the base of an empty last segment; or None."""
    sound_end: int | None = None
    """The log end offset if the batches are valid, in order, in segments in use, and all files were read; else None."""
    reaches: Mapping[str, int] = {}
    """Kind of file beside the log -> the lowest possible log end offset that it proves."""
    begins: Mapping[str, int] = {}
    """Kind of file beside the log -> the highest possible log start offset that it proves."""
    has_sound_files: bool = False
    """Whether the folder was listed, and the files of the leader epochs and of the topic id are valid or absent."""
    topic_id: bytes | None = None
    """The topic id of ``partition.metadata``, if it is valid."""
    has_sound_indexes: bool = False
    """Whether a broker finds ``sound_end`` with the indexes: all are correct, and a start does not replace any.

    False for a log of magic 0 or 1: to find the end, a broker decompresses messages that a check may not decompress.
    """
    is_plain: bool = False
    """Whether the folder is :attr:`kdump.log_dirs.partition.Partition.is_plain`."""


def check(
    part: "Partition",
    options: CheckOptions,
    dirs: "LogDirs",
    read: "Callable[[int], None]" = lambda _: None,
    tap: "Tap | None" = None,
) -> CheckedPartition:
    """Check a partition. ``dirs`` checks the log dirs, and reports on each only once.

    ``read`` and ``tap``: see :func:`kdump.checks.partition.check`. A folder that is not of a broker gives one remark.
    """
    if part.foreign:
        return CheckedPartition(0, 0, 0, (_foreign(part),), part.files.shown(part.folder))
    failed: list[UnreadableError] = []
    place = dirs.facts(part, failed.append)
    is_plain = part.is_plain
    parsed: dict[str, Any] = {} if tap is None else tap.parsed
    findings = list(folder.check(part, dirs, failed.append, parsed))
    epochs = parsed.get(file_names.LEADER_EPOCHS) if part.is_listed else evidence.epochs_of(part)
    findings = list(dict.fromkeys(dirs.news() + findings))  # a PATH can be both a log dir and a folder
    snapshots = [] if is_plain else list(_snapshots(part, options, failed.append))
    is_log_dir = part.topic is None and part.is_listed and any(each.name in log_dir.READERS for each in part.others)
    for each in snapshots:
        if not (is_log_dir and posixpath.basename(each.name) == file_names.BOOTSTRAP_SNAPSHOT):
            findings += each.findings  # the check of the log dir reports bootstrap.checkpoint
    swaps = {} if is_plain else index_swaps(part)
    log = _log(part, options, place, epochs, swaps, read, failed, tap)
    findings += log.findings
    if options.starts and not is_plain and not folder.leftover_of(part):
        findings += _removed(part, failed.append)
    is_deleted = file_names.leftover_state(part.folder) == file_names.DELETE_FOLDER  # by a start
    starts = options.starts and log.live and not is_deleted
    if starts and all(posixpath.basename(str(error.path)) in IRRELEVANT for error in failed):
        try:
            findings += _start(part, place, options, log.check, damaged=log.damaged)
        except UnreadableError as error:
            failed.append(error)
    if not is_plain:
        end = log.check.next_offset if log.live else place.log_start or 0
        findings += _ignored(part, end if _is_in_use(part, options) else None, failed.append)
    if snapshots and part.topic == CLUSTER_METADATA:
        start = max(place.log_start or 0, log.live[0].base_offset or 0) if log.live else 0
        end = log.check.next_offset if log.live else None
        from kdump.checks import kraft_snapshot

        findings += kraft_snapshot.against_log(part.files.shown(part.folder), snapshots, start, end)
    if is_deleted:
        findings = [one._replace(level=Level.REMARK) if _is_derived(one) else one for one in findings]
    findings = [_with_command(finding, part, options) if finding.fatal else finding for finding in findings]
    if part.topic in options.alone:
        findings = [of_one_replica(finding) for finding in findings]
    closed = {error.path for error in failed}
    read_of = [segment for segment in log.live if segment.name not in closed] if closed else log.live
    sound_end = _sound_end(part, log, closed)
    metadata = parsed.get(file_names.PARTITION_METADATA)
    return CheckedPartition(
        segments=len(read_of) + len(snapshots),
        batches=log.check.batches + sum(snapshot.batches for snapshot in snapshots),
        size=sum(segment.size for segment in read_of) + sum(snapshot.size for snapshot in snapshots),
        findings=tuple(findings if part.files is LOCAL else map(of_a_copy, findings)),
        folder=part.files.shown(part.folder),
        failed=tuple(failed),
        start=log.live[0].base_offset if log.live else None,
        end=log.check.next_offset if log.live else None,
        sound_end=sound_end,
        reaches=evidence.evidence_of(part, epochs) | (_indexed(log) if log.faults else {}),
        begins=evidence.first_evidence_of(part, epochs),
        has_sound_files=_has_sound_files(part, parsed),
        topic_id=None if metadata is None else metadata.topic_id,
        has_sound_indexes=sound_end is not None and not (swaps or log.check.has_old_messages or log.faults),
        is_plain=is_plain,
    )


def _indexed(log: "_Log") -> dict[str, int]:
    """Return ``{"index entries": end offset}`` if both indexes of the last segment point past its log, else {}.

    The log once reached this offset, because a broker appends a batch before it adds the entries.
    """
    if not log.live:
        return {}
    stem = log.live[-1].name.removesuffix(f".{file_names.LOG}")
    beyond = {each.file for each in log.faults if each.code == Code.BEYOND_THE_LOG}
    if not {f"{stem}.{suffix}" for suffix in file_names.PREALLOCATED} <= beyond:
        return {}
    end = evidence.indexed_end(log.live[-1])
    return {"index entries": end} if end > 0 else {}


def _is_derived(finding: Finding) -> bool:
    """Return whether a finding is on a file that can be rebuilt, with no loss of records and no failing start."""
    return finding.level is Level.DERIVED and not finding.is_grave


def _with_command(finding: Finding, part: "Partition", options: CheckOptions) -> Finding:
    from kdump.checks.repair_commands import aside, metadata_command

    folder_name, name = posixpath.split(finding.file)
    if name == file_names.LEADER_EPOCHS:
        return finding._replace(commands=(aside(finding.file),))
    topic_id = options.ids.get(part.topic or "")
    if name == file_names.PARTITION_METADATA and topic_id is not None:
        return finding._replace(commands=(metadata_command(folder_name, topic_id, exists=True),))
    return finding


def _sound_end(part: "Partition", log: "_Log", closed: set[object]) -> int | None:
    leftovers = len(log.live) != len([each for each in part.segments if not file_names.is_kraft_snapshot(each.path)])
    unsure = log.damaged or log.check.wants_recovery or leftovers or bool(closed or part.unnamed)
    return None if unsure else log.check.next_offset


def _has_sound_files(part: "Partition", parsed: "Mapping[str, object]") -> bool:
    is_whole = part.is_listed and not any(each.name in NEEDED for each in part.folders)
    return is_whole and all(each.name in parsed for each in part.others if each.name in NEEDED)


def _foreign(part: "Partition") -> Finding:
    """Return the remark on a folder that no broker writes. The check of the log dir has the advice to move it."""
    text = "a folder that does not belong to a broker: its files were not checked. To check them, name it as PATH"
    return remark(part.files.shown(part.folder), Code.FOREIGN_FOLDER, text)


def _snapshots(
    part: "Partition", options: CheckOptions, fail: "Callable[[UnreadableError], None]"
) -> "Iterator[Snapshot]":
    paths = [segment.path for segment in part.segments] + [entry.path for entry in part.others]
    for path in paths:
        if file_names.is_kraft_snapshot(path):
            from kdump.checks import kraft_snapshot

            try:
                yield kraft_snapshot.check(part.files, path, records=options.records, limit=part.limit)
            except UnreadableError as error:
                fail(error)


def _is_in_use(part: "Partition", options: CheckOptions) -> bool:
    return options.starts and part.is_listed and part.topic is not None and not folder.leftover_of(part)


class _Log(NamedTuple):
    check: LogCheck
    live: "list[Segment]"
    findings: list[Finding]
    faults: list[Finding]
    """All findings except remarks."""
    damaged: bool


def _log(
    part: "Partition",
    options: CheckOptions,
    place: "LogDir",
    epochs: "Sequence[EpochEntry] | None",
    swaps: "Mapping[str, str]",
    read: "Callable[[int], None]",
    failed: list[UnreadableError],
    tap: "Tap | None",
) -> _Log:
    logs = [segment for segment in part.segments if not file_names.is_kraft_snapshot(segment.path)]
    is_leftover = folder.leftover_of(part) is not None
    live = [segment for segment in logs if ".log." not in posixpath.basename(segment.path)]
    if not live:  # a broker does not load other files of a folder in use
        live = [each for each in logs if not _is_in_use(part, options) or each.path.endswith(f".{file_names.SWAP}")]
    is_alone = part.topic in options.alone
    log = LogCheck(
        records=options.records,
        topic=part.topic,
        epochs=epochs,
        epochs_file=part.files.shown(posixpath.join(part.folder, file_names.LEADER_EPOCHS)),
        gaps=GapLimits(
            cleaned=_is_cleaned(part, options, place),
            first_dirty=place.first_dirty if is_alone else None,
            stopped_at=None if is_leftover else _stopped_at(place),
            high_watermark=place.high_watermark if is_alone and not is_leftover else None,
        ),
        at=options.at,
        log_start=place.log_start or 0,
        release=options.release,
    )
    of_indexes: list[Finding] = []

    def fail(error: UnreadableError) -> None:
        failed.append(error)
        if any(error.path == each.path for each in live):
            log.forget()

    restored = tuple(_restored(part, live, fail)) if len(live) < len(part.segments) else ()
    if swaps or len(live) < len(part.segments):
        part = part._replace(segments=tuple(with_index_swaps(live, swaps)))
    for checked in partition.check(part, read, log, fail, tap, options.jobs):
        of_indexes += (finding for finding in checked.findings if finding.file != checked.name)
    wrong = [finding for finding in of_indexes if not finding.is_remark]
    is_known = part.topic in options.ids or (part.topic or "").startswith("__")
    vanished = _vanished(wrong) if wrong else ()
    findings = [*log.findings, *log.finish(tuple(_cut(part, wrong)), vanished, restored, knows_policy=is_known)]
    faults = [finding for finding in findings if not finding.is_remark]
    damaged = any(finding.level is Level.LOG and not finding.is_hole for finding in faults)
    if any(finding.code == Code.OFFSET_TOO_HIGH for finding in faults):
        keep = "Keep the indexes: they prove the right offset of the damaged batch."
        of_indexes = [one._replace(advice=keep) if one.code == Code.OFFSET else one for one in of_indexes]
    return _Log(log, live, findings + of_indexes, faults + wrong, damaged)


def _is_cleaned(part: "Partition", options: CheckOptions, place: "LogDir") -> bool | None:
    """Return whether compaction may have left gaps in a log, or None if this is unknown."""
    if part.topic in COMPACTED_TOPICS or part.topic in options.compacted:
        return True
    return False if place.cleaned is None and part.topic in options.ids else place.cleaned


def _stopped_at(place: "LogDir") -> int | None:
    """Return the log end offset of a clean stop, or None if it is unknown.

    A broker that stops writes the log end as recovery point (LogManager.shutdown), and its high watermarks
    (ReplicaManager.shutdown). The result is the larger offset, because one of the two may be damaged and too low.
    """
    if not place.clean or place.recovery_point is None or place.high_watermark is None:
        return None
    return max(place.recovery_point, place.high_watermark)


def _cut(part: "Partition", found: "Sequence[Finding]") -> "Iterator[int]":
    """Yield the base offsets of segments whose index proves that the ``.log``, or its end, is missing.

    A missing log with an empty time index is left out. It had no records, as after compaction: a rolled segment with
    records has a time entry (LogSegment.onBecomeInactiveSegment).
    """
    proofs = [each for each in found if each.code in {Code.BEYOND_THE_LOG, Code.NO_LOG}]
    times = f".{file_names.TIME_INDEX}"
    empty = {each.name for each in part.others if each.name.endswith(times) and not each.size} if proofs else ()
    for each in proofs:
        name = posixpath.basename(each.file)
        if name.endswith(f".{file_names.INDEX}"):
            base = file_names.offset_of(name)
            sibling = f"{name.partition('.')[0]}{times}"
            if base is not None and not (each.code == Code.NO_LOG and sibling in empty):
                yield base


def _restored(
    part: "Partition", live: "Sequence[Segment]", fail: "Callable[[UnreadableError], None]"
) -> "Iterator[tuple[int, int]]":
    """Yield the ranges of offsets (begin, end) in the ``.swap`` segments that a start adds to the ``live`` segments."""
    suffix = f".{file_names.LOG}.{file_names.SWAP}"
    swaps = [each for each in part.segments if each.path.endswith(suffix) and not each.special]
    if not swaps or swaps == live:
        return
    from kdump.recovery.segment_end import FailsError, read_next_offset

    least = least_cleaned(part)
    for each in swaps:
        base = each.base_offset or 0
        if least is None or base < least:
            try:
                end = read_next_offset(each, "last_offset") or base
                if end - base < 1 << 31:  # else the file has the gap, too
                    yield base, end
            except FailsError:  # the dry start reports it
                continue
            except UnreadableError as error:
                fail(error)


def _vanished(found: "Sequence[Finding]") -> set[int]:
    """Return the offsets that both indexes of a segment have, but no batch of the segment.

    Damage of one index does not change the other index, so a batch with this offset was written. Its base offset or its
    bytes are damaged now. Compaction is not the cause, because it writes new indexes.
    """
    by_file: dict[str, set[int]] = {}
    for each in found:
        if each.code == Code.OFFSET and isinstance(each.found, int):
            by_file.setdefault(each.file, set()).add(each.found)
    index, times = (f".{suffix}" for suffix in file_names.PREALLOCATED)
    return {
        offset
        for file, offsets in by_file.items()
        if file.endswith(index)
        for offset in offsets & by_file.get(f"{file.removesuffix(index)}{times}", set())
    }


def _start(
    part: "Partition", place: "LogDir", options: CheckOptions, log: LogCheck, *, damaged: bool
) -> "Iterator[Finding]":
    where = part.files.shown(part.folder)
    end, cut = log.next_offset, 0
    if damaged or log.wants_recovery or _overflows(part, end):
        from kdump.recovery import log_loader

        point = place.recovery_point or 0
        interval = options.intervals.get(part.topic or "", options.interval)
        start = place.log_start or 0
        if part.topic == CLUSTER_METADATA:  # KafkaRaftLog.createLog always recovers the log
            place = place._replace(clean=False)
        now = None
        if place.clean:
            now = log_loader.dry_run(part, clean=True, log_start=start, interval=interval)
            yield from _outcome(part, now, "after a clean stop (.kafka_cleanshutdown exists) a broker")
        unclean = log_loader.dry_run(part, clean=False, recovery_point=point, log_start=start, interval=interval)
        if part.topic == CLUSTER_METADATA:
            unclean = unclean._replace(cuts=tuple(_without_snapshot(unclean.cuts, part, unclean.log_end_offset)))
        hides = [cut for cut in unclean.cuts if cut.code is not Code.OFFSETS_GO_BACK]  # consumers read such batches
        if place.clean and hides and all(cut.file == log.newest for cut in unclean.cuts):
            yield _marker(part, hides[0])
            now = None
        word = "after an unclean stop a broker" if place.clean else "a broker"
        yield from _outcome(part, unclean, word, would=place.clean)
        end = unclean.log_end_offset if now is None or now.log_end_offset is None else now.log_end_offset
        cut = 0 if place.clean else sum(each.records for each in unclean.cuts)  # reported as lost by a start
    mark = place.high_watermark or 0
    if end is None or mark <= end or not evidence.is_credible(mark):
        return
    swaps = any(
        each.path.endswith(f".{file_names.SWAP}") for each in part.segments
    )  # only the dry start of the broker finds the end
    if swaps or part.lacks_end or folder.leftover_of(part) is not None:  # the checkpoint is of the current replica
        return
    reached = evidence.evidence_of(part, None) | {"high watermark": mark}
    if not (place.clean and evidence.proves_end(end, place.recovery_point, reached)):
        yield Finding(
            level=Level.LOG,
            file=where,
            kind=Code.HIGH_WATERMARK,
            text=f"the log ends at offset {end}, below the high watermark {mark}"
            + ("" if place.clean else COPY_OF_A_RUNNING_BROKER),
            offset=end,
            expected=f"{mark} or more",
            found=end,
            advice=MAY_HAVE,
            missing=max(mark - end - cut, 0) or None,
        )


def _removed(part: "Partition", fail: "Callable[[UnreadableError], None]") -> "Iterator[Finding]":
    """Yield the findings on ``.deleted`` and ``.swap`` segments that a start removes with the only copy of records."""
    if not any(each.path.endswith((f".{file_names.DELETED}", f".{file_names.SWAP}")) for each in part.segments):
        return
    from kdump.recovery import swaps
    from kdump.recovery.segment_end import FailsError

    names = {posixpath.basename(each.path) for each in part.segments}
    try:
        for each, records, first, fits in swaps.only_in_removed(part):
            path, _, ending = each.name.rpartition(".")
            target = posixpath.basename(path)
            is_free = fits and target not in names
            names.add(target)
            is_swap = ending == file_names.SWAP
            why = "is incomplete according to a .cleaned file" if is_swap else "is marked for deletion"
            unless = "" if is_swap else ", unless this replica truncated its log as a follower"
            yield Finding(
                level=Level.LOG,
                file=each.name,
                kind=Code.ONLY_IN_DELETED,
                text=f"this segment {why}, but has {many(records, 'record')} that no other segment has: a start "
                "removes the file",
                offset=first,
                loses=records,
                advice=f"Remove .{ending} from the file's name before a broker starts{unless}."
                if is_free
                else "Copy the file before a broker starts: other segments have records of the same offsets.",
                commands=(f"mv {shell_path(each.name)} {shell_path(path)}",) if is_free else (),
            )
    except FailsError as error:
        if part.topic != CLUSTER_METADATA:  # the loading of other logs reports it
            return
        yield Finding(
            level=Level.LOG,
            file=error.failure.file,
            kind=Code.SWAPPED,
            text=f"a node does not load the log: {error.failure.text}",
            advice="Move the .swap files of this base offset away before the node starts.",
        )
    except UnreadableError as error:
        fail(error)


def _ignored(part: "Partition", end: int | None, fail: "Callable[[UnreadableError], None]") -> "Iterator[Finding]":
    """Yield the findings on files such as ``N.log.gz``, which a broker ignores. ``end``: the log end offset, or None.

    If a file does not begin with the offset in its name, or if this offset is below ``end``, its records do not count.
    """
    found = [(base, each) for each in part.others if (base := file_names.ignored_base(each.name)) is not None]
    if found:
        from kdump.log_dirs.archives import Archive
        from kdump.recovery.segment_end import lost

        swaps = _swaps(part, fail)
        if swaps is not None:
            yield from (
                _deleted_by_swap(part, each, base, swaps, fail) for base, each in sorted(found) if base in swaps.deletes
            )
            found = [(base, each) for base, each in found if base not in swaps.deletes]
    names = {posixpath.basename(each.path) for each in part.segments}
    for base, entry in sorted(found):
        name, text = part.files.shown(entry.path), "a broker does not read a file of this name"
        inside = _inside(part, entry, base, fail) if end is not None and base >= end else None
        cut = lost(inside, 0, text) if inside is not None and inside.first_offset() == base else None
        if inside is None or cut is None or not cut.records:
            text += f". If it has records, this prints them: kdump dump {shell_path(name)}"
            yield remark(name, Code.SEGMENT_IGNORED, text)
            continue
        end = (cut.last_offset or 0) + 1
        target = f"{base:0{file_names.PADDED}}.{file_names.LOG}"
        is_packed, how = inside.files is not part.files, "Rename the file"
        if is_packed:
            is_archive = isinstance(inside.files, Archive)
            how = "The file is an archive: extract its segment" if is_archive else "Decompress the file"
        path = shell_path(part.files.shown(posixpath.join(part.folder, target)))
        yield Finding(
            level=Level.LOG,
            file=name,
            kind=Code.SEGMENT_IGNORED,
            text=f"{text}, and no segment has its {many(cut.records, 'record')}",
            offset=base,
            loses=cut.records,
            advice=f"{how} to {target} before a broker starts. This prints its records: kdump dump {shell_path(name)}",
            commands=() if is_packed or target in names else (f"mv {shell_path(name)} {path}",),
        )


def _swaps(part: "Partition", fail: "Callable[[UnreadableError], None]") -> "Swaps | None":
    """Return the effect of ``.swap`` files on a folder's other files; None without such files, or if they fail."""
    if not any(each.path.endswith(f".{file_names.SWAP}") for each in part.segments):
        return None
    from kdump.recovery.segment_end import FailsError
    from kdump.recovery.swaps import after_swaps

    try:
        return after_swaps(part, "last_offset")
    except FailsError:  # the dry start reports it
        return None
    except UnreadableError as error:
        fail(error)
        return None


def _deleted_by_swap(
    part: "Partition", entry: "Entry", base: int, swaps: "Swaps", fail: "Callable[[UnreadableError], None]"
) -> Finding:
    """Return the finding on a file such as ``N.log.gz`` that a start deletes (``LogLoader.load``)."""
    from kdump.checks.repair_commands import aside

    name = part.files.shown(entry.path)
    text = f"a start deletes this file: a .swap file replaces the segments from offset {swaps.deletes.start} to "
    text += f"{swaps.deletes.stop - 1}"
    inside = _inside(part, entry, base, fail)
    if inside is None or not (offsets := swaps.only_in(inside)):
        return remark(name, Code.SEGMENT_IGNORED, text)
    return Finding(
        level=Level.LOG,
        file=name,
        kind=Code.SWAPPED,
        text=f"{text}, and no segment has its {many(len(offsets), 'record')}",
        offset=min(offsets),
        loses=len(offsets),
        advice=f"Move the file away before a broker starts. This prints its records: kdump dump {shell_path(name)}",
        commands=(aside(name),),
    )


def _inside(
    part: "Partition", entry: "Entry", base: int, fail: "Callable[[UnreadableError], None]"
) -> "Segment | None":
    """Return a file as a segment, decompressed if it is compressed; None if this is impossible."""
    from kdump.log_dirs import archive_formats
    from kdump.log_dirs.finder import Finder, Wanted

    plain = Segment(part.files, entry.path, entry.size, base, {}, part.limit)
    try:
        with plain.open() as source:
            if archive_formats.format_of(source.read(0, archive_formats.HEAD)) is None:
                return plain
    except UnreadableError as error:
        fail(error)
        return None
    finder = Finder(Wanted(max_batch_bytes=part.limit), Reporter(fail=fail))
    return next((one for held in finder.find([entry.path], part.files) for one in held.segments), None)


def _overflows(part: "Partition", end: int | None) -> bool:
    """Return whether a segment spans more offsets than an index can store. A broker splits such a segment."""
    bases = sorted({segment.base_offset or 0 for segment in part.segments})
    return any(after - base > 1 << 31 for base, after in pairwise([*bases, *([] if end is None else [end])]))


def _marker(part: "Partition", cut: "Cut") -> Finding:
    from kdump.checks.repair_commands import aside

    marker = part.files.shown(posixpath.join(part.log_dir or ".", file_names.CLEAN_SHUTDOWN))
    return Finding(
        level=Level.LOG,
        file=marker,
        kind=Code.CLEAN_MARKER,
        text=f"this file makes a broker skip recovery, but {cut.file} is damaged at byte {cut.position}: the broker "
        "would append new records after the damage, and consumers could not read past the damage",
        advice="Copy the log, and move .kafka_cleanshutdown away before a broker starts. The broker then truncates the "
        "log at the damage, and does not append after it.",
        loses=0,
        commands=(aside(marker),),
    )


def _outcome(part: "Partition", outcome: "Outcome", who: str, *, would: bool = False) -> "Iterator[Finding]":
    """Yield the findings on the outcome of a start. ``would``: the last stop was clean, so all findings are remarks."""
    where = part.files.shown(part.folder)
    advice, command = "Salvage the records before a broker starts.", salvage([shell_path(where)])
    if part.topic == CLUSTER_METADATA:
        advice = KEEP_METADATA
        command = labelled(READABLE_CHANGES, f"kdump metadata {shell_path(posixpath.dirname(where) or '.')} --events")
    with_records = [cut for cut in outcome.cuts if cut.records]
    if len(outcome.cuts) > 1 and with_records:
        first = min(cut.first_offset or 0 for cut in with_records)  # a second cut of a segment comes last
        last = max(cut.last_offset or 0 for cut in with_records)
        yield Finding(
            level=Level.REMARK if would else Level.LOG,
            file=where,
            kind=Code.RECOVERY,
            text=f"{who} would truncate or delete {many(len(outcome.cuts), 'segment')} and lose "
            f"{offsets_text(first, last)}, "
            f"{many(sum(cut.records for cut in with_records), 'record')}, "
            f"{many(sum(cut.size for cut in outcome.cuts), 'byte')} in all",
            offset=first,
        )
    for cut in outcome.cuts:
        harmless = would or not cut.records
        yield Finding(
            level=Level.REMARK if harmless else Level.LOG,
            file=cut.file,
            kind=Code.RECOVERY,
            text=f"{who} would truncate the log at this byte and lose {_lost(cut)} ({cut.reason})",
            position=cut.position,
            offset=cut.first_offset,
            advice="" if harmless else advice,
            loses=None if harmless else cut.records,
            commands=() if harmless else (command,),
        )
    for name in outcome.splits:
        text = (
            f"{who} would split the segment first, because it has an offset that is 2^31 or more above its base offset"
        )
        yield remark(name, Code.RECOVERY, text)
    if outcome.fails is not None:
        yield Finding(
            level=Level.REMARK if would else Level.LOG,
            file=where,
            kind=Code.RECOVERY,
            text=f"{who} would not load the log: {outcome.fails.text}",
        )
    else:
        text = (
            f"{who} would read {outcome.recovered_bytes} bytes of {many(len(outcome.recovered), 'segment')}, "
            f"and the log would end at offset {outcome.log_end_offset}"
        )
        yield remark(where, Code.RECOVERY, text, offset=outcome.log_end_offset)


def _without_snapshot(cuts: "Iterable[Cut]", part: "Partition", end: int | None) -> "Iterator[Cut]":
    """Yield the cuts of the metadata log. If its newest snapshot ends past ``end``, leave out the records that it has.

    A node then deletes the log, and starts from the snapshot. ``end`` is the log end offset.
    """
    found = filter(None, (file_names.KRAFT_SNAPSHOT_NAME.fullmatch(entry.name) for entry in part.others))
    newest = max(((int(each["epoch"]), int(each["offset"])) for each in found), default=(0, 0))[1]
    for cut in cuts:
        if newest <= (end or 0) or cut.first_offset is None or cut.last_offset is None:
            yield cut
            continue
        yield cut._replace(
            first_offset=max(cut.first_offset, newest),
            records=min(cut.records, max(cut.last_offset + 1 - newest, 0)),
            reason=f"{cut.reason}; the newest snapshot has all records below offset {newest}",
        )


def _lost(cut: "Cut") -> str:
    if not cut.records:
        return many(cut.size, "byte") + (" without a valid batch" if cut.first_offset is None else "")
    records, size = many(cut.records, "record"), many(cut.size, "byte")
    return f"{offsets_text(cut.first_offset, cut.last_offset)}, {records}, {size}"
