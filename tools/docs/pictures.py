"""Draws terminals with the output of commands as SVG, light and dark, for the docs.

python -m tools.docs.pictures    # writes docs/pictures again
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

from testing import ROOT
from tools.docs import shown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FOLDER = ROOT / "docs" / "pictures"
PICTURES = {"check": "kdump check golden/damaged/none-hdr-crc"}
"""Names of pictures -> the commands that they show."""
WIDTH = 110


def files() -> Iterator[tuple[Path, str]]:
    """Yield the path and content of each picture."""
    for name, command in PICTURES.items():
        output = shown.run(command).output
        for theme in ("light", "dark"):
            yield FOLDER / f"{name}-{theme}.svg", picture(command, output, theme)


def picture(command: str, output: str, theme: str) -> str:
    """Return the SVG of a terminal with a command and its output."""
    from rich import terminal_theme
    from rich.console import Console
    from rich.text import Text

    themes = {"light": terminal_theme.DEFAULT_TERMINAL_THEME, "dark": terminal_theme.SVG_EXPORT_THEME}
    console = Console(record=True, width=WIDTH, file=io.StringIO(), color_system="truecolor", force_terminal=True)
    console.print(Text(f"$ {command}", style="bold"))
    text = Text(output.rstrip())
    text.highlight_regex(r"^ +(DAMAGED|WRONG) ", "bold red")
    text.highlight_regex(r"^ +(what to do): .*", "green")
    text.highlight_regex(r"^(Damaged|What to do next): ", "bold")
    console.print(text)
    svg = console.export_svg(title="kdump", theme=themes[theme], unique_id=f"kdump-{theme}")
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)  # a picture fetches no font


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for path, content in files():
        path.write_text(content)
