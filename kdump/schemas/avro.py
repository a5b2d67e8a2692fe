"""Reads Avro payloads as JSON values, or as values of a reader's schema (Apache Avro 1.12 specification).

The module generates and compiles a Python function for each record, array and map of a writer's schema. The source text
contains names and symbols of the schema only as literals made by ``repr``. Interpreting the schema instead would take
seven times as long. For JSON lines the kernel writes most payloads (:mod:`kdump.schemas.kernel_tables`).

Values of a reader's schema have a shape (:mod:`kdump.schemas.shapes`). Three rules go beyond the specification:

* A field that the writer's schema lacks is null if it has no default, because all columns are nullable.
* Logical types with different units or scales do not match, because the value would be wrong by a factor.
* Dates outside the years 1 to 9999, times outside 24 hours, and decimals with too many digits are mismatches.

``fastavro.schemaless_reader`` is equally fast, but its values are not JSON, and it ignores bytes after the value.
"""

from __future__ import annotations

import json
import zlib
from binascii import a2b_base64, b2a_base64
from math import isfinite, isnan
from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from uuid import UUID

from kdump.errors import DamageError, LimitError
from kdump.primitives import compression
from kdump.schemas import MismatchError, SchemaError, UndecodableError
from kdump.schemas.avro_resolution import branch_for, is_match, type_text
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
    parse,
)
from kdump.schemas.framing import FILE_MAGIC
from kdump.schemas.shapes import JsonText, ListShape, MapShape, StructShape, single
from kdump.schemas.times import FIRST_DAY, LAST_DAY, date_text, time_text, timestamp_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdump.schemas.shapes import Shape

Read: TypeAlias = "Callable[[bytes, int, int, int, list[int]], tuple[Any, int]]"
"""(payload, position, size of the payload, level, [array items of 0 bytes still allowed]) -> value, its end."""

MAX_DEPTH: Final = 200
"""Maximum number of levels of records, arrays and maps in a payload, because the JSON encoder is recursive."""
_EMPTY_ITEMS: Final = 1_000_000
"""Maximum number of array items in a payload, or records in a file's block, that may take 0 bytes."""
MAX_DECIMAL: Final = 1700
"""Maximum size of a decimal in bytes, so that Python can convert it to text (``sys.get_int_max_str_digits``)."""
DIGITS: Final = {"millis": 3, "micros": 6, "nanos": 9}
_NULL, _STRING = Primitive("null"), Primitive("string")
_MOST_DIGITS: Final = 4096
"""Maximum precision that is checked. A decimal of :data:`MAX_DECIMAL` bytes has fewer digits."""


class ResolvingReader:
    """Reads payloads of the schema ``writer`` as values of the schema ``reader`` and of the column type ``shape``."""

    def __init__(self, writer: AvroType, reader: AvroType, shape: Shape | None) -> None:
        """Compile the reader; values are JSON if ``shape`` is None. Raises SchemaError for a too large schema."""
        self._raw = isinstance(writer, Primitive) and writer.kind == "bytes"
        self._read = _ReaderSource().compiled(writer, reader, shape)

    def read(self, payload: bytes, position: int = 0) -> tuple[Any, int]:
        """Return the value at a position, and the position after it. Raises UndecodableError and MismatchError."""
        if self._raw:  # a payload of only bytes: Confluent's serializer writes no length
            rest = payload[position:]
            value, _ = _guarded(self._read, _zigzag_varint(len(rest)) + rest, 0)
            return value, len(payload)
        return _guarded(self._read, payload, position)


class AvroReader(ResolvingReader):
    """Reads payloads of a schema as JSON values. ``name`` is the full name of a record, enum or fixed, else None."""

    def __init__(self, schema: AvroType) -> None:
        super().__init__(schema, schema, None)
        self.schema = schema
        self.name = schema.name if isinstance(schema, (AvroRecord, Enum, Fixed)) else None

    def value(self, payload: bytes, position: int = 0) -> tuple[Any, int]:
        """Like :meth:`read`, but a payload of the type bytes begins with its length, as in Avro's specification."""
        return _guarded(self._read, payload, position)


