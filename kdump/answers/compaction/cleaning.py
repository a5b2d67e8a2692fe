"""Simulates one cleaning of a compacted log: the records that it removes, with reasons, and the largest keys.

:class:`Cleaning` fills an offset map with the keys of the dirty part, then finds the records that a cleaning with this
map removes. No file is written. :mod:`~kdump.answers.compaction.compacted_logs` determines the dirty part.
Aborted transactions come from ``.txnindex`` files. Source: Kafka's classes Cleaner and CleanedTransactionMetadata.
"""

from __future__ import annotations

import posixpath
import sys
from array import array
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from heapq import heapify, heappop, nlargest
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from kdump import kernel
from kdump.answers.compaction.key_tables import MARKER, REASONS, KeyFacts, all_keys, key_sizes, offset_map
from kdump.errors import DamageError, UnreadableError, discard
from kdump.formats import txn_index
from kdump.formats.record_layout import CODEC_MASK, MAGIC_2
from kdump.log_reader.region_stream import wrong_crc
from kdump.records import control
from kdump.records.magic_2 import Batch
from kdump.records.record_batch import RecordBatch
from kdump.segments import log_end, resync, walk
from kdump.segments.batch_runs import Run
from kdump.segments.regions import PLAIN_DATA, Damage, Trailing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from kdump.answers.collector import Place
    from kdump.answers.compaction.key_tables import AnyFacts, AnyKeySizes, AnyOffsetMap, Judged, KeyPart
    from kdump.kernel import digests as compiled
    from kdump.log_dirs.files import Source
    from kdump.log_dirs.partition import Segment

    Log: TypeAlias = Iterable[tuple[Segment, "CleanerBatch"]]
    KeyPlace: TypeAlias = tuple[int, int]


def aborted_transactions(place: Place, segments: Iterable[Segment]) -> list[tuple[int, int]]:
    """Return (first offset, producer id) for each ``.txnindex`` entry; report a bad index. Raises UnreadableError."""
    found = []
    for segment in segments:
        data = segment.sibling("txnindex")
        try:
            entries = () if data is None else txn_index.read(data)
        except DamageError as damage:
            place.report.wrong(f"{segment.files.shown(segment.siblings['txnindex'])}: {damage}")
            entries = ()
        found += [(entry.first_offset, entry.producer_id) for entry in entries]
    return found


class CleanedTransactions:
    """Decides by transactions which batches a cleaning discards. It must get all transactional and control ones."""

    def __init__(self, aborted: Iterable[tuple[int, int]]) -> None:
        self._aborted = list(aborted)
        heapify(self._aborted)
        self._ongoing_aborted: dict[int, bool] = {}
        """Producer id of an open aborted transaction -> whether one of its batches was in the log."""
        self._ongoing_committed: set[int] = set()

    def discards(self, batch: RecordBatch) -> bool:
        """Return whether a batch is aborted data, or a marker whose data or record is gone. Raises DamageError."""
        while self._aborted and self._aborted[0][0] <= batch.last_offset:
            self._ongoing_aborted.setdefault(heappop(self._aborted)[1], False)
        producer_id = -1 if batch.producer_id is None else batch.producer_id
        if batch.is_control:
            return self._discards_marker(batch, producer_id)
        if not batch.is_transactional:
            return False
        if producer_id in self._ongoing_aborted:
            self._ongoing_aborted[producer_id] = True
            return True
        self._ongoing_committed.add(producer_id)
        return False

    def _discards_marker(self, batch: RecordBatch, producer_id: int) -> bool:
        record = next(iter(batch.records()), None)
        if record is None:  # an earlier cleaning removed the record of the marker
            return True
        kind = control.read_key(record.key).type
        if kind == control.ABORT:
            return not self._ongoing_aborted.pop(producer_id, False)
        if kind == control.COMMIT:
            was_there = producer_id in self._ongoing_committed
            self._ongoing_committed.discard(producer_id)
            return not was_there
        return False


if kernel.COMPILED:
    from kdump.kernel.batches import WIDTH

CHUNK: Final = 1 << 13
"""Number of records whose facts are in memory at a time. A larger batch inside a run is in memory as a whole."""


