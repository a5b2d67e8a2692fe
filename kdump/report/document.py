"""The document of a report: answers of commands, from which the page, the verdict and the JSON are made.

Most answers have the ``-o jsonl`` lines of a command; ``damage``, ``hours``, ``forecast`` and ``timeline`` have others.
The document has no keys or values of users' records. The fields ``metadata`` and ``raw`` of groups are null.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from functools import cached_property
from heapq import nsmallest
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kdump import __version__
from kdump.answers import replica_diff
from kdump.answers.collector import Place, as_json
from kdump.answers.metadata.events import without_secrets
from kdump.answers.metadata.image import Copies, MetadataLog
from kdump.answers.replica_diff import BrokerReplica
from kdump.answers.statistics import PartitionStatistics
from kdump.broker_start.started import verdicts
from kdump.errors import SILENT, Reporter
from kdump.findings import Finding, status
from kdump.log_dirs.file_names import Name
from kdump.log_dirs.log_dir_state import LogDirStates
from kdump.primitives.terminal import path_text, shell_path, shell_pattern, shell_word
from kdump.primitives.timestamps import iso
from kdump.printers.answer_tables.metadata import details_text
from kdump.printers.findings_report import CheckSummary, finding_line, kind_of, start_lines, summary_line
from kdump.report.gathering import live_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kdump.answers.collector import AnswerLine
    from kdump.answers.topic_configs import GivenConfig
    from kdump.log_dirs.files import Files
    from kdump.log_dirs.finder import Wanted
    from kdump.log_dirs.partition import Partition
    from kdump.report.gathering import ReportCollectors

Line: TypeAlias = dict[str, Any]
VERSION: Final = 1
"""The version of the document. New fields and answers do not change the version; other changes raise it."""
DAY: Final = 86_400_000
FORECAST_DAYS: Final = 7
AROUND: Final = 3_600_000
"""Maximum distance of metadata events from the time of --around, in ms."""
EVENTS: Final = 200
"""Maximum number of metadata events: the events nearest to the time of --around, or the newest."""
HAPPENED: Final = 5000
"""Maximum number of events in the timeline. Those without a time are kept first, then the newest."""
HOTTEST: Final = 40
"""Maximum number of partitions with data by hour; the partitions with the most bytes are kept."""
PAYLOAD: Final = ("metadata", "raw")


@dataclass(frozen=True)
class ReportAnswer:
    """The command line of an answer, and its lines: JSON objects, or objects that :meth:`lines` converts to JSON."""

    command: str
    held: Sequence[Line | AnswerLine | Finding] = ()

    @cached_property
    def by_kind(self) -> dict[str, list[Line | AnswerLine | Finding]]:
        """The lines of each kind as stored."""
        found: dict[str, list[Line | AnswerLine | Finding]] = {}
        for one in self.held:
            found.setdefault(_kind(one), []).append(one)
        return found

    def lines(self, kind: str | None = None) -> Iterator[Line]:
        """Yield the lines of all kinds or of one ``kind``."""
        return map(_object, self.held if kind is None else self.by_kind.get(kind, ()))


@dataclass(frozen=True)
class LogDirReport:
    """The document of log dirs at the time ``at`` (ms since 1970). ``answers``: name -> answer.

    Without a metadata log there is no answer ``metadata``. Unless two brokers have selected logs, there is no ``diff``.
    """

    paths: tuple[str, ...]
    at: int
    around: int | None
    answers: dict[str, ReportAnswer]
    messages: tuple[str, ...] = ()
    """Messages on damaged, unreadable and unused files."""
    repeat: str = ""
    """The command line that makes the same report from the same files, without the output format."""

    def lines(self, name: str, kind: str | None = None) -> list[Line]:
        """Return the lines of an answer, of all kinds or of one ``kind``. Empty if the report lacks the answer."""
        answer = self.answers.get(name)
        return [] if answer is None else list(answer.lines(kind))

    def held(self, name: str, kind: str) -> list[Any]:
        """Return the lines of an answer as stored: JSON objects, or objects with field names in snake case."""
        return self.answers[name].by_kind.get(kind, [])

    def command(self, name: str) -> str:
        return self.answers[name].command

    def as_object(self) -> Line:
        return {
            "kind": "report",
            "version": VERSION,
            "kdump": __version__,
            "paths": [path_text(path) for path in self.paths],
            "atMs": self.at,
            "aroundMs": self.around,
            "said": list(self.messages),
            "answers": {
                name: {"command": each.command, "lines": list(each.lines())} for name, each in self.answers.items()
            },
        }

    def as_lines(self) -> Iterator[Line]:
        """Yield the lines of all answers, each with the field ``answer`` first."""
        for name, answer in self.answers.items():
            for line in answer.lines():
                yield {"answer": name, **line}


@dataclass(frozen=True)
class ReportRequest:
    """The options of a report: paths as on the command line, selected partitions, times in ms, and configs."""

    paths: tuple[str, ...]
    wanted: Wanted
    at: int
    around: int | None = None
    configs: tuple[GivenConfig, ...] = ()

    def line(self, command: str, *options: str, paths: Sequence[str] | None = None) -> str:
        words = ["kdump", command, *map(shell_path, self.paths if paths is None else paths)]
        for topic in self.wanted.topics:
            words += ["--topic", shell_pattern(topic)]
        if self.wanted.partitions:
            words += ["--partition", ",".join(map(str, sorted(self.wanted.partitions)))]
        return " ".join([*words, *options])

    def with_configs(self) -> list[str]:
        return [word for one in self.configs for word in ("--config", shell_word(f"{one.topic}:{one.key}={one.value}"))]

    def now(self, at: int | None = None) -> tuple[str, str]:
        """Return the option --at with the time that counts as now (default: the time of the report), as two words."""
        at = self.at if at is None else at
        return "--at", iso(at) or str(at)

    def again(self) -> str:
        around = () if self.around is None else ("--around", iso(self.around) or str(self.around))
        return self.line("report", *self.now(), *around, *self.with_configs())


def document(
    request: ReportRequest,
    found: ReportCollectors,
    partitions: Sequence[Partition],
    report: Reporter,
    messages: Iterable[str] = (),
) -> LogDirReport:
    """Return the document of the gathered answers. This also reads the metadata log, and compares replicas."""
    at, now, logs = request.at, request.now(), live_of(partitions)
    stats = list(found.statistics.answer(at))
    answers = {
        "check": ReportAnswer(request.line("check", "--headers-only", *now), _check_lines(found)),
        "du": ReportAnswer(request.line("du"), list(found.usage.answer(at))),
        "du-topics": ReportAnswer(request.line("du", "--by", "topic"), found.usage.topics()),
        "stats": ReportAnswer(request.line("stats", "--hours"), stats),
        "hours": _hottest(request, found, stats),
        "damage": ReportAnswer(request.line("dump", "--batches", "--every-replica"), list(found.damage.answer(at))),
        "retention": ReportAnswer(
            request.line("retention", *now, *request.with_configs()), list(found.retention.answer(at))
        ),
        "forecast": _forecast(request, found),
        "transactions": ReportAnswer(request.line("transactions", *now), list(found.transactions.answer(at))),
        "groups": ReportAnswer(request.line("groups", *now), _without_payload(found.groups.answer(at))),
    }
    events = _events(request, logs, report)
    if events is not None:
        answers["metadata"] = events
    answers["timeline"] = _timeline(request, map(as_json, found.events.answer(at)), answers)
    pairs = _pairs(request, logs, report)
    if pairs is not None:
        answers["diff"] = pairs
    return LogDirReport(request.paths, at, request.around, answers, tuple(messages), request.again())


def _object(line: Line | AnswerLine | Finding) -> Line:
    if isinstance(line, dict):
        return line
    return finding_line(line) if isinstance(line, Finding) else as_json(line)


def _kind(line: Line | AnswerLine | Finding) -> str:
    if isinstance(line, dict):
        return str(line["kind"])
    return kind_of(line) if isinstance(line, Finding) else line.kind


def _without_payload(lines: Iterable[AnswerLine]) -> list[Line]:
    return [{name: None if name in PAYLOAD else value for name, value in line.items()} for line in map(as_json, lines)]


def _check_lines(found: ReportCollectors) -> list[Line | AnswerLine | Finding]:
    summary = CheckSummary()
    lines: list[Line | AnswerLine | Finding] = []
    for one in found.checked:
        summary.segments += one.segments
        summary.batches += one.batches
        summary.size += one.size
        summary.add(one.findings, one.folder)
        lines += one.findings
    held = [finding for one in found.checked for finding in one.findings]
    for start in found.started:
        lines += start_lines(start.result)
        new = start.join(held)
        summary.add(new)
        held += new
        lines += new
    failed = not found.found_all or any(one.failed for one in found.checked)
    summary.verdicts = verdicts(found.started, [one for one in held if not one.is_remark], unreadable=failed)
    return [*lines, summary_line(summary, 1 if failed else status(held))]


def _hottest(request: ReportRequest, found: ReportCollectors, stats: Iterable[AnswerLine]) -> ReportAnswer:
    sizes = Counter[tuple[str, int]]()
    for line in stats:
        if isinstance(line, PartitionStatistics):
            sizes[line.topic, line.partition] += line.log_bytes
    hours = found.statistics.hours_of([key for key, _ in sizes.most_common(HOTTEST)])
    lines = [
        {"kind": "hour", "topic": path_text(topic), "partition": number, **as_json(hour)}
        for (topic, number), of_partition in hours.items()
        for hour in of_partition
    ]
    return ReportAnswer(request.line("stats", "--hours", "--topic", "TOPIC", "--partition", "N"), lines)


def _forecast(request: ReportRequest, found: ReportCollectors) -> ReportAnswer:
    kept, goes = Counter[tuple[int, str]](), Counter[tuple[int, str]]()
    for at, topic, stays, goes_then in found.retention.bytes_at(
        range(request.at, request.at + FORECAST_DAYS * DAY + 1, DAY)
    ):
        kept[at, topic] += stays
        goes[at, topic] += goes_then
    lines = [
        {"kind": "forecast", "atMs": at, "topic": topic, "keptBytes": size, "deletableBytes": goes[at, topic]}
        for (at, topic), size in sorted(kept.items())
    ]
    return ReportAnswer(request.line("retention", "--at", "TIME", *request.with_configs()), lines)


def _events(request: ReportRequest, logs: Sequence[Partition], report: Reporter) -> ReportAnswer | None:
    """Return at most EVENTS metadata events, near --around or the newest; None without a metadata log."""
    copies = Copies(logs, Reporter(fail=report.fail))
    if not copies:
        return None
    past = MetadataLog(copies).history(at=None if request.around is not None else request.at)
    history = map(without_secrets, past)
    around = request.around
    if around is None:
        kept = list(deque(history, EVENTS))
    else:
        near = (event for event in history if abs(event.timestamp_ms - around) <= AROUND)
        kept = sorted(
            nsmallest(EVENTS, near, key=lambda event: abs(event.timestamp_ms - around)),
            key=lambda event: event.offset,
        )
    options = ("--events",) if around is not None else ("--events", *request.now())
    return ReportAnswer(" ".join(["kdump", "metadata", *map(shell_path, request.paths), *options]), kept)


def _timeline(request: ReportRequest, logged: Iterable[Line], answers: dict[str, ReportAnswer]) -> ReportAnswer:
    lines = [_happened(line["atMs"], line["what"], _name(line), line["text"], line["logDir"]) for line in logged]
    lines += [
        _happened(line["timestampMs"], line["what"], line["name"], details_text(line["details"]) or "")
        for line in (answers["metadata"].lines() if "metadata" in answers else ())
    ]
    commits: dict[str, int] = {}
    for line in answers["groups"].lines():
        if line["kind"] == "offset" and line["commitTimestampMs"]:
            commits[line["groupId"]] = max(commits.get(line["groupId"], 0), line["commitTimestampMs"])
    lines += [_happened(ms, "last commit", group, "no commit after it") for group, ms in commits.items()]
    lines.sort(key=lambda line: (line["atMs"] is None, line["atMs"] or 0))
    command = f"{request.again()} -o jsonl | jq 'select(.answer == \"timeline\")'"
    return ReportAnswer(command, lines[-HAPPENED:])


def _happened(at_ms: int | None, what: str, name: str | None, text: str, log_dir: str | None = None) -> Line:
    return {"kind": "happened", "atMs": at_ms, "what": what, "name": name, "text": text, "logDir": log_dir}


def _name(line: Line) -> str:
    return f"{line['topic']}-{line['partition']}"


def _pairs(request: ReportRequest, logs: Iterable[Partition], report: Reporter) -> ReportAnswer | None:
    states = LogDirStates(SILENT)
    by_dir: dict[tuple[Files, str], list[Partition]] = {}
    for log in logs:
        if request.wanted.takes(Name(log.topic, log.partition)):
            by_dir.setdefault((log.files, log.log_dir), []).append(log)
    owners: dict[object, list[Place]] = {}
    for held in by_dir.values() if len(by_dir) > 1 else ():
        state = states.of(held[0])
        properties = state.properties
        known = properties is not None and properties.broker_id is not None
        key = (properties.cluster_id, properties.broker_id) if known and properties else state.path
        owners.setdefault(key, []).extend(Place(log, state) for log in held)
    if len(owners) < 2:
        return None
    names = [",".join(dict.fromkeys(place.log_dir.path for place in places)) for places in owners.values()]
    replicas = [
        [BrokerReplica(name, place) for place in places] for name, places in zip(names, owners.values(), strict=True)
    ]
    found = replica_diff.pairs(replica_diff.by_partition(replicas))
    lines = replica_diff.compare_all(found, records=False, report=Reporter(report.damage, fail=report.fail))
    return ReportAnswer(request.line("diff", paths=names), list(lines))
