"""Definitions of a cluster for Kafka's tools and for Strimzi, run by a shell and read as YAML."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
import yaml

from kdump.answers.metadata.cluster_image import ClusterImage
from kdump.printers.definitions import NAME, resource_name, shell_lines, strimzi_lines

NASTY = "o'r \"d$(id)`id`\\ers"


@pytest.fixture
def image():
    """An image with every kind of record, and names that a shell must not run."""
    made = ClusterImage()
    apply = made.handlers
    counts = {"orders": 2, "__consumer_offsets": 1, NASTY: 1, "__heartbeat": 1}  # a user made __heartbeat
    for number, (name, partitions) in enumerate(counts.items(), 1):
        apply["TopicRecord"]({"name": name, "topicId": bytes([number]) * 16})
        for partition in range(partitions):
            fields = {"removingReplicas": [], "addingReplicas": [], "leader": 1, "leaderEpoch": 0, "partitionEpoch": 0}
            replicas = {"replicas": [1, 2, 3], "isr": [1], "partitionId": partition, "topicId": bytes([number]) * 16}
            apply["PartitionRecord"](fields | replicas)
    for kind, name, key, value in (
        (2, "orders", "cleanup.policy", "compact,delete"),
        (2, "orders", "my.secret", "hunter2"),
        (4, "", "max.connections.per.ip.overrides", "10.0.0.1:5,10.0.0.2:6"),
        (4, "1", "listener.name.external.ssl.keystore.password", "hunter2"),
        (4, "1", "principal.builder.class", "a=b[c]"),
        (16, "watch", "interval.ms", "30000"),
        (32, "group", "consumer.session.timeout.ms", "50000"),
    ):
        apply["ConfigRecord"]({"resourceType": kind, "resourceName": name, "name": key, "value": value})
    for number, (resource, name, pattern, principal, operation, permission) in enumerate(
        (
            (2, "orders", 3, "User:alice", 3, 3),
            (2, "pay", 4, "User:CN=bob,O=x", 10, 3),
            (4, "kafka-cluster", 3, "User:eve", 7, 2),
            (3, "*", 3, "User:*", 3, 3),
            (2, "orders", 3, "Group:admins", 3, 3),
        )
    ):
        apply["AccessControlEntryRecord"](
            {
                "id": bytes([number]) * 16,
                "resourceType": resource,
                "resourceName": name,
                "patternType": pattern,
                "principal": principal,
                "host": "*",
                "operation": operation,
                "permissionType": permission,
            }
        )
    for entity, key, value in (
        ([("user", "alice")], "producer_byte_rate", 1000900.0),
        ([("user", None)], "consumer_byte_rate", 5.5),
        ([("user", "alice"), ("client-id", "app")], "request_percentage", 55.5),
        ([("ip", "10.1.2.3")], "connection_creation_rate", 44.0),
    ):
        parts = [{"entityType": kind, "entityName": name} for kind, name in entity]
        apply["ClientQuotaRecord"]({"entity": parts, "key": key, "value": value, "remove": False})
    for mechanism, name in ((1, "alice"), (2, "alice"), (2, "dora")):
        secret = {"salt": b"SALT", "storedKey": b"STORED", "serverKey": b"SERVER", "iterations": 8192}
        apply["UserScramCredentialRecord"]({"name": name, "mechanism": mechanism, **secret})
    return made


def run(script, tmp_path):
    """Run a script with tools that print their arguments; return the arguments of each call."""
    for tool in ("kafka-topics.sh", "kafka-configs.sh", "kafka-acls.sh"):
        path = tmp_path / tool
        path.write_text(
            '#!/usr/bin/env bash\nprintf "%s\\0" "${0##*/}" "$@"\n'
            'for word; do case $word in /dev/fd/*) printf "%s\\0" "$(cat "$word")";; esac; done\nprintf "\\0\\0"\n'
        )
        path.chmod(0o755)
    text = "\n".join(script).replace("</dev/tty", "<<<'pass word'").replace(">/dev/tty", ">/dev/null")
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "BOOTSTRAP": "h:9092"}
    done = subprocess.run(["bash", "-c", text], env=env, capture_output=True, text=True, check=True)
    return [call.split("\0") for call in done.stdout.split("\0\0\0") if call]


def test_the_script_gives_each_tool_exactly_what_was_there(image, tmp_path):
    calls = run(shell_lines(image), tmp_path)
    made = [call for call in calls if "--create" in call]
    assert [call[call.index("--topic") + 1] for call in made] == ["__heartbeat", NASTY, "orders"]
    (orders,) = [call for call in made if "orders" in call]
    assert orders[:3] == ["kafka-topics.sh", "--bootstrap-server", "h:9092"]
    assert "cleanup.policy=compact,delete" in orders
    assert orders[orders.index("--partitions") + 1] == "2"
    assert orders[orders.index("--replication-factor") + 1] == "3"
    flat = [" ".join(call[3:]) for call in calls]
    assert (
        "--alter --entity-type brokers --entity-default --add-config "
        + ("max.connections.per.ip.overrides=[10.0.0.1:5,10.0.0.2:6]")
        in flat
    )
    assert any("--add-config-file" in line and "principal.builder.class=a=b[c]" in line for line in flat)
    assert (
        "--alter --entity-type users --entity-name alice --entity-type clients --entity-name app "
        "--add-config request_percentage=55.5" in flat
    )
    assert "--alter --entity-type users --entity-default --add-config consumer_byte_rate=5.5" in flat
    assert "--alter --entity-type ips --entity-name 10.1.2.3 --add-config connection_creation_rate=44" in flat
    assert (
        "--add --allow-principal User:CN=bob,O=x --allow-host * --operation DescribeConfigs --topic pay "
        "--resource-pattern-type prefixed" in flat
    )
    assert "--add --deny-principal User:eve --deny-host * --operation Alter --cluster" in flat
    scram = [call for call in calls if "SCRAM-SHA-256=[iterations=8192,password=pass word]" in call]
    assert len(scram) == 1


def test_secrets_are_shown_only_where_they_are_asked_for(image):
    for lines in (shell_lines, strimzi_lines):
        hidden = "\n".join(lines(image))
        assert "hunter2" not in hidden
        assert "U0FMVA==" not in hidden
        assert "# orders: my.secret is hidden; --show-secrets shows it" in hidden
    shown = "\n".join(shell_lines(image, show_secrets=True))
    assert "ssl.keystore.password=hunter2" in shown
    assert "my.secret=hunter2" in shown
    assert "salt U0FMVA==" in shown


def test_strimzi_gets_topics_and_users(image):
    documents = [one for one in yaml.safe_load_all("\n".join(strimzi_lines(image))) if one]
    topics = {one["spec"]["topicName"]: one for one in documents if one["kind"] == "KafkaTopic"}
    assert sorted(topics) == sorted(["orders", NASTY, "__heartbeat"])
    assert topics["orders"]["spec"]["partitions"] == 2
    assert topics["orders"]["spec"]["replicas"] == 3
    assert topics["orders"]["spec"]["config"]["cleanup.policy"] == "compact,delete"
    users = {one["metadata"]["name"]: one["spec"] for one in documents if one["kind"] == "KafkaUser"}
    assert users["alice"]["authentication"] == {"type": "scram-sha-512"}
    assert users["alice"]["quotas"] == {"producerByteRate": 1000900}
    (rule,) = users["alice"]["authorization"]["acls"]
    assert rule == {
        "resource": {"type": "topic", "name": "orders", "patternType": "literal"},
        "operations": ["Read"],
        "host": "*",
        "type": "allow",
    }
    assert sorted(users) == ["alice", "dora", "eve"]
    assert users["dora"] == {"authentication": {"type": "scram-sha-512"}}
    assert all(NAME.fullmatch(one["metadata"]["name"]) for one in documents)


def test_what_strimzi_has_no_resource_for_is_a_comment(image):
    comments = "\n".join(line for line in strimzi_lines(image) if line.startswith("#"))
    for text in ("alice has SCRAM-SHA-256", "User:*", "10.1.2.3", "user=<default>", "max.connections.per.ip", "watch"):
        assert text in comments


@pytest.mark.parametrize(
    "name", ["Orders", "a_b", "-a", "a" * 300, "ü", "a b", "a..b", "a.-b", "a-.b", "._.", "a" * 199 + ".b"]
)
def test_names_that_kubernetes_refuses_are_distinguished(name):
    made = resource_name(name)
    assert len(made) <= 253
    assert all(re.fullmatch("[a-z0-9]([-a-z0-9]*[a-z0-9])?", label) for label in made.split("."))
    assert NAME.fullmatch(made)
    assert made != resource_name(name + "x")


def test_configs_that_kafka_topics_refuses_are_set_by_kafka_configs(image):
    for key, value in (("leader.replication.throttled.replicas", ""), ("own", "a=b")):
        fields = {"resourceType": 2, "resourceName": "orders", "name": key, "value": value}
        image.handlers["ConfigRecord"](fields)
    lines = [line for line in shell_lines(image, show_secrets=True) if "orders" in line and "acls" not in line]
    assert lines == [
        "topics --create --if-not-exists --topic orders --partitions 2 --replication-factor 3 "
        "--config cleanup.policy=compact,delete --config my.secret=hunter2",
        "configs --entity-type topics --entity-name orders --add-config leader.replication.throttled.replicas=",
        "configs --entity-type topics --entity-name orders --add-config-file <(printf '%s\\n' own=a=b)",
    ]


@pytest.mark.parametrize(("name", "refused"), [("CN=bob,O=x", "bob,O=x"), ("Eve", "Eve"), ("CN=Eve", "Eve")])
def test_a_user_whose_name_kubernetes_refuses_is_a_comment(image, name, refused):
    """The operator gives the rules to the user (or CN=...) with the name of the resource, so it cannot be another."""
    image.acls.by_key[b"8" * 16] = image.acls.by_key[bytes(16)] | {"principal": f"User:{name}"}
    text = "\n".join(strimzi_lines(image))
    assert f"# A KafkaUser cannot be for {name}, because Kubernetes refuses the name {refused}. The definition" in text
    assert sorted(
        one["metadata"]["name"] for one in yaml.safe_load_all(text) if one and one["kind"] == "KafkaUser"
    ) == [
        "alice",
        "dora",
        "eve",
    ]


def test_one_kafka_user_cannot_be_for_a_password_and_a_certificate(image):
    acl = image.acls.by_key[bytes(16)]
    image.acls.by_key[b"8" * 16] = acl | {"principal": "User:CN=alice"}
    text = "\n".join(strimzi_lines(image))
    users = [one["metadata"]["name"] for one in yaml.safe_load_all(text) if one and one["kind"] == "KafkaUser"]
    assert users.count("alice") == 1
    assert "# A KafkaUser cannot be for alice and for CN=alice. The definition of CN=alice:\n# ---\n" in text
