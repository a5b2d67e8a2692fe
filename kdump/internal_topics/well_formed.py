"""Reads well-formed messages, several times as fast as the interpreter, and gives up on anything else.

Each version of a message becomes a chain of small functions, made once. What is cut off, too long, not UTF-8 or
followed by other bytes is left to :mod:`kdump.internal_topics.interpreter`, which says what is wrong.
"""

from __future__ import annotations

import struct
from functools import cache
from itertools import groupby
from struct import unpack_from
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from kdump.internal_topics.interpreter import FIXED, LONGEST_STRING

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdump.internal_topics.schema import Slot, Struct, Value, Values

    Step: TypeAlias = "Callable[[bytes, int], tuple[Value, int]]"
    """Takes bytes and a position; returns a value and the position after it."""
    Filler: TypeAlias = "Callable[[bytes, int, Values], int]"
    """Likewise, but puts the values into a struct."""

GAVE_UP: Final = (IndexError, struct.error, ValueError, KeyError)
"""What a step raises where bytes are not well-formed."""


def read(schema: Struct, data: bytes, start: int) -> Values | None:
    """Return the values of a message that fills ``data`` from ``start`` on; None to leave it to the interpreter."""
    try:
        values, end = _reader(schema)(data, start)
    except GAVE_UP:
        return None
    return cast("Values", values) if end == len(data) else None


@cache
def _reader(schema: Struct) -> Step:
    """Return what reads a struct.

    A length that reaches beyond the bytes takes the position there, from where nothing comes back: it is told at the
    end, where the position has to be that of the end.
    """
    defaults = {slot.name: slot.default for slot in schema.tagged.values()}
    blank: Values = {slot.name: defaults[slot.name]() if slot.name in defaults else None for slot in schema.slots}
    fillers = [
        filler
        for fixed, slots in groupby(schema.plain, lambda slot: slot.type in FIXED and not slot.array)
        for filler in ([_fixed(list(slots))] if fixed else [_one(slot) for slot in slots])
    ]
    if schema.refused is not None:
        fillers.append(_give_up)
    if schema.flexible:
        fillers.append(_tagged(schema))

    def read_struct(data: bytes, at: int) -> tuple[Value, int]:
        values = blank.copy()
        for fill in fillers:
            at = fill(data, at, values)
        return values, at

    return read_struct


def _give_up(*_: object) -> int:
    raise ValueError


def _fixed(slots: list[Slot]) -> Filler:
    """Fields of a fixed size that follow each other."""
    layout = struct.Struct(">" + "".join(FIXED[slot.type].format[1:] for slot in slots))
    names, unpack, size = [slot.name for slot in slots], layout.unpack_from, layout.size

    def fill(data: bytes, at: int, values: Values) -> int:
        values.update(zip(names, unpack(data, at), strict=True))
        return at + size

    return fill


def _one(slot: Slot) -> Filler:
    name, step = slot.name, _step(slot)

    def fill(data: bytes, at: int, values: Values) -> int:
        values[name], at = step(data, at)
        return at

    return fill


def _tagged(schema: Struct) -> Filler:
    steps = {tag: (slot.name, _step(slot)) for tag, slot in schema.tagged.items()}
    changing = [(slot.name, slot.default) for slot in schema.tagged.values() if isinstance(slot.default(), list | dict)]

    def fill(data: bytes, at: int, values: Values) -> int:
        for name, default in changing:  # a caller may change a list: each message has its own
            values[name] = default()
        count = data[at]
        at += 1
        if count:
            if count >= 0x80:
                raise ValueError
            for _ in range(count):
                name, step = steps[data[at]]  # an unknown tag, or one of several bytes, is none of them
                if data[at + 1] >= 0x80:
                    _, at = _varint(data, at + 1)
                    values[name], at = step(data, at)
                else:
                    values[name], at = step(data, at + 2)
        return at

    return fill


def _varint(data: bytes, at: int) -> tuple[int, int]:
    low = data[at]
    if low < 0x80:
        return low, at + 1
    high = data[at + 1]
    if high < 0x80:
        return low & 0x7F | high << 7, at + 2
    raise ValueError


def _step(slot: Slot) -> Step:
    if slot.array:
        return _array(slot)
    if slot.struct is not None:
        return _struct(slot)
    if slot.type in FIXED:
        layout = FIXED[slot.type]
        return lambda data, at: (layout.unpack_from(data, at)[0], at + layout.size)
    return _sized(slot, nullable=slot.nullable)


def _struct(slot: Slot) -> Step:
    inner = _reader(cast("Struct", slot.struct))
    if not slot.nullable:
        return inner
    null = (0,) if slot.tag is not None else range(0x80, 0x100)

    def step(data: bytes, at: int) -> tuple[Value, int]:
        return (None, at + 1) if data[at] in null else inner(data, at + 1)

    return step


def _length(slot: Slot, kind: str) -> Callable[[bytes, int], tuple[int, int]]:
    if slot.compact:

        def compact(data: bytes, at: int) -> tuple[int, int]:
            low = data[at]
            if low < 0x80:
                return low - 1, at + 1
            size, at = _varint(data, at)
            return size - 1, at

        return compact
    layout = FIXED[kind]
    return lambda data, at: (layout.unpack_from(data, at)[0], at + layout.size)


def _sized(slot: Slot, *, nullable: bool) -> Step:
    text = slot.type == "string"
    length = _length(slot, "int16" if text else "int32")

    def step(data: bytes, at: int) -> tuple[Value, int]:
        size, at = length(data, at)
        if size < 0:
            if nullable:
                return None, at
            raise ValueError
        end = at + size
        if not text:
            return data[at:end], end
        if size > LONGEST_STRING:
            raise ValueError
        return str(data[at:end], "utf-8"), end

    return step


def _array(slot: Slot) -> Step:
    length, nullable = _length(slot, "int32"), slot.nullable
    several = _fixed_elements(slot) if slot.type in FIXED else _elements(slot)

    def step(data: bytes, at: int) -> tuple[Value, int]:
        count, at = length(data, at)
        if count > 0:
            return several(data, at, count)
        if count < 0 and not nullable:
            raise ValueError
        return None if count < 0 else [], at

    return step


def _fixed_elements(slot: Slot) -> Callable[[bytes, int, int], tuple[Value, int]]:
    layout = FIXED[slot.type]
    letter, size = layout.format[1:], layout.size

    def uuids(data: bytes, at: int, count: int) -> tuple[Value, int]:
        end = at + count * size
        if end > len(data):
            raise ValueError
        return [data[each : each + size] for each in range(at, end, size)], end

    def several(data: bytes, at: int, count: int) -> tuple[Value, int]:
        end = at + count * size
        if end > len(data):
            raise ValueError
        return list(unpack_from(f">{count}{letter}", data, at)), end

    return uuids if letter == "16s" else several


def _elements(slot: Slot) -> Callable[[bytes, int, int], tuple[Value, int]]:
    one = _reader(slot.struct) if slot.struct is not None else _sized(slot, nullable=False)

    def several(data: bytes, at: int, count: int) -> tuple[Value, int]:
        if count > len(data) - at:
            raise ValueError
        values: list[Value] = []
        for _ in range(count):
            value, at = one(data, at)
            values.append(value)
        return values, at

    return several
