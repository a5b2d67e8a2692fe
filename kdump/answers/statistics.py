"""The question ``stats``: batches (also per hour), codecs and producers of topics, and the sizes of keys and values.

The sizes of keys and values, tombstones and the ratio need ``records``. Sizes in other codecs (``targets``) do not:
batches are decompressed and compressed again. The rest comes from batch headers. Magic 0 and 1 have no batch header, so
compressed messages are decompressed and counted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import partial
from heapq import nlargest
from itertools import accumulate
from operator import mul
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, TypeVar

from kdump.answers.collector import Collector, Needs
from kdump.answers.question import EXIT_STATUS, LineTable, LogQuestion, option
from kdump.answers.recompression import WhatIf, WhatIfAnswer
from kdump.formats.record_layout import LOG_APPEND_TIME
from kdump.log_reader import replicas
from kdump.log_reader.topic_ids import of_deleted_topics
from kdump.primitives import compression
from kdump.records.magic_2 import Batch
from kdump.segments import lazy_records

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from kdump.answers.collector import AnswerLine, Place
    from kdump.answers.question import Asking
    from kdump.answers.recompression import Target
    from kdump.log_dirs.files import Files
    from kdump.log_dirs.partition import Partition
    from kdump.records.record_batch import Batches, RecordBatch
    from kdump.segments.lazy_records import RecordSizes

HOUR: Final = 3_600_000
LARGEST: Final = 5
"""The default number of largest keys and values that are listed for a partition."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Spread:
    """The mean, the median and the 99th percentile of some numbers."""

    mean: float
    p50: int
    p99: int


@dataclass(frozen=True, slots=True)
class CodecShare:
    batches: int
    bytes: int


@dataclass(frozen=True, slots=True)
class LargestRecord:
    """A record whose key or value is one of the largest. ``bytes`` is the size of the key or value."""

    offset: int
    bytes: int


@dataclass(frozen=True, slots=True)
class PartitionStatistics:
    """One replica. Fields about records are None if these are not read. ``ratio``: uncompressed size / stored size."""

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
    """The batches of a producer in a topic. ``producer_id`` -1 is for all batches without a producer id."""

    kind: ClassVar[str] = "producer"
    topic: str
    producer_id: int
    batches: int
    records: int
    bytes: int
    records_per_batch: float


@dataclass(frozen=True, slots=True)
class HourStatistics:
    """The batches of a topic in an hour, by their largest timestamp; the hour is None for those without a timestamp."""

    kind: ClassVar[str] = "hour"
    topic: str
    hour_ms: int | None
    batches: int
    records: int
    bytes: int


@dataclass(slots=True)
class Sum:
    batches: int = 0
    records: int = 0
    bytes: int = 0

    def add(self, batches: int, records: int, size: int) -> None:
        self.batches += batches
        self.records += records
        self.bytes += size


class BatchColumns(NamedTuple):
    """Values from the headers of batches with the same attributes. A column has a number for each batch.

    ``first_times`` are the times of first records, or the largest times if headers lack them: ms, below 0 for none.
    """

    codec: int
    is_transactional: bool
    is_control: bool
    counts: Sequence[int]
    sizes: Sequence[int]
    first_times: Sequence[int]
    last_times: Sequence[int]
    producers: Sequence[int]

    @classmethod
    def of(cls, batches: Batches, number: int) -> BatchColumns:
        """Return the values of the first ``number`` batches. Raises DamageError if a message cannot be decompressed."""
        first = batches.first
        first_times = batches.column("base_timestamp" if _has_first_time(first) else "max_timestamp", 0, number)
        counts = batches.column("records_count", 0, number)
        if first.count is None:  # a message of magic 0 or 1
            times = [record.timestamp for record in first.records()] if first.codec else first_times
            counts, first_times = (len(times),), (next(iter(times), first_times[0]),)
        return cls(
            codec=first.codec,
            is_transactional=first.is_transactional,
            is_control=first.is_control,
            counts=counts,
            sizes=batches.column("size", 0, number),
            first_times=first_times,
            last_times=batches.column("max_timestamp", 0, number),
            producers=batches.column("producer_id", 0, number),
        )


