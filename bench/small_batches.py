"""Every command over batches of one record (of producers with linger.ms=0), compared with the classic dump.

    python -m bench.small_batches [--records N] [--rounds N] [--folder DIR] [-k REGEX]

Prints wall and processor seconds with one process, and the processor time as a multiple of that of the classic dump
(``--files ... --print-data-log``). The logs are in a log dir with checkpoints, as a broker leaves them.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from bench import segments
from bench.runs import ROOT, Measured, Tool, measure, medians
from tools import arguments

COMMANDS: Final = (
    "dump {logs}",
    "dump {logs} -o jsonl",
    "dump {logs} -o csv",
    "dump {logs} -o table",
    "dump {logs} -o jsonl --isolation read_committed",
    "dump {logs} -o jsonl --batches",
    "dump {logs} --count",
    "dump {logs} -o jsonl --key user424242",
    "dump {logs} -o jsonl --grep note.:.needle",
    "dump {logs} -o jsonl --since 2023-11-14T00:00",
    "dump {logs} -o jsonl --producer-id -1",
    "dump {logs} -o jsonl --offset 1000..{most}",
    "dump {logs} -o jsonl --limit {most}",
    "dump {logs} -o jsonl --tail {most}",
    "get --in {logs} orders-0@{most}",
    "check {logs}",
    "verify-index {logs}",
    "salvage {logs} --out {out}",
    "rebuild-index {logs} --out {out}",
    "slice {logs} --offset 1000..{most} --out {out}.log",
    "diff {logs} {logs}",
    "offsets {logs}",
    "producers {logs}",
    "transactions {logs}",
    "du {logs}",
    "stats {logs}",
    "retention {logs}",
    "compaction {logs}",
    "explain --in {logs} orders-0@{most}",
    "report {logs} --out {out}.html",
)
PARTITION: Final = {"slice", "rebuild-index"}
"""Commands that take a folder of a partition, not a log dir."""


def main() -> int:
    parser = arguments.parser(__doc__)
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("-k", type=re.compile, default=re.compile(""), metavar="REGEX", help="commands that match")
    args = parser.parse_args()
    env = {"PYTHONPATH": str(ROOT)}
    python = [sys.executable, "-m", "kdump"]
    with contextlib.ExitStack() as stack:
        folder = args.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        log = segments.make(folder, segments.SHAPES["singles"], args.records)
        logs = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=folder)))
        (logs / "orders-0").mkdir()
        os.link(log, logs / "orders-0" / log.name)
        for name, offset in (("replication-offset", args.records * 4 // 5), ("log-start-offset", 0)):
            (logs / f"{name}-checkpoint").write_text(f"0\n1\norders 0 {offset}\n")
        classic = Tool("classic", [*python, "--files", str(log), "--print-data-log", "--jobs", "1"], env)
        first = medians([measure(classic, ()) for _ in range(args.rounds)])
        print("| command | s | CPU s | times the classic dump |")
        print("|---|---|---|---|")
        print(f"| --files --print-data-log | {first.wall:.2f} | {first.cpu:.2f} | 1.0 |", flush=True)
        for line in [line for line in COMMANDS if args.k.search(line)]:
            place = logs / "orders-0" if line.split()[0] in PARTITION else logs
            words = line.format(logs=place, out=folder / "written", most=args.records * 4 // 5).split()
            jobs = (
                [] if words[0] in {"get", "slice", "rebuild-index", "explain"} or "table" in words else ["--jobs", "1"]
            )
            tool = Tool(line, [*python, *words, *jobs], env)
            used = medians([afresh(tool, folder) for _ in range(args.rounds)])
            shown = line.format(logs="LOGS", out="OUT", most="N")
            print(f"| {shown} | {used.wall:.2f} | {used.cpu:.2f} | {used.cpu / first.cpu:.1f} |", flush=True)
    return 0


def afresh(tool: Tool, folder: Path) -> Measured:
    """Run once, after removing the output of earlier runs."""
    for path in folder.glob("written*"):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    return measure(tool, ())


if __name__ == "__main__":
    sys.exit(main())
