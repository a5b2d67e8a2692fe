"""The declaration of a question (:class:`LogQuestion`), which all interfaces share, and the state of one call of it.

The options of a question are one frozen dataclass. :func:`option` makes a field, with its help and the kind of its
value. Each interface has one parser per kind. In Python the name of the field is an argument. The ``flag`` is
the option of the command and, in camelCase, of the Spark source.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from operator import index
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, NamedTuple, SupportsIndex, TypeVar

from kdump.answers.collector import Place
from kdump.errors import Reporter, UnreadableError, UsageError, discard
from kdump.internal_topics.cluster_metadata import TOPIC as METADATA
from kdump.log_dirs.file_names import Name
from kdump.log_dirs.log_dir_state import LogDirStates

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from kdump.answers.collector import AnswerLine, Collector
    from kdump.answers.log_dir_pass import LogDirPass
    from kdump.answers.metadata.cluster_image import ClusterImage
    from kdump.answers.metadata.image import MetadataLog
    from kdump.log_dirs.finder import Wanted
    from kdump.log_dirs.partition import Partition
    from kdump.log_reader.topic_ids import CurrentId
    from kdump.primitives.processes import Workers

    Feed = Callable[[Collector, Iterable[Partition]], None]

O = TypeVar("O")  # noqa: E741  the options
Kind = Literal[
    "switch",
    "count",
    "moment",
    "moments",
    "duration",
    "release",
    "configs",
    "names",
    "codecs",
    "choice",
    "text",
    "ranges",
]
"""The kind of an option's value. Moments and durations are in ms. A release is a tuple of numbers."""
Unit = Literal["replicas", "topic", "everything"]
"""The partitions that stay in one Spark task: all replicas of a partition, all partitions of a topic, or all."""
OPTION: Final = "option"
EXIT_STATUS: Final = """
Exit status: 0 answered; 1 something cannot be read; 2 wrong usage; 3 damage was found in a log; 4 only in
derived files. kdump check reads whole logs.
"""
"""The end of the help of several questions."""


@dataclass(frozen=True)
class QuestionOption:
    """The texts of an option, for the command: the name (``flag``), the help (``doc``), the placeholder (``metavar``).

    ``shown`` is the default in the help: a text, or True for the field's default. ``least`` is the smallest count.
    """

    kind: Kind
    flag: str
    doc: str
    metavar: str | None = None
    shown: str | bool = False
    least: int = 1
    choices: tuple[str, ...] = ()


class FieldOption(NamedTuple):
    """An option of a question: the name of its field, its default, and its texts."""

    name: str
    default: Any
    words: QuestionOption


def option(default: Any, kind: Kind, flag: str, doc: str, **words: Any) -> Any:
    """Return a field of a dataclass of options; ``words`` are fields of :class:`QuestionOption`."""
    return field(default=default, metadata={OPTION: QuestionOption(kind, flag, doc, **words)})


@dataclass(frozen=True)
class LineTable:
    """A table of SQL with the lines of one class.

    ``words``: the options with which the command prints these lines. ``options``: the same options as field -> value.
    ``omits``: columns that were added later, and that this table lacks because scripts rely on its columns.
    """

    name: str
    line: type[AnswerLine]
    words: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    omits: frozenset[str] = frozenset()


