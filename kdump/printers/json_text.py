"""Rows as JSON in plain Python: one object with the columns of a record, a batch or a damaged range."""

from __future__ import annotations

import json
import re
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Final, TypeAlias

from kdump.formats.record import LARGE
from kdump.formats.record_layout import TIMESTAMP_TYPES
from kdump.primitives import compression, timestamps
from kdump.primitives.encodings import Encoding, Text, to_text
from kdump.primitives.terminal import BEYOND_ASCII, path_text
from kdump.rows import values
from kdump.rows.columns import PAYLOAD_OF

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from kdump.formats.record import Header, Record
    from kdump.rows.columns import Column
    from kdump.rows.selection import DamagedRange, SelectedBatch

    Part: TypeAlias = str | Callable[[Record], str]

_AWKWARD: Final = re.compile(f"[\x7f{BEYOND_ASCII}]")
_GATHERED: Final = 1000
"""Number of small headers of a large record that are written at once."""
_ENCODING_OF: Final = {"key": "keyEncoding", "value": "valueEncoding"}


def quote(text: str) -> str:
    """Return ``text`` as a JSON string on one line, with control characters escaped."""
    return harmless_json(encode_basestring(text))


def harmless_json(text: str) -> str:
    """Return JSON with control characters from U+007F on escaped. JSON allows no lower ones in strings."""
    return text if text.isascii() and "\x7f" not in text else _AWKWARD.sub(_escape, text)


def _escape(awkward: re.Match[str]) -> str:
    return f"\\u{ord(awkward[0]):04x}"


def payload(text: Text) -> str:
    """Return a key or value as JSON on one line: the value itself if it is JSON, else a JSON string."""
    if text.encoding == "json":  # newlines can be only between JSON tokens
        return harmless_json(text.text.replace("\n", " ").replace("\r", " "))
    return quote(text.text)


def content(column: Column, data: bytes, encoding: Encoding) -> str:
    """Return a key or value as a JSON value. Unless it is utf8, a field with the encoding follows."""
    text = to_text(data, encoding)
    shown = payload(text)
    return shown if text.encoding is None else f'{shown},"{_ENCODING_OF[column.name]}":"{text.encoding}"'


def payload_in_pieces(data: bytes, encoding: Encoding, mark: str, before: str = "") -> Iterator[str]:
    """Yield :func:`payload` in pieces, then ``before``. Unless the text is utf8, add its encoding as field ``mark``."""
    from kdump.rows.pieces import to_pieces

    pieces = to_pieces(data, encoding)
    if pieces.encoding == "json":
        for text in pieces.texts():
            yield payload(Text(text, "json"))
    else:
        yield '"'
        for text in pieces.texts():
            yield quote(text)[1:-1]
        yield '"'
    yield before if pieces.encoding is None else f'{before},"{mark}":"{pieces.encoding}"'


