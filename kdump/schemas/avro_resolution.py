"""Reads Avro payloads of a writer's schema as values of a reader's schema (Avro 1.12, "Schema Resolution").

As in :mod:`kdump.schemas.avro`, a reader is generated as source text. It returns values of a shape
(:mod:`kdump.schemas.shapes`). Three rules go beyond the specification:

* A field that the writer's schema lacks is null if it has no default, because all columns are nullable.
* Logical types with different units or scales do not match, because the value would be wrong by a factor.
* A mismatch is reported for a time outside the years 1 to 9999 or outside 24 hours, and for a decimal with too many
  digits.

``fastavro`` returns dictionaries, whose conversion to columns takes twice as long. It does not read durations and UUIDs
of 16 bytes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from kdump.schemas import avro
from kdump.schemas.avro_schema import (
    Array,
    AvroField,
    AvroRecord,
    AvroType,
    Enum,
    Fixed,
    Logical,
    Map,
    Primitive,
    Union,
)
from kdump.schemas.errors import MismatchError
from kdump.schemas.shapes import JsonText, ListShape, MapShape, StructShape, single
from kdump.schemas.times import FIRST_DAY, LAST_DAY

if TYPE_CHECKING:
    from kdump.schemas.shapes import Shape

_PROMOTIONS: Final = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
_UNITS: Final = {"millis": 10**3, "micros": 10**6, "nanos": 10**9}
_NULL: Final = Primitive("null")
_MOST_DIGITS: Final = 4096
"""A decimal of :data:`kdump.schemas.avro.MAX_DECIMAL` bytes has fewer digits."""


class ResolvingReader:
    """Reads payloads of the schema ``writer`` as values of the schema ``reader``, which has the shape ``shape``."""

    def __init__(self, writer: AvroType, reader: AvroType, shape: Shape) -> None:
        """Raise SchemaError for schemas that are too large or too deep."""
        self._raw = isinstance(writer, Primitive) and writer.kind == "bytes"
        self._read = _Source().compiled(writer, reader, shape)

    def read(self, payload: bytes, position: int) -> tuple[Any, int]:
        """Return the value at a position, and the position after it. Raises UndecodableError and MismatchError."""
        if self._raw:  # Confluent's serializer writes no length, so add it
            rest = payload[position:]
            value, _ = avro.guarded(self._read, avro.zigzag_varint(len(rest)) + rest, 0)
            return value, len(payload)
        return avro.guarded(self._read, payload, position)


def _dumps(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _unscaled(data: bytes, limit: int) -> int:
    if len(data) > avro.MAX_DECIMAL:
        raise MismatchError(f"a decimal has {len(data)} bytes (at most {avro.MAX_DECIMAL})")
    value = int.from_bytes(data, "big", signed=True)
    if not -limit < value < limit:
        raise MismatchError(f"the decimal {value} has more than {len(str(limit)) - 1} digits")
    return value


def _outside(value: int) -> MismatchError:
    return MismatchError(f"{value} is outside the years 1 to 9999, or outside 24 hours")


def _unknown_symbol(symbol: str) -> MismatchError:
    return MismatchError(f"the symbol {symbol!r} is not in the newest schema")


class _Source(avro.ReaderSource):
    """Generates the source text of resolving readers. A reader with ``shape`` None returns JSON values."""

    def __init__(self) -> None:
        super().__init__()
        self._pairs: dict[tuple[int, int, int], str] = {}
        self._scope: dict[str, Any] = {
            "MismatchError": MismatchError,
            "dumps": _dumps,
            "outside": _outside,
            "unknown_symbol": _unknown_symbol,
            "unscaled": _unscaled,
        }
        self._shapes: list[object] = []  # keeps objects alive, so that their ids stay unique

    def compiled(self, writer: AvroType, reader: AvroType, shape: Shape | None) -> avro.Read:
        name = self._pair(writer, reader, shape)
        return avro.compiled(self.lines, name, self._scope)

    def _pair(self, writer: AvroType, reader: AvroType, shape: Shape | None) -> str:
        """Return the name of the function that reads values of ``writer`` as values of ``reader``."""
        key = (id(writer), id(reader), id(shape))
        known = self._pairs.get(key)
        if known is not None:
            return known
        name = self._pairs[key] = f"r{len(self._pairs)}"
        self._shapes += (writer, reader, shape)
        body = [f"def {name}(d, p, n, k, z):", *self.depth_check()]
        is_match = _match(writer, reader, promoted=True)  # only the outermost schemas may not match
        if is_match and isinstance(writer, AvroRecord) and isinstance(reader, AvroRecord):
            body += self._record(writer, reader, shape)
        elif is_match and isinstance(writer, Array) and isinstance(reader, Array):
            items = shape.items if isinstance(shape, ListShape) else None
            body += ["    out = []", *self.blocks(writer.items)]
            body += [f"            {line}" for line in self._value_of(writer.items, reader.items, items, "", "v")]
            body += ["            out.append(v)", "    return out, p"]
        elif is_match and isinstance(writer, Map) and isinstance(reader, Map):
            values = shape.values if isinstance(shape, MapShape) else None
            body += ["    out = {}", *self.blocks(None)]
            body += [f"            {line}" for line in self.value(Primitive("string"), "", "key")]
            body += [f"            {line}" for line in self._value_of(writer.values, reader.values, values, "", "v")]
            body += ["            out[key] = v", f"    return {'out' if shape is None else 'list(out.items())'}, p"]
        else:
            body += [*self._value_of(writer, reader, shape, "    ", "v"), "    return v, p"]
        self.lines += body
        return name

    def _record(self, writer: AvroRecord, reader: AvroRecord, shape: Shape | None) -> list[str]:
        lines: list[str] = []
        shapes = dict(shape.fields) if isinstance(shape, StructShape) else {}
        written = {field.name: field for field in writer.fields}
        sources: dict[str, AvroField] = {}
        for field in reader.fields:  # a renamed field (by its alias) comes before a field with the old name
            found = None if field.name in written else next((name for name in field.aliases if name in written), None)
            if found is not None:
                sources.setdefault(found, field)
        for field in reader.fields:
            if field.name in written:
                sources.setdefault(field.name, field)
        targets = {field.name: f"v{index}" for index, field in enumerate(reader.fields)}
        for field in writer.fields:
            wanted = sources.get(field.name)
            if wanted is None:  # skipped, but checked as in the column `decoded`
                lines += self.value(field.type, "    ", "x")
            else:
                within = shapes.get(wanted.name)
                lines += self._value_of(field.type, wanted.type, within, "    ", targets[wanted.name])
        read = {field.name for field in sources.values()}
        for field in reader.fields:
            if field.name not in read:
                value = default_value(field.type, field.default, shapes.get(field.name)) if field.has_default else None
                targets[field.name] = self._constant(value)
        if shape is None:
            members = ", ".join(f"{name!r}: {target}" for name, target in targets.items())
            return [*lines, f"    return {{{members}}}, p"]
        return [*lines, f"    return ({''.join(f'{target}, ' for target in targets.values())}), p"]

    def _constant(self, value: Any) -> str:
        name = f"c{len(self._scope)}"
        self._scope[name] = value
        return name

    def _value_of(self, writer: AvroType, reader: AvroType, shape: Shape | None, indent: str, target: str) -> list[str]:
        """Return the lines that read a value of ``writer`` as ``reader`` into ``target``, or that raise a mismatch."""
        if isinstance(shape, JsonText):
            made = self._value_of(writer, reader, None, indent, target)
            return [*made, f"{indent}{target} = dumps({target})"]
        if isinstance(writer, Union):
            lines = self.branch_number(writer, indent)
            for index, branch in enumerate(writer.branches):
                lines.append(f"{indent}{'elif' if index else 'if'} i == {index}:")
                lines += self._value_of(branch, reader, shape, indent + "    ", target)
            return lines
        if isinstance(reader, Union):
            chosen = _branch(writer, reader)
            if chosen is None:
                return self._mismatch(writer, reader, indent)
            return self._value_of(writer, chosen, shape, indent, target)
        if not _match(writer, reader, promoted=True):
            return self._mismatch(writer, reader, indent)
        if isinstance(writer, (AvroRecord, Array, Map)):
            return [f"{indent}{target}, p = {self._pair(writer, reader, shape)}(d, p, n, k + 1, z)"]
        if isinstance(writer, Enum) and isinstance(reader, Enum):
            return self._enum(writer, reader, shape, indent, target)
        return self._leaf(writer, reader, shape, indent, target)

    def _mismatch(self, writer: AvroType, reader: AvroType, indent: str) -> list[str]:
        text = f"a value of {_shown(writer)} is not of the type {_shown(reader)} of the newest schema"
        return [f"{indent}raise MismatchError({text!r})"]

    def _enum(self, writer: Enum, reader: Enum, shape: Shape | None, indent: str, target: str) -> list[str]:
        lines = self.symbol_number(writer, indent)
        values: list[int | str | None] = []
        for symbol in writer.symbols:
            known = symbol if symbol in reader.symbols else reader.default
            if known is None:
                values.append(None)
            else:
                values.append(known if shape is None else reader.symbols.index(known))
        lines.append(f"{indent}{target} = {self._constant(tuple(values))}[i]")
        if None in values:
            lines += [
                f"{indent}if {target} is None:",
                f"{indent}    raise unknown_symbol({self._constant(writer.symbols)}[i])",
            ]
        return lines

    def _leaf(self, writer: AvroType, reader: AvroType, shape: Shape | None, indent: str, target: str) -> list[str]:
        logical = reader.logical if isinstance(reader, (Primitive, Fixed)) else None
        kind = reader.kind if isinstance(reader, Primitive) else "fixed"
        stored = writer.kind if isinstance(writer, Primitive) else "fixed"
        if stored in ("bytes", "string", "fixed"):
            size = writer.size if isinstance(writer, Fixed) else None
            made = "d[p:e].decode()" if kind == "string" else _of_bytes(logical, typed=shape is not None)
            return [*self.span(indent, size), f"{indent}{target} = {made}", f"{indent}p = e"]
        lines = self.plain(stored, indent, target)
        if stored in ("float", "double"):
            if shape is None:
                lines += [f"{indent}if {target} - {target} != 0:", f"{indent}    {target} = number({target})"]
        elif stored in ("int", "long"):
            if kind in ("float", "double"):
                lines.append(f"{indent}{target} = float({target})")
            elif logical is not None and shape is None:
                lines.append(f"{indent}{target} = {avro.number_text(logical, target)}")
            elif logical is not None:
                first, last = bounds(logical)
                lines += [f"{indent}if not {first} <= {target} <= {last}:", f"{indent}    raise outside({target})"]
        return lines


def _of_bytes(logical: Logical | None, *, typed: bool) -> str:
    if not typed:
        return avro.bytes_text(logical)
    if logical is None:
        return "d[p:e]"
    if logical.name == "decimal":
        return f"unscaled(d[p:e], {10 ** min(logical.precision, _MOST_DIGITS)})"
    return "uuid(d[p:e])" if logical.name == "uuid" else "duration_parts(d[p:e])"


def bounds(logical: Logical) -> tuple[int, int]:
    """Return the smallest and the largest number of a date or time that Python and Spark support."""
    if logical.name == "date":
        return FIRST_DAY, LAST_DAY
    kind, _, unit = logical.name.rpartition("-")
    day = 86_400 * _UNITS[unit]
    if kind == "time":
        return 0, day - 1
    return max(FIRST_DAY * day, -(2**63)), min((LAST_DAY + 1) * day - 1, 2**63 - 1)


def _simple(name: str) -> str:
    return name.rpartition(".")[2]


def _match(writer: AvroType, reader: AvroType, *, promoted: bool) -> bool:
    """Return whether values of ``writer`` can be read as ``reader``, regardless of the types inside these types."""
    if isinstance(writer, Primitive) and isinstance(reader, Primitive):
        if reader.kind != writer.kind and not (promoted and reader.kind in _PROMOTIONS.get(writer.kind, ())):
            return False
        return _same_unit(writer.logical, reader.logical)
    if type(writer) is not type(reader):
        return False
    if isinstance(writer, (AvroRecord, Enum, Fixed)) and isinstance(reader, (AvroRecord, Enum, Fixed)):
        names = {_simple(reader.name), *map(_simple, reader.aliases)}
        if _simple(writer.name) not in names:
            return False
    if isinstance(writer, Fixed) and isinstance(reader, Fixed):
        return writer.size == reader.size and _same_unit(writer.logical, reader.logical)
    return True


def _same_unit(writer: Logical | None, reader: Logical | None) -> bool:
    if writer is None or reader is None:
        return True
    return (writer.name, writer.scale) == (reader.name, reader.scale)


def _branch(writer: AvroType, reader: Union) -> AvroType | None:
    """Return the union's branch for a value: with the same full name, else the same type, else a wider type."""
    if isinstance(writer, (AvroRecord, Enum, Fixed)):
        for branch in reader.branches:
            if type(branch) is type(writer) and getattr(branch, "name", None) == writer.name:
                return branch
    for promoted in (False, True):
        for branch in reader.branches:
            if _match(writer, branch, promoted=promoted):
                return branch
    return None


