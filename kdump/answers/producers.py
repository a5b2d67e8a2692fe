"""The question ``producers``: the producers of each partition, and illegal breaks in their sequence numbers.

A leader accepts a batch whose first sequence follows the producer's last sequence. The first sequence of a new epoch is
0, and 0 follows 2147483647 (KIP-98, Kafka's class ProducerAppendInfo). Followers append batches without this check. Any
first sequence is legal if the broker has no state of the producer: at the start of the log, and after a day without a
batch (``producer.id.expiration.ms``). A gap is legal where compaction has removed whole batches with their offsets.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, ClassVar, Final

from kdump.answers.collector import Collector, Needs, Reading, keep_best
from kdump.answers.producer_state import ProducerReplay
from kdump.answers.question import EXIT_STATUS, LineTable, LogQuestion, option
from kdump.internal_topics import cluster_metadata, consumer_offsets
from kdump.primitives.wire import INT32_MAX
from kdump.segments.regions import Damage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.answers.collector import Place
    from kdump.records.record_batch import Batches, RecordBatch
    from kdump.segments.regions import Trailing


EXPIRATION: Final = 86_400_000
"""Kafka's default of ``producer.id.expiration.ms``: one day."""
COUNT: Final = INT32_MAX + 1
"""The number of different sequence numbers."""
UNCHECKED: Final = frozenset({consumer_offsets.TOPIC})
"""Topics that are not checked: their coordinator writes batches for producers, always with sequence 0."""

_COLUMNS: Final = (
    "base_offset",
    "last_offset",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "last_sequence",
    "max_timestamp",
)


@dataclass(frozen=True)
class SequenceBreak:
    """A batch with an unexpected sequence or epoch. ``what``: gap, repeat, or epoch (then the numbers are epochs)."""

    kind: ClassVar[str] = "sequence"
    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    offset: int
    expected: int
    found: int
    what: str


@dataclass(slots=True)
class _Expected:
    """The expected next batch of a producer. ``missing``: the number of missing offsets before its last batch."""

    epoch: int
    sequence: int | None
    timestamp: int
    missing: int


class SequenceCheck:
    """Checks the sequences of one partition. The caller adds batches in offset order."""

    def __init__(self, topic: str, partition: int) -> None:
        self.found: list[SequenceBreak] = []
        self._key = topic, partition
        self._is_checked = topic not in UNCHECKED
        self._producers: dict[int, _Expected] = {}
        self._end: int | None = None
        self._missing = 0

    def add(self, batches: Batches) -> None:
        if batches.batch_count == 1:
            self._go_on(batches.first.base_offset, batches.last_offset)
            self._check(batches.first)
            return
        for row, (base, last, producer_id, epoch, first, sequence, timestamp) in enumerate(
            zip(*map(batches.column, _COLUMNS), strict=True)
        ):
            self._go_on(base, last)
            known = self._producers.get(producer_id)
            if known is not None and known.epoch == epoch and known.sequence == first:
                known.sequence, known.timestamp, known.missing = (sequence + 1) % COUNT, timestamp, self._missing
            elif producer_id >= 0:
                self._check(batches.batch(row))

    def _go_on(self, base: int, last: int) -> None:
        if self._end is not None and base > self._end:
            self._missing += base - self._end
        self._end = last + 1

    def _check(self, batch: RecordBatch) -> None:
        producer_id, epoch = batch.producer_id, batch.producer_epoch
        if producer_id is None or epoch is None or producer_id < 0 or not self._is_checked:
            return
        known = self._producers.get(producer_id)
        if known is None:
            known = self._producers[producer_id] = _Expected(epoch, None, batch.max_timestamp, self._missing)
        elif epoch < known.epoch:
            self._add_break(batch, known.epoch, epoch, "epoch")
            return
        elif epoch > known.epoch:
            known.epoch, known.sequence = epoch, 0
        if batch.is_control:
            known.timestamp = batch.max_timestamp
        else:
            self._take(known, batch)

    def _take(self, known: _Expected, batch: RecordBatch) -> None:
        first, last = batch.base_sequence, batch.last_sequence
        if first is None or last is None or first < 0:
            return
        expected, follows = known.sequence, (last + 1) % COUNT
        forgotten = batch.max_timestamp - known.timestamp >= EXPIRATION
        ahead = 0 if expected is None or forgotten else (first - expected) % COUNT
        if ahead >= COUNT // 2:
            self._add_break(batch, expected or 0, first, "repeat")
            if (follows - (expected or 0)) % COUNT >= COUNT // 2:  # the whole batch is a repeat
                follows = expected or 0
        elif ahead > self._missing - known.missing:
            self._add_break(batch, expected or 0, first, "gap")
        known.sequence, known.timestamp, known.missing = follows, batch.max_timestamp, self._missing

    def _add_break(self, batch: RecordBatch, expected: int, found: int, what: str) -> None:
        producer_id, epoch = batch.producer_id or 0, batch.producer_epoch or 0
        self.found.append(SequenceBreak(*self._key, producer_id, epoch, batch.base_offset, expected, found, what))


