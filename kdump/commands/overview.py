"""``kdump PATH``: prints a summary of log dirs, the result of checking their headers, and the commands to run next.

Logs of more than CHECKED bytes together are not checked: a check of the headers of 1 GiB takes about a second.
Of a single segment it prints the first batches instead of a summary and a check.
"""

from __future__ import annotations

import os
import posixpath
import sys
from collections import Counter
from typing import TYPE_CHECKING, Final

from kdump import checking
from kdump.answers.disk_usage import DiskUsage, PartitionUsage
from kdump.answers.log_dir_pass import LogDirPass
from kdump.checks import whole_partition
from kdump.command_line.findings_output import FindingsOutput
from kdump.command_line.session import Session
from kdump.commands.check import report
from kdump.errors import SILENT, Reporter, discard, many
from kdump.findings import Level, salvage
from kdump.internal_topics import (
    CLUSTER_METADATA,
    CONSUMER_OFFSETS,
    DECODER_SWITCHES,
    REMOTE_LOG_METADATA,
    TRANSACTION_STATE,
)
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_dirs.log_dir_state import LogDirStates
from kdump.log_dirs.remote import shown_paths, without_secret
from kdump.log_reader.unnamed_logs import with_names
from kdump.output.stdout import is_terminal
from kdump.primitives import timestamps
from kdump.primitives.messages import INDENT, folded
from kdump.primitives.terminal import harmless_line, prose_width, shell_path, shell_pattern, terminal_width
from kdump.printers.findings_report import NOTES, conclusion, word
from kdump.printers.quantities import size, time

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kdump.broker_start.outcome import BrokerStart
    from kdump.findings import Finding
    from kdump.log_dirs.partition import Partition
    from kdump.printers.findings_report import CheckSummary

CHECKED: Final = 1 << 30
"""Maximum size of all logs together whose headers are checked, in bytes."""
STANDARD: Final = 80
"""Width of a usual terminal, in columns."""
BATCHES: Final = 5
WIDE: Final = 46
"""Maximum width of a command line with its purpose beside it, in columns."""
FINDINGS: Final = 3
LARGEST: Final = 3
"""Maximum number of topics, and of folders that a broker deletes, that are named."""


class _Verdict:
    """Collects the findings of a check. :meth:`end` makes ``lines``: total, gravest findings, verdicts, next steps."""

    def __init__(self) -> None:
        self._found: list[Finding] = []
        self.lines: list[str] = []

    def block(self, name: str, findings: Sequence[Finding]) -> None:  # noqa: ARG002  each finding names its file
        """Keep findings except remarks. :meth:`end` leaves out those that the verdict on a broker repeats."""
        self._found += (finding for finding in findings if not finding.is_remark)

    def start(self, start: BrokerStart) -> None:
        """Do nothing: :meth:`end` prints the verdicts of all starts."""

    def end(self, summary: CheckSummary, status: int) -> None:
        total, *rest = conclusion(summary, status)
        found = self._findings("\n".join(each.text for each in summary.verdicts))
        self.lines = [total, *found, *(line for line in rest if NOTES not in line)]

    def _findings(self, verdicts: str) -> Iterator[str]:
        """Yield the FINDINGS gravest findings without those in ``verdicts``, the number of the others, and advice."""
        self._found.sort(key=lambda each: (not each.fatal, not each.is_grave, each.level is not Level.LOG))
        advice: list[str] = []
        for finding in self._found[:FINDINGS]:
            if f"{finding.file}: {finding.text}" not in verdicts:
                at = "" if finding.position is None else f": byte {finding.position}"
                yield f"{word(finding)}: {finding.file}{at}: {finding.text}"
            if finding.advice and not finding.commands and finding.advice not in advice:
                advice.append(finding.advice)
        if len(self._found) > FINDINGS:
            yield f"and {many(len(self._found) - FINDINGS, 'other finding')}: kdump check prints them"
        for text in advice:
            yield f"What to do: {text}"


