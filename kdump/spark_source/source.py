"""The source as Spark sees it: names, schema, partitions, rows."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from kdump.spark_source import options as words
from kdump.spark_source import planning, reading, schema

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from kdump.spark_source.options import Options
    from kdump.spark_source.planning import Split


class KdumpDataSource(DataSource):
    """Kafka's segments as a DataFrame.

    Name: ``kdump``

    Schema: :data:`kdump.spark_source.schema.RECORDS`; :data:`~kdump.spark_source.schema.DAMAGED` for the output
    ``damaged``.

    Options: :data:`kdump.spark_source.options.OPTIONS`. The path is a segment, a partition folder, a log dir, a glob,
    or a URI of any of these.

    Examples
    --------
    >>> spark.read.format("kdump").load("/var/lib/kafka/data")  # doctest: +SKIP
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._options = words.parse(options)

    @classmethod
    def name(cls) -> str:
        return "kdump"

    def schema(self) -> str:
        return schema.ddl(_FIELDS[self._options.output] or _chosen(self._options))

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002  the schema is the source's own
        return KdumpReader(self._options)


def _chosen(options: Options) -> list[schema.Field]:
    fields = {field.name: field for field in schema.RECORDS}
    return [fields[name] for name in options.columns or schema.RECORD_NAMES]


_FIELDS: Final = {words.RECORDS: None, words.DAMAGED: schema.DAMAGED, words.ACCOUNT: schema.ACCOUNT}


def _say(text: str) -> None:
    sys.stderr.write(f"kdump: {text}\n")


class SplitPartition(InputPartition):
    """A split on its way to a task."""

    def __init__(self, split: Split | None) -> None:
        super().__init__(split)


class KdumpReader(DataSourceReader):
    """Plans on the driver, reads in the tasks."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        if self._options.plan is not None:
            splits = planning.load(self._options.plan)
        else:
            splits = [split for planned in planning.plan(self._options, _say) for split in planned.splits]
        return [SplitPartition(split) for split in splits]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is not None:  # Spark reads one partition without a value where there is nothing to read
            yield from reading.read(partition.value, self._options)
