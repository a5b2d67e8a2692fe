"""``kdump groups``: consumer groups of every type, their members, offsets and lag."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import click

from kdump.answers.coordinator import coordinator_partition, topic_partitions
from kdump.answers.groups.collector import TOPICS, ConsumerGroups, GroupsWanted
from kdump.answers.groups.log_ends import LogEnds
from kdump.answers.groups.writers import GroupWriters
from kdump.answers.metadata.image import image_of, partition_count, topic_names
from kdump.commands import option_values
from kdump.commands import options as shared
from kdump.commands.answering import Answering, Duration, inputs
from kdump.commands.session import UNREADABLE
from kdump.errors import UnreadableError, UsageError
from kdump.internal_topics import consumer_offsets
from kdump.log_dirs.finder import Wanted
from kdump.output.stdout import open_output
from kdump.printers.answer_tables.groups import tables, write_reset_csv

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kdump.answers.collector import AnswerLine
    from kdump.answers.groups.writers import Ranking
    from kdump.log_dirs.partition import Partition

RESET: Final = "reset-csv"
_GLOB: Final = re.compile(r"[*?\[]")
_MANY: Final = 5
"""Absent partitions that are named where there may be many."""
OPTIONS: Final[list[shared.Decorator]] = [
    click.option("--group", "groups", multiple=True, metavar="ID", help="Only this group; globs such as 'app-*'."),
    click.option(
        "--history",
        is_flag=True,
        help="Every commit of the groups too, in order, rewinds marked; takes 48 bytes of memory for each.",
    ),
    click.option(
        "--top",
        type=click.Choice(("bytes", "commits")),
        help="In place of the groups: which of them wrote most into __consumer_offsets.",
    ),
    click.option(
        "--stable",
        is_flag=True,
        help="The last stable offset of every partition, whatever it takes to read.",
    ),
    click.option(
        "--offsets-retention",
        "retention_ms",
        type=Duration(),
        default="7d",
        show_default=True,
        metavar="TIME",
        help="The broker's offsets.retention.minutes, which no file tells: 7d, 24h (before 2.0).",
    ),
    *inputs(RESET),
]


@click.command("groups")
@shared.add(OPTIONS)
def command(
    *, groups: tuple[str, ...], history: bool, top: Ranking | None, stable: bool, retention_ms: int, **given: Any
) -> int:
    """Tell consumer groups, their members, offsets and lag.

    \b
    Examples:
      kdump groups /var/kafka
      kdump groups /var/kafka --group 'billing-*' -o jsonl | jq 'select(.lag > 0)'
      kdump groups /var/kafka --group billing --history
      kdump groups /disk1 /disk2 --top bytes
      kdump groups backup.tar.gz -o reset-csv > offsets.csv

    It gives what kafka-consumer-groups.sh, kafka-share-groups.sh and kafka-streams-groups.sh describe, as a broker
    loads it. Groups are classic, simple (offsets without members), consumer (KIP-848), share (KIP-932) and streams
    (KIP-1071). Each group is in one partition of __consumer_offsets: name the log dirs of all brokers that lead some.

    \b
    lag                log end less offset, where the partition's log is there;
                       below 0 where the offset is beyond the log end
    lastStableOffset   where a read_committed consumer stops; lagToStable counts
                       up to there. The log is read for it from its newest
                       producer snapshot on: by default where that is 4 MiB at
                       most, with --stable everywhere. Unknown after damage
    offset             of a share group: the start of the share partition;
                       records after it that are done with
                       (deliveryCompleteCount) are no lag
    pendingProducerId  a commit in an open transaction: a line of its own
    recreated          the topic was deleted and created again since (topic ids,
                       Kafka 4.1): there is no lag
    expireTimestampMs  when the offset expires if all stays as it is; expired:
                       it has, at --at

    No file tells: a rebalance of a classic group that goes on (PreparingRebalance, CompletingRebalance), members
    before their first assignment, the broker's offsets retention and its default assignors (protocol then is Kafka's:
    uniform, simple).

    -o reset-csv prints group,topic,partition,offset, expired offsets included, for (since 2.4)

    \b
      kafka-consumer-groups.sh --bootstrap-server H:P --reset-offsets
          --group G1 --group G2 --from-file offsets.csv --execute

    The tool sets an offset beyond a log's end to that end: bring the records first. Pending, recreated and unreadable
    offsets, share and streams groups are left out; standard error says which.

    Exit status: 0 answered, 1 something cannot be read, 2 wrong usage, 3 damage was met (the answer is that of what is
    sound; "missing" lines say what is lost).
    """
    if top is not None and (history or stable or given["output"] == RESET):
        raise UsageError(f"--top ranks groups: it goes without --history, --stable and -o {RESET}")
    if history and given["output"] == RESET:
        raise UsageError(f"-o {RESET} has the last offsets alone: it goes without --history")
    wanted = GroupsWanted(
        groups,
        Wanted(topics=given["topics"], partitions=option_values.numbers(given["partitions"], "partition")),
        history=history,
        retention_ms=retention_ms,
    )
    given["partitions"] = ()  # those of the coordinators' topics have other numbers
    run = Answering(given, topics=())
    found = run.partitions()
    image = image_of(found, damage=run.session.damage, fail=run.session.fail)
    _note_absent(run, found, partition_count(image, consumer_offsets.TOPIC), groups)
    if top is not None:
        writers = GroupWriters(top, wanted.takes)
        run.run([writers], [partition for partition in found if partition.topic in TOPICS])
        return run.answer(writers.answer(run.at), tables)
    answer = ConsumerGroups(wanted)
    run.run([answer], [partition for partition in found if partition.topic in TOPICS])
    answer.ends = LogEnds(answer.partitions(), topic_names(image), stable=stable)
    run.run([answer.ends], [partition for partition in found if partition.topic not in TOPICS])
    left_out = answer.ends.passed_over
    if left_out and run.output != RESET:
        size = sum(left_out) >> 20
        run.session.note(f"{len(left_out)} last stable offsets are left out: --stable reads {size:,} MiB for them")
    lines = _noted(run, answer.answer(run.at), groups)
    if run.output != RESET:
        return run.answer(lines, tables)
    with open_output() as out:
        left = write_reset_csv(lines, out)
    for text in left:
        run.session.note(text)
    return run.session.status


def _note_absent(run: Answering, found: Sequence[Partition], count: int | None, groups: Sequence[str]) -> None:
    """Say which partitions that hold groups are not in the paths; there are ``count`` of them, None is unknown.

    What is asked for and may lie there cannot be read: a group by its id, or all of them for a reset.
    """
    topic = consumer_offsets.TOPIC
    here = {partition.partition for partition in found if partition.topic == topic and partition.partition is not None}
    if not here:
        if found:
            run.session.note(f"no partition of {topic} is in these paths: it holds the groups")
        return
    whole, absent = topic_partitions(here, count)
    if not absent:
        return
    named = ", ".join(map(str, absent[:_MANY])) + (f" and {len(absent) - _MANY} more" if len(absent) > _MANY else "")
    least = "" if count is not None else "at least "
    text = (
        f"{len(here)} of {least}{whole} partitions of {topic} are in these paths: the groups of the others are unknown"
    )
    run.session.note(f"{text} (absent: {named})")
    for group in groups:
        partition = coordinator_partition(group, whole)
        if count is not None and partition in absent and not _GLOB.search(group):
            run.session.fail(
                UnreadableError(f"{topic}-{partition}", f"it is not in these paths, and group {group!r} would be in it")
            )
    if run.output == RESET and not groups:
        run.session.met.add(UNREADABLE)


def _noted(run: Answering, lines: Iterable[AnswerLine], groups: Sequence[str]) -> Iterator[AnswerLine]:
    """Yield lines; then say which group that is asked for by its id has none."""
    left = {group for group in groups if not _GLOB.search(group)}
    for line in lines:
        left.discard(getattr(line, "group_id", ""))
        yield line
    for group in sorted(left):
        if not run.session.met:
            run.session.note(
                f"there is no group {group!r} here; ids are exact, and globs such as 'billing-*' are taken"
            )
