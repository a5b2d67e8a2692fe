"""Entries that the kernel accepts: the general path has the same lines and reports, for any bytes."""

import io
import os
import random
import struct

import pytest

from kdump import kernel
from kdump.dump_log_segments import Options, index_printer
from kdump.dump_log_segments.dialects import segments as dialects
from kdump.dump_log_segments.dispatch import dump_files
from kdump.dump_log_segments.run import DumpRun
from kdump.errors import KdumpError
from kdump.log_dirs.local import LocalFile
from kdump.primitives import compression
from testing import forge

compiled = pytest.mark.skipif(not kernel.COMPILED, reason="without the kernel all entries are judged one by one")


def written(folder, *, batches=24, codec=compression.NONE, zeros=0):
    """Write a segment with an entry in both indexes for every batch; return the three files by suffix."""
    seed = random.Random(1)
    log, index, times = b"", b"", b""
    offset, position = 7, 0
    for number in range(batches):
        count = seed.randrange(1, 5)
        records = [
            forge.record(
                b"k", b"v" * seed.randrange(90), offset=at, timestamp=at * 2, headers=[(b"h", None)] * (at % 2)
            )
            for at in range(count)
        ]
        stamps = {"base_timestamp": number * 100, "max_timestamp": number * 100 + 2 * (count - 1)}
        if codec:
            records = [compression.compress(codec, b"".join(records))]
        attributes = codec | (8 if number % 7 == 3 else 0)
        made = forge.batch(records, base_offset=offset, count=count, attributes=attributes, **stamps)
        position, log = len(log), log + made
        offset += count
        index += struct.pack(">ii", offset - 1 - 7, position)
        times += struct.pack(">qi", stamps["max_timestamp"], offset - 1 - 7)
    files = {"log": log, "index": index[8:] + bytes(zeros), "timeindex": times + bytes(zeros)}
    for suffix, data in files.items():
        (folder / f"{7:020}.{suffix}").write_bytes(data)
    return files


def reported(folder, suffix, capsys, release="4.3", **options):
    out = io.BytesIO()
    run = DumpRun(dialects.find(release), Options(**options), out, release=release)
    damage = None
    try:
        dump_files(run, [f"{folder}/{7:020}.{suffix}"])
    except KdumpError as error:
        damage = repr(error)
    return [damage, out.getvalue(), *capsys.readouterr()]


def doubtful(folder, suffix, release="4.3"):
    """Return the kernel's results."""
    found = []
    with pytest.MonkeyPatch.context() as patch:
        judge = index_printer._doubtful
        patch.setattr(index_printer, "_doubtful", lambda *args: found.append(judge(*args)) or found[-1])
        run = DumpRun(dialects.find(release), Options(), io.BytesIO(), release=release)
        dump_files(run, [f"{folder}/{7:020}.{suffix}"])
    return bytes(found[0])


def same(folder, suffix, capsys, monkeypatch, release="4.3", **options):
    """Assert that the report equals the one without the kernel."""
    quick = reported(folder, suffix, capsys, release, **options)
    with monkeypatch.context() as patch:
        patch.setattr(kernel, "COMPILED", False)
        assert quick == reported(folder, suffix, capsys, release, **options)


@compiled
def test_sound_entries_are_beyond_doubt(tmp_path):
    written(tmp_path)
    assert doubtful(tmp_path, "index") == bytes(23)
    assert doubtful(tmp_path, "timeindex") == bytes(24)


@compiled
def test_zeros_and_compressed_batches_are_not(tmp_path):
    written(tmp_path, zeros=24)
    assert doubtful(tmp_path, "index") == bytes(23) + b"\1" * 3
    written(tmp_path, codec=compression.GZIP)
    assert doubtful(tmp_path, "index") == bytes(23)
    assert doubtful(tmp_path, "timeindex") == b"\1" * 24


@pytest.mark.parametrize("release", ["4.3", "4.2", "2.4", "1.1", "0.10.1"])
@pytest.mark.parametrize("suffix", ["index", "timeindex"])
@pytest.mark.parametrize("zeros", [0, 48])
@pytest.mark.parametrize("codec", [compression.NONE, compression.ZSTD])
def test_broken_files_are_reported_the_same(tmp_path, capsys, monkeypatch, release, suffix, zeros, codec):
    files = written(tmp_path, zeros=zeros, codec=codec)
    same(tmp_path, suffix, capsys, monkeypatch, release)
    seed = random.Random(f"{release} {suffix} {zeros}")
    for _ in range(60):
        broken = seed.choice([*files])
        data = bytearray(files[broken])
        for _ in range(seed.choice([1, 1, 1, 4])):
            at = seed.randrange(len(data))
            data[at] = seed.choice([0, 1, 0x7F, 0x80, 0xFF, data[at] ^ 1, (data[at] + 1) & 0xFF])
        (tmp_path / f"{7:020}.{broken}").write_bytes(bytes(data[: seed.choice([len(data), seed.randrange(len(data))])]))
        only = seed.choice([True, False])
        most = seed.choice([5 << 20, 100, 80])
        same(tmp_path, suffix, capsys, monkeypatch, release, verify_index_only=only, max_message_size=most)
        (tmp_path / f"{7:020}.{broken}").write_bytes(files[broken])


@pytest.mark.parametrize("suffix", ["index", "timeindex"])
@pytest.mark.parametrize("most", [2, 60, 1 << 20])
def test_the_greatest_size_of_a_batch_holds(tmp_path, capsys, monkeypatch, suffix, most):
    written(tmp_path)
    same(tmp_path, suffix, capsys, monkeypatch, max_batch_bytes=most)


def test_what_is_in_memory_is_not_fetched_again(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(bytes(1 << 16))
    fetched = []
    monkeypatch.setattr(os, "posix_fadvise", lambda *args: fetched.append(args[1:3]), raising=False)
    with LocalFile(tmp_path / "file") as source:
        monkeypatch.setattr(source, "_cached", lambda position: position < 5000)
        source.expect(100, 1000)
        assert fetched == []
        source.expect(4000, 1001)
        assert fetched == [(4000, 1001)]
        source.expect(4000, 1 << 20)
        assert fetched == [(4000, 1001), (4000, 1 << 20)]
        source.expect(1 << 16, 1)
        assert len(fetched) == 3
