"""Predicts the start of a node for the metadata log (:func:`start`), and makes the metadata image that the node loads.

A node always recovers the whole log. It deletes the log if a snapshot has a newer epoch, or the same epoch and a higher
end. Without a log, a node that is the only controller begins a new one.

These prevent the start: a log that cannot be loaded, another topic id, a damaged ``quorum-state``, and a broken
``bootstrap.checkpoint`` (:func:`bootstrap`). A broken, misnamed or missing snapshot prevents it, too. So does a
metadata.version or record that the release does not support, a record that cannot be decoded and, on a controller, one
that cannot be applied. Sources: Kafka's KafkaMetadataLog (KafkaRaftLog from 4.1), FileQuorumStateStore,
KafkaRaftClient, KRaftControlRecordStateMachine, RecordsIterator, RecordsSnapshotReader and QuorumController.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.answers.metadata.cluster_image import ClusterImage
from kdump.answers.metadata.image import SnapshotFile, load
from kdump.answers.metadata.records import METADATA_VERSION, PreviewRecord, Undecoded, level_name, read_batch
from kdump.answers.metadata.replay import BreakEffect, MetadataReplay
from kdump.broker_start import log_folder
from kdump.broker_start.log_folder import METADATA_FOLDER
from kdump.broker_start.outcome import LogStart, StartCause, StartOutcome
from kdump.broker_start.release import PREVIEW_RECORD
from kdump.errors import DamageError
from kdump.findings.codes import Code
from kdump.formats import quorum_state
from kdump.formats.record_layout import LOG_OVERHEAD, SMALLEST_ENTRY
from kdump.internal_topics import CLUSTER_METADATA
from kdump.log_dirs import file_names
from kdump.log_dirs.file_names import KRAFT_SNAPSHOT_NAME
from kdump.records import control
from kdump.records.log_entry import check
from kdump.records.record_batch import Batches, RecordBatch
from kdump.segments import resync
from kdump.segments.regions import DATA, Damage, Trailing
from kdump.segments.walk import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.answers.metadata.replay import Break
    from kdump.broker_start.log_folder import LogDirFiles
    from kdump.broker_start.release import StartRelease
    from kdump.log_dirs.files import Entry
    from kdump.log_dirs.partition import Segment
    from kdump.recovery import SoundLog

TOPIC_ID: Final = bytes(15) + b"\x01"
"""``Uuid.METADATA_TOPIC_ID``."""
NO_LEVEL: Final = "RuntimeException: No FeatureLevelRecord for metadata.version was found in the bootstrap metadata"
_SNAPSHOT_ENDS: Final = tuple(
    f".{file_names.KRAFT_SNAPSHOT}{state}" for state in ("", f".{file_names.PART}", f".{file_names.DELETED}")
)
"""A file name with one of these suffixes must begin with an end offset and an epoch."""


STOPS: Final = {
    BreakEffect.NOT_APPLIED: (
        Code.METADATA_REPLAY_BROKEN,
        "a controller of 3.3 or later stops at it with a fatal fault",
    ),
    BreakEffect.NOT_DECODED: (Code.METADATA_REPLAY_BROKEN, "brokers and controllers stop at it"),
    BreakEffect.NOT_KNOWN: (Code.METADATA_TOO_NEW, "brokers and controllers stop at it"),
}
"""The effects of records in the metadata log that prevent the start: others, such as gaps in the offsets, do not."""


class MetadataStart(NamedTuple):
    """The metadata log after a start. ``image`` may lack records; it is None for an empty or unloadable log."""

    log: LogStart
    image: ClusterImage | None
    fatal: tuple[StartCause, ...]
    is_whole: bool
    """Whether the log is loaded and has records, and no segment is truncated. A snapshot may still replace the log."""
    voters: tuple[int, ...] = ()
    """The voters of the quorum in ``quorum-state``."""
    of_controller: StartCause | None = None
    """The cause that stops only a controller: the first record that it cannot apply."""


class Opening(NamedTuple):
    """The parameters for opening a metadata log. ``limit`` is the size of the largest valid batch in bytes.

    ``sound`` is set if a check found the log valid. ``image`` is the image of the whole log, if it is already made.
    """

    release: StartRelease
    limit: int
    sound: SoundLog | None = None
    image: ClusterImage | None = None

    def image_at(self, end: int) -> ClusterImage | None:
        """Return ``image`` if its log is known to end at ``end``, and the newest release reads it; else None."""
        if self.image is None or self.sound is None or not self.release.is_newest:
            return None
        return self.image if self.sound.end == end == self.image.end_offset else None


def start(log_dir: LogDirFiles, of: Opening) -> MetadataStart:
    """Return the metadata log after a start. ``bootstrap.checkpoint`` is not read. Raises UnreadableError."""
    entry = log_dir.entry(METADATA_FOLDER)
    if entry is None or not entry.is_folder:
        text = "the metadata log is missing: if this node is the only controller, it begins a new log without topics"
        cause = StartCause(code=Code.METADATA_LOG_EMPTY, file=log_dir.shown(METADATA_FOLDER), text=text)
        empty = LogStart(
            topic=CLUSTER_METADATA,
            partition=0,
            folder=None,
            log_dir=log_dir.name,
            outcome=StartOutcome.CREATED_EMPTY,
            causes=(cause,),
            is_assigned=True,
        )
        return MetadataStart(empty, None, (), is_whole=False)
    folder = log_folder.LogFolder.of(log_dir, entry, of.limit)
    voters, fatal = _quorum_state(folder)
    fatal += _blocked(folder)
    known = log_folder.KnownLog(sound=of.sound)
    how = log_folder.Loading(clean=False, recovery_point=0, log_start=0, release=of.release, known=known)
    try:
        loaded = log_folder.load(folder, how)
    except log_folder.StopsError as stop:
        nothing = LogStart(
            topic=CLUSTER_METADATA,
            partition=0,
            folder=METADATA_FOLDER,
            log_dir=log_dir.name,
            outcome=None,
            path=folder.name,
        )
        return MetadataStart(nothing, None, (*fatal, stop.cause), is_whole=False, voters=voters)
    if loaded.topic_id not in {None, TOPIC_ID}:
        text = "InconsistentTopicIdException: partition.metadata of the metadata log has another topic id"
        fatal.append(
            StartCause(code=Code.METADATA_ID_DIFFERS, file=folder.shown(file_names.PARTITION_METADATA), text=text)
        )
    return _with_snapshots(folder, loaded, of, fatal)._replace(voters=voters)


def _quorum_state(folder: log_folder.LogFolder) -> tuple[tuple[int, ...], list[StartCause]]:
    name = file_names.QUORUM_STATE
    entry = folder.inside.get(name)
    if entry is None or folder.log_dir.is_dangling(entry):
        return (), []
    if entry.is_folder:
        text = f"UncheckedIOException: Error while reading the Quorum status from the file {folder.shown(name)}"
        return (), [StartCause(code=Code.QUORUM_STATE_BROKEN, file=folder.shown(name), text=text)]
    try:
        return quorum_state.read(folder.read(name)).voters, []
    except DamageError as damage:
        return (), [StartCause(code=Code.QUORUM_STATE_BROKEN, file=folder.shown(name), text=str(damage))]


def _blocked(folder: log_folder.LogFolder) -> Iterator[StartCause]:
    """Yield the causes if the node cannot write its leader epochs, or cannot delete ``quorum-state.tmp`` and vote."""
    if (epochs := log_folder.blocked_epochs(folder)) is not None:
        yield epochs
    entry = folder.inside.get(f"{file_names.QUORUM_STATE}.{file_names.TMP}")
    if entry is not None and folder.log_dir.is_full_folder(entry):
        shown = folder.shown(entry.name)
        text = f"UncheckedIOException: DirectoryNotEmptyException: {shown}"
        yield StartCause(code=Code.FILE_BLOCKED, file=shown, text=text)


def _with_snapshots(
    folder: log_folder.LogFolder, loaded: LogStart, of: Opening, fatal: list[StartCause]
) -> MetadataStart:
    """Drop the loaded log if the newest snapshot is beyond it. Then make the image, and find what stops the node."""
    fatal += _snapshot_names(folder)
    begin, end = loaded.log_start_offset or 0, loaded.log_end_offset or 0
    found = [
        SnapshotFile(int(named["offset"]), int(named["epoch"]), folder.files, entry.path, folder.limit)
        for entry in folder.inside.values()
        if not entry.is_folder and (named := KRAFT_SNAPSHOT_NAME.fullmatch(entry.name))
    ]
    newest = max(
        (each for each in found if each.end_offset >= begin),
        key=lambda each: (each.epoch, each.end_offset),
        default=None,
    )
    if begin > 0 and (newest is None or newest.end_offset < begin):
        text = (
            "IllegalStateException: Inconsistent snapshot state: there must be a snapshot at an offset larger then "
            f"the current log start offset {begin}"
        )
        fatal.append(StartCause(code=Code.METADATA_LOG_BROKEN, file=folder.name, text=text))
        return MetadataStart(loaded, None, tuple(fatal), is_whole=False)
    segments = folder.partition.logs
    is_whole = not loaded.cuts and bool(segments) and any(each.size for each in segments)
    whole = of.image_at(end)
    if newest is not None and _is_beyond(newest, segments, end, folder, whole):
        loaded = _dropped(loaded, segments, newest)
        begin = end = newest.end_offset
        segments, whole = [], None
    if not (newest or end):
        text = "the metadata log is empty: if this node is the only controller, it begins a new log without topics"
        cause = StartCause(code=Code.METADATA_LOG_EMPTY, file=folder.name, text=text)
        return MetadataStart(loaded.with_causes(cause), None, tuple(fatal), is_whole=False)
    if whole is None:
        image, broken, of_controller = _replay(newest, segments, end, of.release, folder)
    else:
        image, broken, of_controller = whole, [] if newest is None else list(_snapshot(newest, of.release)), None
    broken = broken or list(_levels(image, newest, of.release, folder))
    if not is_whole and not fatal:
        text = f"the metadata log ends at offset {end}: later changes are lost"
        loaded = loaded.with_causes(StartCause(code=Code.METADATA_LOG_SHORT, file=folder.name, text=text))
    return MetadataStart(loaded, image, (*fatal, *broken), is_whole, of_controller=of_controller)


def _snapshot_names(folder: log_folder.LogFolder) -> Iterator[StartCause]:
    for name in folder.inside:
        if name.endswith(_SNAPSHOT_ENDS) and file_names.snapshot_id(name) is None:
            text = (
                f"RuntimeException in Snapshots.parse: the name {name} does not begin with an end offset and an epoch"
            )
            yield StartCause(code=Code.NAME, file=folder.shown(name), text=text)


def _is_beyond(
    newest: SnapshotFile,
    segments: list[Segment],
    end: int,
    folder: log_folder.LogFolder,
    whole: ClusterImage | None,
) -> bool:
    """Return whether a snapshot has a newer epoch, or the same and a higher end (``truncateToLatestSnapshot``)."""
    if whole is not None and newest.epoch <= whole.epoch and newest.end_offset <= end:
        return False
    epoch = max((entry.epoch for entry in folder.epochs if entry.start_offset < end), default=0)
    for each in reversed(segments):
        last = None
        for region in _batches(each, end):
            last = region
        if last is not None:
            epoch = max(epoch, last.field("partition_leader_epoch", last.batch_count - 1))
            break
    return newest.epoch > epoch or (newest.epoch == epoch and newest.end_offset > end)


def _dropped(loaded: LogStart, segments: list[Segment], newest: SnapshotFile) -> LogStart:
    from kdump.recovery.segment_end import lost

    text = f"{newest.name} ends at offset {newest.end_offset}, past the end of the log: a node deletes the log"
    cuts = tuple(lost(each, 0, text)._replace(code=Code.SNAPSHOT_AHEAD) for each in segments if each.size)
    return loaded._replace(
        outcome=StartOutcome.TRUNCATED if cuts or loaded.cuts else loaded.outcome,
        log_start_offset=newest.end_offset,
        log_end_offset=newest.end_offset,
        cuts=cuts or loaded.cuts,
        causes=(StartCause(code=Code.SNAPSHOT_AHEAD, file=newest.name, text=text), *loaded.causes),
    )


def _replay(
    newest: SnapshotFile | None,
    segments: list[Segment],
    end: int,
    release: StartRelease,
    folder: log_folder.LogFolder,
) -> tuple[ClusterImage, list[StartCause], StartCause | None]:
    """Return the image of the newest snapshot and the later records, and the causes for any node and for a controller.

    The image has the records after one that cannot be applied, because a broker skips such a record.
    """
    broken: list[StartCause] = []
    not_applied: list[StartCause] = []
    whole: list[int] = []  # the offsets below which no record is missing

    def breaks(found: Break) -> None:
        whole.append(min(found.offset, image.end_offset or found.offset))
        if found.effect in STOPS:
            code, effect = STOPS[found.effect]
            cause = StartCause(code=code, file=folder.name, text=f"{found.cause}: {effect}", offset=min(whole))
            (not_applied if found.effect is BreakEffect.NOT_APPLIED else broken).append(cause)

    image = ClusterImage()
    if newest is not None:
        broken += _snapshot(newest, release)
        image = image if broken else load(newest, breaks)
    replay = MetadataReplay(image, breaks, to=end)
    for each in () if broken else segments:
        for found in _batches(each, end):
            if found.last_offset >= image.end_offset:
                broken += release.too_new(found, each.name)
                if broken or not replay.add(found):
                    break
    return image, broken, next(iter(not_applied), None)


def _levels(
    image: ClusterImage, newest: SnapshotFile | None, release: StartRelease, folder: log_folder.LogFolder
) -> Iterator[StartCause]:
    """Yield the cause if the release does not support the metadata.version or a record, or needs another version."""
    if image.preview_at is not None:
        text = f"MetadataParseException: offset {image.preview_at}: {PREVIEW_RECORD}"
        yield StartCause(code=Code.METADATA_TOO_NEW, file=folder.name, text=text)
    level = image.features.metadata_version
    if METADATA_VERSION in image.features.levels:
        if not release.lowest_level <= level <= release.highest_level:
            text = f"metadata.version is {level_name(level)}, which {release.name} does not support"
            yield StartCause(code=Code.METADATA_TOO_NEW, file=folder.name, text=text)
    elif newest is not None and release.needs_metadata_version:
        text = "IllegalStateException: Unknown metadata version: the snapshot has no record of metadata.version"
        yield StartCause(code=Code.METADATA_SNAPSHOT_BROKEN, file=newest.name, text=text)


def _batches(segment: Segment, end: int) -> Iterator[Batches]:
    """Yield the batches of a segment that begin below offset ``end``, up to the first damage."""
    with segment.open() as source:
        for region in walk(source, runs=DATA):
            if not isinstance(region, Batches):
                return
            if region.first.base_offset >= end:
                return
            yield region


def _snapshot(snapshot: SnapshotFile, release: StartRelease) -> Iterator[StartCause]:
    """Yield the first causes for which a snapshot prevents the start. A truncated batch at the end is ignored."""
    count = 0
    had: set[int] = set()
    with snapshot.files.open(snapshot.path) as source:
        source.limit = snapshot.limit
        for region in walk(source):
            reason = ""
            if isinstance(region, Damage):
                resync.raise_above_limit(source, region)
                reason = f"CorruptRecordException: {region.reason}"
            elif isinstance(region, Trailing) and region.size >= LOG_OVERHEAD.size:
                size = LOG_OVERHEAD.read(source.read(region.position, LOG_OVERHEAD.size)).size
                if size < SMALLEST_ENTRY:  # ByteBufferLogInputStream reads a size before it compares it with the rest
                    reason = f"CorruptRecordException: Record size {size} is less than the minimum record overhead"
            elif isinstance(region, RecordBatch):
                try:
                    check(region)
                    reason = ("" if count else _no_header(region)) or _second_state(region, had)
                    count += 1
                except DamageError as damage:
                    reason = f"CorruptRecordException: {damage.reason}"
                else:
                    if not reason and (found := list(release.too_new(region, snapshot.name))):
                        yield from found
                        return
            if reason:
                yield StartCause(code=Code.METADATA_SNAPSHOT_BROKEN, file=snapshot.name, text=reason)
                return
    if not count:
        text = "NoSuchElementException: No value present: the snapshot has no batch"
        yield StartCause(code=Code.METADATA_SNAPSHOT_BROKEN, file=snapshot.name, text=text)


def _no_header(first: RecordBatch) -> str:
    """Return why the first batch of a snapshot is not its header; "" for a header (``RecordsSnapshotReader``)."""
    record = next(iter(first.records()), None) if first.is_control else None
    if record is None:
        return "IllegalStateException: First batch is not a control batch with at least one record"
    if control.read_key(record.key).type != control.SNAPSHOT_HEADER:
        return "IllegalStateException: the first record of the snapshot is not a snapshot header"
    return ""


def _second_state(batch: RecordBatch, had: set[int]) -> str:
    """Return why a second record of the voters or the kraft.version stops a node, or "" (TreeMapLogHistory.addAt).

    ``had`` receives the types of the records. All records of a snapshot have the same offset in this history.
    """
    for record in batch.records() if batch.is_control else ():
        number = control.read_key(record.key).type
        if number in had and number in {control.KRAFT_VERSION, control.KRAFT_VOTERS}:
            name = control.TYPES[number]
            return f"IllegalArgumentException: Next offset must be greater than the last offset: a second {name} record"
        had.add(number)
    return ""


def bootstrap(log_dir: LogDirFiles, release: StartRelease) -> tuple[int | None, StartCause | None]:
    """Return the metadata.version in ``bootstrap.checkpoint`` and None, or None and the cause that prevents the start.

    Both are None without the file. Sources: BootstrapDirectory, BatchFileReader. Raises UnreadableError.
    """
    name = file_names.BOOTSTRAP_SNAPSHOT
    entry = log_dir.entry(name)
    if entry is None:
        return None, None
    try:
        level, text = _bootstrap_level(log_dir, entry, release), NO_LEVEL
    except DamageError as damage:
        level, text = None, str(damage)
    if level is not None:
        return level, None
    return None, StartCause(code=Code.BOOTSTRAP_BROKEN, file=log_dir.shown(name), text=text)


def _bootstrap_level(log_dir: LogDirFiles, entry: Entry, release: StartRelease) -> int | None:
    level = None
    if entry.is_folder:
        raise DamageError(Code.FOLDER.kind, "the path is a folder")
    with log_dir.files.open(entry.path) as source:
        for region in walk(source):
            if isinstance(region, Damage):
                resync.raise_above_limit(source, region)
                raise DamageError(Code.BATCH.kind, region.reason, position=region.at)
            if isinstance(region, RecordBatch) and not region.is_control:  # the reader checks no checksum
                for cause in release.too_new(region, entry.path, replayed=False):
                    raise DamageError(Code.BATCH.kind, cause.text, position=region.position)
                for record in read_batch(region):
                    if isinstance(record, Undecoded):
                        reason = f"unable to deserialize record at offset {record.offset}: {record.reason}"
                        raise DamageError(Code.BATCH.kind, reason, position=region.position)
                    if isinstance(record, PreviewRecord):
                        raise DamageError(Code.BATCH.kind, PREVIEW_RECORD, position=region.position)
                    if record.name == "FeatureLevelRecord" and record.fields["name"] == METADATA_VERSION:
                        level = record.fields["featureLevel"]
    return level
