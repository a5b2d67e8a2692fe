"""``kdump du``: what fills the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kdump.answers.disk_usage import DiskUsage
from kdump.commands.answering import INPUTS, Answering
from kdump.commands.options import add
from kdump.printers.answer_tables import disk_usage

if TYPE_CHECKING:
    from kdump.answers.disk_usage import By


@click.command("du")
@add(INPUTS)
@click.option(
    "--by",
    type=click.Choice(("topic", "partition", "folder", "segment")),
    default="partition",
    show_default=True,
    help="What a line is of; 'partition' and 'folder' are the same.",
)
def command(*, by: By, **options: Any) -> int:
    """Say what fills the disk: every folder and file of log dirs.

    \b
    Examples:
      kdump du /var/kafka
      kdump du /var/kafka-1 /var/kafka-2 --by topic
      kdump du /var/kafka -o jsonl | jq 'select(.state == "deleted")'

    'log' is what a broker answers to kafka-log-dirs.sh: the sizes of the .log files, without the zeros of a
    preallocated active one. 'all files' adds indexes, snapshots and .deleted files; 'on disk' is what they occupy,
    less than their size where files have holes. A broker deletes .deleted files and -delete folders a minute after
    it renames them (file.delete.delay.ms), and never deletes -stray folders. 'earliest' is the log start offset,
    'latest' the log end offset, 'oldest' and 'newest' the largest times of the first and of the last batch. Unknown
    is null: what a file occupies in an object store, the end of a log whose last segment is damaged there.

    Exit status: 0 all could be read, 1 something cannot be read, 2 wrong usage, 3 the end of a log is damaged.
    """
    run = Answering(options, leftovers=True, every_folder=True)
    usage = DiskUsage(by)
    found = run.partitions()
    run.run([usage], found)
    run.shortfalls(found)
    return run.answer(usage.answer(run.at), disk_usage.tables)