def _guarded(read: Read, payload: bytes, position: int) -> tuple[Any, int]:
    try:
        return read(payload, position, len(payload), 0, [_EMPTY_ITEMS])
    except UndecodableError:
        raise
    except (IndexError, struct_error):
        raise UndecodableError("the payload ends early") from None
    except UnicodeDecodeError as reason:
        raise UndecodableError(f"a string is not UTF-8 ({reason.reason})") from None
    except RecursionError:
        raise UndecodableError("the payload is nested too deep") from None


def base64(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode("ascii")


def _varint(data: bytes, position: int, value: int) -> tuple[int, int]:
    """Return a varint (zigzag not decoded) and the position after it. ``value`` is its first byte, already read."""
    value &= 127
    shift = 7
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
        if shift > 63:
            raise UndecodableError("a number takes more than 10 bytes")
    if value >> 64:
        raise UndecodableError("a number has more than 64 bits")
    return value, position


def _zigzag_varint(value: int) -> bytes:
    left = (value << 1) ^ (value >> 63)
    made = bytearray()
    while left > 127:
        made.append(left & 127 | 128)
        left >>= 7
    return bytes((*made, left))


def _too_long(length: int, left: int) -> UndecodableError:
    return UndecodableError(f"a length is {length}, but {left} bytes are left")


def _decimal(data: bytes, scale: int) -> str:
    if len(data) > MAX_DECIMAL:
        raise UndecodableError(f"a decimal has {len(data)} bytes (at most {MAX_DECIMAL})")
    return decimal_text(int.from_bytes(data, "big", signed=True), scale)


def decimal_text(value: int, scale: int) -> str:
    """Return the decimal ``value`` * 10**-``scale`` as text, with ``scale`` digits after the point."""
    digits = str(abs(value)).zfill(scale + 1)
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}" if scale else sign + digits


def number(value: float) -> float | str:
    """Return a float as a JSON value, in which NaN and infinities are texts."""
    if isfinite(value):
        return value
    return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"


compact_json: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _dumps(value: Any) -> str | None:
    return None if value is None else compact_json(value)


def _unscaled(data: bytes, limit: int) -> int:
    if len(data) > MAX_DECIMAL:
        raise MismatchError(f"a decimal has {len(data)} bytes (at most {MAX_DECIMAL})")
    value = int.from_bytes(data, "big", signed=True)
    if not -limit < value < limit:
        raise MismatchError(f"the decimal {value} has more than {len(str(limit)) - 1} digits")
    return value


def _outside(value: int) -> MismatchError:
    return MismatchError(f"{value} is outside the years 1 to 9999, or outside 24 hours")


def _unknown_symbol(symbol: str) -> MismatchError:
    return MismatchError(f"the symbol {symbol!r} is not in the schema of the columns")


_DURATION: Final = Struct("<III")


def _duration(data: bytes) -> dict[str, int]:
    months, days, millis = _DURATION.unpack(data)
    return {"months": months, "days": days, "millis": millis}


_HELPERS: Final[dict[str, Any]] = {
    "MismatchError": MismatchError,
    "UndecodableError": UndecodableError,
    "b64": base64,
    "date_text": date_text,
    "decimal": _decimal,
    "double": Struct("<d").unpack_from,
    "dumps": _dumps,
    "duration": _duration,
    "duration_parts": _DURATION.unpack,
    "number": number,
    "outside": _outside,
    "real": Struct("<f").unpack_from,
    "time_text": time_text,
    "timestamp_text": timestamp_text,
    "too_long": _too_long,
    "unknown_symbol": _unknown_symbol,
    "unscaled": _unscaled,
    "uuid": lambda data: str(UUID(bytes=data)),
    "varint": _varint,
}


