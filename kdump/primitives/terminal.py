"""Text as Java makes it of bytes."""

from __future__ import annotations

import re


def path_text(path: str) -> str:
    """Return a path as text: bytes of it that are not UTF-8 are escaped."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


_CONTROL = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
_CONTROL_BYTES = rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]"


def harmless(text: str) -> str:
    """Return ``text`` with the characters escaped that make a terminal do something; tab and newline stay."""
    return re.sub(
        _CONTROL, lambda found: f"\\x{ord(found[0]):02x}" if ord(found[0]) < 256 else f"\\u{ord(found[0]):04x}", text
    )


def harmless_line(text: str) -> str:
    """The same for one line: names of files may hold newlines, and bytes that are not UTF-8."""
    if text.isascii() and text.isprintable():  # most are, and it is ten times as fast
        return text
    return harmless(path_text(text)).replace("\n", "\\x0a")


def harmless_bytes(data: bytes) -> bytes:
    """The same for bytes that are mostly UTF-8."""
    return re.sub(_CONTROL_BYTES, lambda found: b"\\x%02x" % found[0][-1], data)
