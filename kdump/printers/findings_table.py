"""Findings on a terminal: a table for each file that has something to say."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from kdump.findings import Level
from kdump.printers.findings import MOST, WORDS, Summary, choose, conclusion
from kdump.printers.table import Quiet
from kdump.text import harmless

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kdump.findings import Finding

STYLES: Final = {Level.REMARK: "dim", Level.DERIVED: "yellow", Level.LOG: "bold red"}


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
        self._console.print(Text(harmless(name), style="bold"))
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for title in ("", "byte", "what", "expected", "found"):
            table.add_column(title, overflow="fold", justify="right" if title == "byte" else "left")
        for finding in shown[:MOST]:
            cells = [WORDS[finding.level], finding.position, finding.text, finding.expected, finding.found]
            told = ["" if cell is None else harmless(str(cell)) for cell in cells]
            table.add_row(*map(Text, told), style=STYLES[finding.level])
        self._console.print(table)
        if len(shown) > MOST:
            self._console.print(f"... and {len(shown) - MOST} more (--json writes them all)")
        for advice in dict.fromkeys(finding.advice for finding in shown if finding.advice):
            self._console.print(Text(harmless(f"What to do: {advice}"), style="italic"))
        self._console.print()

    def end(self, summary: Summary, status: int) -> None:
        if self._quiet:
            return
        for number, text in enumerate(conclusion(summary)):
            self._console.print(Text(text, style="dim" if number else "bold green" if not status else "bold"))
