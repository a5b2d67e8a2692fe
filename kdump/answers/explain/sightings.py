"""Reads a log at some offsets (:func:`look`): records, ends of their transactions, batches and unreadable ranges."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from kdump.answers.log_dir_pass import first_segment
from kdump.errors import SILENT, DamageError, UnreadableError, discard
from kdump.formats.record_layout import BATCH_HEADER, MAGIC_2
from kdump.records import control
from kdump.records.record_batch import Batches, RecordBatch, misnumbered
from kdump.segments import log_end, resync
from kdump.segments.index_lookup import Seeker
from kdump.segments.regions import DATA, UNREADABLE, Damage, Trailing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from kdump.errors import Reporter
    from kdump.log_dirs.partition import Segment
    from kdump.segments.regions import Region

TransactionEnd: TypeAlias = Literal["none", "committed", "aborted", "open", "unknown"]
"""The outcome of a record's transaction. "unknown": the transaction marker was not found, or is unreadable."""


class Span(NamedTuple):
    """A batch whose first to last offset includes one of the offsets, and its position."""

    path: str
    position: int
    base: int
    last: int
    epoch: int | None
    producer_id: int | None
    is_transactional: bool
    is_control: bool
    is_empty: bool


class Sighting(NamedTuple):
    """A record in a log, and its batch. ``marker`` is the type of a control record; None for data."""

    offset: int
    batch: Span
    key: bytes | None
    is_tombstone: bool
    marker: str | None
    transaction: TransactionEnd


class LostRange(NamedTuple):
    """A damaged or unreadable range of offsets. ``until`` is the offset after the range, None if unknown."""

    path: str
    position: int
    reason: str
    first: int
    until: int | None
    is_unreadable: bool = False


@dataclass
class Sightings:
    """The contents of a log at some offsets. ``waiting``: producer id -> offsets whose marker is not found yet."""

    records: dict[int, Sighting] = field(default_factory=dict)
    batches: list[Span] = field(default_factory=list)
    lost: list[LostRange] = field(default_factory=list)
    waiting: dict[int, list[int]] = field(default_factory=dict)
    damaged: list[tuple[str, int, str]] = field(default_factory=list)
    """Every damaged range that was read, also outside the requested offsets: file, first byte, reason."""
    older: dict[int, list[Sighting]] = field(default_factory=dict)
    """Offset -> further records at this offset, which do not count (:meth:`add`)."""
    _sorted: list[Span] = field(default_factory=list)

    def covering(self, offset: int) -> Span | None:
        if len(self._sorted) != len(self.batches):
            self._sorted = sorted(self.batches, key=lambda one: (one.base, -1 if one.epoch is None else one.epoch))
        at = bisect_right(self._sorted, offset, key=attrgetter("base")) - 1
        return self._sorted[at] if at >= 0 and self._sorted[at].last >= offset else None

    def add(self, found: Sighting) -> None:
        """Add a record. Of two at an offset, the one with the newer leader epoch counts, as after truncation (KIP-101).

        If the epochs are equal, the first one counts: a fetch finds it first. ``older`` keeps the other records.
        """
        held = self.records.get(found.offset)
        if held is not None:
            if _epoch(found) <= _epoch(held):
                held, found = found, held
            self.older.setdefault(found.offset, []).append(held)
        self.records[found.offset] = found

    def borders(self) -> Iterator[int]:
        """Yield the first offset of each record, batch and lost range, and the first offset after each (if known)."""
        for offset in self.records:
            yield from (offset, offset + 1)
        for batch in self.batches:
            yield from (batch.base, batch.last + 1)
        for lost in self.lost:
            yield lost.first
            if lost.until is not None:
                yield lost.until

    def lost_at(self, offset: int) -> LostRange | None:
        """Return the lost range with this offset, or None. Ranges without ``until`` do not count."""
        for lost in self.lost:
            if lost.first <= offset and lost.until is not None and offset < lost.until:
                return lost
        return None

    def damage_before(self, batch: Span) -> tuple[int, str] | None:
        """Return position and reason of the last damaged range before a batch in its file; None if there is none."""
        before = [(at, reason) for path, at, reason in self.damaged if path == batch.path and at < batch.position]
        return max(before, default=None)

    def doubt(self) -> None:
        """Set the outcome of the records in ``waiting`` to "unknown"; a marker that is found later still counts."""
        for producer_id, waiting in self.waiting.items():
            for offset in waiting:
                self._end(producer_id, offset, "unknown")

    def _end(self, producer_id: int, offset: int, outcome: TransactionEnd) -> None:
        found = self.records[offset]
        if found.batch.producer_id == producer_id and found.transaction != "none":  # else its record is in ``older``
            self.records[offset] = found._replace(transaction=outcome)

    def give_up(self) -> None:
        """Set the outcome of the records in ``waiting`` to "unknown" for good."""
        self.doubt()
        self.waiting.clear()

    def end_transaction(self, producer_id: int, offset: int, marker: str) -> None:
        """Set the outcome of a producer's records in ``waiting`` that come before its marker at ``offset``."""
        still_waiting = []
        for number in self.waiting.pop(producer_id, []):
            if number < offset:
                self._end(producer_id, number, "aborted" if marker == control.MARKERS[control.ABORT] else "committed")
            else:
                still_waiting.append(number)
        if still_waiting:
            self.waiting[producer_id] = still_waiting


