"""What is secret is not shown, but that it changed is."""

from __future__ import annotations

from kdump.answers.metadata import secrets


def test_sensitive_configs_are_hidden_whatever_their_listener():
    assert secrets.config("ssl.key.password", "hunter2") == secrets.HIDDEN
    assert secrets.config("listener.name.sasl.plain.sasl.jaas.config", "x") == secrets.HIDDEN
    assert secrets.config("ssl.key.password", None) is None
    assert secrets.config("retention.ms", "1") == "1"


def test_a_credential_keeps_its_user_and_says_what_changed():
    was = {"name": "bob", "salt": "a", "storedKey": "b", "serverKey": "c", "iterations": 4096}
    assert secrets.record({**was, "salt": "z"}, was) == {
        **was,
        "salt": "[redacted], changed",
        "storedKey": "[redacted]",
        "serverKey": "[redacted]",
    }


def test_a_config_record_is_hidden_by_its_name():
    record = {"resourceType": 4, "resourceName": "1", "name": "ssl.key.password", "value": "hunter2"}
    assert secrets.record(record)["value"] == "[redacted]"
    assert secrets.record({**record, "name": "log.retention.ms"})["value"] == "hunter2"
