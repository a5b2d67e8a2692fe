"""``kdump compat``: the releases of Kafka that changed the output of kafka-dump-log.sh, and their changes."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Final

import click

from kdump.dump_log_segments.dialects import releases
from kdump.output.stdout import is_terminal
from kdump.primitives.terminal import prose_width

if TYPE_CHECKING:
    from kdump.dump_log_segments.dialects.releases import Change

WIDTH: Final = 100
"""Width of the lines in columns, except on a terminal."""


@click.command(short_help="List the outputs that --compat can print.")
@click.argument("release", required=False)
def command(release: str | None) -> None:
    """List the outputs that --compat can print: the first release of each, and its changes.

    With RELEASE (such as 3.6.1), show only the output of this release.
    """
    for change in releases.CHANGES if release is None else [releases.find(release)]:
        click.echo(line(change))


def line(change: Change) -> str:
    text = "; ".join(change.why)
    width = prose_width() if is_terminal() else WIDTH
    return fill(text, width, initial_indent=f"{change.release:<10}", subsequent_indent=" " * 10, break_on_hyphens=False)
