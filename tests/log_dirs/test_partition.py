"""The files beside a log: one reader, one sentence and one exit status for each that is broken, in every command."""

import shutil

import pytest

from kdump.log_dirs.finder import Finder
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
    told = []
    whole = partition(folder)
    assert whole.file("partition.metadata") == (folder / "partition.metadata").read_bytes()
    assert whole.file("absent") is None
    assert len(whole.topic_id(told.append)) == 16
    assert [entry.start_offset for entry in whole.leader_epochs(told.append)] == [0]
    segment = partition(min(folder.glob("*.log")))
    assert segment.topic_id(told.append) == whole.topic_id(told.append)
    assert told == []


@pytest.mark.parametrize("name", ["partition.metadata", "leader-epoch-checkpoint"])
def test_files_cut_at_every_byte_and_with_garbage_before(broker, name):
    path = broker / "c-none-0" / name
    whole = path.read_bytes()
    read = "topic_id" if name.startswith("partition") else "leader_epochs"
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        told = []
        found = getattr(partition(path.parent), read)(told.append)
        assert (found is None) == (len(told) == 1), size
        assert all(sentence.startswith(f"{path}: ") for sentence in told)
    path.write_bytes(b"\xff" + whole)
    told = []
    assert getattr(partition(path.parent), read)(told.append) is None
    assert len(told) == 1