class _ReaderSource:
    """Generates the source text of functions that read values of a writer's type as values of a reader's type.

    Variables in the text: ``d`` is the payload, ``p`` the position, ``n`` the size, ``k`` the level, ``v`` a value.
    ``z[0]`` limits further array items of 0 bytes. A function returns values of a shape, or JSON if the shape is None.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._scope: dict[str, Any] = dict(_HELPERS)
        self._pairs: dict[tuple[int, int, int], str] = {}
        self._kept: list[object] = []  # keeps objects alive, so that their ids stay unique
        self._least: dict[int, int] = {}

    def compiled(self, writer: AvroType, reader: AvroType, shape: Shape | None) -> Read:
        """Return the function that reads values of ``writer`` as values of ``reader``. Raises SchemaError."""
        try:
            name = self._pair(writer, reader, shape)
            source = compile("\n".join(self._lines), "<avro schema>", "exec")
            exec(source, self._scope)  # noqa: S102  made of literals
        except (SyntaxError, RecursionError, MemoryError) as reason:
            raise SchemaError(f"the schema is too large or too deep: {reason}") from None
        read: Read = self._scope[name]
        return read

    def _pair(self, writer: AvroType, reader: AvroType, shape: Shape | None) -> str:
        """Generate, once, the function that reads values of ``writer`` as values of ``reader``; return its name."""
        key = (id(writer), id(reader), id(shape))
        known = self._pairs.get(key)
        if known is not None:
            return known
        name = self._pairs[key] = f"r{len(self._pairs)}"
        self._kept += (writer, reader, shape)
        body = [
            f"def {name}(d, p, n, k, z):",
            f"    if k > {MAX_DEPTH}:",
            "        raise UndecodableError('the payload is nested too deep')",
        ]
        matches = is_match(writer, reader, promoted=True)  # only the outermost schemas may not match
        if matches and isinstance(writer, AvroRecord) and isinstance(reader, AvroRecord):
            body += self._record(writer, reader, shape)
        elif matches and isinstance(writer, Array) and isinstance(reader, Array):
            items = shape.items if isinstance(shape, ListShape) else None
            body += ["    out = []", *self._blocks(writer.items)]
            body += [f"            {line}" for line in self._value(writer.items, reader.items, items, "", "v")]
            body += ["            out.append(v)", "    return out, p"]
        elif matches and isinstance(writer, Map) and isinstance(reader, Map):
            values = shape.values if isinstance(shape, MapShape) else None
            body += ["    out = {}", *self._blocks(None)]
            body += [f"            {line}" for line in self._value(_STRING, _STRING, None, "", "key")]
            body += [f"            {line}" for line in self._value(writer.values, reader.values, values, "", "v")]
            body += ["            out[key] = v", f"    return {'out' if shape is None else 'list(out.items())'}, p"]
        else:
            body += [*self._value(writer, reader, shape, "    ", "v"), "    return v, p"]
        self._lines += body
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
                lines += self._value(field.type, field.type, None, "    ", "x")
            else:
                within = shapes.get(wanted.name)
                lines += self._value(field.type, wanted.type, within, "    ", targets[wanted.name])
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

    def _value(self, writer: AvroType, reader: AvroType, shape: Shape | None, indent: str, target: str) -> list[str]:
        """Return code lines that read a value of ``writer`` as ``reader`` into ``target``, or raise MismatchError."""
        if isinstance(shape, JsonText):
            made = self._value(writer, reader, None, indent, target)
            return [*made, f"{indent}{target} = dumps({target})"]
        if isinstance(writer, Union):
            lines = [
                *_number(indent, "i"),
                f"{indent}if not 0 <= i < {len(writer.branches)}:",
                f"{indent}    raise UndecodableError(f'the union has no branch {{i}}')",
            ]
            for index, branch in enumerate(writer.branches):
                lines.append(f"{indent}{'elif' if index else 'if'} i == {index}:")
                lines += self._value(branch, reader, shape, indent + "    ", target)
            return lines
        if isinstance(reader, Union):
            chosen = branch_for(writer, reader)
            if chosen is None:
                return self._mismatch(writer, reader, indent)
            return self._value(writer, chosen, shape, indent, target)
        if not is_match(writer, reader, promoted=True):
            return self._mismatch(writer, reader, indent)
        if isinstance(writer, (AvroRecord, Array, Map)):
            return [f"{indent}{target}, p = {self._pair(writer, reader, shape)}(d, p, n, k + 1, z)"]
        if isinstance(writer, Enum) and isinstance(reader, Enum):
            return self._enum(writer, reader, shape, indent, target)
        return self._leaf(writer, reader, shape, indent, target)

    def _mismatch(self, writer: AvroType, reader: AvroType, indent: str) -> list[str]:
        text = f"a value of {type_text(writer)} is not of the type {type_text(reader)} in the schema of the columns"
        return [f"{indent}raise MismatchError({text!r})"]

    def _enum(self, writer: Enum, reader: Enum, shape: Shape | None, indent: str, target: str) -> list[str]:
        lines = [
            *_number(indent, "i"),
            f"{indent}if not 0 <= i < {len(writer.symbols)}:",
            f"{indent}    raise UndecodableError(f'the enum has no symbol {{i}}')",
        ]
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
            return [*_span(indent, size), f"{indent}{target} = {made}", f"{indent}p = e"]
        lines = _plain(stored, indent, target)
        if stored in ("float", "double"):
            if shape is None:
                lines += [f"{indent}if {target} - {target} != 0:", f"{indent}    {target} = number({target})"]
        elif stored in ("int", "long"):
            if kind in ("float", "double"):
                lines.append(f"{indent}{target} = float({target})")
            elif logical is not None and shape is None:
                lines.append(f"{indent}{target} = {_number_text(logical, target)}")
            elif logical is not None:
                first, last = _bounds(logical)
                lines += [f"{indent}if not {first} <= {target} <= {last}:", f"{indent}    raise outside({target})"]
        return lines

    def _blocks(self, items: AvroType | None) -> list[str]:
        """Return the loops over the blocks of an array, or of a map if ``items`` is None."""
        least = 1 if items is None else self._least_size(items)
        many = ["        z[0] -= c", "        if z[0] < 0:"] if least == 0 else [f"        if c > (n - p) // {least}:"]
        return [
            "    while True:",
            *_number("        ", "c"),
            "        if c == 0:",
            "            break",
            "        if c < 0:",
            "            c = -c",
            *_number("            ", "size"),
            "            if not 0 <= size <= n - p:",
            "                raise too_long(size, n - p)",
            *many,
            "            raise UndecodableError(f'a block claims {c} items, but {n - p} bytes are left')",
            "        for _ in range(c):",
        ]

    def _least_size(self, schema: AvroType) -> int:
        """Return a lower bound for the size of values in bytes: exact for fixed, float and double, otherwise 0 or 1."""
        if isinstance(schema, Fixed):
            return schema.size
        if isinstance(schema, Primitive):
            return {"null": 0, "float": 4, "double": 8}.get(schema.kind, 1)
        if not isinstance(schema, AvroRecord):
            return 1
        known = self._least.get(id(schema))
        if known is None:
            self._least[id(schema)] = 0  # a recursive record adds nothing
            known = self._least[id(schema)] = min(1, sum(self._least_size(field.type) for field in schema.fields))
        return known


def _span(indent: str, size: int | None) -> list[str]:
    """Return the code that sets ``e`` to the end of ``size`` bytes. If ``size`` is None, the code reads a length."""
    if size is not None:
        return [f"{indent}e = p + {size}", f"{indent}if e > n:", f"{indent}    raise too_long({size}, n - p)"]
    return [
        *_number(indent, "e"),
        f"{indent}if not 0 <= e <= n - p:",
        f"{indent}    raise too_long(e, n - p)",
        f"{indent}e += p",
    ]


def _plain(kind: str, indent: str, target: str) -> list[str]:
    if kind == "null":
        return [f"{indent}{target} = None"]
    if kind == "boolean":
        return [
            f"{indent}{target} = d[p] == 1",
            f"{indent}if d[p] > 1:",
            f"{indent}    raise UndecodableError(f'a boolean is {{d[p]}}, not 0 or 1')",
            f"{indent}p += 1",
        ]
    if kind in ("int", "long"):
        return _number(indent, target, bits=32 if kind == "int" else 64)
    return [
        f"{indent}({target},) = {'real' if kind == 'float' else 'double'}(d, p)",
        f"{indent}p += {4 if kind == 'float' else 8}",
    ]


def _number(indent: str, target: str, *, bits: int = 64) -> list[str]:
    """Return the lines of Python that read a zigzag varint."""
    lines = [
        "b = d[p]",
        "p += 1",
        "if b > 127:",
        "    b, p = varint(d, p, b)",
        *(["    if b >> 32:", "        raise UndecodableError('an int has more than 32 bits')"] if bits == 32 else []),
        f"{target} = b >> 1 ^ -(b & 1)",
    ]
    return [indent + line for line in lines]


def _of_bytes(logical: Logical | None, *, typed: bool) -> str:
    """Return an expression for the value of the bytes ``d[p:e]``: a column's value if ``typed``, else a JSON value."""
    if logical is None:
        return "d[p:e]" if typed else "b64(d[p:e])"
    if logical.name == "decimal":
        most = 10 ** min(logical.precision, _MOST_DIGITS)
        return f"unscaled(d[p:e], {most})" if typed else f"decimal(d[p:e], {logical.scale:d})"
    if logical.name == "uuid":
        return "uuid(d[p:e])"
    return "duration_parts(d[p:e])" if typed else "duration(d[p:e])"


