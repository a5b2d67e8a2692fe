"""What topics are made of: batches, codecs, producers, hours; with records the sizes of keys and values.

Headers alone say most of it. Magic 0 and 1 have no header for several messages: compressed ones are unpacked to be
counted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from heapq import nlargest
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from kdump.answers.collector import Collector, Needs
from kdump.answers.what_if import WhatIf
from kdump.formats.record_layout import BATCH_HEADER, LOG_APPEND_TIME, MAGIC_2
from kdump.primitives import compression
from kdump.records.magic_2 import Batch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kdump.answers.collector import AnswerLine, Place
    from kdump.answers.what_if import Target
    from kdump.records.record_batch import RecordBatch

HOUR: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class Spread:
    """The mean and two percentiles of a number: half, and 99 of 100, are not above."""

    mean: float
    p50: int
    p99: int


@dataclass(frozen=True, slots=True)
class CodecShare:
    """The batches of one codec, and their bytes."""

    batches: int
    bytes: int


@dataclass(frozen=True, slots=True)
class LargestRecord:
    """The record with the largest key or value; sizes are in bytes."""

    offset: int
    bytes: int


@dataclass(frozen=True, slots=True)
class PartitionStatistics:
    """A partition. What needs records is None without them. ``ratio`` is uncompressed to stored bytes of batches."""

    kind: ClassVar[str] = "stats"
    topic: str
    partition: int
    batches: int
    records: int
    log_bytes: int
    codecs: dict[str, CodecShare]
    records_per_batch: Spread | None
    bytes_per_batch: Spread | None
    first_timestamp_ms: int | None
    last_timestamp_ms: int | None
    transactional_batches: int
    control_batches: int
    tombstones: int | None
    uncompressed_bytes: int | None
    ratio: float | None
    key_bytes: int | None
    value_bytes: int | None
    key_sizes: Spread | None
    value_sizes: Spread | None
    largest_keys: tuple[LargestRecord, ...] | None
    largest_values: tuple[LargestRecord, ...] | None
    log_dir: str


@dataclass(frozen=True, slots=True)
class ProducerStatistics:
    """What one producer wrote into a topic; ``producer_id`` -1 stands for all without an id."""

    kind: ClassVar[str] = "producer"
    topic: str
    producer_id: int
    batches: int
    records: int
    bytes: int
    records_per_batch: float


@dataclass(frozen=True, slots=True)
class HourStatistics:
    """What a topic got in an hour, by the largest timestamp of each batch; None where it has none."""

    kind: ClassVar[str] = "hour"
    topic: str
    hour_ms: int | None
    batches: int
    records: int
    bytes: int


class Sum(NamedTuple):
    """Batches, their records and bytes."""

    batches: int = 0
    records: int = 0
    bytes: int = 0

    def plus(self, other: Sum) -> Sum:
        """Return the sum of both."""
        return Sum(self.batches + other.batches, self.records + other.records, self.bytes + other.bytes)


@dataclass
class RecordSums:
    """What the records of a partition sum up to."""

    tombstones: int = 0
    uncompressed: int = 0
    keys: Counter[int] = field(default_factory=Counter)
    values: Counter[int] = field(default_factory=Counter)
    largest_keys: list[tuple[int, int]] = field(default_factory=list)
    largest_values: list[tuple[int, int]] = field(default_factory=list)

    def add(self, batch: RecordBatch, top: int) -> None:
        """Take the records of a batch. Raises DamageError."""
        if batch.magic >= MAGIC_2:
            self.uncompressed += BATCH_HEADER.size
        keys, values = [], []
        for record in batch.records():
            self.uncompressed += record.size
            if batch.is_control:
                continue
            if record.key is not None:
                keys.append((len(record.key), -record.offset))
            if record.value is None:
                self.tombstones += 1
            else:
                values.append((len(record.value), -record.offset))
        self.keys.update(size for size, _ in keys)
        self.values.update(size for size, _ in values)
        self.largest_keys = nlargest(top, [*self.largest_keys, *keys])
        self.largest_values = nlargest(top, [*self.largest_values, *values])


@dataclass
class PartitionSums:
    """What the batches of a partition sum up to."""

    topic: str
    partition: int
    log_dir: str
    codecs: dict[int, Sum] = field(default_factory=dict)
    records_per_batch: Counter[int] = field(default_factory=Counter)
    bytes_per_batch: Counter[int] = field(default_factory=Counter)
    first: int | None = None
    last: int | None = None
    transactional: int = 0
    control: int = 0
    records: RecordSums | None = None

    def add(self, batch: RecordBatch, count: int) -> None:
        """Take a batch of ``count`` records."""
        codec = batch.codec
        self.codecs[codec] = self.codecs.get(codec, Sum()).plus(Sum(1, count, batch.size))
        self.records_per_batch[count] += 1
        self.bytes_per_batch[batch.size] += 1
        first, last = _first_time(batch), batch.max_timestamp
        if first >= 0 and (self.first is None or first < self.first):
            self.first = first
        if last >= 0 and (self.last is None or last > self.last):
            self.last = last
        self.transactional += batch.is_transactional
        self.control += batch.is_control


class Statistics(Collector):
    """Gathers statistics. ``records`` asks for what needs them, with ``top`` largest keys and values."""

    def __init__(self, *, records: bool = False, top: int = 5, targets: Sequence[Target] = ()) -> None:
        self._with_records, self._top = records, top
        self._what_if = WhatIf(targets)
        self._partitions: list[PartitionSums] = []
        self._producers: dict[tuple[str, int], Sum] = {}
        self._hours: dict[tuple[str, int], Sum] = {}
        self._place: Place | None = None

    def begin(self, place: Place) -> Needs:
        if place.key is None:
            self._place = None
            return Needs.FILES
        self._place = place
        sums = PartitionSums(*place.key, place.log_dir.path)
        sums.records = RecordSums() if self._with_records else None
        self._partitions.append(sums)
        self._what_if.begin(place)
        return Needs.RECORDS if self._with_records else Needs.HEADERS

    def add(self, batch: RecordBatch) -> None:
        if self._place is None:
            return
        sums = self._partitions[-1]
        count = batch.count
        if count is None:
            count = sum(1 for _ in batch.records()) if batch.codec else 1
        sums.add(batch, count)
        if sums.records is not None:
            sums.records.add(batch, self._top)
        self._what_if.add(batch)
        one = Sum(1, count, batch.size)
        producer = sums.topic, -1 if batch.producer_id is None else batch.producer_id
        self._producers[producer] = self._producers.get(producer, Sum()).plus(one)
        hour = sums.topic, -1 if batch.max_timestamp < 0 else batch.max_timestamp // HOUR
        self._hours[hour] = self._hours.get(hour, Sum()).plus(one)

    def end(self) -> None:
        self._what_if.end()
        self._place = None

    def merge(self, other: Statistics) -> None:
        self._partitions += other._partitions
        self._what_if.merge(other._what_if)
        for mine, theirs in ((self._producers, other._producers), (self._hours, other._hours)):
            for key, more in theirs.items():
                mine[key] = mine.get(key, Sum()).plus(more)

    def answer(self, at: int, *, hours: bool = False) -> Iterator[AnswerLine]:  # noqa: ARG002  the log is what it is
        """Yield the partitions, the largest first, then producers, hours if asked, and what other codecs would give."""
        lines = [_line(sums) for sums in self._partitions]
        yield from sorted(lines, key=lambda line: (-line.log_bytes, line.topic, line.partition, line.log_dir))
        for (topic, producer_id), one in sorted(self._producers.items(), key=lambda item: (-item[1].bytes, item[0])):
            yield ProducerStatistics(topic, producer_id, *one, records_per_batch=round(one.records / one.batches, 3))
        for (topic, hour), one in sorted(self._hours.items()) if hours else ():
            yield HourStatistics(topic, None if hour < 0 else hour * HOUR, *one)
        yield from self._what_if.answer()


def _first_time(batch: RecordBatch) -> int:
    """Return the time of a batch's first record, as far as headers say it."""
    if isinstance(batch, Batch) and batch.delete_horizon_ms is None and batch.timestamp_type != LOG_APPEND_TIME:
        return batch.base_timestamp
    return batch.max_timestamp


