"""Sizes that a file claims are neither allocated nor make kdump slow: bombs, false sizes, endless varints."""

from __future__ import annotations

import functools
import gzip
import json
import random
import struct
import subprocess
import tempfile
import tracemalloc
import zlib
from typing import NamedTuple

import pyarrow as pa
import pytest

from kdump import open as kdump_open
from kdump.errors import DamageError, LimitError
from kdump.log_dirs.local import LocalFile
from kdump.log_reader import batch_selection
from kdump.primitives import compression
from kdump.records.magic_0_1 import Message
from kdump.records.magic_2 import Batch
from kdump.records.record_batch import RecordBatch
from kdump.segments.regions import Damage
from kdump.segments.resync import read
from testing import forge
from testing.processes import kdump, python
from tests.helpers.counting import CountedBytes, calls, is_linear

MIB = 1 << 20
LOG = "00000000000000000000.log"
CODECS = [compression.GZIP, compression.SNAPPY, compression.LZ4, compression.ZSTD]
LIES = [(1 << 31) - 1, (1 << 31) - 62, 1 << 30, -1, -2, -(1 << 31)]
ENDLESS = b"\xff" * 11
TINY = forge.record(None, None)


def bounded(memory, *args) -> subprocess.CompletedProcess:
    """Run kdump in ``memory`` bytes of address space. Python with its libraries takes about 100 MiB."""
    return kdump(*args, shell=f'ulimit -v {memory >> 10}; exec "$@"', timeout=100)


IDLE = 64 * MIB
"""Upper limit of the memory of Python with all imports of kdump."""


class Ended(NamedTuple):
    """How a run ended: exit status, output, and its peak of resident memory in bytes."""

    status: int
    stdout: bytes
    stderr: bytes
    peak: int


LAUNCH = """
import os, sys
child = os.posix_spawn(sys.executable, [sys.executable, *sys.argv[2:]], os.environ)
_, status, used = os.wait4(child, 0)
with open(sys.argv[1], "w") as result:
    print(used.ru_maxrss << 10, file=result)
sys.exit(os.waitstatus_to_exitcode(status) & 0xFF)
"""
"""Runs Python and writes how many bytes of memory it took.

The peak of a process includes that of its parent, so the parent must be smaller than pytest.
"""


def peak_in_child(*args) -> Ended:
    """Run kdump in a child process and measure it."""
    with tempfile.NamedTemporaryFile("r") as reported:
        launch = ["-S", "-c", LAUNCH, reported.name]
        done = python(*launch, "-m", "kdump", *args, stdin=subprocess.DEVNULL, timeout=100)
        return Ended(done.returncode, done.stdout, done.stderr, int(reported.read()))


def write(folder, *entries):
    path = folder / LOG
    path.write_bytes(b"".join(entries))
    return path


def zstd_bomb(size):
    """A frame of blocks of 4 bytes. Each repeats one byte 128 KiB times."""
    block = struct.pack("<I", 1 << 17 << 3 | 1 << 1)[:3] + b"\0"
    return b"\x28\xb5\x2f\xfd\x00\x58" + block * (size >> 17) + struct.pack("<I", 1)[:3]


def bomb(codec, size):
    return zstd_bomb(size) if codec == compression.ZSTD else compression.compress(codec, bytes(size))


def regions(path, limit=compression.DEFAULT_LIMIT):
    """Read a whole segment; return its regions, including damage of records."""
    found = []
    with LocalFile(path) as source:
        source.limit = limit
        for region in read(source):
            found.append(region)
            if isinstance(region, RecordBatch):
                try:
                    for _ in region.records(limit):
                        pass
                except DamageError as damage:
                    found.append(damage)
    return found


