"""Checks the batches of a partition: their order, and defects that a correct CRC does not reveal (:class:`LogCheck`).

Offsets, leader epochs and producers are followed across segments. Compaction and lost batches both leave gaps in
offsets. Only the whole partition shows the cause of a gap, so gaps are reported after the last segment. Open
transactions and timestamps in the future are remarks (:class:`LogRemarks`).
"""

from __future__ import annotations

import posixpath
from bisect import bisect_right
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kdump import kernel
from kdump.checks.indexes import LOG_ADVICE
from kdump.errors import DamageError, LimitError, many, offsets_are
from kdump.findings import (
    MAY_HAVE,
    METADATA_LOG,
    TAKE_PARTITION,
    TAKE_UNDAMAGED,
    Finding,
    Level,
    remark,
    salvage,
    text_of,
)
from kdump.findings.codes import Code
from kdump.formats import record_layout
from kdump.formats.record_layout import LOG_APPEND_TIME, MAGIC_POSITION, TIMESTAMP_TYPES
from kdump.internal_topics import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from kdump.log_dirs.file_names import folder_name
from kdump.log_dirs.partition import start_of
from kdump.primitives.compression import COUNTED
from kdump.primitives.terminal import shell_path, shell_pattern
from kdump.primitives.wire import INT64_END
from kdump.records import control, magic_2
from kdump.records.magic_0_1 import Message
from kdump.records.magic_2 import Batch
from kdump.records.record_batch import Batches, misnumbered
from kdump.segments.batch_runs import Run
from kdump.segments.regions import Damage, Padding, Trailing

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from kdump.formats.leader_epoch import EpochEntry
    from kdump.formats.record import Record
    from kdump.internal_topics.decode import DecodedRecord
    from kdump.internal_topics.schema import Versions
    from kdump.log_dirs.partition import Segment
    from kdump.records.record_batch import RecordBatch
    from kdump.rows.redaction import AnyDamage
if kernel.COMPILED:
    from kdump.kernel import batches
    from kdump.kernel.records import Cursor

COMPACTED_TOPICS: Final = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE})
RESERVED: Final = {0: 0xF8, 1: 0xF0, 2: 0xFF80}
"""Magic -> attribute bits that no release uses."""
ZEROS: Final = "a preallocated file that was not trimmed"
FEW_ZEROS: Final = "a preallocated file, or the first bytes of a truncated batch"
UNUSUAL: Final = 0xFFF8
"""The attribute bits of magic 2 except the codec. They seldom change from one batch to the next."""
SPECIAL: Final = UNUSUAL & ~(record_layout.TIMESTAMP_TYPE_FLAG | record_layout.TRANSACTIONAL_FLAG)
"""The attribute bits that are set in few batches with data."""
MOST_GAPS: Final = 1000
AT_ONCE: Final = 1 << 20
"""The number of bytes of two segments that are compared at a time."""
TOLERANCE: Final = 3_600_000
"""Allowed difference between clocks in ms: the default of ``message.timestamp.after.max.ms`` from 4.0 on."""


ZEROS_ADVICE: Final = (
    "A broker trims a preallocated file when the next segment begins, so another program wrote these zeros. Copy the "
    "file, truncate the copy at this byte (truncate -s), and check the copy."
)


class _FirstBatch(NamedTuple):
    file: str
    position: int
    offset: int
    value: int
    """A producer id, or a timestamp in ms."""


class LogRemarks:
    """Follows the transactions and timestamps of batches. ``at``: the current time in ms; None accepts any time."""

    def __init__(self, at: int | None) -> None:
        self.latest = INT64_END if at is None else at + TOLERANCE
        """The largest timestamp in ms that is not in the future."""
        self._open: dict[int, _FirstBatch] = {}
        self._future: _FirstBatch | None = None
        self._batches_of_future = 0

    def batch(self, file: str, batch: Batch) -> None:
        """Add a batch. Callers may skip a batch if it has no producer and no timestamp above ``latest``."""
        header = batch.header
        if header.max_timestamp > self.latest:
            position = batch.position + record_layout.BATCH_HEADER.offsets["max_timestamp"]
            self._future = self._future or _FirstBatch(file, position, batch.base_offset, header.max_timestamp)
            self._batches_of_future += 1
        if batch.is_control:
            self._open.pop(header.producer_id, None)
        elif batch.is_transactional:
            place = _FirstBatch(file, batch.position, batch.base_offset, header.producer_id)
            self._open.setdefault(header.producer_id, place)

    def is_open(self, producer_id: int) -> bool:
        return producer_id in self._open

    def close(self, producer_id: int) -> None:
        self._open.pop(producer_id, None)

    def forget(self) -> None:
        """Drop the open transactions, because bytes that were not read may contain their markers."""
        self._open.clear()

    def finish(self) -> Iterator[Finding]:
        """Yield a remark on open transactions and one on future timestamps, each at the first batch of its kind."""
        if self._open:
            first = min(self._open.values(), key=lambda place: place.offset)
            text = (
                f"{many(len(self._open), 'transaction')} without an end marker: read_committed consumers wait at "
                f"offset {first.offset}, where producer {first.value} began a transaction"
            )
            advice = "'kdump transactions' shows which ones hang."
            yield remark(
                first.file, Code.OPEN_TRANSACTION, text, position=first.position, offset=first.offset, advice=advice
            )
        if self._future is not None:
            from kdump.primitives.timestamps import iso_or_ms

            time = iso_or_ms(self._future.value)
            text = (
                f"{many(self._batches_of_future, 'batch', 'batches')} with a timestamp in the future (first: {time}): "
                "retention by time keeps their segments at least until these times"
            )
            yield remark(
                self._future.file,
                Code.FUTURE_TIMESTAMP,
                text,
                position=self._future.position,
                offset=self._future.offset,
                expected=f"{iso_or_ms(self.latest)} or earlier",
                found=time,
                advice="'kdump retention' shows the segments that are kept.",
            )


