"""Findings on a terminal: a table for each file that has something to say."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from kdump.findings import Level
from kdump.primitives.terminal import harmless_line
from kdump.printers.findings_report import MOST, WORDS, CheckSummary, choose, conclusion
from kdump.printers.table import Quiet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kdump.findings import Finding

STYLES: Final = {Level.REMARK: "dim", Level.DERIVED: "yellow", Level.LOG: "bold red"}


TITLES: Final = ("", "byte", "what", "expected", "found")
BARE: Final = 2
"""Columns that need no header: the level and the text."""


class TableReport:
    """Draws with rich: colours, and columns of the terminal's width."""

    def __init__(self, out: IO[str], *, quiet: bool = False, remarks: bool = False) -> None:
        self._console = Quiet(file=out, highlight=False)
        self._quiet = quiet
        self._remarks = remarks

    def file(self, name: str, findings: Sequence[Finding]) -> None:
        shown = choose(findings, quiet=self._quiet, remarks=self._remarks)
        if not shown:
            return
        self._console.print(Text(harmless_line(name), style="bold"))
        cells = [[WORDS[f.level], f.position, f.text, f.expected, f.found] for f in shown[:MOST]]
        used = [number for number in range(len(TITLES)) if any(row[number] is not None for row in cells)]
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=len(used) > BARE)
        for title in (TITLES[number] for number in used):
            table.add_column(title, overflow="fold", justify="right" if title == "byte" else "left")
        for finding, row in zip(shown, cells, strict=False):
            told = ["" if row[number] is None else harmless_line(str(row[number])) for number in used]
            table.add_row(*map(Text, told), style=STYLES[finding.level])
        self._console.print(table)
        if len(shown) > MOST:
            self._console.print(f"... and {len(shown) - MOST} more (--json writes them all)")
        for advice in dict.fromkeys(finding.advice for finding in shown if finding.advice):
            self._console.print(Text(harmless_line(f"What to do: {advice}"), style="italic"))
        self._console.print()

    def end(self, summary: CheckSummary, status: int) -> None:
        if self._quiet:
            return
        for number, text in enumerate(conclusion(summary, status)):
            style = "bold green" if not status else "bold red" if summary.damaged else "bold"
            if number and not text.startswith(("Damaged", "What to do", "No log")):
                style = "dim"
            self._console.print(Text(harmless_line(text), style=style))
