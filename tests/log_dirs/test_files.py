"""How archives are recognized: the short cut before tarfile, which is slow to import, gives the same result."""

import os

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
