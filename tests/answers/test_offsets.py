"""Offsets of partitions, from their files only."""

import gzip
import os

import pytest

from kdump.answers.metadata.cluster_image import ClusterImage
from kdump.answers.offsets import facts_of
from kdump.formats import producer_snapshot, time_index
from kdump.formats.producer_snapshot import ProducerEntry
from kdump.formats.time_index import TimestampOffset
from testing import forge
from testing.processes import kdump, on_a_terminal
from tests.helpers.asking import ask
from tests.helpers.group_topics import batches as group_batches
from tests.helpers.group_topics import commit_key, commit_value
from tests.helpers.log_dirs import checkpoint, replica, write
from tests.helpers.segments import COMMIT, data, marker


def offsets(*args, status=0):
    """Return the only line of ``kdump offsets ARGS``."""
    ((line,), said) = ask("offsets", *args, status=status)
    return line, said


def test_the_offsets_of_a_partition(tmp_path):
    write(
        tmp_path,
        "orders-0",
        {5: data(5, 3, timestamp=100), 8: data(8, timestamp=300) + data(9, 2, timestamp=200)},
        leader_epoch_checkpoint="0\n2\n0 0\n4 6\n",
    )
    checkpoint(tmp_path / "replication-offset-checkpoint", ("orders", 0, 9))
    line, said = offsets(tmp_path)
    assert line == {
        "kind": "offsets", "topic": "orders", "partition": 0, "earliest": 5, "earliestLocal": 5, "latest": 11,
        "highWatermark": 9, "lastStable": 11, "leaderEpoch": 4, "maxTimestampMs": 300, "maxTimestampOffset": 8,
        "byTime": [],
    }  # fmt: skip
    assert said == ""


def test_the_log_start_checkpoint_counts_and_may_lie_below_the_local_log(tmp_path):
    write(tmp_path, "orders-0", {5: data(5, 3)})
    checkpoint(tmp_path / "log-start-offset-checkpoint", ("orders", 0, 6))
    assert [offsets(tmp_path)[0][name] for name in ("earliest", "earliestLocal", "latest")] == [6, 6, 8]
    checkpoint(tmp_path / "log-start-offset-checkpoint", ("orders", 0, 2))
    assert [offsets(tmp_path)[0][name] for name in ("earliest", "earliestLocal", "latest")] == [2, 5, 8]


def test_an_empty_partition_ends_where_its_segment_begins(tmp_path):
    write(tmp_path, "orders-0", {7: b""})
    line, _ = offsets(tmp_path, "--time", "0")
    assert (line["earliest"], line["latest"], line["lastStable"]) == (7, 7, 7)
    assert (line["maxTimestampMs"], line["maxTimestampOffset"]) == (None, None)
    assert line["byTime"] == [{"timeMs": 0, "offset": None, "timestampMs": None}]


def test_an_open_transaction_from_the_log_or_a_snapshot_holds_the_stable_offset_back(tmp_path):
    open_one = data(0, producer=7) + data(1)
    folder = write(tmp_path, "orders-0", {0: open_one, 2: data(2)})
    assert offsets(tmp_path)[0]["lastStable"] == 0
    entry = ProducerEntry(7, 0, 0, 0, 0, 1000, -1, 0)
    snapshot = folder / f"{2:020}.snapshot"
    snapshot.write_bytes(producer_snapshot.encode([entry._replace(current_txn_first_offset=1)]))
    assert offsets(tmp_path)[0]["lastStable"] == 1
    snapshot.write_bytes(snapshot.read_bytes()[:-1])
    line, said = offsets(tmp_path, status=4)
    assert line["lastStable"] == 0
    assert f"{snapshot.name}: byte" in said
    (folder / f"{2:020}.log").write_bytes(data(2) + marker(3, 7, COMMIT))
    snapshot.unlink()
    assert offsets(tmp_path)[0]["lastStable"] == 4


