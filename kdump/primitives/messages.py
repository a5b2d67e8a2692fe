"""Prints kdump's messages on standard error, and suggests the right name for a misspelled one.

An ``error:`` reports damage or a failure, a ``warning:`` restricts the meaning of an answer, a ``hint:`` is the next
step. The caller sets the exit status, also for some warnings and notes. In a pipe or file each message and hint is one
line. On a terminal it is coloured and wrapped, and the path of a file at its start may be a link (OSC 8).
"""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from kdump.primitives.terminal import harmless_line, has_colours, on_terminal, prose_width

if TYPE_CHECKING:
    from collections.abc import Iterable

Level: TypeAlias = Literal["error", "warning", "note", "hint"]
STYLES: Final[dict[Level, bytes]] = {"error": b"1;31", "warning": b"1;33", "note": b"1;36", "hint": b"1;32"}
"""Level -> the SGR parameters of its colour."""
LEVEL: Final = rf"\A({'|'.join(STYLES)}): "
COMMANDS: Final = ("kdump ", "pip ", "mv ", "rm ", "sh ", "sudo ")
"""Prefixes of hints that are a command to paste. Their lines are never wrapped."""
INDENT: Final = 2
"""Spaces before the second and later lines of a message."""
_TOGETHER: Final = r"kdump [a-z-]+(?: (?:--?[a-z][\w-]*(?: [^-\s]\S*)?|[./~'\"]\S*|\S*[/@]\S*|[A-Z]+\b))*"
"""A command in a sentence, with its paths and options. It is not broken across lines."""
_PORTED: Final = "hdfs|viewfs|https?"
SCHEME: Final = rf"(?<![\w/.+-])(?:(?P<ported>{_PORTED})(?=:/)|(?!(?:{_PORTED}):)[a-z][a-z0-9+.-]+(?=:/))"
"""The scheme of a URI. The group ``ported`` matches schemes of URIs with a host and a port, ``NAME:DIGITS/``."""
_KEYS: Final = rf"({SCHEME}:/+)[^/\s@:]*:(?(ported)(?!\d+(?:/|\s|$)))[^\s@]{{0,300}}@(?:[^/\s@]*@)*"
"""A user and a password, or two keys, in the URI of a store. Messages leave them out."""
_QUOTED_KEYS: Final = r"('[a-z][a-z0-9+.-]*:/+)[^'/@:]*:[^'@]*@"
"""Like ``_KEYS``, in a URI that is quoted for a shell because it holds a space."""
_URI_OPTIONS: Final = (
    r"(\b[a-z][a-z0-9+.-]*://[^\s'?]*)\?[^\s'=]*(?:=[^\s']*[?&][^\s'=]*)?(?i:secret|sig|password|token|key|credential)"
    r"[\w-]*=[^\s']*?(?=:?(?:[\s']|$))"
)
"""The options of a URI if one of them is a secret, such as the signature of a signed URI. Messages leave them out."""
_PATH: Final = r"[\w./@%+,=-]*/[\w./@%+,=-]*[\w/]"
"""A path at the beginning of a message. Paths with other characters get no link."""
_NO_BREAK: Final = "\xa0"
_LINKING: Final = ("WT_SESSION", "KITTY_WINDOW_ID", "KONSOLE_VERSION", "DOMTERM", "ALACRITTY_WINDOW_ID")
"""Environment variables set by terminals that support links."""
_PROGRAMS: Final = frozenset({"iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "rio", "zed"})
"""Values of ``TERM_PROGRAM`` of terminals that support links."""
_VTE: Final = 5000
"""The first ``VTE_VERSION`` of terminals that support links."""


def message(level: Level, text: object, hint: str = "") -> None:
    """Write a message to standard error, and the hint below it. At the end of ``text``, `` (hint)`` is removed."""
    sys.stderr.write(_shown(level, printable(str(text).removesuffix(f" ({hint})" if hint else ""))))
    if hint:
        sys.stderr.write(_shown("hint", printable(hint)))
    sys.stderr.flush()


def printable(text: str) -> str:
    """Return a text as one line, with control characters escaped, and without the secrets that _KEYS etc. match."""
    shown = harmless_line(text)
    if ":/" not in shown:  # compiling the expressions takes 1 ms
        return shown
    for secret in (_KEYS, _QUOTED_KEYS, _URI_OPTIONS):
        shown = re.sub(secret, r"\1", shown, flags=re.IGNORECASE)
    return shown


def _shown(level: Level, text: str) -> str:
    if not on_terminal(sys.stderr, 2):
        return f"{level}: {text}\n"
    first, *others = folded(f"{level}: {text}", prose_width())
    if has_links() and (found := re.match(_PATH, text)) and first.startswith(f"{level}: {found[0]}"):
        first = f"{level}: {linked(found[0])}{first[len(level) + 2 + found.end() :]}"
    if has_colours(sys.stderr, 2):
        first = f"\x1b[{STYLES[level].decode()}m{level}\x1b[m{first[len(level) :]}"
    return "".join(f"{line}\n" for line in (first, *others))


def folded(text: str, width: int, *, indent: int = INDENT) -> list[str]:
    """Wrap a message into lines of ``width`` characters. Commands, and words longer than a line, are not broken."""
    if len(text) <= width or re.sub(LEVEL, "", text, count=1).startswith(COMMANDS):
        return [text]
    from textwrap import wrap

    whole = re.sub(_TOGETHER, lambda found: found[0].replace(" ", _NO_BREAK), text)
    whole = re.sub(LEVEL, rf"\1:{_NO_BREAK}", whole, count=1)
    lines = wrap(whole, width, subsequent_indent=" " * indent, break_on_hyphens=False, break_long_words=False)
    return [line.replace(_NO_BREAK, " ") for line in lines]


def linked(path: str) -> str:
    """Return a path as a terminal link; unchanged if the file does not exist or the path is not of the form _PATH."""
    if not re.fullmatch(_PATH, path) or not os.path.lexists(path):
        return path
    from socket import gethostname
    from urllib.parse import quote

    whole = os.path.abspath(path)  # noqa: PTH100  pathlib is slow to import
    return f"\x1b]8;;file://{quote(gethostname())}{quote(os.fsencode(whole))}\x1b\\{path}\x1b]8;;\x1b\\"


def has_links() -> bool:
    """Return whether standard error is a terminal that shows links. ``FORCE_HYPERLINK`` decides if set (0: no)."""
    forced = os.environ.get("FORCE_HYPERLINK")
    if forced is not None:
        return forced != "0" and sys.stderr.isatty()
    if not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return False
    vte = os.environ.get("VTE_VERSION", "")
    return (
        any(name in os.environ for name in _LINKING)
        or os.environ.get("TERM_PROGRAM") in _PROGRAMS
        or (vte.isascii() and vte.isdigit() and int(vte) >= _VTE)
    )


def did_you_mean(name: str, known: Iterable[str], start: str = "; did") -> str:
    """Return ``; did you mean 'txn'?`` if a known name is similar, else "". ``start`` is the text before "you"."""
    near = nearest(name, known)
    return "" if near is None else f"{start} you mean {near!r}?"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to ``name``; None if none is similar."""
    from difflib import get_close_matches

    names = sorted(known)
    alike = [other for other in names if other.lower() == name.lower()]
    return next(iter(alike or get_close_matches(name, names, 1)), None)
