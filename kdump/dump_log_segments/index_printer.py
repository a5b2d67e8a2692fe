"""Prints offset, time and transaction indexes and producer snapshots as DumpLogSegments does.

Without --index-sanity-check, entries of offset and time indexes are compared with the log. Mismatches are reported at
the end of the run. For newer releases compiled code confirms most entries. Python compares the others.
Where the release stops, the functions raise DamageError or UnreadableError after the same output.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NoReturn, cast

from kdump import kernel
from kdump.dump_log_segments import before_0_11
from kdump.dump_log_segments.dialects.state import MOST_ELEMENTS
from kdump.dump_log_segments.java_files import absolute, content, offset_in_name, sibling
from kdump.dump_log_segments.lines import codec_name, line
from kdump.dump_log_segments.run import Pair
from kdump.errors import DamageError, UnreadableError
from kdump.formats import producer_snapshot, txn_index
from kdump.formats.offset_index import OffsetIndex
from kdump.formats.record_layout import LOG_OVERHEAD
from kdump.formats.time_index import NO_TIMESTAMP, TimeIndex
from kdump.log_dirs.file_names import INDEX, LOG
from kdump.log_dirs.local import LocalFile
from kdump.primitives.wire import INT32_MAX
from kdump.records.magic_0_1 import Message
from kdump.records.record_batch import RecordBatch
from kdump.segments.regions import Damage
from kdump.segments.walk import BLOCK, Window, in_batch, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kdump.dump_log_segments.dialects.state import StateDialect
    from kdump.dump_log_segments.run import DumpRun, Report
    from kdump.formats.producer_snapshot import SnapshotParts
    from kdump.formats.record import Record
    from kdump.formats.time_index import TimestampOffset
    from kdump.kernel.indexes import EntryCheck
    from kdump.records.magic_2 import Batch

    Hold = Callable[[EntryCheck, int, int, bytearray], None]

AT_ONCE: Final = 512
"""Number of entries that compiled code checks in one call. Ctrl-C waits for the end of a call."""
NEAR: Final = 1 << 18
"""Largest average distance between two entries, in bytes of log, for which the log is read ahead."""


def by_offset(run: DumpRun, log: LocalFile, index: OffsetIndex) -> bytearray:
    """Return a byte for each entry of an ``.index``: 0 if compiled code confirmed the entry by a header, else 1.

    All are 1 with --cache drop or a --max-message-size below 1, and if the release compares first offsets.
    """
    most = run.options.max_message_size
    if not kernel.COMPILED or most <= 0 or run.state.names_first_offset or run.dialect.message:
        return bytearray(b"\1") * index.count
    most = min(most if run.state.slice_holds_batch else log.size, run.options.max_batch_bytes + LOG_OVERHEAD.size)
    ahead = 0
    if index.filled and log.size // index.filled <= NEAR:
        ahead = 2 * AT_ONCE * (log.size // index.filled)

    def hold(held: EntryCheck, first: int, stop: int, flags: bytearray) -> None:
        if ahead:
            log.expect(index.stored(first)[1], ahead)
        held.by_offset(index.data, first, stop, flags)

    return _doubtful(log, most, index, hold)


def by_time(run: DumpRun, log: LocalFile, index: TimeIndex, offsets: OffsetIndex) -> bytearray:
    """Return a byte for each entry of a ``.timeindex``: 0 if compiled code confirmed the entry, else 1.

    The batches are found through the ``.index`` (``offsets``). All are 1 with --cache drop, for releases before 0.11,
    and if the ``.index`` does not rise in offset and position, or ends in zeros.
    """
    most = min(log.size, run.options.max_batch_bytes + LOG_OVERHEAD.size)
    if run.dialect.message or not kernel.COMPILED or offsets.zero_tail or not offsets.rises():
        return bytearray(b"\1") * index.count

    def hold(held: EntryCheck, first: int, stop: int, flags: bytearray) -> None:
        held.by_time(index.data, offsets.data, first, stop, flags)

    return _doubtful(log, most, index, hold)


def _doubtful(log: LocalFile, most: int, index: OffsetIndex | TimeIndex, hold: Hold) -> bytearray:
    from kdump.kernel.indexes import EntryCheck

    flags = bytearray(b"\1") * index.count
    fd = log.descriptor
    if fd is None:
        return flags
    held = EntryCheck(fd, log.size, most, index.base_offset)
    for first in range(0, index.filled, AT_ONCE):
        hold(held, first, min(first + AT_ONCE, index.filled), flags)
    return flags


def slots(flags: bytearray, *, every: bool) -> Iterator[int]:
    """Yield the numbers of all entries, or only of the unconfirmed ones (1 in ``flags``)."""
    if every:
        yield from range(len(flags))
        return
    slot = flags.find(1)
    while slot >= 0:
        yield slot
        slot = flags.find(1, slot + 1)


MARK_EVERY: Final = 1 << 16
"""Minimum distance between two stored positions of batches, in bytes of log."""


def offset_index_is_sane(state: StateDialect, path: str, index: OffsetIndex) -> None:
    """Raise DamageError if the last offset is too low, or the size wrong (``OffsetIndex.sanityCheck``)."""
    least = index.base_offset + state.sanity_above_base
    if index.count and (last := index[index.count - 1].offset) < least:
        raise _insane(f"{path}: the last offset is too low", f"{least} or more", last)
    _holds_whole_entries(path, index)


def time_index_is_sane(path: str, index: TimeIndex) -> None:
    """Raise DamageError if the last timestamp or offset is too low, or the size wrong (``TimeIndex.sanityCheck``)."""
    if index.count:
        first, last = index[0], index[index.count - 1]
        if last.timestamp < first.timestamp:
            least = first.timestamp
            raise _insane(f"{path}: the last timestamp is below the first", f"{least} or more", last.timestamp)
        if last.offset < index.base_offset:
            least = index.base_offset
            raise _insane(f"{path}: the last offset is below the first", f"{least} or more", last.offset)
    _holds_whole_entries(path, index)


def _holds_whole_entries(path: str, index: OffsetIndex | TimeIndex) -> None:
    if index.ragged:
        size = index.layout.size
        raise _insane(f"{path}: the size is not a multiple of {size}", f"a multiple of {size} bytes", len(index.data))


def _insane(reason: str, expected: str, found: int) -> DamageError:
    return DamageError("sanity check", reason, expected=expected, found=found)


class OffsetEntries:
    """Compares entries of an offset index with the log. ``doubtful`` is 1 for entries that Python must compare."""

    def __init__(self, run: DumpRun, path: str, log: LocalFile, index: OffsetIndex) -> None:
        self._run, self._path, self._log = run, path, log
        self._window = Window(log, log.size)
        self.doubtful = by_offset(run, log, index)

    def check(self, offset: int, position: int) -> None:
        """Compare an entry with the batch at its position, and record a mismatch for the report. Raises DamageError."""
        found = _offset_at(self._run, self._log, position, self._window)
        if found != offset:
            _add(self._run.reports.mismatches, self._path, offset, found)


class TimeEntries:
    """Compares entries of a time index with the log. ``doubtful`` is 1 for entries that Python must compare."""

    def __init__(self, run: DumpRun, path: str, log: LocalFile, index: TimeIndex, offsets: OffsetIndex) -> None:
        self._run, self._path, self._log = run, path, log
        self._offsets, self._window = offsets, Window(log, log.size)
        self._passed: set[int] = set()
        if index.count and run.state.time_index_reads_on:
            self._read_on(self._start(index[0]))
        self.doubtful = by_time(run, log, index, offsets)

    def _start(self, entry: TimestampOffset) -> int:
        """Return the position at which the release begins to search for the batch of an entry. Raises DamageError."""
        state = self._run.state
        start = self._offsets.lookup(entry.offset, among=self._offsets.count, warm=state.warm_section).position
        if start < 0 or (start > self._log.size and state.refuses_beyond_log):
            _refuse(self._log, start)
        return start

    def _read_on(self, start: int) -> None:
        """Read the batches from ``start`` on, up to one from which an earlier call read the log. Raises DamageError."""
        last = -BLOCK
        for batch in _batches(self._run, self._log, start, self._log.size, self._window):
            if batch.position in self._passed:
                return
            if batch.position - last >= MARK_EVERY:
                self._passed.add(batch.position)
                last = batch.position

    def check(self, entry: TimestampOffset, previous: int) -> bool:
        """Compare an entry with its batch and, if there is one, with the ``previous`` timestamp. Record mismatches.

        Return whether a batch ends at the entry's offset. Raises DamageError if the log is bad where it is read.
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
        highest = max([NO_TIMESTAMP, *(record.timestamp for record in _records(self._run, self._log, batch))])
        if highest != entry.timestamp:
            _add(reports.timestamps, self._path, entry.timestamp, highest)
        if previous >= entry.timestamp:
            _add(reports.order, self._path, entry.timestamp, previous)
        return True


