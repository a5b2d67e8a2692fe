"""Entries of folders, and the paths in an archive that match a pattern."""

import os
import tarfile

import pytest

from kdump.log_dirs import archives
from kdump.log_dirs.local import LOCAL


def test_an_entry_says_when_its_file_was_written_and_what_it_occupies(tmp_path):
    path = tmp_path / "holes.log"
    with path.open("wb") as file:
        file.write(b"x" * 4096)
        file.truncate(1 << 20)
    os.utime(path, ns=(0, 1_700_000_000_123_456_789))
    (entry,) = LOCAL.entries(str(tmp_path))
    assert (entry.size, entry.modified) == (1 << 20, 1_700_000_000_123)
    assert entry.disk_size == path.stat().st_blocks * 512 < entry.size


@pytest.mark.parametrize("pattern", ["*", "*/*", "**/*.log", "d1/.*", ".d*/*", "[!x]*", "**/.lock", "d1/*-0/*"])
def test_a_pattern_matches_the_same_files_in_an_archive_as_on_disk(tmp_path, pattern):
    """Each log dir has a ``.lock``, and macOS adds files such as ``._orders-0``: no wildcard matches their dot."""
    for name in ("d1/orders-0/0.log", "d1/.lock", "d1/._orders-0", ".d2/orders-1/0.log", "d1/orders-0/.hidden/1.log"):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    with tarfile.open(tmp_path / "in.tar", "w") as tar:
        tar.add(tmp_path / "in", "")
    archive = archives.opened(LOCAL, LOCAL.look(str(tmp_path / "in.tar")))
    expected = [path.removeprefix(f"{tmp_path}/in/") for path in LOCAL.glob(f"{tmp_path}/in/{pattern}")]
    assert archive.glob(pattern) == expected
