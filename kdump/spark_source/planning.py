"""What is to be read, cut into splits: worked out on the driver, before any record is read."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump import segment as log
from kdump.errors import DamageError, UnreadableError
from kdump.formats import checkpoints
from kdump.formats.offset_index import OffsetIndex
from kdump.formats.time_index import TimeIndex
from kdump.inputs import Finder, Wanted
from kdump.pieces import RecordBatch
from kdump.spark_source.remote import places

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from kdump.files import Files
    from kdump.inputs import Partition, Segment
    from kdump.spark_source.options import Options

HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A part of one file for one task: the bytes from ``start`` to ``end``, whole batches.

    ``high_watermark`` and ``log_start`` are what the log dir's checkpoints say of the partition.
    """

    files: Files
    path: str
    topic: str | None
    partition: int | None
    start: int
    end: int
    high_watermark: int | None = None
    log_start: int | None = None

    @property
    def name(self) -> str:
        """The path as rows and messages name it."""
        return self.files.shown(self.path)

    @property
    def size(self) -> int:
        """Bytes to be read."""
        return self.end - self.start


class Marks(NamedTuple):
    """What a log dir's checkpoints say of a partition; None where they do not."""

    high_watermark: int | None = None
    log_start: int | None = None


def plan(options: Options, note: Callable[[str], None] = lambda _: None) -> list[Split]:
    """Return the splits of all that ``options`` names, in order.

    Raises UsageError and UnreadableError. ``note`` is told what is left out.
    """
    marks = _MarksOf()
    return [
        split
        for partition in find(options, note)
        for split in _splits(partition, prune(partition.segments, options), marks.of(partition), options)
    ]


def find(options: Options, note: Callable[[str], None]) -> Iterator[Partition]:
    """Yield the partitions that ``options`` names."""
    wanted = Wanted(topics=options.topic, partitions=options.partition, leftovers=options.leftovers)
    finder = Finder(wanted, note=note)
    for files, paths in places(options.paths):
        yield from finder.find(paths, files)


def prune(segments: Iterable[Segment], options: Options) -> list[Segment]:
    """Return the segments that may hold offsets and times wanted, told by their names and time indexes alone."""
    known = list(segments)
    kept = []
    for number, segment in enumerate(known):
        following = known[number + 1].base_offset if number + 1 < len(known) else None
        base = segment.base_offset
        if options.ending_offset is not None and base is not None and base >= options.ending_offset:
            continue
        if options.starting_offset is not None and following is not None and following <= options.starting_offset:
            continue
        if options.starting_timestamp is not None and following is not None and base is not None:
            latest = _latest(segment, base, following)
            if latest is not None and latest < options.starting_timestamp:
                continue
        kept.append(segment)
    return kept


def _latest(segment: Segment, base: int, following: int) -> int | None:
    """Return the greatest timestamp (ms) of a rolled segment as its time index tells it, None where it cannot.

    A broker appends that timestamp when it rolls a segment. An index that is cut, empty or names offsets of other
    segments is not believed, and the active segment's is never complete.
    """
    data = segment.sibling("timeindex")
    if not data:
        return None
    index = TimeIndex(data, base)
    if index.ragged or not len(index) or index.zero_tail:
        return None
    entries = list(index)
    rising = all(one < other for one, other in pairwise(entries))
    last = entries[-1]
    return last.timestamp if rising and base <= last.offset < following else None


def _splits(partition: Partition, segments: list[Segment], marks: Marks, options: Options) -> Iterator[Split]:
    for segment in segments:
        bounds = [0, *_cuts(segment, options.split_bytes), segment.size]
        for start, end in pairwise(bounds):
            if start < end:
                yield Split(
                    files=segment.files,
                    path=segment.path,
                    topic=partition.topic,
                    partition=partition.partition,
                    start=start,
                    end=end,
                    high_watermark=marks.high_watermark,
                    log_start=marks.log_start,
                )


def _cuts(segment: Segment, split_bytes: int) -> list[int]:
    """Return where to cut a segment: positions at which a sound batch begins, about ``split_bytes`` apart.

    The offset index tells them where it is sound; else the headers are walked.
    """
    if segment.size <= split_bytes:
        return []
    with segment.open() as source:
        found = _spaced(_indexed(segment), split_bytes, segment.size)
        if found and all(sound(source, position) for position in found):
            return found
        return _spaced(_walked(source, split_bytes), split_bytes, segment.size)


def _indexed(segment: Segment) -> Iterator[int]:
    data = segment.sibling("index")
    if data and segment.base_offset is not None:
        yield from (entry.position for entry in OffsetIndex(data, segment.base_offset))


def _walked(source: log.Source, split_bytes: int) -> Iterator[int]:
    """Yield positions of sound batches, far enough from each other; stop where a header makes no sense."""
    last = 0
    for piece in log.walk(source):
        if not isinstance(piece, RecordBatch) or not 0 <= piece.magic <= 2:
            return
        if piece.position - last >= split_bytes and sound(source, piece.position):
            last = piece.position
            yield last


def _spaced(positions: Iterable[int], split_bytes: int, size: int) -> list[int]:
    """Return some of ``positions``: rising, the last split not much smaller than the others."""
    cuts: list[int] = []
    last = 0
    for position in positions:
        if position - last >= split_bytes and size - position >= split_bytes // 2:
            cuts.append(position)
            last = position
    return cuts


def sound(source: log.Source, position: int) -> bool:
    """Tell whether a batch begins at ``position`` whose checksum is right."""
    piece = next(log.walk(source, position), None)
    if not isinstance(piece, RecordBatch):
        return False
    try:
        log.check(piece)
    except DamageError:
        return False
    return True


class _MarksOf:
    """The checkpoints of the log dirs, each read once."""

    def __init__(self) -> None:
        self._read: dict[tuple[str, str], dict[tuple[str, int], int]] = {}

    def of(self, partition: Partition) -> Marks:
        if partition.topic is None or partition.partition is None:
            return Marks()
        key = (partition.topic, partition.partition)
        return Marks(*(self._checkpoint(partition, name).get(key) for name in (HIGH_WATERMARKS, LOG_STARTS)))

    def _checkpoint(self, partition: Partition, name: str) -> dict[tuple[str, int], int]:
        above = posixpath.dirname(partition.folder.rstrip("/"))
        if (above, name) not in self._read:
            try:
                data = partition.beside(name)
                entries = checkpoints.read(data) if data else ()
            except (DamageError, UnreadableError):  # a file beside the log must not keep the log from being read
                entries = ()
            self._read[above, name] = {(entry.topic, entry.partition): entry.offset for entry in entries}
        return self._read[above, name]