def test_a_snapshot_after_the_end_of_a_cut_log_is_not_used(tmp_path):
    folder = write(tmp_path, "orders-0", {0: data(0, producer=7) + marker(1, 7, COMMIT)[:-30]})
    (folder / f"{2:020}.snapshot").write_bytes(producer_snapshot.encode([]))
    line, said = offsets(tmp_path, status=3)
    assert (line["latest"], line["lastStable"]) == (1, 0)
    assert "not used, because the snapshot ends at offset 2, but the log ends at 1" in said
    assert "the file ends inside a batch" in said


def test_times_are_looked_up_in_records_even_compressed_ones(tmp_path):
    records = [forge.record(None, b"v", offset=n, timestamp=at) for n, at in enumerate((0, 40, 20))]
    packed = forge.batch(
        records, base_timestamp=1000, max_timestamp=1040, attributes=1, payload=gzip.compress(b"".join(records))
    )
    write(tmp_path, "orders-0", {0: packed})
    line, _ = offsets(tmp_path, *(word for time in (999, 1001, 1040, 1041) for word in ("--time", time)))
    assert [(one["offset"], one["timestampMs"]) for one in line["byTime"]] == [
        (0, 1000), (1, 1040), (1, 1040), (None, None),
    ]  # fmt: skip
    assert (line["maxTimestampMs"], line["maxTimestampOffset"]) == (1040, 1)


@pytest.mark.parametrize(("modified", "found"), [(50, 1), (5000, None)])
def test_a_segment_without_index_entries_counts_with_the_time_of_its_file(tmp_path, modified, found):
    folder = write(tmp_path, "orders-0", {0: data(0, timestamp=-1), 1: data(1, timestamp=1000)})
    (folder / f"{0:020}.timeindex").write_bytes(b"")
    os.utime(folder / f"{0:020}.log", (modified / 1000, modified / 1000))
    assert offsets(tmp_path, "--time", "900")[0]["byTime"][0]["offset"] == found


def test_an_index_of_a_closed_segment_chooses_it(tmp_path):
    folder = write(tmp_path, "orders-0", {0: data(0, timestamp=500), 1: data(1, timestamp=1000)})
    index = folder / f"{0:020}.timeindex"
    index.write_bytes(time_index.encode([TimestampOffset(950, 0)], 0))
    assert offsets(tmp_path, "--time", "900")[0]["byTime"][0]["offset"] is None
    index.unlink()
    assert offsets(tmp_path, "--time", "900")[0]["byTime"][0]["offset"] == 1


def test_damage_is_named_and_the_rest_answered(tmp_path):
    broken = bytearray(data(0) + data(1) + data(2))
    broken[-len(data(2)) - 5] ^= 1
    write(tmp_path, "orders-0", {0: bytes(broken)})
    line, said = offsets(tmp_path, status=3)
    assert (line["earliest"], line["latest"]) == (0, 3)
    assert "orders-0/00000000000000000000.log: byte" in said


@pytest.mark.parametrize(
    ("end", "status", "is_damaged"),
    [
        (data(1)[:-1] + b"\xff", 3, True),  # a wrong checksum
        (b"\xff" * 90, 3, True),
        (data(1)[:-5], 3, True),
        (b"\xff" * 90 + data(1), 3, False),
        (bytes(90), 0, False),
        (b"", 0, False),
    ],
)
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_latest_is_not_certain_after_damage_at_the_end(tmp_path, end, status, is_damaged, jobs):
    write(tmp_path, "orders-0", {0: data(0) + end})
    write(tmp_path, "orders-1", {0: data(0)})
    _, said = ask("offsets", tmp_path, "--jobs", jobs, status=status)
    assert ("orders-0: damage follows the last valid batch: the log may have had higher offsets" in said) == is_damaged
    assert "orders-1" not in said


def test_the_base_offset_of_a_later_segment_is_certain(tmp_path):
    write(tmp_path, "orders-0", {0: data(0) + b"\xff" * 90, 9: b""})
    line, said = offsets(tmp_path, status=3)
    assert line["latest"] == 9
    assert "higher offsets" not in said


