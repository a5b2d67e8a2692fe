"""Search for regular expressions in time that grows with the text alone, whatever the expression.

Python's ``re`` tries every start and every way to repeat: ``\\w+@`` takes time that is quadratic in a value, ``(a+)+b``
exponential time. RE2 (google-re2) does not. It finds the same texts where both read an expression alike. These go to
``re``: references to groups, looking ahead and behind, atomic groups, possessive repetitions, flags other than ``(?s)``
and ``(?m)``, ``\\Z``, ``$`` anywhere but at the end, and more than 1,000 repetitions.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from kdump.primitives.wire import Bytes

    class Match(Protocol):
        """Where an expression was found."""

        def start(self) -> int: ...

    class Expression(Protocol):
        """An expression that can be looked for in a part of a text."""

        def search(self, text: Bytes, pos: int = ..., endpos: int = ..., /) -> Match | None: ...


_PART: Final = re.compile(
    rb"(?P<escape>\\.)|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<group>\((?!\?)|\(\?(?::|P<\w+>))|(?P<flags>\(\?[a-zA-Z-]*\)?)"
    rb"|(?P<repeat>(?:[*+?]|\{\d*,?\d*\})(?P<more>[+?]?))|(?P<end>\$)|(?P<other>.)",
    re.DOTALL,
)
_SAME_ESCAPES: Final = rb"\\(?:[dDwWbBAafnrtv]|x[0-9a-fA-F]{2}|[^a-zA-Z0-9])"
_SPACES: Final = rb"\t-\r "
"""What ``\\s`` stands for in bytes; RE2 leaves the vertical tab out."""


@lru_cache(maxsize=64)
def linear(pattern: re.Pattern[bytes]) -> Expression | None:
    """Return what RE2 makes of an expression; None where it is absent, or may find something else than ``re``."""
    text = _translated(pattern)
    if text is None:
        return None
    try:
        import re2  # needed with --grep alone
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
    """Tell whether a text holds a match."""
    return (linear(pattern) or pattern).search(text) is not None


def _translated(pattern: re.Pattern[bytes]) -> bytes | None:
    """Return an expression as RE2 reads it, None where it cannot mean the same."""
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
    if escape == rb"\x":  # its digits follow as letters
        return escape if re.fullmatch(rb"\\x[0-9a-fA-F]{2}", source) else None
    return escape if re.fullmatch(_SAME_ESCAPES, escape) else None


def _set(source: bytes) -> bytes | None:
    if b"[" in source[1:] or rb"\S" in source or rb"\b" in source:  # [: is a class for RE2, \b a backspace for re
        return None
    for escape in re.findall(rb"\\x[0-9a-fA-F]{2}|\\.", source, re.DOTALL):
        if escape != rb"\s" and not re.fullmatch(_SAME_ESCAPES, escape):
            return None
    return source.replace(rb"\s", _SPACES) if rb"\\" not in source else (None if rb"\s" in source else source)
