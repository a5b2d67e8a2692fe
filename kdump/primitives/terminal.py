"""Text that people see: nothing in it steers a terminal, and the commands in it can be pasted into a shell.

Every word of a command line that a message suggests goes through ``shell_word`` or one of its kind.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from typing import IO, Final

BEYOND_ASCII: Final = "\x80-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f"
"""Characters beyond ASCII that a terminal obeys: C1, line separators, marks and controls of the writing direction.

As a set of a regular expression. ``_is_harmless`` of the kernel (``lines.pyx``) knows them too.
"""
_CONTROL: Final = f"[\x00-\x08\x0b-\x1f\x7f{BEYOND_ASCII}]"
_UNSHOWN: Final = rf"(?:[\x00-\x1f\x7f{BEYOND_ASCII}\ud800-\udfff]|\\x[89a-f][0-9a-f])+"
"""Characters in a path that cannot be typed; :func:`path_text` may have escaped them."""


def path_text(path: str) -> str:
    """Return a path as text: bytes of it that are not UTF-8 are escaped."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


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


def say(text: object) -> None:
    """Print a line of kdump amid those of other programs, such as Spark's log, to standard error."""
    print(f"kdump: {harmless_line(str(text))}", file=sys.stderr, flush=True)


def terminal_width() -> int:
    """Return the columns of the terminal: those of COLUMNS, else of the first standard stream on one; 80 without."""
    named = os.environ.get("COLUMNS", "")
    if named.isascii() and named.isdigit() and int(named):
        return int(named)
    for descriptor in (0, 2, 1):  # a pager may stand in the place of the last two
        with suppress(OSError):
            if (columns := os.get_terminal_size(descriptor).columns) > 0:
                return columns
    return 80


MEASURE: Final = 72
"""Columns of sentences, as in a book. A terminal of 60 columns takes at most 1.2 times the lines."""


def prose_width() -> int:
    """Return the columns of sentences on the terminal."""
    return min(terminal_width(), MEASURE)


PAGED: Final[set[int]] = set()
"""The descriptors of standard streams that lead to a terminal through a pager."""


def on_terminal(out: IO[str], descriptor: int) -> bool:
    """Return whether a standard stream goes to a terminal, directly or through a pager."""
    return out.isatty() or descriptor in PAGED


def has_colours(out: IO[str], descriptor: int) -> bool:
    """Return whether such a terminal has colours, which ``NO_COLOR`` turns off."""
    return (
        on_terminal(out, descriptor)
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM", "") not in {"", "dumb"}
    )


def shell_path(path: str) -> str:
    """Return a path as a word of a shell's command line, which is no option. See :func:`shell_word`."""
    return shell_word(f"./{path}" if path.startswith("-") and path != "-" else path)


def shell_word(text: str) -> str:
    """Return a text as a word of a shell's command line; ``*`` stands for what cannot be shown or typed.

    The shell, or kdump where it finds none, puts the name of the file in its place.
    """
    from shlex import quote  # which takes long to import, and few runs need it

    if not re.search(_UNSHOWN, text):
        return quote(text)
    parts = re.split(rf"(?:{_UNSHOWN}|[*?\[])+", text)  # a glob of kdump knows no quotes
    return "*".join(quote(part) if part else "" for part in parts)


def shell_pattern(name: str) -> str:
    """Return a name, such as a topic, quoted for a shell and for an option that takes a glob."""
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
