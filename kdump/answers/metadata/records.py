"""Decodes the records of the metadata log, and makes the records of a snapshot.

The level of ``metadata.version``, a number, determines the versions of a snapshot's records. Source:
``org.apache.kafka.server.common.MetadataVersion`` of 3.9, 4.3.1 and 4.4.0; features: KIP-584.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from kdump import kernel
from kdump.errors import DamageError, KdumpError
from kdump.internal_topics import cluster_metadata
from kdump.internal_topics.cluster_metadata import MESSAGES
from kdump.internal_topics.decode import decode, metadata_message
from kdump.internal_topics.interpreter import PREVIEW_FRAME, Reader, read_fields
from kdump.internal_topics.schema import by_type
from kdump.records import control
from kdump.segments.batch_runs import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from kdump.internal_topics.schema import Struct
    from kdump.records.record_batch import Batches, RecordBatch


if kernel.COMPILED:
    from kdump.kernel.internal_topics import FramedMessages

TOPIC: Final = cluster_metadata.TOPIC

Fields: TypeAlias = dict[str, Any]
"""The values of a message by field name."""

NO_LEADER_CHANGE: Final = -2


class ReplayError(KdumpError):
    """A record that cannot be applied: it conflicts with the image, or no known release replays it."""


class MetadataRecord(NamedTuple):
    """A decoded record. ``name`` is the name of its message, such as "TopicRecord" or "VotersRecord"."""

    offset: int
    timestamp: int
    """The time at which the controller appended it, in ms."""
    name: str
    fields: Fields


class PreviewRecord(MetadataRecord):
    """A record of KRaft's preview in 2.8, by the version of its frame. No later release reads it."""

    __slots__ = ()


class Undecoded(NamedTuple):
    """A record that cannot be decoded, and the reason. ``is_known``: kdump has a schema of its type and version."""

    offset: int
    timestamp: int
    reason: str
    is_known: bool = True


class Appended(NamedTuple):
    """A batch of the metadata log. Iterating over ``records`` may raise DamageError."""

    base_offset: int
    last_offset: int
    timestamp: int
    """The greatest timestamp of its records, in ms."""
    epoch: int
    """The leader epoch, -1 for none."""
    records: Iterable[MetadataRecord | Undecoded]


def appended(found: Batches) -> Iterator[Appended]:
    """Yield each batch of ``found`` with its decoded records."""
    if isinstance(found, Run):
        for row in range(0, found.batch_count, TOGETHER):
            yield from _appended_in_run(found, row, min(row + TOGETHER, found.batch_count))
    else:
        yield from map(_appended, found.batches())


TOGETHER: Final = 256
"""Number of batches of a run that are decoded together, so that the results stay in the processor's cache."""


def _appended_in_run(run: Run, row: int, stop: int) -> Iterator[Appended]:
    messages = run.stack(FramedMessages(), row, stop)
    left = iter(messages.decoded(metadata_message, MetadataRecord, _read_data))
    heads = [run.column(name, row, messages.row) for name in _HEAD]
    for base, last, timestamp, epoch, count in zip(*heads, strict=True):
        yield Appended(base, last, timestamp, epoch, list(islice(left, count)))
    for left_over in range(messages.row, stop):
        yield _appended(run.batch(left_over))


_HEAD: Final = ("base_offset", "last_offset", "max_timestamp", "partition_leader_epoch", "records_count")


def _appended(batch: RecordBatch) -> Appended:
    return Appended(batch.base_offset, batch.last_offset, batch.max_timestamp, batch.leader_epoch, read_batch(batch))


def read_batch(batch: RecordBatch) -> Iterator[MetadataRecord | Undecoded]:
    """Yield the records of a batch; Undecoded if one cannot be decoded. Raises DamageError if the batch is damaged."""
    read = _reader(batch)
    for record in batch.records():
        yield read(record.offset, record.timestamp, record.key, record.value)


def _reader(batch: RecordBatch) -> Callable[[int, int, bytes | None, bytes | None], MetadataRecord | Undecoded]:
    return _read_control if batch.is_control else _read_data


def _read_data(offset: int, timestamp: int, _: bytes | None, value: bytes | None) -> MetadataRecord | Undecoded:
    made = decode(TOPIC, None, value)
    found = None if made is None else made.value
    if found is None or found.values is None or found.reason:
        reason, is_known = ("its value is null", True) if found is None else (found.reason, found.known)
        return Undecoded(offset, timestamp, reason, is_known)
    kind = PreviewRecord if found.raw[0] == PREVIEW_FRAME else MetadataRecord
    return kind(offset, timestamp, found.name, found.values)


def _read_control(offset: int, timestamp: int, key: bytes | None, value: bytes | None) -> MetadataRecord | Undecoded:
    try:
        number = control.read_key(key).type
        message = _CONTROL.get(number)
        if message is None or value is None:
            reason = f"control record type {number} is unknown" if message is None else "its value is null"
            return Undecoded(offset, timestamp, reason, is_known=number in control.TYPES)
        version = Reader(value).int16()
        fields = read_fields(message.struct(version), Reader(value))
    except DamageError as damage:
        return Undecoded(offset, timestamp, str(damage))
    return MetadataRecord(offset, timestamp, message.name, fields)


