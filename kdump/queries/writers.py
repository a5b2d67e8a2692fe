"""Writes a query's rows: as CSV, JSON lines, Parquet or Arrow's stream (:func:`write`), or as a table (TextTable)."""

from __future__ import annotations

import json
import math
import unicodedata
from datetime import date
from typing import IO, TYPE_CHECKING, Any, BinaryIO, Final, Self, TypeAlias

import pyarrow as pa

from kdump.arrow import files
from kdump.errors import many
from kdump.primitives.encodings import to_text
from kdump.primitives.terminal import harmless_line
from kdump.printers.json_text import harmless_json
from kdump.rows.pieces import to_pieces
from kdump.schemas.times import fraction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

SHOWN: Final = 1000
"""Maximum number of rows of a table on a terminal. In a file, the first SHOWN rows determine the widths."""
_HELD: Final = 8 << 20
"""Number of characters after which no more rows determine the widths, or are shown on a terminal."""
_PIECE: Final = 1 << 20
_MANY: Final = 1 << 12
"""Number of items of a large list that become Python objects at the same time."""
_WIDEST: Final = 1 << 12
"""Maximum width of a column of a table in a file or pipe. Longer cells are not aligned, since padding takes memory."""
_quote: Final = json.JSONEncoder(ensure_ascii=False).encode


def write(form: str, types: Sequence[str], schema: pa.Schema, batches: Iterable[pa.RecordBatch], out: BinaryIO) -> int:
    """Write rows in an output format other than table; return their number. ``types``: DuckDB's names of the types."""
    if form in files.FORMATS:
        names = distinct(schema.names)  # readers refuse, or mix up, two columns with the same name
        named = pa.schema([field.with_name(name) for field, name in zip(schema, names, strict=True)], schema.metadata)
        return files.write(form, named, (batch.rename_columns(names) for batch in batches), out)
    return (_csv if form == "csv" else _jsonl)(types, schema, batches, out)


def _jsonl(types: Sequence[str], schema: pa.Schema, batches: Iterable[pa.RecordBatch], out: BinaryIO) -> int:
    fields = [
        (("," if at else "{") + _quote(name) + ":", _quote(f"{name}Encoding") + ':"base64"', to_json(field.type, kind))
        for at, (name, field, kind) in enumerate(zip(distinct(schema.names), schema, types, strict=True))
    ]
    blobs = [pa.types.is_binary(field.type) and kind == "BLOB" for field, kind in zip(schema, types, strict=True)]
    rows = 0
    for batch in _pieces(batches):
        columns = [values_of(column) for column in batch.columns]
        lines: list[str] = []
        with Parts(out, harmless_json) as parts:
            for row in zip(*columns, strict=True):
                cells = []
                for (name, encoding, text), is_blob, value in zip(fields, blobs, row, strict=True):
                    if value is None:
                        cells.append(name + "null")
                    elif isinstance(value, LargeList) and isinstance(text, ListText):
                        parts.add(*lines, *cells, name)
                        for part in text.pieces(value):
                            parts.add(part)
                        lines, cells = [], []
                    elif not is_blob:
                        cells.append(name + text(value))
                    elif len(value) > _PIECE:
                        pieces = to_pieces(value, "auto")
                        parts.add(*lines, *cells, name, '"')
                        lines = []
                        for piece in pieces.texts():
                            parts.add(_quote(piece)[1:-1])
                        cells = ['"' if pieces.encoding is None else f'",{encoding}']
                    else:
                        made = to_text(value, "auto")
                        cells.append(name + _quote(made.text))
                        if made.encoding is not None:
                            cells.append("," + encoding)
                cells.append("}\n")
                lines.append("".join(cells))
            parts.add(*lines)
        rows += batch.num_rows
    return rows


