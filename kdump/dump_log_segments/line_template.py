"""Output lines as data: the line as a release writes it, with named fields.

``"| offset: {offset} isControl: {is_control:bool}"`` is parsed once into literals and fields. The word behind the
colon is the field's type, which says how Java writes it: ``bool`` (true, false), ``optional`` (OptionalLong),
``option`` (Scala's Option), ``int`` (the number, or -1 when there is none), ``long`` (the number, or null when there is
none; this is also what stands without a type).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


class Field(NamedTuple):
    """One field of a line: its name, and the type that says how to write it."""

    name: str
    type: str


class Line(NamedTuple):
    """A parsed line: literals and fields in the order of the output."""

    parts: tuple[str | Field, ...]

    def render(self, value: Callable[[str], object]) -> str:
        """Return the text, each field's value asked for by name, in order."""
        return "".join(part if isinstance(part, str) else WRITE[part.type](value(part.name)) for part in self.parts)


def _long(value: object) -> str:
    return "null" if value is None else str(value)


def _int(value: object) -> str:
    return "-1" if value is None else str(value)


def _bool(value: object) -> str:
    return "true" if value else "false"


def _optional(value: object) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def _option(value: object) -> str:
    return "None" if value is None else f"Some({value})"


WRITE: Final[dict[str, Callable[[object], str]]] = {
    "": _long,
    "long": _long,
    "int": _int,
    "bool": _bool,
    "optional": _optional,
    "option": _option,
}

_BRACE: Final = "\0"
"""What stands for a brace of the text while it is parsed."""
NUMBERS: Final = {"", "long", "int"}
"""The types of what Java writes as it is."""
KINDS: Final = 64
"""Kinds of lines that a printer keeps with their literals filled in, at most."""


def split(lines: Iterable[Line], slots: Mapping[str, int], value: Callable[[str], object]) -> Iterator[str | int]:
    """Yield the literals of ``lines`` and the slots of their fields; what has none is literal: ``value`` gives it."""
    for line in lines:
        for part in line.parts:
            if isinstance(part, str):
                yield part
            elif part.name in slots and part.type in NUMBERS:
                yield slots[part.name]
            else:
                yield WRITE[part.type](value(part.name))


@cache
def line(text: str) -> Line:
    """Parse ``text``. Raises ValueError for a type that is none of those above."""
    begin, *fields = text.replace("{{", _BRACE).split("{")
    parts: list[str | Field] = [_literal(begin)]
    for field in fields:
        inside, _, behind = field.partition("}")
        name, _, kind = inside.partition(":")
        if kind not in WRITE:
            raise ValueError(f"{text!r}: no such type of a field: {kind}")
        parts += [Field(name, kind), _literal(behind)]
    return Line(tuple(filter(None, parts)))


def _literal(text: str) -> str:
    return text.replace(_BRACE, "{").replace("}}", "}")
