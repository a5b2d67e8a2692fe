"""The position of a stream in a partition folder, and checks that the log before this position is unchanged.

A broker rolls, renames, deletes and compacts segments; then the position is found again by its Kafka offset. Under a
new leader a broker may truncate a log and write other records at the same offsets (KIP-101). This has happened if a
batch before the position has a newer leader epoch than the last batch read. It has also happened if the log ends before
the position, or if the last batch read has changed. The topic id shows that a topic was created again (KIP-516).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.errors import KdumpError, discard
from kdump.formats import partition_metadata
from kdump.log_reader import header_scan
from kdump.records import magic_2
from kdump.records.log_entry import is_sound
from kdump.records.record_batch import RecordBatch
from kdump.segments import resync
from kdump.segments import walk as log
from kdump.segments.log_end import end_of_log, last_indexed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kdump.log_dirs.partition import Partition, Segment
    from kdump.spark.source.options import SourceOptions


class DataLossError(KdumpError):
    """Records that a stream or a query of Kafka's source would read are gone."""


def lose(text: str, options: SourceOptions, report: Callable[[str], object]) -> None:
    """Raise DataLossError with ``text`` if ``fail_on_data_loss``, else call ``report``."""
    if options.fail_on_data_loss:
        raise DataLossError(f"{text} (failOnDataLoss=false continues with the remaining records)")
    report(f"{text}; continuing with the remaining records")


class Mark(NamedTuple):
    """A position in a partition folder, as plain JSON values; the fields are the keys of a stream's offset.

    - ``offset``: the next Kafka offset; None before the first batch.
    - ``file``, ``position``: the segment and the byte at which to continue.
    - ``batch``, ``crc``, ``epoch``: position, checksum and leader epoch (-1 for none) of the last batch read. ``batch``
      is -1 if no batch of ``file`` was read.
    - ``topicId``: the topic's id as Kafka writes it, empty if there is none.
    - ``since``: the first Kafka offset of the trigger that ends at this mark; None if no file name shows this offset.
    - ``trigger``: the number of this trigger, 0 at the start of the stream.
    - ``gone``: whether the folder did not exist.
    """

    offset: int | None = None
    file: str = ""
    position: int = 0
    batch: int = 0
    crc: int = 0
    epoch: int = -1
    topicId: str = ""  # noqa: N815  a key of the JSON
    since: int | None = None
    trigger: int = 0
    gone: bool = False

    @property
    def is_untouched(self) -> bool:
        """Whether this is a start by options of Kafka's source, before the first trigger; False for START."""
        return self.offset is not None and not self.trigger and not self.file

    def after(self, segment: Segment, batch: RecordBatch) -> Mark:
        return self._replace(
            offset=batch.last_offset + 1,
            file=segment.name,
            position=batch.end,
            batch=batch.position,
            crc=batch.crc,
            epoch=batch.leader_epoch,
        )

    def past(self, segment: Segment, position: int) -> Mark:
        """Return the mark after a damaged range that ends at byte ``position``."""
        batch = self.batch if segment.name == self.file else NO_BATCH
        return self._replace(file=segment.name, position=position, batch=batch)


NO_BATCH: Final = -1
NOT_LOOKED_UP: Final = -2
"""The value of ``batch`` until the batch is looked up, at the end of a trigger. No stored mark has it."""
START: Final = Mark()


def topic_id(partition: Partition) -> str:
    """Return the id of a folder's topic; empty if ``partition.metadata`` is missing, incomplete or malformed."""
    found = partition.topic_id(discard)
    return "" if found is None else partition_metadata.id_text(found)


def ahead(partition: Partition, mark: Mark) -> Iterator[tuple[Segment, int]]:
    """Yield the segments that may have offsets from ``mark`` on, each with the byte at which to begin."""
    segments = partition.segments
    at = next((number for number, segment in enumerate(segments) if holds(segment, mark)), None)
    for number, segment in enumerate(segments):
        if at is not None and number < at:  # the segment was read, even if its last bytes are damaged
            continue
        following = segments[number + 1].base_offset if number + 1 < len(segments) else None
        is_read = mark.offset is not None and following is not None and following <= mark.offset
        if number == at:
            if not is_read or mark.position < segment.size:  # the unread end of a closed segment is damaged
                yield segment, mark.position
        elif not is_read:
            yield segment, _position(segment, mark.offset)


