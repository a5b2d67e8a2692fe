"""The tables of ``kdump connect``: connectors, tasks, and offsets of source connectors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from kdump.answers.connect import ConnectorLine, ConnectTaskLine, SourceOffsetLine
from kdump.primitives.timestamps import iso_or_ms
from kdump.printers.answer_lines import AnswerTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kdump.answers.collector import AnswerLine


def tables(lines: Sequence[AnswerLine]) -> Iterator[AnswerTable]:
    if connectors := [_connector(line) for line in lines if isinstance(line, ConnectorLine)]:
        heads = ("connector", "type", "state", "target state", "worker", "tasks", "class")
        yield AnswerTable("", heads, connectors, right=frozenset({"tasks"}), spare=("class", "worker"))
    if tasks := [
        (line.connector, line.task, line.state or "no state", line.worker_id, (line.trace or "").split("\n")[0])
        for line in lines
        if isinstance(line, ConnectTaskLine)
    ]:
        heads_of_tasks = ("connector", "task", "state", "worker", "why")
        yield AnswerTable("Tasks", heads_of_tasks, tasks, right=frozenset({"task"}), spare=("worker",))
    if offsets := [
        (line.connector, _shown(line.partition), _shown(line.offset), iso_or_ms(line.timestamp_ms))
        for line in lines
        if isinstance(line, SourceOffsetLine)
    ]:
        yield AnswerTable(
            "Source offsets", ("connector", "partition", "offset", "written"), offsets, spare=("written",)
        )


def _connector(line: ConnectorLine) -> tuple[object, ...]:
    shown = (line.config.get("connector.class") or "").split(".")[-1]
    state = f"{line.state or 'no state'}{', inconsistent' if line.inconsistent else ''}"
    return line.connector, line.type, state, line.target_state, line.worker_id, line.tasks, shown


def _shown(found: dict[str, Any]) -> str:
    return ", ".join(
        f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in found.items()
    )
