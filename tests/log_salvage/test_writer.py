"""The files that salvage writes, and its system calls."""

import os

import pytest

from kdump import kernel
from kdump.errors import Reporter
from kdump.log_dirs.finder import Finder
from kdump.log_salvage import writer
from kdump.segments import walk
from testing import forge


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="the system takes no advice")
def test_what_the_disk_has_by_now_is_given_back(tmp_path, monkeypatch):
    """Bytes that are not yet on the disk stay in the cache: the advice is repeated for the whole file."""
    place = tmp_path / "orders-0"
    place.mkdir()
    batches = [forge.batch([forge.record(b"k", b"v" * 900)], base_offset=offset) for offset in range(20)]
    (place / f"{0:020}.log").write_bytes(b"".join(batches))
    for name in ("FIRST_BLOCK", "BLOCK"):
        monkeypatch.setattr(walk, name, 3 * len(batches[0]))
    monkeypatch.setattr(writer, "STEP", 3 * len(batches[0]))
    reported = []
    monkeypatch.setattr(os, "posix_fadvise", lambda _, *advice: reported.append(advice))
    found = list(Finder().find([str(place)]))
    writer.write("orders-0", found, tmp_path / "out", writer.SegmentLimits())
    assert reported == [(0, 0, os.POSIX_FADV_DONTNEED)] * 6
    assert (tmp_path / "out/logs/orders-0" / f"{0:020}.log").read_bytes() == b"".join(batches)


def test_room_is_set_aside_a_step_at_a_time(tmp_path, monkeypatch):
    """A segment may end in zeros or damage. Another partition may need the space reserved for all of it."""
    monkeypatch.setattr(writer, "SMALL", 500)
    monkeypatch.setattr(writer, "STEP", 3000)
    for name in ("FIRST_BLOCK", "BLOCK"):
        monkeypatch.setattr(walk, name, 1000)
    place = tmp_path / "orders-0"
    place.mkdir()
    data = b"".join(forge.batch([forge.record(b"k", b"v" * 300)], base_offset=offset) for offset in range(40))
    (place / f"{0:020}.log").write_bytes(data + bytes(50_000))
    reported = []
    monkeypatch.setattr(kernel, "reserve", lambda _, size: reported.append(size))
    writer.write("orders-0", list(Finder().find([str(place)])), tmp_path / "out", writer.SegmentLimits(segment=5000))
    assert len(reported) > 4
    assert max(reported) <= 5000
    assert max(after - before for before, after in zip([0, *reported], reported, strict=False)) <= 4000


@pytest.fixture
def small_blocks(monkeypatch):
    for name in ("FIRST_BLOCK", "BLOCK"):
        monkeypatch.setattr(walk, name, 1000)


def copy_of(folder, batches):
    place = folder / "orders-0"
    place.mkdir(parents=True)
    (place / f"{0:020}.log").write_bytes(b"".join(batches))
    return next(iter(Finder().find([str(place)])))


BATCHES = [forge.batch([forge.record(b"k", b"v" * 300)], base_offset=offset) for offset in range(40)]


@pytest.mark.usefixtures("small_blocks")
def test_progress_counts_the_bytes_of_one_copy_as_they_are_read(tmp_path):
    done = []
    part = copy_of(tmp_path, BATCHES)
    writer.write("orders-0", [part], tmp_path / "out", writer.SegmentLimits(), report=Reporter(progress=done.append))
    assert sum(done) == part.size
    assert len(done) > 5


@pytest.mark.usefixtures("small_blocks")
def test_progress_counts_copies_that_are_read_twice_once(tmp_path):
    """The first pass over them is half of the work, and duplicates are not read again."""
    done = []
    parts = [copy_of(tmp_path / name, BATCHES) for name in "ab"]
    writer.write("orders-0", parts, tmp_path / "out", writer.SegmentLimits(), report=Reporter(progress=done.append))
    assert parts[0].size <= sum(done) <= 2 * parts[0].size
    assert len(done) > 10


@pytest.mark.usefixtures("small_blocks")
def test_progress_takes_back_what_is_read_again(tmp_path):
    """The batches of the copy are out of order."""
    done = []
    part = copy_of(tmp_path, BATCHES[20:] + BATCHES[:20])
    writer.write("orders-0", [part], tmp_path / "out", writer.SegmentLimits(), report=Reporter(progress=done.append))
    assert min(done) < 0
    assert part.size - len(done) <= sum(done) <= part.size
