"""``kdump verify-index``: compares .index, .timeindex and .txnindex files with the log and with each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kdump.checks import partition
from kdump.command_line import options, session
from kdump.command_line.findings_output import FINDINGS, findings_output
from kdump.command_line.limit_options import PATHS
from kdump.command_line.options import WORKERS, WhoReads
from kdump.log_dirs.finder import Finder
from kdump.parallel import costs

if TYPE_CHECKING:
    from kdump.checks.partition import CheckedSegment
    from kdump.command_line.findings_output import FindingsOutput
    from kdump.errors import UnreadableError
    from kdump.log_dirs.partition import Partition


@click.command("verify-index")
@PATHS
@options.add(FINDINGS)
@options.add(WORKERS)
@options.add(options.LIMITS)
@click.option("-q", "--quiet", is_flag=True, help="Print findings only, and nothing if there are none.")
def command(paths: tuple[str, ...], *, quiet: bool, **given: Any) -> int:
    """Check the indexes of segments against their log. Files are opened read-only.

    \b
    Examples:
      kdump verify-index /var/kafka/orders-0
      kdump verify-index /var/kafka -o jsonl | jq 'select(.kind == "finding")'
      kdump verify-index orders-0/00000000000000000000.timeindex
      kdump verify-index -q /var/kafka || echo "indexes are wrong"

    PATH is an index file, a segment, a partition folder, a log dir, a glob or an archive. Index entries with the first
    or the last offset of a batch are valid, because releases differ. Padding, empty files and gaps of .index files are
    only notes. Give whole folders instead of single segments: a transaction may begin in an earlier segment. Only
    kdump check verifies records and checksums.

    Exit status: 0 indexes and headers are valid; 1 something cannot be read, or a requested topic or partition is
    absent; 2 wrong usage; 3 headers of the log are damaged; 4 only indexes are wrong.
    """
    run = session.Session(quiet=quiet)
    who = WhoReads.taken(given)
    wanted = options.wanted(given, siblings=True)
    finder = Finder(wanted, run.report)
    with findings_output(run, given) as output:
        output.summary.is_of_indexes = True
        partitions = list(run.watched(finder.find(paths)))
        run.absent(wanted.missing(finder.found_names, paths))
        workers = who.workers(partitions, costs.READING_HEADERS, run)
        if workers is not None:
            for checks, errors in workers.results(_check, partitions):
                for error in errors:
                    run.fail(error)
                for checked in checks:
                    _add(checked, output)
                    run.progress(checked.size)
        else:
            for part in partitions:
                for checked in partition.check(part, run.progress, fail=run.fail):
                    _add(checked, output)
    return run.status


def _check(part: Partition) -> tuple[list[CheckedSegment], list[UnreadableError]]:
    errors: list[UnreadableError] = []
    return list(partition.check(part, fail=errors.append)), errors


def _add(checked: CheckedSegment, output: FindingsOutput) -> None:
    output.add(checked.findings, segments=1, batches=checked.batches, size=checked.size)
