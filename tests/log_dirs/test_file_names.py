"""The names of files and folders in a log dir."""

import pytest

from kdump.checks import folder
from kdump.checks.log_dir import LogDirs
from kdump.log_dirs import file_names
from kdump.log_dirs.finder import Finder, Wanted
from testing import forge

STEM = "00000000000000000007"


@pytest.mark.parametrize("name", [file.name.replace("*", STEM) for file in file_names.FILES])
def test_no_file_of_a_broker_is_unknown_in_a_partition(tmp_path, name):
    where = tmp_path / "t-0"
    where.mkdir()
    (where / "00000000000000000000.log").write_bytes(forge.batch([forge.record(b"k", b"v")]))
    (where / name).touch()
    (part,) = Finder(Wanted(leftovers=True, siblings=True)).find([str(where)])
    assert "unknown file" not in {finding.kind for finding in folder.check(part, LogDirs())}


@pytest.mark.parametrize("state", ["", ".deleted", ".swap", ".cleaned"])
def test_a_file_beside_a_segment_keeps_its_state(state):
    path = f"/logs/my.log-0/{STEM}.log{state}"
    assert file_names.SEGMENT_NAME.fullmatch(path.rpartition("/")[2])
    assert file_names.beside_log(path, file_names.INDEX) == f"/logs/my.log-0/{STEM}.index{state}"


@pytest.mark.parametrize("state", [file_names.DELETE_FOLDER, file_names.FUTURE_FOLDER, file_names.STRAY_FOLDER])
def test_a_folder_that_holds_no_live_replica_names_its_partition(state):
    name = f"orders-eu-3.{'0f' * 16}-{state}"
    assert file_names.folder_name(f"/logs/{name}/") == ("orders-eu", 3)
    assert file_names.LEFTOVER_FOLDER.fullmatch(name)["state"] == state


def test_a_folder_of_another_name_gives_no_partition():
    assert file_names.folder_name("/logs/remote-log-index-cache") == (None, None)


@pytest.mark.parametrize("end", ["", ".log", ".index.log", ".log.index", ".log.tmp", ".snapshot.deleted", ".swap"])
def test_files_beside_a_segment_are_distinguished_from_segments(end):
    for stem in (STEM, "٣", "1.2", "x-checkpoint", ""):
        found = file_names.SIBLING_NAME.fullmatch(stem + end)
        assert file_names.is_sibling(stem + end) == (found is not None)
