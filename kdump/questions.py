"""The answers of kdump's commands in Python: :func:`ls` for ``kdump ls``, and so on.

>>> import kdump
>>> from kdump.questions import PartitionTransaction
>>> answer = kdump.transactions("golden/brokers/4.2.2", topic="txn", at="2026-11-21T10:00")
>>> for line in answer.of(PartitionTransaction):
...     print(line.topic, line.partition, line.state, line.held_back)
txn 0 open 7
>>> answer.rows()[0]["transactionalId"]
'tx-0'

``events`` is for ``kdump metadata --events``, ``metadata`` for its topics; ``disk_usage`` and ``statistics`` are ``du``
and ``stats``. The lines of an answer are those of ``-o jsonl``, as frozen dataclasses. ``topic`` is a name or glob,
``partition`` a number, or several. ``at`` (ms, ISO 8601 or a datetime) is the time that counts as now, by default the
clock; not for ``metadata`` and ``events``. An unreadable file raises UnreadableError; wrong usage raises UsageError.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import chain
from os import PathLike
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

from kdump.answers import question_named
from kdump.answers.collector import AnswerLine, as_json
from kdump.answers.compaction.cleaning import MAP_ENTRIES
from kdump.answers.compaction.compacted_logs import CleanedRecord, KeyUsage, PartitionCompaction
from kdump.answers.disk_usage import By, OtherUsage, PartitionUsage, SegmentUsage, TopicUsage
from kdump.answers.explain.explanation import Explanation, OffsetRange
from kdump.answers.groups.group_records import DEFAULT_RETENTION_MS
from kdump.answers.groups.lines import CommitLine, CommittedLine, GroupLine, MissingLine, UnreadLine, WriterLine
from kdump.answers.listing import SegmentSpan
from kdump.answers.metadata.answer import TopicLine
from kdump.answers.metadata.events import Event
from kdump.answers.offsets import PartitionOffsets
from kdump.answers.producers import ActiveProducer, SequenceBreak
from kdump.answers.question import Asking, LogQuestion
from kdump.answers.recompression import WhatIfAnswer, target
from kdump.answers.replica_diff import PairDifference, RecordDifference
from kdump.answers.retention import SegmentRetention, TopicRetention
from kdump.answers.statistics import LARGEST, HourStatistics, PartitionStatistics, ProducerStatistics
from kdump.answers.topic_configs import GivenConfig, given_config
from kdump.answers.transactional_ids import TransactionalId
from kdump.answers.transactions import MAX_TIMEOUT, PartitionTransaction, ReplicaDifference
from kdump.api import Path, Time, first_and_last, given_paths, moment, numbers, several, topics
from kdump.arrow.files import TableResult
from kdump.errors import Reporter, UsageError, many, raise_it, reports, warn_of_damage
from kdump.log_dirs.file_names import Name
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_dirs.remote import shown_paths
from kdump.log_reader.unnamed_logs import BY_PATH, COPY, with_names
from kdump.primitives.compression import DEFAULT_LIMIT
from kdump.primitives.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from kdump.answers.groups.writers import Ranking
    from kdump.log_dirs.tiered_storage import RemoteStorage

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
    "SegmentSpan",
    "SegmentUsage",
    "SequenceBreak",
    "TopicLine",
    "TopicRetention",
    "TopicUsage",
    "TransactionalId",
    "UnreadLine",
    "WhatIfAnswer",
    "WriterLine",
    "compaction",
    "diff",
    "disk_usage",
    "du",
    "events",
    "explain",
    "groups",
    "ls",
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


@dataclass(frozen=True, repr=False)
class Answer(TableResult, Generic[L]):
    """The lines of an answer, and sentences about problems.

    ``damage`` is about damaged logs, ``wrong`` about unused files beside them, such as indexes, ``notes`` the rest.
    """

    lines: tuple[L, ...]
    damage: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    kinds: tuple[type[AnswerLine], ...] = ()
    """The classes that the lines may have."""
    paths: tuple[str, ...] = ()

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
        """Return the lines of one kind as an Arrow table with the column names of JSON. Requires pyarrow.

        A kind without lines gives an empty table. Raises UsageError for a kind that the question does not have.

        >>> offsets("golden/brokers/4.2.2", topic="txn").table("offsets").select(["topic", "latest"]).to_pylist()
        [{'topic': 'txn', 'latest': 135}]
        """
        from kdump.arrow import answer_lines

        kinds: dict[str, Any] = {one.kind: type(one) for one in self.lines}
        kinds = {**{one.kind: one for one in self.kinds}, **kinds}
        if kind not in kinds:
            raise UsageError(f"there are no lines of kind {kind!r}: the kinds are {', '.join(kinds)}")
        return answer_lines.table(kinds[kind], [line for line in self.lines if line.kind == kind])

    def to_arrow(self) -> pa.Table:
        """Return the lines as an Arrow table. For several kinds it has a column ``kind``; missing fields are null."""
        from kdump.arrow import answer_lines

        kinds = tuple(dict.fromkeys(map(type, self.lines))) or self.kinds[:1]
        if len(kinds) == 1:
            return answer_lines.table(kinds[0], self.lines)
        columns = answer_lines.LineColumns(kinds)
        return columns.batches_table([columns.row(line) for line in self.lines])

    def _repr_html_(self) -> str:
        from kdump.printers import notebook

        tables = []
        for kind in dict.fromkeys(line.kind for line in self.lines):
            lines = [line for line in self.lines if line.kind == kind]
            rows = [as_json(line) for line in lines[: notebook.SHOWN + 1]]
            names = dict.fromkeys(name for row in rows for name in row if name != "kind")
            cells = [[row.get(name) for name in names] for row in rows]
            tables.append(notebook.table(many(len(lines), f"line of {kind}", f"lines of {kind}"), names, cells))
        return "".join([*tables, notebook.sentences(self.damage + self.wrong + self.notes)])

    def __repr__(self) -> str:
        kinds = Counter(line.kind for line in self.lines)
        lines = ", ".join(many(count, f"line of {kind}", f"lines of {kind}") for kind, count in kinds.items())
        return f"<Answer: {lines or 'no lines'}{reports(self.damage)}>"


class Inputs(NamedTuple):
    """The inputs of every question: the paths of log dirs, and the selected topics and partitions (empty: all).

    ``at`` is the time that counts as now, in ms. To compare brokers, ``brokers`` has the paths of each broker.
    """

    paths: tuple[str, ...]
    topics: tuple[str, ...] = ()
    partitions: frozenset[int] = frozenset()
    at: int = 0
    max_batch_bytes: int = DEFAULT_LIMIT
    remote: RemoteStorage | None = None
    brokers: tuple[tuple[str, ...], ...] = ()


def ask(name: str, inputs: Inputs, report: Reporter, **options: Any) -> Iterator[AnswerLine]:
    """Yield the lines that answer the question ``name`` of :data:`kdump.answers.QUESTIONS`.

    ``options`` are fields of the dataclass of the question's options. ``report`` receives problems. Raises UsageError,
    and UnreadableError if no line can be computed.
    """
    asked = question_named(name)
    chosen = asked.chosen(options)
    if asked.compares:
        brokers = [_found(asked, inputs._replace(paths=paths), report) for paths in inputs.brokers]
        yield from asked.ask(brokers, chosen)
    else:
        yield from asked.ask(_found(asked, inputs, report), chosen)


def _found(asked: LogQuestion[Any], inputs: Inputs, report: Reporter) -> Asking:
    every, also = asked.every_folder, asked.also
    names = Wanted(topics=inputs.topics, partitions=inputs.partitions)
    choice = names if asked.takes_names and not asked.only else Wanted(topics=asked.only)
    meant = choice._replace(
        siblings=True,
        log_dirs=True,
        leftovers=every or asked.leftovers,
        every_folder=every,
        max_batch_bytes=inputs.max_batch_bytes,
        remote=inputs.remote,
    )
    of_finder = Reporter(damage=report.damage, note=report.note, fail=report.fail)
    finder = Finder(meant._replace(topics=(), partitions=frozenset()) if also else meant, of_finder, brief=True)
    found = list(finder.find(inputs.paths))
    name = COPY if inputs.brokers else BY_PATH
    named = with_names(found, report.note, name=name, every=every, only_known=meant.is_choosy and not every)
    kept = [
        one
        for one in named
        if every or (one.topic is not None and (one.topic in also or meant.takes(Name(one.topic, one.partition))))
    ]
    for text in meant.missing(finder.found_names, inputs.paths):
        report.note(text)
    asked_for = names if asked.only or not asked.takes_names else meant
    asking = Asking(kept, asked_for, inputs.at, report, shown_paths(inputs.paths))
    asking.found_names, asking.unread = finder.found_names, finder.unread
    return asking


def _answer(
    name: str,
    paths: Iterable[Path | Iterable[Path]],
    topic: str | Iterable[str],
    partition: int | Iterable[int],
    at: Time | None,
    **options: Any,
) -> Answer[Any]:
    when = moment(at)
    brokers = options.pop("brokers", ())
    named = () if brokers else given_paths(paths)
    inputs = Inputs(
        named,
        topics(topic),
        numbers(partition),
        now() if when is None else when,
        brokers=brokers,
    )
    collected: tuple[list[str], list[str], list[str]] = ([], [], [])
    report = Reporter(collected[0].append, collected[1].append, collected[2].append, raise_it)
    lines = tuple(ask(name, inputs, report, **options))
    damage, wrong, notes = (tuple(dict.fromkeys(texts)) for texts in collected)
    warn_of_damage(damage)
    return Answer(lines, damage, wrong, notes, question_named(name).lines, named or tuple(chain(*brokers)))


def function_of(name: str) -> Callable[..., Answer[Any]]:
    """Return a function for the question ``name``, which has none in this module. It takes the question's options."""

    def function(
        *paths: Path | Iterable[Path],
        topic: str | Iterable[str] = (),
        partition: int | Iterable[int] = (),
        at: Time | None = None,
        **options: Any,
    ) -> Answer[Any]:
        return _answer(name, paths, topic, partition, at, **options)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = question_named(name).help
    return function


