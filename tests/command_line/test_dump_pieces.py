"""Several processes print the same as one: bytes, messages and exit status, for any content of the segments."""

import random
import tarfile
import zlib
from contextlib import nullcontext
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from kdump.command_line import dump_pieces
from kdump.formats.record_layout import TRANSACTIONAL_FLAG
from kdump.log_dirs.finder import Finder
from kdump.log_dirs.local import LOCAL, LocalFile
from kdump.log_dirs.partition import Partition, Segment
from kdump.parallel import costs
from kdump.parallel.costs import Effort
from testing import GOLDEN, damages, forge
from testing.processes import kdump, patched

SMALL = """
from kdump.parallel import costs
costs.CHUNK, costs.PACKED_CHUNK, costs.LARGE_SEGMENTS, costs.OPENING = 3000, 1000, 1 << 60, 100
costs.PRINTING, costs.PRINTING_PLAIN, costs.READING_HEADERS = 1, 0, 0
"""
"""As many processes as asked for, each with small parts."""
COUNTED = """
from pathlib import Path
from kdump.parallel.turns import Forks
in_processes = Forks.run
def counted(forks, *rest):
    Path(f"{folder}/processes-{{forks._count}}").touch()
    return in_processes(forks, *rest)
Forks.run = counted
"""
BLOCKS = """
from kdump.parallel import costs
from kdump.segments import read_ahead
read_ahead.FIRST, read_ahead.CHUNK_BYTES = 500, 3000
costs.READING_AHEAD, costs.PRINTED_AHEAD = 500, 0
costs.processors = lambda: 3
"""
THREADS = f"""{BLOCKS}
from kdump.segments import walk
walk.BLOCK, walk.FIRST_BLOCK = 4000, 1000
costs.PRINTING, costs.CHUNK, costs.PACKED_CHUNK = 1 << 60, 700, 300
"""
"""One process whose two threads read small blocks and make lines of them."""
OUTPUTS = (
    ("dump", "{path}"),
    ("dump", "{path}", "-o", "jsonl"),
    ("dump", "{path}", "-o", "csv", "--include-damaged"),
    ("dump", "{path}", "--batches"),
    ("dump", "{path}", "--count"),
    ("dump", "{path}", "-f", "%o %k\\n", "--grep", "k.?7"),
    ("dump", "{path}", "--key", "k307"),
    ("dump", "{path}", "-o", "jsonl", "--on-error", "skip"),
    ("dump", "{path}", "--on-error", "stop"),
    ("--files", "{path}", "--print-data-log"),
    ("--files", "{path}", "--deep-iteration", "--max-bytes", "20000"),
    ("--files", "{path}"),
)
LINES = pytest.mark.parametrize("line", OUTPUTS, ids=" ".join)


class Outcome(NamedTuple):
    """How kdump ended, and what it printed."""

    status: int
    out: bytes
    errors: bytes


def outcome(done) -> Outcome:
    """Return what two runs must have in common."""
    return Outcome(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def alike(tmp_path):
    """Run a command line with one process and with more; assert equal outcomes, return the first."""

    def run(line, jobs=(2, 3), **words):
        args = [word.format(**words) for word in line]
        one = outcome(patched(SMALL, *args, "--jobs", 1))
        assert b"Traceback" not in one.errors
        for number in jobs:
            patch = SMALL + COUNTED.format(folder=tmp_path)
            assert outcome(patched(patch, *args, "--jobs", number)) == one, number
            if line[0] == "dump":
                assert (tmp_path / f"processes-{number}").exists()
        assert outcome(patched(THREADS, *args)) == one, "threads"
        return one

    return run


def batches(count, *, size=20, nested=False, codec=0, gap=0):
    """Return batches of some records; the values of some records contain a valid batch."""
    inner = forge.batch([forge.record(b"inner", b"v")], base_offset=5)
    made = []
    for base in range(0, count * (3 + gap), 3 + gap):
        value = b"v" * size + (inner if nested and base % 4 == 0 else b"")
        records = [forge.record(b"k%d" % (base + n), value, offset=n) for n in range(3)]
        if codec:
            packer = zlib.compressobj(wbits=31)
            packed = packer.compress(b"".join(records)) + packer.flush()
            made.append(forge.batch(records, base_offset=base, attributes=codec, payload=packed))
        else:
            made.append(forge.batch(records, base_offset=base))
    return made


def log(folder, parts_of_it, name=f"{0:020}.log"):
    path = folder / "t-0" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"".join(parts_of_it))
    return path


