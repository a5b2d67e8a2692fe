"""The layout of a segment (``.log``): consecutive entries, each with a log overhead of 12 bytes.

Source: ``FileLogInputStream``, ``Records``. An entry of magic 0 (Kafka 0.8) or 1 (KIP-32, Kafka 0.10) is a message
(``LegacyRecord``); an entry of magic 2 (KIP-98, Kafka 0.11) is a batch of records (``DefaultRecordBatch``).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kdump.primitives.wire import Int8, Int16, Int32, Int64, Layout, UInt32

CREATE_TIME: Final = 0
LOG_APPEND_TIME: Final = 1
TIMESTAMP_TYPES: Final = {None: "NoTimestampType", CREATE_TIME: "CreateTime", LOG_APPEND_TIME: "LogAppendTime"}
"""Timestamp type -> Kafka's name; None stands for magic 0, which has no timestamps."""

MAGIC_2: Final = 2

CODEC_MASK: Final = 0x07
TIMESTAMP_TYPE_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
DELETE_HORIZON_FLAG: Final = 0x40
"""CODEC_MASK to DELETE_HORIZON_FLAG: bits of the attributes. Magic 0 has the codec; magic 1 also the timestamp type."""


class LogOverhead(NamedTuple):
    """The first fields of a log entry of any magic, and of a message inside a wrapper."""

    offset: Int64
    size: Int32
    """Number of bytes after this field."""


class EntryStart(NamedTuple):
    """The fields of an entry up to the magic, which has the same position in every version."""

    offset: Int64
    size: Int32
    differs: Int32
    """The checksum in magic 0 and 1, the partition leader epoch in magic 2."""
    magic: Int8


class MessageHeader0(NamedTuple):
    """The fields before key and value in magic 0. The checksum (CRC-32) covers all bytes after it."""

    crc: UInt32
    magic: Int8
    attributes: Int8


class MessageHeader1(NamedTuple):
    """The fields before key and value in magic 1. The checksum (CRC-32) covers all bytes after it."""

    crc: UInt32
    magic: Int8
    attributes: Int8
    timestamp: Int64


class BatchHeader(NamedTuple):
    """The 61 bytes before the records of magic 2. The checksum (CRC-32C) covers all bytes after it."""

    base_offset: Int64
    length: Int32
    """Bytes after this field: the batch's size less the log overhead of 12."""
    partition_leader_epoch: Int32
    magic: Int8
    crc: UInt32
    attributes: Int16
    last_offset_delta: Int32
    base_timestamp: Int64
    max_timestamp: Int64
    producer_id: Int64
    producer_epoch: Int16
    base_sequence: Int32
    records_count: Int32


LOG_OVERHEAD: Final = Layout(LogOverhead)
ENTRY_START: Final = Layout(EntryStart)
MESSAGE_HEADER_0: Final = Layout(MessageHeader0)
MESSAGE_HEADER_1: Final = Layout(MessageHeader1)
BATCH_HEADER: Final = Layout(BatchHeader)

MAGIC_POSITION: Final = ENTRY_START.offsets["magic"]
UP_TO_MAGIC: Final = ENTRY_START.size
CRC_COVERS_FROM: Final = BATCH_HEADER.offsets["attributes"]
SMALLEST_MESSAGE: Final = (MESSAGE_HEADER_0.size + 8, MESSAGE_HEADER_1.size + 8)
"""Magic -> size in bytes, without the log overhead, of the smallest message: its key and value are null."""
SMALLEST_ENTRY: Final = SMALLEST_MESSAGE[0]
"""The smallest valid value of the field ``size`` (``LegacyRecord.RECORD_OVERHEAD_V0``)."""
