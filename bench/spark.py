"""How fast Spark writes records as Parquet, compared with Spark's own sources for the same rows.

    python -m bench.spark --records 2000000 --runs 5 --cores 2 --folder /tmp/segments

Interleaved runs in one warm session, each writing Parquet: the source ``kdump``; a source that only returns prepared
Arrow batches of the same rows (the ceiling); ``spark-export`` with its manifest and checks; Spark copying its own
Parquet; PyArrow alone in one process. Then the source in a session with one core, and the memory of the Python worker
that reads a segment of 1 GiB. At last exports of four times the rows with one core and with several. The tables go to
bench/RESULTS-spark.md, before the sections of others.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyspark
from pyarrow import parquet
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from bench import segments
from bench.processes import below
from kdump import kernel
from kdump.arrow import schema as arrow_schema
from kdump.spark import session as spark_session
from kdump.spark.export import job
from kdump.spark.source import options as words
from kdump.spark.source import planning, reading, register, schema
from tools import arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RESULTS = Path(__file__).with_name("RESULTS-spark.md")
SHARE = 0.8
"""Required speed of the source, as a share of the ceiling's."""
CEILING = "ready-made Arrow batches"
IN_FOLDERS = "kdump, into folders of topic and date"
EXPORT = "`kdump spark-export`"
EXPORT_COST = 1.15
"""Maximum time of the export, as a multiple of that of the same rows in the same folders without its checks."""
BARE = "PyArrow in one process"
BESIDE_BARE = 2.5
"""Maximum time of the export, as a multiple of PyArrow's."""
MORE = 4
CORES_GAIN = 1.7
"""Minimum time of the export of MORE times the rows with one core, as a multiple of that with several."""
WARM_UPS = 2
WORKER_MIB = 300
"""Maximum memory of a Python worker for a segment of 1 GiB."""


class Ready(DataSource):
    """Arrow batches that lie in files, one file per task."""

    @classmethod
    def name(cls) -> str:
        return "ready"

    def schema(self) -> str:
        return schema.ddl(arrow_schema.RECORDS)

    def reader(self, schema: Any) -> DataSourceReader:  # noqa: ARG002  the schema is the source's own
        return ReadyReader(self.options["path"])


class ReadyReader(DataSourceReader):
    """Maps each file and returns its batches."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(str(path)) for path in sorted(Path(self._folder).glob("*.arrow"))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with pa.memory_map(partition.value) as file:
            batches = pa.ipc.open_file(file)
            for number in range(batches.num_record_batches):
                yield batches.get_batch(number)


def splits_of(path: Path, split_bytes: int) -> tuple[list[planning.Split], words.SourceOptions]:
    """Return what the source reads of a segment."""
    options = words.SourceOptions(paths=(str(path),), split_bytes=split_bytes)
    return [split for planned in planning.plan(options) for split in planned.splits], options


def make_ready(path: Path, split_bytes: int, folder: Path) -> None:
    """Write the rows of each split as an Arrow file."""
    folder.mkdir()
    splits, options = splits_of(path, split_bytes)
    for number, split in enumerate(splits):
        with pa.ipc.new_file(folder / f"{number:05}.arrow", arrow_schema.arrow(arrow_schema.RECORDS)) as out:
            for batch in reading.read(split, options):
                out.write_batch(batch)


def pyarrow_alone(path: Path, split_bytes: int, out: Path) -> None:
    """Write the same rows without Spark, in this process."""
    splits, options = splits_of(path, split_bytes)
    with parquet.ParquetWriter(out, arrow_schema.arrow(arrow_schema.RECORDS), compression="zstd") as writer:
        for split in splits:
            for batch in reading.read(split, options):
                writer.write_batch(batch)


def export(path: Path, split_bytes: int, out: Path, master: str) -> None:
    """Run ``kdump spark-export`` in the current session."""
    given = {"splitBytes": str(split_bytes)}
    asked = job.Export(paths=(str(path),), out=str(out), options=given, mode="overwrite", master=master, conf={})
    job.run(asked, job.Listener(lambda _: None, lambda *_: None))


def say(text: str) -> None:
    print(text, file=sys.stderr)


def timed(work: Callable[[], object]) -> float:
    """Return the seconds that ``work`` takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def session(cores: int) -> SparkSession:
    settings = {"spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR", **spark_session.OURS}
    spark = SparkSession.builder.master(f"local[{cores}]").config(map=settings).getOrCreate()
    register(spark)
    spark.dataSource.register(Ready)
    return spark


def write(spark: SparkSession, form: str, path: Path, out: Path, **options: object) -> None:
    """Write all rows of a source as Parquet."""
    frame = spark.read.format(form).options(**options).load(str(path))
    frame.write.mode("overwrite").option("compression", "zstd").parquet(str(out))


