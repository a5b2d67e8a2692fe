"""The help of a command: one screen for ``--help``, the full text for ``kdump help COMMAND``.

A screen has at most SCREEN lines, if possible: usage, first paragraph, up to EXAMPLES examples, exit status and the
command's own options. Options that several commands share are only named; ``kdump help options`` explains them.
"""

from __future__ import annotations

import re
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, Final

import click

from kdump.command_line.limit_options import Shared

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    Record = tuple[str, str]

SCREEN: Final = 50
EXAMPLES: Final = 5
WHOLE: Final = "kdump.whole_help"
"""The key in the ``meta`` of a click context that requests the full help."""
NAMES: Final = 30
"""Maximum width of the names of options, in columns. A longer name is on its own line."""
REST: Final = 3
"""Weight of an option in the last section (1 in the others). The section with the largest weight is shortened first."""
LEAST: Final = 16
"""Minimum length of a shortened text, in characters."""
_TITLE: Final = "Options"
_CLAUSE_ENDS: Final = (r"\. ", r"; ", r": ", r" \(")
"""Patterns for the ends of clauses, at which the text of an option may be shortened, best first."""


class Command(click.Command):
    """A command whose options are shortened so that its help fits on a screen."""

    def __init__(
        self,
        *arguments: Any,
        sections: Mapping[str, Collection[str]] | None = None,
        rest: str = _TITLE,
        **options: Any,
    ) -> None:
        """``sections``: title -> names of parameters in order. ``rest``: title for all other parameters."""
        super().__init__(*arguments, **options)
        self._sections, self._rest = sections or {}, rest

    @classmethod
    def of(cls, command: click.Command) -> Command:
        if isinstance(command, cls):
            return command
        return cls(
            command.name,
            callback=command.callback,
            params=command.params,
            help=command.help,
            context_settings=command.context_settings,
            short_help=command.short_help,
            add_help_option=command.add_help_option,
        )

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help: a screen, or the full help if the context requests it."""
        if ctx.meta.get(WHOLE):
            super().format_help(ctx, formatter)
            return
        above = self._above(ctx, formatter.width) + "\n"
        formatter.write(above + self._below(ctx, formatter.width, SCREEN - above.count("\n")))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, options in self._by_section(ctx):
            if records := [record for option in options if (record := option.get_help_record(ctx)) is not None]:
                with formatter.section(title):
                    formatter.write_dl(records)

    def _by_section(self, ctx: click.Context) -> Iterator[tuple[str, list[click.Option]]]:
        title_of = {name: title for title, names in self._sections.items() for name in names}
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        for title in (*self._sections, self._rest):
            order = [*self._sections.get(title, ())]
            found = [one for one in options if title_of.get(str(one.name), self._rest) == title]
            yield title, sorted(found, key=lambda one: order.index(str(one.name)) if order else 0)

    def _above(self, ctx: click.Context, width: int) -> str:
        formatter = click.HelpFormatter(width=width)
        self.format_usage(ctx, formatter)
        paragraphs = cleandoc(self.help or "").split("\n\n")
        examples = [text for text in paragraphs[1:] if text.lstrip("\b\n ").startswith("Examples:")]
        status = [text for text in paragraphs[1:] if text.startswith("Exit status:")]
        shown = ["\n".join(text.splitlines()[: EXAMPLES + 2]) for text in examples]  # 2: click's \b and the title
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text("\n\n".join([paragraphs[0], *shown, *status]))
        return formatter.getvalue()

    def _below(self, ctx: click.Context, width: int, room: int) -> str:
        """Return the options, if possible in ``room`` lines: texts may be shortened, and some options only named."""
        sections = [
            (title, [one for one in options if not isinstance(one, Shared) and "--help" not in one.opts])
            for title, options in self._by_section(ctx)
        ]
        shared = [one for one in self.get_params(ctx) if isinstance(one, Shared)]
        own = [option for _, options in sections for option in options]
        for is_short in (False, True):
            drawn = self._drawn(ctx, sections, shared, (), width, is_short=is_short)
            if drawn.count("\n") <= room:
                return drawn
        named: list[click.Option] = []
        while drawn.count("\n") > room and any(options for _, options in sections):
            weights = [len(options) * (REST if title == self._rest else 1) for title, options in sections]
            named.append(sections[weights.index(max(weights))][1].pop())
            named.sort(key=own.index)
            drawn = self._drawn(ctx, sections, shared, named, width, is_short=True)
        return drawn

    def _drawn(
        self,
        ctx: click.Context,
        sections: Sequence[tuple[str, Sequence[click.Option]]],
        shared: Sequence[click.Option],
        named: Sequence[click.Option],
        width: int,
        *,
        is_short: bool,
    ) -> str:
        from textwrap import wrap  # compiles five patterns at import

        formatter = click.HelpFormatter(width=width)
        for title, options in sections:
            if records := [record for one in options if (record := one.get_help_record(ctx)) is not None]:
                with formatter.section(title):
                    formatter.write_dl(_cut(records, width) if is_short else records, col_max=NAMES)
        name = ctx.info_name or ""
        more = [("More", f"kdump help {name}", named), ("Shared options", "kdump help options", shared)]
        texts = [f"{what} ({line}): {_names(ctx, options)}" for what, line, options in more if options]
        texts.append(f"Full help: kdump help {name}")
        lines = (line for text in texts for line in wrap(text, width, break_on_hyphens=False, subsequent_indent="  "))
        return f"{formatter.getvalue()}\n" + "".join(f"{line}\n".replace("\u00a0", " ") for line in lines)


def _names(ctx: click.Context, options: Sequence[click.Option]) -> str:
    return ", ".join(_name(ctx, option) for option in options)


def _name(ctx: click.Context, option: click.Option) -> str:
    short = min(option.opts, key=len)
    value = "" if option.is_flag or option.count else f" {option.make_metavar(ctx)}"
    return f"{short}{value}".replace(" ", "\u00a0")  # the two stay on one line


def _cut(records: Sequence[Record], width: int) -> list[Record]:
    column = min(max(len(name) for name, _ in records), NAMES) + 4
    return [(name, _first_words(text, width - column - 1)) for name, text in records]


def _first_words(text: str, most: int) -> str:
    """Return the first clauses of a text, at most ``most`` characters; the first clause even if it is longer."""
    text, default = re.fullmatch(r"(.*?)(?:  (\[.*\]))?", text, re.DOTALL).groups()  # type: ignore[union-attr]  # it matches any text
    if default is not None and len(text) + len(default) + 2 <= most:
        return f"{text}  {default}"
    if len(text) <= most:
        return text
    for end in _CLAUSE_ENDS:
        places = [at for at in _outside(end, text) if at < most]
        if places:
            return f"{text[: places[-1]]}."
    least = min((at for end in _CLAUSE_ENDS for at in _outside(end, text)), default=len(text))
    return text if least == len(text) else f"{text[:least]}."


def _outside(end: str, text: str) -> Iterator[int]:
    """Yield the positions of clause ends that are outside parentheses and after at least LEAST characters."""
    for found in re.finditer(end, text):
        at = found.start()
        if at >= LEAST and text.count("(", 0, at) == text.count(")", 0, at):
            yield at


def shared_options(commands: Sequence[click.Command], ctx: click.Context) -> str:
    groups: dict[str, dict[str, Record]] = {}
    for command in commands:
        for option in command.params:
            if isinstance(option, Shared) and (record := option.get_help_record(ctx)) is not None:
                groups.setdefault(option.title, {}).setdefault(str(option.name), record)
    formatter = ctx.make_formatter()
    formatter.write_text("Options that several commands share. The --help of a command names those that it has.")
    for title in sorted(groups, key=Shared.TITLES.index):
        with formatter.section(title):
            formatter.write_dl(list(groups[title].values()), col_max=NAMES)
    return formatter.getvalue().rstrip("\n")
