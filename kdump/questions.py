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
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

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
from kdump.answers.transactions import MAX_TIMEOUT, PartitionTransaction, ReplicaDifference, Transactions, ended
from kdump.answers.what_if import WhatIfAnswer, target
from kdump.api import Path, Time, moment, numbers
from kdump.errors import UnreadableError, UsageError
from kdump.internal_topics import cluster_metadata, remote_log_metadata, transaction_state
from kdump.log_dirs.absent import BY_PATH, COPY, absent, with_names
from kdump.log_dirs.file_names import Name
from kdump.log_dirs.finder import Finder, Wanted, raise_it
from kdump.log_dirs.log_dir_state import LogDirStates, in_words
from kdump.log_reader.remote_segments import of_partitions
from kdump.primitives.compression import DEFAULT_LIMIT
from kdump.primitives.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from kdump.answers.collector import Collector
    from kdump.answers.metadata.cluster_image import ClusterImage
    from kdump.log_dirs.partition import Partition
    from kdump.log_dirs.tiered_log import RemoteStorage

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
    "du",
    "events",
    "explain",
    "groups",
    "metadata",
    "offsets",
    "producers",
    "retention",
    "statistics",
    "stats",
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
    kinds: tuple[type[AnswerLine], ...] = ()
    """The classes that lines may have."""

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

    def table(self, kind: str) -> pa.Table:
        """Return the lines of one kind as an Arrow table; columns are named as in JSON. It needs pyarrow.

        Raises UsageError for a kind that the answer does not have.

        >>> offsets("golden/brokers/4.2.2", topic="txn").table("offsets").select(["topic", "latest"]).to_pylist()
        [{'topic': 'txn', 'latest': 135}]
        """
        from kdump.arrow import answer_lines

        kinds: dict[str, Any] = {one.kind: type(one) for one in self.lines}
        kinds = {**{one.kind: one for one in self.kinds}, **kinds}
        if kind not in kinds:
            raise UsageError(f"{kind!r} is no kind of these lines: {', '.join(kinds)}")
        return answer_lines.table(kinds[kind], [line for line in self.lines if line.kind == kind])

    def to_arrow(self) -> pa.Table:
        """Return the lines as an Arrow table. Lines of several kinds have a column ``kind``, and nulls."""
        from kdump.arrow import answer_lines

        kinds = tuple(dict.fromkeys(map(type, self.lines))) or self.kinds[:1]
        if len(kinds) == 1:
            return answer_lines.table(kinds[0], self.lines)
        columns = answer_lines.LineColumns(kinds)
        return columns.batches_table([columns.row(line) for line in self.lines])

    def to_pandas(self) -> Any:
        """Return the same as a pandas DataFrame. It needs pandas.

        >>> du("golden/brokers/4.2.2", topic="one").to_pandas()[["topic", "logBytes"]].values.tolist()
        [['one', 75]]
        """
        return self.to_arrow().to_pandas()


class Inputs(NamedTuple):
    """What every question takes: the paths of log dirs, and which partitions of them are meant.

    ``at`` is now, in ms since 1970. ``brokers`` are the paths of each broker, where a question compares brokers.
    """

    paths: tuple[str, ...]
    topics: tuple[str, ...] = ()
    partitions: frozenset[int] = frozenset()
    at: int = 0
    max_batch_bytes: int = DEFAULT_LIMIT
    remote: RemoteStorage | None = None
    brokers: tuple[tuple[str, ...], ...] = ()


class LineTable(NamedTuple):
    """The lines of one class as a table: its name, the class, and what the command needs to print them.

    ``words`` are options of the command; ``options`` are the same for :func:`ask`. ``omits`` are fields in JSON that
    are no columns: scripts rely on the columns of a table, and a second one has all fields of a line that grew.
    """

    name: str
    line: type[AnswerLine]
    words: str = ""
    options: Mapping[str, Any] = {}
    omits: frozenset[str] = frozenset()


class LogQuestion(NamedTuple):
    """A question about log dirs: the tables that its lines make, and what makes lines of a run and its options."""

    tables: tuple[LineTable, ...]
    answer: Callable[..., Iterable[AnswerLine]]
    command: str
    """The command that asks it."""
    also: tuple[str, ...] = ()
    """All partitions of these topics are found, whatever is asked for."""
    only: tuple[str, ...] = ()
    """The topics to find in place of those that are asked for."""
    leftovers: bool = False
    """Whether -future, -delete and -stray folders are found too."""
    every_folder: bool = False
    """Whether each folder of a log dir is found."""
    takes_names: bool = True
    """Whether topics and partitions of the inputs are those to find."""


