"""Which partition coordinates an id."""

import json

import pytest

from kdump.answers.coordinator import topic_partitions
from testing.processes import kdump
from tests.helpers.asking import ask
from tests.helpers.log_dirs import write


def partition(*args):
    ((line,), _) = ask("coordinator", *args)
    assert line["kind"] == "coordinator"
    return line["partition"]


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("my-group", "group", 12), ("connect-cluster", "group", 13), ("grüße", "transaction", 23),
        ("😀-group", "group", 43), ("polygenelubricants", "transaction", 0),
        ("g:AAAAAAAAAAEAAAAAAAAAAg:3", "share", 28),
    ],
)  # fmt: skip
def test_ids_of_known_partitions(text, kind, expected):
    assert partition(text, "--type", kind) == expected


def test_options_end_with_two_dashes():
    done = kdump("coordinator", "--type", "group", "--partitions", "1", "-o", "jsonl", "--", "--x", "-q")
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == ["--x", "-q"]


def test_folders_give_the_number_of_partitions(tmp_path):
    for number in range(7):
        write(tmp_path, f"__consumer_offsets-{number}", {0: b""})
    assert partition("my-group", "--type", "group", "--in", tmp_path) == partition(
        "my-group", "--type", "group", "--partitions", "7"
    )
    (tmp_path / "__consumer_offsets-3" / f"{0:020}.log").unlink()
    done = kdump("coordinator", "my-group", "--type", "group", "--in", tmp_path)
    assert done.returncode == 2
    assert b"__consumer_offsets-3 is not in these paths" in done.stderr
    assert kdump("coordinator", "tx", "--type", "transaction", "--in", tmp_path).returncode == 2


def test_the_table_names_the_partition():
    done = kdump("coordinator", "my-group", "--type", "group")
    assert "my-group  __consumer_offsets-12" in done.stdout.decode()


def test_a_share_id_of_another_form_is_named():
    _, said = ask("coordinator", "group:orders:3", "--type", "share")
    assert said.startswith("note: 'group:orders:3' is not a share partition: write it as group:topicId:partition")
    assert ask("coordinator", "a:b:AAAAAAAAAAEAAAAAAAAAAg:3", "--type", "share")[1] == ""


@pytest.mark.parametrize(
    ("here", "count", "expected", "is_whole"),
    [
        ((), None, (0, ()), False),
        ((), 2, (2, (0, 1)), False),
        ((0, 1, None), None, (2, ()), True),
        ((3, 1), None, (4, (0, 2)), False),
        ((0, 1), 3, (3, (2,)), False),
        ((0, 5), 1, (1, ()), True),
    ],
)
def test_the_partitions_of_a_topic_that_are_not_there(here, count, expected, is_whole):
    found = topic_partitions(here, count)
    assert ((found.whole, tuple(found.absent())), found.is_whole) == (expected, is_whole)
    assert found.missing == len(expected[1])


def test_billions_of_missing_partitions_are_only_counted():
    found = topic_partitions([2_000_000_000])
    assert (found.missing, next(found.absent()), found.is_whole) == (2_000_000_000, 0, False)
