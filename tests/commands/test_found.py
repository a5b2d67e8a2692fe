"""Answers that trials found wrong, on the same files (``golden/found.tar.xz``)."""

import json
import shlex
import tarfile

import pytest

from testing import GOLDEN
from testing.processes import kdump


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    place = tmp_path_factory.mktemp("cases")
    with tarfile.open(GOLDEN / "found.tar.xz") as archive:
        archive.extractall(place, filter="tar")
    return place / "found"


def lines(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("case", "ends"), [("diff-torn-left", {220, 223}), ("diff-one-batch", {0, 5000})], ids=["several", "one"]
)
@pytest.mark.parametrize("order", ["ab", "ba"])
def test_a_truncated_replica_lags_on_either_side(cases, case, ends, order):
    done = kdump("diff", *(f"{case}/{side}" for side in order), "-o", "jsonl", cwd=cases)
    (pair,) = [line for line in lines(done) if line["kind"] == "pair"]
    assert {pair["endLeft"], pair["endRight"]} == ends
    assert pair["onlyLeft"] + pair["onlyRight"] == max(ends) - min(ends)
    assert (pair["verdict"], pair["differ"]) == ("behind", 0)
    assert pair["endLeft" if order == "ab" else "endRight"] == min(ends)


def test_of_two_writers_the_later_leader_epoch_wins(cases, tmp_path):
    kdump("salvage", "two-writers/d1", "--out", tmp_path / "out", cwd=cases)
    found = lines(kdump("dump", tmp_path / "out" / "logs", "-o", "jsonl"))
    assert {line["leaderEpoch"] for line in found if 10 <= line["offset"] < 20} == {4}
    said = kdump("explain", "t-0@12", "--in", "two-writers/d1", cwd=cases).stdout
    assert b"(leader epoch 4) holds the record" in said
    assert b"(leader epoch 3) holds a different record" in said


def test_an_overview_of_two_writers_names_the_command_that_compares_them(cases):
    done = kdump("two-writers", cwd=cases)
    (line,) = [line for line in done.stdout.decode().splitlines() if "two brokers wrote this log" in line]
    command = shlex.split(line[line.index("kdump explain") : line.index(" shows each of these records")])
    assert command[2:] == ["t-0@10", "--in", "two-writers/d1/t-0"]
    assert b"(leader epoch 3) holds a different record" in kdump(*command[1:], cwd=cases).stdout
    advice = [finding["advice"] for finding in lines(kdump("check", "two-writers", "-o", "jsonl", cwd=cases))[:-1]]
    assert len([text for text in advice if "two brokers" in text]) == 1


def test_a_partition_twice_in_a_broker_names_the_comparison(cases):
    said = kdump("jbod-twice/d1", "jbod-twice/d2", cwd=cases).stdout.decode()
    words = shlex.split(said.partition("\nThis shows which folder lacks records:\n")[2].partition("\n")[0])
    assert words == ["kdump", "diff", "jbod-twice/d1", "jbod-twice/d2", "--topic", "metrics"]
    assert kdump(*words[1:], cwd=cases).returncode == 0


def test_a_flipped_bit_that_the_cleaner_does_not_read_stops_no_cleaning(cases):
    (line,) = [
        line
        for line in lines(kdump("compaction", "compaction-bit-rot/d1", "--topic", "prices", "-o", "jsonl", cwd=cases))
        if line["kind"] == "partition"
    ]
    assert line["damage"] is None
    assert line["superseded"] > 0


@pytest.mark.parametrize(
    ("paths", "topic", "count", "named"),
    [
        (["two-replicas/b1", "two-replicas/b2"], "c-none", 223, "two-replicas/b2/c-none-0"),
        (["jbod-twice/d1", "jbod-twice/d2"], "metrics", 5000, "jbod-twice/d2/metrics-0"),
        (["two-replicas/b1.tgz", "two-replicas/b2.tgz"], "c-none", 223, "two-replicas/b2.tgz:b2/c-none-0"),
    ],
)
def test_a_partition_is_counted_once(cases, paths, topic, count, named):
    done = kdump("dump", *paths, "--topic", topic, "--count", cwd=cases)
    assert int(done.stdout) == count
    assert named.encode() in done.stderr
    assert int(kdump("dump", *paths, "--topic", topic, "--count", "--every-replica", cwd=cases).stdout) == 2 * count


