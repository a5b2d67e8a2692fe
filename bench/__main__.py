"""``python -m bench``: kdump beside the newest DumpLogSegments, in turn, to bench/RESULTS.md.

Each case runs --rounds times with each tool, the tools taking turns; the table holds medians. Before that the outputs
are compared. The original comes from Maven Central (tools/fetch_jars.py), the segments are made once and kept.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bench import micro, runs, segments
from kdump import __version__, kernel

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent


class Case(NamedTuple):
    """A segment, what is asked of it, and the least ratio of wall time that is aimed at."""

    name: str
    shape: str
    options: tuple[str, ...] = ("--print-data-log",)
    pipe: bool = False
    records: int | None = None
    """Instead of the number of records that is asked for."""
    aim: float = 1.0


CASES = [
    Case("uncompressed", "none", aim=15),
    Case("uncompressed, into a pipe", "none", pipe=True, aim=12),
    Case("headers only", "none", (), aim=3),
    Case("deep, no payloads", "none", ("--deep-iteration",), aim=15),
    *(Case(name, name, aim=8 if name != "gzip" else 1) for name in ("zstd", "lz4", "snappy", "gzip")),
    Case("small records", "small", aim=15),
    Case("large records", "large"),
    Case("large records, zstd", "large-zstd"),
    Case("magic 1", "magic1", records=100_000),
    Case("magic 1, lz4", "magic1-lz4", records=100_000),
    Case("magic 0", "magic0", records=100_000),
    Case("magic 0, gzip", "magic0-gzip", records=100_000),
    Case("a small file, whole process", "none", records=35),
]


def results(options: argparse.Namespace) -> Iterator[str]:
    """Yield the lines of the table, case by case."""
    tools = [runs.original(options.release), *map(runs.kdump, options.builds)]
    yield (
        "| `--files` with `--print-data-log` | "
        + " | ".join(f"{tool.name}: s, CPU s, MiB" for tool in tools)
        + " | wall, times faster | CPU, times less | aim | output |"
    )
    yield "|---" * (len(tools) + 5) + "|"
    for case in CASES:
        if not re.search(options.k, case.name):
            continue
        path = segments.make(options.data, segments.SHAPES[case.shape], case.records or options.records)
        arguments = ["--files", str(path), *case.options]
        same = len({runs.digest(tool, arguments) for tool in tools}) == 1
        taken: dict[str, list[runs.Measured]] = {tool.name: [] for tool in tools}
        for _ in range(options.rounds):
            for tool in tools:
                taken[tool.name].append(runs.measure(tool, arguments, pipe=case.pipe))
        middle = [runs.medians(taken[tool.name]) for tool in tools]
        cells = [f"{one.wall:.2f}, {one.cpu:.2f}, {one.peak >> 20}" for one in middle]
        wall = " / ".join(f"{middle[0].wall / one.wall:.1f}" for one in middle[1:])
        cpu = " / ".join(f"{middle[0].cpu / one.cpu:.1f}" for one in middle[1:])
        size = path.stat().st_size / 1e6
        said = "equal" if same else "DIFFERS"
        yield f"| {case.name} ({size:.3g} MB) | " + " | ".join(cells) + f" | {wall} | {cpu} | {case.aim:g} | {said} |"


def machine(options: argparse.Namespace) -> str:
    """Say where and with what this was measured."""
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text("utf-8"))
    java = subprocess.run(["java", "-version"], capture_output=True, check=True).stderr.decode().splitlines()[0]
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {cpu[1] if cpu else platform.processor()}, {os.cpu_count()} processors, load "
        f"{load} when it began; {platform.system()} {platform.release()}, Python {platform.python_version()}, {java}; "
        f"kdump {__version__} (kernel: {kernel.build()}), DumpLogSegments {options.release}; "
        f"{options.records:,} records, medians of {options.rounds}, files in the page cache."
    )


def main() -> int:
    """Measure, compare, write the table; exit status 1 when an output differs."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--records", type=int, default=200_000, help="records of a segment (the issue's: 2000000)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--release", default="4.3.1", help="of the original")
    parser.add_argument("--builds", nargs="*", default=["compiled", "python"], help="builds of kdump's kernel")
    parser.add_argument("--data", type=Path, default=HERE / "data", help="where segments are made and kept")
    parser.add_argument("--out", type=Path, default=HERE / "RESULTS.md")
    parser.add_argument("-k", default="", help="only the cases whose name holds this regular expression")
    parser.add_argument("--no-micro", action="store_true", help="leave out the stages")
    options = parser.parse_args()
    lines = ["# Measured", "", machine(options), ""]
    for line in results(options):
        print(line, flush=True)
        lines.append(line)
    lines += [
        "",
        "Where two numbers stand, the first is for the first of kdump's columns. Wall time hangs on what else the",
        "machine does; the original also uses a second processor for its compiler and its garbage collector.",
    ]
    if not options.no_micro:
        lines += ["", "## Stages", "", *micro.table(options.data, options.records)]
    options.out.write_text("\n".join(lines) + "\n", "utf-8")
    return int(any(line.endswith("| DIFFERS |") for line in lines))


if __name__ == "__main__":
    sys.exit(main())
