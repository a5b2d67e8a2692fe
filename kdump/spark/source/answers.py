"""The outputs of the Spark source that answer questions: what commands such as ``kdump stats -o jsonl`` print, as rows.

Tasks of a source cannot merge what they gather. So a task reads all that its lines rest on: each partition or each
topic with all replicas, or everything. What all tasks must know, configs and transactional ids, the driver reads from
Kafka's own topics first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from kdump.answers.collector import once, unsaid
from kdump.answers.compaction.compacted_logs import CleanedRecord, Compaction, KeyUsage, PartitionCompaction
from kdump.answers.disk_usage import DiskUsage, OtherUsage, PartitionUsage, SegmentUsage, TopicUsage
from kdump.answers.groups.collector import TOPICS, ConsumerGroups, GroupsWanted
from kdump.answers.groups.lines import CommitLine, CommittedLine, GroupLine, MissingLine, UnreadLine
from kdump.answers.groups.log_ends import LogEnds
from kdump.answers.log_dir_pass import Sayings
from kdump.answers.metadata.image import image_of, partition_count, topic_names
from kdump.answers.offsets import Offsets, PartitionOffsets, facts_of
from kdump.answers.producers import ActiveProducer, Producers
from kdump.answers.remote_copies import copied_offsets
from kdump.answers.retention.deletions import Retention, SegmentRetention, TopicRetention
from kdump.answers.sequences import SequenceBreak
from kdump.answers.statistics import LARGEST, HourStatistics, PartitionStatistics, ProducerStatistics, Statistics
from kdump.answers.topic_configs import TopicConfigs
from kdump.answers.transactional_ids import TransactionalId, TransactionalIds
from kdump.answers.transactions import PartitionTransaction, ReplicaDifference, Transactions
from kdump.arrow.answer_lines import LineColumns
from kdump.internal_topics import cluster_metadata, remote_log_metadata, transaction_state
from kdump.log_dirs.absent import absent, with_names
from kdump.log_dirs.file_names import Name
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_dirs.log_dir_state import LogDirStates, in_words
from kdump.log_dirs.partition import stretches
from kdump.log_dirs.remote import places, without_secret
from kdump.primitives import timestamps
from kdump.primitives.terminal import path_text
from kdump.spark.source import options as words
from kdump.spark.source.unread import refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

    from kdump.answers.collector import AnswerLine, Collector
    from kdump.answers.metadata.cluster_image import ClusterImage
    from kdump.errors import UnreadableError
    from kdump.log_dirs.files import Files
    from kdump.log_dirs.log_dir_state import LogDirState
    from kdump.log_dirs.partition import Partition
    from kdump.spark.source.options import SourceOptions

    Feed = Callable[[Collector, Iterable[Partition]], None]

UNREADABLE: Final = "unreadable"
DAMAGE: Final = "damage"
DERIVED: Final = "derived"
ROWS: Final = 4096
"""Rows that are handed over at a time, at most."""
Row = dict[str, Any]


@dataclass(frozen=True)
class SaidLine:
    """What a command says on standard error, and its exit status tells.

    ``kind`` is one of three: of files that a failing disk does not return, damage, derived files not used.
    """

    kind: ClassVar[str] = UNREADABLE
    text: str


class AnswerTask(NamedTuple):
    """What a task answers from: partitions, a collector to be fed, the states of their log dirs; ``at`` is now in ms.

    ``rows`` are given as they are, and what only one task is to tell is told by the one that ``is_first``.
    """

    output: str
    partitions: list[Partition]
    collector: Collector
    states: dict[tuple[Files, str], LogDirState]
    at: int
    rows: list[Row]
    is_first: bool
    skip: bool
    """The option ``skipUnreadable``."""


class AnswerPlan:
    """A question while it is planned: what was found of what ``options`` name. ``rows`` has what was said so far."""

    def __init__(self, options: SourceOptions, note: Callable[[str], None]) -> None:
        """Raises UsageError, and UnreadableError as tasks do."""
        self.options = options
        self.at = timestamps.now() if options.at is None else options.at
        self.rows: list[Row] = []
        self.say = _sayings(self.rows, note, skip=options.skip_unreadable)
        output = OUTPUTS[options.output]
        self.asked = Wanted(
            topics=options.topic,
            partitions=options.partition,
            siblings=True,
            log_dirs=True,
            leftovers=output.every_folder,
            every_folder=output.every_folder,
            max_batch_bytes=options.max_batch_bytes,
        )
        wanted = self.asked._replace(topics=(), partitions=frozenset()) if output.also else self.asked
        finder = Finder(wanted, note=note, fail=self.say.fail)
        found = (one for files, paths in places(options.paths) for one in finder.find(paths, files))
        self.found: list[Partition] = list(with_names(found, note, every=output.every_folder))
        for text in absent(self.asked, finder.met, [without_secret(path) for path in options.paths]):
            note(text)
        self.states = LogDirStates(in_words(self.say.damage), self.say.fail)

    def meant(self, *also: str) -> list[Partition]:
        """Return the partitions that are asked for, and those of the topics ``also``."""
        return [
            one
            for one in self.found
            if one.topic is not None and (one.topic in also or self.asked.takes(Name(one.topic, one.partition)))
        ]

    @cached_property
    def image(self) -> ClusterImage | None:
        """What ``__cluster_metadata`` tells, where it was found."""
        return image_of(self.found, damage=self.say.damage, fail=self.say.fail)

    @property
    def configs(self) -> TopicConfigs:
        """The configs of topics."""
        return TopicConfigs(self.image, self.options.config)


def _sayings(rows: list[Row], note: Callable[[str], None], *, skip: bool) -> Sayings:
    """Return what keeps damage as rows, each once, and raises failures but those that :func:`refuse` leaves."""

    def keep(kind: str, text: object) -> None:
        rows.append({"kind": kind, "text": path_text(str(text))})

    unreadable = once(partial(keep, UNREADABLE))

    def fail(error: UnreadableError) -> None:
        refuse(error, skip=skip)
        unreadable(str(error))

    return Sayings(once(partial(keep, DAMAGE)), once(partial(keep, DERIVED)), once(note), fail)


class AnswerOutput(NamedTuple):
    """An output: the classes of its lines, the collector, the partitions that tasks read, and how they do.

    ``unit`` tells what one task must read together, by what is the same for it. Partitions of the topics ``also`` are
    found whatever is asked for. Lines of the class ``once`` every task would tell.
    """

    lines: tuple[type[AnswerLine], ...]
    collector: Callable[[AnswerPlan], Collector]
    unit: Callable[[Partition], object]
    also: tuple[str, ...] = ()
    read: Callable[[AnswerPlan], list[Partition]] = AnswerPlan.meant
    every_folder: bool = False
    once: type[AnswerLine] | None = None
    feed: Callable[[Any, Sequence[Partition], Feed], None] = lambda collector, found, feed: feed(collector, found)

    @property
    def columns(self) -> LineColumns:
        """The columns of the output."""
        return LineColumns((*self.lines, SaidLine))


def _replicas(partition: Partition) -> object:
    return partition.topic, partition.partition


def _topic(partition: Partition) -> object:
    return partition.topic


def _everything(_: Partition) -> object:
    return None


def _transactions(run: AnswerPlan) -> Collector:
    ids = TransactionalIds()
    run.say.reader([ids], run.states).run(one for one in run.found if one.topic == transaction_state.TOPIC)
    coordinators = partition_count(run.image, transaction_state.TOPIC)
    return Transactions(run.asked, max_timeout=run.options.max_timeout, coordinators=coordinators, ids=ids)


def _groups(run: AnswerPlan) -> Collector:
    options = run.options
    wanted = GroupsWanted(options.group, run.asked, history=options.history)
    collector = ConsumerGroups(wanted)
    collector.ends = LogEnds(topic_ids=topic_names(run.image), stable=options.stable)
    return collector


def _feed_groups(collector: ConsumerGroups, found: Sequence[Partition], feed: Feed) -> None:
    feed(collector, [one for one in found if one.topic in TOPICS])
    collector.ends = LogEnds(collector.partitions(), collector.ends.topic_ids, stable=collector.ends.stable)
    feed(collector.ends, [one for one in found if one.topic not in TOPICS])


def _retention(run: AnswerPlan) -> Collector:
    copied = copied_offsets(run.found, run.image, damage=run.say.damage, fail=run.say.fail)
    return Retention(run.configs, copied=copied)


OUTPUTS: Final = {
    words.OFFSETS: AnswerOutput(
        (PartitionOffsets,),
        lambda run: Offsets(run.options.time, facts_of(run.image)),
        _replicas,
        also=(cluster_metadata.TOPIC,),
    ),
    words.TRANSACTIONS: AnswerOutput(
        (PartitionTransaction, ReplicaDifference, TransactionalId),
        _transactions,
        _replicas,
        also=(transaction_state.TOPIC, cluster_metadata.TOPIC),
        once=TransactionalId,
    ),
    words.PRODUCERS: AnswerOutput(
        (ActiveProducer, SequenceBreak), lambda run: Producers(gaps=run.options.gaps), _replicas
    ),
    words.GROUPS: AnswerOutput(
        (GroupLine, CommittedLine, CommitLine, MissingLine, UnreadLine),
        _groups,
        _everything,
        also=(*TOPICS, cluster_metadata.TOPIC),
        read=lambda run: [one for one in run.found if one.topic is not None],
        feed=_feed_groups,
    ),
    words.DU: AnswerOutput(
        (PartitionUsage, SegmentUsage, TopicUsage, OtherUsage),
        lambda run: DiskUsage(run.options.by),
        _everything,
        read=lambda run: run.found,
        every_folder=True,
    ),
    words.STATS: AnswerOutput(
        (PartitionStatistics, ProducerStatistics, HourStatistics),
        lambda run: Statistics(records=run.options.records, hours=run.options.hours, top=run.options.top or LARGEST),
        _topic,
    ),
    words.RETENTION: AnswerOutput(
        (TopicRetention, SegmentRetention),
        _retention,
        _topic,
        also=(cluster_metadata.TOPIC, remote_log_metadata.TOPIC),
    ),
    words.COMPACTION: AnswerOutput(
        (PartitionCompaction, CleanedRecord, KeyUsage),
        lambda run: Compaction(run.configs, run.at, listed=run.options.records, top=run.options.top or 0),
        _topic,
        also=(cluster_metadata.TOPIC,),
    ),
}
"""The outputs by their names, which are those of commands."""


def plan(options: SourceOptions, note: Callable[[str], None]) -> list[AnswerTask]:
    """Return the tasks that answer what ``options`` asks. Raises UsageError, and UnreadableError as tasks do."""
    run = AnswerPlan(options, note)
    output = OUTPUTS[options.output]
    collector = output.collector(run)
    partitions = output.read(run)
    if output.unit is not _everything:
        partitions = sorted(partitions, key=lambda one: (one.topic or "", one.partition or 0))
    tasks = stretches(partitions, max(1, options.min_partitions // 4), output.unit) or [[]]
    states = [{(one.files, one.log_dir): run.states.of(one) for one in task} for task in tasks]
    return [
        AnswerTask(
            output=options.output,
            partitions=task,
            collector=collector,
            states=known,
            at=run.at,
            rows=[] if number else run.rows,
            is_first=not number,
            skip=options.skip_unreadable,
        )
        for number, (task, known) in enumerate(zip(tasks, states, strict=True))
    ]


def read(task: AnswerTask) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task. Raises UnreadableError, see :func:`refuse`."""
    output = OUTPUTS[task.output]
    columns = output.columns
    said: list[Row] = []
    say = _sayings(said, unsaid, skip=task.skip)
    states = LogDirStates(in_words(say.damage), say.fail, known=task.states)
    output.feed(task.collector, task.partitions, lambda one, found: say.reader([one], states).run(found))
    lines = (
        columns.row(line)
        for line in task.collector.answer(task.at)
        if task.is_first or output.once is None or not isinstance(line, output.once)
    )
    while rows := list(islice(lines, ROWS)):
        yield columns.batch(rows)
    if rows := [*task.rows, *said]:
        yield columns.batch(rows)