def _csv(types: Sequence[str], schema: pa.Schema, batches: Iterable[pa.RecordBatch], out: BinaryIO) -> int:
    texts = [to_text_cell(field.type, kind) for field, kind in zip(schema, types, strict=True)]
    out.write((",".join(map(_csv_cell, schema.names)) + "\n").encode("utf-8", "backslashreplace"))
    rows = 0
    for batch in _pieces(batches):
        columns = [values_of(column) for column in batch.columns]
        lines: list[str] = []
        with Parts(out) as parts:
            for row in zip(*columns, strict=True):
                if any((type(value) is bytes and len(value) > _PIECE) or type(value) is LargeList for value in row):
                    parts.add(*lines)
                    lines = []
                    _large_csv(row, texts, parts)
                    continue
                cells = [
                    "" if value is None else _csv_cell(text(value)) for text, value in zip(texts, row, strict=True)
                ]
                lines += (",".join(cells), "\n")
            parts.add(*lines)
        rows += batch.num_rows
    return rows


def _large_csv(row: Sequence[Any], texts: Sequence[Callable[[Any], str]], parts: Parts) -> None:
    for place, (text, value) in enumerate(zip(texts, row, strict=True)):
        parts.add("," if place else "")
        if isinstance(value, LargeList) and isinstance(text, ListText):
            parts.add('"')
            for part in text.pieces(value):
                parts.add(part.replace('"', '""'))
            parts.add('"')
            continue
        if text is not _blob or value is None or len(value) <= _PIECE:
            parts.add("" if value is None else _csv_cell(text(value)))
            continue
        pieces = to_pieces(value, "auto")
        quote = '"' if pieces.encoding is None and any(map(_needs_quotes, pieces.texts())) else ""
        parts.add(quote, "" if pieces.encoding is None else _ENCODED)
        for piece in pieces.texts():
            parts.add(piece.replace('"', '""'))
        parts.add(quote)
    parts.add("\n")


class Parts:
    """Collects parts of a text, and writes ``shown(text)`` above _PIECE characters and at the end of the block."""

    def __init__(self, out: BinaryIO, shown: Callable[[str], str] = str) -> None:
        self._out, self._shown = out, shown
        self._parts: list[str] = []
        self._size = 0

    def add(self, *texts: str) -> None:
        self._parts += texts
        self._size += sum(map(len, texts))
        if self._size > _PIECE:
            self._write()

    def _write(self) -> None:
        is_large = max(map(len, self._parts), default=0) > _PIECE
        texts = self._parts if is_large else ["".join(self._parts)]  # a join copies large parts
        self._parts, self._size = [], 0
        for text in texts:
            for piece in _in_pieces(text):
                self._out.write(self._shown(piece).encode("utf-8", "backslashreplace"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._write()


def _in_pieces(text: str) -> Iterator[str]:
    return (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))


def _pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of batches in pieces of about _PIECE bytes, because their texts are a few times larger."""
    for batch in batches:
        rows = max(1, batch.num_rows * _PIECE // max(1, batch.nbytes))
        yield from (batch.slice(first, rows) for first in range(0, batch.num_rows, rows))


def _needs_quotes(text: str) -> bool:
    return any(mark in text for mark in ',"\r\n')


def _csv_cell(text: str) -> str:
    if not text or _needs_quotes(text):
        return '"' + text.replace('"', '""') + '"'
    return text


def distinct(names: Iterable[str]) -> list[str]:
    """Return unique names of columns: ``n``, ``n_1``."""
    found: list[str] = []
    for name in names:
        made, number = name, 0
        while made in found:
            number += 1
            made = f"{name}_{number}"
        found.append(made)
    return found


def values_of(column: pa.Array) -> list[Any]:
    """Return a column's values: times and dates as integers in their unit, large lists of a column as LargeList."""
    if pa.types.is_list(column.type) and len(column.flatten()) > _MANY:
        items = (each.values for each in column)
        return [one if one is None else LargeList(one) if len(one) > _MANY else values_of(one) for one in items]
    stored = _stored(column.type)
    return list((column if stored == column.type else column.view(stored)).to_pylist(maps_as_pydicts=None))


class LargeList:
    """A list whose items become Python objects in groups: the objects of millions of headers take gigabytes."""

    def __init__(self, items: pa.Array) -> None:
        self._items = items

    def groups(self) -> Iterator[list[Any]]:
        return (values_of(self._items.slice(at, _MANY)) for at in range(0, len(self._items), _MANY))


def _stored(kind: pa.DataType) -> pa.DataType:
    """Return a type with integers for times and dates, as Python has no nanoseconds and no years above 9999."""
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        return pa.int64()
    if pa.types.is_time32(kind) or pa.types.is_date32(kind):
        return pa.int32()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_stored(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_stored(kind.key_type), kind.item_field.with_type(_stored(kind.item_type)))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(_stored(kind.value_type)), kind.list_size)
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_stored(kind.value_type)))
    return kind


