"""The page cache after kdump has read: exact for a simulated kernel, approximate for the real one."""

import os
import shutil
import sys

import pytest

from kdump import cli
from kdump.commands import root
from kdump.log_dirs import page_cache
from kdump.log_dirs.local import LocalFile
from kdump.segments.walk import walk
from testing import GOLDEN, forge
from testing.processes import kdump
from tests.helpers.asking import LINES, NEW_CLUSTER, subject
from tests.helpers.log_dirs import write

SEGMENT = GOLDEN / "brokers/4.2.2/c-zstd-0/00000000000000000000.log"
SIZE = 6 << 20
PAGES = SIZE // page_cache.PAGE
HOT = ((10, 40), (900, 901), (1400, PAGES))
"""Pages that a broker has in the cache: the end of the file, and islands before it."""
ISLANDS = {page for first, last in HOT for page in range(first, last)}
WHOLE = set(range(PAGES))
AHEAD = 32
"""Pages that the kernel reads ahead."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="--cache drop needs Linux")


class Kernel:
    """A page cache for one file. It reads ahead if it may, and drops no page by itself, unlike the real one."""

    def __init__(self, path, cached):
        self.file = path.stat().st_ino
        self.cached = set(cached)
        self.marks: set[int] = set()
        """Pages that start a read-ahead on any read."""
        self._random: set[int] = set()
        self._pread = os.pread

    def pread(self, descriptor, size, position):
        if os.fstat(descriptor).st_ino == self.file:
            first, last = position // page_cache.PAGE, -(-(position + size) // page_cache.PAGE)
            if set(range(first, last)) & self.marks or descriptor not in self._random:
                last += AHEAD
            self.cached |= set(range(first, last)) & WHOLE
        return self._pread(descriptor, size, position)

    def advise(self, descriptor, start, size, advice):
        if os.fstat(descriptor).st_ino != self.file:
            return
        stop = start + size if size else SIZE
        if advice == os.POSIX_FADV_RANDOM:
            self._random.add(descriptor)
        elif advice == os.POSIX_FADV_WILLNEED:
            self.cached |= set(range(start // page_cache.PAGE, -(-stop // page_cache.PAGE))) & WHOLE
        elif advice == os.POSIX_FADV_DONTNEED:
            self.cached -= set(range(-(-start // page_cache.PAGE), stop // page_cache.PAGE))

    def report(self, guard, first, last):
        if os.fstat(guard._fd).st_ino != self.file:
            return bytearray(last - first)
        return bytearray(page in self.cached for page in range(first, last))


@pytest.fixture
def segment(tmp_path, request):
    """A segment of some megabytes with the content that the tested command line reads."""
    partition, record = subject(request)
    data = SEGMENT.read_bytes() if partition == "t-0" else forge.batch([record])
    content = (data * (SIZE // len(data) + 1))[:SIZE]
    return write(tmp_path, partition, {0: content}) / f"{0:020}.log"


@pytest.fixture
def kernel(segment, monkeypatch):
    """The simulated kernel, which caches only the pages ISLANDS of the segment."""
    made = Kernel(segment, ISLANDS)
    monkeypatch.setattr(os, "pread", made.pread)
    monkeypatch.setattr(os, "posix_fadvise", made.advise)

    def cached(guard, first, last):
        return made.report(guard, first, last)

    monkeypatch.setattr(page_cache.Guard, "_cached", cached)
    monkeypatch.setattr(LocalFile, "watch", None)  # which the option sets for the whole process
    return made


COMMANDS = {
    "files": ["--files", "{path}", "--print-data-log"],
    "headers": ["--files", "{path}"],
    "dump": ["dump", "{path}", "-q"],
    "get": ["get", "t-0@70", "--in", "{path}"],
    "check": ["check", "{path}", "--json"],
    "verify-index": ["verify-index", "{path}", "--json"],
    "rebuild-index": ["rebuild-index", "{path}", "--out", "{out}", "-q"],
    "report": ["report", "{path}", "--json", "-q", "--at", "1700000000000"],
    "salvage": ["salvage", "{path}", "--out", "{out}", "-q"],
    "sql": ["sql", "select count(*), sum(octet_length(value)) from records", "{path}", "-q"],
    "rebuild-cluster": ["rebuild-cluster", "{folder}/..", *NEW_CLUSTER, "--plan", "-q"],
    "slice": ["slice", "{path}", "--offset", "0..", "--out", "{out}/sliced.log", "-q"],
    **{name: line for name, line in LINES.items() if " " not in name},
}
READ_SOME = {"get", "du", "explain", "ls", "retention"}
"""Commands that read only the bytes they need."""
WRITE_NOTHING_THAT_IS_READ = {"mcp", "compat", "completion", "coordinator", "help", "spark-export"}


def words(name, segment):
    out = segment.parent.parent / "out"
    return [word.format(path=segment, folder=segment.parent, out=out) for word in COMMANDS[name]]


def test_every_command_that_reads_segments_has_the_option():
    having = {
        name for name in root.COMMANDS if any(p.name == "cache" for p in root.root.get_command(None, name).params)
    }
    assert having == {*root.COMMANDS} - WRITE_NOTHING_THAT_IS_READ
    assert having == {line[0] for line in COMMANDS.values()} - {"--files"}


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["kdump", *map(str, arguments)])
    return cli.main()


@pytest.mark.parametrize("name", COMMANDS)
def test_pages_that_were_cached_stay_and_no_others_come(segment, kernel, monkeypatch, capfdbinary, name):
    line = words(name, segment)
    status = run(monkeypatch, *line, "--cache", "drop")
    assert kernel.cached == ISLANDS
    dropped = capfdbinary.readouterr()
    shutil.rmtree(segment.parent.parent / "out", ignore_errors=True)
    assert run(monkeypatch, *line, "--cache", "keep") == status
    assert kernel.cached > ISLANDS if name in READ_SOME else kernel.cached == WHOLE
    assert capfdbinary.readouterr() == dropped


def test_it_may_stand_before_the_command(segment, kernel, monkeypatch):
    run(monkeypatch, "--cache", "drop", "dump", segment, "-q")
    assert kernel.cached == ISLANDS
    run(monkeypatch, "--cache", "drop", "dump", "--cache", "keep", segment, "-q")
    assert kernel.cached == WHOLE


def test_pages_are_given_back_after_the_reading_position(segment, kernel, monkeypatch):
    monkeypatch.setattr(LocalFile, "watch", page_cache.Watch(pytest.fail))
    with LocalFile(segment) as source:
        for number, _ in enumerate(walk(source)):
            if number % 100 == 0:
                assert len(kernel.cached - ISLANDS) <= (3 << 20) // page_cache.PAGE
        source.read(SIZE - 5, 5)  # leaps give back too
        source.read(0, 5)
        source.read(3 << 20, 1 << 16)
        assert kernel.cached == ISLANDS | set(range(768, 784))
    assert kernel.cached == ISLANDS


def test_a_read_ahead_that_others_left_a_mark_for_is_given_back(segment, kernel, monkeypatch):
    kernel.marks = {39, 1410}
    run(monkeypatch, "dump", segment, "-q", "--cache", "drop")
    assert kernel.cached == ISLANDS


def real(path) -> set[int]:
    """Return the pages of a file that are in the page cache of the system."""
    with path.open("rb") as file:
        size = path.stat().st_size
        guard = page_cache.Guard(file.fileno(), size)
        found = guard._cached(0, -(-size // page_cache.PAGE))
        guard.close()
    return {number for number, there in enumerate(found) if there}


def prepare(path):
    """Cache only the pages ISLANDS of a file in the system's page cache, if the system follows the advice."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        for first, last in HOT:
            os.pread(file.fileno(), (last - first) * page_cache.PAGE, first * page_cache.PAGE)