def peak_of(work):
    """Run ``work``; return its result, and the peak of Python's memory during it."""
    tracemalloc.start()
    try:
        return work(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("codec", CODECS, ids=compression.NAMES.__getitem__)
def test_a_bomb_ends_within_the_memory_that_the_limit_gives(tmp_path, codec):
    path = write(tmp_path, forge.batch([TINY], attributes=codec, payload=bomb(codec, 100 * MIB)))
    done = bounded(200 * MIB, "--files", path, "--deep-iteration", "--max-batch-bytes", 16 * MIB)
    assert done.returncode == 1
    assert b"decompresses to more than the limit (--max-batch-bytes sets it;" in done.stderr
    assert done.stdout.count(b"\n") == 3
    done = bounded(250 * MIB, "dump", path, "-o", "jsonl", "--max-batch-bytes", 16 * MIB)
    assert done.returncode == 3
    assert b"more than the limit" in done.stdout


EVERY_COMMAND = {
    "files": ["--files", "{path}", "--print-data-log"],
    "dump": ["dump", "{path}", "-o", "jsonl"],
    "dump --batches": ["dump", "{path}", "--batches"],
    "get": ["get", "t-0@0", "--in", "{folder}", "-o", "jsonl"],
    "get --hexdump": ["get", "t-0@0", "--in", "{folder}", "--hexdump"],
    "check": ["check", "{folder}"],
    "verify-index": ["verify-index", "{folder}"],
    "rebuild-index": ["rebuild-index", "{path}", "--out", "{out}"],
    "salvage": ["salvage", "{folder}", "--out", "{out}"],
    "slice": ["slice", "{path}", "--offset", "0..", "--out", "{out}"],
}
UNPACKS = {"files", "dump", "get", "get --hexdump", "check"}
"""Commands that decompress a valid batch of magic 2; the others use only its header."""
UNWRAPS = UNPACKS | {"dump --batches", "salvage"}
"""Commands that decompress a wrapper: also those that print its first offset."""


def status_of_damage(name):
    """DumpLogSegments ends with 1 at damage; all other commands end with 3."""
    return 1 if name == "files" else 3


def with_time_index(folder, *entries):
    """A partition whose records every command reads: its time index points to the batch."""
    folder.mkdir()
    path = write(folder, *entries)
    (folder / LOG).with_suffix(".index").write_bytes(struct.pack(">ii", 0, 0))
    (folder / LOG).with_suffix(".timeindex").write_bytes(struct.pack(">qi", 1, 0))
    return path


@functools.cache
def packed_zeros(codec, magic):
    """Return 100 MiB of zeros, compressed with a codec."""
    return bomb(codec, 100 * MIB) if magic > 1 else compression.compress(codec, bytes(100 * MIB), magic=magic)


def bombs():
    """A batch in each codec and a wrapper, which is decompressed even for its offset; none exceeds the limit itself."""
    for codec in CODECS:
        yield lambda codec=codec: forge.batch([TINY], attributes=codec, payload=packed_zeros(codec, 2)), UNPACKS
    yield lambda: forge.entry(0, forge.message(1, None, packed_zeros(compression.GZIP, 1), attributes=1)), UNWRAPS


@pytest.mark.parametrize("name", EVERY_COMMAND)
@pytest.mark.parametrize(("entry", "met_by"), [*bombs()], ids=["gzip", "snappy", "lz4", "zstd", "wrapper"])
def test_every_command_ends_within_the_memory_of_its_limit(tmp_path, name, entry, met_by):
    folder = tmp_path / "t-0"
    path = with_time_index(folder, entry())
    words = {"path": path, "folder": folder, "out": tmp_path / "out"}
    arguments = [word.format(**words) for word in EVERY_COMMAND[name]]
    done = peak_in_child(*arguments, "--max-batch-bytes", 5 * MIB)
    assert done.peak < IDLE + 8 * 5 * MIB
    assert b"Traceback" not in done.stderr
    said = b"more than the limit (--max-batch-bytes sets it;" in done.stdout + done.stderr
    damage = 0 if name == "check" else status_of_damage(name)  # the limit is kdump's own: what is not checked is named
    assert (said, done.status) == ((True, damage) if name in met_by else (False, 0))


@pytest.mark.parametrize("name", [name for name in EVERY_COMMAND if name not in {"check", "verify-index"}])
def test_every_command_takes_a_batch_above_its_limit_for_damage(tmp_path, name):
    folder = tmp_path / "t-0"
    path = with_time_index(folder, forge.batch([forge.record(None, bytes(2 * MIB))]))
    words = {"path": path, "folder": folder, "out": tmp_path / "out"}
    done = peak_in_child(*(word.format(**words) for word in EVERY_COMMAND[name]), "--max-batch-bytes", MIB)
    assert done.status == status_of_damage(name)
    assert b"larger than the limit (--max-batch-bytes sets it;" in done.stdout + done.stderr


CHECKED = {
    "magic 2": forge.batch([forge.record(None, bytes(2 * MIB))]),
    "magic 1": forge.entry(0, forge.message(1, None, bytes(2 * MIB))),
}


@pytest.mark.parametrize("large", CHECKED.values(), ids=CHECKED)
@pytest.mark.parametrize("name", ["check", "verify-index"])
def test_a_check_has_no_verdict_on_a_valid_batch_above_its_limit(tmp_path, name, large):
    folder = tmp_path / "t-0"
    with_time_index(folder, large)
    size = len(large) - 12
    (tmp_path / "meta.properties").write_text("version=0\nbroker.id=1\n")
    done = peak_in_child(name, tmp_path, "--max-batch-bytes", MIB)
    assert done.status == 1
    assert f"byte 0: a batch of {size} bytes is valid, but larger than kdump's limit of {MIB} bytes" in str(done.stderr)
    assert f"give --max-batch-bytes {size} or more" in str(done.stderr)
    assert b"damaged" not in done.stdout
    assert b"truncate" not in done.stdout
    assert done.peak < IDLE + 8 * MIB


@pytest.mark.parametrize(
    "damage", [b"\xff" * 40, forge.batch([forge.record(None, b"x")])[:-1] + b"y"], ids=["size", "crc"]
)
@pytest.mark.parametrize("large", CHECKED.values(), ids=CHECKED)
def test_a_valid_batch_above_the_limit_is_no_damage_after_other_damage(tmp_path, large, damage):
    folder = tmp_path / "t-0"
    log = damage + large + forge.batch([forge.record(None, b"z")], base_offset=1)
    with_time_index(folder, log)
    done = kdump("check", folder, "--max-batch-bytes", MIB)
    assert done.returncode == 1
    text = f"byte {len(damage)}: a batch of {len(large) - 12} bytes is valid, but larger than kdump's limit"
    assert text in done.stderr.decode()
    rows = kdump("dump", folder, "-o", "jsonl", "--max-batch-bytes", MIB).stdout.splitlines()
    found = [row for row in map(json.loads, rows) if row["kind"] == "damage"]
    assert [(row["position"], row["size"]) for row in found] == [(0, len(damage)), (len(damage), len(large))]


@pytest.mark.parametrize("name", ["check", "verify-index"])
def test_a_check_reports_a_batch_above_the_limit_with_a_wrong_checksum(tmp_path, name):
    folder = tmp_path / "t-0"
    large = bytearray(forge.batch([forge.record(None, bytes(2 * MIB))]))
    large[-1] ^= 1
    with_time_index(folder, bytes(large))
    done = kdump(name, folder, "--max-batch-bytes", MIB)
    assert done.returncode == 3
    assert b"larger than the limit (--max-batch-bytes sets it;" in done.stdout


def test_a_metadata_log_above_the_limit_leaves_the_start_unknown(tmp_path):
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    write(folder, forge.batch([forge.record(None, bytes(2 * MIB))]))
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=I2eXt9rvSnyhct8BYmW6-w\n")
    (tmp_path / "t-0").mkdir()
    write(tmp_path / "t-0", forge.batch([TINY]), forge.batch([TINY], base_offset=2))
    done = kdump("check", tmp_path, "--max-batch-bytes", MIB)
    assert done.returncode == 1
    assert b"the files do not show whether broker 1 starts" in done.stdout
    assert b"\nbroker 1 starts" not in done.stdout


def written(folder, *entries):
    """Return the folder of a partition with one segment."""
    (folder / "t-0").mkdir()
    return write(folder / "t-0", *entries).parent


@pytest.mark.parametrize(
    ("form", "part"),
    [
        (["dump", "-o", "arrow", "{path}"], 1),
        (["dump", "-o", "parquet", "{path}", "--out", "{out}"], 3),
        (["sql", "select * from records", "{path}", "-o", "csv"], 3),
        (["sql", "select * from records", "{path}", "-o", "parquet", "--out", "{out}"], 3),
    ],
    ids=["arrow", "parquet", "sql csv", "sql parquet"],
)
def test_a_form_whose_library_holds_copies_has_a_lower_limit(tmp_path, form, part):
    path = written(tmp_path, forge.batch([forge.record(b"k", bytes(2 * MIB))]))
    for limit, status in ((part * 2 * MIB, 3), (part * (2 * MIB + 4096), 0)):
        words = {"path": path, "out": tmp_path / f"out-{limit}"}
        done = kdump(*(word.format(**words) for word in form), "--max-batch-bytes", limit)
        assert done.returncode == status, done.stderr
        assert (b"--max-batch-bytes sets it; Parquet and sql take a third of it" in done.stderr) == (status == 3)


@pytest.mark.parametrize("grep", [(), ("--grep", "^")], ids=["by the kernel", "as objects"])
@pytest.mark.parametrize("codec", [compression.NONE, compression.ZSTD], ids=compression.NAMES.__getitem__)
def test_headers_count_by_their_columns(tmp_path, codec, grep):
    """Arrow has 8 bytes for a header of 3 bytes. Other forms read the record."""
    count = 300_000
    body = b"\0\0\0" + forge.sized(b"many") + forge.sized(None) + forge.varint(count) + b"\2h\1" * count
    records = forge.record(b"first", b"") + forge.varint(len(body)) + body
    payload = compression.compress(codec, records)
    path = written(tmp_path, forge.batch([], count=2, attributes=codec, payload=payload))
    for limit, status in ((3 * MIB, 3), (4 * MIB, 0)):
        done = kdump("dump", path, "-o", "arrow", *grep, "--max-batch-bytes", limit)
        assert done.returncode == status, done.stderr
        assert (b"a record has 300,000 headers, which take more memory than the limit" in done.stderr) == (status == 3)
        rows = pa.ipc.open_stream(done.stdout).read_all()
        assert rows["key"].to_pylist() == [b"first", b"many"][: rows.num_rows]
        assert rows.num_rows == (1 if status else 2)
        assert kdump("dump", path, "-o", "jsonl", *grep, "--max-batch-bytes", limit).returncode == 0


def test_the_limit_as_it_is_holds_a_bomb_of_gigabytes(tmp_path):
    path = write(tmp_path, forge.batch([TINY], attributes=compression.ZSTD, payload=bomb(compression.ZSTD, 20 << 30)))
    done = bounded(1024 * MIB, "--files", path, "--print-data-log")
    assert done.returncode == 1
    assert b"at most 268435456 bytes" in done.stderr


@pytest.mark.parametrize("codec", CODECS[:3], ids=compression.NAMES.__getitem__)
def test_a_bomb_in_a_wrapper(tmp_path, codec):
    packed = compression.compress(codec, bytes(60 * MIB), magic=1)
    path = write(tmp_path, forge.entry(0, forge.message(1, None, packed, attributes=codec)))
    done = bounded(200 * MIB, "--files", path, "--deep-iteration", "--max-batch-bytes", 16 * MIB)
    assert done.returncode == 1
    assert b"more than the limit" in done.stderr


def test_what_stays_below_the_limit_is_read_within_some_times_the_limit(tmp_path):
    record = forge.record(b"k", bytes(7 * MIB))
    for codec in CODECS:
        path = write(tmp_path, forge.batch([record], attributes=codec, payload=compression.compress(codec, record)))
        done = bounded((110 + 8 * 8) * MIB, "--files", path, "--print-data-log", "--max-batch-bytes", 8 * MIB)
        assert (done.returncode, done.stderr) == (0, b"")
        assert len(done.stdout) > 7 * MIB


@pytest.mark.parametrize("size", [1 << 28, (1 << 31) - 1])
def test_the_size_that_a_snappy_block_claims_is_not_allocated(size):
    claim = forge.varint(size // 2)  # zigzag doubles
    with pytest.raises(DamageError, match="claims to hold"):
        peak_of(lambda: compression.decompress(compression.SNAPPY, claim + b"\x00abc"))
    block = compression.compress(compression.SNAPPY, b"")[:16] + struct.pack(">i", size) + b"abc"
    with pytest.raises(DamageError, match="claims"):
        compression.decompress(compression.SNAPPY, block)


def test_a_zstd_frame_that_wants_a_window_of_gigabytes_is_refused():
    frame = b"\x28\xb5\x2f\xfd\x00" + bytes([31 - 10 << 3]) + struct.pack("<I", 1)[:3]
    with pytest.raises(DamageError, match="zstd"):
        compression.decompress(compression.ZSTD, frame)


def test_a_batch_that_is_larger_than_the_limit_is_damage(tmp_path):
    path = write(tmp_path, forge.batch([forge.record(None, bytes(MIB))]), forge.batch([TINY], base_offset=1))
    large, *rest = regions(path, MIB)
    assert isinstance(large, Damage)
    assert (large.kind, large.at) == ("limit", 8)
    assert [region.base_offset for region in rest] == []
    with LocalFile(path) as source:
        source.limit = MIB
        kinds = [type(region).__name__ for region in read(source, on_error="skip")]
    assert kinds == ["Damage", "Batch"]
    done = bounded(300 * MIB, "--files", path, "--max-batch-bytes", MIB)
    assert done.returncode == 1
    assert b"larger than the limit" in done.stderr


def lying_records(lie):
    """Records with one wrong field."""
    sound = forge.record(b"key", b"value", headers=[(b"h", b"v")])
    yield "size", forge.varint(lie) + sound[1:]
    rest = b"\0\0\0" + b"".join([forge.sized(b"key"), forge.sized(b"value")])
    for name, body in {
        "key": b"\0\0\0" + forge.varint(lie) + b"key",
        "value": b"\0\0\0" + forge.sized(b"key") + forge.varint(lie) + b"value",
        "headers": rest + forge.varint(lie),
        "header key": rest + forge.varint(1) + forge.varint(lie) + b"h",
        "header value": rest + forge.varint(1) + forge.sized(b"h") + forge.varint(lie) + b"v",
        "endless": b"\0" + ENDLESS,
    }.items():
        yield name, forge.varint(len(body)) + body


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("codec", [compression.NONE, *CODECS], ids=compression.NAMES.__getitem__)
def test_fields_of_records_that_lie(tmp_path, codec, lie):
    for name, record in lying_records(lie):
        payload = compression.compress(codec, record)
        path = write(tmp_path, forge.batch([TINY], attributes=codec, payload=payload))
        found, peak = peak_of(lambda path=path: regions(path))
        is_null = lie < 0 and name in {"key", "value", "header value"}  # any negative size is null
        assert isinstance(found[-1], DamageError) or is_null, name
        assert peak < 12 * MIB, name


@pytest.mark.parametrize("lie", LIES)
def test_fields_of_batches_that_lie(tmp_path, lie):
    for codec in (compression.NONE, *CODECS):
        payload = compression.compress(codec, TINY * 3)
        path = write(
            tmp_path, forge.batch([TINY] * 3, attributes=codec, count=lie, last_offset_delta=2, payload=payload)
        )
        found, peak = peak_of(lambda path=path: regions(path))
        assert [type(region).__name__ for region in found] == ["Batch", "DamageError"]
        assert peak < 12 * MIB
    path = write(tmp_path, forge.batch([TINY], size=lie))
    assert not isinstance(peak_of(lambda: regions(path))[0][0], RecordBatch)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("lie", LIES[:3])
def test_fields_of_messages_that_lie(tmp_path, magic, lie):
    message = forge.message(magic, b"key", b"value")
    inner = struct.pack(">qi", 0, lie) + message
    packed = gzip.compress(forge.entry(0, message) + inner, mtime=0)
    path = write(tmp_path, forge.entry(1, forge.message(magic, None, packed, attributes=1)))
    found, peak = peak_of(lambda: regions(path))
    assert [type(region).__name__ for region in found] == ["Message"]  # as in Kafka, a cut-off last one ends the set
    assert peak < 12 * MIB
    body = message[4:-16] + struct.pack(">i", lie) + message[-12:]
    path = write(tmp_path, forge.entry(0, struct.pack(">I", zlib.crc32(body)) + body))
    found, peak = peak_of(lambda: regions(path))
    assert isinstance(found[-1], DamageError | Damage)
    assert peak < 12 * MIB


def test_wrappers_do_not_nest(tmp_path):
    inner = forge.message(1, b"k", b"v")
    for _ in range(50):
        inner = forge.message(1, None, gzip.compress(forge.entry(0, inner), mtime=0), attributes=1)
    found = regions(write(tmp_path, forge.entry(0, inner)))
    assert "compressed again" in str(found[-1])


def test_many_records_of_a_compressed_batch_are_not_held(monkeypatch):
    monkeypatch.setattr("kdump.records.magic_2._HELD", 1000)
    payload = compression.compress(compression.GZIP, TINY * 20_000)
    data = forge.batch([], count=20_000, attributes=compression.GZIP, payload=payload)
    batch = Batch(memoryview(data), 0, len(data))
    count, peak = peak_of(lambda: sum(1 for _ in batch.records()))
    assert count == 20_000
    assert peak < MIB
    data = forge.batch([], count=20_001, attributes=compression.GZIP, payload=payload)
    with pytest.raises(DamageError, match="20001"):  # a batch is read whole or not at all
        next(Batch(memoryview(data), 0, len(data)).records())


def test_many_messages_of_a_wrapper_are_not_held():
    packed = gzip.compress(forge.entry(0, forge.message(0, None, None)) * 20_000, mtime=0)
    message = Message(memoryview(forge.message(0, None, packed, attributes=1)), 0, 0)
    count, peak = peak_of(lambda: sum(1 for _ in message.messages()))
    assert count == 20_000
    assert peak < 3 * MIB


FORMS = (
    ("dump", "-o", "text"),
    ("dump", "-o", "jsonl"),
    ("dump", "-o", "csv"),
    ("dump", "-f", "%o\n"),
    ("dump", "-o", "jsonl", "--grep", "x|^$"),
    ("dump", "-o", "jsonl", "--redact", "--redact-key", "{key}"),
    ("get", "t-0@7", "--in"),
    ("explain", "t-0@7", "--in"),
    ("check",),
    ("stats", "--records"),
)


@pytest.mark.parametrize("form", FORMS, ids=" ".join)
def test_a_batch_of_many_tiny_records_is_read_in_little_memory(tmp_path, form):
    """As objects of 300 bytes they would take 12 MB. A limit of kdump is not damage."""
    count = 40_000
    (tmp_path / "key").write_bytes(bytes(32))
    folder = tmp_path / "t-0"
    folder.mkdir()
    records = b"".join(forge.record(None, b"x", offset=n) for n in range(count))
    payload = compression.compress(compression.ZSTD, records)
    (folder / LOG).write_bytes(forge.batch([], count=count, attributes=compression.ZSTD, payload=payload))
    args = [arg.format(key=tmp_path / "key") for arg in form]
    done = peak_in_child(*args, folder, "--max-batch-bytes", MIB)
    assert done.status == 0, done.stderr
    assert done.peak < IDLE
    if form[0] == "dump":
        assert count <= len(done.stdout.splitlines()) <= count + 3


@pytest.mark.parametrize("count", [3, 400])
def test_records_that_are_not_held_are_those_that_are(tmp_path, monkeypatch, count):
    """Reading the records again gives the same result as holding them, for any selection, with and without damage."""
    path = tmp_path / "t-0" / LOG
    path.parent.mkdir()
    records = b"".join(forge.record(b"%d" % n, b"v" * (n % 7), offset=n) for n in range(count))
    whole = forge.batch([], count=count, payload=records)
    for data in (whole, forge.batch([], count=count + 1, payload=records + b"\x0a\1"), wrapped(count)):
        path.write_bytes(data)
        found = []
        for held in (batch_selection.HELD, 1):
            monkeypatch.setattr(batch_selection, "HELD", held)
            log = kdump_open(path.parent, grep=rb"[13579]$")
            found.append(([(one.offset, one.key, one.value) for one in log], log.damage))
            arrow = kdump_open(path.parent, grep=rb"[13579]$").to_arrow(["offset", "key"]).read_all()
            assert arrow.column("offset").to_pylist() == [offset for offset, *_ in found[-1][0]]
        assert found[0] == found[1]
        assert len(found[0][0]) > 0


def wrapped(count: int) -> bytes:
    inner = [(n, forge.message(1, b"%d" % n, b"v")) for n in range(count)]
    return forge.wrapper(1, count - 1, inner)


@pytest.mark.parametrize(
    ("codec", "unit"),
    [
        (compression.GZIP, gzip.compress(b"", mtime=0)),
        (compression.ZSTD, b"\x28\xb5\x2f\xfd\x20\x00\x01\x00\x00"),
        (compression.SNAPPY, compression.compress(compression.SNAPPY, b"")[:16] + b"\0\0\0\x01\0"),
    ],
    ids=["gzip", "zstd", "snappy"],
)
def test_many_empty_streams_take_linear_time(codec, unit):
    few, many = CountedBytes(unit * 2000), CountedBytes(unit * 8000)
    took = [calls(lambda data=data: compression.decompress(codec, data)) for data in (few, many)]
    assert is_linear(*took)
    assert is_linear(few.copied, many.copied)
    assert compression.decompress(codec, unit * 2000) == b""


def test_noise_is_damage_or_little(tmp_path):
    noise = random.Random(3)
    for _ in range(50):
        path = write(tmp_path, noise.randbytes(3000))
        _, peak = peak_of(lambda path=path: regions(path, 4 * MIB))
        assert peak < 16 * MIB


def test_the_limit_is_one_or_more():
    done = bounded(400 * MIB, "--files", "x.log", "--max-batch-bytes", "0")
    assert done.returncode == 2


def test_the_kind_of_damage_is_limit():
    with pytest.raises(LimitError) as raised:
        compression.decompress(compression.ZSTD, bomb(compression.ZSTD, 4 * MIB), limit=MIB)
    assert raised.value.kind == "limit"