@dataclass
class RecordSums:
    top: int
    uncompressed: int = 0
    keys: Counter[int] = field(default_factory=Counter)
    """Size of a key in bytes -> number of such keys, without control records; -1 means null."""
    values: Counter[int] = field(default_factory=Counter)
    largest_keys: list[LargestRecord] = field(default_factory=list)
    largest_values: list[LargestRecord] = field(default_factory=list)

    def add(self, records: RecordSizes, *, is_control: bool) -> None:
        self.uncompressed += records.size
        if not is_control and records.offsets:
            self.keys.update(records.keys)
            self.values.update(records.values)
            self.largest_keys = self._largest(self.largest_keys, records.offsets, records.keys)
            self.largest_values = self._largest(self.largest_values, records.offsets, records.values)

    def _largest(
        self, largest: list[LargestRecord], offsets: Sequence[int], sizes: Sequence[int]
    ) -> list[LargestRecord]:
        least = largest[-1].bytes if len(largest) == self.top else -1
        if max(sizes) <= least:
            return largest
        new = (LargestRecord(offset, size) for offset, size in zip(offsets, sizes, strict=True) if size > least)
        return nlargest(self.top, [*largest, *new], key=lambda one: one.bytes)


@dataclass
class PartitionSums:
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

    def add(self, batches: BatchColumns, whole: tuple[int, int, int]) -> None:
        """Add batches. ``whole`` is their number, and the number of their records and bytes."""
        number = whole[0]
        self.codecs.setdefault(batches.codec, Sum()).add(*whole)
        self.records_per_batch.update(batches.counts)
        self.bytes_per_batch.update(batches.sizes)
        first = min((time for time in batches.first_times if time >= 0), default=self.first)
        self.first = first if self.first is None or first is None else min(first, self.first)
        last = max(batches.last_times)
        if last >= 0:
            self.last = last if self.last is None else max(last, self.last)
        self.transactional += number if batches.is_transactional else 0
        self.control += number if batches.is_control else 0