def overview(paths: tuple[str, ...]) -> int:
    """Print a summary of ``paths``, or the first batches of a single segment; return the exit status."""
    run = Session()
    finder = Finder(Wanted(siblings=True, leftovers=True, log_dirs=True), Reporter(note=run.note, fail=run.fail))
    found = list(finder.find(paths))
    if len(found) == len(paths) == 1 and _is_its_segment(paths[0], found[0]):
        return _segment(paths[0], found[0], run)
    states = LogDirStates(SILENT)  # the check reports the damage
    usage = DiskUsage()
    LogDirPass([usage], SILENT, states).run(list(with_names(found, discard)))
    lines = [line for line in usage.answer(0) if isinstance(line, PartitionUsage)]
    for text in _what(paths, lines, states, found) if lines or not run.status else ():
        _print(text)
    total = sum(partition.size for partition in found)
    if not any(partition.segments for partition in found):
        return run.status
    _print("")
    quoted = [shell_path(without_secret(path)) for path in paths]
    words = " ".join(quoted)
    if total <= CHECKED:
        for line in _verdict(paths, words, found, run):
            _print(line)
    else:
        _print(f"Not checked: {size(total)} of log. kdump check reads all of it.")
    _print("")
    _print_next(_next(words, " ".join(f"--in {path}" for path in quoted), lines))
    return run.status


def _is_its_segment(path: str, partition: Partition) -> bool:
    """Return whether ``path`` (in a folder or archive) names a segment, the only one of ``partition``."""
    if not partition.is_named or len(partition.segments) != 1:
        return False
    return posixpath.basename(path) == posixpath.basename(partition.segments[0].path)


def _what(
    paths: Sequence[str], lines: Sequence[PartitionUsage], states: LogDirStates, found: Sequence[Partition]
) -> Iterator[str]:
    """Yield a summary of each log dir, then the times of the records and the largest topics of all log dirs."""
    by_dir: dict[str, list[PartitionUsage]] = {}
    for line in lines:
        by_dir.setdefault(line.log_dir, []).append(line)
    if not lines:
        yield f"There is no partition in {shown_paths(paths)}."
    by_path = {state.path: state for state in map(states.of, found)}
    for log_dir, within in by_dir.items():
        state = by_path[log_dir]
        owner = f"broker {within[0].broker_id}" if within[0].broker_id else "unknown broker"
        cluster = state.properties.cluster_id if state.properties is not None else None
        yield f"{log_dir}: {owner}{f', cluster {cluster}' if cluster else ''}"
        live = [line for line in within if line.state in _IN_USE]
        other = Counter(line.state for line in within if line.state not in _IN_USE)
        topics = len({line.topic for line in live})
        segments = many(sum(line.segments for line in live), "segment")
        log = size(sum(line.log_bytes for line in live))
        yield f"  {many(len(live), 'partition')} of {many(topics, 'topic')}, {segments}, {log} of log"
        if other:
            states_of = [f"{many(count, 'folder')} {state}" for state, count in sorted(other.items())]
            yield f"  other folders: {', '.join(states_of)}"
    times = [at for line in lines for at in (line.oldest_ms, line.newest_ms) if at is not None]
    if times:
        yield f"  records from {time(min(times))} to {time(max(times))}"
    sizes: Counter[str] = Counter()
    for line in lines:
        sizes[line.topic] += line.log_bytes
    if len(sizes) > 1:
        yield f"  largest topics: {', '.join(f'{name} {size(count)}' for name, count in sizes.most_common(LARGEST))}"


def _verdict(paths: tuple[str, ...], words: str, partitions: list[Partition], run: Session) -> list[str]:
    how = whole_partition.CheckOptions(records=False, at=timestamps.now())
    wanted = Wanted(siblings=True, leftovers=True, log_dirs=True)
    of, how = checking.prepared(paths, partitions, wanted, how, run.fail)
    verdict, dirs = _Verdict(), how.log_dirs()
    output = FindingsOutput(run, verdict)
    output.summary.again = lambda: f"kdump check {words}"
    checked = (whole_partition.check(one, how, dirs, run.progress) for one in partitions)
    report(of.steps(checked, dirs, run.fail), run, output)
    output.end()
    return verdict.lines


