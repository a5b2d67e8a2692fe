"""Converts Protobuf messages to values of typed columns (:mod:`kdump.schemas.shapes`).

A message is read as JSON (:mod:`kdump.schemas.protobuf`) and converted: 64-bit integers from text, bytes from base64,
timestamps from ISO 8601, enums from the name to its index (a number without a name becomes text). Duration and
FieldMask stay text. Struct, Value, ListValue, Any, and recursive, empty, too deep or large messages stay JSON text.
One schema version gives the columns their types, and reads the messages of all versions, as Protobuf's readers do.
"""

from __future__ import annotations

from binascii import a2b_base64
from datetime import date
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from kdump.schemas import MismatchError, well_known
from kdump.schemas.avro import compact_json
from kdump.schemas.proto_model import EnumType, MessageType
from kdump.schemas.protobuf import ANY
from kdump.schemas.shapes import JSON_TEXT, Leaf, ListShape, MapShape, Nesting, Shape, StructShape

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdump.schemas.proto_model import FieldType

    _Convert: TypeAlias = Callable[[Any], Any]

_SCALARS: Final = {
    **dict.fromkeys(("int32", "sint32", "sfixed32"), "int32"),
    **dict.fromkeys(("int64", "sint64", "sfixed64"), "int64"),
    **dict.fromkeys(("uint32", "fixed32"), "uint32"),
    **dict.fromkeys(("uint64", "fixed64"), "uint64"),
    "double": "float64",
    "float": "float32",
    "bool": "boolean",
    "string": "string",
    "bytes": "bytes",
}
_WRAPPED: Final = {f"{well_known.PACKAGE}{name}Value": name.lower() for name in well_known.WRAPPERS}
_TEXTS: Final = frozenset(well_known.PACKAGE + name for name in ("Duration", "FieldMask"))
_JSON: Final = frozenset({ANY, *(well_known.PACKAGE + name for name in ("Struct", "Value", "ListValue"))})
_TIMESTAMP: Final = well_known.PACKAGE + "Timestamp"
_NULL: Final = well_known.PACKAGE + "NullValue"
_EPOCH: Final = date(1970, 1, 1).toordinal()
_LEAST_NS, _MOST_NS = -(2**63), 2**63 - 1


class ProtobufColumn(NamedTuple):
    """The type of a column, and the function that converts a JSON value (except null) or raises MismatchError."""

    shape: Shape
    convert: _Convert


def message_column(kind: MessageType, *, wide_times: bool = False) -> ProtobufColumn:
    """Return the column of a message. ``wide_times``: accept timestamps outside int64 nanoseconds (years 1 to 9999)."""
    return _message(kind, Nesting(), _nanoseconds if wide_times else _int64_nanoseconds)


def _message(kind: MessageType, nesting: Nesting, timestamp: _Convert) -> ProtobufColumn:
    if kind.full_name in _WRAPPED:
        return _scalar(_WRAPPED[kind.full_name])
    if kind.full_name == _TIMESTAMP:
        return ProtobufColumn(Leaf("instant-nanos"), timestamp)
    if kind.full_name in _TEXTS:
        return ProtobufColumn(Leaf("string"), lambda value: value if isinstance(value, str) else compact_json(value))
    fields = [*kind.fields, *kind.extensions]
    if kind.full_name in _JSON or not fields or not nesting.enter(kind, len(fields)):
        return ProtobufColumn(JSON_TEXT, compact_json)
    names = [f"[{field.name}]" if field.extension else field.name for field in fields]
    columns = [_field(field, nesting, timestamp) for field in fields]
    nesting.leave()
    pairs = [(name, column.convert) for name, column in zip(names, columns, strict=True)]

    def convert(value: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(
            None if (found := value.get(name)) is None else convert_field(found) for name, convert_field in pairs
        )

    return ProtobufColumn(
        StructShape(tuple((name, column.shape) for name, column in zip(names, columns, strict=True))), convert
    )


def _field(field: FieldType, nesting: Nesting, timestamp: _Convert) -> ProtobufColumn:
    kind = field.resolved
    if isinstance(kind, MessageType) and kind.is_map_entry:
        return _map(kind, nesting, timestamp)
    single = _single(field, nesting, timestamp)
    if not field.repeated:
        return single
    convert = single.convert

    def convert_list(values: list[Any]) -> list[Any]:
        return [None if value is None else convert(value) for value in values]

    return ProtobufColumn(ListShape(single.shape), convert_list)


def _single(field: FieldType, nesting: Nesting, timestamp: _Convert) -> ProtobufColumn:
    kind = field.resolved
    if isinstance(kind, MessageType):
        return _message(kind, nesting, timestamp)
    return _enum(kind) if isinstance(kind, EnumType) else _scalar(field.type)


def _map(kind: MessageType, nesting: Nesting, timestamp: _Convert) -> ProtobufColumn:
    """Return the column of a map. Its keys, text in JSON, are converted to the key type of the schema."""
    key, value = kind.fields
    of_key = _SCALARS.get(key.type, "string")
    made = _single(value, nesting, timestamp)
    read_key: _Convert = {"boolean": "true".__eq__, "string": _text}.get(of_key, int)

    def convert(values: dict[str, Any]) -> list[tuple[Any, Any]]:
        return [(read_key(name), None if one is None else made.convert(one)) for name, one in values.items()]

    return ProtobufColumn(MapShape(Leaf(of_key), made.shape), convert)


def _scalar(kind: str) -> ProtobufColumn:
    made = _SCALARS[kind]
    if made in ("int64", "uint64"):
        return ProtobufColumn(Leaf(made), int)
    if made in ("float32", "float64"):
        return ProtobufColumn(Leaf(made), float)  # also converts "NaN" and "Infinity"
    return ProtobufColumn(Leaf(made), a2b_base64 if made == "bytes" else _text)


def _enum(kind: EnumType) -> ProtobufColumn:
    symbols = tuple(dict.fromkeys(name for name, _ in kind.values))
    numbers = {symbol: number for number, symbol in enumerate(symbols)}
    if kind.full_name == _NULL:
        return ProtobufColumn(Leaf("string"), _text)

    def convert(value: str | int) -> int | str:
        return numbers[value] if isinstance(value, str) else str(value)

    return ProtobufColumn(Leaf("enum", symbols=symbols), convert)


def _text(value: Any) -> Any:
    return value


def _nanoseconds(value: Any) -> int:
    """Return ISO 8601 in UTC as ns since 1970. Raises MismatchError for a Timestamp that is out of range."""
    if not isinstance(value, str):
        raise MismatchError(
            f"the timestamp {compact_json(value)} is outside the years 1 to 9999, or its nanos are not 0 to 999999999"
        )
    days = date.fromisoformat(value[:10]).toordinal() - _EPOCH
    seconds = days * 86_400 + int(value[11:13]) * 3600 + int(value[14:16]) * 60 + int(value[17:19])
    return seconds * 10**9 + int(value[20:-1].ljust(9, "0"))


def _int64_nanoseconds(value: Any) -> int:
    """Like :func:`_nanoseconds`. Raises MismatchError also outside int64: 1677-09-21 to 2262-04-11."""
    made = _nanoseconds(value)
    if not _LEAST_NS <= made <= _MOST_NS:
        raise MismatchError(f"the timestamp {value} is outside the years 1678 to 2262, the range of int64 nanoseconds")
    return made
