"""The columns of the Spark source's outputs: damaged ranges, accounts, findings, and records with decoded payloads.

The driver reads the schemas of payloads, and sends them to the tasks with the options. A stream uses the schemas that
the log had at its start.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kdump.arrow.columns import schema_of
from kdump.arrow.schema import ArrowField, chosen
from kdump.arrow.typed import TypedColumns
from kdump.log_reader.registry_topic import read_store
from kdump.schemas.decoder import FORMATS, PayloadDecoder
from kdump.spark.source.options import AUTO, NONE

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from kdump.spark.source.options import SourceOptions


def _fields(kind: str, *names: str) -> tuple[ArrowField, ...]:
    return tuple(ArrowField(name, kind) for name in names)


_WHERE: Final = (ArrowField("topic", "string"), ArrowField("partition", "int"), ArrowField("file", "string"))
DAMAGED: Final = (
    *_WHERE,
    *_fields("bigint", "position", "length"),
    *_fields("string", "damage", "reason"),
    *_fields("bigint", "at", "missingFrom", "missingUntil"),
    ArrowField("bytes", "binary"),
)
"""The output ``damaged``: ranges of bytes whose batches or records cannot be read.

A very long range has several consecutive rows. A range that the disk does not return is one row without ``bytes``; its
``damage`` is ``unreadable``. The offsets from ``missingFrom`` to before ``missingUntil`` may be lost (null: unknown).
"""

ACCOUNT: Final = (
    *_WHERE,
    *_fields("bigint", "start", "end", "batches", "rows", "batchBytes", "damagedRanges", "damagedBytes"),
    *_fields("bigint", "paddingBytes", "trailingBytes", "unreadableBytes"),
)
"""The outcome of the bytes from ``start`` to ``end`` of a file; ``rows`` is the number of rows in ``records``."""

FINDINGS: Final = (
    *_fields("string", "kind", "level", "check", "file", "text"),
    *_fields("bigint", "entry", "position", "offset"),
    *_fields("string", "expected", "found", "advice"),
    ArrowField("fatal", "boolean"),
)
"""The output ``findings``: some fields of ``kdump/findings.schema.json``; ``expected`` and ``found`` are texts.

``kind`` is ``finding``, ``remark`` or ``unreadable``. For ``unreadable`` only ``file`` and ``text`` are set.
"""


def ddl(fields: Iterable[ArrowField]) -> str:
    return ", ".join(f"`{field.name}` {field.type}" for field in fields)


def with_schemas(options: SourceOptions) -> SourceOptions:
    """Return the options with the schemas of the log if payloads are decoded. Raises UnreadableError, UsageError."""
    if not options.decodes or options.store is not None:
        return options
    where = options.paths if options.schemas is None else (options.schemas,)
    store = read_store(where, topic=options.schemas_topic, max_batch_bytes=options.max_batch_bytes)
    made = replace(options, store=store)
    typed = typed_columns(made)
    return made if typed is None else replace(made, typed_names=typed.names)


def decoder(options: SourceOptions) -> PayloadDecoder | None:
    """Return the decoder of payloads, or None if the driver has read no schemas."""
    if options.store is None:
        return None
    formats = FORMATS if options.decode in (AUTO, NONE) else (options.decode,)
    return PayloadDecoder(options.store, formats, options.max_batch_bytes)


def typed_columns(options: SourceOptions) -> TypedColumns | None:
    """Return the typed columns of the subject; None without subject or schemas. Raises UsageError if it is unknown."""
    made = decoder(options)
    if made is None or options.schema is None:
        return None
    return TypedColumns.of_subject(made, options.schema, "spark")


def arrow_schema(options: SourceOptions) -> pa.Schema:
    return schema_of(options.names, typed_columns(options))


def spark_schema(options: SourceOptions) -> str | StructType:
    """Return Spark's schema of the output records: DDL, which needs no pandas, or a StructType for typed columns."""
    if options.schema is None:
        return ddl(chosen(options.names))
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(arrow_schema(options), prefer_timestamp_ntz=True)
