"""What :func:`kdump.open` and the questions note: skipped replicas, and missing topics."""

import copy
import datetime as dt
import json
import os
import pickle
import re

import pytest

import kdump
from kdump import api
from kdump.errors import UnreadableError, UsageError
from testing import GOLDEN, forge, processes
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
    """They have another topic id or other offsets, or are files of one folder named separately."""
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


def _one_damaged_batch_in_each_of_two_partitions(tmp_path):
    good, bad = data(0, 5), bytearray(data(5, 5))
    bad[-1] ^= 1
    for number in range(2):
        replica(tmp_path, {0: good + bytes(bad)}, name=f"orders-{number}")
    return tmp_path


@pytest.mark.filterwarnings("ignore::kdump.errors.DamageWarning")
@pytest.mark.parametrize("read", [iter, api.Log.batches, api.Log.to_arrow])
def test_damage_and_notes_are_those_of_the_iteration_that_began_last(tmp_path, read):
    log = kdump.open(_one_damaged_batch_in_each_of_two_partitions(tmp_path), topic=("orders", "salse"))
    first = iter(read(log))
    next(first)
    earlier = log.damage
    assert len(list(iter(log))) == 10  # this iteration begins and ends during the first
    last = log.damage, log.notes
    for _ in first:
        pass
    assert (log.damage, log.notes) == last
    assert [len(last[0]), len(last[1])] == [2, 1]
    if read is not api.Log.batches:  # their damage is in records, which are not read here
        assert [file for file, _ in earlier] == [file for file, _ in last[0]]
        assert earlier is not last[0]


@pytest.mark.filterwarnings("ignore::kdump.errors.DamageWarning")
def test_a_batch_adds_damage_of_its_records_to_its_own_iteration(tmp_path):
    replica(tmp_path, {0: data(0, 5) + forge.batch([b"\x7f"], base_offset=5)})  # a right checksum, no record
    log = kdump.open(tmp_path)
    batches = list(log.batches())
    own = log.damage
    assert (len(list(log)), len(log.damage), own) == (5, 1, [])
    assert [len(batch.records) for batch in batches] == [5, 0]
    assert (len(log.damage), len(own)) == (1, 1)


@pytest.mark.filterwarnings("ignore::kdump.errors.NoteWarning")
def test_to_parquet_keeps_the_notes_of_its_iteration(tmp_path, monkeypatch):
    monkeypatch.setattr(api.files, "to_parquet", lambda rows, *_, note, **__: [note("x"), *rows])
    replica(tmp_path, {0: data(0)}, name="orders-0")
    log = kdump.open(tmp_path, topic="orders")
    log.to_parquet(tmp_path / "x.parquet")
    assert "x" in log.notes


class TestDecoding:
    @pytest.fixture
    def logs(self, registries):
        return registries / "confluent" / "logs"

    @pytest.mark.parametrize("decode", ["none", "auto"])
    def test_only_a_log_that_decodes_has_decoded_records(self, decode):
        log = kdump.open(GOLDEN / "brokers" / "4.2.2", topic="__consumer_offsets", decode=decode, limit=5)
        assert [record.decoded is None for record in log] == [decode == "none"] * 5
        assert ["decoded" in record.row() for record in log] == [decode == "auto"] * 5

    def test_records_and_columns_are_those_of_json_lines(self, logs):
        asked = ["--decode", "auto", "-o", "jsonl", "--fields", "decoded"]
        done = processes.kdump("dump", logs, "--topic", "json-7", *asked)
        lines = [json.loads(line)["decoded"] for line in done.stdout.splitlines()]
        log = kdump.open(logs, topic="json-7", decode="auto")
        assert [record.decoded for record in log] == lines
        assert [record.row().get("decoded") for record in log] == lines
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


