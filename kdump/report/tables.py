"""The tables of the page: each cell has a value of the document, and its text for people."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kdump.primitives.terminal import harmless_line
from kdump.printers.answer_tables.metadata import details_text
from kdump.printers.quantities import size, time
from kdump.report.document import EVENTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from kdump.report.document import Line, LogDirReport

MOST: Final = 5000
"""Maximum number of rows of a table; its command prints all."""
WORDS: Final = {"log": "DAMAGED", "derived": "WRONG", "remark": "note"}


class Cell(NamedTuple):
    """A value of the document, and its text. Numbers are right-aligned."""

    value: object
    text: str
    is_number: bool = False


@dataclass(frozen=True)
class ReportTable:
    """A table of the section ``part``. ``command`` prints its lines; ``left_out`` counts omitted rows."""

    part: str
    name: str
    title: str
    command: str
    columns: tuple[str, ...]
    rows: list[list[Cell]] = field(default_factory=list)
    left_out: int = 0


def tables(report: LogDirReport) -> list[ReportTable]:
    """Return the tables that have rows."""
    return [table for make in _TABLES for table in make(report) if table.rows]


def plain(value: object) -> Cell:
    """Return a cell of text with escaped control characters."""
    return Cell(value, "–" if value is None else harmless_line(str(value)))


def number(value: int | float | None) -> Cell:
    text = "–" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"
    return Cell(value, text, True)


def in_bytes(value: int | None) -> Cell:
    return Cell(value, "–" if value is None else size(value), True)


def moment(value: int | None) -> Cell:
    return Cell(value, time(value) or "–")


class _Column(NamedTuple):
    title: str
    name: str
    cell: Callable[[Any], Cell] = plain


def _of_lines(lines: Iterable[Line], columns: Sequence[_Column], **about: str) -> ReportTable:
    """Return a table with a row for each line and a column for each of ``columns``."""
    found = list(lines)
    rows = [[column.cell(line[column.name]) for column in columns] for line in found[:MOST]]
    titles = tuple(column.title for column in columns)
    return ReportTable(columns=titles, rows=rows, left_out=len(found) - len(rows), **about)


def _of_rows(rows: list[list[Cell]], columns: tuple[str, ...], **about: str) -> ReportTable:
    return ReportTable(columns=columns, rows=rows[:MOST], left_out=max(0, len(rows) - MOST), **about)


def _findings(report: LogDirReport) -> Iterator[ReportTable]:
    columns = (
        _Column("weight", "level", lambda level: Cell(level, WORDS[level])),
        _Column("file", "file"),
        _Column("check", "check"),
        _Column("byte", "position", number),
        _Column("what is wrong", "text"),
        _Column("what to do", "advice"),
    )
    order = list(WORDS)
    found = sorted(report.lines("check", "finding"), key=lambda line: order.index(line["level"]))
    about = {"command": report.command("check"), "part": "findings"}
    yield _of_lines(found, columns, name="findings", title="What is wrong", **about)
    remarks = report.lines("check", "remark")
    yield _of_lines(
        remarks, columns[1:5], name="remarks", title="Remarks: nothing is wrong, and worth knowing", **about
    )


def _damage(report: LogDirReport) -> Iterator[ReportTable]:
    command = f"{report.command('damage')} -o jsonl | jq 'select(.kind == \"damage\")'"
    columns = (
        _Column("file", "file"),
        _Column("byte", "position", number),
        _Column("size", "size", in_bytes),
        _Column("damage", "damage"),
        _Column("reason", "reason"),
        _Column("missing from", "missingFrom", number),
        _Column("missing until", "missingUntil", number),
    )
    lines = report.lines("damage", "damage")
    table = _of_lines(lines, columns, part="damage", name="damage", title="Damaged ranges", command=command)
    ranges = sum(line["ranges"] for line in report.lines("damage", "damagedFile"))
    yield replace(table, left_out=ranges - len(table.rows))


def _disk(report: LogDirReport) -> Iterator[ReportTable]:
    columns = (
        _Column("topic", "topic"),
        _Column("partitions", "partitions", number),
        _Column("replicas", "replicas", number),
        _Column("log", "logBytes", in_bytes),
        _Column("all files", "allBytes", in_bytes),
        _Column("on disk", "diskBytes", in_bytes),
    )
    lines = report.lines("du-topics", "topic")
    command = report.command("du-topics")
    yield _of_lines(lines, columns, part="disk", name="topics", title="Topics", command=command)
    yield _log_dirs(report)
    others = (_Column("path", "path"), _Column("what", "what"), _Column("bytes", "bytes", in_bytes))
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
    columns = (
        _Column("topic", "topic"),
        _Column("partition", "partition", number),
        _Column("state", "state"),
        _Column("log dir", "logDir"),
        _Column("segments", "segments", number),
        _Column("log", "logBytes", in_bytes),
        _Column("all files", "allBytes", in_bytes),
        _Column("earliest", "earliest", number),
        _Column("latest", "latest", number),
        _Column("oldest", "oldestMs", moment),
        _Column("newest", "newestMs", moment),
    )
    lines = report.lines("du", "partition")
    about = {"part": "partitions", "name": "partitions", "title": "Partitions"}
    yield _of_lines(lines, columns, command=report.command("du"), **about)


def _batches(report: LogDirReport) -> Iterator[ReportTable]:
    columns = ("topic", "batches", "records", "log", "records a batch", "bytes a batch", "transactional", "codecs")
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
    about = {"part": "topics", "name": "stats", "title": "What topics are made of"}
    yield _of_rows(rows, columns, command=report.command("stats"), **about)


def _retention(report: LogDirReport) -> Iterator[ReportTable]:
    about = {"part": "retention", "command": report.command("retention")}
    columns = (
        _Column("topic", "topic"),
        _Column("partition", "partition", number),
        _Column("base offset", "baseOffset", number),
        _Column("bytes", "bytes", in_bytes),
        _Column("reason", "reason"),
        _Column("due", "deletableAtMs", moment),
        _Column("blocked by", "blockedBy", number),
        _Column("blocks", "blocks", number),
        _Column("why", "why"),
    )
    segments = report.lines("retention", "segment")
    goes = [line for line in segments if line["deletable"] or line["blocks"] or line["blockedBy"] is not None]
    yield _of_lines(
        goes, columns, name="deletable", title="Segments that go, that block others, and that are blocked", **about
    )
    configs = (
        _Column("topic", "topic"),
        _Column("cleanup.policy", "cleanupPolicy"),
        _Column("retention.ms", "retentionMs", number),
        _Column("retention.bytes", "retentionBytes", number),
        _Column("from", "from", lambda found: plain(found["retention.ms"])),
    )
    yield _of_lines(report.lines("retention", "topic"), configs, name="configs", title="Retention of topics", **about)


def _transactions(report: LogDirReport) -> Iterator[ReportTable]:
    columns = (
        _Column("topic", "topic"),
        _Column("partition", "partition", number),
        _Column("state", "state"),
        _Column("producer id", "producerId", number),
        _Column("from offset", "startOffset", number),
        _Column("last write", "lastTimestampMs", moment),
        _Column("held back", "heldBack", number),
        _Column("transactional id", "transactionalId"),
        _Column("why", "why"),
        _Column("what ends it", "abort"),
    )
    lines = [
        {**line, "abort": line["abort"] or line["terminate"]} for line in report.lines("transactions", "transaction")
    ]
    about = {"part": "transactions", "command": report.command("transactions")}
    yield _of_lines(lines, columns, name="transactions", title="Open and hanging transactions", **about)
    differing = (
        _Column("topic", "topic"),
        _Column("partition", "partition", number),
        _Column("log dir", "logDir"),
        _Column("how", "text"),
    )
    lines = report.lines("transactions", "difference")
    yield _of_lines(lines, differing, name="transaction-differences", title="Replicas with other transactions", **about)


def _groups(report: LogDirReport) -> Iterator[ReportTable]:
    about = {"part": "groups", "command": report.command("groups")}
    offsets: dict[str, list[Line]] = defaultdict(list)
    for line in report.lines("groups", "offset"):
        offsets[line["groupId"]].append(line)
    rows = [
        [
            plain(line["groupId"]),
            plain(line["type"]),
            plain(line["state"]),
            number(len(line["members"])),
            number(len(offsets[line["groupId"]])),
            number(sum(one["lag"] or 0 for one in offsets[line["groupId"]])),
            moment(max((one["commitTimestampMs"] or 0 for one in offsets[line["groupId"]]), default=None)),
        ]
        for line in report.lines("groups", "group")
    ]
    columns = ("group", "type", "state", "members", "offsets", "lag", "newest commit")
    rows.sort(key=lambda row: -int(str(row[5].value)))
    yield _of_rows(rows, columns, name="groups", title="Groups", **about)
    of_offsets = (
        _Column("group", "groupId"),
        _Column("topic", "topic"),
        _Column("partition", "partition", number),
        _Column("offset", "offset", number),
        _Column("log end", "logEndOffset", number),
        _Column("lag", "lag", number),
        _Column("committed", "commitTimestampMs", moment),
        _Column("expires", "expireTimestampMs", moment),
        _Column("problem", "problem"),
    )
    late = [line for lines in offsets.values() for line in lines if line["lag"] or line["problem"]]
    late.sort(key=lambda line: -(line["lag"] or 0))
    yield _of_lines(late, of_offsets, name="lag", title="Offsets with lag", **about)


def _replicas(report: LogDirReport) -> Iterator[ReportTable]:
    columns = (
        _Column("topic", "topic"),
        _Column("partition", "partition", number),
        _Column("left", "left"),
        _Column("right", "right"),
        _Column("verdict", "verdict"),
        _Column("end left", "endLeft", number),
        _Column("end right", "endRight", number),
        _Column("truncate to", "truncateTo", number),
        _Column("loses", "loses", number),
        _Column("because", "because"),
    )
    pairs = report.lines("diff", "pair")
    if pairs:
        others = [line for line in pairs if not line["same"]]
        title = f"Replicas that are not the same: {len(others):,} of {len(pairs):,} pairs"
        about = {"part": "replicas", "name": "replicas", "title": title}
        yield _of_lines(others, columns, command=report.command("diff"), **about)


def _events(report: LogDirReport) -> Iterator[ReportTable]:
    columns = (
        _Column("time", "timestampMs", moment),
        _Column("offset", "offset", number),
        _Column("what", "what"),
        _Column("name", "name"),
        _Column("details", "details", lambda details: plain(details_text(details) or "")),
    )
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
    columns = (
        _Column("time", "atMs", moment),
        _Column("what", "what"),
        _Column("name", "name"),
        _Column("details", "text"),
        _Column("log dir", "logDir"),
    )
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
