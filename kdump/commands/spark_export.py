"""``kdump spark-export``: writes the records of log dirs to Parquet or another format, with Spark."""

from __future__ import annotations

import sys
import time
from typing import IO, TYPE_CHECKING, Any, Final

import click

from kdump.command_line import session
from kdump.command_line.limit_options import MAX_BATCH_BYTES, PATHS
from kdump.command_line.options import CONF, PACKAGES, with_packages
from kdump.errors import UsageError, many
from kdump.printers.quantities import size
from kdump.spark import session as spark_session
from kdump.spark.export.output import FOLDERS, FORMATS
from kdump.spark.source import options as words

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdump.segments.regions import Damage
    from kdump.spark.export.following import Added
    from kdump.spark_export import Export, Listener, Summary

LEFT_TO_US: Final = {
    "output",
    "mode",
    "failOnDataLoss",
    "pushdown",
    "maxBatchBytes",
    "remote",
    "remoteKey",
    *(option.name for option in words.OPTIONS if "PerTrigger" in option.name or option.of),
}
"""Options of the Spark source that :func:`_source_options` leaves out. The source's ``mode`` is ``--read-mode``."""


def _kebab(name: str) -> str:
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name)


def _checked(_: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
    """Return ``text`` after checking it as the value of an option. Raises UsageError that names the option."""
    option = next(option for option in words.OPTIONS if option.name == parameter.name)
    try:
        if text is not None:
            words.read(option, text)
    except UsageError as error:
        raise UsageError(str(error).replace(f"option {option.name}", parameter.opts[0])) from None
    return text


def _file_size(_: click.Context, __: click.Parameter, text: str | None) -> int | None:
    try:
        return None if text is None else words.size(text)
    except ValueError:
        raise UsageError(
            f"--target-file-size: expected a number of bytes or a size such as 256m, found {text!r}"
        ) from None


def _source_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(words.OPTIONS):
        if option.name in LEFT_TO_US:
            continue
        flag = f"--{_kebab(option.name)}"
        if option.shape == "true or false":
            add = click.option(flag, option.name, is_flag=True, help=option.doc)
        else:
            add = click.option(
                flag, option.name, metavar="TEXT", help=f"{option.doc[:-1]} ({option.shape}).", callback=_checked
            )
        function = add(function)
    return function


@click.command(short_help="Write every record to Parquet, with Spark.")
@PATHS
@click.option("--out", required=True, metavar="DIR", help="The folder to write, on a file system of Spark.")
@click.option(
    "--format",
    default="parquet",
    show_default=True,
    metavar="NAME",
    help=f"The format: {', '.join(FORMATS)}, or another writer of Spark, such as delta or iceberg.",
)
@click.option(
    "--partition-by",
    default="topic,date",
    show_default=True,
    metavar="NAMES",
    help=f"Nested folders for the values of these columns: {', '.join(FOLDERS)}; or none. With subject, records get "
    "the typed columns of their schema.",
)
@click.option(
    "--mode",
    type=click.Choice(("error", "overwrite", "append")),
    default="error",
    show_default=True,
    help="What to do if DIR exists.",
)
@click.option(
    "--target-file-size",
    metavar="SIZE",
    callback=_file_size,
    help="Write files of about this size, such as 256m. This shuffles all rows.  [default: one file per task and "
    "folder]",
)
@click.option(
    "--read-mode",
    type=click.Choice((words.PERMISSIVE, words.DROPMALFORMED, words.FAILFAST), case_sensitive=False),
    metavar=f"[{words.PERMISSIVE}|{words.DROPMALFORMED}|{words.FAILFAST}]",
    default=words.PERMISSIVE,
    show_default=True,
    help="What to do with damaged ranges: write them to DIR/_damaged, leave them out, or fail at the first.",
)
@click.option(
    "--master",
    default="local[*]",
    show_default=True,
    metavar="URL",
    help="Where Spark runs: local[N], spark://HOST:PORT, yarn, k8s://URL.",
)
@CONF
@PACKAGES
@click.option(
    "--incremental", is_flag=True, help="Write only records that no earlier run with --incremental has written to DIR."
)
@click.option("--follow", is_flag=True, help="Write new records as they are appended, until Ctrl-C.")
@click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
@_source_options
@MAX_BATCH_BYTES
def command(
    paths: tuple[str, ...], quiet: bool, incremental: bool, follow: bool, max_batch_bytes: int, **given: Any
) -> int:
    """Write every record of segments, partition folders or log dirs to Parquet, with Spark.

    \b
    Examples:
      kdump spark-export /var/lib/kafka/data --out /lake/kafka
      kdump spark-export hdfs://node:8020/logs --out hdfs://node:8020/lake
      kdump spark-export backup --out lake --master spark://host:7077

    PATH is a file, a folder, a glob, or a URI (s3://, gs://, hdfs://). DIR/_damaged holds the damaged bytes, and
    DIR/_manifest.json accounts for every byte of the input. Rows are counted before and after: the export fails if a
    row is missing. A new DIR appears only when all files are complete. Files added to DIR or to a store may appear one
    by one, _manifest.json last. After a kill run the export again. Only one export at a time can write into DIR.

    Exit status: 0 written; 1 something cannot be read or written; 2 wrong usage; 3 damage was found.
    """
    spark_session.check_version()
    from kdump import spark_export
    from kdump.spark.failures import MalformedError

    run = session.Session(quiet=quiet)
    ours = {name: given.pop(name) for name in ("out", "format", "mode", "master", "target_file_size")}
    export = spark_export.Export(
        paths=paths,
        **ours,
        partition_by=_folders(given.pop("partition_by")),
        conf=with_packages(given.pop("conf"), given.pop("packages")),
        options={
            "mode": given.pop("read_mode"),
            "maxBatchBytes": str(max_batch_bytes),
            **{name: "true" if value is True else value for name, value in given.items() if value},
        },
    )
    if incremental or follow:
        return _go_on(run, export, forever=follow)
    if export.format not in FORMATS:
        spark_session.check_writer(export.format, spark_session.configured(export.conf))
    progress = _Progress(sys.stderr if sys.stderr.isatty() and not run.quiet else None)

    def done(summary: Summary) -> None:
        progress.clear()
        _report(run, export, summary)

    try:
        with progress:
            spark_export.run(export, _listener(run, progress)._replace(done=done))
    except MalformedError as error:
        run.damage(str(error))
    return run.status


def _report(run: session.Session, export: Export, summary: Summary) -> None:
    rate = summary.rows / max(summary.seconds, 0.001)
    run.note(
        f"{summary.files} files, {summary.batches} batches, {summary.rows} records, "
        f"{summary.damaged_ranges} damaged ranges ({size(summary.damaged_bytes)}), "
        f"{size(summary.size)} in {summary.seconds:.1f} s, {rate:,.0f} rows/s"
    )
    for unreadable in summary.unreadable:
        run.fail(unreadable)
    _report_damage(run, export, summary)


def _go_on(run: session.Session, export: Export, *, forever: bool) -> int:
    from kdump import spark_export
    from kdump.spark.failures import MalformedError

    progress = _Progress(sys.stderr if sys.stderr.isatty() and not run.quiet else None)
    follower = spark_export.Follower(export, _listener(run, progress))
    try:
        with progress:
            follower.run(forever=forever)
    except KeyboardInterrupt:  # committed output stays; the next run continues after it
        _sum_up(run, export, follower.added)
        raise
    except MalformedError as error:
        run.damage(str(error))
    _sum_up(run, export, follower.added)
    return run.status


def _sum_up(run: session.Session, export: Export, added: Added) -> None:
    done = added.summary
    run.note(
        f"{many(done.rows, 'record')} added in {many(added.steps, 'step')}: {many(done.files, 'file')}, "
        f"{many(done.batches, 'batch', 'batches')}, {many(done.damaged_ranges, 'damaged range')} "
        f"({size(done.damaged_bytes)}), {size(done.size)}"
    )
    for unreadable in done.unreadable:
        run.fail(unreadable)
    if added.lost:
        run.damage(
            f"records were deleted before kdump read them: {export.account}/_manifest.json lists "
            f"{many(len(added.lost), 'loss', 'losses')}"
        )
    _report_damage(run, export, done)


def _listener(run: session.Session, progress: _Progress) -> Listener:
    from kdump.spark_export import Listener

    def note(text: str) -> None:
        progress.clear()
        run.note(text)

    def damage(file: str, found: Damage) -> None:
        progress.clear()
        run.damaged_range(file, found)

    return Listener(note, progress, damage=damage)


def _report_damage(run: session.Session, export: Export, done: Summary) -> None:
    run.sum_up()
    if done.damaged_ranges or done.damaged_bytes:
        out = export.account
        if export.options["mode"] == words.DROPMALFORMED:
            run.damage(
                f"damaged ranges are left out ({size(done.damaged_bytes)}): --read-mode {words.PERMISSIVE} lists them"
            )
        else:
            run.damage(f"there are damaged ranges: {out}/_manifest.json lists them, and {out}/_damaged has the bytes")


def _folders(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    return () if names == ("none",) else tuple(dict.fromkeys(names))


class _Progress(session.StatusLine):
    def __init__(self, out: IO[str] | None) -> None:
        super().__init__(out)
        self._beginning, self._shown, self._began = "", 0.0, time.monotonic()

    def __call__(self, what: str, done: int, total: int) -> None:
        beginning, now = what.partition(":")[0], time.monotonic()
        if not what:
            self.clear()
        elif beginning != self._beginning or now - self._shown >= session.EVERY:
            if beginning != self._beginning:
                self._began = now
            self.show(
                session.share_done(done, total, f"{what}: {done} of {total} tasks", now - self._began)
                if total
                else what
            )
            self._shown = now
        self._beginning = beginning
