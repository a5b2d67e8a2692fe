"""Reads well-formed messages, five times as fast as the interpreter, and gives up on anything else.

Each version of a message becomes a Python function of its own: its text is made of the schema and compiled once, as
``dataclasses`` does. What is cut off, too long, not UTF-8 or followed by other bytes is left to
:mod:`kdump.internal_topics.interpreter`, which says what is wrong.
"""

from __future__ import annotations

import struct
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, cast

from kdump.internal_topics.interpreter import FIXED

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdump.internal_topics.schema import Slot, Struct, Values

GAVE_UP: Final = (IndexError, struct.error, ValueError)
"""What a function raises where bytes are not well-formed."""
FEW: Final = 16
"""Arrays of fewer numbers are unpacked by layouts that are made beforehand."""


def read(schema: Struct, data: bytes, start: int) -> Values | None:
    """Return the values of a message that fills ``data`` from ``start`` on; None to leave it to the interpreter."""
    return None if schema.refused is not None else reader(schema)(data, start)


@cache
def reader(schema: Struct) -> Callable[[bytes, int], Values | None]:
    """Return the function that reads a message whose version is known; see :func:`read`.

    A length that reaches beyond the bytes takes the position there, from where nothing comes back: further fields
    fail, or the position is not that of the end.
    """
    names: dict[str, Any] = {"GAVE_UP": GAVE_UP}
    lines = [*_fields(schema, names), f"return {_made(schema)} if at == len(data) else None"]
    return _function(schema, ["try:", *_deeper(lines), "except GAVE_UP:", " return None"], names)


@cache
def _inner_reader(schema: Struct) -> Callable[[bytes, int], tuple[Values, int]]:
    """Return the function that reads a struct inside another; it returns the position after it, too."""
    names: dict[str, Any] = {}
    return _function(schema, [*_fields(schema, names), f"return {_made(schema)}, at"], names)


