"""The verdict of a report, from its document alone: problems, next steps and commands, the gravest first.

Each function of ``_PARTS`` yields the sentences about one subject, with commands that show details or repair.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from kdump.answers.collector import as_json
from kdump.errors import first_of, many, many_are
from kdump.findings import is_salvage, salvage, salvageable
from kdump.findings.verdict import NO_START_TEXT
from kdump.primitives.terminal import shell_path
from kdump.printers.findings_report import NO_START
from kdump.printers.quantities import share, size, time
from kdump.report.series import all_bytes, lag_by_group, on_disk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kdump.findings.verdict import Outcome
    from kdump.report.document import Line, LogDirReport

Weight: TypeAlias = Literal["bad", "warn", "info", "good"]
_NAMED: Final = 3
_NAME_ONE: Final = "Give the path of a log dir. --topic and --partition must match its contents."
_LISTED: Final = 50
_KEEP: Final = "Keep the broker stopped, and keep a copy of these folders. kdump salvage copies the valid batches."
_HOLES: Final = (
    "A broker accepts these logs unchanged. Another replica may have the missing records: give all brokers' log dirs."
)
_REBUILD: Final = "The files can be rebuilt: each finding has the command."
_WEIGHT: Final[dict[Outcome, Weight]] = {
    "no-start": "bad",
    "lost": "bad",
    "open": "bad",
    "damaged": "bad",
    "missing": "warn",
    "unread": "warn",
    "rebuilt": "warn",
    "unknown": "info",
    "several": "info",
    "safe": "good",
}
_MUCH: Final = 0.5
"""The largest of several topics is reported if its logs have at least this share of the bytes in the log dirs."""


@dataclass(frozen=True)
class ReportVerdict:
    """A sentence of the verdict. ``part`` is the section of the page with details."""

    weight: Weight
    text: str
    advice: str
    commands: tuple[str, ...]
    part: str


def verdicts(report: LogDirReport) -> list[ReportVerdict]:
    """Return the sentences of the verdict. Without a problem, one reports this, or that there is no partition."""
    found = [one for part in _PARTS for one in part(report)]
    order: list[Weight] = ["bad", "warn", "info", "good"]
    if not any(one.weight in {"bad", "warn"} for one in found):
        found.append(_all_well(report))
        order = ["good", "info"]
    return sorted(found, key=lambda one: order.index(one.weight))


def _all_well(report: LogDirReport) -> ReportVerdict:
    summary = _summary(report)
    if not summary["segments"] and not report.lines("du", "partition"):
        return ReportVerdict("info", "There is no partition here.", _NAME_ONE, (report.command("du"),), "disk")
    text = f"Nothing is wrong in {many(summary['segments'], 'segment')}, {size(summary['logBytes'])} of log."
    advice = "Records were not checked: run the check without --headers-only."
    command = report.command("check").replace(" --headers-only", "")
    return ReportVerdict("good", text, advice, (command,), "findings")


def _start(report: LogDirReport) -> Iterator[ReportVerdict]:
    """Yield the verdict of the check on each broker, with its advice and commands."""
    summary = _summary(report)
    salvage = tuple(_salvage(report))
    columns = (summary.get(name, ()) for name in ("verdicts", "verdictOutcomes", "verdictCommands"))
    for text, outcome, commands in zip(*columns, strict=True):
        advice = dict.fromkeys(line["advice"] for line in _named_in(report, text) if line["advice"])
        if salvage and _covers(salvage, commands):  # the verdict on damage has this command
            commands = [command for command in commands if not is_salvage(command)]
        if outcome == "damaged":
            advice, commands = dict.fromkeys([f"{_KEEP}{_unreadable(report)}"]), [*salvage, *commands]
        elif outcome == "missing":
            advice = dict.fromkeys([_HOLES])
        elif outcome == "rebuilt":
            advice = dict.fromkeys([_REBUILD])
        shown = tuple(dict.fromkeys(commands)) or (report.command("check"),)
        yield ReportVerdict(_WEIGHT[outcome], f"{text}.", " ".join(advice), shown, "findings")


def _covers(salvage: Sequence[str], commands: Sequence[str]) -> bool:
    """Return whether ``salvage`` has each word of the kdump salvage commands in ``commands``, such as their folders."""
    words = {word for command in salvage for word in command.split()}
    return all(words.issuperset(command.split()) for command in commands if is_salvage(command))


def _named_in(report: LogDirReport, text: str) -> Iterator[Line]:
    for line in report.lines("check", "finding"):
        if f"{line['file']}: {line['text'].removeprefix(NO_START_TEXT)}" in text:
            yield line


def _summary(report: LogDirReport) -> Line:
    (summary,) = report.lines("check", "summary")
    return summary


def _has_outcome(report: LogDirReport, outcome: Outcome) -> bool:
    return outcome in _summary(report).get("verdictOutcomes", ())


def _salvage(report: LogDirReport) -> Iterator[str]:
    """Yield the command that salvages the damaged partitions, or all partitions if too many are damaged."""
    if folders := salvageable(_summary(report).get("damaged", ())):
        yield salvage(map(shell_path, folders if len(folders) <= _LISTED else report.paths))


def _unreadable(report: LogDirReport) -> str:
    amount = sum(line["damagedBytes"] for line in report.lines("damage", "damagedFile"))
    return f" {size(amount)} cannot be read." if amount else ""


def _damage(report: LogDirReport) -> Iterator[ReportVerdict]:
    """Yield damage and missing offsets, each only if no broker has this outcome, and batches that stop consumers."""
    summary = _summary(report)
    damaged, missing = summary.get("damaged", ()), summary.get("offsetsMissing", ())
    if damaged and not _has_outcome(report, "damaged"):
        yield ReportVerdict(
            "bad",
            f"{many(len(damaged), 'log')} {'is' if len(damaged) == 1 else 'are'} damaged: {_named(damaged)}.",
            f"{_KEEP}{_unreadable(report)}",
            tuple(_salvage(report)),
            "damage",
        )
    if missing and not _has_outcome(report, "missing"):
        yield ReportVerdict(
            "warn",
            f"Offsets are missing from {many(len(missing), 'log')}: {_named(missing)}. All existing batches are valid.",
            _HOLES,
            (report.command("check"),),
            "findings",
        )
    if stops := summary.get("consumersStop", ()):
        yield ReportVerdict(
            "bad",
            f"Consumers stop at a batch in {many(len(stops), 'log')}: {_named(stops)}.",
            "A broker accepts these batches, so kdump salvage copies them too. The findings show their offsets.",
            (report.command("check"),),
            "findings",
        )


def _fatal(report: LogDirReport) -> Iterator[ReportVerdict]:
    """Yield a sentence for each kind of fault that prevents a broker's start, unless the broker's verdict has it."""
    named = [line for text in _summary(report).get("verdicts", ()) for line in _named_in(report, text)]
    alike: dict[tuple[str, str], list[Line]] = {}
    for line in report.lines("check", "finding"):
        if line["fatal"] and line not in named:
            alike.setdefault((line["check"], line["advice"]), []).append(line)
    for (_, advice), lines in alike.items():
        files = list(dict.fromkeys(line["file"] for line in lines))
        yield ReportVerdict(
            "bad",
            f"A{NO_START[1:]}{_named(files)}: {lines[0]['text'].removeprefix(NO_START_TEXT)}.",
            advice,
            tuple(dict.fromkeys(command for line in lines for command in line["commands"]))
            or (report.command("check"),),
            "findings",
        )


def _derived(report: LogDirReport) -> Iterator[ReportVerdict]:
    findings = report.lines("check", "finding")
    wrong = [line for line in findings if line["level"] == "derived" and not line["fatal"] and not _is_grave(line)]
    if wrong and not _has_outcome(report, "rebuilt"):
        files = sorted({line["file"] for line in wrong})
        yield ReportVerdict(
            "warn",
            f"{many(len(files), 'file')} beside the logs {'is' if len(files) == 1 else 'are'} wrong: {_named(files)}.",
            _REBUILD,
            (report.command("check"),),
            "findings",
        )


def _is_grave(line: Line) -> bool:
    return line["missing"] is not None or line["loses"] is not None


def _unread(report: LogDirReport) -> Iterator[ReportVerdict]:
    if report.messages:
        yield ReportVerdict(
            "warn",
            f"Not all files could be read or used ({many(len(report.messages), 'message')}): {report.messages[0]}.",
            "This report shows the other files.",
            (report.command("check"),),
            "said",
        )


def _transactions(report: LogDirReport) -> Iterator[ReportVerdict]:
    found = report.lines("transactions", "transaction")
    hanging = [line for line in found if line["state"] == "hanging"]
    ending = [line for line in found if line["state"] == "open" and line["terminate"]]
    late = [line for line in ending if not line["twoPhase"]]
    undecided = [line for line in ending if line["twoPhase"]]
    for lines, what, option, advice in (
        (hanging, ("hangs", "hang"), "abort", _WHERE_LEADER_AGREES),
        (late, ("is past its timeout", "are past their timeouts"), "terminate", _WHERE_LEADER_AGREES),
        (undecided, ("waits for its second phase", "wait for their second phase"), "terminate", _WHERE_DECIDED),
    ):
        if lines:
            names = [f"{line['topic']}-{line['partition']} at offset {line['startOffset']}" for line in lines]
            yield ReportVerdict(
                "bad" if option == "abort" else "warn",
                f"{many(len(lines), 'transaction')} {what[len(lines) != 1]}: {_named(names)}.",
                f"read_committed consumers wait at this offset. {advice}",
                (lines[0][option],),
                "transactions",
            )


_WHERE_LEADER_AGREES: Final = "If the partition's leader agrees, this command ends the transaction:"
_WHERE_DECIDED: Final = (
    "Ask the external coordinator (KIP-939). If it did not commit the transaction, this command aborts the transaction:"
)


def _replicas(report: LogDirReport) -> Iterator[ReportVerdict]:
    bad = [line for line in report.lines("diff", "pair") if line["verdict"] in {"diverged", "different"}]
    if bad:
        names = list(dict.fromkeys(f"{line['topic']}-{line['partition']}" for line in bad))
        loses = sum(line["loses"] for line in bad)
        yield ReportVerdict(
            "bad",
            f"Replicas of {many(len(names), 'partition')} disagree: {_named(names)}"
            + (f"; {many(loses, 'record')} would be lost." if loses else "."),
            f"Choose the leader before brokers start.{_TRUNCATES if loses else ''}",
            (report.command("diff"),),
            "replicas",
        )


_TRUNCATES: Final = (
    " The replica that lacks the newest leader epoch truncates its log to the offset where the epochs part, and loses "
    "its records from there on."
)


def _disk(report: LogDirReport) -> Iterator[ReportVerdict]:
    partitions, topics = report.held("du", "partition"), report.lines("du-topics", "topic")
    held = sum(min(on_disk(line), all_bytes(line)) for line in (*partitions, *report.held("du", "other")))
    whole = max(held, sum(line.log_bytes for line in partitions))  # a file system may compress files
    stray = [line for line in partitions if line.state in {"stray", "future", "deleted"}]
    first = max(topics, key=lambda topic: topic["logBytes"], default={"logBytes": 0})
    if whole and first["logBytes"] >= _MUCH * whole and len(topics) > 1:
        yield ReportVerdict(
            "info",
            f"The logs of topic {first['topic']} take {share(first['logBytes'], whole)} of {size(whole)}.",
            "The retention of the topic limits this size.",
            (report.command("du-topics"),),
            "disk",
        )
    if stray:
        states = sorted({line.state for line in stray})
        yield ReportVerdict(
            "info",
            f"{many_are(len(stray), 'folder')} not in use ({', '.join(states)}): "
            f"{size(sum(map(on_disk, stray)))} on disk.",
            "A broker deletes -delete folders a minute after a start, and never deletes -stray folders.",
            (report.command("du"),),
            "disk",
        )


def _retention(report: LogDirReport) -> Iterator[ReportVerdict]:
    unknown = [line["topic"] for line in report.lines("retention", "topic") if not line["known"]]
    if unknown:
        yield ReportVerdict(
            "info",
            f"Retention of {many(len(unknown), 'topic')} is unknown: {_named(unknown)}.",
            f"Without __cluster_metadata in the paths {'its' if len(unknown) == 1 else 'their'} configs are unknown: "
            "name the log dir that holds it, or give them with --config TOPIC:KEY=VALUE.",
            (f"{report.command('retention')} --config '*:retention.ms=604800000'",),
            "retention",
        )
    segments = report.held("retention", "segment")
    goes = [line for line in segments if line.deletable]
    if goes:
        total = size(sum(line.bytes for line in goes))
        yield ReportVerdict(
            "info",
            f"Retention deletes {many(len(goes), 'segment')} ({total}) at its next check.",
            f"Computed for {time(report.at)}. Properties files are not read: give a broker's configs with --config.",
            (report.command("retention"),),
            "retention",
        )
    blocking: list[Line] = [as_json(line) for line in segments if line.blocks]
    if blocking:
        count = sum(line["blocks"] for line in blocking)
        names = [f"{line['baseOffset']} of {line['topic']}-{line['partition']}" for line in blocking]
        yield ReportVerdict(
            "warn",
            f"{many_are(count, 'segment')} past retention ({size(sum(line['blocksBytes'] for line in blocking))}), but "
            f"an older segment blocks deletion: segment {_named(names)}.",
            f"Segment {names[0]}: {blocking[0]['why']}.",
            (report.command("retention"),),
            "retention",
        )


def _groups(report: LogDirReport) -> Iterator[ReportVerdict]:
    lag = lag_by_group(report)
    late = sorted(((count, group) for group, count in lag.items() if count), reverse=True)
    if late:
        names = [f"{group} ({count:,})" for count, group in late]
        yield ReportVerdict(
            "info",
            f"{len(late)} of {many(len(lag), 'group')} ha{'s' if len(late) == 1 else 've'} lag: {_named(names)}.",
            "Lag counts offsets up to the end of the logs in these paths.",
            (report.command("groups"),),
            "groups",
        )
    missing = [line for line in report.lines("groups") if line["kind"] in {"missing", "unread"}]
    if missing:
        yield ReportVerdict(
            "warn",
            f"Records of the coordinators are lost in {many(len(missing), 'place')}: groups may have more commits than "
            "this report shows.",
            "Name the log dirs of another replica too.",
            (report.command("groups"),),
            "groups",
        )


_PARTS: Final[tuple[Callable[[LogDirReport], Iterator[ReportVerdict]], ...]] = (
    _start,
    _damage,
    _fatal,
    _replicas,
    _transactions,
    _derived,
    _unread,
    _disk,
    _retention,
    _groups,
)


def _named(names: Sequence[str]) -> str:
    return first_of(names, _NAMED)