def _shown(schema: AvroType) -> str:
    if isinstance(schema, Union):
        return f"union of {', '.join(map(_shown, schema.branches))}" if schema.branches else "union of nothing"
    if isinstance(schema, Primitive):
        logical = schema.logical
        if logical is None:
            return schema.kind
        return f"decimal with scale {logical.scale}" if logical.name == "decimal" else logical.name
    return f"{type(schema).__name__.removeprefix('Avro').lower()} {getattr(schema, 'name', '')}".rstrip()


def default_value(schema: AvroType, value: Any, shape: Shape | None) -> Any:
    """Return the default value in a schema as a value of a shape; None if it does not fit."""
    try:
        return _default(schema, value, shape)
    except (TypeError, ValueError, AttributeError, KeyError, RecursionError):
        return None  # Avro would refuse such a schema; here the column is null


def _default(schema: AvroType, value: Any, shape: Shape | None) -> Any:
    if isinstance(shape, JsonText):
        return _dumps(_default(schema, value, None))
    if isinstance(schema, Union):
        if value is None:
            return None
        branch = single(schema)
        branches = [each for each in schema.branches if each != _NULL] if branch is None else [branch]
        found = (default_value(each, value, shape) for each in branches)
        return next((each for each in found if each is not None), None)
    if isinstance(schema, AvroRecord):
        shapes = dict(shape.fields) if isinstance(shape, StructShape) else {}
        made = {
            field.name: _default(field.type, value.get(field.name, field.default), shapes.get(field.name))
            for field in schema.fields
        }
        return made if shape is None else tuple(made.values())
    if isinstance(schema, Array):
        items = shape.items if isinstance(shape, ListShape) else None
        return [_default(schema.items, each, items) for each in _of_type(value, list)]
    if isinstance(schema, Map):
        values = shape.values if isinstance(shape, MapShape) else None
        pairs = {name: _default(schema.values, each, values) for name, each in _of_type(value, dict).items()}
        return pairs if shape is None else list(pairs.items())
    return _default_leaf(schema, value, shape)


