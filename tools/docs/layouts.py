"""Draws byte layouts from the code. A page includes one as ``<!-- layout: MODULE.CLASS -->``."""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise
from typing import Final

from kdump.answers.collector import camel_case
from kdump.primitives.wire import Layout

ROW: Final = 8
"""The number of bytes in a line of a drawing."""
CELL: Final = 7
"""The number of columns of a byte."""
_TYPES: Final = {"b": "int8", "h": "int16", "i": "int32", "q": "int64", "I": "uint32"}


def named(name: str) -> str:
    """Return the drawing of ``MODULE.CLASS``, a NamedTuple of wire types in kdump.formats, with its docstring."""
    module, _, of = name.rpartition(".")
    fields = getattr(import_module(f"kdump.formats.{module}"), of)
    layout = Layout(fields)
    title = f"**{of}**, {layout.size} bytes. {' '.join(str(fields.__doc__).split())}"
    return f"{title}\n\n```text\n{drawing(layout)}```\n"


def drawing(layout: Layout) -> str:
    """Return the fields of a layout in boxes, ROW bytes per line. The number before a line is its first byte."""
    types = [_TYPES[code] for code in layout.struct.format.lstrip(">")]
    spans = [
        (start, end, f"{camel_case(name)} {kind}")
        for (name, (start, end)), kind in zip(layout.spans.items(), types, strict=True)
    ]
    lines, above = [], set[int]()
    for first in range(0, layout.size, ROW):
        last = min(first + ROW, layout.size)
        parts = [
            (max(start, first), min(end, last), text) for start, end, text in spans if start < last and end > first
        ]
        borders = {part[0] - first for part in parts} | {last - first}
        lines.append(_border(above | borders, max(above | borders)))
        lines.append(f"{first:4} |" + "".join(_box(start, end, text, spans) for start, end, text in parts))
        above = borders
    return "\n".join([*lines, _border(above, max(above))]) + "\n"


def _border(borders: set[int], width: int) -> str:
    return " " * 5 + "".join(
        ("+" if at // CELL in borders and not at % CELL else "-") for at in range(width * CELL + 1)
    )


def _box(start: int, end: int, text: str, spans: list[tuple[int, int, str]]) -> str:
    """Return a field's part of a line. The name of a field in two lines is in the longer part."""
    whole = next((begin, stop) for begin, stop, name in spans if name == text)
    parts = sorted({whole[0], *range((whole[0] // ROW + 1) * ROW, whole[1], ROW), whole[1]})
    longest = max(pairwise(parts), key=lambda part: part[1] - part[0])
    width = (end - start) * CELL - 1
    shown = text if (start, end) == longest else "..."
    return (shown if len(shown) <= width else shown.split()[0])[:width].center(width) + "|"
