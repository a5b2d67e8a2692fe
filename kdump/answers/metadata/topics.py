"""Applies records to the topics of an image. Source: Kafka's ``TopicsDelta`` and ``PartitionRegistration``."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from kdump.answers.metadata.records import NO_LEADER_CHANGE, Fields, ReplayError, SnapshotRecord, record_version
from kdump.formats.partition_metadata import id_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kdump.answers.metadata.records import Features

MIGRATING: Final = bytes(16)
"""The directory id of a replica on a broker that does not report directory ids (``DirectoryId.MIGRATING``)."""
_NO_CHANGE: Final[Fields] = {
    "isr": None,
    "leader": NO_LEADER_CHANGE,
    "replicas": None,
    "removingReplicas": None,
    "addingReplicas": None,
    "leaderRecoveryState": -1,
    "directories": None,
    "eligibleLeaderReplicas": None,
    "lastKnownElr": None,
}
"""Field of a PartitionChangeRecord -> the value that means no change."""
_CHANGES: Final = itemgetter(*_NO_CHANGE)


RECOVERING: Final = 1
"""The leaderRecoveryState of a leader after an unclean election."""


@dataclass(slots=True)
class PartitionImage:
    replicas: list[int]
    directories: list[bytes]
    """The directory id of each replica."""
    isr: list[int]
    removing: list[int]
    adding: list[int]
    leader: int
    recovery_state: int
    """RECOVERING while a leader of an unclean election recovers (KIP-704)."""
    leader_epoch: int
    partition_epoch: int
    elr: list[int]
    last_known_elr: list[int]

    def directory_of(self, node: int | None) -> bytes | None:
        """Return the directory id of the replica on a node, or None without a replica there."""
        return self.directories[self.replicas.index(node)] if node in self.replicas else None

    @classmethod
    def of(cls, fields: Fields) -> PartitionImage:
        """Return the state in a PartitionRecord. Raises ReplayError."""
        return cls(
            replicas=fields["replicas"],
            directories=_directories(fields.get("directories"), fields["replicas"]),
            isr=fields["isr"],
            removing=fields["removingReplicas"],
            adding=fields["addingReplicas"],
            leader=fields["leader"],
            recovery_state=fields.get("leaderRecoveryState", 0),
            leader_epoch=fields["leaderEpoch"],
            partition_epoch=fields["partitionEpoch"],
            elr=fields.get("eligibleLeaderReplicas") or [],
            last_known_elr=fields.get("lastKnownElr") or [],
        )

    def change(self, fields: Fields) -> None:
        """Apply a PartitionChangeRecord; see _NO_CHANGE. A given leader raises the leader epoch. Raises ReplayError."""
        try:
            isr, leader, replicas, removing, adding, state, named, elr, last = _CHANGES(fields)
        except KeyError:  # older versions have fewer fields
            isr, leader, replicas, removing, adding, state, named, elr, last = _CHANGES(_NO_CHANGE | fields)
        if replicas is not None or named is not None:
            new = self.replicas if replicas is None else replicas
            self.directories = _directories(self.directories if named is None else named, new)
            self.replicas = new
        if isr is not None:
            self.isr = isr
        if removing is not None:
            self.removing = removing
        if adding is not None:
            self.adding = adding
        if leader != NO_LEADER_CHANGE:
            self.leader = leader
            self.leader_epoch += 1
        if state != -1:
            self.recovery_state = state
        if elr is not None:
            self.elr = elr
        if last is not None:
            self.last_known_elr = last
        self.partition_epoch += 1

    def is_unclean(self, change: Fields) -> bool:
        """Return whether ``change``, which is not applied yet, elects a leader outside of the ISR and ELR.

        After such an election the leader alone is the ISR, and it is RECOVERING (KIP-704, from 3.2). A change
        that also has ``replicas``, of a reassignment, is clean without RECOVERING: the leader may have joined the ISR.
        """
        leader = change["leader"]
        if leader < 0 or leader in self.isr or leader in self.elr or change.get("isr") != [leader]:
            return False
        return change.get("leaderRecoveryState") == RECOVERING or change.get("replicas") is None

    @property
    def is_moving(self) -> bool:
        return bool(self.adding or self.removing)


def _directories(named: list[bytes] | None, replicas: Sequence[int]) -> list[bytes]:
    if not named or all(directory == MIGRATING for directory in named):
        return [MIGRATING] * len(replicas)
    if len(named) != len(replicas):
        raise ReplayError(f"{len(replicas)} replicas have {len(named)} directories")
    return named


@dataclass(slots=True)
class Topic:
    name: str
    id: bytes
    partitions: dict[int, PartitionImage] = field(default_factory=dict)

    @property
    def id_text(self) -> str:
        return id_text(self.id)


class Topics:
    def __init__(self) -> None:
        self.by_id: dict[bytes, Topic] = {}
        self.by_name: dict[str, Topic] = {}

    def handlers(self) -> dict[str, Callable[[Fields], None]]:
        """Return the functions that apply records, by record name. RemoveTopicRecord is not among them."""
        return {
            "TopicRecord": self._create,
            "PartitionRecord": self._add,
            "PartitionChangeRecord": self._change,
            "ClearElrRecord": self._clear_elr,
        }

    def _create(self, fields: Fields) -> None:
        name, number = fields["name"], fields["topicId"]
        if name in self.by_name:
            raise ReplayError(f"topic {name} exists already, with id {self.by_name[name].id_text}")
        self.by_id[number] = self.by_name[name] = Topic(name, number)

    def topic(self, number: bytes) -> Topic:
        """Return a topic by id. Raises ReplayError if there is no such topic."""
        found = self.by_id.get(number)
        if found is None:
            raise ReplayError(f"there is no topic with id {id_text(number)}")
        return found

    def _add(self, fields: Fields) -> None:
        self.topic(fields["topicId"]).partitions[fields["partitionId"]] = PartitionImage.of(fields)

    def _change(self, fields: Fields) -> None:
        try:
            state = self.by_id[fields["topicId"]].partitions[fields["partitionId"]]
        except KeyError:
            topic = self.topic(fields["topicId"])
            raise ReplayError(f"topic {topic.name} has no partition {fields['partitionId']}") from None
        state.change(fields)

    def remove(self, number: bytes) -> str:
        """Remove a topic by id and return its name. Raises ReplayError if there is no such topic."""
        topic = self.topic(number)
        del self.by_id[number], self.by_name[topic.name]
        return topic.name

    def _clear_elr(self, fields: Fields) -> None:
        name = fields["topicName"]
        if name and name not in self.by_name:
            raise ReplayError(f"there is no topic {name}")
        for topic in [self.by_name[name]] if name else self.by_name.values():
            for state in topic.partitions.values():
                if state.elr or state.last_known_elr:
                    state.change({"eligibleLeaderReplicas": [], "lastKnownElr": []})

    def records(self, features: Features) -> Iterator[SnapshotRecord]:
        version = record_version("PartitionRecord", features.metadata_version)
        for _, topic in sorted(self.by_name.items()):
            yield SnapshotRecord("TopicRecord", 0, {"name": topic.name, "topicId": topic.id})
            for number, state in sorted(topic.partitions.items()):
                fields = _fields(topic, number, state, with_elr=features.has_elr)
                yield SnapshotRecord("PartitionRecord", version, fields)


def _fields(topic: Topic, number: int, state: PartitionImage, *, with_elr: bool) -> Fields:
    return {
        "partitionId": number,
        "topicId": topic.id,
        "replicas": state.replicas,
        "isr": state.isr,
        "removingReplicas": state.removing,
        "addingReplicas": state.adding,
        "leader": state.leader,
        "leaderRecoveryState": state.recovery_state,
        "leaderEpoch": state.leader_epoch,
        "partitionEpoch": state.partition_epoch,
        "directories": state.directories,
        "eligibleLeaderReplicas": (with_elr and state.elr) or None,
        "lastKnownElr": (with_elr and state.last_known_elr) or None,
    }
