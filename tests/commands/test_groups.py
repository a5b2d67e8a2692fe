"""``kdump groups`` as a user calls it."""

import json

import pytest

from testing import forge
from testing.processes import kdump
from tests.helpers.group_topics import (
    batches,
    commit_key,
    commit_value,
    commit_value_4,
    group_key,
    group_value,
    share_key,
    snapshot_value,
    write,
)
from tests.helpers.metadata_records import metadata_value
from tests.helpers.segments import data


def log_dir(tmp_path):
    """Groups of several partitions: plain, odd, pending, expired, share."""
    write(tmp_path, batches((commit_key("app"), commit_value(5)), (group_key("app"), group_value())))
    odd = (commit_key('with "quote", and\u202e', "orders", 1), commit_value(2))
    old = (commit_key("old"), commit_value(1, expire=1))
    write(tmp_path, batches(odd, old) + batches((commit_key("txn"), commit_value(9)), first=2, producer=7), partition=1)
    write(tmp_path, batches((share_key(0, "shared"), snapshot_value(3))), topic="__share_group_state")
    return write(tmp_path, data(0, 10), topic="orders")


def lines(*args):
    done = kdump("groups", *args, "-o", "jsonl", "--at", "1970-01-02")
    assert (done.returncode, done.stderr) == (0, b"")
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_lines_are_the_same_whatever_the_number_of_processes(tmp_path):
    alone = lines(log_dir(tmp_path), "--history")
    assert alone == lines(tmp_path, "--history", "--jobs", "2")
    assert {line["kind"] for line in alone} == {"group", "offset", "commit"}
    (app,) = [line for line in alone if line["kind"] == "offset" and line["groupId"] == "app"]
    assert (app["offset"], app["lag"], app["leaderEpoch"]) == (5, 5, 4)


def test_groups_topics_and_partitions_are_chosen(tmp_path):
    log_dir(tmp_path)
    assert {line["groupId"] for line in lines(tmp_path, "--group", "a*", "--group", "txn")} == {"app", "txn"}
    found = [line for line in lines(tmp_path, "--topic", "orders", "--partition", "1") if line["kind"] == "offset"]
    assert [line["partition"] for line in found] == [1]
    listed = lines(tmp_path, "--topic", "none,orders")
    assert listed == lines(tmp_path, "--topic", "none", "--topic", "orders")
    assert {line["topic"] for line in listed if line["kind"] == "offset"} == {"orders"}


def test_the_file_for_a_reset_leaves_out_what_does_not_count(tmp_path):
    done = kdump("groups", log_dir(tmp_path), "-o", "reset-csv", "--at", "1970-01-02")
    assert done.returncode == 0
    assert done.stdout.decode() == 'app,orders,0,5\nold,orders,0,1\n"with ""quote"", and\u202e",orders,1,2\n'
    said = done.stderr.decode()
    assert said.splitlines() == [
        "note: txn: orders-0 left out: the commit of offset 9 is in an open transaction (producer 7)",
        "note: shared: AAECAwQFBgcICQoLDA0ODw-0 left out: kafka-consumer-groups.sh cannot reset share groups",
    ]


def test_no_line_of_the_file_for_a_reset_is_one_that_the_tool_refuses(tmp_path):
    keys = [commit_key(group, "orders", number) for group, number in (("", 0), ("two\nlines", 0), ("two\nlines", 1))]
    done = kdump("groups", write(tmp_path, batches(*((key, commit_value(5)) for key in keys))), "-o", "reset-csv")
    assert done.stdout == b""
    refused = "kafka-consumer-groups.sh refuses a group id that is empty or has a line break"
    assert done.stderr.decode().splitlines() == [
        f'note: "": orders-0 left out: {refused}',
        f"note: two\\x0alines: orders-0 and 1 more left out: {refused}",
    ]


@pytest.mark.parametrize(
    "options",
    [["--top", "bytes", "--history"], ["--top", "bytes", "-o", "reset-csv"], ["--history", "-o", "reset-csv"]],
)
def test_options_that_do_not_go_together_are_wrong_usage(tmp_path, options):
    done = kdump("groups", tmp_path, *options)
    assert done.returncode == 2
    assert b"cannot be combined with" in done.stderr


