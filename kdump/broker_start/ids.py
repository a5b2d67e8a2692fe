"""Verifies the ``meta.properties`` of a broker's log dirs, as a broker does when it starts.

Sources: Kafka's classes MetaPropertiesEnsemble (Loader and verify) and KafkaRaftServer (``initializeLogDirs``), 3.7,
KIP-858.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.broker_start import log_folder
from kdump.broker_start.outcome import StartCause
from kdump.errors import DamageError, UnreadableError
from kdump.findings.codes import Code
from kdump.formats import meta_properties
from kdump.log_dirs import file_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kdump.broker_start.log_folder import LogDirFiles

RESERVED: Final = 100
"""Kafka reserves the directory ids below this number."""


class Ids(NamedTuple):
    """The content of a ``meta.properties``. A value is None if the file lacks its key. ``version`` is 0 or 1."""

    version: int
    node_id: int | None
    cluster_id: str | None
    directory_id: bytes | None


class DirIds(NamedTuple):
    """The ids of a log dir. If ``meta.properties`` is missing or unreadable, ``ids`` is None and ``cause`` is set."""

    log_dir: LogDirFiles
    ids: Ids | None
    cause: StartCause | None

    @property
    def is_missing(self) -> bool:
        """Whether the file is missing, which stops the broker. An unreadable file only takes the log dir offline."""
        return self.cause is not None and self.cause.code in {Code.META_PROPERTIES_MISSING, Code.LOG_DIR_MISSING}

    @property
    def is_closed(self) -> bool:
        """Whether kdump cannot read the file, but the broker may be able to."""
        return self.cause is not None and self.cause.code is Code.FILE_UNREADABLE


def read(log_dir: LogDirFiles) -> DirIds:
    shown = log_dir.shown(file_names.META_PROPERTIES)
    if not log_dir.exists:
        text = f"No `meta.properties` found in {log_dir.name}: the folder does not exist"
        return DirIds(log_dir, None, StartCause(code=Code.LOG_DIR_MISSING, file=log_dir.name, text=text))
    if not log_dir.is_folder:
        text = f"Failed to load {log_dir.name} during broker startup: it is not a folder"
        return DirIds(log_dir, None, StartCause(code=Code.LOG_DIR_NO_FOLDER, file=log_dir.name, text=text))
    entry = log_dir.entry(file_names.META_PROPERTIES)
    if entry is None or log_dir.is_dangling(entry):
        text = f"No `meta.properties` found in {log_dir.name} (have you run `kafka-storage.sh` to format it?)"
        return DirIds(log_dir, None, StartCause(code=Code.META_PROPERTIES_MISSING, file=shown, text=text))
    try:
        return DirIds(log_dir, of(log_dir.read(file_names.META_PROPERTIES)), None)
    except (DamageError, UnreadableError) as error:
        if isinstance(error, UnreadableError) and error.is_denied:
            return DirIds(log_dir, None, log_folder.unreadable(error))
        text = f"Error while reading meta.properties file {shown}: {error}"
        return DirIds(log_dir, None, StartCause(code=Code.META_PROPERTIES_UNREADABLE, file=shown, text=text))


def of(data: bytes) -> Ids:
    """Return the ids in a ``meta.properties``. Raises DamageError if a broker cannot read the file."""
    properties = meta_properties.read(data)
    if properties.values:
        meta_properties.check(properties)
    values = properties.values
    version = int(values.get("version", "0").strip())
    node = values.get("node.id" if version else "broker.id")
    return Ids(
        version,
        None if node is None else int(node),
        values.get("cluster.id"),
        None if properties.directory_id is None else _uuid(properties.directory_id),
    )


def _uuid(text: str) -> bytes:
    from base64 import b64decode

    return b64decode(text + "=" * (-len(text) % 4), altchars=b"-_")


class Verified(NamedTuple):
    """The ids of the broker, the causes that stop it, and the causes that take log dirs offline."""

    node_id: int | None
    cluster_id: str | None
    fatal: tuple[StartCause, ...]
    offline: Mapping[LogDirFiles, StartCause]


def verify(found: Sequence[DirIds], metadata: LogDirFiles, node_id: int | None) -> Verified:
    """Verify the ids of all log dirs. ``metadata`` is the metadata log's log dir, ``node_id`` the configured id."""
    there = [each for each in found if each.ids is not None]
    cluster = next((each.ids.cluster_id for each in there if each.ids and each.ids.cluster_id is not None), None)
    node = node_id if node_id is not None else next((each.ids.node_id for each in there if each.ids), None)
    offline = {
        each.log_dir: each.cause
        for each in found
        if each.cause is not None and not each.is_missing and not each.is_closed
    }
    fatal = _fatal(sorted(found, key=lambda each: each.log_dir.path), metadata, node_id, offline)
    return Verified(node, cluster, tuple(fatal), offline)


def _fatal(
    found: Sequence[DirIds], metadata: LogDirFiles, node: int | None, offline: Mapping[LogDirFiles, StartCause]
) -> Iterator[StartCause]:
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
    if (cause := offline.get(metadata)) is not None:
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
        if each.is_missing and each.cause is not None:
            yield each.cause
        elif each.ids is not None and each.ids.node_id is None:
            text = f"Error: node ID not found in {each.log_dir.name}"
            yield StartCause(code=Code.NODE_ID_MISSING, file=each.log_dir.shown(file_names.META_PROPERTIES), text=text)
        elif each.ids is not None and each.ids.cluster_id is None:
            text = f"Error: cluster ID not found in {each.log_dir.name}"
            yield StartCause(code=Code.NODE_ID_MISSING, file=each.log_dir.shown(file_names.META_PROPERTIES), text=text)


METADATA_FOLDER: Final = "__cluster_metadata-0"


def _mismatches(there: Sequence[DirIds], node: int | None) -> Iterator[StartCause]:
    """Yield a cause for each contradiction between ids, in the order of the log dirs."""
    cluster: str | None = None
    seen: dict[bytes, DirIds] = {}
    for each in there:
        ids, shown = each.ids, each.log_dir.shown(file_names.META_PROPERTIES)
        if ids is None:
            continue
        cluster = cluster if cluster is not None else ids.cluster_id
        if ids.cluster_id is not None and ids.cluster_id != cluster:
            text = f"Invalid cluster.id in: {shown}. Expected {cluster}, but read {ids.cluster_id}"
            yield StartCause(
                code=Code.CLUSTER_ID_DIFFERS, file=shown, text=text, expected=cluster, found=ids.cluster_id
            )
        node = node if node is not None else ids.node_id
        if ids.node_id is not None and ids.node_id != node:
            text = f"Stored node id {ids.node_id} doesn't match previous node id {node} in {shown}"
            yield StartCause(
                code=Code.NODE_ID_DIFFERS, file=shown, text=text, expected=str(node), found=str(ids.node_id)
            )
        if ids.directory_id is None:
            continue
        if int.from_bytes(ids.directory_id, "big") < RESERVED:
            text = f"Invalid resrved directory ID found in {each.log_dir.name}"
            yield StartCause(code=Code.DIRECTORY_ID_RESERVED, file=shown, text=text)
        first = seen.setdefault(ids.directory_id, each)
        if first is not each:
            text = (
                f"Duplicate directory ID found. It was the ID of {first.log_dir.name}, but also of {each.log_dir.name}"
            )
            yield StartCause(code=Code.DIRECTORY_ID_TWICE, file=shown, text=text)