def look(
    segments: Sequence[Segment],
    offsets: range,
    *,
    opened: Mapping[int, int] | None = None,
    report: Reporter = SILENT,
) -> Sightings:
    """Return the records, batches and damage at ``offsets``, which must not be empty.

    After them reading goes on until their transactions end, up to damage or the log end. ``opened`` has transactions
    that do not end in the log: producer id -> first offset. ``report`` receives unreadable files, and relevant damage.
    """
    search = _Search(segments, offsets, opened or {}, report)
    for segment, region in _regions(segments, offsets[0], report):
        if isinstance(region, Batches):
            if not search.add(segment, region):
                break
        elif isinstance(region, Damage | Trailing):
            search.lose(segment, region)
    search.seen.doubt()
    return search.seen


class _Search:
    def __init__(
        self, segments: Sequence[Segment], offsets: range, opened: Mapping[int, int], report: Reporter
    ) -> None:
        self.seen = Sightings()
        self._segments = segments
        self._offsets = offsets
        self._opened = opened
        self._report = report
        self._ends: dict[str, int] = {}
        """The offset after the last batch read, by segment name."""

    def add(self, segment: Segment, batches: Batches) -> bool:
        """Add the next batches; return whether further batches are needed."""
        first, last = self._offsets[0], self._offsets[-1]
        if batches.batch_count > 1:
            is_past = bool(self.seen.waiting) and batches.least("base_offset") > last
            if is_past or batches.greatest("last_offset") < first:
                self._ends[segment.name] = batches.last_offset + 1
                return True
        return all(self._add(segment, batch, first, last) for batch in batches.batches())

    def _add(self, segment: Segment, batch: RecordBatch, first: int, last: int) -> bool:
        self._ends[segment.name] = batch.last_offset + 1
        if batch.last_offset < first:
            return True
        try:
            base = batch.base_offset  # decompresses a message of magic 0 or 1
            if base > last and not self.seen.waiting:
                return False
            marker = marker_of(batch)
            if marker is not None and batch.producer_id is not None:
                self.seen.end_transaction(batch.producer_id, batch.last_offset, marker)
            if base <= last:
                self._take(segment, batch, base, marker)
        except DamageError as error:
            self._lose_some(segment, batch, error)
        return True

    def _lose_some(self, segment: Segment, batch: RecordBatch, error: DamageError) -> None:
        """Add all offsets of a batch as lost: some of its records are unreadable or have wrong offsets."""
        self._report.damage(f"{segment.name}: byte {batch.position}: {error.reason}")
        lost = LostRange(segment.name, batch.position, error.reason, _base(batch), batch.last_offset + 1)
        self.seen.lost.append(lost)

    def _take(self, segment: Segment, batch: RecordBatch, base: int, marker: str | None) -> None:
        """Add the records of a batch at the requested offsets. Raises DamageError."""
        count, found = 0, list[tuple[int, bytes | None, bool]]()  # without the values, which may be large

        def offsets() -> Iterator[int]:
            nonlocal count
            for record in batch.records():
                count += 1
                if record.offset in self._offsets:
                    found.append((record.offset, record.key, record.value is None))
                yield record.offset

        numbers = offsets()
        wrong = misnumbered(batch, numbers)
        for _ in numbers:  # raises DamageError if a later record is unreadable
            pass
        producer = batch.producer_id
        span = Span(
            path=segment.name,
            position=batch.position,
            base=base,
            last=batch.last_offset,
            epoch=batch.partition_leader_epoch,
            producer_id=producer,
            is_transactional=batch.is_transactional,
            is_control=batch.is_control,
            is_empty=not count,
        )
        self.seen.batches.append(span)
        if wrong is not None:
            self._lose_some(segment, batch, wrong)
        for offset, key, is_tombstone in found:
            ended: TransactionEnd = "none"
            if batch.is_transactional and not batch.is_control and producer is not None:
                ended = "open"
                if offset < self._opened.get(producer, offset + 1):
                    self.seen.waiting.setdefault(producer, []).append(offset)
            self.seen.add(Sighting(offset, span, key, is_tombstone, marker, ended))

    def lose(self, segment: Segment, region: Damage | Trailing) -> None:
        """Add a damaged range, or a truncated batch that no broker is writing. It may have markers of ``waiting``."""
        if isinstance(region, Trailing) and not log_end.tail(segment, region).is_damage:
            return
        following = self._segments[self._segments.index(segment) + 1 :]
        after = following[0].base_offset if following else None
        if isinstance(region, Damage):
            start, until, reason = region.missing_from, region.missing_until, region.reason
        else:
            start, until, reason = None, None, str(region)
        start = self._ends.get(segment.name, segment.base_offset or 0) if start is None else start
        until = after if until is None else until
        is_end = isinstance(region, Trailing) and not following
        is_unreadable = isinstance(region, Damage) and region.is_unreadable
        if is_end:
            until = _torn_until(segment, region, start)
        self.seen.damaged.append((segment.name, region.position, reason))
        here = start <= self._offsets[-1] and (until is None or until > self._offsets[0])
        if here:
            self.seen.lost.append(LostRange(segment.name, region.position, reason, start, until, is_unreadable))
        if here or not is_end:  # lost bytes may have held a marker, and consumers stop here
            if not is_unreadable:
                self._report.damage(f"{segment.name}: byte {region.position}: {reason}")
            self.seen.give_up()


