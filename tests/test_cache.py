"""What kdump's reading leaves in the page cache."""

import os
import shutil
import sys
import time

import pytest

from kdump import cache
from kdump.segment import LocalFile, walk
from tests.support import GOLDEN, kdump

SEGMENT = GOLDEN / "brokers/4.2.2/c-zstd-0/00000000000000000000.log"
SIZE = 6 << 20
PAGES = SIZE // cache.PAGE
HOT = ((10, 40), (900, 901), (1400, PAGES))
"""Pages that a broker has in the cache: the tail, and islands before it."""
ISLANDS = {page for first, last in HOT for page in range(first, last)}
WHOLE = set(range(PAGES))

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="--cache drop needs Linux")


def cached(path) -> set[int]:
    """Return the pages of a file that are in the page cache."""
    with path.open("rb") as file:
        size = path.stat().st_size
        guard = cache.Guard(file.fileno(), size)
        found = guard._cached(0, -(-size // cache.PAGE))
        guard.close()
    return {number for number, there in enumerate(found) if there}


def same(now: set[int], before: set[int]) -> bool:
    """Tell whether no page has come, and those that were there stay: but for a few that the kernel may always take."""
    return now <= before and len(now) >= 0.8 * len(before)


@pytest.fixture
def segment(tmp_path):
    """A segment of some megabytes of which the pages HOT are cached, and no others."""
    path = tmp_path / "00000000000000000000.log"
    data = SEGMENT.read_bytes()
    path.write_bytes((data * (SIZE // len(data) + 1))[:SIZE])
    try:
        chill(path)
        cold = cached(path)
    except OSError as reason:
        pytest.skip(f"the system does not say which pages of a file are cached here: {reason}")
    if cold:
        pytest.skip("the file system of the temporary folder keeps all its files in memory (TMPDIR names another one)")
    warm(path)
    assert same(cached(path), ISLANDS)
    return path


def chill(path):
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def warm(path):
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        for first, last in HOT:
            os.pread(file.fileno(), (last - first) * cache.PAGE, first * cache.PAGE)


COMMANDS = {
    "files": ["--files", "{path}", "--print-data-log"],
    "headers": ["--files", "{path}"],
    "dump": ["dump", "{path}", "-q"],
    "jobs": ["dump", "{path}", "{path}", "-q", "--jobs", "2"],
    "check": ["check", "{path}", "--json"],
    "salvage": ["salvage", "{path}", "--out", "{out}", "-q"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_pages_that_were_cached_stay_and_no_others_come(segment, tmp_path, name):
    words = [word.format(path=segment, out=tmp_path / "out") for word in COMMANDS[name]]
    dropped = kdump(*words, "--cache", "drop")
    assert same(cached(segment), ISLANDS)
    shutil.rmtree(tmp_path / "out", ignore_errors=True)
    kept = kdump(*words)
    assert same(cached(segment), WHOLE)
    assert (dropped.stdout, dropped.stderr, dropped.returncode) == (kept.stdout, kept.stderr, kept.returncode)


def test_it_may_stand_before_the_command(segment):
    kdump("--cache", "drop", "dump", segment)
    assert same(cached(segment), ISLANDS)
    kdump("--cache", "drop", "dump", "--cache", "keep", segment)
    assert same(cached(segment), WHOLE)


def test_pages_are_given_back_behind_the_reading_position(segment, monkeypatch):
    monkeypatch.setattr(LocalFile, "watch", cache.Watch(pytest.fail))
    with LocalFile(segment) as source:
        for number, _ in enumerate(walk(source)):
            if number % 100 == 0:
                assert len(cached(segment) - ISLANDS) <= (3 << 20) // cache.PAGE
        source.read(SIZE - 5, 5)  # leaps give back too
        source.read(0, 5)
        source.read(3 << 20, 1 << 16)
        assert same(cached(segment), ISLANDS | set(range(768, 784)))
    assert same(cached(segment), ISLANDS)


def test_a_read_ahead_that_others_left_a_mark_for_is_given_back(segment):
    chill(segment)
    with segment.open("rb") as file:
        for position in range(0, SIZE // 4, cache.PAGE):  # the kernel reads ahead, and marks where to go on
            os.pread(file.fileno(), 100, position)
    before: set[int] = set()
    while before != (before := cached(segment)):
        time.sleep(0.2)  # it is still at it
    if len(before) == PAGES:
        pytest.skip("the kernel reads this file ahead whole")
    kdump("dump", segment, "-q", "--cache", "drop")
    assert same(cached(segment), before)


def test_a_file_that_shrinks_or_is_empty_does_no_harm(segment, tmp_path, monkeypatch):
    monkeypatch.setattr(LocalFile, "watch", cache.Watch(pytest.fail))
    with LocalFile(segment) as source:
        os.truncate(segment, 5000)
        assert len(source.read(0, SIZE)) == 5000
        assert source.read(SIZE - 10, 100) == b""
    empty = tmp_path / "empty.log"
    empty.touch()
    with LocalFile(empty) as source:
        assert source.read(0, 10) == b""


def test_where_the_system_does_not_tell_it_is_said_once(segment, monkeypatch):
    said = []
    monkeypatch.setattr(cache.Guard, "_cached", lambda _, first, last: bytearray(b"\1" * (last - first)))
    monkeypatch.setattr(LocalFile, "watch", cache.Watch(said.append))
    for _ in range(2):
        with LocalFile(segment) as source:
            assert len(source.read(0, SIZE)) == SIZE
    assert len(said) == 1
    assert said[0].startswith(f"{segment}: --cache drop gives nothing back: only who owns a file")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become somebody else")
def test_somebody_else_is_told_that_nothing_is_given_back(tmp_path):
    said = []
    path = tmp_path / "0.log"
    path.write_bytes(SEGMENT.read_bytes())
    path.chmod(0o644)
    watch = cache.Watch(said.append)
    with path.open("rb") as file:
        os.seteuid(65534)
        try:
            guard = watch(str(path), file.fileno(), SEGMENT.stat().st_size)
        finally:
            os.seteuid(0)
    assert guard is None
    assert len(said) == 1
