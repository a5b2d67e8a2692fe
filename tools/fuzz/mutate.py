"""Break real files in seeded ways, and compare kdump's output with that of the real tool of a release.

    python -m tools.fuzz.mutate                                   5,000 mutations, seed 1, release 4.2.2.
    python -m tools.fuzz.mutate --seed 7 --count 500 --release 2.8.2;
    python -m tools.fuzz.mutate --first 17 --count 1 --keep DIR   one of them again, its files kept in DIR.

Each mutated file is dumped in three ways by the original (all in one JVM) and by kdump (each run in a forked child with
limits on time and memory). Standard output and exit status must be equal to the byte, and of runs that end well also
the reports on standard error. --report writes the figures to golden/reports/. The exit status is 1 if a difference is
not in EXPLAINED, or if kdump crashes or hangs.
"""

import collections
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from kdump.internal_topics import DECODER_SWITCHES
from testing import GOLDEN, goldens
from tools import arguments
from tools.fuzz import forked, mutations
from tools.fuzz.lz4_distances import has_distance_0
from tools.record import original

INDEX_MODES = {"plain": [], "verify": ["--verify-index-only"], "sanity": ["--index-sanity-check"]}
MODES = {
    "log": {"shallow": [], "deep": ["--deep-iteration"], "data": ["--print-data-log"]},
    "index": INDEX_MODES,
    "timeindex": INDEX_MODES,
    "txnindex": {"plain": []},
    "snapshot": {"plain": []},
    "checkpoint": {"deep": ["--deep-iteration"]},
}
"""Suffix of a file -> the options with which it is dumped."""


class Sign(NamedTuple):
    """The signs of a known difference: texts of the original and of kdump, and the releases."""

    theirs: str = ""
    ours: str = ""
    before: tuple[int, ...] = (99,)
    """The first release without this difference."""
    has: Callable[[bytes], bool] | None = None
    """The sign in the bytes of the file."""

    def seen(self, theirs: str, ours: str, release: str, data: bytes) -> bool:
        """Return whether both texts, the release and the file match."""
        said = re.search(self.theirs, theirs) and re.search(self.ours, ours)
        return bool(said) and goldens.numbers(release) < self.before and (self.has is None or self.has(data))


EXPLAINED = {
    "the original ran out of memory": Sign("OutOfMemoryError"),
    "the original's zstd passed over one to three bytes after the last frame": Sign(
        r"\A(?!(.|\n)*[Zz]std)", "the zstd stream is broken: .*Unknown frame descriptor", before=(3, 5)
    ),
    "the original's liblz4 copied what its memory held": Sign(before=(2, 1), has=has_distance_0),
}
"""Reason for a known difference (docs/kafka-dump-log.md, "Where kdump differs on purpose") -> its sign."""

REPORTS = GOLDEN / "reports"
BATCH = 250
"""The number of mutants per JVM."""


class Pair(NamedTuple):
    """The same run of the original and of kdump."""

    release: str
    mutant: mutations.Mutant
    mode: str
    ours: forked.Run
    theirs: original.Run

    @property
    def differs(self) -> bool:
        if (self.ours.status, self.ours.stdout) != (self.theirs.status, self.theirs.stdout):
            return True
        return self.theirs.status == 0 and reports(self.ours.stderr) != reports(self.theirs.stderr)

    @property
    def reason(self) -> str:
        """The reason for a difference; empty if it is unknown."""
        theirs = (self.theirs.stderr + self.theirs.stdout).decode(errors="replace")
        ours = self.ours.stderr.decode(errors="replace")
        said = theirs, ours, self.release, self.mutant.files[self.mutant.target]
        return next((reason for reason, sign in EXPLAINED.items() if sign.seen(*said)), "")


def reports(stderr: bytes) -> str:
    """Return the reports of the tool on standard error, sorted."""
    return goldens.sorted_reports(original.without_noise(stderr.decode(errors="replace")))


def modes(mutant: mutations.Mutant) -> dict[str, list[str]]:
    """Return the options with which a mutant is dumped."""
    found = dict(MODES[mutant.suffix])
    if mutant.topic in DECODER_SWITCHES and mutant.suffix in {"log", "checkpoint"}:
        found["decoded"] = [f"--{DECODER_SWITCHES[mutant.topic]}"]
    return found


