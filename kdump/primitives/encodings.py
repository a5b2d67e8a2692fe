"""Converts bytes to text in the encodings that a user can select, and reads UTF-8 and numbers as Java does."""

from __future__ import annotations

import re
from binascii import b2a_base64
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, NoReturn, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

Encoding: TypeAlias = Literal["auto", "utf8", "hex", "base64", "json"]
ENCODINGS: Final[tuple[Encoding, ...]] = ("auto", "utf8", "hex", "base64", "json")
# A surrogate in UTF-8 is malformed. Java replaces the whole sequence by one U+FFFD, Python replaces each byte.
_SURROGATE = rb"\xed[\xa0-\xbf][\x80-\xbf]?"
_REPLACEMENT = "\ufffd".encode()
_LONE_ESCAPE: Final = (
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F]"
)

JAVA_SPACES: Final = " \t\n\v\f\r"
"""The white space ``\\s`` of Java's regular expressions, which is ASCII only."""
_TRIMMED: Final = "".join(map(chr, range(33)))
_LONGEST_PLAIN: Final = 20
_INTEGER: Final = r"(?P<sign>[+-]?)(?=\d)0*+(?P<digits>\d{0,255})"


class Text(NamedTuple):
    """Bytes as text. ``encoding`` of ``text``: hex, base64, json; None for utf8, also if it has U+FFFD inserted."""

    text: str
    encoding: str | None


def java_integer(text: str, bits: int) -> int | None:
    """Return the result of ``Integer.parseInt`` (32 bits) or ``Long.parseLong`` (64), or None if Java throws.

    Java accepts a sign, and digits of all scripts up to U+FFFF, but neither ``_`` nor white space.
    """
    if len(text) <= _LONGEST_PLAIN and text.isascii() and text.isdecimal():
        number = int(text)
        return number if number.bit_length() < bits else None
    found = re.fullmatch(_INTEGER, text)
    if found is None or max(text) > "\uffff":  # a Java char has 16 bits
        return None
    number = int(found["sign"] + (found["digits"] or "0"))
    return number if -(1 << bits - 1) <= number < 1 << bits - 1 else None


def java_config_integer(text: str, bits: int) -> int | None:
    """Return the number in a config's value as Java parses it, or None if Java throws (``ConfigDef.parseType``)."""
    return java_integer(java_trim(text), bits)


def java_config_is_true(text: str) -> bool:
    """Return whether Java reads a config's value as true (``ConfigDef.parseType``)."""
    return java_trim(text).lower() == "true"


def java_trim(text: str) -> str:
    """Return the result of ``String.trim``, which removes only characters up to U+0020."""
    return text.strip(_TRIMMED)


def to_text(data: bytes, encoding: Encoding) -> Text:
    """Return ``data`` as text. For malformed UTF-8, ``utf8`` inserts U+FFFD; ``auto`` and ``json`` return base64.

    With ``json``, a text that is one JSON value gets the encoding ``json``.
    """
    if encoding == "hex":
        return Text(data.hex(), "hex")
    if encoding == "base64":
        return Text(b2a_base64(data, newline=False).decode(), "base64")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        if encoding == "utf8":
            return Text(data.decode(errors="replace"), None)
        return Text(b2a_base64(data, newline=False).decode(), "base64")
    if encoding == "json" and is_json(text):
        return Text(text, "json")
    return Text(text, None)


def _no_number(word: str) -> NoReturn:
    raise ValueError(word)


def is_json(text: str) -> bool:
    """Return whether Python reads a text as one JSON value (RFC 8259). NaN, Infinity, lone surrogates are refused."""
    import json

    try:
        json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return False
    return not re.search(_LONE_ESCAPE, text.replace(r"\\", "--") if r"\\" in text else text)


def java_utf8(data: bytes) -> str:
    """Return ``new String(data, UTF_8)`` of Java 17: U+FFFD replaces each malformed part."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return re.sub(_SURROGATE, _REPLACEMENT, data).decode(errors="replace")


def java_text_in_pieces(data: bytes, size: int) -> Iterator[bytes]:
    """Yield the result of :func:`java_text` in pieces, each of about ``size`` bytes of ``data``."""
    from codecs import getincrementaldecoder

    decoder = getincrementaldecoder("utf-8")("replace")
    begun = b""
    for at in range(0, len(data), size):
        piece = begun + data[at : at + size]
        found = re.search(rb"\xed[\xa0-\xbf]?\Z", piece)
        begun = b"" if found is None else found[0]
        piece = piece[: len(piece) - len(begun)]
        yield decoder.decode(re.sub(_SURROGATE, _REPLACEMENT, piece)).encode()
    yield decoder.decode(re.sub(_SURROGATE, _REPLACEMENT, begun), final=True).encode()


def java_text(data: bytes) -> bytes:
    try:
        data.decode()
    except UnicodeDecodeError:
        return java_utf8(data).encode()
    return data
