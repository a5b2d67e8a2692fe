"""The question ``groups``: consumer groups of every type, their members, offsets and lag.

:class:`ConsumerGroups` collects groups and offsets from the coordinators' topics, which :mod:`.coordinator_log`
replays. For the lag a second pass collects log ends (:class:`LogEnds`).
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from kdump.answers.collector import Collector, Needs, Reading, keep_best
from kdump.answers.coordinator import topic_partitions
from kdump.answers.groups.coordinator_log import CoordinatorLog, ShareStateLog, TopicLogs
from kdump.answers.groups.group_records import DEFAULT_RETENTION_MS, expires_at, read_group, simple_group
from kdump.answers.groups.lines import (
    CommitLine,
    CommittedLine,
    GroupLine,
    MissingLine,
    RecordPlace,
    UnreadLine,
    WriterLine,
)
from kdump.answers.groups.writers import GroupWriters
from kdump.answers.log_dir_pass import size_after
from kdump.answers.metadata.image import partition_count, topic_names
from kdump.answers.producer_state import ProducerReplay
from kdump.answers.question import LineTable, LogQuestion, option
from kdump.errors import UsageError, first_of
from kdump.formats.partition_metadata import ZERO_ID, id_text
from kdump.internal_topics import cluster_metadata, consumer_offsets, share_group_state
from kdump.internal_topics.decode import decode
from kdump.log_dirs.file_names import Name
from kdump.log_dirs.finder import Wanted
from kdump.primitives.encodings import java_utf8
from kdump.primitives.terminal import is_selected
from kdump.segments.log_end import end_of_log
from kdump.segments.regions import Damage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from kdump.answers.collector import AnswerLine, Place
    from kdump.answers.groups.coordinator_log import HeldGroup, HeldOffset, History, ShareKey, SharePartition, TopicLog
    from kdump.answers.groups.group_records import KnownGroup
    from kdump.answers.groups.writers import Ranking
    from kdump.answers.question import Asking, Feed
    from kdump.log_dirs.partition import Partition
    from kdump.records.record_batch import Batches
    from kdump.segments.regions import Trailing


NEAR: Final = 4 << 20
_MANY: Final = 5


class StableEnd(NamedTuple):
    """The end of a partition's log, and the topic id of its folder. ``rank`` has the leader epoch and the end offset.

    ``offset`` is the log end offset, and ``stable`` the last stable offset (None if not read, or if bytes are damaged).
    """

    offset: int
    stable: int | None
    topic_id: bytes | None
    rank: tuple[int, int]


class LogEnds(Collector):
    """Collects log end offsets for the lag of groups. It yields no lines.

    It keeps the replica with the greatest rank. It reads the last batches to find the log end. The last stable offset
    comes from the log after the newest producer snapshot, if this is at most NEAR bytes or ``stable`` is true.
    """

    def __init__(
        self,
        wanted: Collection[tuple[str | bytes, int]] | None = None,
        topic_ids: Mapping[bytes, str] | None = None,
        *,
        stable: bool = False,
    ) -> None:
        """``wanted``: the partitions whose ends are collected, by topic or topic id; None means all.

        ``topic_ids``: topic id -> name, from other files. The ids of all partition folders are added.
        """
        self._wanted = wanted
        self.stable = stable
        self.found: dict[tuple[str, int], StableEnd] = {}
        self.topic_ids = dict(topic_ids or {})
        self.passed_over: list[int] = []
        """Bytes of the log after the producer snapshot, for each replica in which this part was too large to read."""
        self._key = ("", 0)
        self._start = 0
        self._end: StableEnd | None = None
        self._replay: ProducerReplay | None = None

    def begin(self, place: Place) -> Needs | Reading:
        self._end = self._replay = None
        if place.key is None:
            return Needs.FILES
        self._key = place.key
        topic_id = place.partition.topic_id(place.report.damage)
        if topic_id is not None:
            self.topic_ids[topic_id] = self._key[0]
        if self._wanted is not None and not any(
            (name, self._key[1]) in self._wanted for name in (self._key[0], topic_id)
        ):
            return Needs.FILES
        end = end_of_log(place.partition)
        rank = end.with_epochs(place.leader_epochs()).rank
        self._start = place.earliest(place.first_offset)
        self._end = StableEnd(max(end.offset, self._start), None, topic_id, rank)
        replay = ProducerReplay(place, before=end.offset)
        size = size_after(place.partition, replay.since)
        if self.stable or size <= NEAR:
            self._replay = replay
            return Reading(Needs.HEADERS, min(replay.since, end.offset - 1))
        self.passed_over.append(size)
        return Reading(Needs.HEADERS, end.offset - 1)  # unreadable bytes near the end are reported

    def add(self, batches: Batches) -> None:
        if self._replay is not None:
            self._replay.add(batches)

    def lose(self, region: Damage | Trailing) -> None:
        """At damage drop the last stable offset: a transaction may have begun or ended in the damaged range."""
        if isinstance(region, Damage):
            self._replay = None

    def end(self) -> None:
        if self._end is not None:
            if self._replay is not None:
                stable = self._replay.first_open_offset
                self._end = self._end._replace(stable=self._end.offset if stable is None else max(stable, self._start))
            keep_best(self.found, {self._key: self._end}, attrgetter("rank"))
        self._end = self._replay = None

    def merge(self, other: LogEnds) -> None:
        keep_best(self.found, other.found, attrgetter("rank"))
        self.topic_ids.update(other.topic_ids)
        self.passed_over += other.passed_over

    def answer(self, at: int) -> Iterable[AnswerLine]:  # noqa: ARG002  every collector has it
        return ()


class CommitRecord(NamedTuple):
    """A decoded commit. ``values`` are None without a value, and if it is unreadable: see ``problem``."""

    topic: str
    partition: int
    values: Mapping[str, Any] | None
    problem: str | None


def read_commit(key: bytes, value: bytes | None) -> CommitRecord:
    decoded = decode(consumer_offsets.TOPIC, key, value)
    names: Mapping[str, Any] = {}
    if decoded is not None and decoded.key is not None and decoded.key.values is not None:
        names = decoded.key.values
    value_record = None if decoded is None else decoded.value
    return CommitRecord(
        names["topic"],
        names["partition"],
        None if value_record is None else value_record.values,
        None if value_record is None else value_record.reason or None,
    )


class CommitReader:
    def __init__(self, ends: LogEnds, retention_ms: int, at: int) -> None:
        self._ends = ends
        self._retention_ms = retention_ms
        self._at = at

    def committed(self, group: KnownGroup, coordinator: int, held: HeldOffset, *, pending: bool) -> CommittedLine:
        """Return the line of an offset. ``coordinator``: the partition of its record. ``pending``: it cannot expire."""
        value, offset = held.entry
        commit = read_commit(held.key, value)
        values: Mapping[str, Any] = commit.values or {}
        committed, epoch = values.get("offset"), values.get("leaderEpoch", -1)
        topic_id = values.get("topicId", ZERO_ID)
        end = self._ends.found.get((commit.topic, commit.partition))
        recreated = topic_id != ZERO_ID and end is not None and end.topic_id not in {None, topic_id}
        expires = None
        if not pending and commit.values is not None:
            explicit = values.get("expireTimestamp", -1)
            expires = expires_at(
                group, commit.topic, values["commitTimestamp"], None if explicit == -1 else explicit, self._retention_ms
            )
        return CommittedLine(
            group.line.group_id,
            commit.topic,
            commit.partition,
            committed,
            None if epoch == -1 else epoch,
            values.get("metadata"),
            values.get("commitTimestamp"),
            expires,
            *_lags(None if recreated else end, committed, 0),
            pending_producer_id=held.producer,
            expired=expires is not None and expires <= self._at,
            topic_id=None if topic_id == ZERO_ID else id_text(topic_id),
            recreated=recreated,
            delivery_complete_count=None,
            at=RecordPlace(coordinator, offset),
            problem=commit.problem,
            raw=base64.b64encode(value).decode() if commit.problem else None,
        )

    def shared(self, group_id: str, key: ShareKey, held: SharePartition) -> CommittedLine:
        topic = self._ends.topic_ids.get(key.topic_id)
        done = None if held.delivery_complete_count < 0 else held.delivery_complete_count
        end = None if topic is None else self._ends.found.get((topic, key.partition))
        offset, lag, stable, lag_to_stable = _lags(end, held.start_offset, done)
        return CommittedLine(
            group_id,
            topic,
            key.partition,
            held.start_offset,
            None if held.leader_epoch < 0 else held.leader_epoch,
            None,
            None,
            None,
            offset,
            lag,
            stable,
            lag_to_stable,
            pending_producer_id=None,
            expired=False,
            topic_id=id_text(key.topic_id),
            recreated=False,
            delivery_complete_count=done,
            at=RecordPlace(held.partition, held.offset),
        )


def history_lines(group_id: str, coordinator: int, history: History) -> Iterator[CommitLine]:
    names: dict[bytes, CommitRecord] = {}
    for commit in history.commits():
        known = names.get(commit.key)
        if known is None:
            known = names[commit.key] = read_commit(commit.key, None)
        yield CommitLine(
            group_id,
            known.topic,
            known.partition,
            RecordPlace(coordinator, commit.offset),
            None if commit.timestamp < 0 else commit.timestamp,
            commit.committed,
            commit.tombstone,
            commit.rewind,
            None if commit.producer < 0 else commit.producer,
            commit.outcome,
        )


def _lags(
    end: StableEnd | None, offset: int | None, done: int | None
) -> tuple[int | None, int | None, int | None, int | None]:
    """Return log end offset, lag, last stable offset, lag to that offset. The lags leave out ``done`` records."""
    if end is None:
        return None, None, None, None
    if offset is None or done is None:
        return end.offset, None, end.stable, None
    return (
        end.offset,
        end.offset - offset - done,
        end.stable,
        None if end.stable is None else end.stable - offset - done,
    )


TOPICS: Final = (consumer_offsets.TOPIC, share_group_state.TOPIC)
Share: TypeAlias = "tuple[ShareKey, SharePartition]"


@dataclass(frozen=True)
class GroupsWanted:
    groups: tuple[str, ...] = ()
    """Ids or globs; empty means all."""
    partitions: Wanted = field(default_factory=Wanted)
    history: bool = False
    retention_ms: int = DEFAULT_RETENTION_MS

    def takes(self, group_id: str) -> bool:
        return not self.groups or group_id in self.groups or any(is_selected(group_id, one) for one in self.groups)

    def takes_partition(self, topic: str | None, partition: int | None) -> bool:
        return self.partitions.takes(Name(topic, partition))


class ConsumerGroups(TopicLogs):
    """Collects consumer groups. For the lag, a second pass must feed ``ends``: a LogEnds for ``partitions()``."""

    def __init__(self, wanted: GroupsWanted) -> None:
        super().__init__()
        self.wanted = wanted
        self.ends = LogEnds()

    def log_of(self, topic: str, partition: int) -> TopicLog | None:
        if topic == consumer_offsets.TOPIC:
            return CoordinatorLog(partition, self._keeps_history if self.wanted.history else None)
        return ShareStateLog(partition) if topic == share_group_state.TOPIC else None

    def _keeps_history(self, group: bytes) -> bool:
        return self.wanted.takes(java_utf8(group))

    def partitions(self) -> set[tuple[str | bytes, int]]:
        """Return the partitions of the selected groups, by topic or topic id. The lag needs their log end offsets."""
        found: set[tuple[str | bytes, int]] = set()
        for group_id, group in self._groups():
            if self.wanted.takes(group_id):
                commits = (read_commit(offset.key, None) for offset in group.offsets)
                found.update(
                    (commit.topic, commit.partition)
                    for commit in commits
                    if self.wanted.takes_partition(commit.topic, commit.partition)
                )
        for log in self.logs.values():
            if isinstance(log, ShareStateLog):
                found.update((key.topic_id, key.partition) for key in log.held if self.wanted.takes(key.group_id))
        return found

    def log_ends(self) -> LogEnds:
        """Return an empty collector of the log ends of :meth:`partitions`. It has the options of ``ends``."""
        ends = LogEnds(self.partitions(), self.ends.topic_ids, stable=self.ends.stable)
        ends.current_ids = self.current_ids
        return ends

    def answer(self, at: int) -> Iterator[AnswerLine]:
        reader = CommitReader(self.ends, self.wanted.retention_ms, at)
        shares = self._share_partitions()
        for group_id, group in self._groups():
            if self.wanted.takes(group_id):
                yield from self._of_group(group_id, group, reader)
                yield from self._of_shares(group_id, shares.pop(group_id, ()), reader)
        for group_id, rest in sorted(shares.items()):  # the records of these groups are not in the paths
            if self.wanted.takes(group_id):
                yield from self._of_shares(group_id, rest, reader)
        yield from self.missing()

    def _groups(self) -> list[tuple[str, HeldGroup]]:
        logs = (log for log in self.logs.values() if isinstance(log, CoordinatorLog))
        found = [(java_utf8(group.name), group) for log in logs for group in log.held()]
        return sorted(found, key=lambda one: (one[0], one[1].partition))

    def _of_group(self, group_id: str, held: HeldGroup, reader: CommitReader) -> Iterator[AnswerLine]:
        names = self.ends.topic_ids
        group = read_group(group_id, held.partition, held.log, lambda number: names.get(number) or id_text(number))
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
        found: dict[str, list[Share]] = {}
        for log in self.logs.values():
            if isinstance(log, ShareStateLog):
                for key, state in log.held.items():
                    if state.start_offset >= 0:
                        found.setdefault(key.group_id, []).append((key, state))
        return {group_id: sorted(shares) for group_id, shares in found.items()}


HELP: Final = """List consumer groups, their members, offsets and lag.

