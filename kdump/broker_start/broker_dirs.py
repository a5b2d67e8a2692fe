"""Groups log dirs by broker (:func:`brokers`), and verifies their ``meta.properties`` as a start does (:func:`verify`).

Sources: KIP-858, Kafka's classes MetaPropertiesEnsemble (Loader, verify) and KafkaRaftServer (``initializeLogDirs``).
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.broker_start import log_folder, release
from kdump.broker_start.log_folder import METADATA_FOLDER, LogDirFiles
from kdump.broker_start.outcome import StartCause
from kdump.errors import DamageError, StoreError, UnreadableError, without_path
from kdump.findings.codes import Code
from kdump.formats import meta_properties
from kdump.formats.partition_metadata import id_of
from kdump.formats.sparse_index import DEFAULT_INTERVAL
from kdump.log_dirs import file_names
from kdump.log_dirs.local import LOCAL, folder_identity
from kdump.log_dirs.partition import listed_log_dirs
from kdump.primitives.compression import DEFAULT_LIMIT
from kdump.primitives.encodings import java_config_is_true

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

    from kdump.answers.metadata.cluster_image import ClusterImage
    from kdump.log_dirs.files import Files
    from kdump.log_dirs.partition import Partition

METADATA_DIR: Final = "metadata.log.dir"
ROLES: Final = "process.roles"
MIGRATION: Final = "zookeeper.metadata.migration.enable"
KRAFT_FILES: Final = frozenset({METADATA_FOLDER, file_names.BOOTSTRAP_SNAPSHOT})
LOG_MANAGER_FILES: Final = frozenset(
    {
        file_names.CLEAN_SHUTDOWN,
        file_names.CLEANER_OFFSETS,
        file_names.HIGH_WATERMARKS,
        file_names.LOG_STARTS,
        file_names.RECOVERY_POINTS,
    }
)
"""Files that LogManager writes into a log dir. A node that is only a controller has no LogManager."""
NO_IDS: Final = frozenset({Code.META_PROPERTIES_MISSING, Code.META_PROPERTIES_UNREADABLE})
"""Causes of a missing or broken ``meta.properties`` in a log dir that exists."""
RESERVED: Final = meta_properties.RESERVED_IDS
"""Directory ids below this number do not identify a log dir (UNASSIGNED, LOST, MIGRATING)."""


class Ids(NamedTuple):
    """The content of a ``meta.properties``. An id is None if the file lacks it. ``version`` is 1, else 0."""

    version: int
    node_id: int | None
    cluster_id: str | None
    directory_id: bytes | None


class DirIds(NamedTuple):
    """The ids of a log dir, or None and the ``cause`` for which they are unknown."""

    log_dir: LogDirFiles
    ids: Ids | None
    cause: StartCause | None

    @property
    def is_missing(self) -> bool:
        """Whether ``meta.properties`` or the log dir is missing: a KRaft broker does not start."""
        return self.cause is not None and self.cause.code in {Code.META_PROPERTIES_MISSING, Code.LOG_DIR_MISSING}

    @property
    def is_closed(self) -> bool:
        """Whether kdump has no permission to read the file or the log dir. The broker may have the permission."""
        return self.cause is not None and self.cause.code is Code.FILE_UNREADABLE


def ids_of(log_dir: LogDirFiles) -> DirIds:
    try:
        return _read(log_dir)
    except StoreError:
        raise
    except UnreadableError as error:
        if error.is_denied:
            return DirIds(log_dir, None, log_folder.unreadable(error))
        text = f"the log dir cannot be read: {error.reason}"
        return DirIds(log_dir, None, StartCause(code=Code.LOG_DIR_UNREADABLE, file=log_dir.name, text=text))


def _read(log_dir: LogDirFiles) -> DirIds:
    shown = log_dir.shown(file_names.META_PROPERTIES)
    if not log_dir.exists:
        text = f"No `meta.properties` found in {log_dir.name}: the folder does not exist"
        return DirIds(log_dir, None, StartCause(code=Code.LOG_DIR_MISSING, file=log_dir.name, text=text))
    if not log_dir.is_folder:
        text = f"Failed to load {log_dir.name} during broker startup: it is not a folder"
        return DirIds(log_dir, None, StartCause(code=Code.LOG_DIR_NO_FOLDER, file=log_dir.name, text=text))
    entry = log_dir.entry(file_names.META_PROPERTIES)
    if entry is None or (log_dir.is_dangling(entry) and not log_dir.is_loop(entry)):
        text = f"No `meta.properties` found in {log_dir.name} (have you run `kafka-storage.sh` to format it?)"
        return DirIds(log_dir, None, StartCause(code=Code.META_PROPERTIES_MISSING, file=shown, text=text))
    try:
        return DirIds(log_dir, of(log_dir.read(file_names.META_PROPERTIES)), None)
    except (DamageError, UnreadableError) as error:
        if isinstance(error, UnreadableError) and error.is_denied:
            return DirIds(log_dir, None, log_folder.unreadable(error))
        text = f"Error while reading meta.properties file {shown}: {without_path(error)}"
        return DirIds(log_dir, None, StartCause(code=Code.META_PROPERTIES_UNREADABLE, file=shown, text=text))


def of(data: bytes) -> Ids:
    """Return the ids in a ``meta.properties``. Raises DamageError if a broker cannot read the file."""
    properties = meta_properties.read(data)
    if properties.values:
        meta_properties.check(properties, takes_reserved=True)  # verify() refuses reserved ids: the broker stops
    return Ids(
        properties.version or 0,
        properties.node_id,
        properties.cluster_id,
        None if properties.directory_id is None else id_of(properties.directory_id),
    )


class Verified(NamedTuple):
    """The ids of a broker, the causes that stop it, and the causes that take log dirs offline."""

    node_id: int | None
    cluster_id: str | None
    fatal: tuple[StartCause, ...]
    offline: Mapping[LogDirFiles, StartCause]


def verify(broker: BrokerDirs, node_id: int | None) -> Verified:
    """Verify the ids of a broker's log dirs. ``node_id``: from the configs."""
    found = broker.ids
    there = [each for each in found if each.ids is not None]
    cluster = next((each.ids.cluster_id for each in there if each.ids and each.ids.cluster_id is not None), None)
    node = node_id
    if node is None:
        node = next((each.ids.node_id for each in there if each.ids and each.ids.node_id is not None), None)
    offline = {
        each.log_dir: each.cause
        for each in found
        if each.cause is not None and not each.is_missing and not each.is_closed
    }
    fatal = _fatal(sorted(found, key=lambda each: each.log_dir.path), broker, node_id, offline)
    return Verified(node, cluster, (*_twice(broker), *fatal), offline)


