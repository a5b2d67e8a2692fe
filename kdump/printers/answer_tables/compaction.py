"""The tables of ``kdump compaction``: partitions, counts of records to remove, held back ranges, records, keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.answers.compaction.compacted_logs import CleanedRecord, KeyUsage, PartitionCompaction
from kdump.errors import many
from kdump.printers.answer_lines import AnswerTable
from kdump.printers.quantities import size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kdump.answers.collector import AnswerLine
    from kdump.answers.compaction.compacted_logs import HeldBack

_DUE_RIGHT: Final = ("ratio", "clean", "dirty", "from", "to")
_HELD: Final = ("partition", "from", "bytes", "held back by")


def tables(lines: Sequence[AnswerLine]) -> Iterator[AnswerTable]:
    partitions = [line for line in lines if isinstance(line, PartitionCompaction)]
    due = sum(line.due for line in partitions)
    freed = size(sum(line.superseded_bytes for line in partitions if line.due))
    of = f"{due} of {many(len(partitions), 'compacted partition')} {'is' if due == 1 else 'are'} due"
    title = f"{of}; superseded records in {'it' if due == 1 else 'them'}: {freed}"
    yield AnswerTable.of(title, map(_due, partitions), _DUE_RIGHT, spare=("from", "to", "clean"))
    if partitions:
        title = "Records that a cleaning would remove now: superseded, expired tombstones, keyless, aborted, markers"
        table = AnswerTable.of(title, map(_goes, partitions))
        yield table._replace(right=frozenset(table.columns[1:]))
    if held := [_held(line, one) for line in partitions for one in line.held_back]:
        total = size(sum(line.uncleanable_bytes for line in partitions))
        yield AnswerTable(f"The cleaner cannot reach {total}", _HELD, held, frozenset(_HELD[1:3]))
    if removed := [line for line in lines if isinstance(line, CleanedRecord)]:
        rows = [(f"{line.topic}-{line.partition}", line.offset, line.why) for line in removed]
        yield AnswerTable("Removed by the next cleaning", ("partition", "offset", "why"), rows, frozenset({"offset"}))
    if keys := [line for line in lines if isinstance(line, KeyUsage)]:
        rows_of_keys = [(f"{line.topic}-{line.partition}", line.records, size(line.bytes), line.key) for line in keys]
        columns = ("partition", "records", "bytes", "key")
        yield AnswerTable("Largest keys", columns, rows_of_keys, frozenset({"records", "bytes"}))


def _held(line: PartitionCompaction, one: HeldBack) -> tuple[object, ...]:
    return f"{line.topic}-{line.partition}", one.from_offset, size(one.bytes), one.why


def _due(line: PartitionCompaction) -> dict[str, object]:
    return {
        "partition": f"{line.topic}-{line.partition}",
        "due": "yes" if line.due else "no",
        "ratio": f"{line.dirty_ratio:.3f}",
        "clean": size(line.clean_bytes),
        "dirty": size(line.dirty_bytes),
        "from": line.first_dirty_offset,
        "to": line.first_uncleanable_offset,
        "why": line.why,
    }


def _goes(line: PartitionCompaction) -> dict[str, object]:
    return {
        "partition": f"{line.topic}-{line.partition}",
        "records": line.records,
        "keys": line.keys,
        "superseded": line.superseded,
        "bytes": size(line.superseded_bytes),
        "tombstones": line.tombstones,
        "expired": line.removable_tombstones,
        "keyless": line.keyless,
        "aborted": line.aborted,
        "markers": line.markers,
    }
