"""``kdump report``: writes or prints the report of :mod:`kdump.report` on log dirs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from kdump.command_line.answering import CONFIGS, Answering
from kdump.command_line.limit_options import ANY_PATH, PATHS
from kdump.command_line.option_values import MOMENT
from kdump.command_line.options import AT, LIMITS, NO_PAGER, PARTITIONS, WORKERS, add
from kdump.errors import ExitStatus, Reporter, UnreadableError, UsageError
from kdump.findings import Level
from kdump.log_dirs.finder import NO_SEGMENT, holds_a_log
from kdump.log_dirs.remote import shown_paths, without_secret
from kdump.output.stdout import open_output, paged

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdump.answers.topic_configs import GivenConfig
    from kdump.command_line.session import Session
    from kdump.report.document import LogDirReport

T = TypeVar("T", str, UnreadableError)
STATUS: Final = {Level.LOG.value: ExitStatus.DAMAGED, Level.DERIVED.value: ExitStatus.DERIVED}
OPTIONS: Final[list[Callable[[Callable[..., Any]], Callable[..., Any]]]] = [
    click.option("--out", type=ANY_PATH, metavar="FILE", help="Write the page: one self-contained HTML file."),
    click.option("--overwrite", is_flag=True, help="Replace FILE if it exists."),
    click.option(
        "-o",
        "--output",
        type=click.Choice(("text", "json", "jsonl")),
        default="text",
        show_default=True,
        help="Without --out, print: a short text, one JSON object, or JSON lines.",
    ),
    click.option("--json", "as_json", is_flag=True, help="The same as -o json."),
    click.option("--text", "for_ticket", is_flag=True, help="Print ten lines for a ticket."),
    click.option("--around", type=MOMENT, metavar="TIME", help="Show metadata events within an hour of TIME."),
    PATHS,
    *PARTITIONS,
    *CONFIGS,
    AT,
    *WORKERS,
    NO_PAGER,
    click.option("-q", "--quiet", is_flag=True, help="Print the report, damage and errors only."),
    *LIMITS,
]


@click.command("report")
@add(OPTIONS)
def command(
    *,
    out: str | None,
    overwrite: bool,
    as_json: bool,
    for_ticket: bool,
    around: int | None,
    output: str,
    given: tuple[GivenConfig, ...],
    **options: Any,
) -> int:
    """Show the whole picture of log dirs on one page.

    \b
    Examples:
      kdump report /var/kafka --out report.html
      kdump report /broker1 /broker2 /broker3 --out report.html
      kdump report /var/kafka --out report.html --around 2026-11-21T09:00
      kdump report /var/kafka
      kdump report /var/kafka --text
      kdump report /var/kafka --json | jq '.answers.du.lines[]'

    The page has a verdict with the next commands; bytes by topic and partition, and over time; a map of damage; the
    segments that retention deletes on the next days; codecs and batches; transactions, groups, replicas and metadata
    events. It is one file that needs no network, without keys and values of records. Each section names the command
    that prints the same numbers. The page needs Jinja2 and vl-convert-python: pip install 'kdump[report]'.

    --json prints one object. Its field "answers" has the command line of each command, and the lines that the command
    prints with -o jsonl. 'kdump report -o jsonl' prints these lines, each with the field "answer" first.

    All files are read in one pass. Of other topics than Kafka's own, no record is read: kdump check reads all records.
    To compare log dirs of several brokers (by meta.properties), kdump reads them again. The page shows the retention of
    topics whose configs are in __cluster_metadata or in --config.

    Exit status: 0 made; 1 something cannot be read, or a requested topic or partition is absent; 2 wrong
    usage; 3 a log is damaged, a broker would not start, or records are missing or would be lost; 4 only derived files
    are wrong.
    """
    output = "json" if as_json else output
    if for_ticket and (out is not None or output != "text"):
        raise UsageError("--text cannot be combined with --out, --json or -o")
    if out is not None:
        _check_out(out, options["paths"], overwrite=overwrite)
        if output != "text":
            raise UsageError("--out writes the HTML report: it cannot be combined with --json or -o")
    elif overwrite:
        raise UsageError("--overwrite needs --out")
    from kdump.report import gathering

    run = Answering({**options, "output": output}, leftovers=True, every_folder=True, also=gathering.ALSO, judges=True)
    report = _made(run, around, given)
    _take_status(run.session, report)
    if out is not None:
        _write_page(report, out, run.session.note, overwrite=overwrite)
    elif output != "text":
        _print(report, output)
    elif for_ticket:
        from kdump.report.short import draw_ticket

        draw_ticket(report, sys.stdout)
    else:
        from kdump.report.short import draw

        with paged():
            draw(report, sys.stdout)
    return run.session.status


def _check_out(out: str, paths: tuple[str, ...], *, overwrite: bool) -> None:
    """Raise KdumpError if the page cannot be made or written to ``out``, before anything is read."""
    from kdump.output import files
    from kdump.report import page

    page.require()
    files.writable_file(out, overwrite=overwrite)
    files.outside(paths, out)


def _made(run: Answering, around: int | None, configs: tuple[GivenConfig, ...]) -> LogDirReport:
    from kdump import checking
    from kdump.checks.whole_partition import CheckedPartition, CheckOptions
    from kdump.report import gathering
    from kdump.report.document import ReportRequest, document

    session = run.session
    partitions = run.partitions()
    if not session.statuses and not any(holds_a_log(one.others, log_dirs=True) or one.segments for one in partitions):
        for error in run.without_log:
            session.fail(error)
        if not session.statuses:
            session.fail(UnreadableError(shown_paths(run.paths), NO_SEGMENT))
    messages = dict.fromkeys(sorted(session.reported.failed))
    reporter = Reporter(
        _both(messages, session.damage),
        _both(messages, session.wrong_index),
        session.report.note,
        _both(messages, session.fail),
    )
    session.watched(partitions)
    how = CheckOptions(records=False, at=run.at)
    of, how = checking.prepared(run.paths, partitions, run.asked, how, reporter.fail)
    found = gathering.collectors_for(partitions, run.asked, reporter, how, configs)
    found.found_all = not messages
    dirs = gathering.gather(
        found, partitions, run.asked, reporter, workers=run.workers(partitions), progress=session.progress
    )
    found.checked.append(CheckedPartition(0, 0, 0, tuple(of.alone(found.checked, dirs, reporter.fail))))
    found.started += of.starts(found.checked, dirs, reporter.fail)
    request = ReportRequest(tuple(map(without_secret, run.paths)), run.asked, run.at, around, configs)
    report = document(request, found, partitions, reporter, messages)
    session.progress.clear()
    return report


def _both(messages: dict[str, None], receive: Callable[[T], None]) -> Callable[[T], None]:
    """Return a function that passes each new message to ``receive``, and adds it to ``messages`` for the report."""

    def keep(what: T) -> None:
        if str(what) not in messages:
            messages[str(what)] = None
            receive(what)

    return keep


def _take_status(session: Session, report: LogDirReport) -> None:
    for line in report.lines("check", "finding"):
        is_grave = line["fatal"] or line["missing"] is not None or line["loses"] is not None
        session.reported.statuses.add(ExitStatus.DAMAGED if is_grave else STATUS[line["level"]])


def _write_page(report: LogDirReport, out: str, note: Callable[[str], None], *, overwrite: bool) -> None:
    from kdump.output import files
    from kdump.report.page import page

    content = page(report).encode("utf-8", "backslashreplace")
    with files.new_file(out, force=overwrite, note=note) as file:
        file.write(content)


def _print(report: LogDirReport, output: str) -> None:
    from kdump.printers.answer_lines import json_line

    with open_output() as out:
        for line in [report.as_object()] if output == "json" else report.as_lines():
            out.write(json_line(line))
