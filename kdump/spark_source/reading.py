"""A split to Arrow batches: what a task of Spark does."""

from __future__ import annotations

import posixpath
import sys
from bisect import bisect_right
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from kdump import segment as log
from kdump.errors import UnreadableError
from kdump.found import Found, Lost
from kdump.pieces import Damage, Padding, RecordBatch
from kdump.select import Filter, Reader
from kdump.spark_source import options as words
from kdump.spark_source import schema
from kdump.spark_source.columns import Rows
from kdump.spark_source.marks import DataLossError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from kdump.files import OpenSource
    from kdump.outcomes import Outcomes
    from kdump.pieces import Trailing
    from kdump.select import RecordType
    from kdump.spark_source.options import Options
    from kdump.spark_source.planning import Split
    from kdump.spark_source.replicas import Ranges

ROWS: Final = 1 << 14
"""Rows of a record batch at most, unless one batch of the log holds more."""
BYTES: Final = 8 << 20
"""Bytes of records after which a record batch ends."""
TRAILING: Final = "trailing"
"""The kind of damage that the end of a file is when it cuts a batch."""
DAMAGED_BYTES: Final = 8 << 20
"""Bytes of one row of the output damaged at most: a longer stretch is several rows."""


class Batch(NamedTuple):
    """A batch that can be read, and what is wanted of it: its records, and what is damaged among them."""

    batch: RecordBatch
    items: list[Found | Lost]


Content: TypeAlias = Batch | Lost | Padding


def contents(split: Split, source: log.Source, options: Options) -> Iterator[Content]:
    """Yield what the bytes of ``split`` are. Raises UnreadableError at the first damage in the mode FAILFAST."""
    inside = split.end < source.size
    reader = Reader(wanted(options))
    for piece in log.read(source, split.start, split.end, on_error="resync"):
        if isinstance(piece, RecordBatch):
            items = list(reader.batch(piece, split.file))
            content: Content = Batch(piece, [kept for item in items if (kept := _kept(item, split, options))])
            lost = [item for item in items if isinstance(item, Lost)]
        elif isinstance(piece, Padding) and not inside:
            content, lost = piece, []
        else:  # what is no more than an end of the log at the end of a file is damage at the end of a split
            content = Lost(split.file, piece if isinstance(piece, Damage) else _cut(piece, inside))
            lost = [content]
        if lost and options.mode == words.FAILFAST:
            raise UnreadableError(split.name, told(lost[0].damage), "mode FAILFAST ends here; PERMISSIVE goes on")
        yield content


def wanted(options: Options) -> Filter:
    """Return the filter of records that ``options`` means; what became of transactions it leaves to the split."""
    types: frozenset[RecordType] = frozenset() if options.include_control else frozenset({"data", "tombstone"})
    return Filter(
        first_offset=options.starting_offset,
        last_offset=None if options.ending_offset is None else options.ending_offset - 1,
        since=options.starting_timestamp,
        until=options.ending_timestamp,
        types=types,
    )


def _kept(item: Found | Lost, split: Split, options: Options) -> Found | Lost | None:
    """Return what is left of a batch's records when its transaction and other replicas have had their say."""
    if isinstance(item, Lost):
        return item
    state = _state(item.batch, split.outcomes)
    if options.committed and state in {"aborted", "open", None} and not item.batch.is_control:
        return None
    records = item.records
    if split.stable is not None:
        records = [record for record in records if record.offset < split.stable]
    if split.offsets is not None:
        records = [record for record in records if _inside(split.offsets, record.offset)]
    return item._replace(records=records, transaction=state) if records else None


def _cut(piece: Padding | Trailing, inside: bool) -> Damage:
    kind, reason = (
        ("record size", "no batch can be read here") if inside else (TRAILING, "the file ends inside a batch")
    )
    return Damage(piece.position, piece.size, kind, reason, piece.position, found=piece.size)


def told(damage: Damage) -> str:
    """Return what is wrong, and where, as a line for people."""
    text = f"byte {damage.at}: {damage.reason}"
    if damage.expected is not None or damage.found is not None:
        text += f" (expected {damage.expected}, found {damage.found})"
    return f"{text}; {damage.size} bytes from byte {damage.position} on are lost"


def read(split: Split, options: Options) -> Iterator[pa.RecordBatch]:
    """Yield the rows of ``split`` that ``options`` asks for."""
    source = _open(split, options)
    if source is not None:
        with source:
            yield from _OUTPUTS[options.output](split, source, options)


