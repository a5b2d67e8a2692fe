"""A split to Arrow batches: what a task of Spark does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from kdump import segment as log
from kdump.errors import DamageError, UnreadableError
from kdump.formats.batch import MAGIC
from kdump.pieces import Damage, Padding, RecordBatch, Trailing
from kdump.spark_source import options as words
from kdump.spark_source import schema
from kdump.spark_source.columns import Rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from kdump.pieces import Record
    from kdump.spark_source.options import Options
    from kdump.spark_source.planning import Split

ROWS: Final = 1 << 14
"""Rows of a record batch at most, unless one batch of the log holds more."""
BYTES: Final = 8 << 20
"""Bytes of records after which a record batch ends."""
DAMAGED_BYTES: Final = 8 << 20
"""Bytes of one row of the output damaged at most: a longer stretch is several rows."""


class Readable(NamedTuple):
    """A sound batch and all its records."""

    batch: RecordBatch
    records: list[Record]


Content: TypeAlias = Readable | Damage | Padding | Trailing


def contents(split: Split, source: log.Source, failfast: bool = False) -> Iterator[Content]:
    """Yield what the bytes of ``split`` are. A batch is whole or damaged: a bad record makes all of it damaged.

    Raises UnreadableError at the first damage when ``failfast``.
    """
    inside = split.end < source.size
    for piece in log.read(source, split.start, split.end, on_error="resync"):
        content: Content
        if isinstance(piece, RecordBatch):
            try:
                content = Readable(piece, list(piece.records()))
            except DamageError as damage:
                content = log.as_piece(damage, piece.position, piece.size)
        elif inside and isinstance(piece, Padding | Trailing):  # at the end of a file it is, not at that of a split
            content = Damage(piece.position, piece.size, "record size", "no batch can be read here", piece.position)
        else:
            content = piece
        if failfast and isinstance(content, Damage | Trailing):
            raise UnreadableError(split.name, told(content), "mode FAILFAST ends here; PERMISSIVE goes on")
        yield content


def told(lost: Damage | Trailing) -> str:
    """Return what is wrong, and where, as a line for people."""
    if isinstance(lost, Trailing):
        return f"byte {lost.position}: the file ends inside a batch, after {lost.size} of its bytes"
    text = f"byte {lost.at}: {lost.reason}"
    if lost.expected is not None or lost.found is not None:
        text += f" (expected {lost.expected}, found {lost.found})"
    return f"{text}; {lost.size} bytes from byte {lost.position} on are lost"


def read(split: Split, options: Options) -> Iterator[pa.RecordBatch]:
    """Yield the rows of ``split`` that ``options`` asks for."""
    with split.files.open(split.path) as source:
        yield from _OUTPUTS[options.output](split, source, options)


def _records(split: Split, source: log.Source, options: Options) -> Iterator[pa.RecordBatch]:
    rows = Rows(split, options.columns or schema.RECORD_NAMES)
    for content in contents(split, source, options.mode == words.FAILFAST):
        if isinstance(content, Readable):
            wanted = select(content, options)
            if wanted:
                rows.add(
                    content.batch, wanted, base_offset(content), None if content.batch.is_transactional else "none"
                )
                if len(rows) >= ROWS or rows.size >= BYTES:
                    yield rows.take()
    if len(rows):
        yield rows.take()


def base_offset(content: Readable) -> int:
    """Return the first offset of a batch; of a wrapper of magic 0 or 1 that of its first message."""
    return content.batch.base_offset if content.batch.magic >= MAGIC else content.records[0].offset


def select(content: Readable, options: Options) -> list[Record]:
    """Return the records that ``options`` asks for."""
    batch, records = content
    if batch.is_control and not options.include_control:
        return []
    first, end = options.starting_offset, options.ending_offset
    if first is not None or end is not None:
        records = [
            record
            for record in records
            if (first is None or record.offset >= first) and (end is None or record.offset < end)
        ]
    since, until = options.starting_timestamp, options.ending_timestamp
    if since is not None or until is not None:
        records = [
            record
            for record in records
            if (since is None or record.timestamp >= since) and (until is None or record.timestamp < until)
        ]
    return records


def _damaged(split: Split, source: log.Source, options: Options) -> Iterator[pa.RecordBatch]:
    for content in contents(split, source, options.mode == words.FAILFAST):
        if isinstance(content, Damage | Trailing) and options.mode != words.DROPMALFORMED:
            yield from _stretch(split, source, content)


def _stretch(split: Split, source: log.Source, lost: Damage | Trailing) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    if isinstance(lost, Trailing):
        lost = Damage(lost.position, lost.size, "trailing", "the file ends inside a batch", lost.position)
    facts = (lost.kind, lost.reason, lost.at, lost.missing_from, lost.missing_until)
    for start in range(lost.position, lost.position + lost.size, DAMAGED_BYTES):
        data = source.read(start, min(DAMAGED_BYTES, lost.position + lost.size - start))
        row = (split.topic, split.partition, split.name, start, len(data), *facts, data)
        yield pa.RecordBatch.from_arrays(
            [pa.array([value], field.type) for value, field in zip(row, schema.arrow(schema.DAMAGED), strict=True)],
            schema=schema.arrow(schema.DAMAGED),
        )


def _account(split: Split, source: log.Source, options: Options) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    batches = records = rows = batch_bytes = ranges = damaged = padding = trailing = 0
    for content in contents(split, source, options.mode == words.FAILFAST):
        match content:
            case Readable():
                batches += 1
                records += len(content.records)
                rows += len(select(content, options))
                batch_bytes += content.batch.size
            case Damage():
                ranges += 1
                damaged += content.size
            case Padding():
                padding += content.size
            case Trailing():
                trailing += content.size
    counts = (batches, records, rows, batch_bytes, ranges, damaged, padding, trailing)
    row = (split.topic, split.partition, split.name, split.start, split.end, *counts)
    yield pa.RecordBatch.from_arrays(
        [pa.array([value], field.type) for value, field in zip(row, schema.arrow(schema.ACCOUNT), strict=True)],
        schema=schema.arrow(schema.ACCOUNT),
    )


_OUTPUTS: Final = {words.RECORDS: _records, words.DAMAGED: _damaged, words.ACCOUNT: _account}
