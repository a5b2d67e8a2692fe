"""Reads a .proto file that is stored as a FileDescriptorProto in base64, as some registries do for Python clients.

:func:`parse_file` returns its model, :func:`as_text` its .proto text. Both also accept a schema in .proto text.
"""

from __future__ import annotations

import re
from binascii import Error as Base64Error
from binascii import a2b_base64
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from kdump.schemas import SchemaError, UndecodableError, proto_text
from kdump.schemas.proto_model import EDITION, SYNTAXES, EnumType, FieldType, MessageType, ProtoFile
from kdump.schemas.protobuf import ProtobufReader

if TYPE_CHECKING:
    from collections.abc import Iterable

_MESSAGES: Final = ("TYPE_MESSAGE", "TYPE_GROUP", "TYPE_ENUM")
"""The types of fields that name a message or an enum."""
_EDITIONS: Final = "editions"
"""The field ``syntax`` of a descriptor whose file has an edition (2023 or later)."""
_FIRST_EDITION: Final = "EDITION_2023"
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]{4,}={0,2}\s*")
_NOT_IN_QUOTES: Final = re.compile(r'[\x00-\x1f\x7f"\\]')


def parse_file(text: str) -> ProtoFile:
    """Return the file of a schema: .proto text, or the base64 of a FileDescriptorProto. Raises SchemaError."""
    return _Converter(_fields(text)).file() if _BASE64.fullmatch(text) else proto_text.parse(text)


@cache
def _reader() -> ProtobufReader:
    return ProtobufReader('syntax = "proto3"; import "google/protobuf/descriptor.proto";')


def _fields(text: str) -> dict[str, Any]:
    try:
        return _reader().message("google.protobuf.FileDescriptorProto", a2b_base64(text))
    except (Base64Error, UndecodableError) as reason:
        raise SchemaError(f"the schema is neither text nor a descriptor: {reason}") from None


class _Converter:
    def __init__(self, found: dict[str, Any]) -> None:
        self._found = found
        syntax = found.get("syntax", "proto2")
        features = EDITION if syntax == _EDITIONS else SYNTAXES.get(syntax)
        if features is None:
            raise SchemaError(f"the syntax {syntax[:40]!r} is unknown")
        self._features = features.changed(_settings(found))

    def file(self) -> ProtoFile:
        found = self._found
        package = found.get("package", "")
        file = ProtoFile(package, list(found.get("dependency", ())))
        file.messages = [self._message(each, package, file) for each in found["message_type"]]
        file.enums = [self._enum(each, package) for each in found["enum_type"]]
        self._extend(found, package, file)
        return file

    def _message(self, found: dict[str, Any], scope: str, file: ProtoFile) -> MessageType:
        name = found.get("name", "")
        message = MessageType(name, f"{scope}.{name}" if scope else name)
        message.is_map_entry = found.get("options", {}).get("map_entry", False)
        message.nested = [self._message(each, message.full_name, file) for each in found["nested_type"]]
        message.enums = [self._enum(each, message.full_name) for each in found["enum_type"]]
        oneofs = [each.get("name", "") for each in found["oneof_decl"]]
        message.fields = [self._field(each, message.full_name, oneofs) for each in found["field"]]
        maps = {f".{each.full_name}" for each in message.nested if each.is_map_entry}
        for field in message.fields:
            field.group = field.group and not message.is_map_entry and field.type not in maps
        self._extend(found, message.full_name, file)
        return message

    def _extend(self, found: dict[str, Any], scope: str, file: ProtoFile) -> None:
        for each in found["extension"]:
            file.extend(each.get("extendee", ""), self._field(each, scope, []))

    def _field(self, found: dict[str, Any], scope: str, oneofs: list[str]) -> FieldType:
        kind = found.get("type", "TYPE_MESSAGE")
        repeated = found.get("label") == "LABEL_REPEATED"
        index = found.get("oneof_index", len(oneofs))
        optional = found.get("proto3_optional", False)
        in_oneof = 0 <= index < len(oneofs) and not optional
        named = kind in _MESSAGES or "type_name" in found
        features = self._features.changed(_settings(found))
        return FieldType(
            name=found.get("name", ""),
            number=found.get("number", 0),
            type=found.get("type_name", "") if named else kind.removeprefix("TYPE_").lower(),
            repeated=repeated,
            group=kind == "TYPE_GROUP" or (features.delimited and kind == "TYPE_MESSAGE"),
            presence=not repeated and (features.presence or optional or in_oneof),
            oneof=oneofs[index] if in_oneof else None,
            scope=scope,
        )

    def _enum(self, found: dict[str, Any], scope: str) -> EnumType:
        name = found.get("name", "")
        values = tuple((each.get("name", ""), each.get("number", 0)) for each in found["value"])
        if not values:
            raise SchemaError(f"enum {name!r} has no values")
        return EnumType(
            name, f"{scope}.{name}" if scope else name, values, self._features.changed(_settings(found)).closed_enums
        )


