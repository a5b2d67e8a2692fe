"""Processor time and memory of ``log.to_arrow()``, compared with the same work in a task of Spark.

    python -m bench.arrow [--records N] [--folder DIR]

Both read the same segments, of 2,000,000 records by default, and make all columns. Each row is then compared with the
line of ``kdump dump -o jsonl``, key and value by their sizes and sums.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
import zlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import kdump
from bench import segments
from kdump.spark.source import options, planning, reading
from tools import arguments

if TYPE_CHECKING:
    from collections.abc import Callable

SHAPES = ("none", "zstd")
COMPARED = ("offset", "timestampMs", "position", "codec", "crc", "sequence", "transactionState")
"""Columns that are compared, in addition to key and value."""
ROUNDS = 7


def of_log(path: Path) -> int:
    """Make all columns of a segment; return the number of rows."""
    return sum(len(batch) for batch in kdump.open(path).to_arrow())


def of_task(path: Path) -> Callable[[], int]:
    """Do the work of a task of Spark after the driver's planning; return the number of rows."""
    wanted = options.SourceOptions(paths=(str(path),))
    splits = [split for planned in planning.plan(wanted) for split in planned.splits]
    return lambda: sum(len(batch) for split in splits for batch in reading.read(split, wanted))


def seconds(*works: Callable[[], int]) -> list[float]:
    """Return the processor seconds of each function, which run in turns: the best of some rounds."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(ROUNDS):
        for work, taken in zip(works, times, strict=True):
            start = time.process_time()
            work()
            taken.append(time.process_time() - start)
    return [min(taken) for taken in times]


def differing(path: Path) -> int:
    """Return how many rows differ from the JSON lines."""
    names = [*COMPARED, "key", "value"]
    command = [sys.executable, "-m", "kdump", "dump", str(path), "-o", "jsonl", "--fields", ",".join(names)]
    wrong = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE) as dump:
        lines = iter(dump.stdout or ())
        for batch in kdump.open(path).to_arrow(names):
            for row in batch.to_pylist():
                line = json.loads(next(lines))
                same = all(line[name] == row[name] for name in COMPARED)
                wrong += not (same and all(_sum(line[name]) == _sum(row[name]) for name in ("key", "value")))
        wrong += sum(1 for _ in lines)
    return wrong


def _sum(value: str | bytes | None) -> int | None:
    if value is None:
        return None
    return zlib.crc32(value.encode() if isinstance(value, str) else value)


def main(words: list[str]) -> int:
    parser = arguments.parser(__doc__)
    parser.add_argument("--records", type=int, default=2_000_000, help="records of a segment")
    parser.add_argument("--folder", type=Path, help="where the segments are made, and stay")
    given = parser.parse_args(words)
    failed = False
    with tempfile.TemporaryDirectory() as made:
        for name in SHAPES:
            path = segments.make(given.folder or Path(made), segments.SHAPES[name], given.records)
            rows = of_log(path)
            ours, task = seconds(partial(of_log, path), of_task(path))
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
            wrong = differing(path)
            failed |= bool(wrong) or rows != given.records
            print(f"{name}: {rows:,} rows, {ours:.2f} s; a task of Spark {task:.2f} s, {task / ours:.2f} times ours")
            print(f"  peak {peak} MiB; {wrong} rows differ from dump -o jsonl")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