_CONTROL: Final = by_type(cluster_metadata.CONTROL_MESSAGES, "")


METADATA_VERSION: Final = "metadata.version"

LEVEL_NAMES: Final = dict(
    enumerate(
        (
            *("3.0-IV1", "3.1-IV0", "3.2-IV0"),
            *("3.3-IV0", "3.3-IV1", "3.3-IV2", "3.3-IV3", "3.4-IV0"),
            *("3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2"),
            *("3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0"),
            *("4.0-IV0", "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0", "4.1-IV1"),
            *("4.2-IV0", "4.2-IV1", "4.3-IV0", "4.4-IV0", "4.4-IV1", "4.4-IV2"),
        ),
        start=1,
    )
)

LEAST_LEVEL: Final = 1
"""The level if the log has no ``metadata.version``: releases before 3.3 did not write it."""
FEATURES_SINCE: Final = 4
MIGRATION: Final = range(8, 22)
"""The levels that support a migration from ZooKeeper: 3.4 to 3.9."""
SCRAM_SINCE: Final = 11
TOKENS_SINCE: Final = 14
CONTROLLERS_SINCE: Final = 15

_RECORD_VERSIONS: Final = {
    "RegisterBrokerRecord": ((30, 4), (17, 3), (8, 2), (7, 1)),
    "PartitionRecord": ((23, 2), (17, 1)),
}


def record_version(name: str, level: int) -> int:
    return next((version for since, version in _RECORD_VERSIONS.get(name, ()) if level >= since), 0)


def level_name(level: int) -> str:
    """Return the name of a level, such as "4.2-IV1" for 29; its number if it is unknown."""
    return LEVEL_NAMES.get(level, str(level))


_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "FeatureLevelRecord": ("name",),
    "ZkMigrationStateRecord": (),
    "RegisterBrokerRecord": ("brokerId",),
    "RegisterControllerRecord": ("controllerId",),
    "TopicRecord": ("topicId",),
    "PartitionRecord": ("topicId", "partitionId"),
    "ConfigRecord": ("resourceType", "resourceName", "name"),
    "ClientQuotaRecord": ("entity", "key"),
    "ProducerIdsRecord": (),
    "AccessControlEntryRecord": ("id",),
    "UserScramCredentialRecord": ("mechanism", "name"),
    "DelegationTokenRecord": ("tokenId",),
}
"""Message -> the fields that identify a record. A later record replaces one with the same values in these fields."""


class SnapshotRecord(NamedTuple):
    name: str
    version: int
    fields: Fields

    @property
    def struct(self) -> Struct:
        return MESSAGES[self.name].struct(self.version)

    @property
    def key(self) -> str:
        """The name and the values of the fields that identify the record (_KEYS)."""
        return repr((self.name, [self.fields[field] for field in _KEYS[self.name]]))

    @property
    def text(self) -> str:
        """The JSON of ``--cluster-metadata-decoder``: type, version, data."""
        from kdump.dump_log_segments.decoders import java
        from kdump.dump_log_segments.decoders.framed import metadata_head

        return f"{metadata_head(self.struct, self.version)}{java.json(self.struct, self.fields)}}}"

    @property
    def plain(self) -> dict[str, Any]:
        """The same as :attr:`text`, as a dict."""
        import json

        plain: dict[str, Any] = json.loads(self.text)
        return plain


class Features:
    """The finalized features: name -> level. ``zk_migration`` is the state of a migration from ZooKeeper."""

    def __init__(self) -> None:
        self.levels: dict[str, int] = {}
        self.zk_migration = 0

    @property
    def metadata_version(self) -> int:
        return self.levels.get(METADATA_VERSION, LEAST_LEVEL)

    @property
    def has_elr(self) -> bool:
        """Whether partitions have eligible leader replicas (KIP-966)."""
        return self.levels.get("eligible.leader.replicas.version", 0) > 0

    def handlers(self) -> dict[str, Callable[[Fields], None]]:
        return {
            "FeatureLevelRecord": self._set,
            "RemoveFeatureLevelRecord": self._remove,
            "ZkMigrationStateRecord": self._migrate,
        }

    def _set(self, fields: Fields) -> None:
        level = fields["featureLevel"] if "featureLevel" in fields else fields["maxFeatureLevel"]  # before 3.3
        if level or fields["name"] == METADATA_VERSION:
            self.levels[fields["name"]] = level
        else:
            self.levels.pop(fields["name"], None)

    def _remove(self, fields: Fields) -> None:
        self.levels.pop(fields["name"], None)

    def _migrate(self, fields: Fields) -> None:
        self.zk_migration = fields["zkMigrationState"]

    def records(self) -> Iterator[SnapshotRecord]:
        """Yield the records of a snapshot, none before 3.3. ``metadata.version`` is first: others depend on it."""
        if self.metadata_version < FEATURES_SINCE:
            return
        for name in sorted(self.levels, key=lambda name: (name != METADATA_VERSION, name)):
            yield SnapshotRecord("FeatureLevelRecord", 0, {"name": name, "featureLevel": self.levels[name]})
        if self.zk_migration and self.metadata_version in MIGRATION:
            yield SnapshotRecord("ZkMigrationStateRecord", 0, {"zkMigrationState": self.zk_migration})
