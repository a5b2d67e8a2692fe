"""The root command: the options of DumpLogSegments, and the table of subcommands."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import click

from kdump import __version__
from kdump.commands.limit_options import CACHE, JOBS, MAX_BATCH_BYTES
from kdump.errors import KdumpError, UsageError
from kdump.primitives.wire import INT32_MAX, to_int32

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GROUPS: Final[dict[str, dict[str, str]]] = {
    "Look": {"dump": "dump", "get": "get"},
    "Answer": {
        "report": "report",
        "explain": "explain",
        "diff": "diff",
        "offsets": "offsets",
        "transactions": "transactions",
        "producers": "producers",
        "coordinator": "coordinator",
        "groups": "groups",
        "metadata": "metadata",
        "du": "disk_usage",
        "stats": "statistics",
        "retention": "retention",
        "compaction": "compaction",
    },
    "Check and repair": {
        "check": "check",
        "verify-index": "verify_index",
        "salvage": "salvage",
        "slice": "slice",
        "rebuild-index": "rebuild_index",
    },
    "Pipelines": {"spark-export": "spark_export"},
    "More": {"help": "help", "compat": "compat", "completion": "completion"},
}
"""The subcommands as help lists them, each with the module under kdump.commands that holds it."""
COMMANDS: Final[dict[str, str]] = {name: module for group in GROUPS.values() for name, module in group.items()}

DECODER_SWITCHES: Final[dict[str, str]] = {
    "__consumer_offsets": "offsets-decoder",
    "__transaction_state": "transaction-log-decoder",
    "__cluster_metadata": "cluster-metadata-decoder",
    "__remote_log_metadata": "remote-log-metadata-decoder",
    "__share_group_state": "share-group-state-decoder",
}
"""Kafka's own topics -> the option that decodes their records, the one that wins first."""

HELP_MARGIN: Final = 6
"""Columns of help that are blank before and after a command's name."""
CLOSED_PIPE: Final = 141
"""What a shell reports for a program that a closed pipe ended (128 + SIGPIPE)."""


class Int32(click.types.IntParamType):
    """A Java int."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number: int = super().convert(value, param, ctx)
        if to_int32(number) != number:
            self.fail(f"{number} does not fit into 32 bits", param, ctx)
        return number


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from kdump import kernel

        click.echo(f"kdump, version {__version__} (kernel: {kernel.build()})")
        ctx.exit()


def _releases(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Complete a release of Kafka."""
    from kdump.dump_log_segments.dialects.releases import CHANGES

    return [change.release for change in CHANGES if change.release.startswith(incomplete)]


class Once(click.Option):
    """An option that may be given once only, as in the original."""

    def __init__(self, names: list[str], /, **rest: Any) -> None:
        default = rest.pop("default", None)
        super().__init__(names, **{**rest, "multiple": True, "default": [] if default is None else [default]})

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        given = super().process_value(ctx, value)
        if len(given) > 1:
            raise KdumpError(f"{self.opts[0]} is given {len(given)} times, and takes one value")
        return given[0] if given else None


