"""Headers read in a row: the same batches, told of in the same way, as where their records are kept."""

import os
import random

import pytest

from kdump import kernel
from kdump.log_dirs.local import LocalFile
from kdump.primitives import compression
from kdump.records.magic_2 import Batch
from kdump.segments import brief_runs, parts, shared_segment, walk
from kdump.segments.batch_runs import Run
from kdump.segments.brief_runs import HeaderReader
from kdump.segments.read import read_runs
from testing import forge
from tests.segments.test_batch_runs import ODD, batch

if not kernel.COMPILED:
    pytest.skip("without the kernel there are no runs", allow_module_level=True)
from kdump.kernel.batches import AT_A_TIME
from kdump.kernel.cursor import Cursor


@pytest.fixture
def log(tmp_path):
    """Open a segment that is made of ``data``."""
    opened = []

    def make(data):
        path = tmp_path / f"{len(opened)}.log"
        path.write_bytes(data)
        opened.append(LocalFile(path))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


def followed(source, position, stop=None, *, looks=True):
    """What follows at a position, by a reader of its own, where batches like the first of the segment are wanted."""
    reader = HeaderReader(source.descriptor, source, looks=looks)
    return reader.follow(next(walk.walk(source)), position, source.size if stop is None else stop)


def told(run):
    """What a run says of its batches: all but where these lie in a block."""
    return [(each.position, each.size, *each.header, each.last_offset, each.last_sequence) for each in run.batches()]


@pytest.mark.parametrize("looks", [False, True])
def test_the_same_is_told_as_by_a_run_in_memory(log, looks):
    data = [batch(number, max_timestamp=number % 3 - 1) for number in range(300)]
    source = log(b"".join(data))
    (whole,) = read_runs(source, on_error="stop")
    brief = followed(source, 0, looks=looks)
    assert told(brief) == told(whole)
    assert brief.found == (whole.stack(Cursor()).agreeing() if looks else b"\1" * 300)
    assert (brief.count, brief.size, brief.end) == (whole.count, whole.size, whole.end)
    assert [bytes(each.raw) for each in brief.batches()] == data
    behind = followed(source, len(data[0]) + len(data[1]), looks=looks)
    assert (told(behind), behind.found) == (told(whole)[2:], brief.found[2:])


def test_none_begins_at_the_stop_or_behind_it(log):
    data = [batch(number) for number in range(9)]
    source = log(b"".join(data))
    starts = [sum(map(len, data[:number])) for number in range(9)]
    for stop in range(starts[2], starts[4] + 2):
        brief = followed(source, starts[2], stop)
        expected = [start for start in starts[2:] if start < stop]
        assert ([each.position for each in brief.batches()] if brief else []) == expected


def test_a_batch_that_is_cut_is_not_there(log):
    one, two, three = (batch(number) for number in range(3))
    data = one + two + three
    for size in range(len(one), len(data) + 1):
        brief = followed(log(data[:size]), len(one), 1 << 30)
        assert (brief.count if brief else 0) == (size >= len(one + two)) + (size >= len(data))


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_what_is_odd_ends_them(log, odd):
    source = log(batch(0) + batch(1) + odd + batch(3))
    assert [each.base_offset for each in followed(source, 0).batches()] == [0, 3]
    assert followed(source, len(batch(0) + batch(1))) is None


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_batch_may_be_as_large_as_what_is_read_at_a_time(log, more):
    overhead = len(forge.batch([forge.record(b"k", bytes(AT_A_TIME - 200))])) - (AT_A_TIME - 200)
    large = forge.batch([forge.record(b"k", bytes(AT_A_TIME - overhead + more))], base_offset=3, base_sequence=3)
    assert len(large) == AT_A_TIME + more
    source = log(batch(0) + large + batch(2))
    brief = followed(source, len(batch(0)))
    assert (None if brief is None else told(brief)[0][:2]) == (None if more > 0 else (len(batch(0)), len(large)))


def test_more_than_is_read_at_a_time(log):
    sizes = random.Random(7)
    data = []
    while sum(map(len, data)) < 3 * AT_A_TIME:
        records = [forge.record(b"k", bytes(sizes.randrange(60_000)))]
        data.append(forge.batch(records, base_offset=len(data), base_sequence=len(data)))
    source = log(b"".join(data))
    brief = followed(source, 0)
    assert [bytes(each.raw) for each in brief.batches()] == data
    assert brief.found == b"\1" * len(data)


