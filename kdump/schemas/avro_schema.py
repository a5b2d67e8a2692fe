"""Parses Avro schemas (no payloads), and computes their fingerprints (Apache Avro 1.12 specification).

Names may have any characters. Java's parser checks only the last part of a name, so logs have namespaces such as
``shop-eu`` and ``org.shop.Orders$`` (the latter from ReflectData of Avro 1.8). Karapace does not check the names of
stored schemas.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cache
from math import log10
from typing import Any, Final, TypeAlias, TypeGuard

from kdump.schemas import SchemaError

PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_MAX_NESTING: Final = 100
"""Maximum number of levels of nested types; recursion by name is not limited."""

Names: TypeAlias = "dict[str, Named]"
"""Full name -> type, for a schema and the schemas that it refers to."""


@dataclass(slots=True)
class Logical:
    """A logical type that is valid for its base type. Invalid and unknown logical types are ignored."""

    name: str
    scale: int = 0
    precision: int = 0


@dataclass(slots=True)
class Primitive:
    kind: str
    logical: Logical | None = None


@dataclass(slots=True)
class Fixed:
    name: str
    size: int
    logical: Logical | None = None
    aliases: tuple[str, ...] = ()


@dataclass(slots=True)
class Enum:
    """One of several symbols. ``default`` replaces a writer's symbol that the reader lacks."""

    name: str
    symbols: tuple[str, ...]
    default: str | None = None
    aliases: tuple[str, ...] = ()


@dataclass(slots=True)
class AvroField:
    """A field of a record. ``default`` is JSON, and is used only if ``has_default``."""

    name: str
    type: AvroType
    default: Any = None
    has_default: bool = False
    aliases: tuple[str, ...] = ()


@dataclass(slots=True)
class AvroRecord:
    name: str
    fields: tuple[AvroField, ...] = ()
    aliases: tuple[str, ...] = ()


@dataclass(slots=True)
class Array:
    items: AvroType


@dataclass(slots=True)
class Map:
    values: AvroType


@dataclass(slots=True)
class Union:
    branches: tuple[AvroType, ...]


Named: TypeAlias = Fixed | Enum | AvroRecord
AvroType: TypeAlias = Primitive | Fixed | Enum | AvroRecord | Array | Map | Union


