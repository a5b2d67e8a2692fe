"""What every batch can say of itself, whatever its magic."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from kdump.errors import DamageError
from kdump.primitives import compression

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kdump.formats.record import Record


class RecordBatch:  # no ABC: each isinstance() of a walk would cost five times as much
    """What the walk over a log yields: a magic 2 batch, or one entry (message or wrapper) of magic 0 or 1.

    Fields that magic 0 and 1 do not have are None. Properties raise DamageError where the stored value makes no sense.
    """

    __slots__ = ("limit", "position", "size")

    position: int
    """Where the batch starts in the file, in bytes."""
    size: int
    """Its size in bytes, the log overhead of 12 bytes included."""
    limit: int
    """Bytes that it may unpack to; more is damage."""

    @property
    def end(self) -> int:
        """The position behind the batch."""
        return self.position + self.size

    @property
    @abstractmethod
    def magic(self) -> int: ...

    @property
    @abstractmethod
    def base_offset(self) -> int:
        """The first offset. In a wrapper of magic 0 or 1 that of its first inner message, which must be unpacked."""

    @property
    @abstractmethod
    def last_offset(self) -> int: ...

    @property
    @abstractmethod
    def count(self) -> int | None:
        """The number of records that the header claims."""

    @property
    def is_whole(self) -> bool:
        """Whether the header counts a record for each of its offsets: the log cleaner took none away."""
        return self.count is not None and self.count == self.last_offset - self.base_offset + 1

    @property
    @abstractmethod
    def crc(self) -> int:
        """The stored checksum, unsigned."""

    @property
    @abstractmethod
    def crc_valid(self) -> bool: ...

    @property
    @abstractmethod
    def attributes(self) -> int: ...

    @property
    @abstractmethod
    def timestamp_type(self) -> int | None: ...

    @property
    @abstractmethod
    def max_timestamp(self) -> int:
        """The greatest timestamp in ms, as stored; -1 when there is none."""

    @property
    @abstractmethod
    def partition_leader_epoch(self) -> int | None: ...

    @property
    @abstractmethod
    def producer_id(self) -> int | None: ...

    @property
    @abstractmethod
    def producer_epoch(self) -> int | None: ...

    @property
    @abstractmethod
    def base_sequence(self) -> int | None: ...

    @property
    @abstractmethod
    def last_sequence(self) -> int | None: ...

    @property
    @abstractmethod
    def is_transactional(self) -> bool: ...

    @property
    @abstractmethod
    def is_control(self) -> bool: ...

    @property
    @abstractmethod
    def delete_horizon_ms(self) -> int | None:
        """When tombstones or markers of a compacted batch may go (KIP-534), in ms."""

    @property
    @abstractmethod
    def raw(self) -> memoryview:
        """The bytes of the whole batch, log overhead included."""

    @abstractmethod
    def records(self, limit: int | None = None) -> Iterator[Record]:
        """Yield the records in order.

        An uncompressed batch is read lazily: what stands before a bad record is yielded. A compressed one is read
        whole first. Raises DamageError (positions counted from the start of the batch; inside a compressed batch,
        that of its records) and LimitError (more than ``limit`` bytes unpacked, by default its own).
        """

    @property
    def codec(self) -> int:
        """The id of the codec. Raises DamageError when no codec has it."""
        code = self.attributes & 0x07
        if code >= len(compression.NAMES):
            raise DamageError(
                "codec", f"unknown compression codec {code}", position=self._attributes_position, found=code
            )
        return code

    @property
    @abstractmethod
    def _attributes_position(self) -> int:
        """Where the attributes stand in the batch."""


def misnumbered(batch: RecordBatch, offsets: Iterable[int]) -> DamageError | None:
    """Return what is wrong where a record of a whole batch has another's offset, None where all have their own.

    ``offsets`` are those of its records in order. In a batch that is not whole the cleaner left gaps.
    """
    if not batch.is_whole:
        return None
    for number, offset in enumerate(offsets, batch.base_offset):
        if offset != number:
            at = number - batch.base_offset + 1
            reason = f"record {at} of {batch.count} has offset {offset} where {number} belongs"
            return DamageError("record offset", reason, expected=number, found=offset)
    return None
