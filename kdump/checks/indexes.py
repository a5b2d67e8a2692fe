"""Checks the indexes of a segment against its log and each other, in one pass (:class:`IndexCheck`). Reads no file."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from kdump.checks.offset_index import OffsetIndexCheck
from kdump.checks.time_index import TimeIndexCheck
from kdump.checks.txn_index import TxnIndexCheck
from kdump.errors import DamageError
from kdump.findings import Finding, Level, remark, text_of
from kdump.findings.codes import Code
from kdump.formats.offset_index import OffsetIndex
from kdump.formats.time_index import TimeIndex
from kdump.log_dirs.file_names import INDEXES, LOG, TIME_INDEX, TXN_INDEX, beside_log
from kdump.records.record_batch import Batches, RecordBatch
from kdump.segments.batch_runs import Run
from kdump.segments.regions import Damage
from kdump.segments.walk import in_batch
from kdump.transaction_replay.replay import Replay

LOG_ADVICE: Final = "The log itself is damaged: copy the log before a broker starts and truncates it."


class SegmentFiles(NamedTuple):
    """One segment: the name of its log, and the content of its index files (None if absent).

    ``log_size`` is in bytes; None without a log. ``active``: the folder has no later segment. A running broker writes
    the log before the indexes. So callers must read the indexes first, and then take the size of the log.
    """

    name: str
    base_offset: int
    log_size: int | None
    index: bytes | None  # type: ignore[assignment]  # in place of tuple.index
    timeindex: bytes | None
    txnindex: bytes | None
    active: bool
    swaps: Mapping[str, str] = {}
    """Suffix of an index -> the name of the ``.swap`` file that a start renames to it."""

    def beside(self, suffix: str) -> str:
        """Return the name of the segment's file with another suffix. A state such as ``.deleted`` is kept."""
        return self.swaps.get(suffix) or beside_log(self.name, suffix)


class PartitionState:
    """The transactions and gaps of a partition up to the end of a segment, for the check of the next segment."""

    def __init__(self) -> None:
        self.replay = Replay()
        self.compacted = False
        """Whether offsets or records are missing from the log."""
        self.complete = False
        """Whether the log was read from offset 0."""

        self._marked = (self.replay, False, False)

    def mark(self) -> None:
        """Save the state for :meth:`restore`. A segment is read again if its ``.txnindex`` lacks the newest entry."""
        self.replay.mark()
        self._marked = (self.replay, self.compacted, self.complete)

    def restore(self) -> None:
        self.replay, self.compacted, self.complete = self._marked
        self.replay.restore()


