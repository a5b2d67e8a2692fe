"""How fast Spark reads records from a broker's files, compared with its own Kafka source reading from the broker.

    python -m bench.kafka_source --records 2000000 --runs 5 --cores 2

Starts a broker, fills a topic through Spark's Kafka sink, and reads it with both sources in turns in one warm session:
without output, and into Parquet. Seconds are wall and processor seconds, including the broker's. First the rows of both
are compared. The table goes to bench/RESULTS-spark.md. Needs a JDK and `mvn`.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

import pyspark
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from bench.processes import below
from bench.spark import RESULTS, machine, put_section, say
from kdump.spark import session as spark_session
from kdump.spark.source import register
from tools import arguments
from tools.prove.broker import Broker
from tools.record.fetch_jars import CACHE, gather

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame

TITLE: Final = "## Beside Spark's own Kafka source"
RELEASE: Final = "4.2.2"
CONNECTOR: Final = "org.apache.spark:spark-sql-kafka-0-10_2.13"
TOPIC, PARTITIONS = "bench", 4
COLUMNS: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
AIM: Final = 2
"""Required rows per second, as a multiple of those of Spark's Kafka source."""
WARM_UPS: Final = 2
TICKS: Final = os.sysconf("SC_CLK_TCK")


class Took(NamedTuple):
    """Seconds by the clock, and of all processors."""

    wall: float
    cpu: float


def session(cores: int, release: str) -> SparkSession:
    """Return a session that has both sources, Kafka's of a release of Spark."""
    folder = gather([f"{CONNECTOR}:{release}"], CACHE.parent / f"spark-kafka-{release}")
    there = {path.name for path in (Path(pyspark.__file__).parent / "jars").glob("*.jar")}
    jars = [path for path in folder.glob("*.jar") if path.name not in there and "hadoop" not in path.name]
    settings = {**spark_session.OURS, "spark.jars": ",".join(map(str, jars)), "spark.driver.memory": "2g"}
    spark = SparkSession.builder.master(f"local[{cores}]").config(map=settings).getOrCreate()
    register(spark)
    return spark


def fill(spark: SparkSession, broker: Broker, records: int) -> None:
    """Send records to the topic: a key of 10 bytes, a value of 105, no header."""
    broker.create([f"{TOPIC}-{number}" for number in range(PARTITIONS)])
    rows = spark.range(0, records, 1, PARTITIONS).select(
        f.format_string("key-%06d", f.col("id") % 1_000_000).alias("key"),
        f.concat(f.lpad(f.col("id").cast("string"), 25, "0"), f.lit("x" * 80)).alias("value"),
    )
    options = {"kafka.bootstrap.servers": broker.address, "topic": TOPIC, "kafka.linger.ms": "5"}
    rows.write.format("kafka").options(**options).save()


def processor_seconds(roots: Iterable[int]) -> float:
    """Return the processor seconds of these processes and their descendants so far, including ended ones."""
    return sum(sum(map(int, fields[11:15])) for fields in below(roots).values()) / TICKS


def measure(
    frames: dict[str, DataFrame], sinks: dict[str, str], place: Path, runs: int, roots: list[int]
) -> dict[tuple[str, str], list[Took]]:
    """Return the times of each run by source and sink; every second run has the reverse order."""
    took: dict[tuple[str, str], list[Took]] = {(source, sink): [] for sink in sinks for source in frames}
    for run in range(-WARM_UPS, runs):
        for source, sink in list(took) if run % 2 == 0 else reversed(took):
            writer = frames[source].write.mode("overwrite").format(sinks[sink]).option("compression", "zstd")
            began, before = time.perf_counter(), processor_seconds(roots)
            writer.save(str(place / "out"))
            one = Took(time.perf_counter() - began, processor_seconds(roots) - before)
            say(f"{f'run {run}' if run >= 0 else 'warm-up'}: {source}, {sink}: {one.wall:.2f} s, {one.cpu:.2f} CPU s")
            if run >= 0:
                took[source, sink].append(one)
    return took


def digest(frame: DataFrame) -> tuple[int, object]:
    """Return the number of rows, and a sum over hashes of each row."""
    row = frame.select(f.xxhash64(*COLUMNS).cast("decimal(38,0)").alias("hash")).agg(f.count("*"), f.sum("hash"))
    count, total = row.collect()[0]
    return count, total


def report(took: dict[tuple[str, str], list[Took]], sinks: Iterable[str], records: int, head: str) -> str:
    """Return the section of RESULTS."""
    lines = [
        TITLE,
        "",
        f"`python -m bench.kafka_source` writes this section: {PARTITIONS} partitions of a live {RELEASE} broker,",
        head,
        "Both sources gave the same rows. CPU seconds are those of the broker, of Spark and of its Python workers.",
        "",
        f"| Rows | Kafka source: s, CPU s, rows/s | kdump: s, CPU s, rows/s | times as fast | CPU | aim: {AIM} |",
        "|---|---|---|---|---|---|",
    ]
    for sink in sinks:
        kafka, ours = (Took(*map(median, zip(*took[source, sink], strict=True))) for source in ("kafka", "kdump"))
        faster = kafka.wall / ours.wall
        cells = (f"{one.wall:.2f}, {one.cpu:.2f}, {records / one.wall:,.0f}" for one in (kafka, ours))
        lines.append(
            f"| {sink} | {' | '.join(cells)} | {faster:.2f} | {kafka.cpu / ours.cpu:.2f} | "
            f"{'reached' if faster >= AIM else 'missed'} |"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = arguments.parser(__doc__, records=2_000_000, runs=5, cores=2)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--connector", default=pyspark.__version__, help="Spark's release of its Kafka source")
    given = parser.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    rows = "records (key of 10 bytes, value of 105), all columns but headers, medians of"
    head = f"{machine(f'{given.records:,} {rows} {given.runs}')} Kafka source of Spark {given.connector}."
    sinks = {"read, and dropped": "noop", "into Parquet (zstd)": "parquet"}
    with tempfile.TemporaryDirectory(prefix="kdump-bench-") as folder:
        place = Path(folder)
        spark = session(given.cores, given.connector)
        try:
            with Broker(RELEASE, place / "broker", heap="1g") as broker:
                fill(spark, broker, given.records)
                options = {"kafka.bootstrap.servers": broker.address, "subscribe": TOPIC, "startingOffsets": "earliest"}
                frames = {
                    "kafka": spark.read.format("kafka").options(**options).load(),
                    "kdump": spark.read.format("kdump").options(**options).load(str(broker.logs)),
                }
                digests = {source: digest(frame) for source, frame in frames.items()}
                if digests["kafka"] != digests["kdump"] or digests["kafka"][0] != given.records:
                    say(f"the sources give other rows: {digests}")
                    return 1
                took = measure(frames, sinks, place, given.runs, [os.getpid(), broker.pid])
        finally:
            spark.stop()
    section = report(took, sinks, given.records, head)
    put_section(given.out, section)
    print(section, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
