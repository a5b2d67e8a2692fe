"""Salvage has the same result if a thread reads parts of a segment, for any content."""

import random

import pytest

from kdump.log_dirs.finder import Finder
from kdump.log_salvage import merge
from kdump.parallel import costs
from kdump.segments import shared_segment
from testing import damages
from tests.command_line.test_dump_pieces import SHAPES, batches, log


def found(path):
    chains, account = merge.merge(list(Finder().find([str(path)])))
    placed = [(chain.position, chain.end, chain._numbers) for chain in chains]
    return placed, account.lost, list(account.gaps), account.duplicates, account.padding


@pytest.fixture
def alike(monkeypatch):
    """Assert that two threads have the result of one."""
    for place, name, value in ((costs, "CHUNK", 700), (costs, "PACKED_CHUNK", 300), (costs, "SMALL_BATCHES", 0)):
        monkeypatch.setattr(place, name, value)
    monkeypatch.setattr(costs, "PRINTING", 1)
    monkeypatch.setattr(costs, "THREAD_OF_HEADERS", 1)

    def hold(path):
        monkeypatch.setattr(costs, "processors", lambda: 1)
        one = found(path)
        monkeypatch.setattr(costs, "processors", lambda: 2)
        for held, step in ((shared_segment.HELD, shared_segment.STEP), (3, 200)):  # the others are too much
            with monkeypatch.context() as patch:
                patch.setattr(shared_segment, "HELD", held)
                patch.setattr(shared_segment, "STEP", step)
                assert found(path) == one
        return one

    return hold


@pytest.mark.parametrize("shape", SHAPES)
def test_segments_of_every_shape(tmp_path, alike, begun, shape):
    alike(log(tmp_path, SHAPES[shape]))
    assert len(begun) == 2


def test_damaged_segments(tmp_path, alike, begun):
    rng = random.Random(2)
    sound = [*batches(80), *batches(30, nested=True, gap=1), *batches(40, codec=1)]
    starts = [sum(map(len, sound[:number])) for number in range(len(sound) + 1)]
    lost = 0
    for _ in range(20):
        data = bytearray(b"".join(sound))
        for _ in range(rng.randint(1, 5)):
            damages.damage(data, rng, starts)
        lost += len(alike(log(tmp_path, [bytes(data)]))[1])
    assert lost
    assert len(begun) > 20
