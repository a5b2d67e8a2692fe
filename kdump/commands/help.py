"""``kdump help``: the help of a command, or a page of the docs; the pages are installed with kdump."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kdump.command_line.command_help import WHOLE, shared_options
from kdump.command_line.usage_hints import HintedUsageError
from kdump.output.stdout import is_terminal, paged
from kdump.primitives.messages import did_you_mean

if TYPE_CHECKING:
    from kdump.commands.root import Root

TOPICS = Path(__file__).parent / "topics"
FILES, OPTIONS = "files", "options"
MADE: Final = {
    FILES: "--files: the options and the output of kafka-dump-log.sh",
    OPTIONS: "Options that several commands share",
}
"""Topics whose pages are generated from the options: name -> title."""
REFERENCE: Final = ("five-minutes", "container", "exit-codes", "finding-codes", "paths", "records")
"""Pages of the section Reference, which also lists MADE; all other pages are in the section Guides."""
INCIDENTS: Final = {
    "the broker does not start, or a disk is in doubt": "kdump check /var/kafka",
    "batches are damaged": "kdump salvage /broker1 /broker2 --out /mnt/rescue",
    "the cluster is lost": "kdump rebuild-cluster /backup/broker-1 /backup/broker-2 --plan",
    "records are missing, or a consumer skips some": "kdump explain orders-0@1234 --in /var/kafka",
    "one offset stops a consumer": "kdump get orders-0@1234 --in /var/kafka",
    "a read_committed consumer hangs": "kdump transactions /var/kafka",
    "replicas disagree": "kdump diff /broker1 /broker2 /broker3",
    "the disk is full": "kdump du /var/kafka",
    "retention does not delete": "kdump retention /var/kafka --topic orders",
    "compaction does not shrink a topic": "kdump compaction /var/kafka --topic prices",
    "the controller does not start, or a topic is gone": "kdump metadata /var/kafka",
    "where was each consumer group?": "kdump groups /var/kafka",
    "what was in a topic at 9:00": "kdump dump /var/kafka --topic orders --since 2026-11-21T09:00",
    "an index is suspected": "kdump verify-index /var/kafka",
    "connectors are lost, or do not start": "kdump connect /var/kafka",
    "the schema registry is lost": "kdump schemas /var/kafka",
    "the whole picture, or a file for the ticket": "kdump report /var/kafka --out report.html",
}
"""Symptom -> the command to run."""


def topics() -> dict[str, str]:
    return {
        path.stem: path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        for path in sorted(TOPICS.glob("*.md"))
    }


def _names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    names = [*_root(ctx).list_commands(ctx), *MADE, *(path.stem for path in TOPICS.glob("*.md"))]
    return [name for name in names if name.startswith(incomplete)]


def _root(ctx: click.Context) -> Root:
    from kdump.commands.root import Root  # which imports this module

    group = ctx.find_root().command
    if not isinstance(group, Root):
        raise TypeError(f"{group.name} has no commands")
    return group


@click.command("help")
@click.argument("topic", required=False, shell_complete=_names)
@click.pass_context
def command(ctx: click.Context, topic: str | None) -> None:
    """Explain a command or a topic; without a name, list incidents and topics.

    \b
    Examples:
      kdump help what-happened
      kdump help exit-codes
      kdump help salvage

    Exit status: 0 explained; 2 there is no such command or topic.
    """
    if topic is None:
        click.echo(_listing(ctx))
        return
    with paged():
        _show(ctx, topic)


def _show(ctx: click.Context, topic: str) -> None:
    root, context = _root(ctx), ctx.find_root()
    found = root.get_command(context, topic)
    if found is not None:
        of_command = click.Context(found, parent=context, info_name=topic)
        of_command.meta[WHOLE] = True
        click.echo(found.get_help(of_command))
    elif topic == OPTIONS:
        commands = (root.get_command(context, name) for name in root.list_commands(context))
        click.echo(shared_options([one for one in commands if one is not None], context))
    elif topic == FILES:
        from kdump.commands.root import files_help

        click.echo(files_help(context))
    elif topic in topics():
        _page((TOPICS / f"{topic}.md").read_text(encoding="utf-8"))
    else:
        known = [*root.list_commands(context), *MADE, *topics()]
        hint = did_you_mean(topic, known, " Did")
        raise HintedUsageError(f"{topic!r} is neither a command nor a topic.{hint}", ctx, "kdump help")


def _listing(ctx: click.Context) -> str:
    formatter = ctx.make_formatter()
    with formatter.section("What happened, and what to run"):
        for symptom, line in INCIDENTS.items():
            formatter.write_dl([(symptom, line)], col_max=0)
    pages = topics()
    for title, names in (("Guides", [name for name in pages if name not in REFERENCE]), ("Reference", REFERENCE)):
        known = [(name, pages[name]) for name in names] + (list(MADE.items()) if names is REFERENCE else [])
        with formatter.section(f"{title} (kdump help TOPIC)"):
            formatter.write_dl(known)
    formatter.write_paragraph()
    formatter.write_text("Commands: kdump --help lists them, kdump help COMMAND explains one.")
    return formatter.getvalue().strip("\n")


def _page(text: str) -> None:
    """Print a page without link targets: on a terminal formatted, elsewhere as in the file without fences."""
    shown = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)
    if not is_terminal():
        click.echo(re.sub(r"^```.*\n", "", shown, flags=re.MULTILINE))
        return
    from kdump.printers import answer_terminal

    answer_terminal.draw_page(shown, sys.stdout)
