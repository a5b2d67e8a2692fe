"""The records of the metadata log: decoded, batch by batch, with where they stand."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from kdump import kernel
from kdump.errors import DamageError, KdumpError
from kdump.internal_topics import cluster_metadata, control_records
from kdump.internal_topics.decode import decode
from kdump.internal_topics.interpreter import Reader, read_fields
from kdump.internal_topics.schema import by_type
from kdump.internal_topics.well_formed import metadata_message
from kdump.records import control
from kdump.segments.batch_runs import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from kdump.records.record_batch import Batches, RecordBatch

if kernel.COMPILED:
    from kdump.kernel.internal_topics import FramedMessages

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
    name: str
    fields: Fields


class Undecoded(NamedTuple):
    """A record that no schema reads, and why."""

    offset: int
    timestamp: int
    reason: str


class Appended(NamedTuple):
    """A batch of the metadata log. Iterating over ``records`` may raise DamageError."""

    base_offset: int
    last_offset: int
    timestamp: int
    """The greatest one of its records, in ms."""
    epoch: int
    """The leader epoch, -1 for none."""
    records: Iterable[MetadataRecord | Undecoded]


def appended(found: Batches) -> Iterator[Appended]:
    """Yield a batch, or each batch of a run, with its records decoded."""
    if isinstance(found, Run):
        for row in range(0, found.batch_count, TOGETHER):
            yield from _appended_in_run(found, row, min(row + TOGETHER, found.batch_count))
    else:
        yield from map(_appended, found.batches())


TOGETHER: Final = 256
"""Batches of a run that are decoded at a time: the results stay in the processor's cache."""


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
    epoch = batch.partition_leader_epoch
    records = read_batch(batch)
    return Appended(batch.base_offset, batch.last_offset, batch.max_timestamp, -1 if epoch is None else epoch, records)


def read_batch(batch: RecordBatch) -> Iterator[MetadataRecord | Undecoded]:
    """Yield the records of a batch. Raises DamageError where the batch cannot be read."""
    read = _reader(batch)
    for record in batch.records():
        yield read(record.offset, record.timestamp, record.key, record.value)


def _reader(batch: RecordBatch) -> Callable[[int, int, bytes | None, bytes | None], MetadataRecord | Undecoded]:
    return _read_control if batch.is_control else _read_data


def _read_data(offset: int, timestamp: int, _: bytes | None, value: bytes | None) -> MetadataRecord | Undecoded:
    made = decode(TOPIC, None, value)
    found = None if made is None else made.value
    if found is None or found.values is None or found.reason:
        return Undecoded(offset, timestamp, "its value is null" if found is None else found.reason)
    return MetadataRecord(offset, timestamp, found.name, found.values)


def _read_control(offset: int, timestamp: int, key: bytes | None, value: bytes | None) -> MetadataRecord | Undecoded:
    try:
        number = control.read_key(key).type
        message = _CONTROL.get(number)
        if message is None or value is None:
            reason = f"control record type {number} is unknown" if message is None else "its value is null"
            return Undecoded(offset, timestamp, reason)
        version = Reader(value).int16()
        fields = read_fields(message.struct(version), Reader(value))
    except DamageError as damage:
        return Undecoded(offset, timestamp, str(damage))
    return MetadataRecord(offset, timestamp, message.name, fields)


_CONTROL: Final = by_type(control_records.MESSAGES, "")
