"""``kdump completion``: what a shell needs to complete kdump's words, and the words of options that take lists."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from kdump.log_dirs.file_names import folder_name
from kdump.primitives.terminal import harmless_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def in_list(
    words: Callable[[click.Context], Iterable[str]],
) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return what completes the last word of a list with commas out of ``words``."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        before, comma, start = incomplete.rpartition(",")
        return [f"{before}{comma}{word}" for word in words(ctx) if word.startswith(start)]

    return complete


def topics_of_paths(ctx: click.Context) -> list[str]:
    """Return the topics whose folders stand in the paths given so far; a path that cannot be listed has none.

    Names that could steer the terminal are left out: shells show what completes a word as it is.
    """
    found: set[str] = set()
    for path in ctx.params.get("paths") or ctx.args:  # an option without its word yet leaves them in args
        if os.path.isdir(path):  # noqa: PTH112  pathlib is slow to import
            found.update(topic for name in os.listdir(path) if (topic := folder_name(name).topic))  # noqa: PTH208  likewise
    return sorted(topic for topic in found if harmless_line(topic) == topic)


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    \b
    Examples:
      eval "$(kdump completion bash)"
      kdump completion fish > ~/.config/fish/completions/kdump.fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is not None:
        click.echo(kind(ctx.find_root().command, {}, "kdump", "_KDUMP_COMPLETE").source())
