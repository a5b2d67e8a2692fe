"""Time and memory of planning 100,000 segments in a bucket, on the driver.

    python -m bench.bucket_planning [--partitions 2000] [--segments 50]

An S3 server on this machine has small segments (hard links of one file per base offset). Each plan runs in a new
process: a read of two columns, and the first trigger of a stream with ``availableNow``. The table goes to
bench/RESULTS-spark.md. `tools.prove.stores` lists the requirements of the server.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.spark import RESULTS, machine, put_section, say
from kdump.spark.source import options as words
from kdump.spark.source import planning, streaming
from testing import forge
from tools import arguments
from tools.prove import stores

if TYPE_CHECKING:
    from collections.abc import Callable

TITLE: Final = "## Planning a bucket"
SECONDS, MIB = 60, 500
"""Maximum time, and maximum memory of the driver's Python."""
RECORDS: Final = 10


def make(root: Path, partitions: int, segments: int) -> int:
    """Write a log dir below ``root``; return the number of segments."""
    first = root / "t0-0"
    first.mkdir(parents=True)
    records = [forge.record(b"k", b"v" * 100, offset=offset) for offset in range(RECORDS)]
    for number in range(segments):
        base = number * RECORDS
        (first / f"{base:020}.log").write_bytes(forge.batch(records, base_offset=base))
    for number in range(1, partitions):
        folder = root / f"t{number // 10}-{number % 10}"
        folder.mkdir()
        for path in first.iterdir():
            os.link(path, folder / path.name)
    return partitions * segments


def _read(path: str) -> int:
    options = words.parse({"path": path, "columns": "topic,offset"})
    splits = [split for planned in planning.plan(options) for split in planned.splits]
    planning.group(splits, options)
    return len(splits)


def _trigger(path: str) -> int:
    options = words.parse({"path": path, "columns": "topic,offset"})
    advance = streaming.advance(options, {}, streaming.TriggerLimits(), streaming.ends(options))
    return len(advance.taken)


PLANS: Final[dict[str, Callable[[str], int]]] = {"a read of two columns": _read, "a stream's first trigger": _trigger}


def alone(name: str, path: str) -> None:
    """Plan in this process; print the number of segments, seconds, and the peak of memory in MiB."""
    began = time.perf_counter()
    count = PLANS[name](path)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps([count, time.perf_counter() - began, time.process_time(), peak]))


def main() -> int:
    if sys.argv[1:2] == ["--alone"]:
        alone(*sys.argv[2:])
        return 0
    parser = arguments.parser(__doc__, partitions=2000, segments=50)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    total = given.partitions * given.segments
    lines = [
        TITLE,
        "",
        "`python -m bench.bucket_planning` writes this section. The S3 server runs on the same processors.",
        machine(f"{total:,} segments in {given.partitions:,} partitions"),
        "",
        "| Plan | s | CPU s of the driver | MiB of the driver |",
        "|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory(prefix="kdump-bench-") as folder:
        make(Path(folder, "bucket", "broker"), given.partitions, given.segments)
        with stores.Gateway(Path(folder)) as server:
            env = {**os.environ, "AWS_ACCESS_KEY_ID": stores.KEY, "AWS_SECRET_ACCESS_KEY": stores.SECRET}
            env |= {"AWS_REGION": stores.REGION, "AWS_ENDPOINT_URL": server.settings["spark.hadoop.fs.s3a.endpoint"]}
            for name in PLANS:
                command = [sys.executable, "-m", "bench.bucket_planning", "--alone", name, "s3://bucket/broker"]
                done = subprocess.run(command, capture_output=True, text=True, env=env, check=True)
                count, seconds, cpu, mib = json.loads(done.stdout.splitlines()[-1])
                say(f"{name}: {count:,} segments, {seconds:.1f} s, {cpu:.1f} CPU s, {mib:.0f} MiB")
                if count != total:
                    raise AssertionError(f"{count} of {total} segments are planned")
                lines.append(f"| {name} | {seconds:.1f} | {cpu:.1f} | {mib:.0f} |")
    lines += ["", f"The aims are {SECONDS} s and {MIB} MiB."]
    put_section(given.out, "\n".join(lines) + "\n")
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
