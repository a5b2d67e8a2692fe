"""The root command: the options of DumpLogSegments, the table of subcommands, and the exit on a closed pipe."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import click

from kdump.command_line.limit_options import CACHE, JOBS, MAX_BATCH_BYTES, RAW_OUTPUT
from kdump.commands.classic import COMPAT, classic
from kdump.dump_log_segments import DEFAULT_MAX_MESSAGE_SIZE, Options
from kdump.errors import ExitStatus, KdumpError
from kdump.internal_topics import DECODER_SWITCHES
from kdump.output.stdout import give_up
from kdump.primitives.terminal import shell_word
from kdump.primitives.wire import INT32_MAX, to_int32

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from click.shell_completion import CompletionItem

GROUPS: Final[dict[str, dict[str, str]]] = {
    "Look": {
        "ls": "List partitions, or the segments of a partition folder.",
        "dump": "Print the records of Kafka's log segments.",
        "get": "Show one record, or its batch, field by field.",
        "sql": "Query logs, and the results of commands, with SQL (DuckDB).",
    },
    "Answer": {
        "report": "Show the whole picture of log dirs on one page.",
        "explain": "Explain why a consumer receives a record, or does not.",
        "diff": "Compare the copies that brokers have of the same partitions.",
        "offsets": "Show the first offset and the end offset of each partition.",
        "transactions": "List open and hanging transactions, and the commands that end them.",
        "producers": "List the producers in the producer state of each partition.",
        "coordinator": "Show which partition coordinates an id.",
        "groups": "List consumer groups, their members, offsets and lag.",
        "schemas": "List the schemas of a schema registry, from its topic.",
        "connect": "List connectors, tasks and source offsets of Kafka Connect.",
        "metadata": "Show the contents of the KRaft metadata log.",
        "du": "Show what fills the disk: every folder and file of log dirs.",
        "stats": "Show the batches, codecs and producers of topics.",
        "retention": "List the segments that a broker deletes, when and why.",
        "compaction": "Show what the log cleaner does next.",
    },
    "Check and repair": {
        "check": "Check partitions: their logs, indexes and checkpoints.",
        "verify-index": "Check the indexes of segments against their log.",
        "salvage": "Write the valid batches of damaged logs as new segments.",
        "rebuild-cluster": "Rebuild a cluster from its volumes: complete log dirs that new nodes start on.",
        "slice": "Write a segment of the batches that hold offsets A to B.",
        "rebuild-index": "Write new indexes of segments.",
    },
    "Pipelines": {
        "spark-export": "Write every record to Parquet, with Spark.",
        "mcp": "Serve the commands as read-only tools to an assistant (MCP, stdio).",
    },
    "More": {
        "help": "Explain a command or a topic; without a name, list incidents and topics.",
        "compat": "List the outputs that --compat can print.",
        "completion": "Print the completion script of a shell.",
    },
}
"""Section of the help -> its subcommands -> the first sentence of their help. ``kdump --help`` imports no command."""
COMMANDS: Final = tuple(name for group in GROUPS.values() for name in group)

COMPLETION: Final = 45


HELP_OPTIONS: Final = frozenset({"-h", "--help"})
OWN: Final = frozenset({"--version", "--help"})
"""The options of ``kdump`` that do not belong to --files."""


class Int32(click.types.IntParamType):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number: int = super().convert(value, param, ctx)
        if to_int32(number) != number:
            self.fail(f"{number} does not fit into 32 bits", param, ctx)
        return number


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from kdump import kernel

        click.echo(kernel.version())
        ctx.exit()


def _releases(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    from kdump.dump_log_segments.dialects.releases import CHANGES

    return [change.release for change in CHANGES if change.release.startswith(incomplete)]


class Once(click.Option):
    """An option that may be given only once, as in kafka-dump-log.sh."""

    def __init__(self, names: list[str], /, **rest: Any) -> None:
        default = rest.pop("default", None)
        super().__init__(names, **{**rest, "multiple": True, "default": [] if default is None else [default]})

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        given = super().process_value(ctx, value)
        if len(given) > 1:
            raise KdumpError(f"{self.opts[0]} is given {len(given)} times, and accepts one value")
        return given[0] if given else None


def _decoder_switches(command: Callable[..., Any]) -> Callable[..., Any]:
    for topic, switch in reversed(DECODER_SWITCHES.items()):
        command = click.option(f"--{switch}", is_flag=True, help=f"Decode records of {topic}.")(command)
    return command


@contextmanager
def _closed_pipe() -> Iterator[None]:
    """Exit without a message if standard output is a closed pipe."""
    try:
        yield
    except BrokenPipeError:
        give_up()
        raise click.exceptions.Exit(ExitStatus.CLOSED_PIPE) from None


def sentence_of(name: str) -> str:
    return next(names[name] for names in groups().values() if name in names)


def short_help(name: str) -> str:
    """Return the description of a command for shell completion."""
    return click.Command(name, help=sentence_of(name)).get_short_help_str(COMPLETION)


def groups() -> dict[str, dict[str, str]]:
    """Return :data:`GROUPS`, and in the section Answer also questions that other code has added to QUESTIONS."""
    from kdump.answers import QUESTIONS, question_named

    more = [name for name in QUESTIONS if name not in COMMANDS and name != "events"]
    sentences = {name: question_named(name).help.partition("\n")[0] for name in more}
    return {**GROUPS, "Answer": {**GROUPS["Answer"], **sentences}} if more else GROUPS


def _as_in_java(params: Sequence[click.Parameter], args: Sequence[str]) -> list[str]:
    """Rewrite arguments for click: kafka-dump-log.sh also accepts ``-files`` and ``--print-data-log=true``.

    Like kafka-dump-log.sh (jopt-simple 3 to 5), ignore the value of a flag. Warn unless it is ``true`` or empty.
    """
    options = {name: param for param in params for name in param.opts if name not in OWN}
    rest = iter(args)
    words: list[str] = []
    for word in rest:
        name, equals, value = word.partition("=")
        name = name if name.startswith("--") else f"-{name}"
        option = options.get(name)
        if word == "--" or not isinstance(option, click.Option):
            words += (word, *(rest if word == "--" else ()))
        elif option.is_flag:
            words.append(name)
            if value not in {"", "true"}:
                click.echo(f"WARNING: {name} takes no value, as in kafka-dump-log.sh: {value!r} is ignored", err=True)
        else:
            words.append(f"{name}{equals}{value}")
            if not equals and option.flag_value != "":
                words += islice(rest, 1)
    return words


class Root(click.Group):
    """The group of subcommands, each imported when it is needed."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line. With ``--files``, options may follow other words; help is :func:`files_help`."""
        if args[:1] and args[0].startswith("-"):
            args = _as_in_java(self.params, args)
        if any(word == "--files" or word.startswith("--files=") for word in args):
            if not HELP_OPTIONS.isdisjoint(args):
                click.echo(files_help(ctx))
                ctx.exit()
            ctx.allow_interspersed_args = True
            return click.Command.parse_args(self, ctx, args)
        return super().parse_args(ctx, args)

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """Parse the command line; ``--help`` prints during this call. On a closed pipe exit with 141, unlike click."""
        with _closed_pipe():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: click.Context) -> Any:
        with _closed_pipe():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click passes it
        return [name for names in groups().values() for name in names]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  click passes it
        name = f"kdump.commands.{cmd_name.replace('-', '_')}"
        if cmd_name in COMMANDS and find_spec(name) is not None:
            command: click.Command = import_module(name).command
        else:
            from kdump.answers import QUESTIONS

            if cmd_name not in QUESTIONS or cmd_name == "events":
                return None
            from kdump.command_line.question_command import command_of

            command = command_of(cmd_name)
        from kdump.command_line.command_help import Command

        return Command.of(command)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)
        options = (param for param in self.get_params(ctx) if not OWN.isdisjoint(param.opts))
        with formatter.section("Options"):
            formatter.write_dl([record for one in options if (record := one.get_help_record(ctx)) is not None])

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  click passes it
        """Write the subcommands group by group. Long sentences are wrapped; click would shorten them."""
        widest = max(map(len, COMMANDS))
        for title, names in groups().items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), sentence) for name, sentence in names.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(name, help=short_help(name))
            for name in self.list_commands(ctx)
            if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from kdump.command_line.option_values import log_dirs
            from kdump.command_line.usage_hints import HintedUsageError, command_of_path, of_other_tool

            if args and (command := command_of_path(log_dirs(args)[0])) is not None:
                if not any(word.startswith("-") or word in COMMANDS for word in args):
                    return OVERVIEW, _Overview(OVERVIEW, hidden=True), [*log_dirs(args)]
                command = next((word for word in args if word in COMMANDS), command)
                suggested = " ".join([f"kdump {command}", *(shell_word(word) for word in args if word != command)])
                text = f"{args[0]!r} is a path: put a command before the path."
                raise HintedUsageError(text, ctx, suggested) from None
            from kdump.primitives.messages import did_you_mean

            if args and (line := of_other_tool(args)) is not None:
                raise HintedUsageError(error.message, ctx, line) from None
            if args and (near := did_you_mean(args[0], COMMANDS, " Did")):
                raise click.UsageError(error.message + near, ctx) from None
            raise


