"""HTML tables, in which notebooks show the results of kdump's functions."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SHOWN: Final = 20
"""Maximum number of rows of a table."""


def table(caption: str, names: Iterable[str], rows: Sequence[Iterable[object]], below: Iterable[str] = ()) -> str:
    """Return HTML: the caption, a table of the first SHOWN rows, and the sentences of ``below``."""
    body = "".join(_row(row, "td") for row in rows[:SHOWN])
    caption = f"{caption}: the first {SHOWN}" if len(rows) > SHOWN else caption
    return f"<p>{escape(caption)}</p><table>{_row(names, 'th')}{body}</table>{sentences(below)}"


def sentences(texts: Iterable[str]) -> str:
    return "".join(f"<p>{escape(text)}</p>" for text in texts)


def _row(cells: Iterable[object], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(str(cell))}</{tag}>' for cell in cells)}</tr>"
