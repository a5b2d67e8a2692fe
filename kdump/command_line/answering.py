"""The common part of the answering commands: options, the pass over log dirs, and the output (:class:`Answering`)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import click

from kdump.command_line import option_values, session
from kdump.command_line.limit_options import PATHS, Shared
from kdump.command_line.options import AT, LAYOUT, LAYOUTS, LIMITS, NO_PAGER, PARTITIONS, WORKERS, WhoReads, wanted
from kdump.errors import Reporter, once
from kdump.log_dirs.file_names import Name
from kdump.log_dirs.finder import Finder
from kdump.log_reader.unnamed_logs import BY_PATH, with_names
from kdump.output.stdout import open_output, paged
from kdump.parallel import costs
from kdump.primitives import timestamps

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from kdump.answers.collector import AnswerLine, Collector
    from kdump.answers.log_dir_pass import LogDirPass
    from kdump.errors import UnreadableError
    from kdump.log_dirs.partition import Partition
    from kdump.primitives.processes import Workers
    from kdump.printers.answer_lines import AnswerTable
    from kdump.printers.answer_terminal import Layout

    Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


CONFIGS: Final[list[Decorator]] = [
    click.option(
        "--config",
        "given",
        multiple=True,
        type=option_values.CONFIG,
        metavar="TOPIC:KEY=VALUE",
        help="Use this topic config, not the one in the files; TOPIC may be a glob: '*:retention.ms=3600000'.",
    ),
]


def form(*more: str) -> list[Decorator]:
    """Return the options for the output of an answer; ``more`` are additional formats."""
    return [
        Shared.option(
            "Output",
            "-o",
            "--output",
            type=click.Choice(("table", "jsonl", "csv", *more)),
            default="table",
            show_default=True,
            help="The format: a table for people, JSON lines, CSV.",
        ),
        *LAYOUTS,
        NO_PAGER,
        Shared.option("Output", "-q", "--quiet", is_flag=True, help="Print the answer, warnings and errors only."),
    ]


def inputs(*more: str, paths: Decorator = PATHS) -> list[Decorator]:
    """Return the options of a command that reads log dirs; ``more`` are additional output formats."""
    return [
        paths,
        *PARTITIONS,
        AT,
        *WORKERS,
        *form(*more),
        *LIMITS,
    ]


FORM: Final = form()


class Answering:
    """One run of an answering command, from its options to its exit status."""

    def __init__(
        self,
        options: dict[str, Any],
        *,
        leftovers: bool = False,
        topics: tuple[str, ...] | None = None,
        also: Collection[str] = (),
        every_folder: bool = False,
        judges: bool = False,
    ) -> None:
        """Remove the options of :func:`inputs` from ``options``, and apply them.

        ``topics`` replaces the topics of --topic. --topic and --partition do not limit the topics in ``also``.
        ``leftovers``: read -future, -delete and -stray folders too. ``every_folder``: read folders without a partition
        too. ``judges``: the command gives a verdict. A topic of --topic that is not in the paths is then an error.
        """
        self.session = session.Session(quiet=options.pop("quiet"))
        at: int | None = options.pop("at")
        self.at = timestamps.now() if at is None else at
        self.output: str = options.pop("output")
        self._who = WhoReads.taken(options)
        self._also = also
        out = self.session  # some answers read a log twice, and would report its damage twice
        self.report = Reporter(once(out.damage), once(out.wrong_index), out.report.note, out.fail)
        self.paths: tuple[str, ...] = options.pop("paths")
        asked = wanted(options, leftovers=leftovers, siblings=True, log_dirs=True, every_folder=every_folder)
        self._named = asked.topics
        self._absent: Callable[[Iterable[str]], None] = out.absent if judges else self._insist
        self.found_names: set[Name] = set()
        self.unread: set[Name] = set()
        self.without_log: list[UnreadableError] = []
        """``found_names``, ``unread`` and ``without_log`` are as in :class:`kdump.log_dirs.finder.Finder`."""
        self.asked = asked if topics is None else asked._replace(topics=topics)

    def partitions(self, paths: Sequence[str] | None = None, loose: Name = BY_PATH) -> list[Partition]:
        """Return the selected partitions of ``paths`` (by default all paths), and the partitions of topics in ``also``.

        With ``also`` and ``every_folder``, return all. Unless ``topics`` replaced them, report absent topics. A log
        outside a partition folder, if the user gave its path, gets the name ``loose`` (BY_PATH: from records or path).
        """
        wanted = self.asked._replace(topics=(), partitions=frozenset()) if self._also else self.asked
        finder = Finder(wanted, self.session.report, brief=True)
        where = self.paths if paths is None else paths
        found = list(finder.find(where))
        self.found_names |= finder.found_names
        self.unread |= finder.unread
        self.without_log += finder.without_log
        if self._named == self.asked.topics:
            self._absent(self.asked.missing(finder.found_names, where))
        every = self.asked.every_folder
        named = with_names(found, self.session.note, name=loose, every=every, only_known=self.asked.is_choosy)
        if every:
            return list(named)
        return [one for one in named if one.topic is not None and (one.topic in self._also or self.takes(one))]

    def _insist(self, texts: Iterable[str]) -> None:
        for text in texts:
            self.session.insist(text)

    def takes(self, partition: Partition) -> bool:
        return self.asked.takes(Name(partition.topic, partition.partition))

    def run(self, collectors: Sequence[Collector], partitions: Sequence[Partition] | None = None) -> None:
        """Pass partitions, by default all selected ones, to the collectors."""
        from kdump.answers.log_dir_pass import Collectors, feed, gather_with

        found = self.partitions() if partitions is None else partitions
        run = self.session
        run.watched(found)
        workers = self.workers(found)
        if workers is not None:
            gather_with(workers, Collectors(collectors), feed, found, self.report._replace(progress=run.progress))
        else:
            self.reader(collectors).run(found)
        run.progress.clear()

    def shortfalls(
        self, partitions: Sequence[Partition], paths: Sequence[str] | None = None, names: Collection[Name] = ()
    ) -> None:
        """Warn of partitions in ``paths`` (default: all) that lack all their records; with ``names``, of these only."""

        def takes(topic: str, number: int) -> bool:
            name = Name(topic, number)
            return name in names if names else self.asked.takes(name)

        session.report_shortfalls(self.session, tuple(self.paths if paths is None else paths), partitions, takes)

    def workers(self, partitions: Sequence[Partition]) -> Workers | None:
        """Return the workers; None if this process reads alone, for example with --remote but no --master."""
        if self.asked.remote is not None and self._who.master is None:
            return None
        return self._who.workers(partitions, costs.READING_HEADERS, self.session)

    def reads_alone(self, why: str) -> None:
        """If --master is given, print a note that this process reads alone."""
        if self._who.master is not None:
            self.session.note(f"{why}: kdump reads the partitions itself, without Spark on {self._who.master}")

    def reader(self, collectors: Sequence[Collector]) -> LogDirPass:
        from kdump.answers.log_dir_pass import LogDirPass

        return LogDirPass(collectors, self.report._replace(progress=self.session.progress))

    def answer(self, lines: Iterable[AnswerLine], tables: Callable[[list[AnswerLine]], Iterable[AnswerTable]]) -> int:
        """Print the answer; return the exit status. ``tables`` makes the tables of -o table from the lines."""
        if self.output == "table":
            lines = list(lines)  # this may show progress, which must end before the output begins
        self.session.progress.clear()
        write_answer(lines, self.output, tables)
        return self.session.status


def write_answer(
    lines: Iterable[AnswerLine], output: str, tables: Callable[[list[AnswerLine]], Iterable[AnswerTable]]
) -> None:
    """Print the lines of an answer in the format ``output``. ``tables`` makes the tables of -o table."""
    from kdump.printers import answer_lines

    context = click.get_current_context(silent=True)
    layout: Layout = "fitting" if context is None else context.meta.get(LAYOUT, "fitting")
    with paged(wanted=output == "table"), open_output() as out:
        if output == "jsonl":
            answer_lines.write_jsonl(lines, out)
        elif output == "csv":
            answer_lines.write_csv(lines, out)
        elif out.isatty() or layout == "expanded":
            from kdump.printers import answer_terminal

            answer_terminal.draw(tables(list(lines)), sys.stdout, layout=layout)
        else:
            answer_lines.write_plain(tables(list(lines)), out)