def test_paths_without_groups_are_said(tmp_path):
    done = kdump("groups", write(tmp_path, data(0, 10), topic="orders"))
    assert (done.returncode, done.stdout) == (0, b"0 groups\n")
    assert b"these paths have no partition of __consumer_offsets" in done.stderr
    done = kdump("groups", tmp_path, "-o", "reset-csv")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"these paths have no partition of __consumer_offsets" in done.stderr


def test_tables_say_what_matters(tmp_path):
    (tmp_path / "b").mkdir()
    log_dir(tmp_path)
    write(tmp_path, batches((commit_key("new"), commit_value_4(1, b"\1" * 16))), partition=2)
    write(tmp_path, data(0, 8) + data(8, producer=9), topic="orders")
    text = kdump("groups", tmp_path, "--history", "--at", "1970-01-02").stdout.decode()
    assert "5 groups" in text
    assert "pending in a transaction of producer 7" in text
    assert "read_committed consumers stop at 8" in text
    assert "expired" in text
    top = kdump("groups", tmp_path, "--top", "bytes").stdout.decode()
    assert "5 groups wrote into __consumer_offsets" in top


def test_damage_is_said_with_exit_status_3(tmp_path):
    content = bytearray(batches((commit_key("app"), commit_value(5)), (commit_key("app"), commit_value(6))))
    content[70] ^= 1
    done = kdump("groups", write(tmp_path, bytes(content)), "-o", "jsonl")
    assert done.returncode == 3
    assert b"__consumer_offsets-0" in done.stderr
    kinds = {json.loads(line)["kind"] for line in done.stdout.splitlines()}
    assert kinds == {"group", "offset", "missing"}


def test_a_wrong_length_of_time_is_wrong_usage(tmp_path):
    done = kdump("groups", tmp_path, "--offsets-retention", "soon")
    assert done.returncode == 2
    assert b"not a length of time" in done.stderr


def test_absent_partitions_of_the_groups_are_said(tmp_path):
    write(log_dir(tmp_path), data(0, 0), topic="__consumer_offsets", partition=4)
    done = kdump("groups", tmp_path, "--group", "app", "-o", "jsonl")
    assert done.returncode == 0
    said = b"3 of at least 5 partitions of __consumer_offsets are in these paths (absent: 2, 3). Groups of the absent"
    assert said in done.stderr
    assert kdump("groups", tmp_path, "-o", "reset-csv").returncode == 1


def test_a_group_whose_partition_is_absent_cannot_be_read(tmp_path):
    one = {"topicId": b"1" * 16}
    values = [metadata_value("TopicRecord", name="__consumer_offsets", **one)]
    values += [metadata_value("PartitionRecord", partitionId=n, replicas=[1], isr=[1], **one) for n in range(5)]
    records = [forge.record(None, value, offset=number) for number, value in enumerate(values)]
    write(log_dir(tmp_path), forge.batch(records), topic="__cluster_metadata")
    done = kdump("groups", tmp_path, "--group", "app", "--group", "billing")
    assert done.returncode == 1
    assert b"2 of 5 partitions of __consumer_offsets are in these paths" in done.stderr
    assert b"__consumer_offsets-4: the partition of group 'billing' is not in these paths" in done.stderr


def test_a_group_that_is_not_there_is_said(tmp_path):
    done = kdump("groups", log_dir(tmp_path), "--group", "ap", "--group", "a*")
    assert (done.returncode, done.stderr.count(b"there is no group")) == (0, 1)
    assert b"there is no group 'ap' in these paths; give the exact id" in done.stderr


def test_an_offset_beyond_the_log_end_is_remarked(tmp_path):
    write(tmp_path, batches((commit_key("app"), commit_value(25)), (commit_key("even"), commit_value(10))))
    done = kdump("groups", write(tmp_path, data(0, 10), topic="orders"))
    beyond = next(line for line in done.stdout.decode().splitlines() if line.startswith("app ") and "orders" in line)
    assert beyond.split()[3:6] == ["25", "10", "-15"]
    assert beyond.endswith("beyond the log end")
    assert done.stdout.count(b"beyond the log end") == 1


def test_a_group_that_reads_a_coordinators_topic_has_a_lag(tmp_path):
    write(
        tmp_path,
        batches(
            (commit_key("monitor", "__consumer_offsets", 0), commit_value(0)), (group_key("monitor"), group_value())
        ),
    )
    (found,) = [line for line in lines(tmp_path) if line["kind"] == "offset"]
    assert (found["topic"], found["offset"], found["logEndOffset"], found["lag"]) == ("__consumer_offsets", 0, 2, 2)
