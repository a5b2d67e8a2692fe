"""The tables of ``kdump stats``: partitions (largest first), records, producers, hours, and sizes in other codecs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.answers.recompression import WhatIfAnswer
from kdump.answers.statistics import HourStatistics, PartitionStatistics, ProducerStatistics
from kdump.errors import many
from kdump.printers.answer_lines import AnswerTable
from kdump.printers.quantities import optional_size, share, size, time

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kdump.answers.collector import AnswerLine
    from kdump.answers.statistics import Spread

_SPARE: Final = (
    "control",
    "transactional",
    "first",
    "records per batch",
    "last",
    "bytes per batch",
    "batches",
    "codecs",
)
_RECORDS_SPARE: Final = ("largest", "per key", "per value", "tombstones", "ratio", "keys", "values")
_LEFT: Final = {"partition", "codecs", "topic", "codec", "log dir"}


def tables(lines: Sequence[AnswerLine]) -> Iterator[AnswerTable]:
    partitions = [line for line in lines if isinstance(line, PartitionStatistics)]
    total = size(sum(line.log_bytes for line in partitions))
    names = {(line.topic, line.partition) for line in partitions}
    folders = f" in {many(len(partitions), 'folder')}" if len(names) < len(partitions) else ""
    title = f"{many(len(names), 'partition')}{folders}, {total} of log; per batch: mean, median, 99th percentile"
    rows = (_partition(line) | ({"log dir": line.log_dir} if folders else {}) for line in partitions)
    yield _table(title, rows, _SPARE)
    if any(line.uncompressed_bytes is not None for line in partitions):
        title = "Records; per key and value: mean, median, 99th percentile"
        yield _table(title, map(_records, partitions), _RECORDS_SPARE)
    if producers := [line for line in lines if isinstance(line, ProducerStatistics)]:
        yield _sums("Producers", "producer id", [(line.topic, line.producer_id, line) for line in producers])
    if hours := [line for line in lines if isinstance(line, HourStatistics)]:
        yield _sums("Hours", "hour", [(line.topic, time(line.hour_ms), line) for line in hours])
    if answers := [line for line in lines if isinstance(line, WhatIfAnswer)]:
        yield _table("Size if compressed with other codecs", map(_what_if, answers))


def _table(title: str, rows: Iterable[dict[str, object]], spare: Sequence[str] = ()) -> AnswerTable:
    table = AnswerTable.of(title, rows, spare=spare)
    return table._replace(right=frozenset(table.columns) - _LEFT)


def _partition(line: PartitionStatistics) -> dict[str, object]:
    codecs = ", ".join(f"{name} {share(one.bytes, line.log_bytes)}" for name, one in line.codecs.items())
    return {
        "partition": f"{line.topic}-{line.partition}",
        "log": size(line.log_bytes),
        "batches": line.batches,
        "records": line.records,
        "records per batch": _spread(line.records_per_batch),
        "bytes per batch": _spread(line.bytes_per_batch),
        "codecs": codecs,
        "first": time(line.first_timestamp_ms),
        "last": time(line.last_timestamp_ms),
        "transactional": line.transactional_batches,
        "control": line.control_batches,
    }


def _records(line: PartitionStatistics) -> dict[str, object]:
    largest = line.largest_values[0] if line.largest_values else None
    return {
        "partition": f"{line.topic}-{line.partition}",
        "uncompressed": optional_size(line.uncompressed_bytes),
        "ratio": line.ratio,
        "tombstones": line.tombstones,
        "keys": optional_size(line.key_bytes),
        "values": optional_size(line.value_bytes),
        "per key": _spread(line.key_sizes),
        "per value": _spread(line.value_sizes),
        "largest": None if largest is None else f"{size(largest.bytes)} at {largest.offset}",
    }


def _sums(
    title: str, name: str, found: Sequence[tuple[str, object, ProducerStatistics | HourStatistics]]
) -> AnswerTable:
    rows = (
        {"topic": topic, name: what, "batches": line.batches, "records": line.records, "bytes": size(line.bytes)}
        for topic, what, line in found
    )
    return _table(title, rows)


def _what_if(line: WhatIfAnswer) -> dict[str, object]:
    return {
        "topic": line.topic,
        "codec": line.codec,
        "size now": size(line.current_bytes),
        "new size": size(line.bytes),
        "new / now": share(line.bytes, line.current_bytes),
        "error": f"± {size(line.error_bytes)}",
        "batches compressed": line.sampled,
    }


def _spread(found: Spread | None) -> str | None:
    return None if found is None else f"{found.mean:.1f} {found.p50} {found.p99}"
