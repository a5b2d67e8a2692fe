"""Turns the values of messages into text as Java and Jackson do."""

from __future__ import annotations

import math
import re
from base64 import b64encode, urlsafe_b64encode
from functools import lru_cache
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdump.internal_topics.schema import Slot, Struct, Value, Values

ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
SPECIAL: Final = re.compile(r'["\\\x00-\x1f]')


class Json(str):
    """A text that is already JSON. It is printed as it is."""

    __slots__ = ()


def string(text: str) -> str:
    """Return a JSON string with the escapes of Jackson's compact writer."""
    return '"' + SPECIAL.sub(lambda found: ESCAPES.get(found[0], f"\\u{ord(found[0]):04X}"), text) + '"'


def double(value: float) -> str:
    """Return ``Double.toString``: numbers have a point; below 10^-3 (not 0) or from 10^7 on (absolute) an exponent."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    sign = "-" if value < 0 else ""
    from decimal import Decimal

    mantissa, _, exponent = f"{Decimal(repr(abs(value))):e}".partition("e")
    if "." not in mantissa:
        mantissa, _, exponent = f"{abs(value):.1e}".partition("e")  # Java prints the nearest number of two digits
    digits = mantissa.replace(".", "").rstrip("0")
    point = int(exponent) + 1
    if -3 < point <= 7:
        digits = ("0" * (1 - point) + digits).ljust(point, "0")
        whole = max(point, 1)
        return f"{sign}{digits[:whole]}.{digits[whole:] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"


def uuid(value: bytes) -> str:
    """Return ``Uuid.toString``: 22 characters of URL-safe base64."""
    return urlsafe_b64encode(value).decode().rstrip("=")


def json(struct: Struct, values: Values) -> str:
    """Return a message as JSON: fields in order of declaration, without tagged fields that have their default."""
    parts = []
    for head, slot, write in _writers(struct):
        value = values[slot.name]
        if slot.tag is None or value != slot.default():
            parts.append(head + ("null" if value is None else write(value)))
    return "{" + ",".join(parts) + "}"


@lru_cache
def _writers(struct: Struct) -> list[tuple[str, Slot, Callable[[Value], str]]]:
    """Return for each field: the text before it, the field, and the function that writes values other than null."""
    return [(f'"{slot.name}":', slot, _writer(slot)) for slot in struct.slots]


def _writer(slot: Slot) -> Callable[[Value], str]:
    inner = slot.struct
    one = SCALARS[slot.type] if inner is None else lambda value: json(inner, cast("Values", value))
    if slot.array:
        return lambda value: "[" + ",".join([one(element) for element in cast("list[Value]", value)]) + "]"
    return one


def field(slot: Slot, value: Value) -> str:
    return "null" if value is None else _writer(slot)(value)


def _bytes(value: Value) -> str:
    return value if isinstance(value, Json) else string(b64encode(cast("bytes", value)).decode())


def _float(value: Value) -> str:
    text = double(cast("float", value))
    return text if text[-1].isdigit() else string(text)


SCALARS: Final[dict[str, Callable[[Value], str]]] = {
    "int8": str,
    "int16": str,
    "int32": str,
    "int64": str,
    "uint16": str,
    "uint32": str,
    "bool": lambda value: "true" if value else "false",
    "float64": _float,
    "string": lambda value: string(cast("str", value)),
    "uuid": lambda value: string(uuid(cast("bytes", value))),
    "bytes": _bytes,
    "records": lambda value: str(len(cast("bytes", value))),
}


def hex_number(data: bytes) -> str:
    """Return bytes as an upper-case hexadecimal number without leading zeros; "" for no bytes."""
    return f"{int.from_bytes(data, 'big'):X}" if data else ""
