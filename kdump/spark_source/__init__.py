"""The Spark data source ``kdump``: segments as a DataFrame, read where they lie.

``spark.read.format("kdump").load(PATH)`` finds it by itself where kdump is installed (package ``pyspark_kdump``);
elsewhere :func:`register` makes it known to a session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make the source ``kdump`` known to ``spark``."""
    from kdump.spark_source.source import KdumpDataSource

    spark.dataSource.register(KdumpDataSource)
