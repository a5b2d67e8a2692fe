"""Batches in a row are stored as a few numbers, and their headers are read again when needed."""

import tracemalloc

import pytest

from kdump.errors import UnreadableError
from kdump.log_dirs.finder import Finder
from kdump.log_salvage import chains, writer
from kdump.log_salvage.merge import merge
from kdump.parallel import costs
from kdump.segments import read_ahead, walk
from testing import forge


def one(offset, **rest):
    return forge.batch([forge.record(b"k%d" % offset, b"v" * 100)], base_offset=offset, **rest)


def copy(folder, offsets, segments=1, **rest):
    """Write batches of one record to so many segments; return the partition."""
    place = folder / "orders-0"
    place.mkdir(parents=True)
    size = -(-len(offsets) // segments)
    for first in range(0, len(offsets), size):
        content = b"".join(one(offset, **rest) for offset in offsets[first : first + size])
        (place / f"{offsets[first]:020}.log").write_bytes(content)
    (found,) = Finder().find([str(place)])
    return found


def rescued(out):
    return b"".join(path.read_bytes() for path in sorted((out / "logs" / "orders-0").glob("*.log")))


COPIES = {
    "one": lambda folder, count: [copy(folder / "a", range(count))],
    "with gaps": lambda folder, count: [copy(folder / "a", [n for n in range(count) if n % 3])],
    "in other segments": lambda folder, count: [
        copy(folder / "a", range(count)),
        copy(folder / "b", range(count), segments=3),
    ],
    "one with gaps": lambda folder, count: [
        copy(folder / "a", [n for n in range(count) if n % 3]),
        copy(folder / "b", range(count)),
    ],
}


@pytest.mark.parametrize("copies", COPIES.values(), ids=COPIES)
def test_memory_does_not_grow_with_the_number_of_batches(tmp_path, monkeypatch, copies):
    for name in ("FIRST_BLOCK", "BLOCK"):
        monkeypatch.setattr(walk, name, 1 << 14)
    monkeypatch.setattr(chains, "AT_ONCE", 1 << 14)
    monkeypatch.setattr(read_ahead, "FIRST", 1 << 14)
    monkeypatch.setattr(costs, "READING_AHEAD", 1 << 14)
    monkeypatch.setattr(read_ahead, "CHUNK_REGIONS", 1)
    taken = {}
    for count in (2000, 8000):
        found = copies(tmp_path / f"{count}", count)
        tracemalloc.start()
        try:
            _, account = writer.write("orders-0", found, tmp_path / f"out-{count}", writer.SegmentLimits())
            taken[count] = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert account.lost == []
    assert taken[8000] - taken[2000] < 6000 * 40, taken  # gaps are two numbers, as are entries of indexes


@pytest.fixture
def small_cells(monkeypatch):
    """Split a few batches into several chains, and read a few at a time."""
    monkeypatch.setattr(chains, "CELL", 16)
    monkeypatch.setattr(chains, "AT_ONCE", 300)
    monkeypatch.setattr(chains, "WAITING", 5)


@pytest.mark.usefixtures("small_cells")
def test_copies_in_other_segments_are_the_same_log(tmp_path):
    found = [copy(tmp_path / str(segments), range(100), segments) for segments in (1, 3, 7)]
    placed, account = merge(found)
    assert [(each.base_offset, each.last_offset, each.count) for each in placed][:2] == [
        (0, 15, 16),
        (16, 31, 16),
    ]
    assert (account.lost, list(account.gaps), account.duplicates) == ([], [], 200)
    written, _ = writer.write("orders-0", found, tmp_path / "out", writer.SegmentLimits())
    assert rescued(tmp_path / "out") == b"".join(map(one, range(100)))
    assert (written.segments, written.batches, written.records) == (1, 100, 100)


@pytest.mark.usefixtures("small_cells")
def test_what_several_copies_have_is_taken_from_the_one_that_goes_on(tmp_path):
    found = [copy(tmp_path / "a", [n for n in range(16) if n % 3]), copy(tmp_path / "b", range(16))]
    ((placed,), _) = merge(found)
    assert placed.segment is found[1].segments[0]


@pytest.mark.usefixtures("small_cells")
def test_gaps_are_reported_wherever_they_are(tmp_path):
    offsets = [n for n in range(200) if n % 7 and n not in range(30, 50)]
    _, account = merge([copy(tmp_path / "a", offsets, segments=2)])
    missing = [offset for gap in account.gaps for offset in gap]
    assert missing == [n for n in range(offsets[0], offsets[-1]) if n not in offsets]
    assert len(account.gaps) == len(list(account.gaps))


@pytest.mark.usefixtures("small_cells")
def test_copies_that_change_while_they_are_compared_are_reported(tmp_path):
    found = [copy(tmp_path / str(epoch), range(40), leader_epoch=epoch) for epoch in (1, 2)]
    (segment,) = found[0].segments
    (tmp_path / "new").mkdir()
    (chain, *_), _ = merge(found[:1])
    (tmp_path / "1" / "orders-0" / f"{0:020}.log").write_bytes(b"".join(one(n, leader_epoch=3) for n in range(40)))
    with pytest.raises(UnreadableError, match=r"byte 0: the file has changed since"):
        list(chain.places())
    assert chain.segment is segment


def test_a_batch_that_is_larger_than_a_segment_has_one_of_its_own(tmp_path):
    found = [copy(tmp_path / "a", range(5))]
    limits = writer.SegmentLimits(segment=64)
    written, _ = writer.write("orders-0", found, tmp_path / "out", limits)
    assert (written.segments, written.batches) == (5, 5)
    assert rescued(tmp_path / "out") == b"".join(map(one, range(5)))