\b
Examples:
  kdump groups /var/kafka
  kdump groups /var/kafka --group 'billing-*' -o jsonl | jq 'select(.lag > 0)'
  kdump groups /var/kafka --group billing --history
  kdump groups /disk1 /disk2 --top bytes
  kdump groups backup.tar.gz -o reset-csv > offsets.csv

The output has the facts that kafka-consumer-groups.sh, kafka-share-groups.sh and kafka-streams-groups.sh describe.
Groups are classic, simple (offsets without members), consumer (KIP-848), share (KIP-932) and streams (KIP-1071). Each
group is in one partition of __consumer_offsets: give the log dirs of all brokers that lead these partitions.

\b
lag                log end offset - offset, if the partition's log is in the
                   paths; below 0 if the offset is beyond the log end
lastStableOffset   where a read_committed consumer stops. kdump finds it in
                   the log after the newest producer snapshot. Null if this
                   part is damaged, or larger than 4 MiB (--stable reads it)
lagToStable        lastStableOffset - offset
offset             for a share group: the start of the share partition.
                   Completed records after it (deliveryCompleteCount) do not
                   count as lag
pendingProducerId  a commit in an open transaction, on a separate line
recreated          the topic was deleted and created again after the commit
                   (shown by its topic id, from Kafka 4.1 on); lag is null
