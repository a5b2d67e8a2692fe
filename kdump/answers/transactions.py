"""The question ``transactions``: open, hanging, committed and aborted transactions of partitions.

Like ``kafka-transactions.sh`` (KIP-664), but from files. The lines have commands that end transactions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final, Literal, NamedTuple, TypeAlias

from kdump.answers.collector import Collector, Needs, Reading
from kdump.answers.metadata.image import partition_count
from kdump.answers.producer_state import ProducerReplay
from kdump.answers.question import EXIT_STATUS, LineTable, LogQuestion, option
from kdump.answers.transactional_ids import TransactionalId, TransactionalIds
from kdump.errors import DamageError
from kdump.internal_topics import cluster_metadata, transaction_state
from kdump.internal_topics.transaction_state import TOPIC
from kdump.log_dirs.file_names import LEADER_EPOCHS, PARTITION_METADATA
from kdump.primitives.terminal import shell_text
from kdump.primitives.timestamps import iso_or_ms
from kdump.records.record_batch import Batches

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kdump.answers.collector import AnswerLine, Place
    from kdump.answers.log_dir_pass import LogDirPass
    from kdump.answers.producer_state import Producer
    from kdump.answers.question import Asking
    from kdump.answers.transactional_ids import KnownIds
    from kdump.log_dirs.finder import Wanted
    from kdump.log_dirs.partition import Partition, Segment
    from kdump.segments.regions import Damage, Trailing
    from kdump.transaction_replay.replay import EndedTransaction, OpenTransaction

State: TypeAlias = Literal["open", "hanging", "committed", "aborted"]
Clock: TypeAlias = Literal["coordinator", "records"]
"""The source of a time: the coordinator's clock, or the timestamps of records, which producers may set."""
MAX_TIMEOUT: Final = 900_000
"""The age in ms above which a transaction may hang: the default of transaction.max.timeout.ms, as in find-hanging."""

NEVER: Final = 2**31 - 1
"""The timeout in ms that stands for two-phase commit: coordinators from 4.1 on never end the transaction (KIP-939)."""
TWO_PHASE: Final = (
    "the transaction uses two-phase commit (KIP-939), so Kafka's coordinator never ends it: look up the decision of "
    "the external coordinator. Then start the producer again with its transactional id: the producer commits or aborts "
    "the transaction"
)


TOOL: Final = "kafka-transactions.sh --bootstrap-server"
BY_START_OFFSET: Final = (3, 0)
"""The first release whose tool aborts a transaction by its start offset (DescribeProducers)."""
TERMINATE: Final = (4, 1)
"""The first release whose tool has forceTerminateTransaction (KIP-939)."""


class AbortLines(NamedTuple):
    """Makes the commands that end transactions on a broker of ``release`` (None if unknown)."""

    bootstrap_server: str = "HOST:9092"
    release: tuple[int, ...] | None = None

    def abort(self, key: tuple[str, int], begun: OpenTransaction, producer: Producer, *, is_old: bool) -> str:
        """Return the command that aborts a transaction. Without a release, ``is_old`` means one before 3.0."""
        where = f"--topic {shell_text(key[0])} --partition {key[1]}"
        if is_old if self.release is None else self.release < BY_START_OFFSET:
            epoch = producer.coordinator_epoch or 0
            names = f"--producer-id {begun.producer_id} --producer-epoch {producer.epoch} --coordinator-epoch {epoch}"
            return f"{self._tool} abort {where} {names}"
        return f"{self._tool} abort {where} --start-offset {begun.first_offset}"

    def terminate(self, transactional_id: str) -> str | None:
        """Return the command that makes the coordinator end a transaction; None if the release has no such command."""
        if self.release is not None and self.release < TERMINATE:
            return None
        return f"{self._tool} forceTerminateTransaction --transactionalId {shell_text(transactional_id)}"

    @property
    def _tool(self) -> str:
        return f"{TOOL} {shell_text(self.bootstrap_server)}"


