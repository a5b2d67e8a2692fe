"""Offset and time indexes: entries, zero tails, look-ups."""

import tracemalloc

import pytest

from kdump.errors import UsageError
from kdump.formats import offset_index, time_index
from kdump.formats.offset_index import OffsetIndex, OffsetPosition
from kdump.formats.sparse_index import BeforeHole
from kdump.formats.time_index import TimeIndex, TimestampOffset

OFFSETS = [OffsetPosition(101, 310), OffsetPosition(107, 655), OffsetPosition(112, 991)]
TIMES = [TimestampOffset(5_000, 101), TimestampOffset(7_000, 112)]
INDEX = bytes.fromhex("00000001 00000136 00000007 0000028f 0000000c 000003df")
TIMEINDEX = bytes.fromhex("0000000000001388 00000001 0000000000001b58 0000000c")


def test_entries_are_absolute_and_written_back_to_the_byte():
    assert list(OffsetIndex(INDEX, 100)) == OFFSETS
    assert list(TimeIndex(TIMEINDEX, 100)) == TIMES
    assert offset_index.encode(OFFSETS, 100) == INDEX
    assert time_index.encode(TIMES, 100) == TIMEINDEX
    assert offset_index.encode([], 100) == time_index.encode([], 100) == b""


@pytest.mark.parametrize(("kind", "data", "size"), [(OffsetIndex, INDEX, 8), (TimeIndex, TIMEINDEX, 12)])
def test_cut_at_every_byte_keeps_the_whole_entries_and_gives_the_rest(kind, data, size):
    whole = list(kind(data, 100))
    for end in range(len(data) + 1):
        index = kind(data[:end], 100)
        assert list(index) == whole[: end // size]
        assert index.ragged == end % size
        assert index.count == end // size


@pytest.mark.parametrize("garbage", [b"\xff", b"\x00\x00\x01", b"garbage!" * 3])
def test_garbage_after_is_entries_or_a_ragged_end(garbage):
    index = OffsetIndex(INDEX + garbage, 100)
    assert list(index)[:3] == OFFSETS
    assert index.count == 3 + len(garbage) // 8
    assert index.ragged == len(garbage) % 8


@pytest.mark.parametrize("make", [bytes, bytearray, memoryview])
def test_a_zero_tail_is_distinguished_from_entries(make):
    index = OffsetIndex(make(INDEX + bytes(40)), 100)
    assert (index.filled, index.count, index.zero_tail, len(index)) == (3, 8, 40, 3)
    assert list(index) == OFFSETS
    assert index[7] == OffsetPosition(100, 0)
    with pytest.raises(IndexError):
        index[8]


@pytest.mark.parametrize("hole", [1, 7, 8, 12, 100, 10 << 20])
@pytest.mark.parametrize(("kind", "data"), [(OffsetIndex, INDEX), (TimeIndex, TIMEINDEX)])
def test_a_hole_is_the_zeros_that_it_stands_for(kind, data, hole):
    """The data before a hole may end at any byte, also inside an entry."""
    for end in range(len(data) + 1):
        whole, some = kind(data[:end] + bytes(hole), 100), kind(BeforeHole.of(data[:end], hole), 100)
        assert list(some) == list(whole)
        for name in ("size", "count", "ragged", "filled", "zero_tail"):
            assert getattr(some, name) == getattr(whole, name), name
        if hole <= 100:
            assert list(some.slots()) == list(whole.slots())
            assert [some[slot] for slot in range(some.count)] == [whole[slot] for slot in range(whole.count)]
            assert [some.lookup(100 + n, among=some.count) for n in range(20)] == [
                whole.lookup(100 + n, among=whole.count) for n in range(20)
            ]
    assert BeforeHole.of(b"", hole)


def test_the_last_entry_is_found_at_every_distance_from_the_end():
    for tail in (0, 1 << 16, (1 << 16) + 8, (1 << 17) - 8, 1 << 20):
        assert OffsetIndex(INDEX * 10_000 + bytes(tail), 100).filled == 30_000
        assert OffsetIndex(bytes(tail), 100).filled == 0


def test_a_last_entry_that_ends_in_zero_bytes_is_no_tail():
    index = OffsetIndex(bytes.fromhex("00000001 01000000 00000000 00000000"), 0)
    assert index.filled == 1
    assert list(index) == [OffsetPosition(1, 1 << 24)]


def test_a_zero_entry_in_the_middle_is_no_tail():
    assert OffsetIndex(INDEX[:8] + bytes(8) + INDEX[16:], 100).filled == 3


@pytest.mark.parametrize("tail", [b"", bytes(8), bytes(10_000)])
def test_offset_lookup_before_on_between_and_after(tail):
    index = OffsetIndex(INDEX + tail, 100)
    found = {target: index.lookup(target) for target in (99, 100, 101, 106, 107, 108, 111, 112, 113, 1 << 40)}
    assert found == {
        99: (100, 0), 100: (100, 0), 101: OFFSETS[0], 106: OFFSETS[0], 107: OFFSETS[1], 108: OFFSETS[1],
        111: OFFSETS[1], 112: OFFSETS[2], 113: OFFSETS[2], 1 << 40: OFFSETS[2],
    }  # fmt: skip


@pytest.mark.parametrize("tail", [b"", bytes(12), bytes(1200)])
def test_time_lookup_before_on_between_and_after(tail):
    index = TimeIndex(TIMEINDEX + tail, 100)
    found = {target: index.lookup(target) for target in (-1, 4_999, 5_000, 5_001, 6_999, 7_000, 7_001)}
    assert found == {
        -1: (-1, 100), 4_999: (-1, 100), 5_000: TIMES[0], 5_001: TIMES[0], 6_999: TIMES[0], 7_000: TIMES[1],
        7_001: TIMES[1],
    }  # fmt: skip


@pytest.mark.parametrize("tail", [b"", bytes(80)])
def test_an_empty_index_sends_every_lookup_to_the_start(tail):
    assert OffsetIndex(tail, 100).lookup(500) == (100, 0)
    assert TimeIndex(tail, 100).lookup(500) == (-1, 100)
    assert OffsetIndex(tail, 100).filled == 0


def test_lookup_finds_every_entry_of_indexes_of_any_length():
    for count in range(40):
        entries = [OffsetPosition(10 * n, 100 * n) for n in range(1, count + 1)]
        index = OffsetIndex(offset_index.encode(entries, 0), 0)
        for target in range(10 * count + 15):
            assert index.lookup(target) == max((e for e in entries if e.offset <= target), default=(0, 0))


def test_the_middle_is_rounded_up():
    two_equal = offset_index.encode([OffsetPosition(5, 10), OffsetPosition(5, 20)], 0)
    assert OffsetIndex(two_equal, 0).lookup(5, warm=False).position == 20
    assert OffsetIndex(two_equal, 0).lookup(5).position == 10  # the first entry is compared first, since 2.1


def test_a_lookup_over_all_slots_sees_the_zero_tail_as_the_original_does():
    index = OffsetIndex(INDEX + bytes(8), 100)
    assert index.lookup(113, among=index.count) == (100, 0)
    assert index.lookup(107, among=2) == OFFSETS[1]


def test_negative_relative_offsets_are_read_as_stored():
    assert OffsetIndex(bytes.fromhex("fffffffe fffffffb"), 100)[0] == (98, -5)


@pytest.mark.parametrize("offset", [99, 100 + (1 << 31)])
def test_an_offset_that_does_not_fit_cannot_be_written(offset):
    with pytest.raises(UsageError, match=f"offset {offset} does not fit into an index with base offset 100"):
        offset_index.encode([OffsetPosition(offset, 1)], 100)
    with pytest.raises(UsageError, match=f"offset {offset} does not fit"):
        offset_index.encode([OFFSETS[0], OffsetPosition(offset, 1), OFFSETS[1]], 100)


def test_the_warm_section_of_an_index_out_of_order():
    """The result of AbstractIndex in 2.1 and later; 4.2.2 printed it for a mutated index."""
    keys = [14, 20, 24, -1_364_644_415, 36, 39, 42]
    index = OffsetIndex(b"".join(key.to_bytes(4, "big", signed=True) + bytes(4) for key in keys), 0)
    assert index.slot_for(14) == 0
    assert index.slot_for(14, warm=False) == 3
    assert index.slot_for(13) == index.slot_for(13, warm=False) is None
    assert index.slot_for(40) == index.slot_for(40, warm=False) == 5


def test_a_large_index_in_order_is_searched_alike():
    index = OffsetIndex(offset_index.encode([OffsetPosition(2 * slot, slot) for slot in range(1, 3000)], 0), 0)
    for target in (1, 2, 3, 1900, 1901, 3950, 3951, 3952, 3953, 3954, 5998, 6000):
        assert index.slot_for(target) == index.slot_for(target, warm=False)


def test_many_entries_take_little_memory_beyond_their_bytes():
    entries = ((offset, offset) for offset in range(100_000))
    tracemalloc.start()
    size = len(offset_index.encode(entries, 0))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 3 * size
