"""``kdump ls``: the partitions of log dirs, or the segments of partitions."""

from __future__ import annotations

from typing import Any

import click

from kdump.answers.disk_usage import DiskUsage, PartitionUsage, SegmentListing
from kdump.command_line.answering import INPUTS, Answering
from kdump.command_line.options import add
from kdump.printers.answer_tables import du


@click.command("ls")
@add(INPUTS)
@click.option("--segments", is_flag=True, help="List segments also where PATH is a log dir.")
def command(*, segments: bool, **options: Any) -> int:
    """List partitions, or the segments of a partition's folder.

    \b
    Examples:
      kdump ls /var/kafka
      kdump ls /var/kafka/orders-0
      kdump ls /var/kafka --topic orders --segments -o csv

    'earliest' and 'latest' are the log start offset and the log end offset; of a segment 'first' is its base offset,
    'end' the offset after its last batch. 'oldest' and 'newest' are the largest times of the first and of the last
    batch. Only both ends of a log are read: kdump check reads all of it. The lines of partitions are those of kdump du.

    Exit status: 0 all could be read, 1 something cannot be read, 2 wrong usage, 3 the end of a log is damaged.
    """
    run = Answering(options, leftovers=True)
    partitions = run.partitions()
    if segments or (partitions and all(partition.is_named for partition in partitions)):
        of_segments = SegmentListing()
        run.run([of_segments], partitions)
        return run.answer(of_segments.answer(run.at), du.listing)
    usage = DiskUsage()
    run.run([usage], partitions)
    lines = [line for line in usage.answer(run.at) if isinstance(line, PartitionUsage)]
    lines.sort(key=lambda line: (line.topic, line.partition, line.log_dir, line.folder))
    return run.answer(lines, du.listing)
