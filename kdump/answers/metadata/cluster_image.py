"""The image of a cluster: its state after all records of the metadata log below an offset.

:class:`ClusterImage` applies decoded records; it reads no files. Its parts are in this module, in ``topics.py`` and in
``records.py`` (features). Source: ``org.apache.kafka.image`` of Kafka.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kdump.answers.metadata.records import (
    CONTROLLERS_SINCE,
    SCRAM_SINCE,
    TOKENS_SINCE,
    Features,
    Fields,
    ReplayError,
    SnapshotRecord,
    record_version,
)
from kdump.answers.metadata.topics import Topics
from kdump.formats.partition_metadata import id_text
from kdump.internal_topics.secrets import CREDENTIAL, HIDDEN, is_secret

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


_ACL_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "resourceType": (
        *("UNKNOWN", "ANY", "TOPIC", "GROUP", "CLUSTER"),
        *("TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"),
    ),
    "patternType": ("UNKNOWN", "ANY", "MATCH", "LITERAL", "PREFIXED"),
    "operation": (
        *("UNKNOWN", "ANY", "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE"),
        *("CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE"),
        *("CREATE_TOKENS", "DESCRIBE_TOKENS", "TWO_PHASE_COMMIT"),
    ),
    "permissionType": ("UNKNOWN", "ANY", "DENY", "ALLOW"),
}
"""Field of an ACL -> the names of its codes 0, 1, 2 ... (``org.apache.kafka.common.acl``)."""


class RecordTable:
    """The records of one type by key, such as the ACLs by id: key -> fields. The key is one field or several.

    ``absent`` returns the error for the removal of a missing record. By default such a removal changes nothing.
    """

    def __init__(self, record: str, removal: str, *key: str, absent: Callable[[Fields], str] | None = None) -> None:
        self.by_key: dict[Any, Fields] = {}
        self._record, self._removal, self._key, self._absent = record, removal, itemgetter(*key), absent

    def handlers(self) -> dict[str, Callable[[Fields], None]]:
        return {self._record: self._set, self._removal: self._remove}

    def _set(self, fields: Fields) -> None:
        self.by_key[self._key(fields)] = fields

    def _remove(self, fields: Fields) -> None:
        if self.by_key.pop(self._key(fields), None) is None and self._absent is not None:
            raise ReplayError(self._absent(fields))

    def records(self) -> Iterator[SnapshotRecord]:
        for _, fields in sorted(self.by_key.items(), key=itemgetter(0)):
            yield SnapshotRecord(self._record, 0, fields)


def acl_in_words(fields: Fields) -> dict[str, str]:
    """Return the fields of an ACL with Kafka's names instead of codes, without the id."""
    return {
        name: _acl_word(name, value) if name in _ACL_NAMES else str(value)
        for name, value in fields.items()
        if name != "id"
    }


def _acl_word(field: str, code: int) -> str:
    names = _ACL_NAMES[field]
    return names[code] if 0 <= code < len(names) else f"UNKNOWN({code})"


FENCING: Final = {-1: False, 0: None, 1: True}
SHUTDOWN: Final = {0: None, 1: True}