class Statistics(Collector):
    """Gathers statistics. With ``records`` they include sizes of keys and values, and the ``top`` largest of them.

    Each folder has a line. The sums leave out ``spares``: all replicas of a partition but one.
    """

    takes_control_runs = True

    def __init__(
        self,
        *,
        records: bool = False,
        top: int = LARGEST,
        hours: bool = False,
        targets: Sequence[Target] = (),
        spares: Iterable[Partition] = (),
    ) -> None:
        self._spares = frozenset(map(_first_file, spares))
        self._is_spare = False
        self._with_records, self._with_hours, self._top = records, hours, top
        self._what_if = WhatIf(targets)
        self._partition: PartitionSums | None = None
        self._lines: list[PartitionStatistics] = []
        self._producers: dict[tuple[str, int], Sum] = defaultdict(Sum)
        self._hours: dict[tuple[str, int], dict[int, Sum]] = defaultdict(partial(defaultdict, Sum))

    def begin(self, place: Place) -> Needs:
        key = place.key
        if key is None:
            return Needs.FILES
        self._partition = PartitionSums(*key, place.log_dir.path)
        self._partition.records = RecordSums(self._top) if self._with_records else None
        self._is_spare = bool(self._spares) and _first_file(place.partition) in self._spares
        if not self._is_spare:
            self._what_if.begin(place)
        return Needs.RECORDS if self._with_records else Needs.HEADERS

    def add(self, batches: Batches) -> int | None:
        """Add the batches before the first unreadable one; return their number. Raises DamageError outside a run."""
        partition = self._partition
        if partition is None:
            return None
        taken = batches.batch_count
        if partition.records is not None:
            taken = lazy_records.read_sizes(
                batches, partial(partition.records.add, is_control=batches.first.is_control)
            )
        columns = BatchColumns.of(batches, taken)
        if (left := self._what_if.add(batches, taken)) < taken:
            columns, taken = BatchColumns.of(batches, left), left
        if taken:
            self._take(partition, columns)
        return taken

    def _take(self, partition: PartitionSums, batches: BatchColumns) -> None:
        whole = len(batches.counts), sum(batches.counts), sum(batches.sizes)
        partition.add(batches, whole)
        if self._is_spare:
            return
        topic = partition.topic
        if len(set(batches.producers)) == 1:
            self._producers[topic, batches.producers[0]].add(*whole)
        else:
            for producer_id, count, size in zip(batches.producers, batches.counts, batches.sizes, strict=True):
                self._producers[topic, producer_id].add(1, count, size)
        if self._with_hours:
            self._take_hours(partition, batches, whole)

    def _take_hours(self, partition: PartitionSums, batches: BatchColumns, whole: tuple[int, int, int]) -> None:
        """Count batches by hour. ``whole`` is the number of batches, records and bytes in ``batches``."""
        hours = self._hours[partition.topic, partition.partition]
        times = batches.last_times
        hour = _hour_of(times[0])
        if hour == _hour_of(min(times)) == _hour_of(max(times)):
            hours[hour].add(*whole)
            return
        number = records = size = 0
        for each, count, one in zip(map(_hour_of, times), batches.counts, batches.sizes, strict=True):
            if each != hour:  # most batches have the same hour as the batch before
                hours[hour].add(number, records, size)
                number, records, size, hour = 0, 0, 0, each
            number += 1
            records += count
            size += one
        hours[hour].add(number, records, size)

    def end(self) -> None:
        if self._partition is not None:
            self._lines.append(_line(self._partition))
        self._what_if.end()
        self._partition = None

    def merge(self, other: Statistics) -> None:
        self._lines += other._lines
        self._what_if.merge(other._what_if)
        _merge(self._producers, other._producers)
        for key, hours in other._hours.items():
            _merge(self._hours[key], hours)

    def answer(self, at: int) -> Iterator[AnswerLine]:  # noqa: ARG002  statistics do not depend on the time
        yield from sorted(self._lines, key=lambda line: (-line.log_bytes, line.topic, line.partition, line.log_dir))
        for (topic, producer_id), one in sorted(self._producers.items(), key=lambda item: (-item[1].bytes, item[0])):
            mean = round(one.records / one.batches, 3)
            yield ProducerStatistics(topic, producer_id, one.batches, one.records, one.bytes, mean)
        topics: dict[tuple[str, int], Sum] = defaultdict(Sum)
        for (topic, _), hours in self._hours.items():
            for hour, one in hours.items():
                topics[topic, hour].add(one.batches, one.records, one.bytes)
        for (topic, hour), one in sorted(topics.items()):
            yield _hour(topic, hour, one)
        yield from self._what_if.answer()

    def hours_of(self, keys: Collection[tuple[str, int]]) -> dict[tuple[str, int], list[HourStatistics]]:
        hours = {key: self._hours.get(key, {}) for key in keys}
        return {key: [_hour(key[0], hour, of[hour]) for hour in sorted(of)] for key, of in hours.items()}


def _first_file(partition: Partition) -> tuple[Files, str] | None:
    """Return the storage and path of a log's first file. They identify the folder."""
    return (partition.files, partition.segments[0].path) if partition.segments else None


def _merge(mine: dict[T, Sum], theirs: dict[T, Sum]) -> None:
    for key, more in theirs.items():
        mine[key].add(more.batches, more.records, more.bytes)


def _hour_of(time: int) -> int:
    return time // HOUR if time >= 0 else -1


def _hour(topic: str, hour: int, one: Sum) -> HourStatistics:
    return HourStatistics(topic, None if hour < 0 else hour * HOUR, one.batches, one.records, one.bytes)


def _has_first_time(batch: RecordBatch) -> bool:
    return isinstance(batch, Batch) and batch.delete_horizon_ms is None and batch.timestamp_type != LOG_APPEND_TIME


