"""The tables of ``kdump ls``: partitions, then segments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.answers.disk_usage import PartitionUsage
from kdump.answers.listing import SegmentSpan
from kdump.printers.answer_lines import AnswerTable
from kdump.printers.quantities import counted, size, time

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kdump.answers.collector import AnswerLine

_PARTITION_COLUMNS: Final = (
    "partition",
    "segments",
    "size",
    "earliest",
    "latest",
    "oldest",
    "newest",
    "state",
    "log dir",
)
_SEGMENT_COLUMNS: Final = ("file", "size", "first", "end", "oldest", "newest", "state")
_RIGHT: Final = frozenset({"segments", "size", "earliest", "latest", "first", "end"})


def tables(lines: Sequence[AnswerLine]) -> Iterator[AnswerTable]:
    partitions = [line for line in lines if isinstance(line, PartitionUsage)]
    if partitions:
        title = f"{counted(len(partitions), 'partition')}, {size(sum(line.log_bytes for line in partitions))} of log"
        spare = ("log dir", "state", "oldest", "segments")
        yield AnswerTable(title, _PARTITION_COLUMNS, list(map(_partition, partitions)), _RIGHT, spare=spare)
    segments = [line for line in lines if isinstance(line, SegmentSpan)]
    if segments:
        title = f"{counted(len(segments), 'segment')}, {size(sum(line.bytes for line in segments))}"
        yield AnswerTable(
            title,
            _SEGMENT_COLUMNS,
            list(map(_segment, segments)),
            _RIGHT,
            spare=("state", "oldest", "first"),
        )
    if not lines:
        yield AnswerTable("There is no partition here.", (), ())


def _partition(line: PartitionUsage) -> tuple[object, ...]:
    return (
        f"{line.topic}-{line.partition}",
        line.segments,
        size(line.log_bytes),
        line.earliest,
        line.latest,
        time(line.oldest_ms),
        time(line.newest_ms),
        line.state,
        line.log_dir,
    )


def _segment(line: SegmentSpan) -> tuple[object, ...]:
    times = time(line.oldest_ms), time(line.newest_ms)
    return line.file, size(line.bytes), line.base_offset, line.end_offset, *times, line.state
