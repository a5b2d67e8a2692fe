"""A message of Protobuf as the tables of :class:`kdump.kernel.schemas.ProtobufText`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, TypeAlias

from kdump.kernel.schemas import LABELS, MAX_FIELDS, MESSAGES, PROTOBUF_KINDS, ProtobufText
from kdump.schemas import well_known
from kdump.schemas.proto_model import EnumType, MessageType
from kdump.schemas.protobuf import ANY, default, enum_names, map_key
from kdump.schemas.protobuf_wire import DEFAULTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdump.schemas.proto_model import FieldType

_TIMES: Final = {well_known.PACKAGE + "Timestamp": "timestamp", well_known.PACKAGE + "Duration": "duration"}
_OTHERS: Final = {ANY, *(well_known.PACKAGE + name for name in ("FieldMask", "ListValue", "Struct", "Value"))}
_Field: TypeAlias = tuple[int, int, int, int, int, bool, int, bytes, bytes]
"""Number, kind, label, target, count, closed, oneof, name, default (``struct Field`` of the kernel's module)."""


def protobuf_text(message: MessageType, indexes: bytes, quote: Callable[[str], str]) -> ProtobufText:
    """Return the kernel's writer of a message's payloads as JSON, after the bytes ``indexes``.

    ``quote`` writes a text as a string of JSON. What the kernel has no rule for is left to the general path, payload by
    payload.
    """
    plan = _ProtobufPlan(quote)
    plan.message(message)
    return ProtobufText(plan.messages, plan.fields, plan.names, indexes, quote)


class _ProtobufPlan:
    def __init__(self, quote: Callable[[str], str]) -> None:
        self.messages: list[tuple[int, int, int]] = []
        self.fields: list[_Field] = []
        self.names: list[tuple[int, bytes]] = []
        self._quote = quote
        self._known: dict[int, int] = {}
        self._enums: dict[int, int] = {}

    def _text(self, value: object) -> bytes:
        return (self._quote(value) if isinstance(value, str) else json.dumps(value)).encode()

    def message(self, message: MessageType) -> int:
        """Return the number of a message, and add the message if it is new."""
        known = self._known.get(id(message))
        if known is not None:
            return known
        index = self._known[id(message)] = len(self.messages)
        kind = _kind(message)
        fields = [] if kind == "other" else message.fields
        first = len(self.fields)
        self.messages.append((MESSAGES.index(kind), first, len(fields)))
        self.fields += [(0, 0, 0, 0, 0, False, 0, b"", b"")] * len(fields)
        oneofs = list(dict.fromkeys(field.oneof for field in fields if field.oneof is not None))
        for place, field in enumerate(_in_order(message, fields)):
            self.fields[first + place] = self._field(message, field, oneofs)
        return index

    def _field(self, message: MessageType, field: FieldType, oneofs: list[str]) -> _Field:
        resolved = field.resolved
        target = count = 0
        closed = False
        if isinstance(resolved, MessageType):
            kind, target = "message", self.message(resolved)
        elif isinstance(resolved, EnumType):
            kind, closed = "enum", resolved.closed
            names = enum_names(resolved)
            target, count = self._enum(resolved, names), len(names)
        else:
            kind = field.type
        label = _label(message, field)
        value: object = {} if label == "map" else []
        if label in ("implicit", "present"):
            value = None if kind == "message" else default(field)
        if message.is_map_entry and field is message.fields[0]:
            value = map_key(DEFAULTS.get(field.type, 0))
        return (
            field.number,
            PROTOBUF_KINDS.index(kind),
            LABELS.index(label),
            target,
            count,
            closed,
            oneofs.index(field.oneof) + 1 if field.oneof is not None else 0,
            self._text(field.name) + b":",
            self._text(value),
        )

    def _enum(self, enum: EnumType, names: dict[int, str | None]) -> int:
        """Return where the names of an enum begin."""
        if id(enum) not in self._enums:
            self._enums[id(enum)] = len(self.names)
            self.names += [(number, self._text(name)) for number, name in names.items()]
        return self._enums[id(enum)]


def _kind(message: MessageType) -> str:
    name = message.full_name
    if name in _OTHERS or message.extensions or len(message.fields) > MAX_FIELDS:
        return "other"
    if any(field.group for field in message.fields):
        return "other"
    fields = [(field.name, field.type, field.repeated) for field in message.fields]
    if name in _TIMES:
        return _TIMES[name] if fields == [("seconds", "int64", False), ("nanos", "int32", False)] else "other"
    if name in well_known.CONVERTERS:
        return "wrapper" if len(fields) == 1 and _label(message, message.fields[0]) == "implicit" else "other"
    return "object"


def _label(message: MessageType, field: FieldType) -> str:
    if message.is_map_entry:
        return "implicit" if field is message.fields[0] else "present"
    if field.repeated:
        is_map = isinstance(field.resolved, MessageType) and field.resolved.is_map_entry
        return "map" if is_map else "repeated"
    return "present" if field.presence or isinstance(field.resolved, MessageType) else "implicit"


def _in_order(message: MessageType, fields: list[FieldType]) -> list[FieldType]:
    """Return fields in the order in which the general path writes those that are always present."""
    order = ("implicit", "repeated", "map", "present")
    return sorted(fields, key=lambda field: order.index(_label(message, field)))