class _Gap(NamedTuple):
    file: str
    position: int
    first: int
    until: int
    active: bool
    is_too_high: bool
    """Whether the indexes of the segment cannot store the offset after the gap."""
    after: int | None = None
    """The base offset of the segment before the gap, if the gap is between two segments."""

    def has(self, offset: int) -> bool:
        return self.first <= offset < self.until


class GapLimits(NamedTuple):
    """The facts that decide whether compaction explains a gap in the offsets; None for an unknown fact."""

    cleaned: bool | None = None
    """Whether compaction may have left gaps."""
    first_dirty: int | None = None
    """A cleaner may have removed records below this offset. None if there are followers: they copy gaps."""
    stopped_at: int | None = None
    """The log end offset at the broker's clean stop. A batch with this or a higher offset has a wrong offset."""
    high_watermark: int | None = None
    """The high watermark: a batch of the log once ended there. None if the partition has followers.

    A cleaner does not compact the newest segment, so a gap in it around the high watermark is a loss. With followers
    this is not certain: a follower copies its leader's gaps, and the checkpoint of a killed broker is old.
    """


UNKNOWN: Final = GapLimits()
IF_NOT_COMPACTED: Final = (
    f"{MAY_HAVE} In a compacted topic a gap is normal: a follower copies it from the leader. Add the metadata log to "
    "the paths: kdump check then reads cleanup.policy from it."
)


