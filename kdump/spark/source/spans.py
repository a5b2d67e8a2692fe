"""The ranges of column values that filters allow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kdump.primitives.terminal import path_text

if TYPE_CHECKING:
    from kdump.log_dirs.partition import Partition


@dataclass(frozen=True)
class ValueSpan:
    """Values that a column may have: at least ``low``, below ``high``, and in ``values``. None: no limit."""

    low: int | None = None
    high: int | None = None
    values: frozenset[Any] | None = None

    def among(self, values: frozenset[Any]) -> ValueSpan:
        """Return the span within these values too."""
        return replace(self, values=values if self.values is None else self.values & values)

    def within(self, low: int | None, high: int | None) -> ValueSpan:
        """Return the span within these limits too."""
        lows = [limit for limit in (self.low, low) if limit is not None]
        highs = [limit for limit in (self.high, high) if limit is not None]
        return replace(self, low=max(lows, default=None), high=min(highs, default=None))

    @property
    def is_empty(self) -> bool:
        """Whether no value is left."""
        return self.values == frozenset() or (self.low is not None and self.high is not None and self.low >= self.high)

    def holds(self, value: Any) -> bool:
        """Return whether a value may be one of these."""
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
        """Return whether a folder may have rows that pass."""
        if self.is_nothing or partition.topic is None or partition.partition is None:
            return not self.is_nothing
        return self.topic.holds(path_text(partition.topic)) and self.partition.holds(partition.partition)
