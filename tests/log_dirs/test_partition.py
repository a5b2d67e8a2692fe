"""The files beside a log: every command has the same message and exit status for a broken one."""

import shutil

import pytest

from kdump.log_dirs.finder import Finder, Wanted
from testing import GOLDEN

BROKER = GOLDEN / "brokers" / "4.2.2"


def partition(folder):
    (found,) = Finder().find([str(folder)])
    return found


@pytest.fixture
def broker(tmp_path):
    place = tmp_path / "kafka"
    for name in ("c-none-0", "__consumer_offsets-0", "__consumer_offsets-1"):
        shutil.copytree(BROKER / name, place / name)
    return place


def test_the_files_of_a_folder(broker):
    folder = broker / "c-none-0"
    reported = []
    whole = partition(folder)
    assert whole.file("partition.metadata") == (folder / "partition.metadata").read_bytes()
    assert whole.file("absent") is None
    assert len(whole.topic_id(reported.append)) == 16
    assert [entry.start_offset for entry in whole.leader_epochs(reported.append)] == [0]
    segment = partition(min(folder.glob("*.log")))
    assert segment.topic_id(reported.append) == whole.topic_id(reported.append)
    assert reported == []


@pytest.mark.parametrize("name", ["partition.metadata", "leader-epoch-checkpoint"])
def test_files_cut_at_every_byte_and_with_garbage_before(broker, name):
    path = broker / "c-none-0" / name
    whole = path.read_bytes()
    read = "topic_id" if name.startswith("partition") else "leader_epochs"
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        reported = []
        found = getattr(partition(path.parent), read)(reported.append)
        assert (found is None) == (len(reported) == 1), size
        assert all(sentence.startswith(f"{path}: ") for sentence in reported)
    path.write_bytes(b"\xff" + whole)
    reported = []
    assert getattr(partition(path.parent), read)(reported.append) is None
    assert len(reported) == 1


def test_a_plain_folder_has_only_segments_with_indexes_and_usual_files(tmp_path):
    stem = f"{7:020}"
    usual = (f"{stem}.log", f"{stem}.index", f"{8:020}.snapshot", "partition.metadata", "leader-epoch-checkpoint")
    for name in usual:
        (tmp_path / name).touch()
    assert partition(tmp_path).is_plain
    for name in (
        f"{stem}.txnindex", f"{stem}.index.swap", f"{9:020}.log", "8.log", f"{stem}.log.cleaned", "other", "00.index",
        f"{1 << 63:020}.snapshot",
    ):  # fmt: skip
        (tmp_path / name).touch()
        with_leftovers = Finder(Wanted(leftovers=True)).find([str(tmp_path)])
        assert [one.is_plain for one in with_leftovers] == [False], name
        (tmp_path / name).unlink()
    (tmp_path / "sub").mkdir()
    assert not partition(tmp_path).is_plain
    assert not partition(tmp_path / f"{stem}.log").is_plain
