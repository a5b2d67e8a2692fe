# ruff: noqa: E501  one line for each row of the table
"""The columns of records, batches and damaged ranges, declared once for all outputs, SQL, Spark and the docs.

``source`` names a scope and an attribute, as in ``batch.size``. Scopes: ``file`` (the segment and its folder),
``batch`` (:class:`kdump.records.record_batch.RecordBatch`), ``record`` (:class:`kdump.formats.record.Record`),
``damage`` (:class:`kdump.segments.regions.Damage`), ``state`` (computed values), ``shown``, ``field`` and ``typed``
(decoded payloads). Values are as stored: -1 is Kafka's -1. Null is Kafka's null, unknown, or no field of this magic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

VERSION: Final = 1
"""The version of these names and types. Every change increases it, except a new optional column."""

Type: TypeAlias = Literal[
    "string", "int", "long", "boolean", "binary", "headers", "timestamp", "timestampType", "codec", "any", "json"
]
"""``binary``: bytes or null. ``headers``: ordered pairs of name and value, duplicates kept. ``timestamp``: ms in the
source, ISO 8601 (UTC) in text. ``timestampType``: 0 or 1 in the source and in Arrow records; in text and SQL its name
in :data:`kdump.formats.record_layout.TIMESTAMP_TYPES`. ``codec``: the codec's number in the source, elsewhere its name.
``any``: a number or a text. ``json``: a JSON value."""


class Column(NamedTuple):
    name: str
    type: Type
    source: str
    doc: str
    nullable: bool = False
    optional: bool = False
    """Whether JSON objects omit the name if there is no value."""

    @property
    def scope(self) -> str:
        return self.source.partition(".")[0]

    @property
    def attribute(self) -> str:
        return self.source.partition(".")[2]


# fmt: off
CONTROL_TYPE: Final = Column("controlType", "string", "state.control_type", "The type of a control record, such as ABORT or COMMIT.", optional=True)
KIND: Final = Column("kind", "string", "state.kind", "The kind of the line: record, batch or damage.")
_TOPIC: Final = Column("topic", "string", "file.topic", "The topic, from the folder's name.", nullable=True)
_PARTITION: Final = Column("partition", "int", "file.partition", "The partition, from the folder's name.", nullable=True)
_FILE: Final = Column("file", "string", "file.name", "The path of the segment.")
_TIMESTAMP_TYPE: Final = Column("timestampType", "timestampType", "batch.timestamp_type", "CreateTime or LogAppendTime; null in magic 0.", nullable=True)
_BATCH: Final = (
    Column("magic", "int", "batch.magic", "The version of the batch format: 0, 1 or 2."),
    Column("codec", "codec", "batch.codec", "none, gzip, snappy, lz4 or zstd."),
    Column("crc", "long", "batch.crc", "The checksum of the batch as stored, unsigned."),
    Column("crcValid", "boolean", "batch.crc_valid", "Whether the checksum is right. For a message inside a wrapper: whether both checksums are right."),
    Column("leaderEpoch", "int", "batch.partition_leader_epoch", "The epoch of the leader that appended the batch; -1 for none, null below magic 2.", nullable=True),
    Column("producerId", "long", "batch.producer_id", "The producer id; -1 for none, null below magic 2.", nullable=True),
    Column("producerEpoch", "int", "batch.producer_epoch", "The producer's epoch; -1 for none, null below magic 2.", nullable=True),
)
_TRANSACTION: Final = (
    Column("isTransactional", "boolean", "batch.is_transactional", "Whether the batch belongs to a transaction."),
    Column("isControl", "boolean", "batch.is_control", "Whether the batch holds control records, which consumers do not get."),
    Column("transactionState", "string", "state.transaction", "committed, aborted or open for a transactional batch, else none; null if unknown.", nullable=True),
    Column("deleteHorizonMs", "long", "batch.delete_horizon_ms", "The time from which the cleaner may remove the batch's tombstones or markers, in ms; null if it is not set.", nullable=True),
    Column("batchAttributes", "int", "batch.attributes", "The attribute bits of the batch as stored."),
)
_MARKS: Final = (
    Column("aboveHighWatermark", "boolean", "state.above_high_watermark", "True if the offset is at or above the high watermark in replication-offset-checkpoint: consumers have not received the record. Otherwise false in Arrow, SQL and Python, absent in JSON lines. Without a checkpoint: null, and absent in JSON lines.", optional=True),
    Column("belowLogStart", "boolean", "state.below_log_start", "True if the offset is below the log start offset in log-start-offset-checkpoint: the record is in the file, but consumers do not receive it. Otherwise false in Arrow, SQL and Python, absent in JSON lines. Without a checkpoint: null, and absent in JSON lines.", optional=True),
)

RECORD: Final = (
    KIND,
    _TOPIC,
    _PARTITION,
    Column("offset", "long", "record.offset", "The record's offset."),
    Column("timestampMs", "long", "record.timestamp", "The timestamp as stored, in ms since 1970; -1 for none."),
    Column("timestamp", "timestamp", "record.timestamp", "The timestamp in ISO 8601, UTC; null for -1 and for years outside 1 to 9999.", nullable=True),
    _TIMESTAMP_TYPE,
    Column("key", "binary", "record.key", "The key; null is Kafka's null, which is not the empty key.", nullable=True),
    Column("keyEncoding", "string", "state.key_encoding", "The encoding of the key, unless utf8.", optional=True),
    Column("value", "binary", "record.value", "The value; null is a tombstone.", nullable=True),
    Column("valueEncoding", "string", "state.value_encoding", "The encoding of the value, unless utf8.", optional=True),
    Column("headers", "headers", "record.headers", "The headers in order, duplicates kept: key and value, and encoding if the value is not utf8."),
    _FILE,
    Column("position", "long", "batch.position", "The position of the record's batch in the file, in bytes."),
    Column("batchSize", "int", "batch.size", "The size of that batch in bytes, with its offset and length fields."),
    Column("baseOffset", "long", "batch.base_offset", "The first offset of the batch. For a wrapper of magic 0 or 1: the offset of its first message."),
    *_BATCH,
    Column("sequence", "int", "record.sequence", "The record's sequence number; -1 for none, null below magic 2.", nullable=True),
    *_TRANSACTION,
    Column("recordAttributes", "int", "record.attributes", "The attribute bits of the record as stored."),
    CONTROL_TYPE,
    Column("coordinatorEpoch", "int", "state.coordinator_epoch", "The epoch of the transaction coordinator, in a transaction marker.", optional=True),
    *_MARKS,
)
"""The columns of a record: a line of ``kdump dump -o jsonl``, or without TEXT_ONLY a row of the Spark source."""

DECODED: Final = Column("decoded", "json", "state.decoded", "With --decode: the decoded record of one of Kafka's own topics, or the decoded payloads with a schema id.", optional=True)
"""The column that ``kdump dump --decode auto`` adds after the columns of a record."""

PAYLOAD_OF: Final = {"state.key_encoding": "key", "state.value_encoding": "value"}
"""``source`` of a column that shows an encoding -> the field (key or value) with this encoding."""
SHOWN: Final = (
    Column("key", "json", "shown.key", "The decoded key, or the key as text.", nullable=True),
    Column("value", "json", "shown.value", "The decoded value, or the value as text.", nullable=True),
)
"""The columns that replace the stored key and value in a table with --decode."""


def with_decoded_payloads(columns: Iterable[Column]) -> tuple[Column, ...]:
    """Return columns of records with the decoded key and value (SHOWN) in place of the stored ones."""
    shown = {column.name: column for column in SHOWN}
    return tuple(shown.get(column.name, column) for column in columns)


# fmt: on
FIELD: Final = "field"
"""The scope of columns for fields of decoded keys and values."""


def decoded_field(name: str) -> Column | None:
    """Return the column of a field such as ``value.customer.id``; None if the name has another form."""
    side, dot, path = name.partition(".")
    if side not in ("key", "value") or not dot or not path:
        return None
    return Column(name, "json", f"{FIELD}.{name}", f"The field {path} of the decoded {side}.", nullable=True)


# fmt: off
TYPED: Final = (
    Column("keyDecoded", "json", "typed.key", "The key with the types of its subject; null if the key does not fit these types."),
    Column("valueDecoded", "json", "typed.value", "The value with the types of its subject; null if the value does not fit these types."),
    Column("schemaId", "int", "typed.schema_id", "The schema id of the key or value whose subject was given."),
    Column("problem", "string", "typed.problem", "A short stable word for the reason why a payload does not fit the types of its subject."),
    Column("why", "string", "typed.why", "The reason as a sentence."),
)
"""Columns after ``decoded`` in binary formats and SQL, if the user gives a subject: key, value or both have its types."""

BATCH: Final = (
    KIND,
    _TOPIC,
    _PARTITION,
    Column("baseOffset", "long", "batch.base_offset", "The first offset of the batch."),
    Column("lastOffset", "long", "batch.last_offset", "The last offset of the batch."),
    Column("count", "int", "batch.count", "The number of records as stored in the batch header; null below magic 2.", nullable=True),
    Column("maxTimestampMs", "long", "batch.max_timestamp", "The greatest timestamp as stored, in ms; -1 for none."),
    Column("maxTimestamp", "timestamp", "batch.max_timestamp", "The greatest timestamp in ISO 8601, UTC; null for -1 and for years outside 1 to 9999.", nullable=True),
    _TIMESTAMP_TYPE,
    _FILE,
    Column("position", "long", "batch.position", "The position of the batch in the file, in bytes."),
    Column("batchSize", "int", "batch.size", "The size of the batch in bytes, with its offset and length fields."),
    *_BATCH,
    Column("baseSequence", "int", "batch.base_sequence", "The sequence number of the first record; -1 for none, null below magic 2.", nullable=True),
    Column("lastSequence", "int", "batch.last_sequence", "The sequence number of the last record; -1 for none, null below magic 2.", nullable=True),
    *_TRANSACTION,
    *_MARKS,
)
"""The columns of a batch, or of an entry of magic 0 or 1: a line of ``kdump dump -o jsonl --batches``."""

DAMAGE: Final = (
    KIND,
    _TOPIC,
    _PARTITION,
    _FILE,
    Column("position", "long", "damage.position", "The position of the damaged range in the file, in bytes."),
    Column("size", "long", "damage.size", "The size of the damaged range in bytes."),
    Column("damage", "string", "damage.kind", "A short stable word for the damage, such as crc or record size."),
    Column("reason", "string", "damage.reason", "The damage as a sentence."),
    Column("at", "long", "damage.at", "The position of the wrong field in the file, in bytes."),
    Column("expected", "any", "damage.expected", "The expected value of this field.", optional=True),
    Column("found", "any", "damage.found", "The stored value of this field.", optional=True),
    Column("missingFrom", "long", "damage.missing_from", "The first offset that may be missing: the one after the last valid batch.", optional=True),
    Column("missingUntil", "long", "damage.missing_until", "The first offset of the next valid batch: the offsets in between are missing.", optional=True),
)

# fmt: on
KINDS: Final = {"record": RECORD, "batch": BATCH, "damage": DAMAGE}

TEXT_ONLY: Final = frozenset({"kind", "keyEncoding", "valueEncoding"})
"""Columns that only text formats need. Arrow columns hold any bytes, and each Arrow output has one kind of row."""
PAYLOADS: Final = frozenset({"key", "value", "headers", DECODED.name, "keyDecoded", "valueDecoded"})


SPARK_FIRST: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
"""The first columns in Spark: the columns of Spark's own Kafka source, in its order."""
