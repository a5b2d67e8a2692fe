"""``kdump transactions``: open and hanging transactions, and what ends them."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from kdump.answers.abort_lines import AbortLines
from kdump.answers.metadata.image import image_of, partition_count
from kdump.answers.transactions import Transactions, ended
from kdump.commands.answering import INPUTS, Answering, Duration, Release
from kdump.commands.options import add
from kdump.internal_topics import cluster_metadata, transaction_state
from kdump.printers.answer_tables import transactions as tables

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kdump.answers.collector import AnswerLine


@click.command("transactions")
@add(INPUTS)
@click.option("--all", "ended_too", is_flag=True, help="List committed and aborted ones too; reads all batch headers.")
@click.option(
    "--max-timeout",
    type=Duration(),
    default="15m",
    show_default=True,
    metavar="TIME",
    help="transaction.max.timeout.ms of the brokers: none older is left to its producer.",
)
@click.option("--release", type=Release(), metavar="X.Y", help="The brokers' release, for the lines to run.")
@click.option(
    "--bootstrap-server", default="HOST:9092", show_default=True, metavar="HOST:PORT", help="Likewise: a broker."
)
def command(
    *, ended_too: bool, max_timeout: int, release: tuple[int, ...] | None, bootstrap_server: str, **options: Any
) -> int:
    """Say which transactions are open or hang, and what ends them.

    \b
    Examples:
      kdump transactions /var/kafka
      kdump transactions /var/kafka --topic orders --bootstrap-server b1:9092
      kdump transactions /broker1 /broker2 -o jsonl | jq 'select(.abort)'

    An open transaction holds read_committed consumers back at its first offset, and the log cleaner too. It hangs when
    nothing will end it: its last timestamp is older than --max-timeout at --at, and no transactional id with its
    producer id names the partition in __transaction_state. All of that topic must be among the paths (--topic does not
    leave it out), else nothing is said to hang.

    \b
    state              open, hanging; with --all committed, aborted
    abort              the line that ends a hanging one; null for all others
    terminate          the line that ends one that its coordinator knows, once
                       it is past its own timeout, or has none (4.1 and newer)
    twoPhase           whether it has none (KIP-939): terminate aborts it,
                       whatever was decided outside of Kafka: ask there first
    transactionalId    the id that has the producer id and names the partition
    lastTransactionalId
                       the id that has, had or will have the producer id
    heldBack           offsets that consumers are not given for it
    startTimeMs        when its coordinator began it; null where none names it
    ageMs              time since startTimeMs, else since lastTimestampMs, the
                       timestamp of its last batch, which producers may set
    clock              whose time ageMs begins at: coordinator or records
    why                what is known of its end

    Lines of kind "coordinator" have the last state of every transactional id, lines of kind "difference" a replica
    whose open transactions differ. The answer is of the replica with the newest leader epoch and the longest log. What
    may have ended in bytes that cannot be read is open, and nothing is said to hang for it.

    Run a line only where the partition's leader agrees: `kafka-transactions.sh describe-producers` shows the same start
    offset there.

    Exit status: 0 answered, 1 something cannot be read, 2 wrong usage, 3 a log is damaged, 4 only derived files are
    wrong.
    """
    run = Answering(options, also=(transaction_state.TOPIC, cluster_metadata.TOPIC))
    partitions = run.partitions()
    image = image_of(partitions, damage=run.session.damage, fail=run.session.fail)
    transactions = Transactions(
        run.asked,
        AbortLines(bootstrap_server, release),
        max_timeout=max_timeout,
        coordinators=partition_count(image, transaction_state.TOPIC),
    )
    read = [one for one in partitions if one.topic == transaction_state.TOPIC or run.takes(one)]
    run.run([transactions], read)
    lines: Iterable[AnswerLine] = transactions.answer(run.at)
    if ended_too:
        best = [one for one in read if run.takes(one) and transactions.is_best(one)]
        lines = chain(lines, ended(run.reader(()), best, transactions.ids, run.at))
    return run.answer(lines, tables.tables)