class Cluster:
    """The registrations of brokers and controllers: id -> fields of the registration record."""

    def __init__(self) -> None:
        self.brokers: dict[int, Fields] = {}
        self.controllers: dict[int, Fields] = {}

    def handlers(self) -> dict[str, Callable[[Fields], None]]:
        return {
            "RegisterBrokerRecord": self._register,
            "UnregisterBrokerRecord": self._unregister,
            "FenceBrokerRecord": lambda fields: self._fence(fields, fenced=True),
            "UnfenceBrokerRecord": lambda fields: self._fence(fields, fenced=False),
            "BrokerRegistrationChangeRecord": self._change,
            "RegisterControllerRecord": self._register_controller,
            "UnregisterControllerRecord": self._unregister_controller,
        }

    def _register(self, fields: Fields) -> None:
        self.brokers[fields["brokerId"]] = fields

    def _unregister(self, fields: Fields) -> None:
        self._broker(fields["brokerId"], fields["brokerEpoch"])
        del self.brokers[fields["brokerId"]]

    def _broker(self, number: int, epoch: int) -> Fields:
        """Return the registration of a broker. Raises ReplayError if no broker has this id and epoch."""
        found = self.brokers.get(number)
        if found is None:
            raise ReplayError(f"broker {number} is not registered")
        if found["brokerEpoch"] != epoch:
            raise ReplayError(f"broker {number} is registered with epoch {found['brokerEpoch']}, not {epoch}")
        return found

    def _fence(self, fields: Fields, *, fenced: bool) -> None:
        broker = self._broker(fields["id"], fields["epoch"])
        self.brokers[fields["id"]] = {**broker, "fenced": fenced}

    def _change(self, fields: Fields) -> None:
        broker = self._broker(fields["brokerId"], fields["brokerEpoch"])
        fenced, shutdown = fields["fenced"], fields.get("inControlledShutdown", 0)
        if fenced not in FENCING or shutdown not in SHUTDOWN:
            raise ReplayError(
                f"fenced is {fenced} and inControlledShutdown is {shutdown}: Kafka defines no such change"
            )
        changes = {
            "fenced": FENCING[fenced],
            "inControlledShutdown": SHUTDOWN[shutdown],
            "logDirs": fields.get("logDirs") or None,
            "cordonedLogDirs": fields.get("cordonedLogDirs"),
        }
        made = {name: value for name, value in changes.items() if value is not None}
        self.brokers[fields["brokerId"]] = {**broker, **made}

    def _register_controller(self, fields: Fields) -> None:
        self.controllers[fields["controllerId"]] = fields

    def _unregister_controller(self, fields: Fields) -> None:
        if self.controllers.pop(fields["controllerId"], None) is None:
            raise ReplayError(f"controller {fields['controllerId']} is not registered")

    def records(self, level: int) -> Iterator[SnapshotRecord]:
        version = record_version("RegisterBrokerRecord", level)
        struct = SnapshotRecord("RegisterBrokerRecord", version, {}).struct
        for _, broker in sorted(self.brokers.items()):
            fields = {slot.name: broker.get(slot.name, slot.default()) for slot in struct.slots}
            yield SnapshotRecord("RegisterBrokerRecord", version, fields)
        if level >= CONTROLLERS_SINCE:
            for _, controller in sorted(self.controllers.items()):
                yield SnapshotRecord("RegisterControllerRecord", 0, controller)


TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4
RESOURCE_TYPES: Final = {
    TOPIC_RESOURCE: "TOPIC",
    BROKER_RESOURCE: "BROKER",
    8: "BROKER_LOGGER",
    16: "CLIENT_METRICS",
    32: "GROUP",
}
"""Resource type -> its name in ``ConfigResource.Type``."""
_NO_CONFIGS: Final[Mapping[str, str]] = {}


class Configs:
    """The configs of each resource by type and name. The name "" of the type BROKER means all brokers."""

    def __init__(self) -> None:
        self.resources: dict[tuple[int, str], dict[str, str]] = {}

    def topic(self, name: str) -> Mapping[str, str]:
        return self.resources.get((TOPIC_RESOURCE, name), _NO_CONFIGS)

    def broker(self, number: int | str) -> Mapping[str, str]:
        return self.resources.get((BROKER_RESOURCE, str(number)), _NO_CONFIGS)

    def handlers(self) -> dict[str, Callable[[Fields], None]]:
        return {"ConfigRecord": self._set}

    def _set(self, fields: Fields) -> None:
        resource = fields["resourceType"], fields["resourceName"]
        if fields["value"] is not None:
            self.resources.setdefault(resource, {})[fields["name"]] = fields["value"]
        elif resource in self.resources:
            self.resources[resource].pop(fields["name"], None)
            if not self.resources[resource]:
                del self.resources[resource]

    def records(self) -> Iterator[SnapshotRecord]:
        for (kind, name), configs in sorted(self.resources.items()):
            for key, value in sorted(configs.items()):
                fields = {"resourceType": kind, "resourceName": name, "name": key, "value": value}
                yield SnapshotRecord("ConfigRecord", 0, fields)


