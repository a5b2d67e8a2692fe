"""A .proto file as the base64 of its FileDescriptorProto: some registries keep what Python's serializer registers."""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64
from functools import cache
from typing import Any, Final

from kdump.schemas.errors import PayloadError, SchemaError
from kdump.schemas.proto_model import EnumType, FieldType, MessageType, ProtoFile
from kdump.schemas.protobuf import ProtobufReader

_MESSAGES: Final = ("TYPE_MESSAGE", "TYPE_GROUP", "TYPE_ENUM")


@cache
def _reader() -> ProtobufReader:
    return ProtobufReader('syntax = "proto3"; import "google/protobuf/descriptor.proto";')


def from_descriptor(text: str) -> ProtoFile:
    """Return the file of a descriptor in base64. Raises SchemaError."""
    try:
        found = _reader().message("google.protobuf.FileDescriptorProto", a2b_base64(text))
    except (Base64Error, PayloadError) as reason:
        raise SchemaError(f"the schema is neither text nor a descriptor: {reason}") from None
    return _Converter(found).file()


class _Converter:
    def __init__(self, found: dict[str, Any]) -> None:
        self._found = found
        syntax = found.get("syntax", "proto2")
        self._presence = syntax != "proto3"
        self._closed = syntax == "proto2"

    def file(self) -> ProtoFile:
        found = self._found
        package = found.get("package", "")
        file = ProtoFile(package, list(found.get("dependency", ())))
        file.messages = [self._message(each, package, file) for each in found["message_type"]]
        file.enums = [self._enum(each, package) for each in found["enum_type"]]
        self._extend(found["extension"], package, file)
        return file

    def _message(self, found: dict[str, Any], scope: str, file: ProtoFile) -> MessageType:
        name = found.get("name", "")
        message = MessageType(name, f"{scope}.{name}" if scope else name)
        message.is_map_entry = found.get("options", {}).get("map_entry", False)
        message.nested = [self._message(each, message.full_name, file) for each in found["nested_type"]]
        message.enums = [self._enum(each, message.full_name) for each in found["enum_type"]]
        oneofs = [each.get("name", "") for each in found["oneof_decl"]]
        message.fields = [self._field(each, message.full_name, oneofs) for each in found["field"]]
        self._extend(found["extension"], message.full_name, file)
        return message

    def _extend(self, found: list[dict[str, Any]], scope: str, file: ProtoFile) -> None:
        for each in found:
            extension = self._field(each, scope, [])
            extension.extension = True
            extension.presence = not extension.repeated
            extension.name = f"{scope}.{extension.name}" if scope else extension.name
            file.extends.append((each.get("extendee", ""), extension))

    def _field(self, found: dict[str, Any], scope: str, oneofs: list[str]) -> FieldType:
        kind = found.get("type", "TYPE_MESSAGE")
        repeated = found.get("label") == "LABEL_REPEATED"
        index = found.get("oneof_index", len(oneofs))
        optional = found.get("proto3_optional", False)
        in_oneof = 0 <= index < len(oneofs) and not optional
        named = kind in _MESSAGES or "type_name" in found
        return FieldType(
            name=found.get("name", ""),
            number=found.get("number", 0),
            type=found.get("type_name", "") if named else kind.removeprefix("TYPE_").lower(),
            repeated=repeated,
            group=kind == "TYPE_GROUP",
            presence=not repeated and (self._presence or optional or in_oneof),
            oneof=oneofs[index] if in_oneof else None,
            scope=scope,
        )

    def _enum(self, found: dict[str, Any], scope: str) -> EnumType:
        name = found.get("name", "")
        values = tuple((each.get("name", ""), each.get("number", 0)) for each in found["value"])
        if not values:
            raise SchemaError(f"enum {name!r} has no values")
        return EnumType(name, f"{scope}.{name}" if scope else name, values, self._closed)
