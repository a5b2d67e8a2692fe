"""Converts Avro and Protobuf schemas to tables. :mod:`kdump.kernel.schemas` uses them to write payloads as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, TypeAlias

from kdump.kernel.schemas import AVRO_KINDS, LABELS, MAX_FIELDS, MESSAGES, PROTOBUF_KINDS, AvroText, ProtobufText
from kdump.schemas import well_known
from kdump.schemas.avro import DIGITS
from kdump.schemas.avro_schema import Array, AvroRecord, Enum, Fixed, Logical, Map, Primitive, Union
from kdump.schemas.proto_model import EnumType, MessageType
from kdump.schemas.protobuf import ANY, default, enum_names, map_key
from kdump.schemas.protobuf_wire import DEFAULTS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kdump.schemas.avro_schema import AvroType
    from kdump.schemas.proto_model import FieldType


_LOCAL: Final = 16
"""Added to the number of fractional digits of a local timestamp, whose text has no ``Z``."""
_Node: TypeAlias = tuple[int, int, int, int, int]
"""(kind, number, first, count, size): the fields of ``struct Node`` of the compiled code."""


def avro_text(schema: AvroType, quote: Callable[[str], str]) -> AvroText | None:
    """Return a writer of payloads as JSON; None for the type bytes, or with an array whose items may take 0 bytes."""
    if isinstance(schema, Primitive) and schema.kind == "bytes":
        return None  # payloads of only bytes have no length (AvroReader.read)
    plan = _AvroPlan(quote)
    plan.node(schema)
    return None if plan.is_odd else AvroText(plan.nodes, plan.links, plan.texts, quote)


class _AvroPlan:
    def __init__(self, quote: Callable[[str], str]) -> None:
        self.nodes: list[_Node] = []
        self.links: list[int] = []
        self.texts: list[bytes] = []
        self.is_odd = False
        """Whether the schema has an array whose items may take 0 bytes. Only the Python reader limits their number."""
        self._quote = quote
        self._known: dict[int, int] = {}

    def node(self, schema: AvroType) -> int:
        """Return the number of a type's node, after creating the node if needed."""
        known = self._known.get(id(schema))
        if known is not None:
            return known
        index = self._known[id(schema)] = len(self.nodes)
        self.nodes.append((0, 0, 0, 0, 0))
        self.nodes[index] = self._made(schema)
        return index

    def _made(self, schema: AvroType) -> _Node:
        if isinstance(schema, AvroRecord):
            names = [self._quote(field.name) for field in schema.fields]
            texts = [f"{',' if number else '{'}{name}:" for number, name in enumerate(names)]
            begin = self._add_texts([*texts, "}" if names else "{}"])
            return _node("record", begin, self._link([field.type for field in schema.fields]), len(names))
        if isinstance(schema, Union):
            return _node("union", 0, self._link(schema.branches), len(schema.branches))
        if isinstance(schema, Array):
            self.is_odd |= _may_be_empty(schema.items)
            return _node("array", 0, self._link([schema.items]))
        if isinstance(schema, Map):
            return _node("map", 0, self._link([schema.values]))
        if isinstance(schema, Enum):
            return _node(
                "enum", 0, self._add_texts([self._quote(each) for each in schema.symbols]), len(schema.symbols)
            )
        if isinstance(schema, Fixed):
            return self._fixed(schema)
        return _primitive(schema)

    def _fixed(self, schema: Fixed) -> _Node:
        name = schema.logical.name if schema.logical is not None else "fixed"
        if schema.logical is not None and name == "decimal":
            return _node("fixed_decimal", schema.logical.scale, size=schema.size)
        if name == "duration":
            first = self._add_texts(['{"months":', ',"days":', ',"millis":', "}"])
            return _node("duration", 0, first, size=schema.size)
        return _node(name, 0, size=schema.size)

    def _link(self, types: Sequence[AvroType]) -> int:
        """Append the node numbers of ``types`` to ``links``; return the index of the first of them."""
        first = len(self.links)
        self.links += [0] * len(types)
        for number, each in enumerate(types):
            self.links[first + number] = self.node(each)
        return first

    def _add_texts(self, texts: Sequence[str]) -> int:
        first = len(self.texts)
        self.texts += [text.encode("utf-8", "backslashreplace") for text in texts]
        return first


def _node(kind: str, number: int = 0, first: int = 0, count: int = 0, size: int = 0) -> _Node:
    return AVRO_KINDS.index(kind), number, first, count, size


def _may_be_empty(schema: AvroType, above: tuple[AvroType, ...] = ()) -> bool:
    """Return whether a value may take zero bytes; ``above`` are the enclosing records."""
    if isinstance(schema, AvroRecord):
        inside = (*above, schema)
        return all(_may_be_empty(field.type, inside) for field in schema.fields if field.type not in inside)
    if isinstance(schema, Fixed):
        return schema.size == 0
    return isinstance(schema, Primitive) and schema.kind == "null"


def _primitive(schema: Primitive) -> _Node:
    logical: Logical | None = schema.logical
    if logical is None or logical.name == "uuid":
        return _node(schema.kind)
    if logical.name == "decimal":
        return _node("decimal", logical.scale)
    if logical.name == "date":
        return _node("date")
    kind, _, unit = logical.name.rpartition("-")
    digits = DIGITS[unit] | (_LOCAL if kind.startswith("local") else 0)
    return _node("time" if kind == "time" else "timestamp", digits, size=4 if schema.kind == "int" else 0)


_TIMES: Final = {well_known.PACKAGE + "Timestamp": "timestamp", well_known.PACKAGE + "Duration": "duration"}
_OTHERS: Final = {ANY, *(well_known.PACKAGE + name for name in ("FieldMask", "ListValue", "Struct", "Value"))}
_Field: TypeAlias = tuple[int, int, int, int, int, bool, int, bytes, bytes]
"""(number, kind, label, target, count, closed, oneof, name, default), ``struct Field`` of the compiled code."""


def protobuf_text(message: MessageType, indexes: bytes, quote: Callable[[str], str]) -> ProtobufText:
    """Return an object that writes payloads as JSON. Payloads begin with the bytes ``indexes``, the message's path.

    ``quote`` returns a text as a JSON string. If the writer refuses a payload, the caller reads it in Python.
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
        """Return the number of a message, after adding the message if needed."""
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
            names = enum_names(resolved)
            kind = "enum"
            closed = resolved.closed or None in names.values()  # the Python reader writes other numbers of NullValue
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
        """Return the index of an enum's first name in ``self.names``."""
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
    """Return fields in the order of the Python decoder's default values; fields with presence come last."""
    order = ("implicit", "repeated", "map", "present")
    return sorted(fields, key=lambda field: order.index(_label(message, field)))
