"""What DumpLogSegments asks of an index: a sanity check of the file, and of each entry what it names in the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn, cast

from kdump.dump_log_segments import before_0_11, confirmed_entries
from kdump.dump_log_segments.line_values import codec_name
from kdump.dump_log_segments.mismatches import Pair
from kdump.errors import DamageError
from kdump.formats.record_layout import BATCH_HEADER, LOG_OVERHEAD, MAGIC_2
from kdump.formats.time_index import NO_TIMESTAMP
from kdump.primitives.wire import INT32_MAX, to_int64
from kdump.records.magic_0_1 import Message
from kdump.records.record_batch import RecordBatch
from kdump.segments.regions import Damage
from kdump.segments.walk import BLOCK, Window, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.dump_log_segments.dialects.state import StateDialect
    from kdump.dump_log_segments.mismatches import Report
    from kdump.dump_log_segments.run import DumpRun
    from kdump.formats.offset_index import OffsetIndex
    from kdump.formats.record import Record
    from kdump.formats.time_index import TimeIndex, TimestampOffset
    from kdump.log_dirs.local import LocalFile
    from kdump.records.magic_2 import Batch


MARK_EVERY: Final = 1 << 16
"""Bytes of log after which the position of a batch is kept."""


def offset_index_is_sane(state: StateDialect, path: str, index: OffsetIndex) -> None:
    """Raise DamageError unless the last entry lies above the base offset (``OffsetIndex.sanityCheck``)."""
    if index.count and (last := index[index.count - 1].offset) < index.base_offset + state.sanity_above_base:
        raise DamageError(
            "sanity check",
            f"{path}: the last offset is too low",
            expected=f"above {index.base_offset}",
            found=last,
        )
    _holds_whole_entries(path, index)


def time_index_is_sane(path: str, index: TimeIndex) -> None:
    """Raise DamageError unless the last entry is not below the first and the base (``TimeIndex.sanityCheck``)."""
    if index.count:
        first, last = index[0], index[index.count - 1]
        if last.timestamp < first.timestamp:
            raise DamageError(
                "sanity check",
                f"{path}: the last timestamp is below the first",
                expected=f"{first.timestamp} or more",
                found=last.timestamp,
            )
        if last.offset < index.base_offset:
            raise DamageError(
                "sanity check",
                f"{path}: the last offset is below the first",
                expected=f"{index.base_offset} or more",
                found=last.offset,
            )
    _holds_whole_entries(path, index)


def _holds_whole_entries(path: str, index: OffsetIndex | TimeIndex) -> None:
    if index.ragged:
        raise DamageError(
            "sanity check",
            f"{path}: the size is no multiple of {index.layout.size}",
            expected=f"a multiple of {index.layout.size} bytes",
            found=len(index.data),
        )


class OffsetEntries:
    """The entries of an offset index held against the log; what does not fit goes to the reports of the run.

    ``doubtful`` has a byte for each entry, 0 for one that the compiled kernel has confirmed.
    """

    def __init__(self, run: DumpRun, path: str, log: LocalFile, index: OffsetIndex) -> None:
        self._run, self._path, self._log = run, path, log
        self._window, self._heads = Window(log, log.size), Heads(run, log)
        self.doubtful = confirmed_entries.by_offset(run, log, index)

    def check(self, offset: int, position: int) -> None:
        """Hold an entry against the batch at its position. Raises DamageError."""
        found = self._heads.last_offset(position)
        if found is None:
            found = _offset_at(self._run, self._log, position, self._window)
        if found != offset:
            _add(self._run.reports.mismatches, self._path, offset, found)


class TimeEntries:
    """The entries of a time index held against the log, which is found through the offset index.

    ``doubtful`` has a byte for each entry, 0 for one that the compiled kernel has confirmed.
    """

    def __init__(self, run: DumpRun, path: str, log: LocalFile, index: TimeIndex, offsets: OffsetIndex) -> None:
        self._run, self._path, self._log = run, path, log
        self._offsets, self._window = offsets, Window(log, log.size)
        self._passed: set[int] = set()
        if index.count and run.state.time_index_reads_on:
            self._read_on(self._start(index[0]))
        self.doubtful = confirmed_entries.by_time(run, log, index, offsets)

    def _start(self, entry: TimestampOffset) -> int:
        """Return the position from which the release looks for an entry's batch. Raises DamageError."""
        state = self._run.state
        start = self._offsets.lookup(entry.offset, among=self._offsets.count, warm=state.warm_section).position
        if start < 0 or (start > self._log.size and state.refuses_beyond_log):
            _refuse(self._log, start)
        return start

    def _read_on(self, start: int) -> None:
        """Read all batches from ``start`` on, as the release does for each entry. Raises DamageError.

        Some of their positions are kept: batches that lead there need not be followed again.
        """
        last = -BLOCK
        for batch in _batches(self._run, self._log, start, self._log.size, self._window):
            if batch.position in self._passed:
                return
            if batch.position - last >= MARK_EVERY:
                self._passed.add(batch.position)
                last = batch.position

    def check(self, entry: TimestampOffset, previous: int) -> bool:
        """Hold an entry against its batch and the timestamp before (ms); tell whether a batch ends at its offset.

        Raises DamageError.
        """
        reports = self._run.reports
        start = self._start(entry)
        if self._run.state.time_index_reads_on:
            self._read_on(start)
        batches = _batches(self._run, self._log, start, self._log.size, self._window)
        batch = next((held for held in batches if held.last_offset >= entry.offset), None)
        if batch is None or batch.last_offset != entry.offset:
            _add(reports.missing, self._path, entry.offset, -1 if batch is None else batch.last_offset)
            return False
        highest = max([NO_TIMESTAMP, *(record.timestamp for record in _records(self._run, batch))])
        if highest != entry.timestamp:
            _add(reports.timestamps, self._path, entry.timestamp, highest)
        if previous >= entry.timestamp:
            _add(reports.order, self._path, entry.timestamp, previous)
        return True


