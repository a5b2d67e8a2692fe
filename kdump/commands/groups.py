"""``kdump groups``: consumer groups of every type, their members, offsets and lag."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import click

from kdump.answers.coordinator import coordinator_partition, topic_partitions
from kdump.answers.groups.collector import HELP, QUESTION, RANKS_ALONE, ConsumerGroups, feed_groups, unknown_groups
from kdump.answers.metadata.image import partition_count
from kdump.command_line import option_values
from kdump.command_line import options as shared
from kdump.command_line.answering import Answering, inputs
from kdump.command_line.question_command import CommandAsking, options_of, taken
from kdump.errors import ExitStatus, UnreadableError, UsageError, many
from kdump.internal_topics import consumer_offsets
from kdump.log_dirs.finder import Wanted
from kdump.output.stdout import open_output
from kdump.printers.answer_tables.groups import tables, write_reset_csv

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kdump.answers.collector import AnswerLine
    from kdump.answers.groups.collector import GroupsOptions
    from kdump.log_dirs.partition import Partition

RESET: Final = "reset-csv"
_GLOB: Final = re.compile(r"[*?\[]")


@click.command("groups", help=HELP)
@shared.add(options_of(QUESTION))
@shared.add(inputs(RESET))
def command(**given: Any) -> int:
    """List consumer groups. The help text comes from the question."""
    options: GroupsOptions = taken(QUESTION, given)
    if given["output"] == RESET:
        if options.top is not None:
            raise UsageError(RANKS_ALONE)
        if options.history:
            raise UsageError(f"-o {RESET} has only the last offsets: it cannot be combined with --history")
    names = Wanted(
        topics=option_values.names(given["topics"]),
        partitions=option_values.numbers(given["partitions"], "partition"),
    )
    given["partitions"] = ()  # --partition does not number the coordinators' partitions
    run = Answering(given, topics=())
    asking = CommandAsking(run, run.partitions(), names)
    answer = QUESTION.collector_of(asking, options)
    _note_absent(run, asking.found, partition_count(asking.image, consumer_offsets.TOPIC), options.group)
    feed_groups(answer, asking.found, asking.feed)
    if not isinstance(answer, ConsumerGroups):
        return run.answer(answer.answer(run.at), tables)
    left_out = answer.ends.passed_over
    if left_out and run.output != RESET:
        size = sum(left_out) >> 20
        run.session.note(
            f"the last stable offsets of {many(len(left_out), 'partition')} are not shown: --stable shows them, "
            f"and reads {size:,} MiB more"
        )
    lines = _noted(run, answer.answer(run.at), options.group)
    if run.output != RESET:
        return run.answer(lines, tables)
    with open_output() as out:
        left = write_reset_csv(lines, out)
    for text in left:
        run.session.note(text)
    return run.session.status


def _note_absent(run: Answering, found: Sequence[Partition], count: int | None, groups: Sequence[str]) -> None:
    """Print the notes of :func:`unknown_groups`.

    The exit status becomes 1 with -o reset-csv if all are absent, or if some are and no --group is given. If only some
    are, it also becomes 1 for a --group (no glob) of an absent partition, if ``count`` is known.
    """
    for text in unknown_groups(found, count):
        run.session.note(text)
    topic = consumer_offsets.TOPIC
    here = {partition.partition for partition in found if partition.topic == topic and partition.partition is not None}
    if not here:
        if run.output == RESET:
            run.session.statuses.add(ExitStatus.UNREADABLE)
        return
    partitions = topic_partitions(here, count)
    if not partitions.missing:
        return
    for group in groups:
        partition = coordinator_partition(group, partitions.whole)
        if count is not None and partition not in partitions.here and not _GLOB.search(group):
            run.session.fail(
                UnreadableError(
                    f"{topic}-{partition}",
                    f"the partition of group {group!r} is not in these paths: name the log dir of this partition too",
                )
            )
    if run.output == RESET and not groups:
        run.session.statuses.add(ExitStatus.UNREADABLE)


def _noted(run: Answering, lines: Iterable[AnswerLine], groups: Sequence[str]) -> Iterator[AnswerLine]:
    left = {group for group in groups if not _GLOB.search(group)}
    for line in lines:
        left.discard(getattr(line, "group_id", ""))
        yield line
    for group in sorted(left):
        if not run.session.statuses:
            run.session.note(
                f"there is no group {group!r} in these paths; give the exact id, or a glob such as 'billing-*'"
            )