SHAPES = {
    "sound": batches(300),
    "compressed": batches(300, codec=1),
    "batches in values": batches(150, nested=True),
    "large batches": batches(12, size=2500),
    "gaps": batches(200, gap=2),
    "old messages after": [
        *batches(100),
        *(forge.entry(n, forge.message(1, b"k", b"v" * 50)) for n in range(300, 600)),
    ],
    "zeros behind": [*batches(100), bytes(9000)],
    "a truncated batch": [*batches(100), batches(1, size=500)[0][:-40]],
    "markers": [
        batch
        if number % 9
        else forge.batch([forge.record(b"\0\0\0\1", b"\0\0\0\0\0\7")], attributes=0x30, base_offset=number * 3)
        for number, batch in enumerate(batches(200))
    ],
    "offsets that fall": [*batches(80), *batches(80)],
}


@LINES
@pytest.mark.parametrize("shape", SHAPES)
def test_several_processes_print_what_one_prints(tmp_path, alike, line, shape):
    alike(line, path=log(tmp_path, SHAPES[shape]))


@pytest.mark.parametrize("size", [1, 700])
def test_gaps_that_only_a_wrong_guess_has_met_are_not_reported(tmp_path, size):
    """Batches in a value, with gaps between them, fill a part: the lines that its process printed are dropped."""
    inner = b"".join(batches(100, gap=2))
    holder = forge.batch([forge.record(b"k", inner if n == 1 else b"v", offset=n) for n in range(3)], base_offset=27)
    path = log(tmp_path, [*batches(9), holder, *batches(60)[10:]])
    patch = f"{SMALL}from kdump.parallel import turns; turns.AT_ONCE = turns.HELD = {size}"
    done = [outcome(patched(patch, "--files", path, "--print-data-log", "--jobs", jobs)) for jobs in (1, 2, 3)]
    assert done[0].errors == b""
    assert done == done[:1] * 3


@LINES
def test_damage_is_reported_alike(tmp_path, alike, line):
    rng = random.Random(27)
    sound = [*batches(120), *batches(40, nested=True, gap=1), *batches(60, codec=1)]
    starts = [sum(map(len, sound[:number])) for number in range(len(sound) + 1)]
    statuses = set()
    for _ in range(12):
        data = bytearray(b"".join(sound))
        for _ in range(rng.randint(1, 6)):
            damages.damage(data, rng, starts)
        statuses.add(alike(line, (2,), path=log(tmp_path, [bytes(data)])).status)
    assert statuses - {0}


@LINES
def test_many_segments_and_partitions(tmp_path, alike, line):
    for topic in "ab":
        folder = tmp_path / f"{topic}-0"
        folder.mkdir()
        for base in range(0, 600, 60):
            (folder / f"{base:020}.log").write_bytes(b"".join(batches(20 + base)))
    (tmp_path / "a-0" / f"{120:020}.log").write_bytes(b"nothing of the kind" * 30)
    path = tmp_path if line[0] == "dump" else ",".join(map(str, sorted(tmp_path.rglob("*.log"))))
    alike(line, path=path)


@pytest.mark.parametrize("number", ["--head 1", "--head 70", "--tail 1", "--tail 70", "--tail 0"])
@pytest.mark.parametrize(
    "words",
    ["", "--batches", "--count", "-o jsonl", "-o csv --include-damaged", "--key k21", "--on-error stop", "-f %p@%o\\n"],
)
def test_the_first_and_last_records_of_each_partition(tmp_path, alike, number, words):
    """Whole partitions are divided among processes: each may have several segments, damage or no record."""
    rng = random.Random(72)
    for partition in range(9):
        folder = tmp_path / f"t-{partition}"
        folder.mkdir()
        for base in range(0, 180, 60 if partition % 2 else 180):
            content = bytearray(b"".join(batches(20 + partition)))
            if partition % 4 == 0:
                content[rng.randrange(200) : 210] = b"damage"
            (folder / f"{base:020}.log").write_bytes(content)
    (tmp_path / "t-6" / f"{0:020}.log").unlink()
    (tmp_path / "t-6" / f"{0:020}.log").symlink_to("nowhere")
    (tmp_path / "t-0" / f"{180:020}.log.swap").write_bytes(b"")
    (tmp_path / "t-3" / f"{0:020}.log").write_bytes(b"")
    (tmp_path / "replication-offset-checkpoint").write_text("damage")
    status = alike(("dump", "{path}", *number.split(), *words.split()), path=tmp_path).status
    assert status == (3 if number == "--tail 0" else 1)


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_transactions(alike, isolation):
    for name in ("txn-0", "compact-txn-0"):
        path = GOLDEN / "brokers" / "4.2.2" / name
        for number in ((), ("--head", "2"), ("--tail", "2")):
            alike(("dump", "{path}", "-o", "jsonl", "--isolation", isolation, *number), path=path)


