"""Writes topics, configs, ACLs, quotas and users of a metadata image as a shell script or as YAML for Strimzi.

The script calls Kafka's own tools for a new cluster. Source: ``TopicCommand``, ``ConfigCommand`` and ``AclCommand`` of
3.9 to 4.4. ACLs and quotas that the tools cannot set, and configs that are hidden without ``show_secrets``, become
comments. The log does not have passwords: the script asks for new ones. It keeps mechanism and iterations.

The YAML has ``KafkaTopic`` (hidden configs are comments) and ``KafkaUser``. Other definitions,
except delegation tokens and Kafka's own topics, become comments: configs of all brokers are for ``spec.kafka.config``.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
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
from kdump.internal_topics import DECODER_SWITCHES
from kdump.internal_topics.secrets import HIDDEN, is_secret
from kdump.primitives.terminal import harmless_line, shell_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kdump.answers.metadata.cluster_image import ClusterImage
    from kdump.answers.metadata.records import Fields
    from kdump.answers.metadata.topics import Topic


HEAD: Final = """\
#!/usr/bin/env bash
# Definitions of a cluster from its metadata log, at offset {offset}. Read this script before you run it:
#   BOOTSTRAP=host:9092 bash definitions.sh
# OPTIONS is passed to each Kafka tool, for example OPTIONS='--command-config client.properties'.
set -eu
: "${{BOOTSTRAP:?set it to the address of the new cluster, host:9092}}"
topics()  {{ kafka-topics.sh  --bootstrap-server "$BOOTSTRAP" ${{OPTIONS:-}} "$@"; }}
configs() {{ kafka-configs.sh --bootstrap-server "$BOOTSTRAP" ${{OPTIONS:-}} --alter "$@"; }}
acls()    {{ kafka-acls.sh    --bootstrap-server "$BOOTSTRAP" ${{OPTIONS:-}} --add "$@"; }}
password() {{ local word; IFS= read -rsp "New password of $1: " word </dev/tty; echo >/dev/tty; printf %s "$word"; }}
"""
ENTITIES: Final = {BROKER_RESOURCE: "brokers", 16: "client-metrics", 32: "groups"}
"""Resource type -> its --entity-type."""
QUOTA_TYPES: Final = {"user": "users", "client-id": "clients", "ip": "ips"}
RESOURCES: Final = {
    "TOPIC": "--topic",
    "GROUP": "--group",
    "CLUSTER": "--cluster",
    "TRANSACTIONAL_ID": "--transactional-id",
    "DELEGATION_TOKEN": "--delegation-token",
    "USER": "--user-principal",
}


def shell_lines(image: ClusterImage, *, show_secrets: bool = False) -> Iterator[str]:
    """Yield the lines of the shell script. Kafka's own topics are comments, because the new cluster creates them."""
    yield from HEAD.format(offset=image.end_offset).splitlines()
    yield from _topics(image, show_secrets=show_secrets)
    yield from _shell_configs(image, show_secrets=show_secrets)
    yield from _section("ACLs", [_acl(fields) for _, fields in sorted(image.acls.by_key.items())])
    yield from _section("Quotas", list(_quotas(image)))
    yield from _shell_users(image, show_secrets=show_secrets)
    tokens = image.tokens.by_key
    if tokens:
        yield ""
        yield f"# {len(tokens)} delegation tokens cannot be created again, because no file has their HMACs."


def _section(title: str, found: list[str]) -> Iterator[str]:
    if found:
        yield ""
        yield f"# {title}"
        yield from found


def _topics(image: ClusterImage, *, show_secrets: bool) -> Iterator[str]:
    made: list[str] = []
    own: list[str] = []
    for name, topic in sorted(image.topics.by_name.items()):
        if name in DECODER_SWITCHES:
            own.append(f"# {name}: {len(topic.partitions)} partitions; no command, because brokers create this topic")
        else:
            made += _topic(topic, image.configs.topic(name), show_secrets=show_secrets)
    yield from _section("Topics", [*made, *own])


def _topic(topic: Topic, configs: Mapping[str, str], *, show_secrets: bool) -> Iterator[str]:
    factor = max((len(state.replicas) for state in topic.partitions.values()), default=1)
    name, others = shell_text(topic.name), list[str]()
    words = [f"topics --create --if-not-exists --topic {name}"]
    words.append(f"--partitions {max(1, len(topic.partitions))} --replication-factor {factor}")
    for key, value in sorted(configs.items()):
        if not show_secrets and is_secret(TOPIC_RESOURCE, key, value):
            yield _hidden(topic.name, key)
        elif value and "=" not in value:
            words.append(f"--config {shell_text(f'{key}={value}')}")
        else:  # TopicCommand.parseTopicConfigsToBeAdded refuses such values
            others.append(f"configs --entity-type topics --entity-name {name} {_add(key, value)}")
    yield from (" ".join(words), *others)


def _hidden(owner: str, key: str) -> str:
    return f"# {owner}: {key} is hidden; --show-secrets shows it"