@dataclass(frozen=True)
class PartitionTransaction:
    """A transaction in one partition. Times are in ms. None means that there is no value, or that it is unknown.

    ``age_ms`` is the time since ``start_time_ms`` if ``clock`` is ``coordinator``. The clock is ``records`` if no
    coordinator state lists the partition, or the transaction has ended: ``age_ms`` is from ``last_timestamp_ms`` on.
    ``last_offset`` is that of the producer's last data batch, ``end_offset`` that of the marker (None if open).
    """

    kind: ClassVar[str] = "transaction"
    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None
    start_offset: int | None
    last_offset: int | None
    last_timestamp_ms: int
    age_ms: int
    state: State
    end_offset: int | None
    transactional_id: str | None
    abort: str | None
    terminate: str | None = None
    """The command that makes the coordinator end the transaction, if its timeout has passed or it has none."""
    two_phase: bool = False
    """Whether the transaction has no timeout, because an external coordinator ends it (KIP-939)."""
    last_transactional_id: str | None = None
    """The transactional id that has, had or will have the producer id. It need not list the partition."""
    held_back: int = 0
    """The number of offsets that the oldest open transaction hides from read_committed consumers; 0 for others."""
    why: str = ""
    start_time_ms: int | None = None
    clock: Clock = "records"


@dataclass(frozen=True)
class ReplicaDifference:
    """An open transaction that the replica in ``log_dir`` has and the reported replica lacks, or the reverse."""

    kind: ClassVar[str] = "difference"
    topic: str
    partition: int
    log_dir: str
    end_offset: int
    text: str


class _Open(NamedTuple):
    transaction: OpenTransaction
    producer: Producer
    is_doubted: bool
    """Whether its marker may be in unreadable bytes."""


@dataclass
class _Replica:
    """The facts of one replica. ``is_old``: a broker before 3.0 wrote its files."""

    folder: str
    log_dir: str
    rank: tuple[int, int]
    start_offset: int
    open: dict[int, _Open]
    is_old: bool

    @property
    def end_offset(self) -> int:
        return self.rank[1]

    @cached_property
    def oldest(self) -> int | None:
        return min((one.transaction.first_offset for one in self.open.values()), default=None)


class Transactions(Collector):
    """Gathers transactional ids, and the open transactions of the partitions that ``asked`` selects.

    Memory grows with ids, open transactions and one log's producers. ``max_timeout`` is in ms. ``lines`` makes the
    commands that end a transaction. ``coordinators`` is the number of partitions of ``__transaction_state``, or None if
    unknown. ``ids`` are transactional ids from an earlier pass.
    """

    def __init__(
        self,
        asked: Wanted,
        lines: AbortLines | None = None,
        *,
        max_timeout: int = MAX_TIMEOUT,
        coordinators: int | None = None,
        ids: TransactionalIds | None = None,
    ) -> None:
        self._asked = asked
        self._lines = lines or AbortLines()
        self._max_timeout = max_timeout
        self._coordinators = coordinators
        self._ids = TransactionalIds() if ids is None else ids
        self._found: dict[tuple[str, int], list[_Replica]] = {}
        self._place: Place | None = None
        self._replay: ProducerReplay | None = None

    def begin(self, place: Place) -> Reading:
        needs = self._ids.begin(place)
        if place.key is None or not self._asked.takes(place.name):
            return Reading(needs)
        self._place, self._replay = place, ProducerReplay(place)
        return Reading(Needs.HEADERS, self._replay.since) if needs == Needs.FILES else Reading(needs)

    def turn_to(self, segment: Segment) -> None:
        self._ids.turn_to(segment)

    def add(self, batches: Batches) -> int | None:
        """Add batches. Return 0 for a run of ``__transaction_state``: its batches must come one at a time."""
        if batches.batch_count > 1 and self._ids.is_reading:
            return 0
        if self._replay is not None:
            self._replay.add(batches)
        return self._ids.add(batches)

    def lose(self, region: Damage | Trailing) -> None:
        if self._replay is not None:
            self._replay.lose(region)
        self._ids.lose(region)

    def end(self) -> None:
        self._ids.end()
        place, replay = self._place, self._replay
        self._place = self._replay = None
        if place is None or replay is None or (key := place.key) is None:
            return
        replay.end()
        files, state = place.partition.files, replay.state
        self._found.setdefault(key, []).append(
            _Replica(
                files.shown(place.partition.folder),
                place.log_dir.path,
                replay.rank,
                place.earliest(place.first_offset),
                {one: _Open(found, state.producers[one], one in replay.doubted) for one, found in state.open.items()},
                _is_old(place),
            )
        )

    def merge(self, other: Transactions) -> None:
        self._ids.merge(other._ids)
        for key, replicas in other._found.items():
            self._found.setdefault(key, []).extend(replicas)

    @property
    def ids(self) -> KnownIds:
        return self._ids.known(self._coordinators)

    @property
    def gathered(self) -> TransactionalIds:
        return self._ids

    def is_best(self, partition: Partition) -> bool:
        """Return whether a folder is the reported replica of its partition."""
        replicas = self._found.get((partition.topic or "", partition.partition or 0), ())
        folder = partition.files.shown(partition.folder)
        return bool(replicas) and _best(replicas).folder == folder

    def answer(self, at: int) -> Iterator[PartitionTransaction | ReplicaDifference | TransactionalId]:
        judge = _Judge(at, self.ids, self._lines, self._max_timeout)
        for key, replicas in sorted(self._found.items()):
            best = _best(replicas)
            for found in sorted(best.open.values(), key=lambda one: one.transaction.first_offset):
                yield judge.judge(key, best, found)
            for replica in replicas:
                if replica is not best:
                    yield from _differences(key, best, replica)
        yield from self._ids.answer(at)


