"""The decoders that print the records of a coordinator as JSON: a key's type, a value's version, and their fields."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, cast

from kdump.dump_log_segments.decoders import java
from kdump.dump_log_segments.decoders.texts import DELETE, Parser, Texts, no_key
from kdump.internal_topics.consumer_offsets import EMBEDDED
from kdump.internal_topics.decode import by_type
from kdump.internal_topics.interpreter import PayloadError, Reader, read_fields

if TYPE_CHECKING:
    from kdump.dump_log_segments.dialects.payload import CoordinatorWords
    from kdump.internal_topics.schema import MessageSchema, Release, Struct, Value, Values

CONSUMER: Final = "consumer"
"""The protocol type whose members' bytes are shown decoded."""
GROUP: Final = "GroupMetadataValue"
KEYS: Final = 1 << 12
"""Texts of keys that are kept: the same few keys come again and again."""
MEMBER_BYTES: Final = {"subscription": "ConsumerProtocolSubscription", "assignment": "ConsumerProtocolAssignment"}


def parser(messages: dict[str, MessageSchema], words: CoordinatorWords, release: Release) -> Parser:
    """Return what prints records of ``messages`` as ``release`` knows them."""
    keys, values = by_type(messages, "Key", release), by_type(messages, "Value", release)

    @lru_cache(maxsize=KEYS)
    def key_of(key: bytes) -> tuple[int, str | None]:
        """Return the type of a record and the text of its key, None for an unknown type."""
        reader = Reader(key, counts_tags=words.counts_tagged_fields)
        number = _read_version(reader, "key")
        if number not in keys:
            return number, None
        struct = keys[number].struct(0, release)
        return number, _text(struct, reader, release, label="type", number=number, part="key")

    @lru_cache
    def struct_of(number: int, version: int) -> Struct:
        known = values[number].versions(release)
        if words.checks_version and known is not None and not known.has(version):
            said = f"Found an unknown record version {version} for {number} type"
            raise PayloadError(said, "unknown version", 0)
        return values[number].struct(version, release)

    def parse(offset: int, key: bytes | None, value: bytes | None) -> Texts:
        if key is None:
            raise no_key(offset)
        try:
            number, key_text = key_of(key)
            if key_text is None:
                return Texts(f"Unknown record type {number} at offset {offset}, skipping.", None)
            if value is None:
                return Texts(key_text, DELETE)
            reader = Reader(value, counts_tags=words.counts_tagged_fields)
            version = _read_version(reader, "value")
            struct = struct_of(number, version)
            value_text = _text(struct, reader, release, label=words.value_version, number=version, part="value")
            return Texts(key_text, value_text)
        except PayloadError as error:
            return Texts(f"Error at offset {offset}, skipping. {error.said}", None)

    return parse


def _read_version(reader: Reader, part: str) -> int:
    try:
        return reader.int16()
    except PayloadError as error:
        raise PayloadError(f"Could not read version from {part}'s buffer.", error.what, error.position) from None


def _text(struct: Struct, reader: Reader, release: Release, *, label: str, number: int, part: str) -> str:
    try:
        values = read_fields(struct, reader)
    except PayloadError as error:
        said = "null" if error.said is None else error.said
        said = f"Could not read record with version {number} from {part}'s buffer due to: {said}."
        raise PayloadError(said, error.what, error.position) from None
    if struct.name == GROUP and values["protocolType"] == CONSUMER:
        values = _with_protocol(values, release)
    return f'{{"{label}":"{number}","data":{java.json(struct, values)}}}'


def _with_protocol(values: Values, release: Release) -> Values:
    """Return a group whose members' bytes are replaced by what they say, where they can be read."""
    members = [
        {name: _embedded(name, value, release) if name in MEMBER_BYTES else value for name, value in member.items()}
        for member in cast("list[Values]", values["members"])
    ]
    return {**values, "members": cast("Value", members)}


def _embedded(name: str, value: Value, release: Release) -> Value:
    reader = Reader(cast("bytes", value))
    try:
        struct = EMBEDDED[MEMBER_BYTES[name]].struct(reader.int16(), release)
        return java.Json(java.json(struct, read_fields(struct, reader)))
    except PayloadError:
        return value
