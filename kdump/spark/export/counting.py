"""Returns records to Spark, and reports the outcome of each byte of the splits to the driver.

An accumulator carries the report of each split. The report counts once, even if Spark repeats the split's task.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pyspark.accumulators import AccumulatorParam
from pyspark.sql import DataFrame
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from kdump.spark.source import planning, reading, schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from pyspark import Accumulator
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from kdump.segments.regions import Damage
    from kdump.spark.source.options import SourceOptions
    from kdump.spark.source.planning import Split

TASKS_OF_DAMAGE: Final = 2
"""Maximum number of tasks per core that read damaged ranges."""
Counted: TypeAlias = dict[int, reading.Tally]
"""Number of a split -> its counts."""


class Counts(AccumulatorParam[Counted]):
    def zero(self, value: Counted) -> Counted:  # noqa: ARG002  Spark's signature
        return {}

    def addInPlace(self, value1: Counted, value2: Counted) -> Counted:  # noqa: N802  Spark's
        value1.update(value2)
        return value1


def records(spark: SparkSession, splits: list[Split], options: SourceOptions) -> tuple[DataFrame, Accumulator[Counted]]:
    """Return the records of splits, and the counts of each split. The counts are complete when all rows are read."""
    counts = spark.sparkContext.accumulator({}, Counts())

    def read(group: list[Split]) -> Iterator[pa.RecordBatch]:
        for split in group:
            yield from reading.counted(split, options, lambda number, tally: counts.add({number: tally}))

    return _frame(spark, planning.group(splits, options), schema.spark_schema(options), read), counts


def damaged(spark: SparkSession, lost: list[tuple[Split, list[Damage]]], options: SourceOptions) -> DataFrame:
    """Return the damaged ranges with their bytes (null for unreadable ranges). Only these bytes are read again."""

    def read(group: list[tuple[Split, list[Damage]]]) -> Iterator[pa.RecordBatch]:
        for split, ranges in group:
            yield from reading.damaged(split, ranges, options)

    tasks = min(len(lost), TASKS_OF_DAMAGE * spark.sparkContext.defaultParallelism)
    return _frame(spark, [lost[number::tasks] for number in range(tasks)], schema.ddl(schema.DAMAGED), read)


def _frame(
    spark: SparkSession,
    groups: list[Any],
    shape: str | StructType,
    read: Callable[[Any], Iterator[pa.RecordBatch]],
) -> DataFrame:
    """Return a DataFrame of the schema ``shape``: the rows of ``read(group)`` for each group, one task per group."""
    packed = [pickle.dumps(group) for group in groups]

    def task(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from read(pickle.loads(packed[number]))  # noqa: S301  packed by the driver

    numbers = spark.range(0, len(groups), 1, max(1, len(groups)))
    # like DataFrame.mapInArrow, which requires pandas without using it
    mapped: Any = UserDefinedFunction(task, shape, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    return DataFrame(numbers._jdf.mapInArrow(mapped(numbers["id"])._jc, False, None), spark)
