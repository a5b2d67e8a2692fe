"""Writes recovered batches to new segments and indexes that a broker can open, and an account of the lost bytes.

    DIR/logs/TOPIC-PARTITION/       segments, indexes, leader-epoch-checkpoint, partition.metadata
    DIR/logs/log-start-offset-checkpoint
    DIR/lost+found/TOPIC-PARTITION/ account.json, and the lost bytes, except zeros

A broker does not start if its log dir has a folder that is not a partition folder. So ``lost+found`` is not in the log
dir ``logs``. If inputs could not be read, ``lost+found/unread.json`` lists them. ``log-start-offset-checkpoint`` is
written only if a log needs an entry.
"""

from __future__ import annotations

import json
from contextlib import closing
from io import TextIOWrapper
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump import kernel
from kdump.errors import RAISING, DamageError, Reporter, UnreadableError
from kdump.formats import checkpoints, leader_epoch, record_layout
from kdump.formats.leader_epoch import EpochEntry
from kdump.formats.sparse_index import DEFAULT_INTERVAL, MAX_RELATIVE_OFFSET
from kdump.log_dirs import file_names
from kdump.log_dirs.files import next_data
from kdump.log_salvage import merge
from kdump.log_salvage.epoch_history import EpochHistory, noted
from kdump.log_salvage.merge import UNREADABLE, Account, OutOfOrderError
from kdump.output import files
from kdump.output.access import of_sources
from kdump.primitives.terminal import path_text
from kdump.recovery.index_builder import IndexBuilder
from kdump.segments import resync
from kdump.segments.batch_runs import Run
from kdump.transaction_replay.replay import Replay

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from pathlib import Path
    from typing import BinaryIO

    from kdump.formats.checkpoints import PartitionOffset
    from kdump.log_dirs.partition import Partition
    from kdump.log_salvage.chains import LeftOutRange
    from kdump.output.access import Access
    from kdump.records.record_batch import Batches, RecordBatch

LOGS: Final = "logs"
ACCOUNT: Final = "account.json"
VERSION: Final = 2
"""The version of account.json. Version 1 has another key for missing offsets."""
COPIED: Final = 1 << 20
SMALL: Final = 1 << 20
"""The size in bytes up to which no disk space is reserved for a segment."""
STEP: Final = 8 << 20
"""The number of bytes of a segment that are reserved or flushed at a time."""
UNREAD: Final = "unread.json"
MISSING: Final = '\n "missingOffsets": []'
"""The key and the empty list in account.json. The missing offsets are written into the list afterwards."""
_GAP: Final = '  {\n   "missingFrom": %d,\n   "missingUntil": %d,\n   "belowLogStart": %s\n  }'


class SegmentLimits(NamedTuple):
    """The largest size of a segment of several batches, and the least distance of ``.index`` entries, in bytes."""

    segment: int = 1 << 30
    interval: int = DEFAULT_INTERVAL


class WrittenLog(NamedTuple):
    """The counts of a written log; ``size`` is in bytes. ``records`` is None if a batch is below magic 2."""

    segments: int
    batches: int
    size: int
    records: int | None = None
    below_log_start: BelowLogStart | None = None
    begin: int | None = None
    """The base offset of the first segment."""
    end: int = 0
    """The log end offset; 0 if no segment of the copies has a base offset."""


class BelowLogStart(NamedTuple):
    """The batches that end below the log start offset: their number, their bytes, the first and the last offset."""

    batches: int
    bytes: int
    first_offset: int
    last_offset: int


def write(
    name: str,
    copies: list[Partition],
    out: Path,
    limits: SegmentLimits,
    *,
    log_start: int | None = None,
    report: Reporter = RAISING,
) -> tuple[WrittenLog, Account]:
    """Write one partition to ``out``, a folder of :func:`kdump.output.files.new_folder`.

    ``report`` receives the files beside the log that a broker refuses or that cannot be read, and the progress in bytes
    of the copies. If there are two passes, each counts half of the bytes. New files have the modes of the copies.
    Records below ``log_start`` (None: unknown), which a broker would ignore, are written too.

    Raises UnreadableError if a file has changed when it is read again, StoreError, and OSError if writing fails.
    """
    access = of_sources(copies)
    folder = files.make_folders(out, LOGS, name, access=access)
    span = _Bounds.of(copies)
    log, account = _write_log(folder, copies, limits, log_start, access, span, report.progress)
    if account.last_offset is not None:
        account.gaps.between(account.last_offset, span.end)
    others = [EpochHistory(noted(copy, report.damage, report.fail)) for copy in copies]
    epochs = EpochHistory(log.epochs).completed(others)
    files.fill(folder / file_names.LEADER_EPOCHS, leader_epoch.encode(epochs.entries), access)
    _copy_metadata(copies, folder, report, access)
    lost = files.make_folders(out, file_names.LOST_AND_FOUND, name, access=access)
    _write_account(account, name, copies, lost, log.written, log_start, access)
    return log.written, account


