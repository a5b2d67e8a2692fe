"""Computes the type, state and members of a group from its records, and the time at which its offsets expire.

The state is that of a broker which just loaded the records. Records show no heartbeats, and no rebalance of a classic
group. Source: ``ClassicGroup``, ``ConsumerGroup``, ``ShareGroup``, ``StreamsGroup`` in the packages ``classic``,
``modern.consumer``, ``modern.share``, ``streams`` of ``org.apache.kafka.coordinator.group``.

An offset expires at the expireTimestamp of its record (value version 1, before 2.1), else after the retention. The
retention begins when a classic group with a protocol type became empty, else at the commit. An offset does not expire
if the group subscribes to the topic, or if a commit in an open transaction is pending for the partition. Offsets do not
expire in share groups, in classic groups with members that are not consumers, and in groups with an unreadable record
or unknown subscriptions. No log dir has offsets.retention.minutes. Source: KIP-211, ``OffsetExpirationConditionImpl``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kdump.answers.groups.lines import GroupLine, GroupMemberLine, TaskLine
from kdump.errors import DamageError
from kdump.internal_topics import consumer_offsets
from kdump.internal_topics.decode import decode
from kdump.internal_topics.interpreter import Reader, read_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kdump.answers.groups.coordinator_log import GroupLog

    TopicNames = Callable[[bytes], str]


CONSUMER: Final = "consumer"
STABLE: Final = {"Consumer": 0, "Streams": 1}
"""Group type -> the code of STABLE in ``MemberState``. A stable member has all its assigned partitions."""
DEFAULT_ASSIGNORS: Final = {"Consumer": "uniform", "Share": "simple"}
"""Group type -> the assignor that Kafka uses if no member names one and the broker has no other default."""


class KnownGroup(NamedTuple):
    """A group, and the facts that determine when its offsets expire."""

    line: GroupLine
    empty_since: int | None = None
    """The time at which a classic group lost its last member, in ms."""
    subscribed: frozenset[str] | None = None
    """The topics to which its members have subscribed, or None if unknown."""


def simple_group(group_id: str, partition: int | None) -> KnownGroup:
    """Return a group that has offsets, but no members."""
    return KnownGroup(GroupLine(group_id, "Classic", "Empty", True, None, None, None, None, partition, ()))


def read_group(group_id: str, partition: int, log: GroupLog, topic_names: TopicNames) -> KnownGroup | None:
    """Return the group that the records in ``log`` describe, or None if there is none: never created, or deleted."""
    if log.kind is None:
        return None
    records = GroupRecords(log)
    if log.kind != "Classic":
        return _modern(log.kind, group_id, partition, records, topic_names)
    made = records.one("GroupMetadata")
    if made is None:
        line = GroupLine(group_id, log.kind, "Unknown", False, None, None, None, None, partition, (), records.problem)
        return KnownGroup(line)
    return _classic(group_id, partition, made)


class GroupRecords:
    """The decoded records of a group. ``problem`` is the error of the first unreadable record."""

    def __init__(self, log: GroupLog) -> None:
        self.problem: str | None = None
        self._values: dict[str, dict[str, Mapping[str, Any]]] = {}
        for key, (value, offset) in log.records.items():
            decoded = decode(consumer_offsets.TOPIC, key, value)
            if decoded is None or decoded.key is None or decoded.value is None:
                continue
            if decoded.value.values is None or decoded.value.reason:
                self.problem = self.problem or f"offset {offset}: {decoded.value.reason}"
            elif decoded.key.values is not None:
                name = decoded.key.name.removesuffix("Key")
                part = str(decoded.key.values.get("memberId", decoded.key.values.get("regularExpression", "")))
                self._values.setdefault(name, {})[part] = decoded.value.values

    def one(self, name: str) -> Mapping[str, Any] | None:
        """Return the value of the record ``name`` of the group, or None. A group has at most one such record."""
        return self._values.get(name, {}).get("")

    def of_members(self, name: str) -> Mapping[str, Mapping[str, Any]]:
        """Return member id (or regular expression) -> value, of the records of the type ``name``."""
        return self._values.get(name, {})


def _classic(group_id: str, partition: int, made: Mapping[str, Any]) -> KnownGroup:
    protocol_type = made["protocolType"]
    members = tuple(_classic_member(member, protocol_type) for member in made["members"])
    line = GroupLine(
        group_id,
        "Classic",
        "Stable" if members else "Empty",
        is_simple=not members and not protocol_type,
        protocol_type=protocol_type,
        protocol=made["protocol"],
        group_epoch=None,
        assignment_epoch=None,
        coordinator_partition=partition,
        members=members,
    )
    since = made.get("currentStateTimestamp", -1)
    topics = [member.subscribed_topics for member in members]
    known = protocol_type == CONSUMER and None not in topics
    return KnownGroup(
        line,
        since if not members and since >= 0 else None,
        frozenset(topic for some in topics for topic in some or ()) if known else None,
    )


def _classic_member(member: Mapping[str, Any], protocol_type: str) -> GroupMemberLine:
    assigned = subscribed = None
    if protocol_type == CONSUMER:
        assignment = _embedded("ConsumerProtocolAssignment", member["assignment"])
        subscription = _embedded("ConsumerProtocolSubscription", member["subscription"])
        if assignment is not None:
            assigned = _sorted_names(
                (topic["topic"], number) for topic in assignment["assignedPartitions"] for number in topic["partitions"]
            )
        if subscription is not None:
            subscribed = tuple(sorted(subscription["topics"]))
    return GroupMemberLine(
        member["memberId"],
        member.get("groupInstanceId"),
        member["clientId"],
        member["clientHost"],
        None,
        assigned,
        None,
        None,
        subscribed,
    )


def _embedded(name: str, data: bytes) -> Mapping[str, Any] | None:
    """Return a consumer's assignment or subscription, decoded; None for other bytes. Empty bytes assign nothing."""
    if not data and name == "ConsumerProtocolAssignment":
        return {"assignedPartitions": ()}
    reader = Reader(data)
    try:
        return read_fields(consumer_offsets.MEMBER_MESSAGES[name].struct(reader.int16()), reader)
    except DamageError:  # other clients have their own formats
        return None


