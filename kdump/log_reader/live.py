"""Reads the batches that a running broker appends to a partition.

A broker appends to the last segment until it starts a new one. Bytes at the end that are not a valid batch may be an
unfinished write. A damaged range of the last segment is reported only if the next poll finds the same position and
file size. A truncated batch at the end and padding are not reported. ``include_damaged`` has no effect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdump.errors import UnreadableError
from kdump.log_dirs.file_names import SEGMENT_NAME
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_reader.batch_selection import BatchSelection
from kdump.records.record_batch import RecordBatch
from kdump.rows.selection import DamagedRange
from kdump.segments import resync
from kdump.segments.regions import Damage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.log_dirs.partition import Partition, Segment
    from kdump.log_reader.reader import PartitionReader
    from kdump.rows.selection import SelectedBatch


class LiveReader:
    """Reads a partition, or its last segment's batches that end after ``after``, then new ones, without outcomes."""

    def __init__(self, reader: PartitionReader, partition: Partition, after: int | None = None) -> None:
        self._reader = reader
        self._partition = partition
        self._selection = BatchSelection(reader.filter, reader.take)
        self._segments = list(partition.segments if after is None else partition.segments[-1:])
        self._position = 0
        self._after = after
        self._doubt: tuple[int, int] | None = None

    def poll(self) -> Iterator[SelectedBatch | DamagedRange]:
        """Yield the new batches and damaged ranges. Raises UnreadableError for the folder or the last segment."""
        while True:
            rolled = len(self._segments) > 1 or self._find_new()
            if not self._segments:
                return
            try:
                yield from self._read(self._segments[0], last=not rolled)
            except UnreadableError as error:
                if not rolled:
                    raise
                self._reader.report.note(f"{error}: kdump continues with the next segment, {self._segments[1].name}")
            if not rolled:
                return
            del self._segments[0]
            self._position = 0
            self._doubt = None

    def _find_new(self) -> bool:
        base = self._segments[0].base_offset if self._segments else None
        if self._segments and SEGMENT_NAME.fullmatch(self._segments[0].path.rpartition("/")[2]) is None:
            return False
        finder = Finder(Wanted(max_batch_bytes=self._partition.limit))
        for partition in finder.find([self._partition.folder], self._partition.files):
            if partition.folder == self._partition.folder:
                self._segments += [
                    where
                    for where in partition.segments
                    if base is None or (where.base_offset is not None and where.base_offset > base)
                ]
        return len(self._segments) > 1

    def _read(self, where: Segment, *, last: bool) -> Iterator[SelectedBatch | DamagedRange]:
        file = self._reader.checkpoints.facts(self._partition)._replace(name=where.name)
        with where.open() as source:
            if source.size < self._position:
                self._reader.report.note(
                    f"{where.name} was truncated to {source.size} bytes; its earlier records have been printed"
                )
                self._position = source.size
            for region in resync.read(source, self._position, on_error=self._reader.on_error):
                if isinstance(region, RecordBatch):
                    if self._after is None or region.last_offset > self._after:
                        yield from self._selection.select(region, file)
                elif last and self._doubt != (region.position, source.size):
                    self._doubt = (region.position, source.size)
                    return
                elif isinstance(region, Damage):
                    yield DamagedRange(file, region)
                else:
                    return
                self._position = region.position + region.size