def write_log_starts(out: Path, starts: Iterable[PartitionOffset], access: Access) -> None:
    """Write ``log-start-offset-checkpoint`` unless ``starts`` is empty. Raises OSError."""
    entries = list(starts)
    if entries:
        files.fill(out / LOGS / file_names.LOG_STARTS, checkpoints.encode(entries), access)


def write_unread(out: Path, errors: Iterable[UnreadableError], access: Access) -> None:
    """Write UNREAD, the list of the inputs that could not be read, if there are any. Raises OSError."""
    found = {str(error.path): error.reason for error in errors}
    if found:
        text = json.dumps([{"path": path_text(path), "reason": reason} for path, reason in found.items()], indent=1)
        files.fill(out / file_names.LOST_AND_FOUND / UNREAD, f"{text}\n".encode(), access)


class _Bounds(NamedTuple):
    begin: int | None
    end: int

    @classmethod
    def of(cls, copies: Iterable[Partition]) -> _Bounds:
        bases = [each.base_offset for copy in copies for each in copy.segments if each.base_offset is not None]
        return cls(min(bases, default=None), max(bases, default=0))


def begin(out: Path, access: Access) -> None:
    """Create the folders ``logs`` and ``lost+found``. Raises OSError."""
    for name in (LOGS, file_names.LOST_AND_FOUND):
        files.make_folders(out, name, access=access)