def _number_text(logical: Logical, target: str) -> str:
    """Return the source text of an expression that converts the number of a date or time to JSON."""
    kind, _, unit = logical.name.rpartition("-")
    if logical.name == "date":
        return f"date_text({target})"
    if kind == "time":
        return f"time_text({target}, {DIGITS[unit]})"
    return f"timestamp_text({target}, {DIGITS[unit]}, {'' if kind.startswith('local') else 'Z'!r})"


def _bounds(logical: Logical) -> tuple[int, int]:
    """Return the smallest and the largest number of a date or time that Python and Spark support."""
    if logical.name == "date":
        return FIRST_DAY, LAST_DAY
    kind, _, unit = logical.name.rpartition("-")
    day = 86_400 * 10 ** DIGITS[unit]
    if kind == "time":
        return 0, day - 1
    return max(FIRST_DAY * day, -(2**63)), min((LAST_DAY + 1) * day - 1, 2**63 - 1)


def default_value(schema: AvroType, value: Any, shape: Shape | None) -> Any:
    """Return the default value in a schema as a value of a shape; None for null, or if it does not fit."""
    try:
        return _default(schema, value, shape)
    except (TypeError, ValueError, AttributeError, KeyError, OverflowError, RecursionError):
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
            return float(value) if typed else number(float(value))
        if schema.kind == "boolean":
            return _of_type(value, bool)
        if schema.kind in ("int", "long"):
            whole = _of_type(value, int)
            if schema.logical is None:
                return whole
            first, last = _bounds(schema.logical)
            if typed:
                return whole if first <= whole <= last else None
        elif schema.kind == "string":
            text: str = _of_type(value, str)
            return text.encode().decode()  # raises for a lone surrogate
    # encode other defaults, and read these bytes with the reader
    data = value.encode("latin-1") if isinstance(value, str) else _zigzag_varint(value)
    if isinstance(schema, Primitive) and schema.kind == "bytes":
        data = _zigzag_varint(len(data)) + data
    return _guarded(_ReaderSource().compiled(schema, schema, shape), data, 0)[0]


