"""A driver of Spark that streams a log dir to Parquet until it is stopped or killed: see `prove_stream`.

    python -m tools.prove.stream_driver LOGS PLACE [NAME=VALUE...]

Streams once per isolation level, to PLACE/ISOLATION, with checkpoints in PLACE; NAME=VALUE are options of the source.
When the file PLACE/stop appears, it reads the remaining records, writes each output to PLACE/ISOLATION.all for readers
without Spark, and ends. Notes about lost records go to standard error. The exit status is 3 if a stream fails.
"""

import os
import sys
from pathlib import Path

from kdump.spark import session
from kdump.spark.source import register

ISOLATIONS = ("read_uncommitted", "read_committed")
SPARKS_OWN = ("Python worker failed to connect back",)
"""Failures of Spark that the source does not cause.

Spark waits only ten seconds for a Python process, too short for a busy machine. Such a query is started again from its
checkpoint, up to RESTARTS times.
"""
RESTARTS = 5
COLUMNS = ("topic", "partition", "offset", "timestampMs", "timestampType", "key", "value", "headers")


def main(logs: str, place: Path, options: dict[str, str]) -> int:
    from pyspark.errors import StreamingQueryException

    scratch = {"spark.local.dir": str(place / "scratch"), "spark.driver.memory": "1g"}
    spark = session.start("local[2]", {**scratch, "spark.sql.shuffle.partitions": "2"})
    register(spark)
    writers = []
    for isolation in ISOLATIONS:
        rows = spark.readStream.format("kdump").options(**options, isolation=isolation).load(logs).select(*COLUMNS)
        writer = rows.writeStream.format("parquet").option("checkpointLocation", str(place / f"{isolation}.checkpoint"))
        writers.append((writer.trigger(processingTime="200 milliseconds"), str(place / isolation)))
    queries = [writer.start(path) for writer, path in writers]
    (place / "ready").write_text(str(os.getpid()))
    at_end, left = False, RESTARTS
    while not at_end:
        at_end = (place / "stop").exists()
        for number, query in enumerate(queries):
            try:
                if at_end:
                    query.processAllAvailable()
                    query.stop()
                elif query.awaitTermination(0.2):
                    sys.stderr.write("stream failed: it has ended by itself\n")
                    return 3
            except StreamingQueryException as reason:
                if not left or not any(failure in str(reason) for failure in SPARKS_OWN):
                    sys.stderr.write(f"stream failed: {reason}\n")
                    return 3
                left -= 1
                writer, path = writers[number]
                queries[number] = writer.start(path)
                at_end = False
    for isolation in ISOLATIONS:
        written = spark.read.parquet(str(place / isolation))
        written.write.mode("overwrite").parquet(str(place / f"{isolation}.all"))
    spark.stop()
    return 0


if __name__ == "__main__":
    given = dict(word.split("=", 1) for word in sys.argv[3:])
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), given))