_PER_SECOND: Final = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}


def _moment(count: int, unit: str, zone: str) -> str:
    """Return a time since 1970 in ISO 8601, with 3, 6 or 9 digits of a second. Others: "infinity", numbers."""
    from kdump.primitives.timestamps import iso

    per = _PER_SECOND[unit]
    seconds, rest = divmod(count, per)
    whole = iso(seconds * 1000) if count not in _INFINITE else None
    if whole is None:
        return _INFINITE.get(count, f"{count} {unit}")
    return f"{whole[:19]}.{fraction(rest * (1_000_000_000 // per))}{zone}"


_INFINITE: Final = {(1 << 63) - 1: "infinity", 1 - (1 << 63): "-infinity"}
_INFINITE_DATES: Final = {(1 << 31) - 1: "infinity", 1 - (1 << 31): "-infinity"}
"""The numbers with which DuckDB stores infinite times and dates."""
_EPOCH: Final = date(1970, 1, 1).toordinal()


def _date(count: int) -> str:
    """Return days since 1970 in ISO 8601; dates that Python lacks as "infinity" or a number of days."""
    try:
        return date.fromordinal(_EPOCH + count).isoformat()
    except (ValueError, OverflowError):
        return _INFINITE_DATES.get(count, f"{count} days")


def _clock(count: int, unit: str) -> str:
    per = _PER_SECOND[unit]
    seconds, rest = divmod(count, per)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return text if not rest else f"{text}.{fraction(rest * (1_000_000_000 // per))}"


def _interval(value: Any) -> str:
    years, months = divmod(abs(value.months), 12)
    sign = -1 if value.months < 0 else 1
    parts = [(sign * years, "year"), (sign * months, "month"), (value.days, "day")]
    words = [f"{count} {name}{'' if abs(count) == 1 else 's'}" for count, name in parts if count]
    if value.nanoseconds or not words:
        lead = "-" if value.nanoseconds < 0 else ""
        words.append(lead + _clock(abs(value.nanoseconds), "ns"))
    return " ".join(words)


def _bits(value: bytes) -> str:
    """Return a BIT as text. Its first byte is the number of padding bits."""
    return "".join(f"{byte:08b}" for byte in value[1:])[value[0] :]


_ENCODED: Final = "base64:"


def _blob(value: bytes) -> str:
    made = to_text(value, "auto")
    return made.text if made.encoding is None else _ENCODED + made.text


def to_text_cell(kind: pa.DataType, name: str = "") -> Callable[[Any], str]:  # noqa: PLR0911  a line for each type
    """Return a function that formats values of a type for CSV, and except BLOB for tables. ``name``: DuckDB's type."""
    if pa.types.is_timestamp(kind):
        zone = "Z" if kind.tz is not None else ""
        return lambda value: _moment(value, kind.unit, zone)
    if pa.types.is_time(kind):
        return lambda value: _clock(value, kind.unit)
    if pa.types.is_date(kind):
        return _date
    if name == "BIT":
        return _bits
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return _blob
    if pa.types.is_boolean(kind):
        return lambda value: "true" if value else "false"
    if pa.types.is_interval(kind):
        return _interval
    if pa.types.is_decimal(kind):
        return lambda value: format(value, "f")
    if pa.types.is_floating(kind):
        return _float
    return to_json(kind, name) if pa.types.is_nested(kind) else str


def _float(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def to_json(kind: pa.DataType, name: str = "") -> Callable[[Any], str]:
    """Return a function that formats values of a type as JSON. ``name`` is DuckDB's name of the type."""
    if name == "JSON" or isinstance(kind, pa.JsonType):
        return _json_text
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind):
        return to_text_cell(kind)
    if pa.types.is_floating(kind):
        return lambda value: _float(value) if math.isfinite(value) else f'"{_float(value)}"'
    if pa.types.is_struct(kind):
        return _struct(kind)
    if pa.types.is_map(kind):
        return _map(kind)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return ListText(to_json(kind.value_type))
    if pa.types.is_nested(kind):  # a UNION, whose values have different types
        return lambda value: json.dumps(value, ensure_ascii=False, default=str)
    text = to_text_cell(kind, name)
    return lambda value: _quote(text(value))


