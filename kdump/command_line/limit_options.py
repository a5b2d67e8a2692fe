"""Options of many commands, such as paths and limits, and the class :class:`Shared`. ``--files`` uses some of them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import click

from kdump.primitives import compression

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.decorators import FC


class Shared(click.Option):
    """An option of several commands. Their --help only names it; ``kdump help options`` explains it."""

    TITLES: Final = (
        "Which partitions",
        "Remote storage",
        "Decoding",
        "Privacy",
        "Time",
        "Output",
        "Workers",
        "Limits",
    )

    def __init__(self, *arguments: Any, title: str, **options: Any) -> None:
        """``title`` is the section of ``kdump help options``, one of TITLES."""
        super().__init__(*arguments, **options)
        self.title = title

    @classmethod
    def option(cls, title: str, *names: str, **settings: Any) -> Callable[[FC], FC]:
        """Return a decorator that adds a shared option; otherwise like ``click.option``."""
        return click.option(*names, cls=cls, title=title, **settings)


class AtLeast(click.types.IntParamType):
    """A whole number that is ``least`` or more. The help does not print the range."""

    def __init__(self, least: int) -> None:
        self.least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number: int = super().convert(value, param, ctx)
        if number < self.least:
            self.fail(f"{number} is less than {self.least}", param, ctx)
        return number


MAX_BATCH_BYTES: Final = Shared.option(
    "Limits",
    "--max-batch-bytes",
    type=AtLeast(1),
    default=compression.DEFAULT_LIMIT,
    show_default=True,
    metavar="BYTES",
    help="Largest batch accepted, compressed or uncompressed. Larger ones are reported, not read: they may be valid. "
    "-o parquet and sql accept a third of this.",
)


def _jobs(ctx: click.Context, _: click.Parameter, jobs: int | None) -> int | None:
    """Return the value of --jobs. With 1, forbid threads in the whole process."""
    if jobs == 1 and not ctx.resilient_parsing:
        from kdump.primitives import threads

        threads.start_none()
    return jobs


JOBS: Final = Shared.option(
    "Workers",
    "--jobs",
    type=AtLeast(1),
    metavar="N",
    callback=_jobs,
    help="At most N processes; 1: one core, no threads.  [default: up to one per core, if that is faster]",
)


class AnyPath(click.Path):
    """A path that is only refused if it is empty: an unreadable path is not wrong usage, and its reader reports it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not value:
            self.fail("it is empty; a shell variable in the command may be unset", param, ctx)
        return super().convert(value, param, ctx)


ANY_PATH: Final = AnyPath(readable=False, allow_dash=True)


def _log_dirs(_: click.Context, __: click.Parameter, paths: tuple[str, ...]) -> tuple[str, ...]:
    from kdump.command_line.option_values import log_dirs

    return log_dirs(paths)


PATHS: Final = click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=ANY_PATH, callback=_log_dirs)
"""The paths that a command reads. An argument may be a list of log dirs with commas, as in ``log.dirs``."""
ONE_EACH: Final = click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=ANY_PATH)
"""Paths, one argument for each broker; an argument with commas stays one text."""


def in_paths(text: str, *, required: bool = True) -> Callable[[FC], FC]:
    """Return the option ``--in`` with the help ``text``, for commands whose arguments are not paths."""
    return click.option(
        "--in", "paths", multiple=True, required=required, metavar="PATH", type=ANY_PATH, callback=_log_dirs, help=text
    )


RAW_OUTPUT: Final = click.option(
    "--raw-output", is_flag=True, help="Print control characters unchanged on a terminal too."
)


def index_interval(effect: str) -> Callable[[FC], FC]:
    """Return the option for index.interval.bytes; its help contains ``effect``."""
    from kdump.formats.sparse_index import DEFAULT_INTERVAL

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
    """Apply ``--cache`` to the whole process. It may be before the command, too: ``kdump --cache drop dump``."""
    given = ctx.get_parameter_source(str(param.name)) == click.core.ParameterSource.COMMANDLINE
    if ctx.resilient_parsing or not (given or ctx.parent is None):
        return
    from kdump.log_dirs.local import LocalFile
    from kdump.primitives.messages import message

    def note(text: str) -> None:
        if not ctx.params.get("quiet"):
            message("note", text)

    LocalFile.watch = None
    if how == "drop" and sys.platform != "linux":
        note("--cache drop has no effect: it needs Linux")
    elif how == "drop":
        from kdump.log_dirs.page_cache import Watch

        LocalFile.watch = Watch(note)


CACHE: Final = Shared.option(
    "Limits",
    "--cache",
    type=click.Choice(("keep", "drop")),
    default="keep",
    show_default=True,
    expose_value=False,
    callback=_watch,
    help="drop: evict the pages that kdump loaded, and leave the broker's own in the page cache.",
)
