"""Makes the events of a cluster from its metadata log, whose records do not show which user made a change."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from kdump.answers.metadata import cluster_image
from kdump.answers.metadata.records import METADATA_VERSION, NO_LEADER_CHANGE, Fields, MetadataRecord, level_name
from kdump.answers.metadata.topics import RECOVERING
from kdump.formats.partition_metadata import id_text
from kdump.internal_topics.secrets import HIDDEN, is_secret

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kdump.answers.metadata.cluster_image import ClusterImage
    from kdump.answers.metadata.replay import Break
    from kdump.answers.metadata.topics import PartitionImage, Topic


@dataclass(frozen=True, slots=True)
class Event:
    """An event, with the offset and time of its record.

    ``name`` is the name of the changed object, such as a topic, TOPIC-PARTITION, a config resource, a user or a broker
    id. ``id`` is a topic's id. ``topic`` is the affected topic. ``committed`` is True, or None if unknown: controllers
    may still truncate a record that the quorum has not committed. The time is when the controller appended the batch.
    """

    kind: ClassVar[str] = "event"
    offset: int
    timestamp_ms: int
    what: str
    name: str
    id: str | None
    details: dict[str, Any]
    topic: str | None = None
    committed: bool | None = None


def without_secrets(event: Event) -> Event:
    """Return an event with secret values of configs hidden. No event has SCRAM credentials."""
    details = event.details
    if event.what == "TopicDeleted":
        hidden = cluster_image.hidden_configs(cluster_image.TOPIC_RESOURCE, details["configs"], show=False)
        return replace(event, details=details | {"configs": hidden})
    if event.what != "ConfigChanged":
        return event
    resource = _NUMBERS.get(details["type"], -1)
    if not is_secret(resource, details["config"], details["value"], details["was"]):
        return event
    values = {name: HIDDEN for name in ("value", "was") if details[name] is not None}
    if len(values) > 1 and details["value"] != details["was"]:
        values["value"] = f"{HIDDEN}, changed"
    return replace(event, details=details | values)


_NUMBERS: Final = {word: number for number, word in cluster_image.RESOURCE_TYPES.items()}


Made = tuple[str, str, "str | None", dict[str, Any], "str | None"]
"""The fields of an Event: what, name, id, details, topic."""


class Events:
    """Makes events of records that a replay applies. Records below ``committed``, a snapshot's end, are committed."""

    def __init__(self, committed: int) -> None:
        self._committed = committed
        self._ready: list[Event] = []
        self._pending: list[Event] = []
        self._created: dict[bytes, Event] = {}
        self._grown: dict[bytes, Event] = {}

    def take(self) -> list[Event]:
        """Return the complete events since the last call. Those of a transaction come at its end."""
        ready, self._ready = self._ready, []
        return ready

    def broken(self, found: Break) -> None:
        """Add an event for a record that cannot be applied, or for missing records."""
        details = {"record": found.record, "reason": found.reason}
        self._ready.append(Event(found.offset, found.timestamp, "ReplayBroken", "", None, details))

    def before(self, record: MetadataRecord, image: ClusterImage) -> None:
        """Make the events of a record before it is applied to ``image``. :meth:`applied` then keeps the events."""
        self._pending = []
        if record.name == "PartitionRecord":
            self._partition(record, image)
            return
        events_of = _EVENTS_OF.get(record.name)
        for made in events_of(record.fields, image) if events_of is not None else ():
            self._pending.append(self._event(record, image, made))

    def _event(self, record: MetadataRecord, image: ClusterImage, made: Made) -> Event:
        committed = record.offset < self._committed or len(image.voter_ids) == 1
        return Event(record.offset, record.timestamp, *made, committed or None)

    def _partition(self, record: MetadataRecord, image: ClusterImage) -> None:
        """Add a partition to the event of its topic: one event has all partitions of a batch or transaction."""
        number, fields = record.fields["topicId"], record.fields
        topic = image.topics.by_id.get(number)
        created = self._created.get(number)
        if topic is None:
            return
        if created is not None:
            created.details["partitions"] += 1
            created.details["replicationFactor"] = len(fields["replicas"])
        elif number in self._grown:
            self._grown[number].details["partitions"].append(fields["partitionId"])
        elif fields["partitionId"] not in topic.partitions:
            details = {"partitions": [fields["partitionId"]], "replicas": fields["replicas"]}
            made = "PartitionsAdded", topic.name, topic.id_text, details, topic.name
            self._grown[number] = self._event(record, image, made)
            self._pending.append(self._grown[number])

    def applied(self) -> None:
        for event in self._pending:
            if event.what == "TopicCreated":
                self._created[_topic_id(event)] = event
        self._ready += self._pending
        self._pending = []

    def together(self) -> None:
        """End a batch or transaction: later partitions of a topic belong to a new event."""
        self._created.clear()
        self._grown.clear()


