"""Rows of text cells, for CSV and tables: every column of a record as one text, None for null."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump import codecs, found
from kdump.pieces import TIMESTAMP_TYPES
from kdump.printers import jsonl
from kdump.printers.values import Encoding, to_text
from kdump.text import path_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kdump.found import Found
    from kdump.pieces import Record
    from kdump.rows import Column

_PAYLOAD_OF: Final = {"state.key_encoding": "key", "state.value_encoding": "value"}


def rows(item: Found, columns: Sequence[Column], encoding: Encoding, *, batches: bool) -> Iterator[list[str | None]]:
    """Yield the cells of each record of a batch, or of the batch itself."""
    if batches:
        yield [cell(column, item, None, encoding) for column in columns]
    if batches or not item.records:
        return
    row = [cell(column, item, item.records[0], encoding) for column in columns]
    varying = [(at, column) for at, column in enumerate(columns) if not found.is_constant(column, item)]
    for record in item.records:
        for at, column in varying:
            row[at] = cell(column, item, record, encoding)
        yield row.copy()


def cell(column: Column, item: Found, record: Record | None, encoding: Encoding) -> str | None:
    """Return one cell; headers are JSON."""
    if column.source in _PAYLOAD_OF:
        data: bytes | None = getattr(record, _PAYLOAD_OF[column.source])
        return None if data is None else to_text(data, encoding).encoding
    value = found.value(column, item, record)
    if value is None:
        return None
    if isinstance(value, bytes):
        return to_text(value, encoding).text
    if isinstance(value, bool):
        return "true" if value else "false"
    if column.type == "headers":
        return jsonl.headers(value, encoding)  # type: ignore[arg-type]  # the column is of headers
    if column.type == "json":
        return jsonl.scalar(column, value)
    if isinstance(value, int):
        return _WORDS[column.type](value) if column.type in _WORDS else str(value)
    return path_text(str(value))


_WORDS: Final[dict[str, Callable[[int], str | None]]] = {
    "timestamp": found.iso,
    "timestampType": lambda value: TIMESTAMP_TYPES[value],
    "codec": lambda value: codecs.NAMES[value],
}