def _json_text(value: str) -> str:
    return value if "\n" not in value else json.dumps(json.loads(value), ensure_ascii=False)


class ListText:
    """Formats a list as JSON; ``inner`` formats an item."""

    def __init__(self, inner: Callable[[Any], str]) -> None:
        self._inner = inner

    def __call__(self, value: list[Any] | LargeList) -> str:
        return "".join(self.pieces(value)) if isinstance(value, LargeList) else f"[{self._items(value)}]"

    def pieces(self, value: LargeList) -> Iterator[str]:
        yield "["
        for number, group in enumerate(value.groups()):
            yield ("," if number else "") + self._items(group)
        yield "]"

    def _items(self, items: list[Any]) -> str:
        return ",".join("null" if one is None else self._inner(one) for one in items)


def _map(kind: pa.DataType) -> Callable[[Any], str]:
    key, item = to_text_cell(kind.key_type), to_json(kind.item_type)
    return lambda value: (
        "{" + ",".join(f"{_quote(key(name))}:{'null' if one is None else item(one)}" for name, one in value) + "}"
    )


def _struct(kind: pa.DataType) -> Callable[[Any], str]:
    """Return a function that formats a struct. Bytes that are not UTF-8 get a field with their encoding, as in dump."""
    names = [field.name for field in kind]
    inner = [to_json(field.type) for field in kind]
    blobs = [pa.types.is_binary(field.type) for field in kind]
    encodings = ["encoding" if names == ["key", "value"] else f"{name}Encoding" for name in names]

    def text(value: Any) -> str:
        cells = []
        for name, write_one, is_blob, encoding in zip(names, inner, blobs, encodings, strict=True):
            one = value[name]
            made = to_text(one, "auto") if is_blob and one is not None else None
            shown = "null" if one is None else write_one(one) if made is None else _quote(made.text)
            cells.append(f"{_quote(name)}:{shown}")
            if made is not None and made.encoding is not None:
                cells.append(f'{_quote(encoding)}:"{made.encoding}"')
        return "{" + ",".join(cells) + "}"

    return text


_PLAN: Final = ["explain_key", "explain_value"]
"""The columns of EXPLAIN. The lines of its values are printed without a table."""


def _write_plans(batches: Iterable[pa.RecordBatch], out: IO[bytes]) -> int:
    rows = 0
    for batch in batches:
        for plan in batch.column(1).to_pylist():
            out.writelines(f"{harmless_line(line)}\n".encode() for line in plan.rstrip("\n").split("\n"))
        rows += batch.num_rows
    return rows


