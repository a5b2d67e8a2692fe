"""Converts large payloads to text in pieces, with the same text as :func:`kdump.primitives.encodings.to_text`."""

from __future__ import annotations

import codecs
from binascii import b2a_base64
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump import kernel
from kdump.primitives.encodings import is_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kdump.primitives.encodings import Encoding
    from kdump.primitives.wire import Bytes
if kernel.COMPILED:
    from kdump.kernel import texts

PIECE: Final = 3 << 14
"""Number of bytes of a piece: a multiple of three, because of base64."""


class Pieces(NamedTuple):
    """A text in pieces, and its encoding; None means utf8. Each call of :attr:`texts` yields all pieces."""

    texts: Callable[[], Iterator[str]]
    encoding: str | None


def to_pieces(data: Bytes, encoding: Encoding) -> Pieces:
    """Return ``data`` as pieces of text in one of the encodings of :func:`kdump.primitives.encodings.to_text`."""
    if encoding == "hex":
        return Pieces(lambda: (bytes(part).hex() for part in parts(data)), "hex")
    if encoding == "utf8":
        return Pieces(lambda: decoded(data, "replace"), None)
    if encoding == "base64" or not is_utf8(data):
        return Pieces(lambda: (b2a_base64(part, newline=False).decode() for part in parts(data)), "base64")
    return Pieces(lambda: decoded(data), "json" if encoding == "json" and _is_json(data) else None)


def decoded(data: Bytes, errors: str = "strict") -> Iterator[str]:
    """Yield the text of UTF-8 bytes in pieces. Raises UnicodeDecodeError like ``bytes.decode``."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors)
    for part in parts(data):
        yield decoder.decode(part)
    yield decoder.decode(b"", final=True)


def is_utf8(data: Bytes) -> bool:
    try:
        for _ in decoded(data):
            pass
    except UnicodeDecodeError:
        return False
    return True


def _is_json(data: Bytes) -> bool:
    """Return whether UTF-8 text is one JSON value. Compiled code, if it can decide, needs no copy of the text."""
    found = texts.is_json(data) if kernel.COMPILED else -1
    return bool(found) if found >= 0 else is_json(bytes(data).decode())


def parts(data: Bytes) -> Iterator[memoryview]:
    view = memoryview(data)
    for at in range(0, len(view), PIECE):
        yield view[at : at + PIECE]
