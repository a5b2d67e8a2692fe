"""The public interface of the export through Spark (:mod:`kdump.spark.export`), used by ``kdump spark-export``.

>>> from kdump import spark_export
>>> export = spark_export.Export(paths=("backup",), out="lake", options={}, conf={})
>>> spark_export.run(export, listener)  # doctest: +SKIP
"""

from kdump.spark.export.following import Follower
from kdump.spark.export.job import Export, Listener, Summary, run

__all__ = ["Export", "Follower", "Listener", "Summary", "run"]