def _configs(texts: str | Iterable[str]) -> tuple[GivenConfig, ...]:
    return tuple(map(given_config, topics(texts, "config")))


def ls(
    *paths: Path | Iterable[Path],
    topic: str | Iterable[str] = (),
    partition: int | Iterable[int] = (),
    segments: bool = False,
) -> Answer[PartitionUsage | SegmentSpan]:
    """Return the partitions of log dirs by name; segments with ``segments``, or if no path is above partition folders.

    >>> [(line.base_offset, line.end_offset) for line in ls("golden/brokers/4.2.2/one-0").of(SegmentSpan)]
    [(0, 1)]
    """
    return _answer("ls", paths, topic, partition, None, segments=segments)


def offsets(
    *paths: Path | Iterable[Path],
    topic: str | Iterable[str] = (),
    partition: int | Iterable[int] = (),
    at: Time | None = None,
    times: Time | Iterable[Time] = (),
) -> Answer[PartitionOffsets]:
    """Return the readable range of offsets of each partition, and the first offset at or after each of ``times``.

    >>> [(line.latest, line.last_stable) for line in offsets("golden/brokers/4.2.2", topic="txn")]
    [(135, 128)]
    """
    sought = tuple(when for when in map(moment, several(times)) if when is not None)
    return _answer("offsets", paths, topic, partition, at, times=sought)


