"""The lines of ``kdump groups``: groups and members, offsets, commits, writers, and records that could not be used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class TaskLine:
    """The tasks of a streams member, each as ``subtopology:[partitions]``."""

    active: tuple[str, ...]
    standby: tuple[str, ...]
    warmup: tuple[str, ...]


@dataclass(frozen=True)
class GroupMemberLine:
    """A member according to its last record. Classic groups have no epoch and no target, streams groups no target."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    member_epoch: int | None
    topic_partitions: tuple[str, ...] | None
    """The assigned partitions; None in streams groups, and if the bytes are not a consumer's assignment."""
    target_topic_partitions: tuple[str, ...] | None
    tasks: TaskLine | None
    subscribed_topics: tuple[str, ...] | None


@dataclass(frozen=True)
class GroupLine:
    """A group. ``protocol`` is the name of the assignor, or the protocol of a classic group without consumers."""

    kind: ClassVar[str] = "group"
    group_id: str
    type: str
    """Classic, Consumer, Share or Streams."""
    state: str
    is_simple: bool
    protocol_type: str | None
    protocol: str | None
    group_epoch: int | None
    assignment_epoch: int | None
    coordinator_partition: int | None
    members: tuple[GroupMemberLine, ...]
    problem: str | None = None
    """The reason why the first unreadable record of the group is unreadable."""


@dataclass(frozen=True)
class RecordPlace:
    """The position of a record: the partition of the coordinator's topic, and the offset."""

    partition: int
    offset: int


@dataclass(frozen=True)
class CommittedLine:
    """The committed offset of a group in a partition, or a pending offset of an open transaction. Times are in ms.

    For a share group this is the start offset of the share partition.
    """

    kind: ClassVar[str] = "offset"
    group_id: str
    topic: str | None
    partition: int
    offset: int | None
    leader_epoch: int | None
    metadata: str | None
    commit_timestamp_ms: int | None
    expire_timestamp_ms: int | None
    """The time at which the offset expires; None if the group or a pending commit prevents it, or if it is unknown."""
    log_end_offset: int | None
    lag: int | None
    last_stable_offset: int | None
    """The offset at which a read_committed consumer stops."""
    lag_to_stable: int | None
    pending_producer_id: int | None
    expired: bool
    topic_id: str | None
    recreated: bool
    """Whether topic ids show that the topic was created again after the commit. There is no lag then."""
    delivery_complete_count: int | None
    """The number of records of a share partition, from its start offset on, that consumers have completed."""
    at: RecordPlace
    """The place of the offset's record. For a share group this is in ``__share_group_state``."""
    problem: str | None = None
    """The reason why the record is unreadable; ``raw`` has its value in base64."""
    raw: str | None = None


@dataclass(frozen=True)
class CommitLine:
    """A commit, or its tombstone, in log order."""

    kind: ClassVar[str] = "commit"
    group_id: str
    topic: str | None
    partition: int | None
    at: RecordPlace
    timestamp_ms: int | None
    offset: int | None
    tombstone: bool
    rewind: bool
    """Whether the offset is below the last committed one of the partition, and no tombstone is between."""
    producer_id: int | None
    """The producer id of the transaction with the commit, or None."""
    outcome: str
    """``committed``. In a transaction also ``aborted``, or ``pending`` while the transaction is open."""


@dataclass(frozen=True)
class WriterLine:
    """Sums of a group's records in its partition. Bytes are uncompressed, with a share of batch headers."""

    kind: ClassVar[str] = "writer"
    rank: int
    group_id: str
    coordinator_partition: int
    bytes: int
    commits: int
    tombstones: int
    group_records: int
    first_timestamp_ms: int | None
    last_timestamp_ms: int | None


@dataclass(frozen=True)
class MissingLine:
    """Lost records of a coordinator's partition. The true state of its groups may be newer than the answer."""

    kind: ClassVar[str] = "missing"
    topic: str
    partition: int
    from_offset: int | None
    until_offset: int | None
    """The first offset after the lost records, if known."""
    reason: str


@dataclass(frozen=True)
class UnreadLine:
    """Valid records of a partition that cannot be decoded. There is one line for each ``reason``."""

    kind: ClassVar[str] = "unread"
    topic: str
    partition: int
    first_offset: int
    records: int
    reason: str
