"""The time of a report, compared with its slowest collector alone, and of its page for many partitions.

    python -m bench.report [--size MIB] [--partitions N]

It makes log dirs in a temporary folder and prints processor seconds of commands with --jobs 1, the best of three:
segments of batches of 16 KiB and of 1 KiB, and N partitions of 20 topics with batches of a week. The page of these is
measured too.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from bench import indexes
from kdump.formats import record_layout
from kdump.records import magic_2
from tools import arguments

NOW: Final = 1_795_000_000_000
HOUR: Final = 3_600_000
WEEK: Final = 168
TOPICS: Final = (
    *("orders", "payments", "clicks", "shipments", "prices", "stock", "refunds", "audit", "emails", "invoices"),
    *("sessions", "searches", "carts", "reviews", "fraud-scores", "logins", "exports", "imports", "alerts", "metrics"),
)
ALONE: Final = (
    ("check", "--headers-only"),
    ("stats", "--hours"),
    ("transactions",),
    ("retention",),
    ("du",),
    ("groups",),
)


def make_partitions(folder: Path, count: int, batches: int = 300) -> None:
    """Write partitions of one segment: ``batches`` of five records over a week at most, with gaps and bursts."""
    for number in range(count):
        topic = number % len(TOPICS)
        value = bytes(100 + 1500 // (topic + 1))
        records = b"".join(
            magic_2.write_record(timestamp_delta=n, offset_delta=n, key=b"k", value=value) for n in range(5)
        )
        inside = folder / f"{TOPICS[topic]}-{number // len(TOPICS)}"
        inside.mkdir(parents=True)
        base = 0
        with (inside / f"{indexes.STEM}.log").open("wb") as out:
            for one in range(batches):
                hour = one * WEEK // batches
                if (hour + 5 * number) % 29 < 4:  # nothing is written for four hours
                    continue
                stamp = NOW - (WEEK - hour) * HOUR + number % 7 * 60_000
                for _ in range(4 if (hour + 3 * topic) % 24 == 9 else 1):
                    header = record_layout.BatchHeader(base, 0, 0, 2, 0, 0, 4, stamp, stamp + 4, -1, -1, -1, 5)
                    out.write(magic_2.write_batch(header, records))
                    base += 5
        indexes.write_indexes(inside)


def seconds(*command: str) -> float:
    """Return the processor seconds of a command, the best of three."""
    best = float("inf")
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        words = [sys.executable, "-m", "kdump", *command, "--jobs", "1"]
        subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


def compare(name: str, folder: Path) -> None:
    """Print the time of the answers of a report, and of each part alone."""
    alone = {command[0]: seconds(*command, str(folder), "-o", "jsonl") for command in ALONE}
    together = seconds("report", str(folder), "--json")
    slowest = max(alone, key=alone.__getitem__)
    print(f"{name}: " + ", ".join(f"{command} {taken:.2f} s" for command, taken in alone.items()))
    print(f"  report --json {together:.2f} s: {together / alone[slowest]:.2f} times {slowest}", flush=True)


def main() -> int:
    parser = arguments.parser(__doc__)
    parser.add_argument("--size", type=int, default=512, metavar="MIB")
    parser.add_argument("--partitions", type=int, default=2000, metavar="N")
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed kdump has its byte code
    with tempfile.TemporaryDirectory() as temporary:
        os.environ["PYTHONPYCACHEPREFIX"] = temporary
        for name, batch_bytes, size in (("16 KiB", 16 << 10, options.size), ("1 KiB", 1 << 10, options.size // 4)):
            log = Path(temporary, name, "t-0")
            log.mkdir(parents=True)
            indexes.make(log, size << 20, batch_bytes)
            compare(f"{size} MiB in batches of {name}", log.parent)
        many = Path(temporary, "many")
        make_partitions(many, options.partitions)
        compare(f"{options.partitions} partitions", many)
        page = Path(temporary, "report.html")
        taken = seconds("report", str(many), "--out", str(page), "--overwrite")
        print(f"  the page: {taken:.2f} s, {page.stat().st_size / (1 << 20):.2f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
