"""One copy read once gives what two passes give, or says that it takes two."""

import random

import pytest

from kdump.formats.record_layout import CONTROL_FLAG
from kdump.log_dirs.finder import Finder
from kdump.log_dirs.local import LocalFile
from kdump.salvage import chains, merge, one_copy, writer
from kdump.salvage.merge import Account
from kdump.segments import read_ahead, walk
from testing import damages, forge
from tests.commands.test_parallel import SHAPES, batches, log


def one(offset, **rest):
    return forge.batch([forge.record(b"k%d" % offset, b"v")], base_offset=offset, **rest)


def told(account):
    return {**vars(account), "gaps": list(account.gaps)}


def twice(copy):
    placed, account = merge.merge([copy])
    return b"".join(bytes(region.raw) for region in merge.batches(placed)), told(account)


def once(copy):
    """Return what one pass gives, None where it takes two."""
    account = Account()
    try:
        return b"".join(bytes(region.raw) for region in one_copy.batches(copy, account)), told(account)
    except one_copy.OutOfOrderError:
        return None


def found(path):
    (copy,) = Finder().find([str(path)])
    return copy


def segments(folder, *contents):
    place = folder / "orders-0"
    place.mkdir(parents=True)
    for base, data in contents:
        (place / f"{base:020}.log").write_bytes(data)
    return found(place)


@pytest.fixture(params=[1, 3], ids=["alone", "with threads"])
def small(request, monkeypatch):
    """Let a few batches be several blocks, rows and stretches."""
    monkeypatch.setattr(chains, "CELL", 16)
    for place, name, value in (
        (walk, "FIRST_BLOCK", 1000),
        (walk, "BLOCK", 4000),
        (read_ahead, "FIRST", 500),
        (read_ahead, "WORTH_IT", 500),
        (read_ahead, "STRETCH", 3000),
    ):
        monkeypatch.setattr(place, name, value)
    monkeypatch.setattr(read_ahead, "processors", lambda: request.param)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("shape", SHAPES)
def test_segments_of_every_shape(tmp_path, shape):
    copy = found(log(tmp_path, SHAPES[shape]))
    assert once(copy) == (None if shape == "offsets that fall" else twice(copy))


@pytest.mark.usefixtures("small")
def test_damaged_segments(tmp_path):
    rng = random.Random(3)
    kinds = [batches(120), batches(80, nested=True, gap=1), batches(100, codec=1)]
    seen = {True: 0, False: 0}
    for number in range(60):
        sound = kinds[number % 3]
        starts = [sum(map(len, sound[:number])) for number in range(len(sound) + 1)]
        data = bytearray(b"".join(sound))
        for _ in range(rng.randint(1, 3)):
            damages.damage(data, rng, starts)
        copy = found(log(tmp_path, [bytes(data)]))
        made = once(copy)
        assert made in (None, twice(copy))
        seen[made is None] += 1
    assert min(seen.values()) > 3, seen


@pytest.mark.usefixtures("small")
def test_a_batch_that_neighbours_contradict_is_cut_out_of_a_row(tmp_path):
    for wrong in range(1, 11):
        row = [one(offset) for offset in range(12)]
        row[wrong] = one(700)
        copy = segments(tmp_path / str(wrong), (0, b"".join(row)))
        content, account = twice(copy)
        assert once(copy) == (content, account)
        assert content == b"".join(row[:wrong] + row[wrong + 1 :])


@pytest.mark.usefixtures("small")
def test_a_last_batch_that_a_broker_could_not_live_with_is_no_matter(tmp_path):
    """The batch before it has the same size."""
    sound = forge.batch([forge.record(b"k", b"v" * 4)])
    broken = forge.batch([forge.record(b"\0\0\0\1", b"v")], base_offset=1, attributes=CONTROL_FLAG, producer_id=7)
    assert len(sound) == len(broken)
    copy = segments(tmp_path, (0, sound + broken), (2, one(2)))
    content, account = once(copy)
    assert (content, account) == twice(copy)
    assert [lost.position for lost in account["lost"]] == [len(sound)]


@pytest.mark.parametrize(
    "contents",
    [
        [(0, one(0) + one(3) + one(4) + one(1) + one(2))],
        [(0, one(0) + one(0))],
        [(0, one(0) + one(1)), (2, one(1) + one(2))],
    ],
    ids=["swapped", "doubled", "in two segments"],
)
def test_what_does_not_stand_in_order_is_written_in_two_passes(tmp_path, contents):
    copy = segments(tmp_path / "in", *contents)
    assert once(copy) is None
    written, account = writer.write("orders-0", [copy], tmp_path / "out", writer.SegmentLimits())
    (made,) = (tmp_path / "out/logs/orders-0").glob("*.log")
    assert (made.read_bytes(), told(account)) == twice(copy)
    assert (account.first_offset, account.last_offset) == (0, written.batches - 1)


def test_a_file_is_read_once(tmp_path, monkeypatch):
    copy = segments(tmp_path / "in", (0, b"".join(map(one, range(500)))))
    taken = []
    whole = LocalFile.read
    monkeypatch.setattr(
        LocalFile, "read", lambda self, position, size: taken.append(position) or whole(self, position, size)
    )
    writer.write("orders-0", [copy], tmp_path / "out", writer.SegmentLimits())
    assert sum(position == 0 for position in taken) == 1


def test_a_file_that_cannot_be_opened_is_lost(tmp_path):
    copy = segments(tmp_path / "in", (0, one(0)), (1, one(1)), (2, one(2)))
    (tmp_path / "in/orders-0" / f"{1:020}.log").unlink()
    content, account = once(copy)
    assert (content, account) == twice(copy)
    assert [(lost.kind, lost.size) for lost in account["lost"]] == [("unreadable", len(one(1)))]
