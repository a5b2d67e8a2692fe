"""What a wrong command line may have meant: loaded when there is one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import click

from kdump.primitives.patterns import Pattern
from kdump.primitives.terminal import shell_pattern, shell_word

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

MEANT: Final[dict[str, tuple[str, ...]]] = {
    "--from": ("--since",),
    "--to": ("--until",),
    "--max-messages": ("--limit",),
    "--format": ("--output",),
    "--time": ("--since", "--at"),
}
"""Options of other tools -> what says the same here; the first that a command has is suggested."""
OTHER_NAMES: Final = {
    "cat": "dump PATH",
    "consume": "dump PATH",
    "consumer-groups": "groups PATH",
    "fsck": "check PATH",
    "lag": "groups PATH",
    "ls": "du PATH",
    "repair": "salvage PATH --out FOLDER",
    "tail": "dump PATH --tail 10",
    "topics": "metadata PATH",
    "verify": "check PATH",
}
"""Commands of other tools -> the command line that does it here."""
IN: Final = "--in"
GET: Final = "get"
_FOLDER: Final = Pattern(r".+-\d+", re.ASCII)
_RECORD: Final = Pattern(r"[^/]*@\d+(\.\.\d+)?", re.ASCII)


def suggesting(error: click.ClickException, words: Sequence[str], commands: Collection[str]) -> click.ClickException:
    """Return an error with what may have been meant; ``words`` are those of the command line after ``kdump``."""
    command = None if getattr(error, "ctx", None) is None else error.ctx.command  # type: ignore[attr-defined]  # a usage error has it
    if isinstance(error, click.MissingParameter) and error.param is not None and IN in error.param.opts:
        return _with(error, f"{error.format_message()} Try: {_with_in(words)}")
    if not isinstance(error, click.NoSuchOption):
        return error
    if isinstance(command, click.Group):
        name = next((word for word in words if word in commands), None)
        return error if name is None else _with(error, f"{error.message} Options of {name} stand after its name.")
    if error.option_name == IN:
        return _with(error, f"{error.message} Try: {_without_in(words)}")
    known = {name for parameter in (command.params if command else ()) for name in parameter.opts}
    meant = next((name for name in MEANT.get(error.option_name, ()) if name in known), None)
    return error if meant is None else _with(error, f"{error.message} Did you mean {meant!r}?")


def _with(error: click.UsageError, text: str) -> click.UsageError:
    return click.UsageError(text, error.ctx)


def _with_in(words: Sequence[str]) -> str:
    """Return the command line with ``--in`` before each path, or with a place for one."""
    found: list[str] = []
    for number, word in enumerate(words):
        is_value = number > 1 and words[number - 1].startswith("-")
        if number and not is_value and not word.startswith("-") and not _RECORD.fullmatch(word):
            found.append(IN)
        found.append(word)
    if IN not in found:
        return _line([*words, IN, "PATH"])
    if not any(map(_RECORD.fullmatch, words)):
        found.insert(1, _record_in(words, found[found.index(IN) + 1]))
    return _line(found)


def _record_in(words: Sequence[str], path: str) -> str:
    """Return the first offset of the partition whose folder a path names; of ``get`` that of all partitions."""
    name = path.rstrip("/").rpartition("/")[2]
    if _FOLDER.fullmatch(name):
        return f"{name}@0"
    return "@0" if words[0] == GET else "TOPIC-PARTITION@OFFSET"


def _without_in(words: Sequence[str]) -> str:
    """Return the command line without ``--in``; where it names a record that of ``get``, which has the option."""
    if any(_RECORD.fullmatch(word) for word in words):
        return _line([GET, *words[1:]])
    return _line([word.removeprefix(f"{IN}=") for word in words if word != IN])


def _line(words: Sequence[str]) -> str:
    shown = (shell_pattern(word) if _RECORD.fullmatch(word) else shell_word(word) for word in words)
    return " ".join(["kdump", *shown])
