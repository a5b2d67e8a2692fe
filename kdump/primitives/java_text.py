"""Text as Java makes it of bytes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# Patterns are compiled when they are first used: start-up cost is a feature.
# A surrogate in UTF-8 is malformed. Java reports it once, with the last byte if that continues the sequence; Python
# would report each byte.
_SURROGATE = rb"\xed[\xa0-\xbf][\x80-\xbf]?"
_REPLACEMENT = "\ufffd".encode()


def java_utf8(data: bytes) -> str:
    """Decode as ``new String(data, UTF_8)`` of Java 17 does: U+FFFD for each malformed part."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return re.sub(_SURROGATE, _REPLACEMENT, data).decode(errors="replace")


def java_text_in_pieces(data: bytes, size: int) -> Iterator[bytes]:
    """Like :func:`java_text`, but yield pieces of about ``size`` bytes."""
    from codecs import getincrementaldecoder  # for large payloads alone

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
    """Return Java's UTF-8 output for ``new String(data, UTF_8)``: the bytes themselves when they are valid."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return java_utf8(data).encode()
    return data
