"""Makes the bytes of a snapshot (KIP-630): header, voters from kraft.version 1 on, records in batches, footer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from kdump.errors import UsageError
from kdump.formats.record_layout import CONTROL_FLAG, MAGIC_2, BatchHeader
from kdump.internal_topics import cluster_metadata, interpreter
from kdump.primitives.wire import write_unsigned_varint
from kdump.records import control
from kdump.records.magic_2 import write_batch, write_record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.answers.metadata.cluster_image import ClusterImage
    from kdump.answers.metadata.records import Fields, SnapshotRecord

BATCH: Final = 1 << 20
"""A batch ends when its values reach this size in bytes. A controller reads batches of up to 8 MiB."""


@dataclass(frozen=True, slots=True)
class Written:
    kind: ClassVar[str] = "snapshot"
    path: str
    end_offset: int
    epoch: int
    bytes: int


class KeyValue(NamedTuple):
    key: bytes | None
    value: bytes


def file_name(image: ClusterImage) -> str:
    return f"{image.end_offset:020}-{image.epoch:010}.checkpoint"


def encode(image: ClusterImage) -> bytes:
    """Return the bytes of a snapshot. Raises UsageError if the image ends inside a batch or transaction."""
    if image.cut_batch is not None:
        raise UsageError(
            f"offset {image.end_offset} lies inside a batch: a snapshot can be written at offset {image.cut_batch}"
        )
    if image.open_transaction is not None:
        raise UsageError(
            f"a metadata transaction is open at offset {image.end_offset}: "
            f"a snapshot can be written at offset {image.open_transaction}, where the transaction begins"
        )
    out, position = [], 0
    for records, attributes in _batches(image):
        out.append(_batch(records, image, position, attributes))
        position += len(records)
    return b"".join(out)


def _batches(image: ClusterImage) -> Iterator[tuple[list[KeyValue], int]]:
    yield list(_head(image)), CONTROL_FLAG
    waiting: list[KeyValue] = []
    size = 0
    for record in image.records():
        value = _value(record)
        waiting.append(KeyValue(None, value))
        size += len(value)
        if size >= BATCH:
            yield waiting, 0
            waiting, size = [], 0
    if waiting:
        yield waiting, 0
    yield [_control("SnapshotFooterRecord", {"version": 0})], CONTROL_FLAG


def _head(image: ClusterImage) -> Iterator[KeyValue]:
    yield _control("SnapshotHeaderRecord", {"version": 0, "lastContainedLogTimestamp": max(0, image.timestamp)})
    if image.kraft_version:
        yield _control("KRaftVersionRecord", {"version": 0, "kRaftVersion": image.kraft_version})
        yield _control("VotersRecord", {"version": 0, "voters": image.voters or []})


def _control(name: str, fields: Fields) -> KeyValue:
    message = cluster_metadata.CONTROL_MESSAGES[name]
    key = control.KEY.write(control.ControlKey(0, message.types.items[0][0]))
    return KeyValue(key, interpreter.write(message.struct(0), fields))


def _value(record: SnapshotRecord) -> bytes:
    number = cluster_metadata.MESSAGES[record.name].types.items[-1][0]
    head = b"".join(map(write_unsigned_varint, (interpreter.FRAME, number, record.version)))
    return head + interpreter.write(record.struct, record.fields)


def _batch(records: list[KeyValue], image: ClusterImage, position: int, attributes: int) -> bytes:
    data = b"".join(
        write_record(timestamp_delta=0, offset_delta=number, key=record.key, value=record.value)
        for number, record in enumerate(records)
    )
    time = max(0, image.timestamp)
    header = BatchHeader(
        base_offset=position,
        length=0,
        partition_leader_epoch=image.epoch,
        magic=MAGIC_2,
        crc=0,
        attributes=attributes,
        last_offset_delta=len(records) - 1,
        base_timestamp=time,
        max_timestamp=time,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        records_count=len(records),
    )
    return write_batch(header, data)
