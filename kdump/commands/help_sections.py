"""Help whose options stand in sections: a command with many options is read by what one looks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


class SectionedCommand(click.Command):
    """A command whose help has ``sections``: a title, and the names of the parameters that stand there."""

    def __init__(self, *arguments: Any, sections: Mapping[str, Collection[str]], rest: str, **options: Any) -> None:
        """``rest`` is the title of the last section, which has the options that no other one names."""
        super().__init__(*arguments, **options)
        self._sections, self._rest = sections, rest

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options section by section."""
        title_of = {name: title for title, names in self._sections.items() for name in names}
        for title in (*self._sections, self._rest):
            options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
            params = [option for option in options if title_of.get(str(option.name), self._rest) == title]
            if records := [record for param in params if (record := param.get_help_record(ctx)) is not None]:
                with formatter.section(title):
                    formatter.write_dl(records)
