"""Search in keys and values: regular expressions in linear time, and decoded payloads.

In Python's ``re``, ``\\w+@`` takes quadratic time and ``(a+)+b`` exponential time. RE2 (google-re2) takes linear time,
and searches all expressions with the same meaning in both. ``re`` searches the others. They have references to groups,
lookahead or lookbehind, atomic groups, possessive or over 1,000 repetitions. Or they have flags other than ``(?s)`` and
``(?m)``, ``\\Z``, or a ``$`` that is not at the end.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection

    from kdump.formats.record import Record
    from kdump.primitives.wire import Bytes
    from kdump.schemas.decoder import PayloadDecoder
    from kdump.schemas.framing import Side

    class Match(Protocol):
        def start(self) -> int: ...

    class Expression(Protocol):
        def search(self, text: Bytes, pos: int = ..., endpos: int = ..., /) -> Match | None: ...


_PART: Final = re.compile(
    rb"(?P<escape>\\.)|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<group>\((?!\?)|\(\?(?::|P<\w+>))|(?P<flags>\(\?[a-zA-Z-]*\)?)"
    rb"|(?P<repeat>(?:[*+?]|\{\d*,?\d*\})(?P<more>[+?]?))|(?P<end>\$)|(?P<other>.)",
    re.DOTALL,
)
_SAME_ESCAPES: Final = rb"\\(?:[dDwWbBAafnrtv]|x[0-9a-fA-F]{2}|[^a-zA-Z0-9])"
_SPACES: Final = rb"\t-\r "
"""The bytes of ``\\s``. RE2's ``\\s`` lacks the vertical tab."""


@lru_cache(maxsize=64)
def linear(pattern: re.Pattern[bytes]) -> Expression | None:
    """Return an expression compiled by RE2; None if RE2 is not installed or may match other texts than ``re``."""
    text = _translated(pattern)
    if text is None:
        return None
    try:
        import re2  # needed only with --grep
    except ImportError:
        return None
    options = re2.Options()
    options.encoding, options.log_errors = re2.Options.Encoding.LATIN1, False
    try:
        made: Expression = re2.compile(text, options)
    except re2.error:
        return None
    return made


def search(pattern: re.Pattern[bytes], text: bytes) -> bool:
    return (linear(pattern) or pattern).search(text) is not None


def _translated(pattern: re.Pattern[bytes]) -> bytes | None:
    """Return an expression in the syntax of RE2, or None if RE2 has no expression with the same meaning."""
    if pattern.flags & ~(re.DOTALL | re.MULTILINE):
        return None
    source, out = pattern.pattern, []
    for part in _PART.finditer(source):
        made: bytes | None = part[0]
        if part["escape"]:
            made = _escape(source[part.start() : part.start() + 4], part[0])
        elif part["set"]:
            made = _set(part[0])
        elif part["flags"]:
            made = part[0] if re.fullmatch(rb"\(\?[sm]+\)", part[0]) and not part.start() else None
        elif part["repeat"]:
            made = None if part["more"] == b"+" else part[0]
        elif part["end"] and not pattern.flags & re.MULTILINE:
            made = rb"\n?\z" if part.end() == len(source) else None
        if made is None:
            return None
        out.append(made)
    flags = b"".join(letter for flag, letter in ((re.DOTALL, b"s"), (re.MULTILINE, b"m")) if pattern.flags & flag)
    return (b"(?%b)" % flags if flags else b"") + b"".join(out)


def _escape(source: bytes, escape: bytes) -> bytes | None:
    if escape in {rb"\s", rb"\S"}:
        return b"[" + (b"^" if escape == rb"\S" else b"") + _SPACES + b"]"
    if escape == rb"\x":  # its two digits are the next matches
        return escape if re.fullmatch(rb"\\x[0-9a-fA-F]{2}", source) else None
    return escape if re.fullmatch(_SAME_ESCAPES, escape) else None


def _set(source: bytes) -> bytes | None:
    if b"[" in source[1:] or rb"\S" in source or rb"\b" in source:  # [: is a class for RE2, \b a backspace for re
        return None
    for escape in re.findall(rb"\\x[0-9a-fA-F]{2}|\\.", source, re.DOTALL):
        if escape != rb"\s" and not re.fullmatch(_SAME_ESCAPES, escape):
            return None
    return source.replace(rb"\s", _SPACES) if rb"\\" not in source else (None if rb"\s" in source else source)


_SIDES: Final[tuple[Literal["key", "value"], ...]] = ("key", "value")


class DecodedSearch:
    """Returns the decoded keys and values of a topic's records as compact JSON texts (of their ``data``).

    A key or value that has no schema or cannot be decoded has no text.
    """

    def __init__(self, decoder: PayloadDecoder, topic: str) -> None:
        self._decoder, self._topic = decoder, topic

    def keys(self, record: Record) -> frozenset[bytes]:
        """Return the values of --key that select the record: its key as JSON, and for a string also without quotes."""
        side = self._side("key", record)
        if side is None:
            return frozenset()
        found = {self._text(side)}
        if isinstance(side, str):
            found.add(side.encode("utf-8", "surrogatepass"))
        return frozenset(found)

    def texts(self, record: Record, parts: Collection[str] = ("key", "value")) -> tuple[bytes, ...]:
        """Return the JSON texts of the record's key and value, if ``parts`` names them."""
        sides = [self._side(side, record) for side in _SIDES if side in parts]
        return tuple(self._text(side) for side in sides if side is not None)

    def _side(self, side: Side, record: Record) -> object:
        payload = record.key if side == "key" else record.value
        found = self._decoder.side(self._topic, side, payload, record.headers)
        return None if found is None else found.get("data")

    @staticmethod
    def _text(data: object) -> bytes:
        import json  # few runs decode

        return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
