"""Converts the condition that DuckDB pushes down to bounds of columns, so that the reader reads less.

DuckDB passes the condition as an Arrow expression after its own optimizer; the text of the expression is parsed. An
unknown part counts as true. So all rows that meet the condition are within the bounds, and maybe others. The caller
applies the expression itself to each block.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kdump.primitives.wire import INT64_END

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

LONGEST: Final = 1 << 20
"""The longest expression that is parsed, in characters. A longer expression counts as true."""
_ITEM: Final = r'(?:"[\w.\-]*"|[\d:. Z+\-]+|[0-9A-F]*|true|false|\.\.\.)'
_TOKEN: Final = re.compile(
    r'\s*(?:"(?P<text>(?:[^"\\]|\\.)*)"'
    rf"|\{{value_set=(?P<kind>[^\n:]+):\[\n(?P<items>(?:\s*{_ITEM},?\n)*)\s*\], null_matching_behavior=\w+\}}"
    r"|(?P<options>\{nan_is_null=\w+\})"
    r"|(?P<time>-?\d{4,}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?Z?)"
    r"|(?P<number>-?\d+)(?![\w.])"
    r"|null\[\w+\]"
    r"|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<sign>==|!=|>=|<=|[<>(),]))"
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Values(NamedTuple):
    """The values that a column may have: from ``low`` to ``high`` (inclusive), and in ``only``. None means no limit."""

    low: int | None = None
    high: int | None = None
    only: frozenset[Any] | None = None

    @property
    def none(self) -> bool:
        """Whether no value is possible, so that no row matches."""
        if self.only is not None:
            return not self.only
        low = -INT64_END if self.low is None else self.low
        return low > (INT64_END - 1 if self.high is None else self.high)

    def takes(self, value: Any) -> bool:
        in_range = (self.low is None or value >= self.low) and (self.high is None or value <= self.high)
        return in_range and (self.only is None or value in self.only)

    def both(self, other: Values) -> Values:
        low, high = _best(max, self.low, other.low), _best(min, self.high, other.high)
        if self.only is None and other.only is None:
            return Values(low, high)
        only = next(one.only for one in (self, other) if one.only is not None)
        kept = only if self.only is None or other.only is None else self.only & other.only
        if low is not None or high is not None:
            kept = frozenset(one for one in kept if Values(low, high).takes(one))
        return Values(only=kept)

    def either(self, other: Values) -> Values:
        """Return the values of both, or the range that includes them."""
        if self.only is not None and other.only is not None:
            return Values(only=self.only | other.only)
        (low, high), (more_low, more_high) = self.range, other.range
        return Values(
            None if low is None or more_low is None else min(low, more_low),
            None if high is None or more_high is None else max(high, more_high),
        )

    @property
    def range(self) -> tuple[int | None, int | None]:
        """The smallest and the largest number; None for no bound. If no value is possible, the second is smaller."""
        if self.only is None:
            return self.low, self.high
        numbers = [one for one in self.only if isinstance(one, int)]
        if len(numbers) < len(self.only):
            return None, None
        return (min(numbers), max(numbers)) if numbers else (0, -1)


def _best(choose: Callable[..., int], one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else choose(one, other)


Bounds = dict[str, Values]
"""Column -> the values that it may have. A missing column may have any value."""


class Condition(NamedTuple):
    """The bounds of a condition, and all columns that occur in it, also those without bounds."""

    bounds: Bounds
    columns: frozenset[str]


def read(text: str, names: Mapping[str, bool]) -> Condition:
    """Return the condition in an Arrow expression's text. ``names``: column -> whether its values are bytes."""
    tokens = list(_tokens(text)) if len(text) <= LONGEST else [None]
    if tokens and tokens[-1] is None:
        return Condition({}, frozenset(re.findall(r"\w+", text)) & names.keys())
    used = {value for kind, value in filter(None, tokens) if kind == "word"} & names.keys()
    return Condition(_bounds(filter(None, tokens), names), frozenset(used))


def _tokens(text: str) -> Iterator[tuple[str, Any] | None]:
    """Yield the tokens of an expression. At the first unknown text, yield None and stop."""
    position, end = 0, len(text.rstrip())
    while position < end:
        found = _TOKEN.match(text, position)
        if found is None:
            yield None
            return
        position = found.end()
        kind = found.lastgroup
        if kind == "items":
            yield "set", _set(found["kind"], found["items"])
        elif kind == "text":
            is_plain = "\\" not in found["text"]  # names have no escaped characters
            yield ("text", found["text"]) if is_plain else ("odd", None)
        elif kind == "time":
            yield "number", _microseconds(found["time"])
        elif kind == "number":
            yield "number", int(found["number"])
        elif kind is not None:
            yield kind, found[kind]
        else:
            yield "null", None


