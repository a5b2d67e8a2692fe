"""Annotated bytes: one field to a line, its bytes in hex, its name and its value beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, Final

from kdump.records.field_map import PAYLOADS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kdump.primitives.wire import Bytes
    from kdump.records.field_map import FieldBytes

WIDE, NARROW = 16, 8
"""Bytes of a line, and of one where a terminal has less than ROOM columns."""
ROOM: Final = 126
NAME, VALUE = 20, 12
"""Widths of a field's name, and of a value before text, in characters."""
INDENT: Final = 13
"""Columns before a value that has a line of its own."""


def write(parts: Iterable[FieldBytes], out: BinaryIO, width: int | None = None) -> None:
    """Write the parts, on a terminal of ``width`` columns in lines of its width.

    Payloads show their printable ASCII; positions of decompressed bytes are marked with a +.
    """
    held = WIDE if width is None or width >= ROOM else NARROW
    for part in parts:
        for at in range(0, max(1, len(part.data)), held):
            row = part.data[at : at + held]
            place = f"{'+' if part.unpacked else ' '}{part.position + at:08x}"
            line = f"{place}  {row.hex(' '):{3 * held - 1}}  "
            value = "" if at else str(part.value)
            if part.name in PAYLOADS and row:
                value = f"{value:<{VALUE}}  |{_ascii(row)}|"
            line += f"{'' if at else part.name:<{NAME}}  "
            if width is not None and len(line) + len(value) > width:
                line = f"{line.rstrip()}\n{'':{INDENT}}{value}"
            else:
                line += value
            out.write(line.rstrip().encode() + b"\n")


def _ascii(data: Bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 else "." for byte in data)
