"""A question in one module: how many segments each topic has. Tests register it and look for it in each interface."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from kdump.answers.collector import Collector, Needs
from kdump.answers.question import LineTable, LogQuestion, option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.answers.collector import Place


@dataclass(frozen=True)
class TopicSegments:
    kind: ClassVar[str] = "segments"
    topic: str
    segments: int


@dataclass(frozen=True)
class ToyOptions:
    least: int = option(0, "count", "--least-segments", "Only topics with so many segments.", metavar="N", least=0)


class SegmentCounter(Collector):
    """Counts the segments of topics."""

    def __init__(self, least: int) -> None:
        self._least = least
        self._found = Counter[str]()

    def begin(self, place: Place) -> Needs:
        self._found[place.partition.topic or ""] += len(place.partition.segments)
        return Needs.FILES

    def merge(self, other: SegmentCounter) -> None:
        self._found.update(other._found)

    def answer(self, at: int) -> Iterator[TopicSegments]:  # noqa: ARG002  nothing of it depends on the time
        for topic, segments in sorted(self._found.items()):
            if segments >= self._least:
                yield TopicSegments(topic, segments)


QUESTION = LogQuestion(
    "toy",
    "Count the segments of topics.\n\nExit status: 0 answered.",
    ToyOptions,
    (TopicSegments,),
    lambda _, options: SegmentCounter(options.least),
    tables=(LineTable("topic_segments", TopicSegments),),
)