def ask(name: str, inputs: Inputs, say: Sayings, **options: Any) -> Iterator[AnswerLine]:
    """Yield the lines of the question ``name`` of :data:`QUESTIONS`; ``options`` are those of its function here.

    ``say`` is called with all that is met on the way. Raises UsageError; UnreadableError where there is no answer.
    """
    question = QUESTIONS[name]
    if inputs.brokers:
        runs = [QuestionRun(question, inputs._replace(paths=paths), say) for paths in inputs.brokers]
        yield from question.answer(runs, **options)
    else:
        yield from question.answer(QuestionRun(question, inputs, say), **options)


class QuestionRun:
    """One question while it is answered."""

    def __init__(self, question: LogQuestion, inputs: Inputs, say: Sayings) -> None:
        self.inputs, self.at, self.say = inputs, inputs.at, say
        every, takes = question.every_folder, question.takes_names
        self.asked = Wanted(
            topics=question.only or (inputs.topics if takes else ()),
            partitions=inputs.partitions if takes and not question.only else frozenset(),
            siblings=True,
            log_dirs=True,
            leftovers=every or question.leftovers,
            every_folder=every,
            max_batch_bytes=inputs.max_batch_bytes,
            remote=inputs.remote,
        )
        also = question.also
        wanted = self.asked._replace(topics=(), partitions=frozenset()) if also else self.asked
        self.where = ", ".join(inputs.paths)
        finder = Finder(wanted, fail=say.fail)
        found = list(finder.find(inputs.paths))
        if self.asked.is_choosy:  # no topic that is asked for is one without a name
            found = [one for one in found if every or one.topic is not None]
        self.found = [
            one
            for one in with_names(found, say.note, name=COPY if inputs.brokers else BY_PATH, every=every)
            if every or (one.topic is not None and (one.topic in also or self.takes(one)))
        ]
        for text in absent(self.asked, finder.met, inputs.paths):
            say.note(text)

    def takes(self, partition: Partition) -> bool:
        """Tell whether the question means a partition."""
        return self.asked.takes(Name(partition.topic, partition.partition))

    def meant(self, *also: str) -> list[Partition]:
        """Return the partitions that the question means, and those of the topics ``also``."""
        return [one for one in self.found if one.topic in also or self.takes(one)]

    def image(self) -> ClusterImage | None:
        """Return what the metadata log says of the cluster, None where it is not there."""
        return image_of(self.found, damage=self.say.damage, fail=self.say.fail)

    def places(self) -> Iterator[Place]:
        """Yield the partitions that the question means, each with the state of its log dir."""
        states = LogDirStates(in_words(self.say.damage), self.say.fail)
        for one in self.meant():
            yield Place(one, states.of(one), self.say.damage, self.say.wrong, fail=self.say.fail)

    def metadata_log(self) -> MetadataLog:
        """Return the metadata log of the paths. Raises UnreadableError where it is not there."""
        copies = Copies(self.found, Said(self.say.damage, self.say.note, self.say.fail))
        if not copies:
            raise UnreadableError(self.where, NOTHING)
        return MetadataLog(copies, self.say.damage)

    def feed(self, collector: Collector, partitions: Iterable[Partition]) -> None:
        """Feed a collector."""
        feed(Collectors([collector]), list(partitions), self.say)

    def answer(self, collector: Collector, partitions: Iterable[Partition]) -> Iterable[AnswerLine]:
        """Feed a collector; return its lines."""
        self.feed(collector, partitions)
        return collector.answer(self.at)


def _offsets(run: QuestionRun, times: Iterable[int] = ()) -> Iterable[AnswerLine]:
    return run.answer(Offsets(list(times), facts_of(run.image())), run.meant())


def _transactions(
    run: QuestionRun,
    *,
    max_timeout: int = MAX_TIMEOUT,
    release: tuple[int, ...] | None = None,
    bootstrap_server: str = "HOST:9092",
    ended_too: bool = False,
) -> Iterator[AnswerLine]:
    state = transaction_state.TOPIC
    collector = Transactions(
        run.asked,
        AbortLines(bootstrap_server, release),
        max_timeout=max_timeout,
        coordinators=partition_count(run.image(), state),
    )
    yield from run.answer(collector, run.meant(state))
    if ended_too:
        best = [one for one in run.meant() if collector.is_best(one)]
        yield from ended(run.say.reader((), run.say.states()), best, collector.ids, run.at)


