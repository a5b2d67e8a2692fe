"""Decodes records of Kafka's own topics to typed values, by the name of the topic (:func:`decode`).

A malformed message, or one without a schema, is returned as raw bytes with the reason. Compiled code reads nearly all
well-formed messages; :mod:`kdump.internal_topics.interpreter` reads all others, and all without compiled code.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from kdump import kernel
from kdump.internal_topics import (
    cluster_metadata,
    consumer_offsets,
    remote_log_metadata,
    share_group_state,
    transaction_state,
)
from kdump.internal_topics.interpreter import (
    FIXED,
    FRAME,
    LONGEST_STRING,
    PREVIEW_FRAME,
    PayloadError,
    Reader,
    frame_number,
    read_fields,
)
from kdump.internal_topics.schema import by_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kdump.internal_topics.schema import MessageSchema, Release, Struct, Values


if kernel.COMPILED:
    from kdump.kernel.internal_topics import SchemaReader


def read_well_formed(schema: Struct, data: bytes, start: int) -> Values | None:
    """Return the values of the message at ``start`` in ``data``; None if compiled code cannot read it or is absent."""
    return kernel_reader(schema).read(data, start) if kernel.COMPILED and schema.refused is None else None


@cache
def kernel_reader(schema: Struct) -> SchemaReader:
    """Return the compiled reader of messages with this layout. The version of the layout must be known."""
    return SchemaReader(schema, {kind: layout.size for kind, layout in FIXED.items()}, LONGEST_STRING)


FRAME_BYTES: Final = 3
"""Size in bytes of a frame. Its three numbers are below 128 in all known messages."""


@lru_cache(maxsize=256)
def metadata_message(head: bytes) -> tuple[str, SchemaReader] | None:
    """Return the name and the compiled reader of the metadata message whose frame is ``head``.

    None if the frame's version is not FRAME, or the newest release lacks the message or version. Needs compiled code.
    """
    message = by_type(cluster_metadata.MESSAGES, "Record").get(head[1]) if head[0] == FRAME else None
    versions = None if message is None else message.versions()
    if message is None or versions is None or not versions.has(head[2]):
        return None
    return message.name, kernel_reader(message.struct(head[2]))


def is_metadata_record(key: bytes | None, value: bytes | None) -> bool:
    """Return whether compiled code can read a record as one of the metadata log, in the newest release's layout."""
    if key is not None or value is None or len(value) < FRAME_BYTES:
        return False
    found = metadata_message(value[:FRAME_BYTES])
    return found is not None and found[1].read(value, FRAME_BYTES) is not None


Decoder: TypeAlias = "Callable[[bytes | None, bytes | None], DecodedRecord]"


class Decoded(NamedTuple):
    """A decoded key or value, or the reason why it is not decoded."""

    raw: bytes
    name: str = ""
    """Kafka's name of the message, such as ``OffsetCommitValue``."""
    version: int | None = None
    values: Values | None = None
    """Field -> value, in order of declaration: int, float, bool, str, bytes (also uuids), None, lists and dicts."""
    reason: str = ""
    """Why values are missing, such as an unknown type, or a note on extra bytes after the values."""
    known: bool = True
    """False if no schema has the type or version: a newer release may have written the message."""
    struct: Struct | None = None


class DecodedRecord(NamedTuple):
    type: int | None
    """The number of the record type, or None if it is absent or cannot be read."""
    key: Decoded | None
    value: Decoded | None
    """None for a null value. In the topics of COORDINATORS it deletes the entity that the key names."""


def decode(topic: str, key: bytes | None, value: bytes | None) -> DecodedRecord | None:
    """Return the decoded record of ``topic``, or None for a topic that is not one of TOPICS."""
    decoder = decoder_of(topic)
    return None if decoder is None else decoder(key, value)


@cache
def decoder_of(topic: str) -> Decoder | None:
    """Return the cached decoder of a topic's records; None if the topic is not one of TOPICS."""
    if topic in COORDINATORS:
        return _coordinator(COORDINATORS[topic])
    return _framed(FRAMED[topic]) if topic in FRAMED else None


def _coordinator(messages: Mapping[str, MessageSchema]) -> Decoder:
    keys, values = _candidates(messages, "Key"), _candidates(messages, "Value")

    def decode_record(key: bytes | None, value: bytes | None) -> DecodedRecord:
        if key is None:
            return DecodedRecord(None, None, _raw(value, "the record has no key to name its type"))
        reader = Reader(key)
        try:
            number = reader.int16()
        except PayloadError as error:
            reason = error.within("the type of the record").reason
            return DecodedRecord(None, Decoded(key, reason=reason), _raw(value, reason))
        if number not in keys:
            reason = f"record type {number} is unknown"
            return DecodedRecord(number, Decoded(key, reason=reason, known=False), _raw(value, reason, known=False))
        made_key = _read(keys[number], key, 0, reader.position)
        return DecodedRecord(number, made_key, None if value is None else _read_versioned(values[number], value))

    return decode_record


