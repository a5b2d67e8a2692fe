"""The tables of ``kdump connect``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from kdump.answers.connect import ConnectorLine, ConnectTaskLine, SourceOffsetLine
from kdump.primitives.timestamps import iso_or_ms
from kdump.printers.answer_lines import AnswerTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kdump.answers.collector import AnswerLine


def tables(lines: Iterable[AnswerLine]) -> Iterator[AnswerTable]:
    connectors: list[tuple[Any, ...]] = []
    tasks: list[tuple[Any, ...]] = []
    offsets: list[tuple[Any, ...]] = []
    for line in lines:
        if isinstance(line, ConnectorLine):
            shown = line.config.get("connector.class") or ""
            state = f"{line.state or 'no state'}{', inconsistent' if line.inconsistent else ''}"
            connectors.append(
                (line.connector, line.type, state, line.target_state, line.worker_id, line.tasks, shown.split(".")[-1])
            )
        elif isinstance(line, ConnectTaskLine):
            reason = (line.trace or "").split("\n")[0]
            tasks.append((line.connector, line.task, line.state or "no state", line.worker_id, reason))
        elif isinstance(line, SourceOffsetLine):
            when = iso_or_ms(line.timestamp_ms)
            offsets.append((line.connector, _shown(line.partition), _shown(line.offset), when))
    if connectors:
        heads = ("connector", "type", "state", "target state", "worker", "tasks", "class")
        yield AnswerTable("", heads, connectors, right=frozenset({"tasks"}), spare=("class", "worker"))
    if tasks:
        heads_of_tasks = ("connector", "task", "state", "worker", "why")
        yield AnswerTable("Tasks", heads_of_tasks, tasks, right=frozenset({"task"}), spare=("worker",))
    if offsets:
        yield AnswerTable(
            "Source offsets", ("connector", "partition", "offset", "written"), offsets, spare=("written",)
        )


def _shown(found: dict[str, Any]) -> str:
    return ", ".join(
        f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in found.items()
    )
