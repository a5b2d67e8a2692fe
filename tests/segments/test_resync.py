"""Reading past damage: what is intact is had back, what has a wrong crc is never called valid."""

from __future__ import annotations

import os
import random
import time
import zlib
from functools import partial

import pytest

from kdump.log_dirs.local import LocalFile
from kdump.primitives import crc
from kdump.records.record_batch import RecordBatch
from kdump.segments import read as segments_read
from kdump.segments import resync, walk
from kdump.segments.parts import SegmentPart
from kdump.segments.regions import Damage, Padding
from kdump.segments.resync import AT_ONCE, STRETCH, RangeChecksum
from testing import forge
from testing.damages import damage
from tests.helpers.segments import Memory, regions


def read(data: bytes, on_error="resync", **rest) -> list:
    """Read behind damage."""
    return regions(data, partial(segments_read.read, on_error=on_error, **rest))


def shape(data: bytes, on_error="resync") -> str:
    """One letter per region: Batch, Damage, Padding, Trailing."""
    return "".join(
        "B" if isinstance(region, RecordBatch) else type(region).__name__[0] for region in read(data, on_error)
    )


def one(offset: int, *, size: int = 40, **rest) -> bytes:
    value = random.Random(offset).randbytes(size)
    return forge.batch([forge.record(b"k%d" % offset, value)], base_offset=offset, **rest)


def test_one_bad_length_costs_one_batch():
    batches = [one(offset) for offset in range(11)]
    for size in (0x7FFFFFFF, 5, 0, -3, 200, 48, 1000):
        data = b"".join([*batches[:3], one(3, size=40)[:8] + size.to_bytes(4, "big", signed=True), batches[3][12:]])
        found = read(data + b"".join(batches[4:]))
        assert [region.base_offset for region in found if isinstance(region, RecordBatch)] == [0, 1, 2, *range(4, 11)]
        (damage,) = [region for region in found if isinstance(region, Damage)]
        assert (damage.position, damage.size) == (3 * len(batches[0]), len(batches[3]))
        assert damage.missing == range(3, 4)
        assert damage.at == damage.position + (17 if size == 200 else 8)


@pytest.mark.parametrize("magic", [3, 9, 127, -1, 0, 1])
def test_a_wrong_magic_lies_outside_the_crc_and_is_damage(magic):
    found = read(one(0) + one(1, magic=magic) + one(2))
    assert [type(region).__name__ for region in found] == ["Batch", "Damage", "Batch"]
    assert found[1].missing == range(1, 2)


def test_the_three_ways_to_go_on():
    bad_crc, bad_length = one(1, crc=1), one(1)[:8] + b"\x7f\0\0\0" + one(1)[12:]
    assert [shape(one(0) + bad_crc + one(2) + one(3), way) for way in ("stop", "skip", "resync")] == [
        "BD",
        "BDBB",
        "BDBB",
    ]
    assert [shape(one(0) + bad_length + one(2), way) for way in ("stop", "skip", "resync")] == ["BT", "BT", "BDB"]


def test_damage_at_the_beginning_counts_from_the_base_offset():
    data = b"noise" * 9 + one(7)
    assert read(data)[0].missing is None
    assert read(data, first_offset=4)[0].missing == range(4, 7)


def test_damage_at_the_end_says_from_which_offset_on():
    damage = read(one(0) + one(1, crc=1))[1]
    assert (damage.missing_from, damage.missing_until, damage.missing) == (1, None, None)


@pytest.mark.parametrize("zeros", [17, 61, 5000, 3 << 20])
def test_a_zero_tail_is_padding_behind_damage_too(zeros):
    assert shape(one(0) + bytes(zeros)) == "BP"
    found = read(one(0) + one(1, crc=1) + bytes(zeros))
    assert [type(region) for region in found[1:]] == [Damage, Padding]
    assert found[2].size == zeros
    assert shape(bytes(zeros)) == "P"


def test_zeros_in_the_middle_are_damage():
    found = read(one(0) + bytes(3 << 20) + one(1))
    assert [type(region).__name__ for region in found] == ["Batch", "Damage", "Batch"]
    assert found[1].size == 3 << 20
    assert found[1].missing == range(1, 1)


def test_cut_at_every_byte():
    whole = one(0) + one(1) + one(2, crc=1) + one(3)
    starts = [0, len(one(0)), len(one(0) + one(1)), len(one(0) + one(1) + one(2))]
    for cut in range(len(whole)):
        intact = [
            at for at, end in zip(starts, [*starts[1:], len(whole)], strict=True) if end <= cut and at != starts[2]
        ]
        assert [region.position for region in read(whole[:cut]) if isinstance(region, RecordBatch)] == intact