def test_topics_and_processes_change_nothing_but_the_choice(tmp_path):
    for number in range(4):
        write(tmp_path, f"orders-{number}", {0: data(0, 1 + number)})
    write(tmp_path, "audit-0", {0: data(0)})
    alone, _ = ask("offsets", tmp_path)
    assert ask("offsets", tmp_path, "--jobs", "2")[0] == alone
    assert [line["topic"] for line in ask("offsets", tmp_path, "--topic", "audit")[0]] == ["audit"]
    assert [line["partition"] for line in ask("offsets", tmp_path, "--partition", "1-2")[0]] == [1, 2]


@pytest.mark.parametrize("form", ["table", "jsonl", "csv"])
def test_the_name_of_a_topic_steers_no_terminal(tmp_path, form):
    write(tmp_path, "a\x1b]0;x\x07b-0", {0: data(0)})
    _, shown = on_a_terminal(kdump, "offsets", tmp_path, "-o", form)
    assert b"\x1b]" not in shown
    assert b"\x07" not in shown
    assert b"]0;x" in shown
    piped = kdump("offsets", tmp_path, "-o", form).stdout
    assert (b"\x07" in piped) == (form == "csv")


@pytest.mark.parametrize(("timestamp", "shown"), [(1 << 62, "4611686018427387904 ms"), (-1, "-"), (0, "1970-01-01T")])
def test_a_newest_timestamp_beyond_the_calendar_is_shown_as_a_number(tmp_path, timestamp, shown):
    records = [forge.record(b"k", b"v", timestamp=0)]
    write(tmp_path, "orders-0", {0: forge.batch(records, base_timestamp=timestamp, max_timestamp=timestamp)})
    row = kdump("offsets", tmp_path).stdout.decode().splitlines()[2]
    assert f" {shown}" in row


@pytest.mark.parametrize(("value", "remote"), [("true", True), (" TRUE", True), ("false", False), ("on", False)])
def test_a_topic_has_remote_storage_if_kafka_reads_its_config_as_true(value, remote):
    image = ClusterImage()
    image.handlers["TopicRecord"]({"name": "orders", "topicId": b"1" * 16})
    fields = {"resourceType": 2, "resourceName": "orders", "name": "remote.storage.enable", "value": value}
    image.handlers["ConfigRecord"](fields)
    assert facts_of(image).remote == {"orders": remote}


@pytest.mark.parametrize("command", ["offsets", "groups"])
def test_a_leader_without_new_records_is_newer_than_a_longer_old_replica(tmp_path, command):
    """LeaderEpochFileCache.assign: a new leader writes its epoch into the checkpoint before it appends a record."""
    old = b"".join(data(n, leader_epoch=3) for n in range(12))
    empty = replica(tmp_path / "1", {20: b""}, epochs={3: 0, 5: 20}).parent
    idle = replica(tmp_path / "1", {0: data(0, 10, leader_epoch=3)}, name="idle-0", epochs={3: 0, 5: 10}).parent
    replica(tmp_path / "2", {0: old}, epochs={3: 0})
    replica(tmp_path / "2", {0: old}, name="idle-0", epochs={3: 0})
    lost = replica(tmp_path / "3", {0: data(0, 9, leader_epoch=4)}, name="idle-0", epochs={3: 0, 9: 10}).parent
    assert empty == idle
    commits = [(commit_key("app", name), commit_value(1)) for name in ("orders", "idle")]
    replica(tmp_path / "1", {0: group_batches(*commits)}, name="__consumer_offsets-0")
    name = {"offsets": "latest", "groups": "logEndOffset"}[command]
    for folders in ([idle, tmp_path / "2"], [tmp_path / "2", idle]):
        lines, _ = ask(command, *folders)
        assert {line["topic"]: line[name] for line in lines if name in line and line["topic"][0] != "_"} == {
            "orders": 20, "idle": 10,
        }  # fmt: skip
    lines, _ = ask(command, tmp_path / "2", lost, tmp_path / "1", "--topic", "idle")
    assert [line[name] for line in lines if name in line] == [10]  # the epoch 9 began after the end of the third log
