"""The base class of collectors, which gather the facts for the answer to a question, and the JSON of answer lines.

One pass over log dirs (:mod:`kdump.answers.log_dir_pass`) feeds batches to any number of collectors. Some
collectors get no batches: they read files themselves. Between partitions collectors can be pickled and merged, so
several processes or Spark tasks give the same answer as one process.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import IntEnum
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Protocol, Self, TypeVar

from kdump.errors import SILENT, Reporter, UnreadableError, discard
from kdump.log_dirs.file_names import LEADER_EPOCHS, PARTITION_METADATA, Name
from kdump.primitives.terminal import path_text
from kdump.segments.log_end import end_of_segment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kdump.formats.leader_epoch import EpochEntry
    from kdump.log_dirs.log_dir_state import LogDirState
    from kdump.log_dirs.partition import Partition, Segment
    from kdump.log_reader.topic_ids import CurrentId
    from kdump.records.record_batch import Batches
    from kdump.segments.log_end import SegmentEnd
    from kdump.segments.regions import Damage, Trailing


K = TypeVar("K")
V = TypeVar("V")


class Needs(IntEnum):
    """What a collector takes from the pass: nothing (it reads files itself), batch headers, or records too."""

    FILES = 0
    HEADERS = 1
    RECORDS = 2


class Reading(NamedTuple):
    """The result of ``begin`` if only batches from offset ``since`` on are needed. The pass may add earlier batches."""

    needs: Needs
    since: int = 0


class Place(NamedTuple):
    """A partition folder, and the state of its log dir. It may not be picklable: collectors must drop it in ``end``."""

    partition: Partition
    log_dir: LogDirState
    report: Reporter = SILENT
    parsed: dict[str, Any] | None = None
    """Path of a segment -> its end; and what :attr:`kdump.checks.partition.Tap.parsed` has. None: nothing is kept."""

    def end_of(self, segment: Segment) -> SegmentEnd:
        """Return the end of a segment of the partition. Raises UnreadableError."""
        parsed: dict[str, SegmentEnd] = {} if self.parsed is None else self.parsed
        if segment.path not in parsed:
            parsed[segment.path] = end_of_segment(segment)
        return parsed[segment.path]

    def known(self, name: str) -> Any:
        """Return the content of a file beside the log if a check of the place has parsed it, else None."""
        return None if self.parsed is None else self.parsed.get(name)

    @property
    def key(self) -> tuple[str, int] | None:
        """Topic and partition, or None if the name of the folder does not have both."""
        topic, number = self.partition.topic, self.partition.partition
        return None if topic is None or number is None else (topic, number)

    @property
    def name(self) -> Name:
        """Topic and partition, each None if the name of the folder lacks it."""
        return Name(self.partition.topic, self.partition.partition)

    @property
    def high_watermark(self) -> int | None:
        """The high watermark in the checkpoint, or None. A running broker writes the checkpoint every few seconds."""
        return self.log_dir.high_watermarks.get((self.partition.topic, self.partition.partition))

    def of_deleted_topic(self, current_ids: Mapping[str, CurrentId]) -> str:
        """Return a note if ``current_ids`` has another id for the topic's name than the folder, else "".

        The topic was deleted and created again. Raises UnreadableError.
        """
        current = current_ids.get(self.partition.topic or "")
        if current is None:
            return ""
        known = self.known(PARTITION_METADATA)
        own = self.partition.topic_id(self.report.damage) if known is None else known.topic_id
        return current.note(self.partition, own)

    def leader_epochs(self, wrong: Callable[[str], None] = discard) -> tuple[EpochEntry, ...]:
        """Return the entries of leader-epoch-checkpoint; empty without a valid file. ``wrong`` receives damage."""
        known = self.known(LEADER_EPOCHS)
        if known is None:
            try:
                known = self.partition.leader_epochs(wrong) or ()
            except UnreadableError as error:
                self.report.fail(error)
                return ()
            if known and self.parsed is not None:
                self.parsed[LEADER_EPOCHS] = known
        return tuple(known)

    @property
    def log_start(self) -> int | None:
        """The log start offset in the checkpoint, or None: then it is the first base offset, local or remote."""
        return self.log_dir.log_starts.get((self.partition.topic, self.partition.partition))

    @property
    def first_offset(self) -> int:
        """The base offset of the first segment; 0 without a segment."""
        segments = self.partition.segments
        return (segments[0].base_offset or 0) if segments else 0

    def earliest(self, first: int, *, is_remote: bool | None = None) -> int:
        """Return the earliest offset of a log whose first local segment begins with offset ``first``.

        It is the log start offset in the checkpoint, else ``first``; at least ``first`` if ``is_remote`` is False. Only
        tiered topics start below it (LogManager.checkpointLogStartOffsetsInDir). ``is_remote`` None: unknown.
        """
        start = self.log_start
        if start is None:
            return first
        return max(start, first) if is_remote is False else start


class Collector:
    """Gathers the facts that answer a question. Subclasses override the methods that they need.

    For each partition the pass calls ``begin`` first and ``end`` last. If ``begin`` returns more than ``Needs.FILES``,
    the pass calls ``turn_to`` for each segment that it reads. Then it calls ``add`` for valid batches and ``lose`` for
    damaged ranges, in file order. Collectors share one pass, so a collector may get more batches than it needs.
    """

    current_ids: Mapping[str, CurrentId] = MappingProxyType({})
    """Topic -> its id in the metadata log. The collector gets no folder of this name with another topic id."""
    takes_control_runs: ClassVar[bool] = False
    """Whether ``add`` accepts runs of control batches. If not, ``add`` is called for each control batch."""

    def begin(self, place: Place) -> Needs | Reading:
        """Begin a partition, and return the part of it to read. A collector may read files here.

        If this raises UnreadableError, the pass reports the error, reads nothing for this collector, and calls ``end``.
        """
        raise NotImplementedError

    def turn_to(self, segment: Segment) -> None:
        """Begin the next segment of the partition."""

    def add(self, batches: Batches) -> int | None:
        """Take the next valid batches: a single batch, or a batch run with the same attributes.

        Return how many batches of a run were taken, or None for all; the pass then adds the other batches one by one.
        Raise DamageError if a record of a single batch is unreadable; the pass reports it.
        """

    def lose(self, region: Damage | Trailing) -> None:
        """Take a damaged range, or a truncated batch at the end of the log."""

    def end(self) -> None:
        """Close the partition. Also called for a folder of another topic id, without ``begin``."""

    def merge(self, other: Self) -> None:
        """Add the results of another collector of this class, which has read later partitions."""
        raise NotImplementedError

    def answer(self, at: int) -> Iterable[AnswerLine]:
        """Return the lines of the answer; ``at`` is the time that counts as now, in ms since 1970."""
        raise NotImplementedError


def keep_best(best: dict[K, V], others: Mapping[K, V], rank: Callable[[V], Any]) -> None:
    """Add ``others`` to ``best``. The value with the higher rank is kept; of equals, the one in ``best``."""
    for key, value in others.items():
        if key not in best or rank(best[key]) < rank(value):
            best[key] = value


class AnswerLine(Protocol):
    """A line of an answer: a frozen dataclass. ``kind`` is the first field of its JSON object."""

    kind: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Any]]


def as_json(line: AnswerLine) -> dict[str, object]:
    """Return a line as a JSON object: ``kind``, then its fields in camelCase."""
    return {"kind": line.kind, **_object(line)}


def _object(value: Any) -> dict[str, object]:
    of: Any = type(value)
    return {key: field if type(field := getattr(value, name)) in _SIMPLE else _plain(field) for name, key in _keys(of)}


@cache
def _keys(of: Any) -> tuple[tuple[str, str], ...]:
    return tuple((field.name, camel_case(field.name)) for field in fields(of))


_SIMPLE: Final = frozenset({int, bool, float, type(None)})
"""Types of values that JSON holds unchanged."""


def _plain(value: object) -> object:
    if isinstance(value, str):
        return path_text(value)  # a topic name comes from a folder name, which may not be UTF-8
    if is_dataclass(value) and not isinstance(value, type):
        return _object(value)
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value


def camel_case(name: str) -> str:
    """Return ``lastStable`` for ``last_stable``. An underscore at the end (``from_``) is dropped."""
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(word.capitalize() for word in rest)