def transactions(
    *paths: Path | Iterable[Path],
    topic: str | Iterable[str] = (),
    partition: int | Iterable[int] = (),
    at: Time | None = None,
    max_timeout: int = MAX_TIMEOUT,
    release: tuple[int, ...] | None = None,
    bootstrap_server: str = "HOST:9092",
    ended_too: bool = False,
) -> Answer[PartitionTransaction | ReplicaDifference | TransactionalId]:
    """Return open and hanging transactions, their differences between replicas, and all transactional ids.

    One that hangs, is overdue or has no timeout has the command that ends it, if ``release`` has such a command.
    ``max_timeout`` is transaction.max.timeout.ms of the brokers, ``release`` their release, such as ``(3, 9)``. If
    partitions of ``__transaction_state`` are missing, no transaction hangs or has a command. ``ended_too`` adds
    committed and aborted transactions.
    """
    options = {
        "max_timeout": max_timeout,
        "release": release,
        "bootstrap_server": bootstrap_server,
        "ended_too": ended_too,
    }
    return _answer("transactions", paths, topic, partition, at, **options)


def producers(
    *paths: Path | Iterable[Path],
    topic: str | Iterable[str] = (),
    partition: int | Iterable[int] = (),
    at: Time | None = None,
    gaps: bool = False,
) -> Answer[ActiveProducer | SequenceBreak]:
    """Return the active producers of each partition; ``gaps`` adds the breaks in their sequences.

    >>> [line.producer_id for line in producers("golden/brokers/4.2.2", topic="idem").lines]
    [9, 10]
    """
    return _answer("producers", paths, topic, partition, at, gaps=gaps)


