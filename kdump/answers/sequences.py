"""Breaks in the sequence numbers of producers, with what is legal left out.

A leader takes a batch whose sequence follows the producer's last one, and the first batch of a new epoch with 0
(KIP-98, Kafka's class ProducerAppendInfo); after 2147483647 comes 0. Followers append what the leader has, unchecked.
Any beginning is legal where the broker knew no producer: at the start of the log, and after a day without a batch
(``producer.id.expiration.ms``). Compaction takes whole batches; the offsets that are missing account for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from kdump.internal_topics import consumer_offsets
from kdump.primitives.wire import INT32_MAX

if TYPE_CHECKING:
    from kdump.records.record_batch import Batches, RecordBatch

EXPIRATION: Final = 86_400_000
"""``producer.id.expiration.ms`` where nothing else is set."""
COUNT: Final = INT32_MAX + 1
"""How many sequence numbers there are."""
UNCHECKED: Final = frozenset({consumer_offsets.TOPIC})
"""Topics whose coordinator writes the batches of others' transactions, each with sequence 0."""

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
    """A batch that does not follow. ``what``: gap, repeat (it was appended before), epoch (an older one wrote)."""

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
    """What a producer's next batch must be; ``missing`` counts the offsets that the log lacked until then."""

    epoch: int
    sequence: int | None
    timestamp: int
    missing: int


class SequenceCheck:
    """Follows the sequences of one partition; batches are added in offset order."""

    def __init__(self, topic: str, partition: int) -> None:
        self.found: list[SequenceBreak] = []
        self._key = topic, partition
        self._is_checked = topic not in UNCHECKED
        self._producers: dict[int, _Expected] = {}
        self._end: int | None = None
        self._missing = 0

    def add(self, batches: Batches) -> None:
        """Take the next batches."""
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
            self._say(batch, known.epoch, epoch, "epoch")
            return
        elif epoch > known.epoch:
            known.epoch, known.sequence = epoch, 0
        if not batch.is_control:
            self._take(known, batch)

    def _take(self, known: _Expected, batch: RecordBatch) -> None:
        first, last = batch.base_sequence, batch.last_sequence
        if first is None or last is None or first < 0:
            return
        expected, follows = known.sequence, (last + 1) % COUNT
        forgotten = batch.max_timestamp - known.timestamp >= EXPIRATION
        ahead = 0 if expected is None or forgotten else (first - expected) % COUNT
        if ahead >= COUNT // 2:
            self._say(batch, expected or 0, first, "repeat")
            if (follows - (expected or 0)) % COUNT >= COUNT // 2:  # nothing new is in it
                follows = expected or 0
        elif ahead > self._missing - known.missing:
            self._say(batch, expected or 0, first, "gap")
        known.sequence, known.timestamp, known.missing = follows, batch.max_timestamp, self._missing

    def _say(self, batch: RecordBatch, expected: int, found: int, what: str) -> None:
        producer_id, epoch = batch.producer_id or 0, batch.producer_epoch or 0
        self.found.append(SequenceBreak(*self._key, producer_id, epoch, batch.base_offset, expected, found, what))
