"""kdump over one large partition of mixed codecs, and over many small segments.

    python -m bench.large [--gib N] [--segments N] [--rounds N] [--folder DIR] [--jobs N]

The partition has segments of 256 MiB, of each codec in turn, N GiB in all (default: 10); with ``--folder`` they are
made once and kept. The small segments hold 500 records each, in ten partitions. It prints wall and processor seconds
and the memory peak of the largest process, with one process and with several. The exit status is 1 if a process takes
100 MiB or more, or several processes are slower than one.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench import many_segments, segments
from bench.runs import ROOT, Tool, measured
from kdump.primitives import compression
from kdump.primitives.processes import Processes
from tools import arguments

if TYPE_CHECKING:
    from collections.abc import Callable

SEGMENT: Final = 256 << 20
PARTITIONS: Final = 10
RECORDS: Final = 500
"""Of each small segment."""
MOST_MEMORY: Final = 100 << 20
SLACK: Final = 1.1
"""Maximum time of several processes as a multiple of that of one: a start, and the variation of a busy machine."""
COMMANDS: Final = (
    ("dump", "-o", "jsonl"),
    ("dump", "--tail", "10"),
    ("check",),
    ("check", "--headers-only"),
    ("verify-index",),
)


def mixed(folder: Path, size: int) -> Path:
    """Return the path of a partition of mixed codecs."""
    return folder / f"mixed-{size}" / "orders-0"


def make(target: Path, size: int) -> None:
    """Write a partition of ``size`` bytes, or up to a segment more, in mixed codecs, if it does not exist."""
    if target.exists():
        return
    partial = target.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    batches = {name: list(segments.entries(segments.SHAPES[name], segments.UNIQUE)) for name in compression.NAMES}
    written = base = 0
    for name in cycle(compression.NAMES):
        if written >= size:
            break
        held = 0
        with (partial / f"{base:020}.log").open("wb") as out:
            while held < SEGMENT:
                for one in batches[name]:
                    out.write((base + int.from_bytes(one[:8], "big")).to_bytes(8, "big") + one[8:])
                    held += len(one)
                base += segments.UNIQUE
        written += held
    partial.rename(target)


def main() -> int:
    """Measure and print a table; return the exit status."""
    parser = arguments.parser(__doc__, gib=10, segments=2000, rounds=3, jobs=2)
    parser.add_argument("--folder", type=Path)
    args = parser.parse_args()
    failed = False
    print("| what | command | one process: s, CPU s, MiB | several: s, CPU s, MiB | times as fast | |")
    print("|---|---|---|---|---|---|")
    with contextlib.ExitStack() as stack:
        folder = args.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        small = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=folder)))
        places = {f"{args.segments:,} segments": small}
        makers: list[Callable[[], object]] = [
            lambda: many_segments.make(small, PARTITIONS, args.segments // PARTITIONS, RECORDS)
        ]
        if args.gib:
            places[f"{args.gib} GiB, mixed codecs"] = mixed(folder, args.gib << 30)
            makers.append(lambda: make(mixed(folder, args.gib << 30), args.gib << 30))
        list(Processes(1).results(lambda maker: maker(), makers))  # what it takes would count as that of its children
        for what, place in places.items():
            for command in COMMANDS:
                words = [sys.executable, "-m", "kdump", *command, str(place), "--jobs"]
                tools = [Tool(what, [*words, str(jobs)], {"PYTHONPATH": str(ROOT)}) for jobs in (1, args.jobs)]
                one, many = measured(tools, (), args.rounds)
                held = max(one.peak, many.peak) < MOST_MEMORY and many.wall <= SLACK * one.wall
                failed |= not held
                cells = " | ".join(f"{run.wall:.2f}, {run.cpu:.2f}, {run.peak >> 20}" for run in (one, many))
                name, verdict = " ".join(command), "reached" if held else "MISSED"
                print(f"| {what} | {name} | {cells} | {one.wall / many.wall:.2f} | {verdict} |", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
