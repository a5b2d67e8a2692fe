"""``kdump offsets``: the offsets of partitions, as ``kafka-get-offsets.sh`` gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kdump.answers.offsets import Offsets, facts_of
from kdump.commands.answering import INPUTS, Answering, Moment
from kdump.commands.options import add
from kdump.internal_topics import cluster_metadata
from kdump.printers.answer_tables import offsets as tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kdump.answers.metadata.cluster_image import ClusterImage
    from kdump.commands.session import Session
    from kdump.log_dirs.partition import Partition


@click.command("offsets")
@add(INPUTS)
@click.option(
    "--time",
    "times",
    multiple=True,
    type=Moment(least_ms=0),
    metavar="TIME",
    help="Look up the first offset at or after this time; may be given several times.",
)
def command(times: Sequence[int], **options: Any) -> int:
    """Say where each partition begins and ends.

    \b
    Examples:
      kdump offsets /var/kafka
      kdump offsets /var/kafka --topic orders --time 2026-11-21T09:00:00Z
      kdump offsets /var/kafka -o jsonl | jq 'select(.lastStable < .latest)'

    \b
    earliest         log start offset: its checkpoint's, else the first base
    earliestLocal    the same; with remote storage that of the local files
    latest           log end offset
    highWatermark    the checkpoint's; on a running broker it lags some seconds
    lastStable       where a read_committed consumer ends: the beginning of the
                     oldest open transaction, else the log end
    leaderEpoch      the partition's in __cluster_metadata of the given paths,
                     else the newest in leader-epoch-checkpoint
    maxTimestampMs   the largest timestamp; maxTimestampOffset is the first
                     offset that has it
    byTime           for each --time the first offset at or after it, looked up
                     as a broker does: in the segment that its index names

    null stands for what the files do not tell, and for no offset. A transaction that the newest sound producer snapshot
    holds open counts as open until its marker is met. A batch that is cut off at the end of a log is left out.

    Exit status: 0 answered, 1 something cannot be read, 2 wrong usage, 3 a log is damaged, 4 only derived files are
    wrong.
    """
    run = Answering(options, also=(cluster_metadata.TOPIC,))
    partitions = run.partitions()
    collector = Offsets(times, facts_of(_image(partitions, run.session)))
    run.run([collector], [partition for partition in partitions if run.takes(partition)])
    return run.answer(collector.answer(run.at), tables.tables)


def _image(partitions: list[Partition], session: Session) -> ClusterImage | None:
    """Return what the metadata log says, where it is among the partitions."""
    if all(partition.topic != cluster_metadata.TOPIC for partition in partitions):
        return None
    from kdump.answers.metadata.image import image_of  # many modules, for few runs

    return image_of(partitions, damage=session.damage, fail=session.fail)
