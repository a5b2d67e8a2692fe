"""``kdump retention``: what a broker deletes, when and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kdump.answers.metadata.image import image_of
from kdump.answers.remote_copies import copied_offsets
from kdump.answers.retention.deletions import Retention
from kdump.answers.retention.rules import rules_of
from kdump.answers.topic_configs import TopicConfigs
from kdump.commands.answering import INPUTS, Answering, Release
from kdump.commands.config_options import CONFIGS
from kdump.commands.options import add
from kdump.internal_topics import cluster_metadata, remote_log_metadata
from kdump.printers.answer_tables import retention as tables

if TYPE_CHECKING:
    from kdump.answers.topic_configs import GivenConfig


@click.command("retention")
@add(INPUTS)
@add(CONFIGS)
@click.option("--release", type=Release(), metavar="RELEASE", help="The broker's release. Default: the newest known.")
def command(given: tuple[GivenConfig, ...], release: tuple[int, ...] | None, **options: Any) -> int:
    """Say which segments a broker deletes, when and why.

    \b
    Examples:
      kdump retention /var/kafka --topic orders
      kdump retention /var/kafka --at 2026-12-01T00:00Z
      kdump retention /var/kafka --config 'orders:retention.ms=3600000'
      kdump retention /var/kafka -o jsonl | jq 'select(.blocks > 0)'

    A check goes from the oldest segment on and stops at the first that stays: that one blocks those after it that are
    due (fields blocks, blocksBytes; blockedBy at these), say by a timestamp in the future. In this order (before 3.0:
    the reverse): below the log start offset, too large a log, too old. A segment's age is that of its last .timeindex
    entry; where there is none, or it is below 0, the time of the last write of the .log file: a copy may have another
    one. Segments above the checkpointed high watermark stay; without a checkpoint the log end counts.

    Configs: --config, then the topic's, the broker's and all brokers' dynamic ones in __cluster_metadata of the given
    paths, then Kafka's defaults. A broker's properties file is in no log dir: give what it sets with --config. Where
    no __cluster_metadata has a topic and no --config names it, whether its segments go is not known (deletable: null,
    known: false), but for those below the log start offset.
    Segments of remote storage go when __remote_log_metadata of the given paths says that they are copied.

    Exit status: 0 answered, 1 something cannot be read, 2 wrong usage, 3 a log is damaged, 4 only derived files are
    wrong.
    """
    run = Answering(options, also=(cluster_metadata.TOPIC, remote_log_metadata.TOPIC))
    partitions = run.partitions()
    image = image_of(partitions, damage=run.session.damage, fail=run.session.fail)
    copied = copied_offsets(partitions, image, damage=run.session.damage, fail=run.session.fail)
    answer = Retention(TopicConfigs(image, given), rules_of(release), copied)
    run.run([answer], [partition for partition in partitions if run.takes(partition)])
    return run.answer(answer.answer(run.at), tables.tables)