def _twice(broker: BrokerDirs) -> Iterator[StartCause]:
    """Yield a cause for each second path of a log dir. A controller compares only the directory ids of the paths."""
    directories = {each.log_dir for each in broker.ids if each.ids is not None and each.ids.directory_id is not None}
    for first, second in broker.twice:
        if broker.loaded or first in directories:
            text = f"Duplicate log directory found: {first.name} and {second.name} are the same folder"
            yield StartCause(code=Code.LOG_DIR_TWICE, file=second.name, text=text)


def _fatal(
    found: Sequence[DirIds], broker: BrokerDirs, node: int | None, offline: Mapping[LogDirFiles, StartCause]
) -> Iterator[StartCause]:
    metadata = broker.metadata_dir
    there = [each for each in found if each.ids is not None]
    if not there and any(each.is_closed for each in found):
        return
    if not there:
        first = next(each for each in found if each.log_dir is metadata)
        broken = first.cause or next(each.cause for each in found if each.cause)
        yield StartCause(
            code=broken.code, file=broken.file, text=f"No readable meta.properties files found. {broken.text}"
        )
        return
    yield from _mismatches(there, node)
    if broker.required is not None and (cause := offline.get(broker.required)) is not None:
        text = f"Encountered I/O error in metadata log directory {metadata.name}. {cause.text}"
        yield StartCause(code=cause.code, file=cause.file, text=text)
    for each in there:
        if each.log_dir is not metadata and each.log_dir.entry(METADATA_FOLDER) is not None:
            text = (
                f"Found unexpected metadata location in data directory `{each.log_dir.shown(METADATA_FOLDER)}` "
                f"(the configured metadata directory is {metadata.name})."
            )
            yield StartCause(code=Code.METADATA_LOG_MISPLACED, file=each.log_dir.shown(METADATA_FOLDER), text=text)
    for each in found:
        if broker.is_zookeeper:
            continue  # such a broker creates a missing log dir, and completes a missing or short meta.properties
        if each.is_missing and each.cause is not None:
            yield each.cause
        elif each.ids is not None and each.ids.node_id is None:
            text = f"Error: node ID not found in {each.log_dir.name}"
            yield StartCause(code=Code.NODE_ID_MISSING, file=each.log_dir.shown(file_names.META_PROPERTIES), text=text)
        elif each.ids is not None and each.ids.cluster_id is None:
            text = f"Error: cluster ID not found in {each.log_dir.name}"
            yield StartCause(code=Code.NODE_ID_MISSING, file=each.log_dir.shown(file_names.META_PROPERTIES), text=text)


