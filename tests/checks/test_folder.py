"""The files beside a log: equal small files are parsed once, and each file has its own findings."""

import pytest

import kdump
from kdump.checks import folder
from kdump.errors import DamageError
from tests.helpers.log_dirs import replica
from tests.helpers.segments import data


def test_equal_small_files_are_parsed_once():
    calls = []

    def read(content):
        calls.append(content)
        return tuple(content)

    small, large = b"x" * (folder.SMALL - 1), b"x" * folder.SMALL
    for _ in range(2):
        for content in (small, bytes(bytearray(small)), large):
            assert folder._read_small(read, content) == tuple(content)
    assert calls == [small, large, large]


def test_each_reader_has_its_own_result():
    assert folder._read_small(len, b"abc") == 3
    assert folder._read_small(max, b"abc") == ord("c")


def test_damage_is_raised_each_time():
    calls = []

    def read(content):
        calls.append(content)
        raise DamageError("line", "a line is malformed")

    for _ in range(2):
        with pytest.raises(DamageError, match="a line is malformed"):
            folder._read_small(read, b"0\n")
    assert len(calls) == 2


def test_equal_broken_files_are_findings_of_their_own_partitions(tmp_path):
    for number in range(3):
        replica(tmp_path, {0: data(0, 5)}, name=f"orders-{number}")
        (tmp_path / f"orders-{number}" / "partition.metadata").write_text("version: 0\ntopic_id: x")
        (tmp_path / f"orders-{number}" / f"{5:020}.snapshot").write_bytes(bytes(14))
    found = [one.file for one in kdump.check(tmp_path).findings]
    for name in ("partition.metadata", f"{5:020}.snapshot"):
        files = [file for file in found if file.endswith(name)]
        assert sorted(files) == [str(tmp_path / f"orders-{number}" / name) for number in range(3)]