def _position(segment: Segment, offset: int | None) -> int:
    """Return the byte where the first batch with ``offset`` or a later offset starts, or where the last batch ends."""
    position = 0
    if offset is not None and (segment.base_offset is None or segment.base_offset < offset):
        for batch in _batches(segment, offset):
            if batch.last_offset >= offset:
                return batch.position
            position = batch.end
    return position


def holds(segment: Segment, mark: Mark) -> bool:
    """Return whether a segment has the file name of ``mark``, and still the same batch (if any) before it."""
    if segment.name != mark.file or segment.size < mark.position:
        return False
    if mark.offset is None:
        return True
    with segment.open() as source:
        if mark.batch == NO_BATCH:
            first = next(log.walk(source), None)
            return not (isinstance(first, RecordBatch) and is_sound(first))
        last = next(log.walk(source, mark.batch, mark.position), None)
    return (
        isinstance(last, RecordBatch)
        and is_sound(last)
        and (last.crc, last.leader_epoch) == (mark.crc, mark.epoch)  # no checksum covers the epoch
        and last.end <= mark.position
        and last.last_offset + 1 == mark.offset
    )


def cut_back(partition: Partition, mark: Mark) -> int | None:
    """Return the offset from which the log before ``mark`` was rewritten; None if not, or if that cannot be seen."""
    if mark.offset is None or not partition.segments or any(holds(one, mark) for one in partition.segments):
        return None
    end = end_of_log(partition).offset
    if mark.is_untouched:  # the offset may be inside a batch
        return end if end < mark.offset else None
    older = [one for one in partition.segments if one.base_offset is not None and one.base_offset < mark.offset]
    later = _later_epoch(older, mark)
    if later is not None:
        return later
    if end < mark.offset:
        return end
    return _other_batch(partition, older, mark)


def _later_epoch(older: list[Segment], mark: Mark) -> int | None:
    """Return the first offset before ``mark`` whose batch has a newer leader epoch than the last batch read."""
    found = None
    for segment in reversed(older) if mark.epoch >= 0 else ():
        is_first = True
        for batch in _headers(segment):
            if batch.leader_epoch > mark.epoch and batch.base_offset < (mark.offset or 0):
                found = batch.base_offset
                break
            is_first = False
        else:
            return found
        if not is_first:  # the segment also has batches of an earlier leader
            return found
    return found


def _other_batch(partition: Partition, older: list[Segment], mark: Mark) -> int | None:
    """Return the offset at which the log differs from the records read before ``mark``, or None.

    Compares only the batch that now holds the last offset read (``mark.offset - 1``):

    - If the batch continues past that offset, the log was rewritten. The result is the base offset of the batch.
    - If it ends at that offset with another checksum, and was not compacted, the log was rewritten. The result is the
      log's first offset. A batch with all its records and no delete horizon (KIP-534) was not compacted.
    - Otherwise the result is None. Compaction rebuilds wrappers of magic 0 and 1, so they are not compared.
    """
    offset = mark.offset or 0
    for batch in _batches(older[-1], offset - 1) if older else ():
        if batch.last_offset >= offset - 1:
            if not isinstance(batch, magic_2.Batch) or batch.base_offset >= offset:
                return None
            if batch.last_offset >= offset:
                return batch.base_offset
            is_whole = batch.count == batch.last_offset - batch.base_offset + 1 and batch.delete_horizon_ms is None
            is_other = mark.file and is_whole and batch.crc != mark.crc
            return partition.segments[0].base_offset if is_other else None
    return None


def _batches(segment: Segment, offset: int) -> Iterator[RecordBatch]:
    """Yield the valid batches, beginning with the last indexed batch at or before ``offset``."""
    with segment.open() as source:
        start = last_indexed(segment, source, offset=offset)
        for region in resync.read(source, start, on_error="resync"):
            if isinstance(region, RecordBatch):
                yield region


def _headers(segment: Segment) -> Iterator[RecordBatch]:
    with segment.open() as source:
        yield from header_scan.batches(source, 0, source.size)