@dataclass(frozen=True)
class LogQuestion(Generic[O]):
    """A question about log dirs. ``help`` is the help of its command; lists of commands show its first sentence."""

    name: str
    help: str
    options: type[O]
    lines: tuple[type[AnswerLine], ...]
    collector: Callable[[Asking, O], Collector] | None = None
    """Returns a new collector; None for a question that has ``answer``."""
    answer: Callable[[Any, O], Iterable[AnswerLine]] | None = None
    """Returns the lines of a question without a collector. With ``compares`` it gets a list: an Asking per broker."""
    more: Callable[[Asking, O, Any], Iterable[AnswerLine]] | None = None
    """Returns further lines, which need a second pass. They follow the lines of the collector."""
    notes: Callable[[Asking, Any], Iterable[str]] | None = None
    """Returns notes on topics that the collector left out."""
    feed: Callable[[Any, Sequence[Partition], Feed], None] = lambda collector, found, feed: feed(collector, found)
    """Feeds the collector: by default in one pass over the partitions."""
    tables: tuple[LineTable, ...] = ()
    """The tables of SQL. A class of lines has any number of them."""
    command: str = ""
    """The name of its command, if it differs from ``name``."""
    also: tuple[str, ...] = ()
    """Topics whose partitions are found even if the user selects other topics."""
    reads: tuple[str, ...] = ()
    """Topics of ``also`` whose partitions are fed to the collector."""
    only: tuple[str, ...] = ()
    """Topics that are read instead of the selected topics."""
    leftovers: bool = False
    """Whether -future, -delete and -stray folders are found too."""
    every_folder: bool = False
    """Whether the collector gets each folder of a log dir, also those that are not partition folders."""
    takes_names: bool = True
    """Whether only selected partitions (and those of ``reads``) are fed to the collector, not all that are found."""
    compares: bool = False
    """Whether the question compares brokers. Each broker then has its own paths."""
    unit: Unit = "topic"
    once: type[AnswerLine] | None = None
    """A class of lines that only the first Spark task returns, because they are equal in all tasks."""
    prepare: Callable[[Any, Asking], None] | None = None
    """Reads the facts that each Spark task needs, before the tasks start."""
    takes_remote: bool = False
    """Whether the segments of tiered topics in remote storage are read too."""

    @property
    def called(self) -> str:
        return self.command or self.name

    def parts(self) -> tuple[FieldOption, ...]:
        return tuple(
            FieldOption(one.name, one.default, one.metadata[OPTION])
            for one in fields(self.options)  # type: ignore[arg-type]  # it is a dataclass
        )

    def chosen(self, given: Mapping[str, Any]) -> O:
        """Return the options with these values. Raises UsageError for a value that its kind does not permit."""
        for name, default, words in self.parts():
            value, expected = given.get(name, default), ""
            if words.kind == "count" and not _is_count(value, words.least):
                expected = f"a number, {words.least} or more"
            elif words.kind == "duration" and not _is_count(value, 0):
                expected = "milliseconds, 0 or more"
            elif words.kind == "switch" and value not in (True, False):
                expected = "True or False"
            elif words.kind == "text" and not isinstance(value, str):
                expected = "text"
            elif words.kind == "choice" and value not in words.choices:
                expected = " or ".join(map(repr, words.choices))
            elif words.kind == "release" and not (isinstance(value, tuple) and {*map(type, value)} == {int}):
                expected = "numbers such as (3, 9)"
            if expected and (value is not None or default is not None):
                raise UsageError(f"{name}: expected {expected}, found {value!r}")
        return self.options(**given)

    def partitions(self, asking: Asking) -> list[Partition]:
        if self.every_folder:
            return asking.found
        return asking.found if not self.takes_names else asking.meant(*self.reads)

    def collector_of(self, asking: Asking, options: O) -> Collector:
        """Return a new collector. Raises UsageError if the question has no collector."""
        if self.collector is None:
            raise UsageError(f"the question {self.name} has no collector")
        collector = self.collector(asking, options)
        if METADATA in self.also:
            collector.current_ids = asking.current_ids
        return collector

    def brokers(self, given: Sequence[object]) -> None:
        """Raise UsageError if the question compares brokers, and fewer than two are given."""
        if self.compares and len(given) < 2:
            raise UsageError(f"{self.name} compares brokers: name two paths or more, one for each broker")

    def ask(self, asking: Asking | Sequence[Asking], options: O) -> Iterator[AnswerLine]:
        """Yield the lines of the answer. A question that ``compares`` gets one ``asking`` for each broker."""
        if self.answer is not None:
            yield from self.answer(asking, options)
            return
        if not isinstance(asking, Asking):
            raise UsageError(f"{self.name} takes the paths of one broker, not of several")
        collector = self.collector_of(asking, options)
        self.feed(collector, self.partitions(asking), asking.feed)
        yield from self.lines_of(collector, asking, options)

    def lines_of(self, collector: Collector, asking: Asking, options: O) -> Iterator[AnswerLine]:
        """Report the notes of a collector that has read all partitions. Then yield its lines, and those of ``more``."""
        for text in self.notes(asking, collector) if self.notes is not None else ():
            asking.report.note(text)
        yield from collector.answer(asking.at)
        if self.more is not None:
            yield from self.more(asking, options, collector)