def _add(report: Report, path: str, indexed: int, found: int) -> None:
    report.setdefault(path, []).append(Pair(indexed, found))


class Heads:
    """The last offsets of batches of magic 2, from their headers alone, for a release that asks for no more."""

    def __init__(self, run: DumpRun, log: LocalFile) -> None:
        self._log = log
        self._end, self._most = confirmed_entries.readable(run, log)
        self._expected = 0

    def last_offset(self, position: int) -> int | None:
        """Return the last offset of the batch at ``position``; None for all that :func:`_offset_at` has to judge."""
        if not 0 <= position < self._end:
            return None
        if position >= self._expected:
            self._log.expect(position, 3 * BLOCK)
            self._expected = position + 2 * BLOCK
        data = self._log.read(position, BATCH_HEADER.size)
        if len(data) < BATCH_HEADER.size:
            return None
        header = BATCH_HEADER.read(data)
        size = LOG_OVERHEAD.size + header.length
        if header.magic != MAGIC_2 or not BATCH_HEADER.size <= size <= self._most or position + size > self._end:
            return None
        return to_int64(header.base_offset + header.last_offset_delta)


def _offset_at(run: DumpRun, log: LocalFile, position: int, window: Window) -> int:
    """Return the first offset of the records at ``position``, or the last offset of the batch there.

    Batches in --max-message-size bytes are looked at. Raises DamageError when there is none.
    """
    state, most = run.state, run.options.max_message_size
    if position < 0 or position > log.size:
        _refuse(log, position)
    end = position + most
    stop = min(end, log.size) if state.slice_holds_batch else log.size
    for batch in _batches(run, log, position, stop, window):
        if batch.position >= end:
            break
        if not state.names_first_offset:
            return batch.last_offset
        for record in _records(run, batch):
            return record.offset
    raise DamageError(
        "index position",
        f"{log.name}: an index entry points where no batch of at most {most} bytes begins",
        position=position,
    )


def _refuse(log: LocalFile, position: int) -> NoReturn:
    raise DamageError(
        "index position",
        f"{log.name}: an index entry points outside the log",
        position=position,
        expected=f"0 to {log.size}",
        found=position,
    )


def _batches(run: DumpRun, log: LocalFile, start: int, end: int, window: Window) -> Iterator[RecordBatch]:
    """Yield the batches of a log as the release finds them. Raises DamageError.

    What one entry of an index has read stays in ``window`` for the next ones, which mostly follow it closely.
    """
    old = run.dialect.message
    limit = run.options.max_batch_bytes
    messages = before_0_11.walk(log, run.dialect, INT32_MAX, start, end, limit=limit)
    for region in messages if old else walk(log, start, end, window, limit=limit):
        if isinstance(region, Damage):
            raise DamageError(
                region.kind,
                f"{log.name}: {region.reason}",
                position=region.at,
                expected=region.expected,
                found=region.found,
            )
        if isinstance(region, RecordBatch):
            yield region


def _records(run: DumpRun, batch: RecordBatch) -> Iterator[Record | Message]:
    """Yield the records of a batch as the release reads them. Raises DamageError."""
    if run.dialect.message and isinstance(batch, Message):
        return before_0_11.unwrapped(batch, run.dialect, run.options.max_batch_bytes)
    codec_name(run.dialect, batch.codec)
    if isinstance(batch, Message):  # whose key and value nobody asks for here: they may lie
        return batch.messages(run.options.max_batch_bytes, in_chunks=run.dialect.reads_lz4_in_chunks)
    # of magic 2
    return cast("Batch", batch).records(run.options.max_batch_bytes, in_chunks=run.dialect.reads_lz4_in_chunks)
