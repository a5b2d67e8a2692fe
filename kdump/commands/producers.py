"""``kdump producers``: the producers that partitions know, and breaks in their sequences."""

from __future__ import annotations

from typing import Any

import click

from kdump.answers.producers import Producers
from kdump.commands.answering import INPUTS, Answering
from kdump.commands.options import add
from kdump.printers.answer_tables import producers as tables


@click.command("producers")
@add(INPUTS)
@click.option("--gaps", is_flag=True, help="Find gaps, repeats and older epochs in sequences; reads all batch headers.")
def command(*, gaps: bool, **options: Any) -> int:
    """Say which producers each partition knows.

    \b
    Examples:
      kdump producers /var/kafka --topic orders
      kdump producers /var/kafka --gaps -o jsonl | jq 'select(.kind=="sequence")'

    \b
    lastSequence       of its last batch; -1 after a marker of a newer epoch
    lastTimestampMs    of its last batch or marker
    coordinatorEpoch   of its last marker; null where none was met
    currentTransactionStartOffset
                       where its open transaction begins; null where none is

    The state is what a broker rebuilds from these files: the newest sound producer snapshot, then the log. Without one
    the whole log is read. A running broker forgets a producer a day after its last batch (producer.id.expiration.ms);
    files keep it longer.

    \b
    --gaps adds a line for each break, with what was expected and found:
    gap       sequences are missing, and no offsets that could have held them
    repeat    a batch that the partition has already
    epoch     a batch of an older epoch after one of a newer
    Legal and left out: any beginning of a producer that is new or was silent
    for a day, 0 in a new epoch, 0 after 2147483647, what compaction took.

    Exit status: 0 answered, 1 something cannot be read, 2 wrong usage, 3 a log is damaged, 4 only derived files are
    wrong.
    """
    run = Answering(options)
    collector = Producers(gaps=gaps)
    run.run([collector])
    return run.answer(collector.answer(run.at), tables.tables)