def spread(counts: Counter[int]) -> Spread | None:
    """Return the spread of numbers with how often each occurs; None where there is none."""
    whole = counts.total()
    if not whole:
        return None
    mean = sum(number * count for number, count in counts.items()) / whole
    found, seen = [], 0
    shares = iter((50, 99))
    share = next(shares)
    for number, count in sorted(counts.items()):
        seen += count
        while share and seen * 100 >= whole * share:
            found.append(number)
            share = next(shares, 0)
    return Spread(round(mean, 3), found[0], found[1])


def _line(sums: PartitionSums) -> PartitionStatistics:
    whole = Sum()
    for one in sums.codecs.values():
        whole = whole.plus(one)
    records = sums.records
    return PartitionStatistics(
        topic=sums.topic,
        partition=sums.partition,
        batches=whole.batches,
        records=whole.records,
        log_bytes=whole.bytes,
        codecs={compression.NAMES[codec]: CodecShare(n.batches, n.bytes) for codec, n in sorted(sums.codecs.items())},
        records_per_batch=spread(sums.records_per_batch),
        bytes_per_batch=spread(sums.bytes_per_batch),
        first_timestamp_ms=sums.first,
        last_timestamp_ms=sums.last,
        transactional_batches=sums.transactional,
        control_batches=sums.control,
        tombstones=None if records is None else records.tombstones,
        uncompressed_bytes=None if records is None else records.uncompressed,
        ratio=None if records is None or not whole.bytes else round(records.uncompressed / whole.bytes, 4),
        key_bytes=None if records is None else sum(size * count for size, count in records.keys.items()),
        value_bytes=None if records is None else sum(size * count for size, count in records.values.items()),
        key_sizes=None if records is None else spread(records.keys),
        value_sizes=None if records is None else spread(records.values),
        largest_keys=None if records is None else _largest(records.largest_keys),
        largest_values=None if records is None else _largest(records.largest_values),
        log_dir=sums.log_dir,
    )


def _largest(found: Sequence[tuple[int, int]]) -> tuple[LargestRecord, ...]:
    return tuple(LargestRecord(-offset, size) for size, offset in found)
