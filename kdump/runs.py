"""Batches of one kind that follow each other, as a table of numbers: what can be printed in one go needs no objects.

The walk (:func:`kdump.segment.walk`) says what stands in a file. Behind a batch that it found, this finds those that
are like it; whatever is odd ends the run and is left to the walk.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

from kdump.crc import crc32c
from kdump.formats.batch import CRC_COVERS_FROM, DELETE_HORIZON_FLAG, HEADER, MAGIC, Batch
from kdump.formats.log import OVERHEAD

if TYPE_CHECKING:
    from kdump.segment import Window

OTHERS: Final = ("last_offset", "last_sequence", "position", "size")
"""The numbers of a row behind those of the batch's header."""
LARGE: Final = 1 << 20
"""Bytes of a batch from which on it is no part of a run."""
_INT32_MAX: Final = 0x7FFFFFFF
_FAR: Final = 1 << 62


class Run:
    """Batches of magic 2 that follow each other, all with the attributes and the delete horizon of ``first``.

    Their checksums are right. ``rows`` holds a row of numbers for each: where its records start and end in ``block``,
    its header, and OTHERS.
    """

    __slots__ = ("block", "count", "first", "rows", "size", "start")

    def __init__(self, first: Batch, block: memoryview, start: int, rows: array[int], size: int) -> None:
        self.first = first
        self.block = block
        self.start = start
        """Where the block stands in the file."""
        self.rows = rows
        self.count = len(rows) // WIDTH
        self.size = size
        """Bytes of all batches."""

    @property
    def end(self) -> int:
        """The position behind the last batch."""
        return self.first.position + self.size

    def batch(self, row: int) -> Batch:
        """Return a batch as an object."""
        position, size = self.rows[(row + 1) * WIDTH - 2 : (row + 1) * WIDTH]
        at = position - self.start
        return Batch(self.block[at : at + size], position, size, self.first.limit)


WIDTH: Final = 2 + len(HEADER.fields._fields) + len(OTHERS)


def run(first: Batch, window: Window) -> Run | None:
    """Return the run that a batch in the block of ``window`` begins, None when it has not two batches."""
    block, start = window.block, window.start
    attributes, horizon = first.attributes, first.delete_horizon_ms
    dated = attributes & DELETE_HORIZON_FLAG
    end = len(block)
    begin = at = first.position - start
    last = min(first.limit, LARGE) - OVERHEAD.size
    unpack, least = HEADER.struct.unpack_from, HEADER.size
    rows = array("q")
    add = rows.extend
    while at + least <= end:
        header = unpack(block, at)
        base, length, _, magic, crc, kind, delta, dates_from, _, _, _, sequence, _ = header
        size = OVERHEAD.size + length
        stop = at + size
        if not (magic == MAGIC and kind == attributes and least <= size and length <= last and stop <= end):
            break
        if dated and dates_from != horizon:
            break
        if sequence != -1 and not (sequence >= 0 and 0 <= delta <= _INT32_MAX - sequence):
            break
        if not -_FAR < base < _FAR or crc != crc32c(block[at + CRC_COVERS_FROM : stop]):
            break
        ends_with = sequence if sequence == -1 else sequence + delta
        add((at + least, stop, *header, base + delta, ends_with, start + at, size))
        at = stop
    return Run(first, block, start, rows, at - begin) if len(rows) > WIDTH else None
