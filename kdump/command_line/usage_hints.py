"""Hints for a wrong command line or missing rights, imported only for errors, ``kdump help`` and ``kdump PATH``."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Final

import click

from kdump.errors import KdumpError, UnreadableError
from kdump.primitives.terminal import shell_path, shell_pattern, shell_text, shell_word

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

MEANT: Final[dict[str, tuple[str, ...]]] = {
    "--from": ("--since",),
    "--to": ("--until",),
    "--max-messages": ("--limit",),
    "--format": ("--output",),
    "--time": ("--since", "--at"),
}
"""Option of another tool -> kdump's options. The first of them that the command has is suggested."""
_DUMP, _CHECK, _DU, _METADATA, _GROUPS = "dump {}", "check {}", "du {}", "metadata {}", "groups {}"
_TOPICS: Final = "metadata {} --topics"
_SALVAGE: Final = "salvage {} --out salvaged"
OTHER_NAMES: Final = {
    **dict.fromkeys(("cat", "consume", "console-consumer", "print", "read", "show", "records"), _DUMP),
    "head": "dump {} --head 10",
    "tail": "dump {} --tail 10",
    "count": "dump {} --count",
    **dict.fromkeys(("size", "log-dirs"), _DU),
    **dict.fromkeys(("topics", "describe"), _TOPICS),
    **dict.fromkeys(("configs", "acls", "users", "quorum", "features"), _METADATA),
    **dict.fromkeys(("consumer-groups", "lag"), _GROUPS),
    **dict.fromkeys(("list", "segments"), "ls {}"),
    "get-offsets": "offsets {}",
    **dict.fromkeys(("fsck", "verify", "validate", "status", "health", "doctor"), _CHECK),
    **dict.fromkeys(("repair", "recover", "fix", "rescue"), _SALVAGE),
    **dict.fromkeys(("rebuild", "restore", "rebuild-quorum"), "rebuild-cluster {} --plan"),
    **dict.fromkeys(("info", "summary", "inspect"), "report {}"),
}
"""Command of another tool -> kdump's command line, with ``{}`` for the paths."""
_METADATA_LOG: Final = "__cluster_metadata-0"
IN: Final = "--in"
GET: Final = "get"
_RECORD: Final = re.compile(r"[^/]*@\d+(\.\.\d+)?", re.ASCII)


class HintedUsageError(click.UsageError):
    """Wrong usage, with a command line as a hint."""

    def __init__(self, text: str, ctx: click.Context | None = None, hint: str = "") -> None:
        super().__init__(text, ctx)
        self.hint = hint


def hint_of(error: click.ClickException) -> str:
    """Return the hint of an error: its own; for other wrong usage in a context the line that prints help; or ""."""
    if isinstance(error, HintedUsageError) and error.hint:
        return error.hint
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return ""
    names = [error.ctx.info_name] if error.ctx.parent is not None else []
    return " ".join(["kdump", *(name for name in names if name), "--help"])


def suggesting(error: click.ClickException, words: Sequence[str], commands: Collection[str]) -> click.ClickException:
    """Return the error or one in its place, with a suggestion if there is one. ``words``: the arguments of kdump."""
    command = None if getattr(error, "ctx", None) is None else error.ctx.command  # type: ignore[attr-defined]  # a usage error has it
    if isinstance(error, click.MissingParameter):
        text, line = " ".join(error.format_message().split()), ""  # click lists choices on lines of their own
        if error.param is not None and IN in error.param.opts:
            line = _with_in(words) or ""
            text += "" if line else " It names what to read: a log dir, folder, segment or archive."
        return HintedUsageError(text, error.ctx, line)
    if not isinstance(error, click.NoSuchOption):
        return error
    if isinstance(command, click.Group):
        name = next((word for word in words if word in commands), None)
        text = f"{error.message} Write the options of {name} after its name."
        return error if name is None else HintedUsageError(text, error.ctx)
    if error.option_name == IN:
        return HintedUsageError(error.message, error.ctx, _without_in(words))
    known = {name for parameter in (command.params if command else ()) for name in parameter.opts}
    meant = next((name for name in MEANT.get(error.option_name, ()) if name in known), None)
    return error if meant is None else HintedUsageError(f"{error.message} Did you mean {meant!r}?", error.ctx)