def _mismatches(there: Sequence[DirIds], node: int | None) -> Iterator[StartCause]:
    cluster: str | None = None
    seen: dict[bytes, DirIds] = {}
    for each in there:
        ids, shown = each.ids, each.log_dir.shown(file_names.META_PROPERTIES)
        if ids is None:
            continue
        cluster = cluster if cluster is not None else ids.cluster_id
        if ids.cluster_id is not None and ids.cluster_id != cluster:
            text = cluster_differs(shown, cluster, ids.cluster_id)
            yield StartCause(
                code=Code.CLUSTER_ID_DIFFERS, file=shown, text=text, expected=cluster, found=ids.cluster_id
            )
        node = node if node is not None else ids.node_id
        if ids.node_id is not None and ids.node_id != node:
            text = node_differs(shown, node, ids.node_id)
            yield StartCause(
                code=Code.NODE_ID_DIFFERS, file=shown, text=text, expected=str(node), found=str(ids.node_id)
            )
        if ids.directory_id is None:
            continue
        if int.from_bytes(ids.directory_id, "big") < RESERVED:
            text = f"Invalid reserved directory ID found in {each.log_dir.name}"
            yield StartCause(code=Code.DIRECTORY_ID_RESERVED, file=shown, text=text)
        first = seen.setdefault(ids.directory_id, each)
        if first is not each:
            text = (
                f"Duplicate directory ID found. It was the ID of {first.log_dir.name}, but also of {each.log_dir.name}"
            )
            yield StartCause(code=Code.DIRECTORY_ID_TWICE, file=shown, text=text)


def cluster_differs(shown: str, expected: str | None, found: str | None) -> str:
    return f"Invalid cluster.id in: {shown}. Expected {expected}, but read {found}"


def node_differs(shown: str, expected: int | None, found: int | None) -> str:
    return f"Stored node id {found} doesn't match previous node id {expected} in {shown}"


class StartOptions(NamedTuple):
    """The release, configs and node.id of the broker. ``limit``: the size of the largest batch in bytes.

    ``interval``: the default index.interval.bytes. Unless ``is_release_known``, the broker may have an older release.
    ``index_size``: the default segment.index.bytes, or None if it is unknown.
    """

    release: release.StartRelease = release.of(release.NEWEST)
    configs: Mapping[str, str] = {}
    node_id: int | None = None
    limit: int = DEFAULT_LIMIT
    is_release_known: bool = True
    interval: int = DEFAULT_INTERVAL
    index_size: int | None = None


