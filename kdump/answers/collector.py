"""What a question gathers from the files, and the lines of its answer.

One pass over log dirs (:mod:`kdump.answers.log_dir_pass`) feeds any number of collectors. Collectors are picklable and
merge, so that processes and Spark tasks give the same answer as one process. "Now" is an argument of the answer.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Protocol, Self

from kdump.errors import SILENT, Reporter
from kdump.log_dirs.file_names import Name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kdump.log_dirs.log_dir_state import LogDirState
    from kdump.log_dirs.partition import Partition, Segment
    from kdump.records.record_batch import Batches
    from kdump.segments.regions import Damage, Trailing


class Needs(IntEnum):
    """How much of a partition a collector must read: no batch, headers alone, or records too."""

    FILES = 0
    HEADERS = 1
    RECORDS = 2


class Reading(NamedTuple):
    """What to read of a partition, where its first batches are not needed.

    Batches come from the offset ``since`` on; some before it may come too.
    """

    needs: Needs
    since: int = 0


def once(say: Callable[[str], None]) -> Callable[[str], None]:
    """Return what says each sentence once: several passes may meet the same damage."""
    said: set[str] = set()

    def say_new(text: str) -> None:
        if text not in said:
            said.add(text)
            say(text)

    return say_new


class Place(NamedTuple):
    """A partition's folder, and the state of the log dir that holds it.

    A collector keeps no ``report`` after ``end``: it must be picklable then.
    """

    partition: Partition
    log_dir: LogDirState
    report: Reporter = SILENT

    @property
    def key(self) -> tuple[str, int] | None:
        """Topic and partition, or None if the folder's name gives none."""
        topic, number = self.partition.topic, self.partition.partition
        return None if topic is None or number is None else (topic, number)

    @property
    def name(self) -> Name:
        """Topic and partition as far as the name of the folder gives them."""
        return Name(self.partition.topic, self.partition.partition)

    @property
    def high_watermark(self) -> int | None:
        """The checkpointed high watermark: it lags on a running broker."""
        return None if self.key is None else self.log_dir.high_watermarks.get(self.key)

    @property
    def log_start(self) -> int | None:
        """The checkpointed log start offset, or None if it is the first base offset."""
        return None if self.key is None else self.log_dir.log_starts.get(self.key)

    def earliest(self, first: int, *, is_remote: bool | None = None) -> int:
        """Return the earliest offset of a log whose first local segment begins with ``first``.

        A checkpointed log start below it counts where the topic is tiered; None, not known: a broker writes such an
        entry for tiered topics alone (LogManager.checkpointLogStartOffsetsInDir).
        """
        if self.log_start is None:
            return first
        return max(self.log_start, first) if is_remote is False else self.log_start


class Collector:
    """Gathers the facts of one question; a collector extends it with what it needs.

    The pass calls for each partition: ``begin``. If that asks for more than FILES: for each segment ``turn_to``, then
    ``add`` for valid batches and ``lose`` for each damaged range or cut end, in the order of the file; ``end``. Of
    several collectors each may get more than it asked for.
    """

    takes_control_runs: ClassVar[bool] = False
    """Whether ``add`` takes several control batches together too; else each comes as a single one."""

    def begin(self, place: Place) -> Needs | Reading:
        """Turn to a partition; return how much of it to read. State files (snapshots, indexes) may be read here.

        Raises UnreadableError: the pass says so and leaves the partition out.
        """
        raise NotImplementedError

    def turn_to(self, segment: Segment) -> None:
        """Turn to the next segment of the partition."""

    def add(self, batches: Batches) -> int | None:
        """Take the next valid batches: a single one, or several of data that have the same attributes.

        Return how many of several were taken, None for all: the pass then adds each of the others as a single one.
        Raises DamageError where a record of a single batch cannot be read: the pass reports it.
        """

    def lose(self, region: Damage | Trailing) -> None:
        """Take a range that cannot be read, or the beginning of a batch that the end of the log cuts off."""

    def end(self) -> None:
        """Close the partition."""

    def merge(self, other: Self) -> None:
        """Take over what a collector of the same kind gathered from partitions after this one's."""
        raise NotImplementedError

    def answer(self, at: int) -> Iterable[AnswerLine]:
        """Return the lines of the answer; ``at`` is now, in ms since 1970."""
        raise NotImplementedError


class AnswerLine(Protocol):
    """One line of an answer: a frozen dataclass of plain values. ``kind`` is its first JSON field."""

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
    """Return the fields of a dataclass and their names in JSON."""
    return tuple((field.name, camel_case(field.name)) for field in fields(of))


_SIMPLE: Final = frozenset({int, str, bool, float, type(None)})
"""Types of values that JSON holds as they are."""


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return _object(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value


def camel_case(name: str) -> str:
    """Return ``last_stable`` as ``lastStable``; an underscore at the end (``from_``) is left out."""
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(word.capitalize() for word in rest)
