"""The tables of ``kdump explain``: a sentence for each offset or range, and the evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.answers.explain.explanation import Explanation
from kdump.printers.answer_lines import AnswerTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.answers.collector import AnswerLine

_GIVEN: Final = {True: "get", False: "do not get", None: "may get"}


def tables(lines: list[AnswerLine]) -> Iterator[AnswerTable]:
    for line in lines:
        if isinstance(line, Explanation):
            evidence = [(fact.path, fact.position, fact.says) for fact in line.evidence]
            yield AnswerTable(_sentence(line), ("file", "byte", "evidence"), evidence, frozenset({"byte"}))


def _sentence(line: Explanation) -> str:
    one = line.offset == line.last_offset
    offsets, records = (
        (str(line.offset), "the record") if one else (f"{line.offset}..{line.last_offset}", "the records")
    )
    given = f"consumers {_GIVEN[line.read_committed]} {records}"
    if line.read_uncommitted != line.read_committed:
        given = f"read_uncommitted consumers {_GIVEN[line.read_uncommitted]} {records}, "
        given += f"read_committed consumers {_GIVEN[line.read_committed]} {'it' if one else 'them'}"
    because = f": {line.because}" if one else f". Offset {line.offset}: {line.because}"
    also = f" Other possible reasons: {', '.join(line.alternatives)}." if line.alternatives else ""
    return f"{line.topic}-{line.partition}@{offsets}: {line.reason}; {given}{because}.{also}"
