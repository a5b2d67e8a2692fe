"""Ranks groups, also deleted ones, by their records in ``__consumer_offsets``, for ``kdump groups --top``."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Literal, TypeAlias

from kdump.answers.groups.coordinator_log import OFFSETS, TopicLog, TopicLogs, committed_in, group_of, problem_of
from kdump.answers.groups.lines import WriterLine
from kdump.formats.record_layout import BATCH_HEADER
from kdump.internal_topics import consumer_offsets
from kdump.primitives.encodings import java_utf8

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from kdump.answers.collector import AnswerLine
    from kdump.records.record_batch import BriefRecord

Ranking: TypeAlias = Literal["bytes", "commits"]


@dataclass(slots=True)
class GroupTally:
    """The records of a group in a partition: bytes, numbers and timestamps (ms)."""

    first_timestamp: int
    last_timestamp: int = -1
    size: int = 0
    commits: int = 0
    tombstones: int = 0
    group_records: int = 0


class WriterLog(TopicLog):
    """Counts the records of groups in one partition. ``groups``: group id in bytes -> tally.

    With ``takes`` only the commits, and their tombstones, for the partitions that it selects count.
    """

    def __init__(self, partition: int, takes: Callable[[str, int], bool] | None = None) -> None:
        super().__init__(partition)
        self.groups: dict[bytes, GroupTally] = {}
        self._takes = takes
        self._selected: dict[bytes, bool] = {}
        """End of a commit's key, with topic and partition -> whether to count the record."""

    def take(self, records: Sequence[BriefRecord], producer: int, counts: Sequence[int]) -> None:  # noqa: ARG002  the writer does not matter
        """Add records, each with its share of its batch's header."""
        groups, takes = self.groups, self._takes
        for (offset, timestamp, key, value, size), share in zip(records, _shares(counts), strict=True):
            problem = problem_of(key)
            if key is None or problem is not None:
                self.refuse(problem or "", offset)
                continue
            if takes is not None and not (key[:2] in OFFSETS and self._is_selected(takes, committed_in(key))):
                continue
            name = group_of(key)
            written = groups.get(name)
            if written is None:
                written = groups[name] = GroupTally(timestamp)
            if key[:2] not in OFFSETS:
                written.group_records += 1
            elif value is None:
                written.tombstones += 1
            else:
                written.commits += 1
            written.size += size + share
            written.last_timestamp = timestamp

    def _is_selected(self, takes: Callable[[str, int], bool], place: bytes) -> bool:
        if place not in self._selected:
            self._selected[place] = takes(java_utf8(place[2:-4]), int.from_bytes(place[-4:], "big", signed=True))
        return self._selected[place]


def _shares(counts: Iterable[int]) -> Iterator[int]:
    """Yield each record's share of its batch's header in bytes. The first record gets the remainder."""
    for count in counts:
        if count:
            share, rest = divmod(BATCH_HEADER.size, count)
            yield share + rest
            yield from repeat(share, count - 1)


class GroupWriters(TopicLogs):
    """Ranks the groups that ``takes`` selects by records in ``__consumer_offsets``. See also :class:`WriterLog`."""

    def __init__(
        self,
        ranking: Ranking,
        takes: Callable[[str], bool],
        takes_partition: Callable[[str, int], bool] | None = None,
    ) -> None:
        super().__init__()
        self._ranking = ranking
        self._takes = takes
        self._takes_partition = takes_partition

    def log_of(self, topic: str, partition: int) -> TopicLog | None:
        return WriterLog(partition, self._takes_partition) if topic == consumer_offsets.TOPIC else None

    def answer(self, at: int) -> Iterator[AnswerLine]:  # noqa: ARG002  nothing of it depends on the time
        found = [
            (java_utf8(name), log.partition, written)
            for log in self.logs.values()
            if isinstance(log, WriterLog)
            for name, written in log.groups.items()
        ]
        found = [one for one in found if self._takes(one[0])]
        found.sort(key=lambda one: (-(one[2].size if self._ranking == "bytes" else one[2].commits), *one[:2]))
        for rank, (group_id, partition, written) in enumerate(found, 1):
            yield WriterLine(
                rank,
                group_id,
                partition,
                written.size,
                written.commits,
                written.tombstones,
                written.group_records,
                None if written.first_timestamp < 0 else written.first_timestamp,
                None if written.last_timestamp < 0 else written.last_timestamp,
            )
        yield from self.missing()
