"""Which fields of Kafka's own topics are secrets, and values without them."""

from __future__ import annotations

import json

import pytest

from kdump.internal_topics import cluster_metadata, interpreter
from kdump.internal_topics.decode import decode
from kdump.internal_topics.secrets import (
    HIDDEN,
    HIDDEN_BYTES,
    connect_value,
    is_connect_secret,
    is_metadata,
    is_secret,
    mask_of,
    metadata_value,
)
from kdump.primitives.wire import write_unsigned_varint
from tests.helpers.metadata_records import metadata_value as made

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SECRET = "SeCrEt-7f3a9"


@pytest.mark.parametrize(
    "name",
    [
        "sasl.jaas.config",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "delegation.token.secret.key",
        "delegation.token.master.key",
        "password.encoder.secret",
        "password.encoder.old.secret",
        "zookeeper.ssl.keystore.password",
        "listener.name.external.ssl.keystore.key",
        "listener.name.external.plain.sasl.jaas.config",
        "listener.name.external.scram-sha-256.sasl.jaas.config",
        "listener.name.external.my.secret",
        "listener.name.external.mechanism.ssl.keystore.type",
        "listener.name.ssl.keystore.type",
        "my.plugin.password",
        "my.plugin.endpoint",
        "retention.ms ",
        "",
    ],
)
def test_passwords_and_unknown_configs_of_brokers_are_secrets(name):
    assert is_secret(BROKER, name)


@pytest.mark.parametrize(
    "name",
    [
        "log.retention.ms",
        "leader.replication.throttled.rate",
        "ssl.keystore.type",
        "listener.name.external.ssl.keystore.type",
        "listener.name.external.plain.connections.max.reauth.ms",
        "listener.name.external.plain.sasl.server.callback.handler.class",
        "listener.name.external.max.connections",
    ],
)
def test_known_configs_of_brokers_are_none(name):
    assert not is_secret(BROKER, name)


def test_each_resource_has_configs_of_its_own():
    assert not is_secret(TOPIC, "retention.ms")
    assert is_secret(TOPIC, "log.retention.ms")
    assert is_secret(TOPIC, "listener.name.external.max.connections")
    assert not is_secret(GROUP, "consumer.session.timeout.ms")
    assert not is_secret(CLIENT_METRICS, "interval.ms")
    assert is_secret(CLIENT_METRICS, "password")
    assert is_secret(LOGGER, "retention.ms")
    assert is_secret(99, "retention.ms")


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("tasks.max", False),
        ("connector.class", False),
        ("producer.override.linger.ms", False),
        ("consumer.override.sasl.jaas.config", True),
        ("connection.password", True),
        ("sasl.jaas.config", True),
        ("ssl.key.password", True),
        ("table.whitelist", True),
    ],
)
def test_configs_of_connectors(name, secret):
    assert is_connect_secret(name) == secret


def config(name, value=SECRET, resource=BROKER):
    return made("ConfigRecord", resourceType=resource, resourceName="1", name=name, value=value)


def test_a_value_of_a_config_is_replaced_and_nothing_else():
    hidden = metadata_value(None, config("ssl.key.password"))
    assert hidden == config("ssl.key.password", HIDDEN)
    for sound in (config("log.retention.ms"), config("ssl.key.password", None), made("NoOpRecord"), b"", None):
        assert metadata_value(None, sound) == sound


def test_every_byte_of_a_credential_is_replaced():
    value = made(
        "UserScramCredentialRecord", name="bob", mechanism=1, salt=b"salt", storedKey=b"s", serverKey=b"k", iterations=9
    )
    hidden = decode(cluster_metadata.TOPIC, None, metadata_value(None, value)).value.values
    assert {name for name, shown in hidden.items() if shown == HIDDEN_BYTES} == {"salt", "storedKey", "serverKey"}
    assert (hidden["name"], hidden["iterations"]) == ("bob", 9)


