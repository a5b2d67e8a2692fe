"""``kdump sql``: queries logs and answers with DuckDB, once or at a prompt; :mod:`kdump.queries` has the engine."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import click

from kdump.arrow.files import small_arrow
from kdump.command_line import option_values, session
from kdump.command_line import options as shared
from kdump.command_line.command_help import Command
from kdump.command_line.limit_options import ANY_PATH, AtLeast
from kdump.command_line.options import AT
from kdump.errors import ExitStatus, KdumpError, UnreadableError, UsageError
from kdump.output.parts import remove
from kdump.output.stdout import is_terminal, open_output
from kdump.primitives import signals, supervision, timestamps
from kdump.primitives.messages import message
from kdump.primitives.terminal import harmless_line
from kdump.queries import FORMATS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from kdump.arrow.typed import TypedColumns
    from kdump.log_dirs.finder import Wanted
    from kdump.queries.engine import Engine, Running
    from kdump.queries.reading import QueryReading, SqlInputs
    from kdump.queries.views import View
    from kdump.schemas.decoder import PayloadDecoder

BESIDE: Final = 1 << 30
"""Bytes that a query may use in addition to --memory. DuckDB's limit does not count some constants and lists."""
MISSING: Final = "kdump sql needs DuckDB 2 and PyArrow: pip install 'kdump[sql]'"


