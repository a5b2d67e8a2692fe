"""What one cleaning of a log removes: the offset map of the dirty part compared with every record; largest keys."""

from __future__ import annotations

import sys
from array import array
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from heapq import nlargest
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from kdump.answers.compaction.cleaner_walk import CleanedTransactions, CleanerWalk, aborted_transactions
from kdump.answers.compaction.key_tables import MARKER, REASONS, all_keys, key_sizes, offset_map
from kdump.errors import DamageError, UnreadableError, discard
from kdump.formats.record_layout import CODEC_MASK, MAGIC_2
from kdump.records.record_batch import RecordBatch
from kdump.segments import walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from kdump.answers.collector import Place
    from kdump.answers.compaction.cleaner_walk import CleanerBatch
    from kdump.answers.compaction.dirty_section import DirtySection
    from kdump.answers.compaction.key_tables import AnyKeySizes, AnyOffsetMap, Judged, KeyPart
    from kdump.log_dirs.partition import Segment

    Log: TypeAlias = Iterable[tuple[Segment, CleanerBatch]]

    KeyPlace: TypeAlias = tuple[int, int]


def largest_keys(name: str, log: Callable[[], Log], most: int, max_keys: int) -> list[tuple[bytes, int, int]]:
    """Return ``most`` keys with their records and bytes; ``log`` begins at the start of the log each time.

    About ``max_keys`` keys are in memory at a time. Raises UnreadableError if the log changes between two passes.
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
        raise UnreadableError(name, "it changes while it is read")
    return [(keys[-batch, -record], records, size) for size, batch, record, records in found]


def _measure(sizes: AnyKeySizes, log: Log, max_keys: int) -> bool:
    """Count records and bytes; return whether there is room for the keys of the part."""
    for _, data in log:
        for _ in () if data.first.is_control else data.read_into(sizes):
            sizes.measure()
            if sizes.keys > max_keys:
                return False
    return True


def _keys_at(log: Log, places: set[KeyPlace]) -> Iterator[tuple[KeyPlace, bytes]]:
    """Yield places (number of a batch of data, of a record in it) with the keys that stand there."""
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
"""Keys that the map holds by default: 128 MiB (log.cleaner.dedupe.buffer.size), 24 bytes a key, nine tenths full."""


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
    """Numbers in REASONS."""
    damage: str | None = None
    top: list[tuple[bytes, int, int]] = field(default_factory=list)
    """Keys, records and bytes of those with the most bytes."""

    def add(self, judged: Judged) -> None:
        """Count what the map says of some records."""
        records, tombstones, gone, size, removed = judged
        self.records += records
        self.tombstones += tombstones
        self.superseded_bytes += size
        for why, count in zip(REASONS[1:], gone[1:], strict=True):
            self.removed[why] += count
        self.list_removed(removed)

    def list_removed(self, removed: Iterable[tuple[int, int]]) -> None:
        """List records by offset and number of the reason."""
        for offset, why in removed:
            self.offsets.append(offset)
            self.reasons.append(why)

    def sort(self) -> None:
        """Put the listed records in order of their offsets; a broken log may have one offset several times."""
        order = sorted(range(len(self.offsets)), key=self.reasons.__getitem__)
        order.sort(key=self.offsets.__getitem__)
        self.offsets = array("q", (self.offsets[number] for number in order))
        self.reasons = bytearray(self.reasons[number] for number in order)


class FillPoint(NamedTuple):
    """The record that fills the map: the number of its chunk of facts in the dirty part, and its number there."""

    chunk: int
    fact: int


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
        bases = [segment.base_offset or 0 for segment in files]
        ends = [*(min(base, sys.maxsize) for base in bases[1:]), sys.maxsize]
        self._segments = [file for file, base in zip(files, bases, strict=True) if base < section.first_uncleanable]
        self._dirty = [
            (file, min(end, section.first_uncleanable))
            for file, end in zip(self._segments, ends, strict=False)
            if end > section.first_dirty
        ]
        """Segments, and the offsets before which they end."""
        self._aborted = aborted_transactions(place, files)
        dirty_on = (file for file, end in zip(files, ends, strict=True) if end > section.first_dirty)
        self._aborted_dirty = aborted_transactions(place, dirty_on)
        clean = [file for file, base in zip(files, bases, strict=True) if base < section.first_dirty]
        newest_clean = clean[-1].modified if clean else None
        self._legacy_horizon = 0 if newest_clean is None else newest_clean - delete_retention

    def run(self) -> Cleaned:
        """Return what goes. Raises UnreadableError."""
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
        """Return how many times the log must be read."""
        most, held = self._limits
        if most > held:
            most = min(most, sum(_count(segment, most) for segment, _ in self._dirty))
        return max(1, -(-most // held))

    def _new_map(self, part: KeyPart) -> AnyOffsetMap:
        """Return an empty map; that of a part of the keys does not know when all of them together fill it."""
        most = min(self._limits.map_entries, sys.maxsize) if part.of == 1 else sys.maxsize
        return offset_map(self._section.first_dirty, most, min(self._limits), part)

    def _fill_point(self, parts: Sequence[KeyPart]) -> FillPoint | None:
        """Return the record that fills the map, or None if it never fills."""
        found = array("q")
        for part in parts:
            newest = self._new_map(part)
            for number, _ in enumerate(self._dirty_facts(newest)):
                before = newest.keys
                newest.put(0, len(newest))
                if number == len(found):
                    found.append(0)
                found[number] += newest.keys - before
        left = self._limits.map_entries
        for chunk, keys in enumerate(found):
            if keys >= left:
                return FillPoint(chunk, self._first_seen(parts, chunk)[left - 1])
            left -= keys
        return None

    def _first_seen(self, parts: Sequence[KeyPart], chunk: int) -> list[int]:
        """Return the numbers of those facts in a chunk whose keys are not before them."""
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
        """Fill a map with the dirty part; return whether all of it fits. ``last`` fills it, where that is known."""
        for number, _ in enumerate(self._dirty_facts(newest)):
            taken = 0
            if last is not None and number == last.chunk:
                taken = newest.put(0, last.fact + 1)
                newest.most = 0
            if newest.put(taken, len(newest)) < len(newest):
                return False
        return True

    def _dirty_facts(self, newest: AnyOffsetMap) -> Iterator[None]:
        """Give a map the facts of the dirty part, some at a time; move its end over what it need not see.

        That is as in Kafka's Cleaner: markers and aborted data, and the offsets up to the next segment.
        """
        walk = CleanerWalk(CleanedTransactions(self._aborted_dirty), discard)
        for segment, end in self._dirty:
            for data in walk.batches(segment):
                if data.last_offset < self._section.first_dirty:
                    continue
                if data.discards or data.first.is_control:
                    newest.latest = data.last_offset
                else:
                    yield from data.read_into(newest)
            newest.latest = end - 1

    def _judge(self, done: Cleaned, newest: AnyOffsetMap, part: KeyPart) -> None:
        """Go through the log and count what goes, of the keys of a part; what has no key belongs to the first."""

        def say(text: str) -> None:
            done.damage = done.damage or text
            self._place.report.damage(text)

        heard = (say, self._place.report.damage) if part.number == 0 else (discard, discard)
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
        """Count a marker's record. One that cannot be read was reported with its transaction."""
        try:
            offsets = [record.offset for record in marker.records()]
        except DamageError:
            return
        done.records += len(offsets)
        if goes:
            done.removed[REASONS[MARKER]] += len(offsets)
            done.list_removed((offset, MARKER) for offset in offsets if self._listed)

    def _cleaned(
        self, end: int, say: Callable[[str], None] = discard, spoiled: Callable[[str], None] = discard
    ) -> Iterator[tuple[Segment, CleanerBatch]]:
        """Yield the batches of all segments that begin before an offset: a cleaning writes them again."""
        walk = CleanerWalk(CleanedTransactions(self._aborted), say, spoiled)
        for segment in self._segments:
            if (segment.base_offset or 0) >= end:
                break
            for data in walk.batches(segment):
                yield segment, data


def _count(segment: Segment, most: int) -> int:
    """Return the number of records that the headers of a segment claim; ``most`` for one that does not say."""
    with segment.open() as source:
        batches = (region for region in walk.walk(source) if isinstance(region, RecordBatch))
        return sum(_claimed(batch, most) for batch in batches)


def _claimed(batch: RecordBatch, most: int) -> int:
    if batch.count is not None:
        return max(0, batch.count)
    return most if batch.attributes & CODEC_MASK else 1