def _topic_id(event: Event) -> bytes:
    from base64 import urlsafe_b64decode

    return urlsafe_b64decode(f"{event.id}==")


def _topic_created(fields: Fields, _: ClusterImage) -> Iterator[Made]:
    details = {"partitions": 0, "replicationFactor": 0}
    yield "TopicCreated", fields["name"], id_text(fields["topicId"]), details, fields["name"]


def _topic_deleted(fields: Fields, image: ClusterImage) -> Iterator[Made]:
    topic = image.topics.by_id.get(fields["topicId"])
    if topic is not None:
        details = {"partitions": len(topic.partitions), "configs": dict(image.configs.topic(topic.name))}
        yield "TopicDeleted", topic.name, topic.id_text, details, topic.name


def _partition_changed(fields: Fields, image: ClusterImage) -> Iterator[Made]:
    topic = image.topics.by_id.get(fields["topicId"])
    state = None if topic is None else topic.partitions.get(fields["partitionId"])
    if topic is None or state is None:
        return
    name = f"{topic.name}-{fields['partitionId']}"
    for what, details in _changes(fields, state):
        yield what, name, topic.id_text, details, topic.name


def _changes(fields: Fields, state: PartitionImage) -> Iterator[tuple[str, dict[str, Any]]]:
    leader = fields["leader"]
    if leader != NO_LEADER_CHANGE:
        details = {"leader": leader, "was": state.leader, "leaderEpoch": state.leader_epoch + 1, "isr": state.isr}
        if state.is_unclean(fields):
            yield "UncleanElection", details
        yield "LeaderChanged", details
    if _differs(fields, "isr", state.isr):
        yield "IsrChanged", {"isr": fields["isr"], "was": state.isr}
    if _differs(fields, "eligibleLeaderReplicas", state.elr):
        yield "ElrChanged", {"elr": fields["eligibleLeaderReplicas"], "was": state.elr}
    yield from _reassignment(fields, state)
    if fields.get("replicas") is None and _differs(fields, "directories", state.directories):
        made = [id_text(directory) for directory in fields["directories"]]
        yield "DirectoriesChanged", {"directories": made, "was": [id_text(each) for each in state.directories]}
    if fields.get("leaderRecoveryState", -1) not in (-1, state.recovery_state):
        yield "LeaderRecoveryChanged", {"recovering": fields["leaderRecoveryState"] == RECOVERING}


def _differs(fields: Fields, name: str, before: list[Any]) -> bool:
    value = fields.get(name)
    return value is not None and value != before


