"""Sections of golden/reports/fuzz.md: figures of tried inputs, by target."""

from collections import Counter
from collections.abc import Mapping

from kdump import kernel
from testing import GOLDEN

REPORT = GOLDEN / "reports" / "fuzz.md"
HEAD = '# Inputs that were not meant for kdump\n\nHow each section is made: SECURITY.md, "Tests of the promises".\n'
FIGURES = ("inputs", "bytes", "crashes", "hangs")
GUIDED = ("seconds", *FIGURES)


class Figures:
    """The results of the targets so far. The report is written at each step, so that a run may be ended at any time."""

    def __init__(self, seed: int, title: str | None) -> None:
        self._seed, self._title = seed, title
        self._tallies: dict[str, Counter[str]] = {}

    def add(self, name: str, part: Counter[str]) -> None:
        """Add the counts of further inputs."""
        self._tallies.setdefault(name, Counter()).update(part)
        if self._title is not None:
            write_section(self._title, self.text())

    def text(self) -> str:
        rows = {name: row(name, tally, FIGURES) for name, tally in self._tallies.items()}
        return f"Seed {self._seed}; kernel: {kernel.build()}.\n\n" + table(FIGURES, rows)

    @property
    def failed(self) -> bool:
        """Whether an input crashed or hung."""
        return any(map(is_failed, self._tallies.values()))


def is_failed(tally: Counter[str]) -> bool:
    """Return whether an input crashed or hung."""
    return bool(tally["crashes"] or tally["hangs"])


def row(name: str, tally: Counter[str], columns: tuple[str, ...]) -> str:
    """Return the line of a target."""
    return f"| {name} | " + " | ".join(str(tally[column]) for column in columns) + " |"


def table(columns: tuple[str, ...], rows: Mapping[str, str]) -> str:
    """Return lines of targets below the names of their columns."""
    return "\n".join(["| target | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|", *rows.values()])


def write_section(title: str, text: str) -> None:
    """Write figures into the section of the report with this title. Other sections stay."""
    kept = sections()
    kept[title] = f"\n{text}\n"
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text("\n## ".join([HEAD, *("\n".join(item) for item in sorted(kept.items()))]), "utf-8")


def write_guided(title: str, target: str, tally: Counter[str]) -> None:
    """Replace the line of a target that was guided by coverage. Lines of other targets stay."""
    begin = f"| target | {' | '.join(GUIDED)} |\n"
    _, _, lines = sections().get(title, "").partition(begin)
    rows = {line.split(" | ")[0].removeprefix("| "): line for line in lines.splitlines()[1:] if line}
    rows[target] = row(target, tally, GUIDED)
    write_section(title, f"Kernel: {kernel.build()}.\n\n{table(GUIDED, dict(sorted(rows.items())))}")


def sections() -> dict[str, str]:
    """Return the sections of the report by title."""
    _, *rest = REPORT.read_text("utf-8").split("\n## ") if REPORT.exists() else [HEAD]
    return dict(section.split("\n", 1) for section in rest)
