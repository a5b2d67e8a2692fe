"""The tables of the page. A row is a line of an answer, or a sum for a log dir, a topic or a group."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kdump.primitives.terminal import harmless_line
from kdump.printers.answer_tables.metadata import details_text
from kdump.printers.quantities import size, time
from kdump.report.document import EVENTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from kdump.report.document import Line, LogDirReport

MOST: Final = 5000
"""Maximum number of rows of a table, except that of the log dirs."""
WORDS: Final = {"log": "DAMAGED", "derived": "WRONG", "remark": "note"}


class Cell(NamedTuple):
    """A value of the document, and the text that the page shows. Numbers are right-aligned."""

    value: object
    text: str
    is_number: bool = False


@dataclass(frozen=True)
class ReportTable:
    """A table of the section ``part``. ``command`` prints the lines of its rows; ``left_out`` counts omitted rows."""

    part: str
    name: str
    title: str
    command: str
    columns: tuple[str, ...]
    rows: list[list[Cell]] = field(default_factory=list)
    left_out: int = 0


def tables(report: LogDirReport) -> list[ReportTable]:
    return [table for make in _TABLES for table in make(report) if table.rows]


def plain(value: object) -> Cell:
    return Cell(value, "–" if value is None else harmless_line(str(value)))


def number(value: int | float | None) -> Cell:
    text = "–" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"
    return Cell(value, text, True)


def in_bytes(value: int | None) -> Cell:
    return Cell(value, "–" if value is None else size(value), True)


def moment(value: int | None) -> Cell:
    return Cell(value, time(value) or "–")


_NUMBERS: Final = (
    *("partition", "partitions", "replicas", "segments", "position", "missingFrom", "missingUntil", "baseOffset"),
    *("earliest", "latest", "blockedBy", "blocks", "retentionMs", "retentionBytes", "producerId", "startOffset"),
    *("heldBack", "offset", "logEndOffset", "lag", "endLeft", "endRight", "truncateTo", "loses"),
)
_MOMENTS: Final = (
    *("oldestMs", "newestMs", "deletableAtMs", "lastTimestampMs", "commitTimestampMs", "expireTimestampMs"),
    *("timestampMs", "atMs"),
)
_CELLS: Final[dict[str, Callable[[Any], Cell]]] = {
    **dict.fromkeys(_NUMBERS, number),
    **dict.fromkeys(_MOMENTS, moment),
    **dict.fromkeys(("bytes", "logBytes", "allBytes", "diskBytes", "size"), in_bytes),
    "level": lambda level: Cell(level, WORDS[level]),
    "from": lambda found: plain(found["retention.ms"]),
    "details": lambda details: plain(details_text(details) or ""),
}
"""Field -> the function that makes its cell; the other fields are text."""


def _columns(text: str) -> dict[str, str]:
    """Return title -> field from a text: ``topic, log: logBytes`` has the titles ``topic`` and ``log``."""
    pairs = (one.partition(": ") for one in text.split(", "))
    return {title: field or title for title, _, field in pairs}


def _of_lines(lines: Iterable[Line], columns: dict[str, str], **about: str) -> ReportTable:
    found = list(lines)
    rows = [[_CELLS.get(name, plain)(line[name]) for name in columns.values()] for line in found[:MOST]]
    return ReportTable(columns=tuple(columns), rows=rows, left_out=len(found) - len(rows), **about)


def _of_rows(rows: list[list[Cell]], columns: tuple[str, ...], **about: str) -> ReportTable:
    return ReportTable(columns=columns, rows=rows[:MOST], left_out=max(0, len(rows) - MOST), **about)


def _findings(report: LogDirReport) -> Iterator[ReportTable]:
    columns = _columns("weight: level, file, check, byte: position, what is wrong: text, what to do: advice")
    order = list(WORDS)
    found = sorted(report.lines("check", "finding"), key=lambda line: order.index(line["level"]))
    about = {"command": report.command("check"), "part": "findings"}
    yield _of_lines(found, columns, name="findings", title="What is wrong", **about)
    remarks = report.lines("check", "remark")
    yield _of_lines(
        remarks,
        _columns("file, check, byte: position, what is wrong: text"),
        name="remarks",
        title="Remarks: worth knowing, although nothing is wrong",
        **about,
    )


def _damage(report: LogDirReport) -> Iterator[ReportTable]:
    command = f"{report.command('damage')} -o jsonl | jq 'select(.kind == \"damage\")'"
    columns = _columns(
        "file, byte: position, size, damage, reason, missing from: missingFrom, missing until: missingUntil"
    )
    lines = report.lines("damage", "damage")
    table = _of_lines(lines, columns, part="damage", name="damage", title="Damaged ranges", command=command)
    ranges = sum(line["ranges"] for line in report.lines("damage", "damagedFile"))
    yield replace(table, left_out=ranges - len(table.rows))


def _disk(report: LogDirReport) -> Iterator[ReportTable]:
    columns = _columns("topic, partitions, replicas, log: logBytes, all files: allBytes, on disk: diskBytes")
    lines = report.lines("du-topics", "topic")
    command = report.command("du-topics")
    yield _of_lines(lines, columns, part="disk", name="topics", title="Topics", command=command)
    yield _log_dirs(report)
    others = _columns("path, what, bytes")
    lines = report.lines("du", "other")
    command = report.command("du")
    yield _of_lines(lines, others, part="disk", name="others", title="Beside the partitions", command=command)


def _log_dirs(report: LogDirReport) -> ReportTable:
    dirs: dict[tuple[str | None, str], list[Line]] = defaultdict(list)
    for line in report.lines("du", "partition"):
        dirs[line["brokerId"], line["logDir"]].append(line)
    rows = [
        [
            plain(broker),
            plain(path),
            number(len({line["topic"] for line in lines})),
            number(len(lines)),
            number(sum(line["segments"] for line in lines)),
            in_bytes(sum(line["logBytes"] for line in lines)),
            in_bytes(sum(line["allBytes"] for line in lines)),
        ]
        for (broker, path), lines in dirs.items()
    ]
    columns = ("broker", "log dir", "topics", "folders", "segments", "log", "all files")
    return ReportTable("disk", "log-dirs", "Brokers and log dirs", report.command("du"), columns, rows)


def _partitions(report: LogDirReport) -> Iterator[ReportTable]:
    columns = _columns(
        "topic, partition, state, log dir: logDir, segments, log: logBytes, all files: allBytes, earliest, "
        "latest, oldest: oldestMs, newest: newestMs"
    )
    lines = report.lines("du", "partition")
    about = {"part": "partitions", "name": "partitions", "title": "Partitions"}
    yield _of_lines(lines, columns, command=report.command("du"), **about)


def _batches(report: LogDirReport) -> Iterator[ReportTable]:
    columns = ("topic", "batches", "records", "log", "records per batch", "bytes per batch", "transactional", "codecs")
    topics: dict[str, list[Line]] = defaultdict(list)
    for line in report.lines("stats", "stats"):
        topics[line["topic"]].append(line)
    rows = []
    for topic, lines in topics.items():
        batches, records, log = (sum(line[name] for line in lines) for name in ("batches", "records", "logBytes"))
        codecs: dict[str, int] = defaultdict(int)
        for line in lines:
            for codec, share in line["codecs"].items():
                codecs[codec] += share["batches"]
        rows.append(
            [
                plain(topic),
                number(batches),
                number(records),
                in_bytes(log),
                number(records / batches if batches else None),
                number(log / batches if batches else None),
                number(sum(line["transactionalBatches"] for line in lines)),
                plain(", ".join(f"{codec} {count:,}" for codec, count in sorted(codecs.items()))),
            ]
        )
    about = {"part": "topics", "name": "stats", "title": "Batches and records of topics"}
    yield _of_rows(rows, columns, command=report.command("stats"), **about)


def _retention(report: LogDirReport) -> Iterator[ReportTable]:
    about = {"part": "retention", "command": report.command("retention")}
    columns = _columns(
        "topic, partition, base offset: baseOffset, bytes, reason, due: deletableAtMs, blocked by: blockedBy, "
        "blocks, why"
    )
    segments = report.lines("retention", "segment")
    goes = [line for line in segments if line["deletable"] or line["blocks"] or line["blockedBy"] is not None]
    yield _of_lines(
        goes, columns, name="deletable", title="Segments that are due, and segments that block them", **about
    )
    configs = _columns(
        "topic, cleanup.policy: cleanupPolicy, retention.ms: retentionMs, retention.bytes: retentionBytes, from"
    )
    yield _of_lines(report.lines("retention", "topic"), configs, name="configs", title="Retention of topics", **about)


def _transactions(report: LogDirReport) -> Iterator[ReportTable]:
    columns = _columns(
        "topic, partition, state, producer id: producerId, from offset: startOffset, last write: "
        "lastTimestampMs, held back: heldBack, transactional id: transactionalId, why, command to end it: abort"
    )
    lines = [
        {**line, "abort": line["abort"] or line["terminate"]} for line in report.lines("transactions", "transaction")
    ]
    about = {"part": "transactions", "command": report.command("transactions")}
    yield _of_lines(lines, columns, name="transactions", title="Open and hanging transactions", **about)
    differing = _columns("topic, partition, log dir: logDir, difference: text")
    lines = report.lines("transactions", "difference")
    yield _of_lines(lines, differing, name="transaction-differences", title="Replicas with other transactions", **about)


def _groups(report: LogDirReport) -> Iterator[ReportTable]:
    about = {"part": "groups", "command": report.command("groups")}
    offsets: dict[str, list[Line]] = defaultdict(list)
    for line in report.lines("groups", "offset"):
        offsets[line["groupId"]].append(line)
    rows = []
    for line in report.lines("groups", "group"):
        own = offsets[line["groupId"]]
        lags, times = ([one[name] for one in own if one[name] is not None] for name in ("lag", "commitTimestampMs"))
        rows.append(
            [
                plain(line["groupId"]),
                plain(line["type"]),
                plain(line["state"]),
                number(len(line["members"])),
                number(len(own)),
                number(sum(lags) if lags or not own else None),
                moment(max(times, default=None)),
            ]
        )
    columns = ("group", "type", "state", "members", "offsets", "lag", "newest commit")
    rows.sort(key=lambda row: -int(str(row[5].value or 0)))
    yield _of_rows(rows, columns, name="groups", title="Groups", **about)
    of_offsets = _columns(
        "group: groupId, topic, partition, offset, log end: logEndOffset, lag, committed: commitTimestampMs, "
        "expires: expireTimestampMs, problem"
    )
    late = [line for lines in offsets.values() for line in lines if line["lag"] or line["problem"]]
    late.sort(key=lambda line: -(line["lag"] or 0))
    yield _of_lines(late, of_offsets, name="lag", title="Offsets with lag", **about)


def _replicas(report: LogDirReport) -> Iterator[ReportTable]:
    columns = _columns(
        "topic, partition, left, right, verdict, end left: endLeft, end right: endRight, truncate to: "
        "truncateTo, loses, because"
    )
    pairs = report.lines("diff", "pair")
    if pairs:
        others = [line for line in pairs if not line["same"]]
        title = f"Replicas that differ: {len(others):,} of {len(pairs):,} pairs"
        about = {"part": "replicas", "name": "replicas", "title": title}
        yield _of_lines(others, columns, command=report.command("diff"), **about)


def _events(report: LogDirReport) -> Iterator[ReportTable]:
    columns = _columns("time: timestampMs, offset, what, name, details")
    lines = report.lines("metadata", "event")
    if lines:
        if report.around is None:
            title = "The newest events"
        elif len(lines) < EVENTS:
            title = f"Events within an hour of {time(report.around)}"
        else:
            title = f"The {EVENTS} events nearest to {time(report.around)}"
        about = {"part": "metadata", "name": "events", "title": title}
        yield _of_lines(reversed(lines), columns, command=report.command("metadata"), **about)


def _timeline(report: LogDirReport) -> Iterator[ReportTable]:
    columns = _columns("time: atMs, what, name, details: text, log dir: logDir")
    lines = report.lines("timeline", "happened")
    about = {"part": "timeline", "name": "timeline", "title": "What happened, the newest first"}
    yield _of_lines(reversed(lines), columns, command=report.command("timeline"), **about)


_TABLES: Final[tuple[Callable[[LogDirReport], Iterator[ReportTable]], ...]] = (
    _findings,
    _damage,
    _timeline,
    _disk,
    _partitions,
    _batches,
    _retention,
    _transactions,
    _groups,
    _replicas,
    _events,
)
