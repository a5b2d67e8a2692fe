"""One partition of a coordinator's topic, read from its start to its end, and a collector of such partitions.

In ``__share_group_state`` a snapshot replaces the state of a share partition, an update changes it, a null value
removes it (KIP-932). Source: ``ShareCoordinatorShard``. 4.2 added the count of deliveries that are complete (KIP-1226).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, cast

from kdump.answers.collector import Collector, Needs
from kdump.answers.groups.lines import MissingLine, UnreadLine
from kdump.errors import DamageError
from kdump.internal_topics import share_group_state
from kdump.internal_topics.decode import decode
from kdump.segments.batch_runs import Run
from kdump.segments.regions import Damage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kdump.answers.collector import AnswerLine, Place
    from kdump.records.record_batch import Batches, BriefRecord, RecordBatch
    from kdump.segments.regions import Trailing


class Lost(NamedTuple):
    """A range of records that cannot be read; offsets as far as known."""

    from_offset: int | None
    until_offset: int | None
    reason: str


class TopicLog:
    """Takes the records of one partition in order, and notes what is lost and what no schema can read."""

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.lost: list[Lost] = []
        self.unread: dict[str, tuple[int, int]] = {}
        """Reason -> first offset and number of records."""
        self.end_offset = 0

    def take(self, records: Sequence[BriefRecord], producer: int, counts: Sequence[int]) -> None:
        """Take records of ``producer`` (-1 for none). ``counts`` says how many of them each of their batches holds."""
        raise NotImplementedError

    def end_transaction(self, records: Sequence[BriefRecord], producer: int) -> None:
        """Take the records of a control batch."""

    def add(self, batches: Batches) -> int:
        """Take the first batches, as many of a run as have well-formed records; return how many.

        Raises DamageError where the records of a single one cannot be read.
        """
        if isinstance(batches, Run):
            return self._add_run(batches)
        for batch in batches.batches():
            self._add(batch)
        return batches.batch_count

    def _add(self, batch: RecordBatch) -> None:
        self.end_offset = batch.last_offset + 1
        try:
            records = [(one.offset, one.timestamp, one.key, one.value, one.size) for one in batch.records()]
            producer = -1 if batch.producer_id is None else batch.producer_id
            if batch.is_control:
                self.end_transaction(records, producer)
            elif records:
                self.take(records, producer, (len(records),))
        except DamageError as damage:
            self.lost.append(Lost(batch.base_offset, batch.last_offset + 1, damage.reason))
            raise

    def _add_run(self, run: Run) -> int:
        if run.first.is_transactional:
            return 0
        records, taken = run.brief_records()
        if taken:
            self.end_offset = run.field("last_offset", taken - 1) + 1
        if records:
            self.take(records, -1, run.column("records_count", 0, taken))
        return taken

    def lose(self, region: Damage) -> None:
        """Take note of a damaged range."""
        self.lost.append(Lost(region.missing_from, region.missing_until, region.reason))

    def refuse(self, reason: str, offset: int) -> None:
        """Count a record that cannot be read; a newer release may know others."""
        first, count = self.unread.get(reason, (offset, 0))
        self.unread[reason] = first, count + 1


class TopicLogs(Collector):
    """A collector of partitions of coordinators' topics. Of several replicas of a partition the longest counts."""

    def __init__(self) -> None:
        self.logs: dict[tuple[str, int], TopicLog] = {}
        self._key = ("", 0)
        self._now: TopicLog | None = None

    def log_of(self, topic: str, partition: int) -> TopicLog | None:
        """Return a log to be filled, None for a topic that is not asked for."""
        raise NotImplementedError

    def begin(self, place: Place) -> Needs:
        """Turn to a partition."""
        self._key = place.key or ("", 0)
        self._now = self.log_of(*self._key)
        return Needs.FILES if self._now is None else Needs.RECORDS

    def add(self, batches: Batches) -> int | None:
        """Take the next batches. Raises DamageError."""
        return None if self._now is None else self._now.add(batches)

    def lose(self, region: Damage | Trailing) -> None:
        """Take note of what is lost of a coordinator's partition."""
        if self._now is not None and isinstance(region, Damage):
            self._now.lose(region)

    def end(self) -> None:
        """Close the partition."""
        if self._now is not None:
            self._keep_longest(self._key, self._now)
            self._now = None

    def merge(self, other: TopicLogs) -> None:
        """Take over what another collector gathered."""
        for key, log in other.logs.items():
            self._keep_longest(key, log)

    def _keep_longest(self, key: tuple[str, int], log: TopicLog) -> None:
        if key not in self.logs or self.logs[key].end_offset < log.end_offset:
            self.logs[key] = log

    def missing(self) -> Iterator[AnswerLine]:
        """Yield what is lost or cannot be read, partition by partition."""
        for (topic, number), log in sorted(self.logs.items(), key=lambda one: one[0]):
            for lost in log.lost:
                yield MissingLine(topic, number, *lost)
            for reason, (offset, count) in log.unread.items():
                yield UnreadLine(topic, number, offset, count, reason)


UNCHANGED: Final = -1
"""In an update: as the snapshot has it. In a snapshot: not begun, or not known."""


class SharePartition(NamedTuple):
    """The state of a share partition. The start offset is -1 where it has not begun, the count -1 where unknown."""

    start_offset: int
    leader_epoch: int
    delivery_complete_count: int
    partition: int
    """Of ``__share_group_state``."""
    offset: int
    """Of the last record."""


class ShareKey(NamedTuple):
    """A share partition."""

    group_id: str
    topic_id: bytes
    partition: int


class ShareStateLog(TopicLog):
    """Replays one partition of ``__share_group_state``."""

    def __init__(self, partition: int) -> None:
        super().__init__(partition)
        self.held: dict[ShareKey, SharePartition] = {}

    def take(self, records: Sequence[BriefRecord], producer: int, counts: Sequence[int]) -> None:  # noqa: ARG002  not needed
        """Take the next records."""
        for offset, _, key, value, _ in records:
            self._take(offset, key, value)

    def _take(self, offset: int, raw_key: bytes | None, value: bytes | None) -> None:
        decoded = decode(share_group_state.TOPIC, raw_key, value)
        if decoded is None or decoded.key is None or decoded.key.values is None:
            reason = "the record has no key" if decoded is None or decoded.key is None else decoded.key.reason
            self.refuse(reason, offset)
            return
        names = decoded.key.values
        key = ShareKey(str(names["groupId"]), cast("bytes", names["topicId"]), cast("int", names["partition"]))
        if decoded.value is None:
            self.held.pop(key, None)
            return
        values = cast("dict[str, int] | None", decoded.value.values)
        if values is None:
            self.refuse(decoded.value.reason, offset)
            return
        start, epoch, count = values["startOffset"], values["leaderEpoch"], values.get("deliveryCompleteCount", -1)
        before = self.held.get(key)
        if decoded.key.name == "ShareUpdateKey" and before is not None:
            start = before.start_offset if start == UNCHANGED else start
            epoch = before.leader_epoch if epoch == UNCHANGED else epoch
            count = before.delivery_complete_count if count == UNCHANGED else count
        self.held[key] = SharePartition(start, epoch, count, self.partition, offset)
