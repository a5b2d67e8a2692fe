"""What one cleaning of a log removes: the offset map of the dirty part, held against every record.

Source: Kafka's classes Cleaner and SkimpyOffsetMap; KIP-534 (delete horizons). The map holds digests of keys, as
Kafka's does. Where it may hold more than ``max_keys``, the log is read several times, each time for a part of the
keys: the answer is the same.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

from kdump.answers.compaction.cleaned_transactions import CleanedTransactions, aborted_transactions
from kdump.errors import DamageError
from kdump.formats.record_layout import MAGIC_2
from kdump.records.record_batch import RecordBatch
from kdump.segments import read, walk
from kdump.segments.regions import Damage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kdump.answers.collector import Place
    from kdump.answers.compaction.dirty_section import DirtySection
    from kdump.formats.record import Record
    from kdump.log_dirs.partition import Segment

MAP_ENTRIES: Final = 5_033_164
"""Keys that the map holds by default: 128 MiB (log.cleaner.dedupe.buffer.size), 24 bytes a key, nine tenths full."""
DIGEST: Final = 16
REASONS: Final = ("superseded", "tombstone", "marker", "aborted", "keyless")


class CleaningLimits(NamedTuple):
    """``map_entries`` is the capacity of the cleaner's map; ``max_keys`` are held in memory at a time."""

    map_entries: int = MAP_ENTRIES
    max_keys: int = MAP_ENTRIES


@dataclass
class Cleaned:
    """What a cleaning removes: numbers by reason; ``offsets`` and ``reasons`` list the records if asked."""

    keys: int = 0
    records: int = 0
    tombstones: int = 0
    superseded_bytes: int = 0
    map_fits: bool = True
    end: int = 0
    """The offset before which the cleaning ends."""
    removed: Counter[str] = field(default_factory=Counter)
    offsets: array[int] = field(default_factory=lambda: array("q"))
    reasons: bytearray = field(default_factory=bytearray)
    damage: str | None = None
    top: list[tuple[bytes, int, int]] = field(default_factory=list)
    """Keys, records and bytes of those with the most bytes."""

    def add(self, record: Record, why: str | None, *, listed: bool) -> None:
        """Count a record, and why it goes if it does."""
        self.records += 1
        self.tombstones += record.value is None
        if why is not None:
            self.removed[why] += 1
            self.superseded_bytes += record.size if why == "superseded" else 0
            if listed:
                self.offsets.append(record.offset)
                self.reasons.append(REASONS.index(why))

    def sort(self) -> None:
        """Put the listed records in order of their offsets."""
        order = sorted(range(len(self.offsets)), key=self.offsets.__getitem__)
        self.offsets = array("q", (self.offsets[number] for number in order))
        self.reasons = bytearray(self.reasons[number] for number in order)


class KeyPart(NamedTuple):
    """One of ``of`` parts of all keys; records without a key belong to the first."""

    number: int
    of: int

    def holds(self, digest: bytes | None) -> bool:
        """Tell whether a key is of this part."""
        return self.of == 1 or (0 if digest is None else crc32(digest) % self.of) == self.number


class OffsetMap(NamedTuple):
    """The newest offset of each key in the dirty part up to ``latest``; ``fits`` is whether that is all of it."""

    offsets: dict[bytes, int]
    latest: int
    fits: bool


class LargestKeys:
    """Counts the records and bytes of keys."""

    def __init__(self) -> None:
        self._sizes: dict[bytes, list[int]] = {}
        self._keys: dict[bytes, bytes] = {}

    def add(self, digest: bytes | None, record: Record) -> None:
        """Count a record."""
        if digest is not None and record.key is not None:
            size = self._sizes.setdefault(digest, [0, 0])
            size[0] += 1
            size[1] += record.size
            self._keys.setdefault(digest, record.key)

    def keys(self) -> Iterator[tuple[bytes, int, int]]:
        """Yield keys with their records and bytes."""
        for digest, (records, size) in self._sizes.items():
            yield self._keys[digest], records, size


