"""Reads and writes Kafka's primitive types (big endian), and fixed layouts made of them.

A layout is a NamedTuple whose fields are annotated with the types. Sizes and positions are derived from it. Source:
"Protocol Primitive Types" of the protocol guide, and Kafka's ``ByteUtils`` for variable-length integers (KIP-98).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from kdump.errors import DamageError

if TYPE_CHECKING:
    from collections.abc import Sequence

Bytes: TypeAlias = bytes | bytearray | memoryview

Int8: TypeAlias = int
Int16: TypeAlias = int
Int32: TypeAlias = int
Int64: TypeAlias = int
UInt32: TypeAlias = int
_CODES: Final = {"Int8": "b", "Int16": "h", "Int32": "i", "Int64": "q", "UInt32": "I"}

INT32_MAX: Final = (1 << 31) - 1
INT64_END: Final = 1 << 63
"""The largest Int64 plus 1."""

T = TypeVar("T", bound=tuple[Any, ...])


class Layout(Generic[T]):
    """The layout of a NamedTuple in bytes. ``offsets``: field -> position. ``spans``: field -> (start, end)."""

    def __init__(self, fields: type[T]) -> None:
        codes = {name: _CODES[word.__forward_arg__] for name, word in fields.__annotations__.items()}
        self.fields = fields
        self.struct = struct.Struct(">" + "".join(codes.values()))
        self.size = self.struct.size
        self.offsets: dict[str, int] = {}
        self.spans: dict[str, tuple[int, int]] = {}
        self._new: Any = tuple.__new__  # faster than the constructor of the NamedTuple
        offset = 0
        for name, code in codes.items():
            self.offsets[name] = start = offset
            offset += struct.calcsize(">" + code)
            self.spans[name] = start, offset

    def read(self, buffer: Bytes, position: int = 0) -> T:
        """Return the value at ``position``. Raises DamageError if the buffer ends inside it."""
        try:
            made: T = self._new(self.fields, self.struct.unpack_from(buffer, position))
        except struct.error:
            available = max(0, len(buffer) - position)
            raise DamageError(
                "short", f"{self.fields.__name__} is truncated", position=position, expected=self.size, found=available
            ) from None
        return made

    def write(self, value: T) -> bytes:
        return self.struct.pack(*value)

    def write_all(self, *columns: Sequence[int]) -> bytes:
        """Return the bytes of consecutive values, which are given as one column for each field."""
        codes = self.struct.format[1:]
        numbers = [0] * (len(codes) * len(columns[0]))
        for at, column in enumerate(columns):
            numbers[at :: len(codes)] = column
        return struct.Struct(f">{codes * len(columns[0])}").pack(*numbers)


class Read(NamedTuple):
    value: int
    end: int


def read_unsigned_varint(buffer: Bytes, position: int, bits: int = 32) -> Read:
    """Return the unsigned varint of 32 or 64 ``bits`` (at most 5 or 10 bytes) at ``position``, and its end.

    Raises DamageError if the varint is truncated or too long. As in Java, bits beyond the type are dropped.
    """
    value = shift = 0
    start = position
    limit = 35 if bits == 32 else 70
    while True:
        try:
            byte = buffer[position]
        except IndexError:
            raise DamageError(
                "varint", "a variable-length integer is truncated", position=start, expected="a last byte below 0x80"
            ) from None
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return Read(value & ((1 << bits) - 1), position)
        shift += 7
        if shift >= limit:
            raise DamageError(
                "varint",
                "a variable-length integer does not end",
                position=start,
                expected=f"at most {limit // 7} bytes",
                found=bytes(buffer[start:position]).hex(),
            )


def read_varint(buffer: Bytes, position: int, bits: int = 32) -> Read:
    """Like :func:`read_unsigned_varint` for a zigzag varint (``bits=32``, ByteUtils.readVarint) or varlong (64)."""
    if position < len(buffer) and (byte := buffer[position]) < 0x80:  # most varints have one byte
        return Read((byte >> 1) ^ -(byte & 1), position + 1)
    raw, position = read_unsigned_varint(buffer, position, bits)
    return Read((raw >> 1) ^ -(raw & 1), position)


def write_unsigned_varint(value: int) -> bytes:
    """Return the shortest unsigned varint of a value that is not negative."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def write_varint(value: int) -> bytes:
    """Return the zigzag varint of ``value``: 0 is 00, -1 is 01, 1 is 02."""
    return write_unsigned_varint(value << 1 if value >= 0 else (-value << 1) - 1)


def to_int32(value: int) -> int:
    """Wrap to a signed 32-bit integer, as Java's arithmetic does."""
    return (value + 0x80000000 & 0xFFFFFFFF) - 0x80000000


def to_int64(value: int) -> int:
    """Wrap to a signed 64-bit integer, as Java's arithmetic does."""
    return value if -(1 << 63) <= value < 1 << 63 else (value + (1 << 63) & (1 << 64) - 1) - (1 << 63)
