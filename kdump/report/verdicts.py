"""The verdict of a report: what is wrong, what to do next, and the command that shows more. The worst comes first."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from kdump.findings import is_hole, many
from kdump.log_dirs.file_names import SEGMENT_NAME, is_sibling
from kdump.primitives.terminal import shell_path
from kdump.printers.findings_report import NO_START
from kdump.printers.quantities import share, size, time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kdump.report.document import Line, LogDirReport

Weight: TypeAlias = Literal["bad", "warn", "info", "good"]
_NAMED: Final = 3
"""Partitions, groups and the like that one sentence names."""
_NAME_ONE: Final = "Name a log dir, and with --topic and --partition what is in it."
_MUCH: Final = 0.5
"""The share of all bytes from which on the logs of a topic are said to fill the disk. Retention counts no indexes."""


@dataclass(frozen=True)
class ReportVerdict:
    """One sentence of the verdict. ``part`` is the section of the page that shows more."""

    weight: Weight
    text: str
    advice: str
    command: str
    part: str


def verdicts(report: LogDirReport) -> list[ReportVerdict]:
    """Return the verdict; where nothing is wrong the first sentence says so."""
    found = [one for part in _PARTS for one in part(report)]
    order: list[Weight] = ["bad", "warn", "info", "good"]
    if not any(one.weight in {"bad", "warn"} for one in found):
        found.append(_all_well(report))
        order = ["good", "info"]
    return sorted(found, key=lambda one: order.index(one.weight))


def _all_well(report: LogDirReport) -> ReportVerdict:
    (summary,) = report.lines("check", "summary")
    if not summary["segments"] and not report.lines("du", "partition"):
        return ReportVerdict("info", "There is no partition here.", _NAME_ONE, report.command("du"), "disk")
    text = f"Nothing is wrong in {many(summary['segments'], 'segment')}, {size(summary['logBytes'])} of log."
    advice = "Records were not opened: the check without --headers-only does that."
    return ReportVerdict("good", text, advice, report.command("check").replace(" --headers-only", ""), "findings")


def _start(report: LogDirReport) -> Iterator[ReportVerdict]:
    """Yield the verdict of the check on each broker: the same sentence, for the same reason."""
    for line in report.lines("check", "summary"):
        for text in line.get("verdicts", ()):
            weight: Weight = "bad" if "DO NOT START" in text or "starts, but" in text else "info"
            yield ReportVerdict(weight, f"{text}.", "", report.command("check"), "findings")


def _damage(report: LogDirReport) -> Iterator[ReportVerdict]:
    wrong = [line for line in report.lines("check", "finding") if line["level"] == "log"]
    lost = [line for line in wrong if line["check"] == "recovery"]
    holes = [line for line in wrong if is_hole(line["check"], line["file"])]
    damaged = [line for line in wrong if line["check"] != "recovery" and not is_hole(line["check"], line["file"])]
    if damaged:
        folders = _folders(damaged)
        ranges = report.lines("damage", "damagedFile")
        amount = f", {size(sum(line['damagedBytes'] for line in ranges))} cannot be read" if ranges else ""
        yield ReportVerdict(
            "bad",
            f"{many(len(folders), 'log')} {'is' if len(folders) == 1 else 'are'} damaged: {_named(folders)}{amount}.",
            "Keep the broker stopped and a copy of these folders. kdump salvage gets the sound batches out.",
            f"kdump salvage {' '.join(map(shell_path, folders[:_NAMED]))} --out DIR",
            "damage",
        )
    of_damaged = set(_folders(damaged))
    missing = [folder for folder in _folders(holes) if folder not in of_damaged]
    if missing:
        yield ReportVerdict(
            "warn",
            f"Offsets are missing from {many(len(missing), 'log')}: {_named(missing)}. All batches that are there are "
            "sound.",
            "A broker takes these logs as they are. Another replica may have what is missing: name its log dirs too.",
            report.command("check"),
            "findings",
        )
    if lost:
        folders = _folders(lost)
        yield ReportVerdict(
            "bad",
            f"A start of the broker would cut {many(len(folders), 'log')}: {_named(folders)}.",
            "Salvage what would go before a broker starts on it.",
            report.command("check"),
            "findings",
        )


def _fatal(report: LogDirReport) -> Iterator[ReportVerdict]:
    """Yield a sentence for each reason for which a broker does not start."""
    alike: dict[tuple[str, str], list[Line]] = {}
    for line in report.lines("check", "finding"):
        if line["fatal"]:
            alike.setdefault((line["check"], line["advice"]), []).append(line)
    for (_, advice), lines in alike.items():
        files = list(dict.fromkeys(line["file"] for line in lines))
        yield ReportVerdict(
            "bad",
            f"{NO_START} as it is: {_named(files)}: {lines[0]['text']}.",
            advice,
            report.command("check"),
            "findings",
        )


def _derived(report: LogDirReport) -> Iterator[ReportVerdict]:
    findings = report.lines("check", "finding")
    wrong = [line for line in findings if line["level"] == "derived" and not line["fatal"]]
    if wrong:
        files = sorted({line["file"] for line in wrong})
        yield ReportVerdict(
            "warn",
            f"{many(len(files), 'file')} beside the logs {'is' if len(files) == 1 else 'are'} wrong: {_named(files)}.",
            "They can be made anew: each finding says how.",
            report.command("check"),
            "findings",
        )


def _unread(report: LogDirReport) -> Iterator[ReportVerdict]:
    if report.said:
        yield ReportVerdict(
            "warn",
            f"{many(len(report.said), 'thing')} could not be read or used: {report.said[0]}.",
            "What is shown is that of the rest.",
            report.command("check"),
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
                f"read_committed consumers wait there. {advice}",
                lines[0][option],
                "transactions",
            )


_WHERE_LEADER_AGREES: Final = "Where the partition's leader agrees, this line ends it:"
_WHERE_DECIDED: Final = (
    "Ask what coordinates it outside of Kafka (KIP-939). Where that did not commit, this line aborts it:"
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
            "Choose the leader before brokers start: the side with the older history cuts its log.",
            report.command("diff"),
            "replicas",
        )


def _disk(report: LogDirReport) -> Iterator[ReportVerdict]:
    partitions, topics = report.lines("du", "partition"), report.lines("du-topics", "topic")
    whole = sum(line["allBytes"] for line in partitions) + sum(line["bytes"] for line in report.lines("du", "other"))
    stray = [line for line in partitions if line["state"] in {"stray", "future", "deleted"}]
    first = max(topics, key=lambda topic: topic["logBytes"], default={"logBytes": 0})
    if whole and first["logBytes"] >= _MUCH * whole and len(topics) > 1:
        yield ReportVerdict(
            "info",
            f"The logs of topic {first['topic']} take {share(first['logBytes'], whole)} of {size(whole)}.",
            "Its retention decides what stays.",
            report.command("du-topics"),
            "disk",
        )
    if stray:
        states = sorted({line["state"] for line in stray})
        yield ReportVerdict(
            "info",
            f"{many(len(stray), 'folder')} of no live replica ({', '.join(states)}) "
            f"take{'s' if len(stray) == 1 else ''} {size(sum(line['allBytes'] for line in stray))}.",
            "A broker deletes -delete folders a minute after a start, and -stray folders never.",
            report.command("du"),
            "disk",
        )


def _retention(report: LogDirReport) -> Iterator[ReportVerdict]:
    goes = [line for line in report.lines("retention", "segment") if line["deletable"]]
    if goes:
        yield ReportVerdict(
            "info",
            f"Retention deletes {many(len(goes), 'segment')} at its next check, {size(sum(x['bytes'] for x in goes))}.",
            f"Now means {time(report.at)}. Configs of a broker's properties file are not known: give them by --config.",
            report.command("retention"),
            "retention",
        )
    blocking = [line for line in report.lines("retention", "segment") if line["blocks"]]
    if blocking:
        count = sum(line["blocks"] for line in blocking)
        names = [f"segment {line['baseOffset']} of {line['topic']}-{line['partition']}" for line in blocking]
        yield ReportVerdict(
            "warn",
            f"{many(count, 'segment')} past retention {'stays' if count == 1 else 'stay'}, "
            f"{size(sum(line['blocksBytes'] for line in blocking))}: an older one blocks, {_named(names)}.",
            f"Of {names[0]}: {blocking[0]['why']}.",
            report.command("retention"),
            "retention",
        )


def _groups(report: LogDirReport) -> Iterator[ReportVerdict]:
    lag: dict[str, int] = {}
    for line in report.lines("groups", "offset"):
        lag[line["groupId"]] = lag.get(line["groupId"], 0) + max(0, line["lag"] or 0)
    late = sorted(((count, group) for group, count in lag.items() if count), reverse=True)
    if late:
        names = [f"{group} ({count:,})" for count, group in late]
        yield ReportVerdict(
            "info",
            f"{many(len(late), 'group')} of {len(lag)} ha{'s' if len(late) == 1 else 've'} lag: {_named(names)}.",
            "Lag counts offsets up to the end of the logs in these paths.",
            report.command("groups"),
            "groups",
        )
    missing = [line for line in report.lines("groups") if line["kind"] in {"missing", "unread"}]
    if missing:
        yield ReportVerdict(
            "warn",
            f"What coordinators wrote is lost in {many(len(missing), 'place')}: groups may have done more than is "
            "shown.",
            "Name the log dirs of another replica too.",
            report.command("groups"),
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


def _folders(lines: list[Line]) -> list[str]:
    """Return the folders that findings are of: a finding names a folder or a file in it."""
    return list(dict.fromkeys(posixpath.dirname(line["file"]) if _is_file(line) else line["file"] for line in lines))


def _is_file(line: Line) -> bool:
    name = posixpath.basename(line["file"])
    return SEGMENT_NAME.fullmatch(name) is not None or is_sibling(name)


def _named(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"
