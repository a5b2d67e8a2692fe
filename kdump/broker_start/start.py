"""A dry start: predicts from the files what a starting broker does to its log dirs (:func:`dry_start`).

It follows Kafka's order: verify ids, open the metadata log, load logs, find stray folders, replace current folders by
-future ones, create empty logs, read late checkpoints. Sources: KafkaRaftServer, LogManager (``loadLogs``,
``isStrayReplica``, ``recoverAbandonedFutureLogs``, ``getOrCreateLog``), ReplicaManager, BrokerMetadataPublisher.
"""

from __future__ import annotations

import posixpath
from functools import partial
from typing import TYPE_CHECKING, Final

from kdump.broker_start import broker_dirs, log_folder, release
from kdump.broker_start.broker_dirs import KRAFT_FILES, ROLES, names
from kdump.broker_start.log_folder import METADATA_FOLDER, NOTHING, KnownLog
from kdump.broker_start.outcome import (
    CONTROLLERS_HAVE_IT,
    NO_METADATA_LOG,
    BrokerStart,
    LogStart,
    OfflineDir,
    StartCause,
    StartOutcome,
)
from kdump.broker_start.shortfall import checkpointed
from kdump.errors import DamageError, StoreError, UnreadableError
from kdump.findings.codes import Code
from kdump.formats import checkpoints
from kdump.formats.checkpoint_text import NumberDamageError
from kdump.formats.partition_metadata import id_text
from kdump.internal_topics import CLUSTER_METADATA
from kdump.log_dirs import file_names
from kdump.primitives.encodings import java_config_integer, java_integer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from kdump.answers.metadata.cluster_image import ClusterImage
    from kdump.answers.metadata.topics import Topic
    from kdump.broker_start.broker_dirs import BrokerDirs, StartOptions
    from kdump.broker_start.log_folder import LogDirFiles, LogFolder
    from kdump.broker_start.metadata_log import MetadataStart
    from kdump.log_dirs.log_dir_state import LogDirState, Offsets

CLEANER: Final = "log.cleaner.enable"
VOTERS: Final = "controller.quorum.voters"
UNASSIGNED: Final = bytes(15) + b"\x01"
"""``DirectoryId.UNASSIGNED``: the directory id of a replica without a log dir."""
NO_LEADER: Final = -1
NO_DIRECTORY: Final = bytes(16)
"""``ReplicaKey.NO_DIRECTORY_ID``: the directory id of a voter of a static quorum."""
WITH_ZOOKEEPER: Final = (
    "meta.properties belongs to a broker with ZooKeeper: only ZooKeeper has the list of its partitions"
)
SERVED: Final = frozenset({StartOutcome.LOADED, StartOutcome.RECOVERED, StartOutcome.TRUNCATED, None})


def dry_start(
    broker: BrokerDirs,
    options: StartOptions,
    known: Mapping[str, KnownLog] | None = None,
    image: ClusterImage | None = None,
    states: Mapping[str, LogDirState] | None = None,
) -> BrokerStart:
    """Return the result of a broker's start. Raises StoreError. Other unreadable files may make parts of it unknown.

    ``known``: shown path of a folder -> facts from a check. ``image`` is the image of the metadata log, if all its
    records could be applied. ``states``: shown path of a log dir -> its state, if it was read before.
    """
    return _BrokerRun(broker, options, known or {}, image, states or {}).run()


def start_alone(folders: Iterable[tuple[LogFolder, log_folder.Loading]], release_name: str) -> BrokerStart:
    """Return the result of loading single partition folders, whose brokers are unknown. Raises StoreError.

    :attr:`BrokerStart.fatal` has the reasons why a broker with such a folder does not start, and ``offline`` the
    reasons why it takes the log dir offline. Folders with an unreadable file, which a check reports, are left out.
    """
    fatal: list[StartCause] = []
    offline: list[OfflineDir] = []
    logs: list[LogStart] = []
    for folder, how in folders:
        try:
            logs.append(log_folder.load(folder, how)._replace(checkpoint_start=how.log_start))
            if not folder.parsed.state and (blocked := log_folder.blocked_epochs(folder)):
                offline.append(OfflineDir(folder.name, blocked))
        except log_folder.StopsError as stop:
            logs.append(_not_loaded(folder, stop.cause))
            if stop.is_io:
                offline.append(OfflineDir(folder.name, stop.cause))
            else:
                fatal.append(stop.cause)
        except StoreError:
            raise
        except UnreadableError:
            continue
    return BrokerStart(
        release=release_name,
        node_id=None,
        cluster_id=None,
        log_dirs=tuple(dict.fromkeys(log.log_dir or "." for log in logs)),
        starts=None,
        fatal=tuple(fatal),
        offline=tuple(offline),
        logs=tuple(logs),
    )


