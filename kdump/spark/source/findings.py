"""The output ``findings`` of the Spark source: the lines of ``kdump check -o jsonl`` as rows.

A task checks whole partitions, because a finding may depend on several segments. The task with the first partition of a
log dir also reports the findings of this log dir. The driver compares the log dirs with each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from kdump import checking
from kdump.arrow import schema as arrow_schema
from kdump.checks import across_log_dirs, whole_partition
from kdump.checks.log_dir import READERS, LogDirs
from kdump.errors import Reporter
from kdump.log_dirs.finder import Finder
from kdump.log_dirs.partition import task_groups
from kdump.log_dirs.remote import places
from kdump.primitives.terminal import path_text
from kdump.printers.findings_report import finding_line
from kdump.spark.source import schema
from kdump.spark.source.reading import UNREADABLE, refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from kdump.checks.whole_partition import CheckOptions
    from kdump.errors import UnreadableError
    from kdump.findings import Finding
    from kdump.log_dirs.partition import Partition
    from kdump.spark.source.options import SourceOptions

Row = dict[str, Any]


class CheckTask(NamedTuple):
    """The partitions that a task checks.

    ``covered``: partitions and log dirs of earlier tasks, without segments; their findings are not repeated. The task
    yields ``rows`` unchanged. ``skip`` is the option ``skipUnreadable``.
    """

    partitions: list[Partition]
    covered: list[Partition]
    rows: list[Row]
    how: CheckOptions
    skip: bool


def plan(options: SourceOptions, note: Callable[[str], None]) -> list[CheckTask]:
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
        tasks.append(CheckTask(group, list(known.values()), [], how, options.skip_unreadable))
        for part in group:
            if part.topic is not None:
                known.setdefault((part.files, part.log_dir), part._replace(segments=(), others=()))
            elif any(entry.name in READERS for entry in part.others):  # the folder is a log dir
                known[part.files, f"{part.folder}/"] = part._replace(segments=())
    dirs = LogDirs(how.dispensable)
    for part in partitions:
        dirs.facts(part, lambda error: refuse(error, skip=options.skip_unreadable))  # a task makes the row
    across = list(across_log_dirs.check(partitions, dirs))
    rows = [*_closed(unreadable), *map(finding_line, across)]
    return [*tasks, CheckTask([], [], rows, how, options.skip_unreadable)]


def read(task: CheckTask) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task, one batch per partition. Raises UnreadableError like :func:`refuse`."""
    yield from _batch(task.rows)
    dirs = LogDirs(task.how.dispensable)
    reported: set[str] = set()
    found: set[Finding] = set()  # a file may be given twice: as an input, and in a log dir

    def fail(error: UnreadableError) -> None:
        refuse(error, skip=task.skip)
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
            refuse(error, skip=task.skip)
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
