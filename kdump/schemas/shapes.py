"""Shapes: the types of typed columns from Avro and Protobuf schemas, for Arrow, Spark and SQL.

A value of a shape is a plain object: a tuple for a struct, a list for a list, a list of pairs for a map, None for null,
and JSON text if a type has no fixed shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from kdump.schemas.avro_schema import Array, AvroRecord, AvroType, Enum, Fixed, Logical, Map, Primitive, Union

_MOST_FIELDS: Final = 5_000
"""Maximum number of typed fields of a shape. Records, lists and maps (Protobuf: messages) beyond it are JSON text."""
_MOST_LEVELS: Final = 64
"""Maximum number of levels of structs, lists and maps (Protobuf: only messages). Deeper ones are JSON text."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value without parts.

    ``kind`` is a plain type (``int64``, ``string``, ``bytes``), or a date or time type of Avro, with the number in the
    payload as the value. Three more kinds are ``decimal`` (the unscaled number), ``enum`` (an index of ``symbols``, or
    a Protobuf number without a name as text) and ``instant-nanos`` (Protobuf's Timestamp, in ns since 1970).
    """

    kind: str
    scale: int = 0
    precision: int = 0
    symbols: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JsonText:
    """JSON text: for JSON, Any, Struct and the like, unions of several types, recursive, empty, deep or large types."""


@dataclass(frozen=True, slots=True)
class StructShape:
    fields: tuple[tuple[str, Shape], ...]


@dataclass(frozen=True, slots=True)
class ListShape:
    items: Shape


@dataclass(frozen=True, slots=True)
class MapShape:
    key: Leaf
    values: Shape


Shape: TypeAlias = Leaf | JsonText | StructShape | ListShape | MapShape
JSON_TEXT: Final = JsonText()
DURATION: Final = StructShape(
    (("months", Leaf("uint32")), ("days", Leaf("uint32")), ("millis", Leaf("uint32"))),
)
_PRIMITIVES: Final = {
    "null": Leaf("string"),
    "boolean": Leaf("boolean"),
    "int": Leaf("int32"),
    "long": Leaf("int64"),
    "float": Leaf("float32"),
    "double": Leaf("float64"),
    "bytes": Leaf("bytes"),
    "string": Leaf("string"),
}


class Nesting:
    """The state while a shape is made: the enclosing types, and the number of fields so far."""

    def __init__(self) -> None:
        self._within: list[int] = []
        self._fields = 0

    def enter(self, kind: object, fields: int = 0) -> bool:
        """Enter a type, or return False if it is recursive or exceeds a limit. ``fields`` are counted in both cases."""
        self._fields += fields
        if id(kind) in self._within or len(self._within) >= _MOST_LEVELS or self._fields > _MOST_FIELDS:
            return False
        self._within.append(id(kind))
        return True

    def leave(self) -> None:
        self._within.pop()


def avro_shape(schema: AvroType, nesting: Nesting | None = None) -> Shape:
    """Return the shape of an Avro type. A union of null and one type has the shape of that type."""
    nesting = Nesting() if nesting is None else nesting
    if isinstance(schema, Primitive):
        return _PRIMITIVES[schema.kind] if schema.logical is None else _logical(schema.logical)
    if isinstance(schema, Fixed):
        return Leaf("bytes") if schema.logical is None else _logical(schema.logical)
    if isinstance(schema, Enum):
        return Leaf("enum", symbols=schema.symbols)
    if isinstance(schema, Union):
        only = single(schema)
        return JSON_TEXT if only is None else avro_shape(only, nesting)
    if isinstance(schema, AvroRecord) and not schema.fields:
        return JSON_TEXT
    if not nesting.enter(schema, len(schema.fields) if isinstance(schema, AvroRecord) else 1):
        return JSON_TEXT
    made: Shape
    if isinstance(schema, Array):
        made = ListShape(avro_shape(schema.items, nesting))
    elif isinstance(schema, Map):
        made = MapShape(Leaf("string"), avro_shape(schema.values, nesting))
    else:
        made = StructShape(tuple((field.name, avro_shape(field.type, nesting)) for field in schema.fields))
    nesting.leave()
    return made


def single(schema: Union) -> AvroType | None:
    """Return the only type of a union beside null. Return the type null if null is alone, None if there are several."""
    others = [each for each in schema.branches if not (isinstance(each, Primitive) and each.kind == "null")]
    if not others:
        return Primitive("null")
    return others[0] if len(others) == 1 else None


def _logical(logical: Logical) -> Shape:
    if logical.name == "decimal":
        return Leaf("decimal", logical.scale, logical.precision)
    if logical.name == "uuid":
        return Leaf("string")
    return DURATION if logical.name == "duration" else Leaf(logical.name)