def groups(
    *paths: Path | Iterable[Path],
    topic: str | Iterable[str] = (),
    partition: int | Iterable[int] = (),
    at: Time | None = None,
    group: str | Iterable[str] = (),
    history: bool = False,
    retention_ms: int = DEFAULT_RETENTION_MS,
    stable: bool = False,
    top: Ranking | None = None,
) -> Answer[GroupLine | CommittedLine | CommitLine | MissingLine | UnreadLine | WriterLine]:
    """Return the consumer groups with their offsets. ``group``: ids or globs. ``topic``: only offsets of these topics.

    ``history`` adds every commit, ``stable`` every last stable offset. ``retention_ms`` is offsets.retention.minutes of
    the brokers, in ms. With ``top`` (``bytes`` or ``commits``) the lines are instead the groups that wrote into
    ``__consumer_offsets`` for any topic, also deleted ones, largest first; ``history`` or ``stable`` raise UsageError.

    >>> answer = groups("golden/brokers/4.2.2", group="eos", at="2026-11-22")
    >>> [(line.topic, line.partition, line.offset, line.lag) for line in answer.of(CommittedLine)]
    [('c-none', 0, 89, 134)]
    """
    options = {"history": history, "retention_ms": retention_ms, "stable": stable, "top": top}
    return _answer("groups", paths, topic, partition, at, group=topics(group, "group id"), **options)


def disk_usage(
    *paths: Path | Iterable[Path],
    topic: str | Iterable[str] = (),
    partition: int | Iterable[int] = (),
    at: Time | None = None,
    by: By = "partition",
) -> Answer[PartitionUsage | SegmentUsage | TopicUsage | OtherUsage]:
    """Return sizes of partition folders or segments, then of other files; or of topics. Most bytes of all files first.

    >>> [(line.topic, line.log_bytes) for line in disk_usage("golden/brokers/4.2.2", topic="one").of(PartitionUsage)]
    [('one', 75)]
    """
    return _answer("du", paths, topic, partition, at, by=by)


def statistics(
    *paths: Path | Iterable[Path],
    topic: str | Iterable[str] = (),
    partition: int | Iterable[int] = (),
    at: Time | None = None,
    records: bool = False,
    hours: bool = False,
    top: int = LARGEST,
    what_if: str | Iterable[str] = (),
) -> Answer[PartitionStatistics | ProducerStatistics | HourStatistics | WhatIfAnswer]:
    """Return the codecs and batch sizes of each replica, and the producers of topics.

    ``records`` adds the sizes of keys and values, and the ``top`` largest; ``hours`` adds sums by hour; ``what_if``
    adds the sizes in other codecs, such as ``zstd:9``.
    """
    codecs = tuple(map(target, what_if.split(",") if isinstance(what_if, str) else what_if))
    return _answer("stats", paths, topic, partition, at, records=records, top=top, hours=hours, what_if=codecs)


def retention(
    *paths: Path | Iterable[Path],
    topic: str | Iterable[str] = (),
    partition: int | Iterable[int] = (),
    at: Time | None = None,
    config: str | Iterable[str] = (),
    release: tuple[int, ...] | None = None,
) -> Answer[TopicRetention | SegmentRetention]:
    """Return for each segment outside the metadata log whether, when and why a broker deletes it, and topics' configs.

    ``config`` are texts such as ``orders:retention.ms=3600000``. ``release`` is the broker's, such as ``(3, 9)``.

    >>> answer = retention("golden/brokers/4.2.2", topic="c-none", at="2026-11-22")
    >>> {line.why for line in answer.of(SegmentRetention)}
    {'retention.ms is -1, and the log is not too large'}
    """
    return _answer("retention", paths, topic, partition, at, config=_configs(config), release=release)