def write_in_folders(spark: SparkSession, path: Path, out: Path, split_bytes: int) -> None:
    """Write all rows of the source into the folders of an export, without its other work."""
    frame = spark.read.format("kdump").option("splitBytes", split_bytes).load(str(path))
    shaped = frame.selectExpr("*", "topic AS topic_name", "to_date(timestamp) AS date")
    shaped.write.mode("overwrite").partitionBy("topic_name", "date").option("compression", "zstd").parquet(str(out))


def measure(path: Path, place: Path, split_bytes: int, runs: int, cores: int) -> dict[str, list[float]]:
    """Return the seconds of each run by its kind, without the first rounds, which warm up.

    Every second run has the reverse order: Java becomes faster and faster, which would favour the last one.
    """
    spark = session(cores)
    try:
        make_ready(path, split_bytes, place / "ready")
        ways: dict[str, Callable[[], object]] = {
            "kdump": lambda: write(spark, "kdump", path, place / "kdump", splitBytes=split_bytes),
            IN_FOLDERS: lambda: write_in_folders(spark, path, place / "folders", split_bytes),
            CEILING: lambda: write(spark, "ready", place / "ready", place / "from-ready"),
            EXPORT: lambda: export(path, split_bytes, place / "export", f"local[{cores}]"),
            "Spark, Parquet to Parquet": lambda: write(spark, "parquet", place / "kdump", place / "copy"),
            BARE: lambda: pyarrow_alone(path, split_bytes, place / "alone.parquet"),
        }
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(WARM_UPS - 1):
            for name in ("kdump", CEILING):
                ways[name]()
        for run in range(runs + 1):
            for name in list(ways) if run % 2 == 0 else reversed(ways):
                taken = timed(ways[name])
                say(f"{f'run {run}' if run else 'warm-up'}: {name}: {taken:.2f} s")
                if run:
                    seconds[name].append(taken)
        return seconds
    finally:
        spark.stop()


class OneCore(NamedTuple):
    """Seconds of each run with one core; the bytes of a large segment, and the peak of its worker in bytes."""

    seconds: list[float]
    segment: int
    peak: int


def exports(path: Path, place: Path, split_bytes: int, runs: int, cores: int) -> list[float]:
    """Return the seconds of each export in a new session, without the first two."""
    spark = session(cores)
    try:
        found = [timed(lambda: export(path, split_bytes, place / "out", f"local[{cores}]")) for _ in range(runs + 2)]
        say(f"local[{cores}]: {found}")
        return found[2:]
    finally:
        spark.stop()


def alone(path: Path, place: Path, split_bytes: int, runs: int, size: int) -> OneCore:
    """Measure the source with one core, and the memory of a worker that reads a segment of ``size``."""
    spark = session(1)
    try:
        work = [lambda: write(spark, "kdump", path, place / "one-core", splitBytes=split_bytes)] * (runs + 1)
        seconds = [timed(one) for one in work][1:]
        say(f"local[1]: {seconds}")
        large = repeated(path, place / "large" / path.name, size)
        frame = spark.read.format("kdump").option("splitBytes", "8g").load(str(large))
        frame.write.format("noop").mode("overwrite").save()
        return OneCore(seconds, large.stat().st_size, worker_peak())
    finally:
        spark.stop()


def repeated(path: Path, target: Path, size: int) -> Path:
    """Repeat a small segment until it has at least ``size`` bytes."""
    target.parent.mkdir()
    with target.open("wb") as out:
        while out.tell() < size:
            with path.open("rb") as source:
                shutil.copyfileobj(source, out, 1 << 20)
    return target


def worker_peak() -> int:
    """Return the highest peak of memory among the Python workers of this process, in bytes."""
    peaks = {}
    for number in below([os.getpid()]):
        try:
            reported = dict(line.split(":", 1) for line in Path(f"/proc/{number}/status").read_text().splitlines())
            is_worker = b"pyspark.daemon" in Path(f"/proc/{number}/cmdline").read_bytes()
        except OSError:  # it has ended
            continue
        if is_worker and "VmHWM" in reported:
            peaks[number] = int(reported["VmHWM"].split()[0]) << 10
    return max(peaks.values())


