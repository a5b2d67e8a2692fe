"""Which groups write most of ``__consumer_offsets``."""

import pytest

from kdump.answers.collector import as_json
from kdump.answers.groups.writers import GroupWriters
from testing import forge
from tests.helpers.asking import ask
from tests.helpers.group_topics import batches, commit_key, commit_value, feed, group_key, write

KEY = commit_key("app")


def writers(folder, ranking, takes=lambda _: True):
    found = GroupWriters(ranking, takes)
    feed(found, folder)
    return [as_json(line) for line in found.answer(0)]


def test_top_counts_what_groups_wrote_even_those_that_are_gone(tmp_path):
    content = batches(
        (KEY, commit_value(5)),
        (commit_key("b"), commit_value(1, metadata="x" * 200)),
        (KEY, commit_value(7)),
        (KEY, None),
        (group_key("app"), None),
    )
    write(tmp_path, content)
    by_bytes, by_commits = writers(tmp_path, "bytes"), writers(tmp_path, "commits")
    assert [(line["kind"], line["rank"], line["groupId"]) for line in by_commits] == [
        ("writer", 1, "app"),
        ("writer", 2, "b"),
    ]
    assert sum(line["bytes"] for line in by_bytes) == len(content)
    app = by_commits[0]
    assert (app["commits"], app["tombstones"], app["groupRecords"]) == (2, 1, 1)


def test_each_record_bears_the_header_of_its_own_batch(tmp_path):
    mine = batches((KEY, commit_value(5)))
    other = (commit_key("b"), commit_value(1))
    theirs = forge.batch(
        [forge.record(*other, offset=delta) for delta in range(3)], base_offset=1, base_timestamp=1_700_000_000_000
    )
    write(tmp_path, mine + theirs)
    assert {line["groupId"]: line["bytes"] for line in writers(tmp_path, "bytes")} == {
        "app": len(mine),
        "b": len(theirs),
    }


@pytest.mark.parametrize(
    ("options", "ranked"),
    [
        ((), [("app", 3), ("b", 1)]),
        (("--topic", "orders"), [("app", 2)]),
        (("--topic", "audit", "--topic", "none"), [("app", 1), ("b", 1)]),
        (("--topic", "audit", "--partition", "7"), [("b", 1)]),
        (("--topic", "audit", "--group", "b"), [("b", 1)]),
        (("--topic", "none"), []),
    ],
)
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_only_commits_for_the_requested_partitions_count(tmp_path, options, ranked, jobs):
    content = batches(
        (KEY, commit_value(5)),
        (KEY, commit_value(7)),
        (commit_key("app", "audit"), commit_value(7)),
        (commit_key("b", "audit", 7), commit_value(1)),
        (group_key("app"), None),
    )
    write(tmp_path, content)
    write(tmp_path, b"", partition=1)
    lines, _ = ask("groups", tmp_path, "--top", "commits", "--jobs", jobs, *options)
    assert [(line["groupId"], line["commits"]) for line in lines] == ranked
    assert {line["groupRecords"] for line in lines} <= ({0} if options else {0, 1})
