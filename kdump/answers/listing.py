"""The question ``ls``: the partitions of log dirs, or the segments of partitions that the user names (with --segments
of all). Only starts and ends are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from kdump.answers.collector import Collector, Needs
from kdump.answers.disk_usage import DiskUsage, PartitionUsage, largest_time, state_of
from kdump.answers.question import LineTable, LogQuestion, option
from kdump.errors import UnreadableError
from kdump.log_dirs import file_names
from kdump.segments import log_end
from kdump.segments.log_end import end_of_segment, first_batch
from kdump.segments.regions import Damage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.answers.collector import AnswerLine, Place
    from kdump.answers.question import Asking
    from kdump.log_dirs.partition import Segment


@dataclass(frozen=True, slots=True)
class SegmentSpan:
    """A segment. ``state``: log, deleted, swap, cleaned.

    ``end_offset``: after the last valid batch, without one the base offset; None after damage but a truncated batch.
    ``oldest_ms`` and ``newest_ms`` are the largest timestamps of the first and the last batch; None without one.
    """

    kind: ClassVar[str] = "segmentSpan"
    file: str
    topic: str
    partition: int
    base_offset: int | None
    end_offset: int | None
    bytes: int
    oldest_ms: int | None
    newest_ms: int | None
    state: str


class SegmentListing(Collector):
    def __init__(self) -> None:
        self._found: list[SegmentSpan] = []

    def begin(self, place: Place) -> Needs:
        """Read both ends of each segment, and report a damaged end."""
        if place.key is not None:
            for segment in place.partition.segments:
                try:
                    self._found.append(_listed(segment, *place.key, place))
                except UnreadableError as error:
                    place.report.fail(error)
        return Needs.FILES

    def merge(self, other: SegmentListing) -> None:
        self._found += other._found

    def answer(self, at: int) -> Iterator[AnswerLine]:  # noqa: ARG002  the list does not depend on the time
        yield from sorted(self._found, key=lambda line: (line.topic, line.partition, line.base_offset or 0, line.file))


def _listed(segment: Segment, topic: str, number: int, place: Place) -> SegmentSpan:
    end, state = end_of_segment(segment), state_of(segment)
    is_damaged = isinstance(end.damage, Damage)
    if end.damage is not None and (is_damaged or state != file_names.CLEANED):  # a killed cleaner truncates its file
        log_end.report_region(segment, end.damage, place.report)
    base = segment.base_offset
    return SegmentSpan(
        file=segment.name,
        topic=topic,
        partition=number,
        base_offset=base,
        end_offset=None if is_damaged else base if end.last is None else end.last.last_offset + 1,
        bytes=segment.size,
        oldest_ms=largest_time(end.first or first_batch([segment])),
        newest_ms=largest_time(end.last),
        state=state,
    )


class PartitionListing(DiskUsage):
    """Collects the same lines of partitions as ``kdump du``, and yields them sorted by name."""

    def answer(self, at: int) -> Iterator[AnswerLine]:
        lines = [line for line in super().answer(at) if isinstance(line, PartitionUsage)]
        yield from sorted(lines, key=lambda line: (line.topic, line.partition, line.log_dir, line.folder))


HELP: Final = """List partitions, or the segments of a partition folder.

\b
Examples:
  kdump ls /var/kafka
  kdump ls /var/kafka/orders-0
  kdump ls /var/kafka --topic orders --segments -o csv

For a partition 'earliest' is the log start offset and 'latest' the log end offset; for a segment 'first' is the base
offset and 'end' the offset after the last batch. 'oldest' and 'newest' are the largest times of the first and of the
last batch. Only the start and the end of a log are read; kdump check reads all of it.

Exit status: 0 all could be read; 1 something cannot be read; 2 wrong usage; 3 the end of a log is damaged.
"""


@dataclass(frozen=True)
class ListingOptions:
    segments: bool = option(False, "switch", "--segments", "List segments even if PATH is a log dir.")


def _collector(asking: Asking, options: ListingOptions) -> Collector:
    found = asking.meant()
    return (
        SegmentListing() if options.segments or (found and all(one.is_named for one in found)) else PartitionListing()
    )


QUESTION: Final = LogQuestion(
    "ls",
    HELP,
    ListingOptions,
    (PartitionUsage, SegmentSpan),
    _collector,
    tables=(LineTable("segment_ranges", SegmentSpan, "--segments", {"segments": True}),),
    leftovers=True,
    unit="replicas",
)