def _settings(found: dict[str, Any]) -> Iterable[tuple[str, str]]:
    """Return name and value of each feature in the options of a descriptor."""
    settings: dict[str, str] = found.get("options", {}).get("features", {})
    return settings.items()


def as_text(text: str) -> str:
    """Return the .proto text of a schema: unchanged, or what :class:`_ProtoWriter` prints. Raises SchemaError."""
    if not _BASE64.fullmatch(text):
        return text
    found = _fields(text)
    syntax = found.get("syntax", "proto2")
    lines = [f'syntax = "{syntax}";']
    if syntax == _EDITIONS:
        lines = [f'edition = "{found.get("edition", _FIRST_EDITION).removeprefix("EDITION_")}";']
    lines += [f"option {each};" for each in _feature_options(found)]
    if "package" in found:
        lines.append(f"package {found['package']};")
    public, weak = found["public_dependency"], found["weak_dependency"]
    for at, name in enumerate(found["dependency"]):
        lines.append(f'import {"public " if at in public else "weak " if at in weak else ""}"{name}";')
    lines += [f'import option "{name}";' for name in found["option_dependency"]]
    try:
        lines += _ProtoWriter(syntax).members(found, "")
    except KeyError as missing:
        raise SchemaError(f"a definition in the descriptor has no {missing}") from None
    return "\n".join(lines) + "\n"


def _feature_options(found: dict[str, Any]) -> list[str]:
    return [f"features.{name} = {value}" for name, value in _settings(found)]


