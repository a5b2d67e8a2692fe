"""kdump reads one of several replicas: no partition is left out because one replica is not readable."""

import json
import os

import pytest

from kdump.cli import main
from kdump.errors import UnreadableError
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_dirs.local import LocalFile
from kdump.log_reader import replicas
from testing import forge
from tests.helpers.log_dirs import replica
from tests.helpers.segments import data
from tests.log_dirs.test_tiered import local


def test_a_replica_that_cannot_be_read_is_not_left_out_for_a_shorter_one(monkeypatch, capfd, tmp_path):
    local(tmp_path / "broker1", 0, 10, end=20)
    local(tmp_path / "broker2", 0, end=10)
    closed = tmp_path / "broker1" / "t-0" / f"{10:020}.log"
    plain = LocalFile.read

    def read(source, position, size):
        if source.name == str(closed):
            raise UnreadableError(source.name, f"byte {position}: Input/output error")
        return plain(source, position, size)

    monkeypatch.setattr(LocalFile, "read", read)
    paths = [str(tmp_path / name) for name in ("broker2", "broker1")]
    monkeypatch.setattr("sys.argv", ["kdump", "dump", *paths, "-o", "jsonl", "--jobs", "1"])
    status, (out, said) = main(), capfd.readouterr()
    assert status == 1
    lines = [json.loads(line) for line in out.splitlines()]
    assert [(line["file"].split("/")[-3], line["offset"]) for line in lines if line["kind"] == "record"] == [
        ("broker1", offset) for offset in range(10)
    ]
    assert f"{closed}: byte 0: Input/output error" in said
    assert "1 folder is left out, because another replica of the partition has the newest leader epoch" in said


def test_an_epoch_without_records_makes_a_replica_the_newest(tmp_path):
    kept = replica(tmp_path / "1", {0: data(0, 10, leader_epoch=3)}, epochs={3: 0, 5: 10})
    replica(tmp_path / "2", {0: data(0, 12, leader_epoch=3)}, epochs={3: 0})
    assert [folders for folders, _ in both_ways([str(tmp_path)])] == [[str(kept)]] * 2


OPTION = "--every-replica"


def both_ways(paths, **wanted):
    """Return what is read of each partition once, listed at once and one by one, with the notes."""
    found = []
    for turn in (False, True):
        notes = []
        partitions = Finder(Wanted(**wanted)).find(paths)
        if turn:
            kept = list(replicas.each_once_in_turn(partitions, paths, notes.append, OPTION))
        else:
            kept = replicas.each_once(list(partitions), notes.append, OPTION)
        found.append(([one.folder for one in kept], notes))
    return found


TREES = (
    ("b1/a-0", "b1/b-0", "b2/b-0", "b2/c-0"),
    ("b1/a-0", "b1/b-0", "b1/b-0/old/a-0"),
    ("b1/b-0", "b1/c-0", "b2/a-0", "b2/c-0", "b2/c-0.0123456789abcdef0123456789abcdef-delete"),
    ("b1/a-0",),
    ("b1/a-0", "b1/a-1", "b2/a-2"),
)


@pytest.mark.parametrize("tree", TREES, ids=" ".join)
@pytest.mark.parametrize("leftovers", [False, True])
def test_partitions_in_turn_are_those_of_the_whole(tmp_path, tree, leftovers):
    for number, name in enumerate(tree):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        log = b"".join(data(offset) for offset in range(number + 1))
        (folder / f"{0:020}.log").write_bytes(log)
    whole = [str(tmp_path)]
    brokers = sorted({f"{tmp_path}/{name.split('/')[0]}" for name in tree})
    named = [f"{tmp_path}/{name}" for name in tree]
    linked = tmp_path / "b1" / "link"
    for paths in (whole, brokers, named, brokers[::-1], [f"{tmp_path}/*"]):
        one, other = both_ways(paths, leftovers=leftovers)
        assert one == other
    linked.symlink_to(tmp_path / tree[-1])
    assert len(set(map(repr, both_ways(whole, leftovers=leftovers)))) == 1


def test_the_first_partition_does_not_wait_for_the_others(tmp_path):
    for number in range(30):
        (tmp_path / f"t-{number}").mkdir()
        (tmp_path / f"t-{number}" / f"{0:020}.log").write_bytes(data(0))
    found = []
    partitions = (found.append(one) or one for one in Finder().find([str(tmp_path)]))
    once = replicas.each_once_in_turn(partitions, [str(tmp_path)], found.append, OPTION)
    assert next(once).partition == 0
    assert len(found) == 1
    assert [one.partition for one in once] == [*range(1, 30)]


NESTED = ("b-1/a-0", "b-1/b-0/old/a-0", "c-0")


@pytest.mark.parametrize("links", [None, 1, 2], ids=["counted", "always 1", "always 2"])
def test_names_are_found_at_any_depth_whatever_links_a_file_system_counts(monkeypatch, tmp_path, links):
    for name in NESTED:
        (tmp_path / name).mkdir(parents=True)
    if links is not None:
        monkeypatch.setattr(replicas, "_links", lambda _: links)
    names = replicas._names_below([str(tmp_path)])
    assert names == {("a", 0): 2, ("b", 0): 1, ("b", 1): 1, ("c", 0): 1, (None, None): 2}


def test_partition_folders_are_not_listed_for_their_names(monkeypatch, tmp_path):
    for number in range(30):
        (tmp_path / f"t-{number}").mkdir()
    if (tmp_path / "t-0").stat().st_nlink != 2:
        pytest.skip("this file system does not count the links of folders")
    listed = []
    plain = os.scandir
    monkeypatch.setattr(replicas.os, "scandir", lambda path: listed.append(path) or plain(path))
    assert len(replicas._names_below([str(tmp_path)])) == 31
    assert listed == [str(tmp_path)]


def test_copies_of_a_log_without_a_name_are_read_once(tmp_path):
    record = forge.record(b"k", b"v")
    log = forge.batch([record]) + forge.batch([record], base_offset=1)
    held = {"a": log, "b": log + forge.batch([record], base_offset=2), "c": forge.batch([forge.record(b"k", b"other")])}
    for name, content in held.items():
        (tmp_path / name).write_bytes(content)
    notes = []
    partitions = list(Finder().find([str(tmp_path / name) for name in held]))
    kept = replicas.each_once(partitions, notes.append, OPTION)
    assert [one.segments[0].name for one in kept] == [str(tmp_path / "b"), str(tmp_path / "c")]
    reason = "1 log is left out, because another log has the same batches, and is as long or longer"
    assert notes == [f"{reason}: {tmp_path}/a ({OPTION} reads all)"]
    assert both_ways([str(tmp_path / name) for name in held])[1][1] == notes