def _default_leaf(schema: Primitive | Fixed | Enum, value: Any, shape: Shape | None) -> Any:
    typed = shape is not None
    if isinstance(schema, Enum):
        return schema.symbols.index(value) if typed else _of_type(value, str)
    if isinstance(schema, Primitive):
        if schema.kind == "null":
            return None
        if schema.kind in ("float", "double"):
            return float(value) if typed else avro.number(float(value))
        if schema.kind == "boolean":
            return _of_type(value, bool)
        if schema.kind in ("int", "long"):
            whole = _of_type(value, int)
            if schema.logical is None:
                return whole
            first, last = bounds(schema.logical)
            if typed:
                return whole if first <= whole <= last else None
        elif schema.kind == "string":
            text: str = _of_type(value, str)
            return text.encode().decode()  # raises for a lone surrogate
    # encode other defaults, and read these bytes with the reader
    data = value.encode("latin-1") if isinstance(value, str) else avro.zigzag_varint(value)
    if isinstance(schema, Primitive) and schema.kind == "bytes":
        data = avro.zigzag_varint(len(data)) + data
    return avro.guarded(_Source().compiled(schema, schema, shape), data, 0)[0]


def _of_type(value: Any, kind: type) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(f"{value!r} is not of the type {kind.__name__}")
    return value
