"""The model of Protobuf schemas: files, messages, fields and enums, with resolved names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from kdump.schemas import SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SCALARS: Final = {
    **dict.fromkeys(("int32", "int64", "uint32", "uint64", "sint32", "sint64", "bool"), 0),
    **dict.fromkeys(("fixed64", "sfixed64", "double"), 1),
    **dict.fromkeys(("string", "bytes"), 2),
    **dict.fromkeys(("fixed32", "sfixed32", "float"), 5),
}
"""Scalar type -> its wire type: 0 varint, 1 eight bytes, 2 length and bytes, 5 four bytes."""
MAX_NUMBER: Final = 2**29 - 1
"""The largest valid field number."""


class ProtoFeatures(NamedTuple):
    """The features that change how a payload is read. ``presence``: an unset field differs from its default."""

    presence: bool
    closed_enums: bool
    delimited: bool = False

    def changed(self, settings: Iterable[tuple[str, str]]) -> ProtoFeatures:
        """Apply ``settings``: names and values of google.protobuf.FeatureSet. Only three names have an effect."""
        made = self
        for name, value in settings:
            if name == "field_presence":
                made = made._replace(presence=value != "IMPLICIT")
            elif name == "enum_type":
                made = made._replace(closed_enums=value == "CLOSED")
            elif name == "message_encoding":
                made = made._replace(delimited=value == "DELIMITED")
        return made


SYNTAXES: Final = {
    "proto2": ProtoFeatures(presence=True, closed_enums=True),
    "proto3": ProtoFeatures(presence=False, closed_enums=False),
}
EDITION: Final = ProtoFeatures(presence=True, closed_enums=False)
"""The default features of a file with an edition (2023 or later)."""


@dataclass(slots=True)
class EnumType:
    """An enum. If it is ``closed`` (proto2, or by a feature), an unknown number counts as an unknown field."""

    name: str
    full_name: str
    values: tuple[tuple[str, int], ...]
    closed: bool


@dataclass(slots=True, kw_only=True)
class FieldType:
    name: str
    number: int
    type: str
    """A scalar type, or the name of a message or enum: as in the file; of a map or group: a dot and the full name."""
    repeated: bool = False
    group: bool = False
    """Whether the field is a group: encoded between two tags instead of after a length."""
    presence: bool = False
    """Whether an unset scalar or enum differs from its default. Not used for message fields, where it may be False."""
    oneof: str | None = None
    scope: str = ""
    """The full name of the message or package in which the name ``type`` is resolved."""
    extension: bool = False
    resolved: MessageType | EnumType | None = None
    """The definition of ``type``; None for a scalar, and before :meth:`Pool.add`."""


@dataclass(slots=True)
class MessageType:
    """A message. ``nested`` includes the messages of map fields, in protoc's order."""

    name: str
    full_name: str
    fields: list[FieldType] = field(default_factory=list)
    nested: list[MessageType] = field(default_factory=list)
    enums: list[EnumType] = field(default_factory=list)
    is_map_entry: bool = False
    extensions: list[FieldType] = field(default_factory=list)
    """Extension fields of this message in the files that were added to the pool."""


Definition: TypeAlias = MessageType | EnumType


@dataclass(slots=True)
class ProtoFile:
    """A .proto file. ``extends`` has pairs: the name of the extended message as in the file, and the extension."""

    package: str = ""
    imports: list[str] = field(default_factory=list)
    messages: list[MessageType] = field(default_factory=list)
    enums: list[EnumType] = field(default_factory=list)
    extends: list[tuple[str, FieldType]] = field(default_factory=list)

    def extend(self, extended: str, extension: FieldType) -> None:
        """Add an extension, which gets its full name. ``extended``: the name of the extended message as in the file."""
        extension.extension = True
        extension.presence = not extension.repeated
        extension.name = f"{extension.scope}.{extension.name}" if extension.scope else extension.name
        self.extends.append((extended, extension))

    def definitions(self) -> Iterator[Definition]:
        yield from self.enums
        left = list(self.messages)
        while left:
            message = left.pop()
            yield message
            yield from message.enums
            left += message.nested


@dataclass(slots=True)
class Pool:
    """The definitions of a file and all its imports, by full name."""

    known: dict[str, Definition] = field(default_factory=dict)

    def add(self, file: ProtoFile) -> None:
        """Add a file and resolve its names. Its imports must have been added before. Raises SchemaError."""
        own = list(file.definitions())
        for definition in own:
            if definition.full_name in self.known:
                raise SchemaError(f"{definition.full_name!r} is defined twice")
            self.known[definition.full_name] = definition
        for definition in own:
            if isinstance(definition, MessageType):
                for each in definition.fields:
                    self._resolve(each)
        for extended, extension in file.extends:
            message = self.find(extended, extension.scope)
            if not isinstance(message, MessageType):
                raise SchemaError(f"{extended!r} is extended, but not defined")
            self._resolve(extension)
            message.extensions.append(extension)

    def _resolve(self, found: FieldType) -> None:
        if found.type in SCALARS or found.resolved is not None:
            return
        found.resolved = self.find(found.type, found.scope)
        if found.resolved is None:
            raise SchemaError(f"{found.type!r} is not defined")

    def find(self, name: str, scope: str) -> Definition | None:
        """Return the innermost definition of a name in ``scope``, or None. A full name begins with a dot."""
        if name.startswith("."):
            return self.known.get(name[1:])
        while True:
            known = self.known.get(f"{scope}.{name}" if scope else name)
            if known is not None or not scope:
                return known
            scope = scope.rpartition(".")[0]