class LogCheck:
    """Checks the log of one partition. Call :meth:`begin` for each segment in offset order, and pass its regions.

    ``findings`` has the findings on single segments; :meth:`finish` yields those on the whole log. ``records``: check
    not only control records but all, and decode those of Kafka's own topics. ``epochs`` are the entries of
    leader-epoch-checkpoint, or None without a valid file. ``gaps``: the facts that may explain gaps. ``at`` is the
    current time in ms. No consumer receives records below ``log_start``. So a wrong checksum and invalid records there
    are only remarks. In a segment that ends at or below ``log_start`` every damaged range is only a remark.
    """

    def __init__(
        self,
        *,
        records: bool = True,
        topic: str | None = None,
        epochs: Sequence[EpochEntry] | None = None,
        epochs_file: str = "",
        gaps: GapLimits = UNKNOWN,
        at: int | None = None,
        log_start: int = 0,
        release: tuple[int, ...] = (),
    ) -> None:
        """``release``: the number of the release whose coordinators load the topic; () for the newest."""
        self._records = records
        self._log_start = log_start
        self._remarks = LogRemarks(at)
        self._topic = topic
        self._decode = _decoder(topic)
        self._loaded = _loaded_versions(topic, release)
        self._is_payload = _is_payload(topic)
        self._epochs, self._epochs_file = epochs, epochs_file
        self._starts = [entry.start_offset for entry in epochs or ()]
        self._limits = gaps
        self.compacted = bool(gaps.cleaned)
        self._compacted_until = 0
        """The offset after the last sign of compaction: a delete horizon, a gap in a segment, or missing records."""
        self.next_offset: int | None = None
        """The expected offset of the next batch: after the last batch, or the base offset of the segment, or None."""
        self.wants_recovery = False
        """Whether the recovery of a broker may truncate the log."""
        self.batches = 0
        self.has_old_messages = False
        """Whether the log has messages of magic 0 or 1."""
        self._epoch = -1
        self._epoch_until = 0
        self._usual_attributes = 0
        self._producers: dict[int, tuple[int, int]] = {}
        self._countable = COUNTED  # bytes; decompressing every refused batch of a log may take hours
        self._gaps: list[_Gap] = []
        self._more_gaps = 0
        self._file, self._active = "", False
        self._segment: Segment | None = None
        self._base: int | None = None
        self._until: int | None = None
        self.findings: list[Finding] = []
        self._has_epoch_finding = self._has_two_writers = False
        self._time_types: list[tuple[int | None, str, int]] = []
        self._cursor = Cursor() if kernel.COMPILED else None

    @property
    def newest(self) -> str:
        return self._file

    @property
    def may_share(self) -> bool:
        """Whether other workers can check batches. This needs compiled code, and is impossible for decoded records."""
        return kernel.COMPILED and (not self._records or self._decode is None)

    def begin(
        self,
        file: str,
        base_offset: int | None,
        *,
        active: bool,
        segment: Segment | None = None,
        until: int | None = None,
    ) -> None:
        """Begin a segment. ``until``: the base offset of the next one. A metadata snapshot has no ``segment``."""
        self._file, self._active, self._has_epoch_finding, self._until = file, active, False, until
        before, self._segment = self._segment, segment
        self._epoch_until = 0
        if base_offset is not None:
            self._begin(base_offset, before)

    def forget(self) -> None:
        """Reset the state after a segment that is unreadable or was not given."""
        self.next_offset = None
        self._producers.clear()
        self._remarks.forget()
        self._epoch, self._epoch_until = -1, 0

    def finish(
        self,
        cut: Sequence[int] = (),
        vanished: Collection[int] = (),
        restored: Sequence[tuple[int, int]] = (),
        *,
        knows_policy: bool = True,
    ) -> Iterator[Finding]:
        """Yield the findings on the whole log: gaps, timestamp types, open transactions and future timestamps.

        A gap in the newest segment is a loss if compaction is unknown. Any gap is a loss if compaction is excluded.
        Gaps after the first MOST_GAPS are only counted.
        ``cut`` has the base offsets of segments whose index points past their log: a gap after such a segment is a
        loss. ``vanished`` has offsets in both indexes that no batch has: a gap with such an offset is a loss, or the
        next batch has a wrong offset that is too high for the indexes. ``restored`` has ranges of offsets (begin, end)
        in segments that a start restores: gaps in them are dropped. ``knows_policy``: cleanup.policy is known.
        """
        last_kept = self._gaps[-1:]
        self._gaps = [
            gap for gap in self._gaps if not any(begin <= gap.first and gap.until <= end for begin, end in restored)
        ]
        proven = {
            gap
            for gap in self._gaps
            if self._is_lost_segment(gap)
            or (self._limits.stopped_at is not None and gap.until >= self._limits.stopped_at)
            or (gap.active and gap.after is None and gap.first < (self._limits.high_watermark or 0) < gap.until)
            or (gap.after is not None and any(gap.after <= base < gap.until for base in cut))
            or any(map(gap.has, vanished))
        }
        lost = [
            gap
            for gap in self._gaps
            if gap in proven or (not self.compacted and (gap.active or self._limits.cleaned is False))
        ]
        for gap in lost:
            indexed = list(filter(gap.has, vanished))
            is_damage = gap.is_too_high and bool(indexed) and (self.next_offset or 0) > gap.until
            text = f"{offsets_are(gap.first, gap.until - 1)} missing before the batch at byte {gap.position}"
            if is_damage:
                text = (
                    f"the batch begins at offset {gap.until}, but the indexes have {max(indexed)} as its last offset: "
                    "its base offset, which has no checksum, is damaged"
                )
            yield Finding(
                level=Level.LOG,
                file=gap.file,
                kind=Code.OFFSET_TOO_HIGH if is_damage else Code.GAP,
                text=text,
                position=gap.position,
                offset=gap.first,
                expected=gap.first,
                found=gap.until,
                advice=TAKE_UNDAMAGED if is_damage else MAY_HAVE if knows_policy or gap in proven else IF_NOT_COMPACTED,
            )
        if len(self._time_types) > 2:
            kind, file, position = self._time_types[1]
            yield Finding(
                level=Level.REMARK,
                file=file,
                kind=Code.TIMESTAMP_TYPE,
                text=f"the timestamp type changes {len(self._time_types) - 1} times in the partition, first to "
                f"{TIMESTAMP_TYPES[kind]}: the topic's config changed several times, or a bit of a batch is wrong",
                position=position,
            )
        count = len(self._gaps) + self._more_gaps - len(lost)
        if count:
            kept = next((gap for gap in self._gaps if gap not in lost), None)
            gap = kept or last_kept[0]
            known = "caused by compaction" if self.compacted else "caused by compaction or by lost data"
            yield Finding(
                level=Level.REMARK,
                file=gap.file,
                kind=Code.COMPACTION,
                text=f"{many(count, 'gap' if kept else 'more gap')} in the offsets of the partition, {known}; "
                f"the first is {'before' if kept else 'after'} byte {gap.position}",
                position=gap.position,
                offset=gap.first if kept else None,
            )
        yield from self._remarks.finish()

    def _is_lost_segment(self, gap: _Gap) -> bool:
        """Return whether a gap is a lost segment: it is between two segments, after the cleaner checkpoint.

        A cleaner replaces segments before it writes its checkpoint (``LogCleanerManager.doneCleaning``). If the cleaner
        stopped in between, there are signs of compaction after the checkpoint. Then the gap is not a loss.
        """
        first = self._limits.first_dirty
        return first is not None and gap.after is not None and gap.until > first >= self._compacted_until

    def _report(self, kind: str, text: str, position: int | None, **rest: object) -> None:
        fields: dict[str, Any] = {"level": Level.LOG, "file": self._file, **rest}
        self.findings.append(Finding(kind=kind, text=text, position=position, **fields))

    def _begin(self, base_offset: int, before: Segment | None) -> None:
        if self.next_offset is not None and base_offset < self.next_offset:
            if before is not None and self._segment is not None and _repeats(before, self._segment, base_offset):
                self._report(
                    Code.BASE_OFFSET,
                    f"the segment repeats the last batches of the previous segment, from offset {base_offset} on: "
                    "consumers receive each record once",
                    0,
                    level=Level.REMARK,
                )
                self._producers.clear()
                self._epoch, self._epoch_until = -1, 0
                self.next_offset = self._base = base_offset
                return
            self._report(
                Code.BASE_OFFSET,
                f"the name of the segment has offset {base_offset}, but the previous segment ends at offset "
                f"{self.next_offset - 1}",
                0,
                expected=f"{self.next_offset} or more",
                found=base_offset,
            )
        elif self.next_offset is not None and base_offset > self.next_offset:
            self._gap(0, self.next_offset, base_offset, self._base)
        self.next_offset = self._base = base_offset

    def end(self, region: Damage | Trailing | Padding) -> None:
        self.wants_recovery = True
        self._producers.clear()
        if isinstance(region, Damage):
            self._remarks.forget()
        if isinstance(region, Padding):
            reason = ZEROS if region.size >= record_layout.UP_TO_MAGIC else FEW_ZEROS
            text = f"{region} follow the last batch: {reason}"
            if self._active or region.size < record_layout.LOG_OVERHEAD.size or self._is_below:
                self._report(Code.ZERO_TAIL, text, region.position, level=Level.REMARK)
                return
            text = f"{region} follow the last batch of a segment that is not the last: consumers fail at these bytes"
            self._report(Code.ZERO_TAIL, text, region.position, offset=self.next_offset, advice=ZEROS_ADVICE)
        elif isinstance(region, Trailing):
            from kdump.segments import log_end

            found = log_end.tail(self._segment, region)
            level, advice = (Level.LOG, LOG_ADVICE) if found.is_damage else (Level.REMARK, "")
            text = found.text
            if self._is_below:
                level, advice, text = Level.REMARK, "", text + self._below
            elif region.size < record_layout.LOG_OVERHEAD.size and self.next_offset == self._until is not None:
                level, advice = Level.REMARK, ""
                text += f". Consumers ignore {many(region.size, 'byte')}, and the next segment continues the offsets"
            self._report(Code.END_OF_LOG, text, region.position, level=level, offset=self.next_offset, advice=advice)
        else:
            region = self._shown(region)
            level, advice, text, until = Level.LOG, LOG_ADVICE, str(region), region.missing_until
            # a broker skips a batch by its size, even if its checksum is wrong
            is_below = until is not None and region.missing_from != until <= self._log_start
            if self._is_below or (region.kind == Code.CRC and is_below):
                level, advice, text = Level.REMARK, "", text + self._below
            self._report(
                region.kind,
                text,
                region.position,
                offset=region.missing_from,
                expected=text_of(region.expected),
                found=text_of(region.found),
                advice=advice,
                level=level,
            )
            self.next_offset = until if until is not None else self.next_offset

    @property
    def _is_below(self) -> bool:
        """Whether all offsets of the segment are below the log start offset."""
        return self._until is not None and self._until <= self._log_start

    @property
    def _below(self) -> str:
        return f", below the log start offset {self._log_start}: no consumer receives these records"

    def _gap(self, position: int, first: int, until: int, after: int | None = None) -> None:
        if after is None:
            self._compacted_until = max(until, self._compacted_until)
        if until <= self._log_start:
            return
        if len(self._gaps) < MOST_GAPS:
            is_too_high = after is None and until - (self._base or 0) >= 1 << 31
            self._gaps.append(_Gap(self._file, position, first, until, self._active, is_too_high, after))
        else:
            self._more_gaps += 1

    def add(self, batches: Batches) -> None:
        if isinstance(batches, Run):
            self._run(batches)
        else:
            self._batch(batches.first)

    def _run(self, run: Run) -> None:
        agrees = self.look(run)
        is_plain = not run.first.attributes & SPECIAL and run.greatest("max_timestamp") <= self._remarks.latest
        usual = batches.usual(run.rows, agrees) if is_plain else bytes(run.batch_count)
        row = 0
        while row < run.batch_count:
            until = usual.find(0, row)
            until = run.batch_count if until < 0 else until
            if until > row and self._is_in_epoch(run, row, until):
                self._go_on(run, row, until)
                row = until
            else:
                self._batch(run.batch(row), agrees=bool(agrees[row]))
                row += 1

    def _is_in_epoch(self, run: Run, row: int, until: int) -> bool:
        is_same = run.field("partition_leader_epoch", row) == self._epoch >= 0
        return is_same and run.field("base_offset", until - 1) < self._epoch_until

    def _go_on(self, run: Run, row: int, until: int) -> None:
        """Skip batches with usual headers, from ``row`` up to ``until``. Check those whose producer sequence jumps."""
        if run.greatest("producer_id", row, until) >= 0:
            names = ("producer_id", "producer_epoch", "base_sequence", "last_sequence")
            columns = [run.column(name, row, until) for name in names]
            known, is_open = self._producers, self._remarks.is_open
            transactional = run.first.is_transactional
            for at, producer, epoch, sequence, last in zip(range(row, until), *columns, strict=True):
                if producer < 0:
                    continue
                is_next = sequence > 0 and known.get(producer) == (epoch, sequence - 1)
                if is_next and is_open(producer) == transactional:
                    known[producer] = (epoch, last)
                    continue
                self._pass_over(run, row, at)
                self._batch(run.batch(at), agrees=True)
                row = at + 1
        self._pass_over(run, row, until)

    def _pass_over(self, run: Run, row: int, until: int) -> None:
        self.batches += until - row
        self.next_offset = run.field("last_offset", until - 1) + 1

    def _batch(self, batch: RecordBatch, *, agrees: bool = False) -> None:
        """Check the next batch. ``agrees``: its records are known to match its header."""
        self.batches += 1
        if isinstance(batch, Batch) and self._is_usual(batch):
            if self._records and not agrees:
                self._inside(batch)
            self.next_offset = batch.last_offset + 1
            return
        try:
            base = batch.base_offset
        except DamageError as damage:
            self._unreadable(batch, damage)
            base = batch.last_offset
        if self.next_offset is not None and base != self.next_offset:
            if base > self.next_offset:
                self._gap(batch.position, self.next_offset, base)
                self._producers.clear()
            else:
                self.wants_recovery = True
                self._report(
                    Code.OFFSET_ORDER,
                    f"the batch begins at offset {base}, but the previous batch ends at offset {self.next_offset - 1}",
                    batch.position,
                    offset=base,
                    expected=f"{self.next_offset} or more",
                    found=base,
                    advice=self._two_writers(batch, base),
                )
        if batch.attributes & RESERVED[batch.magic]:
            self._report(
                Code.ATTRIBUTES,
                f"the batch has attribute bits that magic {batch.magic} does not use",
                _at(batch, "attributes") if batch.magic >= 2 else batch.position + MAGIC_POSITION + 1,
                expected=f"no bit of {RESERVED[batch.magic]:#06x}",
                found=f"{batch.attributes & 0xFFFF:#06x}",
            )
        if isinstance(batch, Batch):
            self._header(batch, base)
        elif isinstance(batch, Message):
            self._message(batch)
        if (self._records or batch.is_control) and not agrees:
            self._inside(batch)
        self.next_offset = batch.last_offset + 1

    def _is_usual(self, batch: Batch) -> bool:
        """Return whether a header is as expected: no producer, the next offset, the same epoch and timestamp type."""
        header = batch.header
        base, epoch = header.base_offset, header.partition_leader_epoch
        return (
            base == self.next_offset
            and header.records_count == header.last_offset_delta + 1 > 0
            and header.attributes & UNUSUAL == self._usual_attributes
            and header.producer_id == header.producer_epoch == header.base_sequence == -1
            and epoch == self._epoch >= 0
            and base < self._epoch_until
            and header.max_timestamp <= self._remarks.latest
        )

    def _header(self, batch: Batch, base: int) -> None:
        self._remarks.batch(self._file, batch)
        header = batch.header
        delta, count = header.last_offset_delta, header.records_count
        if not 0 <= count <= delta + 1:
            field, text = ("last_offset_delta", delta) if delta < 0 else ("records_count", count)
            self._report(
                Code.RECORD_COUNT,
                f"the header of the batch counts {many(count, 'record')}, but its last offset delta is {delta}",
                _at(batch, field),
                expected=f"0 to {delta + 1} records" if delta >= 0 else "a last offset delta of 0 or more",
                found=text,
            )
        elif count == 0 and batch.size > record_layout.BATCH_HEADER.size:
            self._report(
                Code.RECORD_COUNT,
                f"the header of the batch has no records, but {batch.size - record_layout.BATCH_HEADER.size} bytes of "
                "records follow it",
                _at(batch, "records_count"),
                found=0,
            )
        elif count <= delta:
            self._is_compacted(batch)
        if batch.delete_horizon_ms is not None:
            if self._records and count == delta + 1 and not batch.is_control:
                self._horizon(batch)
            self._is_compacted(batch)
        kind = batch.timestamp_type
        if not batch.is_control:
            self._usual_attributes = header.attributes & record_layout.TIMESTAMP_TYPE_FLAG
        changes = not self._time_types or self._time_types[-1][0] != kind
        if changes and not batch.is_control and len(self._time_types) < MOST_GAPS:
            self._time_types.append((kind, self._file, batch.position))
        self._leader_epoch(batch, base)
        self._producer(batch)

    def _is_compacted(self, batch: Batch) -> None:
        self.compacted = True
        self._compacted_until = max(batch.last_offset + 1, self._compacted_until)

    def _horizon(self, batch: Batch) -> None:
        """Compare a delete horizon with the records: compaction sets one only in a batch with a tombstone (KIP-534)."""
        try:
            needless = all(record.value is not None for record in batch.records())
        except DamageError:  # reported by _inside
            return
        if needless:
            self._report(
                Code.DELETE_HORIZON,
                "the batch has a delete horizon, but no tombstone and no removed record",
                _at(batch, "attributes"),
                offset=batch.last_offset,
                expected="no delete horizon",
                found=batch.delete_horizon_ms,
            )

    def _message(self, message: Message) -> None:
        self.has_old_messages = True
        try:
            sizes = message.key_size, message.value_size
        except DamageError as damage:
            if not self._records:
                self._unreadable(message, damage)
            return
        if min(sizes) < -1:
            self._report(Code.KEY_SIZE, "a key or value has a negative size other than -1 (null)", message.position)

    def _two_writers(self, batch: RecordBatch, base: int) -> str:
        """Return the advice on the first batch that goes back to an offset of another leader epoch; "" for others."""
        folder = posixpath.dirname(self._file)
        topic, partition = folder_name(folder)
        epochs = sorted({self._epoch, batch.partition_leader_epoch}) if isinstance(batch, Batch) else []
        if self._has_two_writers or topic is None or len(epochs) < 2 or epochs[0] < 0:
            return ""
        self._has_two_writers = True
        record = f"{shell_pattern(f'{topic}-{partition}')}@{base}"
        return (
            f"The leaders of epochs {epochs[0]} and {epochs[1]} both wrote offset {base}: two brokers wrote this log. "
            f"kdump explain {record} --in {shell_path(folder)} shows each of these records, and the one that consumers "
            "receive."
        )

    def _new_epochs(self) -> str:
        folder = shell_path(posixpath.dirname(self._epochs_file) or ".")
        return f"The batches have the right epochs: {salvage([folder])} writes the partition with a new checkpoint."

    def _leader_epoch(self, batch: Batch, base: int) -> None:
        epoch, position = batch.partition_leader_epoch, _at(batch, "partition_leader_epoch")
        if epoch < self._epoch or epoch < -1:
            self._report(
                Code.LEADER_EPOCH,
                f"the leader epoch of the batch is {epoch}, lower than that of the previous batch",
                position,
                offset=base,
                expected=f"{max(self._epoch, -1)} or more",
                found=epoch,
            )
            return
        self._epoch = epoch
        self._epoch_until = INT64_END
        if epoch < 0 or self._has_epoch_finding or self._epochs is None:
            return
        if not self._starts:
            self._has_epoch_finding = True
            self._report(
                Code.LEADER_EPOCH,
                f"the file has no epoch, but {self._file} has batches of leader epoch {epoch}: replicas cannot be "
                "truncated by leader epoch",
                None,
                level=Level.DERIVED,
                file=self._epochs_file,
                offset=base,
                expected=epoch,
                found="no epoch",
                advice=self._new_epochs(),
            )
            return
        at = bisect_right(self._starts, base) - 1
        known = self._epochs[at].epoch if at >= 0 else None
        self._epoch_until = self._starts[at + 1] if at + 1 < len(self._starts) else INT64_END
        if known != epoch and (known is not None or base >= self._starts[0]):
            self._has_epoch_finding = True
            self._report(
                Code.LEADER_EPOCH,
                f"this file has another leader epoch for offset {base} than the batch in {self._file} at byte "
                f"{position}",
                None,
                level=Level.DERIVED,
                file=self._epochs_file,
                entry=at,
                offset=base,
                expected=epoch,
                found=known,
                advice=self._new_epochs(),
            )

    def _producer(self, batch: Batch) -> None:
        header = batch.header
        producer, epoch, sequence = header.producer_id, header.producer_epoch, header.base_sequence
        if producer < 0:
            # Brokers write sequence 0 in their own batches (offsets, groups), KafkaJS also epoch 0.
            # DefaultRecordBatch.hasProducerId compares only the id.
            if producer != -1 or epoch not in {-1, 0} or sequence not in {-1, 0} or batch.is_transactional:
                self._report(
                    Code.PRODUCER,
                    "the batch has no producer id, but has other producer fields",
                    _at(batch, "producer_id"),
                    expected="producer id -1, epoch and sequence -1 or 0, not transactional",
                    found=f"producer id {producer}, epoch {epoch}, sequence {sequence}"
                    f"{', transactional' if batch.is_transactional else ''}",
                )
            return
        known = self._producers.get(producer)
        if epoch < 0 or (sequence < 0) != batch.is_control or (known is not None and epoch < known[0]):
            self._report(
                Code.PRODUCER,
                f"producer {producer}: epoch {epoch} and sequence {sequence} are invalid, or contradict earlier "
                "batches of this producer",
                _at(batch, "producer_epoch"),
                expected=f"epoch {known[0] if known else 0} or more",
                found=epoch,
            )
            return
        if not (batch.is_transactional or batch.is_control) and self._remarks.is_open(producer):
            self._report(
                Code.PRODUCER,
                f"the batch is not transactional, but a transaction of producer {producer} is open: a broker that "
                "reads the log for its producer state does not start",
                _at(batch, "attributes"),
                offset=batch.base_offset,
            )
            self._remarks.close(producer)
        if batch.is_control:
            self._producers[producer] = (epoch, known[1] if known is not None and known[0] == epoch else -1)
            return
        if known is not None and known[0] == epoch and known[1] >= 0 and not self.compacted:
            expected = magic_2.increment_sequence(known[1], 1)
            if sequence != expected:
                self._report(
                    Code.SEQUENCE,
                    f"producer {producer}, epoch {epoch}: a sequence number is repeated or missing",
                    _at(batch, "base_sequence"),
                    offset=batch.base_offset,
                    expected=expected,
                    found=sequence,
                )
        self._producers[producer] = (epoch, batch.last_sequence)

    def _unreadable(self, batch: RecordBatch, damage: DamageError) -> None:
        damage = self._shown(damage)
        if isinstance(damage, LimitError):
            size = batch.uncompressed_size() if isinstance(batch, Batch) and self._countable > 0 else None
            self._countable -= size or COUNTED
            enough = "a larger --max-batch-bytes" if size is None else f"--max-batch-bytes {size} or more"
            self._report(
                damage.kind,
                f"the records of the batch were not checked: {damage.reason}",
                batch.position,
                level=Level.REMARK,
                offset=batch.last_offset,
                expected=text_of(damage.expected),
                found=text_of(damage.found),
                advice=f"This is a limit of kdump, not damage. To check the records, give {enough}.",
            )
            return
        self._stops(
            batch,
            damage.kind,
            f"the records of the batch cannot be read: {damage.reason}",
            expected=text_of(damage.expected),
            found=text_of(damage.found),
        )

    def _shown(self, damage: AnyDamage) -> AnyDamage:
        from kdump.rows.redaction import shown

        return shown(damage, self._topic)

    def _stops(
        self, batch: RecordBatch, kind: str, why: str, *, expected: str | None = None, found: str | None = None
    ) -> None:
        """Add the finding on a batch with a correct CRC and invalid records."""
        is_below = batch.last_offset < self._log_start
        self._report(
            kind,
            f"the CRC of the batch is correct, but {why}{self._below if is_below else ''}",
            batch.position,
            level=Level.REMARK if is_below else Level.LOG,
            offset=batch.last_offset,
            expected=expected,
            found=found,
            advice="" if is_below else self._around(batch),
            poison=not is_below and METADATA_LOG not in self._file,
        )

    def _around(self, batch: RecordBatch) -> str:
        """Return the advice on a batch with invalid records: commands that copy the batches around it, if possible."""
        if METADATA_LOG in self._file:
            return (
                "The batch was written with this fault: a controller cannot replay it. Take the log of another "
                "controller."
            )
        try:
            base = batch.base_offset
        except DamageError:  # a compressed message of magic 0 or 1 that cannot be decompressed
            base = batch.last_offset
        cut = f"kdump slice {shell_path(posixpath.dirname(self._file) or '.')} --offset"
        before = (
            f"{cut} ..{base - 1} --out before.log copies the batches before it. " if self.batches > 1 and base else ""
        )
        after = f"{cut} {batch.last_offset + 1}.. --out after.log copies the batches after it."
        fault = "The batch was written with this fault: consumers fail at it, but a broker and kdump salvage keep it."
        return f"{fault} {before}{after}"

    def _inside(self, batch: RecordBatch) -> None:
        """Check the records of a batch, and compare its header with them."""
        last, highest = None, -1
        odd: list[str] = []
        offsets: list[int] = []
        unread: list[tuple[bool, str]] = []
        stops: list[str] = []
        try:
            if isinstance(batch, Batch) and self._agrees(batch):
                return
            for record in batch.records():
                odd += _oddities(batch, record, last)
                last = record.offset
                offsets.append(last)
                highest = max(highest, record.timestamp)
                if batch.is_control:
                    self._control(batch, control.read_key(record.key).type, record.value)
                elif self._decode is not None:
                    made = self._decode(record.key, record.value)
                    reason = _refusal(made, self._loaded)
                    stops += [f"offset {record.offset}: {reason}"] if reason else ()
                    takes_more = self._topic in COORDINATED
                    unread += () if reason else _payload_faults(made, record.offset, takes_more=takes_more)
        except DamageError as damage:
            self._unreadable(batch, damage)
            return
        wrong = misnumbered(batch, offsets) if offsets else None
        if wrong is not None:
            odd = [wrong.reason, *odd]
        if odd:
            self._stops(batch, Code.RECORDS, f"Kafka never writes such records: {_first_of(odd)}")
        self._unread(batch, unread)
        if stops:
            self._report(
                Code.COORDINATOR_VERSION,
                f"the coordinator cannot load this partition: {_first_of(stops)}",
                batch.position,
                offset=batch.last_offset,
                advice="Start a release that knows this record. Until then the groups or transactional ids of this "
                "partition do not work.",
            )
        if last is None:
            return
        if last > batch.last_offset:
            self._report(
                Code.LAST_OFFSET,
                f"the header of the batch has last offset {batch.last_offset}, but a record has offset {last}",
                batch.position,
                offset=batch.last_offset,
                expected=f"{last} or more",
                found=batch.last_offset,
            )
        if batch.timestamp_type != LOG_APPEND_TIME and not _is_plain(batch) and highest != batch.max_timestamp:
            self._report(
                Code.MAX_TIMESTAMP,
                f"the header of the batch has max timestamp {batch.max_timestamp}, but its records have {highest}",
                batch.position,
                offset=batch.last_offset,
                expected=highest,
                found=batch.max_timestamp,
            )

    def _unread(self, batch: RecordBatch, unread: list[tuple[bool, str]]) -> None:
        """Add the findings on records of Kafka's own topics. ``unread`` has the pairs of :func:`_payload_faults`."""
        broken = [reason for known, reason in unread if known]
        unknown = [reason for known, reason in unread if not known]
        if broken:
            self._report(
                Code.PAYLOAD,
                f"a record of Kafka's own topic cannot be decoded: {_first_of(broken)}",
                batch.position,
                offset=batch.last_offset,
                advice=TAKE_PARTITION,
            )
        if unknown:
            self._report(
                Code.UNKNOWN_PAYLOAD,
                f"a record comes from a newer release, or a byte of it has changed: {_first_of(unknown)}",
                batch.position,
                level=Level.REMARK,
                offset=batch.last_offset,
            )

    def _agrees(self, batch: Batch) -> bool:
        """Return whether records match their header; False also if only Python can check them. Raises DamageError."""
        if self._cursor is None or self._decode is not None or batch.is_control or not batch.count:
            return False
        data, start = batch.payload()
        return self._cursor.begin(data, start, batch.header, ()) and self._cursor.agrees()

    def look(self, run: Run) -> bytearray:
        """Return 1 for each batch of a run whose records need no further check, else 0. Workers call this method."""
        if run.found is not None:
            return run.found
        is_left = self._records and self._decode is not None and (self._is_payload is None or run.first.codec)
        if run.first.is_control or is_left:
            return bytearray(run.batch_count)
        if not self._records:
            return bytearray(b"\1") * run.batch_count
        if not run.first.codec:
            agrees = run.stack(Cursor()).agreeing()
            return agrees if self._is_payload is None else _with_payloads(run, agrees, self._is_payload)
        found = bytearray(run.batch_count)
        for row in range(run.batch_count):
            with suppress(DamageError):  # reported when the batch is checked
                found[row] = self._agrees(run.batch(row))
        return found

    def _control(self, batch: RecordBatch, kind: int, value: bytes | None) -> None:
        of_producer = batch.producer_id is not None and batch.producer_id >= 0
        if kind not in control.TYPES or (kind in control.MARKERS) != of_producer:
            raise DamageError(
                Code.CONTROL_RECORD.kind, f"a control record of type {kind} does not occur in this topic", found=kind
            )
        if of_producer:
            control.read_marker(value)


