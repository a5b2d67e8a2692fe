"""Filters of ``kdump dump`` compared with the original piped into grep, on the records of the benchmark.

    python -m bench.filters [--records N] [--rounds N] [--folder DIR] [--release X.Y.Z]

Wall and processor seconds are those of all processes of a line. Both must find the same number of records. The exit
status is 1 if they do not, or if an aim is missed.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from bench import segments
from bench.runs import ROOT, environment, original
from tools import arguments

AIM: Final = 10
"""Required speedup of a filter over the pipe, in wall time."""


class Filter(NamedTuple):
    """Options of ``kdump dump``, and what grep searches for in the original's lines."""

    name: str
    options: str
    pattern: str


FILTERS: Final = (
    Filter("a rare text", "--grep 'note.:.needle'", "note.:.needle"),
    Filter("a key", "--key user424242", " key: user424242 "),
    Filter("some text", "--grep '\"user\":4242'", '"user":4242'),
    Filter("the last offsets", "--offset 499990..499999", "offset: 49999[0-9] "),
)


class Took(NamedTuple):
    """Seconds of a shell line, and the number that it printed."""

    wall: float
    cpu: float
    counted: int


def took(line: str) -> Took:
    """Run a shell line that prints a number."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    env = environment({"PYTHONPATH": str(ROOT)})
    done = subprocess.run(["sh", "-c", line], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False, env=env)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Took(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, int(done.stdout))


def main() -> int:
    """Measure and print a table; return the exit status."""
    parser = arguments.parser(__doc__, records=500_000, rounds=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--release", default="4.3.1")
    args = parser.parse_args()
    java = shlex.join(original(args.release).command)
    python = shlex.join([sys.executable, "-m", "kdump", "dump"])
    failed = False
    print(f"| filter | DumpLogSegments {args.release} \\| grep: s, CPU s | kdump: s, CPU s | times faster | |")
    print("|---|---|---|---|---|")
    with contextlib.ExitStack() as stack:
        folder = args.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        log = os.fspath(segments.make(folder, segments.SHAPES["none"], args.records))
        for one in FILTERS:
            piped = f"{java} --files {log} --print-data-log | grep -c -- {shlex.quote(one.pattern)}"
            lines = (piped, f"{python} {log} {one.options} --count")
            runs = [[took(line) for line in lines] for _ in range(args.rounds)]
            (theirs, cpu), (ours, own) = ([median(run[at][field] for run in runs) for field in (0, 1)] for at in (0, 1))
            same = len({each.counted for run in runs for each in run}) == 1
            verdict = "DIFFERS" if not same else "reached" if theirs >= AIM * ours else "MISSED"
            failed |= verdict != "reached"
            print(
                f"| {one.name} | {theirs:.2f}, {cpu:.2f} | {ours:.2f}, {own:.2f} | {theirs / ours:.1f} | {verdict} |",
                flush=True,
            )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
