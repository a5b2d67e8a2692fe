"""Two recorded clusters with schema registries (golden/registries.tar.xz)."""

import json
import tarfile

import pytest

from kdump.log_reader.registry_topic import read_store
from testing import GOLDEN

CLUSTERS = ("confluent", "karapace")


@pytest.fixture(scope="session")
def registries(tmp_path_factory):
    """The folder of both clusters: NAME/logs is a log dir, NAME/truth.jsonl the recorded answers."""
    folder = tmp_path_factory.mktemp("registries")
    with tarfile.open(GOLDEN / "registries.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="session", params=CLUSTERS)
def cluster(request, registries):
    """One of the clusters."""
    return registries / request.param


@pytest.fixture(scope="session")
def truth(cluster):
    """The lines of its truth."""
    return [json.loads(line) for line in (cluster / "truth.jsonl").read_text().splitlines()]


@pytest.fixture(scope="session")
def store(cluster):
    """Its schemas."""
    return read_store([str(cluster / "logs")])