class CleanerWalk:
    """Reads the batches that the log cleaner would read. ``report`` receives texts on unreadable bytes and records.

    Batches with only a wrong CRC are yielded too: neither Cleaner nor MemoryRecords.filterTo verifies the CRC, and a
    cleaning computes it again. ``spoiled`` gets a text for each such batch, and for a truncated batch that is damage.
    """

    def __init__(
        self, transactions: CleanedTransactions, report: Callable[[str], None], spoiled: Callable[[str], None] = discard
    ) -> None:
        self._transactions, self._report, self._spoiled = transactions, report, spoiled

    def batches(self, segment: Segment) -> Iterator[CleanerBatch]:
        """Yield the batches that a cleaner can parse in a segment. Raises UnreadableError."""
        with segment.open() as source:
            for region in resync.read(source, on_error="resync", first_offset=segment.base_offset, runs=PLAIN_DATA):
                if isinstance(region, Run):
                    yield from self._of_run(segment, region)
                elif isinstance(region, Damage):
                    yield from self._of_damage(segment, source, region)
                elif isinstance(region, Trailing):
                    found = log_end.tail(segment, region)
                    if found.is_damage:
                        self._spoiled(f"{segment.name}: byte {region.position}: {found.text}")
                elif isinstance(region, RecordBatch):
                    yield self._of_batch(segment, region)

    def _of_damage(self, segment: Segment, source: Source, damage: Damage) -> Iterator[CleanerBatch]:
        """Yield the batches at the start of a damaged range while only their CRC is wrong. Report the rest."""
        end = damage.position
        for batch in wrong_crc(source, damage) if damage.kind == "crc" else ():
            try:
                for _ in batch.records():
                    pass
            except DamageError:  # the cleaner cannot parse the batch either
                break
            self._spoiled(f"{segment.name}: byte {batch.position}: {damage.reason}")
            end = batch.position + batch.size
            yield self._of_batch(segment, batch)
        if end < damage.position + damage.size:
            self._report(f"{segment.name}: byte {end}: {damage.reason}")

    def _of_run(self, segment: Segment, run: Run) -> Iterator[CleanerBatch]:
        """Yield the batches of a run in parts: the cleaning discards all batches of a part, or none of them."""
        if not run.first.is_transactional:
            yield CleanerRun(segment, run, 0, run.batch_count, self._report, discards=False)
        else:
            first, discards = 0, self._discards(segment, run.first)
            for row in range(1, run.batch_count):
                now = self._discards(segment, run.batch(row))
                if now != discards:
                    yield CleanerRun(segment, run, first, row, self._report, discards=discards)
                    first, discards = row, now
            yield CleanerRun(segment, run, first, run.batch_count, self._report, discards=discards)

    def _of_batch(self, segment: Segment, batch: RecordBatch) -> CleanerBatch:
        return CleanerBatch(segment, batch, self._report, discards=self._discards(segment, batch))

    def _discards(self, segment: Segment, batch: RecordBatch) -> bool:
        """Return whether the cleaning discards a batch. An unreadable marker is reported, and not discarded."""
        try:
            return self._transactions.discards(batch)
        except DamageError as damage:
            self._report(_in_batch(segment, batch, damage))
            return False


def _in_batch(segment: Segment, batch: RecordBatch, damage: DamageError) -> str:
    from kdump.rows.redaction import shown_in

    reason = shown_in(damage, posixpath.dirname(segment.path))
    return f"{segment.name}: byte {walk.in_batch(damage, batch).at}: {reason}"


class CleanerBatch:
    """A batch as the cleaner sees it. ``discards`` is the result of :meth:`CleanedTransactions.discards`."""

    count = 1

    def __init__(self, segment: Segment, first: RecordBatch, report: Callable[[str], None], *, discards: bool) -> None:
        self.first, self.discards = first, discards
        self._segment, self._report = segment, report

    @property
    def last_offset(self) -> int:
        return self.first.last_offset

    def batch(self, number: int) -> RecordBatch:  # noqa: ARG002  there is one
        return self.first

    def read_into(self, keys: AnyFacts) -> Iterator[None]:
        """Put the facts of up to about CHUNK records at a time into ``keys``, and yield None after each chunk."""
        yield from self._read(self.first, keys)

    def _read(self, batch: RecordBatch, keys: AnyFacts) -> Iterator[None]:
        keys.clear()
        if isinstance(keys, KeyFacts) or not isinstance(batch, Batch) or not self._begins(batch, keys):
            yield from self._read_each(batch, keys)
            return
        while keys.left > CHUNK:  # all of them are well-formed
            keys.read_records(CHUNK)
            yield
            keys.clear()
        if keys.read_records(CHUNK):
            keys.end_batch(batch.last_offset)
            yield
        else:
            yield from self._read_each(batch, keys)

    def _begins(self, batch: Batch, keys: compiled.FactBuffer) -> bool:
        """Pass a batch to the compiled reader. A large batch is verified first. Return False if Python must read it."""
        try:
            data, start = batch.payload()
        except DamageError:  # _read_each reports the damage
            return False
        return keys.begin(data, start, batch.header, ()) and keys.left > 0 and (keys.left <= CHUNK or keys.sound())

    def _read_each(self, batch: RecordBatch, keys: AnyFacts) -> Iterator[None]:
        """Read the records in Python, up to the first unreadable record."""
        keys.clear()
        try:
            for record in batch.records():
                keys.add(record.offset, record.size, record.key, record.value is not None)
                if len(keys) >= CHUNK:
                    yield
                    keys.clear()
        except DamageError as damage:
            self._report(_in_batch(self._segment, batch, damage))
        keys.end_batch(batch.last_offset)
        yield


