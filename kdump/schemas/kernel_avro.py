"""An Avro schema as the nodes of :class:`kdump.kernel.schemas.AvroText`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from kdump.kernel.schemas import AVRO_KINDS, AvroText
from kdump.schemas.avro_schema import Array, AvroRecord, Enum, Fixed, Logical, Map, Primitive, Union

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kdump.schemas.avro_schema import AvroType

_DIGITS: Final = {"millis": 3, "micros": 6, "nanos": 9}
_LOCAL: Final = 16
"""Added to the digits of a time without a zone."""
_Node: TypeAlias = tuple[int, int, int, int, int]
"""Kind, number, first, count and size (``struct Node`` of the kernel's module)."""


def avro_text(schema: AvroType, quote: Callable[[str], str]) -> AvroText | None:
    """Return the kernel's writer of a schema's payloads as JSON; None if only the general path can write them.

    ``quote`` writes a text as a string of JSON.
    """
    if isinstance(schema, Primitive) and schema.kind == "bytes":
        return None  # a payload of it has no length (AvroReader.read)
    plan = _AvroPlan(quote)
    plan.node(schema)
    return None if plan.is_odd else AvroText(plan.nodes, plan.links, plan.texts, quote)


class _AvroPlan:
    def __init__(self, quote: Callable[[str], str]) -> None:
        self.nodes: list[_Node] = []
        self.links: list[int] = []
        self.texts: list[bytes] = []
        self.is_odd = False
        """Whether an array may hold items without bytes, whose number the general path bounds."""
        self._quote = quote
        self._known: dict[int, int] = {}

    def node(self, schema: AvroType) -> int:
        """Return the number of a type's node, and make the node if it is new."""
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
        """Add the nodes of types to ``links``, one after the other. Return the position of the first."""
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
    """Return whether a value may take no bytes; ``above`` are the records that it is in."""
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
    digits = _DIGITS[unit] | (_LOCAL if kind.startswith("local") else 0)
    return _node("time" if kind == "time" else "timestamp", digits, size=4 if schema.kind == "int" else 0)
