"""``.timeindex``, the time index. An entry is the largest timestamp of the segment so far, and an offset.

The offset is the record's, or the last one of its batch. Entries rise in timestamp and offset. Source: KIP-33 and
Kafka's class TimeIndex (0.10.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kdump.formats.sparse_index import SparseIndex, columns
from kdump.primitives.wire import Int32, Int64, Layout

if TYPE_CHECKING:
    from collections.abc import Iterable

NO_TIMESTAMP = -1


class StoredTimestamp(NamedTuple):
    """An entry as stored: a timestamp in ms, and the offset minus the file's base offset."""

    timestamp: Int64
    relative_offset: Int32


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: int


class TimeIndex(SparseIndex[TimestampOffset]):
    layout = Layout(StoredTimestamp)

    def entry(self, first: int, second: int) -> TimestampOffset:
        return TimestampOffset(first, self.base_offset + second)

    @property
    def newest(self) -> int:
        """The timestamp in the last entry, which may be a zero entry; NO_TIMESTAMP without an entry."""
        return self.stored(self.count - 1)[0] if self.count else NO_TIMESTAMP

    def lookup(self, timestamp: int, among: int | None = None) -> TimestampOffset:
        """Return the entry with the greatest timestamp up to ``timestamp``, or NO_TIMESTAMP with the base offset."""
        slot = self.slot_for(timestamp, among)
        return TimestampOffset(NO_TIMESTAMP, self.base_offset) if slot is None else self[slot]


def encode(entries: Iterable[tuple[int, int]], base_offset: int) -> bytes:
    """Return a ``.timeindex`` with these entries (timestamp, offset). Raises UsageError if an offset does not fit."""
    index = TimeIndex(b"", base_offset)
    return b"".join(
        index.layout.write_all(timestamps, index.relatives(offsets)) for timestamps, offsets in columns(entries)
    )