def command_of_path(path: str) -> str | None:
    """Return check for a folder, local archive or compressed file, URI, unreadable path; dump for a file; else None."""
    if os.path.isdir(path):  # noqa: PTH112  pathlib raises where a name is too long
        return "check"
    from kdump.log_dirs import archives
    from kdump.log_dirs.local import LOCAL
    from kdump.log_dirs.remote import is_remote

    try:
        found = LOCAL.look(path)
        if found is not None:
            return "dump" if archives.opened(LOCAL, found) is None else "check"
        if is_remote(path):
            return "check"
        inside = archives.within(path) if ":" in path else None
        entry = None if inside is None else inside[0].look(inside[1])
    except UnreadableError:  # the suggested command reports the error
        return "check"
    return None if entry is None else "check" if entry.is_folder else "dump"


def of_other_tool(words: Sequence[str]) -> str | None:
    """Return the kdump command line for ``words`` of another tool (with --help if they have no path), or None."""
    name, *rest = words
    paths = [word for word in rest if command_of_path(word) is not None]
    if name in {"grep", "search"} and len(rest) == 2 and paths == [rest[1]]:
        return f"kdump dump {shell_path(paths[0])} --grep {shell_text(rest[0])}"
    line = OTHER_NAMES.get("cat" if name in {"grep", "search"} else name)
    if line is None:
        return None
    if not paths:
        return f"kdump {line.split()[0]} --help"
    if line == _TOPICS and not any(map(_has_metadata_log, paths)):
        line = _DU  # without a metadata log (ZooKeeper, or on another node) the folders show the topics
    return f"kdump {line.format(' '.join(map(shell_path, paths)))}"


def _has_metadata_log(path: str) -> bool:
    """Return whether a local folder has or is a metadata log. Other paths are not searched: True."""
    is_inside = os.path.basename(os.path.normpath(path)) == _METADATA_LOG  # noqa: PTH119  pathlib is slow to import
    return is_inside or not os.path.isdir(path) or os.path.isdir(os.path.join(path, _METADATA_LOG))  # noqa: PTH112, PTH118  as above


def _with_in(words: Sequence[str]) -> str | None:
    """Return the command line with a record (else the first of the first path) and ``--in`` before paths; or None."""
    for word in words[1:]:
        path, _, offset = word.rpartition("@")
        if "/" in path and offset.isdecimal() and command_of_path(path) is not None:  # d1/orders-0@5
            of_folder = f"{os.path.basename(os.path.normpath(path))}@{offset}"  # noqa: PTH119  pathlib is slow to import
            return _line([words[0], of_folder, IN, path])
    found: list[str] = []
    words = [word for word in words if word != "--"]  # click takes no option after it
    for number, word in enumerate(words):
        is_value = number > 1 and words[number - 1].startswith("-")
        if number and not is_value and not word.startswith("-") and not _RECORD.fullmatch(word):
            found.append(IN)
        found.append(word)
    if IN not in found:
        return None
    if not any(map(_RECORD.fullmatch, words)):
        record = _first_record(found[found.index(IN) + 1], words[0])
        if record is None:
            return None
        found.insert(1, record)
    return _line(found)


def _first_record(path: str, command: str) -> str | None:
    """Return the first record of a path as an argument of ``command``, or None. Only ``get`` takes ``@5``."""
    from kdump.api import open as open_log

    try:
        record = next(iter(open_log(path)), None)
    except KdumpError:
        return None
    if record is None or (record.topic is None and command != GET):
        return None
    place = "" if record.topic is None else f"{record.topic}-{record.partition}"
    return f"{place}@{record.offset}"


def _without_in(words: Sequence[str]) -> str:
    """Return the command line without ``--in``; if it has a record (``orders-0@5``), as ``get`` with ``--in``."""
    if any(_RECORD.fullmatch(word) for word in words):
        return _line([GET, *words[1:]])
    return _line([word.removeprefix(f"{IN}=") for word in words if word != IN])


def _line(words: Sequence[str]) -> str:
    shown = (shell_pattern(word) if _RECORD.fullmatch(word) else shell_word(word) for word in words)
    return " ".join(["kdump", *shown])


def as_owner(path: str) -> str:
    """Return this command line with sudo for a file's owner; "" if this account owns it or cannot read its owner."""
    from pathlib import Path

    program = Path(sys.argv[0])
    try:
        uid = Path(path).stat().st_uid
        owner = Path(path).owner()
    except OSError:
        return ""
    except KeyError:  # in a container the account may have no name
        owner = f"#{uid}"
    if uid == os.geteuid():
        return ""
    words = [str(program.absolute()) if program.name == "kdump" else "kdump", *sys.argv[1:]]
    return " ".join(["sudo", "-u", *map(shell_word, (owner, *words))])
