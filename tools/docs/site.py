"""The hook of MkDocs: makes pages of commands, tables and byte layouts from the code when the docs are built."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from kdump.command_line.command_help import WHOLE
from kdump.commands.root import GROUPS, files_help, root
from testing import ROOT
from tools.docs import layouts, tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

COPIES = {
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "security.md": "SECURITY.md",
    "row.schema.json": "kdump/rows/schema.json",
    "findings.schema.json": "kdump/findings.schema.json",
}
"""Page of the site -> the file in the checkout that it is copied from."""
TITLE = re.compile(r"^# (.*)", re.MULTILINE)
MARK = re.compile(r"<!-- (table|layout): (.+?) -->")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the pages of commands to the navigation, in the groups of ``kdump --help``."""
    groups = [{title: [f"commands/{name}.md" for name in names]} for title, names in GROUPS.items()]
    for entry in config.nav or ():
        if "Commands" in entry:
            entry["Commands"] = ["commands/index.md", *groups]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages and the copies."""
    pages = {file.src_uri: file.content_string for file in files.documentation_pages()}
    from mkdocs.structure.files import File  # tests read the help of commands without MkDocs

    for name, content in command_pages(pages):
        files.append(File.generated(config, name, content=content))
    for name, path in COPIES.items():
        files.append(File.generated(config, name, content=(ROOT / path).read_text()))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Replace the placeholders of tables and layouts."""
    return MARK.sub(lambda mark: made(mark[1], mark[2]), markdown)


def made(kind: str, name: str) -> str:
    """Return the table or layout with this name."""
    return tables.TABLES[name]() if kind == "table" else layouts.named(name)


def command_pages(pages: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the name and text of each command's page. ``pages`` are those that the navigation may link."""
    files = _block(files_help(_context()))
    yield "commands/index.md", f"# kdump\n\n{_block(help_of(None))}\n## kdump --files\n\n{files}"
    for name in (name for names in GROUPS.values() for name in names):
        shown = [page for page, content in sorted(pages.items()) if re.search(rf"kdump {name}(?![\w-])", content)]
        links = "".join(f"- [{TITLE.search(pages[page])[1]}](../{page})\n" for page in shown)
        see = f"\n## See it at work\n\n{links}" if shown else ""
        yield f"commands/{name}.md", f"# kdump {name}\n\n{_block(help_of(name))}{see}"


def help_of(name: str | None) -> str:
    """Return the help of a command, or of kdump itself."""
    context = _context()
    if name is None:
        return root.get_help(context)
    command = root.get_command(context, name)
    if command is None:
        raise ValueError(f"{name!r} is not a command")
    of_command = click.Context(command, context, info_name=name)
    of_command.meta[WHOLE] = True
    return command.get_help(of_command)


def _context() -> click.Context:
    return click.Context(root, info_name="kdump", max_content_width=100, terminal_width=100)


def _block(text: str) -> str:
    return f"```text\n{text}\n```\n"