def _repeats(before: Segment, segment: Segment, base_offset: int) -> bool:
    """Return whether a segment begins with the bytes that the previous segment has from ``base_offset`` on."""
    with before.open() as old, segment.open() as new:
        start = start_of(old, base_offset)
        rest = old.size - start
        if not 0 < rest <= new.size:
            return False
        pieces = ((at, min(AT_ONCE, rest - at)) for at in range(0, rest, AT_ONCE))
        return all(old.read(start + at, size) == new.read(at, size) for at, size in pieces)


def _decoder(topic: str | None) -> Callable[[bytes | None, bytes | None], DecodedRecord] | None:
    if topic is None or not topic.startswith("__"):
        return None
    from kdump.internal_topics.decode import decoder_of

    return decoder_of(topic)


COORDINATED: Final = frozenset({CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE})


def _loaded_versions(topic: str | None, release: tuple[int, ...]) -> Mapping[int, Versions]:
    """Return record type -> the versions of its value that the coordinator of ``topic`` can load; {} for no limit.

    A coordinator fails at another version, and ignores unknown types (``CoordinatorLoaderImpl``). The transaction
    coordinator of 4.3 and later also ignores unknown versions (``TransactionLog``).
    """
    if topic not in COORDINATED:
        return {}
    from kdump.internal_topics.decode import COORDINATORS
    from kdump.internal_topics.schema import NEWEST, by_type

    of = release or NEWEST
    if topic == TRANSACTION_STATE and of >= (4, 3):
        return {}
    found = by_type(COORDINATORS[topic], "Value", of)
    return {number: versions for number, message in found.items() if (versions := message.versions(of)) is not None}


