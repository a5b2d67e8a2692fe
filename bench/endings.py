"""Processor time of every output format and filter of ``kdump dump``, compared with the classic dump.

    python -m bench.endings [--records N] [--rounds N] [--folder DIR] [--shape NAME] [--history]

Prints for each case its time as a multiple of that of the classic dump (``--files ... --print-data-log``) with one
process, and the aim. The aim of tables is a rate: ROWS a second. ``--shape no-headers`` has records without headers,
``--shape CODEC`` compressed batches. ``--history`` adds a line with the commit and the ratios to bench/HISTORY.md. It
prints the cases that take over 10 % more or less than in the last line of the same records. The exit status is 1 if an
aim is missed. With ``--folder`` the segment and an environment with an installed kdump are made once and kept: an
editable install adds 8 ms to each start.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from bench import segments
from bench.runs import ROOT, Tool, install, measured
from kdump.primitives import compression
from tools import arguments

HISTORY: Final = ROOT / "bench" / "HISTORY.md"


class Case(NamedTuple):
    """Options of ``kdump dump``, and the aim as a multiple of the time of the classic dump, if any."""

    name: str
    options: tuple[str, ...]
    aim: float | None


CASES: Final = (
    Case("text", (), 1.5),
    Case("text, keys only", ("--keys-only",), 1.5),
    Case("jsonl", ("-o", "jsonl"), 1.5),
    Case("csv", ("-o", "csv"), 1.5),
    Case("csv of two columns", ("-o", "csv", "--fields", "offset,key"), 1.5),
    Case("raw", ("-o", "raw"), 1.5),
    Case("format string", ("-f", "%o %k\\n"), 1.5),
    Case("decode, a user's topic", ("-o", "jsonl", "--decode", "auto"), 1.5),
    Case("hex", ("-o", "jsonl", "--encoding", "hex"), 4),
    Case("base64", ("-o", "jsonl", "--encoding", "base64"), 4),
    Case("json", ("-o", "jsonl", "--encoding", "json"), 4),
    Case("redact", ("-o", "jsonl", "--redact"), 4),
    Case("key", ("-o", "jsonl", "--key", "user424242"), 1.2),
    Case("header", ("-o", "jsonl", "--header", "trace=000001234"), 1.2),
    Case("type", ("-o", "jsonl", "--type", "tombstone"), 1.2),
    Case("since", ("-o", "jsonl", "--since", "1900000000000"), 1.2),
    Case("producer id", ("-o", "jsonl", "--producer-id", "7"), 1.2),
    Case("grep", ("-o", "jsonl", "--grep", "note.:.needle"), 1.0),
    Case("type, count", ("--type", "data", "--count"), 1.2),
    Case("table", ("-o", "table"), None),
)
CHANGE: Final = 0.1
"""A ratio that differs by a larger part from the last one in the history is printed."""
ROWS: Final = 100_000
"""Minimum number of rows of a table per second."""


class Taken(NamedTuple):
    """Processor time of a case as a multiple of that of the classic dump, and its wall seconds."""

    ratio: float
    wall: float

    def misses(self, case: Case, records: int) -> bool:
        return records / self.wall < ROWS if case.aim is None else self.ratio > case.aim


def main() -> int:
    """Measure and print; return the exit status."""
    parser = arguments.parser(__doc__)
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--shape", choices=(*compression.NAMES, "no-headers"), default="none")
    parser.add_argument("--history", action="store_true")
    args = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = args.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        log = str(segments.make(folder, segments.SHAPES[args.shape], args.records))
        taken = measure(str(install(folder / "venv")), log, args.rounds)
    for case in CASES:
        one = taken[case.name]
        aim = case.aim or f"{ROWS:,} rows a second: {args.records / one.wall:,.0f}"
        print(f"{case.name:24} {one.ratio:6.2f}  aim {aim}{'  missed' if one.misses(case, args.records) else ''}")
    if args.history:
        note({name: one.ratio for name, one in taken.items()}, f"{args.records:,} records, {args.shape}")
    return int(any(taken[case.name].misses(case, args.records) for case in CASES))


def measure(program: str, log: str, rounds: int) -> dict[str, Taken]:
    """Return the times of each case; the classic dump runs in turn with it."""
    env = {"KDUMP_REDACT_KEY": "s" * 32}
    classic = Tool("classic", [program, "--files", log, "--print-data-log", "--jobs", "1"], env)
    taken = {}
    for case in CASES:
        tool = Tool(case.name, [program, "dump", log, *case.options, "--jobs", "1"], env)
        first, used = measured([classic, tool], (), rounds)
        taken[case.name] = Taken(used.cpu / first.cpu, used.wall)
    return taken


def note(ratios: dict[str, float], what: str) -> None:
    """Add the ratios to the history, and print those that differ from the last ones of the same records."""
    for text in changes(HISTORY.read_text("utf-8"), ratios, what):
        print(text)
    described = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    commit = subprocess.run(described, check=True, capture_output=True, text=True).stdout.strip()
    with HISTORY.open("a", encoding="utf-8") as out:
        out.write(f"| {commit} | {what} | {' | '.join(f'{ratios[case.name]:.2f}' for case in CASES)} |\n")


def changes(history: str, ratios: dict[str, float], what: str) -> list[str]:
    """Return a line for each case that differs by more than CHANGE from the last row of the same records, ``what``."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in history.splitlines() if line[:1] == "|"]
    last = next((row for row in reversed(rows) if row[1] == what), None)
    if last is None:
        return []
    before = dict(zip(rows[0][2:], last[2:], strict=False))
    return [
        f"{name}: {ratio:.2f}, {100 * (ratio / float(was) - 1):+.0f} % against {was} of {last[0]}"
        for name, ratio in ratios.items()
        if (was := before.get(name)) and abs(ratio / float(was) - 1) > CHANGE
    ]


if __name__ == "__main__":
    sys.exit(main())