def _write_log(
    folder: Path,
    copies: list[Partition],
    limits: SegmentLimits,
    log_start: int | None,
    access: Access,
    span: _Bounds,
    progress: Callable[[int], None],
) -> tuple[_LogWriter, Account]:
    """Write the segments: in one pass for a single copy whose batches are in order, else in two passes."""
    if len(copies) == 1:
        log, account = _LogWriter(folder, limits, log_start, access, span), Account()
        done = _BytesDone(progress)
        try:
            log.add_all(merge.in_one_pass(copies[0], account, done))
        except OutOfOrderError:
            done.take_back()
            for path in folder.iterdir():
                files.drop(path)
        else:
            return log, account
    chains, account = merge.merge(copies, lambda size: progress(size // 2))
    log = _LogWriter(folder, limits, log_start, access, span, lambda size: progress(size // 2))
    log.add_all(merge.batches(chains))
    return log, account


class _BytesDone:
    """Reports the number of bytes done. ``take_back`` takes the reports back, because two passes follow."""

    def __init__(self, progress: Callable[[int], None]) -> None:
        self._progress, self._done = progress, 0

    def __call__(self, size: int) -> None:
        self._done += size
        self._progress(size)

    def take_back(self) -> None:
        self._progress(-self._done)


class _LogWriter:
    """Writes batches in offset order to segments with indexes. ``span``: lowest and highest base offset of segments."""

    def __init__(
        self,
        folder: Path,
        limits: SegmentLimits,
        log_start: int | None,
        access: Access,
        span: _Bounds,
        progress: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._span = span
        self._end = 0
        self._progress = progress
        self.epochs: list[EpochEntry] = []
        self.written = WrittenLog(0, 0, 0, 0)
        self._folder, self._limits, self._log_start, self._access = folder, limits, log_start, access
        self._replay = Replay()
        self._builder = IndexBuilder(0)
        self._file: BinaryIO | None = None
        self._size = self._flushed = self._reserved = 0

    def add_all(self, regions: Generator[Batches, None, None]) -> None:
        """Write all batches and the indexes. The files are closed even after an error."""
        with closing(self), closing(regions):
            for region in regions:
                self._add(region)
                self._end = region.last_offset + 1
            self._finish()
            self._end_as_before()

    def _end_as_before(self) -> None:
        """Make the new log end at the highest base offset of the copies or later: no offset below is used again."""
        if self._span.begin is None:
            return
        if not self.written.segments and self._span.begin < self._span.end:
            self._begin(self._span.begin)
        if not self.written.segments or self._end < self._span.end:
            self._begin(self._span.end)
        self._finish()
        self.written = self.written._replace(end=max(self._end, self._span.end))

    def _add(self, region: Batches) -> None:
        if not isinstance(region, Run):
            self._add_batch(region.first)
            return
        row = 0
        while row < region.batch_count:
            end_row = self._fitting(region, row)
            self._add_run(region if end_row - row == region.batch_count else region.part(row, end_row))
            row = end_row

    def _fitting(self, run: Run, row: int) -> int:
        """Begin a segment if batch ``row`` does not fit. Return the number of the next such batch, else the count."""
        bases, lasts, sizes = (run.column(name, row) for name in ("base_offset", "last_offset", "size"))
        self._segment_for(bases[0], lasts[0], sizes[0])
        room = self._limits.segment - self._size
        highest = self._builder.base_offset + MAX_RELATIVE_OFFSET
        if sum(sizes) <= room and lasts[-1] <= highest:
            return run.batch_count
        for number, (last, size) in enumerate(zip(lasts, sizes, strict=True)):
            room -= size
            if number and (room < 0 or last > highest):
                return row + number
        return run.batch_count

    def _segment_for(self, base: int, last: int, size: int) -> BinaryIO:
        """Return the file for a batch; begin one if it does not fit: the first at ``_span.begin`` if that is lower."""
        full = self._size + size > self._limits.segment or last - self._builder.base_offset > MAX_RELATIVE_OFFSET
        if self._file is not None and not (full and self._size):
            return self._file
        begin = self._span.begin
        if not self.written.segments and begin is not None and begin < base:  # compaction removed the earlier batches
            file = self._begin(begin)
            if last - begin <= MAX_RELATIVE_OFFSET:
                return file
        return self._begin(base)

    def _begin(self, base: int) -> BinaryIO:
        self._finish()
        self._builder = IndexBuilder(base, interval=self._limits.interval)
        self._file = files.create(self._folder / f"{base:020}.{file_names.LOG}", self._access)
        written = self.written
        self.written = written._replace(
            segments=written.segments + 1,
            begin=base if written.begin is None else written.begin,
        )
        return self._file

    def _add_run(self, run: Run) -> None:
        file = self._segment_for(run.first.base_offset, run.first.last_offset, run.first.size)
        self._replay.add(run)
        self._builder.add(run, position=self._size)
        self._count(file, run, run.batch_count, run.records(0, run.batch_count))
        if self._log_start is not None and run.first.last_offset < self._log_start:
            for row in zip(*map(run.column, ("base_offset", "last_offset", "size")), strict=True):
                self._below(*row)
        if not self.epochs or run.greatest("partition_leader_epoch") > self.epochs[-1].epoch:
            for row in zip(*map(run.column, ("partition_leader_epoch", "base_offset")), strict=True):
                self._enter(*row)

    def _add_batch(self, batch: RecordBatch) -> None:
        base, last = batch.base_offset, batch.last_offset
        file = self._segment_for(base, last, batch.size)
        try:
            ended = self._replay.add(batch) if batch.magic >= record_layout.MAGIC_2 else None
        except DamageError:  # the control record is not a transaction marker, so it has no index entry
            ended = None
        self._builder.add(batch, ended, position=self._size)
        self._count(file, batch, 1, batch.count)
        self._below(base, last, batch.size)
        self._enter(batch.leader_epoch, base)

    def _count(self, file: BinaryIO, region: Batches, batches: int, records: int | None) -> None:
        """Write the bytes of batches, and add the batches to the counts."""
        end = self._size + region.size
        if end > max(self._reserved, SMALL):
            self._reserved = max(end, min(self._size + STEP, self._limits.segment))
            kernel.reserve(file.fileno(), self._reserved)
        file.write(region.raw)
        self._size = end
        self._progress(region.size)
        if self._size - self._flushed >= STEP:
            files.begin_flush(file)
            self._flushed = self._size
        written = self.written
        self.written = written._replace(
            batches=written.batches + batches,
            size=written.size + region.size,
            records=None if written.records is None or records is None else written.records + records,
        )

    def _below(self, base: int, last: int, size: int) -> None:
        if self._log_start is None or last >= self._log_start:
            return
        below = self.written.below_log_start or BelowLogStart(0, 0, base, last)
        self.written = self.written._replace(
            below_log_start=BelowLogStart(below.batches + 1, below.bytes + size, below.first_offset, last)
        )

    def _enter(self, epoch: int, base: int) -> None:
        if epoch >= 0 and (not self.epochs or epoch > self.epochs[-1].epoch):
            self.epochs.append(EpochEntry(epoch, base))

    def _finish(self) -> None:
        """Close the current segment, if there is one, and write its indexes."""
        if self._file is None:
            return
        self.close()
        stem, indexes = self._folder / f"{self._builder.base_offset:020}", self._builder.finish()
        files.fill(stem.with_suffix(f".{file_names.INDEX}"), indexes.offset_index, self._access)
        files.fill(stem.with_suffix(f".{file_names.TIME_INDEX}"), indexes.time_index, self._access)
        if indexes.txn_index:
            files.fill(stem.with_suffix(f".{file_names.TXN_INDEX}"), indexes.txn_index, self._access)

    def close(self) -> None:
        file, is_short = self._file, self._size < self._reserved
        self._file = None  # a second close would report a full disk again
        self._size = self._flushed = self._reserved = 0
        if file is not None:
            with file:
                if is_short:
                    file.truncate()  # frees the reserved bytes that were not written


def _copy_metadata(copies: list[Partition], folder: Path, report: Reporter, access: Access) -> None:
    """Copy the first valid ``partition.metadata``, because a broker does not start with an invalid file."""
    for copy in copies:
        if not copy.is_listed:
            continue
        try:
            topic_id = copy.topic_id(report.damage)
            data = None if topic_id is None else copy.file(file_names.PARTITION_METADATA)
        except UnreadableError as error:
            report.fail(error)
            continue
        if data is not None:
            files.fill(folder / file_names.PARTITION_METADATA, data, access)
            return


def _write_account(
    account: Account,
    name: str,
    copies: list[Partition],
    folder: Path,
    written: WrittenLog,
    log_start: int | None,
    access: Access,
) -> None:
    ranges = []
    for number, lost in enumerate(account.lost):
        saved = files.left_out_name(number, lost.segment.path, lost.position)
        if not _save(lost, folder / saved, access):
            saved = ""
        ranges.append(
            {
                "file": path_text(lost.segment.name),
                "position": lost.position,
                "size": lost.size,
                "kind": lost.kind,
                "reason": path_text(lost.reason),
                "missingFrom": lost.missing_from,
                "missingUntil": lost.missing_until,
                "belowLogStart": _is_below(lost.missing_until, log_start),
                "savedAs": path_text(saved) or None,
            }
        )
    below = written.below_log_start
    document = {
        "version": VERSION,
        "partition": path_text(name),
        "copies": [path_text(copy.files.shown(copy.folder)) for copy in copies],
        "firstOffset": account.first_offset,
        "lastOffset": account.last_offset,
        "logStartOffset": log_start,
        "belowLogStart": None
        if below is None
        else dict(zip(("batches", "bytes", "firstOffset", "lastOffset"), below, strict=True)),
        "batches": written.batches,
        "bytes": written.size,
        "duplicates": account.duplicates,
        "paddingBytes": account.padding,
        "missingOffsets": [],
        "lost": ranges,
    }
    with TextIOWrapper(files.create(folder / ACCOUNT, access), encoding="utf-8", newline="") as file:
        before, key, rest = json.dumps(document, indent=1, ensure_ascii=False).partition(MISSING)
        file.write(f"{before}{key[:-1]}")
        separator, end = "\n", "]"
        for gap in _missing(account.gaps, log_start):  # a compacted log may have a gap after each batch
            file.write(separator + gap)
            separator, end = ",\n", "\n ]"
        file.write(f"{end}{rest}\n")


def _missing(gaps: Iterable[range], log_start: int | None) -> Iterator[str]:
    """Yield the missing offsets as JSON for account.json. A range that includes the log start offset is split there."""
    for gap in gaps:
        inside = [log_start] if log_start is not None and gap.start < log_start < gap.stop else []
        for start, until in pairwise([gap.start, *inside, gap.stop]):
            yield _GAP % (start, until, json.dumps(_is_below(until, log_start)))


def _is_below(until: int | None, log_start: int | None) -> bool | None:
    """Return whether all offsets below ``until`` are below the log start offset; None if unknown."""
    return None if until is None or log_start is None else until <= log_start


def _save(lost: LeftOutRange, path: Path, access: Access) -> bool:
    """Copy lost bytes to a file, unless all are zeros or unreadable. Return whether a file was written."""
    if lost.kind == UNREADABLE:
        return False
    with lost.segment.open() as source:
        end = lost.position + lost.size
        if resync.zero_tail(source, lost.position, end) == lost.position:
            return False
        with files.create(path, access) as file:
            at = lost.position
            while at < end:
                if (data := min(next_data(source, at), end)) > at:  # keep the hole of a sparse file
                    at = file.seek(data - lost.position) + lost.position
                    continue
                file.write(source.read(at, min(COPIED, end - at)))
                at += COPIED
            file.truncate(lost.size)
    return True