class Cleaning:
    """One cleaning of a partition at a time (ms). Records that go are listed when ``listed``."""

    def __init__(
        self,
        place: Place,
        section: DirtySection,
        limits: CleaningLimits,
        *,
        at: int,
        delete_retention: int,
        listed: bool = False,
        top: int = 0,
    ) -> None:
        self._place, self._section, self._limits, self._at = place, section, limits, at
        self._listed, self._top = listed, top
        files = place.partition.segments
        self._segments = [segment for segment in files if (segment.base_offset or 0) < section.first_uncleanable]
        self._dirty = [
            segment
            for segment, following in zip(files, [*files[1:], None], strict=True)
            if segment in self._segments and (following is None or (following.base_offset or 0) > section.first_dirty)
        ]
        clean = [segment for segment in files if (segment.base_offset or 0) < section.first_dirty]
        newest_clean = clean[-1].modified if clean else None
        self._aborted_dirty = aborted_transactions(place, self._dirty)
        self._legacy_horizon = 0 if newest_clean is None else newest_clean - delete_retention

    def run(self) -> Cleaned:
        """Return what goes. Raises UnreadableError."""
        done = Cleaned()
        aborted = aborted_transactions(self._place, self._segments)
        parts = [KeyPart(number, self._parts()) for number in range(self._parts())]
        last = self._last_fitting(parts) if len(parts) > 1 else None
        for part in parts:
            newest = self._map(part, last)
            done.keys += len(newest.offsets)
            done.map_fits, done.end = newest.fits, newest.latest + 1
            self._judge(done, newest, part, aborted)
        done.sort()
        return done

    def _parts(self) -> int:
        """Return how many times the log must be read."""
        most = self._limits.map_entries
        if most > self._limits.max_keys:
            most = min(most, sum(_count(segment) for segment in self._dirty))
        return max(1, -(-most // self._limits.max_keys))

    def _last_fitting(self, parts: Sequence[KeyPart]) -> int | None:
        """Return the offset of the record that fills the map, None where it never fills."""
        first_seen = array("q")
        for part in parts:
            seen: set[bytes] = set()
            for _, pairs in self._keyed(part):
                for digest, offset in pairs:
                    if digest not in seen:
                        seen.add(digest)
                        first_seen.append(offset)
        most = self._limits.map_entries
        return sorted(first_seen)[most - 1] if len(first_seen) >= most else None

    def _keyed(self, part: KeyPart) -> Iterator[tuple[list[int], list[tuple[bytes, int]]]]:
        """Yield for each dirty batch the offsets of records with a key; digest and offset of those of a part."""
        first = self._section.first_dirty
        transactions = CleanedTransactions(self._aborted_dirty)
        for segment in self._dirty:
            for batch in self._batches(segment):
                discards = self._discards(transactions, segment, batch)
                if discards or batch.is_control or batch.last_offset < first:
                    continue
                records = self._records(segment, batch)
                pairs = [
                    (key if len(key) < DIGEST else _long_digest(key), record.offset)
                    for record in records
                    if (key := record.key) is not None and record.offset >= first
                ]
                if pairs:
                    offsets = [offset for _, offset in pairs]
                    yield offsets, pairs if part.of == 1 else [pair for pair in pairs if part.holds(pair[0])]

    def _map(self, part: KeyPart, last: int | None) -> OffsetMap:
        """Return the newest offset of each key of a part; the record at ``last`` fills the map, if that is known."""
        newest: dict[bytes, int] = {}
        most = self._limits.map_entries if part.of == 1 else None
        latest = self._section.first_dirty - 1
        for offsets, pairs in self._keyed(part):
            if last is not None and offsets[-1] > last:
                newest.update(pair for pair in pairs if pair[1] <= last)
                return OffsetMap(newest, max([latest, *(offset for offset in offsets if offset <= last)]), False)
            if most is not None and len(newest) + len(pairs) > most:
                for digest, offset in pairs:
                    if len(newest) >= most:
                        return OffsetMap(newest, latest, False)
                    newest[digest] = latest = offset
            newest.update(pairs)
            latest = offsets[-1]
        return OffsetMap(newest, self._section.first_uncleanable - 1, True)

    def _judge(self, done: Cleaned, newest: OffsetMap, part: KeyPart, aborted: Sequence[tuple[int, int]]) -> None:
        """Go through the log and count what goes, of the keys of a part; what has no key belongs to the first."""
        transactions = CleanedTransactions(aborted)
        largest = LargestKeys()
        told = done if part.number == 0 else None
        for segment in self._segments:
            if (segment.base_offset or 0) > newest.latest:
                break
            keeps_legacy = (segment.modified or 0) > self._legacy_horizon
            for batch in self._batches(segment, told):
                discards, horizon = self._discards(transactions, segment, batch, told), batch.delete_horizon_ms
                if batch.is_control:
                    if part.number == 0 and batch.last_offset <= newest.latest:
                        goes = discards and horizon is not None and horizon <= self._at
                        for record in self._records(segment, batch, told):
                            done.add(record, "marker" if goes else None, listed=self._listed)
                    continue
                keeps = keeps_legacy if batch.magic < MAGIC_2 else horizon is None or self._at < horizon
                records = list(self._records(segment, batch, told))
                if part.of == 1 and not (discards or self._top or self._listed) and batch.last_offset <= newest.latest:
                    records = _count_superseded(done, records, newest)
                for record in records:
                    digest = None if record.key is None else _digest(record.key)
                    if not part.holds(digest):
                        continue
                    if self._top:
                        largest.add(digest, record)
                    if record.offset <= newest.latest:
                        why = "aborted" if discards else _why(record, digest, newest, keeps=keeps)
                        done.add(record, why, listed=self._listed)
        done.top = sorted([*done.top, *largest.keys()], key=lambda one: (-one[2], one[0]))[: self._top]

    def _batches(self, segment: Segment, done: Cleaned | None = None) -> Iterator[RecordBatch]:
        """Yield the sound batches of a segment; damage goes to ``done``."""
        with segment.open() as source:
            for region in read.read(source, on_error="resync", first_offset=segment.base_offset):
                if isinstance(region, RecordBatch):
                    yield region
                elif isinstance(region, Damage):
                    self._say(done, f"{segment.name}: byte {region.position}: {region.reason}")

    def _records(self, segment: Segment, batch: RecordBatch, done: Cleaned | None = None) -> Iterator[Record]:
        """Yield the records of a batch up to the first that cannot be read."""
        try:
            yield from batch.records()
        except DamageError as damage:
            self._say(done, f"{segment.name}: byte {batch.position + damage.position}: {damage}")

    def _discards(
        self, transactions: CleanedTransactions, segment: Segment, batch: RecordBatch, done: Cleaned | None = None
    ) -> bool:
        """Tell whether transactions let a batch go; a marker that cannot be read stays."""
        try:
            return transactions.discards(batch)
        except DamageError as damage:
            self._say(done, f"{segment.name}: byte {batch.position + damage.position}: {damage}")
            return False

    def _say(self, done: Cleaned | None, text: str) -> None:
        if done is not None:
            done.damage = done.damage or text
            self._place.damage(text)


def _why(record: Record, digest: bytes | None, newest: OffsetMap, *, keeps: bool) -> str | None:
    """Return why a record goes, None where it stays; ``keeps`` is whether tombstones of its batch do."""
    if digest is None:
        return "keyless"
    if record.offset < newest.offsets.get(digest, -1):
        return "superseded"
    return "tombstone" if record.value is None and not keeps else None


def _count_superseded(done: Cleaned, records: list[Record], newest: OffsetMap) -> list[Record]:
    """Count the superseded records that have key and value, and those like them that stay; return the others."""
    newest_of = newest.offsets.get
    plain = [record for record in records if record.key is not None and record.value is not None]
    sizes = [
        record.size
        for record in plain
        if record.offset < newest_of(key if len(key := record.key or b"") < DIGEST else _long_digest(key), -1)
    ]
    done.records += len(plain)
    done.removed["superseded"] += len(sizes)
    done.superseded_bytes += sum(sizes)
    if len(plain) == len(records):
        return []
    return [record for record in records if record.key is None or record.value is None]


def _digest(key: bytes) -> bytes:
    """Return 16 bytes that stand for a long key; a shorter key stands for itself."""
    return key if len(key) < DIGEST else _long_digest(key)


def _long_digest(key: bytes) -> bytes:
    return hashlib.md5(key, usedforsecurity=False).digest()


def _count(segment: Segment) -> int:
    """Return the number of records that the headers of a segment claim."""
    with segment.open() as source:
        batches = (region for region in walk.walk(source) if isinstance(region, RecordBatch))
        return sum(batch.count or 0 for batch in batches)
