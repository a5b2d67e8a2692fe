"""The outputs of the Spark source that cover whole partitions: answers to questions, and ``findings``.

Rows are the lines of ``kdump stats -o jsonl`` and others, and messages (:class:`SaidLine`). Tasks cannot merge their
collectors. So a task reads all data for its lines: partitions with all replicas, whole topics, or everything. The
driver first reads the facts that tasks need: states of log dirs, configs and transactional ids.

For ``findings`` (``kdump check -o jsonl``) a task checks whole partitions, because a finding may depend on several
segments. The task with the first partition of a log dir also reports the findings of this log dir. The driver compares
the log dirs with each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from kdump import checking
from kdump.answers import question_named
from kdump.answers.question import Asking
from kdump.arrow import schema as arrow_schema
from kdump.arrow.answer_lines import LineColumns
from kdump.checks import across_log_dirs, whole_partition
from kdump.checks.log_dir import READERS
from kdump.errors import Reporter, discard, once
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_dirs.log_dir_state import LogDirStates
from kdump.log_dirs.partition import task_groups
from kdump.log_dirs.remote import places
from kdump.log_reader.unnamed_logs import with_names
from kdump.primitives.terminal import path_text
from kdump.printers.findings_report import finding_line
from kdump.spark.source import schema
from kdump.spark.source.reading import UNREADABLE, refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from kdump.answers.collector import Collector
    from kdump.checks.whole_partition import CheckOptions
    from kdump.errors import UnreadableError
    from kdump.findings import Finding
    from kdump.log_dirs.files import Files
    from kdump.log_dirs.log_dir_state import LogDirState
    from kdump.log_dirs.partition import Partition
    from kdump.spark.source.options import SourceOptions


DAMAGE: Final = "damage"
DERIVED: Final = "derived"
ROWS: Final = 4096
Row = dict[str, Any]


@dataclass(frozen=True)
class SaidLine:
    """A message that a command prints on standard error, and that affects the exit status of the command.

    ``kind`` is ``unreadable`` (by a failing disk, or a damaged tiered segment), ``damage``, or ``derived`` (a wrong
    derived file, which is not used).
    """

    kind: ClassVar[str] = UNREADABLE
    text: str


class AnswerTask(NamedTuple):
    """The input of a task: partitions, the collector for their records, the states of log dirs, and the time in ms.

    The task also yields ``rows``, which the driver has made. Only the task with ``is_first`` yields the lines that each
    task would compute (:attr:`kdump.answers.question.LogQuestion.once`).
    """

    partitions: list[Partition]
    collector: Collector
    asked: Wanted
    states: dict[tuple[Files, str], LogDirState]
    at: int
    rows: list[Row]
    is_first: bool


def _asking(options: SourceOptions, note: Callable[[str], None], rows: list[Row]) -> Asking:
    """Return an Asking of the selected partitions, with a :func:`_reporter`. Raises UsageError and UnreadableError."""
    report = _reporter(rows, note, skip=options.skip_unreadable)
    question = question_named(options.output)
    every = question.every_folder
    asked = options.wanted(siblings=True, log_dirs=True, leftovers=every or question.leftovers, every_folder=every)
    wanted = asked._replace(topics=(), partitions=frozenset()) if question.also else asked
    finder = Finder(wanted, Reporter(note=note, fail=report.fail))
    named = (one for files, paths in places(options.paths) for one in finder.find(paths, files))
    found = list(with_names(named, note, every=every))
    if not every:
        found = [one for one in found if one.topic is not None]
    for text in asked.missing(finder.found_names, options.paths):
        note(text)
    return Asking(found, asked, options.now, report)


def _reporter(rows: list[Row], note: Callable[[str], None], *, skip: bool) -> Reporter:
    """Return a reporter that adds each message but notes to ``rows`` once, and raises errors like :func:`refuse`."""

    def keep(kind: str, text: object) -> None:
        rows.append({"kind": kind, "text": path_text(str(text))})

    unreadable = once(partial(keep, UNREADABLE))

    def fail(error: UnreadableError) -> None:
        refuse(error, skip=skip)
        unreadable(str(error))

    return Reporter(once(partial(keep, DAMAGE)), once(partial(keep, DERIVED)), once(note), fail)


def columns_of(output: str) -> LineColumns:
    return LineColumns((*question_named(output).lines, SaidLine))


_UNITS: Final[dict[str, Callable[[Partition], object]]] = {
    "replicas": lambda partition: (partition.topic, partition.partition),
    "topic": lambda partition: partition.topic,
    "everything": lambda _: None,
}
"""``unit`` of a Question -> the key of a partition. All partitions with the same key belong to one task."""


def plan(options: SourceOptions, note: Callable[[str], None]) -> list[AnswerTask]:
    """Return the tasks that answer the question of ``options``. Raises UsageError and UnreadableError."""
    rows: list[Row] = []
    run = _asking(options, note, rows)
    question = question_named(options.output)
    collector = question.collector_of(run, question.options(**dict(options.answer)))
    partitions = question.partitions(run)
    if question.prepare is not None:
        question.prepare(collector, run)
        partitions = run.meant()
    if question.unit != "everything":
        partitions = sorted(partitions, key=lambda one: (one.topic or "", one.partition or 0))
    tasks = task_groups(partitions, max(1, options.min_partitions // 4), _UNITS[question.unit]) or [[]]
    states = [{(one.files, one.log_dir): run.states.of(one) for one in task} for task in tasks]
    return [
        AnswerTask(task, collector, run.asked, known, run.at, [] if number else rows, is_first=not number)
        for number, (task, known) in enumerate(zip(tasks, states, strict=True))
    ]


def read(task: AnswerTask, options: SourceOptions) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task. Raises UnreadableError like :func:`refuse`."""
    question = question_named(options.output)
    columns = columns_of(options.output)
    reported: list[Row] = []
    report = _reporter(reported, discard, skip=options.skip_unreadable)
    states = LogDirStates(report, known=task.states)
    asking = Asking(task.partitions, task.asked, task.at, report, states=states)
    question.feed(task.collector, task.partitions, asking.feed)
    lines = (
        columns.row(line)
        for line in question.lines_of(task.collector, asking, question.options(**dict(options.answer)))
        if task.is_first or question.once is None or not isinstance(line, question.once)
    )
    while rows := list(islice(lines, ROWS)):
        yield columns.batch(rows)
    if rows := [*task.rows, *reported]:
        yield columns.batch(rows)


