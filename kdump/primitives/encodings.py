"""Bytes as text: keys, values and header values in the encodings that the user may ask for."""

from __future__ import annotations

import re
from binascii import b2a_base64
from typing import Final, Literal, NamedTuple, NoReturn, TypeAlias

Encoding: TypeAlias = Literal["auto", "utf8", "hex", "base64", "json"]
ENCODINGS: Final[tuple[Encoding, ...]] = ("auto", "utf8", "hex", "base64", "json")


class Text(NamedTuple):
    """Bytes as text, and the encoding they are in: None stands for utf8."""

    text: str
    encoding: str | None


def to_text(data: bytes, encoding: Encoding) -> Text:
    """Return ``data`` as text. Only ``utf8`` loses something: what is not UTF-8 becomes U+FFFD.

    ``auto`` and ``json`` take base64 for what is not UTF-8. ``json`` marks what is one JSON value as such.
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
    """Return whether a text is one JSON value (RFC 8259): NaN, Infinity and halves of surrogate pairs are none."""
    import json  # for --encoding json alone

    try:
        json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return False
    return not _LONE_ESCAPE.search(text)


_LONE_ESCAPE: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F]"
)
