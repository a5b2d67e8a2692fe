"""Local files."""

import os
import pickle
import socket

import pytest

from kdump.errors import UnreadableError
from kdump.log_dirs.files import Entry
from kdump.log_dirs.local import LOCAL, LocalFile, listing, plain_listing


def test_local_files_are_the_same_ones_in_every_process():
    assert pickle.loads(pickle.dumps(LOCAL)) is LOCAL


def test_compiled_code_lists_what_plain_python_lists(tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(bytes(5000))
    os.utime(tmp_path / "a", ns=(0, -1_500_000_001))
    os.mkfifo(tmp_path / "b")
    (tmp_path / "c").mkdir()
    for name, target in (("d", "a"), ("e", "c"), ("f", "absent"), ("g", "/dev/null"), ("h", "h")):
        (tmp_path / name).symlink_to(target)
    (tmp_path / os.fsdecode(b"\xff\xfe")).write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("i")
        for folder in (str(tmp_path), f"{tmp_path}/", ".", "c"):
            entries = listing(folder, Entry)
            assert sorted(entries) == sorted(plain_listing(folder, Entry))
            assert all(type(entry) is Entry for entry in entries)
    assert [(one.name, one.size, one.modified, one.special) for one in sorted(listing(".", Entry))[:2]] == [
        ("a", 5000, -1501, ""),
        ("b", 0, (tmp_path / "b").stat().st_mtime_ns // 1_000_000, "pipe"),
    ]


@pytest.mark.parametrize("list_it", [listing, plain_listing])
@pytest.mark.parametrize("folder", ["absent", "", "file", "a\0b"])
def test_a_folder_that_cannot_be_listed_raises_the_same_error(tmp_path, monkeypatch, list_it, folder):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises((OSError, ValueError)) as raised:
        list_it(folder, Entry)
    reasons = {"absent": "No such file or directory", "": "No such file or directory", "file": "Not a directory"}
    shown = f"{reasons[folder]}: {folder!r}" if folder in reasons else "embedded null byte"
    assert str(raised.value).rpartition("] ")[2] == shown


@pytest.mark.parametrize("use", [LocalFile, LOCAL.open, LOCAL.look, LOCAL.entries])
def test_a_name_with_a_nul_is_unreadable(use):
    with pytest.raises(UnreadableError, match="null byte"):
        use("a\0b")


def test_a_folder_whose_entries_are_closed_has_no_broken_links(tmp_path, monkeypatch):
    """Mode 444: names can be listed, but each stat() fails, as for a broken link."""
    (tmp_path / "link").symlink_to("nowhere")
    assert [entry.name for entry in LOCAL.entries(str(tmp_path))] == ["link"]
    monkeypatch.setattr(os, "access", lambda path, mode: (path, mode) != (str(tmp_path), os.X_OK))
    with pytest.raises(UnreadableError, match="Permission denied") as found:
        LOCAL.entries(str(tmp_path))
    assert found.value.is_denied