def report(
    seconds: dict[str, list[float]],
    one_core: OneCore,
    by_cores: dict[int, list[float]],
    records: int,
    cores: int,
    head: str,
) -> str:
    """Return the text of RESULTS."""
    ceiling = median(seconds[CEILING])
    lines = [
        "# Measured: Spark",
        "",
        "`python -m bench.spark` writes this file. Interleaved runs in one warm session, files in the page cache; wall",
        "seconds. The aim is at least 0.8 of the ceiling: a source that only hands out ready-made Arrow batches.",
        "",
        head,
        "",
        f"| Rows to Parquet (zstd), local[{cores}] | s | rows/s | of the ceiling |",
        "|---|---|---|---|",
    ]
    for name, taken in seconds.items():
        took = median(taken)
        lines.append(f"| {name} | {took:.2f} | {records / took:,.0f} | {ceiling / took:.2f} |")
    took, several, exported = median(one_core.seconds), median(seconds["kdump"]), median(seconds[EXPORT])
    one, more = median(by_cores[1]), median(by_cores[cores])
    lines += [
        "",
        f"- The source reaches **{ceiling / several:.2f}** of the ceiling (aim: {SHARE}); run by run "
        + ", ".join(f"{two / one:.2f}" for one, two in zip(seconds["kdump"], seconds[CEILING], strict=True))
        + ".",
        f"- The export takes **{exported / median(seconds[IN_FOLDERS]):.2f}** times as long as the same rows into the "
        f"same folders (aim: {EXPORT_COST}), and **{exported / median(seconds[BARE]):.2f}** times as long as PyArrow "
        f"(aim: {BESIDE_BARE}).",
        f"- Of {MORE} times the rows the export takes {more:.2f} s, and {one:.2f} s with one core (local[1]): "
        f"**{one / more:.2f}** times as long (aim: {CORES_GAIN}); run by run "
        + ", ".join(f"{of_one / of_more:.2f}" for of_one, of_more in zip(*by_cores.values(), strict=True))
        + ".",
        f"- With one core the source takes {took:.2f} s: {took / several:.2f} times as long as with {cores}.",
        f"- The Python worker that read a segment of {one_core.segment / 2**30:.2f} GiB in one task took at most "
        f"{one_core.peak / 2**20:.0f} MiB (aim: below {WORKER_MIB}).",
    ]
    return "\n".join(lines) + "\n"


def machine(rows: str) -> str:
    """Return a description of the machine and of ``rows``."""
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    where = f"{os.cpu_count()} processors, load {load} when it began; {platform.system()} {platform.release()}"
    what = f"Python {platform.python_version()}, PySpark {pyspark.__version__}, PyArrow {pa.__version__}"
    return f"{datetime.now(UTC):%Y-%m-%d}, {where}, {what}; kernel: {kernel.build()}; {rows}."


def put_section(out: Path, section: str) -> None:
    """Write a section of RESULTS in place of the section with the same title, or as the last one."""
    title = section.partition("\n")[0]
    held = out.read_text("utf-8") if out.exists() else ""
    parts = re.split(r"^(?=## )", held, flags=re.MULTILINE)
    kept = [part.rstrip() for part in parts if part.strip()]
    where = next((number for number, part in enumerate(kept) if part.startswith(f"{title}\n")), len(kept))
    kept[where : where + 1] = [section.rstrip()]
    out.write_text("\n\n".join(kept) + "\n", "utf-8")


def main() -> None:
    parser = arguments.parser(__doc__, records=2_000_000, runs=5, cores=2)
    parser.add_argument("--shape", choices=segments.SHAPES, default="none")
    parser.add_argument("--large", type=int, default=1 << 30, help="bytes of the segment that one worker reads")
    parser.add_argument("--folder", type=Path, help="where segments are kept from run to run")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    rows = "records (key of 10 bytes, value of some 105, one header), all columns, medians of"
    head = machine(f"{given.records:,} {rows} {given.runs}")
    place = Path(tempfile.mkdtemp(prefix="kdump-bench-"))
    try:
        path = segments.make(given.folder or place, segments.SHAPES[given.shape], given.records)
        split_bytes = max(1 << 20, path.stat().st_size // (4 * given.cores))
        seconds = measure(path, place, split_bytes, given.runs, given.cores)
        one_core = alone(path, place, split_bytes, min(given.runs, 3), given.large)
        large = segments.make(given.folder or place, segments.SHAPES[given.shape], MORE * given.records)
        by_cores: dict[int, list[float]] = {1: [], given.cores: []}
        for _ in range(2):  # two sessions of each kind
            for cores, taken in by_cores.items():
                taken += exports(large, place, MORE * split_bytes, given.runs, cores)
    finally:
        shutil.rmtree(place)
    text = report(seconds, one_core, by_cores, given.records, given.cores, head)
    others = (
        re.search(r"^## .*", given.out.read_text("utf-8"), re.DOTALL | re.MULTILINE) if given.out.exists() else None
    )
    given.out.write_text(f"{text}\n{others[0]}" if others else text, "utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