class CleanerRun(CleanerBatch):
    """Consecutive data batches of a batch run: all of them are discarded, or none."""

    def __init__(
        self, segment: Segment, run: Run, row: int, after: int, report: Callable[[str], None], *, discards: bool
    ) -> None:
        super().__init__(segment, run.first, report, discards=discards)
        self._run, self._row, self._after = run, row, after
        self.count = after - row

    @property
    def last_offset(self) -> int:
        return self._run.field("last_offset", self._after - 1)

    def batch(self, number: int) -> RecordBatch:
        return self._run.batch(self._row + number)

    def read_into(self, keys: AnyFacts) -> Iterator[None]:
        row = self._row
        while row < self._after:
            if isinstance(keys, KeyFacts):
                yield from self._read(self._run.batch(row), keys)
                row += 1
                continue
            keys.clear()
            keys.stack(self._run.block, self._run.rows, WIDTH, row, self._after)
            is_broken = keys.read_batches(CHUNK)
            row = keys.row
            if len(keys):
                yield
            if is_broken:
                yield from self._read_each(self._run.batch(row), keys)
                row += 1


def largest_keys(name: str, log: Callable[[], Log], most: int, max_keys: int) -> list[tuple[bytes, int, int]]:
    """Return (key, number of records, bytes) of the ``most`` keys with the most bytes.

    The log is read several times; ``log`` opens it at its start. About ``max_keys`` keys are in memory at a time.
    Raises UnreadableError, also if one of these keys is gone at the last read.
    """
    found: list[tuple[int, int, int, int]] = []
    part = all_keys()
    while part.number < part.of:
        sizes = key_sizes(max_keys, part)
        if not _measure(sizes, log(), max_keys):
            found, part = [], part._replace(number=0, of=part.of * 2)
            continue
        found = nlargest(most, found + sizes.largest(most))
        part = part._replace(number=part.number + 1)
    keys = dict(_keys_at(log(), {(-batch, -record) for _, batch, record, _ in found}))
    if len(keys) < len(found):
        raise UnreadableError(name, "the log changes while kdump reads it", "stop the broker, or read a copy")
    return [(keys[-batch, -record], records, size) for size, batch, record, records in found]


def _measure(sizes: AnyKeySizes, log: Log, max_keys: int) -> bool:
    """Add up the sizes of one part of the keys. Return False if the part has more than ``max_keys`` keys."""
    for _, data in log:
        for _ in () if data.first.is_control else data.read_into(sizes):
            sizes.measure()
            if sizes.keys > max_keys:
                return False
    return True


def _keys_at(log: Log, places: set[KeyPlace]) -> Iterator[tuple[KeyPlace, bytes]]:
    """Yield the places in the log with their keys. A place is two indexes: of a data batch, and of a record in it."""
    wanted = sorted(places, reverse=True)
    done = 0
    for _, data in log:
        if data.first.is_control:
            continue
        while wanted and wanted[-1][0] < done + data.count:
            place = wanted.pop()
            for record in islice(data.batch(place[0] - done).records(), place[1], place[1] + 1):
                yield place, record.key or b""
        if not wanted:
            return
        done += data.count


MAP_ENTRIES: Final = 5_033_164
"""Default capacity of the map in keys: 90 % of 128 MiB (log.cleaner.dedupe.buffer.size), 24 bytes for each key."""


class CleaningLimits(NamedTuple):
    """The capacity of the cleaner's offset map in keys, and the maximum number of keys in kdump's memory."""

    map_entries: int = MAP_ENTRIES
    max_keys: int = MAP_ENTRIES


