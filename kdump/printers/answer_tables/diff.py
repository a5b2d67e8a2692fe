"""The tables of ``kdump diff``: pairs of replicas that differ, and the records that differ."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from kdump.answers.replica_diff import PairDifference, RecordDifference
from kdump.errors import many
from kdump.primitives.timestamps import iso_or_ms
from kdump.printers.answer_lines import AnswerTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.answers.collector import AnswerLine
    from kdump.answers.replica_diff import RecordFacts

_NUMBERS: Final = frozenset({"offset", "from", "only left", "only right", "differ", "end left", "end right"})
_LONGEST: Final = 40
"""Number of characters after which a key, value or list of headers in a table ends with three points."""


def tables(lines: list[AnswerLine]) -> Iterator[AnswerTable]:
    pairs = [line for line in lines if isinstance(line, PairDifference)]
    counts = Counter(pair.verdict for pair in pairs)
    verdicts = ", ".join(f"{n} {verdict}" for verdict, n in sorted(counts.items()))
    title = f"{many(len(pairs), 'pair')} of replicas: {verdicts}" if pairs else "no replicas were compared"
    sides = {(pair.left, pair.right) for pair in pairs}
    several = len(sides) > 1
    if len(sides) == 1:
        title += "; left: {}, right: {}".format(*sides.pop())
    rows = (
        {
            "partition": f"{pair.topic}-{pair.partition}",
            **({"left": pair.left, "right": pair.right} if several else {}),
            "verdict": pair.verdict,
            "differ": pair.differ,
            "only left": pair.only_left,
            "only right": pair.only_right,
            "end left": pair.end_left,
            "end right": pair.end_right,
            "why": pair.because,
        }
        for pair in pairs
        if not pair.same
    )
    yield AnswerTable.of(title, rows, _NUMBERS)
    records = [
        (f"{line.topic}-{line.partition}", line.offset, _shown(line.left, line.right), _shown(line.right, line.left))
        for line in lines
        if isinstance(line, RecordDifference)
    ]
    if records:
        yield AnswerTable("records that differ", ("partition", "offset", "left", "right"), records, _NUMBERS)


def _shown(facts: RecordFacts | None, other: RecordFacts | None) -> str | None:
    """Return the text of a record; with headers, producer id and control flag only if ``other`` has different ones."""
    if facts is None:
        return None
    text = f"epoch {facts.leader_epoch}, {iso_or_ms(facts.timestamp_ms)}, key {_short(facts.key)}"
    text += f", value {_short(facts.value)}"
    if facts.headers != (() if other is None else other.headers):
        headers = ", ".join(f"{one.key}={one.value}" for one in facts.headers)
        text += f", headers {_short(headers) or 'none'}"
    if other is not None and facts.producer_id != other.producer_id:
        text += f", producer id {facts.producer_id}"
    if other is not None and facts.is_control != other.is_control:
        text += f", {'' if facts.is_control else 'no '}control record"
    return text


def _short(text: str | None) -> str | None:
    return text if text is None or len(text) <= _LONGEST else text[:_LONGEST] + "..."
