"""One core and several: medians of wall and processor time, the speedup, and the possible speedup.

    python -m bench.cores [--records N] [--rounds N] [--folder DIR] [--jobs N] [-k REGEX]

The outputs are compared; the exit status is 1 if one differs or an aim is missed. Segments have a broker's default
size, 1 GiB. kdump is installed as for a user, only once with ``--folder``. Needs an idle machine, and a fast disk for
salvage. "Machine" is the limit of this machine: one run with ``--jobs 1``, compared with as many runs at the same time
as there are jobs. Processors that share caches, memory or a core do less than twice the work. The bare copy and the
disk alone (:mod:`bench.bare_copy`) do only the slowest parts of ``salvage``.
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
from typing import Final, NamedTuple

from bench import segments
from bench.runs import Measured, Tool, digest, install, measure, medians
from tools import arguments

PARTITIONS: Final = 4


class Case(NamedTuple):
    """A command, and the required speedup of several processes, if any."""

    name: str
    words: tuple[str, ...]
    aim: float | None


ONE: Final = 1.5
FOUR: Final = 1.7
COMMITTED: Final = ("-o", "jsonl", "--isolation", "read_committed")
CASES: Final = (
    Case("--files, one segment", ("--files", "{none}", "--print-data-log"), ONE),
    Case("--files, zstd", ("--files", "{zstd}", "--print-data-log"), ONE),
    Case("text, one segment", ("dump", "{none}"), ONE),
    Case("jsonl, one segment", ("dump", "{none}", "-o", "jsonl"), ONE),
    Case("jsonl, zstd", ("dump", "{zstd}", "-o", "jsonl"), ONE),
    Case("read_committed, one segment", ("dump", "{none}", *COMMITTED), ONE),
    Case("check, one segment", ("check", "{none}"), ONE),
    Case("check, zstd", ("check", "{zstd}"), ONE),
    Case("salvage, one segment", ("salvage", "{none}", "--out", "{out}"), ONE),
    Case("bare copy, one segment", ("bench.bare_copy", "{none}", "{out}"), None),
    Case("disk alone, one segment", ("bench.bare_copy", "{none}", "{out}", "--disk"), None),
    Case(
        "salvage, zstd", ("salvage", "{zstd}", "--out", "{out}"), None
    ),  # nothing is decompressed: a fifth of a second
    Case("text, four partitions", ("dump", "{logs}"), FOUR),
    Case("jsonl, four partitions", ("dump", "{logs}", "-o", "jsonl"), FOUR),
    Case("read_committed, four partitions", ("dump", "{logs}", *COMMITTED), FOUR),
    Case("check, four partitions", ("check", "{logs}"), FOUR),
    Case("salvage, four partitions", ("salvage", "{logs}", "--out", "{out}"), FOUR),
    Case("verify-index, four partitions", ("verify-index", "{logs}"), None),
)


def main() -> int:
    """Measure and print; return the exit status."""
    parser = arguments.parser(__doc__)
    parser.add_argument("--records", type=int, default=7_600_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("-k", type=re.compile, default=re.compile(""), metavar="REGEX", help="cases whose names match")
    args = parser.parse_args()
    missed = False
    with contextlib.ExitStack() as stack:
        folder = args.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        program = str(install(folder / "venv"))
        paths = {name: segments.make(folder, segments.SHAPES[name], args.records) for name in ("none", "zstd")}
        paths["logs"] = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=folder)))
        for number in range(PARTITIONS):
            (paths["logs"] / f"orders-{number}").mkdir()
            # a file of its own: processes that read the same pages of the cache at a time would wait for each other
            shutil.copyfile(paths["none"], paths["logs"] / f"orders-{number}" / paths["none"].name)
        os.sync()
        paths["out"] = folder / "salvaged"
        print(f"| case | `--jobs 1`: s, CPU s | `--jobs {args.jobs}`: s, CPU s | times as fast | aim | machine | |")
        print("|---|---|---|---|---|---|---|")
        for case in [case for case in CASES if args.k.search(case.name)]:
            starts = [sys.executable, "-m"] if case.words[0].startswith("bench.") else [program]
            command = [*starts, *(word.format(**paths) for word in case.words), "--jobs"]
            alone, together = (Tool(case.name, [*command, str(jobs)], {}) for jobs in (1, args.jobs))
            runs, machine = [], []
            for _ in range(args.rounds):
                runs.append([_afresh(tool, paths["out"]) for tool in (alone, together)])
                machine.append(_at_once(alone, args.jobs, paths["out"]))
            one, many = (medians([run[at] for run in runs]) for at in (0, 1))
            same = len({_outcome(tool, paths["out"]) for tool in (alone, together)}) == 1
            reached = case.aim is None or round(one.wall / many.wall, 2) >= case.aim
            missed |= not (same and reached)
            cells = (
                case.name,
                f"{one.wall:.2f}, {one.cpu:.2f}",
                f"{many.wall:.2f}, {many.cpu:.2f}",
                f"{one.wall / many.wall:.2f}",
                "" if case.aim is None else f"{case.aim}",
                f"{args.jobs * one.wall / median(machine):.2f}",
                "DIFFERS" if not same else "" if case.aim is None else "reached" if reached else "MISSED",
            )
            print("|", " | ".join(cells), "|", flush=True)
    return int(missed)


def _afresh(tool: Tool, out: Path) -> Measured:
    """Run once, after removing the output ``out`` of earlier runs."""
    shutil.rmtree(out, ignore_errors=True)
    return measure(tool, ())


def _at_once(tool: Tool, times: int, out: Path) -> float:
    """Run ``times`` copies at the same time, each with its own output; return the seconds until the last one ends."""
    shutil.rmtree(out, ignore_errors=True)
    outs = [f"{out}-{number}" for number in range(times)]
    tools = [tool._replace(command=[own if word == str(out) else word for word in tool.command]) for own in outs]
    with ThreadPoolExecutor(times) as pool:
        wall = max(run.wall for run in pool.map(lambda each: measure(each, ()), tools))
    for own in outs:
        shutil.rmtree(own, ignore_errors=True)
    return wall


def _outcome(tool: Tool, out: Path) -> tuple[str, ...]:
    """Return checksums of standard output and of the files in ``out``."""
    shutil.rmtree(out, ignore_errors=True)
    printed = digest(tool, ())
    written = sorted(path for path in out.rglob("*") if path.is_file())
    sums = [hashlib.sha256(path.read_bytes()).hexdigest() for path in written]
    shutil.rmtree(out, ignore_errors=True)
    return printed, *(f"{path}: {summed}" for path, summed in zip(written, sums, strict=True))


if __name__ == "__main__":
    sys.exit(main())
