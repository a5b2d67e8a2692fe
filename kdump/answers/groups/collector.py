"""Gathers consumer groups from ``__consumer_offsets`` and ``__share_group_state``, and answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from kdump.answers.collector import Collector, Needs
from kdump.answers.groups.commit_lines import CommitPlace, CommitReader, history_lines, read_commit
from kdump.answers.groups.coordinator_log import CoordinatorLog, GroupLog
from kdump.answers.groups.expiry import DEFAULT_RETENTION_MS
from kdump.answers.groups.group_records import read_group, simple_group, topic_id_text
from kdump.answers.groups.lines import MissingLine, UnreadLine, WriterLine
from kdump.answers.groups.log_ends import LogEnds
from kdump.answers.groups.share_state import ShareStateLog
from kdump.internal_topics import consumer_offsets, share_group_state
from kdump.log_dirs.file_names import Name
from kdump.log_dirs.finder import Wanted
from kdump.primitives.java_text import java_utf8
from kdump.segments.regions import Damage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kdump.answers.collector import AnswerLine, Place
    from kdump.answers.groups.coordinator_log import Entry, Lost
    from kdump.answers.groups.share_state import ShareKey, SharePartition
    from kdump.records.record_batch import RecordBatch
    from kdump.segments.batch_runs import Run
    from kdump.segments.regions import Trailing

TOPICS: Final = (consumer_offsets.TOPIC, share_group_state.TOPIC)
Ranking: TypeAlias = Literal["bytes", "commits"]
Share: TypeAlias = "tuple[ShareKey, SharePartition]"


@dataclass(frozen=True)
class GroupsWanted:
    """What is asked about groups."""

    groups: tuple[str, ...] = ()
    """Ids or globs; empty means all."""
    partitions: Wanted = field(default_factory=Wanted)
    """Whose offsets are asked for."""
    history: bool = False
    top: Ranking | None = None
    retention_ms: int = DEFAULT_RETENTION_MS

    def takes(self, group_id: str) -> bool:
        """Tell whether a group is asked for."""
        return not self.groups or any(fnmatchcase(group_id, wanted) for wanted in self.groups)

    def takes_partition(self, topic: str | None, partition: int | None) -> bool:
        """Tell whether offsets in a partition are asked for."""
        return self.partitions.takes(Name(topic, partition))


class GroupLogs(Protocol):
    """What is common to the logs of both topics."""

    partition: int
    end_offset: int
    lost: list[Lost]
    unread: dict[str, tuple[int, int]]


L = TypeVar("L", bound=GroupLogs)


class ConsumerGroups(Collector):
    """The collector. Of several replicas of a coordinator's partition the longest counts.

    ``ends`` tells what lag needs; it is filled by a pass of its own, over the partitions that :meth:`partitions` names.
    """

    takes_runs = True

    def __init__(self, wanted: GroupsWanted) -> None:
        self.wanted = wanted
        self.ends = LogEnds()
        self._logs: dict[int, CoordinatorLog] = {}
        self._shares: dict[int, ShareStateLog] = {}
        self._now: CoordinatorLog | ShareStateLog | None = None

    def begin(self, place: Place) -> Needs:
        """Turn to a partition."""
        topic, number = place.key or ("", 0)
        self._now = None
        if topic == consumer_offsets.TOPIC:
            history = self._keeps_history if self.wanted.history else None
            self._now = CoordinatorLog(number, history, keeps_writers=self.wanted.top is not None)
        elif topic == share_group_state.TOPIC:
            self._now = ShareStateLog(number)
        return Needs.FILES if self._now is None else Needs.RECORDS

    def _keeps_history(self, group: bytes) -> bool:
        return self.wanted.takes(java_utf8(group))

    def add(self, batch: RecordBatch) -> None:
        """Take the next batch. Raises DamageError."""
        if self._now is not None:
            self._now.add(batch)

    def add_run(self, run: Run) -> int:
        """Take the commits of many batches together; return of how many."""
        return self._now.add_run(run) if isinstance(self._now, CoordinatorLog) else 0

    def lose(self, region: Damage | Trailing) -> None:
        """Take note of what is lost of a coordinator's partition."""
        if self._now is not None and isinstance(region, Damage):
            self._now.lose(region)

    def end(self) -> None:
        """Close the partition."""
        if isinstance(self._now, CoordinatorLog):
            _keep_longest(self._logs, self._now)
        elif isinstance(self._now, ShareStateLog):
            _keep_longest(self._shares, self._now)

    def merge(self, other: ConsumerGroups) -> None:
        """Take over what another collector gathered."""
        for log in other._logs.values():
            _keep_longest(self._logs, log)
        for share in other._shares.values():
            _keep_longest(self._shares, share)

    def partitions(self) -> set[tuple[str | bytes, int]]:
        """Return the partitions that groups have offsets in, by topic or topic id: the ends of their logs tell lag."""
        found: set[tuple[str | bytes, int]] = set()
        for group_id, held in self._groups():
            if self.wanted.takes(group_id):
                for where, _, _ in held.entries():
                    commit = read_commit(where.key, None)
                    found.add((commit.topic, commit.partition))
        for share in self._shares.values():
            found.update((key.topic_id, key.partition) for key in share.held)
        return found

    def answer(self, at: int) -> Iterator[AnswerLine]:
        """Yield the lines, group by group; then what is missing."""
        if self.wanted.top is not None:
            yield from self._writers(self.wanted.top)
        else:
            reader = CommitReader(self.ends, self.wanted.retention_ms, at)
            shares = self._share_partitions()
            for group_id, held in self._groups():
                if self.wanted.takes(group_id):
                    yield from self._of_group(group_id, held, reader)
                    yield from self._of_shares(group_id, shares.pop(group_id, ()), reader)
            for group_id, rest in sorted(shares.items()):  # their group is in a partition that is not there
                if self.wanted.takes(group_id):
                    yield from self._of_shares(group_id, rest, reader)
        yield from self._missing()

    def _groups(self) -> list[tuple[str, HeldGroup]]:
        """Return the groups of all partitions, those included that have pending commits alone, in order."""
        found = []
        for log in self._logs.values():
            pending: dict[bytes, list[tuple[bytes, Entry, int]]] = {}
            for producer, commits in log.pending.items():
                for (name, place), entry in commits.items():
                    pending.setdefault(name, []).append((place, entry, producer))
            for name in {**log.groups, **pending}:
                held = HeldGroup(name, log.partition, log.groups.get(name) or GroupLog(), pending.get(name, []))
                found.append((java_utf8(name), held))
        return sorted(found, key=lambda one: (one[0], one[1].partition))

    def _of_group(self, group_id: str, held: HeldGroup, reader: CommitReader) -> Iterator[AnswerLine]:
        group = read_group(group_id, held.partition, held.log, self._topic_name)
        if group is None and (held.log.simple or held.log.committed or held.pending):
            group = simple_group(group_id, held.partition)
        if group is not None:
            yield group.line
            pending = {place for place, _, _ in held.pending}
            lines = [
                reader.committed(group, where, entry, producer=producer, pending=where.place in pending)
                for where, entry, producer in held.entries()
            ]
            yield from sorted(
                (line for line in lines if self.wanted.takes_partition(line.topic, line.partition)),
                key=lambda line: (line.topic or "", line.partition, line.pending_producer_id or -1),
            )
        if held.log.history is not None:
            for line in history_lines(group_id, held.name, held.partition, held.log.history):
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
        for log in self._shares.values():
            for key, state in log.held.items():
                if state.start_offset >= 0:
                    found.setdefault(key.group_id, []).append((key, state))
        return {group_id: sorted(shares) for group_id, shares in found.items()}

    def _topic_name(self, topic_id: bytes) -> str:
        """Return the name of a topic, its id where no file tells the name."""
        return self.ends.topic_ids.get(topic_id) or topic_id_text(topic_id)

    def _writers(self, ranking: Ranking) -> Iterator[WriterLine]:
        found = [(group_id, held) for group_id, held in self._groups() if self.wanted.takes(group_id)]
        found.sort(key=lambda one: -(one[1].log.size if ranking == "bytes" else one[1].log.commits))
        for rank, (group_id, held) in enumerate(found, 1):
            log = held.log
            yield WriterLine(
                rank,
                group_id,
                held.partition,
                log.size,
                log.commits,
                log.tombstones,
                log.group_records,
                None if log.first_timestamp < 0 else log.first_timestamp,
                None if log.last_timestamp < 0 else log.last_timestamp,
            )

    def _missing(self) -> Iterator[AnswerLine]:
        for topic, number, log in self._all_logs():
            for lost in log.lost:
                yield MissingLine(topic, number, *lost)
            for reason, (offset, count) in log.unread.items():
                yield UnreadLine(topic, number, offset, count, reason)

    def _all_logs(self) -> Iterator[tuple[str, int, GroupLogs]]:
        for number, log in sorted(self._logs.items()):
            yield consumer_offsets.TOPIC, number, log
        for number, share in sorted(self._shares.items()):
            yield share_group_state.TOPIC, number, share


class HeldGroup(NamedTuple):
    """A group in one partition of ``__consumer_offsets``; ``pending`` are its commits in open transactions."""

    name: bytes
    partition: int
    log: GroupLog
    pending: list[tuple[bytes, Entry, int]]
    """Topic and partition, entry, producer id."""

    def entries(self) -> Iterator[tuple[CommitPlace, Entry, int | None]]:
        """Yield its offsets, each with the producer id of its open transaction, if any."""
        for place, entry in self.log.committed.items():
            yield CommitPlace(self.name, place, self.partition), entry, None
        for place, entry, producer in self.pending:
            yield CommitPlace(self.name, place, self.partition), entry, producer


def _keep_longest(logs: dict[int, L], log: L) -> None:
    if log.partition not in logs or logs[log.partition].end_offset < log.end_offset:
        logs[log.partition] = log