class TestSalvage:
    def test_it_writes_and_reports_what_the_command_does(self, tmp_path):
        brokers = _two_replicas(tmp_path)
        damaged = tmp_path / "b1" / "orders-0" / f"{0:020}.log"
        damaged.write_bytes(damaged.read_bytes()[:-3])
        for end in ("one", "other"):
            (tmp_path / end).mkdir()
        done = processes.kdump("salvage", *brokers, "--out", tmp_path / "one")
        report = kdump.salvage(*brokers, out=tmp_path / "other")
        assert done.returncode == report.status == 3
        said = done.stderr.decode()
        assert report.damage
        assert all(text in said for text in report.damage + report.notes)
        files = {
            path.relative_to(tmp_path / "one"): path.read_bytes()
            for path in (tmp_path / "one").rglob("*")
            if path.is_file()
        }
        assert files == {name: (tmp_path / "other" / name).read_bytes() for name in files}
        (orders,) = report.partitions
        assert (orders.name, orders.written.end, orders.account.last_offset) == ("orders-0", 8, 7)

    def test_what_is_refused(self, tmp_path):
        one = replica(tmp_path / "b", {0: data(0, 2)})
        with pytest.raises(UsageError, match="is in the input"):
            kdump.salvage(one, out=one / "rescue")
        with pytest.raises(UsageError, match="is empty"):
            kdump.salvage(one, out="")
        for words in ({"segment_bytes": 1}, {"segment_bytes": "1g"}, {"max_batch_bytes": -1}):
            (name,) = words
            with pytest.raises(UsageError, match=f"{name}=.*: expected a whole number, (1024|1) or more"):
                kdump.salvage(one, out=tmp_path / "rescue", **words)
        with pytest.raises(UsageError, match="5 is not a path"):
            kdump.salvage(one, out=5)
        with pytest.raises(UnreadableError, match="there is no segment to salvage"):
            kdump.salvage(tmp_path / "b", out=tmp_path / "rescue", topic="other")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["b"]

    def test_a_topic_that_is_not_there_is_an_error_as_in_the_command(self, tmp_path):
        one = replica(tmp_path / "b", {0: data(0, 2)})
        report = kdump.salvage(one, out=tmp_path / "rescue", topic=("orders", "other"))
        assert (report.status, len(report.partitions), report.damage) == (1, 1, ())
        assert [text for text in report.absent if "other" in text] == list(report.absent) != []
        words = ("salvage", one, "--topic", "orders", "--topic", "other", "--out", tmp_path / "again")
        assert processes.kdump(*words).returncode == 1

    def test_one_process_that_stops_in_the_middle_leaves_no_folder(self, tmp_path, monkeypatch):
        one = replica(tmp_path / "b", {0: data(0, 2)})

        def full(*_, **__):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("kdump.log_salvage.writer.write", full)
        with pytest.raises(UnreadableError, match="cannot be written: No space"):
            kdump.salvage(one, out=tmp_path / "rescue")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["b"]


def test_a_check_of_a_topic_that_is_not_there_is_an_error_as_in_the_command():
    broker = GOLDEN / "brokers" / "4.2.2"
    for check, command in ((kdump.check, "check"), (kdump.verify_index, "verify-index")):
        found = check(broker, topic=["c-none", "c-nnoe"])
        done = processes.kdump(command, broker, "--topic", "c-none", "--topic", "c-nnoe")
        (text,) = found.absent
        assert text.startswith(f"no partition of topic 'c-nnoe' is in {broker}; did you mean 'c-n")
        assert (found.status, done.returncode) == (1, 1)
        assert f"error: {text}\n".encode() in done.stderr
        assert check(broker, topic="c-none").absent == ()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ({"offset": (5, 3)}, "offset=(5, 3): the range ends before it begins"),
        ({"since": 5, "until": 5}, "since=5 is not before until=5"),
        ({"type": "datum"}, "'datum' is not a type of records: use data, control, tombstone"),
        ({"type": ["data", "x"]}, "'x' is not a type of records: use data, control, tombstone"),
        ({"partition": "0"}, "'0' is not a number: use an integer or several integers"),
        ({"partition": [0, "1"]}, "[0, '1'] is not a number: use an integer or several integers"),
        ({"topic": b"one"}, "b'one' is not a topic: topics are text"),
        ({"limit": "3"}, "limit='3': expected a whole number, 0 or more"),
        ({"grep": 5}, "grep=5 is not a regular expression"),
        ({"grep": "a{99999999999999999999}"}, "grep 'a{99999999999999999999}': the repetition number is too large"),
        ({"on_error": "x"}, "on_error='x': expected one of 'stop', 'skip', 'resync'"),
        ({"limit": 1.5}, "limit=1.5: expected a whole number, 0 or more"),
        ({"limit": -1}, "limit=-1: expected a whole number, 0 or more"),
        ({"epoch": "3"}, "'3' is not a number: use an integer or several integers"),
        ({"producer_id": None}, "None is not a number: use an integer or several integers"),
        ({"offset": "3..9"}, "offset='3..9': expected a number, or a pair such as (3, 9)"),
        ({"offset": (1, 2, 3)}, "offset=(1, 2, 3): expected a number, or a pair such as (3, 9)"),
        ({"offset": 1.5}, "offset=1.5: expected a number, or a pair such as (3, 9)"),
        ({"key": 5}, "expected text or bytes, found 5"),
        ({"key": [b"a", 5]}, "expected text or bytes, found 5"),
        ({"key": "\ud800"}, "'\\ud800' has no UTF-8 form: use bytes"),
        ({"grep": "\ud800"}, "'\\ud800' has no UTF-8 form: use bytes"),
        ({"grep": re.compile("a")}, re.compile("is an expression for text: records are bytes, so use re.compile")),
        ({"header": {"a": 5}}, "expected text or bytes, found 5"),
        ({"header": {5: "a"}}, "expected text or bytes, found 5"),
        ({"header": [("a", "b")]}, "header=[('a', 'b')]: expected a dict of keys and values"),
        ({"type": [["data"]]}, "['data'] is not a type of records: use data, control, tombstone"),
        ({"transactional": "no"}, "transactional='no': expected True, False or None"),
        ({"max_batch_bytes": 0}, "max_batch_bytes=0: expected a whole number, 1 or more"),
        ({"max_batch_bytes": "1g"}, "max_batch_bytes='1g': expected a whole number, 1 or more"),
        ({"remote": 5}, "5 is not a path: use text or a pathlib.Path"),
        ({"remote_keys": [1]}, "remote_keys=[1]: expected a dict of names and files"),
        ({"decode": "auto", "schemas": 5}, "5 is not a path: use text or a pathlib.Path"),
        ({"decode": "auto", "schemas_topic": 5}, "schemas_topic=5: expected text"),
        ({"schema": 5}, "schema=5: expected text"),
        ({"until": 1.5}, "1.5 is not a time: use ms since 1970, ISO 8601, an age (-2h) or a datetime with a zone"),
        ({"since": dt.date(2026, 1, 1)}, re.compile("datetime.date.* is not a time")),
    ],
)
def test_arguments_that_match_nothing_are_refused(words, text):
    with pytest.raises(UsageError, match=text if isinstance(text, re.Pattern) else f"^{re.escape(text)}$"):
        kdump.open(GOLDEN / "brokers" / "4.2.2", **words)