def _best(replicas: Iterable[_Replica]) -> _Replica:
    return max(replicas, key=lambda replica: replica.rank)


def _is_old(place: Place) -> bool:
    """Return whether a broker of 0.11 to 2.x wrote the files: with leader epochs, without ``partition.metadata``."""
    names = {entry.name for entry in place.partition.others}
    return LEADER_EPOCHS in names and PARTITION_METADATA not in names


class _Judge(NamedTuple):
    at: int
    ids: KnownIds
    lines: AbortLines
    max_timeout: int

    def judge(self, key: tuple[str, int], replica: _Replica, found: _Open) -> PartitionTransaction:
        """Return the line of an open transaction.

        Its state is "hanging" if it is certain that no coordinator state lists it and no marker has ended it, and its
        last timestamp is more than ``max_timeout`` ago.
        """
        (topic, number), (begun, producer, is_doubted) = key, found
        name, producer_id = f"{topic}-{number}", begun.producer_id
        age = self.at - producer.timestamp
        named, owner = self.ids.naming(producer_id, name), self.ids.of(producer_id)
        state: State = "open"
        abort = terminate = None
        two_phase = False
        if not self.ids.is_whole:
            why = f"the paths lack partitions of {TOPIC}: it is unknown whether the transaction hangs"
        elif named is not None:
            why, terminate = self._known(named)
            two_phase = why == TWO_PHASE
        elif not self.ids.is_sure(producer_id):
            why = (
                f"{TOPIC} is truncated or damaged at the state of the transaction: it is unknown whether the "
                "transaction hangs"
            )
        elif is_doubted:
            why = (
                f"bytes of {name} after the first batch of the transaction cannot be read: they may have its end marker"
            )
        elif age <= self.max_timeout:
            why = (
                f"no transactional id of the producer lists {name}: the transaction hangs once its last timestamp is "
                "older than --max-timeout"
            )
        else:
            state = "hanging"
            abort = self.lines.abort(key, begun, producer, is_old=replica.is_old)
            why = (
                f"no transactional id in {TOPIC} has the producer id"
                if owner is None
                else (f"the transaction of {owner.transactional_id!r} ({owner.state}) does not list {name}")
            ) + self.ids.condition
        started = None if named is None else _start_of(named)
        is_oldest = begun.first_offset == replica.oldest
        return PartitionTransaction(
            topic,
            number,
            producer_id,
            producer.epoch,
            producer.coordinator_epoch,
            begun.first_offset,
            producer.data_offset,
            producer.timestamp,
            age if started is None else self.at - started,
            state,
            None,
            None if named is None or not self.ids.is_whole else named.transactional_id,
            abort,
            terminate,
            two_phase,
            None if owner is None else owner.transactional_id,
            replica.end_offset - max(begun.first_offset, replica.start_offset) if is_oldest else 0,
            why,
            started,
            "records" if started is None else "coordinator",
        )

    def _known(self, named: TransactionalId) -> tuple[str, str | None]:
        """Return a sentence on when the coordinator ends a transaction, and the command if this is overdue or never."""
        if named.state != "Ongoing":
            return (
                f"the coordinator has the transaction in state {named.state}, but this log has no end marker yet. "
                "The coordinator writes the marker when the partition has a leader, even after a restart"
            ), None
        line = self.lines.terminate(named.transactional_id)
        if named.timeout_ms == NEVER and line is not None:
            return TWO_PHASE, line
        ends = _start_of(named) + named.timeout_ms
        if ends > self.at:
            return f"the coordinator aborts the transaction at {iso_or_ms(ends)} unless it ends earlier", None
        return f"the coordinator should have aborted the transaction at {iso_or_ms(ends)}", line