def test_a_file_that_cannot_be_read_is_reported_once(tmp_path, alike):
    path = log(tmp_path, batches(50))
    (path.parent / f"{600:020}.log").symlink_to("nowhere")
    done = alike(("dump", "{path}"), path=path.parent)
    assert done.status == 1
    assert done.errors.count(b"nowhere") + done.errors.count(b"No such file") == 1


def test_a_part_in_which_nothing_begins_is_passed_over(tmp_path, alike):
    path = log(tmp_path, [*batches(3), *batches(1, size=9000), *batches(100)])
    assert alike(("dump", "{path}", "-o", "raw"), path=path).out.count(b"\n") == 3 * 104


@pytest.fixture
def log_dir(tmp_path):
    """Three partitions. One is damaged."""
    for number in range(3):
        folder = tmp_path / "logs" / f"t-{number}"
        folder.mkdir(parents=True)
        data = b"".join(batches(60 + number, gap=number % 2))
        (folder / f"{0:020}.log").write_bytes(data if number != 1 else data[:3000] + b"damage" + data[3000:])
        (folder / f"{0:020}.index").write_bytes(bytes(range(16)))
    return tmp_path / "logs"


@pytest.mark.parametrize("line", ["verify-index", "verify-index --json", "check", "check --headers-only", "stats"])
def test_answers_are_alike(log_dir, line):
    many = "import kdump.parallel.costs as c; c.READING_PACKED = c.READING_PLAIN = c.READING_HEADERS = 1"
    one, *others = (
        outcome(patched(patch, *line.split(), log_dir, *jobs))
        for patch, jobs in [("", ("--jobs", "1")), ("", ("--jobs", "2")), (many, ())]
    )
    assert others == [one, one]
    assert one.out


@pytest.mark.parametrize("line", ["stats", "check", "verify-index"])
def test_an_archive_is_open_to_every_process(tmp_path, log_dir, line):
    archive = tmp_path / "logs.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(log_dir, "logs")
    one, two = (outcome(kdump(line, archive, "--jobs", jobs)) for jobs in ("1", "2"))
    assert one == two
    assert one.status == 3
    assert b"logs.tar:logs/t-1" in one.out + one.errors


def test_salvage_is_alike(tmp_path, log_dir):
    found = []
    for jobs in ("1", "2"):
        out = tmp_path / f"out-{jobs}"
        done = outcome(kdump("salvage", log_dir, "--out", out, "--jobs", jobs))
        written = {path.relative_to(out): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}
        found.append((done.status, done.errors.replace(str(out).encode(), b"out"), written))
    assert found[0] == found[1]
    assert found[0][0] == 3


def test_where_many_wait_for_processors_one_process_reads(monkeypatch):
    monkeypatch.setattr(costs, "processors", lambda: 4)
    monkeypatch.setattr("os.getloadavg", lambda: (8.0, 0, 0))
    assert [costs.processes(size) for size in (0, costs.PRINTING, 1 << 30)] == [1, 2, 4]
    monkeypatch.setattr("os.getloadavg", lambda: (8.1, 0, 0))
    assert costs.processes(1 << 30) == 1


GIB = 1 << 30
BEGINNINGS = {
    "plain": forge.batch([forge.record(b"k", b"v")]),
    "compressed": forge.batch([forge.record(b"k", b"v")], attributes=1),
    "a message": forge.entry(0, forge.message(1, b"k", b"v")),
}
"""What a segment begins with, by its path."""
ARCHIVE = object()


