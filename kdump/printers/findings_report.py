"""Prints the findings of a check, and its conclusion: as JSON lines, as text, or in colours on a terminal."""

from __future__ import annotations

import re
from collections import Counter
from time import monotonic
from typing import IO, TYPE_CHECKING, BinaryIO, Final, Literal, NamedTuple, Protocol, TypeAlias

from kdump.errors import many
from kdump.findings import NOT_SALVAGEABLE, Level, changes_files, is_salvage, label_of, salvage, salvageable
from kdump.findings.codes import Code
from kdump.log_dirs.file_names import is_kraft_snapshot
from kdump.primitives.messages import folded
from kdump.primitives.terminal import harmless_line, has_colours, path_text, prose_width, shell_path
from kdump.printers.quantities import exact_size, pace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kdump.broker_start.outcome import BrokerStart, StartCause
    from kdump.findings import Finding
    from kdump.findings.verdict import StartVerdict


VERSION: Final = 1
"""The version of the JSON lines (``kdump/findings.schema.json``); an added optional field does not change it."""
COMMONPLACE: Final = frozenset(
    {
        Code.CONVENTION,
        Code.EMPTY,
        Code.ZERO_TAIL,
        Code.ABSENT,
        Code.COVERAGE,
        Code.PREALLOCATION,
        Code.LEFTOVER,
    }
)
"""Codes of frequent notes on healthy files, which text reports print only with --notes."""
LOUD: Final = frozenset(
    {
        Code.CLEANED_DISCARDS_SWAP,
        Code.PARTITION_MISSING,
        Code.STRAY_FOLDER,
        Code.FILE_OWNER,
        Code.FILE_SYSTEM,
        Code.FOREIGN_FOLDER,
        Code.LEADER_DELAYED,
        Code.LIMIT,
    }
)
"""Codes of notes that are printed without --notes. A block with one of them or a problem has all but COMMONPLACE."""
UNREADABLE: Final = 1
DERIVED: Final = 4
"""Exit statuses: a file could not be read; no existing log is damaged, but files beside logs are wrong."""
SHOWN: Final = 10
"""Maximum number of partitions or files in a line of the conclusion, and of commands after a verdict."""
ALIKE: Final = 3
"""Maximum number of similar findings (texts that differ only in numbers) in a block without --verbose."""
MOST: Final = 20
"""Maximum number of findings in a block without --verbose."""
WORDS: Final = {Level.REMARK: "note", Level.DERIVED: "WRONG", Level.LOG: "DAMAGED"}


def word(finding: Finding) -> str:
    if finding.fatal:
        return "FATAL"
    if finding.code in {Code.CLUSTER_ID, Code.METADATA_ELSEWHERE}:
        return "WRONG"  # no log is damaged, although the exit status is 3
    return "LOST" if finding.is_grave else WORDS[finding.level]


Tone: TypeAlias = Literal["", "title", "note", "derived", "log", "good"]
"""The kind of a line, which determines its colour."""
TONES: Final[dict[Level, Tone]] = {Level.REMARK: "note", Level.DERIVED: "derived", Level.LOG: "log"}
WORD: Final = 8
"""Width of the first word of a finding's line."""
VERDICT: Final = ("Damaged", "Consumers stop", "What to do", "No log", "safe", "DO NOT", "broker", "  ")
"""The first words of important lines of the conclusion."""
VERDICTS: Final = {
    Level.REMARK: "nothing is wrong",
    Level.DERIVED: "the log is valid, but files beside it are wrong",
    Level.LOG: "the log is damaged",
}
NO_START: Final = "a broker does not start because of "
HOLES: Final = "offsets are missing, but all existing batches are valid"
LOST_SEGMENT: Final = "the .log of a segment is missing, but its other files exist"
COMMAND: Final = 4
"""Indent of a command on a terminal: more than that of folded sentences. A command is not folded: people paste it."""
NO_VERDICT: Final = (
    "There is no verdict on the start of a broker: no meta.properties is in these paths. For a verdict, give all log "
    "dirs of the broker."
)
NOT_ALL: Final = "nothing wrong found"
SAFE: Final = " Start the broker when it says safe to start."
NOTES: Final = "(add --notes to print "
ALL: Final = "--verbose prints them all"


