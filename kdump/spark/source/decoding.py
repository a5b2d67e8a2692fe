"""Decoded payloads in Spark: the driver reads the schemas once, and sends them to the tasks with the options.

A stream keeps the schemas that the log had when it started.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kdump.arrow.columns import schema_of
from kdump.arrow.typed import TypedColumns
from kdump.log_reader.registry_topic import read_store
from kdump.schemas.decoder import FORMATS, PayloadDecoder
from kdump.schemas.typed import typed_sides

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from kdump.spark.source.options import SourceOptions

AUTO = "auto"


def with_schemas(options: SourceOptions) -> SourceOptions:
    """Return the options with the schemas of the log, if payloads are to be decoded. Raises UnreadableError."""
    if not options.decodes or options.store is not None:
        return options
    where = options.paths if options.schemas is None else (options.schemas,)
    store = read_store(where, topic=options.schemas_topic, max_batch_bytes=options.max_batch_bytes)
    made = replace(options, store=store)
    typed = typed_columns(made)
    return made if typed is None else replace(made, typed_names=typed.names)


def decoder(options: SourceOptions) -> PayloadDecoder | None:
    """Return the decoder of payloads, or None."""
    if options.store is None:
        return None
    formats = FORMATS if options.decode in (AUTO, "none") else (options.decode,)
    return PayloadDecoder(options.store, formats, options.max_batch_bytes)


def typed_columns(options: SourceOptions) -> TypedColumns | None:
    """Return the columns of the subject, or None. Raises UsageError for a subject that is not there."""
    made = decoder(options)
    if made is None or options.schema is None:
        return None
    return TypedColumns(typed_sides(made, options.schema), "spark")


def spark_schema(options: SourceOptions) -> StructType:
    """Return the schema of records with the columns of the subject."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema_of(options.names, typed_columns(options)), prefer_timestamp_ntz=True)
