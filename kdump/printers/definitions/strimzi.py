"""The definitions of a cluster as resources of Strimzi: ``KafkaTopic`` and ``KafkaUser`` (``kafka.strimzi.io/v1``).

What the operator has no resource for is a comment: configs of brokers belong to ``spec.kafka.config`` of ``Kafka``.
"""

from __future__ import annotations

import json
import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from kdump.answers.metadata import cluster_image
from kdump.answers.metadata.cluster_image import (
    BROKER_RESOURCE,
    RESOURCE_TYPES,
    TOPIC_RESOURCE,
    entity_text,
    scram_mechanism,
)
from kdump.primitives.terminal import harmless_line
from kdump.printers.definitions.shell import number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kdump.answers.metadata.cluster_image import ClusterImage
    from kdump.answers.metadata.records import Fields

API: Final = "kafka.strimzi.io/v1"
CLUSTER: Final = "my-cluster"
"""The value of the label strimzi.io/cluster: the name of the Kafka resource is in no volume."""
NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
TYPES: Final = {"TOPIC": "topic", "GROUP": "group", "CLUSTER": "cluster", "TRANSACTIONAL_ID": "transactionalId"}
QUOTAS: Final = {
    "producer_byte_rate": "producerByteRate",
    "consumer_byte_rate": "consumerByteRate",
    "request_percentage": "requestPercentage",
    "controller_mutation_rate": "controllerMutationRate",
}
SCRAM_512: Final = "SCRAM-SHA-512"
USER: Final = "User:"


def lines(image: ClusterImage, *, show_secrets: bool = False) -> Iterator[str]:
    """Yield the lines of the documents. Kafka's own topics are left out: the new cluster makes them itself."""
    yield f"# Definitions of a cluster, as its metadata log has them at offset {image.end_offset}."
    yield f"# Put the name of your Kafka resource in place of {CLUSTER}, and read all of it before kubectl apply."
    for name, topic in sorted(image.topics.by_name.items()):
        if name.startswith("__"):
            continue
        factor = max((len(state.replicas) for state in topic.partitions.values()), default=1)
        spec: dict[str, Any] = {"topicName": name, "partitions": max(1, len(topic.partitions)), "replicas": factor}
        configs = _configs(TOPIC_RESOURCE, image.configs.topic(name), show_secrets=show_secrets)
        if configs:
            spec["config"] = configs
        yield from _document("KafkaTopic", name, spec)
    yield from _users(image)
    yield from _left(image, show_secrets=show_secrets)


def _configs(kind: int, values: Mapping[str, str], *, show_secrets: bool) -> dict[str, str]:
    return cluster_image.hidden_configs(kind, values, show=show_secrets)


def _document(kind: str, name: str, spec: Mapping[str, Any]) -> Iterator[str]:
    yield "---"
    yield f"apiVersion: {API}"
    yield f"kind: {kind}"
    yield "metadata:"
    yield f"  name: {resource_name(name)}"
    yield "  labels:"
    yield f"    strimzi.io/cluster: {CLUSTER}"
    yield "spec:"
    yield from _yaml(spec, "  ")


def resource_name(name: str) -> str:
    """Return a name valid in Kubernetes; a changed one ends with a checksum of the original."""
    if NAME.fullmatch(name):
        return name
    plain = re.sub(r"[^a-z0-9.-]+", "-", name.lower()).strip("-.")[:200]
    return f"{plain or 'x'}-{sha256(name.encode('utf-8', 'surrogateescape')).hexdigest()[:8]}"


def _yaml(value: Mapping[str, Any], indent: str) -> Iterator[str]:
    """Yield a mapping as YAML; texts are quoted as JSON, which is valid YAML."""
    for key, item in value.items():
        if isinstance(item, dict):
            yield f"{indent}{_key(key)}:"
            yield from _yaml(item, indent + "  ")
        elif isinstance(item, list):
            yield f"{indent}{_key(key)}:"
            for one in item:
                first, *rest = _yaml(one, "")
                yield f"{indent}  - {first}"
                yield from (f"{indent}    {line}" for line in rest)
        else:
            yield f"{indent}{_key(key)}: {json.dumps(item) if not isinstance(item, _Plain) else item.text}"


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z][\w.-]*", key, re.ASCII) else json.dumps(key)