def _open(split: Split, options: Options) -> OpenSource | None:
    """Open the file. Where a broker has deleted it since, None, or DataLossError as ``options`` has it.

    It renames a segment first, and deletes it a minute later (file.delete.delay.ms).
    """
    for path in (split.path, f"{split.path}.deleted"):
        try:
            return split.files.open(path)
        except UnreadableError:
            if split.live is None or split.files.look(path) is not None:
                raise
    folder = split.files.shown(posixpath.dirname(split.path))
    text = f"{folder}: offsets from {split.live[0]} up to {split.live[1]} are gone"  # type: ignore[index]  # else it was raised
    if options.fail_on_data_loss:
        raise DataLossError(f"{text} (failOnDataLoss=false goes on with what is left)")
    sys.stderr.write(f"kdump: {text}; going on with what is left\n")
    return None


def _records(
    split: Split, source: log.Source, options: Options, damage: list[Damage] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the records; ``damage`` is told the first stretch that cannot be read."""
    rows = Rows(split.file, options.names)
    for content in contents(split, source, options):
        for item in content.items if isinstance(content, Batch) else ():
            if isinstance(item, Found):
                rows.add(item)
        if damage is not None and not damage:
            damage += _lost(content)
        if len(rows) >= ROWS or rows.size >= BYTES:
            yield rows.take()
    if len(rows):
        yield rows.take()


def _state(batch: RecordBatch, outcomes: Outcomes | None) -> str | None:
    if outcomes is None:  # nobody asked: nothing tells
        return None if batch.is_transactional else "none"
    return outcomes.of(batch)


def _inside(ranges: Ranges, offset: int) -> bool:
    at = bisect_right(ranges, (offset, 1 << 63)) - 1
    return at >= 0 and offset < ranges[at][1]


def _marked(split: Split, source: log.Source, options: Options) -> Iterator[pa.RecordBatch]:
    """Yield the records, and behind them one row with the split's number if damage was met."""
    import pyarrow as pa

    shape = schema.arrow([*schema.chosen(options.names), schema.SPLIT])
    damage: list[Damage] = []
    for batch in _records(split, source, options, damage):
        yield pa.RecordBatch.from_arrays([*batch.columns, pa.nulls(len(batch), pa.int32())], schema=shape)
    if damage:
        yield pa.RecordBatch.from_arrays(
            [*(pa.nulls(1, field.type) for field in list(shape)[:-1]), pa.array([split.number], pa.int32())],
            schema=shape,
        )


def _lost(content: Content) -> list[Damage]:
    if isinstance(content, Batch):
        return [item.damage for item in content.items if isinstance(item, Lost)]
    return [content.damage] if isinstance(content, Lost) else []


def _damaged(split: Split, source: log.Source, options: Options) -> Iterator[pa.RecordBatch]:
    for content in contents(split, source, options):
        for damage in _lost(content):
            if options.mode != words.DROPMALFORMED:
                yield from _stretch(split, source, damage)


def _stretch(split: Split, source: log.Source, lost: Damage) -> Iterator[pa.RecordBatch]:
    facts = (lost.kind, lost.reason, lost.at, lost.missing_from, lost.missing_until)
    for start in range(lost.position, lost.end, DAMAGED_BYTES):
        data = source.read(start, min(DAMAGED_BYTES, lost.end - start))
        yield _row(schema.DAMAGED, split.topic, split.partition, split.name, start, len(data), *facts, data)


def _account(split: Split, source: log.Source, options: Options) -> Iterator[pa.RecordBatch]:
    batches = rows = batch_bytes = ranges = damaged = padding = trailing = 0
    for content in contents(split, source, options):
        lost = _lost(content)
        if isinstance(content, Batch):
            rows += sum(len(item.records) for item in content.items if isinstance(item, Found))
            if not lost:
                batches += 1
                batch_bytes += content.batch.size
        elif isinstance(content, Padding):
            padding += content.size
        for damage in lost:
            if damage.kind == TRAILING:
                trailing += damage.size
            else:
                ranges += 1
                damaged += damage.size
    where = (split.topic, split.partition, split.name, split.start, split.end)
    yield _row(schema.ACCOUNT, *where, batches, rows, batch_bytes, ranges, damaged, padding, trailing)


def _row(fields: tuple[schema.Field, ...], *values: object) -> pa.RecordBatch:
    import pyarrow as pa

    shape = schema.arrow(fields)
    columns = [pa.array([value], field.type) for value, field in zip(values, shape, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=shape)


_OUTPUTS: Final = {words.RECORDS: _records, words.DAMAGED: _damaged, words.ACCOUNT: _account, words.MARKED: _marked}