def test_no_more_rows_than_are_held_at_a_time(log):
    data = batch(0, base_sequence=-1)
    source = log(data * 5000)
    brief = followed(source, 0)
    assert 1000 < brief.count < 5000
    assert brief.end == brief.count * len(data)
    assert brief.found == b"\1" * brief.count


def test_records_of_no_use_to_who_looks_are_left_alone(log):
    packed = compression.compress(compression.ZSTD, forge.record(b"k", b"v"))
    for made in (
        forge.batch([forge.record(b"k", b"v")], attributes=0x20),
        forge.batch([b""], attributes=4, payload=packed),
    ):
        source = log(made * 3)
        assert followed(source, 0) is None
        assert followed(source, 0, looks=False).count == 3


def test_a_reader_whose_batches_are_few_reads_no_more(log):
    few, many = batch(0), forge.batch([forge.record(b"k", bytes(1000))] * 30)
    for made, again in ((few, False), (many, True)):
        source = log(made * 50)
        reader = HeaderReader(source.descriptor, source, looks=True)
        first = next(walk.walk(source))
        assert reader.follow(first, 0, source.size).count == 50
        assert (reader.follow(first, 0, source.size) is not None) is again


def test_a_file_that_cannot_be_read_has_none(log):
    source = log(batch(0) + batch(1))
    first = next(walk.walk(source))
    closed = os.dup(source.descriptor)
    os.close(closed)
    assert HeaderReader(closed, source, looks=True).follow(first, 0, source.size) is None


def damaged(numbers):
    """A log of many kinds of batches, some of them damaged."""
    data = forge.batch([forge.record(b"k", b"v")])
    for number in range(1, numbers.randrange(200, 700)):
        kind = numbers.randrange(60)
        size = numbers.choice((10, 100, 3000))
        one = forge.batch([forge.record(b"k", bytes(size))], base_offset=number, attributes=0x10 * (number // 90 % 2))
        if kind == 0:
            one = forge.batch([forge.record(b"k", b"v")], base_offset=number, attributes=0x30, producer_id=1)
        elif kind == 1:
            at = numbers.randrange(len(one))
            one = one[:at] + bytes([one[at] ^ 1 << numbers.randrange(8)]) + one[at + 1 :]
        elif kind == 2:
            one = forge.entry(number, forge.message(1, b"k", b"v"))
        elif kind == 3:
            one = forge.batch([forge.record(b"k", b"v")], base_offset=number, max_timestamp=9)
        data += one
    return data + bytes(numbers.choice((0, 0, 5, 100)))


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("looks", [False, True])
def test_parts_hold_what_the_segment_does(log, monkeypatch, seed, looks):
    monkeypatch.setattr(walk, "BLOCK", 4000)
    monkeypatch.setattr(walk, "ACROSS", 100)
    monkeypatch.setattr(brief_runs, "ACROSS", 100)
    monkeypatch.setattr(brief_runs, "AT_A_TIME", 1000)
    monkeypatch.setattr(parts, "SIZE", 20_000)
    follow, read = HeaderReader.follow, []
    monkeypatch.setattr(HeaderReader, "follow", lambda *given: (read.append(follow(*given)), read[-1])[1])
    source = log(damaged(random.Random(seed)))
    pieces = parts.parts(source, source.size)

    def look(run):
        if not looks:
            return b"\1" * run.count
        if isinstance(run, brief_runs.BriefRun):
            return run.found
        return b"\0" * run.count if run.first.is_control else run.stack(Cursor()).agreeing()

    def flat(regions):
        for region in regions:
            run = brief_runs.batch_runs.alone(region) if isinstance(region, Batch) else region
            if isinstance(run, Run):
                yield from zip(told(run), look(run), strict=True)
            else:
                yield type(run), run.position, run.size

    made = shared_segment.read_in_threads(source, pieces, 0, lambda regions: list(flat(regions)), looks=looks)
    want = list(flat(read_runs(source, on_error="resync", first_offset=0)))
    assert [each for part in made for each in part] == want
    assert any(read)
