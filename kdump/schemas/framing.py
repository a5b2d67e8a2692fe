"""The frames of payloads: bytes or headers that identify or contain the schema.

* prefix: ``00``, the schema id (int32, big endian), the payload (Confluent's wire format).
* header: the record header ``__key_schema_id`` or ``__value_schema_id`` has ``01`` and the 16 bytes of the GUID, or
  ``00`` and the id, then the path of a Protobuf message; the payload has no prefix (Confluent's serializers from 8.0).
* single-object: ``C3 01``, the CRC-64-AVRO of the schema, the payload (Avro specification).
* file: ``Obj`` ``01``, an Avro container file with its own schema.
"""

from __future__ import annotations

from base64 import b64decode
from struct import pack
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


Framing: TypeAlias = Literal["prefix", "header", "single-object", "file"]
Side: TypeAlias = Literal["key", "value"]

PREFIX_SIZE: Final = 5
DIGEST_SIZE: Final = 16
"""Size of a GUID in a header, in bytes."""
SINGLE_OBJECT: Final = b"\xc3\x01"
FILE_MAGIC: Final = b"Obj\x01"
_SINGLE_OBJECT_SIZE: Final = 10
_HEADERS: Final = {"key": b"__key_schema_id", "value": b"__value_schema_id"}
_WITH_ID, _WITH_GUID = 0, 1
"""The first byte of a header."""


class SchemaFrame(NamedTuple):
    """The frame of a payload. ``position``: where the reader starts (file: 0). ``indexes``: the rest of a header."""

    framing: Framing
    position: int
    schema_id: int | None = None
    guid: str | None = None
    fingerprint: bytes = b""
    indexes: bytes = b""


def frame_of(side: Side, payload: bytes, headers: Iterable[tuple[bytes, bytes | None]]) -> SchemaFrame | None:
    """Return the frame in the side's last complete header (as Confluent appends it), else the payload's, or None."""
    name, found = _HEADERS[side], None
    for header, value in headers:
        if header == name and value:
            found = _of_header(value) or found
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
        from uuid import UUID

        return SchemaFrame("header", 0, guid=str(UUID(bytes=value[1:end])), indexes=value[end:])
    if value[0] == _WITH_ID and len(value) >= PREFIX_SIZE:
        number = int.from_bytes(value[1:PREFIX_SIZE], "big", signed=True)
        return SchemaFrame("header", 0, number, indexes=value[PREFIX_SIZE:])
    return None


def guid_of_value(value: Mapping[str, Any], text: str, references: Sequence[Mapping[str, Any]]) -> str:
    """Return the GUID of a SCHEMA value: the stored digest (field ``md5``) if valid, otherwise the computed digest."""
    from uuid import UUID

    stored = value.get("md5")
    if isinstance(stored, str):
        try:
            digest = b64decode(stored, validate=True)
        except ValueError:
            digest = b""
        if len(digest) == DIGEST_SIZE:
            return str(UUID(bytes=digest))
    return guid_of(text, references, value.get("metadata"), value.get("ruleSet"))


def guid_of(
    text: str, references: Sequence[Mapping[str, Any]], metadata: object = None, rule_set: object = None
) -> str:
    """Return the GUID of a schema as text (8-4-4-4-12 hexadecimal digits), as Confluent's serializers write it.

    The GUID is the MD5 of the schema's text, references, metadata and rules. Source:
    ``Schema.updateHash`` of Confluent's schema-registry (client/rest/entities/Schema.java, Apache 2.0).
    """
    from hashlib import md5
    from uuid import UUID

    digest = md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False)
    for reference in references:
        _texts(digest, (reference.get("name"), reference.get("subject")))
        version = reference.get("version")
        digest.update(pack(">i", version if isinstance(version, int) and -(2**31) <= version < 2**31 else -1))
    if isinstance(metadata, dict):
        digest.update(b"\x01")
        for name, values in sorted(_items(metadata.get("tags"))):
            _texts(digest, (name, *sorted(map(str, values if isinstance(values, list) else ()))))
        for name, value in sorted(_items(metadata.get("properties"))):
            _texts(digest, (name, value))
        sensitive = metadata.get("sensitive")
        _texts(digest, sorted(map(str, sensitive)) if isinstance(sensitive, list) else ())
    if isinstance(rule_set, dict):
        digest.update(b"\x01")
        for kind in ("migrationRules", "domainRules", "encodingRules"):
            rules = rule_set.get(kind)
            for rule in rules if isinstance(rules, list) else ():
                if isinstance(rule, dict):
                    _rule(digest, rule)
        _texts(digest, (rule_set.get("enableAt"),))
    return str(UUID(bytes=digest.digest()))


def _rule(digest: Any, rule: Mapping[str, Any]) -> None:
    tags = rule.get("tags")
    _texts(digest, (rule.get(name) for name in ("name", "doc", "kind", "mode", "type")))
    _texts(digest, sorted(map(str, tags)) if isinstance(tags, list) else ())
    for name, value in sorted(_items(rule.get("params"))):
        _texts(digest, (name, value))
    _texts(digest, (rule.get(name) for name in ("expr", "onSuccess", "onFailure")))
    if rule.get("disabled") is True:
        digest.update(b"\x01")


def _items(value: object) -> list[tuple[str, Any]]:
    return [(str(name), each) for name, each in value.items()] if isinstance(value, dict) else []


def _texts(digest: Any, texts: Iterable[object]) -> None:
    for text in texts:
        if text is not None:
            digest.update(str(text).encode("utf-8", "surrogatepass"))