def _refusal(made: DecodedRecord, loaded: Mapping[int, Versions]) -> str:
    """Return the reason why a coordinator fails at a record, or "". ``loaded``: see :func:`_loaded_versions`."""
    value, versions = made.value, loaded.get(-1 if made.type is None else made.type)
    status = None if value is None or value.values is None else value.values.get("transactionStatus")
    if isinstance(status, int):
        from kdump.internal_topics.transaction_state import STATES

        if status not in range(len(STATES)):
            return f"transactionStatus {status} is unknown"
    if value is None or value.version is None or versions is None or versions.has(value.version):
        return ""
    return f"version {value.version} of {value.name} is unknown"


def _is_payload(topic: str | None) -> Callable[[bytes | None, bytes | None], bool] | None:
    """Return a compiled test whether a key and a value are well-formed; None if there is none for the topic."""
    if f"{topic}-" != METADATA_LOG or not kernel.COMPILED:
        return None
    from kdump.internal_topics.decode import is_metadata_record

    return is_metadata_record


def _with_payloads(run: Run, agrees: bytearray, is_payload: Callable[[bytes | None, bytes | None], bool]) -> bytearray:
    """Return ``agrees``, with 0 for each batch with a malformed key or value."""
    records, whole = run.brief_records()
    at = 0
    for row, count in enumerate(run.column("records_count", 0, whole)):
        until = at + count
        agrees[row] &= all(is_payload(key, value) for _, _, key, value, _ in records[at:until])
        at = until
    agrees[whole:] = bytes(len(agrees) - whole)
    return agrees


