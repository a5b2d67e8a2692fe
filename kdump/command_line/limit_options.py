"""Options of several commands: what reading may take, and a topic's settings.

The memory for a batch and the page cache are those of ``--files`` and all commands that read segments; the second not
of ``spark-export``: Spark reads.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import click

from kdump.primitives import compression

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.decorators import FC


class Shared(click.Option):
    """An option that several commands have: the help of each names it, ``kdump help options`` explains it."""

    TITLES: Final = (
        "Which partitions",
        "Remote storage",
        "Decoding",
        "Privacy",
        "Time",
        "Output",
        "Who reads",
        "Limits",
    )

    def __init__(self, *arguments: Any, title: str, **options: Any) -> None:
        """``title`` is that of the part of the page where the option stands, one of TITLES."""
        super().__init__(*arguments, **options)
        self.title = title


class AtLeast(click.types.IntParamType):
    """A whole number, ``least`` or more; unlike click's own, help does not show that."""

    def __init__(self, least: int) -> None:
        self.least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number: int = super().convert(value, param, ctx)
        if number < self.least:
            self.fail(f"{number} is less than {self.least}", param, ctx)
        return number


MAX_BATCH_BYTES: Final = click.option(
    "--max-batch-bytes",
    cls=Shared,
    title="Limits",
    type=AtLeast(1),
    default=compression.DEFAULT_LIMIT,
    show_default=True,
    metavar="BYTES",
    help="Largest batch accepted, compressed or uncompressed. A larger one is reported as damage.",
)


def _jobs(ctx: click.Context, _: click.Parameter, jobs: int | None) -> int | None:
    """Take one job at its word, for the whole process: no thread reads ahead of it either."""
    if jobs == 1 and not ctx.resilient_parsing:
        from kdump.segments import read_ahead

        read_ahead.alone()
    return jobs


JOBS: Final = click.option(
    "--jobs",
    cls=Shared,
    title="Who reads",
    type=AtLeast(1),
    metavar="N",
    callback=_jobs,
    help="At most N processes; 1: one core, no threads.  [default: up to one per core, if that is faster]",
)
ANY_PATH: Final = click.Path(readable=False, allow_dash=True)
"""A path as it is written: that it cannot be read is no wrong usage, its reader says so."""


def _log_dirs(_: click.Context, __: click.Parameter, paths: tuple[str, ...]) -> tuple[str, ...]:
    from kdump.command_line.option_values import log_dirs  # help does without

    return log_dirs(paths)


PATHS: Final = click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=ANY_PATH, callback=_log_dirs)
"""What a command reads. Log dirs may stand in one word, as in ``log.dirs``."""
ONE_EACH: Final = click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=ANY_PATH)
"""The same, each word as it is: what one broker has."""


def in_paths(text: str, *, required: bool = True) -> Callable[[FC], FC]:
    """Return the option ``--in``, for commands whose arguments are no paths."""
    return click.option(
        "--in", "paths", multiple=True, required=required, metavar="PATH", type=ANY_PATH, callback=_log_dirs, help=text
    )


RAW_OUTPUT: Final = click.option(
    "--raw-output", is_flag=True, help="Print control characters unchanged on a terminal too."
)


def index_interval(effect: str) -> Callable[[FC], FC]:
    """Return the option for a topic's index.interval.bytes, whose ``effect`` is a part of its help."""
    from kdump.formats.sparse_index import DEFAULT_INTERVAL  # which a dump does without

    return click.option(
        "--index-interval-bytes",
        "interval",
        type=AtLeast(0),
        default=DEFAULT_INTERVAL,
        show_default=True,
        metavar="BYTES",
        help=f"The topic's index.interval.bytes: {effect}.",
    )


def _watch(ctx: click.Context, param: click.Parameter, how: str) -> None:
    """Do as ``--cache`` says, for the whole process; a command without the option keeps the one before its name."""
    given = ctx.get_parameter_source(str(param.name)) == click.core.ParameterSource.COMMANDLINE
    if ctx.resilient_parsing or not (given or ctx.parent is None):
        return
    from kdump.log_dirs.local import LocalFile  # help needs no reader
    from kdump.primitives.messages import message  # as above

    def note(text: str) -> None:
        if not ctx.params.get("quiet"):
            message("note", text)

    LocalFile.watch = None
    if how == "drop" and sys.platform != "linux":
        note("--cache drop gives nothing back: it needs Linux")
    elif how == "drop":
        from kdump.log_dirs.page_cache import Watch

        LocalFile.watch = Watch(note)


CACHE: Final = click.option(
    "--cache",
    cls=Shared,
    title="Limits",
    type=click.Choice(("keep", "drop")),
    default="keep",
    show_default=True,
    expose_value=False,
    callback=_watch,
    help="drop: evict the pages that kdump loaded, and leave the broker's own in the page cache.",
)