def _shell_configs(image: ClusterImage, *, show_secrets: bool) -> Iterator[str]:
    found: list[str] = []
    for (kind, name), values in sorted(image.configs.resources.items()):
        entity = ENTITIES.get(kind)
        if entity is None:
            continue
        who = f"--entity-name {shell_text(name)}" if name else "--entity-default"
        for key, value in sorted(values.items()):
            shown = value if show_secrets else cluster_image.hidden_config(kind, key, value)
            if shown != value:
                found.append(_hidden(f"{entity} {name or '<default>'}", key))
            else:
                found.append(f"configs --entity-type {entity} {who} {_add(key, value)}")
    yield from _section("Configs of brokers (by broker id), groups and client metrics", found)


def _add(key: str, value: str) -> str:
    """Return the option of kafka-configs.sh that sets a config.

    The tool splits --add-config at ``=`` and commas. Brackets protect commas. ``=`` or brackets in a value need a file.
    """
    if "=" in value or "[" in value or "]" in value:
        escaped = value.replace("\\", "\\\\").replace("\n", "\\n")
        return f"--add-config-file <(printf '%s\\n' {shell_text(f'{key}={escaped}')})"
    return f"--add-config {shell_text(f'{key}=[{value}]' if ',' in value else f'{key}={value}')}"


def _acl(fields: Fields) -> str:
    found = cluster_image.acl_in_words(fields)
    option = RESOURCES.get(found["resourceType"])
    if option is None:
        return f"# left out, because kafka-acls.sh cannot add this ACL: {harmless_line(str(found))}"
    effect = found["permissionType"].lower()
    words = [
        f"acls --{effect}-principal {shell_text(found['principal'])} --{effect}-host {shell_text(found['host'])}",
        f"--operation {''.join(word.capitalize() for word in found['operation'].split('_'))}",
        option if option == "--cluster" else f"{option} {shell_text(found['resourceName'])}",
    ]
    if option != "--cluster":
        words.append(f"--resource-pattern-type {found['patternType'].lower()}")
    return " ".join(words)


def _quotas(image: ClusterImage) -> Iterator[str]:
    for entity, values in sorted(image.quotas.entities.items(), key=str):
        if any(kind not in QUOTA_TYPES for kind, _ in entity):
            yield f"# left out, because kafka-configs.sh cannot set the quotas of {harmless_line(str(entity))}"
            continue
        who = " ".join(
            f"--entity-type {QUOTA_TYPES[kind]} "
            + ("--entity-default" if name is None else f"--entity-name {shell_text(name)}")
            for kind, name in sorted(entity, key=lambda part: tuple(QUOTA_TYPES).index(part[0]))
        )
        pairs = ",".join(f"{key}={number(value)}" for key, value in sorted(values.items()))
        yield f"configs {who} --add-config {shell_text(pairs)}"


def number(value: float) -> str:
    """Return a quota as text: ``1024`` for 1024.0."""
    return str(int(value)) if value == int(value) else repr(value)


def _shell_users(image: ClusterImage, *, show_secrets: bool) -> Iterator[str]:
    found: list[str] = []
    for _, fields in sorted(image.scram.by_key.items(), key=lambda one: (one[1]["name"], one[0])):
        name, how, iterations = fields["name"], scram_mechanism(fields), fields["iterations"]
        parts = [f"{part} {_secret(fields, part, show=show_secrets)}" for part in ("salt", "storedKey", "serverKey")]
        found.append(f"# {harmless_line(name)}: {how}, {iterations} iterations, {', '.join(parts)}")
        found.append(
            f"configs --entity-type users --entity-name {shell_text(name)} "
            f'--add-config "{how}=[iterations={iterations},password=$(password {shell_text(name)})]"'
        )
    yield from _section("SCRAM users: no file has their passwords, so the script prompts for new ones", found)


def _secret(fields: Fields, name: str, *, show: bool) -> str:
    value = fields.get(name)
    if value is None:
        return "unknown"
    return b64encode(value).decode() if show else HIDDEN


CLUSTER: Final = "my-cluster"
"""Placeholder for the label strimzi.io/cluster: no log dir has the name of the Kafka resource."""
DOCUMENT: Final = f"""\
---
apiVersion: kafka.strimzi.io/v1
kind: {{kind}}
metadata:
  name: {{name}}
  labels:
    strimzi.io/cluster: {CLUSTER}
spec:
"""
NAME: Final = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
"""The names of Kubernetes resources: DNS subdomains (RFC 1123)."""
TYPES: Final = {"TOPIC": "topic", "GROUP": "group", "CLUSTER": "cluster", "TRANSACTIONAL_ID": "transactionalId"}
QUOTAS: Final = {
    "producer_byte_rate": "producerByteRate",
    "consumer_byte_rate": "consumerByteRate",
    "request_percentage": "requestPercentage",
    "controller_mutation_rate": "controllerMutationRate",
}
SCRAM_512: Final = "SCRAM-SHA-512"
USER: Final = "User:"