def _groups(
    run: QuestionRun,
    *,
    group: tuple[str, ...] = (),
    history: bool = False,
    retention_ms: int = DEFAULT_RETENTION_MS,
    stable: bool = False,
) -> Iterable[AnswerLine]:
    asked = Wanted(topics=run.inputs.topics, partitions=run.inputs.partitions)
    collector = ConsumerGroups(GroupsWanted(group, asked, history=history, retention_ms=retention_ms))
    run.feed(collector, [one for one in run.found if one.topic in TOPICS])
    collector.ends = LogEnds(collector.partitions(), topic_names(run.image()), stable=stable)
    run.feed(collector.ends, [one for one in run.found if one.topic not in TOPICS])
    return collector.answer(run.at)


def _producers(run: QuestionRun, *, gaps: bool = False) -> Iterable[AnswerLine]:
    return run.answer(Producers(gaps=gaps), run.meant())


def _du(run: QuestionRun, *, by: By = "partition") -> Iterable[AnswerLine]:
    return run.answer(DiskUsage(by), run.found)


def _stats(run: QuestionRun, **options: Any) -> Iterable[AnswerLine]:
    return run.answer(Statistics(**options), run.meant())


def _retention(
    run: QuestionRun, *, config: Iterable[str] = (), release: tuple[int, ...] | None = None
) -> Iterable[AnswerLine]:
    image = run.image()
    copied = copied_offsets(run.found, image, damage=run.say.damage, fail=run.say.fail)
    configs = TopicConfigs(image, tuple(map(given_config, config)))
    return run.answer(Retention(configs, rules_of(release), copied), run.meant())


def _compaction(
    run: QuestionRun, *, config: Iterable[str] = (), records: bool = False, top: int = 0
) -> Iterable[AnswerLine]:
    configs = TopicConfigs(run.image(), tuple(map(given_config, config)))
    return run.answer(Compaction(configs, run.at, CleaningLimits(), listed=records, top=top), run.meant())


def _metadata(
    run: QuestionRun, *, offset: int | None = None, until: int | None = None, show_secrets: bool = False
) -> Iterable[AnswerLine]:
    image = run.metadata_log().image(offset=offset, at=until)
    return topic_lines(image, run.inputs.topics, show_secrets=show_secrets)


def _events(
    run: QuestionRun, *, offset: int | None = None, until: int | None = None, show_secrets: bool = False
) -> Iterator[AnswerLine]:
    for event in run.metadata_log().history(offset=offset, at=until):
        if takes(run.inputs.topics, event.topic):
            yield event if show_secrets else without_secrets(event)


def _explain(run: QuestionRun, ranges: Sequence[OffsetRange]) -> Iterable[AnswerLine]:
    damage, fail = run.say.damage, run.say.fail
    history = topic_history(run.found, damage, fail, lambda: of_partitions(run.found, damage=damage, fail=fail))
    return explain_all(ranges, list(run.places()), history, run.at, fail)


def _diff(runs: Sequence[QuestionRun], *, records: bool = False) -> Iterable[AnswerLine]:
    copies = by_partition([BrokerReplica(each.where, place) for place in each.places()] for each in runs)
    say = runs[0].say
    return compare_all(pairs(copies), records=records, damage=say.damage, fail=say.fail)


_CLOCK: Final = frozenset({"startTimeMs", "clock"})
"""What a transaction's age counts from, of which only the details have columns."""

