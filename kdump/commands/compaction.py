"""``kdump compaction``: what the log cleaner does next, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from kdump.answers.compaction.cleaning import MAP_ENTRIES, CleaningLimits
from kdump.answers.compaction.compacted_logs import Compaction
from kdump.answers.metadata.image import image_of
from kdump.answers.topic_configs import UNKNOWN, TopicConfigs
from kdump.commands.answering import INPUTS, Answering
from kdump.commands.config_options import CONFIGS
from kdump.commands.limit_options import AtLeast
from kdump.commands.options import add
from kdump.internal_topics import cluster_metadata
from kdump.primitives.terminal import shell_word
from kdump.printers.answer_tables import compaction as tables

if TYPE_CHECKING:
    from kdump.answers.topic_configs import GivenConfig, Setting

_NAMED: Final = 5
"""Topics that are named as not compacted, at most."""


@click.command("compaction")
@add(INPUTS)
@add(CONFIGS)
@click.option("--records", is_flag=True, help="List each record that the next cleaning removes.")
@click.option("--top", type=AtLeast(0), default=0, metavar="N", help="List the N keys with the most bytes per topic.")
@click.option(
    "--map-entries",
    type=AtLeast(1),
    default=MAP_ENTRIES,
    show_default=True,
    metavar="N",
    help="Keys that the cleaner's map holds: log.cleaner.dedupe.buffer.size / threads / 24 * 0.9.",
)
@click.option(
    "--max-keys",
    type=AtLeast(1),
    default=MAP_ENTRIES,
    show_default=True,
    metavar="N",
    help="Keys in memory at a time; for more the log is read several times. 50 million take up to 2.8 GiB (8 without"
    " the compiled kernel).",
)
def command(
    given: tuple[GivenConfig, ...], *, records: bool, top: int, map_entries: int, max_keys: int, **options: Any
) -> int:
    """Say what the log cleaner does next.

    \b
    Examples:
      kdump compaction /var/kafka
      kdump compaction /var/kafka --topic __consumer_offsets --top 20
      kdump compaction /var/kafka --topic prices --records -o jsonl

    A log is due when its dirty part is larger than min.cleanable.dirty.ratio, or older than max.compaction.lag.ms. The
    dirty part begins at the cleaner's checkpoint. It ends before the active segment, the last stable offset (an open
    transaction, the high watermark) and segments younger than min.compaction.lag.ms, at a whole segment. What lies
    after it the cleaner cannot reach (uncleanableBytes): heldBack has the bytes for each of these reasons.

    A cleaning removes records with a newer one of the same key (superseded), tombstones whose delete horizon has
    passed, data of aborted transactions, markers without data whose horizon has passed, records without a key. The
    first cleaning that meets a tombstone sets its horizon, and a later one removes it. Configs: as for kdump retention.
    Without __cluster_metadata in the paths, name compacted topics: --config 'prices:cleanup.policy=compact'.
    That a cleaner gave up on a partition is in its memory alone: damage that would stop it is named.

    Exit status: 0 answered, 1 something cannot be read, 2 wrong usage, 3 a log is damaged, 4 only derived files are
    wrong.
    """
    run = Answering(options, also=(cluster_metadata.TOPIC,))
    partitions = run.partitions()
    image = image_of(partitions, damage=run.session.damage, fail=run.session.fail)
    limits = CleaningLimits(map_entries, max_keys)
    answer = Compaction(TopicConfigs(image, given), run.at, limits, listed=records, top=top)
    run.run([answer], [partition for partition in partitions if run.takes(partition)])
    if run.asked.topics or not len(answer):
        for topic, policy in sorted(answer.left_out.items())[:_NAMED]:
            run.session.note(_not_compacted(topic, policy))
    return run.answer(answer.answer(run.at), tables.tables)


def _not_compacted(topic: str, policy: Setting) -> str:
    """Say why the cleaner leaves a topic alone."""
    if policy.source == "unknown":
        sets = f"--config {shell_word(f'{topic}:cleanup.policy=compact')} says that it is"
        return f"{topic}: whether it is compacted is not known: {UNKNOWN}; {sets}"
    by = " by default" if policy.source == "default" else ""
    return f"{topic} is not compacted: its cleanup.policy is {policy.value!r}{by}"