expireTimestampMs  when the offset expires if the group stays as it is;
                   expired: whether --at has reached this time

Four facts are in no file: a rebalance of a classic group in progress (PreparingRebalance, CompletingRebalance), members
before their first assignment, the broker's offsets retention, and its default assignors. kdump prints Kafka's default
as the protocol (uniform, simple).

-o reset-csv prints group,topic,partition,offset, with expired offsets. It is the input of Kafka's tool (2.4 or later):

\b
  kafka-consumer-groups.sh --bootstrap-server H:P --reset-offsets
      --group G1 --group G2 --from-file offsets.csv --execute

Copy the records to the new cluster first: kafka-consumer-groups.sh lowers offsets beyond the log end to the log end.
Pending, recreated and unreadable offsets, and share and streams groups, are left out; standard error lists them.

Exit status: 0 answered; 1 something cannot be read; 2 wrong usage; 3 damage was found (the answer is from the
valid batches; "missing" lines list the lost records). Undecodable records ("unread" lines) do not count as damage.
"""


@dataclass(frozen=True)
class GroupsOptions:
    group: tuple[str, ...] = option(
        (), "names", "--group", "Only this group, or the groups of a glob such as 'app-*'.", metavar="ID"
    )
    history: bool = option(
        False,
        "switch",
        "--history",
        "Also list every commit of the groups in order, and mark commits that lower an offset. A commit takes 48 "
        "bytes of memory.",
    )
    top: Ranking | None = option(
        None,
        "choice",
        "--top",
        "Rank the groups by their bytes or commits in __consumer_offsets, instead of printing offsets. With --topic "
        "or --partition only commits for these count.",
        choices=("bytes", "commits"),
    )
    stable: bool = option(
        False, "switch", "--stable", "Find the last stable offset of every partition, even if that reads whole logs."
    )
    retention_ms: int = option(
        DEFAULT_RETENTION_MS,
        "duration",
        "--offsets-retention",
        "The broker's offsets.retention.minutes, which is in no file. Kafka's default before 2.0 was 24h.",
        metavar="TIME",
        shown="7d",
    )


def _collector(asking: Asking, options: GroupsOptions) -> ConsumerGroups | GroupWriters:
    """Return a new collector. Raises UsageError for options that cannot be combined."""
    if options.top is not None and (options.history or options.stable):
        raise UsageError(RANKS_ALONE)
    wanted = GroupsWanted(options.group, asking.asked, history=options.history, retention_ms=options.retention_ms)
    if options.top is not None:
        return GroupWriters(options.top, wanted.takes, wanted.takes_partition if asking.asked.is_choosy else None)
    collector = ConsumerGroups(wanted)
    collector.ends = LogEnds(topic_ids=topic_names(asking.image), stable=options.stable)
    return collector


def feed_groups(collector: Collector, found: Sequence[Partition], feed: Feed) -> None:
    """Read the coordinators' topics, then for :class:`ConsumerGroups` the log ends of partitions with offsets."""
    feed(collector, [one for one in found if one.topic in TOPICS])
    if isinstance(collector, ConsumerGroups):
        collector.ends = collector.log_ends()
        feed(collector.ends, found)


