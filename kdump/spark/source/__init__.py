"""The Spark data source ``kdump``: segments as a DataFrame, without a broker.

``spark.read.format("kdump").load(PATH)`` works where kdump is installed (package ``pyspark_kdump``). Call
:func:`register` if Spark does not find it, to read stores with the session's settings, and before concurrent streams.
"""

from __future__ import annotations

import json
import os
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SET_BY_SPARK: Final = ("SPARK_LOCAL_DIRS", "SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE", "SPARK_PYTHON_RUNTIME")
"""Variables that Spark 4 sets for each Python process of a stream, in one map per source and without a lock.

Two streams that begin at the same time may corrupt the map. Then no stream of the session works
(OptionalDataException). :func:`register` adds the variables first, so Spark only replaces their values.
"""
_ONE: Final = Lock()


def register(spark: SparkSession) -> None:
    """Add the source ``kdump`` to ``spark``. Raises KdumpError without PySpark 4.0 or later, or without pyarrow.

    Except with Spark Connect, streams can then begin at the same time (after PySpark's own call they cannot), and
    stores are read with :func:`kdump.spark.session.store_settings` of the session.
    """
    from kdump.log_dirs import stores
    from kdump.spark.session import check_version, store_settings

    check_version()
    from pyspark.errors import AnalysisException

    from kdump.spark.source.data_source import KdumpDataSource

    context = getattr(spark, "sparkContext", None)  # sessions of Spark Connect have none
    variables: dict[str, str] = {} if context is None else context.environment
    wanted = {name: os.environ.get(name, "") for name in SET_BY_SPARK}
    if context is not None:
        wanted[stores.VARIABLE] = json.dumps(store_settings(spark))
    with _ONE:
        missing = [name for name in wanted if name not in variables]
        variables |= {name: wanted[name] for name in missing}
        try:
            spark.dataSource.register(KdumpDataSource)
        except AnalysisException as error:
            if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
                raise
            if context is not None:  # Spark 4.0 keeps a source that it found itself
                manager: Any = spark._jsparkSession.sessionState().dataSourceManager()
                found = manager.lookupDataSource(KdumpDataSource.name()).dataSourceCls().envVars()
                for name in missing:
                    found.putIfAbsent(name, variables[name])
        finally:
            for name in missing:
                variables.pop(name, None)
