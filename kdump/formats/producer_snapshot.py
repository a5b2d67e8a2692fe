"""``.snapshot``, the producer snapshot: the state of a partition's producers at an offset.

Source: KIP-98 and Kafka's class ProducerStateManager (0.11; version 1 in all releases). The file has a version, a
CRC-32C of all bytes after it, the number of entries, and the entries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kdump.errors import DamageError
from kdump.primitives.crc import crc32c
from kdump.primitives.wire import INT32_MAX, Int16, Int32, Int64, Layout, UInt32, to_int32

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kdump.primitives.wire import Bytes

VERSION = 1


class SnapshotHeader(NamedTuple):
    """The bytes before the entries, with the field names of Kafka's schema."""

    version: Int16
    crc: UInt32
    producer_entries: Int32


class ProducerEntry(NamedTuple):
    """One producer: its last data batch and its open transaction. Without a batch or transaction the offsets are -1."""

    producer_id: Int64
    epoch: Int16
    last_sequence: Int32
    last_offset: Int64
    offset_delta: Int32
    timestamp: Int64
    coordinator_epoch: Int32
    current_txn_first_offset: Int64

    @property
    def has_batch(self) -> bool:
        return self.last_offset >= 0

    @property
    def has_open_transaction(self) -> bool:
        return self.current_txn_first_offset >= 0

    @property
    def first_sequence(self) -> int:
        """The first sequence number of the last data batch, after a possible overflow; 2147483647 without a batch."""
        if self.last_sequence < self.offset_delta:
            return to_int32(INT32_MAX - (self.offset_delta - self.last_sequence) + 1)
        return self.unwrapped_first_sequence

    @property
    def unwrapped_first_sequence(self) -> int:
        """Like :attr:`first_sequence`, but as releases before 2.1.1 compute it: negative after an overflow."""
        return to_int32(self.last_sequence - self.offset_delta)

    @property
    def open_transaction(self) -> int | None:
        """The first offset of the open transaction; None if none is open."""
        return self.current_txn_first_offset if self.has_open_transaction else None

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


HEADER = Layout(SnapshotHeader)
ENTRY = Layout(ProducerEntry)
GUARDED_FROM = HEADER.offsets["producer_entries"]


class SnapshotParts(NamedTuple):
    """The content of a snapshot, valid or not. A header field is None if the file does not have all of its bytes.

    ``announced`` is the stored number of entries, ``entries`` the complete ones of them, ``cut_in`` the first
    incomplete field (None if all are complete). ``room`` is the number of bytes after the header.
    """

    version: int | None
    crc: int | None
    announced: int | None
    entries: tuple[ProducerEntry, ...]
    cut_in: str | None
    computed_crc: int
    size: int

    @property
    def room(self) -> int:
        return max(0, self.size - HEADER.size)


def inspect(data: Bytes) -> SnapshotParts:
    """Parse a snapshot without verifying it."""
    computed = crc32c(memoryview(data)[GUARDED_FROM:])
    if len(data) < HEADER.size:
        known = [HEADER.offsets[name] + size <= len(data) for name, size in zip(HEADER.offsets, (2, 4, 4), strict=True)]
        head = HEADER.read(bytes(data) + bytes(HEADER.size))
        version, crc, _ = (value if whole else None for value, whole in zip(head, known, strict=True))
        return SnapshotParts(version, crc, None, (), list(HEADER.offsets)[known.index(False)], computed, len(data))
    header = HEADER.read(data)
    room, left = divmod(len(data) - HEADER.size, ENTRY.size)
    whole = min(header.producer_entries, room)
    entries = tuple(ENTRY.read(data, HEADER.size + slot * ENTRY.size) for slot in range(whole))
    cut_in = None
    if whole < header.producer_entries:
        ends = [*list(ENTRY.offsets.values())[1:], ENTRY.size]
        cut_in = next(name for name, end in zip(ENTRY.offsets, ends, strict=True) if end > left)
    return SnapshotParts(*header, entries, cut_in, computed, len(data))


def read(data: Bytes) -> tuple[ProducerEntry, ...]:
    """Return the entries. Raises DamageError for an unknown version, truncation, a negative count, a wrong checksum."""
    parts = inspect(data)
    if parts.version is not None and parts.version != VERSION:
        raise DamageError(
            "version", "a producer snapshot has an unknown version", expected=VERSION, found=parts.version
        )
    if parts.cut_in is not None:
        raise DamageError(
            "short",
            f"a producer snapshot is truncated in its field {parts.cut_in}",
            position=len(data),
            expected=f"{HEADER.size + max(0, parts.announced or 0) * ENTRY.size} bytes",
            found=f"{len(data)} bytes",
        )
    if parts.announced is not None and parts.announced < 0:
        raise DamageError(
            "count",
            "a producer snapshot has a negative number of entries",
            position=GUARDED_FROM,
            found=parts.announced,
        )
    if parts.crc != parts.computed_crc:
        raise DamageError(
            "crc",
            "the checksum of a producer snapshot is wrong",
            position=HEADER.offsets["crc"],
            expected=parts.computed_crc,
            found=parts.crc,
        )
    return parts.entries


def encode(entries: Iterable[ProducerEntry]) -> bytes:
    written = [ENTRY.write(entry) for entry in entries]
    guarded = len(written).to_bytes(4, "big") + b"".join(written)
    return VERSION.to_bytes(2, "big") + crc32c(guarded).to_bytes(4, "big") + guarded
