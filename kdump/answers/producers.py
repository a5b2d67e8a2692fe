"""The producers that partitions know, as ``kafka-transactions.sh describe-producers`` gives them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from kdump.answers.collector import Collector, Needs, Reading
from kdump.answers.producer_state import ProducerReplay
from kdump.answers.question import EXIT_STATUS, LineTable, LogQuestion, option
from kdump.answers.sequences import SequenceBreak, SequenceCheck
from kdump.segments.regions import Damage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.answers.collector import Place
    from kdump.records.record_batch import Batches
    from kdump.segments.regions import Trailing


@dataclass(frozen=True)
class ActiveProducer:
    """A producer as a partition knows it; the last sequence is -1, the other fields None, where there is none."""

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
    """Gathers the producers of partitions; with ``gaps`` the breaks in their sequences, for which all is read.

    Of several replicas that one counts whose log end has the greatest leader epoch, then the greatest offset.
    """

    def __init__(self, *, gaps: bool = False) -> None:
        self._gaps = gaps
        self._found: dict[tuple[str, int], _Known] = {}
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
        """Leave a partition out whose file cannot be read: producers may have gone on in it."""
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
        producers = [
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
        self._keep(place.key, _Known(replay.rank, producers, sequences.found if sequences else []))

    def _keep(self, key: tuple[str, int], found: _Known) -> None:
        if key not in self._found or self._found[key].rank < found.rank:
            self._found[key] = found

    def merge(self, other: Producers) -> None:
        for key, found in other._found.items():
            self._keep(key, found)

    def answer(self, at: int) -> Iterator[ActiveProducer | SequenceBreak]:  # noqa: ARG002  no age is asked for
        for key in sorted(self._found):
            yield from self._found[key].producers
            yield from self._found[key].breaks


@dataclass(frozen=True)
class _Known:
    """What a replica knows; ``rank`` says how near it is to its leader."""

    rank: tuple[int, int]
    producers: list[ActiveProducer]
    breaks: list[SequenceBreak]


def _note_missing_snapshot(place: Place) -> None:
    """Note what only a snapshot holds: a broker forgets producers by age, and logs lose their first segments."""
    segments = place.partition.segments
    text = "no sound producer snapshot: the broker may have forgotten some of these producers (after a day)"
    if segments and segments[0].base_offset and len(segments) > 1:
        text = f"{text}, and those of deleted segments are missing"
    if len(segments) > 1:  # of one segment a broker has no older snapshot either
        place.report.note(f"{place.partition.name}: {text}")


HELP: Final = (
    """List the producers that each partition knows.

\b
Examples:
  kdump producers /var/kafka --topic orders
  kdump producers /var/kafka --gaps -o jsonl | jq 'select(.kind=="sequence")'

\b
lastSequence       of its last batch; -1 after a marker of a newer epoch
lastTimestampMs    of its last batch or marker
coordinatorEpoch   of its last marker; null where none was met
currentTransactionStartOffset
                   where its open transaction begins; null where none is

The state is what a broker rebuilds from these files: the newest sound producer snapshot, then the log. Without one
the whole log is read. A running broker forgets a producer a day after its last batch (producer.id.expiration.ms);
files keep it longer.

\b
--gaps adds a line for each break, with what was expected and found:
gap       sequences are missing, and no offsets that could have held them
repeat    a batch that the partition has already
epoch     a batch of an older epoch after one of a newer
Legal and left out: any beginning of a producer that is new or was silent
for a day, 0 in a new epoch, 0 after 2147483647, what compaction took.
"""
    + EXIT_STATUS
)


@dataclass(frozen=True)
class ProducersOptions:
    """The options of the question ``producers``."""

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
    unit="replicas",
)