def _at(batch: RecordBatch, field: str) -> int:
    return batch.position + record_layout.BATCH_HEADER.offsets[field]


def _payload_faults(made: DecodedRecord, offset: int, *, takes_more: bool) -> Iterator[tuple[bool, str]]:
    """Yield a pair for each unreadable key or value: whether its type and version are known, and the reason.

    ``takes_more``: the record is one of a coordinator, which ignores bytes after the fields (a broker of 4.3.1).
    """
    for part in (made.key, made.value):
        if part is not None and part.reason:
            is_more = takes_more and part.values is not None
            yield part.known and not is_more, f"offset {offset}: {part.reason}"


def _oddities(batch: RecordBatch, record: Record, before: int | None) -> Iterator[str]:
    """Yield a sentence for each value of a record that Kafka never writes. ``before``: offset of the previous record.

    The order of offsets is checked only in a compacted batch. ``misnumbered()`` checks it in other batches.
    """
    if before is not None and record.offset <= before and not batch.is_whole:
        yield f"offset {record.offset} follows offset {before}"
    if record.crc_valid is False:
        yield f"the record of offset {record.offset} has a wrong CRC"
    if batch.magic == record_layout.MAGIC_2 and record.attributes:
        yield f"the record of offset {record.offset} has attributes {record.attributes}"


def _first_of(reasons: list[str]) -> str:
    return reasons[0] + (f", and {len(reasons) - 1} more in this batch" if len(reasons) > 1 else "")


def _is_plain(batch: RecordBatch) -> bool:
    """Return whether a batch is one uncompressed message of magic 0 or 1, which has no batch header."""
    return isinstance(batch, Message) and batch.codec == 0
