"""The tables of ``kdump du``: log dirs, folders (largest first), other files; or segments, other files; or topics."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from kdump.answers.disk_usage import Bytes, OtherUsage, PartitionUsage, SegmentUsage, TopicUsage
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
        yield AnswerTable.of("Folders", map(_folder, partitions), _RIGHT, spare=_FOLDER_SPARE)
    if topics := [line for line in lines if isinstance(line, TopicUsage)]:
        yield AnswerTable.of("Topics, current replicas", map(_topic, topics), _RIGHT)
    if segments := [line for line in lines if isinstance(line, SegmentUsage)]:
        yield AnswerTable.of("Segments", map(_segment, segments), _RIGHT, spare=_SEGMENT_SPARE)
    if others := [line for line in lines if isinstance(line, OtherUsage)]:
        rows = [(line.path, line.what, size(line.bytes), optional_size(line.disk_bytes)) for line in others]
        yield AnswerTable("Beside the partitions", ("path", "what", "bytes", "on disk"), rows, _RIGHT)


_FOLDER_SPARE: Final = ("earliest", "latest", "segments", "oldest", "newest", "deleted", "log dir", "on disk", "log")


def extent(line: PartitionUsage) -> dict[str, object]:
    """Return column -> cell for the offsets, times, state and log dir of a partition folder."""
    return {
        "earliest": line.earliest,
        "latest": line.latest,
        "oldest": time(line.oldest_ms),
        "newest": time(line.newest_ms),
        "state": line.state,
        "log dir": line.log_dir,
    }


def _folder(line: PartitionUsage) -> dict[str, object]:
    return {
        "all files": size(line.all_bytes),
        "log": size(line.log_bytes),
        "on disk": optional_size(line.disk_bytes),
        "deleted": optional_size(line.deleted_bytes or None),
        "segments": line.segments,
        **extent(line),
        "folder": line.folder,
    }


def _topic(line: TopicUsage) -> dict[str, object]:
    return {
        "topic": line.topic,
        "all files": size(line.all_bytes),
        "log": size(line.log_bytes),
        "on disk": optional_size(line.disk_bytes),
        "partitions": line.partitions,
        "replicas": line.replicas,
    }


_SEGMENT_SPARE: Final = ("indexes", "written", "state", "log dir", "on disk")


def _segment(line: SegmentUsage) -> dict[str, object]:
    return {
        "bytes": size(line.bytes),
        "indexes": size(line.index_bytes),
        "on disk": optional_size(line.disk_bytes),
        "written": time(line.modified_ms),
        "base offset": line.base_offset,
        "state": line.state,
        "log dir": line.log_dir,
        "folder": line.folder,
    }


def _totals(partitions: Sequence[PartitionUsage]) -> AnswerTable:
    found: dict[tuple[str, str, str], list[PartitionUsage]] = defaultdict(list)
    for line in partitions:
        found[line.log_dir, line.broker_id or "-", line.state].append(line)
    rows = []
    for key, lines in sorted(found.items()):
        total = Bytes.of(Bytes(line.all_bytes, line.disk_bytes) for line in lines)
        log = size(sum(line.log_bytes for line in lines))
        rows.append((*key, len(lines), size(total.size), log, optional_size(total.disk_size)))
    columns = ("log dir", "broker", "state", "folders", "all files", "log", "on disk")
    return AnswerTable("Log dirs", columns, rows, _RIGHT | {"folders"}, spare=("broker", "log", "folders"))