def _decoder_switches(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that decode the records of Kafka's own topics."""
    for topic, switch in reversed(DECODER_SWITCHES.items()):
        command = click.option(f"--{switch}", is_flag=True, help=f"Decode records of {topic}.")(command)
    return command


@contextmanager
def _closed_pipe() -> Iterator[None]:
    """End quietly where nobody reads any more what is printed."""
    try:
        yield
    except BrokenPipeError:
        from kdump.output.stdout import give_up

        give_up()
        raise click.exceptions.Exit(CLOSED_PIPE) from None


class Root(click.Group):
    """The group of subcommands, each imported when it is called."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the clone's command line as the original does when it is meant: options may follow other words."""
        if any(word == "--files" or word.startswith("--files=") for word in args):
            ctx.allow_interspersed_args = True
            return click.Command.parse_args(self, ctx, args)
        return super().parse_args(ctx, args)

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """Parse the command line, which may print the help. A closed pipe is met here: click would end it with 1."""
        with _closed_pipe():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. A closed pipe is met here too."""
        with _closed_pipe():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click passes it
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  click passes it
        module = COMMANDS.get(cmd_name)
        if module is None:
            return None
        command: click.Command = import_module(f"kdump.commands.{module}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the subcommands group by group."""
        widest = max(map(len, COMMANDS))
        limit = formatter.width - widest - HELP_MARGIN
        for title, names in GROUPS.items():
            found = [(name.ljust(widest), self.get_command(ctx, name)) for name in names]
            with formatter.section(title):
                formatter.write_dl([(name, command.get_short_help_str(limit)) for name, command in found if command])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if os.path.exists(args[0]):  # noqa: PTH110  pathlib is slow to import
                raise click.UsageError(f"{args[0]!r} is a path, no command: try 'kdump dump {args[0]}'.", ctx) from None
            from kdump.primitives.near_names import did_you_mean

            if near := did_you_mean(args[0], COMMANDS, " Did"):
                raise click.UsageError(error.message + near, ctx) from None
            raise


@click.group(
    cls=Root,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("--files", cls=Once, metavar="FILE,FILE,...", help="The files to dump, separated by commas.")
@click.option("--print-data-log", is_flag=True, help="Print keys and values of records too.")
@click.option("--deep-iteration", is_flag=True, help="Look into batches and print their records.")
@click.option("--verify-index-only", is_flag=True, help="Check indexes against their log without printing them.")
@click.option("--index-sanity-check", is_flag=True, help="Make only the check that a broker makes when it starts.")
@click.option(
    "--max-message-size",
    cls=Once,
    type=Int32(),
    default=5 << 20,
    show_default=True,
    metavar="BYTES",
    help="The largest batch that an index entry may point at.",
)
@click.option(
    "--max-bytes",
    cls=Once,
    type=Int32(),
    default=INT32_MAX,
    show_default=True,
    metavar="BYTES",
    help="Look only at the first BYTES of each segment.",
)
@click.option(
    "--key-decoder-class",
    cls=Once,
    is_flag=False,
    flag_value="",
    metavar="[CLASS]",
    help="Decoder class of keys: String, Default, Long or IntegerDecoder, with its package.",
)
@click.option(
    "--value-decoder-class",
    cls=Once,
    is_flag=False,
    flag_value="",
    metavar="[CLASS]",
    help="Decoder class of values.",
)
@_decoder_switches
@click.option("--skip-record-metadata", is_flag=True, help="Print only keys and values of records.")
@MAX_BATCH_BYTES
@JOBS
@CACHE
@click.option(
    "--compat",
    cls=Once,
    metavar="RELEASE",
    default="4.3",
    show_default=True,
    help="The Kafka release whose output to print.",
    shell_complete=_releases,
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version and exit."
)
@click.pass_context
def root(ctx: click.Context, /, files: str | None, compat: str, **options: Any) -> None:
    """Read Apache Kafka's files on disk, with no broker and no JVM.

    \b
    Examples:
      kdump --files 00000000000000000000.log --print-data-log
      kdump --files 0.log,0.index,0.timeindex --deep-iteration
      kdump --compat 2.8 --files 00000000000000000000.log
      kdump dump /var/kafka/orders-0 --since -2h -o jsonl
      kdump verify-index /var/kafka

    With --files, kdump prints what kafka-dump-log.sh (Kafka's class DumpLogSegments) prints. It opens files read-only.
    """
    if ctx.invoked_subcommand is not None:
        return
    if files is None:
        if any(ctx.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE for name in ctx.params):
            raise click.UsageError("--files is missing: it names the files to dump", ctx)
        click.echo(ctx.get_help(), err=True)
        ctx.exit(2)
    for word in ctx.args:
        click.echo(
            f"WARNING: {word!r} is left over: --files takes one list with commas (--files a.log,b.log)", err=True
        )
    given = [name for name in ctx.params if ctx.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE]
    classic(files, compat, options, given)


def classic(files: str, compat: str, options: dict[str, Any], given: list[str]) -> None:
    """Run the clone of DumpLogSegments. ``given`` names the options that the command line holds."""
    from kdump.dump_log_segments.dialects import segments as dialects
    from kdump.dump_log_segments.dialects import state as dialects_state
    from kdump.dump_log_segments.dialects.release_numbers import is_unpublished
    from kdump.dump_log_segments.dispatch import dump_files
    from kdump.dump_log_segments.java_paths import java_split
    from kdump.dump_log_segments.options import Options
    from kdump.dump_log_segments.run import DumpRun
    from kdump.output.stdout import open_output

    dialect = dialects.find(compat)
    if is_unpublished(compat):
        click.echo(f"kdump: DumpLogSegments of Kafka {compat} is not published yet: this is 4.3's output", err=True)
    for name in given:
        if name not in OWN_OPTIONS and (option := name.replace("_", "-")) not in dialect.options:
            raise KdumpError(f"DumpLogSegments of Kafka {compat} has no option --{option}")
    switches = [switch for switch in DECODER_SWITCHES.values() if options.pop(switch.replace("-", "_"))]
    decoders = (options["key_decoder_class"], options["value_decoder_class"], *switches)
    if dialect.decoders_imply_print:
        options["print_data_log"] |= any(name is not None for name in decoders)
    jobs = options.pop("jobs")
    with open_output(escape=True) as out:
        chosen = Options(**options, decoder_switch=switches[0] if switches else None)
        state = dialects_state.find(compat)
        dump_files(DumpRun(dialect, chosen, out, state=state, release=compat, jobs=jobs), java_split(files))


OWN_OPTIONS: Final = frozenset({"compat", "max_batch_bytes", "jobs"})
"""Options beside --files that are kdump's, not the original's."""


def main() -> int:  # noqa: PLR0911  each ending has its status
    """Run kdump; return the exit status."""
    from kdump.output.stdout import OutputError, give_up, open_standard_streams
    from kdump.primitives.terminal import harmless

    try:
        open_standard_streams()
        result = root.main(standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        give_up()
        return CLOSED_PIPE
    except FileNotFoundError as reason:
        if reason.filename is not None:
            raise
        click.echo("kdump: the current folder does not exist any more: change to another one, and back", err=True)
        return 1
    except OSError as reason:
        if reason.filename is not None:  # readers and writers of files tell of them themselves
            raise
        give_up()
        click.echo(f"kdump: {OutputError(reason)}", err=True)
        return 1
    except OutputError as error:
        give_up()
        click.echo(f"kdump: {harmless(str(error))}", err=True)
        return 1
    except click.ClickException as error:
        from kdump.commands.usage_hints import suggesting

        suggesting(error, sys.argv[1:], COMMANDS).show()
        return error.exit_code
    except MemoryError:
        click.echo("kdump: there is not enough memory (--max-batch-bytes bounds what a batch takes)", err=True)
        return 1
    except (click.Abort, KeyboardInterrupt):
        return 130
    except UsageError as error:
        click.echo(f"kdump: {harmless(str(error))}", err=True)
        return 2
    except KdumpError as error:
        click.echo(f"kdump: {harmless(str(error))}", err=True)
        return 1
    return result if isinstance(result, int) else 0
