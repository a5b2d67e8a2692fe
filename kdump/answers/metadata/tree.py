"""Yields the leaves of an image as a tree, with the nodes and texts of kafka-metadata-shell below ``/image``.

Source: ``org.apache.kafka.image.node``. SCRAM salts and keys, secret and unknown configs are hidden unless requested.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

from kdump.answers.metadata import cluster_image
from kdump.answers.metadata.records import METADATA_VERSION, level_name
from kdump.errors import UsageError
from kdump.formats.partition_metadata import id_text
from kdump.internal_topics.secrets import HIDDEN
from kdump.primitives.terminal import harmless_line
from kdump.primitives.timestamps import iso

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kdump.answers.metadata.cluster_image import ClusterImage, Entity
    from kdump.answers.metadata.records import Fields
    from kdump.answers.metadata.topics import PartitionImage, Topic

Node: TypeAlias = "str | dict[str, Node]"
"""A node of the tree: the text of a leaf, or children by name."""

PROTOCOLS: Final = {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"}
RECOVERY: Final = {0: "RECOVERED", 1: "RECOVERING"}


@dataclass(frozen=True, slots=True)
class NodeLine:
    kind: ClassVar[str] = "node"
    path: str
    value: str


def leaves(image: ClusterImage, path: str, *, show_secrets: bool = False) -> Iterator[NodeLine]:
    """Yield the leaves at and below ``path``; ``/topics/X`` means ``/topics/byName/X``. Raises UsageError."""
    node: Node = tree(image, show_secrets=show_secrets)
    parts = [part for part in path.split("/") if part]
    if parts[:1] == ["image"]:
        parts = parts[1:]
    if len(parts) > 1 and parts[0] == "topics" and parts[1] not in ("byId", "byName"):
        parts.insert(1, "byName")
    done = ""
    for part in parts:
        if isinstance(node, str) or part not in node:
            names = [] if isinstance(node, str) else list(node)
            there = harmless_line(", ".join(names[:20])) or "nothing"
            raise UsageError(
                f"the tree has no node {done}/{part}; the nodes below {harmless_line(done) or '/'} are: {there}"
            )
        node, done = node[part], f"{done}/{part}"
    yield from _below(node, done)


def _below(node: Node, path: str) -> Iterator[NodeLine]:
    if isinstance(node, str):
        yield NodeLine(path, node)
        return
    for name, child in node.items():
        yield from _below(child, f"{path}/{name}")


def tree(image: ClusterImage, *, show_secrets: bool = False) -> dict[str, Node]:
    topics: dict[str, Node] = {name: _topic(topic) for name, topic in sorted(image.topics.by_name.items())}
    return {
        "provenance": f"offset {image.end_offset - 1}, epoch {image.epoch}, time {iso(image.timestamp)}[UTC]",
        "features": _features(image),
        "cluster": {
            "brokers": {str(number): _broker(fields) for number, fields in sorted(image.cluster.brokers.items())},
            "controllers": {
                str(number): _controller(fields) for number, fields in sorted(image.cluster.controllers.items())
            },
        },
        "topics": {
            "byName": topics,
            "byId": {topic.id_text: topics[name] for name, topic in sorted(image.topics.by_name.items())},
        },
        "configs": {
            _resource(*key): dict(cluster_image.hidden_configs(key[0], values, show=show_secrets))
            for key, values in sorted(image.configs.resources.items())
        },
        "clientQuotas": {
            _entity(entity): {key: str(value) for key, value in sorted(values.items())}
            for entity, values in image.quotas.entities.items()
        },
        "producerIds": {} if image.producer_ids.next is None else {"nextProducerId": str(image.producer_ids.next)},
        "acls": {"byId": {id_text(number): _acl(fields) for number, fields in sorted(image.acls.by_key.items())}},
        "scram": {
            name: _scram(image, number, show_secrets=show_secrets) for number, name in cluster_image.MECHANISMS.items()
        },
        "delegationToken": {number: _token(fields) for number, fields in sorted(image.tokens.by_key.items())},
    }


def _features(image: ClusterImage) -> dict[str, Node]:
    levels = image.features.levels
    made: dict[str, Node] = {
        f"finalized_{name}": str(level) for name, level in sorted(levels.items()) if name != METADATA_VERSION
    }
    known = METADATA_VERSION in levels
    name = level_name(image.features.metadata_version)
    return {"metadataVersion": f"Optional[{name}]" if known else "Optional.empty", **made}


def _resource(kind: int, name: str) -> str:
    word = cluster_image.RESOURCE_TYPES.get(kind, str(kind))
    return f"{word}:{name}" if name else word


def _entity(entity: Entity) -> str:
    words = {"client-id": "clientId"}
    return "_".join(f"{words.get(kind, kind)}({name if name is not None else '<default>'})" for kind, name in entity)


def _topic(topic: Topic) -> dict[str, Node]:
    partitions = {str(number): _partition(state) for number, state in sorted(topic.partitions.items())}
    return {"name": topic.name, "id": topic.id_text, **partitions}


def _partition(state: PartitionImage) -> str:
    return _text(
        "PartitionRegistration",
        {
            "replicas": _list(state.replicas),
            "directories": _list([id_text(each) for each in state.directories]),
            "isr": _list(state.isr),
            "removingReplicas": _list(state.removing),
            "addingReplicas": _list(state.adding),
            "elr": _list(state.elr),
            "lastKnownElr": _list(state.last_known_elr),
            "leader": state.leader,
            "leaderRecoveryState": RECOVERY.get(state.recovery_state, state.recovery_state),
            "leaderEpoch": state.leader_epoch,
            "partitionEpoch": state.partition_epoch,
        },
    )


def _broker(fields: Fields) -> str:
    return _text(
        "BrokerRegistration",
        {
            "id": fields["brokerId"],
            "epoch": fields["brokerEpoch"],
            "incarnationId": id_text(fields["incarnationId"]),
            "listeners": _listeners(fields),
            "supportedFeatures": _supported(fields),
            "rack": "Optional.empty" if fields["rack"] is None else f"Optional[{fields['rack']}]",
            "fenced": _bool(fields.get("fenced", True)),
            "inControlledShutdown": _bool(fields.get("inControlledShutdown", False)),
            "isMigratingZkBroker": _bool(fields.get("isMigratingZkBroker", False)),
            "directories": _list([id_text(each) for each in fields.get("logDirs", [])]),
        },
    )


def _controller(fields: Fields) -> str:
    return _text(
        "ControllerRegistration",
        {
            "id": fields["controllerId"],
            "incarnationId": id_text(fields["incarnationId"]),
            "zkMigrationReady": _bool(fields["zkMigrationReady"]),
            "listeners": _listeners(fields),
            "supportedFeatures": _supported(fields),
        },
    )


def _listeners(fields: Fields) -> str:
    return _list(
        [
            f"Endpoint(listenerName='{each['name']}', securityProtocol="
            f"{PROTOCOLS.get(each['securityProtocol'], each['securityProtocol'])}, "
            f"host='{each['host']}', port={each['port']})"
            for each in sorted(fields["endPoints"], key=lambda each: str(each["name"]))
        ]
    )


def _supported(fields: Fields) -> str:
    found = sorted(fields["features"], key=lambda each: str(each["name"]))
    ranges = [f"{each['name']}: {each['minSupportedVersion']}-{each['maxSupportedVersion']}" for each in found]
    return "{" + ", ".join(ranges) + "}"


def _acl(fields: Fields) -> str:
    words = cluster_image.acl_in_words(fields)
    return f"StandardAcl[{', '.join(f'{name}={value}' for name, value in words.items())}]"


def _scram(image: ClusterImage, number: int, *, show_secrets: bool) -> dict[str, Node]:
    def shown(data: bytes) -> str:
        return b64encode(data).decode() if show_secrets else HIDDEN

    return {
        user: _text(
            "ScramCredentialData",
            {name: shown(fields[name]) for name in ("salt", "storedKey", "serverKey")}
            | {"iterations": fields["iterations"]},
        )
        for (mechanism, user), fields in sorted(image.scram.by_key.items())
        if mechanism == number
    }


def _token(fields: Fields) -> str:
    return _text(
        "DelegationTokenData",
        {
            "tokenId": fields["tokenId"],
            "owner": fields["owner"],
            "tokenRequester": fields.get("requester", ""),
            "renewers": _list(fields["renewers"]),
            "issueTimestamp": fields["issueTimestamp"],
            "maxTimestamp": fields["maxTimestamp"],
            "expiryTimestamp": fields["expirationTimestamp"],
        },
    )


def _text(name: str, values: Mapping[str, object]) -> str:
    return f"{name}({', '.join(f'{key}={value}' for key, value in values.items())})"


def _list(values: Sequence[object]) -> str:
    return f"[{', '.join(map(str, values))}]"


def _bool(value: bool) -> str:
    return "true" if value else "false"