def _start_of(named: TransactionalId) -> int:
    """Return the time at which a transaction began, or else of its last update, in ms by the coordinator's clock."""
    return named.start_time_ms or named.last_update_ms


def _differences(key: tuple[str, int], best: _Replica, other: _Replica) -> Iterator[ReplicaDifference]:
    """Yield transactions that are open in one replica only, unless ``other`` may end before their start or marker."""
    ours = {(one, found.transaction.first_offset) for one, found in best.open.items()}
    theirs = {(one, found.transaction.first_offset) for one, found in other.open.items()}
    texts = [
        f"producer {producer_id} has an open transaction from offset {first} on in {best.log_dir}, but not in "
        "this replica"
        for producer_id, first in sorted(ours - theirs)
        if first < other.end_offset
    ]
    texts += [
        f"producer {producer_id} has an open transaction from offset {first} on in this replica, but not in "
        f"{best.log_dir}"
        for producer_id, first in sorted(theirs - ours)
        if other.end_offset >= best.end_offset
    ]
    for text in texts:
        yield ReplicaDifference(*key, other.log_dir, other.end_offset, text)


def ended(
    reader: LogDirPass, partitions: Iterable[Partition], ids: KnownIds, at: int
) -> Iterator[PartitionTransaction]:
    """Yield the ended transactions whose first offset is known, one at a time. ``reader`` reports damage."""
    for partition in partitions:
        place = reader.place(partition)
        segments = partition.segments
        if place.key is None or not segments:
            continue
        replay = ProducerReplay(place, before=segments[0].base_offset or 0)
        for segment in segments:
            for region in reader.regions(segment, is_last=segment is segments[-1]):
                if not isinstance(region, Batches):
                    continue
                try:
                    found = replay.add(region)
                except DamageError as damage:
                    place.report.damage(f"{segment.name}: byte {region.position}: {damage.reason}")
                    continue
                if found is not None and found.first_offset is not None:
                    yield _ended(place.key, found, replay.state.producers[found.producer_id], ids, at)


def _ended(
    key: tuple[str, int], found: EndedTransaction, producer: Producer, ids: KnownIds, at: int
) -> PartitionTransaction:
    owner = ids.of(found.producer_id)
    owner_id = None if owner is None else owner.transactional_id
    return PartitionTransaction(
        *key,
        found.producer_id,
        found.producer_epoch,
        found.coordinator_epoch,
        found.first_offset,
        producer.data_offset,
        producer.data_timestamp,
        at - producer.data_timestamp,
        "aborted" if found.aborted else "committed",
        found.last_offset,
        owner_id,
        None,
        last_transactional_id=owner_id,
    )


