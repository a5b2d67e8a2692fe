"""The tables of ``kdump schemas``: versions, subjects, and the history of the topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdump.answers.schemas import SchemaLine
from kdump.primitives.timestamps import iso_or_ms
from kdump.printers.answer_lines import AnswerTable
from kdump.schemas.store import HistoryLine, SubjectLine

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kdump.answers.collector import AnswerLine


def tables(lines: Iterable[AnswerLine]) -> Iterator[AnswerTable]:
    known = list(lines)
    if versions := [line for line in known if isinstance(line, SchemaLine)]:
        yield _versions(versions)
    if subjects := [line for line in known if isinstance(line, SubjectLine)]:
        yield _subjects(subjects)
    if history := [line for line in known if isinstance(line, HistoryLine)]:
        yield _history(history)


def _versions(lines: list[SchemaLine]) -> AnswerTable:
    rows = [
        (one.subject, one.version, one.id, one.schema_type, one.state, len(one.references), iso_or_ms(one.timestamp_ms))
        for one in lines
    ]
    return AnswerTable(
        "",
        ("subject", "version", "id", "type", "state", "references", "written"),
        rows,
        right=frozenset({"version", "id", "references"}),
        spare=("written", "references"),
    )


def _subjects(lines: list[SubjectLine]) -> AnswerTable:
    rows = [
        (
            one.subject,
            one.state,
            ", ".join(map(str, one.versions)),
            (one.config or {}).get("compatibilityLevel"),
            one.mode,
        )
        for one in lines
    ]
    return AnswerTable("", ("subject", "state", "versions", "compatibility", "mode"), rows, spare=("mode",))


def _history(lines: list[HistoryLine]) -> AnswerTable:
    rows = [
        (
            one.offset,
            iso_or_ms(one.timestamp_ms),
            one.keytype or f"no record of a registry: {one.why}",
            one.subject,
            one.version,
            one.id,
            "removed" if one.tombstone else "soft-deleted" if one.schema_deleted else "",
        )
        for one in lines
    ]
    return AnswerTable(
        "",
        ("offset", "written", "record", "subject", "version", "id", "deletes"),
        rows,
        right=frozenset({"offset", "version", "id"}),
        spare=("written",),
    )
