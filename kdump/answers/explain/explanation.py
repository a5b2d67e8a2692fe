"""The question ``explain``: whether consumers receive the records at given offsets, and why (:func:`explain_all`).

:mod:`.evidence` reads files, :mod:`.reasons` finds the reason. Consecutive offsets with similar causes are one line.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from kdump.answers.explain.evidence import Block, ListedFolders, current, evidence_of, topic_history
from kdump.answers.explain.reasons import Question, cause
from kdump.answers.question import LogQuestion, option
from kdump.errors import UnreadableError
from kdump.internal_topics import cluster_metadata, remote_log_metadata
from kdump.log_reader import remote_segments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from kdump.answers.collector import AnswerLine, Place
    from kdump.answers.explain.evidence import PartitionEvidence, TopicHistory
    from kdump.answers.explain.reasons import Cause, Fact, Reason, Whereabouts
    from kdump.answers.question import Asking

AT_FIRST, AT_MOST = 1 << 10, 1 << 14
"""The number of offsets that are examined together. It doubles each time, from AT_FIRST to AT_MOST."""


class OffsetRange(NamedTuple):
    """A range of offsets to explain, ``last`` included."""

    topic: str
    partition: int
    first: int
    last: int


@dataclass(frozen=True)
class Explanation:
    """Whether consumers of each isolation level receive the records from ``offset`` to ``last_offset``, and why.

    ``because`` and ``evidence`` are about the first offset. ``alternatives`` are further possible reasons. ``where``
    is the place of the record, "empty-batch" or "nowhere". If the files do not show it, an isolation level is None.
    """

    kind: ClassVar[str] = "explanation"
    topic: str
    partition: int
    offset: int
    last_offset: int
    reason: Reason
    where: Whereabouts
    read_uncommitted: bool | None
    read_committed: bool | None
    because: str
    evidence: tuple[Fact, ...]
    alternatives: tuple[Reason, ...]


def explain_all(
    ranges: Iterable[OffsetRange],
    places: Sequence[Place],
    history: TopicHistory,
    at: int,
    fail: Callable[[UnreadableError], None],
    folders: ListedFolders = ListedFolders(),  # noqa: B008  a tuple
) -> Iterator[Explanation]:
    """Yield the explanations of all ranges from the partition folders ``places``. ``fail`` receives errors of files."""
    known: dict[tuple[str, int], PartitionEvidence] = {}
    for requested in ranges:
        key = requested.topic, requested.partition
        try:
            if key not in known:
                known[key] = evidence_of(*key, places, history, folders)
            yield from explain(known[key], requested, at)
        except UnreadableError as error:
            fail(error)


def explain(evidence: PartitionEvidence, requested: OffsetRange, at: int) -> Iterator[Explanation]:
    """Yield one explanation for neighbouring offsets with the same kinds of causes; ``at``: now in ms."""
    begun: tuple[int, Cause] | None = None
    for offset, found in _causes(evidence, requested, at):
        if begun is not None and _alike(begun[1], found):
            continue
        if begun is not None:
            yield _line(requested, begun[0], offset - 1, begun[1])
        begun = offset, found
    if begun is not None:
        yield _line(requested, begun[0], requested.last, begun[1])


def _causes(evidence: PartitionEvidence, requested: OffsetRange, at: int) -> Iterator[tuple[int, Cause]]:
    """Yield (offset, cause) for the first offset, and for each offset where the cause may change."""
    first, size = requested.first, AT_FIRST
    while first <= requested.last:
        block = Block(evidence, range(first, min(requested.last + 1, first + size)))
        for offset in block.turning_points:
            yield offset, cause(Question(block, offset, at))
        first, size = block.offsets.stop, min(2 * size, AT_MOST)
        if first > evidence.known_end:
            return


def _alike(one: Cause, other: Cause) -> bool:
    return one._replace(because="", facts=()) == other._replace(because="", facts=())


def _line(requested: OffsetRange, first: int, last: int, found: Cause) -> Explanation:
    return Explanation(
        topic=requested.topic,
        partition=requested.partition,
        offset=first,
        last_offset=last,
        reason=found.reason,
        where=found.where,
        read_uncommitted=found.uncommitted,
        read_committed=found.committed,
        because=found.because,
        evidence=found.facts,
        alternatives=found.alternatives,
    )


@dataclass(frozen=True)
class ExplainOptions:
    ranges: tuple[OffsetRange, ...] = option(
        (), "ranges", "--offsets", "The offsets to explain.", metavar="TOPIC-PARTITION@OFFSET"
    )


def _answer(asking: Asking, options: ExplainOptions) -> Iterator[AnswerLine]:
    report = asking.report
    found = list(current(asking.found))
    history = topic_history(found, report, partial(remote_segments.of_partitions, found, report))
    folders = ListedFolders(asking.found_names, asking.unread)
    yield from explain_all(options.ranges, list(asking.places()), history, asking.at, report.fail, folders)


QUESTION: Final = LogQuestion(
    "explain",
    "Explain why a consumer receives a record, or does not.",
    ExplainOptions,
    (Explanation,),
    answer=_answer,
    also=(cluster_metadata.TOPIC, remote_log_metadata.TOPIC),
    leftovers=True,
    unit="everything",
)
