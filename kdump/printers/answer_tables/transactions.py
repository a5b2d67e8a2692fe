"""The tables of ``kdump transactions``: transactions (hanging first), differing replicas, transactional ids in use."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from kdump.answers.transactional_ids import TransactionalId
from kdump.answers.transactions import NEVER, PartitionTransaction, ReplicaDifference
from kdump.errors import many
from kdump.primitives.timestamps import for_people, span
from kdump.printers.answer_lines import AnswerTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kdump.answers.collector import AnswerLine

ORDER: Final = ("hanging", "open", "aborted", "committed")
COLUMNS: Final = ("partition", "from offset", "producer", "epoch", "transactional id", "state")
NAMED: Final = 3
"""Maximum number of partitions in one sentence."""
CLOCKS: Final = {
    "coordinator": ("its start", "its coordinator's clock"),
    "records": ("its last batch", "record timestamps"),
}
"""Clock -> the event at which the age of a transaction starts, and the name of the clock in sentences."""
NUMBERS: Final = frozenset({"from offset", "producer", "epoch", "timeout"})


def tables(lines: Sequence[AnswerLine]) -> Iterator[AnswerTable]:
    found = [line for line in lines if isinstance(line, PartitionTransaction)]
    found.sort(key=lambda one: (ORDER.index(one.state), -one.held_back))
    counts = Counter(one.state for one in found)
    held_offsets = sum(one.held_back for one in found)
    shown = ", ".join(f"{counts[state]} {state}" for state in ORDER if counts[state] or state in ORDER[:2])
    title = f"Transactions: {shown}; {many(held_offsets, 'offset')} held back from read_committed consumers"
    yield AnswerTable(
        title, COLUMNS, [_row(one) for one in found], NUMBERS, list(_commands(found)), ("epoch", "producer")
    )
    differences = [
        (f"{one.topic}-{one.partition}", one.log_dir, one.text) for one in lines if isinstance(one, ReplicaDifference)
    ]
    if differences:
        yield AnswerTable(
            f"{many(len(differences), 'difference')} between replicas", ("partition", "log dir", "what"), differences
        )
    ids = [line for line in lines if isinstance(line, TransactionalId)]
    states = ", ".join(f"{count} {state}" for state, count in sorted(Counter(one.state for one in ids).items()))
    busy = [one for one in ids if one.partitions]
    if ids:
        title = f"{many(len(ids), 'transactional id')}: {states}"
        yield AnswerTable.of(title, map(_id_row, busy), NUMBERS, spare=("epoch", "timeout", "started"))


def _row(one: PartitionTransaction) -> tuple[object, ...]:
    name = one.transactional_id or one.last_transactional_id
    return f"{one.topic}-{one.partition}", one.start_offset, one.producer_id, one.producer_epoch, name, sentence(one)


def sentence(one: PartitionTransaction) -> str:
    what, clock = CLOCKS[one.clock]
    if one.end_offset is not None:
        return f"{one.state} at offset {one.end_offset}, {what} is {_age(one)} by {clock}"
    words = [f"{one.state} for {span(one.age_ms)}" if one.age_ms >= 0 else f"{one.state}, {what} is {_age(one)}"]
    words[0] += f" by {clock}"
    if one.held_back:
        words.append(f"holds back {many(one.held_back, 'offset')} of {one.topic}-{one.partition}")
    words += [one.why] if one.why else []
    return "; ".join(words)


def _age(one: PartitionTransaction) -> str:
    return f"{span(one.age_ms)} old" if one.age_ms >= 0 else f"{span(-one.age_ms)} in the future"


def _commands(found: Iterable[PartitionTransaction]) -> Iterator[tuple[str, str]]:
    of_ids: dict[str, list[PartitionTransaction]] = {}
    for one in found:
        if one.abort:
            where = f"{one.topic}-{one.partition} from offset {one.start_offset}"
            yield (
                f"aborts the hanging transaction in {where}; run it only if the leader's describe-producers shows "
                "this transaction:",
                one.abort,
            )
        if one.terminate:
            of_ids.setdefault(one.terminate, []).append(one)
    for line, several in of_ids.items():
        names = [f"{one.topic}-{one.partition}" for one in several[:NAMED]]
        more = [f"{len(several) - NAMED} more"] if len(several) > NAMED else []
        only = "; run it only if the external coordinator did not commit" if several[0].two_phase else ""
        where = ", ".join(names + more)
        yield (
            f"aborts the transaction of {several[0].transactional_id!r} in all its partitions (here: {where}){only}:",
            line,
        )


def _id_row(one: TransactionalId) -> dict[str, object]:
    return {
        "transactional id": one.transactional_id,
        "state": one.state,
        "producer": one.producer_id,
        "epoch": one.producer_epoch,
        "started": for_people(one.start_time_ms),
        "timeout": "never" if one.timeout_ms == NEVER else span(one.timeout_ms),
        "partitions": ", ".join(one.partitions),
    }
