"""The answers of kdump from Python: each function asks log dirs one question, as the command of its name does.

>>> import kdump
>>> from kdump.questions import PartitionTransaction
>>> answer = kdump.transactions("golden/brokers/4.2.2", topic="txn", at="2026-11-21T10:00")
>>> for line in answer.of(PartitionTransaction):
...     print(line.topic, line.partition, line.state, line.held_back)
txn 0 open 7
>>> answer.rows()[0]["transactionalId"]
'tx-0'

An answer holds the lines that ``-o jsonl`` prints, as frozen dataclasses. ``topic``, ``partition`` and ``at`` mean what
they mean for the commands: ``at`` is what "now" is, in ms, as ISO 8601 or as a datetime, by default the clock. A file
that cannot be read raises UnreadableError; wrong usage raises UsageError.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike, fspath
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from kdump.answers.abort_lines import AbortLines
from kdump.answers.collector import AnswerLine, Place, as_json
from kdump.answers.compaction.cleaning import CleaningLimits
from kdump.answers.compaction.compacted_logs import CleanedRecord, Compaction, KeyUsage, PartitionCompaction
from kdump.answers.disk_usage import By, DiskUsage, OtherUsage, PartitionUsage, SegmentUsage, TopicUsage
from kdump.answers.explain.explanation import Explanation, OffsetRange, explain_all
from kdump.answers.explain.topic_history import topic_history
from kdump.answers.groups.collector import TOPICS, ConsumerGroups, GroupsWanted
from kdump.answers.groups.expiry import DEFAULT_RETENTION_MS
from kdump.answers.groups.lines import CommitLine, CommittedLine, GroupLine, MissingLine, UnreadLine
from kdump.answers.groups.log_ends import LogEnds
from kdump.answers.log_dir_pass import Collectors, Sayings, feed
from kdump.answers.metadata.answer import TopicLine, takes, topic_lines
from kdump.answers.metadata.copies import NOTHING, Copies, Said
from kdump.answers.metadata.events import Event, without_secrets
from kdump.answers.metadata.image import MetadataLog, image_of, partition_count, topic_names
from kdump.answers.offsets import Offsets, PartitionOffsets, facts_of
from kdump.answers.producers import ActiveProducer, Producers
from kdump.answers.remote_copies import copied_offsets
from kdump.answers.replica_diff.brokers import by_partition, compare_all, pairs
from kdump.answers.replica_diff.pair import BrokerReplica, PairDifference, RecordDifference
from kdump.answers.retention.deletions import Retention, SegmentRetention, TopicRetention
from kdump.answers.retention.rules import rules_of
from kdump.answers.sequences import SequenceBreak
from kdump.answers.statistics import HourStatistics, PartitionStatistics, ProducerStatistics, Statistics
from kdump.answers.topic_configs import TopicConfigs, given_config
from kdump.answers.transactional_ids import TransactionalId
from kdump.answers.transactions import MAX_TIMEOUT, PartitionTransaction, ReplicaDifference, Transactions
from kdump.answers.what_if import WhatIfAnswer, target
from kdump.api import Path, Time, moment, numbers
from kdump.errors import UnreadableError, UsageError
from kdump.internal_topics import cluster_metadata, remote_log_metadata, transaction_state
from kdump.log_dirs.absent import absent, left_out
from kdump.log_dirs.file_names import Name
from kdump.log_dirs.finder import Finder, Wanted, raise_it
from kdump.log_dirs.log_dir_state import LogDirStates, in_words
from kdump.log_reader.remote_segments import of_partitions
from kdump.primitives.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from kdump.answers.collector import Collector
    from kdump.answers.metadata.cluster_image import ClusterImage
    from kdump.log_dirs.partition import Partition

__all__ = [
    "ActiveProducer",
    "Answer",
    "CleanedRecord",
    "CommitLine",
    "CommittedLine",
    "Event",
    "Explanation",
    "GroupLine",
    "HourStatistics",
    "KeyUsage",
    "MissingLine",
    "OtherUsage",
    "PairDifference",
    "PartitionCompaction",
    "PartitionOffsets",
    "PartitionStatistics",
    "PartitionTransaction",
    "PartitionUsage",
    "ProducerStatistics",
    "RecordDifference",
    "ReplicaDifference",
    "SegmentRetention",
    "SegmentUsage",
    "SequenceBreak",
    "TopicLine",
    "TopicRetention",
    "TopicUsage",
    "TransactionalId",
    "UnreadLine",
    "WhatIfAnswer",
    "compaction",
    "diff",
    "disk_usage",
    "events",
    "explain",
    "groups",
    "metadata",
    "offsets",
    "producers",
    "retention",
    "statistics",
    "transactions",
]

L = TypeVar("L", bound=AnswerLine)
K = TypeVar("K")


@dataclass(frozen=True)
class Answer(Generic[L]):
    """The lines of an answer, and what it rests on: sentences on damage, on derived files not used, and remarks."""

    lines: tuple[L, ...]
    damage: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[L]:
        return iter(self.lines)

    def __len__(self) -> int:
        return len(self.lines)

    def of(self, kind: type[K]) -> tuple[K, ...]:
        """Return the lines of one class."""
        return tuple(line for line in self.lines if isinstance(line, kind))

    def rows(self) -> list[dict[str, object]]:
        """Return the lines as the objects that ``-o jsonl`` prints."""
        return [as_json(line) for line in self.lines]


class _Question:
    """One question about partitions; what is said on the way is kept for the answer."""

    def __init__(
        self,
        paths: Path | Iterable[Path],
        topic: str | Iterable[str],
        partition: int | Iterable[int],
        at: Time | None,
        *,
        also: Collection[str] = (),
        every: bool = False,
        leftovers: bool = False,
    ) -> None:
        """All partitions of the topics ``also`` are found too.

        ``leftovers`` asks for -future, -delete and -stray folders too, ``every`` for each folder of a log dir.
        """
        when = moment(at)
        self.at = now() if when is None else when
        self.asked = Wanted(
            topics=(topic,) if isinstance(topic, str) else tuple(topic),
            partitions=numbers(partition),
            siblings=True,
            log_dirs=True,
            leftovers=every or leftovers,
            every_folder=every,
            folders_only=every,
        )
        self._said: tuple[list[str], list[str], list[str]] = ([], [], [])
        wanted = self.asked._replace(topics=(), partitions=frozenset()) if also else self.asked
        places = (paths,) if isinstance(paths, str | PathLike) else tuple(paths)
        self.where = ", ".join(fspath(path) for path in places)
        named = tuple(fspath(path) for path in places)
        finder = Finder(wanted, fail=raise_it)
        found = list(finder.find(named))
        self.found = [
            one for one in found if every or (one.topic is not None and (one.topic in also or self.takes(one)))
        ]
        self._said[2].extend(absent(self.asked, finder.met, named))
        self._said[2].extend(left_out(one) for one in found if not every and one.topic is None and one.segments)

    def takes(self, partition: Partition) -> bool:
        """Tell whether the question means a partition."""
        return self.asked.takes(Name(partition.topic, partition.partition))

    def meant(self, *also: str) -> list[Partition]:
        """Return the partitions that the question means, and those of the topics ``also``."""
        return [one for one in self.found if one.topic in also or self.takes(one)]

    def image(self) -> ClusterImage | None:
        """Return what the metadata log says of the cluster, None where it is not there."""
        return image_of(self.found, damage=self._said[0].append)

    def damage(self, text: str) -> None:
        """Keep a sentence on what cannot be read."""
        self._said[0].append(text)

    def wrong(self, text: str) -> None:
        """Keep a sentence on a derived file that is not used."""
        self._said[1].append(text)

    def places(self) -> Iterator[Place]:
        """Yield the partitions that the question means, each with the state of its log dir."""
        states = LogDirStates(in_words(self.wrong), raise_it)
        for one in self.meant():
            yield Place(one, states.of(one), self.damage, self.wrong, fail=raise_it)

    def metadata_log(self) -> MetadataLog:
        """Return the metadata log of the paths. Raises UnreadableError where it is not there."""
        copies = Copies(self.found, Said(self.damage, self._said[2].append, raise_it))
        if not copies:
            raise UnreadableError(self.where, NOTHING)
        return MetadataLog(copies, self.damage)

    def run(self, collector: Collector, partitions: Iterable[Partition]) -> None:
        """Feed a collector."""
        damaged, wrong, notes = self._said
        say = Sayings(damaged.append, wrong.append, notes.append, raise_it)
        feed(Collectors([collector]), list(partitions), say)

    def answer(self, collector: Collector, partitions: Iterable[Partition]) -> Answer[L]:
        """Feed a collector; return its answer."""
        self.run(collector, partitions)
        return self.lines(cast("Iterable[L]", collector.answer(self.at)))

    def lines(self, lines: Iterable[L]) -> Answer[L]:
        """Return an answer of lines, with all that was said on the way."""
        gathered = tuple(lines)
        return Answer(gathered, *(tuple(dict.fromkeys(said)) for said in self._said))


def offsets(
    paths: Path | Iterable[Path],
    *,
    topic: str | Iterable[str] = (),
    partition: int | Iterable[int] = (),
    at: Time | None = None,
    times: Iterable[Time] = (),
) -> Answer[PartitionOffsets]:
    """Return what consumers may read of each partition, and the first offset at or after each of ``times``.

    >>> [(line.latest, line.last_stable) for line in offsets("golden/brokers/4.2.2", topic="txn")]
    [(135, 128)]
    """
    run = _Question(paths, topic, partition, at, also=(cluster_metadata.TOPIC,))
    sought = [when for when in map(moment, times) if when is not None]
    return run.answer(Offsets(sought, facts_of(run.image())), run.meant())


def transactions(
    paths: Path | Iterable[Path],
    *,
    topic: str | Iterable[str] = (),
    partition: int | Iterable[int] = (),
    at: Time | None = None,
    max_timeout: int = MAX_TIMEOUT,
    release: tuple[int, ...] | None = None,
    bootstrap_server: str = "HOST:9092",
) -> Answer[PartitionTransaction | ReplicaDifference | TransactionalId]:
    """Return open and hanging transactions, with the line that ends each, and the transactional ids.

    ``max_timeout`` is transaction.max.timeout.ms of the brokers, ``release`` theirs, such as ``(3, 9)``. All of
    ``__transaction_state`` must be among the paths, else none is said to hang.
    """
    state = transaction_state.TOPIC
    run = _Question(paths, topic, partition, at, also=(state, cluster_metadata.TOPIC))
    collector = Transactions(
        run.asked,
        AbortLines(bootstrap_server, release),
        max_timeout=max_timeout,
        coordinators=partition_count(run.image(), state),
    )
    return run.answer(collector, run.meant(state))


def producers(
    paths: Path | Iterable[Path],
    *,
    topic: str | Iterable[str] = (),
    partition: int | Iterable[int] = (),
    at: Time | None = None,
    gaps: bool = False,
) -> Answer[ActiveProducer | SequenceBreak]:
    """Return the producers that each partition remembers; with ``gaps`` where sequence numbers break.

    >>> [line.producer_id for line in producers("golden/brokers/4.2.2", topic="idem").lines]
    [9, 10]
    """
    run = _Question(paths, topic, partition, at)
    return run.answer(Producers(gaps=gaps), run.meant())


def groups(
    paths: Path | Iterable[Path],
    *,
    topic: str | Iterable[str] = (),
    partition: int | Iterable[int] = (),
    at: Time | None = None,
    group: str | Iterable[str] = (),
    history: bool = False,
    retention_ms: int = DEFAULT_RETENTION_MS,
    stable: bool = False,
) -> Answer[GroupLine | CommittedLine | CommitLine | MissingLine | UnreadLine]:
    """Return the consumer groups and where each stood; ``group`` are ids or globs, ``topic`` those of the offsets.

    ``history`` adds every commit; ``retention_ms`` is offsets.retention.minutes of the brokers, in ms.

    >>> answer = groups("golden/brokers/4.2.2", group="eos", at="2026-11-22")
    >>> [(line.topic, line.partition, line.offset, line.lag) for line in answer.of(CommittedLine)]
    [('c-none', 0, 89, 134)]
    """
    run = _Question(paths, (), (), at)
    asked = Wanted(topics=(topic,) if isinstance(topic, str) else tuple(topic), partitions=numbers(partition))
    ids = (group,) if isinstance(group, str) else tuple(group)
    collector = ConsumerGroups(GroupsWanted(ids, asked, history=history, retention_ms=retention_ms))
    run.run(collector, [one for one in run.found if one.topic in TOPICS])
    collector.ends = LogEnds(collector.partitions(), topic_names(run.image()), stable=stable)
    run.run(collector.ends, [one for one in run.found if one.topic not in TOPICS])
    return run.answer(collector, [])


def disk_usage(
    paths: Path | Iterable[Path],
    *,
    topic: str | Iterable[str] = (),
    partition: int | Iterable[int] = (),
    at: Time | None = None,
    by: By = "partition",
) -> Answer[PartitionUsage | SegmentUsage | TopicUsage | OtherUsage]:
    """Return every folder of log dirs by size, or the sums by topic or segment.

    >>> [(line.topic, line.log_bytes) for line in disk_usage("golden/brokers/4.2.2", topic="one").of(PartitionUsage)]
    [('one', 75)]
    """
    run = _Question(paths, topic, partition, at, every=True)
    return run.answer(DiskUsage(by), run.found)


def statistics(
    paths: Path | Iterable[Path],
    *,
    topic: str | Iterable[str] = (),
    partition: int | Iterable[int] = (),
    at: Time | None = None,
    records: bool = False,
    hours: bool = False,
    top: int = 5,
    what_if: Iterable[str] = (),
) -> Answer[PartitionStatistics | ProducerStatistics | HourStatistics | WhatIfAnswer]:
    """Return codecs, batch fill and producers of topics.

    ``records`` adds sizes of keys and values, ``hours`` sums by the hour; ``what_if`` names codecs, such as ``zstd:9``.
    """
    run = _Question(paths, topic, partition, at)
    targets = [target(text) for text in what_if]
    return run.answer(Statistics(records=records, top=top, hours=hours, targets=targets), run.meant())


def retention(
    paths: Path | Iterable[Path],
    *,
    topic: str | Iterable[str] = (),
    partition: int | Iterable[int] = (),
    at: Time | None = None,
    config: Iterable[str] = (),
    release: tuple[int, ...] | None = None,
) -> Answer[TopicRetention | SegmentRetention]:
    """Return which segments a broker deletes, when and why.

    ``config`` are texts such as ``orders:retention.ms=3600000``, ``release`` is the broker's, such as ``(3, 9)``.

    >>> answer = retention("golden/brokers/4.2.2", topic="c-none", at="2026-11-22")
    >>> {line.why for line in answer.of(SegmentRetention)}
    {'retention.ms is -1, and the log is not too large'}
    """
    run = _Question(paths, topic, partition, at, also=(cluster_metadata.TOPIC, remote_log_metadata.TOPIC))
    image = run.image()
    copied = copied_offsets(run.found, image, damage=run.damage, fail=raise_it)
    configs = TopicConfigs(image, tuple(map(given_config, config)))
    return run.answer(Retention(configs, rules_of(release), copied), run.meant())


def compaction(
    paths: Path | Iterable[Path],
    *,
    topic: str | Iterable[str] = (),
    partition: int | Iterable[int] = (),
    at: Time | None = None,
    config: Iterable[str] = (),
    records: bool = False,
    top: int = 0,
) -> Answer[PartitionCompaction | CleanedRecord | KeyUsage]:
    """Return where compaction begins and ends, what holds it, and what it removes.

    ``config`` are texts such as ``prices:cleanup.policy=compact``; ``records`` lists the records that go, ``top`` the
    keys that take most.
    """
    run = _Question(paths, topic, partition, at, also=(cluster_metadata.TOPIC,))
    configs = TopicConfigs(run.image(), tuple(map(given_config, config)))
    return run.answer(Compaction(configs, run.at, CleaningLimits(), listed=records, top=top), run.meant())


def metadata(
    paths: Path | Iterable[Path],
    *,
    topic: str | Iterable[str] = (),
    at: Time | None = None,
    offset: int | None = None,
    show_secrets: bool = False,
) -> Answer[TopicLine]:
    """Return the topics of the metadata log, as of the records below ``offset`` or up to ``at``, by default of all.

    The values of secret and unknown configs are hidden without ``show_secrets``.

    >>> [(line.topic, line.configs["cleanup.policy"]) for line in metadata("golden/brokers/4.2.2", topic="compact")]
    [('compact', 'compact')]
    """
    run = _Question(paths, cluster_metadata.TOPIC, (), at)
    image = run.metadata_log().image(offset=offset, at=moment(at))
    names = (topic,) if isinstance(topic, str) else tuple(topic)
    return run.lines(topic_lines(image, names, show_secrets=show_secrets))


def events(
    paths: Path | Iterable[Path],
    *,
    topic: str | Iterable[str] = (),
    at: Time | None = None,
    offset: int | None = None,
    show_secrets: bool = False,
) -> Answer[Event]:
    """Return what happened to the cluster, below ``offset`` or up to ``at``, with ``topic`` to topics of these names.

    The values of secret and unknown configs are hidden without ``show_secrets``.

    >>> [line.what for line in events("golden/brokers/4.2.2", topic="one")][:2]
    ['TopicCreated', 'ConfigChanged']
    """
    run = _Question(paths, cluster_metadata.TOPIC, (), at)
    names = (topic,) if isinstance(topic, str) else tuple(topic)
    return run.lines(
        event if show_secrets else without_secrets(event)
        for event in run.metadata_log().history(offset=offset, at=moment(at))
        if takes(names, event.topic)
    )


def explain(
    paths: Path | Iterable[Path],
    topic: str,
    partition: int,
    offset: int | tuple[int, int],
    *,
    at: Time | None = None,
) -> Answer[Explanation]:
    """Return whether a consumer is given the record of an offset, and why not; of a range both ends belong to it.

    >>> [line.reason for line in explain("golden/brokers/4.2.2", "txn", 0, (127, 128))]
    ['control-marker', 'open-transaction']
    """
    first, last = (offset, offset) if isinstance(offset, int) else offset
    if not 0 <= first <= last:
        raise UsageError(f"offsets {first} to {last} are no range")
    run = _Question(
        paths, topic, partition, at, also=(cluster_metadata.TOPIC, remote_log_metadata.TOPIC), leftovers=True
    )
    history = topic_history(
        run.found, run.damage, raise_it, lambda: of_partitions(run.found, damage=run.damage, fail=raise_it)
    )
    return run.lines(
        explain_all([OffsetRange(topic, partition, first, last)], list(run.places()), history, run.at, raise_it)
    )


def diff(
    brokers: Iterable[Path | Iterable[Path]],
    *,
    topic: str | Iterable[str] = (),
    partition: int | Iterable[int] = (),
    records: bool = False,
) -> Answer[PairDifference | RecordDifference]:
    """Return how the copies that brokers have of the same partitions differ; each of ``brokers`` is the paths of one.

    ``records`` adds the records that differ.

    >>> [line.verdict for line in diff(["golden/brokers/4.2.2", "golden/brokers/4.2.2"], topic="one")]
    ['same']
    """
    runs = [_Question(paths, topic, partition, None) for paths in brokers]
    if len(runs) < 2:
        raise UsageError("diff compares two brokers or more: name paths for each")
    run = runs[0]
    copies = by_partition([BrokerReplica(each.where, place) for place in each.places()] for each in runs)
    found = compare_all(pairs(copies), records=records, damage=run.damage, wrong=run.wrong, fail=raise_it)
    return run.lines(cast("Iterator[PairDifference | RecordDifference]", found))
