"""The table of ``kdump coordinator``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdump.answers.coordinator import TOPICS, CoordinatorPartition
from kdump.printers.answer_lines import AnswerTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kdump.answers.collector import AnswerLine


def tables(lines: Iterable[AnswerLine]) -> Iterator[AnswerTable]:
    """Yield the table, in the order of the question."""
    rows = [(one.id, f"{TOPICS[one.type]}-{one.partition}") for one in lines if isinstance(one, CoordinatorPartition)]
    yield AnswerTable("", ("id", "coordinated by the leader of"), rows)