QUESTIONS: Final = {
    "offsets": LogQuestion(
        (LineTable("offsets", PartitionOffsets),), _offsets, "offsets", also=(cluster_metadata.TOPIC,)
    ),
    "transactions": LogQuestion(
        (
            LineTable("transactions", PartitionTransaction, "--all", {"ended_too": True}, _CLOCK),
            LineTable("transaction_details", PartitionTransaction, "--all", {"ended_too": True}),
            LineTable("transactional_ids", TransactionalId, "--all", {"ended_too": True}),
            LineTable("replica_differences", ReplicaDifference, "--all", {"ended_too": True}),
        ),
        _transactions,
        "transactions",
        also=(transaction_state.TOPIC, cluster_metadata.TOPIC),
    ),
    "producers": LogQuestion(
        (
            LineTable("producers", ActiveProducer),
            LineTable("sequence_breaks", SequenceBreak, "--gaps", {"gaps": True}),
        ),
        _producers,
        "producers",
    ),
    "groups": LogQuestion(
        (
            LineTable("groups", GroupLine),
            LineTable("group_offsets", CommittedLine),
            LineTable("commits", CommitLine, "--history", {"history": True}),
        ),
        _groups,
        "groups",
        takes_names=False,
    ),
    "du": LogQuestion(
        (
            LineTable("partitions", PartitionUsage),
            LineTable("segments", SegmentUsage, "--by segment", {"by": "segment"}),
            LineTable("other_files", OtherUsage),
        ),
        _du,
        "du",
        every_folder=True,
    ),
    "stats": LogQuestion(
        (
            LineTable("stats", PartitionStatistics),
            LineTable("record_stats", PartitionStatistics, "--records", {"records": True}),
            LineTable("producer_stats", ProducerStatistics),
            LineTable("hours", HourStatistics, "--hours", {"hours": True}),
        ),
        _stats,
        "stats",
    ),
    "retention": LogQuestion(
        (
            LineTable("retention", SegmentRetention),
            LineTable("topic_configs", TopicRetention, omits=frozenset({"known"})),
            LineTable("topic_config_details", TopicRetention),
        ),
        _retention,
        "retention",
        also=(cluster_metadata.TOPIC, remote_log_metadata.TOPIC),
    ),
    "compaction": LogQuestion(
        (
            LineTable("compaction", PartitionCompaction),
            LineTable("removed_records", CleanedRecord, "--records", {"records": True}),
        ),
        _compaction,
        "compaction",
        also=(cluster_metadata.TOPIC,),
    ),
    "metadata": LogQuestion(
        (LineTable("topics", TopicLine, "--topics"),), _metadata, "metadata", only=(cluster_metadata.TOPIC,)
    ),
    "events": LogQuestion(
        (LineTable("events", Event, "--events"),), _events, "metadata", only=(cluster_metadata.TOPIC,)
    ),
    "explain": LogQuestion(
        (), _explain, "explain", also=(cluster_metadata.TOPIC, remote_log_metadata.TOPIC), leftovers=True
    ),
    "diff": LogQuestion((LineTable("differences", PairDifference),), _diff, "diff"),
}
"""The questions by the names of their commands; ``events`` is ``metadata --events``."""


def _answer(
    name: str,
    paths: Path | Iterable[Path],
    topic: str | Iterable[str],
    partition: int | Iterable[int],
    at: Time | None,
    **options: Any,
) -> Answer[Any]:
    """Ask a question; return its answer with all that was said on the way. A file that cannot be read raises."""
    when = moment(at)
    named = _named(paths)
    brokers = options.pop("brokers", ())
    inputs = Inputs(
        named,
        (topic,) if isinstance(topic, str) else tuple(topic),
        numbers(partition),
        now() if when is None else when,
        brokers=brokers,
    )
    said: tuple[list[str], list[str], list[str]] = ([], [], [])
    say = Sayings(said[0].append, said[1].append, said[2].append, raise_it)
    lines = tuple(ask(name, inputs, say, **options))
    damage, wrong, notes = (tuple(dict.fromkeys(texts)) for texts in said)
    kinds = tuple(dict.fromkeys(table.line for table in QUESTIONS[name].tables))
    return Answer(lines, damage, wrong, notes, kinds)


def _named(paths: Path | Iterable[Path]) -> tuple[str, ...]:
    return tuple(fspath(path) for path in ((paths,) if isinstance(paths, str | PathLike) else paths))


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
    sought = [when for when in map(moment, times) if when is not None]
    return _answer("offsets", paths, topic, partition, at, times=sought)


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
    options = {"max_timeout": max_timeout, "release": release, "bootstrap_server": bootstrap_server}
    return _answer("transactions", paths, topic, partition, at, **options)


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
    return _answer("producers", paths, topic, partition, at, gaps=gaps)


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
    ids = (group,) if isinstance(group, str) else tuple(group)
    options = {"history": history, "retention_ms": retention_ms, "stable": stable}
    return _answer("groups", paths, topic, partition, at, group=ids, **options)


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
    return _answer("du", paths, topic, partition, at, by=by)


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
    targets = [target(text) for text in what_if]
    return _answer("stats", paths, topic, partition, at, records=records, top=top, hours=hours, targets=targets)


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
    return _answer("retention", paths, topic, partition, at, config=config, release=release)


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
    return _answer("compaction", paths, topic, partition, at, config=config, records=records, top=top)


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
    options = {"offset": offset, "until": moment(at), "show_secrets": show_secrets}
    return _answer("metadata", paths, topic, (), at, **options)


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
    options = {"offset": offset, "until": moment(at), "show_secrets": show_secrets}
    return _answer("events", paths, topic, (), at, **options)


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
    return _answer("explain", paths, topic, partition, at, ranges=[OffsetRange(topic, partition, first, last)])


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
    each = tuple(_named(paths) for paths in brokers)
    if len(each) < 2:
        raise UsageError("diff compares two brokers or more: name paths for each")
    return _answer("diff", (), topic, partition, None, brokers=each, records=records)


du = disk_usage
stats = statistics