@dataclass(frozen=True)
class ActiveProducer:
    """The state of a producer in a partition. Without a value, ``last_sequence`` and ``last_timestamp_ms`` are -1."""

    kind: ClassVar[str] = "producer"
    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int | None
    current_transaction_start_offset: int | None


class Producers(Collector):
    """Collects the producers of partitions. With ``gaps`` all batch headers are read, to find breaks in sequences.

    It reports the replica with the newest leader epoch, then the greatest end offset.
    """

    def __init__(self, *, gaps: bool = False) -> None:
        self._gaps = gaps
        self._found: dict[tuple[str, int], tuple[tuple[int, int], list[ActiveProducer | SequenceBreak]]] = {}
        """Partition -> the rank of its most current replica, and the lines of this replica."""
        self._place: Place | None = None
        self._replay: ProducerReplay | None = None
        self._sequences: SequenceCheck | None = None

    def begin(self, place: Place) -> Reading:
        if place.key is None:
            return Reading(Needs.FILES)
        self._place, self._replay = place, ProducerReplay(place)
        if not self._gaps:
            return Reading(Needs.HEADERS, self._replay.since)
        self._sequences = SequenceCheck(*place.key)
        return Reading(Needs.HEADERS)

    def add(self, batches: Batches) -> None:
        if self._replay is None:
            return
        if self._sequences is not None:
            self._sequences.add(batches)
        self._replay.add(batches)

    def lose(self, region: Damage | Trailing) -> None:
        """Drop a replica with an unreadable file, because the file may have newer batches of producers."""
        if isinstance(region, Damage) and region.is_unreadable:
            self._replay = None

    def end(self) -> None:
        place, replay, sequences = self._place, self._replay, self._sequences
        self._place = self._replay = self._sequences = None
        if place is None or replay is None or place.key is None:
            return
        replay.end()
        if not replay.from_snapshot and replay.state.producers:
            _note_missing_snapshot(place)
        state = replay.state
        lines: list[ActiveProducer | SequenceBreak] = [
            ActiveProducer(
                *place.key,
                producer_id,
                producer.epoch,
                producer.last_sequence,
                producer.timestamp,
                producer.coordinator_epoch,
                state.open[producer_id].first_offset if producer_id in state.open else None,
            )
            for producer_id, producer in sorted(state.producers.items())
        ]
        lines += sequences.found if sequences else []
        keep_best(self._found, {place.key: (replay.rank, lines)}, itemgetter(0))

    def merge(self, other: Producers) -> None:
        keep_best(self._found, other._found, itemgetter(0))

    def answer(self, at: int) -> Iterator[ActiveProducer | SequenceBreak]:  # noqa: ARG002  no age is asked for
        for key in sorted(self._found):
            yield from self._found[key][1]


def _note_missing_snapshot(place: Place) -> None:
    """Report that several segments have no valid snapshot: the broker's producers may differ from the answer."""
    segments = place.partition.segments
    text = (
        "no valid producer snapshot: the broker may have removed some of these producers, as it does a day after "
        "their last batch"
    )
    if segments and segments[0].base_offset and len(segments) > 1:
        text = f"{text}; producers that wrote only to deleted segments are missing"
    if len(segments) > 1:  # a log with one segment has no snapshot in a broker's log dir either
        place.report.note(f"{place.partition.name}: {text}")


HELP: Final = f"""List the producers in the producer state of each partition.

\b
Examples:
  kdump producers /var/kafka --topic orders
  kdump producers /var/kafka --gaps -o jsonl | jq 'select(.kind=="sequence")'

\b
lastSequence       from its last batch; -1 after a marker with a newer epoch
lastTimestampMs    from its last batch or marker
coordinatorEpoch   from its last marker; null if there is none
currentTransactionStartOffset
                   first offset of its open transaction, else null

The state is the one that a broker rebuilds from these files: the newest valid producer snapshot, then the log after
it. Without a snapshot the whole log is read. A broker forgets a producer a day after its last batch
(producer.id.expiration.ms); kdump lists it longer.

\b
--gaps adds a line for each break, with the expected and found sequence:
gap       sequence numbers are missing, and missing offsets do not explain it
repeat    the sequence is below the expected one
epoch     a batch of an older epoch after a batch of a newer epoch
These are not breaks: the first sequence of a new producer, or after a day
without batches; 0 in a new epoch; 0 after 2147483647; compacted batches.
{EXIT_STATUS}"""


@dataclass(frozen=True)
class ProducersOptions:
    gaps: bool = option(
        False, "switch", "--gaps", "Find gaps, repeats and older epochs in sequences; reads all batch headers."
    )


QUESTION: Final = LogQuestion(
    "producers",
    HELP,
    ProducersOptions,
    (ActiveProducer, SequenceBreak),
    lambda _, options: Producers(gaps=options.gaps),
    tables=(
        LineTable("producers", ActiveProducer),
        LineTable("sequence_breaks", SequenceBreak, "--gaps", {"gaps": True}),
    ),
    also=(cluster_metadata.TOPIC,),
    unit="replicas",
)
