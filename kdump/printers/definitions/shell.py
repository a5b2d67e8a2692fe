"""The definitions of a cluster as a shell script of Kafka's own tools, for a cluster that cannot start from log dirs.

Source: ``TopicCommand``, ``ConfigCommand`` and ``AclCommand`` of 3.9 to 4.4. No file has the passwords: SCRAM
credentials are made of a new one, under the mechanism and with the iterations of the old one.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Final

from kdump.answers.metadata import cluster_image
from kdump.answers.metadata.cluster_image import BROKER_RESOURCE, TOPIC_RESOURCE, scram_mechanism
from kdump.internal_topics.secrets import HIDDEN, is_secret
from kdump.primitives.terminal import harmless_line, shell_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kdump.answers.metadata.cluster_image import ClusterImage
    from kdump.answers.metadata.records import Fields
    from kdump.answers.metadata.topics import Topic

HEAD: Final = """\
#!/usr/bin/env bash
# Definitions of a cluster, as its metadata log has them at offset {offset}. Read them before you run them:
#   BOOTSTRAP=host:9092 bash definitions.sh
# OPTIONS may have more of each tool, such as OPTIONS='--command-config client.properties'.
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


def lines(image: ClusterImage, *, show_secrets: bool = False) -> Iterator[str]:
    """Yield the lines of the script. Kafka's own topics are left out: the new cluster makes them itself."""
    yield from HEAD.format(offset=image.end_offset).splitlines()
    yield from _topics(image, show_secrets=show_secrets)
    yield from _configs(image, show_secrets=show_secrets)
    yield from _section("ACLs", [_acl(fields) for _, fields in sorted(image.acls.by_id.items())])
    yield from _section("Quotas", list(_quotas(image)))
    yield from _users(image, show_secrets=show_secrets)
    tokens = image.tokens.by_id
    if tokens:
        yield ""
        yield f"# {len(tokens)} delegation tokens cannot be made again: their HMACs are in no file."


def _section(title: str, found: list[str]) -> Iterator[str]:
    if found:
        yield ""
        yield f"# {title}"
        yield from found


def _topics(image: ClusterImage, *, show_secrets: bool) -> Iterator[str]:
    made: list[str] = []
    own: list[str] = []
    for name, topic in sorted(image.topics.by_name.items()):
        if name.startswith("__"):
            own.append(f"# {name}: {len(topic.partitions)} partitions, made by the brokers")
        else:
            made += _topic(topic, image.configs.topic(name), show_secrets=show_secrets)
    yield from _section("Topics", [*made, *own])


def _topic(topic: Topic, configs: Mapping[str, str], *, show_secrets: bool) -> Iterator[str]:
    factor = max((len(state.replicas) for state in topic.partitions.values()), default=1)
    words = [f"topics --create --if-not-exists --topic {shell_text(topic.name)}"]
    words.append(f"--partitions {max(1, len(topic.partitions))} --replication-factor {factor}")
    for key, value in sorted(configs.items()):
        if show_secrets or not is_secret(TOPIC_RESOURCE, key):
            words.append(f"--config {shell_text(f'{key}={value}')}")
        else:
            yield f"# {topic.name}: {key} is hidden; --show-secrets shows it"
    yield " ".join(words)


def _configs(image: ClusterImage, *, show_secrets: bool) -> Iterator[str]:
    found: list[str] = []
    for (kind, name), values in sorted(image.configs.resources.items()):
        entity = ENTITIES.get(kind)
        if entity is None:
            continue
        who = f"--entity-name {shell_text(name)}" if name else "--entity-default"
        for key, value in sorted(values.items()):
            shown = value if show_secrets else cluster_image.hidden_config(kind, key, value)
            if shown != value:
                found.append(f"# {entity} {name or '<default>'}: {key} is hidden; --show-secrets shows it")
            else:
                found.append(f"configs --entity-type {entity} {who} {_add(key, value)}")
    yield from _section("Configs of brokers, groups and client metrics; those of brokers mean their ids", found)


def _add(key: str, value: str) -> str:
    """Return the option that sets a config: the tool splits at commas outside of brackets, and at each ``=``."""
    if "=" in value or "[" in value or "]" in value:
        escaped = value.replace("\\", "\\\\").replace("\n", "\\n")
        return f"--add-config-file <(printf '%s\\n' {shell_text(f'{key}={escaped}')})"
    return f"--add-config {shell_text(f'{key}=[{value}]' if ',' in value else f'{key}={value}')}"


def _acl(fields: Fields) -> str:
    found = cluster_image.acl_in_words(fields)
    option = RESOURCES.get(found["resourceType"])
    if option is None:
        return f"# no tool takes this ACL: {harmless_line(str(found))}"
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
            yield f"# no tool takes quotas of {harmless_line(str(entity))}"
            continue
        who = " ".join(
            f"--entity-type {QUOTA_TYPES[kind]} "
            + ("--entity-default" if name is None else f"--entity-name {shell_text(name)}")
            for kind, name in sorted(entity, key=lambda part: tuple(QUOTA_TYPES).index(part[0]))
        )
        pairs = ",".join(f"{key}={number(value)}" for key, value in sorted(values.items()))
        yield f"configs {who} --add-config {shell_text(pairs)}"


def number(value: float) -> str:
    """Return a quota without a fraction that is 0."""
    return str(int(value)) if value == int(value) else repr(value)


def _users(image: ClusterImage, *, show_secrets: bool) -> Iterator[str]:
    found: list[str] = []
    for _, fields in sorted(image.scram.credentials.items(), key=lambda one: (one[1]["name"], one[0])):
        name, how, iterations = fields["name"], scram_mechanism(fields), fields["iterations"]
        parts = [f"{part} {_secret(fields, part, show=show_secrets)}" for part in ("salt", "storedKey", "serverKey")]
        found.append(f"# {harmless_line(name)}: {how}, {iterations} iterations, {', '.join(parts)}")
        found.append(
            f"configs --entity-type users --entity-name {shell_text(name)} "
            f'--add-config "{how}=[iterations={iterations},password=$(password {shell_text(name)})]"'
        )
    yield from _section("SCRAM users: no file has their passwords, so new ones are asked for", found)


def _secret(fields: Fields, name: str, *, show: bool) -> str:
    value = fields.get(name)
    if value is None:
        return "unknown"
    return b64encode(value).decode() if show else HIDDEN