def test_a_credential_of_the_preview():
    info = {"mechanism": 1, "salt": b"salt", "saltedPassword": b"hunter2", "iterations": 9}
    struct = cluster_metadata.MESSAGES["UserScramCredentialRecord"].struct(0, (2, 8))
    head = b"".join(map(write_unsigned_varint, (0, 11, 0)))
    value = head + interpreter.write(struct, {"name": "bob", "credentialInfos": [info]})
    hidden = metadata_value(None, value)
    assert hidden is not None
    assert b"bob" in hidden
    assert b"hunter2" not in hidden
    assert b"salt" not in hidden


def test_cut_at_every_byte_and_with_bytes_after_it_no_secret_is_left():
    whole = config("ssl.key.password")
    for size in range(len(whole)):
        shown = metadata_value(None, whole[:size])
        assert SECRET.encode()[:4] not in (shown or b"")
    assert metadata_value(None, whole + SECRET.encode()) == config("ssl.key.password", HIDDEN)
    assert metadata_value(None, config("log.retention.ms", "1") + SECRET.encode()) == config("log.retention.ms", "1")


@pytest.mark.parametrize("head", [b"\x07\x04\x00", b"\x01\x7f\x00", b"\x01\x04\x09"])
def test_what_no_schema_knows_is_hidden(head):
    assert metadata_value(None, head + SECRET.encode()) == HIDDEN_BYTES


def test_records_of_the_metadata_log_are_recognised_without_its_name():
    assert is_metadata(None, config("a"))
    assert not is_metadata(b"key", config("a"))
    assert not is_metadata(None, config("a") + b"x")
    assert not is_metadata(None, b"\x01\x02\x03")
    assert not is_metadata(None, None)


def test_the_topic_of_connect_by_its_usual_names():
    names = ("connect-configs", "_connect-configs", "connect-cluster-configs", "docker-connect-config", "mm2-configs.a")
    assert all(mask_of(name) is connect_value for name in names)
    assert mask_of("connect-offsets") is None
    assert mask_of("configs") is None
    assert mask_of(cluster_metadata.TOPIC) is metadata_value


def test_configs_of_a_connector_as_connect_writes_them():
    properties = {"connector.class": "a.B", "connection.password": SECRET, "name": None}
    plain = json.dumps({"properties": properties}).encode()
    assert json.loads(connect_value(b"connector-db", plain)) == {
        "properties": {**properties, "connection.password": HIDDEN}
    }
    assert SECRET.encode() not in connect_value(b"connector-a\nb", plain)
    enveloped = json.dumps({"schema": {}, "payload": {"properties": properties}}).encode()
    assert SECRET.encode() not in connect_value(b"task-db-0", enveloped)
    session = json.dumps({"algorithm": "HmacSHA256", "key": SECRET, "creation-timestamp": 1}).encode()
    assert json.loads(connect_value(b"session-key", session))["key"] == HIDDEN
    assert connect_value(b"connector-db", plain[:-1]) == HIDDEN_BYTES
    assert connect_value(b"connector-db", b"[1]") == HIDDEN_BYTES
    assert connect_value(b"connector-db", b"[" * 100_000) == HIDDEN_BYTES
    assert connect_value(b"connector-db", None) is None
    assert connect_value(b"commit-db", b'{"tasks":1}') == b'{"tasks":1}'


@pytest.mark.parametrize("value", ["https://u:p@host", "https://u:p/w@host", "x://:p@host"])
def test_a_password_in_a_url_is_a_secret(value):
    assert not is_secret(BROKER, "log.retention.ms", "5")
    assert is_secret(BROKER, "log.retention.ms", value)


@pytest.mark.parametrize("value", ["http://host:8083/a@b", "SSL://host:9093,PLAINTEXT://c@d", "https://host/a:b@c"])
def test_a_port_in_a_url_is_no_password(value):
    assert not is_secret(BROKER, "advertised.listeners", value)