def _microseconds(text: str) -> int | None:
    """Return a time in µs since 1970, or None if Python cannot represent it."""
    try:
        when = datetime.fromisoformat(text.rstrip("Z")).replace(tzinfo=UTC)
    except ValueError:
        return None
    since = when - _EPOCH
    return (since.days * 86400 + since.seconds) * 1_000_000 + since.microseconds


def _set(kind: str, items: str) -> frozenset[Any] | None:
    """Return the values of a list, or None if Arrow has shortened it, or a value is of an unknown type."""
    lines = [line.strip().removesuffix(",") for line in items.split("\n")[:-1]]
    if "..." in lines or ("" in lines and kind != "binary"):
        return None
    if kind.startswith("int"):
        return frozenset(map(int, lines))
    if kind == "string":
        return frozenset(line.strip('"') for line in lines)
    if kind == "binary":
        return frozenset(map(bytes.fromhex, lines))
    if kind.startswith("timestamp"):
        times = frozenset(map(_microseconds, lines))
        return None if None in times else times
    return None


_SWAPPED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}


def _bounds(tokens: Iterator[tuple[str, Any]], names: Mapping[str, bool]) -> Bounds:
    """Return the bounds of an expression. An expression in brackets is evaluated before the one around it."""
    stack: list[tuple[str, list[tuple[str, Any]]]] = [("", [])]
    for kind, value in tokens:
        if (kind, value) == ("sign", "("):
            inside = stack[-1][1]
            function = inside.pop()[1] if inside and inside[-1][0] == "word" and inside[-1][1] not in _JOINING else ""
            stack.append((function, []))
        elif (kind, value) == ("sign", ")"):
            function, items = stack.pop()
            if not stack:
                return {}
            stack[-1][1].append(("bounds", _of_call(function, items, names) if function else _of_group(items, names)))
        else:
            stack[-1][1].append((kind, value))
    return _of_group(stack[0][1], names) if len(stack) == 1 else {}


_JOINING: Final = {"and", "or"}


def _of_call(function: str, items: list[tuple[str, Any]], names: Mapping[str, bool]) -> Bounds:
    if function == "is_in" and len(items) == 3 and items[0][0] == "word" and items[2][0] == "set":
        name, values = items[0][1], items[2][1]
        return {name: Values(only=values)} if name in names and values is not None else {}
    if function == "if_else" and len(items) == 5 and items[2][0] == "bounds" and items[4][0] == "null":
        found: Bounds = items[2][1]  # rows where the first item is false give null, which does not meet the condition
        return found
    return {}


def _of_group(items: list[tuple[str, Any]], names: Mapping[str, bool]) -> Bounds:
    if len(items) == 1:
        return items[0][1] if items[0][0] == "bounds" else {}
    if len(items) != 3:
        return {}
    (left_kind, left), (_, sign), (right_kind, right) = items
    if sign in _JOINING:
        one = left if left_kind == "bounds" else {}
        other = right if right_kind == "bounds" else {}
        return both(one, other) if sign == "and" else either(one, other)
    if right_kind == "word" and right in names:
        (left_kind, left), (right_kind, right), sign = (right_kind, right), (left_kind, left), _SWAPPED.get(sign, "")
    if left_kind != "word" or left not in names:
        return {}
    if names[left] and right_kind == "text":
        right = bytes.fromhex(right)
    return compared(left, sign, right_kind, right)


def compared(name: str, sign: str, kind: str, value: Any) -> Bounds:
    """Return the bounds of a comparison with a literal. ``kind`` is ``word`` (true, false), ``text`` or ``number``."""
    if sign == "==" and kind == "word" and value in ("true", "false"):
        return {name: Values(only=frozenset((value == "true",)))}
    if sign == "==" and kind == "text":
        return {name: Values(only=frozenset((value,)))}
    if kind != "number" or value is None:
        return {}
    ranges = {
        "==": Values(only=frozenset((value,))),
        "<": Values(high=value - 1),
        "<=": Values(high=value),
        ">": Values(low=value + 1),
        ">=": Values(low=value),
    }
    return {name: ranges[sign]} if sign in ranges else {}


def both(one: Bounds, other: Bounds) -> Bounds:
    found = dict(one)
    for name, values in other.items():
        found[name] = found[name].both(values) if name in found else values
    return found


def either(one: Bounds, other: Bounds) -> Bounds:
    """Return the bounds of the disjunction of two conditions."""
    return {name: values.either(other[name]) for name, values in one.items() if name in other}
