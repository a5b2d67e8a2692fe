"""The tables of ``kdump ls``: partitions, then segments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.answers.disk_usage import PartitionUsage
from kdump.answers.listing import SegmentSpan
from kdump.errors import many
from kdump.printers.answer_lines import AnswerTable
from kdump.printers.answer_tables.du import extent
from kdump.printers.quantities import size, time

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kdump.answers.collector import AnswerLine

_RIGHT: Final = frozenset({"segments", "size", "earliest", "latest", "first", "end"})


def tables(lines: Sequence[AnswerLine]) -> Iterator[AnswerTable]:
    partitions = [line for line in lines if isinstance(line, PartitionUsage)]
    if partitions:
        title = f"{many(len(partitions), 'partition')}, {size(sum(line.log_bytes for line in partitions))} of log"
        spare = ("log dir", "state", "oldest", "segments")
        yield AnswerTable.of(title, map(_partition, partitions), _RIGHT, spare=spare)
    segments = [line for line in lines if isinstance(line, SegmentSpan)]
    if segments:
        title = f"{many(len(segments), 'segment')}, {size(sum(line.bytes for line in segments))}"
        yield AnswerTable.of(title, map(_segment, segments), _RIGHT, spare=("state", "oldest", "first"))
    if not lines:
        yield AnswerTable("There is no partition here.", (), ())


def _partition(line: PartitionUsage) -> dict[str, object]:
    return {
        "partition": f"{line.topic}-{line.partition}",
        "segments": line.segments,
        "size": size(line.log_bytes),
        **extent(line),
    }


def _segment(line: SegmentSpan) -> dict[str, object]:
    return {
        "file": line.file,
        "size": size(line.bytes),
        "first": line.base_offset,
        "end": line.end_offset,
        "oldest": time(line.oldest_ms),
        "newest": time(line.newest_ms),
        "state": line.state,
    }