def plain(column: Column, value: object) -> str:
    """Return a JSON value as the text of a cell: texts without quotes, other values as JSON."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else scalar(column, value)


def scalar(column: Column, value: object) -> str:
    """Return the JSON of a value that is neither a payload nor headers."""
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if column.type == "json":
        shown = harmless_json(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
        return shown if shown.isascii() else shown.encode("utf-8", "backslashreplace").decode()  # lone surrogates
    if column.type == "timestamp":
        text = timestamps.iso(value)  # type: ignore[arg-type]  # such columns hold ms
        return "null" if text is None else f'"{text}"'
    if column.type == "timestampType":
        return f'"{TIMESTAMP_TYPES[value]}"'  # type: ignore[index]  # such columns hold 0, 1 or None
    if column.type == "codec":
        return f'"{compression.NAMES[value]}"'  # type: ignore[call-overload]  # such columns hold a codec's id
    return str(value) if isinstance(value, int) else quote(path_text(str(value)))


def headers(pairs: Iterable[Header], encoding: Encoding) -> str:
    return f"[{','.join([_header(pair, encoding) for pair in pairs])}]"


def _header(pair: Header, encoding: Encoding) -> str:
    key = to_text(pair.key, "auto")
    marks = "" if key.encoding is None else f',"keyEncoding":"{key.encoding}"'
    if pair.value is None:
        shown = "null"
    else:
        value = to_text(pair.value, encoding)
        shown = payload(value)
        if value.encoding is not None:
            marks += f',"encoding":"{value.encoding}"'
    return f'{{"key":{quote(key.text)},"value":{shown}{marks}}}'


def headers_in_pieces(pairs: Iterable[Header], encoding: Encoding) -> Iterator[str]:
    """Like :func:`headers`, but in pieces, for a large record. A piece may have many small headers."""
    yield "["
    gathered: list[str] = []
    comma = ""
    for pair in pairs:
        if len(pair.key) + len(pair.value or b"") < LARGE:
            gathered.append(comma + _header(pair, encoding))
        else:
            yield "".join(gathered)
            gathered.clear()
            yield f'{comma}{{"key":'
            yield from _large_header(pair, encoding)
        comma = ","
        if len(gathered) == _GATHERED:
            yield "".join(gathered)
            gathered.clear()
    yield "".join(gathered) + "]"


def _large_header(pair: Header, encoding: Encoding) -> Iterator[str]:
    from kdump.rows.pieces import to_pieces

    key = to_pieces(pair.key, "auto")
    yield '"'
    for text in key.texts():
        yield quote(text)[1:-1]
    yield '","value":'
    mark = "" if key.encoding is None else f',"keyEncoding":"{key.encoding}"'
    if pair.value is None:
        yield f"null{mark}"
    else:
        yield from payload_in_pieces(pair.value, encoding, "encoding", mark)
    yield "}"


class JsonShape:
    """Makes lines with ``columns``: call :meth:`parts` once per batch, and :func:`render` for each record."""

    def __init__(self, columns: Sequence[Column], encoding: Encoding = "auto") -> None:
        self.columns = [column for column in columns if column.source not in PAYLOAD_OF]
        """The columns without those that are written together with the key or value."""
        self.encoding = encoding

    def parts(self, batch: SelectedBatch) -> list[Part]:
        """Return the parts of a line: texts that all records of the batch share, and functions record -> text."""
        parts: list[Part] = []
        for column in self.columns:
            part = self._part(column, batch)
            if isinstance(part, str) and parts and isinstance(parts[-1], str):
                parts[-1] += part
            else:
                parts.append(part)
        return parts

    def constant(self, column: Column, batch: SelectedBatch) -> str:
        """Return a comma, and the name and value of a column that all records share; empty for an optional null."""
        value = values.constant(column, batch)
        return "" if column.optional and value is None else f",{quote(column.name)}:{scalar(column, value)}"

    def _part(self, column: Column, batch: SelectedBatch) -> Part:
        if values.is_constant(column, batch):
            return self.constant(column, batch)
        prefix = f",{quote(column.name)}:"
        get = values.source(column)
        encoding = self.encoding
        if column.type == "binary":

            def write_payload(record: Record) -> str:
                data: bytes | None = get(batch, record)  # type: ignore[assignment]  # the column is of bytes
                return prefix + ("null" if data is None else content(column, data, encoding))

            return write_payload
        if column.type == "headers":
            empty = prefix + "[]"
            return lambda record: prefix + headers(record.headers, encoding) if record.headers else empty
        if column.optional:
            return lambda record: "" if (value := get(batch, record)) is None else prefix + scalar(column, value)
        if column.type in {"long", "int"}:
            return lambda record: f"{prefix}{'null' if (value := get(batch, record)) is None else value}"
        return lambda record: prefix + scalar(column, get(batch, record))

    def pieces(self, item: SelectedBatch, record: Record) -> Iterator[str]:
        before = "{"
        for column in self.columns:
            if column.type == "binary" and (data := values.value(column, item, record)) is not None:
                yield f'{before}"{column.name}":'
                yield from payload_in_pieces(data, self.encoding, _ENCODING_OF[column.name])  # type: ignore[arg-type]  # of bytes
            elif column.type == "headers":
                yield f'{before}"{column.name}":'
                yield from headers_in_pieces(record.headers, self.encoding)
            else:
                part = self._part(column, item)
                text = part if isinstance(part, str) else part(record)
                if not text:
                    continue
                yield before + text[1:]
            before = ","
        yield "}\n"

    def whole(self, item: SelectedBatch | DamagedRange) -> str:
        out = []
        for column in self.columns:
            value = values.value(column, item)
            if value is not None or not column.optional:
                out.append(f",{quote(column.name)}:{scalar(column, value)}")
        return f"{{{''.join(out)[1:]}}}\n"


def render(parts: Sequence[Part], record: Record) -> str:
    line = "".join([part if isinstance(part, str) else part(record) for part in parts])
    return f"{{{line[1:]}}}\n"
