"""Text as Java makes it of bytes."""

from __future__ import annotations

import re

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


def java_text(data: bytes) -> bytes:
    """Return what Java prints in UTF-8 for ``new String(data, UTF_8)``: the bytes themselves when they are valid."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return java_utf8(data).encode()
    return data


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
    return harmless(path_text(text)).replace("\n", "\\x0a")


def harmless_bytes(data: bytes) -> bytes:
    """The same for bytes that are mostly UTF-8."""
    return re.sub(_CONTROL_BYTES, lambda found: b"\\x%02x" % found[0][-1], data)