def _modern(kind: str, group_id: str, partition: int, records: GroupRecords, topic_names: TopicNames) -> KnownGroup:
    made = records.one(f"{kind}GroupMetadata")
    epoch = 0 if made is None else made["epoch"]  # a share group may have offsets before it has members
    target = records.one(f"{kind}GroupTargetAssignmentMetadata")
    assignment_epoch = 0 if target is None else target["assignmentEpoch"]
    described = records.of_members(f"{kind}GroupMemberMetadata")
    current = records.of_members(f"{kind}GroupCurrentMemberAssignment")
    targets = records.of_members(f"{kind}GroupTargetAssignmentMember")
    streams = kind == "Streams"
    topology = records.one("StreamsGroupTopology")
    members = tuple(
        _modern_member(kind, member_id, about, current.get(member_id), targets.get(member_id), names=topic_names)
        for member_id, about in sorted(described.items())
    )
    if not members:
        state = "Empty"
    elif kind == "Share":
        state = "Stable"
    elif streams and topology is None:
        state = "NotReady"
    elif epoch > assignment_epoch:
        state = "Assigning"
    elif all(_is_reconciled(kind, current.get(member_id), assignment_epoch) for member_id in described):
        state = "Stable"
    else:
        state = "Reconciling"
    line = GroupLine(
        group_id,
        kind,
        state,
        is_simple=False,
        protocol_type=kind.lower(),
        protocol=_assignor(described.values()) or DEFAULT_ASSIGNORS.get(kind),
        group_epoch=epoch,
        assignment_epoch=assignment_epoch,
        coordinator_partition=partition,
        members=members,
        problem=records.problem,
    )
    return KnownGroup(line, None, _source_topics(topology) if streams else _subscriptions(described, records))