OVERVIEW: Final = "overview"
"""The name of the command of ``kdump PATH``, which users do not type."""


class _Overview(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.args = args
        return args

    def invoke(self, ctx: click.Context) -> int:
        from kdump.commands.overview import overview

        return overview(tuple(ctx.args))


@click.group(
    cls=Root,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    options_metavar="",
    subcommand_metavar="COMMAND [OPTIONS] PATH...",
)
@click.option("--files", cls=Once, metavar="FILE,FILE,...", help="The files to dump, separated by commas.")
@click.option("--print-data-log", is_flag=True, help="Print keys and values of records too.")
@click.option("--deep-iteration", is_flag=True, help="Print the records of each batch.")
@click.option("--verify-index-only", is_flag=True, help="Check indexes against their log without printing them.")
@click.option("--index-sanity-check", is_flag=True, help="Check indexes only as a broker does when it starts.")
@click.option(
    "--max-message-size",
    cls=Once,
    type=Int32(),
    default=DEFAULT_MAX_MESSAGE_SIZE,
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
    help="Read only the first BYTES of each segment.",
)
@click.option(
    "--key-decoder-class",
    cls=Once,
    is_flag=False,
    flag_value="",
    metavar="[CLASS]",
    help="Class that decodes keys, with its package: StringDecoder, DefaultDecoder, LongDecoder or IntegerDecoder.",
)
@click.option(
    "--value-decoder-class",
    cls=Once,
    is_flag=False,
    flag_value="",
    metavar="[CLASS]",
    help="Class that decodes values.",
)
@_decoder_switches
@click.option("--skip-record-metadata", is_flag=True, help="Print only keys and values of records.")
@RAW_OUTPUT
@MAX_BATCH_BYTES
@JOBS
@CACHE
@click.option(
    "--compat",
    cls=Once,
    metavar="RELEASE",
    default=COMPAT,
    show_default=True,
    help="The Kafka release whose output to print.",
    shell_complete=_releases,
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version and exit."
)
@click.pass_context
def root(ctx: click.Context, /, files: str | None, compat: str, jobs: int | None, **options: Any) -> None:
    """Read Apache Kafka's files on disk, with no broker and no JVM. Files are opened read-only.

    \b
    kdump PATH...         what is there, and what to run next
    kdump COMMAND --help  the options of a command
    kdump help            what to run when, and all topics
    kdump help files      --files: as kafka-dump-log.sh
    """
    if ctx.invoked_subcommand is not None:
        return
    if files is None:
        if any(ctx.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE for name in ctx.params):
            raise click.UsageError("--files is missing: it names the files to dump", ctx)
        raise click.UsageError("a command is missing: kdump --help lists them", ctx)
    for word in ctx.args:
        note = f"{word!r} is an extra word: --files takes one list with commas (--files a.log,b.log)"
        click.echo(f"WARNING: {note}", err=True)  # scripts skip lines that begin like Java's warnings
    given = [name for name in ctx.params if ctx.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE]
    switches = [switch for switch in DECODER_SWITCHES.values() if options.pop(switch.replace("-", "_"))]
    options.pop("raw_output")  # ``given`` has it
    chosen = Options(**options, decoder_switch=switches[0] if switches else None)
    classic(files, chosen, given, compat, jobs)


def files_help(ctx: click.Context) -> str:
    """Return the page of ``--files``: the options of kafka-dump-log.sh, and kdump's own."""
    formatter = ctx.make_formatter()
    formatter.write_usage("kdump", "--files FILE,FILE,... [OPTIONS]")
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text(FILES_TEXT)
    options = [param for param in root.params if OWN.isdisjoint(param.opts)]
    with formatter.section("Options"):
        formatter.write_dl([record for one in options if (record := one.get_help_record(ctx)) is not None])
    return formatter.getvalue().rstrip("\n")


FILES_TEXT: Final = """\
Print what kafka-dump-log.sh (Kafka's class DumpLogSegments) prints, to the byte. Files are opened read-only.

\b
Examples:
  kdump --files 00000000000000000000.log --print-data-log
  kdump --files 0.log,0.index,0.timeindex --deep-iteration
  kdump --compat 2.8 --files 00000000000000000000.log

Exit status: as kafka-dump-log.sh; 2 wrong usage."""


def main() -> object:
    """Run the command line; return the exit status (None: success). Prints errors of click, raises KdumpError."""
    try:
        return root.main(standalone_mode=False)
    except click.ClickException as error:
        from kdump.command_line.usage_hints import hint_of, suggesting
        from kdump.primitives.messages import message

        shown = suggesting(error, sys.argv[1:], COMMANDS)
        message("error", shown.format_message(), hint_of(shown))
        return error.exit_code
    except click.Abort:  # click has ended the line of ^C
        return ExitStatus.INTERRUPTED
