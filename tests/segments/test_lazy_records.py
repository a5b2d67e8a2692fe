"""Sizes of records as columns: the same as in the general path, with and without the kernel."""

import pytest

from kdump import kernel
from kdump.errors import DamageError
from kdump.primitives import compression
from kdump.segments import batch_runs, lazy_records
from kdump.segments.lazy_records import ReadAgain
from kdump.segments.walk import Window, walk
from testing import forge
from tests.helpers.segments import Memory

RECORDS = [
    forge.record(None if n % 3 else b"k" * n, None if n % 5 else b"v" * 40 * n, offset=n, headers=[(b"h", b"x" * n)])
    for n in range(30)
]


def batches(*attributes):
    """A log of batches with these attributes, which give the codec."""
    content = b""
    for number, bits in enumerate(attributes):
        plain = b"".join(RECORDS)
        payload = compression.compress(bits & 7, plain) if bits & 7 else plain
        content += forge.batch(RECORDS, base_offset=number * 30, attributes=bits, payload=payload)
    return content


def expected(batch):
    records = list(batch.records())
    sizes = [-1 if one is None else len(one) for record in records for one in (record.key, record.value)]
    return [record.offset for record in records], sizes[::2], sizes[1::2], 61 + sum(record.size for record in records)


def found(batches):
    """Return all sizes together, the number of batches read, and the largest number of records at once."""
    pieces = []
    taken = lazy_records.read_sizes(batches, pieces.append)
    columns = [[number for piece in pieces for number in piece[at]] for at in range(3)]
    return [*columns, sum(piece.size for piece in pieces)], taken, max(len(piece.offsets) for piece in pieces)


@pytest.mark.parametrize("step", [slice(None, None, -1), slice(5, 1, -2), slice(1, 9, 3), slice(-3, None), slice(0, 0)])
def test_slices_are_those_of_a_list(step):
    (batch,) = walk(Memory(forge.batch([forge.record(b"k", b"v", offset=at) for at in range(10)])))
    records = ReadAgain(batch, lambda *_: True, 10)
    assert [record.offset for record in records[step]] == list(range(10))[step]
    assert [record.offset for record in records[::2][step]] == list(range(0, 10, 2))[step]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("bits", [0, 1, 2, 3, 4, 0x08, 0x10])
def test_a_batch_has_the_sizes_of_its_records(bits, compiled, monkeypatch):
    monkeypatch.setattr(kernel, "COMPILED", compiled and kernel.COMPILED)
    (batch,) = walk(Memory(batches(bits)))
    assert found(batch)[0] == list(expected(batch))


@pytest.mark.parametrize("compiled", [False, True])
def test_messages_and_empty_batches_have_sizes_too(compiled, monkeypatch):
    monkeypatch.setattr(kernel, "COMPILED", compiled and kernel.COMPILED)
    old = forge.entry(5, forge.message(1, b"key", None))
    message, empty = walk(Memory(old + forge.batch([], base_offset=6)))
    assert found(message)[0] == [[5], [3], [-1], len(old)]
    assert found(empty)[0] == [[], [], [], 61]


@pytest.mark.parametrize("count", [29, 31, 1 << 30, -1])
@pytest.mark.parametrize("many", [7, lazy_records.MANY])
def test_a_batch_whose_records_are_broken_is_damaged(count, many, monkeypatch):
    monkeypatch.setattr(lazy_records, "MANY", many)
    content = forge.batch(RECORDS, count=count)
    (batch,) = walk(Memory(content))
    added = []
    with pytest.raises(DamageError):
        lazy_records.read_sizes(batch, added.append)
    assert added == []


@pytest.mark.skipif(not kernel.COMPILED, reason="without the kernel there are no runs")
@pytest.mark.parametrize("codec", [0, 4])
def test_a_run_ends_before_its_first_broken_batch(codec):
    plain_bytes = b"".join(RECORDS)
    payload = compression.compress(codec, plain_bytes) if codec else plain_bytes
    broken = forge.batch(RECORDS, base_offset=60, attributes=codec, count=29, payload=payload)
    source = Memory(batches(codec, codec) + broken + batches(codec))
    window = Window(source, source.size)
    run = batch_runs.run(next(walk(source, 0, window=window)), window.block, window.start)
    sizes, taken, _ = found(run)
    assert (run.batch_count, taken) == (4, 2)
    wanted = [expected(run.batch(row)) for row in range(2)]
    assert sizes == [
        wanted[0][0] + wanted[1][0],
        wanted[0][1] * 2,
        wanted[0][2] * 2,
        wanted[0][3] * 2,
    ]


@pytest.mark.skipif(not kernel.COMPILED, reason="without the kernel there are no runs")
@pytest.mark.parametrize("codec", [0, 4])
def test_sizes_of_many_records_come_in_pieces(codec, monkeypatch):
    monkeypatch.setattr(lazy_records, "MANY", 7)
    source = Memory(batches(codec, codec))
    window = Window(source, source.size)
    first = next(walk(source, 0, window=window))
    run = batch_runs.run(first, window.block, window.start)
    for some, number in ((first, 1), (run, 2)):
        sizes, taken, most = found(some)
        wanted = [expected(run.batch(row)) for row in range(number)]
        assert (taken, most) == (number, 7)
        assert sizes == [
            *([number for one in wanted for number in one[at]] for at in range(3)),
            sum(one[3] for one in wanted),
        ]