class _Plain:
    """A value that is not quoted in YAML."""

    def __init__(self, text: str) -> None:
        self.text = text


def _users(image: ClusterImage) -> Iterator[str]:
    """Yield a KafkaUser for each user with ACLs, quotas or credentials."""
    rules: dict[str, list[Fields]] = {}
    for _, fields in sorted(image.acls.by_id.items()):
        rules.setdefault(fields["principal"].removeprefix(USER), []).append(fields)
    names = {name for name in rules if name != "*"}
    names |= {name for _, name in image.scram.credentials}
    names |= {parts[0][1] for parts in image.quotas.entities if _is_user(parts) and parts[0][1] is not None}
    for name in sorted(names):
        spec: dict[str, Any] = {}
        if (2, name) in image.scram.credentials:
            spec["authentication"] = {"type": "scram-sha-512"}
        elif name.startswith("CN="):
            spec["authentication"] = {"type": "tls-external"}
        granted = [rule for rule in map(_rule, rules.get(name, ())) if rule is not None]
        if granted:
            spec["authorization"] = {"type": "simple", "acls": granted}
        quotas = image.quotas.entities.get((("user", name),), {})
        if quotas:
            spec["quotas"] = {
                QUOTAS[key]: _Plain(number(value)) for key, value in sorted(quotas.items()) if key in QUOTAS
            }
        yield from _document(
            "KafkaUser", name.removeprefix("CN="), spec or {"authentication": {"type": "scram-sha-512"}}
        )


def _is_user(parts: tuple[tuple[str, str | None], ...]) -> bool:
    return len(parts) == 1 and parts[0][0] == "user"


def _rule(fields: Fields) -> dict[str, Any] | None:
    """Return an ACL of a KafkaUser, or None if it has no such rule."""
    found = cluster_image.acl_in_words(fields)
    kind = TYPES.get(found["resourceType"])
    if kind is None:
        return None
    resource: dict[str, Any] = {"type": kind}
    if kind != "cluster":
        resource |= {
            "name": found["resourceName"],
            "patternType": "prefix" if found["patternType"] == "PREFIXED" else "literal",
        }
    operation = "".join(word.capitalize() for word in found["operation"].split("_"))
    return {
        "resource": resource,
        "operations": _Plain(f"[{operation}]"),
        "host": found["host"],
        "type": found["permissionType"].lower(),
    }


def _left(image: ClusterImage, *, show_secrets: bool) -> Iterator[str]:
    """Yield comments on definitions without a Strimzi resource."""
    found: list[str] = []
    for (kind, name), configs in sorted(image.configs.resources.items()):
        if kind == BROKER_RESOURCE and not name:
            pairs = _configs(kind, configs, show_secrets=show_secrets)
            found += [f"spec.kafka.config of Kafka: {key}: {json.dumps(value)}" for key, value in pairs.items()]
        elif kind != TOPIC_RESOURCE:
            pairs = _configs(kind, configs, show_secrets=show_secrets)
            found += [
                f"kafka-configs.sh: {RESOURCE_TYPES.get(kind, kind)} {name}: {key}={value}"
                for key, value in pairs.items()
            ]
    for fields in image.acls.by_id.values():
        if fields["principal"] == f"{USER}*" or not fields["principal"].startswith(USER) or _rule(fields) is None:
            found.append("kafka-acls.sh: " + " ".join(cluster_image.acl_in_words(fields).values()))
    for entity, values in sorted(image.quotas.entities.items(), key=str):
        if not _is_user(entity) or entity[0][1] is None or not values.keys() <= QUOTAS.keys():
            rates = ", ".join(f"{key}={number(value)}" for key, value in sorted(values.items()))
            found.append(f"kafka-configs.sh: quotas of {entity_text(entity)}: {rates}")
    for fields in image.scram.credentials.values():
        if scram_mechanism(fields) != SCRAM_512:
            found.append(
                f"kafka-configs.sh: {fields['name']} has {scram_mechanism(fields)}, {fields['iterations']} iterations"
            )
    if found:
        yield "---"
        yield "# No resource of Strimzi has these; --definitions sh has their command lines:"
        yield from (f"# {harmless_line(line)}" for line in found)