class CheckSummary:
    """Totals of a check, counted while it runs; ``size`` is the size of the logs in bytes."""

    def __init__(self) -> None:
        self.segments = self.batches = self.size = 0
        self.began = monotonic()
        self.levels: Counter[Level] = Counter()
        self.damaged: list[str] = []
        """The folders of partitions with another damaged log. A log with only ``LOST`` findings is in no list."""
        self.without_batches: list[str] = []
        """The folders in ``damaged``, ``poisoned`` and ``holes`` that have no valid batch."""
        self.not_salvageable: list[str] = []
        """The folders that have only faults of ``NOT_SALVAGEABLE``, which salvage does not remove."""
        self.poisoned: list[str] = []
        """The folders of partitions with batches at which consumers stop, and no other fault than missing offsets."""
        self.holes: list[str] = []
        """The folders of partitions whose only fault is missing offsets."""
        self.fatal: list[str] = []
        """The files and folders that prevent a broker's start."""
        self.unchecked = 0
        """The number of batches whose records were not checked because of a limit."""
        self.verdicts: list[StartVerdict] = []
        """The verdicts of the brokers, one for each dry start."""
        self.is_of_indexes = False
        """Whether the command verifies no checksum of a batch."""
        self.is_of_starts = False
        """Whether the command predicts starts of brokers."""
        self.is_partial = False
        """Whether the command line selects topics or partitions."""
        self.again: Callable[[], str] = lambda: "kdump check"
        """Returns the command line without --topic and --partition, quoted for a shell."""

    def add(self, findings: Sequence[Finding], folder: str = "", *, has_batches: bool = True) -> None:
        """Count the findings of the partition ``folder``. ``has_batches``: some batches of the partition are valid."""
        wrong = [finding for finding in findings if finding.level is Level.LOG]
        if folder and wrong and not all(finding.is_grave and not finding.fatal for finding in wrong):
            poisoned = all(finding.poison or finding.is_hole for finding in wrong)
            (self.holes if only_holes(wrong) else self.poisoned if poisoned else self.damaged).append(folder)
            if not has_batches:
                self.without_batches.append(folder)
            if all(finding.code in NOT_SALVAGEABLE or is_kraft_snapshot(finding.file) for finding in wrong):
                self.not_salvageable.append(folder)
        for finding in findings:
            self.levels[finding.level] += 1
            self.unchecked += finding.code == Code.LIMIT
            if finding.fatal:
                self.fatal.append(finding.file)

    @property
    def findings(self) -> int:
        """The number of findings that are not notes (``Level.REMARK``)."""
        return self.levels[Level.DERIVED] + self.levels[Level.LOG]


class FoldedFinding(NamedTuple):
    """A finding in a block. ``place``: its file and byte. ``more``: the number of omitted findings, as text."""

    finding: Finding
    place: str
    more: str = ""


class FindingsBlock(NamedTuple):
    title: str
    lines: list[FoldedFinding]
    advice: list[str]


class Shown(NamedTuple):
    """Selects the findings to print: the options of a report."""

    quiet: bool = False
    """Omit notes and the summary."""
    remarks: bool = False
    """Print all notes (``--notes``)."""
    verbose: bool = False
    """Omit no similar findings, and none beyond MOST."""

    def block(self, name: str, findings: Sequence[Finding]) -> FindingsBlock:
        """Return the block of a partition or file, worst findings first. ``verbose`` lifts the limits ALIKE, MOST."""
        wrong = any(not finding.is_remark or finding.code in LOUD for finding in findings)
        shown = [
            finding
            for finding in findings
            if not finding.is_remark
            or (not self.quiet and (self.remarks or (wrong and finding.code not in COMMONPLACE)))
        ]
        if not shown:
            return FindingsBlock(name, [], [])
        order = list(WORDS)[::-1]
        shown.sort(key=lambda finding: (not finding.fatal, order.index(finding.level)))
        alike: dict[object, list[Finding]] = {}
        for number, finding in enumerate(shown):
            same = number if self.verbose else (finding.level, finding.kind, re.sub(r"\d+", "0", finding.text))
            alike.setdefault(same, []).append(finding)
        lines = [line for group in alike.values() for line in _lines(name, group)]
        if len(lines) > MOST and not self.verbose:
            more = f"... and {len(lines) - MOST} other findings ({ALL})"
            lines = [*lines[: MOST - 1], lines[MOST - 1]._replace(more=more)]
        verdict = _verdict(shown) if any(finding.file != name for finding in shown) else ""
        shown.sort(key=lambda finding: not finding.commands)
        advice = dict.fromkeys(finding.advice for finding in shown if finding.advice)
        return FindingsBlock(f"{name}: {verdict}" if verdict else name, lines, list(advice))


def _verdict(shown: Sequence[Finding]) -> str:
    starts = f", and {NO_START}it" if any(finding.fatal for finding in shown) else ""
    return (HOLES if only_holes(shown) else _worst(shown)) + starts


