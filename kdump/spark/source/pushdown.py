"""Filters of Spark that spare reading: those on topic, partition, offset and timestamp.

They are given back to Spark as well, which holds every row against them: what is narrowed here may be a little wider.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from kdump.spark.source.options import RECORDS
from kdump.spark.source.spans import Pushed, ValueSpan

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kdump.spark.source.options import SourceOptions

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_EQUAL: Final = {"EqualTo", "EqualNullSafe"}


def narrow(options: SourceOptions, filters: Iterable[Any]) -> SourceOptions:
    """Return ``options`` as far as all ``filters`` may pass; those of other columns and shapes are left to Spark."""
    spans = {"topic": ValueSpan(), "partition": ValueSpan()}
    if options.output == RECORDS:
        spans |= {
            "offset": ValueSpan(options.starting_offset, options.ending_offset),
            "timestamp": ValueSpan(options.starting_timestamp, options.ending_timestamp),
        }
    for one in filters:
        column = ".".join(getattr(one, "attribute", ()))
        if column in spans:
            spans[column] = _narrowed(spans[column], type(one).__name__, one)
    is_nothing = any(span.is_empty for span in spans.values())
    options = replace(options, pushed=Pushed(spans["topic"], spans["partition"], is_nothing))
    if is_nothing or options.output != RECORDS:
        return options
    offset, time = spans["offset"], spans["timestamp"]
    return replace(
        options,
        starting_offset=offset.low,
        ending_offset=offset.high,
        starting_timestamp=time.low,
        ending_timestamp=time.high,
    )


def _narrowed(span: ValueSpan, kind: str, one: Any) -> ValueSpan:
    """Return what is left of a span after one filter."""
    if kind == "In":
        return _among(span, frozenset(value for value in one.value if value is not None))
    value = getattr(one, "value", None)
    if kind in _EQUAL and isinstance(value, str):
        return span.among(frozenset({value}))
    found = _limits(value)
    if found is None:
        return span
    low, high = found
    is_exact = type(value) is int  # else some of a millisecond may pass
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
    """Return the first number that a value stands for, and the one after it: of times in ms. None for no number."""
    if type(value) is int:
        return value, value + 1
    if isinstance(value, datetime) and value.tzinfo is not None:
        time = (value - _EPOCH) // _MILLISECOND
        return time, time + 1
    return None
