"""What :func:`kdump.open` and the questions note: replicas that are left out, topics that are not there."""

import json

import pytest

import kdump
from testing import processes
from tests.helpers.log_dirs import replica
from tests.helpers.segments import data


def _two_replicas(tmp_path):
    """The second broker has the later leader epoch."""
    replica(tmp_path / "b1", {0: data(0, 5) + data(5, 5)})
    replica(tmp_path / "b2", {0: data(0, 5) + data(5, 3, leader_epoch=1)})
    return str(tmp_path / "b1"), str(tmp_path / "b2")


def test_each_partition_is_read_once_and_a_note_names_the_other_replica(tmp_path):
    brokers = _two_replicas(tmp_path)
    log = kdump.open(brokers)
    assert [record.offset for record in log] == list(range(8))
    (note,) = log.notes
    assert f"{brokers[0]}/orders-0 (every_replica=True reads all)" in note
    every = kdump.open(brokers, every_replica=True)
    assert (len(list(every)), every.notes) == (18, [])


def test_what_are_no_replicas_is_read(tmp_path):
    """Another topic id, other offsets, and files of one folder that are named apart."""
    for broker, topic_id in (("b1", "A" * 21 + "g"), ("b2", "A" * 21 + "w")):
        replica(tmp_path / broker, {0: data(0, 2)}, name="pay-0")
        (tmp_path / broker / "pay-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
    replica(tmp_path / "b1", {0: data(0, 2)})
    replica(tmp_path / "b2", {2: data(2, 2)})
    assert len(list(kdump.open([tmp_path / "b1", tmp_path / "b2"]))) == 8
    one = replica(tmp_path / "b3", {0: data(0, 2), 2: data(2, 2)})
    logs = sorted(one.glob("*.log"))
    assert len(list(kdump.open([logs[0], tmp_path / "b1" / "pay-0", logs[1]]))) == 6


def test_a_topic_that_is_not_there_is_noted_as_the_command_does(tmp_path):
    replica(tmp_path, {0: data(0)}, name="sales-0")
    said = f"no partition of topic 'salse' is in {tmp_path}; did you mean 'sales'?"
    log = kdump.open(tmp_path, topic="salse")
    assert (list(log), log.notes) == ([], [said])
    assert kdump.offsets(tmp_path, topic="salse").notes == (said,)
    assert kdump.transactions(tmp_path, topic="salse").notes == (said,)


class TestDecoding:
    @pytest.fixture
    def logs(self, registries):
        return registries / "confluent" / "logs"

    def test_records_and_columns_are_those_of_json_lines(self, logs):
        asked = ["--decode", "auto", "-o", "jsonl", "--fields", "decoded"]
        done = processes.kdump("dump", logs, "--topic", "json-7", *asked)
        lines = [json.loads(line)["decoded"] for line in done.stdout.splitlines()]
        log = kdump.open(logs, topic="json-7", decode="auto")
        assert [record.decoded for record in log] == lines
        assert [json.loads(each) for each in log.to_arrow(["decoded"]).read_all()["decoded"].to_pylist()] == lines
        assert log.to_arrow().schema.names[-1] == "decoded"
        assert "decoded" not in kdump.open(logs, topic="json-7").to_arrow().schema.names

    def test_keys_and_values_are_found_by_what_they_mean(self, logs):
        by_key = kdump.open(logs, topic="json-7", decode="auto", key=b"b")
        assert {record.decoded["key"]["data"] for record in by_key} == {"b"}
        by_grep = kdump.open(logs, topic="json-7", decode="json", grep='"stock":2.5')
        assert {record.decoded["value"]["data"]["stock"] for record in by_grep} == {2.5}
        assert list(kdump.open(logs, topic="json-7", key=b"b")) == []

    def test_schemas_lie_elsewhere(self, logs):
        (record,) = kdump.open(logs / "json-7-0", offset=0, decode="auto")
        assert record.decoded["key"]["problem"] == "schema-missing"
        (record,) = kdump.open(logs / "json-7-0", offset=0, decode="auto", schemas=logs)
        assert record.decoded["key"]["data"] == "b"
        assert next(iter(kdump.open(logs, topic="json-7"))).decoded is None

    def test_an_unknown_format(self, logs):
        with pytest.raises(kdump.errors.UsageError, match="avro"):
            kdump.open(logs, decode="thrift")