@pytest.mark.parametrize("garbage", [b"\0" * 40 + b"x", b"\x02" * 300, b"\xff" * 5000, bytes(range(256)) * 40])
def test_garbage_between_behind_and_in_front(garbage):
    assert shape(one(0) + garbage + one(1)) == "BDB"
    assert shape(garbage + one(0)) == "DB"
    assert shape(one(0) + garbage) in ("BD", "BT")


OLD = [
    forge.entry(1, forge.message(0, b"k", b"v")),
    forge.entry(2, forge.message(1, b"k", None, timestamp=5)),
    forge.wrapper(
        1, 5, [(0, forge.message(1, b"a", b"b", timestamp=1)), (1, forge.message(1, b"a", b"c", timestamp=2))]
    ),
    forge.wrapper(0, 7, [(6, forge.message(0, b"a", b"b")), (7, forge.message(0, b"a", b"c"))]),
]


@pytest.mark.parametrize("damaged", range(len(OLD)))
def test_magic_0_and_1(damaged):
    for at in range(len(OLD[damaged])):
        entries = list(OLD)
        entries[damaged] = entries[damaged][:at] + bytes([entries[damaged][at] ^ 0x11]) + entries[damaged][at + 1 :]
        found = read(one(0) + b"".join(entries) + one(8))
        intact = [bytes(region.raw) for region in found if isinstance(region, RecordBatch)]
        if at >= 8:  # nothing guards the offset
            assert intact == [one(0), *OLD[:damaged], *OLD[damaged + 1 :], one(8)]


def test_a_copy_of_a_batch_inside_a_record():
    """Not taken from a sound batch, nor from a damaged one whose end is certain."""
    inner = one(900)
    outer = forge.batch([forge.record(None, inner), forge.record(None, b"x" * 30)], base_offset=1, last_offset_delta=1)
    assert shape(one(0) + outer + one(3)) == "BBB"
    for at in (12 + 5, 61 + 3, len(outer) - 5):  # crc, the value's beginning, the value's end
        bad = outer[:at] + bytes([outer[at] ^ 1]) + outer[at + 1 :]
        assert shape(one(0) + bad + one(3)) == "BDB"
        assert shape(one(0) + bad) == "BD"
    length = outer[:8] + b"\0\0\x7f\xff" + outer[12:]
    assert shape(one(0) + length + one(3)) == "BDB"
    compressed = forge.batch([], payload=b"\x11" * 9 + inner, attributes=4, count=1)
    assert shape(compressed[:16] + b"\x03" + compressed[17:] + one(1)) == "DB"


def test_a_batch_that_was_moved_into_another_is_found():
    host = forge.batch([forge.record(b"k", b"v" * 50, offset=n) for n in range(100)])
    moved = one(900)
    assert shape(host[:2000] + moved + host[2000 + len(moved) :] + one(100)) == "DBDB"


def random_log(rng: random.Random) -> list[bytes]:
    """Batches of all magics, of one record or many, compressed or not, small or of several pages."""
    offset, made = rng.choice([0, 1 << 33]), []
    for _ in range(rng.randint(20, 60)):
        count = rng.choice([1, 1, 2, 10, 60])
        records = [forge.record(rng.randbytes(3), rng.randbytes(rng.randint(0, 200)), offset=n) for n in range(count)]
        kind = rng.randrange(6)
        if kind == 0:
            made.append(forge.entry(offset, forge.message(rng.randrange(2), None, rng.randbytes(rng.randint(0, 200)))))
            count = 1
        elif kind == 1:
            made.append(
                forge.wrapper(1, offset + 1, [(n, forge.message(1, b"k", rng.randbytes(50))) for n in range(2)])
            )
            count = 2
        elif kind == 2:
            payload = zlib.compress(b"".join(records))
            made.append(forge.batch(records, payload=payload, base_offset=offset, attributes=1))
        else:
            made.append(forge.batch(records, base_offset=offset, producer_id=rng.choice([-1, 7])))
        offset += count
    return made