class BrokerDirs:
    """The log dirs of one broker, with its metadata.log.dir. ``is_complete``: it is known to have no other log dirs.

    ``metadata_dir`` is that config. Without it: unless ``is_complete`` one with a metadata log, else the first log dir.
    """

    def __init__(self, given: Sequence[DirIds], options: StartOptions, *, is_complete: bool) -> None:
        self.is_complete = is_complete
        self._is_configured = METADATA_DIR in options.configs
        self._migrates = java_config_is_true(options.configs.get(MIGRATION, ""))
        once: dict[object, DirIds] = {}
        paths = [(once.setdefault(_identity(each), each), each) for each in given]
        found = list(once.values())
        configured = _at(found, options.configs[METADATA_DIR]) if self._is_configured else None
        if configured is not None and (first := once.get(_identity(configured))) is not None:
            paths.append((first, configured))
            configured = first
        self.ids = (*found, *(() if configured is None or configured in found else (configured,)))
        self._has_roles = ROLES in options.configs
        roles = {each.strip() for each in options.configs.get(ROLES, "").split(",")}
        self.loaded: tuple[LogDirFiles, ...] = () if roles == {"controller"} else tuple(each.log_dir for each in found)
        """The log dirs whose logs the node loads. A node that is only a controller has no LogManager and loads none.

        A metadata.log.dir that is none of log.dirs is not one of them.
        """
        self.metadata_dir = (
            configured.log_dir
            if configured is not None
            else next(
                (each for each in self.log_dirs if not is_complete and METADATA_FOLDER in names(each)),
                self.log_dirs[0],
            )
        )
        if self.is_zookeeper and not self._migrates:
            paths = paths[: len(given)]  # such a broker ignores metadata.log.dir
        self.twice = [(first.log_dir, each.log_dir) for first, each in paths if each is not first and is_complete]
        """The log dirs with a second path in log.dirs or metadata.log.dir; empty unless ``is_complete``."""

    def with_roles(self, image: ClusterImage) -> None:
        """Set ``loaded`` to no log dir if the configs have no process.roles, but the node can only be a controller.

        Such a node is a voter or a registered controller. The metadata has neither its registration as a broker nor a
        replica on it, and its log dirs have no partition folder and none of LOG_MANAGER_FILES.
        """
        node = next((each.ids.node_id for each in self.ids if each.ids and each.ids.node_id is not None), None)
        is_controller = node in image.voter_ids or node in image.cluster.controllers
        if self._has_roles or not is_controller or node in image.cluster.brokers:
            return
        partitions = (state for topic in image.topics.by_name.values() for state in topic.partitions.values())
        if any(node in state.replicas for state in partitions):
            return
        if not any(names(each) & LOG_MANAGER_FILES or _partitions(each) - {METADATA_FOLDER} for each in self.log_dirs):
            self.loaded = ()

    @property
    def is_only_controller(self) -> bool:
        return not self.loaded

    @property
    def log_dirs(self) -> tuple[LogDirFiles, ...]:
        return tuple(each.log_dir for each in self.ids)

    @property
    def not_loaded(self) -> list[LogDirFiles]:
        """The other log dirs. The node reads only ``meta.properties``, and the metadata log in the metadata.log.dir."""
        return [each for each in self.log_dirs if each not in self.loaded]

    @property
    def is_kraft(self) -> bool:
        return any(each.ids is not None and each.ids.version > 0 for each in self.ids)

    @property
    def is_zookeeper(self) -> bool:
        """Whether each ``meta.properties`` has version 0, one has a broker.id, and there is no file of KRaft."""
        there = [each.ids for each in self.ids if each.ids is not None]
        has_id = any(ids.node_id is not None for ids in there) and not self.is_kraft
        return has_id and not any(names(each) & KRAFT_FILES for each in self.log_dirs)

    @property
    def required(self) -> LogDirFiles | None:
        """The log dir that must be online, besides one of the others: None with ZooKeeper, except in a migration.

        Source: KafkaServer of 3.9 calls ``addMetadataLogDir`` only if the migration is enabled.
        """
        return None if self.has_others or (self.is_zookeeper and not self._migrates) else self.metadata_dir

    @property
    def has_others(self) -> bool:
        """Whether a KRaft broker must have further log dirs, because its metadata.log.dir is not known."""
        is_known = self.is_complete or self._is_configured or METADATA_FOLDER in names(self.metadata_dir)
        return self.is_kraft and not is_known

    @property
    def dispensable(self) -> list[LogDirFiles]:
        """The log dirs that may be offline: the broker starts if the others are online. A missing log dir is fatal."""
        return [each for each in self.log_dirs if each is not self.required]