def _is_count(value: object, least: int) -> bool:
    return isinstance(value, SupportsIndex) and not isinstance(value, bool) and index(value) >= least


class Asking:
    """The state of one call of a question: the partitions that were found, and the passes that feed collectors.

    ``asked`` selects topics and partitions. ``at`` is the time that counts as now, in ms. ``where``: path for messages.
    """

    def __init__(
        self,
        found: Sequence[Partition],
        asked: Wanted,
        at: int,
        report: Reporter,
        where: str = "",
        states: LogDirStates | None = None,
    ) -> None:
        self.found, self.asked, self.at, self.report, self.where = list(found), asked, at, report, where
        self.states = LogDirStates(report) if states is None else states
        self.found_names: Collection[Name] = ()
        self.unread: Collection[Name] = ()
        """The caller sets ``found_names`` and ``unread`` to those of its :class:`kdump.log_dirs.finder.Finder`."""

    def takes(self, partition: Partition) -> bool:
        return self.asked.takes(Name(partition.topic, partition.partition))

    def meant(self, *also: str) -> list[Partition]:
        """Return the selected partitions that have a topic, and all partitions of the topics ``also``."""
        return [one for one in self.found if one.topic is not None and (one.topic in also or self.takes(one))]

    @cached_property
    def image(self) -> ClusterImage | None:
        """The image of the metadata log, or None if no metadata log was found."""
        if all(one.topic != METADATA for one in self.found):
            return None
        from kdump.answers.metadata.image import image_of

        return image_of(self.found, self.report)

    @cached_property
    def current_ids(self) -> Mapping[str, CurrentId]:
        """Topic -> the id of the present topic, of the topics that are read."""
        from kdump.internal_topics import DECODER_SWITCHES
        from kdump.log_reader.topic_ids import current_ids

        ids = {} if self.image is None else {name: topic.id for name, topic in self.image.topics.by_name.items()}
        return current_ids(ids, self.meant(*DECODER_SWITCHES))

    def metadata_log(self) -> MetadataLog:
        """Return the metadata log in the paths. Raises UnreadableError if there is none."""
        from kdump.answers.metadata.image import NOTHING, Copies, MetadataLog

        copies = Copies(self.found, self.report)
        if not copies:
            raise UnreadableError(self.where, NOTHING)
        return MetadataLog(copies)

    def places(self) -> Iterator[Place]:
        """Yield the selected partitions, each with the state of its log dir. Notes on them are not reported."""
        report = self.report._replace(note=discard)
        yield from (Place(one, self.states.of(one), report) for one in self.meant())

    def reader(self, collectors: Sequence[Collector]) -> LogDirPass:
        from kdump.answers.log_dir_pass import LogDirPass

        return LogDirPass(collectors, self.report, self.states)

    def feed(self, collector: Collector, partitions: Iterable[Partition]) -> None:
        self.reader([collector]).run(partitions)

    def watched(self, size: int) -> Reporter:  # noqa: ARG002  of a command
        """Return a reporter for work on ``size`` bytes. In a command it shows the progress."""
        return self.report

    def workers(self, partitions: Sequence[Partition]) -> Workers | None:  # noqa: ARG002  of a command
        """Return the workers that read the partitions, or None if this process reads them."""
        return None

    def reads_alone(self, why: str) -> None:
        """Report that this process reads, although the user asked for workers. ``why`` is the option that needs it."""
