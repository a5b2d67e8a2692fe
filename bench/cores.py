"""One process beside several: best wall time and processor time of each, and how many times as fast several are.

    python -m bench.cores [--records N] [--rounds N] [--folder DIR] [--jobs N]

The outputs are compared. Wants an idle machine: of a busy one the best of many rounds tells most. One process has
threads that read ahead, so that it uses part of a second processor already: "at most" is what several processes could
gain if they shared its processor time among them and had nothing else to do.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from bench import segments
from bench.runs import ROOT, Measured, Tool, digest, measure
from tools import arguments

PARTITIONS: Final = 4
CASES: Final = {
    "--files, one segment": ("--files", "{none}", "--print-data-log"),
    "--files, zstd": ("--files", "{zstd}", "--print-data-log"),
    "text, one segment": ("dump", "{none}"),
    "jsonl, one segment": ("dump", "{none}", "-o", "jsonl"),
    "jsonl, zstd": ("dump", "{zstd}", "-o", "jsonl"),
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
    parser.add_argument("--records", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    env = {"PYTHONPATH": str(ROOT)}
    differs = False
    with contextlib.ExitStack() as stack:
        folder = args.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        paths = {name: segments.make(folder, segments.SHAPES[name], args.records) for name in ("none", "zstd")}
        paths["logs"] = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=folder)))
        for number in range(PARTITIONS):
            (paths["logs"] / f"orders-{number}").mkdir()
            os.link(paths["none"], paths["logs"] / f"orders-{number}" / paths["none"].name)
        paths["out"] = folder / "salvaged"
        for name, words in CASES.items():
            command = [sys.executable, "-m", "kdump", *(word.format(**paths) for word in words), "--jobs"]
            tools = [Tool(name, [*command, str(jobs)], env) for jobs in (1, args.jobs)]
            runs = [[_afresh(tool, paths["out"]) for tool in tools] for _ in range(args.rounds)]
            (one, many), (cpu, cpu_of_many) = (
                [min(getattr(run[at], field) for run in runs) for at in (0, 1)] for field in ("wall", "cpu")
            )
            same = len({_outcome(tool, paths["out"]) for tool in tools}) == 1
            differs |= not same
            print(
                f"{name:32} wall {one:.2f} and {many:.2f} s: {one / many:.2f} times as fast, at most "
                f"{one * args.jobs / cpu:.2f}; processor {cpu:.2f} and {cpu_of_many:.2f} s; "
                f"{'equal' if same else 'DIFFERS'}",
                flush=True,
            )
    return int(differs)


def _afresh(tool: Tool, out: Path) -> Measured:
    """Run once; what was written to ``out`` before is not there."""
    shutil.rmtree(out, ignore_errors=True)
    return measure(tool, ())


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