@dataclass
class Cleaned:
    """The result of a cleaning. ``records`` and ``tombstones`` include the removed ones.

    After ``end`` only aborted data and markers count. ``removed`` counts the removed records by reason. ``offsets`` and
    ``reasons`` list them on request.
    """

    keys: int = 0
    records: int = 0
    tombstones: int = 0
    superseded_bytes: int = 0
    map_fits: bool = True
    end: int = 0
    """The first offset after the cleaned part."""
    removed: Counter[str] = field(default_factory=Counter)
    offsets: array[int] = field(default_factory=lambda: array("q"))
    reasons: bytearray = field(default_factory=bytearray)
    damage: str | None = None
    top: list[tuple[bytes, int, int]] = field(default_factory=list)
    """(key, number of its records, their bytes) for the keys with the most bytes."""

    def add(self, judged: Judged) -> None:
        records, tombstones, gone, size, removed = judged
        self.records += records
        self.tombstones += tombstones
        self.superseded_bytes += size
        for why, count in zip(REASONS[1:], gone[1:], strict=True):
            self.removed[why] += count
        self.list_removed(removed)

    def list_removed(self, removed: Iterable[tuple[int, int]]) -> None:
        for offset, why in removed:
            self.offsets.append(offset)
            self.reasons.append(why)

    def sort(self) -> None:
        """Sort the listed records by offset, then by reason, because a broken log may repeat an offset."""
        order = sorted(range(len(self.offsets)), key=self.reasons.__getitem__)
        order.sort(key=self.offsets.__getitem__)
        self.offsets = array("q", (self.offsets[number] for number in order))
        self.reasons = bytearray(self.reasons[number] for number in order)


class FillPoint(NamedTuple):
    """The record that fills the cleaner's offset map: the index of its chunk, and its index in this chunk."""

    chunk: int
    fact: int


