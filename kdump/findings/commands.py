"""Shell commands that findings name, each spelled in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_SALVAGE: Final = "kdump salvage "
_OUT: Final = " --out salvaged"


def salvage(words: Iterable[str]) -> str:
    """Return the command that salvages the partitions of folders, given as words of a shell's command line."""
    return f"{_SALVAGE}{' '.join(words)}{_OUT}"


def joined(commands: Sequence[str]) -> tuple[str, ...]:
    """Return commands without repetitions; salvage of several partitions is one command, since it has one output."""
    found = list(dict.fromkeys(commands))
    several = [command for command in found if command.startswith(_SALVAGE) and command.endswith(_OUT)]
    if len(several) > 1:
        folders = dict.fromkeys(command.removeprefix(_SALVAGE).removesuffix(_OUT) for command in several)
        found[found.index(several[0])] = f"{_SALVAGE}{' '.join(folders)}{_OUT}"
        found = [command for command in found if command not in several[1:]]
    return tuple(found)


def is_salvage(command: str) -> bool:
    """Tell whether a command is one of :func:`salvage`."""
    return command.startswith(_SALVAGE)
