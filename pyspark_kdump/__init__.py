"""What Spark 4 finds when it looks for the source ``kdump``: it imports every top-level module named ``pyspark_*``."""

from kdump.spark.source.data_source import KdumpDataSource as DefaultSource

__all__ = ["DefaultSource"]
