"""Time and memory of a Spark stream with mostly idle partitions, and whether they grow from micro-batch to micro-batch.

    python -m bench.stream [--partitions 2000] [--triggers 200]

One partition gets a batch before each trigger, the others get nothing. The table in bench/RESULTS-spark.md has the
milliseconds of a trigger and of its search for new batches: for the first tenth of the triggers, the middle and the
last tenth. It also has the memory of Java, of its heap, and of the Python workers, and the bytes of an offset of the
stream. A search that finds nothing is measured in this process, in processor milliseconds.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.disk_answers import batch, make_partitions
from bench.processes import below
from bench.spark import RESULTS, machine, put_section, session
from kdump.spark.source import options as words
from kdump.spark.source import streaming
from tools import arguments

TITLE: Final = "## A stream over idle partitions"
RECORDS = 40
"""Records of each partition when the stream starts."""


def grow(partition: Path, number: int) -> None:
    """Append a batch of five records to a partition that has ``number`` such batches."""
    with next(partition.glob("*.log")).open("ab") as out:
        out.write(batch(RECORDS + number * 5, [b"k"] * 5, bytes(100)))


def memory() -> dict[str, int]:
    """Return the memory of Java and of the Python workers of this process, in MiB."""
    sizes = {"java": 0, "python": 0}
    for number in below([os.getpid()]):
        try:
            program = Path(f"/proc/{number}/cmdline").read_bytes()
            pages = int(Path(f"/proc/{number}/statm").read_text().split()[1])
        except OSError:  # it has ended
            continue
        kind = "java" if b"SparkSubmit" in program else "python" if b"pyspark" in program else None
        if kind is not None:
            sizes[kind] += pages * os.sysconf("SC_PAGE_SIZE") >> 20
    return sizes


def live(spark: Any) -> int:
    """Return the MiB of live objects in Java, after a garbage collection."""
    spark._jvm.System.gc()
    runtime = spark._jvm.Runtime.getRuntime()
    return int(runtime.totalMemory() - runtime.freeMemory()) >> 20


def progress(spark: Any, query: Any) -> dict[str, Any]:
    """Return Spark's progress of the last trigger with rows.

    PySpark's own ``lastProgress`` leaves an object with both offsets in Java, so memory would grow because of it.
    """
    reported = query._jsq.lastProgress()
    last: dict[str, Any] = json.loads(reported.json())
    spark.sparkContext._gateway.detach(reported)
    if last["numInputRows"]:
        return last
    return next(one for one in reversed(query.recentProgress) if one["numInputRows"])  # another one found nothing since


def idle(logs: Path, rounds: int = 5) -> float:
    """Return the processor milliseconds of a trigger that finds nothing new."""
    options = words.SourceOptions(paths=(str(logs),))
    at = streaming.advance(options, {}, streaming.TriggerLimits()).offsets
    taken = []
    for _ in range(rounds):
        began = time.process_time()
        if streaming.advance(options, at, streaming.TriggerLimits()).offsets != at:
            raise AssertionError("an idle partition has grown")
        taken.append(time.process_time() - began)
    return 1000 * median(taken)


def triggers(logs: Path, place: Path, count: int) -> list[dict[str, Any]]:
    """Return Spark's progress of each trigger, with the memory after it."""
    spark = session(2)
    reported: list[dict[str, Any]] = []
    try:
        rows = spark.readStream.format("kdump").load(str(logs))
        writer = rows.writeStream.format("noop").option("checkpointLocation", str(place / "checkpoint"))
        query = writer.trigger(processingTime="0 seconds").start()
        query.processAllAvailable()
        for number in range(count):
            grow(logs / "t0-0", number)
            query.processAllAvailable()
            last = progress(spark, query)
            took = last["durationMs"]
            offset = len(str(last["sources"][0]["endOffset"]))
            times = {"ms": took["triggerExecution"], "looking": took["latestOffset"]}
            reported.append({**times, "offset": offset, **memory(), "heap": live(spark)})
            if last["numInputRows"] != 5:
                raise AssertionError(f"trigger {number} took {last['numInputRows']} rows, not 5")
        query.stop()
    finally:
        spark.stop()
    return reported


def report(took: float, reported: list[dict[str, Any]], head: str) -> str:
    """Return the section of RESULTS."""
    tenth = max(1, len(reported) // 10)
    middle = (len(reported) - tenth) // 2
    lines = [
        TITLE,
        "",
        "`python -m bench.stream` writes this section. One partition gets a batch before each trigger, others nothing.",
        head,
        "",
        "| Triggers | ms | looking, ms | Java, MiB | live in its heap, MiB | Python, MiB | offset, bytes |",
        "|---|---|---|---|---|---|---|",
    ]
    for first in (0, middle, len(reported) - tenth):
        each = {key: median(one[key] for one in reported[first : first + tenth]) for key in reported[0]}
        figures = " | ".join(f"{each[key]:,.0f}" for key in ("ms", "looking", "java", "heap", "python", "offset"))
        lines.append(f"| {first + 1} to {first + tenth} | {figures} |")
    lines += ["", f"- A look that finds nothing takes **{took:.0f}** processor milliseconds."]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = arguments.parser(__doc__, partitions=2000, triggers=200)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    head = machine(f"{given.partitions:,} partitions, {given.triggers} triggers, medians of a tenth of them")
    with tempfile.TemporaryDirectory(prefix="kdump-bench-") as folder:
        logs = Path(folder, "logs")
        make_partitions(logs, given.partitions)
        took = idle(logs)
        section = report(took, triggers(logs, Path(folder), given.triggers), head)
    put_section(given.out, section)
    print(section, end="")


if __name__ == "__main__":
    main()
