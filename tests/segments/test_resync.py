"""Reading past damage: intact batches are recovered, and none with a wrong CRC is called valid."""

from __future__ import annotations

import os
import random
import zlib
from functools import partial

import pytest

from kdump.log_dirs.local import LocalFile
from kdump.parallel.costs import SegmentPart, segment_parts
from kdump.primitives import crc
from kdump.records.record_batch import RecordBatch
from kdump.segments import resync, walk
from kdump.segments import resync as segments_read
from kdump.segments.regions import Damage, Padding
from kdump.segments.resync import AT_ONCE, SUM_BYTES, RangeChecksum
from testing import forge
from testing.damages import damage
from tests.helpers.segments import Memory, regions


def read(data: bytes, on_error="resync", **rest) -> list:
    """Read past damage."""
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
def test_a_zero_tail_is_padding_after_damage_too(zeros):
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
def test_garbage_between_after_and_before(garbage):
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
    """Not taken from a valid batch, nor from a damaged one whose end is certain."""
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


def test_checksums_of_any_range():
    """In any order: ascending ranges, gaps larger than the memory of sums, and descending ranges."""
    data = random.Random(1).randbytes(5 * SUM_BYTES + 77)
    marks = [0, 5, 6, 100, SUM_BYTES - 1, SUM_BYTES, SUM_BYTES + 5, 2 * SUM_BYTES + 5, 3 * SUM_BYTES, len(data)]
    ranges = [(start, end) for start in marks for end in marks if start <= end]
    for kind in (crc.CRC32, crc.CRC32C):
        for order in (ranges, ranges[::-1], random.Random(2).sample(ranges, len(ranges))):
            sums = RangeChecksum(Memory(data), kind)
            for start, end in order:
                assert sums.of(start, end) == kind.of(data[start:end])