def brokers(
    places: Iterable[tuple[Files, str]], options: StartOptions, partitions: Iterable[Partition] = ()
) -> list[BrokerDirs]:
    """Return the log dirs grouped by broker. Raises StoreError.

    If ``options`` has a node.id, all log dirs belong to one broker. Otherwise log dirs of one storage with the same
    node.id and cluster.id belong to one broker. But a copy (a common partition, and the same or no directory.id) counts
    as a separate broker, and so does a log dir without a node.id. Such a log dir is added to the other broker, if there
    is only one, and if :func:`_is_of` is true. ``partitions`` are the result of a finder: log dirs among them
    are not listed again.
    """
    listed = listed_log_dirs(partitions)
    dirs = [ids_of(LogDirFiles(files, path, listed.get((files, path)))) for files, path in places]
    if options.node_id is not None:
        return [BrokerDirs(dirs, options, is_complete=True)] if dirs else []
    found: list[tuple[object, list[DirIds]]] = []
    for each in dirs:
        key = _broker_of(each)
        mine = next(
            (held for known, held in found if key is not None and known == key and not _copies(held, each)), None
        )
        if mine is None:
            found.append((key, [each]))
        else:
            mine.append(each)
    known = [held for key, held in found if key is not None]
    if len(known) == 1:
        (mine,) = known
        names = {name for each in mine for name in _partitions(each.log_dir)}
        others = []
        for key, held in found:
            if key is None and _is_of(mine, names, *held):
                mine += held
                names |= _partitions(held[0].log_dir)
            else:
                others.append((key, held))
        found = others
        mine.sort(key=dirs.index)
    return [BrokerDirs(held, options, is_complete=False) for _, held in found]


def _is_of(known: Sequence[DirIds], names: Set[str], one: DirIds) -> bool:
    """Return whether ``one`` lacks only ids, is in the storage of ``known``, and has no folder named in ``names``."""
    is_broken = one.ids is not None or (one.cause is not None and one.cause.code in NO_IDS)
    return is_broken and one.log_dir.files is known[0].log_dir.files and not names & _partitions(one.log_dir)


def _identity(one: DirIds) -> object:
    return folder_identity(one.log_dir.files, one.log_dir.path)


def _broker_of(one: DirIds) -> object:
    if one.ids is None or one.ids.node_id is None:
        return None
    return one.log_dir.files, one.ids.node_id, one.ids.cluster_id


def _copies(held: Sequence[DirIds], other: DirIds) -> bool:
    return any(
        bool(_partitions(each.log_dir) & _partitions(other.log_dir)) and _directory(each) == _directory(other)
        for each in held
    )


def _partitions(log_dir: LogDirFiles) -> set[str]:
    return {name for name, entry in log_dir.entries.items() if entry.is_folder and file_names.parse_folder(name)}


def _directory(one: DirIds) -> bytes | None:
    return None if one.ids is None else one.ids.directory_id


def _at(found: Sequence[DirIds], given: str) -> DirIds:
    """Return the log dir at path ``given``: the one in ``found``, or else a new one in the same storage."""
    files = found[0].log_dir.files
    normal = posixpath.abspath if files is LOCAL else posixpath.normpath
    here = (each for each in found if normal(each.log_dir.path or ".") == normal(given))
    return next(here, None) or ids_of(LogDirFiles(files, given))


def names(log_dir: LogDirFiles) -> set[str]:
    """Return the names of the files and folders in a log dir; empty if it cannot be listed. Raises StoreError."""
    try:
        return set(log_dir.entries)
    except StoreError:
        raise
    except UnreadableError:
        return set()