def strimzi_lines(image: ClusterImage, *, show_secrets: bool = False) -> Iterator[str]:
    """Yield the lines of the YAML documents, without Kafka's own topics, which the new cluster creates."""
    yield f"# Definitions of a cluster from its metadata log, at offset {image.end_offset}."
    yield f"# Replace {CLUSTER} by the name of your Kafka resource. Read the whole file before kubectl apply."
    for name, topic in sorted(image.topics.by_name.items()):
        if name in DECODER_SWITCHES:
            continue
        factor = max((len(state.replicas) for state in topic.partitions.values()), default=1)
        spec: dict[str, Any] = {"topicName": name, "partitions": max(1, len(topic.partitions)), "replicas": factor}
        configs = image.configs.topic(name)
        shown = cluster_image.hidden_configs(TOPIC_RESOURCE, configs, show=show_secrets)
        if known := {key: value for key, value in shown.items() if value == configs[key]}:
            spec["config"] = known
        yield from _document("KafkaTopic", name, spec)
        for key in sorted(shown.keys() - known.keys()):
            yield harmless_line(_hidden(name, key))
    yield from _users(image)
    yield from _left(image, show_secrets=show_secrets)


def _document(kind: str, name: str, spec: Mapping[str, Any]) -> Iterator[str]:
    yield from DOCUMENT.format(kind=kind, name=resource_name(name)).splitlines()
    yield from _yaml(spec, "  ")


def resource_name(name: str) -> str:
    """Return a name in the letters of Kubernetes resources. A changed name ends with a hash of the original name."""
    if NAME.fullmatch(name):
        return name
    plain = re.sub(r"[^a-z0-9.-]+", "-", name.lower())
    plain = re.sub(r"-*[.][.-]*", ".", plain).lstrip("-.")[:200].rstrip("-.")
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
            yield f"{indent}{_key(key)}: {item if isinstance(item, _Plain) else json.dumps(item)}"


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z][\w.-]*", key, re.ASCII) else json.dumps(key)


class _Plain(str):
    """A text that is not quoted in YAML."""

    __slots__ = ()


def _users(image: ClusterImage) -> Iterator[str]:
    rules: dict[str, list[Fields]] = {}
    for _, fields in sorted(image.acls.by_key.items()):
        if fields["principal"].startswith(USER):
            rules.setdefault(fields["principal"].removeprefix(USER), []).append(fields)
    names = {name for name in rules if name != "*"}
    names |= {name for _, name in image.scram.by_key}
    names |= {parts[0][1] for parts in image.quotas.entities if _is_user(parts) and parts[0][1] is not None}
    for name in sorted(names):
        spec: dict[str, Any] = {}
        if (2, name) in image.scram.by_key:
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
        resource = name.removeprefix("CN=")
        lines = _document("KafkaUser", resource, spec or {"authentication": {"type": "scram-sha-512"}})
        if not NAME.fullmatch(resource):  # the operator takes the name of the resource as that of the user
            why = f"A KafkaUser cannot be for {name}, because Kubernetes refuses the name {resource}"
        elif resource != name and resource in names:  # its document would replace this one
            why = f"A KafkaUser cannot be for {resource} and for {name}"
        else:
            yield from lines
            continue
        yield harmless_line(f"# {why}. The definition of {name}:")
        yield from (f"# {line}" for line in lines)


def _is_user(parts: tuple[tuple[str, str | None], ...]) -> bool:
    return len(parts) == 1 and parts[0][0] == "user"


def _rule(fields: Fields) -> dict[str, Any] | None:
    """Return the rule of a KafkaUser for an ACL, or None if KafkaUser has no rule for it."""
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
    if found := list(_without_resource(image, show_secrets=show_secrets)):
        yield "---"
        yield "# Strimzi has no resource for these definitions (kdump metadata --definitions sh prints their commands):"
        yield from (f"# {harmless_line(line)}" for line in found)


def _without_resource(image: ClusterImage, *, show_secrets: bool) -> Iterator[str]:
    for (kind, name), configs in sorted(image.configs.resources.items()):
        for key, value in cluster_image.hidden_configs(kind, configs, show=show_secrets).items():
            if kind == BROKER_RESOURCE and not name:
                yield f"spec.kafka.config of Kafka: {key}: {json.dumps(value)}"
            elif kind != TOPIC_RESOURCE:
                yield f"kafka-configs.sh: {RESOURCE_TYPES.get(kind, kind)} {name}: {key}={value}"
    for fields in image.acls.by_key.values():
        if fields["principal"] == f"{USER}*" or not fields["principal"].startswith(USER) or _rule(fields) is None:
            yield "kafka-acls.sh: " + " ".join(cluster_image.acl_in_words(fields).values())
    for entity, values in sorted(image.quotas.entities.items(), key=str):
        if not _is_user(entity) or entity[0][1] is None or not values.keys() <= QUOTAS.keys():
            rates = ", ".join(f"{key}={number(value)}" for key, value in sorted(values.items()))
            yield f"kafka-configs.sh: quotas of {entity_text(entity)}: {rates}"
    for fields in image.scram.by_key.values():
        if scram_mechanism(fields) != SCRAM_512:
            mechanism, iterations = scram_mechanism(fields), fields["iterations"]
            yield f"kafka-configs.sh: {fields['name']} has {mechanism}, {iterations} iterations"
