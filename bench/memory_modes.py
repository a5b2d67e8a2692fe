"""The peak of memory of every command and output format, over logs of every shape: ``python -m bench.memory_modes``.

    python -m bench.memory_modes [--records N] [--segments N] [--folder DIR] [-k REGEX]

Each log is a partition in a log dir with indexes and checkpoints, as a broker leaves it, with a small active segment.
It prints the peak of the largest process, with one and three (``--jobs``). The exit status is 1 above 100 MiB.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from itertools import chain
from pathlib import Path
from typing import Final

from bench import segments
from bench.runs import ROOT, Tool
from bench.segments import Shape
from bench.small_batches import PARTITION, afresh
from kdump.primitives import compression
from kdump.primitives.processes import Processes
from tools import arguments

MIB: Final = 1 << 20
MOST: Final = 100 * MIB
"""Maximum for one process."""
SHAPES: Final = {
    "16 KiB": segments.SHAPES["none"],
    "singles": segments.SHAPES["singles"]._replace(share=0.25),
    "zstd": segments.SHAPES["zstd"]._replace(share=0.25),
    "1 MiB, one record": Shape("mib-single", value_bytes=MIB - 200, batch_bytes=1, share=0.0002),
    "1 MiB, many records": Shape("mib", batch_bytes=MIB - 100, share=0.25),
    "1 MiB, zstd": Shape("mib-zstd", codec=compression.ZSTD, batch_bytes=MIB - 100, share=0.25),
    "small segments": segments.SHAPES["none"]._replace(share=0.25),
}
ACTIVE: Final = 1000
"""Records of the active segment."""
COMMANDS: Final = (
    "--files {log}",
    "--files {log} --print-data-log",
    "--files {log} --deep-iteration",
    "dump {logs}",
    "dump {logs} -o jsonl",
    "dump {logs} -o json",
    "dump {logs} -o csv",
    "dump {logs} -o table",
    "dump {logs} -o raw",
    "dump {logs} -f %o.%k.%s",
    "dump {logs} --batches",
    "dump {logs} --batches -o jsonl",
    "dump {logs} --batches -o table",
    "dump {logs} --count",
    "dump {logs} --count --batches",
    "dump {logs} --tail 10",
    "dump {logs} --tail {half}",
    "dump {logs} --tail {half} -o jsonl",
    "dump {logs} --tail {half} -o table",
    "dump {logs} --tail {half} --batches -o jsonl",
    "dump {logs} --tail {half} --count",
    "dump {logs} --tail {half} -o jsonl --grep note",
    "dump {logs} --tail {half} -o jsonl --grep 0.,",
    "dump {logs} --tail {half} -o jsonl --type data",
    "dump {logs} --tail {half} -o jsonl --offset {some}..{most}",
    "dump {logs} --tail {half} -o jsonl --on-error skip",
    "dump {logs} --tail {half} -o jsonl --decode auto",
    "dump {logs} --head {half}",
    "dump {logs} --limit {half} -o jsonl",
    "dump {logs} -o jsonl --grep note.:.needle",
    "dump {logs} -o jsonl --grep note",
    "dump {logs} -o jsonl --key user424242",
    "dump {logs} -o jsonl --since 2023-11-14T00:00",
    "dump {logs} -o jsonl --offset {some}..{most}",
    "dump {logs} -o jsonl --isolation read_committed",
    "dump {logs} -o jsonl --decode auto",
    "dump {logs} -o jsonl --redact",
    "dump {logs} -o jsonl --encoding json",
    "dump {logs} -o jsonl --encoding hex",
    "get --in {logs} orders-0@{most}",
    "get --in {logs} orders-0@{most} --batch --hexdump",
    "check {logs}",
    "check {logs} --headers-only",
    "verify-index {logs}",
    "salvage {logs} --out {out}",
    "salvage {logs} {logs} --out {out}",
    "rebuild-index {logs} --out {out}",
    "slice {logs} --offset {some}..{most} --out {out}.log",
    "diff {logs} {logs}",
    "diff {logs} {logs} --records",
    "offsets {logs}",
    "offsets {logs} --time 2023-11-14T23:00",
    "producers {logs}",
    "producers {logs} --gaps",
    "transactions {logs}",
    "du {logs}",
    "stats {logs}",
    "stats {logs} --records",
    "stats {logs} --what-if zstd",
    "retention {logs}",
    "compaction {logs}",
    "compaction {logs} --config *:cleanup.policy=compact",
    "explain --in {logs} orders-0@{most}",
    "report {logs} --out {out}.html",
    "groups {logs}",
)
ALONE: Final = re.compile(r"get|slice|rebuild-index|explain|.*-o (table|json)\b(?!l)")
"""Command lines that do not accept --jobs."""


def log_dir(folder: Path, name: str, records: int, count: int) -> Path:
    """Return the path of the log dir of a shape."""
    return folder / f"modes-{SHAPES[name].name}-{records}-{_segments(name, count)}"


def _segments(name: str, count: int) -> int:
    return count if name == "small segments" else 1


def make(logs: Path, shape: Shape, records: int, count: int) -> None:
    """Write a log dir of one partition with ``count`` segments, if it does not exist."""
    if logs.exists():
        return
    partial = logs.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partition = partial / "orders-0"
    partition.mkdir(parents=True)
    unique = min(records, max(64, int(segments.UNIQUE * shape.share)))
    closed = segments.repeated(list(segments.entries(shape, unique)), unique, records)
    active = ((records + _base(one)).to_bytes(8, "big") + one[8:] for one in segments.entries(SHAPES["16 KiB"], ACTIVE))
    size, begun = -(-records // count), -1
    with contextlib.ExitStack() as stack:
        for base, batch in ((_base(one), one) for one in chain(closed, active)):
            if begun != min(base, records) // size:
                begun = min(base, records) // size
                stack.close()
                out = stack.enter_context((partition / f"{base:020}.log").open("wb"))
            out.write(batch)
    for name, offset in (("replication-offset", records), ("log-start-offset", 0)):
        (partial / f"{name}-checkpoint").write_text(f"0\n1\norders 0 {offset}\n")
    command = [sys.executable, "-m", "kdump", "rebuild-index", "-q", str(partition), "--out", str(partial)]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    partial.rename(logs)


def _base(batch: bytes) -> int:
    return int.from_bytes(batch[:8], "big")


def main() -> int:
    """Measure and print a table; return the exit status."""
    parser = arguments.parser(__doc__, records=2_000_000, segments=2000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("-k", type=re.compile, default=re.compile(""), metavar="REGEX", help="shapes and commands")
    args = parser.parse_args()
    env = {"PYTHONPATH": str(ROOT), "KDUMP_REDACT_KEY": "of the benchmark"}
    missed = 0
    print("| what | command | MiB of one process | MiB of the largest of three | |")
    print("|---|---|---|---|---|")
    with contextlib.ExitStack() as stack:
        folder = args.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for name, shape in SHAPES.items():
            records = max(1, int(args.records * shape.share))
            logs = log_dir(folder, name, args.records, args.segments)
            task = (logs, shape, records, _segments(name, args.segments))
            list(Processes(1).results(lambda task: make(*task), [task]))  # its memory would count as that of a child
            first = logs / "orders-0" / f"{0:020}.log"
            offsets = {"some": records // 10, "half": records // 2, "most": records * 4 // 5}
            places = {"log": first, "out": folder / "written", **offsets}
            for line in COMMANDS:
                if not args.k.search(f"{name}: {line}"):
                    continue
                place = logs / "orders-0" if line.split()[0] in PARTITION else logs
                words = line.format(logs=place, **places).split()
                jobs = [[]] if ALONE.match(line) else [["--jobs", "1"], ["--jobs", "3"]]
                command = [sys.executable, "-m", "kdump", *words]
                peaks = [afresh(Tool(line, [*command, *more], env), folder).peak for more in jobs]
                held = max(peaks) <= MOST
                missed += not held
                cells = " | ".join([str(peak // MIB) for peak in peaks] + [""] * (2 - len(peaks)))
                shown = line.format(logs="LOGS", log="LOG", out="OUT", some="A", half="HALF", most="B")
                print(f"| {name} | {shown} | {cells} | {'reached' if held else 'MISSED'} |", flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
