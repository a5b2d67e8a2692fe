"""Collects the last state of each transactional id in ``__transaction_state`` (KIP-98, KIP-890).

:class:`KnownIds` finds the transactional id of a producer id, and whether its last state is certain.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final

from kdump.answers.collector import Collector, Needs, keep_best
from kdump.answers.coordinator import PARTITIONS, topic_partitions
from kdump.errors import DamageError, discard
from kdump.formats.record_layout import BATCH_HEADER, CODEC_MASK, MAGIC_2
from kdump.internal_topics.decode import decode
from kdump.internal_topics.transaction_state import STATES, TOPIC
from kdump.primitives.wire import read_varint
from kdump.segments.log_end import NO_END, LogEnd
from kdump.segments.regions import Trailing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from kdump.answers.collector import Place
    from kdump.formats.leader_epoch import EpochEntry
    from kdump.log_dirs.partition import Segment
    from kdump.records.record_batch import Batches
    from kdump.segments.regions import Damage

PRODUCER_ID_AT: Final = slice(2, 10)
"""The bytes of the producer id in a value: they follow the int16 version."""
CUT: Final = 1 << 17
"""Bytes to read from a truncated batch: enough for the longest transactional id and the start of its state."""
SMALLEST_NAMING: Final = 43
"""Bytes of the smallest value that names a partition (version 1, a topic of one letter)."""


@dataclass(frozen=True)
class TransactionalId:
    """The last state of a transactional id. Times are in ms. A field is None if the state lacks it."""

    kind: ClassVar[str] = "coordinator"
    transactional_id: str
    coordinator_partition: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    start_time_ms: int | None
    last_update_ms: int
    partitions: tuple[str, ...]
    previous_producer_id: int | None
    """The producer id that the transactional id had before this state (KIP-890)."""
    next_producer_id: int | None

    @property
    def producer_ids(self) -> set[int]:
        known = (self.producer_id, self.previous_producer_id, self.next_producer_id)
        return {one for one in known if one is not None and one >= 0}


@dataclass
class _CoordinatorLog:
    """One partition of ``__transaction_state``. ``lost``: the producer ids whose last state is in a truncated batch."""

    number: int
    ids: dict[str, TransactionalId] = field(default_factory=dict)
    lost: set[int] = field(default_factory=set)
    is_unreadable: bool = False
    """Whether states are lost, so that some transactional ids may be missing."""
    end: LogEnd = NO_END
    epochs: tuple[EpochEntry, ...] = ()

    @property
    def rank(self) -> tuple[int, int]:
        return self.end.with_epochs(self.epochs).rank


class TransactionalIds(Collector):
    """Collects the last state of each id, from the replica with the newest epoch, then the highest end offset."""

    def __init__(self) -> None:
        self._logs: dict[int, _CoordinatorLog] = {}
        self._log: _CoordinatorLog | None = None
        self._segment: Segment | None = None
        self._note: Callable[[str], None] = discard

    def begin(self, place: Place) -> Needs:
        if place.partition.topic != TOPIC or place.partition.partition is None:
            return Needs.FILES
        self._log = _CoordinatorLog(place.partition.partition, epochs=place.leader_epochs())
        self._note = place.report.note
        return Needs.RECORDS

    @property
    def is_reading(self) -> bool:
        """Whether the current partition belongs to ``__transaction_state``."""
        return self._log is not None

    def turn_to(self, segment: Segment) -> None:
        self._segment = segment

    def add(self, batches: Batches) -> int | None:
        log = self._log
        if log is None:
            return None
        if batches.batch_count > 1:
            return 0
        batch = batches.first
        log.end = LogEnd(batch.last_offset + 1, batch.leader_epoch)
        if batch.is_control:
            return None
        try:
            for record in batch.records():
                if reason := _apply(log, record.key, record.value):
                    self._note(f"{TOPIC}-{log.number}: offset {record.offset}: {reason}: a broker ignores this record")
        except DamageError:
            log.is_unreadable = True
            raise
        return None

    def lose(self, region: Damage | Trailing) -> None:
        segment = self._segment
        if self._log is None or segment is None:
            return
        lost = _cut_state(segment, region) if isinstance(region, Trailing) else None
        if lost is None:
            self._log.is_unreadable = True
            return
        transactional_id, producer_id = lost
        if producer_id is not None:
            known = self._log.ids.get(transactional_id)
            self._log.lost |= {producer_id, *(known.producer_ids if known else ())}
        self._note(f"{segment.name}: the last record of transactional id {transactional_id!r} is truncated")

    def end(self) -> None:
        if self._log is not None:
            keep_best(self._logs, {self._log.number: self._log}, attrgetter("rank"))
        self._log, self._segment, self._note = None, None, discard

    def merge(self, other: TransactionalIds) -> None:
        keep_best(self._logs, other._logs, attrgetter("rank"))

    def answer(self, at: int) -> Iterator[TransactionalId]:  # noqa: ARG002  no age is asked for
        for _, log in sorted(self._logs.items()):
            yield from sorted(log.ids.values(), key=lambda one: one.transactional_id)

    def known(self, partitions: int | None = None) -> KnownIds:
        """Return the collected ids. ``partitions`` is the number of partitions of the topic, or None if unknown."""
        found = topic_partitions(self._logs, partitions)
        condition = f", if {TOPIC} has no more partitions than {found.whole}"
        return KnownIds(
            tuple(self.answer(0)),
            is_whole=found.is_whole,
            condition=condition if partitions is None and found.whole != PARTITIONS else "",
            lost=frozenset(one for log in self._logs.values() for one in log.lost),
            unreadable=frozenset(number for number, log in self._logs.items() if log.is_unreadable),
        )


class KnownIds:
    """Transactional ids by producer id. ``condition``: a phrase about an assumed number of partitions, or empty."""

    def __init__(
        self,
        ids: tuple[TransactionalId, ...],
        *,
        is_whole: bool,
        condition: str = "",
        lost: frozenset[int] = frozenset(),
        unreadable: frozenset[int] = frozenset(),
    ) -> None:
        self.is_whole = is_whole
        self.condition = condition
        self._lost = lost
        self._unreadable = unreadable
        self._current = {one.producer_id: one for one in ids}
        self._any = {producer_id: one for one in ids for producer_id in one.producer_ids} | self._current

    def naming(self, producer_id: int, partition: str) -> TransactionalId | None:
        """Return the transactional id that has this producer id now, if it lists ``partition``."""
        found = self._current.get(producer_id)
        return found if found is not None and partition in found.partitions else None

    def of(self, producer_id: int) -> TransactionalId | None:
        """Return the transactional id whose current, previous or next producer id is this one, if there is one."""
        return self._any.get(producer_id)

    def is_sure(self, producer_id: int) -> bool:
        """Return whether it is certain which state of a producer id is the last, or that there is none.

        A truncated state is uncertain, and so are all states in a partition with an unreadable state. The absence of a
        state is uncertain if any partition has an unreadable state. Missing partitions do not count: see ``is_whole``.
        """
        if producer_id in self._lost:
            return False
        found = self._current.get(producer_id)
        return not self._unreadable if found is None else found.coordinator_partition not in self._unreadable


def _apply(log: _CoordinatorLog, key: bytes | None, value: bytes | None) -> str:
    """Apply a record: set the state of its id, or remove the id if the value is null. Raises DamageError.

    Return why a broker ignores the record, or "" (``TransactionStateManager.loadTransactionMetadata`` of 4.3.1). An
    older broker stops at an unknown version of a value, so the states are uncertain then.
    """
    record = decode(TOPIC, key, value)
    made = None if record is None else record.key
    if made is not None and not made.known:
        return made.reason
    if record is None or made is None or made.values is None:
        raise DamageError("payload", f"a record of {TOPIC}: {made.reason if made else 'it has no key'}")
    transactional_id = str(made.values["transactionalId"])
    if record.value is None:
        log.ids.pop(transactional_id, None)
    elif not record.value.known:
        log.is_unreadable = True
        return f"the state of transactional id {transactional_id!r}: {record.value.reason}"
    elif record.value.values is None:
        raise DamageError("payload", f"the state of transactional id {transactional_id!r}: {record.value.reason}")
    else:
        log.ids[transactional_id] = _state(transactional_id, log.number, record.value.values)
    return ""


def _state(transactional_id: str, number: int, values: Mapping[str, Any]) -> TransactionalId:
    status, start = values["transactionStatus"], values["transactionStartTimestampMs"]
    return TransactionalId(
        transactional_id,
        number,
        values["producerId"],
        values["producerEpoch"],
        STATES[status] if 0 <= status < len(STATES) else f"unknown ({status})",
        values["transactionTimeoutMs"],
        None if start < 0 else start,
        values["transactionLastUpdateTimestampMs"],
        tuple(
            sorted(
                f"{one['topic']}-{partition}"
                for one in values["transactionPartitions"] or ()
                for partition in one["partitionIds"]
            )
        ),
        _id(values.get("previousProducerId")),
        _id(values.get("nextProducerId")),
    )


def _id(value: int | None) -> int | None:
    return None if value is None or value < 0 else value


def _cut_state(segment: Segment, region: Trailing) -> tuple[str, int | None] | None:
    """Return the transactional id and the producer id in a truncated batch of one uncompressed record.

    The producer id is None if the state has no partition. Return None for other batches, or if too few bytes are left.
    """
    with segment.open() as source:
        data = source.read(region.position, min(region.size, CUT))
    if len(data) < BATCH_HEADER.size:
        return None
    header = BATCH_HEADER.read(data)
    if header.magic != MAGIC_2 or header.records_count != 1 or header.attributes & CODEC_MASK:
        return None
    try:
        _, at = read_varint(data, BATCH_HEADER.size)
        _, at = read_varint(data, at + 1, 64)
        _, at = read_varint(data, at)
        size, at = read_varint(data, at)
        key, at = data[at : at + size], at + size
        value_size, at = read_varint(data, at)
    except DamageError:
        return None
    record = decode(TOPIC, key, None) if size >= 0 else None
    if record is None or record.key is None or record.key.values is None:
        return None
    transactional_id, number = str(record.key.values["transactionalId"]), data[at:][PRODUCER_ID_AT]
    if value_size < SMALLEST_NAMING:
        return transactional_id, None
    return (transactional_id, int.from_bytes(number, "big", signed=True)) if len(number) == 8 else None