class _ProtoWriter:
    """Prints the messages, enums and extensions of a descriptor, in protoc's order.

    Services are left out, and so are all options except allow_alias, default, json_name, packed and features: payloads
    do not depend on them.
    """

    def __init__(self, syntax: str) -> None:
        self._syntax = syntax

    def members(self, found: dict[str, Any], indent: str) -> list[str]:
        """Return the lines of the enums, messages, fields and extensions of a file or message.

        A map field or a group is printed where its message is, so that protoc counts the nested messages alike.
        """
        lines: list[str] = []
        for enum in found["enum_type"]:
            numbers = [value.get("number", 0) for value in enum["value"]]
            lines.append(f"{indent}enum {enum['name']} {{")
            if len(set(numbers)) < len(numbers):
                lines.append(f"{indent}  option allow_alias = true;")
            lines += [f"{indent}  option {each};" for each in _feature_options(enum)]
            lines += [f"{indent}  {value['name']} = {value.get('number', 0)};" for value in enum["value"]]
            lines += [*self._reserved(enum, indent + "  ", 0), f"{indent}}}"]
        nested = {each["name"]: each for each in found.get("message_type", found.get("nested_type", ()))}
        fields = self._fields(found, nested, indent)
        extensions = [
            (_declared(each, nested), [f"{indent}extend {each['extendee']} {{", *body, f"{indent}}}"])
            for each in found["extension"]
            for body in (self._field(each, nested, indent + "  "),)
        ]
        owners = {name: queue for queue in (fields, extensions) for names, _ in queue for name in names}
        printed: set[str] = set()
        for name, message in nested.items():
            if name not in owners:
                lines += self._message(message, name, indent)
            while name in owners and name not in printed:
                names, part = owners[name].pop(0)
                lines += part
                printed |= names
        return [*lines, *(line for _, part in (*fields, *extensions) for line in part)]

    def _fields(
        self, found: dict[str, Any], nested: dict[str, dict[str, Any]], indent: str
    ) -> list[tuple[set[str], list[str]]]:
        """Return the fields and oneofs of a message: the names of the messages that each declares, and its lines."""
        parts: list[tuple[set[str], list[str]]] = []
        oneofs = [each["name"] for each in found.get("oneof_decl", ())]
        for oneof, members in groupby(found.get("field", ()), lambda each: _oneof(each, oneofs)):
            fields = list(members)
            if oneof:
                lines = [line for each in fields for line in self._field(each, nested, indent + "  ", in_oneof=True)]
                names = set[str]().union(*(_declared(each, nested) for each in fields))
                parts.append((names, [f"{indent}oneof {oneof} {{", *lines, f"{indent}}}"]))
            else:
                parts += [(_declared(each, nested), self._field(each, nested, indent)) for each in fields]
        return parts

    def _message(self, found: dict[str, Any], head: str, indent: str) -> list[str]:
        inner = indent + "  "
        lines = [f"{indent}{'' if head.startswith('group') else 'message '}{head} {{", *self.members(found, inner)]
        lines += [f"{inner}extensions {each['start']} to {each['end'] - 1};" for each in found["extension_range"]]
        return [*lines, *self._reserved(found, inner, 1), f"{indent}}}"]

    def _reserved(self, found: dict[str, Any], indent: str, after: int) -> list[str]:
        """Return the reserved numbers and names. ``after`` is 0 if ranges include their ends, as in an enum, else 1."""
        ranges = [f"{each.get('start', 0)} to {each.get('end', 0) - after}" for each in found["reserved_range"]]
        names = [name if self._syntax == _EDITIONS else _quoted(name) for name in found["reserved_name"]]
        return [f"{indent}reserved {', '.join(each)};" for each in (ranges, names) if each]

    def _field(
        self, found: dict[str, Any], nested: dict[str, dict[str, Any]], indent: str, *, in_oneof: bool = False
    ) -> list[str]:
        kind = found.get("type", "TYPE_MESSAGE")
        entry = nested.get(found.get("type_name", "").rpartition(".")[2], {})
        after = f" = {found.get('number', 0)}{self._options(found, kind)}"
        if kind == "TYPE_MESSAGE" and entry.get("options", {}).get("map_entry"):
            types = [_type(field) for field in entry["field"]]
            if len(types) != 2:
                raise SchemaError(f"the map {found['name']} in the descriptor has {len(types)} types, not 2")
            return [f"{indent}map<{types[0]}, {types[1]}> {found['name']}{after};"]
        label = "" if in_oneof else found.get("label", "LABEL_OPTIONAL").removeprefix("LABEL_").lower() + " "
        if self._syntax != "proto2" and label == "optional " and not found.get("proto3_optional"):
            label = ""
        if kind == "TYPE_GROUP":
            lines = self._message(entry, f"group {found['type_name'].rpartition('.')[2]}{after}", indent)
            return [f"{indent}{label}{lines[0].lstrip()}", *lines[1:]]
        return [f"{indent}{label}{_type(found)} {found['name']}{after};"]

    def _options(self, found: dict[str, Any], kind: str) -> str:
        packed = found.get("options", {}).get("packed")
        options = _feature_options(found)
        if "default_value" in found:
            options.append(f"default = {_default(kind, found['default_value'])}")
        if "extendee" not in found and found.get("json_name", _json_name(found["name"])) != _json_name(found["name"]):
            options.append(f"json_name = {_quoted(found['json_name'])}")
        if packed is not None and packed != (self._syntax == "proto3"):
            options.append(f"packed = {str(packed).lower()}")
        return f" [{', '.join(options)}]" if options else ""


def _declared(field: dict[str, Any], nested: dict[str, dict[str, Any]]) -> set[str]:
    """Return the name of the message that a field declares: a map entry, or the message of a group."""
    name = field.get("type_name", "").rpartition(".")[2]
    is_map = nested.get(name, {}).get("options", {}).get("map_entry", False)
    return {name} if is_map or field.get("type") == "TYPE_GROUP" else set()


def _oneof(field: dict[str, Any], oneofs: list[str]) -> str:
    index = field.get("oneof_index", -1)
    return oneofs[index] if 0 <= index < len(oneofs) and not field.get("proto3_optional") else ""


def _default(kind: str, value: str) -> str:
    """Return a default value as .proto text. In a descriptor the value of bytes is already escaped."""
    return _quoted(value) if kind == "TYPE_STRING" else f'"{value}"' if kind == "TYPE_BYTES" else value


def _quoted(text: str) -> str:
    return '"' + _NOT_IN_QUOTES.sub(lambda found: f"\\{ord(found[0]):03o}", text) + '"'


def _json_name(name: str) -> str:
    """Return protoc's name of a field in JSON if no option ``json_name`` changes it."""
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def _type(found: dict[str, Any]) -> str:
    name: str = found.get("type_name") or found.get("type", "").removeprefix("TYPE_").lower()
    return name
