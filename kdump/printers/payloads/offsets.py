"""The offsets decoder before it printed JSON of all record types (up to 3.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from kdump.errors import DamageError
from kdump.formats.payloads.consumer_offsets import EMBEDDED, MESSAGES
from kdump.formats.payloads.interpreter import PayloadError, Reader, read_fields
from kdump.hash_order import java_hash
from kdump.printers.payloads import java
from kdump.printers.payloads.texts import DELETE, Parser, Texts, broken, no_key, unknown

if TYPE_CHECKING:
    from kdump.dialects_payload import OffsetsWords
    from kdump.formats.payloads.schema import Message, Release, Values


def parser(words: OffsetsWords, release: Release) -> Parser:
    """Return what prints offsets and classic groups as ``release`` knows them."""
    offset_types = MESSAGES["OffsetCommitKey"].types.at(release)
    group_types = MESSAGES["GroupMetadataKey"].types.at(release)

    def parse(offset: int, key: bytes | None, value: bytes | None) -> Texts:
        if value is None and words.needs_value:
            return Texts(None, None)
        if key is None:
            raise no_key(offset)
        reader = Reader(key)
        try:
            number = reader.int16()
            if number in offset_types:
                named = read_fields(MESSAGES["OffsetCommitKey"].struct(0, release), reader)
                return Texts(words.offset_key.format_map(named), _offset(words, release, offset, value))
            if number in group_types:
                named = read_fields(MESSAGES["GroupMetadataKey"].struct(0, release), reader)
                group = _quoted(words, str(named["group"])) if words.group_key_as_json else named["group"]
                return Texts(words.group_key.format(group=group), _group(words, release, offset, value))
        except PayloadError as error:
            raise broken(error, f"the record at offset {offset}") from None
        if not words.unknown_key:
            raise unknown("type", number, offset)
        return Texts(words.unknown_key.format(version=number), None)

    return parse


def _value(message: Message, release: Release, offset: int, value: bytes) -> Values:
    reader = Reader(value)
    version = reader.int16()
    versions = message.versions(release)
    if versions is None or not versions.has(version):
        raise unknown(f"version of {message.name}", version, offset)
    return read_fields(message.struct(version, release), reader)


def _offset(words: OffsetsWords, release: Release, offset: int, value: bytes | None) -> str:
    if value is None:
        return DELETE
    values = _value(MESSAGES["OffsetCommitValue"], release, offset, value)
    return (words.offset_metadata if values["metadata"] else words.offset).format_map(values)


def _quoted(words: OffsetsWords, text: str) -> str:
    return java.string(text) if words.escapes else f'"{text}"'


def _group(words: OffsetsWords, release: Release, offset: int, value: bytes | None) -> str:
    if value is None:
        return DELETE
    values = _value(MESSAGES["GroupMetadataValue"], release, offset, value)
    members = {str(member["memberId"]): member for member in cast("list[Values]", values["members"])}
    kind = str(values["protocolType"])
    shown = kind if members or words.protocol_type_of_empty else ""
    told = [_member(words, shown, members[name], offset) for name in words.members_order(members, java_hash)]
    assignment = "{" + ",".join(told) + "}"
    protocol = values["protocol"]
    if words.group_as_json:
        shown, assignment = _quoted(words, shown), _quoted(words, assignment)
        protocol = None if protocol is None else _quoted(words, str(protocol))
    return words.group.format(
        protocol_type=shown,
        protocol="null" if protocol is None else protocol,
        generation=values["generation"],
        assignment=assignment,
    )


def _member(words: OffsetsWords, protocol_type: str, member: Values, offset: int) -> str:
    name, assignment = str(member["memberId"]), cast("bytes", member["assignment"])
    if protocol_type != "consumer":
        return f"{name}={_hex(words, assignment, offset)}"
    reader = Reader(assignment)
    values = read_fields(EMBEDDED["ConsumerProtocolAssignment"].struct(reader.int16()), reader)
    topics = cast("list[Values]", values["assignedPartitions"])
    partitions = ", ".join(
        f"{topic['topic']!s}-{partition}" for topic in topics for partition in cast("list[int]", topic["partitions"])
    )
    if values["userData"] is None and not words.null_user_data:
        raise DamageError("payload", f"the record at offset {offset}: the user data of member {name} is null")
    user_data = _hex(words, cast("bytes", values["userData"] or b""), offset)
    return f"{name}=[{partitions}]" + (f":{user_data}" if user_data else "")


def _hex(words: OffsetsWords, data: bytes, offset: int) -> str:
    if data and not words.prints_bytes:
        raise DamageError("payload", f"the record at offset {offset}: this release cannot print the bytes of a member")
    return java.hex_number(data)
