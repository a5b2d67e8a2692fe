"""The output formats ``raw`` (only values) and ``format`` (lines made from a format string, as in kcat)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kdump.formats.record import Header, Record
    from kdump.rows.selection import SelectedBatch


class Letter(NamedTuple):
    """A letter of a format string, and the function that returns the bytes of its field."""

    letter: str
    write: Callable[[SelectedBatch, Record], bytes]


def raw(delimiter: str) -> list[bytes | Letter]:
    """Return the template of the format ``raw``: a value (empty for null), followed by ``delimiter``."""
    return [Letter("s", FIELDS["s"]), unescape(delimiter)]


def _text(value: object) -> bytes:
    return b"" if value is None else str(value).encode("utf-8", "surrogateescape")


def _size(data: bytes | None) -> bytes:
    return b"-1" if data is None else b"%d" % len(data)


def headers(pairs: Sequence[Header]) -> bytes:
    """Return headers as kcat writes them: key=value, separated by commas."""
    return b",".join(pair.key + b"=" + (b"NULL" if pair.value is None else pair.value) for pair in pairs)


FIELDS: Final[dict[str, Callable[[SelectedBatch, Record], bytes]]] = {
    "t": lambda item, _: _text(item.file.topic),
    "p": lambda item, _: _text(item.file.partition),
    "o": lambda _, record: b"%d" % record.offset,
    "T": lambda _, record: b"%d" % record.timestamp,
    "k": lambda _, record: record.key or b"",
    "s": lambda _, record: record.value or b"",
    "h": lambda _, record: headers(record.headers),
    "K": lambda _, record: _size(record.key),
    "S": lambda _, record: _size(record.value),
    "R": lambda _, record: (-1 if record.value is None else len(record.value)).to_bytes(4, "big", signed=True),
    "%": lambda _, __: b"%",
}
"""The letters of kcat's ``-f``: ``%S`` and ``%K`` are sizes (-1 for null), ``%R`` the value's size in 4 bytes."""

_ESCAPES: Final = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\"}
_ESCAPE: Final = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|(.))", re.DOTALL)


def unescape(text: str) -> bytes:
    r"""Return ``text`` as bytes with ``\n \r \t \0 \\ \xNN`` replaced. Raises UsageError for other escapes."""
    out, end = b"", 0
    for escape in _ESCAPE.finditer(text):
        out += text[end : escape.start()].encode()
        end = escape.end()
        if escape[1]:
            out += bytes([int(escape[1], 16)])
        elif escape[2] in _ESCAPES:
            out += _ESCAPES[escape[2]]
        else:
            raise UsageError(rf"{escape[0]!r} is not an escape: write \n, \r, \t, \0, \\ or \xNN")
    return out + text[end:].encode()


def parse(text: str) -> list[bytes | Letter]:
    """Return a format string as bytes and letters. Raises UsageError for a letter not in FIELDS, or a wrong escape."""
    parts: list[bytes | Letter] = []
    for literal, letter in re.findall(r"([^%]+)|%(.?)", text, re.DOTALL):
        if literal:
            parts.append(unescape(literal))
        elif letter in FIELDS:
            parts.append(Letter(letter, FIELDS[letter]))
        else:
            known = " ".join(f"%{name}" for name in FIELDS)
            raise UsageError(f"'%{letter}' is not a field of a format: write one of {known}")
    return parts