def parse(text: str, names: Names | None = None) -> AvroType:
    """Parse a schema. ``names`` has known types, and receives the new ones. Raises SchemaError."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as reason:
        raise SchemaError(f"the schema is not JSON: {reason}") from None
    return _AvroParser({} if names is None else names).type_of(found, "", 0)


@dataclass
class _AvroParser:
    names: Names
    _own: set[str] = field(default_factory=set)

    def type_of(self, found: object, space: str, level: int) -> AvroType:
        """Return the type for a JSON value; ``space`` is the enclosing namespace."""
        if level > _MAX_NESTING:
            raise SchemaError(f"types are nested more than {_MAX_NESTING} levels deep")
        if isinstance(found, str):
            return self._by_name(found, space)
        if isinstance(found, list):
            return self._union(found, space, level)
        if not isinstance(found, dict):
            raise SchemaError(f"{_shown(found)} is not a type")
        kind = found.get("type")
        if isinstance(kind, (dict, list)):
            return self.type_of(kind, space, level + 1)
        if kind in ("array", "map"):
            inner = self.type_of(_member(found, "items" if kind == "array" else "values", kind), space, level + 1)
            return Array(inner) if kind == "array" else Map(inner)
        if kind in ("record", "error"):
            return self._record(found, space, level)
        if kind in ("enum", "fixed"):
            return self._enum(found, space) if kind == "enum" else self._fixed(found, space)
        if not isinstance(kind, str):
            raise SchemaError("an object of the schema has no type")
        return Primitive(kind, _logical(found, kind)) if kind in PRIMITIVES else self._by_name(kind, space)

    def _by_name(self, name: str, space: str) -> AvroType:
        if name in PRIMITIVES:
            return Primitive(name)
        known = self.names.get(_full_name(name, space)) or self.names.get(name)
        if known is None:
            raise SchemaError(f"{_shown(_full_name(name, space))} is not defined")
        return known

    def _union(self, found: list[Any], space: str, level: int) -> Union:
        branches = tuple(self.type_of(each, space, level + 1) for each in found)
        kinds = {
            each.name if isinstance(each, (Fixed, Enum, AvroRecord)) else getattr(each, "kind", type(each))
            for each in branches
        }
        if Union in kinds or len(kinds) < len(branches):
            raise SchemaError("a union contains a union, or the same type twice")
        return Union(branches)

    def _named(self, found: dict[str, Any], space: str) -> tuple[str, str, tuple[str, ...]]:
        """Return the full name, the namespace and the aliases of a type definition. Raises SchemaError."""
        name = found.get("name")
        if not _is_name(name):
            raise SchemaError(f"{_shown(name)} is not a name")
        own = found.get("namespace")
        full = _full_name(name, own if isinstance(own, str) else space)
        if full in self._own:
            raise SchemaError(f"{_shown(full)} is defined twice")
        self._own.add(full)
        inner = full.rpartition(".")[0]
        aliases = found.get("aliases")
        texts = [each for each in aliases if isinstance(each, str)] if isinstance(aliases, list) else []
        return full, inner, tuple(_full_name(each, inner) for each in texts)

    def _record(self, found: dict[str, Any], space: str, level: int) -> AvroRecord:
        full, inner, aliases = self._named(found, space)
        record = AvroRecord(full, aliases=aliases)
        self.names[full] = record
        fields = found.get("fields")
        if not isinstance(fields, list):
            raise SchemaError(f"record {_shown(full)} has no fields")
        made = []
        for each in fields:
            name = each.get("name") if isinstance(each, dict) else None
            if not _is_name(name):
                raise SchemaError(f"{_shown(name)} is not a field name of {_shown(full)}")
            texts = each.get("aliases")
            made.append(
                AvroField(
                    name,
                    self.type_of(_member(each, "type", f"field {_shown(name)}"), inner, level + 1),
                    each.get("default"),
                    "default" in each,
                    tuple(text for text in texts if isinstance(text, str)) if isinstance(texts, list) else (),
                )
            )
        if len({each.name for each in made}) < len(made):
            raise SchemaError(f"record {_shown(full)} has two fields with the same name")
        record.fields = tuple(made)
        return record

    def _enum(self, found: dict[str, Any], space: str) -> Enum:
        full, _, aliases = self._named(found, space)
        symbols = found.get("symbols")
        if not isinstance(symbols, list) or not all(isinstance(each, str) for each in symbols):
            raise SchemaError(f"enum {_shown(full)} has no symbols")
        if len(set(symbols)) < len(symbols):
            raise SchemaError(f"enum {_shown(full)} has a symbol twice")
        default = found.get("default")
        made = Enum(full, tuple(symbols), default if default in symbols else None, aliases)
        self.names[full] = made
        return made

    def _fixed(self, found: dict[str, Any], space: str) -> Fixed:
        full, _, aliases = self._named(found, space)
        size = found.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size < 2**31:
            raise SchemaError(f"fixed {_shown(full)} has no size")
        made = Fixed(full, size, _logical(found, "fixed", size), aliases)
        self.names[full] = made
        return made


def _is_name(found: object) -> TypeGuard[str]:
    """Return whether a JSON value can be a name: text without lone surrogates, which UTF-8 cannot encode."""
    return isinstance(found, str) and found not in ("", ".") and _SURROGATE.search(found) is None


def _full_name(name: str, space: str) -> str:
    """Return a name with its namespace. A name with dots is full; one that begins with a dot has no namespace."""
    return name.removeprefix(".") if "." in name or not space else f"{space}.{name}"


def _member(found: dict[str, Any], name: str, what: str) -> object:
    if name not in found:
        raise SchemaError(f"{what} has no {name}")
    return found[name]


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"{text[:57]}..."


_TIMESTAMPS: Final = ("timestamp-millis", "timestamp-micros", "timestamp-nanos")
_BASES: Final = {
    **dict.fromkeys(("date", "time-millis"), ("int",)),
    **dict.fromkeys(("time-micros", *_TIMESTAMPS, *(f"local-{name}" for name in _TIMESTAMPS)), ("long",)),
    "decimal": ("bytes", "fixed"),
    "uuid": ("string", "fixed"),
    "duration": ("fixed",),
}
"""Logical type -> the types that it may annotate."""
_SIZES: Final = {"uuid": 16, "duration": 12}
"""Logical type -> the required size of its fixed, in bytes."""
_MOST_SCALE: Final = 4096
"""Maximum scale of a decimal. A logical type with a larger scale is ignored."""


def _logical(found: dict[str, Any], kind: str, size: int = 0) -> Logical | None:
    """Return the logical type of a definition, or None without a valid one (LogicalTypes.fromSchema)."""
    name = found.get("logicalType")
    if not isinstance(name, str) or kind not in _BASES.get(name, ()):
        return None
    if name != "decimal":
        return Logical(name) if kind != "fixed" or size == _SIZES[name] else None
    scale, precision = found.get("scale", 0), found.get("precision")
    if not isinstance(scale, int) or not isinstance(precision, int) or not 0 <= scale <= precision or precision < 1:
        return None
    if scale > _MOST_SCALE:
        return None
    if kind == "fixed" and precision > int((8 * size - 1) * log10(2)):
        return None
    return Logical(name, scale, precision)


def canonical_form(found: AvroType) -> str:
    """Return the Parsing Canonical Form of a schema, from which its fingerprint is computed."""
    return json.dumps(_canonical(found, set()), separators=(",", ":"), ensure_ascii=False)


def _canonical(found: AvroType, defined: set[str]) -> Any:
    if isinstance(found, Primitive):
        return found.kind
    if isinstance(found, Union):
        return [_canonical(each, defined) for each in found.branches]
    if isinstance(found, Array):
        return {"type": "array", "items": _canonical(found.items, defined)}
    if isinstance(found, Map):
        return {"type": "map", "values": _canonical(found.values, defined)}
    if found.name in defined:
        return found.name
    defined.add(found.name)
    if isinstance(found, Enum):
        return {"name": found.name, "type": "enum", "symbols": list(found.symbols)}
    if isinstance(found, Fixed):
        return {"name": found.name, "type": "fixed", "size": found.size}
    fields = [{"name": each.name, "type": _canonical(each.type, defined)} for each in found.fields]
    return {"name": found.name, "type": "record", "fields": fields}


_EMPTY: Final = 0xC15D213AA4D7A795


@cache
def _table() -> tuple[int, ...]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (_EMPTY & -(value & 1))
        table.append(value)
    return tuple(table)


def fingerprint(found: AvroType) -> bytes:
    """Return the CRC-64-AVRO of a schema (8 bytes, little endian), which single-object encoding uses."""
    value, table = _EMPTY, _table()
    for byte in canonical_form(found).encode("utf-8", "replace"):  # as Java does
        value = (value >> 8) ^ table[(value ^ byte) & 0xFF]
    return value.to_bytes(8, "little")