class ProducerIds:
    """The allocated producer ids. ``next`` is the first id that is not allocated; None before the first allocation."""

    def __init__(self) -> None:
        self.next: int | None = None

    def handlers(self) -> dict[str, Callable[[Fields], None]]:
        return {"ProducerIdsRecord": self._set}

    def _set(self, fields: Fields) -> None:
        self.next = fields["nextProducerId"]

    def records(self) -> Iterator[SnapshotRecord]:
        if self.next is not None:
            fields = {"brokerId": -1, "brokerEpoch": -1, "nextProducerId": self.next}
            yield SnapshotRecord("ProducerIdsRecord", 0, fields)


Entity: TypeAlias = tuple[tuple[str, str | None], ...]
"""The parts of a quota entity: type and name, sorted by type. The name None is the default: ``(("user", None),)``."""


class Quotas:
    """The quotas: entity -> key -> value."""

    def __init__(self) -> None:
        self.entities: dict[Entity, dict[str, float]] = {}

    def handlers(self) -> dict[str, Callable[[Fields], None]]:
        return {"ClientQuotaRecord": self._set}

    def _set(self, fields: Fields) -> None:
        entity = entity_of(fields)
        if not fields["remove"]:
            self.entities.setdefault(entity, {})[fields["key"]] = fields["value"]
        elif entity in self.entities:
            self.entities[entity].pop(fields["key"], None)
            if not self.entities[entity]:
                del self.entities[entity]

    def records(self) -> Iterator[SnapshotRecord]:
        for entity in sorted(self.entities, key=entity_text):
            parts = [{"entityType": kind, "entityName": name} for kind, name in entity]
            for key, value in sorted(self.entities[entity].items()):
                fields = {"entity": parts, "key": key, "value": value, "remove": False}
                yield SnapshotRecord("ClientQuotaRecord", 0, fields)


def entity_of(fields: Fields) -> Entity:
    return tuple(sorted({part["entityType"]: part["entityName"] for part in fields["entity"]}.items()))


def entity_text(entity: Entity) -> str:
    """Return "client-id=app,user=<default>"."""
    return ",".join(f"{kind}={'<default>' if name is None else name}" for kind, name in entity)


MECHANISMS: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}


def scram_mechanism(fields: Fields) -> str:
    return MECHANISMS.get(fields["mechanism"], f"mechanism {fields['mechanism']}")


def hidden_config(resource: int, name: str, value: str | None) -> str | None:
    """Return the value of a config, or HIDDEN if it is secret; ``resource`` is a code of ``ConfigResource.Type``."""
    return HIDDEN if value is not None and is_secret(resource, name, value) else value


def hidden_configs(resource: int, values: Mapping[str, str], *, show: bool) -> dict[str, str]:
    """Return the configs of a resource by name. Secret values are hidden unless ``show``."""
    return {
        name: value if show else hidden_config(resource, name, value) or "" for name, value in sorted(values.items())
    }


