"""Reads Protobuf's wire format: numbers, lengths, groups, and scalars as JSON values."""

from __future__ import annotations

from struct import pack, unpack
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kdump.schemas import UndecodableError
from kdump.schemas.avro import base64, number
from kdump.schemas.proto_model import MAX_NUMBER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_DEPTH: Final = 100
"""Maximum number of levels of messages in a message, of groups in a group, and of imports, as in protobuf's readers."""
VARINT, FIXED64, BYTES, GROUP, END_GROUP, FIXED32 = range(6)


def varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Return the varint at a position, unsigned in 64 bits, and the position after it. Raises UndecodableError."""
    value = shift = 0
    while True:
        if position >= end:
            raise UndecodableError("the payload ends early")
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFFFFFFFFFFFFFF, position
        shift += 7
        if shift > 63:
            raise UndecodableError("a number takes more than 10 bytes")


_MOST_OF_TAG: Final = 5
"""Maximum number of bytes of a tag, which has 32 bits."""


def read_tag(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Return the tag at a position, and the position after it. Raises UndecodableError for an invalid tag."""
    tag, after = varint(data, position, end)
    if after - position > _MOST_OF_TAG or not 0 < tag >> 3 <= MAX_NUMBER:
        raise UndecodableError(f"a field has the invalid number {tag >> 3}")
    return tag, after


def zigzag(value: int) -> int:
    return value >> 1 ^ -(value & 1)


def int32(value: int) -> int:
    """Return the lower 32 bits of a number as a signed number."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def _int64(value: int) -> str:
    return str(value - (1 << 64) if value >> 63 else value)


_ENDLESS: Final = 2.0**128 - 2.0**103
"""The smallest number that rounds to infinity as a 32-bit float."""


def _float32(data: bytes) -> float | str:
    """Return a 32-bit float rounded to the fewest of 6 to 9 digits that identify it."""
    value: float = unpack("<f", data)[0]
    if value - value != 0:
        return number(value)
    rounded = (float(f"{value:.{digits}g}") for digits in range(6, 10))
    return next(short for short in rounded if abs(short) < _ENDLESS and pack("<f", short) == data)


_OF_VARINT: Final[Mapping[str, Callable[[int], Any]]] = {
    "int32": int32,
    "int64": _int64,
    "uint32": lambda value: value & 0xFFFFFFFF,
    "uint64": str,
    "sint32": lambda value: int32(zigzag(value & 0xFFFFFFFF)),
    "sint64": lambda value: str(zigzag(value)),
    "bool": bool,
}
_OF_BYTES: Final[Mapping[str, tuple[int, Callable[[bytes], Any]]]] = {
    "double": (8, lambda data: number(unpack("<d", data)[0])),
    "float": (4, _float32),
    "fixed32": (4, lambda data: unpack("<I", data)[0]),
    "sfixed32": (4, lambda data: unpack("<i", data)[0]),
    "fixed64": (8, lambda data: str(unpack("<Q", data)[0])),
    "sfixed64": (8, lambda data: str(unpack("<q", data)[0])),
}
DEFAULTS: Final[Mapping[str, Any]] = {
    "double": 0.0,
    "float": 0.0,
    "bool": False,
    "string": "",
    "bytes": "",
    **dict.fromkeys(("int64", "uint64", "sint64", "fixed64", "sfixed64"), "0"),
}
"""Scalar type -> its default in JSON, except the 32-bit integers: 0."""

Read: TypeAlias = "Callable[[bytes, int, int, Any], tuple[Any, int]]"
"""A function (payload, position, end of the message, walk) that returns a value and the position after it."""


def scalar(kind: str) -> Read:
    """Return the reader of a scalar type: 64-bit integers, NaN and infinities become text, bytes become base64."""
    if kind in _OF_VARINT:
        convert = _OF_VARINT[kind]

        def read_varint(data: bytes, position: int, end: int, _: object) -> tuple[Any, int]:
            value, position = varint(data, position, end)
            return convert(value), position

        return read_varint
    if kind in _OF_BYTES:
        size, of_bytes = _OF_BYTES[kind]

        def read_fixed(data: bytes, position: int, end: int, _: object) -> tuple[Any, int]:
            after = position + size
            if after > end:
                raise UndecodableError("the payload ends early")
            return of_bytes(data[position:after]), after

        return read_fixed
    return _read_string if kind == "string" else _read_bytes


def span(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Read a length; return the start and the end of the bytes after it. Raises UndecodableError."""
    size, position = varint(data, position, end)
    if size > end - position:
        raise UndecodableError(f"a length is {size}, but {end - position} bytes are left")
    return position, position + size


def _read_string(data: bytes, position: int, end: int, _: object) -> tuple[str, int]:
    begin, after = span(data, position, end)
    try:
        return data[begin:after].decode(), after
    except UnicodeDecodeError as reason:
        raise UndecodableError(f"a string is not UTF-8 ({reason.reason})") from None


def _read_bytes(data: bytes, position: int, end: int, _: object) -> tuple[str, int]:
    begin, after = span(data, position, end)
    return base64(data[begin:after]), after


def skip(data: bytes, position: int, end: int, wire: int, field: int) -> int:
    """Return the position after a field. ``position`` is the position after its tag. Raises UndecodableError."""
    if wire == VARINT:
        return varint(data, position, end)[1]
    if wire == BYTES:
        return span(data, position, end)[1]
    if wire == GROUP:
        return group_end(data, position, end, field)[1]
    after = position + (8 if wire == FIXED64 else 4)
    if wire not in (FIXED64, FIXED32) or after > end:
        raise UndecodableError("the payload ends early" if after > end else f"a field has the unknown wire type {wire}")
    return after


def group_end(data: bytes, position: int, end: int, field: int) -> tuple[int, int]:
    """Return the end of a group's content, and the position after its end tag. Raises UndecodableError."""
    open_groups = [field]
    while True:
        begin = position
        tag, position = read_tag(data, position, end)
        wire, found = tag & 7, tag >> 3
        if wire == END_GROUP:
            if found != open_groups.pop():
                raise UndecodableError("a Protobuf group does not end with its own field number")
            if not open_groups:
                return begin, position
        elif wire == GROUP:
            open_groups.append(found)
            if len(open_groups) > MAX_DEPTH:
                raise UndecodableError("groups are nested too deep")
        else:
            position = skip(data, position, end, wire, found)
