"""The framing in which a payload names its schema.

* prefix: ``00``, the schema id (int32, big endian), the payload (Confluent's wire format).
* header: the record header ``__key_schema_id`` or ``__value_schema_id`` holds ``01`` and the 16 bytes of the GUID, or
  ``00`` and the id; the payload stands alone (Confluent's serializers from 8.0 on).
* single-object: ``C3 01``, the CRC-64-AVRO of the schema, the payload (Avro specification).
* file: ``Obj`` ``01``, an Avro container file with its own schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

Framing: TypeAlias = Literal["prefix", "header", "single-object", "file"]
Side: TypeAlias = Literal["key", "value"]

PREFIX_SIZE: Final = 5
DIGEST_SIZE: Final = 16
"""Bytes of a GUID in a header."""
SINGLE_OBJECT: Final = b"\xc3\x01"
FILE_MAGIC: Final = b"Obj\x01"
"""What an Avro container file begins with."""
_SINGLE_OBJECT_SIZE: Final = 10
_HEADERS: Final = {"key": b"__key_schema_id", "value": b"__value_schema_id"}
_WITH_ID, _WITH_GUID = 0, 1
"""The first byte of a prefix or header."""


class SchemaFrame(NamedTuple):
    """A payload's frame. The message begins at ``position``; ``indexes`` is the Protobuf path that a header has."""

    framing: Framing
    position: int
    schema_id: int | None = None
    guid: str | None = None
    fingerprint: bytes = b""
    indexes: bytes = b""


def frame_of(side: Side, payload: bytes, headers: Iterable[tuple[bytes, bytes | None]]) -> SchemaFrame | None:
    """Return the frame of a payload, or None if it carries none."""
    name = _HEADERS[side]
    for header, value in headers:
        if header == name and value:
            found = _of_header(value)
            if found is not None:
                return found
    if payload[:1] == b"\0":
        if len(payload) < PREFIX_SIZE:
            return None
        return SchemaFrame("prefix", PREFIX_SIZE, int.from_bytes(payload[1:PREFIX_SIZE], "big", signed=True))
    if payload.startswith(SINGLE_OBJECT) and len(payload) >= _SINGLE_OBJECT_SIZE:
        return SchemaFrame("single-object", _SINGLE_OBJECT_SIZE, fingerprint=payload[2:_SINGLE_OBJECT_SIZE])
    return SchemaFrame("file", 0) if payload.startswith(FILE_MAGIC) else None


def _of_header(value: bytes) -> SchemaFrame | None:
    end = 1 + DIGEST_SIZE
    if value[0] == _WITH_GUID and len(value) >= end:
        from uuid import UUID  # few payloads are framed so

        return SchemaFrame("header", 0, guid=str(UUID(bytes=value[1:end])), indexes=value[end:])
    if value[0] == _WITH_ID and len(value) >= PREFIX_SIZE:
        number = int.from_bytes(value[1:PREFIX_SIZE], "big", signed=True)
        return SchemaFrame("header", 0, number, indexes=value[PREFIX_SIZE:])
    return None