class CheckTask(NamedTuple):
    """The partitions that a task checks.

    ``covered`` has a partition without segments for each log dir whose own findings an earlier task reports. ``rows``:
    rows of the driver that the task also yields.
    """

    partitions: list[Partition]
    covered: list[Partition]
    rows: list[Row]
    how: CheckOptions


def plan_checks(options: SourceOptions, note: Callable[[str], None]) -> list[CheckTask]:
    """Return the tasks that check the inputs of ``options``. Raises UsageError and UnreadableError."""
    unreadable: list[UnreadableError] = []

    def fail(error: UnreadableError) -> None:
        refuse(error, skip=options.skip_unreadable)
        unreadable.append(error)

    wanted = options.wanted(siblings=True, leftovers=True, log_dirs=True)
    finder = Finder(wanted, Reporter(note=note, fail=fail))
    partitions = [one for files, paths in places(options.paths) for one in finder.find(paths, files)]
    for text in wanted.missing(finder.found_names, options.paths):
        note(text)
    _, how = checking.prepared(
        tuple(options.paths),
        partitions,
        wanted,
        whole_partition.CheckOptions(at=options.now),
        lambda error: refuse(error, skip=options.skip_unreadable),  # a task makes the row
    )
    known: dict[tuple[object, str], Partition] = {}
    tasks = []
    for group in task_groups(partitions, max(1, options.min_partitions // 4)):
        tasks.append(CheckTask(group, list(known.values()), [], how))
        for part in group:
            if part.topic is not None:
                known.setdefault((part.files, part.log_dir), part._replace(segments=(), others=()))
            elif any(entry.name in READERS for entry in part.others):  # the folder is a log dir
                known[part.files, f"{part.folder}/"] = part._replace(segments=())
    dirs = how.log_dirs()
    for part in partitions:
        dirs.facts(part, lambda error: refuse(error, skip=options.skip_unreadable))  # a task makes the row
    across = list(across_log_dirs.check(partitions, dirs))
    rows = [*_closed(unreadable), *map(finding_line, across)]
    return [*tasks, CheckTask([], [], rows, how)]


def read_checks(task: CheckTask, options: SourceOptions) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the driver, then those of each partition. Raises UnreadableError like :func:`refuse`."""
    yield from _batch(task.rows)
    dirs = task.how.log_dirs()
    reported: set[str] = set()
    found: set[Finding] = set()  # a file may be given twice: as an input, and in a log dir

    def fail(error: UnreadableError) -> None:
        refuse(error, skip=options.skip_unreadable)
        reported.add(str(error))

    for part in task.covered:
        if part.topic is None:
            found.update(whole_partition.check(part, task.how, dirs).findings)
        else:
            dirs.facts(part, fail)
    found.update(dirs.news())
    for part in task.partitions:
        checked = whole_partition.check(part, task.how, dirs)
        for error in checked.failed:
            refuse(error, skip=options.skip_unreadable)
        failed = [error for error in checked.failed if str(error) not in reported]
        reported |= {str(error) for error in failed}
        new = [finding for finding in checked.findings if finding not in found]
        found.update(new)
        yield from _batch([*_closed(failed), *map(finding_line, new)])


def _closed(unreadable: Iterable[UnreadableError]) -> Iterator[Row]:
    for error in unreadable:
        yield {"kind": UNREADABLE, "file": path_text(str(error.path)), "text": error.reason}


def _batch(rows: list[Row]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    if rows:
        texts = ("expected", "found")
        shown = [{**row, **{name: str(row[name]) for name in texts if row.get(name) is not None}} for row in rows]
        yield pa.RecordBatch.from_pylist(shown, arrow_schema.arrow(schema.FINDINGS))
