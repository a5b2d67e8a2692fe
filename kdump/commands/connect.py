"""``kdump connect``: connectors, tasks and source offsets of Kafka Connect, from its topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kdump.command_line.answering import FORM, write_answer
from kdump.command_line.limit_options import PATHS
from kdump.command_line.options import LIMITS, REMOTE, SHOW_SECRETS, add, remote_storage
from kdump.command_line.session import Session
from kdump.errors import many
from kdump.log_dirs.remote import shown_paths
from kdump.primitives.messages import did_you_mean

if TYPE_CHECKING:
    from kdump.answers.collector import AnswerLine


@click.command("connect")
@PATHS
@add(REMOTE)
@click.option("--configs-topic", default="", metavar="NAME", help="The worker's config.storage.topic.")
@click.option("--status-topic", default="", metavar="NAME", help="The worker's status.storage.topic.")
@click.option("--offsets-topic", default="", metavar="NAME", help="The worker's offset.storage.topic.")
@click.option("--connector", "connectors", multiple=True, metavar="GLOB", help="Only this connector, or a glob.")
@SHOW_SECRETS
@add(FORM)
@add(LIMITS)
def command(paths: tuple[str, ...], *, output: str, quiet: bool, **given: Any) -> int:
    """List connectors, tasks and source offsets of Kafka Connect.

    \b
    Examples:
      kdump connect /var/kafka
      kdump connect /var/kafka -o jsonl | jq 'select(.state == "FAILED")'
      kdump connect /var/kafka --connector 'lines-*' -o jsonl
      kdump connect /var/kafka --configs-topic my-configs --status-topic my-status

    The lines are those of a worker's REST API, read from the three topics that the workers share. The keys of the
    records identify these topics. If a topic's name has none of the words connect, config, status, offset and storage,
    name the topic with an option.

    Config values that are secret or unknown are hidden; a worker shows them. A sink connector NAME commits its offsets
    as the group connect-NAME: 'kdump groups PATH --group connect-NAME' prints them.

    Exit status: 0 answered; 1 something cannot be read or there is no such topic; 2 wrong usage; 3 damage was found.
    """
    from kdump.answers.connect import ConnectNames, ConnectTopics
    from kdump.log_dirs.finder import Wanted
    from kdump.primitives.terminal import is_selected
    from kdump.printers.answer_tables import connect as tables

    run = Session(quiet=quiet)
    topics = ConnectTopics(
        paths,
        Wanted(remote=remote_storage(given), max_batch_bytes=given["max_batch_bytes"]),
        report=run.report,
        lost=lambda item: run.damaged_range(item.file.name, item.damage),
    )
    named = ConnectNames(given["configs_topic"], given["status_topic"], given["offsets_topic"])
    absent = topics.absent(named)
    run.absent(Wanted(topics=tuple(absent)).missing(topics.names, paths))
    found = [names for names in topics.clusters(named) if names.configs not in absent]
    if not found and not run.statuses:
        run.absent(
            [f"no topic in {shown_paths(paths)} has configs of Kafka Connect: name the topic with --configs-topic"]
        )
    lines: list[AnswerLine] = []
    for names in found:
        cluster = topics.read(names, show_secrets=given["show_secrets"])
        lines += cluster.lines()
        for what, topic in zip(("status", "offsets"), names[1:], strict=True):
            if not topic:
                run.note(
                    f"no {what} topic was found for the Connect cluster whose configs are in {names.configs}: name "
                    f"the topic with --{what}-topic"
                )
        if cluster.skipped:
            skipped = many(cluster.skipped, "record")
            run.note(f"{names.configs}: skipped {skipped} that Kafka Connect did not write")
    if given["connectors"]:
        known = {line.connector for line in lines}  # type: ignore[attr-defined]  # lines of this answer
        for glob in given["connectors"]:
            if not (run.statuses or any(is_selected(name, glob) for name in known)):
                run.note(f"there is no connector {glob!r} in these paths{did_you_mean(glob, known)}")
        lines = [line for line in lines if any(is_selected(line.connector, glob) for glob in given["connectors"])]  # type: ignore[attr-defined]  # lines of this answer
    write_answer(lines, output, tables.tables)
    run.sum_up()
    return run.status