def _reassignment(fields: Fields, state: PartitionImage) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the start and end of a reassignment. One record has both if no data is copied."""
    replicas = state.replicas if fields.get("replicas") is None else fields["replicas"]
    adding = state.adding if fields.get("addingReplicas") is None else fields["addingReplicas"]
    removing = state.removing if fields.get("removingReplicas") is None else fields["removingReplicas"]
    goes_on = bool(adding or removing)
    details = {"replicas": replicas, "was": state.replicas, "adding": adding, "removing": removing}
    at_once = not goes_on and not state.is_moving and replicas != state.replicas
    if at_once or (goes_on and (adding, removing) != (state.adding, state.removing)):
        yield "ReassignmentStarted", details
    if at_once or (state.is_moving and not goes_on):
        yield "ReassignmentEnded", details


def _config_changed(fields: Fields, image: ClusterImage) -> Iterator[Made]:
    kind, name = fields["resourceType"], fields["resourceName"]
    was = image.configs.resources.get((kind, name), {}).get(fields["name"])
    is_topic = kind == cluster_image.TOPIC_RESOURCE
    topic = image.topics.by_name.get(name) if is_topic else None
    details = {
        "type": cluster_image.RESOURCE_TYPES.get(kind, str(kind)),
        "config": fields["name"],
        "value": fields["value"],
        "was": was,
    }
    yield "ConfigChanged", name, topic.id_text if topic else None, details, name if is_topic else None


def _acl_added(fields: Fields, _: ClusterImage) -> Iterator[Made]:
    yield "AclAdded", fields["resourceName"], None, _acl(fields), None


def _acl_removed(fields: Fields, image: ClusterImage) -> Iterator[Made]:
    entry = image.acls.by_key.get(fields["id"])
    if entry is not None:
        yield "AclRemoved", entry["resourceName"], None, _acl(entry), None


def _acl(fields: Fields) -> dict[str, Any]:
    return {"id": id_text(fields["id"]), **cluster_image.acl_in_words(fields)}


def _quota_changed(fields: Fields, image: ClusterImage) -> Iterator[Made]:
    entity = cluster_image.entity_of(fields)
    was = image.quotas.entities.get(entity, {}).get(fields["key"])
    value = None if fields["remove"] else fields["value"]
    details = {"entity": dict(entity), "key": fields["key"], "value": value, "was": was}
    yield "QuotaChanged", cluster_image.entity_text(entity), None, details, None


def _scram_changed(fields: Fields, _: ClusterImage) -> Iterator[Made]:
    details = {"mechanism": cluster_image.scram_mechanism(fields), "iterations": fields.get("iterations")}
    yield "ScramChanged", fields["name"], None, {**details, "removed": "iterations" not in fields}, None


def _feature_changed(fields: Fields, image: ClusterImage) -> Iterator[Made]:
    name: str = fields["name"]
    level: int = fields["featureLevel"] if "featureLevel" in fields else fields.get("maxFeatureLevel", 0)
    details: dict[str, Any] = {"level": level, "was": image.features.levels.get(name)}
    if name == METADATA_VERSION:
        details["release"] = level_name(level)
    yield "FeatureChanged", name, None, details, None


def _broker_registered(fields: Fields, image: ClusterImage) -> Iterator[Made]:
    before = image.cluster.brokers.get(fields["brokerId"])
    details = {
        "epoch": fields["brokerEpoch"],
        "fenced": fields.get("fenced"),
        "rack": fields["rack"],
        "endpoints": [f"{each['name']}://{each['host']}:{each['port']}" for each in fields["endPoints"]],
        "wasEpoch": None if before is None else before["brokerEpoch"],
    }
    yield "BrokerRegistered", str(fields["brokerId"]), None, details, None


def _broker(what: str, number: int, epoch: int) -> Iterator[Made]:
    yield what, str(number), None, {"epoch": epoch}, None


def _broker_changed(fields: Fields, image: ClusterImage) -> Iterator[Made]:
    name, details = str(fields["brokerId"]), {"epoch": fields["brokerEpoch"]}
    if fields.get("inControlledShutdown", 0) == 1:
        yield "BrokerShuttingDown", name, None, details, None
    if fields["fenced"]:
        yield "BrokerFenced" if fields["fenced"] > 0 else "BrokerUnfenced", name, None, details, None
    before = image.cluster.brokers.get(fields["brokerId"], {})
    changes = {"logDirs": fields.get("logDirs") or None, "cordonedLogDirs": fields.get("cordonedLogDirs")}
    for field, dirs in changes.items():
        if dirs is not None and dirs != (before.get(field) or []):
            yield "BrokerDirectoriesChanged", name, None, {**details, field: [id_text(each) for each in dirs]}, None


def _token_changed(fields: Fields, image: ClusterImage) -> Iterator[Made]:
    number = fields["tokenId"]
    token = fields if "owner" in fields else image.tokens.by_key.get(number, {})
    details = {
        "owner": token.get("owner"),
        "requester": token.get("requester"),
        "renewers": token.get("renewers"),
        "expirationTimestampMs": token.get("expirationTimestamp"),
        "removed": "owner" not in fields,
    }
    yield "TokenChanged", number, None, details, None


def _controller_registered(fields: Fields, _: ClusterImage) -> Iterator[Made]:
    details = {"endpoints": [f"{each['name']}://{each['host']}:{each['port']}" for each in fields["endPoints"]]}
    yield "ControllerRegistered", str(fields["controllerId"]), None, details, None


def _controller_unregistered(fields: Fields, _: ClusterImage) -> Iterator[Made]:
    yield "ControllerUnregistered", str(fields["controllerId"]), None, {}, None


def _controller_elected(fields: Fields, _: ClusterImage) -> Iterator[Made]:
    details = {"voters": [voter["voterId"] for voter in fields["voters"]]}
    yield "ControllerElected", str(fields["leaderId"]), None, details, None


def _voters_changed(fields: Fields, _: ClusterImage) -> Iterator[Made]:
    yield "VotersChanged", "", None, {"voters": [voter["voterId"] for voter in fields["voters"]]}, None


def _producer_ids(fields: Fields, image: ClusterImage) -> Iterator[Made]:
    details = {"nextProducerId": fields["nextProducerId"], "was": image.producer_ids.next}
    yield "ProducerIdsAllocated", str(fields["brokerId"]), None, details, None


def _elr_cleared(fields: Fields, image: ClusterImage) -> Iterator[Made]:
    name = fields["topicName"]
    topic: Topic | None = image.topics.by_name.get(name)
    yield "ElrCleared", name, topic.id_text if topic else None, {}, name or None


def _migration_changed(fields: Fields, image: ClusterImage) -> Iterator[Made]:
    if fields["zkMigrationState"] != image.features.zk_migration:
        details = {"state": fields["zkMigrationState"], "was": image.features.zk_migration}
        yield "ZkMigrationChanged", "", None, details, None


_EVENTS_OF: Final[dict[str, Callable[[Fields, ClusterImage], Iterator[Made]]]] = {
    "TopicRecord": _topic_created,
    "RemoveTopicRecord": _topic_deleted,
    "PartitionChangeRecord": _partition_changed,
    "ConfigRecord": _config_changed,
    "AccessControlEntryRecord": _acl_added,
    "RemoveAccessControlEntryRecord": _acl_removed,
    "ClientQuotaRecord": _quota_changed,
    "UserScramCredentialRecord": _scram_changed,
    "RemoveUserScramCredentialRecord": _scram_changed,
    "FeatureLevelRecord": _feature_changed,
    "RemoveFeatureLevelRecord": _feature_changed,
    "RegisterBrokerRecord": _broker_registered,
    "UnregisterBrokerRecord": lambda each, _: _broker("BrokerUnregistered", each["brokerId"], each["brokerEpoch"]),
    "FenceBrokerRecord": lambda fields, _: _broker("BrokerFenced", fields["id"], fields["epoch"]),
    "UnfenceBrokerRecord": lambda fields, _: _broker("BrokerUnfenced", fields["id"], fields["epoch"]),
    "BrokerRegistrationChangeRecord": _broker_changed,
    "DelegationTokenRecord": _token_changed,
    "RemoveDelegationTokenRecord": _token_changed,
    "RegisterControllerRecord": _controller_registered,
    "UnregisterControllerRecord": _controller_unregistered,
    "LeaderChangeMessage": _controller_elected,
    "VotersRecord": _voters_changed,
    "ProducerIdsRecord": _producer_ids,
    "ClearElrRecord": _elr_cleared,
    "ZkMigrationStateRecord": _migration_changed,
}
