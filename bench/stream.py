"""What a stream of Spark costs while most partitions are idle, and whether it grows from micro-batch to micro-batch.

    python -m bench.stream [--partitions 2000] [--triggers 200]

One partition gets a batch before each trigger, the others get nothing. Prints the milliseconds that a trigger takes,
and those in which it looks for new batches, over the first tenth of the triggers and over the last; the memory of Java
and of the Python workers after each; and the bytes of an offset of the stream. A trigger that finds nothing is measured
in this process, by processor milliseconds.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from bench.disk_answers import batch, make_partitions
from bench.processes import below
from bench.spark import session
from kdump.spark.source import options as words
from kdump.spark.source import streaming
from tools import arguments

RECORDS = 40
"""In each partition when the stream begins."""


def grow(partition: Path, number: int) -> None:
    """Append a batch of five records to a partition, which had ``number`` of those."""
    with next(partition.glob("*.log")).open("ab") as out:
        out.write(batch(RECORDS + number * 5, [b"k"] * 5, bytes(100)))


def memory() -> dict[str, int]:
    """Return the MiB that Java and the Python workers below this process have."""
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


def idle(logs: Path, rounds: int = 5) -> float:
    """Return the processor milliseconds of a trigger that finds nothing new."""
    options = words.SourceOptions(paths=(str(logs),))
    at = streaming.latest(options, {}, streaming.TriggerLimits())
    taken = []
    for _ in range(rounds):
        began = time.process_time()
        if streaming.latest(options, at, streaming.TriggerLimits()) != at:
            raise AssertionError("an idle partition has grown")
        taken.append(time.process_time() - began)
    return 1000 * median(taken)


def triggers(logs: Path, place: Path, count: int) -> list[dict[str, Any]]:
    """Return what Spark says of each trigger, with the memory after it."""
    spark = session(2)
    told: list[dict[str, Any]] = []
    try:
        rows = spark.readStream.format("kdump").load(str(logs))
        writer = rows.writeStream.format("noop").option("checkpointLocation", str(place / "checkpoint"))
        query = writer.trigger(processingTime="0 seconds").start()
        query.processAllAvailable()
        for number in range(count):
            grow(logs / "t0-0", number)
            query.processAllAvailable()
            last = query.lastProgress
            if not last["numInputRows"]:  # another trigger has found nothing since
                last = next(one for one in reversed(query.recentProgress) if one["numInputRows"])
            took = last["durationMs"]
            offset = len(str(last["sources"][0]["endOffset"]))
            told.append({"ms": took["triggerExecution"], "looking": took["latestOffset"], "offset": offset, **memory()})
            if last["numInputRows"] != 5:
                raise AssertionError(f"trigger {number} took {last['numInputRows']} rows, not 5")
        query.stop()
    finally:
        spark.stop()
    return told


def main() -> None:
    parser = arguments.parser(__doc__, partitions=2000, triggers=200)
    given = parser.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with tempfile.TemporaryDirectory(prefix="kdump-bench-") as folder:
        logs = Path(folder, "logs")
        make_partitions(logs, given.partitions)
        print(f"{given.partitions:,} idle partitions: {idle(logs):.0f} CPU ms a trigger")
        told = triggers(logs, Path(folder), given.triggers)
        tenth = max(1, len(told) // 10)
        for name, part in (("first", told[:tenth]), ("last", told[-tenth:])):
            each = {key: median(one[key] for one in part) for key in told[0]}
            print(
                f"{name} {tenth} of {len(told)} triggers: {each['ms']:.0f} ms, looking {each['looking']:.0f} ms, "
                f"Java {each['java']:.0f} MiB, Python {each['python']:.0f} MiB, offset of {each['offset']:,.0f} bytes"
            )


if __name__ == "__main__":
    main()
