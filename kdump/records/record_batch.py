"""The interface of batches: one of any magic, or several that follow each other."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from kdump.errors import DamageError
from kdump.primitives import compression

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterable, Iterator, Sequence

    from kdump.formats.record import Record


BriefRecord: TypeAlias = tuple[int, int, bytes | None, bytes | None, int]
"""Offset, timestamp in ms, key, value, and size in bytes of a record."""
_PROPERTIES: Final = {"records_count": "count"}
"""Properties of a batch that have another name than the header field."""


class Batches:  # no ABC: each isinstance() of a walk would cost five times as much
    """One batch, or several that follow each other and have the same attributes: a single batch is a run of one.

    Numbers of batches count from 0; ranges of them are half-open. Header fields have the names of
    :data:`kdump.formats.record_layout.BATCH_HEADER`, and ``last_offset``, ``last_sequence``, ``position`` and ``size``.
    """

    __slots__ = ()

    position: int
    """Where the first batch starts in the file, in bytes."""
    size: int
    """The size of all batches in bytes, the log overhead of 12 bytes included."""
    rows: array[int] | None
    """The kernel's table of numbers, a row for each batch (:class:`kdump.segments.batch_runs.Run`); None for no run."""
    block: memoryview
    """The bytes that a run is a part of."""

    @property
    def end(self) -> int:
        """The position after the last batch."""
        return self.position + self.size

    @property
    @abstractmethod
    def batch_count(self) -> int:
        """The number of batches."""

    @property
    @abstractmethod
    def first(self) -> RecordBatch:
        """The first batch. All others have its attributes."""

    @property
    def last(self) -> RecordBatch:
        """The last batch."""
        return self.batch(self.batch_count - 1)

    @property
    @abstractmethod
    def last_offset(self) -> int:
        """The last offset of the last batch."""

    @property
    @abstractmethod
    def raw(self) -> memoryview:
        """The bytes of all batches, log overhead included."""

    @abstractmethod
    def batch(self, row: int) -> RecordBatch:
        """Return a batch by its number."""

    def batches(self, row: int = 0) -> Iterable[RecordBatch]:
        """Return the batches from ``row`` on."""
        return map(self.batch, range(row, self.batch_count))

    @abstractmethod
    def brief_records(self) -> tuple[list[BriefRecord], int]:
        """Return the records of the first batches that the kernel can read, and the number of these batches."""

    @abstractmethod
    def column(self, name: str, row: int = 0, stop: int | None = None) -> Sequence[int]:
        """Return a header field of the batches from ``row`` to before ``stop``, by default of all.

        It is -1 where magic 0 and 1 have no such field, as in Kafka. Raises DamageError.
        """

    def field(self, name: str, row: int) -> int:
        """Return a header field of one batch."""
        return self.column(name, row, row + 1)[0]

    def least(self, name: str, row: int = 0, stop: int | None = None) -> int:
        """Return the least number of a column. Raises ValueError for no batches."""
        return min(self.column(name, row, stop))

    def greatest(self, name: str, row: int = 0, stop: int | None = None) -> int:
        """Return the greatest number of a column. Raises ValueError for no batches."""
        return max(self.column(name, row, stop))


class RecordBatch(Batches):
    """A batch of magic 2, or one entry (message or wrapper) of magic 0 or 1.

    Fields that magic 0 and 1 do not have are None. Properties raise DamageError where the stored value makes no sense.
    """

    __slots__ = ("limit", "position", "size")

    limit: int
    """Largest uncompressed size in bytes; a larger one is damage."""
    batch_count = 1
    rows = None

    def brief_records(self) -> tuple[list[BriefRecord], int]:
        return [], 0

    @property
    def first(self) -> RecordBatch:
        return self

    @property
    def last(self) -> RecordBatch:
        return self

    def batch(self, row: int) -> RecordBatch:  # noqa: ARG002  there is one
        return self

    def batches(self, row: int = 0) -> Iterable[RecordBatch]:
        return () if row else (self,)

    def column(self, name: str, row: int = 0, stop: int | None = None) -> Sequence[int]:  # noqa: ARG002  there is one
        value = getattr(self, _PROPERTIES.get(name, name))
        return (-1 if value is None else value,)

    @property
    @abstractmethod
    def magic(self) -> int: ...

    @property
    @abstractmethod
    def base_offset(self) -> int:
        """The first offset. For a wrapper of magic 0 or 1 that of its first inner message: it must be decompressed."""

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

    @abstractmethod
    def records(self, limit: int | None = None) -> Iterator[Record]:
        """Yield the records in order.

        An uncompressed batch is read lazily: what stands before a bad record is yielded. A compressed one is read
        whole first. Raises DamageError (positions counted from the start of the batch; inside a compressed batch,
        that of its records) and LimitError (more than ``limit`` bytes decompressed, by default its own).
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
    """Return the error for the first record of a complete batch with a wrong offset; None if there is none.

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


_CHUNK: Final = 2048


class RecordBytes(NamedTuple):
    """The bytes of a record or message in a decompressed stream: its size field, and its content."""

    start: int
    content: int
    end: int


def end_of_lz4_chunks(empty: list[int], records: Iterable[RecordBytes]) -> int | None:
    """Return the position at which Kafka 3.6 stops while it reads ``records``; None when it reads them all.

    ``empty`` are the rising positions of blocks that hold nothing, as ``compression.UnpackedLz4`` has them.
    """
    for record in records:
        for position in empty:
            if record.start <= position < record.end and (position < record.content or record.end - position < _CHUNK):
                return position
    return None


def end_of_lz4_bytes(empty: list[int], records: Iterable[RecordBytes]) -> int | None:
    """Return the position at which Kafka before 3.6 stops while it reads ``records`` of magic 2, None for nowhere."""
    end = None
    for record in records:
        end = record.end
        for position in empty:
            if record.start <= position < record.content:
                return position
    return next((position for position in empty if end is not None and position >= end), None)
