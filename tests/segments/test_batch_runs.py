"""Runs: the same batches as in the walk, as long as they are valid and similar to the first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdump import kernel
from kdump.formats.record_layout import BATCH_HEADER, DELETE_HORIZON_FLAG, LOG_OVERHEAD, MAGIC_2
from kdump.records.magic_2 import Batch
from kdump.segments.batch_runs import LARGE, run
from kdump.segments.regions import DATA
from kdump.segments.walk import Window, walk
from testing import forge
from tests.helpers.segments import Memory

if not kernel.COMPILED:
    pytest.skip("without the kernel there are no runs", allow_module_level=True)
from kdump.kernel import batches
from kdump.kernel.batches import OTHERS, WIDTH
from kdump.kernel.records import FAR


def batch(number, **rest):
    records = [forge.record(b"k", b"v%d" % number, offset=delta) for delta in range(3)]
    return forge.batch(records, **{"base_offset": number * 3, "base_sequence": number * 3, **rest})


def first_run(data, at=0):
    """Return the run that begins with the first batch after ``at`` bytes, and the walk's own batches."""
    source = Memory(data)
    window = Window(source, len(data))
    found = [region for region in walk(source, at) if isinstance(region, Batch)]
    first = next(walk(source, at, window=window))
    return run(first, window.block, window.start), found


def rows(found):
    """Return the fields of each batch of a run."""
    return [tuple(found.rows[row * WIDTH : (row + 1) * WIDTH]) for row in range(found.batch_count)]


@pytest.mark.parametrize("at", [0, 91])
def test_a_row_gives_what_the_batch_does(at):
    data = bytes(at) + b"".join(batch(number) for number in range(5))
    found, batches = first_run(data, at)
    assert (found.batch_count, found.size, found.end) == (5, len(data) - at, len(data))
    for number, (row, each) in enumerate(zip(rows(found), batches, strict=True)):
        start = each.position - found.start
        others = tuple(getattr(each, name) for name in OTHERS)
        assert row == (start + BATCH_HEADER.size, start + each.size, *each.header, *others)
        again = found.batch(number)
        assert (again.position, again.size, again.raw, again.limit) == (each.position, each.size, each.raw, each.limit)


