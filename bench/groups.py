"""How fast commits are replayed, in what memory, and how fast lag is found.

    python -m bench.groups [--commits N] [--groups N] [--size MIB]

Each commit is a batch, as a busy coordinator writes them; every group commits in seven partitions. ``kdump groups``
runs over that log, and over a log with only the last commits, whose time and memory are subtracted. The rate is in
processor seconds, memory is the resident peak. Lag is measured for a partition with one segment of 1 GiB and its index.
The exit status is 1 if a limit is exceeded. Needs the compiled kernel.
"""

from __future__ import annotations

import argparse
import struct
import sys
import tempfile
import time
from pathlib import Path

from bench import indexes, runs
from kdump.answers.groups.collector import LogEnds
from kdump.answers.log_dir_pass import LogDirPass
from kdump.errors import Reporter
from kdump.formats.record_layout import BatchHeader
from kdump.log_dirs.finder import Finder, Wanted
from kdump.records import magic_2

RATE = 200_000
"""Commits a second of one processor."""
ROOM = 64 << 20
"""Memory in addition to that of the live groups, in bytes."""
LAG_MS = 100
"""Maximum processor time for finding the end of a log of 1 GiB."""
BEGAN = 1_700_000_000_000
PARTITIONS = 7
BATCH = 16 << 10


def make(folder: Path, first: int, commits: int, groups: int) -> Path:
    """Write a segment of the commits from number ``first`` to ``commits``; return the log dir.

    They repeat but for their base offset, which no checksum covers.
    """
    held = folder / "__consumer_offsets-0"
    held.mkdir(parents=True)
    batches = [_commit(number, groups)[8:] for number in range(groups * PARTITIONS)]
    with (held / f"{first:020}.log").open("wb") as out:
        for number in range(first, commits):
            out.write(number.to_bytes(8, "big") + batches[number % len(batches)])
    return folder


def _commit(number: int, groups: int) -> bytes:
    group, topic = b"group-%d" % (number % groups), b"topic-%d" % (number // groups)
    key = struct.pack(">hh", 1, len(group)) + group + struct.pack(">h", len(topic)) + topic + bytes(4)
    value = struct.pack(">hqihq", 3, number, -1, 0, BEGAN + number)
    record = magic_2.write_record(timestamp_delta=0, offset_delta=0, key=key, value=value)
    header = BatchHeader(0, 0, 0, 2, 0, 0, 0, BEGAN + number, BEGAN + number, -1, -1, -1, 1)
    return magic_2.write_batch(header, record)


def fail(reason: object) -> None:
    """End the run with an error: the input is valid, so kdump is wrong."""
    raise SystemExit(str(reason))


def seconds(collector: LogEnds, log_dir: Path) -> float:
    """Return the processor seconds of a collector for a log dir."""
    partitions = list(Finder(Wanted(siblings=True)).find([str(log_dir)]))
    began = time.process_time()
    LogDirPass([collector], Reporter(damage=fail, fail=fail)).run(partitions)
    return time.process_time() - began


def run(log_dir: Path) -> runs.Measured:
    """Return the measured time and memory of ``kdump groups``."""
    python = runs.Tool("kdump", [sys.executable, "-m", "kdump"], {})
    return runs.measure(python, ["groups", str(log_dir), "-o", "jsonl"])


def main() -> int:
    """Print the figures; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.groups", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--commits", type=int, default=2_000_000)
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--size", type=int, default=1024, metavar="MIB")
    options = parser.parse_args()
    commits, groups = options.commits, options.groups
    with tempfile.TemporaryDirectory() as temporary:
        live = groups * PARTITIONS
        whole = run(make(Path(temporary, "whole"), 0, commits, groups))
        least = run(make(Path(temporary, "live"), max(0, commits - live), commits, groups))
    rate = (commits - live) / (whole.cpu - least.cpu)
    print(f"{commits:,} commits of {groups:,} groups: {whole.cpu:.1f} s, {rate:,.0f} a second", flush=True)
    print(f"peak {whole.peak >> 20} MiB; with the {live:,} live commits alone {least.peak >> 20} MiB", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, "orders-0")
        folder.mkdir()
        indexes.make(folder, options.size << 20, BATCH)
        lag, stable = (seconds(LogEnds(stable=stable), folder) * 1000 for stable in (False, True))
        print(f"log end of {options.size} MiB: {lag:.1f} ms; with the last stable offset {stable:,.0f} ms")
    return int(rate < RATE or whole.peak - least.peak > ROOM or lag > LAG_MS)


if __name__ == "__main__":
    sys.exit(main())