def unknown_groups(found: Iterable[Partition], count: int | None) -> Iterator[str]:
    """Yield a note if ``found`` lacks some of the ``count`` (None: unknown) partitions of ``__consumer_offsets``."""
    topics = {one.topic for one in found}
    here = {one.partition for one in found if one.topic == consumer_offsets.TOPIC and one.partition is not None}
    partitions = topic_partitions(here, count)
    if topics and not here:
        yield (
            f"these paths have no partition of {consumer_offsets.TOPIC}, so no group is known: name the log dirs of "
            "this topic too"
        )
    elif here and partitions.missing:
        named = first_of([*map(str, islice(partitions.absent(), _MANY))], _MANY, partitions.missing)
        least = "" if count is not None else "at least "
        yield (
            f"{len(here)} of {least}{partitions.whole} partitions of {consumer_offsets.TOPIC} are in these paths "
            f"(absent: {named}). Groups of the absent partitions are unknown: name the log dirs of these partitions too"
        )


def _notes(asking: Asking, _: Collector) -> Iterator[str]:
    return unknown_groups(asking.found, partition_count(asking.image, consumer_offsets.TOPIC))


RANKS_ALONE: Final = "--top ranks groups: it cannot be combined with --history, --stable or -o reset-csv"
QUESTION: Final = LogQuestion(
    "groups",
    HELP,
    GroupsOptions,
    (GroupLine, CommittedLine, CommitLine, MissingLine, UnreadLine, WriterLine),
    _collector,
    notes=_notes,
    feed=feed_groups,
    tables=(
        LineTable("groups", GroupLine),
        LineTable("group_offsets", CommittedLine),
        LineTable("commits", CommitLine, "--history", {"history": True}),
    ),
    also=(*TOPICS, cluster_metadata.TOPIC),
    takes_names=False,
    unit="everything",
)
