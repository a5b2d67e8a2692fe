"""Time and memory of planning a cluster of terabytes from only names and indexes.

    python -m bench.sparse_segments --topics 200 --gib 50 --partitions 10

Writes the topics as sparse files: segments of 1 GiB with an offset index, a valid batch every 32 MiB, where the index
points, and holes between them. Then a new process plans the columns topic and offset, and prints its memory. Spark does
the same; its heap is measured before and after. Nothing else is read. The lines go to bench/RESULTS-spark.md.
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from bench.spark import RESULTS, machine, put_section, say, session
from kdump.formats.offset_index import OffsetPosition, encode
from kdump.spark.source import options as words
from kdump.spark.source import planning
from testing import forge
from tools import arguments

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TITLE: Final = "## Planning terabytes"
SEGMENT: Final = 1 << 30
APART: Final = 32 << 20
"""Bytes between two batches that the index points to."""
COLUMNS: Final = "topic,offset"
SPLITS: Final = ("128m", "256m", "1g")
"""Sizes of splits. The first is the default of the source."""


def make(folder: Path, topics: int, gib: int, partitions: int) -> int:
    """Write topics of ``gib`` segments in ``partitions`` partitions; return the number of segments."""
    count = 0
    for topic in range(topics):
        for partition in range(partitions):
            inside = folder / f"t{topic}-{partition}"
            inside.mkdir(parents=True)
            for number in range(gib // partitions):
                _segment(inside, number * (SEGMENT // APART) * 1000)
                count += 1
    return count


def _segment(folder: Path, base: int) -> None:
    entries = []
    with (folder / f"{base:020}.log").open("wb") as out:
        for number in range(SEGMENT // APART):
            offset = base + number * 1000
            out.seek(number * APART)
            out.write(forge.batch([forge.record(b"k", b"v")], base_offset=offset))
            entries.append(OffsetPosition(offset, number * APART))
        out.truncate(SEGMENT)
    (folder / f"{base:020}.index").write_bytes(encode(entries[1:], base))


def plan(folder: str) -> dict[str, float]:
    """Plan in this process; return seconds, tasks, their bytes and distribution, and the memory in MiB."""
    before = _peak()
    options = words.parse({"path": folder, "columns": COLUMNS})
    began = time.perf_counter()
    splits = [split for one in planning.plan(options) for split in one.splits]
    groups = planning.group(splits, options)
    seconds = time.perf_counter() - began
    sizes = [sum(split.size for split in group) for group in groups]
    return {
        "seconds": seconds,
        "tasks": len(groups),
        "largest": max(sizes) / 2**20,
        "median": median(sizes) / 2**20,
        "smallest": min(sizes) / 2**20,
        "memory": _peak() - before,
        "sent": sum(len(pickle.dumps(group)) for group in groups) / 2**20,
    }


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def heap(spark: SparkSession) -> float:
    """Return the used MiB of Java's heap after a garbage collection."""
    java = spark.sparkContext._jvm.java.lang
    java.System.gc()
    runtime = java.Runtime.getRuntime()
    return float(runtime.totalMemory() - runtime.freeMemory()) / 2**20


class PlannedBySpark(NamedTuple):
    """Spark's planning: seconds, tasks, and the MiB of heap that the tasks take."""

    split_bytes: str
    seconds: float
    tasks: int
    held: float


def in_spark(folder: Path) -> list[PlannedBySpark]:
    """Let Spark plan with splits of several sizes; the first plans only warm it up."""
    spark = session(os.cpu_count() or 1)
    try:
        found = []
        for split_bytes in ("1g", *SPLITS):
            before = heap(spark)
            began = time.perf_counter()
            source = spark.read.format("kdump").options(columns=COLUMNS, splitBytes=split_bytes)
            rows = source.load(str(folder)).rdd
            tasks = rows.getNumPartitions()
            found.append(PlannedBySpark(split_bytes, time.perf_counter() - began, tasks, heap(spark) - before))
        return found[1:]
    finally:
        spark.stop()


def report(plans: list[dict[str, float]], spark: list[PlannedBySpark], head: str) -> str:
    """Return the section of RESULTS."""
    middle = {name: median(one[name] for one in plans) for name in plans[0]}
    lines = [
        TITLE,
        "",
        f"`python -m bench.sparse_segments` writes this section: the columns {COLUMNS} of sparse files.",
        head,
        "",
        f"- Planned in **{middle['seconds']:.2f} s** of the clock; the process grew by {middle['memory']:.0f} MiB.",
        f"- {middle['tasks']:,.0f} tasks: of {middle['smallest']:,.0f} to {middle['largest']:,.0f} MiB, "
        f"the one in the middle {middle['median']:,.0f}; packed for the executors {middle['sent']:,.1f} MiB in all.",
        *(
            f"- Spark, with its own process for the plan and splitBytes={one.split_bytes}, has {one.tasks:,} tasks "
            f"after {one.seconds:.2f} s; Java's heap holds {one.held:,.0f} MiB for them."
            for one in spark
        ),
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = arguments.parser(__doc__, topics=200, gib=50, partitions=10, runs=5)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--plan", help="plan this folder, and print what it took")
    given = parser.parse_args()
    if given.plan is not None:
        print(json.dumps(plan(given.plan)))
        return 0
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with tempfile.TemporaryDirectory(prefix="kdump-bench-") as name:
        folder = Path(name)
        count = make(folder, given.topics, given.gib, given.partitions)
        say(f"{count:,} segments")
        what = f"{given.topics} topics of {given.gib} GiB in {given.partitions} partitions each, {count:,} segments"
        head = machine(f"{what}, medians of {given.runs}")
        command = [sys.executable, "-m", "bench.sparse_segments", "--plan", name]
        plans = [json.loads(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(given.runs)]
        say(str(plans))
        section = report(plans, in_spark(folder), head)
    put_section(given.out, section)
    print(section, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