def _worst(shown: Sequence[Finding]) -> str:
    if all(finding.is_grave or finding.is_remark for finding in shown) and any(finding.is_grave for finding in shown):
        return (
            "records are missing, or a start loses them"
            if not any(finding.fatal for finding in shown)
            else "a file is wrong"
        )
    worst = max((finding.level for finding in shown), key=list(WORDS).index)
    if worst is Level.REMARK and any(finding.code == Code.LIMIT for finding in shown):
        return NOT_ALL
    is_lost = worst is Level.DERIVED and any(finding.code == Code.NO_LOG for finding in shown)
    return LOST_SEGMENT if is_lost else VERDICTS[worst]


def only_holes(findings: Sequence[Finding]) -> bool:
    """Return whether missing offsets are the only fault of the log."""
    wrong = [finding for finding in findings if finding.level is Level.LOG]
    return bool(wrong) and all(finding.is_hole for finding in wrong)


def _lines(name: str, alike: Sequence[Finding]) -> Iterator[FoldedFinding]:
    """Yield the first ALIKE of similar findings. The last one gets the number of omitted findings."""
    for number, finding in enumerate(alike[:ALIKE]):
        inside = "" if finding.file == name else f"{finding.file.removeprefix(f'{name}/')} "
        place = inside if finding.position is None else f"{inside}byte {finding.position}: "
        place = f"{place.rstrip()}: " if inside and finding.position is None else place
        more = ""
        if number == ALIKE - 1 and len(alike) > ALIKE:
            last = alike[-1].file
            until = "" if last == finding.file else f", up to {last.removeprefix(f'{name}/')}"
            more = f"... and {len(alike) - ALIKE:,} more like it{until} ({ALL})"
        yield FoldedFinding(finding, place, more)


class Report(Protocol):
    def block(self, name: str, findings: Sequence[Finding]) -> None:
        """Print the findings of a partition or file."""

    def start(self, start: BrokerStart) -> None:
        """Receive the dry start of a broker, before the verdict in :meth:`end`."""

    def end(self, summary: CheckSummary, status: int) -> None: ...


class JsonReport:
    """Prints JSON lines: findings (notes have the kind ``remark``), dry starts and their logs, a summary at the end."""

    def __init__(self, out: BinaryIO, *, quiet: bool = False) -> None:
        """``quiet`` omits notes, dry starts and the summary."""
        self._out = out
        self._quiet = quiet

    def block(self, name: str, findings: Sequence[Finding]) -> None:  # noqa: ARG002  each finding names its file
        for finding in findings:
            if not (self._quiet and finding.is_remark):
                self._line(finding_line(finding))

    def start(self, start: BrokerStart) -> None:
        for line in () if self._quiet else start_lines(start):
            self._line(line)

    def end(self, summary: CheckSummary, status: int) -> None:
        if not self._quiet:
            self._line(summary_line(summary, status))

    def _line(self, line: dict[str, object]) -> None:
        from kdump.printers.answer_lines import json_line

        self._out.write(json_line(line))


def kind_of(finding: Finding) -> str:
    return "remark" if finding.is_remark else "finding"


def finding_line(finding: Finding) -> dict[str, object]:
    values = finding._asdict()
    check = values.pop("kind")
    del values["poison"]  # the advice contains this fact
    values["commands"] = [path_text(command) for command in finding.commands]
    line = {"kind": kind_of(finding), "version": VERSION, "check": check, "code": finding.code, **values}
    return {
        name: path_text(value) if isinstance(value, str) else value for name, value in line.items()
    }  # texts may contain paths


def summary_line(summary: CheckSummary, status: int) -> dict[str, object]:
    folders_of = {"damaged": summary.damaged, "offsetsMissing": summary.holes, "consumersStop": summary.poisoned}
    return {
        "kind": "summary",
        "version": VERSION,
        "segments": summary.segments,
        "batches": summary.batches,
        "logBytes": summary.size,
        "findings": summary.findings,
        "remarks": summary.levels[Level.REMARK],
        "status": status,
        **{name: list(map(path_text, folders)) for name, folders in folders_of.items() if folders},
        **(
            {
                "verdicts": [path_text(verdict.text) for verdict in summary.verdicts],
                "verdictOutcomes": [verdict.outcome for verdict in summary.verdicts],
                "verdictCommands": [list(map(path_text, verdict.commands)) for verdict in summary.verdicts],
                "verdictSteps": [list(map(path_text, verdict.later)) for verdict in summary.verdicts],
            }
            if summary.verdicts
            else {}
        ),
    }


