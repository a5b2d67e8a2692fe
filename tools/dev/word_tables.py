"""Write docs/words.md: every option and every JSON field once, with the commands that have it.

python -m tools.dev.word_tables
"""

from __future__ import annotations

import json
import pkgutil
from importlib import import_module
from typing import TYPE_CHECKING

import click

from kdump import answers
from kdump.answers.collector import camel_case
from kdump.commands.root import COMMANDS, root
from kdump.rows import columns
from kdump.schemas import store
from testing import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PAGE = ROOT / "docs" / "words.md"
HEAD = """# Options and fields

These tables list the commands that have an option or a field of JSON. A name has the same meaning in all commands.
`--files` stands for `kdump --files`, the clone of DumpLogSegments. `python -m tools.dev.word_tables` writes this page.
"""
ANSWERED_BY = {
    "log_events": "report",
    "disk_usage": "du",
    "statistics": "stats",
    "recompression": "stats",
    "replica_diff": "diff",
    "SegmentSpan": "ls",
    "transactional_ids": "transactions",
}
"""Module of kdump.answers, and class of lines -> the command that prints the lines, if it has another name."""


def options() -> Iterator[tuple[str, str]]:
    """Yield each option with a command that has it. The command of the clone's options is --files."""
    for name in (None, *COMMANDS):
        command = root if name is None else root.get_command(click.Context(root), name)
        for param in command.params if command else ():
            if isinstance(param, click.Option) and not param.hidden:
                yield ", ".join([*param.opts, *param.secondary_opts]), name or "--files"


def fields() -> Iterator[tuple[str, str]]:
    """Yield each field of JSON lines with a command that prints it."""
    for declared in (*columns.KINDS.values(), (columns.DECODED,)):
        for column in declared:
            yield column.name, "dump"
            if declared is not columns.DAMAGE:
                yield column.name, "get"
    schema = json.loads((ROOT / "kdump" / "findings.schema.json").read_text())
    for line in schema["$defs"].values():
        for name in line["properties"]:
            yield name, "check"
            yield name, "verify-index"
    for module in pkgutil.walk_packages(answers.__path__, f"{answers.__name__}."):
        name = module.name.split(".")[2]
        for line in vars(import_module(module.name)).values():
            if not isinstance(line, type) or not isinstance(vars(line).get("kind"), str):
                continue
            if line.__module__ in {module.name, store.__name__}:
                for field in ("kind", *line.__dataclass_fields__):
                    yield camel_case(field), ANSWERED_BY.get(line.__name__, ANSWERED_BY.get(name, name))


def table(title: str, pairs: Iterable[tuple[str, str]]) -> str:
    """Return a table of words, each with its commands in the order of ``kdump --help``."""
    order = ["--files", *COMMANDS]
    found: dict[str, set[str]] = {}
    for word, command in pairs:
        found.setdefault(word, set()).add(command)
    rows = [f"| `{word}` | {', '.join(sorted(found[word], key=order.index))} |\n" for word in sorted(found)]
    return f"| {title} | Commands |\n|---|---|\n{''.join(rows)}"


def page() -> str:
    return f"{HEAD}\n{table('Option', options())}\n{table('Field', fields())}"


if __name__ == "__main__":
    PAGE.write_text(page())
