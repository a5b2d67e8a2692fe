"""Escapes text: names from files must not control a terminal, and printed commands must work when pasted.

``shell_word``, ``shell_path``, ``shell_pattern`` and ``shell_text`` quote names and values in printed commands. Other
functions match names, print lines, and return the width and the colours of the terminal.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import cache
from typing import IO, Final

BEYOND_ASCII: Final = "\x80-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f"
"""Control characters beyond ASCII: C1, line separators, writing direction; the same as in ``lines.pyx``."""
_CONTROL: Final = f"[\x00-\x08\x0b-\x1f\x7f{BEYOND_ASCII}]"
_HALVES: Final = "[\ud800-\udc7f\udd00-\udfff]"
"""Single halves of surrogate pairs, as in JSON, without the halves that stand for bytes of a path (PEP 383)."""
_UNSHOWN: Final = rf"(?:[\x00-\x1f\x7f{BEYOND_ASCII}\ud800-\udfff]|\\x[89a-f][0-9a-f])+"
"""Characters in a path that cannot be typed, and their escapes by :func:`path_text`."""


def path_text(path: str) -> str:
    """Return a path as text. Bytes that are not UTF-8, and single halves of surrogate pairs, are escaped."""
    if path.isascii():
        return path
    whole = re.sub(_HALVES, lambda half: f"\\u{ord(half[0]):04x}", path)
    return whole.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def harmless(text: str) -> str:
    """Return ``text`` with control characters escaped, except tab and newline."""
    return text.translate(_escapes()) if re.search(_CONTROL, text) else text


@cache
def _escapes() -> dict[int, str]:
    found = re.findall(_CONTROL, "".join(map(chr, range(0x2100))))
    return {ord(one): f"\\x{ord(one):02x}" if ord(one) < 256 else f"\\u{ord(one):04x}" for one in found}


def harmless_line(text: str) -> str:
    """Return ``text`` as one line, with control characters (except tabs) and bytes that are not UTF-8 escaped."""
    if text.isascii() and text.isprintable():  # ten times as fast for most texts
        return text
    return harmless(path_text(text)).replace("\n", "\\x0a")


def is_selected(name: str, wanted: str) -> bool:
    """Return whether the glob ``wanted`` matches a name, either as stored or as printed with escapes."""
    if fnmatchcase(name, wanted):
        return True
    if name.isascii() and name.isprintable():
        return False
    return fnmatchcase(path_text(name), wanted) or fnmatchcase(harmless_line(name), wanted)


def print_line(text: object) -> None:
    """Print a line with the prefix ``kdump:`` to standard error, between lines of other programs such as Spark."""
    print(f"kdump: {harmless_line(str(text))}", file=sys.stderr, flush=True)


def terminal_width() -> int:
    """Return the number of columns: the variable COLUMNS, else the width of a standard stream's terminal, else 80."""
    named = os.environ.get("COLUMNS", "")
    if named.isascii() and named.isdigit() and int(named):
        return int(named)
    for descriptor in (0, 2, 1):  # the last two may be pipes to a pager
        with suppress(OSError):
            if (columns := os.get_terminal_size(descriptor).columns) > 0:
                return columns
    return 80


MEASURE: Final = 72
"""Maximum width of a line of prose, in columns."""


def prose_width() -> int:
    return min(terminal_width(), MEASURE)


PAGED: Final[set[int]] = set()
"""The descriptors of standard streams that are connected to a terminal through a pager."""


def on_terminal(out: IO[str], descriptor: int) -> bool:
    """Return whether a standard stream is a terminal, or a pager on a terminal."""
    return out.isatty() or descriptor in PAGED


def has_colours(out: IO[str], descriptor: int) -> bool:
    """Return whether a standard stream is a terminal with colours and ``NO_COLOR`` is not set."""
    return (
        on_terminal(out, descriptor)
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM", "") not in {"", "dumb"}
    )


def shell_path(path: str) -> str:
    """Return :func:`shell_word` of a path. A leading dash, except in ``-``, gets ``./``, as options begin with it."""
    return shell_word(f"./{path}" if path.startswith("-") and path != "-" else path)


def shell_word(text: str) -> str:
    """Return a text quoted for a shell.

    A text with control characters or bytes that are not UTF-8 becomes a glob: ``*`` replaces these and all wildcards.
    The shell or kdump expands the glob to the file's name, and to other names that match.
    """
    from shlex import quote

    if not re.search(_UNSHOWN, text):
        return quote(text)
    parts = re.split(rf"(?:{_UNSHOWN}|[*?\[])+", text)  # kdump's globs have no quoting
    return "*".join(quote(part) if part else "" for part in parts)


def shell_pattern(name: str) -> str:
    """Return a name, such as a topic, quoted for a shell. With unprintable characters it becomes a glob."""
    from shlex import quote

    if re.search(_UNSHOWN, name):
        name = re.sub(_UNSHOWN, "*", re.sub(r"[*?\[]", r"[\g<0>]", name))
    return quote(name)


def shell_text(text: str) -> str:
    """Return a text quoted for a shell. Control characters need ``$'...'``, which bash, zsh and ksh read."""
    from shlex import quote

    if harmless_line(text) == text:
        return quote(text)
    return "$'" + re.sub(rf"[\\']|{_UNSHOWN}", _ansi_c, text) + "'"


def _ansi_c(found: re.Match[str]) -> str:
    return "".join(
        f"\\{letter}"
        if letter in "\\'"
        else f"\\x{ord(letter) & 0xFF:02x}"
        if letter < "\x80" or "\ud800" <= letter <= "\udfff"
        else f"\\u{ord(letter):04x}"
        for letter in found[0]
    )
