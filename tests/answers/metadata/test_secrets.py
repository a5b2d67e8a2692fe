"""Secret values are not shown, but their changes are."""

from __future__ import annotations

from kdump.answers.metadata import cluster_image
from kdump.internal_topics.secrets import HIDDEN


def test_configs_of_a_resource():
    values = {"ssl.key.password": "hunter2", "log.retention.ms": "1"}
    assert cluster_image.hidden_configs(cluster_image.BROKER_RESOURCE, values, show=False) == {
        **values,
        "ssl.key.password": HIDDEN,
    }
    assert cluster_image.hidden_configs(cluster_image.BROKER_RESOURCE, values, show=True) == values
    assert cluster_image.hidden_config(cluster_image.BROKER_RESOURCE, "ssl.key.password", None) is None


def test_a_credential_keeps_its_user_and_says_what_changed():
    was = {"name": "bob", "salt": "a", "storedKey": "b", "serverKey": "c", "iterations": 4096}
    assert cluster_image.hidden_record({**was, "salt": "z"}, was) == {
        **was,
        "salt": "[redacted], changed",
        "storedKey": "[redacted]",
        "serverKey": "[redacted]",
    }


def test_a_config_record_is_hidden_by_its_name():
    record = {"resourceType": 4, "resourceName": "1", "name": "ssl.key.password", "value": "hunter2"}
    assert cluster_image.hidden_record(record)["value"] == "[redacted]"
    assert cluster_image.hidden_record({**record, "name": "log.retention.ms"})["value"] == "hunter2"