class PlainReport:
    """Prints text without colours: a block for each partition or file with findings to show, worst findings first."""

    is_timed = False
    """Whether the conclusion has the elapsed time, which is different in each run."""

    def __init__(self, out: IO[str], show: Shown) -> None:
        self._out = out
        self._show = show

    def block(self, name: str, findings: Sequence[Finding]) -> None:
        block = self._show.block(name, findings)
        if not block.lines:
            return
        self._print(block.title, "title")
        for line in block.lines:
            self._print(f"{line.place}{line.finding.text}", TONES[line.finding.level], word=word(line.finding))
            if line.finding.expected is not None or line.finding.found is not None:
                self._print(values(line.finding), "", WORD + 2)
            if line.more:
                self._print(line.more, "note", WORD + 2)
        for text in block.advice:
            self._print(f"what to do: {text}", "", 2)

    def start(self, start: BrokerStart) -> None:
        """Print nothing: the findings describe the start."""

    def end(self, summary: CheckSummary, status: int) -> None:
        if self._show.quiet:
            return
        tone: Tone = "good" if not status else "log" if summary.damaged or summary.poisoned else "title"
        lines = conclusion(summary, status, is_timed=self.is_timed, shows_notes=self._show.remarks)
        for number, text in enumerate(lines):
            is_verdict = not number or text.startswith(VERDICT)
            is_command = text.startswith("  ")
            self._print(text.lstrip(), tone if is_verdict else "note", 2 * is_command, is_command=is_command)

    def _print(
        self,
        text: str,
        tone: Tone = "",  # noqa: ARG002  terminals use it
        indent: int = 0,
        *,
        word: str = "",
        is_command: bool = False,  # noqa: ARG002  terminals use it
    ) -> None:
        before = f"  {word:{WORD}}" if word else " " * indent
        self._out.write(f"{before}{harmless_line(text)}\n")


def values(finding: Finding) -> str:
    pairs = [("expected", finding.expected), ("found", finding.found)]
    return ", ".join(f"{what} {value}" for what, value in pairs if value is not None)


def _gone_through(summary: CheckSummary, *, is_timed: bool) -> str:
    batches = many(summary.batches, "batch", "batches")
    through = f"{many(summary.segments, 'segment')}, {batches}, {exact_size(summary.size)} of log"
    return f"{through} {pace(summary.size, monotonic() - summary.began)}" if is_timed else through


def conclusion(summary: CheckSummary, status: int, *, is_timed: bool = False, shows_notes: bool = False) -> list[str]:
    """Return the lines of the totals, the result and the next steps. ``status`` is the exit status."""
    findings, remarks = summary.findings, summary.levels[Level.REMARK]
    where = " in indexes and headers (kdump check verifies records)" if summary.is_of_indexes else ""
    verdict = many(findings, "finding") if findings else f"nothing is wrong{where}"
    if summary.unchecked:
        verdict = many(findings, "finding") if findings else NOT_ALL
        verdict += f"; {summary.unchecked} of {many(summary.batches, 'batch', 'batches')} not checked"
    if status == UNREADABLE:
        verdict = f"{verdict}, but some files could not be read" if summary.segments else "nothing could be read"
    lines = [f"{_gone_through(summary, is_timed=is_timed)}: {verdict}"]
    if remarks:
        them = "it" if remarks == 1 else "them"
        lines.append(f"{many(remarks, 'note')}{'' if shows_notes else f' {NOTES}{them})'}")
    if summary.holes:
        lines.append(f"Offsets missing: {_named(summary.holes)}")
        lines.append("All existing batches are valid, and a broker accepts these logs unchanged.")
    if summary.damaged:
        lines.append(f"Damaged: {_named(summary.damaged)}")
        keep = "What to do next: keep the broker stopped, and keep a copy of these folders"
        unfit = {*summary.without_batches, *summary.not_salvageable}
        if set(summary.damaged) <= set(summary.without_batches):
            left_none = "No valid batch is left for kdump salvage."
            lines.append(left_none if summary.verdicts else f"{keep}. {left_none}")
        elif left := [shell_path(each) for each in salvageable(summary.damaged) if each not in unfit]:
            is_below = any(is_salvage(command) for start in summary.verdicts for command in start.commands)
            named = "kdump salvage" if is_below or len(left) > SHOWN else salvage(left)
            then = f"{named} copies the valid batches, merged from all replicas that you name."
            lines.append(f"With the broker stopped, {then}" if summary.verdicts else f"{keep}. Then {then}")
        elif not summary.verdicts:
            lines.append(f"{keep}.")
    if summary.poisoned:
        lines.append(f"Consumers stop in {_named(summary.poisoned)}")
        lines.append(
            "A broker accepts the batch at which consumers stop, and kdump salvage copies it too. What to do next: use "
            "kdump slice to copy the batches before and after it."
        )
    if not summary.verdicts:
        lines += _no_verdict(summary, status)
    lines += [line for start in summary.verdicts for line in _verdict_lines(start, summary.again)]
    if summary.verdicts and summary.is_partial:
        lines.append(f"Only the selected partitions were checked: before a start, run `{summary.again()}`.")
    return lines


