"""The option ``--config`` of commands that ask what a topic's configs decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from kdump.answers.topic_configs import GivenConfig, given_config

if TYPE_CHECKING:
    from collections.abc import Callable


class Config(click.ParamType[GivenConfig]):
    """``TOPIC:KEY=VALUE``."""

    name = "config"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> GivenConfig:  # noqa: ARG002  click gives them
        return value if isinstance(value, GivenConfig) else given_config(value)


CONFIGS: Final[list[Callable[[Callable[..., Any]], Callable[..., Any]]]] = [
    click.option(
        "--config",
        "given",
        multiple=True,
        type=Config(),
        metavar="TOPIC:KEY=VALUE",
        help="A config that counts before all others; TOPIC may be a glob: '*:retention.ms=3600000'.",
    ),
]