def _torn_until(segment: Segment, region: Damage | Trailing, start: int) -> int | None:
    """Return the offset after a truncated batch of magic 2; None if its header is incomplete or has wrong offsets."""
    if region.size < BATCH_HEADER.size:
        return None
    with segment.open() as source:
        header = BATCH_HEADER.read(source.read(region.position, BATCH_HEADER.size))
    if header.magic != MAGIC_2 or header.base_offset < start or header.last_offset_delta < 0:
        return None
    return header.base_offset + header.last_offset_delta + 1


def find_ends(seen: Sightings, segments: Sequence[Segment]) -> None:
    """Search ``segments`` for the markers that ``seen`` lacks. The cleaner keeps markers longer than data."""
    if not seen.waiting:
        return
    first = min(offset for waiting in seen.waiting.values() for offset in waiting)
    for _, region in _regions(segments, first, SILENT):
        if not isinstance(region, RecordBatch) or not region.is_control or region.producer_id not in seen.waiting:
            continue
        try:
            marker = marker_of(region)
        except DamageError:  # the outcome stays unknown
            continue
        if marker is not None and region.producer_id is not None:
            seen.end_transaction(region.producer_id, region.last_offset, marker)
        if not seen.waiting:
            return


def newest_of_keys(segments: Sequence[Segment], since: int, keys: frozenset[bytes]) -> dict[bytes, int]:
    """Return key -> its newest committed offset, for ``keys``, in batches that end at or after ``since``."""
    newest: dict[bytes, int] = {}
    waiting: dict[int, dict[bytes, int]] = {}
    for _, region in _regions(segments, since, SILENT):
        batches: Iterable[RecordBatch] = ()
        if isinstance(region, Batches):
            is_plain = not (region.first.is_control or region.first.is_transactional)
            whole = is_plain and region.least("last_offset") >= since
            records, taken = region.brief_records() if whole else ([], 0)
            newest.update({key: offset for offset, _, key, _, _ in records if key is not None and key in keys})
            batches = region.batches(taken)
        for batch in batches:
            if batch.last_offset < since:
                continue
            try:
                producer = batch.producer_id if batch.is_transactional else None
                if batch.is_control:
                    if producer is not None and (marker := marker_of(batch)) is not None:
                        offsets_of_keys = waiting.pop(producer, {})
                        for key, offset in offsets_of_keys.items() if marker == control.MARKERS[control.COMMIT] else ():
                            newest[key] = max(offset, newest.get(key, offset))
                    continue
                into = newest if producer is None else waiting.setdefault(producer, {})
                into.update({r.key: r.offset for r in batch.records() if r.key is not None and r.key in keys})
            except DamageError:  # look() reports damage at the requested offsets
                continue
    return newest


def marker_of(batch: RecordBatch) -> str | None:
    """Return the type of a batch's control record; None if it has none. Raises DamageError."""
    if batch.is_control:
        for record in batch.records():
            code = control.read_key(record.key).type
            return control.TYPES.get(code, f"UNKNOWN({code})")
    return None


def _regions(segments: Sequence[Segment], first: int, report: Reporter) -> Iterator[tuple[Segment, Region]]:
    """Yield each region with its segment, beginning at the index entry before offset ``first``."""
    for segment in segments[first_segment(segments, first) :]:
        done = 0
        try:
            with segment.open() as source:
                start = Seeker(segment, source, discard).by_offset(first, None).start
                base = segment.base_offset if not start else None
                for region in resync.read(source, start, on_error="resync", first_offset=base, runs=DATA):
                    yield segment, region
                    done = region.position + region.size
        except UnreadableError as error:
            report.fail(error)
            yield segment, Damage(done, max(0, segment.size - done), UNREADABLE, error.reason, done)


def _epoch(found: Sighting) -> int:
    return -1 if found.batch.epoch is None else found.batch.epoch


def _base(batch: RecordBatch) -> int:
    try:
        return batch.base_offset
    except DamageError:  # a wrapper of magic 0 or 1 that cannot be decompressed
        return batch.last_offset
