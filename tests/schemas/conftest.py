"""Two recorded clusters with schema registries (golden/registries.tar.xz)."""

import json

import pytest

from kdump.log_reader.registry_topic import read_store

CLUSTERS = ("confluent", "karapace")


@pytest.fixture(scope="session", params=CLUSTERS)
def cluster(request, registries):
    return registries / request.param


@pytest.fixture(scope="session")
def truth(cluster):
    return [json.loads(line) for line in (cluster / "truth.jsonl").read_text().splitlines()]


@pytest.fixture(scope="session")
def store(cluster):
    return read_store([str(cluster / "logs")])
