"""Reads well-formed messages by means of the kernel, and gives up on anything else.

What is cut off, not UTF-8 or followed by other bytes is left to :mod:`kdump.internal_topics.interpreter`, which says
what is wrong; so is everything where there is no kernel.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from kdump import kernel
from kdump.internal_topics.interpreter import FIXED, LONGEST_STRING

if TYPE_CHECKING:
    from kdump.internal_topics.schema import Struct, Values
if kernel.COMPILED:
    from kdump.kernel.schema_reader import SchemaReader


def read(schema: Struct, data: bytes, start: int) -> Values | None:
    """Return the values of a message that fills ``data`` from ``start`` on; None to leave it to the interpreter."""
    return reader(schema).read(data, start) if kernel.COMPILED and schema.refused is None else None


@cache
def reader(schema: Struct) -> SchemaReader:
    """Return what reads a message whose version is known; there must be a kernel."""
    return SchemaReader(schema, {kind: layout.size for kind, layout in FIXED.items()}, LONGEST_STRING)