def test_a_broker_does_not_start_with_foreign_folders(cases):
    done = kdump("check", "lost+found-dir/d1", "lost+found-dir/d2", cwd=cases)
    assert done.returncode == 3
    assert b"DO NOT START broker 1" in done.stdout


def test_an_empty_segment_keeps_the_end_of_the_log(cases, tmp_path):
    done = kdump("salvage", ".", "--out", tmp_path / "out", cwd=cases / "salvage-empty-segment")
    assert done.returncode == 0
    folder = tmp_path / "out" / "logs" / "kafka-81748"
    assert (folder / f"{60:020}.log").read_bytes() == b""
    (line,) = lines(kdump("offsets", folder, "-o", "jsonl"))
    assert (line["earliest"], line["latest"]) == (60, 60)


@pytest.mark.parametrize("remote", [False, True])
def test_tiered_offsets_without_a_finished_copy_are_not_visible(cases, remote):
    tiered = GOLDEN / "tiered"
    more = ["--remote", tiered / "store"] if remote else []
    keys = [f"--remote-key={name}={tiered / 'private.pem'}" for name in ("key1",)] if remote else []
    done = kdump("explain", "orders-0@50", "--in", "tier820/d1", *more, *keys, "-o", "jsonl", cwd=cases)
    (line,) = [line for line in lines(done) if line["kind"] == "explanation"]
    assert line["reason"] != "visible", line


def test_an_archive_of_archives_is_reported_with_the_path_that_reads_it(cases):
    for command in ("check", "report", "dump"):
        done = kdump(command, "outer.tgz", cwd=cases / "archives")
        assert done.returncode == 1
        text = (
            b"error: outer.tgz: the archive holds no segment\n"
            b"hint: name the archives inside as paths: outer.tgz:bundle.tar.gz\n"
        )
        assert done.stderr == text, command


BUNDLES = ["bundle.zip", "bundle.tar.gz", "bundle.tar.xz", "bundle.tar.bz2", "outer.tgz:bundle.tar.gz"]


@pytest.mark.parametrize("bundle", BUNDLES)
def test_an_archive_is_read_in_each_format_and_its_advice_runs(cases, tmp_path, bundle):
    done = kdump("check", bundle, cwd=cases / "archives")
    assert done.returncode == 3
    assert b"31 segments, 817 batches, 9.4 MiB (9,837,370 bytes) of log" in done.stdout
    advice = f"kdump salvage {bundle}:d1/sales-0 --out salvaged"
    assert f"  {advice}" in done.stdout.decode().splitlines()
    words = [str(tmp_path / word) if word == "salvaged" else word for word in shlex.split(advice)[1:]]
    assert kdump(*words, cwd=cases / "archives").returncode == 3  # damage was met
    assert list((tmp_path / "salvaged").rglob("*.log"))
    assert kdump("dump", bundle, "--count", cwd=cases / "archives").stdout == b"23765\n"


def test_an_archive_of_archives_names_them(cases):
    done = kdump("check", "outer.tgz", cwd=cases / "archives")
    assert done.returncode == 1
    assert b"name the archives inside as paths: outer.tgz:bundle.tar.gz" in done.stderr


@pytest.mark.parametrize(("offset", "status"), [("3", 3), ("0..9", 3)])
def test_a_record_after_damage_that_a_fetch_cannot_pass_is_not_visible(cases, offset, status):
    done = kdump("explain", f"sales-0@{offset}", "--in", "bundle.zip:d1", "-o", "jsonl", cwd=cases / "archives")
    (line,) = [line for line in lines(done) if line["kind"] == "explanation"]
    assert (line["reason"], line["readUncommitted"], line["readCommitted"]) == ("damaged", False, False), line
    assert "kdump salvage" in line["because"]
    assert done.returncode == status