class Cleaning:
    """Simulates the cleaning of the offsets ``dirty`` at the time ``at`` (ms). ``listed``: list the removed records.

    ``delete_retention`` (ms) is for tombstones of magic 0 and 1 only. Batches of magic 2 may have a delete horizon.
    """

    def __init__(
        self,
        place: Place,
        dirty: range,
        limits: CleaningLimits,
        *,
        at: int,
        delete_retention: int,
        listed: bool = False,
        top: int = 0,
    ) -> None:
        self._place, self._since, self._limits, self._at = place, dirty.start, limits, at
        self._listed, self._top = listed, top
        files = place.partition.segments
        bases = [segment.base_offset or 0 for segment in files]
        ends = [*(min(base, sys.maxsize) for base in bases[1:]), sys.maxsize]
        self._segments = [file for file, base in zip(files, bases, strict=True) if base < dirty.stop]
        self._dirty = [
            (file, min(end, dirty.stop)) for file, end in zip(self._segments, ends, strict=False) if end > dirty.start
        ]
        """The dirty segments, each with the offset after its dirty part."""
        self._aborted = aborted_transactions(place, files)
        dirty_on = (file for file, end in zip(files, ends, strict=True) if end > dirty.start)
        self._aborted_dirty = aborted_transactions(place, dirty_on)
        clean = [file for file, base in zip(files, bases, strict=True) if base < dirty.start]
        newest_clean = clean[-1].modified if clean else None
        self._legacy_horizon = 0 if newest_clean is None else newest_clean - delete_retention

    def run(self) -> Cleaned:
        """Return the result of the cleaning. Raises UnreadableError."""
        done = Cleaned()
        count = self._parts()
        whole = all_keys()
        parts = [whole._replace(number=number, of=count) for number in range(count)]
        last = self._fill_point(parts) if count > 1 else None
        for part in parts:
            newest = self._new_map(part)
            done.map_fits = self._fill(newest, last)
            done.keys += newest.keys
            done.end = newest.latest + 1
            self._judge(done, newest, part)
        if count > 1:
            done.sort()
        if self._top:
            name = self._place.partition.name
            done.top = largest_keys(name, partial(self._cleaned, done.end), self._top, self._limits.max_keys)
        return done

    def _parts(self) -> int:
        """Return the number of parts of the keys. A part has about ``max_keys`` keys or fewer, and its own passes."""
        most, in_memory = self._limits
        if most > in_memory:
            most = min(most, sum(_count(segment, most) for segment, _ in self._dirty))
        return max(1, -(-most // in_memory))

    def _new_map(self, part: KeyPart) -> AnyOffsetMap:
        """Return an empty map for a part of the keys. Only a map for all keys has the cleaner's capacity."""
        most = min(self._limits.map_entries, sys.maxsize) if part.of == 1 else sys.maxsize
        return offset_map(self._since, most, min(self._limits), part)

    def _fill_point(self, parts: Sequence[KeyPart]) -> FillPoint | None:
        """Return the record with which the cleaner's offset map is full, or None if it does not become full."""
        found = array("q")
        for part in parts:
            newest = self._new_map(part)
            for number, _ in enumerate(self._dirty_facts(newest)):
                before = newest.keys
                newest.put(0, len(newest))
                if number == len(found):
                    found.append(0)
                found[number] += newest.keys - before
        free_entries = self._limits.map_entries
        for chunk, keys in enumerate(found):
            if keys >= free_entries:
                return FillPoint(chunk, self._first_seen(parts, chunk)[free_entries - 1])
            free_entries -= keys
        return None

    def _first_seen(self, parts: Sequence[KeyPart], chunk: int) -> list[int]:
        """Return the indexes of the records in a chunk whose keys occur for the first time."""
        found: list[int] = []
        for part in parts:
            newest = self._new_map(part)
            for number, _ in enumerate(self._dirty_facts(newest)):
                if number < chunk:
                    newest.put(0, len(newest))
                    continue
                for fact in range(len(newest)):
                    before = newest.keys
                    newest.put(fact, fact + 1)
                    found += [fact] * (newest.keys - before)
                break
        return sorted(found)

    def _fill(self, newest: AnyOffsetMap, last: FillPoint | None) -> bool:
        """Add the dirty part of the log, up to ``last`` if given, to a map; return whether the whole part fits."""
        for number, _ in enumerate(self._dirty_facts(newest)):
            taken = 0
            if last is not None and number == last.chunk:
                taken = newest.put(0, last.fact + 1)
                newest.most = 0
            if newest.put(taken, len(newest)) < len(newest):
                return False
        return True

    def _dirty_facts(self, newest: AnyOffsetMap) -> Iterator[None]:
        """Put the facts of the dirty part into ``newest`` in chunks, and yield None after each chunk.

        As in Kafka's Cleaner, ``newest.latest`` also covers markers, aborted data, and offsets up to the next segment.
        """
        walk = CleanerWalk(CleanedTransactions(self._aborted_dirty), discard)
        for segment, end in self._dirty:
            for data in walk.batches(segment):
                if data.last_offset < self._since:
                    continue
                if data.discards or data.first.is_control:
                    newest.latest = data.last_offset
                else:
                    yield from data.read_into(newest)
            newest.latest = end - 1

    def _judge(self, done: Cleaned, newest: AnyOffsetMap, part: KeyPart) -> None:
        """Add outcomes to ``done``: of records with keys of ``part``, in part 0 also of markers and keyless records."""

        def report(text: str) -> None:
            done.damage = done.damage or text
            self._place.report.damage(text)

        heard = (report, self._place.report.damage) if part.number == 0 else (discard, discard)
        for segment, data in self._cleaned(newest.latest + 1, *heard):
            first, horizon = data.first, data.first.delete_horizon_ms
            if first.is_control:
                if part.number == 0:
                    goes = data.discards and horizon is not None and horizon <= self._at
                    self._judge_marker(done, first, goes=goes)
                continue
            keeps = horizon is None or self._at < horizon
            if first.magic < MAGIC_2:
                keeps = (segment.modified or 0) > self._legacy_horizon
            for _ in data.read_into(newest):
                done.add(newest.judge(discards=data.discards, keeps=keeps, listed=self._listed))

    def _judge_marker(self, done: Cleaned, marker: RecordBatch, *, goes: bool) -> None:
        """Add the records of a marker to ``done``. ``goes``: they are removed. CleanerWalk reports bad markers."""
        try:
            offsets = [record.offset for record in marker.records()]
        except DamageError:
            return
        done.records += len(offsets)
        if goes:
            done.removed[REASONS[MARKER]] += len(offsets)
            done.list_removed((offset, MARKER) for offset in offsets if self._listed)

    def _cleaned(
        self, end: int, report: Callable[[str], None] = discard, spoiled: Callable[[str], None] = discard
    ) -> Iterator[tuple[Segment, CleanerBatch]]:
        """Yield the batches of the segments that a cleaning up to offset ``end`` rewrites. See CleanerWalk."""
        walk = CleanerWalk(CleanedTransactions(self._aborted), report, spoiled)
        for segment in self._segments:
            if (segment.base_offset or 0) >= end:
                break
            for data in walk.batches(segment):
                yield segment, data


def _count(segment: Segment, most: int) -> int:
    """Add up the counts in headers before a malformed batch. A compressed message of magic 0 or 1 adds ``most``."""
    with segment.open() as source:
        batches = (region for region in walk.walk(source) if isinstance(region, RecordBatch))
        return sum(_claimed(batch, most) for batch in batches)


def _claimed(batch: RecordBatch, most: int) -> int:
    if batch.count is not None:
        return max(0, batch.count)
    return most if batch.attributes & CODEC_MASK else 1