def _raw(raw: bytes | None, reason: str, *, known: bool = True) -> Decoded | None:
    return None if raw is None else Decoded(raw, reason=reason, known=known)


def _candidates(
    messages: Mapping[str, MessageSchema], suffix: str, *, since: Release = ()
) -> dict[int, list[Candidate]]:
    """Return type -> layouts from ``since`` on, newest first, of the messages whose name ends in ``suffix``."""
    releases = {release for message in messages.values() for release in message.releases()}
    found: dict[int, dict[Candidate, None]] = {}
    for release in sorted({since, *(some for some in releases if some >= since)}, reverse=True):
        for number, message in by_type(messages, suffix, release).items():
            found.setdefault(number, {})[Candidate(message, max(since, message.changed(release)))] = None
    return {number: list(candidates) for number, candidates in found.items()}


class Candidate(NamedTuple):
    message: MessageSchema
    release: Release


def _read_versioned(candidates: list[Candidate], raw: bytes) -> Decoded:
    reader = Reader(raw)
    name = candidates[0].message.name
    try:
        version = reader.int16()
    except PayloadError as error:
        return Decoded(raw, name, reason=error.within(f"{name}, version").reason)
    return _read(candidates, raw, version, reader.position)


def _read(candidates: list[Candidate], raw: bytes, version: int, start: int) -> Decoded:
    """Return a message, read with the newest layout that reads all its bytes without an error.

    Kafka changed some layouts without a new version. If none fits, return the newest result, or why there is none.
    """
    first: Decoded | None = None
    for message, release in candidates:
        versions = message.versions(release)
        if versions is None or not versions.has(version):
            continue
        struct = message.struct(version, release)
        made = _read_struct(message.name, struct, raw, version, start)
        if not made.reason:
            return made
        first = first or made
    name = candidates[0].message.name
    return first or Decoded(raw, name, version, reason=f"version {version} of {name} is unknown", known=False)


def _read_struct(name: str, struct: Struct, raw: bytes, version: int, start: int) -> Decoded:
    well_formed = read_well_formed(struct, raw, start)
    if well_formed is not None:
        return Decoded(raw, name, version, well_formed, struct=struct)
    reader = Reader(raw, start)
    try:
        values = read_fields(struct, reader)
    except PayloadError as error:
        return Decoded(raw, name, version, reason=error.within(f"{name} v{version}").reason)
    left = f"bytes are left over after {name} v{version}: {reader.remaining}" if reader.remaining else ""
    return Decoded(raw, name, version, values, left, struct=struct)


def _framed(messages: Mapping[str, MessageSchema]) -> Decoder:
    current = _candidates(messages, "Record", since=FRAMED_RELEASE)
    preview = {
        number: [Candidate(found, PREVIEW_RELEASE)]
        for number, found in by_type(messages, "Record", PREVIEW_RELEASE).items()
    }
    types = {PREVIEW_FRAME: preview, FRAME: current}

    def decode_record(key: bytes | None, value: bytes | None) -> DecodedRecord:
        made_key = _raw(key, "records of this topic have no key")
        if value is None:
            return DecodedRecord(None, made_key, None)
        reader = Reader(value)
        try:
            version = frame_number(reader, "frame version")
            if version not in types:
                reason = f"frame version {version} is unknown"
                return DecodedRecord(None, made_key, Decoded(value, reason=reason, known=False))
            number, message_version = (frame_number(reader, name) for name in ("type", "version"))
        except PayloadError as error:
            return DecodedRecord(None, made_key, Decoded(value, reason=error.within("frame").reason))
        candidates = types[version].get(number)
        if candidates is None:
            reason = f"record type {number} is unknown"
            return DecodedRecord(number, made_key, Decoded(value, reason=reason, known=False))
        return DecodedRecord(number, made_key, _read(candidates, value, message_version, reader.position))

    return decode_record


PREVIEW_RELEASE: Final = (2, 8)
"""The release (KRaft preview) whose records in the metadata log have frame version 0."""
FRAMED_RELEASE: Final = (3, 0)
"""The first release whose records in the metadata log have frame version 1."""

COORDINATORS: Final[dict[str, Mapping[str, MessageSchema]]] = {
    module.TOPIC: module.MESSAGES for module in (consumer_offsets, transaction_state, share_group_state)
}
"""Topic -> messages of the coordinators' topics, whose keys begin with the type."""
FRAMED: Final[dict[str, Mapping[str, MessageSchema]]] = {
    module.TOPIC: module.MESSAGES for module in (cluster_metadata, remote_log_metadata)
}
"""Topic -> messages of the topics whose values begin with a frame. The type is in the frame."""
TOPICS: Final = (*COORDINATORS, *FRAMED)
