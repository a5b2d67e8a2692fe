"""Gathers consumer groups from ``__consumer_offsets`` and ``__share_group_state``, and answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, TypeAlias

from kdump.answers.groups.commit_lines import CommitReader, history_lines, read_commit
from kdump.answers.groups.coordinator_log import CoordinatorLog
from kdump.answers.groups.expiry import DEFAULT_RETENTION_MS
from kdump.answers.groups.group_records import read_group, simple_group, topic_id_text
from kdump.answers.groups.log_ends import LogEnds
from kdump.answers.groups.share_state import ShareStateLog
from kdump.answers.groups.topic_log import TopicLogs
from kdump.internal_topics import consumer_offsets, share_group_state
from kdump.log_dirs.file_names import Name
from kdump.log_dirs.finder import Wanted
from kdump.primitives.java_text import java_utf8

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kdump.answers.collector import AnswerLine
    from kdump.answers.groups.coordinator_log import HeldGroup
    from kdump.answers.groups.share_state import ShareKey, SharePartition
    from kdump.answers.groups.topic_log import TopicLog

TOPICS: Final = (consumer_offsets.TOPIC, share_group_state.TOPIC)
Share: TypeAlias = "tuple[ShareKey, SharePartition]"


@dataclass(frozen=True)
class GroupsWanted:
    """What is asked about groups."""

    groups: tuple[str, ...] = ()
    """Ids or globs; empty means all."""
    partitions: Wanted = field(default_factory=Wanted)
    """Whose offsets are asked for."""
    history: bool = False
    retention_ms: int = DEFAULT_RETENTION_MS

    def takes(self, group_id: str) -> bool:
        """Tell whether a group is asked for."""
        return not self.groups or group_id in self.groups or any(fnmatchcase(group_id, one) for one in self.groups)

    def takes_partition(self, topic: str | None, partition: int | None) -> bool:
        """Tell whether offsets in a partition are asked for."""
        return self.partitions.takes(Name(topic, partition))


class ConsumerGroups(TopicLogs):
    """The collector.

    ``ends`` tells what lag needs; it is filled by a pass of its own, over the partitions that :meth:`partitions` names.
    """

    def __init__(self, wanted: GroupsWanted) -> None:
        super().__init__()
        self.wanted = wanted
        self.ends = LogEnds()

    def log_of(self, topic: str, partition: int) -> TopicLog | None:
        """Return a log to be filled."""
        if topic == consumer_offsets.TOPIC:
            return CoordinatorLog(partition, self._keeps_history if self.wanted.history else None)
        return ShareStateLog(partition) if topic == share_group_state.TOPIC else None

    def _keeps_history(self, group: bytes) -> bool:
        return self.wanted.takes(java_utf8(group))

    def partitions(self) -> set[tuple[str | bytes, int]]:
        """Return the partitions that groups have offsets in, by topic or topic id: the ends of their logs tell lag."""
        found: set[tuple[str | bytes, int]] = set()
        for group_id, held in self._groups():
            if self.wanted.takes(group_id):
                commits = (read_commit(offset.key, None) for offset in held.offsets)
                found.update(
                    (commit.topic, commit.partition)
                    for commit in commits
                    if self.wanted.takes_partition(commit.topic, commit.partition)
                )
        for log in self.logs.values():
            if isinstance(log, ShareStateLog):
                found.update((key.topic_id, key.partition) for key in log.held if self.wanted.takes(key.group_id))
        return found

    def answer(self, at: int) -> Iterator[AnswerLine]:
        """Yield the lines, group by group; then what is missing."""
        reader = CommitReader(self.ends, self.wanted.retention_ms, at)
        shares = self._share_partitions()
        for group_id, held in self._groups():
            if self.wanted.takes(group_id):
                yield from self._of_group(group_id, held, reader)
                yield from self._of_shares(group_id, shares.pop(group_id, ()), reader)
        for group_id, rest in sorted(shares.items()):  # their group is in a partition that is not there
            if self.wanted.takes(group_id):
                yield from self._of_shares(group_id, rest, reader)
        yield from self.missing()

    def _groups(self) -> list[tuple[str, HeldGroup]]:
        """Return the groups of all partitions in order."""
        logs = (log for log in self.logs.values() if isinstance(log, CoordinatorLog))
        found = [(java_utf8(held.name), held) for log in logs for held in log.held()]
        return sorted(found, key=lambda one: (one[0], one[1].partition))

    def _of_group(self, group_id: str, held: HeldGroup, reader: CommitReader) -> Iterator[AnswerLine]:
        group = read_group(group_id, held.partition, held.log, self._topic_name)
        if group is None and (held.log.simple or held.offsets):
            group = simple_group(group_id, held.partition)
        if group is not None:
            yield group.line
            pending = {offset.key for offset in held.offsets if offset.producer is not None}
            lines = [
                reader.committed(group, held.partition, offset, pending=offset.key in pending)
                for offset in held.offsets
            ]
            yield from sorted(
                (line for line in lines if self.wanted.takes_partition(line.topic, line.partition)),
                key=lambda line: (line.topic or "", line.partition, line.pending_producer_id or -1),
            )
        if held.history is not None:
            for line in history_lines(group_id, held.partition, held.history):
                if self.wanted.takes_partition(line.topic, line.partition):
                    yield line

    def _of_shares(self, group_id: str, shares: Iterable[Share], reader: CommitReader) -> Iterator[AnswerLine]:
        for key, state in shares:
            line = reader.shared(group_id, key, state)
            if self.wanted.takes_partition(line.topic, line.partition):
                yield line

    def _share_partitions(self) -> dict[str, list[Share]]:
        """Return the share partitions that have begun, by group."""
        found: dict[str, list[Share]] = {}
        for log in self.logs.values():
            if isinstance(log, ShareStateLog):
                for key, state in log.held.items():
                    if state.start_offset >= 0:
                        found.setdefault(key.group_id, []).append((key, state))
        return {group_id: sorted(shares) for group_id, shares in found.items()}

    def _topic_name(self, topic_id: bytes) -> str:
        """Return the name of a topic, its id where no file tells the name."""
        return self.ends.topic_ids.get(topic_id) or topic_id_text(topic_id)
