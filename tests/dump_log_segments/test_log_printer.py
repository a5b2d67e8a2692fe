import gc
import gzip
import os
import sys

import pytest

from kdump import cli, kernel
from kdump.dump_log_segments import Options
from kdump.dump_log_segments.log_printer import end_of
from testing import forge
from testing.processes import kdump

GIB = 1 << 30


@pytest.mark.parametrize(
    ("size", "given", "end"),
    [(100, None, 100), (10 * GIB, None, 10 * GIB), (10 * GIB, GIB, GIB), (100, GIB, 100), (100, 0, 0)],
)
def test_a_segment_is_read_to_its_end_whatever_its_size(size, given, end):
    assert end_of(size, Options() if given is None else Options(max_bytes=given)) == end


@pytest.mark.parametrize(("release", "magic"), [("4.3.1", 2), ("1.1.1", 1), ("0.10.2.2", 1)])
@pytest.mark.parametrize("kernel", ["on", "off"])
def test_the_smallest_offset_follows_the_largest(tmp_path, release, magic, kernel):
    """Recorded from these releases: Java's numbers overflow."""
    largest = 2**63 - 1
    offsets = (largest - 1, largest, -largest - 1, -largest, -largest + 2)
    if magic == 2:
        data = b"".join(forge.batch([forge.record(b"k", b"v")], base_offset=offset) for offset in offsets)
    else:
        data = b"".join(forge.entry(offset, forge.message(1, b"k", b"v")) for offset in offsets)
    (tmp_path / f"{0:020}.log").write_bytes(data)
    done = kdump(
        "--files",
        tmp_path / f"{0:020}.log",
        "--deep-iteration",
        "--compat",
        release,
        env={**os.environ, "KDUMP_KERNEL": kernel},
    )
    followed = [line.strip() for line in done.stderr.decode().splitlines() if "is followed by" in line]
    start = [f"-1 is followed by {offsets[0]}"] if release == "4.3.1" else []
    assert sorted(followed) == sorted([*start, f"{offsets[3]} is followed by {offsets[4]}"])


@pytest.mark.parametrize("size", [10, 1 << 20])
@pytest.mark.parametrize("kernel", ["on", "off"])
def test_no_key_is_printed_before_a_value_that_cannot_be_decoded(tmp_path, size, kernel):
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(forge.batch([forge.record(b"k" * size, b"short")]))
    decoder = ["--value-decoder-class", "org.apache.kafka.tools.api.LongDecoder"]
    environment = {**os.environ, "KDUMP_KERNEL": kernel}
    done = kdump("--files", path, "--print-data-log", *decoder, env=environment)
    assert b"too short for a number of 8 bytes" in done.stderr
    assert done.stdout.splitlines()[-1].startswith(b"| offset: 0")
    assert b"key:" not in done.stdout


@pytest.mark.parametrize("options", [["--print-data-log"], ["--deep-iteration"]], ids="".join)
def test_damage_inside_a_compressed_batch_is_placed_at_the_batch(tmp_path, options):
    path = tmp_path / f"{0:020}.log"
    sound = forge.batch([forge.record(b"k", b"v")])
    records = gzip.compress(forge.record(b"k", b"v" * 5000) + b"\x7fcut", mtime=0)
    batch = forge.batch([], base_offset=1, attributes=1, count=2, last_offset_delta=1, payload=records)
    path.write_bytes(sound + batch)
    done = kdump("--files", path, *options)
    assert done.stderr.decode().startswith(f"error: byte {len(sound)}: {path}: batch at {len(sound)}: record 2 of 2: ")


@pytest.mark.skipif(not kernel.COMPILED, reason="the kernel is not compiled")
@pytest.mark.parametrize("options", [["--files"], ["dump"]], ids=" ".join)
def test_what_the_kernel_holds_goes_with_the_segment(tmp_path, capfd, monkeypatch, options):
    """Otherwise Python would free it after thousands of segments, each with the memory of its lines."""
    from kdump.kernel.lines import Lines

    for number in range(20):
        content = forge.batch([forge.record(b"k", b"v" * 100)], base_offset=number)
        (tmp_path / f"{number:020}.log").write_bytes(content)
    paths = [str(path) for path in sorted(tmp_path.glob("*.log"))]
    monkeypatch.setattr(sys, "argv", ["kdump", *options, *([",".join(paths)] if options == ["--files"] else paths)])
    gc.collect()
    gc.disable()
    before = sum(isinstance(one, Lines) for one in gc.get_objects())  # tests before this one may hold some
    try:
        assert cli.main() == 0
        held = sum(isinstance(one, Lines) for one in gc.get_objects())
    finally:
        gc.enable()
    assert capfd.readouterr().out.count("Dumping") == 20
    assert held - before < 10
