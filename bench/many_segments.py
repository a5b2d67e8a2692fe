"""How fast Spark plans many segments, and reads their batch headers or their records.

    python -m bench.many_segments --partitions 2000 --segments 5 --records 500 --runs 5 --cores 2

Writes these partitions, and reads the source's outputs batches and records in turns in one warm session, without
writing them. Seconds are wall and processor seconds. The table goes to bench/RESULTS-spark.md.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Final

from bench import segments
from bench.kafka_source import Took, measure
from bench.spark import RESULTS, machine, put_section, say, session
from kdump.spark.source import options as words
from kdump.spark.source import planning
from tools import arguments

TITLE: Final = "## Headers of batches, of many segments"
SECONDS: Final = 10
"""Maximum time of planning."""
TIMES: Final = 5
"""Required speedup of reading batch headers over reading records."""


def make(folder: Path, partitions: int, count: int, records: int) -> int:
    """Write partitions of ``count`` segments; return the total size in bytes."""
    batches = list(segments.entries(segments.SHAPES["none"], records * count))
    files: dict[str, bytes] = {}
    for number in range(count):
        mine = [one for one in batches if number * records <= int.from_bytes(one[:8], "big") < (number + 1) * records]
        files[f"{int.from_bytes(mine[0][:8], 'big'):020}.log"] = b"".join(mine)
    for number in range(partitions):
        inside = folder / f"t{number // 50}-{number % 50}"
        inside.mkdir(parents=True)
        for name, content in files.items():
            (inside / name).write_bytes(content)
    return partitions * sum(map(len, files.values()))


def planned(folder: Path, output: str) -> tuple[float, int]:
    """Return the seconds of planning, and the number of tasks."""
    options = words.SourceOptions(paths=(str(folder),), output=output)
    began = time.perf_counter()
    splits = [split for one in planning.plan(options) for split in one.splits]
    groups = planning.group(splits, options)
    return time.perf_counter() - began, len(groups)


def report(plans: dict[str, list[float]], tasks: int, took: dict[tuple[str, str], list[Took]], head: str) -> str:
    """Return the section of RESULTS."""
    lines = [
        TITLE,
        "",
        "`python -m bench.many_segments` writes this section. Planning is that of the driver alone; reading holds it.",
        head,
        "",
        "| Output | planned in s | read in s | CPU s |",
        "|---|---|---|---|",
    ]
    middle = {source: Took(*map(median, zip(*one, strict=True))) for (source, _), one in took.items()}
    for source, one in middle.items():
        lines.append(f"| {source} | {median(plans[source]):.2f} | {one.wall:.2f} | {one.cpu:.2f} |")
    headers, records = middle[words.BATCHES], middle[words.RECORDS]
    lines += [
        "",
        f"- Headers are planned in **{median(plans[words.BATCHES]):.2f} s** (aim: {SECONDS}), {tasks} tasks.",
        f"- They are read **{records.wall / headers.wall:.1f}** times as fast as records (aim: {TIMES}), with "
        f"{records.cpu / headers.cpu:.1f} times less processor time; run by run "
        + ", ".join(f"{two.wall / one.wall:.1f}" for one, two in _pairs(took))
        + ".",
    ]
    return "\n".join(lines) + "\n"


def _pairs(took: dict[tuple[str, str], list[Took]]) -> list[tuple[Took, Took]]:
    by = {source: one for (source, _), one in took.items()}
    return list(zip(by[words.BATCHES], by[words.RECORDS], strict=True))


def main() -> int:
    parser = arguments.parser(__doc__, partitions=2000, segments=5, records=500, runs=5, cores=2)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    outputs = (words.BATCHES, words.RECORDS)
    with tempfile.TemporaryDirectory(prefix="kdump-bench-") as name:
        folder = Path(name)
        size = make(folder / "logs", given.partitions, given.segments, given.records)
        what = f"{given.partitions * given.segments:,} segments in {given.partitions:,} partitions"
        head = machine(f"{what}, {size / 2**20:,.0f} MiB, batches of 16 KiB, medians of {given.runs}")
        plans: dict[str, list[float]] = {output: [] for output in outputs}
        tasks = 0
        for _ in range(given.runs):
            for output in outputs:
                seconds, count = planned(folder / "logs", output)
                say(f"{output}: planned in {seconds:.2f} s, {count} tasks")
                plans[output].append(seconds)
                tasks = count if output == words.BATCHES else tasks
        spark = session(given.cores)
        try:
            source = spark.read.format("kdump")
            frames = {output: source.option("output", output).load(str(folder / "logs")) for output in outputs}
            took = measure(frames, {"noop": "noop"}, folder, given.runs, [os.getpid()])
        finally:
            spark.stop()
    section = report(plans, tasks, took, head)
    put_section(given.out, section)
    print(section, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