def _add(report: Report, path: str, indexed: int, found: int) -> None:
    report.setdefault(path, []).append(Pair(indexed, found))


def _offset_at(run: DumpRun, log: LocalFile, position: int, window: Window) -> int:
    """Return the last offset of the batch at ``position``; before 2.3 the offset of the first record from there on.

    Only batches within --max-message-size bytes count. Raises DamageError if there is no such batch.
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
        for record in _records(run, log, batch):
            return record.offset
    raise DamageError(
        "index position",
        f"{log.name}: an index entry points to a position without a batch of at most {most} bytes",
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
    """Yield the batches of a log from ``start`` to ``end`` as the release finds them. Raises DamageError."""
    old = run.dialect.message
    limit = run.options.max_batch_bytes
    messages = before_0_11.walk(log, run.dialect, INT32_MAX, start, end, limit=limit)
    for region in messages if old else walk(log, start, end, window, limit=limit):
        if isinstance(region, Damage):
            raise region.error(log.name)
        if isinstance(region, RecordBatch):
            yield region


def _records(run: DumpRun, log: LocalFile, batch: RecordBatch) -> Iterator[Record | Message]:
    limit, in_chunks = run.options.max_batch_bytes, run.dialect.reads_lz4_in_chunks
    try:
        if run.dialect.message and isinstance(batch, Message):
            yield from before_0_11.unwrapped(batch, run.dialect, limit)
            return
        codec_name(run.dialect, batch.codec)
        if isinstance(batch, Message):  # unlike records, messages may have wrong key and value sizes
            yield from batch.messages(limit, in_chunks=in_chunks)
        else:
            yield from cast("Batch", batch).records(limit, in_chunks=in_chunks)
    except DamageError as damage:
        raise in_batch(damage, batch).error(log.name) from damage


OFFSET_ENTRY: Final = "offset: {offset} position: {position}"
TIME_ENTRY: Final = "timestamp: {timestamp} offset: {offset}"
SANE: Final = "{path} passed sanity check."


def dump_offset_index(run: DumpRun, path: str) -> None:
    """Compare an ``.index`` with the log, and print it unless --verify-index-only. Or only do the sanity check."""
    base, state = offset_in_name(path), run.state
    with LocalFile(f"{absolute(path).split('.')[0]}.{LOG}" if state.log_up_to_first_dot else sibling(path, LOG)) as log:
        index = OffsetIndex(content(path), base)
        if not index.count and state.empty_index:
            run.print(state.empty_index.format(path=path))
        elif run.options.index_sanity_check:
            offset_index_is_sane(state, path, index)
            run.print(SANE.format(path=path))
        else:
            _offset_entries(run, OffsetEntries(run, path, log, index), index)


def _offset_entries(run: DumpRun, entries: OffsetEntries, index: OffsetIndex) -> None:
    every = not run.options.verify_index_only
    for slot in slots(entries.doubtful, every=every):
        relative, position = index.stored(slot)
        offset = index.base_offset + relative
        ends = slot > 0 and relative == 0
        if ends and run.state.stops_before_checks:
            return
        if entries.doubtful[slot]:
            entries.check(offset, position)
        if ends:
            return
        if every:
            run.print(OFFSET_ENTRY.format(offset=offset, position=position))


def dump_time_index(run: DumpRun, path: str) -> None:
    """Like :func:`dump_offset_index`, for a ``.timeindex``. The ``.index`` beside it must exist."""
    base = offset_in_name(path)
    with LocalFile(sibling(path, LOG)) as log:
        offsets = OffsetIndex(content(sibling(path, INDEX)), base)
        index = TimeIndex(content(path), base)
        if run.options.index_sanity_check:
            time_index_is_sane(path, index)
            run.print(SANE.format(path=path))
        else:
            _time_entries(run, TimeEntries(run, path, log, index, offsets), index)


def _time_entries(run: DumpRun, entries: TimeEntries, index: TimeIndex) -> None:
    every = not run.options.verify_index_only
    for slot in slots(entries.doubtful, every=every):
        entry = index[slot]
        ends = slot > 0 and entry.offset == index.base_offset
        if ends and run.state.stops_before_checks:
            return
        if entries.doubtful[slot]:
            previous = index[slot - 1].timestamp if slot else NO_TIMESTAMP
            if entries.check(entry, previous) and ends:
                return
        if every:
            run.print(TIME_ENTRY.format(timestamp=entry.timestamp, offset=entry.offset))


ABORTED_TXN: Final = (
    "version: {version} producerId: {producer_id} firstOffset: {first_offset} lastOffset: {last_offset} "
    "lastStableOffset: {last_stable_offset}"
)


def dump_txn_index(run: DumpRun, path: str) -> None:
    """Print a ``.txnindex``. A missing file counts as empty. Raises DamageError for an unknown version."""
    offset_in_name(path)
    try:
        data = content(path)
    except UnreadableError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return
        raise
    aborted = list(txn_index.entries(data))  # as in Kafka, all entries are read before the first is printed
    for number, entry in enumerate(aborted):
        version = entry.version if run.state.txn_version_as_stored else entry.shown_version
        if version > txn_index.CURRENT_VERSION or (run.state.txn_version_as_stored and version < 0):
            raise DamageError(
                "version",
                f"{path}: an aborted transaction has an unknown version",
                position=number * txn_index.ABORTED_TXN.size,
                expected=txn_index.CURRENT_VERSION,
                found=version,
            )
    for entry in aborted:
        run.print(ABORTED_TXN.format(**{**entry._asdict(), "version": entry.shown_version}))


def dump_snapshot(run: DumpRun, path: str) -> None:
    """Print the producers of a ``.snapshot``, or report its fault. In some releases all but a wrong CRC end the run."""
    parts = producer_snapshot.inspect(content(path))
    state = run.state
    fault = _structure_fault(run, parts)
    if fault is not None:
        if state.snapshot_faults_end_run:
            raise DamageError("snapshot", f"{path}: {fault}")
        run.complain(fault)
        return
    if parts.crc != parts.computed_crc:
        run.complain(state.snapshot_crc.format(path=path, stored=parts.crc, computed=parts.computed_crc))
        return
    always, of_batch = (line(text) for text in state.snapshot)
    for entry in parts.entries:
        value = partial(getattr, entry)
        with_batch = entry.has_batch or not state.snapshot_needs_batch
        run.print(always.render(value) + (of_batch.render(value) if with_batch else ""))


def _structure_fault(run: DumpRun, parts: SnapshotParts) -> str | None:
    """Return the release's error for the version or structure of a snapshot, or None if they are valid."""
    state = run.state
    version = None
    if parts.version is not None and parts.version != producer_snapshot.VERSION:
        version = state.snapshot_version.format(version=parts.version)
    cut = None
    if parts.announced is not None and parts.announced < 0:
        cut = state.snapshot_count.format(count=parts.announced)
    elif parts.announced is not None and parts.announced > parts.room:
        cut = state.snapshot_too_many.format(count=parts.announced, left=parts.room)
    elif parts.announced is not None and parts.announced > MOST_ELEMENTS and state.snapshot_too_long:
        cut = state.snapshot_too_long.format(count=parts.announced)
    elif parts.cut_in is not None:
        field = f"'{parts.cut_in}': java.nio.BufferUnderflowException"
        if parts.announced is not None:
            field = f"'producer_entries': Error reading field {field}"
        cut = state.snapshot_cut.format(field=field)
    return (version or cut) if state.snapshot_version_first else (cut or version)