def test_integers_of_numpy_are_taken():
    numpy = pytest.importorskip("numpy")
    broker = GOLDEN / "brokers" / "4.2.2"
    three = kdump.open(broker, topic="multi", partition=numpy.int64(1), offset=numpy.int64(3))
    assert [one.offset for one in three] == [3]
    both = kdump.open(broker, topic="multi", partition=numpy.array([0, 1]), offset=(None, 0))
    assert sorted(one.partition for one in both) == [0, 1]
    assert list(kdump.open(broker, topic="one", since=numpy.int64(1700000000000)))


def test_one_column_needs_no_list(tmp_path):
    pytest.importorskip("pyarrow")
    log = kdump.open(GOLDEN / "brokers" / "4.2.2", topic="one")
    assert log.to_arrow("value").read_all().to_pylist() == [{"value": b"one"}]
    log.to_parquet(tmp_path / "x.parquet", "value")
    with pytest.raises(UsageError, match="exists already: overwrite=True replaces it"):
        log.to_parquet(tmp_path / "x.parquet")


def test_text_and_bytes_are_taken_alike():
    path = GOLDEN / "brokers" / "4.2.2" / "headers-0"
    as_text, as_bytes = ([one.offset for one in kdump.open(path, key=key)] for key in ("k3", b"k3"))
    assert as_text == as_bytes != []
    assert len(list(kdump.open(os.fsencode(path)))) == len(list(kdump.open(path)))
    name = next(iter(kdump.open(path, offset=(3, None)))).headers[0].key
    as_text, as_bytes = ([one.offset for one in kdump.open(path, header={key: None})] for key in (name.decode(), name))
    assert as_text == as_bytes != []


def test_only_paths_are_paths():
    for call in (kdump.open, kdump.check, kdump.scan, lambda one: kdump.diff(GOLDEN, one)):
        with pytest.raises(UsageError, match=r"^5 is not a path: use text or a pathlib\.Path$"):
            call(5)


@pytest.mark.parametrize(
    ("topic", "words"),
    [
        ("c-none", {}),
        ("c-zstd", {}),
        ("c-gzip", {"grep": "a"}),
        ("txn", {"isolation": "read_committed"}),
        ("headers", {"offset": (2, 4)}),
        ("__consumer_offsets", {"decode": "auto", "limit": 20}),
        ("__consumer_offsets", {"decode": "auto", "grep": "eos"}),
    ],
)
def test_records_and_batches_can_be_copied_compared_and_hashed(topic, words):
    log = kdump.open(GOLDEN / "brokers" / "4.2.2", topic=topic, **words)
    records = list(log)
    assert records
    assert len(set(records)) == len(records)
    for copies in (pickle.loads(pickle.dumps(records)), copy.deepcopy(records), list(pickle.loads(pickle.dumps(log)))):
        assert (copies, set(copies)) == (records, set(records))
        assert [one.row() for one in copies] == [one.row() for one in records]
        assert [one.decoded for one in copies] == [one.decoded for one in records]
        assert copies[0].batch.records == records[0].batch.records
    batches = list(log.batches())
    again = pickle.loads(pickle.dumps(batches))
    assert (again, set(again)) == (batches, set(batches))
    assert [(one.raw, one.row(), one.records) for one in again] == [
        (one.raw, one.row(), one.records) for one in batches
    ]


def test_old_records_can_be_copied_and_hashed():
    records = list(kdump.open(GOLDEN / "damaged" / "v1none-trunc5"))
    copies = pickle.loads(pickle.dumps(records))
    assert (copies, set(copies)) == (records, set(records))
    assert [one.row() for one in copies] == [one.row() for one in records] != []


def test_a_copy_of_a_batch_warns_of_damage_in_its_records(tmp_path):
    replica(tmp_path, {0: forge.batch([b"\x7f"])})  # a right checksum, no record
    log = kdump.open(tmp_path)
    (batch,) = log.batches()
    with pytest.warns(kdump.errors.DamageWarning, match="record 1 of 1"):
        assert pickle.loads(pickle.dumps(batch)).records == []
    assert log.damage == []