class _BrokerRun:
    def __init__(
        self,
        broker: BrokerDirs,
        options: StartOptions,
        known: Mapping[str, KnownLog],
        image: ClusterImage | None,
        states: Mapping[str, LogDirState],
    ) -> None:
        self.broker = broker
        self.dirs, self.is_complete, self.metadata_dir = broker.loaded, broker.is_complete, broker.metadata_dir
        self.options, self.known, self.states = options, known, states
        self.fatal: list[StartCause] = []
        self.offline: dict[LogDirFiles, StartCause] = {}
        self.late: dict[LogDirFiles, StartCause] = {}
        """The log dirs that go offline when a client reads from them, or when the broker first writes a checkpoint."""
        self.closed: dict[str, tuple[str, ...]] = {}
        self.unserved: list[StartCause] = []
        self.unknown: list[StartCause] = []
        self.clean: set[LogDirFiles] = set()
        self.loaded: list[tuple[LogDirFiles, log_folder.LogFolder, LogStart]] = []
        self.more: list[LogStart] = []
        self.whole_image = image
        self.image: ClusterImage | None = None
        self.intervals: Mapping[str, int] = {}
        """Topic -> its own ``index.interval.bytes``, from the metadata log."""
        self.index_sizes: Mapping[str, int] = {}
        """Topic -> its own ``segment.index.bytes``, from the metadata log."""
        self.voters: tuple[int, ...] = ()
        self.decides = True
        """Whether the node's own metadata log determines its partitions."""
        self.bootstrap_level = 0
        """The metadata.version in ``bootstrap.checkpoint``, or 0."""
        self.bootstrap_release: str | None = None
        self.node_id: int | None = None
        self.is_kraft = True
        """Whether the metadata log and partition.metadata determine which folders are stray."""

    def run(self) -> BrokerStart:
        found = self.broker.ids
        verified = broker_dirs.verify(self.broker, self.options.node_id)
        self.node_id = verified.node_id
        is_old = not self.is_complete and all(
            (each.is_missing or (each.ids is not None and not each.ids.version)) and _is_old(each.log_dir)
            for each in found
        )
        self.fatal += () if is_old else verified.fatal
        closed = [each.cause for each in found if each.cause is not None and each.is_closed]
        self.unknown += closed
        self.offline |= verified.offline
        directories = {each.log_dir: each.ids.directory_id for each in found if each.ids is not None}
        self.is_kraft = not self.broker.is_zookeeper and bool(self.broker.is_kraft or closed or self.fatal)
        starts: bool | None = True
        self.decides = not closed
        metadata: MetadataStart | None = None
        if not (self.is_complete or self.broker.is_zookeeper) and METADATA_FOLDER not in names(self.metadata_dir):
            bootstraps = (each for each in self.broker.log_dirs if file_names.BOOTSTRAP_SNAPSHOT in names(each))
            place = self.metadata_dir.shown(METADATA_FOLDER) if self.is_kraft else None
            file = next((each.shown(file_names.BOOTSTRAP_SNAPSHOT) for each in bootstraps), place)
            self.unknown.append(StartCause(code=Code.METADATA_ELSEWHERE, file=file, text=NO_METADATA_LOG))
            self.decides, starts = False, None
        elif self.metadata_dir.is_folder and self.is_kraft:
            self._try(self._bootstrap)
            metadata = self._metadata_log()
            if metadata is not None and not metadata.log.log_end_offset:
                self.bootstrap_release = ".".join(map(str, release.minor_of(self.bootstrap_level))) or None
            self.fatal += self._refused_configs()
            if not any(each.is_closed and each.log_dir is self.metadata_dir for each in found):
                self._voter(directories.get(self.metadata_dir))
        elif not self.is_kraft:
            missing = (each.cause for each in found if each.cause and each.cause.code is Code.LOG_DIR_MISSING)
            self.unknown += [StartCause(code=Code.METADATA_ELSEWHERE, file=None, text=WITH_ZOOKEEPER), *missing]
            self.decides, starts = False, None
        directories = {each: uuid for each, uuid in directories.items() if each in self.dirs}
        before = set(self.offline)
        self._load_dirs()
        failed = [each for each in self.offline if self.options.release.ends_leaderships or each not in before]
        self._twice()
        self._promote(directories)
        self._assign(directories)
        self._begin_elsewhere(directories, failed)
        self._late_checkpoints()
        self._leaderless(directories)
        for each, cause in self.late.items():
            self.offline.setdefault(each, cause)
        self._fail_whole()
        logs = [self._shown(each, folder, log) for each, folder, log in self.loaded]
        logs += self.more
        logs += self._of_dirs_not_loaded(logs)
        if self.fatal:
            starts = False
        elif any(cause.code is Code.FILE_UNREADABLE for cause in self.unknown):
            starts = None
        return BrokerStart(
            release=self.options.release.name,
            node_id=self.node_id,
            cluster_id=verified.cluster_id,
            log_dirs=tuple(each.name for each in self.broker.log_dirs),
            starts=starts,
            fatal=tuple(dict.fromkeys(self.fatal)) if starts is False else (),
            offline=tuple(OfflineDir(log_dir=each.name, cause=cause) for each, cause in self.offline.items()),
            logs=(*logs, *([metadata.log] if metadata is not None else ())),
            closed=self.closed,
            no_writes={each.name: reason for each in self.broker.log_dirs if (reason := each.no_writes())},
            unserved=tuple(self.unserved),
            unknown=tuple(dict.fromkeys(self.unknown)),
            clean=frozenset(each.name for each in self.clean),
            checkpointed={each.name: checkpointed(partial(self._end_offsets, each)) for each in self.dirs},
            is_sole_controller=self._is_sole_controller(),
            is_only_controller=self.broker.is_only_controller,
            image=self.image,
            bootstrap_release=self.bootstrap_release,
            lacks_remote_storage=self.is_complete
            and any(each.is_folder for each in self.dirs[:1])
            and not any(file_names.REMOTE_INDEX_CACHE in names(each) for each in self.dirs),
        )

    def _metadata_log(self) -> MetadataStart | None:
        """Predict the start of the metadata log. Set ``decides`` to False if it does not determine the partitions."""
        from kdump.answers.topic_configs import index_intervals, index_sizes
        from kdump.broker_start import metadata_log

        try:
            known = self.known.get(self.metadata_dir.shown(METADATA_FOLDER), NOTHING)
            of = metadata_log.Opening(self.options.release, self.options.limit, known.sound, self.whole_image)
            found = metadata_log.start(self.metadata_dir, of)
        except StoreError:
            raise
        except UnreadableError as error:
            self.unknown.append(log_folder.unreadable(error))
            self.decides = False
            return None
        self.image = found.image
        self.intervals, self.index_sizes = index_intervals(found.image), index_sizes(found.image)
        self.voters = found.voters
        self.fatal += found.fatal
        if found.of_controller is not None and self._is_controller():
            self.fatal.append(found.of_controller)
        if any(cause.code is Code.METADATA_SNAPSHOT_BROKEN for cause in found.fatal):
            self.decides = False  # the image lacks the records of the snapshot
        if not self._is_sole_controller() and not found.is_whole:
            text = CONTROLLERS_HAVE_IT
            self.unknown.append(StartCause(code=Code.METADATA_ELSEWHERE, file=found.log.path, text=text))
            self.decides = False
        return found

    def _bootstrap(self) -> None:
        from kdump.broker_start import metadata_log

        level, cause = metadata_log.bootstrap(self.metadata_dir, self.options.release)
        self.bootstrap_level = level or 0
        self.fatal += [] if cause is None else [cause]

    def _refused_configs(self) -> Iterator[StartCause]:
        """Yield a cause for each topic config that the release refuses (``LogManager.fetchTopicConfigOverrides``).

        An older release accepts the config, so the broker may be older. It is a cause only if the user named the
        release, or if the metadata.version proves that the broker is not older.
        """
        if self.image is None or not self.decides or not self.dirs:
            return
        proven = release.minor_of(self.image.features.metadata_version)
        for name in sorted(self.image.topics.by_name):
            for config, since, least in self.options.release.least_values:
                if not self.options.is_release_known and proven < since:
                    continue
                value = self.image.configs.topic(name).get(config)
                number = None if value is None else java_config_integer(value, 32)
                if number is not None and number < least:
                    text = f"ConfigException: topic {name}: Invalid value {number} for configuration {config}: "
                    text += f"Value must be at least {least}"
                    file = self.metadata_dir.shown(METADATA_FOLDER)
                    yield StartCause(code=Code.CONFIG_REFUSED, file=file, text=text)

    def _voter(self, directory: bytes | None) -> None:
        """Add a fatal cause if this node is the only voter, but ``directory`` is not the directory id of the voter.

        Such a node waits for a leader until its start fails (``VoterSet.isVoter``). Other voters elect a leader.
        """
        voters = (self.image.voters if self.image is not None else None) or []
        ids = {voter["voterId"]: voter["voterDirectoryId"] for voter in voters}
        wanted = ids.get(self.node_id)
        if len(ids) != 1 or wanted in {None, NO_DIRECTORY, directory} or not self._is_controller():
            return
        text = (
            "VotersRecord in the metadata log has another directory.id for this node: the node has no vote, and no "
            "other node can become the leader"
        )
        self.fatal.append(
            StartCause(
                code=Code.VOTER_DIRECTORY_DIFFERS,
                file=self.metadata_dir.shown(file_names.META_PROPERTIES),
                text=text,
                expected=id_text(wanted),
                found=None if directory is None else id_text(directory),
            )
        )

    def _is_controller(self) -> bool:
        roles = self.options.configs.get(ROLES)
        if roles is not None:
            return "controller" in roles
        voters = self._voter_ids()
        return not voters or self.node_id in voters

    def _is_sole_controller(self) -> bool:
        voters = self._voter_ids()
        return self._is_controller() and (not voters or voters == [self.node_id])

    def _voter_ids(self) -> list[int]:
        """Return the voter ids in the metadata log, else in the configs, else in ``quorum-state``."""
        return (self.image.voter_ids if self.image is not None else []) or self._configured_voters() or [*self.voters]

    def _configured_voters(self) -> list[int]:
        """Return the node ids in the config controller.quorum.voters (``1@host:9093,2@...``), sorted."""
        given = filter(None, self.options.configs.get(VOTERS, "").split(","))
        found = (each.strip().partition("@")[0] for each in given)
        return sorted(voter for each in found if (voter := java_integer(each, 32)) is not None and voter >= 0)

    def _try(self, act: Callable[[], object]) -> None:
        try:
            act()
        except StoreError:
            raise
        except UnreadableError as error:
            self.unknown.append(log_folder.unreadable(error))

    def _load_dirs(self) -> None:
        for each in self.dirs:
            if each.is_folder and each not in self.offline:
                self._load_dir(each)
        for each in self.broker.not_loaded:  # their folders are ignored
            for name in sorted(names(each)):
                parsed = file_names.parse_folder(name) if each.entries[name].is_folder else None
                if parsed is not None and parsed.topic != CLUSTER_METADATA:
                    self.more.append(_ignored(each, name, parsed, each.shown(name)))
            if each is self.metadata_dir and (inside := names(each)):  # KafkaRaftManager locks it
                lock = [each.entries[file_names.LOCK].path] if file_names.LOCK in inside else []
                self._access(each, lock, [] if lock else [each.path or "."])

    def _load_dir(self, log_dir: LogDirFiles) -> None:
        """Simulate ``LogManager.loadLogs`` for a log dir."""
        try:
            entries = log_dir.entries
        except StoreError:
            raise
        except UnreadableError as error:
            if error.is_denied:
                self.unknown.append(log_folder.unreadable(error))
                return
            cause = StartCause(
                code=Code.LOG_DIR_UNREADABLE, file=log_dir.name, text=f"the log dir cannot be read: {error.reason}"
            )
            self.offline.setdefault(log_dir, cause)
            return
        marker = entries.get(file_names.CLEAN_SHUTDOWN)
        if marker is not None and not log_dir.is_dangling(marker):
            self.clean.add(log_dir)
            if log_dir.is_full_folder(marker):
                shown = log_dir.shown(file_names.CLEAN_SHUTDOWN)
                text = f"DirectoryNotEmptyException: {shown}: the clean shutdown marker is a folder with files"
                self.offline.setdefault(log_dir, StartCause(code=Code.LOG_DIR_UNREADABLE, file=shown, text=text))
                return
        points = self._checkpoint(log_dir, file_names.RECOVERY_POINTS)
        starts = self._checkpoint(log_dir, file_names.LOG_STARTS)
        marks = self._checkpoint(log_dir, file_names.HIGH_WATERMARKS, late=True)
        opened = [entries[name].path for name in (file_names.LOCK,) if name in entries]
        indexes: list[str] = []
        for entry in entries.values():
            if not entry.is_folder or entry.name in {file_names.REMOTE_INDEX_CACHE, file_names.CLEAN_SHUTDOWN}:
                continue
            parsed = file_names.parse_folder(entry.name)
            if parsed is None:
                shown = log_dir.shown(entry.name)
                text = f"KafkaException: Found directory {shown}, which is not of the form TOPIC-PARTITION"
                self.fatal.append(StartCause(code=Code.FOREIGN_FOLDER, file=log_dir.shown(entry.name), text=text))
            elif parsed.topic == CLUSTER_METADATA:
                if entry.name != METADATA_FOLDER or log_dir is not self.metadata_dir:
                    self.more.append(_ignored(log_dir, entry.name, parsed, log_dir.shown(entry.name)))
            else:
                here = (parsed.topic, parsed.partition)
                known = self.known.get(log_dir.files.shown(entry.path), NOTHING)
                folder = log_folder.LogFolder(log_dir, entry.path, parsed, self.options.limit, known.partition)
                log = self._load(folder, known, points.get(here, 0), starts.get(here, 0))
                log = log._replace(
                    high_watermark=marks.get(here),
                    recovery_point=points.get(here),
                    checkpoint_start=starts.get(here),
                )
                self.loaded.append((log_dir, folder, log))
                opened.append(entry.path)
                if (newest := folder.newest) is not None:
                    opened.append(newest.path)
                    indexes += [newest.siblings[kind] for kind in file_names.PREALLOCATED if kind in newest.siblings]
        self._access(log_dir, opened, [log_dir.path or ".", *([] if marker is None else [marker.path]), *indexes])

    def _access(self, log_dir: LogDirFiles, opened: list[str], changed: list[str]) -> None:
        """Find the files that the broker cannot write: ``opened`` for writing, and others that it changes."""
        if (immutable := log_dir.immutable([*changed, *opened])) is not None:
            shown = log_dir.files.shown(immutable)
            text = f"FileSystemException: {shown}: Operation not permitted (its attribute is immutable or append-only)"
            self.offline.setdefault(log_dir, StartCause(code=Code.FILE_IMMUTABLE, file=shown, text=text))
        lock = log_dir.entry(file_names.LOCK)
        if lock is not None and lock.special not in {"pipe", "device"} and (blocked := log_dir.blocked(lock)):
            self.offline.setdefault(log_dir, blocked)
        if closed := [log_dir.files.shown(path) for path in log_dir.closed(opened)]:
            self.closed[log_dir.name] = tuple(closed)

    def _read_before(self, log_dir: LogDirFiles, name: str) -> Offsets | None:
        state = self.states.get(log_dir.name)
        return None if state is None else state.offsets.get(name)

    def _checkpoint(self, log_dir: LogDirFiles, name: str, *, late: bool = False) -> Offsets:
        """Return the offsets of a checkpoint. Damage, except of a number, takes the log dir offline unless ``late``."""
        if (known := self._read_before(log_dir, name)) is not None:
            return known
        entry = log_dir.entry(name)
        if entry is None or entry.is_folder:
            return {}
        try:
            found = checkpoints.read(log_dir.read(name))
        except NumberDamageError:  # a broker catches this error and uses an empty checkpoint
            return {}
        except DamageError as damage:
            if not late:
                cause = StartCause(code=Code.CHECKPOINT_BROKEN, file=log_dir.shown(name), text=str(damage))
                self.offline.setdefault(log_dir, cause)
            return {}
        except StoreError:
            raise
        except UnreadableError as error:
            self.unknown.append(log_folder.unreadable(error))
            return {}
        return {(topic, number): offset for topic, number, offset in found}

    def _end_offsets(self, log_dir: LogDirFiles, name: str) -> Offsets:
        return self._checkpoint(log_dir, name, late=True) if name in names(log_dir) else {}

    def _load(self, folder: log_folder.LogFolder, known: KnownLog, point: int, start: int) -> LogStart:
        parsed = folder.parsed
        how = log_folder.Loading(
            clean=folder.log_dir in self.clean,
            recovery_point=point,
            log_start=start,
            release=self.options.release,
            known=known,
            interval=self.intervals.get(parsed.topic, self.options.interval),
            index_size=self.index_sizes.get(parsed.topic, self.options.index_size),
        )
        try:
            log = self._stray(folder, log_folder.load(folder, how))
            if log.outcome in SERVED and not parsed.state and (blocked := log_folder.blocked_epochs(folder)):
                self.late.setdefault(folder.log_dir, blocked)
            return log
        except log_folder.StopsError as stop:
            if stop.is_io and stop.is_late:
                self.late.setdefault(folder.log_dir, stop.cause)
            elif stop.is_io:
                self.offline.setdefault(folder.log_dir, stop.cause)
            else:
                self.fatal.append(stop.cause)
            cause = stop.cause
        except StoreError:
            raise
        except UnreadableError as error:
            cause = log_folder.unreadable(error)
            self.unknown.append(cause)
        return _not_loaded(folder, cause)

    def _stray(self, folder: log_folder.LogFolder, log: LogStart) -> LogStart:
        """Return the log with its assignment. The outcome is STRAY if it becomes stray, and None if this is unknown."""
        if self.image is not None:
            topic = self.image.topics.by_name.get(log.topic)
            log = log._replace(assigned_id=None if topic is None else topic.id, is_assigned=self._is_assigned(log))
        if folder.parsed.state in {file_names.DELETE_FOLDER, file_names.STRAY_FOLDER}:
            return log
        is_undecided = not self.decides and log.topic_id is not None
        if self.is_kraft and is_undecided and self.image is None:  # the topic is unknown
            return log._replace(outcome=None)
        cause = self._stray_cause(folder, log) if self.is_kraft else None
        if cause is None:
            return log
        if is_undecided:
            return log._replace(outcome=None)
        return log.with_causes(cause)._replace(outcome=StartOutcome.STRAY)

    def _is_assigned(self, log: LogStart) -> bool | None:
        if self.image is None or not self.decides:
            return None
        topic = self.image.topics.by_name.get(log.topic)
        state = None if topic is None else topic.partitions.get(log.partition)
        return state is not None and self.node_id in state.replicas

    def _stray_cause(self, folder: log_folder.LogFolder, log: LogStart) -> StartCause | None:
        shown = folder.shown(file_names.PARTITION_METADATA)
        if log.topic_id is None:
            text = "The topicId does not exist in the folder (no partition.metadata): it is treated as a stray log"
            return StartCause(code=Code.NO_TOPIC_ID, file=shown, text=text)
        topic = None if self.image is None else self.image.topics.by_id.get(log.topic_id)
        state = None if topic is None else topic.partitions.get(log.partition)
        if topic is None:
            text = f"the topic id {id_text(log.topic_id)} does not exist in the metadata"
            expected = None if log.assigned_id is None else id_text(log.assigned_id)
            return StartCause(
                code=Code.TOPIC_UNKNOWN, file=shown, text=text, expected=expected, found=id_text(log.topic_id)
            )
        if state is None:
            text = f"topic {topic.name} has no partition {log.partition} in the metadata"
            return StartCause(code=Code.PARTITION_UNKNOWN, file=folder.name, text=text)
        if self.node_id not in state.replicas:
            text = f"the replicas of {topic.name}-{log.partition} are {state.replicas}, without node {self.node_id}"
            return StartCause(code=Code.NOT_ASSIGNED, file=folder.name, text=text)
        return None

    def _twice(self) -> None:
        """Add the fatal causes for partitions with two current or two -future folders."""
        earlier: dict[tuple[str, int, str], log_folder.LogFolder] = {}
        for _, folder, log in self.loaded:
            state = folder.parsed.state
            if state in {file_names.DELETE_FOLDER, file_names.STRAY_FOLDER} or log.outcome is StartOutcome.STRAY:
                continue
            if log.outcome is None and any(cause.code is Code.FILE_UNREADABLE for cause in log.causes):
                continue
            first = earlier.setdefault((log.topic, log.partition, state), folder)
            if first is not folder:
                text = (
                    f"IllegalStateException: Duplicate log directories for {log.topic}-{log.partition} are found in "
                    f"both {first.name} and {folder.name}"
                )
                self.fatal.append(StartCause(code=Code.TWO_FOLDERS, file=folder.name, text=text))

    def _promote(self, directories: Mapping[LogDirFiles, bytes | None]) -> None:
        """Replace a current folder by the -future folder, if the metadata assigns the partition to its log dir."""
        for number, (log_dir, folder, log) in enumerate(self.loaded):
            if folder.parsed.state != file_names.FUTURE_FOLDER or log.outcome is not StartOutcome.FUTURE:
                continue
            if self._assigned_directory(log) != directories.get(log_dir) or self.image is None:
                continue
            current = [
                (at, other_dir, other)
                for at, (other_dir, held, other) in enumerate(self.loaded)
                if not held.parsed.state
                and (other.topic, other.partition) == (log.topic, log.partition)
                and other.outcome in SERVED
            ]
            name = f"{log.topic}-{log.partition}"
            beside = log_dir.entry(name)
            if any(other_dir is log_dir for _, other_dir, _ in current) or (beside and not beside.is_folder):
                text = f"DirectoryNotEmptyException: {log_dir.shown(name)}: {folder.name} would replace this folder"
                self.fatal.append(StartCause(code=Code.FUTURE_BESIDE_CURRENT, file=log_dir.shown(name), text=text))
                continue
            text = f"the folder replaces {name}, because the metadata assigns the partition to this log dir"
            cause = StartCause(code=Code.PROMOTED, file=folder.name, text=text)
            self.loaded[number] = (log_dir, folder, log.with_causes(cause))
            for at, other_dir, other in current:
                gone = other.not_served(StartOutcome.DELETED).with_causes(cause)
                self.loaded[at] = (other_dir, self.loaded[at][1], gone)

    def _assigned_directory(self, log: LogStart) -> bytes | None:
        topic = None if self.image is None or log.topic_id is None else self.image.topics.by_id.get(log.topic_id)
        state = None if topic is None else topic.partitions.get(log.partition)
        return None if state is None else state.directory_of(self.node_id)

    def _assign(self, directories: Mapping[LogDirFiles, bytes | None]) -> None:
        """Add an empty or offline log for each assigned partition that has no folder in use, if metadata decides."""
        if self.image is None or not self.decides or self.node_id is None or not self.dirs:
            return
        used = {
            (log.topic, log.partition)
            for _, folder, log in self.loaded
            if (not folder.parsed.state and log.outcome in SERVED)
            or any(cause.code is Code.PROMOTED for cause in log.causes)
        }
        for topic, number, directory in self._assignments(self.image):
            if (topic.name, number) not in used:
                self._create(topic, number, directory, directories)

    def _assignments(self, image: ClusterImage) -> Iterator[tuple[Topic, int, bytes]]:
        for _, topic in sorted(image.topics.by_name.items()):
            yield from self._directories_of(topic)

    def _directories_of(self, topic: Topic) -> Iterator[tuple[Topic, int, bytes]]:
        for number, state in sorted(topic.partitions.items()):
            if (directory := state.directory_of(self.node_id)) is not None:
                yield topic, number, directory

    def _create(
        self, topic: Topic, number: int, directory: bytes, directories: Mapping[LogDirFiles, bytes | None]
    ) -> None:
        """Create an empty log in the assigned log dir, or in the first live log dir if none is assigned.

        An offline log dir may have the log. So if a log dir is offline, the broker creates a log only if a live log dir
        has the directory id, or if the id is ``UNASSIGNED`` (``Partition.createLogInAssignedDirectoryId``).
        """
        name = f"{topic.name}-{number}"
        text = f"the metadata assigns {name} to this broker, but none of its log dirs has the folder"
        is_named = int.from_bytes(directory, "big") >= broker_dirs.RESERVED
        target = next((each for each, uuid in directories.items() if is_named and uuid == directory), None)
        cause = StartCause(code=Code.NO_FOLDER, file=None if target is None else target.shown(name), text=text)
        log = LogStart(
            topic=topic.name,
            partition=number,
            folder=None,
            log_dir=None if target is None else target.name,
            outcome=StartOutcome.CREATED_EMPTY,
            log_start_offset=0,
            log_end_offset=0,
            causes=(cause,),
            assigned_id=topic.id,
            is_assigned=True,
        )
        is_elsewhere = directory != UNASSIGNED and target is None
        held_offline = any(name in names(each) for each in self.offline)
        if is_elsewhere and is_named and not self.is_complete and not held_offline:
            text = f"the metadata assigns {name} to a log dir that was not given"
            cause = StartCause(code=Code.METADATA_ELSEWHERE, file=None, text=text)
            self.unknown.append(cause)
            self.more.append(log.not_served(None)._replace(causes=(cause,)))
            return
        if (is_elsewhere and self.offline) or (target is not None and target in self.offline):
            held = any((other.topic, other.partition) == (topic.name, number) for _, _, other in self.loaded)
            if not held and not held_offline:
                text = f"{text}: the log dir of the partition is offline"
                cause = StartCause(code=Code.LOG_DIR_OFFLINE, file=None, text=text)
                self.more.append(log.not_served(StartOutcome.OFFLINE)._replace(causes=(cause,)))
            return
        place = target or next((each for each in self.dirs if each not in self.offline), None)
        beside = None if place is None else place.entry(name)
        if place is not None and beside is not None and not beside.is_folder:
            code = Code.FOLDER_IS_DANGLING if place.is_dangling(beside) else Code.FOLDER_IS_FILE
            text = f"FileAlreadyExistsException: {place.shown(name)}: the log of {name} cannot be created"
            self.offline.setdefault(place, StartCause(code=code, file=place.shown(name), text=text))
            log = log.not_served(StartOutcome.OFFLINE)
        self.more.append(log._replace(log_dir=None if place is None else place.name))

    def _begin_elsewhere(self, directories: Mapping[LogDirFiles, bytes | None], failed: Sequence[LogDirFiles]) -> None:
        """Create empty logs in a live log dir for partitions of the ``failed`` log dirs.

        1. With the first image the broker becomes leader of its partitions, in the order of a HashMap. The first
           partition in an offline log dir raises NotLeaderOrFollowerException in ``applyLocalLeadersDelta`` of
           ReplicaManager. The broker skips the later partitions and the followers.
        2. The controller marks the failed log dirs as offline (``ReplicationControlManager.handleDirectoriesOffline``).
           If this changes the leader or the ISR of a skipped partition, the partition is new to the broker
           (``TopicDelta.localChanges``). The broker creates an empty log.

        Before 4.0, only log dirs that fail while logs are loaded are affected. From 4.0 on, log dirs that were offline
        before are affected, too: a killed broker's partitions lose their leader when it registers again. After a clean
        stop the broker leads no partition, and skips none. From 4.0 on the result varies. ``LogDirFailureHandler`` may
        remove the id of the log dir first, and then ``onlineLogDirId`` is False. Of 22 such logs, some starts created
        0, others 6 or 22.
        """
        live = next((each for each in self.dirs if each not in self.offline), None)
        if self.image is None or not self.decides or live is None or self.metadata_dir in self.offline or not failed:
            return
        online = {directory for each, directory in directories.items() if each not in self.offline}
        mine = {(topic.name, number): (topic, directory) for topic, number, directory in self._by_topic_id(self.image)}
        led: dict[str, list[tuple[str, int]]] = {}
        for key, (topic, _) in mine.items():
            if topic.partitions[key[1]].leader == self.node_id:
                led.setdefault(topic.name, []).append(key)
        from kdump.primitives import java_hash_order

        order = java_hash_order.java_put_all(led.values(), java_hash_order.partition_hash)
        first = next((at for at, key in enumerate(order) if mine[key][1] not in {*online, UNASSIGNED}), None)
        if first is None:
            return
        known = set(order[: first + 1])
        by_id = {directories.get(each): each for each in failed}
        elsewhere = by_id.get(None) if self.is_complete else None  # a failed log dir whose id is unknown
        begun: dict[tuple[str, int], LogStart] = {}
        for key, (topic, directory) in mine.items():
            is_elsewhere = (
                directory not in directories.values() and int.from_bytes(directory, "big") >= broker_dirs.RESERVED
            )
            log_dir = elsewhere if is_elsewhere else by_id.get(directory)
            if log_dir is not None and key not in known and self._loses_replica(topic, key[1]):
                begun[key] = self._begun_elsewhere(topic, key[1], live, log_dir)
        replaced = [
            log for log in self.more if log.outcome is StartOutcome.OFFLINE and (log.topic, log.partition) in begun
        ]
        self.more = [log for log in self.more if log not in replaced] + list(begun.values())

    def _by_topic_id(self, image: ClusterImage) -> Iterator[tuple[Topic, int, bytes]]:
        """Yield the assignments in the order of ``TopicsDelta.changedTopics``, a HashMap by topic id."""
        from kdump.primitives import java_hash_order

        found = {topic.id: topic for topic in image.topics.by_name.values()}
        for topic_id in java_hash_order.java_put(found, java_hash_order.uuid_hash):
            yield from self._directories_of(found[topic_id])

    def _loses_replica(self, topic: Topic, number: int) -> bool:
        """Return whether leader or ISR change when this replica goes offline (``generateLeaderAndIsrUpdates``)."""
        state = topic.partitions[number]
        return state.leader == self.node_id or (self.node_id in state.isr and len(state.isr) > 1)

    def _begun_elsewhere(self, topic: Topic, number: int, live: LogDirFiles, failed: LogDirFiles) -> LogStart:
        name = f"{topic.name}-{number}"
        file = failed.shown(name) if failed.is_folder else failed.name
        text = f"the log dir of {name} is offline: a start can create an empty log in another log dir"
        return LogStart(
            topic=topic.name,
            partition=number,
            folder=None,
            log_dir=live.name,
            outcome=StartOutcome.CREATED_EMPTY,
            log_start_offset=0,
            log_end_offset=0,
            causes=(StartCause(code=Code.LOG_DIR_OFFLINE, file=file, text=text),),
            assigned_id=topic.id,
            is_assigned=True,
        )

    def _leaderless(self, directories: Mapping[LogDirFiles, bytes | None]) -> None:
        """Add a cause to each served log that can be without a leader for some minutes after the start.

        A controller elects a replica only if a live log dir has the directory id that the metadata assigns to it
        (``DirectoryId.isOnline``). The broker corrects a wrong id (``AssignmentsManager``). If the controller unfences
        the broker first, the partition waits for the next election (brokers of 3.9.2 and 4.4.0).
        """
        if self.image is None or not self.decides:
            return
        down = {*self.offline, *self.late}
        live = {directories.get(each) for each in self.dirs if each not in down}
        registered = self.image.cluster.brokers.get(self.node_id if self.node_id is not None else -1, {})
        has_all = self.is_complete or len(registered.get("logDirs") or ()) <= len(self.dirs)
        for number, (log_dir, folder, log) in enumerate(self.loaded):
            directory = self._assigned_directory(log)
            if directory is None or folder.parsed.state or log.outcome not in SERVED or log.outcome is None:
                continue
            if log_dir in down or log.assigned_id != log.topic_id:  # the folder has the name of another topic
                continue
            is_named = int.from_bytes(directory, "big") >= broker_dirs.RESERVED
            if directory in live or directory <= UNASSIGNED or (is_named and not has_all):  # or MIGRATING, which is 0
                continue
            state = self.image.topics.by_name[log.topic].partitions[log.partition]
            if {state.leader, *state.isr, *state.elr} <= {self.node_id, NO_LEADER}:
                text = f"the metadata assigns {log.topic}-{log.partition} to "
                text += f"directory.id {id_text(directory)}" if is_named else "a lost log dir"
                text += ", which no log dir of this broker has: a controller elects no leader at first"
                cause = StartCause(code=Code.LEADER_DELAYED, file=log_dir.shown(file_names.META_PROPERTIES), text=text)
                self.loaded[number] = (log_dir, folder, log._replace(causes=(*log.causes, cause)))

    def _late_checkpoints(self) -> None:
        """Verify the checkpoints that a broker reads after the logs: high watermarks and cleaner offsets.

        If a number in the high watermarks is malformed, ``ReplicaManager.applyDelta`` fails at the first image. The
        broker then becomes the leader of no partition in any of its log dirs (3.9.2, 4.4.0).
        """
        for each in self.dirs:
            if each in self.offline or not each.is_folder:
                continue
            serves = any(
                log_dir is each and not folder.parsed.state and log.outcome in SERVED
                for log_dir, folder, log in self.loaded
            ) or any(log.log_dir == each.name and log.outcome is StartOutcome.CREATED_EMPTY for log in self.more)
            late = [(file_names.HIGH_WATERMARKS, Code.CHECKPOINT_BROKEN)] if serves else []
            if self.options.configs.get(CLEANER, "true").strip().lower() != "false":
                late.append((file_names.CLEANER_OFFSETS, Code.CLEANER_CHECKPOINT_BROKEN))
            self._blocked_checkpoints(each, (name for name, _ in late))
            for name, code in late:
                entry = each.entry(name) if name in names(each) else None
                if entry is None or entry.is_folder or self._read_before(each, name) is not None:
                    continue
                try:
                    checkpoints.read(each.read(name))
                except StoreError:
                    raise
                except UnreadableError:
                    continue
                except NumberDamageError as damage:
                    if code is Code.CHECKPOINT_BROKEN:
                        cause = StartCause(code=code, file=each.shown(name), text=f"NumberFormatException: {damage}")
                        self.unserved.append(cause)
                except DamageError as damage:
                    self.offline.setdefault(each, StartCause(code=code, file=each.shown(name), text=str(damage)))

    def _blocked_checkpoints(self, log_dir: LogDirFiles, late: Iterable[str]) -> None:
        """Find the checkpoints that a broker cannot write: it first writes each to a file with the suffix ``.tmp``."""
        inside = log_dir.entries if names(log_dir) else {}
        for name in (file_names.RECOVERY_POINTS, file_names.LOG_STARTS, *late):
            if (blocked := log_dir.blocked(inside.get(f"{name}.{file_names.TMP}"))) is not None:
                self.late.setdefault(log_dir, blocked)

    def _fail_whole(self) -> None:
        dispensable = self.broker.dispensable
        self.fatal += (cause for each, cause in self.offline.items() if each not in dispensable)
        is_whole = bool(self.dirs) and all(each in self.offline for each in self.dirs)
        if is_whole and not self.broker.has_others:
            self.fatal += self.offline.values()

    def _shown(self, log_dir: LogDirFiles, folder: log_folder.LogFolder, log: LogStart) -> LogStart:
        if log_dir not in self.offline:
            return log
        cause = StartCause(code=Code.LOG_DIR_OFFLINE, file=folder.name, text=f"log dir {log_dir.name} is offline")
        return log.not_served(StartOutcome.OFFLINE).with_causes(cause, self.offline[log_dir])

    def _of_dirs_not_loaded(self, logs: Sequence[LogStart]) -> Iterator[LogStart]:
        """Yield a log with the outcome OFFLINE for each partition folder of an offline log dir that was not loaded."""
        have = {(log.log_dir, log.folder) for log in logs}
        for each, cause in self.offline.items():
            for name in sorted(names(each)):
                parsed = file_names.parse_folder(name)
                entry = each.entry(name)
                if parsed is None or entry is None or not entry.is_folder or (each.name, name) in have:
                    continue
                if parsed.topic == CLUSTER_METADATA:
                    continue
                yield _ignored(each, name, parsed, each.shown(name))._replace(
                    outcome=StartOutcome.OFFLINE, causes=(cause,)
                )


def _not_loaded(folder: LogFolder, cause: StartCause) -> LogStart:
    return LogStart(
        topic=folder.parsed.topic,
        partition=folder.parsed.partition,
        folder=folder.base,
        log_dir=folder.log_dir.name,
        outcome=None,
        causes=(cause,),
        path=folder.name,
    )


def _is_old(log_dir: LogDirFiles) -> bool:
    """Return whether a log dir has no KRaft files and no ``partition.metadata``, as one of a broker of 0.8."""
    if names(log_dir) & KRAFT_FILES:
        return False
    folders = (entry.path for entry in log_dir.entries.values() if entry.is_folder)
    try:
        return all(log_dir.files.look(posixpath.join(path, file_names.PARTITION_METADATA)) is None for path in folders)
    except StoreError:
        raise
    except UnreadableError:  # the file may be there
        return False


def _ignored(log_dir: LogDirFiles, name: str, parsed: file_names.FolderName, path: str) -> LogStart:
    return LogStart(
        topic=parsed.topic,
        partition=parsed.partition,
        folder=name,
        log_dir=log_dir.name,
        outcome=StartOutcome.IGNORED,
        path=path,
    )
