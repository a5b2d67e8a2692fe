"""Narrows the allowed values of one column by one Spark filter; ``SourceOptions.narrowed`` applies all filters.

Spark applies its filters to the rows again, so a range may be wider than a filter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from kdump.primitives.terminal import path_text

if TYPE_CHECKING:
    from kdump.log_dirs.partition import Partition

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_EQUAL: Final = {"EqualTo", "EqualNullSafe"}


@dataclass(frozen=True)
class ValueSpan:
    """The allowed values of a column: at least ``low``, below ``high``, and in ``values``. None means no limit."""

    low: int | None = None
    high: int | None = None
    values: frozenset[Any] | None = None

    def among(self, values: frozenset[Any]) -> ValueSpan:
        """Return the span of values that are also in ``values``."""
        return replace(self, values=values if self.values is None else self.values & values)

    def within(self, low: int | None, high: int | None) -> ValueSpan:
        """Return the span of values that are also at least ``low`` and below ``high``."""
        lows = [limit for limit in (self.low, low) if limit is not None]
        highs = [limit for limit in (self.high, high) if limit is not None]
        return replace(self, low=max(lows, default=None), high=min(highs, default=None))

    @property
    def is_empty(self) -> bool:
        return self.values == frozenset() or (self.low is not None and self.high is not None and self.low >= self.high)

    def holds(self, value: Any) -> bool:
        return not (
            (self.values is not None and value not in self.values)
            or (self.low is not None and value < self.low)
            or (self.high is not None and value >= self.high)
        )


@dataclass(frozen=True)
class Pushed:
    """The topics and partitions that filters allow."""

    topic: ValueSpan = ValueSpan()
    partition: ValueSpan = ValueSpan()
    is_nothing: bool = False

    def takes(self, partition: Partition) -> bool:
        """Return whether a partition may have rows that pass the filters."""
        if self.is_nothing or partition.topic is None or partition.partition is None:
            return not self.is_nothing
        return self.topic.holds(path_text(partition.topic)) and self.partition.holds(partition.partition)


def narrowed(span: ValueSpan, kind: str, one: Any) -> ValueSpan:
    """Return the values of a span that can pass a filter; ``kind`` is the name of the filter's class."""
    if kind == "In":
        return _among(span, frozenset(value for value in one.value if value is not None))
    value = getattr(one, "value", None)
    if kind in _EQUAL and isinstance(value, str):
        return span.among(frozenset({value}))
    found = _limits(value)
    if found is None:
        return span
    low, high = found
    is_exact = type(value) is int  # a time may be inside a millisecond
    limits: dict[str, tuple[int | None, int | None]] = {
        **dict.fromkeys(_EQUAL, found),
        "GreaterThan": (high if is_exact else low, None),
        "GreaterThanOrEqual": (low, None),
        "LessThan": (None, low if is_exact else high),
        "LessThanOrEqual": (None, high),
    }
    return span.within(*limits.get(kind, (None, None)))


def _among(span: ValueSpan, values: frozenset[Any]) -> ValueSpan:
    if all(isinstance(value, str) for value in values):
        return span.among(values)
    limits = [_limits(value) for value in values]
    known = [limit for limit in limits if limit is not None]
    if len(known) < len(limits):
        return span
    if all(type(value) is int for value in values):
        span = span.among(values)
    return span.within(min(low for low, _ in known), max(high for _, high in known))


def _limits(value: object) -> tuple[int, int] | None:
    """Return the value of a filter as a number (times in ms since 1970), and the next number; None for other values."""
    if type(value) is int:
        return value, value + 1
    if isinstance(value, datetime) and value.tzinfo is not None:
        time = (value - _EPOCH) // _MILLISECOND
        return time, time + 1
    return None
