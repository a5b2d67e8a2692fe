"""The tables of ``kdump du``: totals of each log dir, then folders, the largest first."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from kdump.answers.disk_usage import OtherUsage, PartitionUsage, SegmentUsage, TopicUsage
from kdump.printers.answer_lines import AnswerTable
from kdump.printers.quantities import optional_size, size, time

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kdump.answers.collector import AnswerLine

_SIZES: Final = frozenset({"log", "all files", "on disk", "bytes", "indexes", "deleted", "segments", "partitions"})
_RIGHT: Final = _SIZES | {"replicas", "earliest", "latest", "base offset"}


def tables(lines: Sequence[AnswerLine]) -> Iterator[AnswerTable]:
    partitions = [line for line in lines if isinstance(line, PartitionUsage)]
    if partitions:
        yield _totals(partitions)
        yield AnswerTable("Folders", _FOLDER_COLUMNS, list(map(_folder, partitions)), _RIGHT, spare=_FOLDER_SPARE)
    if topics := [line for line in lines if isinstance(line, TopicUsage)]:
        yield AnswerTable("Topics, current replicas", _TOPIC_COLUMNS, list(map(_topic, topics)), _RIGHT)
    if segments := [line for line in lines if isinstance(line, SegmentUsage)]:
        yield AnswerTable("Segments", _SEGMENT_COLUMNS, list(map(_segment, segments)), _RIGHT, spare=_SEGMENT_SPARE)
    if others := [line for line in lines if isinstance(line, OtherUsage)]:
        rows = [(line.path, line.what, size(line.bytes), optional_size(line.disk_bytes)) for line in others]
        yield AnswerTable("Beside the partitions", ("path", "what", "bytes", "on disk"), rows, _RIGHT)


_FOLDER_COLUMNS: Final = (
    *("all files", "log", "on disk", "deleted", "segments", "earliest", "latest", "oldest", "newest"),
    *("state", "log dir", "folder"),
)

_FOLDER_SPARE: Final = ("earliest", "latest", "segments", "oldest", "newest", "deleted", "log dir", "on disk", "log")


def _folder(line: PartitionUsage) -> tuple[object, ...]:
    return (
        size(line.all_bytes),
        size(line.log_bytes),
        optional_size(line.disk_bytes),
        optional_size(line.deleted_bytes or None),
        line.segments,
        line.earliest,
        line.latest,
        time(line.oldest_ms),
        time(line.newest_ms),
        line.state,
        line.log_dir,
        line.folder,
    )


_TOPIC_COLUMNS: Final = ("topic", "all files", "log", "on disk", "partitions", "replicas")


def _topic(line: TopicUsage) -> tuple[object, ...]:
    return (
        line.topic,
        size(line.all_bytes),
        size(line.log_bytes),
        optional_size(line.disk_bytes),
        line.partitions,
        line.replicas,
    )


_SEGMENT_COLUMNS: Final = ("bytes", "indexes", "on disk", "written", "base offset", "state", "log dir", "folder")

_SEGMENT_SPARE: Final = ("indexes", "written", "state", "log dir", "on disk")


def _segment(line: SegmentUsage) -> tuple[object, ...]:
    return (
        size(line.bytes),
        size(line.index_bytes),
        optional_size(line.disk_bytes),
        time(line.modified_ms),
        line.base_offset,
        line.state,
        line.log_dir,
        line.folder,
    )


def _totals(partitions: Sequence[PartitionUsage]) -> AnswerTable:
    found: dict[tuple[str, str, str], list[PartitionUsage]] = defaultdict(list)
    for line in partitions:
        found[line.log_dir, line.broker_id or "-", line.state].append(line)
    rows = []
    for key, lines in sorted(found.items()):
        each = ((line.all_bytes, line.log_bytes, line.disk_bytes or 0) for line in lines)
        rows.append((*key, len(lines), *(size(sum(column)) for column in zip(*each, strict=True))))
    columns = ("log dir", "broker", "state", "folders", "all files", "log", "on disk")
    return AnswerTable("Log dirs", columns, rows, _RIGHT | {"folders"}, spare=("broker", "log", "folders"))