def _is_reconciled(kind: str, assignment: Mapping[str, Any] | None, epoch: int) -> bool:
    if assignment is None or assignment["memberEpoch"] != epoch:
        return False
    if "state" in assignment:
        return bool(assignment["state"] == STABLE[kind])
    return not (assignment["partitionsPendingRevocation"] or assignment["partitionsPendingAssignment"])  # Kafka 3.7


def _assignor(members: Iterable[Mapping[str, Any]]) -> str | None:
    requested = [member["serverAssignor"] for member in members if member.get("serverAssignor")]
    return max(requested, key=requested.count, default=None)


def _modern_member(
    kind: str,
    member_id: str,
    about: Mapping[str, Any],
    assignment: Mapping[str, Any] | None,
    target: Mapping[str, Any] | None,
    *,
    names: TopicNames,
) -> GroupMemberLine:
    streams = kind == "Streams"
    return GroupMemberLine(
        member_id,
        about.get("instanceId"),
        about["clientId"],
        about["clientHost"],
        None if assignment is None else assignment["memberEpoch"],
        None if streams else _partitions(assignment, "assignedPartitions", names),
        None if streams else _partitions(target, "topicPartitions", names),
        _tasks(assignment) if streams else None,
        None if streams else tuple(sorted(about["subscribedTopicNames"])),
    )


def _partitions(record: Mapping[str, Any] | None, name: str, topic_names: TopicNames) -> tuple[str, ...]:
    topics = () if record is None else record[name]
    return _sorted_names((topic_names(topic["topicId"]), number) for topic in topics for number in topic["partitions"])


def _sorted_names(partitions: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    return tuple(f"{topic}-{number}" for topic, number in sorted(partitions))


def _tasks(held: Mapping[str, Any] | None) -> TaskLine:
    def of(name: str) -> tuple[str, ...]:
        tasks = () if held is None else held[name]
        return tuple(sorted(f"{task['subtopologyId']}:{sorted(task['partitions'])}" for task in tasks))

    return TaskLine(of("activeTasks"), of("standbyTasks"), of("warmupTasks"))


def _subscriptions(members: Mapping[str, Mapping[str, Any]], records: GroupRecords) -> frozenset[str]:
    topics = {topic for member in members.values() for topic in member["subscribedTopicNames"]}
    for found in records.of_members("ConsumerGroupRegularExpression").values():
        topics.update(found["topics"])
    return frozenset(topics)


def _source_topics(topology: Mapping[str, Any] | None) -> frozenset[str] | None:
    if topology is None:
        return None
    return frozenset(
        topic
        for part in topology["subtopologies"]
        for topic in (*part["sourceTopics"], *(source["name"] for source in part["repartitionSourceTopics"]))
    )


DEFAULT_RETENTION_MS: Final = 7 * 24 * 3_600_000
"""Kafka's default since 2.0 (KIP-186)."""


def expires_at(
    group: KnownGroup, topic: str, commit_timestamp: int, expire_timestamp: int | None, retention_ms: int
) -> int | None:
    """Return the time in ms at which an offset expires; None: never, or unknown. Callers check pending commits."""
    line = group.line
    if line.type == "Share" or line.problem is not None:
        return None
    if line.type == "Classic" and line.protocol_type and line.state != "Empty":
        if line.protocol_type != CONSUMER or group.subscribed is None:
            return None
    elif line.type != "Classic" and group.subscribed is None:
        return None
    if group.subscribed is not None and topic in group.subscribed:
        return None
    if expire_timestamp is not None:
        return expire_timestamp
    begins = group.empty_since if line.protocol_type and group.empty_since is not None else commit_timestamp
    return begins + retention_ms
