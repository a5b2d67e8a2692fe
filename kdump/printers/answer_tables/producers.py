"""The tables of ``kdump producers``: breaks in sequences, then producers (those with open transactions first)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.answers.producers import ActiveProducer, SequenceBreak
from kdump.errors import many
from kdump.primitives.timestamps import for_people
from kdump.printers.answer_lines import AnswerTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kdump.answers.collector import AnswerLine

_RIGHT: Final = (
    *("offset", "producer", "epoch", "expected", "found"),
    *("last sequence", "coordinator epoch", "open from"),
)


def tables(lines: Iterable[AnswerLine]) -> Iterator[AnswerTable]:
    known = list(lines)
    breaks = [
        {
            "partition": f"{one.topic}-{one.partition}",
            "offset": one.offset,
            "producer": one.producer_id,
            "epoch": one.producer_epoch,
            "what": one.what,
            "expected": one.expected,
            "found": one.found,
        }
        for one in known
        if isinstance(one, SequenceBreak)
    ]
    if breaks:
        yield AnswerTable.of(f"{many(len(breaks), 'break')} in sequences", breaks, _RIGHT)
    producers = [one for one in known if isinstance(one, ActiveProducer)]
    producers.sort(key=lambda one: one.current_transaction_start_offset is None)
    count = sum(one.current_transaction_start_offset is not None for one in producers)
    title = f"{many(len(producers), 'producer')}, {count or 'none'} with an open transaction"
    title += " (see kdump transactions)" if count else ""
    yield AnswerTable.of(title, map(_row, producers), _RIGHT)


def _row(one: ActiveProducer) -> dict[str, object]:
    return {
        "partition": f"{one.topic}-{one.partition}",
        "producer": one.producer_id,
        "epoch": one.producer_epoch,
        "last sequence": one.last_sequence,
        "last timestamp": for_people(one.last_timestamp_ms),
        "coordinator epoch": one.coordinator_epoch,
        "open from": one.current_transaction_start_offset,
    }
