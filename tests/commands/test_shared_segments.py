"""check gives the same result if several processes or threads share a segment, for any content."""

import random

import pytest

from kdump.formats import offset_index
from testing import GOLDEN, damages, forge
from testing.processes import patched
from tests.command_line.test_dump_pieces import SHAPES, batches, log, outcome

SHARED = """
from kdump.parallel import costs
costs.CHUNK, costs.PACKED_CHUNK, costs.PRINTING, costs.SMALL_BATCHES = 700, 300, 1, 0
"""
DYING = """
from kdump.log_dirs import local
whole = local.os.pread
def pread(fd, size, position):
    if position <= {bad} < position + size:
        raise OSError(5, "Input/output error")
    return whole(fd, size, position)
local.os.pread = pread
"""
AT = ("--at", "2026-11-23T00:00")
CHECKS = (("check", "-v", "-o", "jsonl", *AT), ("check", "--headers-only", "-v", *AT))


def alike(path, jobs=(2, 3)):
    """Assert that two threads and several processes give the result of one; return the exit status."""
    for line in CHECKS:
        one = outcome(patched(SHARED, *line, path, "--jobs", 1))
        assert b"Traceback" not in one.errors
        for number in jobs:
            assert outcome(patched(SHARED, *line, path, "--jobs", number)) == one, number
    return one.status


TRANSACTIONS = [
    forge.batch(
        [forge.record(b"\0\0\0\1", b"\0\0\0\0\0\7") if number % 5 == 4 else forge.record(b"k", b"v" * 30)],
        base_offset=number,
        attributes=0x30 if number % 5 == 4 else 0x10,
        producer_id=number % 3,
        producer_epoch=0,
        base_sequence=-1 if number % 5 == 4 else number // 3,
    )
    for number in range(300)
]
PRODUCERS = [
    forge.batch(
        [forge.record(b"k", b"v", attributes=number == 100)],
        base_offset=number,
        producer_id=number % 3,
        producer_epoch=0,
        base_sequence=number // 3 + (number > 200),
    )
    for number in range(300)
]
EPOCHS = [forge.batch([forge.record(b"k", b"v")], base_offset=n, leader_epoch=n // 70 % 3) for n in range(300)]


@pytest.mark.parametrize("shape", [*SHAPES, "transactions", "producers", "epochs"])
def test_segments_of_every_shape(tmp_path, shape):
    held = {"transactions": TRANSACTIONS, "producers": PRODUCERS, "epochs": EPOCHS}.get(shape) or SHAPES[shape]
    path = log(tmp_path, held)
    entries, position = [], 0
    for number, batch in enumerate(held):
        if number % 7 == 6:
            entries.append(offset_index.OffsetPosition(number, position))
        position += len(batch)
    path.with_suffix(".index").write_bytes(offset_index.encode(entries, 0))
    path.with_suffix(".timeindex").write_bytes(b"\1" * 24)
    (path.parent / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    alike(path.parent)


def test_damaged_segments(tmp_path):
    rng = random.Random(2)
    sound = [*batches(80), *batches(30, nested=True, gap=1), *batches(40, codec=1), *TRANSACTIONS[:60]]
    starts = [sum(map(len, sound[:number])) for number in range(len(sound) + 1)]
    statuses = set()
    for _ in range(6):
        data = bytearray(b"".join(sound))
        for _ in range(rng.randint(1, 5)):
            damages.damage(data, rng, starts)
        statuses.add(alike(log(tmp_path, [bytes(data)]).parent))
    assert 3 in statuses


@pytest.mark.parametrize("lost", [1, 75, 4000])
def test_segments_that_are_cut(tmp_path, lost):
    alike(log(tmp_path, [b"".join(batches(100))[:-lost]]).parent)


@pytest.mark.parametrize("folder", ["2.8.2/fmtmix-0", "4.2.2/compact-txn-0"])
def test_logs_of_brokers(tmp_path, folder):
    alike(GOLDEN / "brokers" / folder)


def test_a_disk_that_dies_in_between(tmp_path, monkeypatch):
    path = log(tmp_path, batches(300))
    bad = path.stat().st_size // 2
    patch = SHARED + DYING.format(bad=bad)
    for jobs in (1, 2):
        for command in (*CHECKS, ("salvage", "--out", tmp_path / f"out{jobs}")):
            done = outcome(patched(patch, *command, path.parent, "--jobs", jobs))
            assert done.status == 1
            assert b"Input/output error" in done.errors
            assert b"Traceback" not in done.errors