def _no_verdict(summary: CheckSummary, status: int) -> Iterator[str]:
    """Yield the sentences on broken and rebuildable files if there is no verdict on a broker."""
    if summary.fatal:
        shown = ", ".join(summary.fatal[:SHOWN]) + (", ..." if len(summary.fatal) > SHOWN else "")
        yield f"A{NO_START[1:]}{shown}"
    elif status == DERIVED:
        yield "No log is damaged: the wrong files can be rebuilt."
    if status != UNREADABLE and summary.is_of_starts and summary.segments and not summary.fatal:
        yield NO_VERDICT


def _verdict_lines(start: StartVerdict, again: Callable[[], str]) -> Iterator[str]:
    """Yield the sentence of a verdict, its commands with their labels, and the later steps."""
    yield start.text
    before = ""
    for label, command in map(label_of, start.commands[:SHOWN]):
        if label != before:
            yield f"{label[0].upper()}{label[1:]}:" if label else "Then:"
        yield f"  {command}"
        before = label
    if len(start.commands) > SHOWN:
        yield f"... and {many(len(start.commands) - SHOWN, 'other command')} (-o jsonl has them)"
    if any(map(changes_files, start.commands)):
        yield f"After the commands, run `{again()}`.{'' if start.later else SAFE}"
    yield from start.later


def _named(folders: Sequence[str]) -> str:
    return f"{many(len(folders), 'partition')}: {', '.join(folders[:SHOWN])}{', ...' if len(folders) > SHOWN else ''}"


START_VERSION: Final = 1


def start_lines(start: BrokerStart) -> Iterator[dict[str, object]]:
    """Yield the JSON object of a dry start, then one object for each of its logs."""
    yield {
        "kind": "start",
        "version": START_VERSION,
        "release": start.release,
        "nodeId": start.node_id,
        "clusterId": _text(start.cluster_id),
        "logDirs": [path_text(path) for path in start.log_dirs],
        "starts": start.starts,
        "fatal": [_cause(cause) for cause in start.fatal],
        "offlineLogDirs": [path_text(path) for path in start.offline_log_dirs],
        "unknown": [_cause(cause) for cause in start.unknown],
    }
    for log in start.logs:
        yield {
            "kind": "startLog",
            "version": START_VERSION,
            "topic": _text(log.topic),
            "partition": log.partition,
            "folder": _text(log.folder),
            "logDir": _text(log.log_dir),
            "outcome": log.outcome,
            "logStartOffset": log.log_start_offset,
            "logEndOffset": log.log_end_offset,
            "causes": [_cause(cause) for cause in log.causes],
        }


def _cause(cause: StartCause) -> dict[str, object]:
    return {"code": cause.code, "file": _text(cause.file), "text": path_text(cause.text)}


def _text(value: str | None) -> str | None:
    return None if value is None else path_text(value)


STYLES: Final[dict[Tone, str]] = {"title": "1", "note": "2", "derived": "33", "log": "1;31", "good": "1;32", "": ""}


class TerminalReport(PlainReport):
    """Prints text on a terminal, folded (except commands) and, if the terminal has them, in colours."""

    is_timed = True

    def __init__(self, out: IO[str], show: Shown) -> None:
        super().__init__(out, show)
        self._width = prose_width()
        self._has_colours = has_colours(out, 1)

    def _print(self, text: str, tone: Tone = "", indent: int = 0, *, word: str = "", is_command: bool = False) -> None:
        text, before = harmless_line(text), f"  {word:{WORD}}" if word else ""
        first = COMMAND if is_command else len(before) or indent
        lines = [text] if is_command else folded(text, self._width - first, indent=0 if word else 2)
        style = STYLES[tone] if self._has_colours else ""
        for number, line in enumerate(lines):
            start = " " * first if number or not before else before
            shown = (
                f"{start}{line}" if not style else f"{_in(style, start)}{line}" if word else _in(style, start + line)
            )
            self._out.write(f"{shown}\n")


def _in(style: str, text: str) -> str:
    return f"\x1b[{style}m{text}\x1b[m" if text.strip() else text
