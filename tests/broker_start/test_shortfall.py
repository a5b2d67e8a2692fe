"""Partitions that lack all records, in log dirs of real brokers with one stated change each (golden/verdict.tar.xz)."""

import json
import shutil

import pytest

from testing.processes import kdump

ABSENT = "d1/orders-0: orders-0 is assigned to broker 1 in d1, but has no folder: 10,000 records are missing"
EMPTY = "d1/orders-0: 10,000 records are missing: the log ends at offset 0, but offsets below 10000 were written"
TRUTH = {
    "rmdir": (["d1"], [ABSENT]),
    "rmlog": (["d1"], [EMPTY]),
    "lost-disk": (
        ["d1", "d2"],
        [
            "d2/metrics-0: metrics-0 is assigned to broker 1 in d2, but has no folder: 5,000 records are missing",
            "d1/sales-2: sales-2 is assigned to broker 1 in d1, but has no folder: 2,000 records are missing",
        ],
    ),
    "nopm-after": (["d1"], ["d1/orders-1: 9,000 records are missing: the log ends at offset 0"]),
    "swapclean": (["d1"], []),
    "baksnap": (["d1"], []),
}


def said(place, *args):
    """Return the lines on standard error about missing records, and all of standard error."""
    text = kdump(*args, cwd=place).stderr.decode()
    return [line.removeprefix("warning: ") for line in text.splitlines() if "records are missing" in line], text


def holds(lines, wanted):
    return len(lines) == len(wanted) and all(line.startswith(text) for line, text in zip(lines, wanted, strict=True))


@pytest.mark.parametrize("case", TRUTH)
def test_du_and_salvage_report_what_is_missing(cases, tmp_path, case):
    paths, wanted = TRUTH[case]
    place = cases / "verdict" / case
    assert holds(said(place, "du", "-q", *paths)[0], wanted)
    lines, text = said(place, "salvage", *paths, "--out", tmp_path / "out")
    assert holds(lines, wanted)
    assert ("no offset is missing" in text) == (not wanted)
    lost = "partition of these log dirs has" if len(wanted) == 1 else "partitions of these log dirs have"
    assert f"{len(wanted)} {lost} lost all records" in text or not wanted


def test_the_node_id_may_be_missing_in_one_log_dir(cases, tmp_path):
    place = tmp_path / "lost-disk"
    shutil.copytree(cases / "verdict" / "lost-disk", place)
    (place / "d1" / "meta.properties").write_bytes(b"")
    assert holds(said(place, "du", "-q", "d1", "d2")[0], TRUTH["lost-disk"][1][:1])


def test_a_stray_folder_that_holds_the_records_is_named(cases):
    (line,) = said(cases / "verdict" / "nopm-after", "du", "-q", "d1")[0]
    assert "committed by a group: 9000" in line
    assert line.endswith("d1/orders-1.3b0a0fd09d4e4bfbb661f39907a3cefa-stray has records of the partition")


def test_a_stray_folder_of_another_topic_id_holds_no_records_of_the_partition(cases, tmp_path):
    place = tmp_path / "nopm-after"
    shutil.copytree(cases / "verdict" / "nopm-after", place)
    (stray,) = place.glob("d1/orders-1.*-stray")
    (stray / "partition.metadata").write_text(f"version: 0\ntopic_id: {'A' * 21}Q")
    (line,) = said(place, "du", "-q", "d1")[0]
    assert "committed by a group: 9000" in line
    assert "has records of the partition" not in line


def test_explain_reports_the_partition_that_is_asked_for(cases):
    place = cases / "verdict" / "rmlog"
    assert holds(said(place, "explain", "orders-0@500", "--in", "d1")[0], [EMPTY])
    assert said(place, "explain", "orders-1@500", "--in", "d1")[0] == []


def test_diff_reports_each_side(cases):
    place = cases / "verdict"
    lines, _ = said(place, "diff", "rmdir/d1", "swapclean/d1")
    assert holds(lines, [f"rmdir/{ABSENT.replace(' in d1,', ' in rmdir/d1,')}"])


def test_only_wanted_partitions_count(cases):
    place = cases / "verdict" / "rmdir"
    assert said(place, "du", "-q", "d1", "--topic", "prices")[0] == []
    assert holds(said(place, "du", "-q", "d1", "--topic", "orders")[0], [ABSENT])


def test_a_partition_folder_is_no_log_dir(cases):
    """The rest of its log dir is unknown."""
    assert said(cases / "verdict" / "rmdir", "du", "-q", "d1/orders-1")[0] == []


def test_a_log_dir_that_was_not_given_leaves_its_partitions_open(cases):
    lines, _ = said(cases / "verdict" / "lost-disk", "du", "-q", "d1")
    assert holds(lines, TRUTH["lost-disk"][1][1:])


def test_another_copy_in_the_paths_has_the_records(cases, tmp_path):
    place = cases / "verdict"
    lines, text = said(place, "salvage", "rmdir/d1", "swapclean/d1", "--out", tmp_path / "out")
    assert len(lines) == 1
    assert lines[0].endswith("another folder in these paths has records of the partition")
    assert "lost all records" not in text


def test_an_emptied_log_whose_segment_has_the_end_in_its_name_lacks_nothing(cases, tmp_path):
    """Retention leaves such a log."""
    place = tmp_path / "rmlog"
    shutil.copytree(cases / "verdict" / "rmlog", place)
    (place / "d1" / "orders-0" / f"{10000:020}.log").touch()
    assert said(place, "du", "-q", "d1")[0] == []


@pytest.mark.parametrize("case", ["client-without-producer", "follower-of-compacted", "three-clean-stops"])
def test_healthy_log_dirs_lack_nothing(cases, case):
    text = said(cases / "healthy" / case, "du", "-q", ".")[1]
    assert text == ""


def test_check_counts_offsets_that_a_group_has_committed(cases, tmp_path):
    """The checkpoints are lost with the log."""
    place = tmp_path / "nopm-after"
    shutil.copytree(cases / "verdict" / "nopm-after", place)
    for name in place.glob("d1/orders-1.*"):
        shutil.rmtree(name)
    lines = [json.loads(line) for line in kdump("check", "--json", "d1", cwd=place).stdout.splitlines()]
    found = [line for line in lines if line["kind"] == "finding" and line["missing"]]
    assert [(line["missing"], line["file"]) for line in found] == [(9000, "d1/orders-1")]
    assert "committed by a group: 9000" in found[0]["text"]


def test_groups_of_another_cluster_prove_no_records(cases, tmp_path):
    place = tmp_path / "nopm-after"
    shutil.copytree(cases / "verdict" / "nopm-after", place)
    (place / "d2").mkdir()
    for folder in place.glob("d1/orders-1.*"):
        shutil.rmtree(folder)
    for folder in place.glob("d1/__consumer_offsets-*"):
        folder.rename(place / "d2" / folder.name)
    ids = (place / "d1" / "meta.properties").read_text()
    (place / "d2" / "meta.properties").write_text(ids.replace("cluster.id=", "cluster.id=A"))
    assert b"committed by a group" not in kdump("check", "d1", "d2", cwd=place).stdout
    (place / "d2" / "meta.properties").write_text(ids)
    assert b"committed by a group: 9000" in kdump("check", "d1", "d2", cwd=place).stdout
