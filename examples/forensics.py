"""Three questions after an incident, asked of a log dir in Spark SQL.

python examples/forensics.py golden/brokers/4.2.2 2023-11-14T22:13
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from kdump.spark.source import register

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

QUESTIONS = {
    "Which keys take the most room, and whose are they?": """
        SELECT topic, CAST(key AS STRING) AS key, count(*) AS records,
               sum(length(key) + coalesce(length(value), 0)) AS bytes
        FROM log WHERE key IS NOT NULL AND topic NOT LIKE '\\\\_\\\\_%'
        GROUP BY ALL ORDER BY bytes DESC, topic, key LIMIT 5""",
    "How many records came in per minute around the incident?": """
        SELECT date_format(date_trunc('MINUTE', timestamp), 'HH:mm') AS minute, count(*) AS records,
               count(DISTINCT topic, partition) AS partitions, count_if(value IS NULL) AS tombstones
        FROM log WHERE timestamp BETWEEN TIMESTAMP '{incident}' - INTERVAL 2 MINUTES
                                     AND TIMESTAMP '{incident}' + INTERVAL 3 MINUTES
        GROUP BY ALL ORDER BY minute""",
    "Which transactions are still open, and what do they hold back?": """
        SELECT topic, partition, producerId, producerEpoch, min(offset) AS since, count(*) AS records
        FROM log WHERE transactionState = 'open'
        GROUP BY ALL ORDER BY topic, partition, producerId""",
}


def ask(spark: SparkSession, path: str, incident: str) -> dict[str, DataFrame]:
    """Return the answer to each question."""
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    register(spark)
    spark.read.format("kdump").option("mode", "PERMISSIVE").load(path).createOrReplaceTempView("log")
    return {question: spark.sql(query.format(incident=incident)) for question, query in QUESTIONS.items()}


if __name__ == "__main__":
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark takes any python3 from PATH otherwise
    session = SparkSession.builder.master("local[*]").config("spark.log.level", "ERROR").getOrCreate()
    for title, answer in ask(session, *sys.argv[1:3]).items():
        print(title)
        answer.show(truncate=28)
    session.stop()
