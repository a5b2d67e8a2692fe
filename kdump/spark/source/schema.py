"""The columns of the Spark source: those of Spark's own Kafka source, then the rest of
:data:`kdump.rows.columns.RECORD`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.rows import columns as rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

_SPARK_TYPES: Final = {
    "string": "string",
    "codec": "string",
    "int": "int",
    "timestampType": "int",
    "long": "bigint",
    "boolean": "boolean",
    "binary": "binary",
    "timestamp": "timestamp",
    "json": "string",
    "headers": "array<struct<key:string,value:binary>>",
}
_TEXT_ONLY: Final = {"kind", "keyEncoding", "valueEncoding"}
"""Columns that only a text form needs: Spark's binary holds any bytes, and each output has one kind of row."""


class SparkColumn(NamedTuple):
    """A column of a DataFrame; ``type`` is Spark's name of its type."""

    name: str
    type: str


def _records() -> tuple[rows.Column, ...]:
    columns = {column.name: column for column in rows.RECORD if column.name not in _TEXT_ONLY}
    first = [columns.pop(name) for name in rows.SPARK_FIRST]
    return (*first, *columns.values())


RECORD_COLUMNS: Final = _records()
RECORDS: Final = tuple(SparkColumn(column.name, _SPARK_TYPES[column.type]) for column in RECORD_COLUMNS)
RECORD_NAMES: Final = tuple(field.name for field in RECORDS)
DECODED: Final = SparkColumn(rows.DECODED.name, _SPARK_TYPES[rows.DECODED.type])
"""The column behind those of a record, where it is asked for: JSON as text."""

_WHERE: Final = (SparkColumn("topic", "string"), SparkColumn("partition", "int"), SparkColumn("file", "string"))
DAMAGED: Final = (
    *_WHERE,
    SparkColumn("position", "bigint"),
    SparkColumn("length", "bigint"),
    SparkColumn("damage", "string"),
    SparkColumn("reason", "string"),
    SparkColumn("at", "bigint"),
    SparkColumn("missingFrom", "bigint"),
    SparkColumn("missingUntil", "bigint"),
    SparkColumn("bytes", "binary"),
)
"""A stretch of bytes that holds no readable batch; a very long one is several rows, one behind the other. What of a
file cannot be read at all is one row without ``bytes``, whose ``damage`` is ``unreadable``. Offsets from
``missingFrom`` up to ``missingUntil`` are lost with it, as far as there were any; null where nothing tells."""

ACCOUNT: Final = (
    *_WHERE,
    SparkColumn("start", "bigint"),
    SparkColumn("end", "bigint"),
    SparkColumn("batches", "bigint"),
    SparkColumn("rows", "bigint"),
    SparkColumn("batchBytes", "bigint"),
    SparkColumn("damagedRanges", "bigint"),
    SparkColumn("damagedBytes", "bigint"),
    SparkColumn("paddingBytes", "bigint"),
    SparkColumn("trailingBytes", "bigint"),
    SparkColumn("unreadableBytes", "bigint"),
)
"""What the bytes from ``start`` to ``end`` of a file are; ``rows`` is what the output records gives of them."""


SPLIT: Final = SparkColumn("_split", "int")
"""The number of a split in which damage was met, null for records: a column of the output marked alone."""


def chosen(names: Iterable[str]) -> list[SparkColumn]:
    """Return the fields of records with these names, in their order."""
    fields = {field.name: field for field in (*RECORDS, DECODED)}
    return [fields[name] for name in names]


def ddl(fields: Iterable[SparkColumn]) -> str:
    """Return the fields as Spark's DDL text."""
    return ", ".join(f"`{field.name}` {field.type}" for field in fields)


def arrow(fields: Iterable[SparkColumn]) -> pa.Schema:
    """Return the Arrow schema that Spark expects of batches with these fields."""
    import pyarrow as pa

    header = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
    types = {
        "string": pa.string(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "boolean": pa.bool_(),
        "binary": pa.binary(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        _SPARK_TYPES["headers"]: pa.list_(pa.field("element", header)),
    }
    return pa.schema([pa.field(field.name, types[field.type]) for field in fields])
