"""Rows of text cells, for CSV and tables: every column of a record as one text, None for null."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.formats.record_layout import TIMESTAMP_TYPES
from kdump.primitives import compression, timestamps
from kdump.primitives.encodings import Encoding, to_text
from kdump.primitives.terminal import path_text
from kdump.printers import json_text
from kdump.rows import values
from kdump.rows.columns import DAMAGE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kdump.formats.record import Record
    from kdump.rows.columns import Column
    from kdump.rows.selection import DamagedRange, SelectedBatch

GROUP: Final = 200
"""Rows of a table that are drawn at a time."""
LONGEST: Final = 200
"""Characters of a cell of a table that are shown."""
NUMBERS: Final = frozenset({"int", "long"})
"""Types of columns whose cells are never cut."""
PAYLOAD_OF: Final = {"state.key_encoding": "key", "state.value_encoding": "value"}
"""The payload that a column says the encoding of, by the column's source."""


def rows(
    item: SelectedBatch, columns: Sequence[Column], encoding: Encoding, *, batches: bool
) -> Iterator[list[str | None]]:
    """Yield the cells of each record of a batch, or of the batch itself."""
    if batches:
        yield [cell(column, item, None, encoding) for column in columns]
    if batches or not item.records:
        return
    row = [cell(column, item, item.records[0], encoding) for column in columns]
    varying = [(at, column) for at, column in enumerate(columns) if not values.is_constant(column, item)]
    for record in item.records:
        for at, column in varying:
            row[at] = cell(column, item, record, encoding)
        yield row.copy()


def first_record(item: SelectedBatch) -> Record | None:
    """Return the first record, None of what has none."""
    return item.records[0] if item.records else None


def damage_cell(column: Column, item: DamagedRange) -> str | None:
    """Return what a damaged range has in a column of records or batches: None where it has no such column."""
    known = _OF_DAMAGE.get(column.name)
    found = None if known is None else values.value(known, item)
    return None if found is None else path_text(str(found))


def cell(column: Column, item: SelectedBatch, record: Record | None, encoding: Encoding) -> str | None:
    """Return one cell; headers are JSON."""
    if column.source in PAYLOAD_OF:
        data: bytes | None = getattr(record, PAYLOAD_OF[column.source])
        return None if data is None else to_text(data, encoding).encoding
    value = values.value(column, item, record)
    if value is None:
        return None
    if isinstance(value, bytes):
        return to_text(value, encoding).text
    if isinstance(value, bool):
        return "true" if value else "false"
    if column.type == "headers":
        return json_text.headers(value, encoding)  # type: ignore[arg-type]  # the column is of headers
    if column.type == "json":
        return json_text.scalar(column, value)
    if isinstance(value, int):
        return _WORDS[column.type](value) if column.type in _WORDS else str(value)
    return path_text(str(value))


def quoted(text: str | None) -> str:
    """Return a cell of CSV (RFC 4180): nothing for null."""
    if text is None:
        return ""
    awkward = not text or '"' in text or "," in text or "\n" in text or "\r" in text or " " in (text[0], text[-1])
    return '"' + text.replace('"', '""') + '"' if awkward else text


_OF_DAMAGE: Final = {column.name: column for column in DAMAGE}
_WORDS: Final[dict[str, Callable[[int], str | None]]] = {
    "timestamp": timestamps.iso,
    "timestampType": lambda value: TIMESTAMP_TYPES[value],
    "codec": lambda value: compression.NAMES[value],
}
