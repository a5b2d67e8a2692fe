"""``kdump verify-index``: .index, .timeindex and .txnindex against the log, and against each other."""

from __future__ import annotations

import sys
from typing import IO, TYPE_CHECKING, cast

import click

from kdump.checks import partition
from kdump.commands import session
from kdump.commands.limits import MAX_BATCH_BYTES
from kdump.findings import Level
from kdump.inputs import Finder, Wanted
from kdump.printers.findings import JsonReport, PlainReport, Summary
from kdump.stdout import open_output

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kdump.checks.partition import Checked
    from kdump.findings import Finding
    from kdump.inputs import Partition
    from kdump.printers.findings import Report


@click.command("verify-index")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--json", "as_json", is_flag=True, help="JSON lines: kdump/findings.schema.json describes them.")
@click.option("--remarks", is_flag=True, help="Write out the remarks that healthy files get too.")
@MAX_BATCH_BYTES
@click.option("-q", "--quiet", is_flag=True, help="Findings alone; nothing where all is well.")
def command(paths: tuple[str, ...], *, as_json: bool, remarks: bool, max_batch_bytes: int, quiet: bool) -> int:
    """Check the indexes of segments against their log. Files are opened read-only.

    \b
    Examples:
      kdump verify-index /var/kafka/orders-0
      kdump verify-index /var/kafka --json | jq 'select(.kind == "finding")'
      kdump verify-index orders-0/00000000000000000000.timeindex
      kdump verify-index -q /var/kafka || echo "indexes are wrong"

    PATH is an index file, a segment, a partition's folder, a log dir, a glob or a tar archive. What brokers of any
    release write is right, whichever offset its entries name; padding, empty files and gaps in coverage are remarks.
    Name whole folders rather than single segments where you can: a transaction may begin in an earlier segment.

    Exit status: 0 all is well, 1 something cannot be read, 2 wrong usage, 3 the log itself is damaged, 4 only
    indexes are wrong.
    """
    run = session.Session(quiet=quiet)
    finder = Finder(Wanted(siblings=True, max_batch_bytes=max_batch_bytes), note=run.note, fail=run.fail)
    partitions: Iterable[Partition] = finder.find(paths)
    if sys.stderr.isatty():
        partitions = list(partitions)
        run.progress = session.Progress(sum(segment.size for part in partitions for segment in part.segments))
    with open_output() as out:
        report = JsonReport(out) if as_json else for_people(quiet=quiet, remarks=remarks)
        summary = Summary()
        for part in partitions:
            _check(part, run, report, summary)
        if run.progress is not None:
            run.progress.clear()
        report.end(summary, run.status)
    return run.status


def _check(part: Partition, run: session.Session, report: Report, summary: Summary) -> None:
    for checked in partition.check(part, run.progress or (lambda _: None), fail=run.fail):
        summary.segments += 1
        summary.batches += checked.batches
        summary.size += checked.size
        summary.add(checked.findings)
        if run.progress is not None and checked.findings:
            run.progress.clear()
        for name, findings in _by_file(checked).items():
            report.file(name, findings)
        levels = {finding.level for finding in checked.findings}
        run.met |= {session.DAMAGED} if Level.LOG in levels else set()
        run.met |= {session.DERIVED} if Level.DERIVED in levels else set()


def _by_file(checked: Checked) -> dict[str, list[Finding]]:
    files: dict[str, list[Finding]] = {}
    for finding in checked.findings:
        files.setdefault(finding.file, []).append(finding)
    return files


def for_people(*, quiet: bool, remarks: bool) -> Report:
    """Return the report for a terminal, or for a pipe."""
    if sys.stdout.isatty():
        from kdump.printers.findings_table import TableReport

        return TableReport(sys.stdout, quiet=quiet, remarks=remarks)
    return PlainReport(cast("IO[str]", sys.stdout), quiet=quiet, remarks=remarks)
