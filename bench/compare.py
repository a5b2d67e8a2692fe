"""Compares the processor time of two builds of kdump, for a pull request and its base.

    python -m bench.compare OLD NEW [--records N]    # two installed programs

Prints a table of ratios, the medians of some rounds in turns. The exit status is 1 if the new one takes more than LIMIT
times as long in a case.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from bench import runs, segments
from tools import arguments

LIMIT = 1.15
"""A ratio of processor seconds above this is a loss, beyond the variation of a shared machine."""
ROUNDS = 5
CASES = {
    "--print-data-log": ("none", ["--print-data-log", "--files"]),
    "--print-data-log, zstd": ("zstd", ["--print-data-log", "--files"]),
    "--deep-iteration, magic 1": ("magic1", ["--deep-iteration", "--files"]),
    "dump -o jsonl": ("none", ["dump", "-o", "jsonl"]),
    "check": ("zstd", ["check", "-q"]),
}
"""The command -> the shape of the segment, and the words before its path."""


def main(words: list[str]) -> int:
    parser = arguments.parser(__doc__, records=500_000)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    given = parser.parse_args(words)
    tools = [runs.kdump("compiled", given.old.absolute()), runs.kdump("compiled", given.new.absolute())]
    print("| case | old, CPU s | new, CPU s | new : old | |\n|---|---|---|---|---|")
    lost = False
    with tempfile.TemporaryDirectory() as folder:
        for name, (shape, options) in CASES.items():
            path = segments.make(Path(folder), segments.SHAPES[shape], given.records)
            old, new = runs.measured(tools, [*options, str(path)], ROUNDS)
            ratio = new.cpu / old.cpu
            slower = ratio > LIMIT
            lost |= slower
            print(f"| {name} | {old.cpu:.2f} | {new.cpu:.2f} | {ratio:.2f} | {'slower' if slower else ''} |")
    return int(lost)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
