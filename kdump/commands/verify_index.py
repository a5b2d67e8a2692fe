"""``kdump verify-index``: .index, .timeindex and .txnindex against the log, and against each other."""

from __future__ import annotations

import click

from kdump.checks import partition
from kdump.commands import session
from kdump.commands.findings_output import telling
from kdump.commands.limit_options import CACHE, MAX_BATCH_BYTES
from kdump.log_dirs.finder import Finder, Wanted


@click.command("verify-index")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--json", "as_json", is_flag=True, help="JSON lines: kdump/findings.schema.json describes them.")
@click.option("--remarks", is_flag=True, help="Write out the remarks that healthy files get too.")
@MAX_BATCH_BYTES
@CACHE
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
    with telling(run, as_json=as_json, remarks=remarks) as told:
        for part in run.watched(finder.find(paths)):
            for checked in partition.check(part, run.progress, fail=run.fail):
                told.tell(checked.findings, segments=1, batches=checked.batches, size=checked.size)
    return run.status