def hidden_record(data: Mapping[str, Any], was: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the data of a record with secrets hidden. A secret that differs from ``was`` gets the word "changed"."""
    secret = [name for name in CREDENTIAL if name in data]
    is_config = "resourceName" in data and "value" in data
    if is_config and hidden_config(data["resourceType"], data["name"], data["value"]) is HIDDEN:
        secret.append("value")
    changed = {name for name in secret if was is not None and was.get(name) != data[name]}
    return {**data, **{name: f"{HIDDEN}, changed" if name in changed else HIDDEN for name in secret}}


class ClusterImage:
    """The state of a cluster at an offset of its metadata log, in the same parts as Kafka's ``MetadataImage``.

    ``topics.by_name`` and ``topics.by_id`` have the topics with their partitions. ``configs.topic(name)`` has the
    configs of a topic; ``configs.broker(id)`` has the dynamic configs of a broker, ``configs.broker("")`` of all.
    """

    def __init__(self) -> None:
        self.end_offset = 0
        """The next offset. Records below it are applied, skipped, or of an open or aborted transaction."""
        self.epoch = 0
        """The leader epoch of the last record that was read."""
        self.timestamp = -1
        """The time at which the last record that was read was appended, in ms; -1 if there is none."""
        self.open_transaction: int | None = None
        """The first offset of a metadata transaction (KIP-868) that is still open, and not applied; else None."""
        self.cut_batch: int | None = None
        """The base offset of a batch that is applied only up to ``end_offset``; None without such a batch."""
        self.preview_at: int | None = None
        """The offset of the first record of KRaft's preview in 2.8; None without one."""
        self.features = Features()
        self.cluster = Cluster()
        self.topics = Topics()
        self.configs = Configs()
        self.quotas = Quotas()
        self.producer_ids = ProducerIds()
        self.acls = RecordTable(
            "AccessControlEntryRecord",
            "RemoveAccessControlEntryRecord",
            "id",
            absent=lambda fields: f"there is no ACL with id {id_text(fields['id'])}",
        )
        self.scram = RecordTable(
            "UserScramCredentialRecord",
            "RemoveUserScramCredentialRecord",
            "mechanism",
            "name",
            absent=lambda fields: f"user {fields['name']} has no credential of {scram_mechanism(fields)}",
        )
        """The credentials by (mechanism, user). Salts and keys are secret."""
        self.tokens = RecordTable("DelegationTokenRecord", "RemoveDelegationTokenRecord", "tokenId")
        self.voters: list[Fields] | None = None
        """The voters of the last VotersRecord (KIP-853); None without one, as if voters are configured statically."""
        self.voter_ids: list[int] = []
        """The ids of the last voters in the log. With a single voter all records are committed."""
        self.kraft_version = 0
        areas = (self.features, self.cluster, self.topics, self.configs, self.quotas, self.producer_ids, self.acls)
        self.handlers: Final = _Handlers(
            {name: handler for area in (*areas, self.scram, self.tokens) for name, handler in area.handlers().items()}
            | {
                "RemoveTopicRecord": self._remove_topic,
                "VotersRecord": self._set_voters,
                "KRaftVersionRecord": self._set_kraft_version,
                "LeaderChangeMessage": self._set_leader,
            }
            | dict.fromkeys(_WITHOUT_EFFECT, lambda _: None)
        )
        """Record name -> function that applies the fields. Invalid fields raise ReplayError and change nothing."""

    def _remove_topic(self, fields: Fields) -> None:
        self.configs.resources.pop((TOPIC_RESOURCE, self.topics.remove(fields["topicId"])), None)

    def _set_voters(self, fields: Fields) -> None:
        self.voters = fields["voters"]
        self._set_leader(fields)

    def _set_leader(self, fields: Fields) -> None:
        self.voter_ids = [voter["voterId"] for voter in fields["voters"]]

    def _set_kraft_version(self, fields: Fields) -> None:
        self.kraft_version = fields["kRaftVersion"]

    def records(self) -> Iterator[SnapshotRecord]:
        """Yield the data records of Kafka's snapshot of this image. The parts are in Kafka's order."""
        level = self.features.metadata_version
        yield from self.features.records()
        yield from self.cluster.records(level)
        yield from self.topics.records(self.features)
        yield from self.configs.records()
        yield from self.quotas.records()
        yield from self.producer_ids.records()
        yield from self.acls.records()
        if level >= SCRAM_SINCE:
            yield from self.scram.records()
        if level >= TOKENS_SINCE:
            yield from self.tokens.records()


class _Handlers(dict[str, "Callable[[Fields], None]"]):
    """Record name -> function that applies the record. A name that no release replays raises ReplayError."""

    def __missing__(self, name: str) -> Callable[[Fields], None]:
        raise ReplayError(f"no Kafka release replays a {name}")


_WITHOUT_EFFECT: Final = ("NoOpRecord", "SnapshotHeaderRecord", "SnapshotFooterRecord")