def _function(schema: Struct, lines: list[str], names: dict[str, Any]) -> Callable[[bytes, int], Any]:
    text = "\n".join(["def read(data, at):", *_deeper(lines)])
    names |= {"varint": _varint, "unpack": struct.unpack_from}
    exec(compile(text, f"<reader of {schema.name}>", "exec"), names)  # noqa: S102  the text comes from schemas alone
    made: Callable[[bytes, int], Any] = names["read"]
    return made


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return an unsigned varint of one byte or two, and the position after it."""
    low = data[at]
    if low < 0x80:
        return low, at + 1
    high = data[at + 1]
    if high < 0x80:
        return low & 0x7F | high << 7, at + 2
    raise ValueError


# What follows returns lines of Python. They read ``data`` at ``at``, set the variable ``to`` and move ``at`` on.
# ``names`` holds what the lines refer to.


def _deeper(lines: list[str]) -> list[str]:
    return [f" {line}" for line in lines]


def _refer(names: dict[str, Any], value: object) -> str:
    """Return a name by which lines refer to a value."""
    name = f"n{len(names)}"
    names[name] = value
    return name


def _variables(schema: Struct) -> dict[str, str]:
    """Return field -> the variable that holds its value."""
    return {slot.name: f"v{number}" for number, slot in enumerate(schema.slots)}


def _made(schema: Struct) -> str:
    """Return the expression of the values, in order of declaration."""
    return f"{{{', '.join(f'{name!r}: {variable}' for name, variable in _variables(schema).items())}}}"


def _fields(schema: Struct, names: dict[str, Any]) -> list[str]:
    to = _variables(schema)
    lines = []
    for fixed, slots in groupby(schema.plain, lambda slot: slot.type in FIXED and not slot.array):
        run = list(slots)
        if fixed:
            layout = struct.Struct(">" + "".join(FIXED[slot.type].format[1:] for slot in run))
            targets = "".join(f"{to[slot.name]}, " for slot in run)
            lines += [f"{targets}= {_refer(names, layout.unpack_from)}(data, at)", f"at += {layout.size}"]
        else:
            lines += [line for slot in run for line in _value(slot, to[slot.name], names)]
    return [*lines, *_tagged(schema, names)] if schema.flexible else lines


def _tagged(schema: Struct, names: dict[str, Any]) -> list[str]:
    """Read tagged fields; an unknown one, or a tag of several bytes, is left to the interpreter."""
    to = _variables(schema)
    lines = [f"{to[slot.name]} = {_default(slot, names)}" for slot in schema.tagged.values()]
    choices: list[str] = []
    for tag, slot in schema.tagged.items():
        choices += [f"{'elif' if choices else 'if'} tag == {tag}:", *_deeper(_value(slot, to[slot.name], names))]
    rest = ["else:", " raise ValueError"] if choices else ["raise ValueError"]
    size = ["tag = data[at]", "if data[at + 1] < 0x80:", " at += 2", "else:", " _, at = varint(data, at + 1)"]
    some = ["if count >= 0x80:", " raise ValueError", "for _ in range(count):", *_deeper([*size, *choices, *rest])]
    return [*lines, "count = data[at]", "at += 1", "if count:", *_deeper(some)]


def _default(slot: Slot, names: dict[str, Any]) -> str:
    value = slot.default()
    if isinstance(value, list | dict):  # a caller may change it: each message has its own
        return "[]" if value == [] else f"{_refer(names, slot.default)}()"
    return repr(value)


def _value(slot: Slot, to: str, names: dict[str, Any]) -> list[str]:
    if slot.array:
        return _array(slot, to, names)
    if slot.struct is not None:
        return _inner(slot, to, names)
    if slot.type in FIXED:
        layout = FIXED[slot.type]
        return [f"{to}, = {_refer(names, layout.unpack_from)}(data, at)", f"at += {layout.size}"]
    return _sized(slot, to, names, nullable=slot.nullable)


def _inner(slot: Slot, to: str, names: dict[str, Any]) -> list[str]:
    """Read a struct inside another. One that may be null has a byte in front: a varint where it is tagged."""
    reader = _refer(names, _inner_reader(cast("Struct", slot.struct)))
    some = [f"{to}, at = {reader}(data, at)"]
    if not slot.nullable:
        return some
    head = ["at += 1", "if data[at - 1] < 0x80:"] if slot.tag is None else ["size, at = varint(data, at)", "if size:"]
    return [*head, *_deeper(some), "else:", f" {to} = None"]


def _length(slot: Slot, kind: str, names: dict[str, Any]) -> list[str]:
    """Read a length into ``size``; -1 is null."""
    if slot.compact:
        return ["size, at = varint(data, at)", "size -= 1"]
    layout = FIXED[kind]
    return [f"size, = {_refer(names, layout.unpack_from)}(data, at)", f"at += {layout.size}"]


def _null(to: str, *, nullable: bool) -> list[str]:
    return [f"{to} = None"] if nullable else ["raise ValueError"]


def _short(slot: Slot, most: int, short: list[str], other: list[str]) -> list[str]:
    """Return ``short`` for what is neither null nor empty and has a length of a byte, up to ``most``; else ``other``.

    ``short`` finds the length in ``size``, one too great, and the position still in front of it.
    """
    if not slot.compact:
        return other
    return ["size = data[at]", f"if 1 < size <= {most}:", *_deeper(short), "else:", *_deeper(other)]


def _sized(slot: Slot, to: str, names: dict[str, Any], *, nullable: bool) -> list[str]:
    """Read a string or bytes. No length of a string is too great: an int16 and a varint of two bytes are small."""
    text = ".decode()" if slot.type == "string" else ""
    length = _length(slot, "int16" if text else "int32", names)
    some = [f"{to} = data[at : at + size]{text}", "at += size"]
    other = [*length, "if size >= 0:", *_deeper(some), "else:", *_deeper(_null(to, nullable=nullable))]
    return _short(slot, 0x7F, [f"{to} = data[at + 1 : at + size]{text}", "at += size"], other)


def _array(slot: Slot, to: str, names: dict[str, Any]) -> list[str]:
    numbers = slot.type in FIXED
    elements = _numbers(slot, to) if numbers else _elements(slot, to, names)
    null = _null(to, nullable=slot.nullable)
    rest = ["elif size:", *_deeper(null), "else:", f" {to} = []"]
    other = [*_length(slot, "int32", names), "if size > 0:", *_deeper(elements), *rest]
    if not numbers or slot.type == "uuid":
        return other
    layout = FIXED[slot.type]
    unpacks = [struct.Struct(f">{max(0, size - 1)}{layout.format[1:]}").unpack_from for size in range(FEW + 1)]
    short = [
        f"{to} = [*{_refer(names, unpacks)}[size](data, at + 1)]",
        f"at += size * {layout.size} - {layout.size - 1}",
    ]
    return _short(slot, FEW, short, other)


def _numbers(slot: Slot, to: str) -> list[str]:
    letter, each = FIXED[slot.type].format[1:], FIXED[slot.type].size
    if slot.type == "uuid":
        taken = [f"if at + size * {each} > len(data):", " raise ValueError"]
        taken += [f"{to} = [data[one : one + {each}] for one in range(at, at + size * {each}, {each})]"]
    else:
        taken = [f"{to} = [*unpack(f'>{{size}}{letter}', data, at)]"]
    return [*taken, f"at += size * {each}"]


def _elements(slot: Slot, to: str, names: dict[str, Any]) -> list[str]:
    """Read strings, bytes or structs, each of which takes one byte at least."""
    if slot.struct is not None:
        one = [f"element, at = {_refer(names, _inner_reader(slot.struct))}(data, at)"]
    else:
        one = _sized(slot, "element", names, nullable=False)
    check = ["if size > len(data) - at:", " raise ValueError"]
    return [*check, f"{to} = []", "for _ in range(size):", *_deeper([*one, f"{to}.append(element)"])]
