"""The vocabulary of the stream: what a segment is made of.

A segment is read as a lazy stream of pieces. Every byte of the file belongs to exactly one of them: their sizes sum
to the file's size. Positions are byte offsets in the file, times are milliseconds since 1970 (UTC).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from kdump import codecs

if TYPE_CHECKING:
    from collections.abc import Iterator

CREATE_TIME: Final = 0
LOG_APPEND_TIME: Final = 1
TIMESTAMP_TYPES: Final = {None: "NoTimestampType", CREATE_TIME: "CreateTime", LOG_APPEND_TIME: "LogAppendTime"}
"""Kafka's words for the types of a timestamp; None stands for magic 0, which has no timestamps."""


class Header(NamedTuple):
    """A record header (KIP-82): a key, and a value that may be null."""

    key: bytes
    value: bytes | None


class Record(NamedTuple):
    """One record. ``None`` is Kafka's null for key and value, and "this magic has no such field" elsewhere.

    ``timestamp`` is in ms; ``size`` is the record's whole size in bytes in the (decompressed) batch; ``key_size`` and
    ``value_size`` are the sizes as stored (-1 for null in magic 2; magic 0 and 1 may hold any negative number).
    ``crc`` and ``crc_valid`` stand only in magic 0 and 1, where each message has its own checksum.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    sequence: int | None
    attributes: int
    key_size: int
    value_size: int
    size: int
    crc: int | None = None
    crc_valid: bool | None = None


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
        if code >= len(codecs.NAMES):
            from kdump.errors import DamageError

            raise DamageError(
                "codec", f"unknown compression codec {code}", position=self._attributes_position, found=code
            )
        return code

    @property
    @abstractmethod
    def _attributes_position(self) -> int:
        """Where the attributes stand in the batch."""


class Damage(NamedTuple):
    """A stretch of bytes that cannot be read.

    ``kind`` is a short stable word, ``reason`` a sentence; ``at`` the position of the field that is wrong.
    ``missing_from`` is the offset behind the last sound batch before it, ``missing_until`` the first offset of the
    next sound one: the offsets in between are missing (as far as there were any). None where nothing tells.
    """

    position: int
    size: int
    kind: str
    reason: str
    at: int
    expected: object = None
    found: object = None
    missing_from: int | None = None
    missing_until: int | None = None

    @property
    def end(self) -> int:
        """The position behind it."""
        return self.position + self.size

    @property
    def missing(self) -> range | None:
        """The offsets that are missing; None when one of the two ends is not known."""
        if self.missing_from is None or self.missing_until is None:
            return None
        return range(self.missing_from, max(self.missing_from, self.missing_until))


class Padding(NamedTuple):
    """Zeros behind the last batch: a preallocated file that was not trimmed."""

    position: int
    size: int


class Trailing(NamedTuple):
    """The beginning of a batch that the end of the file cuts off."""

    position: int
    size: int


Piece: TypeAlias = RecordBatch | Damage | Padding | Trailing