def _next(words: str, places: str, lines: Sequence[PartitionUsage]) -> Iterator[tuple[str, str]]:
    yield f"kdump check {words}", "what is wrong, and what to do"
    yield f"kdump ls {words}", "partitions, sizes, offsets, times"
    yield f"kdump report {words} --out report.html", "everything on one page"
    topics = {line.topic for line in lines}
    own = [line for line in lines if line.topic not in DECODER_SWITCHES and line.latest]
    if own:
        line = max(own, key=lambda line: line.log_bytes)
        topic, offset = shell_pattern(line.topic), max((line.latest or 1) - 1, 0)
        yield f"kdump dump {words} --topic {topic} --tail 10", "the newest records"
        record = f"{shell_pattern(f'{line.topic}-{line.partition}')}@{offset}"
        yield f"kdump explain {record} {places}", "why a consumer gets a record"
    if sides := _sides([line for line in lines if line.state == "current"]):
        yield f"kdump diff {' '.join(sides)}", "which replicas lack records"
        if any(line.broker_id is not None for line in lines):
            yield f"kdump rebuild-cluster {words} --plan", "a plan for new nodes with this data"
    doomed = [line for line in lines if line.state == "deleted" and line.log_bytes]
    if doomed:
        folders = [shell_path(posixpath.join(line.log_dir, line.folder)) for line in doomed[:LARGEST]]
        yield salvage(folders), "rescue records that a broker deletes when it starts"
    for topic, command, what in _OF_TOPICS:
        if topic in topics:
            yield f"kdump {command} {words}", what
    if REMOTE_LOG_METADATA in topics:
        yield "kdump help tiered-storage", "segments in remote storage"
    yield f"kdump du {words}", "what fills the disk"
    yield f"kdump retention {words}", "what is deleted, and when"
    yield "kdump help", "more incidents, with commands"


def _sides(current: Sequence[PartitionUsage]) -> list[str]:
    """Return the arguments of ``kdump diff``, one per broker or log dir. Empty if no partition has two replicas."""
    names = [(line.topic, line.partition) for line in current]
    of_brokers = len({(*name, line.broker_id) for name, line in zip(names, current, strict=True)}) == len(names)
    sides: dict[str, dict[str, None]] = {}
    for line in current:
        own = of_brokers and line.broker_id is not None
        sides.setdefault(f"broker {line.broker_id}" if own else line.log_dir, {})[shell_path(line.log_dir)] = None
    return [",".join(side) for side in sides.values()] if len(set(names)) < len(names) else []


_IN_USE: Final = frozenset({"current", "metadata"})
_OF_TOPICS: Final = (
    (CLUSTER_METADATA, "metadata", "topics, configs, brokers"),
    (CONSUMER_OFFSETS, "groups", "consumer groups, offsets, lag"),
    (TRANSACTION_STATE, "transactions", "open and hanging transactions"),
)


def _segment(path: str, partition: Partition, run: Session) -> int:
    segment = partition.segments[0]
    shown = shell_path(segment.name)
    is_log = segment.path.endswith(".log") or segment.base_offset is not None
    _print(f"{segment.name}: {size(segment.size)}, {'a segment' if is_log else 'batches'} of {partition.name}")
    beside = ", ".join(posixpath.basename(each) for _, each in sorted(segment.siblings.items()))
    _print(f"  beside it: {beside or 'no index'}")
    _print("")
    sys.stdout.flush()
    from kdump.commands import dump

    words = [path, "--batches", "--limit", str(BATCHES), "-o", "table", "-q", "--no-pager"]
    status = dump.command.main(words, prog_name="kdump dump", standalone_mode=False)
    run.add_status(status if isinstance(status, int) else 0)
    _print("")
    is_local = os.path.isfile(path)  # noqa: PTH113  pathlib is slow to import
    rows = [
        (f"kdump dump {shown}", "its records"),
        (f"kdump check {shown}", "a check of it and the files beside it"),
        (f"kdump ls {shell_path(posixpath.dirname(segment.name) or '.')}", "all segments of its folder"),
        (f"kdump --files {shown} --print-data-log", "as kafka-dump-log.sh prints it"),
    ]
    _print_next(rows if is_local else rows[:-1])
    return run.status


def _print_next(rows: Iterable[tuple[str, str]]) -> None:
    rows = list(rows)
    widest = max((len(line) for line, _ in rows if len(line) <= WIDE), default=0)
    width = terminal_width() if is_terminal() else 2 * WIDE
    _print("Next:")
    for line, what in rows:
        is_short = len(line) <= widest and widest + len(what) + 4 <= width
        _print(f"  {line.ljust(widest)}  {what}" if is_short else f"  {line}")
        if not is_short and width >= STANDARD:
            _print(f"      {what}")


def _print(text: str) -> None:
    text = harmless_line(text)
    lines = [text]
    if is_terminal() and not text.startswith("  kdump"):
        lines = folded(text, prose_width(), indent=len(text) - len(text.lstrip()) + INDENT)
    for line in lines:
        sys.stdout.write(f"{line}\n")