def _of_type(value: Any, kind: type) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(f"{value!r} is not of the type {kind.__name__}")
    return value


_SYNC_SIZE: Final = 16
_FILE_HEADER: Final = Map(Primitive("bytes"))


def read_file(payload: bytes, limit: int) -> tuple[list[Any], str | None]:
    """Return the records of an Avro container file (``Obj`` 1) as JSON, and the full name of their schema.

    ``limit``: largest decompressed size of compressed blocks in bytes. Raises UndecodableError, as Java also for bytes
    after the records of a block (``DataFileStream``); SchemaError for the schema.
    """
    header, position = AvroReader(_FILE_HEADER).value(payload, len(FILE_MAGIC))
    meta = {name: a2b_base64(value) for name, value in header.items()}
    reader = AvroReader(parse(meta.get("avro.schema", b"").decode("utf-8", "replace")))
    codec = meta.get("avro.codec", b"null").decode("ascii", "replace")
    sync = payload[position : position + _SYNC_SIZE]
    position += _SYNC_SIZE
    long = AvroReader(Primitive("long"))
    left, records = limit, list[Any]()
    while position < len(payload):
        count, position = long.value(payload, position)
        size, position = long.value(payload, position)
        if not 0 <= size <= len(payload) - position - _SYNC_SIZE:
            raise _too_long(size, len(payload) - position)
        try:
            data = _uncompressed(payload[position : position + size], codec, left)
        except LimitError:
            raise UndecodableError(f"the blocks take more than {limit} bytes uncompressed") from None
        left -= len(data)
        at = 0
        if not 0 <= count <= max(len(data), _EMPTY_ITEMS):
            raise UndecodableError(f"a block claims {count} records, but has {len(data)} bytes")
        for _ in range(count):
            value, at = reader.value(data, at)
            records.append(value)
        if at != len(data):
            raise UndecodableError(f"a block has {len(data) - at} bytes after its records")
        position += size
        if payload[position : position + _SYNC_SIZE] != sync:
            raise UndecodableError("a block does not end with the sync marker of the file")
        position += _SYNC_SIZE
    return records, reader.name


