"""``python -m bench``: compares kdump with the newest DumpLogSegments, and writes bench/RESULTS.md.

Each case runs --rounds times with each tool, the tools taking turns; the tables hold medians. Before that the outputs
are compared. The original comes from Maven Central (tools.record.fetch_jars); kdump is installed as a user installs it,
into a new environment under --data, where the segments are made once and kept too. The whole of the file is
written again. Run it on a machine that does nothing else.
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

from bench import indexes, internal, memory, micro, runs, segments
from kdump.internal_topics import DECODER_SWITCHES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HERE = Path(__file__).parent
LEGACY = 100_000
"""Messages of magic 0 and 1."""
PLAIN = 200_000
"""Maximum number of records for kdump without its kernel."""
FEW = 3
"""Maximum number of rounds for kdump without its kernel."""
INDEXED = {"index": 1 << 30, "timeindex": 1 << 25}
"""Bytes of the segment whose index is verified, an entry per batch of 16 KiB. For each entry of a time index the
original reads headers from the start of the log on: 1 GiB takes it the better part of an hour."""
TEN_TIMES = 10
JOINED = 7
"""How often the shorter of two compared files repeats a tenth of the records; the longer file has 2 GB."""
WITHIN = 0.1
MOST_MEMORY = 100 << 20


class Case(NamedTuple):
    """What a case asks of a file, and its required ratio of wall time, if any."""

    name: str
    shape: str
    options: tuple[str, ...] = ("--print-data-log",)
    pipe: bool = False
    records: int | None = None
    """Number of records, in place of the one given on the command line."""
    aim: float | None = None

    def file(self, data: Path, records: int) -> Path:
        """Return the file to dump; make it first if it does not exist."""
        if self.shape in internal.SOURCES:
            return internal.make(data, self.shape, min(records, internal.RECORDS))
        if self.shape in INDEXED:
            folder = data / f"indexed-{INDEXED[self.shape]}"
            folder.mkdir(parents=True, exist_ok=True)
            if not (folder / f"{indexes.STEM}.timeindex").exists():
                indexes.make(folder, INDEXED[self.shape], segments.BATCH_BYTES)
            return folder / f"{indexes.STEM}.{self.shape}"
        return segments.make(data, segments.SHAPES[self.shape], self.records or records)


CASES = [
    Case("uncompressed", "none", aim=30),
    Case("uncompressed, into a pipe", "none", pipe=True, aim=30),
    Case("headers only", "none", (), aim=6),
    Case("deep, no payloads", "none", ("--deep-iteration",)),
    *(Case(name, name, aim=15) for name in ("zstd", "lz4", "snappy", "gzip")),
    Case("small records", "small"),
    Case("large records", "large"),
    Case("large records, zstd", "large-zstd"),
    Case("magic 1", "magic1", records=LEGACY, aim=3),
    Case("magic 1, lz4", "magic1-lz4", records=LEGACY, aim=3),
    Case("magic 0", "magic0", records=LEGACY, aim=3),
    Case("magic 0, gzip", "magic0-gzip", records=LEGACY, aim=3),
    *(Case(f"{topic}, decoded", topic, (f"--{DECODER_SWITCHES[topic]}",), aim=4) for topic in internal.SOURCES),
    Case("--verify-index-only, 65,536 entries", "index", ("--verify-index-only",), aim=3),
    Case("--verify-index-only, time index of 2,048 entries", "timeindex", ("--verify-index-only",), aim=3),
    Case("a small file, whole process", "none", records=35, aim=3),
]


class Row(NamedTuple):
    """A line of a table, whether it reaches its aim, and whether the output equals the original's."""

    text: str
    held: bool
    same: bool


def table(
    cases: Sequence[Case], tools: Sequence[runs.Tool], options: argparse.Namespace, *, records: int, aims: bool
) -> Iterator[Row]:
    """Measure each case; the first tool is the original. Without ``aims`` there are few rounds and no aims."""
    yield Row(
        "| case | "
        + " | ".join(f"{tool.name}: s, CPU s, MiB" for tool in tools)
        + " | wall, times faster | CPU, times less | aim | | output |",
        True,
        True,
    )
    yield Row("|---" * (len(tools) + 6) + "|", True, True)
    for case in cases:
        if not re.search(options.k, case.name):
            continue
        path = case.file(options.data, records)
        arguments = ["--files", str(path), *case.options]
        same = len({runs.digest(tool, arguments) for tool in tools}) == 1
        rounds = options.rounds if aims else min(options.rounds, FEW)
        middle = runs.measured(tools, arguments, rounds, pipe=case.pipe)
        cells = " | ".join(f"{one.wall:.2f}, {one.cpu:.2f}, {one.peak >> 20}" for one in middle)
        first, own = middle[0], middle[1]
        ratio, aim = first.wall / own.wall, case.aim if aims else None
        held = (aim is None or ratio >= aim) and own.peak < MOST_MEMORY
        verdict = "" if aim is None else "reached" if ratio >= aim else "MISSED"
        if own.peak >= MOST_MEMORY:
            verdict += " MEMORY"
        yield Row(
            f"| {case.name} ({path.stat().st_size / 1e6:.3g} MB) | {cells} | {ratio:.1f} | {first.cpu / own.cpu:.1f} | "
            f"{'' if aim is None else format(aim, 'g')} | {verdict} | {'equal' if same else 'DIFFERS'} |",
            held,
            same,
        )


