"""The tables of ``kdump stats``: the largest partitions first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.answers.recompression import WhatIfAnswer
from kdump.answers.statistics import HourStatistics, PartitionStatistics, ProducerStatistics
from kdump.printers.answer_lines import AnswerTable
from kdump.printers.quantities import counted, optional_size, share, size, time

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kdump.answers.collector import AnswerLine
    from kdump.answers.statistics import Spread

_COLUMNS: Final = (
    *("partition", "log", "batches", "records", "records per batch", "bytes per batch", "codecs", "first", "last"),
    *("transactional", "control"),
)
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
_RECORDS: Final = (
    "partition",
    "uncompressed",
    "ratio",
    "tombstones",
    "keys",
    "values",
    "per key",
    "per value",
    "largest",
)
_RECORDS_SPARE: Final = ("largest", "per key", "per value", "tombstones", "ratio", "keys", "values")
_WHAT_IF: Final = ("topic", "codec", "size now", "new size", "new / now", "error", "batches compressed")


def tables(lines: Sequence[AnswerLine]) -> Iterator[AnswerTable]:
    partitions = [line for line in lines if isinstance(line, PartitionStatistics)]
    total = size(sum(line.log_bytes for line in partitions))
    names = {(line.topic, line.partition) for line in partitions}
    folders = f" in {counted(len(partitions), 'folder')}" if len(names) < len(partitions) else ""
    title = f"{counted(len(names), 'partition')}{folders}, {total} of log; per batch: mean, median, 99th percentile"
    right = frozenset(_COLUMNS) - {"partition", "codecs"}
    rows = list(map(_partition, partitions))
    if folders:
        rows = [(*row, line.log_dir) for row, line in zip(rows, partitions, strict=True)]
    yield AnswerTable(title, (*_COLUMNS, "log dir") if folders else _COLUMNS, rows, right, spare=_SPARE)
    if any(line.uncompressed_bytes is not None for line in partitions):
        rows = list(map(_records, partitions))
        right = frozenset(_RECORDS) - {"partition"}
        yield AnswerTable(
            "Records; per key and value: mean, median, 99th percentile", _RECORDS, rows, right, spare=_RECORDS_SPARE
        )
    if producers := [line for line in lines if isinstance(line, ProducerStatistics)]:
        yield _sums("Producers", "producer id", [(line.topic, line.producer_id, line) for line in producers])
    if hours := [line for line in lines if isinstance(line, HourStatistics)]:
        yield _sums("Hours", "hour", [(line.topic, time(line.hour_ms), line) for line in hours])
    if answers := [line for line in lines if isinstance(line, WhatIfAnswer)]:
        yield AnswerTable(
            "Size if compressed with other codecs", _WHAT_IF, list(map(_what_if, answers)), frozenset(_WHAT_IF[2:])
        )


def _partition(line: PartitionStatistics) -> tuple[object, ...]:
    codecs = ", ".join(f"{name} {share(one.bytes, line.log_bytes)}" for name, one in line.codecs.items())
    return (
        f"{line.topic}-{line.partition}",
        size(line.log_bytes),
        line.batches,
        line.records,
        _spread(line.records_per_batch),
        _spread(line.bytes_per_batch),
        codecs,
        time(line.first_timestamp_ms),
        time(line.last_timestamp_ms),
        line.transactional_batches,
        line.control_batches,
    )


def _records(line: PartitionStatistics) -> tuple[object, ...]:
    largest = line.largest_values[0] if line.largest_values else None
    return (
        f"{line.topic}-{line.partition}",
        optional_size(line.uncompressed_bytes),
        line.ratio,
        line.tombstones,
        optional_size(line.key_bytes),
        optional_size(line.value_bytes),
        _spread(line.key_sizes),
        _spread(line.value_sizes),
        None if largest is None else f"{size(largest.bytes)} at {largest.offset}",
    )


def _sums(
    title: str, name: str, found: Sequence[tuple[str, object, ProducerStatistics | HourStatistics]]
) -> AnswerTable:
    rows = [(topic, what, line.batches, line.records, size(line.bytes)) for topic, what, line in found]
    columns = ("topic", name, "batches", "records", "bytes")
    return AnswerTable(title, columns, rows, frozenset(columns) - {"topic"})


def _what_if(line: WhatIfAnswer) -> tuple[object, ...]:
    return (
        line.topic,
        line.codec,
        size(line.current_bytes),
        size(line.bytes),
        share(line.bytes, line.current_bytes),
        f"± {size(line.error_bytes)}",
        line.sampled,
    )


def _spread(found: Spread | None) -> str | None:
    return None if found is None else f"{found.mean:.1f} {found.p50} {found.p99}"
