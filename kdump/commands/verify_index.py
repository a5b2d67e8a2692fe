"""``kdump verify-index``: .index, .timeindex and .txnindex against the log, and against each other."""

from __future__ import annotations

from typing import Any

import click

from kdump.checks import partition
from kdump.commands import options, session
from kdump.commands.findings_output import FINDINGS, telling
from kdump.log_dirs.finder import Finder


@click.command("verify-index")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@options.add(FINDINGS)
@options.add(options.LIMITS)
@click.option("-q", "--quiet", is_flag=True, help="Findings alone; nothing where all is well.")
def command(paths: tuple[str, ...], *, quiet: bool, **given: Any) -> int:
    """Check the indexes of segments against their log. Files are opened read-only.

    \b
    Examples:
      kdump verify-index /var/kafka/orders-0
      kdump verify-index /var/kafka -o jsonl | jq 'select(.kind == "finding")'
      kdump verify-index orders-0/00000000000000000000.timeindex
      kdump verify-index -q /var/kafka || echo "indexes are wrong"

    PATH is an index file, a segment, a partition's folder, a log dir, a glob or a tar archive. What brokers of any
    release write is right, whichever offset its entries name; padding, empty files and gaps in coverage are remarks.
    Name whole folders rather than single segments where you can: a transaction may begin in an earlier segment.

    Exit status: 0 all is well, 1 something cannot be read, 2 wrong usage, 3 the log itself is damaged, 4 only
    indexes are wrong.
    """
    run = session.Session(quiet=quiet)
    finder = Finder(options.wanted(given, siblings=True), note=run.note, fail=run.fail)
    with telling(run, given) as told:
        for part in run.watched(finder.find(paths)):
            for checked in partition.check(part, run.progress, fail=run.fail):
                told.tell(checked.findings, segments=1, batches=checked.batches, size=checked.size)
    return run.status
