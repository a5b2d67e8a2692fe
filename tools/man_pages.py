"""Makes man pages and shell completions from the commands. The wheel installs them below share/.

python -m tools.man_pages FOLDER    # writes FOLDER/man/man1 and the folders of bash, zsh and fish
"""

from __future__ import annotations

import re
import sys
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import get_completion_class

from kdump import __version__
from kdump.commands.root import COMMANDS, root

if TYPE_CHECKING:
    from collections.abc import Iterator

COMPLETIONS = {
    "bash": "bash-completion/completions/kdump",
    "zsh": "zsh/site-functions/_kdump",
    "fish": "fish/vendor_completions.d/kdump.fish",
}
"""Shell -> the folder below share/ in which it searches completions."""


def files() -> Iterator[tuple[str, str]]:
    """Yield the path below share/ and the content of each file."""
    context = click.Context(root, info_name="kdump")
    yield "man/man1/kdump.1", page(root, context)
    for name in COMMANDS:
        command = root.get_command(context, name)
        if command is not None:
            yield f"man/man1/kdump-{name}.1", page(command, click.Context(command, context, info_name=name))
    for shell, path in COMPLETIONS.items():
        kind = get_completion_class(shell)
        if kind is not None:
            yield path, kind(root, {}, "kdump", "_KDUMP_COMPLETE").source()


def page(command: click.Command, context: click.Context) -> str:
    """Return the man page of a command in roff."""
    name = context.command_path.replace(" ", "-")
    usage = " ".join(command.collect_usage_pieces(context))
    parts = [
        f'.TH "{name.upper()}" "1" "" "kdump {__version__}" "kdump"',
        ".SH NAME",
        _text(f"{name} - {command.get_short_help_str(200)}").replace(" - ", r" \- ", 1),
        ".SH SYNOPSIS",
        f".B {_text(context.command_path)}",
        _text(usage),
        ".SH DESCRIPTION",
        *_paragraphs(command.help or ""),
        ".SH OPTIONS",
        *_options(command, context),
    ]
    if command is root:
        parts.append(".SH COMMANDS")
        for other in COMMANDS:
            found = root.get_command(context, other)
            if found is not None:
                parts += [".TP", f".BR kdump-{_text(other)} (1)", _text(found.get_short_help_str(200))]
    else:
        parts += [".SH SEE ALSO", ".BR kdump (1)"]
    return "\n".join(parts) + "\n"


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help text; one that begins with a backspace keeps its lines."""
    for paragraph in re.split(r"\n\s*\n", cleandoc(text)):
        yield ".PP"
        if paragraph.startswith("\b"):
            yield from (".nf", *map(_text, paragraph.removeprefix("\b").strip("\n").splitlines()), ".fi")
        else:
            yield from map(_text, paragraph.splitlines())


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    for param in command.get_params(context):
        record = param.get_help_record(context)
        if record is not None and isinstance(param, click.Option):
            yield from (".TP", f"\\fB{_text(record[0])}\\fR", _text(record[1]))


def _text(line: str) -> str:
    """Return a line for roff, with all requests and escapes quoted."""
    line = line.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{line}" if line.startswith((".", "'")) else line


def write(folder: Path) -> list[Path]:
    """Write all files below ``folder``; return their paths."""
    written = []
    for name, content in files():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        written.append(path)
    return written


if __name__ == "__main__":
    write(Path(sys.argv[1]))
