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
        records = schema.chosen(self._options.columns)
        marked = [*records, schema.SPLIT] if self._options.output == words.MARKED else records
        return schema.ddl(_FIELDS.get(self._options.output, marked))

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002  the schema is the source's own
        return KdumpReader(self._options)


_FIELDS: Final = {words.DAMAGED: schema.DAMAGED, words.ACCOUNT: schema.ACCOUNT}


def _say(text: str) -> None:
    sys.stderr.write(f"kdump: {text}\n")


class SplitPartition(InputPartition):
    """Splits on their way to a task."""

    def __init__(self, splits: list[Split]) -> None:
        super().__init__(splits)


class KdumpReader(DataSourceReader):
    """Plans on the driver, reads in the tasks."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        if self._options.plan is not None:
            splits = planning.load(self._options.plan)
        else:
            splits = [split for planned in planning.plan(self._options, _say) for split in planned.splits]
        return [SplitPartition(group) for group in planning.group(splits, self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for split in partition.value or ():  # without a value where there is nothing to read
            yield from reading.read(split, self._options)
