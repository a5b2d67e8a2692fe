"""The files beside a log: every command has the same message and exit status for a broken one."""

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
