"""The option ``--config`` of commands that ask what a topic's configs decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdump.answers.topic_configs import GivenConfig


class Config(click.ParamType["GivenConfig"]):
    """``TOPIC:KEY=VALUE``."""

    name = "config"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> GivenConfig:  # noqa: ARG002  click gives them
        from kdump.answers.topic_configs import given_config  # few runs give any

        return given_config(value) if isinstance(value, str) else value


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
