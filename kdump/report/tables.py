"""The tables of the page. A row is a line of an answer, or a sum for a log dir, a topic or a group."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kdump.primitives.terminal import harmless_line
from kdump.printers.answer_tables.metadata import details_text
from kdump.printers.quantities import size, time
from kdump.report.document import EVENTS
from kdump.report.series import lag_by_group

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


def _of_lines(
    report: LogDirReport, answer: str, lines: Iterable[Line], columns: str, part: str, name: str, title: str
) -> ReportTable:
    """Return a table of lines of an answer. ``columns`` has titles and fields, such as ``topic, log: logBytes``."""
    fields = {head: field or head for head, _, field in (one.partition(": ") for one in columns.split(", "))}
    found = list(lines)
    rows = [[_CELLS.get(field, plain)(line[field]) for field in fields.values()] for line in found[:MOST]]
    return ReportTable(part, name, title, report.command(answer), tuple(fields), rows, len(found) - len(rows))


def _of_rows(
    report: LogDirReport, answer: str, rows: list[list[Cell]], columns: tuple[str, ...], part: str, title: str
) -> ReportTable:
    left_out = max(0, len(rows) - MOST)
    return ReportTable(part, answer, title, report.command(answer), columns, rows[:MOST], left_out)


def _findings(report: LogDirReport) -> Iterator[ReportTable]:
    columns = "weight: level, file, check, byte: position, what is wrong: text, what to do: advice"
    order = list(WORDS)
    found = sorted(report.lines("check", "finding"), key=lambda line: order.index(line["level"]))
    yield _of_lines(report, "check", found, columns, "findings", "findings", "What is wrong")
    columns = "file, check, byte: position, what is wrong: text"
    title = "Remarks: worth knowing, although nothing is wrong"
    yield _of_lines(report, "check", report.lines("check", "remark"), columns, "findings", "remarks", title)


def _damage(report: LogDirReport) -> Iterator[ReportTable]:
    columns = "file, byte: position, size, damage, reason, missing from: missingFrom, missing until: missingUntil"
    lines = report.lines("damage", "damage")
    table = _of_lines(report, "damage", lines, columns, "damage", "damage", "Damaged ranges")
    ranges = sum(line["ranges"] for line in report.lines("damage", "damagedFile"))
    command = f"{table.command} -o jsonl | jq 'select(.kind == \"damage\")'"
    yield replace(table, command=command, left_out=ranges - len(table.rows))


def _disk(report: LogDirReport) -> Iterator[ReportTable]:
    columns = "topic, partitions, replicas, log: logBytes, all files: allBytes, on disk: diskBytes"
    lines = report.lines("du-topics", "topic")
    yield _of_lines(report, "du-topics", lines, columns, "disk", "topics", "Topics")
    yield _log_dirs(report)
    lines = report.lines("du", "other")
    yield _of_lines(report, "du", lines, "path, what, bytes", "disk", "others", "Beside the partitions")


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
    columns = (
        "topic, partition, state, log dir: logDir, segments, log: logBytes, all files: allBytes, earliest, "
        "latest, oldest: oldestMs, newest: newestMs"
    )
    lines = report.lines("du", "partition")
    yield _of_lines(report, "du", lines, columns, "partitions", "partitions", "Partitions")


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
    yield _of_rows(report, "stats", rows, columns, "topics", "Batches and records of topics")


def _retention(report: LogDirReport) -> Iterator[ReportTable]:
    columns = (
        "topic, partition, base offset: baseOffset, bytes, reason, due: deletableAtMs, blocked by: blockedBy, "
        "blocks, why"
    )
    segments = report.lines("retention", "segment")
    goes = [line for line in segments if line["deletable"] or line["blocks"] or line["blockedBy"] is not None]
    title = "Segments that are due, and segments that block them"
    yield _of_lines(report, "retention", goes, columns, "retention", "deletable", title)
    columns = "topic, cleanup.policy: cleanupPolicy, retention.ms: retentionMs, retention.bytes: retentionBytes, from"
    lines = report.lines("retention", "topic")
    yield _of_lines(report, "retention", lines, columns, "retention", "configs", "Retention of topics")


def _transactions(report: LogDirReport) -> Iterator[ReportTable]:
    columns = (
        "topic, partition, state, producer id: producerId, from offset: startOffset, last write: "
        "lastTimestampMs, held back: heldBack, transactional id: transactionalId, why, command to end it: abort"
    )
    lines = [
        {**line, "abort": line["abort"] or line["terminate"]} for line in report.lines("transactions", "transaction")
    ]
    title = "Open and hanging transactions"
    yield _of_lines(report, "transactions", lines, columns, "transactions", "transactions", title)
    columns = "topic, partition, log dir: logDir, difference: text"
    lines = report.lines("transactions", "difference")
    title = "Replicas with other transactions"
    yield _of_lines(report, "transactions", lines, columns, "transactions", "transaction-differences", title)


def _groups(report: LogDirReport) -> Iterator[ReportTable]:
    offsets: dict[str, list[Line]] = defaultdict(list)
    lag = lag_by_group(report)
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
                number(lag[line["groupId"]] if lags or not own else None),
                moment(max(times, default=None)),
            ]
        )
    heads = ("group", "type", "state", "members", "offsets", "lag", "newest commit")
    rows.sort(key=lambda row: -int(str(row[5].value or 0)))
    yield _of_rows(report, "groups", rows, heads, "groups", "Groups")
    columns = (
        "group: groupId, topic, partition, offset, log end: logEndOffset, lag, committed: commitTimestampMs, "
        "expires: expireTimestampMs, problem"
    )
    late = [line for lines in offsets.values() for line in lines if line["lag"] or line["problem"]]
    late.sort(key=lambda line: -(line["lag"] or 0))
    yield _of_lines(report, "groups", late, columns, "groups", "lag", "Offsets with lag")


def _replicas(report: LogDirReport) -> Iterator[ReportTable]:
    columns = (
        "topic, partition, left, right, verdict, end left: endLeft, end right: endRight, truncate to: "
        "truncateTo, loses, because"
    )
    pairs = report.lines("diff", "pair")
    if pairs:
        others = [line for line in pairs if not line["same"]]
        title = f"Replicas that differ: {len(others):,} of {len(pairs):,} pairs"
        yield _of_lines(report, "diff", others, columns, "replicas", "replicas", title)


def _events(report: LogDirReport) -> Iterator[ReportTable]:
    columns = "time: timestampMs, offset, what, name, details"
    lines = report.lines("metadata", "event")
    if lines:
        if report.around is None:
            title = "The newest events"
        elif len(lines) < EVENTS:
            title = f"Events within an hour of {time(report.around)}"
        else:
            title = f"The {EVENTS} events nearest to {time(report.around)}"
        yield _of_lines(report, "metadata", reversed(lines), columns, "metadata", "events", title)


def _timeline(report: LogDirReport) -> Iterator[ReportTable]:
    columns = "time: atMs, what, name, details: text, log dir: logDir"
    lines = reversed(report.lines("timeline", "happened"))
    yield _of_lines(report, "timeline", lines, columns, "timeline", "timeline", "What happened, the newest first")


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
