"""Annotated bytes: one field to a line, its bytes in hex, its name and its value beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, Final

from kdump.records.field_map import PAYLOADS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kdump.primitives.wire import Bytes
    from kdump.records.field_map import FieldBytes

WIDTH: Final = 16


def write(parts: Iterable[FieldBytes], out: BinaryIO) -> None:
    """Write the parts. Payloads show their printable ASCII; positions of unpacked bytes are marked with a +."""
    for part in parts:
        for at in range(0, max(1, len(part.data)), WIDTH):
            row = part.data[at : at + WIDTH]
            place = f"{'+' if part.unpacked else ' '}{part.position + at:08x}"
            line = f"{place}  {row.hex(' '):{3 * WIDTH - 1}}  "
            if at == 0:
                line += f"{part.name:<20}  {part.value}"
            if part.name in PAYLOADS and row:
                line = f"{line:<{14 + 3 * WIDTH + 32}}  |{_ascii(row)}|"
            out.write(line.rstrip().encode() + b"\n")


def _ascii(data: Bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 else "." for byte in data)
