"""The text of a record, batch or damaged range in each column, for CSV and tables. A null value is None."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from kdump.formats.record import LARGE
from kdump.formats.record_layout import TIMESTAMP_TYPES
from kdump.primitives import compression, timestamps
from kdump.primitives.encodings import Encoding, to_text
from kdump.primitives.terminal import path_text
from kdump.printers import json_text
from kdump.rows import values
from kdump.rows.columns import DAMAGE, PAYLOAD_OF, SHOWN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kdump.formats.record import Record
    from kdump.rows.columns import Column
    from kdump.rows.selection import DamagedRange, SelectedBatch

GROUP: Final = 200
"""Number of rows of a table that are drawn together."""
LONGEST: Final = 200
"""Maximum number of characters in a cell of a table."""
NUMBERS: Final = frozenset({"int", "long"})
"""Types of columns whose cells are not shortened."""
SHOWN_SCOPE: Final = SHOWN[0].scope


def rows(
    item: SelectedBatch, columns: Sequence[Column], encoding: Encoding, *, batches: bool, most: int | None = None
) -> Iterator[list[str | None]]:
    """Yield the cells of each record or of the batch. ``most``: characters per cell of a record from LARGE bytes on."""
    if batches:
        yield [cell(column, item, None, encoding) for column in columns]
    if batches or not item.records:
        return
    varying = [(at, column) for at, column in enumerate(columns) if not values.is_constant(column, item)]
    own = {at for at, _ in varying}
    row = [None if at in own else constant_cell(one, item, encoding) for at, one in enumerate(columns)]
    for record in item.records:
        for at, column in varying:
            if most is not None and record.size >= LARGE:
                pieces = cell_in_pieces(column, item, record, encoding)
                row[at] = None if pieces is None else "".join(islice(chain.from_iterable(pieces()), most))
            else:
                row[at] = cell(column, item, record, encoding)
        yield row.copy()


def damage_cell(column: Column, item: DamagedRange) -> str | None:
    """Return the cell of a damaged range in a column of records or batches; None for an empty cell."""
    known = _OF_DAMAGE.get(column.name)
    found = None if known is None else values.value(known, item)
    return None if found is None else path_text(str(found))


def cell(column: Column, item: SelectedBatch, record: Record | None, encoding: Encoding) -> str | None:
    if column.source in PAYLOAD_OF:
        data: bytes | None = getattr(record, PAYLOAD_OF[column.source])
        return None if data is None else to_text(data, encoding).encoding
    if column.scope == SHOWN_SCOPE:
        from kdump.printers import decoded_text

        return decoded_text.cell(column.source, item, record, encoding)
    return _shown(column, values.value(column, item, record), encoding)


def constant_cell(column: Column, item: SelectedBatch, encoding: Encoding) -> str | None:
    """Return the cell that all records of a batch share."""
    return _shown(column, values.constant(column, item), encoding)


def _shown(column: Column, value: object, encoding: Encoding) -> str | None:
    if value is None:
        return None
    if isinstance(value, bytes):
        return to_text(value, encoding).text
    if isinstance(value, bool):
        return "true" if value else "false"
    if column.type == "headers":
        return json_text.headers(value, encoding)  # type: ignore[arg-type]  # the column is of headers
    if column.type == "json":
        return json_text.plain(column, value)
    if isinstance(value, int):
        return _WORDS[column.type](value) if column.type in _WORDS else str(value)
    return path_text(str(value))


def cell_in_pieces(
    column: Column, item: SelectedBatch, record: Record, encoding: Encoding
) -> Callable[[], Iterator[str]] | None:
    """Return a function that yields the cell of a large record in pieces, or None for null."""
    from kdump.rows.pieces import PIECE, to_pieces

    if column.type == "headers":
        return lambda: json_text.headers_in_pieces(record.headers, encoding)
    if column.source in PAYLOAD_OF:
        data: bytes | None = getattr(record, PAYLOAD_OF[column.source])
        text = None if data is None else to_pieces(data, encoding).encoding
        return None if text is None else lambda: iter((text,))
    if column.scope == SHOWN_SCOPE:
        made = cell(column, item, record, encoding)
        return None if made is None else lambda: iter((made,))
    value = values.value(column, item, record)
    if isinstance(value, bytes) and len(value) >= PIECE:
        return to_pieces(value, encoding).texts
    shown = cell(column, item, record, encoding)
    return None if shown is None else lambda: iter((shown,))


def quoted_in_pieces(pieces: Callable[[], Iterator[str]] | None) -> Iterator[str]:
    """Like :func:`quoted`, for a text in pieces. Yields the result in pieces."""
    if pieces is None:
        return
    first = last = ""
    awkward = False
    for text in pieces():
        awkward = awkward or any(letter in text for letter in '",\n\r')
        first, last = first or text[:1], text[-1:] or last
    awkward = awkward or not first or " " in {first, last}
    yield from ('"',) if awkward else ()
    for text in pieces():
        yield text.replace('"', '""') if awkward else text
    yield from ('"',) if awkward else ()


def quoted(text: str | None) -> str:
    """Return a cell of CSV (RFC 4180), quoted if needed; no character for null, ``""`` for an empty text."""
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