def test_checksums_before_the_range_are_forgotten_and_a_leap_reads_nothing_between(monkeypatch):
    monkeypatch.setattr(resync, "FORGOTTEN", 4)
    data = random.Random(1).randbytes(60 * SUM_BYTES)
    source = Counted(data)
    sums = RangeChecksum(source, crc.CRC32C)
    for start in range(0, 20 * SUM_BYTES, SUM_BYTES // 2):
        end = start + 2 * SUM_BYTES + 9
        assert sums.of(start, end) == crc.CRC32C.of(data[start:end])
        assert len(sums._sums) < 10
    before = source.bytes_read
    assert sums.of(50 * SUM_BYTES + 1, 51 * SUM_BYTES) == crc.CRC32C.of(data[50 * SUM_BYTES + 1 : 51 * SUM_BYTES])
    assert source.bytes_read - before <= 2 * SUM_BYTES


def test_a_long_batch_after_damage():
    """It is longer than the part that is summed at once, and extends over several blocks."""
    long = one(1, size=AT_ONCE + 3 * walk.BLOCK)
    assert shape(one(0) + b"\x01" * 99 + long + b"\x01" * 99 + one(2)) == "BDBDB"


class Counted(Memory):
    """Bytes that count how many of them are read."""

    bytes_read = 0

    def read(self, position, size):
        found = super().read(position, size)
        self.bytes_read += len(found)
        return found


def _headers(count: int, claim: int) -> bytes:
    header = forge.batch([], count=1, base_offset=0x0202020202)[:61]
    sizes = (claim or (count - n) * 61 - 12 for n in range(count))
    return b"".join(header[:8] + size.to_bytes(4, "big") + header[12:] for size in sizes)


def _messages(count: int, claim: int) -> bytes:
    """Messages of magic 1 whose values contain all following bytes, or ``claim`` of them."""
    size = 34
    made = []
    for n in range(count):
        value = (claim or (count - n) * size) - size
        whole = forge.entry(n, forge.message(1, None, b""))
        made.append(whole[:8] + (value + size - 12).to_bytes(4, "big") + whole[12:-4] + value.to_bytes(4, "big"))
    return b"".join(made)


def _work(data: bytes, monkeypatch) -> tuple[int, int]:
    """Return how many bytes are read, and how many are summed, to read ``data`` and find a batch after it."""
    summed = 0

    def counting(kind: crc.Kind) -> crc.Kind:
        def of(part, before=0):
            nonlocal summed
            summed += len(part)
            return kind.of(part, before)

        return crc.Kind(of, kind.polynomial)

    monkeypatch.setattr(resync, "CRC32C", counting(crc.CRC32C))
    monkeypatch.setattr(resync, "CRC32", counting(crc.CRC32))
    source = Counted(data + one(1))
    found = list(segments_read.read(source, on_error="resync"))
    monkeypatch.undo()
    assert isinstance(found[-1], RecordBatch)
    return source.bytes_read, summed


@pytest.mark.parametrize("claim", [100, 20_000, 0])
@pytest.mark.parametrize("hostile", [_headers, _messages])
def test_claims_that_overlap_are_read_and_summed_in_linear_time(hostile, claim, monkeypatch):
    """Each value claims the rest of the file, or 100 or 20,000 bytes that others also claim."""
    few, many = (_work(hostile(count, claim), monkeypatch) for count in (3000, 12_000))
    for small, large in zip(few, many, strict=True):
        assert large < 5 * small
    count_of_places, per_place = 12_000 * 61, 2 * SUM_BYTES  # a header holds up to ten places like its own first byte
    assert many[1] < 10 * 12_000 * per_place
    assert many[0] < 12 * count_of_places + 12_000 * SUM_BYTES


def test_holes_are_passed_over(tmp_path):
    """A file of terabytes that is almost all holes: between batches, in damage, and after the last batch."""
    path = tmp_path / "00000000000000000000.log"
    far = 3 << 40
    with path.open("wb") as file:
        file.write(one(0) + b"\xff" * 99)
        file.seek(far)
        file.write(b"\0" * 4096 + b"\xff" * 99 + one(1))
        file.seek(2 * far)
        file.write(b"\0" * 4096)
        file.truncate(10 << 40)
    with Noted(path) as source:
        if source.next_data(1 << 20) == 1 << 20:
            pytest.skip("this file system knows no holes")
        assert len(segment_parts(source, source.size)) < 10
        found = list(segments_read.read(source, on_error="resync"))
        assert source.bytes_read < 8 << 20
    assert [type(region).__name__ for region in found] == ["Batch", "Damage", "Batch", "Padding"]
    assert sum(region.size for region in found) == 10 << 40
    _, damage, second, padding = found
    assert second.position == far + 4096 + 99
    assert far - (1 << 20) < damage.holes < far
    assert f"{damage.holes} bytes are in holes of the file" in str(damage)
    assert padding.size - (2 << 20) < padding.holes < padding.size
    assert str(padding) == f"{padding.size} bytes of zeros ({padding.holes} in holes of the file)"


class Noted(LocalFile):
    """A file that counts the bytes read from it."""

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
    """It finds a batch after one of 200 KB. It stops inside a batch of 8 MB that is full of apparent batches."""
    fill = FILLS[name]
    path = tmp_path / "0.log"
    large = forge.batch([forge.record(b"k", fill * times)], base_offset=1)
    after = forge.batch([forge.record(b"k", b"v")], base_offset=2)
    first = forge.batch([forge.record(b"k", b"v")])
    path.write_bytes(first + large + after)
    os.truncate(path, 1 << 30)
    start = len(first) + 1000
    with Noted(path) as source:
        found = resync.guess(source, SegmentPart(start, start + (8 << 20)))
        assert found == (len(first + large) if times == 3 or name == "zeros" else None)
        assert source.bytes_read < 3 * (resync.NEAR + resync.HASHED)


@pytest.mark.parametrize("size", [16 << 10, 100 << 10, 1000 << 10])
def test_a_guess_finds_a_batch_of_another_epoch_after_random_values(tmp_path, size):
    """Some of these bytes look like a batch of hundreds of megabytes, which does not end the search."""
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