ODD = {
    "other attributes": batch(2, attributes=0x10),
    "a wrong checksum": batch(2)[:-1] + b"?",
    "magic 1": forge.entry(6, forge.message(1, b"k", b"v")),
    "magic 3": batch(2)[:16] + b"\3" + batch(2)[17:],
    "a size of its header less one": batch(2)[:8]
    + (BATCH_HEADER.size - 13).to_bytes(4, "big")
    + batch(2)[12 : BATCH_HEADER.size - 1],
    "a negative size": batch(2)[:8] + b"\xff" * 4 + batch(2)[12:],
    "sequences that wrap around": batch(2, base_sequence=0x7FFFFFFE),
    "a negative sequence": batch(2, base_sequence=-2),
    "an offset near the end": batch(2, base_offset=1 << 62),
    "a large batch": forge.batch([forge.record(b"k", bytes(LARGE))], base_offset=6, base_sequence=6),
    "zeros": bytes(100),
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_what_is_odd_ends_a_run(odd):
    found, _ = first_run(batch(0) + batch(1) + odd + batch(3))
    assert found.batch_count == 2


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_one_batch_is_no_run(odd):
    assert first_run(batch(0) + odd + batch(3))[0] is None


def test_another_delete_horizon_ends_a_run():
    same = [batch(number, attributes=DELETE_HORIZON_FLAG, base_timestamp=7) for number in range(2)]
    other = batch(2, attributes=DELETE_HORIZON_FLAG, base_timestamp=8)
    assert first_run(b"".join(same) + other)[0].batch_count == 2
    assert first_run(batch(0, base_timestamp=7) + batch(1, base_timestamp=8) + other)[0].batch_count == 2


def test_no_batch_above_the_limit_is_in_a_run():
    data = batch(0) + batch(1) + batch(2) + batch(3, base_offset=9) + forge.batch([forge.record(b"k", bytes(200))])
    source = Memory(data)
    window = Window(source, len(data))
    first = next(walk(source, window=window, limit=len(batch(0)) + 50))
    assert run(first, window.block, window.start).batch_count == 4


def test_records_are_counted_and_looked_at():
    broken = forge.batch([forge.record(b"k", b"v"), b"\x02\x00"], base_offset=6, base_sequence=6)
    found, _ = first_run(batch(0) + batch(1) + broken + batch(3))
    assert (found.batch_count, found.sound, found.last_offset) == (4, 2, 11)
    assert (found.records(0, 4), found.records(1, 2), found.records(2, 3)) == (11, 3, 2)
    assert first_run(batch(0) + batch(1))[0].sound == 2
    for last in (batch(1, count=4), batch(1, count=2)):
        assert first_run(batch(0) + last)[0].sound == 1


@pytest.mark.parametrize(
    "odd",
    [
        {"base_offset": 7},
        {"base_offset": 5},
        {"count": 2, "last_offset_delta": 2},
        {"count": 4, "last_offset_delta": 2},
        {"count": 3, "last_offset_delta": 3},
    ],
)
@pytest.mark.parametrize("number", [0, 2, 4])
def test_batches_follow_each_other_without_a_gap(number, odd):
    made = [batch(each) for each in range(5)]
    found, _ = first_run(b"".join(made))
    assert found.follows(0)
    assert not found.follows(1)
    assert not found.follows(1 << 63)
    made[number] = batch(number, **odd)
    found, _ = first_run(b"".join(made))
    assert found.batch_count == 5
    assert not found.follows(0)


def test_cut_at_every_byte():
    data = b"".join(batch(number) for number in range(4))
    size = len(batch(0))
    for end in range(BATCH_HEADER.size, len(data)):
        source = Memory(data[:end])
        window = Window(source, end)
        first = next(walk(source, window=window), None)
        if isinstance(first, Batch):
            found = run(first, window.block, window.start)
            assert (found.batch_count if found else 1) == end // size


FOUR = b"".join(batch(number) for number in range(4))
EDGES = st.sampled_from([0, 1, 0x7F, 0x80, 0xFF])
CHANGES = st.lists(st.tuples(st.integers(0, len(FOUR) - 1), st.one_of(EDGES, st.integers(0, 255))), max_size=4)


@given(
    CHANGES,
    st.integers(0, len(FOUR) - BATCH_HEADER.size),
    st.integers(BATCH_HEADER.size, len(FOUR)),
    st.integers(0, 1 << 62),
    st.integers(-1, len(FOUR) + 1),
)
def test_what_is_listed_is_what_the_general_path_finds(changes, at, cut, place, stop):
    data = bytearray(FOUR)
    for position, byte in changes:
        data[position] = byte
    for block, start in ((data, at), (data, 0), (data[:cut], 0), (data[start_of(1) :], -start_of(1)), (data[:9], 0)):
        for most in (LARGE, len(batch(0)), len(batch(0)) - 1):
            first = Batch(memoryview(bytes(data))[max(0, start) :], place + start, len(batch(0)))
            args = first, memoryview(bytes(block)), place, most, place + stop
            assert list(batches.rows(*args)) == listed(*args)


def listed(first, block, place, most, stop):
    """Return the rows of the batches similar to the first that begin before ``stop``, by the general path."""
    found, at = [], first.position - place
    while 0 <= at <= len(block) - BATCH_HEADER.size and place + at < stop:
        size = LOG_OVERHEAD.size + LOG_OVERHEAD.read(block, at).size
        if not (BATCH_HEADER.size <= size <= most and at + size <= len(block)):
            break
        each = Batch(block[at : at + size], place + at, size)
        if not (is_like(each, first) and (not found or (first.crc_valid and each.crc_valid))):
            break
        others = [getattr(each, name) for name in OTHERS]
        found.append([at + BATCH_HEADER.size, at + size, *each.header, *others])
        at += size
    return [number for row in found for number in row] if len(found) > 1 else []


def is_like(batch, first):
    header = batch.header
    return (
        header.magic == MAGIC_2
        and (batch.attributes, batch.delete_horizon_ms) == (first.attributes, first.delete_horizon_ms)
        and (header.base_sequence == -1 or 0 <= header.base_sequence <= batch.last_sequence)
        and (header.base_sequence == -1 or header.last_offset_delta >= 0)
        and -FAR < header.base_offset < FAR
    )


def start_of(number):
    return number * len(batch(0))


def test_a_wrong_checksum_ends_the_list_where_it_stands(monkeypatch):
    """Batches after it would be listed again for each following batch."""
    listed = []
    plain = batches.rows
    monkeypatch.setattr(batches, "rows", lambda *args: listed.append(found := plain(*args)) or found)
    right, wrong = batch(0), batch(0)[:-1] + b"?"
    for data in (wrong * 100, (right + wrong) * 50, (right * 2 + wrong) * 33):
        listed.clear()
        source = Memory(data)
        found = list(walk(source, limit=LARGE, runs=DATA))
        assert sum(region.size for region in found) == len(data)
        assert sum(max(1, len(rows) // WIDTH) for rows in listed) <= 100


@pytest.mark.parametrize("size", [*range(40), *range(300, 420, 7), *range(3000, 3500, 61), 6144, 16000, 100_000])
def test_checksums_of_batches_of_any_size(size):
    first = batch(0)
    second = forge.batch([forge.record(b"k", bytes(at * 7 % 251 for at in range(size)), offset=0)], base_sequence=0)
    head = Batch(memoryview(first), 0, len(first))
    assert len(batches.rows(head, memoryview(first + second), 0, LARGE, LARGE)) == 2 * WIDTH
    for at in (BATCH_HEADER.offsets["attributes"] + 3, len(second) // 2 + 12, len(second) - 1):
        broken = bytearray(first + second)
        broken[len(first) + at] ^= 1
        assert not batches.rows(head, memoryview(broken), 0, LARGE, LARGE)


@given(st.lists(st.integers(0, 1 << 40), min_size=1, max_size=9), st.data())
def test_the_least_and_the_greatest_of_a_column(times, data):
    found, _ = first_run(b"".join(batch(number, max_timestamp=time) for number, time in enumerate([*times, 0])))
    row = data.draw(st.integers(0, len(times)))
    after = data.draw(st.integers(row + 1, len(times) + 1))
    column = [*times, 0][row:after]
    assert found.least("max_timestamp", row, after) == min(column)
    assert found.greatest("max_timestamp", row, after) == max(column)
    assert found.field("max_timestamp", row) == column[0]
    assert (found.least("base_offset"), found.greatest("last_offset")) == (0, 3 * len(times) + 2)


@pytest.mark.parametrize(
    ("column", "row", "after"), [(0, 1, 1), (0, 2, 1), (0, -1, 1), (0, 0, 3), (-1, 0, 1), (WIDTH, 0, 1)]
)
def test_there_is_no_extreme_of_rows_that_are_not_there(column, row, after):
    found, _ = first_run(batch(0) + batch(1))
    for extreme in (batches.least, batches.greatest):
        with pytest.raises(ValueError, match="no such rows"):
            extreme(found.rows, column, row, after)