def spread(counts: Counter[int]) -> Spread | None:
    """Return the spread of some numbers, or None if there are none. ``counts`` maps each number to its count."""
    whole = counts.total()
    if not whole:
        return None
    if len(counts) == 1:  # as in each of many small partitions
        number = next(iter(counts))
        return Spread(float(number), number, number)
    mean = sum(map(mul, counts.keys(), counts.values())) / whole
    numbers = sorted(counts)
    ranks = list(accumulate(map(counts.__getitem__, numbers)))
    p50, p99 = (numbers[bisect_left(ranks, -(-whole * share // 100))] for share in (50, 99))
    return Spread(round(mean, 3), p50, p99)


def _line(sums: PartitionSums) -> PartitionStatistics:
    records = sums.records
    tombstones = 0
    if records is not None:
        records.keys.pop(-1, None)
        tombstones = records.values.pop(-1, 0)
    whole = Sum()
    for one in sums.codecs.values():
        whole.add(one.batches, one.records, one.bytes)
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
        tombstones=None if records is None else tombstones,
        uncompressed_bytes=None if records is None else records.uncompressed,
        ratio=None if records is None or not whole.bytes else round(records.uncompressed / whole.bytes, 4),
        key_bytes=None if records is None else sum(size * count for size, count in records.keys.items()),
        value_bytes=None if records is None else sum(size * count for size, count in records.values.items()),
        key_sizes=None if records is None else spread(records.keys),
        value_sizes=None if records is None else spread(records.values),
        largest_keys=None if records is None else tuple(records.largest_keys),
        largest_values=None if records is None else tuple(records.largest_values),
        log_dir=sums.log_dir,
    )


HELP: Final = f"""Show the batches, codecs and producers of topics.

\b
Examples:
  kdump stats /var/kafka
  kdump stats /var/kafka --topic orders --records
  kdump stats /var/kafka --remote /var/tiered
  kdump stats /var/kafka --what-if zstd,zstd:19,lz4

Without --records and --what-if only batch headers are read. 'ratio' is the uncompressed size divided by the compressed
size. 'first' is the timestamp of the first record in the earliest batch, 'last' the largest timestamp of the latest
batch. Transaction markers count as records, but their keys and values are not counted.

Each folder has a line. The sums of producers, hours and codecs count each partition once: by the replica with the
newest leader epoch and log end offset. They leave out folders of a deleted topic of the same name.

--what-if compresses batches again like a Java client. For a partition above 128 MiB only a sample of about 64 MiB is
compressed, and 'errorBytes' is the 95% confidence interval; it is 0 if every batch was compressed. Control batches,
and batches of magic 0 and 1, stay unchanged. A codec without a level has Kafka's default: gzip 6, lz4 9, zstd 3. kdump
does not read compression.gzip.level, compression.lz4.level and compression.zstd.level: name the level of the config.
{EXIT_STATUS}"""


@dataclass(frozen=True)
class StatisticsOptions:
    records: bool = option(
        False, "switch", "--records", "Read records too: sizes of keys and values, tombstones, compression ratio."
    )
    top: int = option(LARGEST, "count", "--top", "Number of largest keys and values to list.", metavar="N", shown=True)
    hours: bool = option(False, "switch", "--hours", "Add a line for each topic and hour.")
    what_if: tuple[Target, ...] = option(
        (),
        "codecs",
        "--what-if",
        "Estimate the sizes in other codecs: none, gzip, snappy, lz4, zstd, or with a level such as zstd:19.",
        metavar="CODEC,...",
    )


def _collector(asking: Asking, options: StatisticsOptions) -> Statistics:
    what, found, note = " of the sums of topics", asking.meant(), asking.report.note
    older = of_deleted_topics(found, note, asking.current_ids, what)
    spares = [*replicas.spares(found, note, what), *older]
    return Statistics(
        records=options.records, top=options.top, hours=options.hours, targets=options.what_if, spares=spares
    )


QUESTION: Final = LogQuestion(
    "stats",
    HELP,
    StatisticsOptions,
    (PartitionStatistics, ProducerStatistics, HourStatistics, WhatIfAnswer),
    _collector,
    tables=(
        LineTable("stats", PartitionStatistics),
        LineTable("record_stats", PartitionStatistics, "--records", {"records": True}),
        LineTable("producer_stats", ProducerStatistics),
        LineTable("hours", HourStatistics, "--hours", {"hours": True}),
    ),
    takes_remote=True,
)