def pairs(mutants: list[mutations.Mutant], release: str, folder: Path) -> Iterator[Pair]:
    """Run both on each mutant in each mode."""
    cases, ours, by_name = {}, {}, {}
    for mutant in mutants:
        place = f"{mutant.number:06}"
        (folder / place).mkdir(parents=True, exist_ok=True)
        for name, data in mutant.files.items():
            (folder / place / name).write_bytes(data)
        for mode, options in modes(mutant).items():
            name = f"{place} {mode}"
            by_name[name] = mutant
            cases[name] = [*options, "--files", f"{place}/{mutant.target}"]
            ours[name] = forked.run(["--compat", release, *cases[name]], folder)
    for run in original.runs(release, cases, folder):
        yield Pair(release, by_name[run.name], run.name.split()[1], ours[run.name], run)


class Tally:
    """The counts of a run of this command."""

    def __init__(self) -> None:
        self.by_kind: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        self.total: collections.Counter[str] = collections.Counter()
        self.unexplained: list[Pair] = []

    def add(self, pair: Pair) -> None:
        """Count one pair of runs."""
        reason = pair.reason if pair.differs else ""
        found = {
            "runs": True,
            "ended by the original": pair.theirs.status != 0,
            "crashes": pair.ours.crashed,
            "hangs": pair.ours.hung,
            "differences": pair.differs and not reason,
            "explained": bool(reason),
        }
        for name, is_so in found.items():
            self.by_kind[f"{pair.mutant.suffix}: {pair.mutant.kind}"][name] += is_so
            self.total[name] += is_so
        if pair.differs and not reason:
            self.unexplained.append(pair)
        if reason:
            self.total[reason] += 1

    @property
    def failed(self) -> bool:
        """Whether kdump has a fault."""
        return any(self.total[name] for name in ("crashes", "hangs", "differences"))

    def markdown(self, title: str) -> str:
        """Return the figures as a table."""
        columns = ("runs", "ended by the original", "crashes", "hangs", "differences", "explained")
        lines = [f"# {title}", "", "| what was broken, and how | " + " | ".join(columns) + " |"]
        lines.append("|---" * (len(columns) + 1) + "|")
        for kind, found in [*sorted(self.by_kind.items()), ("**all**", self.total)]:
            lines.append(f"| {kind} | " + " | ".join(str(found[name]) for name in columns) + " |")
        reasons = [f"* {reason}: {self.total[reason]} runs" for reason in EXPLAINED if self.total[reason]]
        if reasons:
            lines += ["", 'Explained (docs/kafka-dump-log.md, "Where kdump differs on purpose"):', "", *reasons]
        return "\n".join(lines) + "\n"


def show(pair: Pair) -> None:
    """Print where two runs differ."""
    _, mutant, mode, ours, theirs = pair
    print(f"--- {mutant.number} {mode}: {mutant.kind}, {mutant.subject}: status {ours.status}, want {theirs.status}")
    print(goldens.first_difference(ours.stdout.decode(errors="replace"), theirs.stdout.decode(errors="replace")))
    print("  kdump:   ", ours.stderr.decode(errors="replace")[-600:].strip())
    print("  original:", original.without_noise(theirs.stderr.decode(errors="replace"))[:500].strip(), flush=True)


def main() -> int:
    """Run the command line."""
    parser = arguments.parser(__doc__, release="4.2.2", seed=1, count=5000)
    parser.add_argument("--first", type=int, default=0, help="number of the first mutation")
    parser.add_argument("--only", default="", metavar="TEXT", help="only kinds and subjects with this in their name")
    parser.add_argument("--keep", type=Path, help="keep the files in this folder")
    parser.add_argument("--show", type=int, default=20, help="differences to show (%(default)s)")
    parser.add_argument("--report", action="store_true", help="write the figures to golden/reports/")
    options = parser.parse_args()
    tally, started = Tally(), time.monotonic()
    made = (mutations.make(options.seed, options.first + number) for number in range(options.count))
    wanted = [mutant for mutant in made if options.only in f"{mutant.kind} {mutant.subject}"]
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary).resolve()
        for start in range(0, len(wanted), BATCH):
            for pair in pairs(wanted[start : start + BATCH], options.release, folder):
                tally.add(pair)
                if pair.differs and not pair.reason and len(tally.unexplained) <= options.show:
                    show(pair)
    figures = ", ".join(f"{count} {name}" for name, count in tally.total.items())
    print(f"{len(wanted)} mutations, {figures}, {time.monotonic() - started:.0f} s")
    if options.report:
        REPORTS.mkdir(exist_ok=True)
        title = f"{len(wanted)} mutations of real files (seed {options.seed}), kdump against Kafka {options.release}"
        path = REPORTS / f"mutations-{options.release}.md"
        path.write_text(tally.markdown(title), encoding="utf-8")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
