"""``kdump stats``: what topics are made of."""

from __future__ import annotations

from typing import Any

import click

from kdump.answers.statistics import Statistics
from kdump.answers.what_if import target
from kdump.commands.answering import INPUTS, Answering
from kdump.commands.limit_options import AtLeast
from kdump.commands.options import REMOTE, add
from kdump.printers.answer_tables import statistics as tables


@click.command("stats")
@add(INPUTS)
@add(REMOTE)
@click.option("--records", is_flag=True, help="Read records too: sizes of keys and values, tombstones, ratio.")
@click.option(
    "--top", type=AtLeast(1), default=5, show_default=True, metavar="N", help="Largest keys and values to name."
)
@click.option("--hours", is_flag=True, help="Add a line for each topic and hour.")
@click.option(
    "--what-if",
    metavar="CODEC,...",
    help="What the topics would take in other codecs: none, gzip, snappy, lz4, zstd; gzip:9, zstd:19 name a level.",
)
def command(*, records: bool, top: int, hours: bool, what_if: str | None, **options: Any) -> int:
    """Say what topics are made of: batches, codecs, producers.

    \b
    Examples:
      kdump stats /var/kafka
      kdump stats /var/kafka --topic orders --records
      kdump stats /var/kafka --remote /var/tiered
      kdump stats /var/kafka --what-if zstd,zstd:19,lz4

    Without --records headers say all of it. 'ratio' is the bytes that the batches would take without compression, to
    those that they take. Times are those of batches: the first record's of the earliest, the largest of the latest.
    Records of transaction markers count as records, their keys and values do not.

    --what-if packs batches again as a Java client does. Of a partition above 128 MiB a sample of some 64 MiB is packed,
    and 'errorBytes' is 95% confidence; it is 0 where every batch was packed. Control batches and magic 0 and 1 stay as
    they are.

    Exit status: 0 answered, 1 something cannot be read, 2 wrong usage, 3 a log is damaged, 4 only derived files are
    wrong.
    """
    targets = [target(text) for text in what_if.split(",")] if what_if else []
    run = Answering(options)
    answer = Statistics(records=records, top=top, hours=hours, targets=targets)
    run.run([answer])
    return run.answer(answer.answer(run.at), tables.tables)