def proportions(tool: runs.Tool, options: argparse.Namespace) -> Iterator[Row]:
    """Compare runs of kdump with each other: JSON lines with classic text, ten times the file with the file."""
    yield Row("| | s | s | ratio | aim | |", True, True)
    yield Row("|---" * 6 + "|", True, True)
    whole = str(Case("", "none").file(options.data, options.records))
    small = str(Case("", "none").file(options.data, 35))
    text, json = (
        runs.measured([tool], words, options.rounds)[0].wall
        for words in (["--files", whole, "--print-data-log"], ["dump", whole, "-o", "jsonl"])
    )
    yield _proportion("`--print-data-log` beside `dump -o jsonl`", text, json, text / json, 0.5)
    for name, shape in (("uncompressed", "none"), ("zstd", "zstd")):
        part = Case("", shape).file(options.data, options.records // TEN_TIMES)
        tenth, whole = (str(joined(part, times)) for times in (JOINED, TEN_TIMES * JOINED))
        start, one, ten = (
            runs.measured([tool], ["--files", path, "--print-data-log"], options.rounds)[0].wall
            for path in (small, tenth, whole)
        )
        ratio = TEN_TIMES * (one - start) / (ten - start)
        title = f"{name}: {TEN_TIMES} times the time of a tenth of the file, beside the file (both less the start)"
        yield _proportion(title, TEN_TIMES * (one - start), ten - start, ratio, 1 - WITHIN)


def joined(path: Path, times: int) -> Path:
    """Return a segment that repeats the batches of another one ``times`` times."""
    made = path.parent / f"{times}-times" / path.name
    if not made.exists():
        made.parent.mkdir(exist_ok=True)
        partial = made.with_suffix(".partial")
        with partial.open("wb") as out:
            for _ in range(times):
                out.write(path.read_bytes())
        partial.rename(made)
    return made


def _proportion(name: str, one: float, other: float, ratio: float, aim: float) -> Row:
    held = ratio >= aim
    return Row(
        f"| {name} | {one:.2f} | {other:.2f} | {ratio:.2f} | {aim:g} | {'reached' if held else 'MISSED'} |", held, True
    )


def machine(program: Path, options: argparse.Namespace) -> str:
    """Return a description of the machine and the versions."""
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text("utf-8"))
    java = subprocess.run(["java", "-version"], capture_output=True, check=True).stderr.decode().splitlines()[0]
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {cpu[1] if cpu else platform.processor()}, {os.cpu_count()} processors, load "
        f"{load} when it began; {platform.system()} {platform.release()}, Python {platform.python_version()}, {java}; "
        f"{runs.version(program)}, DumpLogSegments {options.release}; {options.records:,} records of magic 2 and "
        f"{LEGACY:,} of older ones, {min(options.records, internal.RECORDS):,} of Kafka's own topics, medians of "
        f"{options.rounds}, files in the page cache."
    )


def sections(program: Path, options: argparse.Namespace) -> Iterator[Row]:
    """Yield the lines of the results."""
    original, compiled, plain = (
        runs.original(options.release),
        *(runs.kdump(n, program) for n in ("compiled", "no kernel")),
    )
    for text in ("# Measured", "", "`python -m bench` writes this file.", "", machine(program, options), ""):
        yield Row(text, True, True)
    yield from table(CASES, [original, compiled], options, records=options.records, aims=True)
    few = min(options.records, PLAIN)
    if not options.no_plain:
        yield Row(f"\nWithout the kernel, {few:,} records:\n", True, True)
        yield from table(CASES, [original, plain], options, records=few, aims=False)
    if not options.k:
        yield Row("\nRuns of kdump beside each other:\n", True, True)
        yield from proportions(compiled, options)
        first = "the first of three brings it into the page cache"
        yield Row(f"\nMemory, over a sparse segment of batches of {memory.BATCH >> 20} MiB; {first}:\n", True, True)
        for text, held in memory.table(compiled, options.data):
            yield Row(text, held, True)
        yield Row("\nStages, in one process:\n", True, True)
        for text in micro.table(options.data, options.records):
            yield Row(text, True, True)


def main() -> int:
    """Measure, compare, write the results; exit status 1 when an output differs, 3 when an aim is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000, help="records of a segment")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--release", default="4.3.1", help="of the original")
    parser.add_argument("--data", type=Path, default=HERE / "data", help="where segments are made and kept")
    parser.add_argument("--out", type=Path, default=HERE / "RESULTS.md")
    parser.add_argument("-k", default="", help="only the cases whose name holds this regular expression")
    parser.add_argument("--no-plain", action="store_true", help="leave out kdump without its kernel")
    parser.add_argument("--prepare", action="store_true", help="only install kdump and make the segments")
    options = parser.parse_args()
    options.data.mkdir(parents=True, exist_ok=True)
    program = runs.install(options.data / "venv")
    for records in {options.records, options.records // TEN_TIMES, min(options.records, PLAIN)}:
        for case in CASES:
            case.file(options.data, records)
    if options.prepare:
        return 0
    rows = []
    for row in sections(program, options):
        print(row.text, flush=True)
        rows.append(row)
    options.out.write_text("\n".join(row.text for row in rows) + "\n", "utf-8")
    return 1 if not all(row.same for row in rows) else 0 if all(row.held for row in rows) else 3


if __name__ == "__main__":
    sys.exit(main())
