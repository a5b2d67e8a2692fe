"""The tables of ``kdump schemas``: versions, subjects, and the history of the topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdump.answers.schemas import SchemaLine
from kdump.primitives.timestamps import iso_or_ms
from kdump.printers.answer_lines import AnswerTable
from kdump.schemas.store import HistoryLine, SubjectLine

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kdump.answers.collector import AnswerLine


def tables(lines: Sequence[AnswerLine]) -> Iterator[AnswerTable]:
    if versions := [line for line in lines if isinstance(line, SchemaLine)]:
        yield _versions(versions)
    if subjects := [line for line in lines if isinstance(line, SubjectLine)]:
        yield _subjects(subjects)
    if history := [line for line in lines if isinstance(line, HistoryLine)]:
        yield _history(history)


def _versions(lines: list[SchemaLine]) -> AnswerTable:
    rows = [
        {
            "subject": one.subject,
            "version": one.version,
            "id": one.id,
            "type": one.schema_type,
            "state": one.state,
            "references": len(one.references),
            "written": iso_or_ms(one.timestamp_ms),
        }
        for one in lines
    ]
    return AnswerTable.of("", rows, ("version", "id", "references"), spare=("written", "references"))


def _subjects(lines: list[SubjectLine]) -> AnswerTable:
    rows = [
        {
            "subject": one.subject,
            "state": one.state,
            "versions": ", ".join(map(str, one.versions)),
            "compatibility": (one.config or {}).get("compatibilityLevel"),
            "mode": one.mode,
        }
        for one in lines
    ]
    return AnswerTable.of("", rows, spare=("mode",))


def _history(lines: list[HistoryLine]) -> AnswerTable:
    rows = [
        {
            "offset": one.offset,
            "written": iso_or_ms(one.timestamp_ms),
            "record": one.keytype or f"not a registry record: {one.why}",
            "subject": one.subject,
            "version": one.version,
            "id": one.id,
            "deletes": "removed" if one.tombstone else "soft-deleted" if one.schema_deleted else "",
        }
        for one in lines
    ]
    return AnswerTable.of("", rows, ("offset", "version", "id"), spare=("written",))
