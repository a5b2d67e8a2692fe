"""``kdump coordinator``: the partition whose leader coordinates a group, transactional id or share partition."""

from __future__ import annotations

import re
from typing import Final

import click

from kdump.answers.coordinator import (
    PARTITIONS,
    TOPICS,
    CoordinatorPartition,
    coordinator_partition,
    topic_partitions,
)
from kdump.command_line.answering import FORM, write_answer
from kdump.command_line.limit_options import AtLeast, in_paths
from kdump.command_line.options import add
from kdump.command_line.session import Session
from kdump.errors import UsageError
from kdump.log_dirs.finder import Finder, Wanted
from kdump.printers.answer_lines import AnswerTable

SHARE_ID: Final = re.compile(r".*:[A-Za-z0-9_-]{22}:\d+", re.ASCII | re.DOTALL)


@click.command("coordinator")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("--type", "kind", type=click.Choice(tuple(TOPICS)), required=True, help="The type of each ID.")
@click.option("--partitions", type=AtLeast(1), metavar="N", help="Number of partitions of the topic [default: 50].")
@in_paths("Log dirs in which to count the partitions.", required=False)
@add(FORM)
def command(
    *, ids: tuple[str, ...], kind: str, partitions: int | None, paths: tuple[str, ...], output: str, quiet: bool
) -> int:
    """Show which partition coordinates an id.

    \b
    Examples:
      kdump coordinator my-group --type group
      kdump coordinator tx-1 tx-2 --type transaction --partitions 10
      kdump coordinator my-group --type group --in /broker1 --in /broker2
      kdump coordinator g:AAAAAAAAAAEAAAAAAAAAAg:3 --type share

    The coordinator is the leader of the printed partition of __consumer_offsets, __transaction_state or
    __share_group_state. A share id is group:topicId:partition. --in counts the topic's partition folders, and reads no
    file: give all log dirs of the cluster. After `--` every word is an ID.

    Exit status: 0 answered; 1 something cannot be read; 2 wrong usage.
    """
    run = Session(quiet=quiet)
    if partitions is None:
        partitions = _count(run, TOPICS[kind], paths) if paths else PARTITIONS
    elif paths:
        raise UsageError("--partitions cannot be combined with --in")
    if not partitions:
        return run.status
    for text in ids:
        if kind == "share" and not SHARE_ID.fullmatch(text):
            run.note(f"{text!r} is not a share partition: write it as group:topicId:partition")
    lines = [CoordinatorPartition(text, kind, coordinator_partition(text, partitions)) for text in ids]
    rows = [(one.id, f"{TOPICS[kind]}-{one.partition}") for one in lines]
    write_answer(lines, output, lambda _: [AnswerTable("", ("id", "coordinated by the leader of"), rows)])
    return run.status


def _count(run: Session, topic: str, paths: tuple[str, ...]) -> int:
    """Return the number of partitions; 0 if a path is unreadable and none is found. Raises UsageError."""
    folders = Finder(Wanted(topics=(topic,)), run.report, brief=True).find(paths)
    found = topic_partitions(one.partition for one in folders)
    if found.missing:
        raise UsageError(
            f"{topic}-{next(found.absent())} is not in these paths, so the number of partitions is unknown: "
            "give all log dirs of the cluster, or --partitions N"
        )
    if not found.whole and not run.statuses:
        raise UsageError(
            f"no partition of {topic} is in these paths, so the number of partitions is unknown: give --partitions N"
        )
    return found.whole
