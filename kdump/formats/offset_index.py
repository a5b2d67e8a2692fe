"""``.index``, the offset index: the positions of some offsets in the log.

Source: Kafka's class OffsetIndex, unchanged since 0.8. Entries rise in offset and position. An entry is about an
append; from 3.9 on, a batch. The position is its first byte. The offset is its first offset up to 1.1, and its last one
from 2.0 on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kdump.formats.sparse_index import SparseIndex, columns
from kdump.primitives.wire import Int32, Layout

if TYPE_CHECKING:
    from collections.abc import Iterable


class StoredOffset(NamedTuple):
    """An entry as stored: the offset minus the file's base offset, and the position in bytes."""

    relative_offset: Int32
    position: Int32


class OffsetPosition(NamedTuple):
    """An offset, and the position in the segment in bytes from which a reader finds it."""

    offset: int
    position: int


class OffsetIndex(SparseIndex[OffsetPosition]):
    layout = Layout(StoredOffset)

    def entry(self, first: int, second: int) -> OffsetPosition:
        return OffsetPosition(self.base_offset + first, second)

    def lookup(self, offset: int, among: int | None = None, *, warm: bool = True) -> OffsetPosition:
        """Return the last entry up to ``offset``, or the base offset and position 0. Options: see :meth:`slot_for`."""
        slot = self.slot_for(offset, among, warm=warm)
        return OffsetPosition(self.base_offset, 0) if slot is None else self[slot]


def encode(entries: Iterable[tuple[int, int]], base_offset: int) -> bytes:
    """Return an ``.index`` file with these entries (offset, position). Raises UsageError if an offset does not fit."""
    index = OffsetIndex(b"", base_offset)
    return b"".join(
        index.layout.write_all(index.relatives(offsets), positions) for offsets, positions in columns(entries)
    )