@pytest.mark.parametrize("hundred", range(20))
def test_what_is_intact_is_recovered_from_2000_random_damages(hundred):
    for seed in range(hundred * 100, hundred * 100 + 100):
        rng = random.Random(seed)
        batches = random_log(rng)
        starts = [0]
        for each in batches:
            starts.append(starts[-1] + len(each))
        data = bytearray(b"".join(batches))
        done = [damage(data, rng, starts) for _ in range(rng.choice([1, 1, 3]))]
        data = bytes(data)
        found = {region.position: region for region in read(data) if isinstance(region, RecordBatch)}
        assert all(region.crc_valid for region in found.values())
        sizes = {start: region.size for start, region in found.items()}
        for each in set(batches):
            at = data.find(each)
            while at >= 0:
                # What was put into the last byte of a batch may repeat that byte: then the two overlap.
                if not any(start < at < start + size for start, size in sizes.items()):
                    assert at in found, (seed, done, at, len(each))
                    assert bytes(found[at].raw) == each
                at = data.find(each, at + 1)


def test_checksums_of_any_stretch():
    data = random.Random(1).randbytes(3 * STRETCH + 77)
    for kind in (crc.CRC32, crc.CRC32C):
        sums = RangeChecksum(Memory(data), 5, kind)
        for start, end in [
            (5, 5),
            (5, 6),
            (100, 3 * STRETCH),
            (STRETCH + 5, 2 * STRETCH + 5),
            (9, len(data)),
            (5, len(data)),
        ]:
            assert sums.of(start, end) == kind.of(data[start:end])


def test_a_long_batch_behind_damage():
    """One that is longer than what is summed at once, and crosses the blocks that are read."""
    long = one(1, size=AT_ONCE + 3 * walk.BLOCK)
    assert shape(one(0) + b"\x01" * 99 + long + b"\x01" * 99 + one(2)) == "BDBDB"


@pytest.mark.parametrize("claim", [100, 100_000, 0])
def test_hostile_bytes_are_read_in_linear_time(claim):
    """A header every 61 bytes, each with a claim that overlaps the others': to the end of the file, or long."""
    header = forge.batch([], count=1, base_offset=0x0202020202)[:61]
    count = 6000
    data = b"".join(
        header[:8] + (claim or (count - n) * 61 - 12).to_bytes(4, "big") + header[12:] for n in range(count)
    )
    began = time.process_time()
    assert set(shape(data + one(1))) <= {"D", "B"}
    assert time.process_time() - began < 5


class Noted(LocalFile):
    """A file that notes how many bytes are read of it."""

    bytes_read = 0

    def read(self, position, size):
        self.bytes_read += size
        return super().read(position, size)


FILLS = {
    "zeros": bytes(1 << 16),
    "the magic": b"\2" * (1 << 16),
    "ones": b"\1" * (1 << 16),
    "numbers of 4 bytes": b"".join(n.to_bytes(4, "big") for n in range(1 << 14)),
    "numbers of 8 bytes": b"".join(n.to_bytes(8, "big") for n in range(1 << 13)),
}


@pytest.mark.parametrize("times", [3, 120])
@pytest.mark.parametrize("name", FILLS)
def test_a_guess_does_little_whatever_values_look_like(tmp_path, name, times):
    """It finds a batch behind one of 200 KB, and gives one of 8 MB up where that is full of what looks like batches."""
    fill = FILLS[name]
    path = tmp_path / "0.log"
    large = forge.batch([forge.record(b"k", fill * times)], base_offset=1)
    behind = forge.batch([forge.record(b"k", b"v")], base_offset=2)
    first = forge.batch([forge.record(b"k", b"v")])
    path.write_bytes(first + large + behind)
    os.truncate(path, 1 << 30)
    start = len(first) + 1000
    with Noted(path) as source:
        found = resync.guess(source, SegmentPart(start, start + (8 << 20)))
        assert found == (len(first + large) if times == 3 or name == "zeros" else None)
        assert source.bytes_read < 3 * (resync.NEAR + resync.HASHED)


@pytest.mark.parametrize("size", [16 << 10, 100 << 10, 1000 << 10])
def test_a_guess_finds_a_batch_of_another_epoch_behind_random_values(tmp_path, size):
    """Some bytes of these look like a batch of hundreds of megabytes: that ends no search."""
    source = random.Random(7)
    path = tmp_path / "0.log"
    first = forge.batch([forge.record(b"k", b"v")])
    one = [forge.batch([forge.record(b"k", source.randbytes(size))], base_offset=n, leader_epoch=7) for n in (1, 2, 3)]
    path.write_bytes(first + b"".join(one))
    os.truncate(path, 1 << 30)
    starts = [len(first + b"".join(one[:at])) for at in range(4)]
    with LocalFile(path) as log:
        for at in range(2):
            assert resync.guess(log, SegmentPart(starts[at] + 1000, starts[at] + (6 << 20))) == starts[at + 1]
