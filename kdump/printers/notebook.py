"""HTML tables, in which notebooks show the results of kdump's functions."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

SHOWN: Final = 20
"""Maximum number of rows of a table."""


def table(caption: str, names: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a paragraph with the caption, and a table with a column for each name."""
    body = "".join(_row(row, "td") for row in rows)
    return f"<p>{escape(caption)}</p><table>{_row(names, 'th')}{body}</table>"


def _row(cells: Iterable[object], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(str(cell))}</{tag}>' for cell in cells)}</tr>"