HELP: Final = f"""List open and hanging transactions, and the commands that end them.

\b
Examples:
  kdump transactions /var/kafka
  kdump transactions /var/kafka --topic orders --bootstrap-server b1:9092
  kdump transactions /broker1 /broker2 -o jsonl | jq 'select(.abort)'

Read_committed consumers and the log cleaner stop at the first offset of an open transaction. A transaction hangs if
nothing will end it: its last timestamp is more than --max-timeout before --at, and in __transaction_state no
transactional id with its producer id lists the partition. Give all partitions of __transaction_state: if one is
missing, no transaction is reported as hanging. Give __cluster_metadata too: without it kdump assumes that the highest
partition in the paths is the last one, and may print abort wrongly. --topic does not exclude these topics.

\b
state              open, hanging; with --all committed, aborted
abort              the command that ends a hanging transaction, else null
terminate          the command that ends a transaction that its coordinator
                   knows, if it is past its timeout or has none (4.1 and newer)
twoPhase           whether it uses two-phase commit (KIP-939) and has no timeout.
                   Look up the external decision first: terminate aborts it
transactionalId    the id that has its producer id and lists its partition;
                   null if partitions of __transaction_state are missing.
                   For an ended transaction: lastTransactionalId
lastTransactionalId
                   the id that has, had or will have its producer id
heldBack           number of offsets that consumers do not receive
startTimeMs        start time from the coordinator; null if unknown
ageMs              time since startTimeMs, else since lastTimestampMs, the
                   timestamp of its last batch, which producers may set
clock              coordinator: ageMs counts from startTimeMs; records:
                   from lastTimestampMs
why                the facts known about its end

Lines of kind "coordinator" have the last state of every transactional id. Lines of kind "difference" name replicas
whose open transactions differ. The answer is from the replica with the newest leader epoch, then the longest log. A
transaction that may have ended in unreadable bytes is open, and is not reported as hanging.

Run a command only if the partition's leader agrees: `kafka-transactions.sh describe-producers` must show the same
start offset.
{EXIT_STATUS}"""


@dataclass(frozen=True)
class TransactionsOptions:
    ended_too: bool = option(False, "switch", "--all", "Also list ended transactions; reads all batch headers.")
    max_timeout: int = option(
        MAX_TIMEOUT,
        "duration",
        "--max-timeout",
        "The transaction.max.timeout.ms of the brokers. An older transaction may hang.",
        metavar="TIME",
        shown="15m",
    )
    release: tuple[int, ...] | None = option(
        None, "release", "--release", "The Kafka release that the printed commands are for.", metavar="X.Y"
    )
    bootstrap_server: str = option(
        AbortLines().bootstrap_server,
        "text",
        "--bootstrap-server",
        "The broker that the printed commands name.",
        metavar="HOST:PORT",
        shown=True,
    )


def _collector(asking: Asking, options: TransactionsOptions) -> Transactions:
    return Transactions(
        asking.asked,
        AbortLines(options.bootstrap_server, options.release),
        max_timeout=options.max_timeout,
        coordinators=partition_count(asking.image, transaction_state.TOPIC),
    )


def _more(asking: Asking, options: TransactionsOptions, collector: Transactions) -> Iterator[AnswerLine]:
    if options.ended_too:
        best = [one for one in asking.meant() if collector.is_best(one)]
        yield from ended(asking.reader([]), best, collector.ids, asking.at)


def _prepare(collector: Transactions, asking: Asking) -> None:
    """Read the transactional ids before the Spark tasks start, because each task needs them."""
    asking.feed(collector.gathered, (one for one in asking.found if one.topic == transaction_state.TOPIC))


_ALL: Final = {"ended_too": True}
_CLOCK: Final = frozenset({"startTimeMs", "clock"})
"""Fields about the clock of ``age_ms``. Only the table ``transaction_details`` has them."""
QUESTION: Final = LogQuestion(
    "transactions",
    HELP,
    TransactionsOptions,
    (PartitionTransaction, ReplicaDifference, TransactionalId),
    _collector,
    more=_more,
    tables=(
        LineTable("transactions", PartitionTransaction, "--all", _ALL, _CLOCK),
        LineTable("transaction_details", PartitionTransaction, "--all", _ALL),
        LineTable("transactional_ids", TransactionalId, "--all", _ALL),
        LineTable("replica_differences", ReplicaDifference, "--all", _ALL),
    ),
    also=(transaction_state.TOPIC, cluster_metadata.TOPIC),
    reads=(transaction_state.TOPIC,),
    unit="replicas",
    once=TransactionalId,
    prepare=_prepare,
)