def compaction(
    *paths: Path | Iterable[Path],
    topic: str | Iterable[str] = (),
    partition: int | Iterable[int] = (),
    at: Time | None = None,
    config: str | Iterable[str] = (),
    records: bool = False,
    top: int = 0,
    map_entries: int = MAP_ENTRIES,
    max_keys: int = MAP_ENTRIES,
) -> Answer[PartitionCompaction | CleanedRecord | KeyUsage]:
    """Return what the next compaction of each compacted partition removes, and why it is due or not.

    ``config`` are texts such as ``prices:cleanup.policy=compact``. ``records`` adds the removed records. ``top`` is
    the number of largest keys per topic to add. ``map_entries`` is the number of keys that fit in the cleaner's map,
    ``max_keys`` the number that kdump holds in memory.
    """
    options = {"records": records, "top": top, "map_entries": map_entries, "max_keys": max_keys}
    return _answer("compaction", paths, topic, partition, at, config=_configs(config), **options)


def metadata(
    *paths: Path | Iterable[Path],
    topic: str | Iterable[str] = (),
    at: Time | None = None,
    offset: int | None = None,
    show_secrets: bool = False,
) -> Answer[TopicLine]:
    """Return the topics in the metadata log at its end, before an ``offset``, or at a time ``at``.

    The values of secret and unknown configs are hidden without ``show_secrets``.

    >>> [(line.topic, line.configs["cleanup.policy"]) for line in metadata("golden/brokers/4.2.2", topic="compact")]
    [('compact', 'compact')]
    """
    options = {"offset": offset, "until": moment(at), "show_secrets": show_secrets}
    return _answer("metadata", paths, topic, (), at, **options)


def events(
    *paths: Path | Iterable[Path],
    topic: str | Iterable[str] = (),
    at: Time | None = None,
    offset: int | None = None,
    show_secrets: bool = False,
) -> Answer[Event]:
    """Return the cluster's events below ``offset`` or up to ``at``; with ``topic`` only events of these topics.

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
    """Return why a consumer receives the records of a range (with both ends) or not: lines of offsets with one reason.

    >>> [line.reason for line in explain("golden/brokers/4.2.2", "txn", 0, (127, 128))]
    ['control-marker', 'open-transaction']
    """
    (topic,) = topics((topic,))
    first, last = first_and_last(offset)
    if first is None or last is None or not 0 <= first <= last:
        raise UsageError(f"offsets {first} to {last}: expected 0 or more, and an end that is not before the start")
    return _answer("explain", (paths,), topic, partition, at, ranges=(OffsetRange(topic, partition, first, last),))


def diff(
    *brokers: Path | Iterable[Path | Iterable[Path]],
    topic: str | Iterable[str] = (),
    partition: int | Iterable[int] = (),
    records: bool = False,
) -> Answer[PairDifference | RecordDifference]:
    """Return a comparison of each two replicas of a partition on different brokers, also if they are the same.

    Each of ``brokers`` is the path or paths of one broker; one list of brokers is accepted too. ``records`` adds the
    records that differ. Raises UsageError for fewer than two brokers.

    >>> [line.verdict for line in diff("golden/brokers/4.2.2", "golden/brokers/4.2.2", topic="one")]
    ['same']
    """
    each = tuple(given_paths([paths]) for paths in _listed(brokers))
    question_named("diff").brokers(each)
    return _answer("diff", (), topic, partition, None, brokers=each, records=records)


def _listed(brokers: Iterable[Path | Iterable[Path | Iterable[Path]]]) -> Iterator[Path | Iterable[Path]]:
    """Yield the paths of each broker: the arguments, or the items of one list."""
    all_given = tuple(brokers)
    for broker in all_given:
        if len(all_given) > 1 or isinstance(broker, str | PathLike):
            yield cast("Path | Iterable[Path]", broker)
        else:
            yield from broker


du = disk_usage
stats = statistics
