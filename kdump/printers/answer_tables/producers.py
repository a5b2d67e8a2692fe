"""The tables of ``kdump producers``: breaks in sequences, then producers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.answers.producers import ActiveProducer, SequenceBreak
from kdump.primitives.timestamps import for_people
from kdump.printers.answer_lines import AnswerTable
from kdump.printers.quantities import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kdump.answers.collector import AnswerLine

BREAKS: Final = ("partition", "offset", "producer", "epoch", "what", "expected", "found")
COLUMNS: Final = (
    "partition",
    "producer",
    "epoch",
    "last sequence",
    "last timestamp",
    "coordinator epoch",
    "open from",
)
NUMBERS: Final = frozenset({*BREAKS, *COLUMNS}) - {"partition", "what", "last timestamp"}


def tables(lines: Iterable[AnswerLine]) -> Iterator[AnswerTable]:
    """Yield breaks in sequences, then producers; those with an open transaction come first."""
    known = list(lines)
    breaks = [
        (
            f"{one.topic}-{one.partition}",
            one.offset,
            one.producer_id,
            one.producer_epoch,
            one.what,
            one.expected,
            one.found,
        )
        for one in known
        if isinstance(one, SequenceBreak)
    ]
    if breaks:
        yield AnswerTable(f"{counted(len(breaks), 'break')} in sequences", BREAKS, breaks, NUMBERS)
    producers = [one for one in known if isinstance(one, ActiveProducer)]
    producers.sort(key=lambda one: one.current_transaction_start_offset is None)
    count = sum(one.current_transaction_start_offset is not None for one in producers)
    title = f"{counted(len(producers), 'producer')}, {count or 'none'} with an open transaction"
    title += " (see kdump transactions)" if count else ""
    yield AnswerTable(title, COLUMNS, [_row(one) for one in producers], NUMBERS)


def _row(one: ActiveProducer) -> tuple[object, ...]:
    return (
        f"{one.topic}-{one.partition}",
        one.producer_id,
        one.producer_epoch,
        one.last_sequence,
        for_people(one.last_timestamp_ms),
        one.coordinator_epoch,
        one.current_transaction_start_offset,
    )
