"""What commands that check share: findings to the report, to the counts of the summary, to the exit status."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, cast

from kdump.commands import session
from kdump.findings import Level
from kdump.output.stdout import open_output
from kdump.printers.findings_report import CheckSummary, JsonReport, PlainReport

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kdump.commands.session import Session
    from kdump.findings import Finding
    from kdump.printers.findings_report import Report


class Telling:
    """Tells what is found, part after part."""

    def __init__(self, run: Session, report: Report) -> None:
        self._run = run
        self._report = report
        self.summary = CheckSummary()

    def tell(
        self, findings: Sequence[Finding], *, segments: int = 0, batches: int = 0, size: int = 0, folder: str = ""
    ) -> None:
        """Tell what was found in a part of so many segments, batches and bytes of log; ``folder`` is a partition's."""
        run, summary = self._run, self.summary
        summary.segments += segments
        summary.batches += batches
        summary.size += size
        summary.add(findings, folder)
        if findings:
            run.progress.clear()
        files: dict[str, list[Finding]] = {}
        for finding in findings:
            files.setdefault(finding.file, []).append(finding)
        for name, told in files.items():
            self._report.file(name, told)
        levels = {finding.level for finding in findings}
        run.met |= {session.DAMAGED} if Level.LOG in levels else set()
        run.met |= {session.DERIVED} if Level.DERIVED in levels else set()

    def end(self) -> None:
        """Tell what was gone through, and how it went."""
        self._run.progress.clear()
        self._report.end(self.summary, self._run.status)


@contextmanager
def telling(run: Session, *, as_json: bool, remarks: bool) -> Iterator[Telling]:
    """Give what tells findings on standard output: as JSON lines, as a table on a terminal, or as text."""
    with open_output() as out:
        told = Telling(
            run, JsonReport(out, quiet=run.quiet) if as_json else _for_people(quiet=run.quiet, remarks=remarks)
        )
        yield told
        told.end()


def _for_people(*, quiet: bool, remarks: bool) -> Report:
    if sys.stdout.isatty():
        from kdump.printers.findings_table import TableReport

        return TableReport(sys.stdout, quiet=quiet, remarks=remarks)
    return PlainReport(cast("IO[str]", sys.stdout), quiet=quiet, remarks=remarks)
