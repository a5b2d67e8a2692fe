"""Runs without their records: the same batches and findings as with the records in memory."""

import random

import pytest

from kdump import kernel
from kdump.formats.record_layout import CONTROL_FLAG
from kdump.log_dirs.local import LocalFile
from kdump.parallel import costs
from kdump.records.magic_2 import Batch
from kdump.segments import batch_runs, shared_segment, walk
from kdump.segments.batch_runs import Run
from kdump.segments.regions import DATA
from kdump.segments.resync import read
from testing import forge
from tests.segments.test_batch_runs import batch

if not kernel.COMPILED:
    pytest.skip("without the kernel there are no runs", allow_module_level=True)
from kdump.kernel.records import Cursor


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


def reported(run):
    """Return the fields of a run's batches, except positions within a block."""
    return [(each.position, each.size, *each.header, each.last_offset, each.last_sequence) for each in run.batches()]


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


def look(run):
    """Return whether the records of each batch agree with its header."""
    if isinstance(run, shared_segment.BriefRun):
        return run.found
    return b"\0" * run.batch_count if run.first.is_control else run.stack(Cursor()).agreeing()


def flat(regions):
    for region in regions:
        run = batch_runs.alone(region) if isinstance(region, Batch) else region
        if isinstance(run, Run):
            yield from zip(reported(run), look(run), strict=True)
        else:
            yield type(run), run.position, run.size


def test_the_same_is_reported_as_by_a_run_in_memory(log):
    data = [batch(number, max_timestamp=number % 3 - 1) for number in range(300)]
    source = log(b"".join(data))
    (whole,) = read(source, on_error="stop", runs=DATA)
    (brief,) = shared_segment.whole(shared_segment.brief(iter([whole]), look), source)
    assert reported(brief) == reported(whole)
    assert brief.found == whole.stack(Cursor()).agreeing()
    assert (brief.batch_count, brief.size, brief.end) == (whole.batch_count, whole.size, whole.end)
    assert [bytes(each.raw) for each in brief.batches()] == data


def test_a_control_batch_comes_alone_and_reads_its_record(log):
    marker = batch(1, attributes=CONTROL_FLAG)
    source = log(batch(0) + marker + batch(2))
    made = shared_segment.brief(read(source, on_error="resync", runs=DATA), look)
    data, control, more = shared_segment.whole(made, source)
    assert [isinstance(region, Run) for region in (data, control, more)] == [True, False, True]
    assert control.is_control
    assert bytes(control.raw) == marker
    assert len(list(control.records())) == control.count


@pytest.mark.parametrize("seed", range(40))
def test_parts_hold_what_the_segment_does(log, monkeypatch, seed):
    monkeypatch.setattr(walk, "BLOCK", 4000)
    monkeypatch.setattr(walk, "ACROSS", 100)
    monkeypatch.setattr(costs, "CHUNK", 20_000)
    source = log(damaged(random.Random(seed)))
    pieces = costs.segment_parts(source, source.size)
    made = shared_segment.read_in_threads(source, pieces, 0, lambda regions: shared_segment.brief(regions, look))
    want = list(flat(read(source, on_error="resync", first_offset=0, runs=DATA)))
    assert list(flat(each for part in made for each in shared_segment.whole(part, source))) == want
