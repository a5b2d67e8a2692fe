"""Pages of the docs on a terminal: Markdown in its width."""

from __future__ import annotations

import re
from typing import IO

from rich.markdown import Markdown

from kdump.primitives.terminal import prose_width
from kdump.printers.table import Quiet


def draw(page: str, out: IO[str]) -> None:
    """Draw a page: its tables and blocks of code fit into the width of sentences."""
    page = re.sub(r"^```(\w*).*$", r"```\1", page, flags=re.MULTILINE)  # a title is for browsers
    Quiet(file=out, width=prose_width()).print(Markdown(page, hyperlinks=False, code_theme="ansi_dark"))
