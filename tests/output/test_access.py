"""A copy of log bytes has the same mode as the log, or a stricter one."""

import os

import pytest

from kdump.log_dirs.finder import Finder
from kdump.output import access, files
from kdump.output.access import ANY, Access
from testing import forge
from testing.processes import kdump

DATA = forge.batch([forge.record(b"k", b"v")])


@pytest.fixture
def umask():
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def place(folder, mode, of_folder=0o755, name="orders-0"):
    partition = folder / name
    partition.mkdir(parents=True)
    (partition / f"{0:020}.log").write_bytes(DATA)
    (partition / f"{0:020}.log").chmod(mode)
    partition.chmod(of_folder)
    return partition


def modes(out):
    found = {path.stat().st_mode & 0o7777 for path in [out, *out.rglob("*")] if path.is_file()}
    return sorted(found), sorted({path.stat().st_mode & 0o7777 for path in [out, *out.rglob("*")] if path.is_dir()})


@pytest.mark.parametrize(
    ("mode", "made"), [(0o600, 0o600), (0o640, 0o640), (0o644, 0o644), (0o666, 0o644), (0o400, 0o400)]
)
def test_copies_have_the_mode_of_their_source(tmp_path, umask, mode, made):
    source = place(tmp_path / "in", mode, 0o750)
    kdump("salvage", source, "--out", tmp_path / "salvaged", check=True)
    kdump("slice", source, "--offset", "0", "--out", tmp_path / "cut.log", check=True)
    kdump("rebuild-index", source, "--out", tmp_path / "fresh", check=True)
    assert modes(tmp_path / "salvaged") == ([made], [0o750])
    assert modes(tmp_path / "cut.log") == ([made], [])
    assert modes(tmp_path / "fresh") == ([made], [0o750])


def test_several_copies_allow_what_all_of_them_do(tmp_path, umask):
    found = [*Finder().find([str(place(tmp_path / "1", 0o640)), str(place(tmp_path / "2", 0o604, 0o711))])]
    made = access.of_sources(found)
    assert (made.file, made.folder) == (0o600, 0o711)


def test_the_umask_counts(tmp_path, umask):
    umask(0o077)
    source = place(tmp_path / "in", 0o644)
    kdump("slice", source, "--offset", "0", "--out", tmp_path / "cut.log", check=True)
    assert modes(tmp_path / "cut.log") == ([0o600], [])


def test_a_part_is_no_wider_while_it_is_written(tmp_path, umask):
    who = Access(0o600, 0o700)
    with files.new_file(tmp_path / "x", access=who), files.new_folder(tmp_path / "y", access=who) as folder:
        files.fill(folder / "z", b"", who)
        assert modes(tmp_path)[0] == [0o600]
        assert folder.stat().st_mode & 0o777 == 0o700


def test_a_group_that_cannot_be_given_gets_what_all_get(tmp_path, umask, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "fchown", refuse)
    for wanted, made in ((0o640, 0o600), (0o664, 0o644), (0o604, 0o604)):
        with files.new_file(tmp_path / f"{made:o}", access=Access(wanted, group=os.getgid() + 1)):
            pass
        assert (tmp_path / f"{made:o}").stat().st_mode & 0o777 == made


def test_sources_of_two_groups_leave_the_group_nothing():
    assert Access(0o660, group=1).without(Access(0o664, group=2)) == Access(0o600, 0o777)
    assert Access(0o660, group=1).without(ANY) == Access(0o660, 0o777, 1)
    assert Access(0o660, group=0).without(ANY) == ANY.without(Access(0o660, group=0)) == Access(0o660, 0o777, 0)


def test_a_list_of_access_beside_the_mode_counts(tmp_path, monkeypatch):
    source = place(tmp_path, 0o640)
    monkeypatch.setattr(os, "getxattr", lambda *_: b"\x02\x00\x00\x00", raising=False)
    assert access.of_sources(Finder().find([str(source)])).file == 0o600