class _SqlCommand(Command):
    """A command whose query may begin with a comment of SQL, which click would read as an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = {name for param in self.get_params(ctx) for name in (*param.opts, *param.secondary_opts)}
        end = args.index("--") if "--" in args else len(args)
        words = [f" {word}" if _is_commented(word, options) else word for word in args[:end]]
        return super().parse_args(ctx, words + args[end:])


def _is_commented(word: str, options: Collection[str]) -> bool:
    comment = word.startswith("--") and ("\n" in word or word[2:3].isspace())
    return comment and word.partition("=")[0] not in options


def _params(_: click.Context, __: click.Parameter, pairs: tuple[str, ...]) -> dict[str, str]:
    return option_values.pairs("--param", pairs, "NAME=VALUE", "topic=orders")


MOST_SECONDS: Final = 10**8
"""The longest ``--timeout``, about three years."""


@click.command("sql", cls=_SqlCommand)
@click.argument("words", nargs=-1, metavar="[QUERY|-] PATH...", type=ANY_PATH)
@click.option("-f", "--file", "file", type=ANY_PATH, metavar="FILE", help="Read the query from a file.")
@click.option(
    "--param",
    "params",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_params,
    help="The text that replaces $NAME in the query.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="The format. parquet needs --out; arrow is a stream of Arrow IPC.",
)
@click.option("--out", metavar="FILE", help="Write the rows to a file.")
@click.option("--overwrite", is_flag=True, help="Replace FILE if it exists.")
@click.option("--schema", is_flag=True, help="List the views with their columns, types and units. Needs no PATH.")
@shared.add(shared.PARTITIONS)
@click.option(
    "--leftovers",
    is_flag=True,
    help="Also read .deleted, .swap and .cleaned files, and -delete, -future and -stray folders.",
)
@shared.EVERY_REPLICA
@shared.add(shared.REMOTE)
@AT
@shared.FILTERS["isolation"]
@click.option(
    "--out-of-order",
    is_flag=True,
    help="Also read segments that begin after the requested times. They may have records of these times.",
)
@click.option(
    "--tz",
    default="UTC",
    show_default=True,
    metavar="ZONE",
    help="The time zone of times that do not name a zone, such as Asia/Tokyo.",
)
@shared.add(shared.DECODE)
@click.option(
    "--subject",
    metavar="SUBJECT[:VERSION]",
    help="In the view 'records', add columns with the types of this subject, such as orders-value; implies --decode "
    "auto.",
)
@click.option("--timeout", type=float, metavar="SECONDS", help="Stop the query after this time.")
@click.option(
    "--memory", type=option_values.Size(), default="128MB", show_default=True, metavar="SIZE", help="Memory of DuckDB."
)
@click.option(
    "--threads", type=AtLeast(1), metavar="N", help="Threads of DuckDB, at least 2.  [default: cores, 2 to 4]"
)
@click.option("--temp-dir", type=ANY_PATH, metavar="DIR", help="Where temporary files go.  [default: $TMPDIR]")
@click.option("--stats", is_flag=True, help="Print the numbers of bytes and rows read, as JSON on standard error.")
@click.option(
    "--no-payload",
    is_flag=True,
    help="Return NULL as keys, values and headers, and add the columns keySize and valueSize.",
)
@shared.REDACT
@shared.REDACT_FILE
@shared.add(shared.LIMITS)
@click.option("-q", "--quiet", is_flag=True, help="Print errors and damage only.")
def command(words: tuple[str, ...], *, schema: bool, **given: Any) -> int:
    """Query logs, and the results of commands, with SQL (DuckDB).

    \b
    Examples:
      kdump sql "select topic, count(*) from records group by 1" /var/kafka
      kdump sql "from group_offsets where lag > 0 order by lag desc" /var/kafka
      kdump sql "select * from records where offset = 42" orders-0 -o jsonl
      kdump sql -f query.sql /var/kafka -o parquet --out rows.parquet
      kdump sql --schema

    The lines that commands print with -o jsonl are views: records, batches, damage, offsets, transactions, groups,
    stats and more, but not those of explain, connect and coordinator. kdump reads only files and bytes that may match
    conditions on topic, partition, offset, timestamps, key and producerId. Only SELECT, DESCRIBE, SHOW, SUMMARIZE and
    EXPLAIN run; a query opens no file and changes nothing. On a terminal, PATHs without a query open a prompt.

    Exit status: 0 answered; 1 something cannot be read or the query fails; 2 wrong usage or a wrong query; 3 damage
    was found; 4 only derived files are wrong.
    """
    if not schema:
        supervision.supervise(remove)
    small_arrow()
    try:
        with signals.at_once():
            from kdump.queries import engine, writers  # noqa: F401  their imports are compiled too
            from kdump.queries.views import Views
    except ImportError as error:
        raise UsageError(MISSING) from error
    if given["subject"] is not None and given["decode"] == "none":
        given["decode"] = "auto"
    known = Views(decoded=given["decode"] != "none", sizes=given["no_payload"])
    if schema:
        if given["out"] is not None or given["file"] is not None:
            raise UsageError("--schema cannot be combined with --out and --file")
        return _schema(words, known, given["output"])
    if _asks_at_prompt(words, given["file"]):
        return _at_prompt(words, given, known)
    text, paths = _query(words, given["file"])
    run = _Command(given, paths, known)
    try:
        return run.run(text)
    except (engine.QueryError, engine.WrongQueryError) as error:
        report_error(error)
        supervision.said()
        return 2 if isinstance(error, UsageError) else 1


def _schema(names: tuple[str, ...], known: Mapping[str, View], output: str) -> int:
    from kdump.primitives.messages import did_you_mean
    from kdump.queries.views import SECOND_NAMES, schema_lines

    for name in names:
        if name not in known and name not in SECOND_NAMES:
            raise UsageError(f"there is no view {name!r}{did_you_mean(name, known)}")
    if output not in {"table", "jsonl"}:
        raise UsageError("--schema works only with -o table and -o jsonl")
    from kdump.printers import answer_lines

    with open_output() as out:
        if output == "jsonl":
            for line in schema_lines(names, known):
                out.write(answer_lines.json_line(line))
            return 0
        chosen = (known[SECOND_NAMES.get(name, name)] for name in names or known)
        answer_lines.write_plain(map(_view_table, chosen), out)
    return 0


def _view_table(view: View) -> Any:
    from kdump.printers.answer_lines import AnswerTable

    rows = [(line["column"], line["type"], line.get("unit", ""), line["doc"]) for line in view.lines()]
    return AnswerTable(f"{view.name} = kdump {view.command}: {view.doc}", ("column", "type", "unit", "what"), rows)


def _asks_at_prompt(words: tuple[str, ...], file: str | None) -> bool:
    alone = bool(words) and file is None and all(map(option_values.is_there, words))
    return alone and sys.stdin.isatty() and is_terminal()


def _at_prompt(words: tuple[str, ...], given: dict[str, Any], known: Mapping[str, View]) -> int:
    from kdump.queries.prompt import Prompt

    first = _Command(given, words, known)  # raises UsageError for options that exclude each other

    def ask(text: str, output: str, out: str | None) -> int:
        return _Command({**given, "output": output, "out": out}, words, first.known, first).run(text)

    prompt = Prompt(first.known, ask, lambda names: _schema(names, first.known, "table"), report_error)
    prompt.mode = first.output
    return prompt.run()


def _query(words: tuple[str, ...], file: str | None) -> tuple[str, tuple[str, ...]]:
    if file is not None:
        return _text_of(file), _some(words)
    if not words:
        raise UsageError("a query and a PATH are missing: kdump sql 'select * from offsets' PATH")
    query, *paths = words
    if query == "-":
        return sys.stdin.buffer.read().decode("utf-8", "surrogateescape"), _some(tuple(paths))
    if option_values.is_there(query) and not paths:
        raise UsageError(f"there is no query: put one before the PATH {query}, for example 'from offsets'")
    return query, _some(tuple(paths))


def _some(paths: tuple[str, ...]) -> tuple[str, ...]:
    if not paths:
        raise UsageError("a PATH is missing after the query")
    return option_values.log_dirs(paths)


def _text_of(file: str) -> str:
    try:
        with open(file, "rb") as source:  # noqa: PTH123  pathlib is slow to import
            return source.read().decode("utf-8", "surrogateescape")
    except OSError as reason:
        raise UnreadableError.of(file, reason) from reason


class _Command:
    """A query with the options of the command. Every query of a prompt reuses the schemas that ``first`` has read."""

    def __init__(
        self,
        given: dict[str, Any],
        paths: tuple[str, ...],
        known: Mapping[str, View],
        first: _Command | None = None,
    ) -> None:
        self.given, self.paths, self.known = given, paths, known
        self.session = session.Session(quiet=given["quiet"])
        self.output: str = given["output"]
        self.out: str | None = given["out"]
        self._refuse()
        wanted = shared.wanted(dict(given), siblings=True)
        at = timestamps.now() if given["at"] is None else given["at"]
        from kdump.queries.reading import SqlInputs

        fields = shared.redacted_fields(given["redact"], given["decode"])
        self.redactor = shared.redactor(redact=bool(given["redact"]), file=given["redact_key"], fields=fields)
        decoder = self._decoder(wanted) if first is None else first.inputs.decoder
        typed = self._typed(decoder) if first is None else first.inputs.typed
        self.inputs: SqlInputs = SqlInputs(
            paths,
            wanted,
            at,
            committed=given["isolation"] == "read_committed",
            every_replica=given["every_replica"],
            out_of_order=given["out_of_order"],
            payloads=not given["no_payload"],
            redactor=self.redactor,
            decoder=decoder,
            typed=typed,
            schemas=given["schemas"],
            schemas_topic=given["schemas_topic"],
        )

    def _typed(self, decoder: PayloadDecoder | None) -> TypedColumns | None:
        """Return the typed columns of the subject and add them to the views, or None without a subject."""
        if decoder is None or self.given["subject"] is None:
            return None
        from kdump.arrow.typed import TypedColumns
        from kdump.queries.views import Views

        typed = TypedColumns.of_subject(decoder, self.given["subject"], "duckdb")
        self.known = Views(decoded=True, typed=typed)
        return typed

    def _decoder(self, wanted: Wanted) -> PayloadDecoder | None:
        if self.given["decode"] == "none":
            return None
        return shared.payload_decoder(self.given, self.paths, self.session, wanted)

    def _refuse(self) -> None:
        if self.output == "parquet" and self.out is None:
            raise UsageError("-o parquet needs a file: name it with --out FILE")
        if self.output == "arrow" and self.out is None and is_terminal():
            raise UsageError("-o arrow is binary: name a file with --out FILE, or send it through a pipe")
        if self.given["timeout"] is not None and not 0 < self.given["timeout"] <= MOST_SECONDS:
            raise UsageError(f"--timeout is a number of seconds above 0, and at most {MOST_SECONDS}")
        if self.given["decode"] != "none" and self.given["no_payload"]:
            raise UsageError("--decode shows payloads: it cannot be combined with --no-payload")
        if self.given["decode"] != "none" and "" in self.given["redact"]:
            raise UsageError(shared.DECODE_NEEDS_FIELDS)
        if self.given["subject"] is not None and self.given["redact"]:
            raise UsageError(shared.TYPES_WITHOUT_HASHES)
        if self.given["redact"] and self.given["no_payload"]:
            raise UsageError("--redact cannot be combined with --no-payload")
        if self.out is None and self.given["overwrite"]:
            raise UsageError("--overwrite needs --out")
        if self.out is not None:
            from kdump.output import files

            files.outside(self.paths, self.out)
            files.writable_file(self.out, overwrite=self.given["overwrite"])

    def run(self, text: str) -> int:
        from kdump.output.files import scratch_folder
        from kdump.queries.engine import Engine, QueryLimits

        running: list[Running] = []
        try:
            with bounded_memory(self.given["memory"] + BESIDE), scratch_folder(self.given["temp_dir"]) as folder:
                limits = QueryLimits(
                    self.given["memory"],
                    self.given["threads"] or min(4, os.cpu_count() or 1),
                    folder,
                    self.given["timeout"],
                    self.given["tz"],
                )
                return self.query(Engine(self.known, limits), text, running)
        except BaseException as error:
            if any(one.is_stuck for one in running):
                end_now(error)
            raise

    def query(self, engine: Engine, text: str, running: list[Running]) -> int:
        """Write the rows of a query, and add the query to ``running``. Return the exit status."""
        from kdump.queries.engine import QueryTimeoutError, Running
        from kdump.queries.reading import QueryReading

        with metered(wanted=self.given["stats"]) as meter:
            run = self.session
            reading = QueryReading(
                self.inputs,
                run.report,
                lambda item: run.damaged_range(item.file.name, item.damage),
                run.reads,
                run.add_status,
            )
            began, rows = time.monotonic(), 0
            one = Running(engine, text, self.given["params"], reading)
            running.append(one)
            supervision.begin(engine.limits.timeout, one.late)
            is_late = False
            try:
                one.wait()
                self.session.unwatch()
                rows = self._write(one)
            except QueryTimeoutError:
                is_late = True
                raise
            finally:
                one.close()
                if one.is_stuck:
                    supervision.last_words(is_late=is_late)
                else:
                    supervision.end()
                self.session.progress.clear()
                self.session.sum_up()
            shared.warn_of_absent_fields(self.redactor, self.session)
            if meter is not None:
                line = stats(meter.totals(), reading, rows, time.monotonic() - began)
                print("kdump: stats " + json.dumps(line, ensure_ascii=False, separators=(",", ":")), file=sys.stderr)
        return self.session.status

    def _write(self, running: Running) -> int:
        from kdump.queries import writers

        with self._opened() as out:
            if self.output != "table":
                return writers.write(self.output, running.types, running.schema, running.batches(), out)
            shown = out.isatty() and self.out is None
            width = shutil.get_terminal_size().columns if shown else None
            return writers.TextTable(running.types, running.schema, width).write(running.batches(), out)

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        if self.out is None:
            with open_output(escape=self.output != "arrow") as out:
                yield out
            return
        from kdump.output import files

        with files.new_file(self.out, force=self.given["overwrite"], note=self.session.note) as part:
            yield part
            self.session.must_be_whole(self.out)


@contextmanager
def metered(*, wanted: bool) -> Iterator[Any]:
    """Count the bytes read from local files in the block: yield the counter, or None unless ``wanted``."""
    if not wanted:
        yield None
        return
    from kdump.log_dirs.local import LocalFile, Meter

    LocalFile.meter = meter = Meter()
    try:
        yield meter
    finally:
        LocalFile.meter = None


def stats(read: dict[str, int], reading: QueryReading, rows: int, seconds: float) -> dict[str, object]:
    """Return the line of --stats. ``read`` has the bytes read of each file by its path."""
    logs = {path: size for path, size in read.items() if size and ".log" in path.rpartition("/")[2]}
    indexes = sum(size for path, size in read.items() if path.endswith("index"))
    return {
        "kind": "sqlStats",
        "segmentsRead": len(logs),
        "bytesRead": sum(logs.values()),
        "indexBytesRead": indexes,
        "batchesRead": reading.batches_read,
        "recordsRead": reading.records_read,
        "rows": rows,
        "seconds": round(seconds, 3),
        "scans": [scan.line() for scan in reading.scans],
    }


@contextmanager
def bounded_memory(size: int) -> Iterator[None]:
    """Limit this process in the block to ``size`` bytes of data; on Linux, to ``size`` more than it has now."""
    import resource

    try:
        with open("/proc/self/status", "rb") as status:  # noqa: PTH123  pathlib is slow to import
            size += next((int(line.split()[1]) << 10 for line in status if line.startswith(b"VmData:")), 0)
    except OSError:  # not Linux
        pass
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    known = [one for one in (size, soft, hard) if one != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(known), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def report_error(error: BaseException) -> None:
    """Print an error on standard error. An error of a query may have several lines."""
    first, *more = str(error).split("\n")
    message("error", first)
    for line in more:
        print(harmless_line(line), file=sys.stderr)


def end_now(error: BaseException) -> None:
    """Print an error and end the process: DuckDB did not stop its query. Temporary files are already deleted."""
    status = 1
    if isinstance(error, KeyboardInterrupt):
        print(file=sys.stderr)
        status = ExitStatus.INTERRUPTED
    elif isinstance(error, KdumpError):
        report_error(error)
        status = 2 if isinstance(error, UsageError) else 1
    elif isinstance(error, SystemExit):
        status = error.code if isinstance(error.code, int) else 1
    else:
        import traceback

        traceback.print_exception(error)
    sys.stderr.flush()
    os._exit(status)
