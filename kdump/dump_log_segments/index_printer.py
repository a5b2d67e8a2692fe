"""The files beside a log as DumpLogSegments prints them: indexes, aborted transactions, producer snapshots.

Indexes are checked against their log while they are printed; what does not fit is reported at the end of the run.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NoReturn

from kdump.dump_log_segments import before_0_11, confirmed_entries
from kdump.dump_log_segments.java_paths import absolute, offset_in_name, sibling
from kdump.dump_log_segments.line_template import line
from kdump.dump_log_segments.line_values import codec_name
from kdump.dump_log_segments.mismatches import Pair
from kdump.errors import DamageError, UnreadableError
from kdump.formats import producer_snapshot, txn_index
from kdump.formats.offset_index import OffsetIndex
from kdump.formats.record_layout import BATCH_HEADER, LOG_OVERHEAD, MAGIC_2
from kdump.formats.time_index import NO_TIMESTAMP, TimeIndex
from kdump.log_dirs.local import LocalFile
from kdump.primitives.wire import INT32_MAX, to_int64
from kdump.records.magic_0_1 import Message
from kdump.records.record_batch import RecordBatch
from kdump.segments.regions import Damage
from kdump.segments.walk import BLOCK, Window, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.dump_log_segments.mismatches import Report
    from kdump.dump_log_segments.run import DumpRun
    from kdump.formats.producer_snapshot import SnapshotParts
    from kdump.formats.record import Record

OFFSET_ENTRY: Final = "offset: {offset} position: {position}"
TIME_ENTRY: Final = "timestamp: {timestamp} offset: {offset}"
ABORTED_TXN: Final = (
    "version: {version} producerId: {producer_id} firstOffset: {first_offset} lastOffset: {last_offset} "
    "lastStableOffset: {last_stable_offset}"
)
SANE: Final = "{path} passed sanity check."


def _add(report: Report, path: str, indexed: int, found: int) -> None:
    report.setdefault(path, []).append(Pair(indexed, found))


def dump_offset_index(run: DumpRun, path: str) -> None:
    """Print an ``.index`` and hold each entry against the log beside it."""
    base = offset_in_name(path)
    state, options = run.state, run.options
    beside = absolute(path).split(".")[0] + ".log" if state.log_up_to_first_dot else sibling(path, "log")
    with LocalFile(beside) as log:
        index = OffsetIndex(_content(path), base)
        if not index.count and state.empty_index:
            run.print(state.empty_index.format(path=path))
            return
        if options.index_sanity_check:
            if index.count and (last := index[index.count - 1].offset) < base + state.sanity_above_base:
                raise DamageError(
                    "sanity check", f"{path}: the last offset is too low", expected=f"above {base}", found=last
                )
            _sane(run, path, index)
            return
        window, heads = Window(log, log.size), Heads(run, log)
        doubtful = confirmed_entries.by_offset(run, log, index)
        for slot in confirmed_entries.slots(doubtful, every=not options.verify_index_only):
            relative, position = index.stored(slot)
            offset = base + relative
            ends = slot > 0 and offset == base
            if ends and state.stops_before_checks:
                return
            if doubtful[slot]:
                found = heads.last_offset(position)
                if found is None:
                    found = _offset_at(run, log, position, window)
                if found != offset:
                    _add(run.reports.mismatches, path, offset, found)
            if ends:
                return
            if not options.verify_index_only:
                run.print(OFFSET_ENTRY.format(offset=offset, position=position))


def dump_time_index(run: DumpRun, path: str) -> None:
    """Print a ``.timeindex`` and hold each entry against the log, which is found through the ``.index``."""
    base = offset_in_name(path)
    options = run.options
    with LocalFile(sibling(path, "log")) as log:
        offsets = OffsetIndex(_content(sibling(path, "index")), base)
        index = TimeIndex(_content(path), base)
        if options.index_sanity_check:
            if index.count:
                first, last = index[0], index[index.count - 1]
                if last.timestamp < first.timestamp:
                    raise DamageError(
                        "sanity check",
                        f"{path}: the last timestamp is below the first",
                        expected=f"{first.timestamp} or more",
                        found=last.timestamp,
                    )
                if last.offset < base:
                    raise DamageError(
                        "sanity check",
                        f"{path}: the last offset is below the first",
                        expected=f"{base} or more",
                        found=last.offset,
                    )
            _sane(run, path, index)
            return
        window = Window(log, log.size)
        doubtful = confirmed_entries.by_time(run, log, index, offsets)
        for slot in confirmed_entries.slots(doubtful, every=not options.verify_index_only):
            entry = index[slot]
            ends = slot > 0 and entry.offset == base
            if ends and run.state.stops_before_checks:
                return
            if not doubtful[slot]:
                if not options.verify_index_only:
                    run.print(TIME_ENTRY.format(timestamp=entry.timestamp, offset=entry.offset))
                continue
            previous = index[slot - 1].timestamp if slot else NO_TIMESTAMP
            start = offsets.lookup(entry.offset, among=offsets.count, warm=run.state.warm_section).position
            if start < 0 or (start > log.size and run.state.refuses_beyond_log):
                _refuse(log, start)
            batches = _batches(run, log, start, log.size, window)
            batch = next((held for held in batches if held.last_offset >= entry.offset), None)
            if batch is None or batch.last_offset != entry.offset:
                found = -1 if batch is None else batch.last_offset
                _add(run.reports.missing, path, entry.offset, found)
            else:
                highest = max([NO_TIMESTAMP, *(record.timestamp for record in _records(run, batch))])
                if highest != entry.timestamp:
                    _add(run.reports.timestamps, path, entry.timestamp, highest)
                if previous >= entry.timestamp:
                    _add(run.reports.order, path, entry.timestamp, previous)
                if ends:
                    return
            if not options.verify_index_only:
                run.print(TIME_ENTRY.format(timestamp=entry.timestamp, offset=entry.offset))


def dump_txn_index(run: DumpRun, path: str) -> None:
    """Print a ``.txnindex``. One that is missing holds nothing."""
    offset_in_name(path)
    try:
        data = _content(path)
    except UnreadableError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return
        raise
    aborted = list(txn_index.entries(data))  # the original too reads all of them before it prints the first
    for number, entry in enumerate(aborted):
        if entry.shown_version > txn_index.CURRENT_VERSION:
            raise DamageError(
                "version",
                f"{path}: an aborted transaction has an unknown version",
                position=number * txn_index.ABORTED_TXN.size,
                expected=txn_index.CURRENT_VERSION,
                found=entry.shown_version,
            )
    for entry in aborted:
        run.print(ABORTED_TXN.format(**{**entry._asdict(), "version": entry.shown_version}))


def dump_snapshot(run: DumpRun, path: str) -> None:
    """Print the producers of a ``.snapshot``; a broken one is told of, and in one release ends the run."""
    parts = producer_snapshot.inspect(_content(path))
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
    """Return what the release says of a snapshot's version and structure; None when they are sound."""
    state = run.state
    version = None
    if parts.version is not None and parts.version != producer_snapshot.VERSION:
        version = state.snapshot_version.format(version=parts.version)
    cut = None
    if parts.announced is not None and parts.announced < 0:
        cut = state.snapshot_count.format(count=parts.announced)
    elif parts.announced is not None and parts.announced > parts.room:
        cut = state.snapshot_too_many.format(count=parts.announced, left=parts.room)
    elif parts.cut_in is not None:
        told = f"'{parts.cut_in}': java.nio.BufferUnderflowException"
        if parts.announced is not None:
            told = f"'producer_entries': Error reading field {told}"
        cut = state.snapshot_cut.format(field=told)
    return (version or cut) if state.snapshot_version_first else (cut or version)


def _content(path: str) -> bytes:
    """Return the bytes of a file. It is never created, as the original does with a missing index.

    Raises UnreadableError, also for a file that Java could not map or hold.
    """
    with LocalFile(path) as file:
        if file.size > INT32_MAX:
            raise UnreadableError(path, f"has {file.size} bytes, and no broker writes such a file of 2 GiB or more")
        return file.read(0, file.size)


def _sane(run: DumpRun, path: str, index: OffsetIndex | TimeIndex) -> None:
    if index.ragged and path.rpartition(".")[2] in run.state.sanity_whole_entries:
        raise DamageError(
            "sanity check",
            f"{path}: the size is no multiple of {index.layout.size}",
            expected=f"a multiple of {index.layout.size} bytes",
            found=len(index.data),
        )
    run.print(SANE.format(path=path))


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
        return batch.messages(run.options.max_batch_bytes)
    return batch.records(run.options.max_batch_bytes)
