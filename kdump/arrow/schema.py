"""The Arrow columns of records, first those of Spark's Kafka source; the Arrow types of columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.rows import columns as rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

_TYPES: Final = {
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


class ArrowField(NamedTuple):
    """A column. ``type`` is the name of its type in Spark SQL."""

    name: str
    type: str


def fields(columns: Iterable[rows.Column]) -> tuple[ArrowField, ...]:
    return tuple(ArrowField(column.name, _TYPES[column.type]) for column in columns)


def _records() -> tuple[rows.Column, ...]:
    columns = {column.name: column for column in rows.RECORD if column.name not in rows.TEXT_ONLY}
    first = [columns.pop(name) for name in rows.SPARK_FIRST]
    return (*first, *columns.values())


RECORD_COLUMNS: Final = _records()
RECORDS: Final = fields(RECORD_COLUMNS)
RECORD_NAMES: Final = tuple(field.name for field in RECORDS)
DECODED: Final = ArrowField(rows.DECODED.name, _TYPES[rows.DECODED.type])
"""The optional column after RECORDS: the decoded key and value, as JSON text."""


def chosen(names: Iterable[str]) -> list[ArrowField]:
    known = {field.name: field for field in (*RECORDS, DECODED)}
    return [known[name] for name in names]


def arrow(fields: Iterable[ArrowField]) -> pa.Schema:
    """Return the Arrow schema of these fields, with the types that Spark expects."""
    import pyarrow as pa

    header = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
    types = {
        "string": pa.string(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "boolean": pa.bool_(),
        "binary": pa.binary(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        _TYPES["headers"]: pa.list_(pa.field("element", header)),
    }
    return pa.schema([pa.field(field.name, types[field.type]) for field in fields])