def sized(size, segments=1, begins="plain", files=LOCAL):
    """Return a partition of ``size`` bytes."""
    first = Segment(files, begins, size - segments + 1, 0, {})
    return Partition(files, "t-0", "t", 0, (first, *[first._replace(size=1)] * (segments - 1)))


OPENING, PLAIN, MANY_HEADERS = costs.OPENING, costs.PRINTING_PLAIN, costs.READING_HEADERS
CHOICES = [
    # partitions, effort, processors -> processes without --jobs, with 2
    ([sized(GIB)], Effort.LINES, 2, 1, 1),
    ([sized(GIB)], Effort.LINES, 8, 1, 1),
    ([sized(GIB)] * 4, Effort.LINES, 2, 1, 1),
    ([sized(GIB)] * 4, Effort.LINES, 8, 8, 1),
    ([sized(GIB, 60)], Effort.LINES, 2, 1, 1),
    ([sized(GIB, 70)], Effort.LINES, 2, 2, 2),  # to start a thread for each segment takes too long
    ([sized(GIB)], Effort.SOME, 2, 2, 2),
    ([sized(PLAIN - OPENING - 1)], Effort.SOME, 2, 1, 1),
    ([sized(PLAIN - OPENING)], Effort.SOME, 2, 2, 2),
    ([sized(costs.PRINTING)] * 4, Effort.SOME, 8, 1, 1),
    ([sized(costs.PRINTING, 400)], Effort.LINES, 2, 2, 2),
    ([sized(costs.PRINTING - 1, 400)], Effort.LINES, 2, 1, 2),
    ([sized(GIB)], Effort.COSTLY, 2, 2, 2),
    ([sized(costs.PRINTING)], Effort.COSTLY, 2, 2, 2),
    ([sized(costs.PRINTING - 1)], Effort.COSTLY, 2, 1, 2),
    ([sized(GIB, 1, "compressed")], Effort.LINES, 2, 2, 2),
    ([sized(costs.PRINTING, 1, "compressed")], Effort.SOME, 2, 2, 2),
    ([sized(GIB), sized(GIB - 1, 1, "compressed")], Effort.LINES, 2, 1, 1),
    ([sized(GIB), sized(GIB + 1, 1, "compressed")], Effort.LINES, 2, 2, 2),
    ([sized(GIB, 1, "a message")], Effort.LINES, 2, 2, 2),
    ([sized(MANY_HEADERS - OPENING - 1, 1, "compressed")], Effort.HEADERS, 2, 1, 1),
    ([sized(MANY_HEADERS - OPENING, 1, "compressed")], Effort.HEADERS, 2, 2, 2),
    ([sized(GIB, files=ARCHIVE)], Effort.LINES, 2, 1, 2),
    ([], Effort.LINES, 2, 1, 1),
    ([sized(50)] * (MANY_HEADERS // OPENING), Effort.COSTLY, 8, 8, 2),  # opening takes longer than reading
    ([sized(50)] * (MANY_HEADERS // OPENING - 1), Effort.COSTLY, 8, 1, 2),
    ([sized(50)] * (MANY_HEADERS // OPENING), Effort.HEADERS, 2, 2, 2),
]


@pytest.mark.parametrize(("partitions", "effort", "processors", "count", "of_two"), CHOICES)
def test_as_many_processes_print_as_are_worth_it(partitions, effort, processors, count, of_two, monkeypatch):
    monkeypatch.setattr(costs, "is_terminal", lambda: False)
    monkeypatch.setattr(costs, "free_processors", lambda: processors)

    def opened(segment):
        assert segment.files is LOCAL
        data = BEGINNINGS[segment.path]
        return nullcontext(SimpleNamespace(read=lambda position, size: data[position : position + size]))

    monkeypatch.setattr(Segment, "open", opened)
    assert costs.processes_of_dump(partitions, None, effort) == count
    assert costs.processes_of_dump(partitions, 2, effort) == of_two
    assert [costs.processes_of_dump(partitions, jobs, effort) for jobs in (1, 3)] == [1, 3]
    monkeypatch.setattr(costs, "is_terminal", lambda: True)
    assert costs.processes_of_dump(partitions, None, effort) == 1


def test_only_the_records_that_are_read_count(monkeypatch):
    """With --head and --tail, the size of the other records does not matter, but the number of partitions does."""
    monkeypatch.setattr(costs, "is_terminal", lambda: False)
    monkeypatch.setattr(costs, "free_processors", lambda: 4)
    monkeypatch.setattr(costs, "_are_plain", lambda _: True)
    partitions = [sized(GIB, 3)] * (MANY_HEADERS // OPENING)
    chosen = [costs.processes_of_dump(each, None, Effort.SOME, 1) for each in (partitions, partitions[9:])]
    assert chosen == [4, 1]
    assert costs.processes_of_dump(partitions[:9], None, Effort.SOME, GIB // costs.RECORD) == 4


CHOICE = f"""{BLOCKS}
from pathlib import Path
from kdump.parallel import chunks
threads = chunks.Threads
def chosen(partitions, jobs, effort, per_partition):
    Path("{{folder}}/seen").write_text(effort.name)
    return 1
def begun(count, source):
    Path("{{folder}}/begun").touch()
    return threads(count, source)
costs.processes_of_dump, chunks.Threads = chosen, begun
"""
"""One process, and files that say which effort was expected and whether threads began."""


@pytest.mark.parametrize(
    ("words", "effort"),
    [
        ((), Effort.LINES),
        (("-o", "jsonl", "--isolation", "read_committed"), Effort.LINES),
        (("-o", "raw"), Effort.LINES),
        (("--encoding", "hex"), Effort.LINES),
        (("--include-damaged",), Effort.SOME),
        (("--max-batch-bytes", "1000"), Effort.SOME),
        (("--type", "data"), Effort.SOME),
        (("--count",), Effort.SOME),
        (("--count", "--encoding", "json"), Effort.SOME),
        (("--batches", "--grep", "k"), Effort.SOME),
        (("--batches",), Effort.HEADERS),
        (("--batches", "--redact"), Effort.HEADERS),
        (("--batches", "--count"), Effort.HEADERS),
        (("-o", "jsonl", "--encoding", "json"), Effort.COSTLY),
        (("-o", "csv", "--decode", "auto"), Effort.COSTLY),
        (("--redact", "--key", "k0"), Effort.COSTLY),
    ],
)
def test_threads_begin_where_they_are_counted_on(tmp_path, words, effort, monkeypatch):
    """One process is preferred for its threads only if they make lines."""
    path = log(tmp_path, batches(2000))
    monkeypatch.setenv("KDUMP_REDACT_KEY", "0123456789abcdef")
    done = outcome(patched(CHOICE.format(folder=tmp_path), "dump", path, *words))
    assert (done.status, done.errors) == (0, b"")
    assert (tmp_path / "seen").read_text() == effort.name
    if effort in (Effort.LINES, Effort.HEADERS):
        assert (tmp_path / "begun").exists() is (effort is Effort.LINES)


def test_parts_are_small_where_they_are_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(costs, "CHUNK", 3000)
    monkeypatch.setattr(costs, "PACKED_CHUNK", 1000)
    path = log(tmp_path, batches(100, codec=1))
    with LocalFile(path) as source:
        assert {part.stop - part.start for part in costs.segment_parts(source, 9000)} == {1000}
        assert {part.stop - part.start for part in costs.segment_parts(source, 9000, unpacks=False)} == {3000}
    (partition,) = Finder().find([str(tmp_path)])
    few, many = (dump_pieces.pieces([partition], cut=True, unpacks=unpacks) for unpacks in (False, True))
    assert 1 < len(few) < len(many)


def test_transactions_are_likely_where_a_segment_begins_with_one(tmp_path):
    files = {0: b"", 60: bytes(60), 100: forge.batch([forge.record(b"k", b"v")], base_offset=100)}
    for offset, data in files.items():
        (tmp_path / f"{offset:020}.log").write_bytes(data)
    (partition,) = Finder().find([str(tmp_path)])
    assert not costs.is_transactional(partition)
    in_transaction = forge.batch([forge.record(b"k", b"v")], base_offset=200, attributes=TRANSACTIONAL_FLAG)
    (tmp_path / f"{200:020}.log").write_bytes(in_transaction)
    (partition,) = Finder().find([str(tmp_path)])
    assert costs.is_transactional(partition)
    (tmp_path / f"{200:020}.log").unlink()  # its reader reports the error
    assert not costs.is_transactional(partition)
