"""Colours of dumped lines on a terminal: JSON as in jq, matches in keys and values as in grep, JSON damage in red."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Paint = Callable[[bytes], bytes]
    """Returns a line with colours; the line has no line end."""

NAME, TEXT, WORD, MATCH, DAMAGE = b"34;1", b"32", b"90", b"31;1", b"31;1"
"""SGR parameters of colours (ECMA-48)."""
_TOKEN: Final = re.compile(rb'("(?:[^"\\]|\\.)*")(:)?|\b(?:true|false|null)\b')
_DAMAGE: Final = b'{"kind":"damage"'
_PAYLOAD: Final = re.compile(rb" (?:key|payload): ")
_SEARCHED: Final = {b'"key"', b'"value"'}


def are_wanted(when: str, *, terminal: bool) -> bool:
    """Return whether to use colours: ``always``, ``never`` or ``auto`` (on a terminal, not dumb, without NO_COLOR)."""
    if when == "auto":
        return terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return when == "always"


def painter(ending: str, searched: Sequence[re.Pattern[bytes]]) -> Paint | None:
    """Return a function that colours a line: ``jsonl`` (numbers stay plain), or matches in ``text``; else None."""
    if ending == "jsonl":
        return lambda line: _json(line, searched)
    if ending == "text" and searched:
        return lambda line: _text(line, searched)
    return None


def _in(colour: bytes, text: bytes) -> bytes:
    return b"\x1b[%sm%s\x1b[m" % (colour, text) if colour and text else text


def _marked(text: bytes, searched: Sequence[re.Pattern[bytes]], around: bytes = b"") -> bytes:
    """Return a text with coloured matches; ``around`` is the colour of the text between them."""
    parts, done = [], 0
    for start, end in sorted(match.span() for one in searched for match in one.finditer(text)):
        if end > max(start, done):
            start = max(start, done)
            parts += [_in(around, text[done:start]), _in(MATCH, text[start:end])]
            done = end
    return b"".join([*parts, _in(around, text[done:])])


def _text(line: bytes, searched: Sequence[re.Pattern[bytes]]) -> bytes:
    start = _PAYLOAD.search(line)
    return line if start is None else line[: start.end()] + _marked(line[start.end() :], searched)


def _json(line: bytes, searched: Sequence[re.Pattern[bytes]]) -> bytes:
    if line.startswith(_DAMAGE):
        return _in(DAMAGE, line)
    name = b""

    def token(match: re.Match[bytes]) -> bytes:
        nonlocal name
        text, colon = match[1], match[2]
        if text is None:
            return _in(WORD, match[0])
        if colon:
            name = text
            return _in(NAME, text) + colon
        return _marked(text, searched if name in _SEARCHED else (), TEXT)

    return _TOKEN.sub(token, line)
