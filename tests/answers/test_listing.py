"""``kdump ls`` and ``kdump.ls``: partitions by name, or segments."""

import json

import pytest

import kdump
from kdump.printers.answer_lines import csv_line
from testing import GOLDEN
from testing.processes import kdump as run

BROKER = GOLDEN / "brokers" / "4.2.2"


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize(
    ("paths", "options", "words"),
    [
        ([BROKER], {}, []),
        ([BROKER], {"segments": True}, ["--segments"]),
        ([BROKER], {"topic": "c-*"}, ["--topic", "c-*"]),
        ([BROKER / "one-0"], {}, []),
        ([BROKER / "one-0", BROKER], {}, []),
        ([GOLDEN / "brokers" / "2.8.2"], {"segments": True, "partition": 0}, ["--segments", "--partition", "0"]),
    ],
)
def test_a_list_is_the_same_from_python_and_by_any_number_of_processes(paths, options, words, jobs):
    printed = run("ls", *paths, *words, "-o", "jsonl", "--jobs", jobs, check=True).stdout.splitlines()
    assert [json.loads(line) for line in printed] == kdump.ls(*paths, **options).rows()


def test_segments_are_listed_where_every_path_is_a_partition_folder():
    def kinds(*paths):
        return {line.kind for line in kdump.ls(*paths)}

    assert kinds(BROKER / "one-0", BROKER / "multi-1") == {"segmentSpan"}
    assert kinds(BROKER / "one-0", BROKER) == kinds(BROKER) == {"partition"}
    assert kinds(BROKER / "_logdir") == set()


def test_a_cell_with_a_carriage_return_is_quoted_in_csv():
    assert csv_line(["a\rb", "c"]) == b'"a\rb",c\n'
