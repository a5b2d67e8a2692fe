"""What salvage writes, and what it asks of the system meanwhile."""

import os

import pytest

from kdump.log_dirs.finder import Finder
from kdump.salvage import writer
from kdump.segments import walk
from testing import forge


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="the system takes no advice")
def test_what_the_disk_has_by_now_is_given_back(tmp_path, monkeypatch):
    """Bytes that are still on their way to the disk stay: the advice is for the whole file, again and again."""
    place = tmp_path / "orders-0"
    place.mkdir()
    batches = [forge.batch([forge.record(b"k", b"v" * 900)], base_offset=offset) for offset in range(20)]
    (place / f"{0:020}.log").write_bytes(b"".join(batches))
    for name in ("FIRST_BLOCK", "BLOCK"):
        monkeypatch.setattr(walk, name, 3 * len(batches[0]))
    monkeypatch.setattr(writer, "FLUSHED", 3 * len(batches[0]))
    told = []
    monkeypatch.setattr(os, "posix_fadvise", lambda _, *advice: told.append(advice))
    found = list(Finder().find([str(place)]))
    writer.write("orders-0", found, tmp_path / "out", writer.SegmentLimits())
    assert told == [(0, 0, os.POSIX_FADV_DONTNEED)] * 6
    assert (tmp_path / "out/logs/orders-0" / f"{0:020}.log").read_bytes() == b"".join(batches)