class LargeCell:
    """A table's cell of over _PIECE characters, in pieces without control characters. ``str``: the first piece."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return harmless_line(self._text[:_PIECE])

    def __len__(self) -> int:
        return len(self._text)

    def pieces(self) -> Iterator[str]:
        return map(harmless_line, _in_pieces(self._text))


Row: TypeAlias = "Sequence[str | LargeCell]"


class TextTable:
    """Writes rows as a table: at most SHOWN rows on a terminal of ``width`` columns, all in a file or pipe (None)."""

    def __init__(self, types: Sequence[str], schema: pa.Schema, width: int | None) -> None:
        self._names = [harmless_line(name) for name in schema.names]
        self._texts = [
            _hex_or_text if kind == "BLOB" else to_text_cell(field.type, kind)
            for field, kind in zip(schema, types, strict=True)
        ]
        self._right = [
            pa.types.is_integer(field.type) or pa.types.is_floating(field.type) or pa.types.is_decimal(field.type)
            for field in schema
        ]
        self._width = width

    def write(self, batches: Iterable[pa.RecordBatch], out: IO[bytes]) -> int:
        if self._names == _PLAN:
            return _write_plans(batches, out)
        rows = self._rows(batches)
        first: list[Row] = []
        size = 0
        for row in rows:
            first.append(row)
            size += sum(map(len, row))
            if len(first) == SHOWN or size >= _HELD:
                break
        widths = [max(map(_width, column)) for column in zip(self._names, *first, strict=True)] if self._names else []
        if self._width is None:
            widths = [min(width, _WIDEST) for width in widths]
        if self._width is not None and sum(widths) + 2 * len(widths) - 2 > self._width:
            widths = self._shrunk(widths)
        if self._width is not None and sum(widths) + 2 * len(widths) - 2 > self._width:
            return self._one_by_one(first, rows, out)
        for row in (self._names, ["-" * width for width in widths], *first):
            out.writelines(self._line(row, widths))
        return self._rest(len(first), rows, out, lambda row: self._line(row, widths))

    def _rest(self, done: int, rows: Iterator[Row], out: IO[bytes], line: Callable[[Row], Iterable[bytes]]) -> int:
        """Write the remaining rows, or on a terminal only their number. Return the number of all rows."""
        count = done
        for row in rows:
            count += 1
            if self._width is None:
                out.writelines(line(row))
        if self._width is not None and count > done:
            out.write(f"... {many(count - done, 'more row')} (--out FILE or a pipe gets all rows)\n".encode())
        return count

    def _rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
        for batch in _pieces(batches):
            columns = [values_of(column) for column in batch.columns]
            for row in zip(*columns, strict=True):
                yield [
                    "NULL" if value is None else self._cell(text(value))
                    for text, value in zip(self._texts, row, strict=True)
                ]

    def _cell(self, text: str) -> str | LargeCell:
        if len(text) <= _PIECE:
            return harmless_line(text)
        cell = LargeCell(text)
        return cell if self._width is None else str(cell)  # a terminal is narrower than a piece

    def _shrunk(self, widths: list[int]) -> list[int]:
        """Return widths that fit the terminal, if the names do. The column that most exceeds its name shrinks first."""
        least = [wide(name) for name in self._names]
        room = (self._width or 0) - 2 * (len(widths) - 1)
        widths = [max(name, min(width, room)) for name, width in zip(least, widths, strict=True)]
        while sum(widths) > room:
            at = max(range(len(widths)), key=lambda number: widths[number] - least[number])
            if widths[at] <= least[at]:
                break
            widths[at] -= 1
        return widths

    def _line(self, cells: Row, widths: Sequence[int]) -> Iterator[bytes]:
        """Yield a row, in pieces if it is large, because copies of a large cell take much memory."""
        shown: list[str] = []
        for cell, width, right in zip(cells, widths, self._right, strict=True):
            if isinstance(cell, LargeCell):
                yield "".join(shown).encode("utf-8", "backslashreplace")
                for text in cell.pieces():
                    yield text.encode("utf-8", "backslashreplace")
                shown = ["  "]
                continue
            if self._width is not None and wide(cell) > width:
                cell = cut(cell, width)
            space = " " * (width - wide(cell))
            shown += [space, cell, "  "] if right else [cell, space, "  "]
        yield ("".join(shown).rstrip() + "\n").encode("utf-8", "backslashreplace")

    def _one_by_one(self, first: list[Row], rows: Iterator[Row], out: IO[bytes]) -> int:
        """Write a line for each column of each row, because even the names are wider than the terminal."""
        name_width = max(map(wide, self._names))
        room = max(8, (self._width or 0) - name_width - 2)

        def block(number: int, row: Row) -> bytes:
            lines = [f"row {number}"]
            for name, cell in zip(self._names, row, strict=True):
                lines.append(f"{name}{' ' * (name_width - wide(name))}  {cut(str(cell), room)}")
            return ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace")

        for number, row in enumerate(first, 1):
            out.write(block(number, row))
        return self._rest(len(first), rows, out, lambda _: ())


def _hex_or_text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return f"0x{value.hex()}"


def _width(cell: str | LargeCell) -> int:
    return _WIDEST if isinstance(cell, LargeCell) else wide(cell)


def wide(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text
    )


def cut(text: str, width: int) -> str:
    """Return a text shortened to ``width`` columns of a terminal, with an ellipsis if needed."""
    if wide(text) <= width:
        return text
    kept = text[:width]
    while kept and wide(kept) > width - 1:
        kept = kept[:-1]
    return f"{kept}…" if width else ""
