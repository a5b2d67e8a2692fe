"""``kdump diff``: the differences between replicas on several brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from kdump.answers import replica_diff
from kdump.answers.collector import Place
from kdump.answers.replica_diff import BrokerReplica
from kdump.command_line import option_values
from kdump.command_line import options as shared
from kdump.command_line.answering import Answering, inputs
from kdump.command_line.limit_options import ONE_EACH
from kdump.errors import UsageError
from kdump.log_dirs.log_dir_state import LogDirStates
from kdump.log_dirs.partition import COPY

if TYPE_CHECKING:
    from collections.abc import Iterator

_MANY: Final = 3
"""The most partitions that a message lists."""


@click.command("diff")
@click.option("--records", is_flag=True, help="List the records that differ, with their content; one process does it.")
@shared.add(inputs(paths=ONE_EACH))
def command(*, records: bool, **options: Any) -> int:
    """Compare the copies that brokers have of the same partitions.

    \b
    Examples:
      kdump diff /backup/broker-1 /backup/broker-2
      kdump diff b1.tar.gz b2.tar.gz b3.tar.gz --topic orders --records -o jsonl
      kdump diff /b1/data1,/b1/data2 /b2/data1,/b2/data2 --jobs 2

    Each PATH names the files of one broker: a log dir, several separated by commas, a partition's folder, an archive.
    Every two brokers are compared, from the greater log start offset on. Equal bytes are compared, not decoded;
    `kdump check` shows whether they are valid.

    \b
    same       no record differs
    behind     one side lacks the end, which it will fetch
    cleaned    the cleaner has removed records on one side only
    diverged   the histories part: the side with the older leader epochs
               truncates its log at truncateTo when it follows the other, and
               loses the records after it
    different  records differ within one leader epoch: one side is damaged

    Segment boundaries, indexes, snapshots and log start offsets are not compared. Leader epochs come from
    leader-epoch-checkpoint, or from the batches if it lags. Without epochs (before Kafka 0.11) truncateTo is null.

    Exit status: 0 compared, 1 something cannot be read, 2 wrong usage, 3 a log is damaged, 4 only
    derived files are wrong.
    """
    run = Answering(options)
    if len(run.paths) < 2:
        raise UsageError("diff compares two brokers or more: name a path for each")
    states = LogDirStates(run.session.report)
    copies = replica_diff.by_partition(_replicas(path, run, states) for path in run.paths)
    alone = [f"{topic}-{number}" for (topic, number), replicas in copies.items() if len(replicas) == 1]
    if alone:
        more = f" and {len(alone) - _MANY} more" if len(alone) > _MANY else ""
        run.session.note(f"on one of these brokers only, not compared: {', '.join(alone[:_MANY])}{more}")
    found = replica_diff.pairs(copies)
    if records:
        run.reads_alone("--records")
    run.session.watch(sum(map(replica_diff.size, found)))
    lines = replica_diff.compare_all(
        found,
        records=records,
        damage=run.session.damage,
        fail=run.session.fail,
        workers=None
        if records or len(found) < 2
        else run.workers([replica.place.partition for pair in found for replica in pair]),
        progress=run.session.progress,
    )
    from kdump.printers.answer_tables import diff

    return run.answer(lines, diff.tables)


def _replicas(path: str, run: Answering, states: LogDirStates) -> Iterator[BrokerReplica]:
    """Yield the paths of one broker. A comma in the name of an existing file or folder separates nothing."""
    paths = option_values.log_dirs([path])
    found = run.partitions(paths, COPY)
    run.shortfalls(found, paths)
    for partition in found:
        yield BrokerReplica(path, Place(partition, states.of(partition)))
