"""Sections of golden/reports/fuzz.md: figures of inputs that were tried, by target."""

from collections import Counter
from collections.abc import Mapping

from kdump import kernel
from testing import GOLDEN

REPORT = GOLDEN / "reports" / "fuzz.md"
HEAD = '# Inputs that were not meant for kdump\n\nHow each section is made: SECURITY.md, "How it is held".\n'
FIGURES = ("inputs", "bytes", "crashes", "hangs")
GUIDED = ("seconds", *FIGURES)


class Figures:
    """What the targets came to so far. A report has it at each step, so that a run may be ended at any time."""

    def __init__(self, seed: int, title: str | None) -> None:
        self._seed, self._title = seed, title
        self._tallies: dict[str, Counter[str]] = {}

    def add(self, name: str, part: Counter[str]) -> None:
        """Count some more inputs."""
        self._tallies.setdefault(name, Counter()).update(part)
        if self._title is not None:
            write_section(self._title, self.text())

    def text(self) -> str:
        """Return the table."""
        rows = {name: row(name, tally, FIGURES) for name, tally in self._tallies.items()}
        return f"Seed {self._seed}; kernel: {kernel.build()}.\n\n" + table(FIGURES, rows)

    @property
    def failed(self) -> bool:
        """Whether anything crashed or hung."""
        return any(map(is_failed, self._tallies.values()))


def is_failed(tally: Counter[str]) -> bool:
    """Return whether anything crashed or hung."""
    return bool(tally["crashes"] or tally["hangs"])


def row(name: str, tally: Counter[str], columns: tuple[str, ...]) -> str:
    """Return the line of a target."""
    return f"| {name} | " + " | ".join(str(tally[column]) for column in columns) + " |"


def table(columns: tuple[str, ...], rows: Mapping[str, str]) -> str:
    """Return lines of targets under the names of their columns."""
    return "\n".join(["| target | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|", *rows.values()])


def write_section(title: str, text: str) -> None:
    """Put figures into the section of the report that has this title; the others stay."""
    kept = sections()
    kept[title] = f"\n{text}\n"
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text("\n## ".join([HEAD, *("\n".join(item) for item in sorted(kept.items()))]), "utf-8")


def write_guided(title: str, target: str, tally: Counter[str]) -> None:
    """Put the line of a target that was guided by coverage in the place of its last one; those of others stay."""
    begin = f"| target | {' | '.join(GUIDED)} |\n"
    _, _, lines = sections().get(title, "").partition(begin)
    rows = {line.split(" | ")[0].removeprefix("| "): line for line in lines.splitlines()[1:] if line}
    rows[target] = row(target, tally, GUIDED)
    write_section(title, f"Kernel: {kernel.build()}.\n\n{table(GUIDED, dict(sorted(rows.items())))}")


def sections() -> dict[str, str]:
    """Return what stands in the report, by title."""
    _, *rest = REPORT.read_text("utf-8").split("\n## ") if REPORT.exists() else [HEAD]
    return dict(section.split("\n", 1) for section in rest)
