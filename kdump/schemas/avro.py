"""Reads Avro payloads with the writer's schema as JSON values (Apache Avro 1.12 specification, binary encoding).

For each record, array and map of a schema the source text of a Python function is generated. The text contains names
and symbols of the schema only as literals made by ``repr``. Interpreting the schema instead would take seven times as
long. For JSON lines compiled code writes most payloads (:mod:`kdump.schemas.kernel_tables`).

``fastavro.schemaless_reader`` is equally fast, but its values are not JSON, it raises for dates outside the years 1 to
9999, and it ignores bytes after the value. It does not support durations, UUIDs of 16 bytes and nanoseconds.
"""

from __future__ import annotations

import zlib
from binascii import a2b_base64, b2a_base64
from dataclasses import dataclass
from math import isfinite, isnan
from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from uuid import UUID

from kdump.errors import DamageError, LimitError
from kdump.primitives import compression
from kdump.schemas.avro_schema import (
    Array,
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
from kdump.schemas.errors import SchemaError, UndecodableError
from kdump.schemas.framing import FILE_MAGIC
from kdump.schemas.times import date_text, time_text, timestamp_text

if TYPE_CHECKING:
    from collections.abc import Callable

Read: TypeAlias = "Callable[[bytes, int, int, int, list[int]], tuple[Any, int]]"
"""A reader: (payload, position, size of the payload, level, [number of further items of 0 bytes allowed]).

It returns the value and the position after it, and decreases the number in the list.
"""

MAX_DEPTH: Final = 200
"""Maximum number of levels of records, arrays and maps in a payload, because the JSON encoder is recursive."""
_EMPTY_ITEMS: Final = 1_000_000
"""Maximum number of array items in a payload that take 0 bytes (nulls, empty records)."""
MAX_DECIMAL: Final = 1700
"""Maximum size of a decimal in bytes, so that Python can convert it to text (``sys.get_int_max_str_digits``)."""


class AvroReader:
    """Reads payloads of a schema. ``name`` is the full name of a record, enum or fixed, else None."""

    def __init__(self, schema: AvroType) -> None:
        self.schema = schema
        self.name = schema.name if isinstance(schema, (AvroRecord, Enum, Fixed)) else None
        self._raw = isinstance(schema, Primitive) and schema.kind == "bytes"
        self._logical = schema.logical if isinstance(schema, Primitive) else None
        source = ReaderSource()
        name = source.function(schema)
        self._read = compiled(source.lines, name, {})

    def read(self, payload: bytes, position: int = 0) -> tuple[Any, int]:
        """Return the JSON value at a position, and the position after it. Raises UndecodableError."""
        if self._raw:  # a payload of only bytes: Confluent's serializer writes no length
            rest = payload[position:]
            return (_decimal(rest, self._logical.scale) if self._logical else base64(rest)), len(payload)
        return self.value(payload, position)

    def value(self, payload: bytes, position: int = 0) -> tuple[Any, int]:
        """Like :meth:`read`, but for Avro's own encoding, in which bytes always have a length."""
        return guarded(self._read, payload, position)


def guarded(read: Read, payload: bytes, position: int) -> tuple[Any, int]:
    """Return the value at a position and the position after it. Raises UndecodableError for malformed bytes."""
    try:
        return read(payload, position, len(payload), 0, [_EMPTY_ITEMS])
    except UndecodableError:
        raise
    except (IndexError, struct_error):
        raise UndecodableError("the payload ends early") from None
    except UnicodeDecodeError as reason:
        raise UndecodableError(f"a string is not UTF-8 ({reason.reason})") from None
    except RecursionError:
        raise UndecodableError("it is nested too deep") from None


def base64(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode("ascii")


def _varint(data: bytes, position: int, value: int) -> tuple[int, int]:
    """Return a varint, still in zigzag encoding, and the position after it; ``value`` is its first byte."""
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


def zigzag_varint(value: int) -> bytes:
    """Return a number encoded as an Avro long."""
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
    """Return a decimal with this unscaled value as text, with ``scale`` digits after the point."""
    digits = str(abs(value)).zfill(scale + 1)
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}" if scale else sign + digits


def number(value: float) -> float | str:
    """Return a float as a JSON value, in which NaN and infinities are texts."""
    if isfinite(value):
        return value
    return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"


_DURATION: Final = Struct("<III")
_TIMES: Final = {"millis": 3, "micros": 6, "nanos": 9}


def _duration(data: bytes) -> dict[str, int]:
    months, days, millis = _DURATION.unpack(data)
    return {"months": months, "days": days, "millis": millis}


_HELPERS: Final[dict[str, Any]] = {
    "UndecodableError": UndecodableError,
    "b64": base64,
    "date_text": date_text,
    "decimal": _decimal,
    "double": Struct("<d").unpack_from,
    "duration": _duration,
    "duration_parts": _DURATION.unpack,
    "number": number,
    "real": Struct("<f").unpack_from,
    "time_text": time_text,
    "timestamp_text": timestamp_text,
    "too_long": _too_long,
    "uuid": lambda data: str(UUID(bytes=data)),
    "varint": _varint,
}


def compiled(lines: list[str], name: str, scope: dict[str, Any]) -> Read:
    """Compile source text that can use the objects in ``scope``; return its function ``name``. Raises SchemaError."""
    scope = {**_HELPERS, **scope}
    try:
        exec(compile("\n".join(lines), "<avro schema>", "exec"), scope)  # noqa: S102  # made of literals: ReaderSource
    except (SyntaxError, RecursionError, MemoryError) as reason:
        raise SchemaError(f"the schema is too large or too deep: {reason}") from None
    read: Read = scope[name]
    return read


class ReaderSource:
    """Generates the source text of a schema's readers.

    Variables in the text: ``d`` is the payload, ``p`` the position, ``n`` the size, ``k`` the level, ``v`` a value.
    ``z[0]`` is the number of further array items of 0 bytes allowed.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._functions: dict[int, str] = {}
        self._kept: list[AvroType] = []  # keeps the types alive, so that their ids stay unique
        self._least: dict[int, int] = {}

    def function(self, schema: AvroType) -> str:
        """Return the name of the function that reads a type, after generating it if needed."""
        known = self._functions.get(id(schema))
        if known is not None:
            return known
        name = self._functions[id(schema)] = f"f{len(self._functions)}"
        self._kept.append(schema)
        body = [f"def {name}(d, p, n, k, z):"]
        if isinstance(schema, (AvroRecord, Array, Map)):
            body += self.depth_check()
        if isinstance(schema, AvroRecord):
            members = []
            for index, field in enumerate(schema.fields):
                body += self.value(field.type, "    ", f"v{index}")
                members.append(f"{field.name!r}: v{index}")
            body.append(f"    return {{{', '.join(members)}}}, p")
        elif isinstance(schema, Array):
            body += ["    out = []", *self.blocks(schema.items)]
            body += [f"            {line}" for line in self.value(schema.items, "", "v")]
            body += ["            out.append(v)", "    return out, p"]
        elif isinstance(schema, Map):
            body += ["    out = {}", *self.blocks(None)]
            body += [f"            {line}" for line in self.value(Primitive("string"), "", "key")]
            body += [f"            {line}" for line in self.value(schema.values, "", "v")]
            body += ["            out[key] = v", "    return out, p"]
        else:
            body += [*self.value(schema, "    ", "v"), "    return v, p"]
        self.lines += body
        return name

    @staticmethod
    def depth_check() -> list[str]:
        """Return the lines of code that check the level in a function that reads nested values."""
        return [f"    if k > {MAX_DEPTH}:", "        raise UndecodableError('it is nested too deep')"]

    def blocks(self, items: AvroType | None) -> list[str]:
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

    def value(self, schema: AvroType, indent: str, target: str) -> list[str]:
        """Return the lines of code that read a value into ``target``."""
        if isinstance(schema, (Array, Map, AvroRecord)):
            return [f"{indent}{target}, p = {self.function(schema)}(d, p, n, k + 1, z)"]
        if isinstance(schema, Union):
            return self._union(schema, indent, target)
        if isinstance(schema, Enum):
            return [*self.symbol_number(schema, indent), f"{indent}{target} = {schema.symbols!r}[i]"]
        if isinstance(schema, Fixed):
            return [
                *self.span(indent, schema.size),
                f"{indent}{target} = {bytes_text(schema.logical)}",
                f"{indent}p = e",
            ]
        return _primitive(schema, indent, target)

    def _union(self, schema: Union, indent: str, target: str) -> list[str]:
        lines = self.branch_number(schema, indent)
        for index, branch in enumerate(schema.branches):
            lines.append(f"{indent}{'elif' if index else 'if'} i == {index}:")
            lines += self.value(branch, indent + "    ", target)
        return lines

    @staticmethod
    def branch_number(schema: Union, indent: str) -> list[str]:
        """Return the lines of code that read the number of a union's branch into ``i``."""
        error = "raise UndecodableError(f'the union has no branch {i}')"
        return [*_number(indent, "i"), f"{indent}if not 0 <= i < {len(schema.branches)}:", f"{indent}    {error}"]

    @staticmethod
    def symbol_number(schema: Enum, indent: str) -> list[str]:
        """Return the lines of code that read the number of an enum's symbol into ``i``."""
        error = "raise UndecodableError(f'the enum has no symbol {i}')"
        return [*_number(indent, "i"), f"{indent}if not 0 <= i < {len(schema.symbols)}:", f"{indent}    {error}"]

    @staticmethod
    def span(indent: str, size: int | None) -> list[str]:
        """Return the lines of code that set ``e`` to the end of ``size`` bytes. If None, they read the size first."""
        if size is not None:
            return [f"{indent}e = p + {size}", f"{indent}if e > n:", f"{indent}    raise too_long({size}, n - p)"]
        return [
            *_number(indent, "e"),
            f"{indent}if not 0 <= e <= n - p:",
            f"{indent}    raise too_long(e, n - p)",
            f"{indent}e += p",
        ]

    @staticmethod
    def plain(kind: str, indent: str, target: str) -> list[str]:
        """Return the lines of code that read a null, boolean or number as a Python value."""
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


def _primitive(schema: Primitive, indent: str, target: str) -> list[str]:
    kind = schema.kind
    if kind in ("bytes", "string"):
        made = "d[p:e].decode()" if kind == "string" else bytes_text(schema.logical)
        return [*ReaderSource.span(indent, None), f"{indent}{target} = {made}", f"{indent}p = e"]
    lines = ReaderSource.plain(kind, indent, target)
    if kind in ("float", "double"):
        lines += [f"{indent}if {target} - {target} != 0:", f"{indent}    {target} = number({target})"]
    elif schema.logical is not None:
        lines.append(f"{indent}{target} = {number_text(schema.logical, target)}")
    return lines


def bytes_text(logical: Logical | None) -> str:
    """Return the source text of an expression that converts the bytes from ``p`` to ``e`` to a JSON value."""
    if logical is None:
        return "b64(d[p:e])"
    if logical.name == "decimal":
        return f"decimal(d[p:e], {logical.scale:d})"
    return "uuid(d[p:e])" if logical.name == "uuid" else "duration(d[p:e])"


def number_text(logical: Logical, target: str) -> str:
    """Return the source text of an expression that converts the number of a date or time to JSON."""
    kind, _, unit = logical.name.rpartition("-")
    if logical.name == "date":
        return f"date_text({target})"
    if kind == "time":
        return f"time_text({target}, {_TIMES[unit]})"
    return f"timestamp_text({target}, {_TIMES[unit]}, {'' if kind.startswith('local') else 'Z'!r})"


_SYNC_SIZE: Final = 16
_FILE_HEADER: Final = Map(Primitive("bytes"))


@dataclass(frozen=True, slots=True)
class AvroFile:
    """The values of a container file as JSON, and the full name of their schema."""

    records: list[Any]
    name: str | None


def read_file(payload: bytes, limit: int) -> AvroFile:
    """Return the records of a payload that is an Avro container file (``Obj`` 1).

    ``limit`` is the largest uncompressed size of all blocks together, in bytes. Raises UndecodableError, and
    SchemaError if the schema in the file is invalid.
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
        position += size
        if payload[position : position + _SYNC_SIZE] != sync:
            raise UndecodableError("a block does not end with the sync marker of the file")
        position += _SYNC_SIZE
    return AvroFile(records, reader.name)


def _uncompressed(data: bytes, codec: str, limit: int) -> bytes:
    """Return the content of a block. Raises LimitError above ``limit`` bytes, and UndecodableError."""
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
    return made
