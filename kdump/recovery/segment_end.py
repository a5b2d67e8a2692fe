"""Finds the end of a segment as a starting broker does, and the records that a truncation loses or an index hides.

Source: Kafka's class LogSegment (``readNextOffset``, ``translateOffset``) as of 4.2.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from kdump.errors import DamageError, FailingDiskError, KdumpError, LimitError, UnreadableError
from kdump.findings.codes import Code, FindingCode
from kdump.formats.offset_index import OffsetIndex
from kdump.log_dirs import file_names
from kdump.records.record_batch import Batches
from kdump.segments import resync, walk
from kdump.segments.regions import DATA, Damage

if TYPE_CHECKING:
    from kdump.log_dirs.partition import Segment


class Cut(NamedTuple):
    """The bytes that a start removes or replaces at the end of a ``.log`` file: ``size`` bytes from ``position`` on.

    The offsets and the number of ``records`` are those of the valid batches in these bytes; None and 0 without one.
    If valid ``.swap`` files replace them, ``records`` counts only those that no segment has then.
    """

    file: str
    position: int
    size: int
    reason: str
    first_offset: int | None
    last_offset: int | None
    records: int
    code: FindingCode = Code.BAD_BATCH
    replaced_by: str | None = None
    """The ``.swap`` file that replaces these bytes."""
    superseded: int = 0
    """The number of these records that compaction removes anyway, such as aborted ones and older values of a key."""
    blocked_by: str | None = None
    """A folder that has the name of a file that recovery must write, so recovery empties the segment."""
    is_replaced_by_nothing: bool = False
    """Whether the ``.swap`` file is empty, for example after a power failure."""


class LoadFailure(NamedTuple):
    """Why a broker does not load a log, and the file at fault. ``is_io``: an IOException takes the log dir offline."""

    text: str
    file: str
    code: FindingCode
    is_io: bool = False


class FailsError(Exception):
    """The broker throws an exception and does not load the log."""

    def __init__(self, text: str, file: str, code: FindingCode, *, is_io: bool = False) -> None:
        super().__init__(text)
        self.failure = LoadFailure(text, file, code, is_io)


def failure_of(each: Segment, position: int, damage: DamageError) -> KdumpError | FailsError:
    """Return the error for a wrapper that cannot be decompressed; a broker fails unless only kdump has a limit."""
    if isinstance(damage, LimitError):
        return UnreadableError(each.name, f"byte {each.start + position}: {damage.reason}")
    return failed(each, position, damage.reason, Code.LOG_UNREADABLE)


def failed(each: Segment, position: int, text: str, code: FindingCode) -> FailsError:
    """Return the error for the byte of a segment at which loading fails."""
    return FailsError(f"{at(each, position)}: {text}", each.name, code)


def base_of(each: Segment) -> int:
    return each.base_offset or 0


def at(segment: Segment, position: int) -> str:
    """Return the text for a byte of a segment: the file on disk, and the position in this file."""
    return f"{segment.name}, byte {segment.start + position}"


def lost(each: Segment, position: int, reason: str) -> Cut:
    """Return the loss if a segment is truncated at byte ``position``: the bytes from there on and their valid batches.

    Batches after a byte that the disk cannot read are not counted.
    """
    first = last = None
    records = 0
    with suppress(FailingDiskError), each.open() as source:
        for region in resync.read(source, position, on_error="resync", runs=DATA):
            if isinstance(region, Batches):
                begin, end, count = _span(region)
                first = begin if first is None else min(first, begin)
                last = end if last is None else max(last, end)
                records += count
    return Cut(each.name, each.start + position, each.size - position, reason, first, last, records)


def _span(region: Batches) -> tuple[int, int, int]:
    if region.first.count is not None:
        return region.least("base_offset"), region.greatest("last_offset"), sum(region.column("records_count"))
    try:
        offsets = [record.offset for record in region.first.records()]
    except DamageError:
        return region.last_offset, region.last_offset, 1
    return offsets[0], region.last_offset, len(offsets)


def indexed_at(each: Segment, offset: int) -> int:
    """Return the byte at which a broker's search for an offset begins, by the ``.index``; 0 without entries."""
    data = each.sibling(file_names.INDEX)
    return _position(OffsetIndex(data, base_of(each)), offset) if data else 0


def _position(index: OffsetIndex, offset: int, among: int | None = None) -> int:
    """Return the position of the index entry at which a search begins; 0 if it is negative (``translateOffset``)."""
    return max(index.lookup(offset, among=among).position, 0)


def skipped(each: Segment, log_start: int = 0) -> int:
    """Return the number of records in the batches that a search by the ``.index`` skips: it begins after their start.

    A search that begins inside an earlier batch finds no batch. Batches below ``log_start``, and after a byte that the
    disk cannot read, are not counted. Sources: ``LogSegment.translateOffset``,
    ``FileRecords.searchForOffsetFromPosition``.
    """
    index = OffsetIndex(each.sibling(file_names.INDEX) or b"", base_of(each))
    entries = {0, *(index[slot].position for slot in range(index.count))}
    starts: set[int] = set()
    count = 0
    with suppress(FailingDiskError), each.open() as source:
        for region in walk.walk(source, runs=DATA):
            for batch in region.batches() if isinstance(region, Batches) else ():
                if batch.position in entries:
                    starts.add(batch.position)
                with suppress(DamageError):  # of a wrapper, which the check reports
                    ends = {batch.base_offset, batch.last_offset} if batch.last_offset >= log_start else ()
                    if any(_position(index, offset) not in starts for offset in ends):
                        count += len([*batch.records()]) if batch.count is None else batch.count
    return count


def read_next_offset(each: Segment, searched: str) -> int | None:
    """Return :func:`search_end` from the last entry of the index on, as ``LogSegment.readNextOffset`` does."""
    data = each.sibling(file_names.INDEX) or b""
    index = OffsetIndex(data, base_of(each))
    target = index[index.count - 1].offset if index.count else base_of(each)
    return search_end(each, searched, target, _position(index, target, index.count))


def search_end(each: Segment, searched: str, target: int, position: int, stop: int | None = None) -> int | None:
    """Search from byte ``position`` for a batch with offset ``target``. Return the offset after the last batch.

    ``searched`` is the field of a batch that is compared with ``target``. ``stop`` is the end of the segment in bytes.
    Return None if no batch reaches ``target``: the broker then uses the base offset of the segment. Raises FailsError
    for a wrong size field and for a wrapper that cannot be decompressed.
    """
    found = False
    next_offset: int | None = None
    with each.open() as source:
        for region in walk.walk(source, position, stop, runs=DATA):
            if isinstance(region, Batches):
                try:
                    found = found or region.greatest(searched) >= target
                except DamageError as damage:  # the base offset is inside a compressed wrapper message
                    raise failure_of(each, region.position, damage) from None
                next_offset = region.last_offset + 1
            elif isinstance(region, Damage):
                resync.raise_above_limit(source, region)
                raise failed(each, region.at, region.reason, Code.RECORD_SIZE)
    if next_offset is None:
        return None
    return next_offset if found or next_offset > target else None