class IndexCheck:
    """Checks the indexes of one segment. The caller passes all batches in order, then calls :meth:`finish`."""

    def __init__(self, files: SegmentFiles, partition: PartitionState | None = None) -> None:
        self.files = files
        self.partition = partition or PartitionState()
        base = files.base_offset
        index, times = files.index or b"", files.timeindex or b""
        self.offsets = OffsetIndexCheck(files.beside("index"), index, base, files.log_size)
        self.times = TimeIndexCheck(files.beside(TIME_INDEX), times, base)
        self.txns = TxnIndexCheck(files.beside(TXN_INDEX), files.txnindex, base)
        self.batches = 0
        self.valid_end = 0
        self._next_offset = base
        self._misnamed: Finding | None = None
        self._markers: list[Finding] = []
        self._cover: tuple[int, int, int, int] | None = None
        self._covers = bool(files.index) and bool(files.timeindex)

    def add(self, batches: Batches) -> None:
        """Compare the next batches with their index entries. Raises DamageError for an impossible header."""
        if isinstance(batches, Run):
            self._run(batches)
        else:
            self._batch(batches.first)

    def _batch(self, batch: RecordBatch) -> None:
        last = batch.last_offset
        if not self.batches:
            self._first(last)
        self.batches += 1
        self.valid_end = batch.end
        self._entries(batch, last)
        if batch.magic >= 2:
            self._transactions(batch, last)
        self._next_offset = last + 1

    def _run(self, run: Run) -> None:
        if not self.batches:
            self._first(run.field("last_offset", 0))
        self.batches += run.batch_count
        self.valid_end = run.end
        self._entries_of_run(run)
        state = self.partition
        state.compacted = state.compacted or not run.follows(self._next_offset)
        state.replay.add(run)
        self._next_offset = run.last_offset + 1

    def _entries_of_run(self, run: Run) -> None:
        row = 0
        while row < run.batch_count:
            until = self.times.free(run, row, self.offsets.free(run, row))
            if until > row:
                self.offsets.pass_over(run.field("position", until - 1), run.field("last_offset", until - 1))
                highest = run.greatest("max_timestamp", row, until)
                self.times.pass_over(run.greatest("last_offset", row, until), highest)
            if until < run.batch_count:
                self._entries(run.batch(until), run.field("last_offset", until))
            row = until + 1

    def _entries(self, batch: RecordBatch, last: int) -> None:
        met = self.offsets.batch(batch, last)
        if met and self._cover is not None:
            self.times.covers(*self._cover)
        self.times.batch(batch, last)
        if met and self._covers:
            slot = self.offsets.met_slot
            self._cover = (slot, batch.position, last, self.times.highest)

    def _first(self, last: int) -> None:
        state, base = self.partition, self.files.base_offset
        if state.replay.end_offset is None:
            state.complete = base == 0
        elif state.replay.end_offset != base:  # the previous segment was not read
            state.replay, state.complete = Replay(), False
        if last < base:
            self._misnamed = Finding(
                level=Level.LOG,
                file=self.files.name,
                kind=Code.BASE_OFFSET,
                text=f"the first batch ends at offset {last}, below the base offset in the file's name",
                position=0,
                expected=f"{base} or more",
                found=last,
                advice="The files have the name of another segment: find out how they were renamed or copied.",
            )

    def _transactions(self, batch: RecordBatch, last: int) -> None:
        state = self.partition
        base = batch.base_offset
        if base != self._next_offset or batch.count != last - base + 1:
            state.compacted = True
        producer_id = batch.producer_id
        if producer_id is None or producer_id < 0:
            state.replay.end_offset = last + 1
            return
        try:
            ended = state.replay.add(batch)
        except DamageError as damage:
            self._markers.append(log_finding(self.files.name, in_batch(damage, batch)))
            return
        if ended is not None:
            self.txns.ended(ended)

    def finish(self, *, readable: bool = True) -> Iterator[Finding]:
        """Yield the findings; none on indexes of a misnamed log, or on entries after damage if not ``readable``."""
        files = self.files
        if files.log_size is None:
            yield Finding(
                level=Level.DERIVED,
                file=files.beside(next(suffix for suffix in INDEXES if getattr(files, suffix) is not None)),
                kind=Code.NO_LOG,
                text=f"the log {files.beside(LOG)} is missing",
                advice="The log was lost, moved or renamed: find it. A start removes index files without a log.",
            )
            readable = False
        yield from self._markers
        if self.offsets.first_fault_of_log is not None:
            yield log_finding(files.name, self.offsets.first_fault_of_log)
        if self._misnamed is not None:
            yield self._misnamed
            return
        if self._cover is not None:
            self.times.covers(*self._cover)
        closed = self.closed
        if files.index is not None:
            yield from self.offsets.finish(self.valid_end, closed=closed, readable=readable)
        elif files.log_size is not None:
            yield self._absent("index")
        if files.timeindex is not None:
            good = files.index is not None and not self.offsets.faults
            yield from self.times.finish(closed=closed, offsets_good=good, readable=readable)
        elif files.log_size is not None and self.times.highest >= 0:
            yield self._absent(TIME_INDEX)
        state = self.partition
        yield from self.txns.finish(
            complete=state.complete, compacted=state.compacted, readable=readable, alone=files.index is None
        )
        yield from self._preallocation()

    @property
    def lacks_transactions(self) -> bool:
        return self.txns.lacks

    @property
    def closed(self) -> bool:
        """Whether no broker writes to the segment: a later one exists, or an index is trimmed or missing.

        Only then are entries for the last batches required.
        """
        return not self.files.active or not self.times.index.zero_tail or not self.offsets.index.zero_tail

    def _absent(self, suffix: str) -> Finding:
        text = "the file is missing: a broker rebuilds it" if suffix == "index" else "the file is missing"
        return remark(self.files.beside(suffix), Code.ABSENT, text)

    def _preallocation(self) -> Iterator[Finding]:
        """Yield a remark if an index ends with zeros, and the sizes of the two indexes rule out preallocation.

        A broker preallocates and trims both indexes together. An empty ``.index`` with several time entries is normal:
        each clean stop adds a time entry (LogSegment.close).
        """
        offsets, times = self.offsets.index, self.times.index
        if self.files.index is None or self.files.timeindex is None:
            return
        if (offsets.zero_tail or times.zero_tail) and not is_preallocated(offsets.size, times.size):
            text = (
                "zeros follow the entries, and may have overwritten the last entry: a broker does not preallocate an "
                f".index of {offsets.size} bytes beside a .timeindex of {times.size} bytes"
            )
            yield remark(self.files.beside("index"), Code.PREALLOCATION, text)


def is_preallocated(index_size: int, time_size: int) -> bool:
    """Return whether a broker preallocates two indexes to these sizes. ``segment.index.bytes`` determines both."""
    entry, step = TimeIndex.layout.size, OffsetIndex.layout.size
    return index_size > 0 and any((index_size + more) // entry * entry == time_size for more in range(step))


def log_finding(file: str, damage: Damage) -> Finding:
    return Finding(
        level=Level.LOG,
        file=file,
        kind=damage.kind,
        text=f"the batch at byte {damage.position} cannot be read: {damage.reason}",
        position=damage.at,
        expected=text_of(damage.expected),
        found=text_of(damage.found),
        advice=LOG_ADVICE,
    )
