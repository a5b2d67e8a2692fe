"""The classes for records of any magic and their headers. :mod:`kdump.records` reads records from bytes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from operator import eq
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, overload

from kdump.primitives.wire import read_varint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RecordType: TypeAlias = Literal["data", "control", "tombstone"]
RECORD_TYPES: Final[tuple[RecordType, ...]] = ("data", "control", "tombstone")
GrepPart: TypeAlias = Literal["key", "value", "headers"]
GREP_PARTS: Final[tuple[GrepPart, ...]] = ("key", "value", "headers")
"""The parts of a record in which expressions can be searched. "headers" means the values of headers."""
KEY_AND_VALUE: Final[frozenset[GrepPart]] = frozenset({"key", "value"})
MANY_HEADERS: Final = 256
"""A record with more headers than this keeps them as bytes, which are parsed again on each iteration."""
LARGE: Final = 1 << 20
"""A record of at least this size in bytes is large: its text may be six times as large."""
LARGE_BATCH: Final = 4 << 20
"""A batch of at least this decompressed size in bytes is searched for large records before it is printed."""


class Header(NamedTuple):
    """A record header (KIP-82): a key, and a value that may be null."""

    key: bytes
    value: bytes | None


class ManyHeaders(Sequence[Header]):
    """Many headers of a record, as bytes: header objects would take up to 40 times the memory.

    ``data`` holds ``count`` well-formed headers of magic 2. ``change`` is applied to each header when it is read.
    """

    __slots__ = ("_change", "_count", "_data")

    def __init__(self, data: bytes, count: int, change: Callable[[Header], Header] | None = None) -> None:
        self._data, self._count, self._change = data, count, change

    def changed(self, change: Callable[[Header], Header]) -> ManyHeaders:
        """Return the stored headers with the function ``change`` instead of the earlier one."""
        return ManyHeaders(self._data, self._count, change)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Header]:
        return self._stored() if self._change is None else map(self._change, self._stored())

    def _stored(self) -> Iterator[Header]:
        data, position = self._data, 0
        for _ in range(self._count):
            size, start = read_varint(data, position)
            key = data[start : start + size]
            size, start = read_varint(data, start + size)
            position = start + max(0, size)
            yield Header(key, None if size < 0 else data[start:position])

    @overload
    def __getitem__(self, index: int) -> Header: ...
    @overload
    def __getitem__(self, index: slice) -> list[Header]: ...
    def __getitem__(self, index: int | slice) -> Header | list[Header]:
        if isinstance(index, slice):
            return list(self)[index]
        wanted = range(self._count)[index]
        return next(islice(self, wanted, None))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ManyHeaders):
            return self._count == other._count and all(map(eq, self, other))
        return isinstance(other, tuple) and len(other) == self._count and all(map(eq, self, other))

    def __hash__(self) -> int:
        return hash(tuple(self))


class Record(NamedTuple):
    """One record. None stands for a null key or value, a ``sequence`` below magic 2, and a ``crc`` above magic 1.

    ``timestamp`` is in ms; -1 in magic 0. ``headers`` is empty below magic 2. ``size`` is the record's size in bytes in
    the decompressed batch. The ``key_size`` or ``value_size`` of null is -1 in magic 2, and the stored negative number
    in magic 0 and 1. In magic 0 and 1 each message has its own checksum (``crc_valid``: whether it is right).
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[Header]
    sequence: int | None
    attributes: int
    key_size: int
    value_size: int
    size: int
    crc: int | None = None
    crc_valid: bool | None = None
