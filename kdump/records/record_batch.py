"""The interface of batches: a single batch of any magic, or several consecutive batches.

The functions find wrong offsets of records, and the position at which Kafka stops reading an LZ4 stream.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from kdump.errors import DamageError
from kdump.formats.record_layout import BATCH_HEADER
from kdump.primitives import compression

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterable, Iterator, Sequence

    from kdump.formats.record import Record


BriefRecord: TypeAlias = tuple[int, int, bytes | None, bytes | None, int]
"""Offset, timestamp in ms, key, value, and size in bytes of a record."""
_PROPERTIES: Final = {"records_count": "count"}
"""Header field -> the property that has its value under another name."""


class Batches:  # no ABC: isinstance(), called for each batch, would take five times as long
    """One batch, or several consecutive batches that are read together.

    Batches are numbered from 0 (``row``). Columns are most fields of :data:`kdump.formats.record_layout.BATCH_HEADER`,
    and ``last_offset``, ``last_sequence``, ``position`` and ``size``.
    """

    __slots__ = ()

    position: int
    """The position of the first batch in the file, in bytes."""
    size: int
    """The size of all batches in bytes, with their log overheads."""
    rows: array[int] | None
    """The table of header fields of a :class:`kdump.segments.batch_runs.Run`; else None."""
    block: memoryview
    """The bytes that contain several batches."""

    @property
    def end(self) -> int:
        return self.position + self.size

    @property
    @abstractmethod
    def batch_count(self) -> int: ...

    @property
    @abstractmethod
    def first(self) -> RecordBatch: ...

    @property
    def last(self) -> RecordBatch:
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
    def batch(self, row: int) -> RecordBatch: ...

    def batches(self, row: int = 0) -> Iterable[RecordBatch]:
        return map(self.batch, range(row, self.batch_count))

    @abstractmethod
    def brief_records(self) -> tuple[list[BriefRecord], int]:
        """Return the records of a run's leading batches that compiled code can read, and the number of the batches."""

    @abstractmethod
    def column(self, name: str, row: int = 0, stop: int | None = None) -> Sequence[int]:
        """Return a column for the batches ``row`` to ``stop`` (exclusive), by default for all batches.

        As in Kafka, fields that magic 0 and 1 do not have are -1. Raises DamageError for an invalid message.
        """

    def field(self, name: str, row: int) -> int:
        return self.column(name, row, row + 1)[0]

    def least(self, name: str, row: int = 0, stop: int | None = None) -> int:
        return min(self.column(name, row, stop))

    def greatest(self, name: str, row: int = 0, stop: int | None = None) -> int:
        return max(self.column(name, row, stop))


