"""The options of a dry start, ``--release`` and ``--config``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from kdump.commands import option_values

if TYPE_CHECKING:
    from collections.abc import Callable


def _release(_: click.Context, __: click.Parameter, name: str | None) -> str | None:
    if name is not None:
        from kdump.dump_log_segments.dialects.release_numbers import known_release  # most runs name none

        known_release(name)
    return name


def _configs(_: click.Context, __: click.Parameter, pairs: tuple[str, ...]) -> dict[str, str]:
    given = option_values.pairs("--config", pairs, "KEY=VALUE", "node.id=1")
    found = {name.strip(): value.strip() for name, value in given.items()}
    from kdump.checking import node_id  # most runs name none

    node_id(found)
    return found


START: Final[list[Callable[[Callable[..., Any]], Callable[..., Any]]]] = [
    click.option(
        "--release",
        metavar="R",
        callback=_release,
        help="Release of the broker that would start: 3.9.2, 4.3. Default: the newest that kdump knows.",
    ),
    click.option(
        "--config",
        "configs",
        multiple=True,
        metavar="KEY=VALUE",
        callback=_configs,
        help="A line of its server.properties. With node.id=N the PATHs are the log.dirs of this one broker.",
    ),
]
"""Options of the commands that work out a start."""
