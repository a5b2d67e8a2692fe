"""Prints the results of commands that check: findings, summary and verdict. Adds their exit status to the session."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from itertools import pairwise
from typing import IO, TYPE_CHECKING, Any, Final, cast

import click

from kdump.command_line.options import PARTITIONS
from kdump.errors import ExitStatus
from kdump.findings import status
from kdump.output.stdout import open_output
from kdump.primitives.messages import printable
from kdump.primitives.terminal import shell_word
from kdump.printers.findings_report import CheckSummary, JsonReport, PlainReport, Shown, TerminalReport

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kdump.broker_start.started import Started
    from kdump.command_line.session import Session
    from kdump.findings import Finding
    from kdump.printers.findings_report import Report


KEPT: Final = 1000
"""If this number of findings is kept for the verdict, only grave ones are added."""
FINDINGS: Final = [
    *PARTITIONS,
    click.option(
        "-o",
        "--output",
        type=click.Choice(("text", "jsonl")),
        default="text",
        show_default=True,
        help="Text for people, or JSON lines: kdump/findings.schema.json describes them.",
    ),
    click.option("--json", "as_json", is_flag=True, help="The same as -o jsonl."),
    click.option("--notes", "--remarks", "remarks", is_flag=True, help="Print all notes. JSON lines always have them."),
    click.option("-v", "--verbose", is_flag=True, help="Print every finding. By default similar ones are folded."),
]


def _without(options: set[str], words: list[str]) -> list[str]:
    kept = [word for before, word in pairwise(["", *words]) if options.isdisjoint({before, word})]
    return [word for word in kept if word.partition("=")[0] not in options]


class FindingsOutput:
    """Passes findings to a report at once, and counts them for the summary and the verdict at the end."""

    def __init__(self, run: Session, report: Report) -> None:
        self._run = run
        self._report = report
        self.summary = CheckSummary()
        words = _without({"--jobs"}, sys.argv[1:])  # it has no effect on the output
        whole = _without({"--topic", "--partition"}, words)
        self.summary.is_partial = whole != words
        self.summary.again = lambda: " ".join(("kdump", *(printable(shell_word(word)) for word in whole)))
        self._found: list[Finding] = []
        self._started: list[Started] = []

    def add(
        self, findings: Sequence[Finding], *, segments: int = 0, batches: int = 0, size: int = 0, folder: str = ""
    ) -> None:
        """Print findings under ``folder``, or if it is empty, under their files. Add all numbers to the summary."""
        run, summary = self._run, self.summary
        summary.segments += segments
        summary.batches += batches
        summary.size += size
        summary.add(findings, folder, has_batches=bool(batches))
        if not findings:
            return
        run.progress.clear()
        blocks: dict[str, list[Finding]] = {}
        for finding in findings:
            blocks.setdefault(folder or finding.file, []).append(finding)
        for name, block in blocks.items():
            self._report.block(name, block)
        for finding in findings:
            if not finding.is_remark and (finding.is_grave or len(self._found) < KEPT):
                self._found.append(finding)
        found = status(findings)
        run.reported.statuses |= {found} if found else set()

    def start(self, started: Started) -> None:
        """Print the result of one broker's dry start, and its findings, except a second fatal one on a file."""
        self._run.progress.clear()
        self._report.start(started.result)
        new = started.join(self._found)
        self._started.append(started)
        self.add(new)

    def end(self) -> None:
        """Print the totals; after dry starts or grave findings also the verdicts."""
        self._run.progress.clear()
        if self._started or any(one.is_grave for one in self._found):
            from kdump.broker_start.started import verdicts

            unreadable = self._run.status == ExitStatus.UNREADABLE
            self.summary.verdicts = verdicts(self._started, self._found, unreadable=unreadable)
        self._report.end(self.summary, self._run.status)


@contextmanager
def findings_output(run: Session, given: dict[str, Any]) -> Iterator[FindingsOutput]:
    """Yield a printer of findings; print the totals after a block without error. ``given`` has the options FINDINGS."""
    with open_output() as out:
        as_json = given["as_json"] or given["output"] == "jsonl"
        show = Shown(quiet=run.quiet, remarks=given["remarks"], verbose=given["verbose"])
        output = FindingsOutput(run, JsonReport(out, quiet=run.quiet) if as_json else _for_people(show))
        yield output
        output.end()


def _for_people(show: Shown) -> Report:
    if sys.stdout.isatty():
        return TerminalReport(sys.stdout, show)
    return PlainReport(cast("IO[str]", sys.stdout), show)
