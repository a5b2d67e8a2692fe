"""The records of the metadata log: decoded, with where they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from kdump.errors import DamageError, KdumpError
from kdump.internal_topics import cluster_metadata, control_records, frame, well_formed
from kdump.internal_topics.decode import by_type, decode
from kdump.internal_topics.interpreter import Reader, read_fields
from kdump.internal_topics.schema import NEWEST
from kdump.records import control

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.formats.record import Record
    from kdump.records.record_batch import RecordBatch

TOPIC: Final = cluster_metadata.TOPIC

Fields: TypeAlias = dict[str, Any]
"""The values of a message by field; its schema says the types."""

NO_LEADER_CHANGE: Final = -2
NO_LEADER: Final = -1


class ReplayError(KdumpError):
    """A record that does not apply: what it names is not there, or no release knows it."""


class MetadataRecord(NamedTuple):
    """A record, decoded. ``name`` is that of its message: "TopicRecord", "VotersRecord"."""

    offset: int
    timestamp: int
    """When the controller appended it, in ms."""
    epoch: int
    """The leader epoch of its batch."""
    batch: int
    """The base offset of its batch."""
    name: str
    version: int
    fields: Fields


class Undecoded(NamedTuple):
    """A record that no schema reads, and why."""

    offset: int
    timestamp: int
    epoch: int
    batch: int
    reason: str


_CONTROL: Final = by_type(control_records.MESSAGES, "")


def read_batch(batch: RecordBatch) -> Iterator[MetadataRecord | Undecoded]:
    """Yield the records of a batch. Raises DamageError where the batch cannot be read."""
    read = _read_control if batch.is_control else _read_data
    epoch = batch.partition_leader_epoch
    for record in batch.records():
        yield read(record, -1 if epoch is None else epoch, batch.base_offset)


_LAYOUTS: Final = {
    bytes((frame.CURRENT, number, version)): (message.name, version, message.struct(version))
    for number, message in by_type(cluster_metadata.MESSAGES, "Record").items()
    for versions in message.declared_versions.at(NEWEST)
    for version in range(versions.lowest, versions.highest + 1)
}
"""The three bytes that frame a message of a release of today -> its name, version and layout."""


def _read_data(record: Record, epoch: int, base: int) -> MetadataRecord | Undecoded:
    if record.value is not None and (layout := _LAYOUTS.get(record.value[:3])) is not None:
        name, version, struct = layout
        fields = well_formed.read(struct, record.value, 3)
        if fields is not None:
            return MetadataRecord(record.offset, record.timestamp, epoch, base, name, version, fields)
    made = decode(TOPIC, None, record.value)
    value = None if made is None else made.value
    if value is None or value.values is None or value.version is None or value.reason:
        reason = "its value is null" if value is None else value.reason
        return Undecoded(record.offset, record.timestamp, epoch, base, reason)
    return MetadataRecord(record.offset, record.timestamp, epoch, base, value.name, value.version, value.values)


def _read_control(record: Record, epoch: int, base: int) -> MetadataRecord | Undecoded:
    try:
        number = control.read_key(record.key).type
        message = _CONTROL.get(number)
        if message is None or record.value is None:
            reason = f"control record type {number} is unknown" if message is None else "its value is null"
            return Undecoded(record.offset, record.timestamp, epoch, base, reason)
        version = Reader(record.value).int16()
        fields = read_fields(message.struct(version), Reader(record.value))
    except DamageError as damage:
        return Undecoded(record.offset, record.timestamp, epoch, base, str(damage))
    return MetadataRecord(record.offset, record.timestamp, epoch, base, message.name, version, fields)