JOBS = ["dump", "{path}", "{path}", "-q", "--jobs", "2"]


@pytest.mark.parametrize("command", [COMMANDS["files"], COMMANDS["check"], JOBS], ids=["files", "check", "jobs"])
def test_the_system_itself_is_left_as_it_was(segment, command):
    """The system may drop pages at any time, so the test passes if one of several tries does."""
    lost = set()
    for _ in range(5):
        try:
            prepare(segment)
            before = real(segment)
        except OSError as reason:
            pytest.skip(f"the system does not say which pages of a file are cached here: {reason}")
        kdump(*(word.format(path=segment) for word in command), "--cache", "drop")
        now = real(segment)
        assert now <= before
        if now == before == ISLANDS:
            return
        lost.add(before == ISLANDS)
    assert True not in lost, "pages that were cached are gone"
    pytest.skip("the system has no memory for these files, or keeps all of them in memory (TMPDIR names another place)")


def test_a_file_that_shrinks_or_is_empty_does_no_harm(segment, tmp_path, monkeypatch):
    monkeypatch.setattr(LocalFile, "watch", page_cache.Watch(pytest.fail))
    with LocalFile(segment) as source:
        os.truncate(segment, 5000)
        assert len(source.read(0, SIZE)) == 5000
        assert source.read(SIZE - 10, 100) == b""
    empty = tmp_path / "empty.log"
    empty.touch()
    with LocalFile(empty) as source:
        assert source.read(0, 10) == b""


def test_a_system_without_the_figure_is_reported_once(segment, monkeypatch):
    said = []
    monkeypatch.setattr(page_cache.Guard, "_cached", lambda _, first, last: bytearray(b"\1" * (last - first)))
    monkeypatch.setattr(LocalFile, "watch", page_cache.Watch(said.append))
    for _ in range(2):
        with LocalFile(segment) as source:
            assert len(source.read(0, SIZE)) == SIZE
    assert len(said) == 1
    assert said[0].startswith(f"{segment}: --cache drop cannot evict pages: only the owner of a file")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another user")
def test_another_user_gets_a_note_that_no_pages_are_evicted(tmp_path):
    said = []
    path = tmp_path / "0.log"
    path.write_bytes(SEGMENT.read_bytes())
    path.chmod(0o644)
    watch = page_cache.Watch(said.append)
    with path.open("rb") as file:
        os.seteuid(65534)
        try:
            guard = watch(str(path), file.fileno(), SEGMENT.stat().st_size)
        finally:
            os.seteuid(0)
    assert guard is None
    assert len(said) == 1
