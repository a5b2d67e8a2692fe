"""Makes the command of a question (:func:`command_of`) from its declaration of options and help."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import click

from kdump.answers import question_named
from kdump.answers.question import Asking
from kdump.command_line import options as shared
from kdump.command_line.answering import Answering, inputs
from kdump.command_line.limit_options import ONE_EACH, PATHS, AtLeast
from kdump.command_line.option_values import CONFIG, DURATION, MOMENT, Parsed, Release, log_dirs
from kdump.log_dirs.remote import shown_paths
from kdump.log_reader.unnamed_logs import COPY
from kdump.primitives.timestamps import moment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from kdump.answers.collector import AnswerLine, Collector
    from kdump.answers.question import FieldOption, LogQuestion, QuestionOption
    from kdump.errors import Reporter
    from kdump.log_dirs.partition import Partition
    from kdump.primitives.processes import Workers
    from kdump.printers.answer_lines import AnswerTable

TABLES: Final = "kdump.printers.answer_tables"


class CommandAsking(Asking):
    """The input of a question on the command line: the options of the command control the pass over log dirs."""

    def __init__(self, run: Answering, found: list[Partition], asked: Any = None, where: str | None = None) -> None:
        named = shown_paths(run.paths) if where is None else where
        super().__init__(found, run.asked if asked is None else asked, run.at, run.report, named)
        self._run, self.found_names, self.unread = run, run.found_names, run.unread

    def watched(self, size: int) -> Reporter:
        self._run.session.watch(size)
        return self.report._replace(progress=self._run.session.progress)

    def workers(self, partitions: Sequence[Partition]) -> Workers | None:
        return self._run.workers(partitions)

    def reads_alone(self, why: str) -> None:
        self._run.reads_alone(why)

    def feed(self, collector: Collector, partitions: Iterable[Partition]) -> None:
        self._run.run([collector], list(partitions))
        if self.asked.every_folder:
            self._run.shortfalls(self.found)


def _codecs(_: click.Context, __: click.Parameter, text: str | None) -> tuple[Any, ...]:
    from kdump.answers.recompression import target

    return tuple(map(target, text.split(","))) if text else ()


_READERS: Final[dict[str, Callable[[QuestionOption], dict[str, Any]]]] = {
    "switch": lambda _: {"is_flag": True},
    "count": lambda words: {"type": AtLeast(words.least)},
    "moment": lambda _: {"type": MOMENT},
    "moments": lambda words: {
        "type": Parsed("time", partial(moment, least_ms=0)),
        "multiple": True,
        "help": f"{words.doc}; may be given several times.",
    },
    "duration": lambda _: {"type": DURATION},
    "release": lambda _: {"type": Release()},
    "configs": lambda _: {"type": CONFIG, "multiple": True},
    "names": lambda _: {"multiple": True},
    "codecs": lambda _: {"callback": _codecs},
    "choice": lambda words: {"type": click.Choice(words.choices)},
    "text": lambda _: {},
}
"""Kind of a value -> the arguments of its ``click.option``."""


def options_of(question: LogQuestion[Any]) -> list[shared.Decorator]:
    return [_option(one) for one in question.parts()]


def _option(one: FieldOption) -> shared.Decorator:
    words = one.words
    given: dict[str, Any] = {"help": words.doc, "metavar": words.metavar, **_READERS[words.kind](words)}
    if words.kind not in {"switch", "moments", "configs", "names", "codecs"} and one.default is not None:
        given["default"] = words.shown if isinstance(words.shown, str) else one.default
        given["show_default"] = bool(words.shown)
    return click.option(words.flag, one.name, **given)


def taken(question: LogQuestion[Any], options: dict[str, Any]) -> Any:
    """Remove the options of ``question`` from the command's ``options``; return them as its options class."""
    return question.options(**{one.name: options.pop(one.name) for one in question.parts()})


def tables_of(name: str) -> Callable[[list[AnswerLine]], Iterable[AnswerTable]]:
    """Return the function that makes an answer's tables: ``tables`` of a module in TABLES, or :func:`plain_tables`."""
    if find_spec(f"{TABLES}.{name}") is None:
        from kdump.printers.answer_lines import plain_tables

        return plain_tables
    found: Callable[[list[AnswerLine]], Iterable[AnswerTable]] = import_module(f"{TABLES}.{name}").tables
    return found


def _brokers(run: Answering) -> list[CommandAsking]:
    asked = []
    for path in run.paths:
        paths = log_dirs([path])
        found = run.partitions(paths, COPY)
        run.shortfalls(found, paths)
        asked.append(CommandAsking(run, found, where=shown_paths(paths)))
    return asked


def command_of(name: str) -> click.Command:
    """Return the command of a question: it finds partitions, asks, and prints the answer. Raises KeyError."""
    question = question_named(name)
    compares = question.compares

    @shared.add(inputs(paths=ONE_EACH if compares else PATHS))
    @shared.add(shared.REMOTE if question.takes_remote else [])
    @shared.add(options_of(question))
    def run(**options: Any) -> int:
        chosen = taken(question, options)
        every = question.every_folder
        answering = Answering(options, leftovers=every or question.leftovers, also=question.also, every_folder=every)
        question.brokers(answering.paths)
        asking = _brokers(answering) if compares else CommandAsking(answering, answering.partitions())
        return answering.answer(question.ask(asking, chosen), tables_of(name))

    return click.command(name, help=question.help)(run)
