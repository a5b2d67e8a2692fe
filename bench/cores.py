"""One core beside several: medians of wall and processor time, how many times as fast several are, and could be.

    python -m bench.cores [--records N] [--rounds N] [--folder DIR] [--jobs N] [-k REGEX]

The outputs are compared. kdump is installed as a user has it, once where ``--folder`` is given. Wants an idle machine.
"Machine" is what this one has to give: the same command with ``--jobs 1``, as many times at once as there are jobs,
beside once; processors that share caches, memory or a core do less than twice the work in the same time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Final

from bench import segments
from bench.runs import Measured, Tool, digest, install, measure, medians
from tools import arguments

PARTITIONS: Final = 4
CASES: Final = {
    "--files, one segment": ("--files", "{none}", "--print-data-log"),
    "--files, zstd": ("--files", "{zstd}", "--print-data-log"),
    "text, one segment": ("dump", "{none}"),
    "jsonl, one segment": ("dump", "{none}", "-o", "jsonl"),
    "jsonl, zstd": ("dump", "{zstd}", "-o", "jsonl"),
    "text, four partitions": ("dump", "{logs}"),
    "jsonl, four partitions": ("dump", "{logs}", "-o", "jsonl"),
    "read_committed, four partitions": ("dump", "{logs}", "-o", "jsonl", "--isolation", "read_committed"),
    "check, one segment": ("check", "{none}"),
    "check, zstd": ("check", "{zstd}"),
    "check, four partitions": ("check", "{logs}"),
    "salvage, one segment": ("salvage", "{none}", "--out", "{out}"),
    "salvage, zstd": ("salvage", "{zstd}", "--out", "{out}"),
    "salvage, four partitions": ("salvage", "{logs}", "--out", "{out}"),
    "verify-index, four partitions": ("verify-index", "{logs}"),
}


def main() -> int:
    """Measure and print; return 1 where an output differs."""
    parser = arguments.parser(__doc__)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("-k", type=re.compile, default=re.compile(""), metavar="REGEX", help="cases whose names match")
    args = parser.parse_args()
    differs = False
    with contextlib.ExitStack() as stack:
        folder = args.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        program = str(install(folder / "venv"))
        paths = {name: segments.make(folder, segments.SHAPES[name], args.records) for name in ("none", "zstd")}
        paths["logs"] = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=folder)))
        for number in range(PARTITIONS):
            (paths["logs"] / f"orders-{number}").mkdir()
            os.link(paths["none"], paths["logs"] / f"orders-{number}" / paths["none"].name)
        paths["out"] = folder / "salvaged"
        print(f"| case | `--jobs 1`: s, CPU s | `--jobs {args.jobs}`: s, CPU s | times as fast | machine | output |")
        print("|---|---|---|---|---|---|")
        for name, words in [case for case in CASES.items() if args.k.search(case[0])]:
            command = [program, *(word.format(**paths) for word in words), "--jobs"]
            alone, together = (Tool(name, [*command, str(jobs)], {}) for jobs in (1, args.jobs))
            runs, machine = [], []
            for _ in range(args.rounds):
                runs.append([_afresh(tool, paths["out"]) for tool in (alone, together)])
                machine.append(_at_once(alone, args.jobs, paths["out"]))
            one, many = (medians([run[at] for run in runs]) for at in (0, 1))
            same = len({_outcome(tool, paths["out"]) for tool in (alone, together)}) == 1
            differs |= not same
            figures = (
                f"{one.wall:.2f}, {one.cpu:.2f}",
                f"{many.wall:.2f}, {many.cpu:.2f}",
                f"{one.wall / many.wall:.2f}",
                f"{args.jobs * one.wall / median(machine):.2f}",
            )
            print("|", " | ".join([name, *figures, "equal" if same else "DIFFERS"]), "|", flush=True)
    return int(differs)


def _afresh(tool: Tool, out: Path) -> Measured:
    """Run once; what was written to ``out`` before is not there."""
    shutil.rmtree(out, ignore_errors=True)
    return measure(tool, ())


def _at_once(tool: Tool, times: int, out: Path) -> float:
    """Run so many times at once, each with an output of its own; return the seconds until the last one ends."""
    shutil.rmtree(out, ignore_errors=True)
    outs = [f"{out}-{number}" for number in range(times)]
    tools = [tool._replace(command=[own if word == str(out) else word for word in tool.command]) for own in outs]
    with ThreadPoolExecutor(times) as pool:
        wall = max(run.wall for run in pool.map(lambda each: measure(each, ()), tools))
    for own in outs:
        shutil.rmtree(own, ignore_errors=True)
    return wall


def _outcome(tool: Tool, out: Path) -> tuple[str, ...]:
    """Return checksums of what is printed, and of what is written to ``out``."""
    shutil.rmtree(out, ignore_errors=True)
    printed = digest(tool, ())
    written = sorted(path for path in out.rglob("*") if path.is_file())
    sums = [hashlib.sha256(path.read_bytes()).hexdigest() for path in written]
    shutil.rmtree(out, ignore_errors=True)
    return printed, *(f"{path}: {summed}" for path, summed in zip(written, sums, strict=True))


if __name__ == "__main__":
    sys.exit(main())
