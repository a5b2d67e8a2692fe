"""``kdump help``: the help of a command, or a page of the docs that is installed with kdump: no network is needed."""

from __future__ import annotations

import re
from pathlib import Path

import click

from kdump.primitives.near_names import did_you_mean

TOPICS = Path(__file__).parent / "topics"
"""Pages of the docs, by the names of their topics."""


def topics() -> dict[str, str]:
    """Return the titles of all topics by name."""
    return {
        path.stem: path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        for path in sorted(TOPICS.glob("*.md"))
    }


def _names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Complete a command or a topic."""
    names = [*_group(ctx).list_commands(ctx), *(path.stem for path in TOPICS.glob("*.md"))]
    return [name for name in names if name.startswith(incomplete)]


def _group(ctx: click.Context) -> click.Group:
    group = ctx.find_root().command
    if not isinstance(group, click.Group):
        raise TypeError(f"{group.name} has no commands")
    return group


@click.command("help")
@click.argument("topic", required=False, shell_complete=_names)
@click.pass_context
def command(ctx: click.Context, topic: str | None) -> None:
    """Explain a command or a topic; without one, list the topics.

    \b
    Examples:
      kdump help what-happened
      kdump help exit-codes
      kdump help salvage

    Exit status: 0 explained, 2 there is no such topic.
    """
    if topic is None:
        known = topics()
        widest = max(map(len, known))
        lines = [f"  {name.ljust(widest)}  {title}" for name, title in known.items()]
        click.echo("\n".join(["kdump help TOPIC, with one of these, or with a command (kdump --help):", "", *lines]))
        return
    root = ctx.find_root()
    found = _group(ctx).get_command(root, topic)
    if found is not None:
        click.echo_via_pager(found.get_help(click.Context(found, parent=root, info_name=topic)))
    elif topic in topics():
        click.echo_via_pager(_plain((TOPICS / f"{topic}.md").read_text(encoding="utf-8")))
    else:
        hint = did_you_mean(topic, [*_group(ctx).list_commands(ctx), *topics()], " Did")
        raise click.UsageError(f"{topic!r} is no command and no topic.{hint} 'kdump help' lists the topics.", ctx)


def _plain(text: str) -> str:
    """Return a page without what only a browser needs: targets of links, languages and titles of blocks."""
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)
    return re.sub(r"^```.*\n", "", text, flags=re.MULTILINE)