class RecordBatch(Batches):
    """A batch of magic 2, or one entry (message or wrapper) of magic 0 or 1.

    In magic 0 and 1, fields that only magic 2 has are None or False. Properties may raise DamageError.
    """

    __slots__ = ("limit", "position", "size")

    limit: int
    """Largest accepted size in bytes, decompressed."""
    batch_count = 1
    rows = None
    _data: memoryview

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields to pickle, with the bytes of this batch instead of a view into a block."""
        names = (name for kind in type(self).__mro__ for name in getattr(kind, "__slots__", ()))
        own = bytes(self._data[: max(self.size, BATCH_HEADER.size)])
        return {name: getattr(self, name) for name in names} | {"_data": own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, memoryview(value) if name == "_data" else value)

    def brief_records(self) -> tuple[list[BriefRecord], int]:
        return [], 0

    @property
    def first(self) -> RecordBatch:
        return self

    @property
    def last(self) -> RecordBatch:
        return self

    def batch(self, row: int) -> RecordBatch:  # noqa: ARG002  it has one row
        return self

    def batches(self, row: int = 0) -> Iterable[RecordBatch]:
        return () if row else (self,)

    def column(self, name: str, row: int = 0, stop: int | None = None) -> Sequence[int]:  # noqa: ARG002  it has one row
        value = getattr(self, _PROPERTIES.get(name, name))
        return (-1 if value is None else value,)

    @property
    @abstractmethod
    def magic(self) -> int: ...

    @property
    @abstractmethod
    def base_offset(self) -> int:
        """The first offset. A wrapper of magic 0 or 1 is decompressed for the offset of its first inner message."""

    @property
    def count(self) -> int | None:
        """The number of records that the header claims; None in magic 0 and 1."""
        return None

    @property
    def is_whole(self) -> bool:
        """Whether the header counts one record for each offset: none was removed. False in magic 0 and 1."""
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
        """The greatest timestamp in ms, as stored; -1 if the batch has no timestamp."""

    @property
    def partition_leader_epoch(self) -> int | None:
        return None

    @property
    def leader_epoch(self) -> int:
        """The partition leader epoch; -1 if there is none, as in magic 0 and 1."""
        epoch = self.partition_leader_epoch
        return -1 if epoch is None else epoch

    @property
    def producer_id(self) -> int | None:
        return None

    @property
    def producer_epoch(self) -> int | None:
        return None

    @property
    def base_sequence(self) -> int | None:
        return None

    @property
    def last_sequence(self) -> int | None:
        return None

    @property
    def is_transactional(self) -> bool:
        return False

    @property
    def is_control(self) -> bool:
        return False

    @property
    def delete_horizon_ms(self) -> int | None:
        """The time from which the cleaner may remove tombstones and markers of the batch (KIP-534), in ms."""
        return None

    @abstractmethod
    def records(self, limit: int | None = None) -> Iterator[Record]:
        """Yield the records in order.

        A malformed record raises DamageError. The records before it are yielded first, except in a compressed batch of
        magic 2, and in a wrapper with a too small message. The error's position counts from the start of the batch, of
        the decompressed records or of an inner message. Raises LimitError above ``limit`` bytes (default: own limit).
        """

    @property
    def codec(self) -> int:
        """The id of the codec. Raises DamageError for an unknown codec."""
        code = self.attributes & 0x07
        if code >= len(compression.NAMES):
            raise DamageError(
                "codec", f"unknown compression codec {code}", position=self._attributes_position, found=code
            )
        return code

    @property
    @abstractmethod
    def _attributes_position(self) -> int:
        """The position of the attributes in the batch."""


def misnumbered(batch: RecordBatch, offsets: Iterable[int]) -> DamageError | None:
    """Return an error for the first of ``offsets`` out of sequence; None without one, or if the batch is not whole."""
    if not batch.is_whole:
        return None
    for number, offset in enumerate(offsets, batch.base_offset):
        if offset != number:
            at = number - batch.base_offset + 1
            reason = f"record {at} of {batch.count} has offset {offset} instead of {number}"
            return DamageError("record offset", reason, expected=number, found=offset)
    return None


_CHUNK: Final = 2048


class RecordBytes(NamedTuple):
    """The positions of a record's size field, content and end in a decompressed stream."""

    start: int
    content: int
    end: int


def end_of_lz4_chunks(empty: list[int], records: Iterable[RecordBytes]) -> int | None:
    """Return the position at which Kafka from 3.6 on stops reading ``records``; None if it reads them all.

    Kafka reads LZ4 through a ChunkedBytesStream, which takes some empty blocks for the end (KAFKA-14633). ``empty`` are
    the rising positions of empty blocks (:class:`kdump.primitives.compression.UnpackedLz4`).
    """
    for record in records:
        for position in empty:
            if record.start <= position < record.end and (position < record.content or record.end - position < _CHUNK):
                return position
    return None


def end_of_lz4_bytes(empty: list[int], records: Iterable[RecordBytes]) -> int | None:
    """Like :func:`end_of_lz4_chunks` for Kafka before 3.6 and magic 2: it takes other empty blocks for the end."""
    end = None
    for record in records:
        end = record.end
        for position in empty:
            if record.start <= position < record.content:
                return position
    return next((position for position in empty if end is not None and position >= end), None)
