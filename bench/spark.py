"""How fast records become Parquet through Spark, beside what Spark itself can do with the same rows.

    python -m bench.spark --records 2000000 --runs 5 --cores 2

Interleaved runs in one warm session, each writing Parquet: the source ``kdump``; a source that only hands out
ready-made Arrow batches of the same rows (the ceiling); Spark copying its own Parquet; PyArrow alone in one process.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from bench import segments
from kdump.spark_source import options as words
from kdump.spark_source import planning, reading, register, schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TARGET = 0.8


class Ready(DataSource):
    """Arrow batches that lie in files, one file per task."""

    @classmethod
    def name(cls) -> str:
        return "ready"

    def schema(self) -> str:
        return schema.ddl(schema.RECORDS)

    def reader(self, schema: Any) -> DataSourceReader:  # noqa: ARG002  the schema is the source's own
        return ReadyReader(self.options["path"])


class ReadyReader(DataSourceReader):
    """Maps each file and hands its batches on."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(str(path)) for path in sorted(Path(self._folder).glob("*.arrow"))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with pa.memory_map(partition.value) as file:
            batches = pa.ipc.open_file(file)
            for number in range(batches.num_record_batches):
                yield batches.get_batch(number)


def splits_of(path: Path, split_bytes: int) -> tuple[list[planning.Split], words.Options]:
    """Return what the source reads of a segment."""
    options = words.Options(paths=(str(path),), split_bytes=split_bytes)
    return [split for planned in planning.plan(options) for split in planned.splits], options


def make_ready(path: Path, split_bytes: int, folder: Path) -> None:
    """Write the rows of each split as an Arrow file."""
    folder.mkdir()
    splits, options = splits_of(path, split_bytes)
    for number, split in enumerate(splits):
        with pa.ipc.new_file(folder / f"{number:05}.arrow", schema.arrow(schema.RECORDS)) as out:
            for batch in reading.read(split, options):
                out.write_batch(batch)


def pyarrow_alone(path: Path, split_bytes: int, out: Path) -> None:
    """Write the same rows without Spark, in this process."""
    splits, options = splits_of(path, split_bytes)
    with parquet.ParquetWriter(out, schema.arrow(schema.RECORDS), compression="zstd") as writer:
        for split in splits:
            for batch in reading.read(split, options):
                writer.write_batch(batch)


def timed(work: Callable[[], object]) -> float:
    """Return the seconds that ``work`` takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def measure(spark: SparkSession, path: Path, place: Path, split_bytes: int, runs: int) -> dict[str, list[float]]:
    """Return the seconds of each run by what was done; a first round warms up and does not count."""
    make_ready(path, split_bytes, place / "ready")
    register(spark)
    spark.dataSource.register(Ready)

    def write(form: str, folder: Path, **options: object) -> None:
        frame = spark.read.format(form).options(**options).load(str(folder))
        frame.write.mode("overwrite").option("compression", "zstd").parquet(str(place / f"out-{form}"))

    ways: dict[str, Callable[[], object]] = {
        "kdump": lambda: write("kdump", path, splitBytes=split_bytes),
        "ready-made Arrow batches": lambda: write("ready", place / "ready"),
        "Spark, Parquet to Parquet": lambda: write("parquet", place / "out-kdump"),
        "PyArrow in one process": lambda: pyarrow_alone(path, split_bytes, place / "alone.parquet"),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for run in range(runs + 1):
        for name, way in ways.items():
            taken = timed(way)
            if run:
                seconds[name].append(taken)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--shape", choices=segments.SHAPES, default="none")
    given = parser.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    place = Path(tempfile.mkdtemp(prefix="kdump-bench-"))
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    builder = SparkSession.builder.master(f"local[{given.cores}]").config(map=settings)
    spark = builder.getOrCreate()
    try:
        path = segments.make(place, segments.SHAPES[given.shape], given.records)
        split_bytes = max(1 << 20, path.stat().st_size // (4 * given.cores))
        seconds = measure(spark, path, place, split_bytes, given.runs)
    finally:
        spark.stop()
        shutil.rmtree(place)
    for name, taken in seconds.items():
        print(f"{name:28} {median(taken):8.2f} s {given.records / median(taken):12,.0f} rows/s")
    share = median(seconds["ready-made Arrow batches"]) / median(seconds["kdump"])
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) // 1024
    print(f"kdump is at {share:.2f} of the ceiling (wanted: {TARGET}); this process took at most {peak} MiB")


if __name__ == "__main__":
    main()
