"""Findings on a terminal: a table for each partition that has something to say."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from kdump.findings import Level
from kdump.primitives.terminal import harmless_line
from kdump.printers.findings_report import CheckSummary, Shown, conclusion, word
from kdump.printers.table import Quiet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kdump.broker_start.outcome import BrokerStart
    from kdump.findings import Finding

STYLES: Final = {Level.REMARK: "dim", Level.DERIVED: "yellow", Level.LOG: "bold red"}


TITLES: Final = ("", "where", "what", "expected", "found")
TEXT: Final = TITLES.index("what")
BARE: Final = 2
"""Columns that need no header: the level and the text."""


class TableReport:
    """Draws with rich: colours, and columns of the terminal's width."""

    def __init__(self, out: IO[str], show: Shown) -> None:
        self._console = Quiet(file=out, highlight=False)
        self._show = show

    def block(self, name: str, findings: Sequence[Finding]) -> None:
        block = self._show.block(name, findings)
        if not block.lines:
            return
        self._console.print(Text(harmless_line(block.title), style="bold"))
        cells = [[word(f), place.rstrip(": ") or None, f.text, f.expected, f.found] for f, place, _ in block.lines]
        used = [number for number in range(len(TITLES)) if any(row[number] is not None for row in cells)]
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=len(used) > BARE)
        for title in (TITLES[number] for number in used):
            table.add_column(title, overflow="fold")
        for line, row in zip(block.lines, cells, strict=True):
            texts = ["" if row[number] is None else harmless_line(str(row[number])) for number in used]
            table.add_row(*map(Text, texts), style=STYLES[line.finding.level])
            if line.more:
                texts = [harmless_line(line.more) if number == TEXT else "" for number in used]
                table.add_row(*map(Text, texts), style="dim")
        self._console.print(table)
        for advice in block.advice:
            self._console.print(Text(harmless_line(f"What to do: {advice}"), style="italic"))
        self._console.print()

    def start(self, start: BrokerStart) -> None:
        """Print nothing: the findings say it."""

    def end(self, summary: CheckSummary, status: int) -> None:
        if self._show.quiet:
            return
        for number, text in enumerate(conclusion(summary, status)):
            style = "bold green" if not status else "bold red" if summary.damaged or summary.poisoned else "bold"
            if number and not text.startswith(
                ("Damaged", "Consumers stop", "What to do", "No log", "safe", "DO NOT", "broker", "  ")
            ):
                style = "dim"
            self._console.print(Text(harmless_line(text), style=style))