def _uncompressed(data: bytes, codec: str, limit: int) -> bytes:
    """Return the content of a block. Raises LimitError if it decompresses above ``limit`` bytes; UndecodableError."""
    try:
        if codec == "null":
            return data
        if codec == "deflate":
            return _inflated(zlib.decompressobj(-zlib.MAX_WBITS), data, limit)
        if codec == "bzip2":
            import bz2

            return _inflated(bz2.BZ2Decompressor(), data, limit)
        if codec == "xz":
            return _unpacked_xz(data, limit)
        if codec == "snappy":  # the last 4 bytes are a checksum
            return compression.decompress(compression.SNAPPY, data[:-4], limit=limit)
        if codec == "zstandard":
            return compression.decompress(compression.ZSTD, data, limit=limit)
    except LimitError:
        raise
    except (DamageError, zlib.error, OSError, EOFError) as reason:
        raise UndecodableError(f"a block cannot be decompressed: {reason}") from None
    raise UndecodableError(f"the codec {codec!r} is unknown")


def _unpacked_xz(data: bytes, limit: int) -> bytes:
    import lzma

    try:
        return _inflated(lzma.LZMADecompressor(), data, limit)
    except lzma.LZMAError as reason:
        raise UndecodableError(f"a block cannot be decompressed: {reason}") from None


def _inflated(decompressor: Any, data: bytes, limit: int) -> bytes:
    made: bytes = decompressor.decompress(data, limit + 1)
    if len(made) > limit:
        raise LimitError("size", "a block is too large", expected=limit)
    if not decompressor.eof:  # fastavro leaves bytes of a checksum after the stream
        raise UndecodableError("the compressed stream of a block is truncated")
    return made
