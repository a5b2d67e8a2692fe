"""Exports that go on: what is new since the last run, or what comes as it comes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from kdump.spark_export import job, session
from kdump.spark_export.output import Output
from kdump.spark_source import options as words
from kdump.spark_source import planning, register

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PAUSE = "10 seconds"
"""Between two looks at the log dir."""


class Added(NamedTuple):
    """What a run has added."""

    rows: int
    damaged_rows: int


def run(export: job.Export, listener: job.Listener, *, forever: bool) -> Added:
    """Write what the output does not hold yet; with ``forever`` go on until Ctrl-C.

    The output remembers in its folder ``_checkpoint`` what it holds. Raises as :func:`kdump.spark_export.job.run` does.
    """
    options = words.parse({**export.options, "paths": job.paths(export)})
    session.check()
    list(planning.find(options, listener.note))  # what cannot be read is told before Spark starts
    kept = {"spark.sql.streaming.numRecentProgressUpdates": "100000"}
    spark = session.start(export.master, {**kept, **export.conf})
    with job.errors():
        register(spark)
        output = Output(spark, export.out, export.format, "append")
        output.check_followed()
        columns = options.names
        chosen = {"columns": ",".join(job.needed(export, options.columns))} if options.columns else {}
        started = output.follow(
            _stream(spark, export, {"output": words.RECORDS, **chosen}),
            _stream(spark, export, {"output": words.DAMAGED}),
            export.partition_by,
            columns,
            PAUSE if forever else "",
        )
        queries: list[StreamingQuery] = []
        try:
            for query in started:
                queries.append(query)
                if not forever:
                    query.awaitTermination()
            for query in queries:
                query.awaitTermination()
        finally:
            for query in queries:
                query.stop()
        return Added(*map(_rows, queries))


def _stream(spark: SparkSession, export: job.Export, more: dict[str, str]) -> DataFrame:
    given: dict[str, Any] = {name: value for name, value in export.options.items() if name != "columns"}
    reader = spark.readStream.format("kdump").options(**given, **more)
    if len(export.paths) == 1:
        return reader.load(export.paths[0])
    return reader.option("paths", job.paths(export)).load()


def _rows(query: StreamingQuery) -> int:
    return sum(progress.numInputRows for progress in query.recentProgress)
