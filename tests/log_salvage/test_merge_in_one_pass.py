"""One copy read once gives the result of two passes, or None if it needs two."""

import random
import tracemalloc
from contextlib import suppress

import pytest

from kdump.errors import UnreadableError
from kdump.formats import txn_index
from kdump.formats.record_layout import CONTROL_FLAG, TIMESTAMP_TYPE_FLAG
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_dirs.local import LocalFile
from kdump.log_salvage import chains, merge, writer
from kdump.log_salvage.merge import Account
from kdump.parallel import costs
from kdump.records.control import ABORT
from kdump.segments import read_ahead, resync, walk
from testing import damages, forge
from tests.command_line.test_dump_pieces import SHAPES, batches, log
from tests.helpers.segments import data, marker


def one(offset, size=1, **rest):
    return forge.batch([forge.record(b"k%d" % offset, b"v" * size)], base_offset=offset, **rest)


def reported(account):
    return {**vars(account), "gaps": list(account.gaps)}


def twice(copy):
    placed, account = merge.merge([copy])
    return b"".join(bytes(region.raw) for region in merge.batches(placed)), reported(account)


def once(copy):
    """Return the result of one pass, or None if it needs two."""
    account = Account()
    try:
        return b"".join(bytes(region.raw) for region in merge.in_one_pass(copy, account)), reported(account)
    except merge.OutOfOrderError:
        return None


def found(path):
    (copy,) = Finder().find([str(path)])
    return copy


def segments(folder, *contents):
    place = folder / "orders-0"
    place.mkdir(parents=True)
    for base, content in contents:
        name = f"{base:020}.log"
        (place / (f"{name}.deleted" if (place / name).exists() else name)).write_bytes(content)
    (copy,) = Finder(Wanted(leftovers=True)).find([str(place)])
    return copy


@pytest.fixture(params=[1, 3], ids=["alone", "with threads"])
def small(request, monkeypatch):
    """Split a few batches into several blocks, rows and ranges."""
    monkeypatch.setattr(chains, "CELL", 16)
    for place, name, value in (
        (walk, "FIRST_BLOCK", 1000),
        (walk, "BLOCK", 4000),
        (read_ahead, "FIRST", 500),
        (costs, "READING_AHEAD", 500),
        (read_ahead, "CHUNK_BYTES", 3000),
    ):
        monkeypatch.setattr(place, name, value)
    monkeypatch.setattr(costs, "processors", lambda: request.param)


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
@pytest.mark.parametrize("begin", [0, 5])
def test_a_batch_that_continues_its_own_leader_epoch_is_kept(tmp_path, begin):
    """Also if the last batch of this epoch ended at offset 0."""
    newer = [one(begin + offset, leader_epoch=3) for offset in (9, 10, 11)]
    row = [one(begin), *newer[:2], one(begin + 1), newer[2]]
    copy = segments(tmp_path, (begin, b"".join(row)))
    content, account = twice(copy)
    assert [lost.kind for lost in account["lost"]] == []
    assert content == b"".join([row[0], row[3], *newer])


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


@pytest.mark.usefixtures("small")
def test_markers_in_a_row_end_the_transactions_that_they_name(tmp_path):
    """A run of markers is not a run of data: the index of aborted transactions has an entry for each."""
    begun = [data(offset, producer=7 + offset) for offset in range(2)]
    copy = segments(tmp_path / "in", (0, b"".join([*begun, marker(2, 7, ABORT), marker(3, 8, ABORT), one(4)])))
    assert once(copy) == twice(copy)
    writer.write("orders-0", [copy], tmp_path / "out", writer.SegmentLimits())
    (index,) = (tmp_path / "out/logs/orders-0").glob("*.txnindex")
    assert [entry.producer_id for entry in txn_index.read(index.read_bytes())] == [7, 8]


@pytest.mark.usefixtures("small")
def test_what_is_lost_is_reported_by_segment_the_misplaced_last(tmp_path):
    first = one(0) + one(1) + one(700) + one(3) + one(4, crc=1) + one(5)
    copy = segments(tmp_path, (0, first), (6, one(6) + one(7, crc=1) + one(8)))
    content, account = once(copy)
    assert (content, account) == twice(copy)
    assert [(lost.segment.base_offset, lost.kind) for lost in account["lost"]] == [
        (0, "crc"),
        (0, "misplaced"),
        (6, "crc"),
    ]


REFUSED = {
    "offsets that fit into no segment": lambda offset: one(offset, 3000, last_offset_delta=-5),
    "offsets that neighbours contradict": lambda offset: one(offset // 2 + offset % 2 * 10_000, 3000),
}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("batch", REFUSED.values(), ids=REFUSED)
def test_batches_that_are_not_placed_are_not_held(tmp_path, batch):
    taken = {}
    for count in (500, 2000):
        copy = segments(tmp_path / str(count), (0, one(0) + b"".join(map(batch, range(1, count)))))
        account = Account()
        tracemalloc.start()
        with suppress(merge.OutOfOrderError):
            for _ in merge.in_one_pass(copy, account):
                pass
        account.lost.clear()
        taken[count] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert taken[2000] - taken[500] < 1500 * 1500, taken  # A short entry for each, without its bytes.


def test_segments_of_one_name_are_not_even_opened(tmp_path, monkeypatch):
    copy = segments(tmp_path, (0, one(0) + one(1)), (0, one(0)))
    monkeypatch.setattr(LocalFile, "__init__", None)
    assert once(copy) is None


@pytest.mark.usefixtures("small")
def test_no_file_is_read_once_it_is_closed(tmp_path, monkeypatch):
    copy = segments(tmp_path, (0, b"".join(map(one, [*range(300), 7, 8, 9, *range(300, 900)]))))
    closed = []
    whole, close = LocalFile.read, LocalFile.close

    def read(self, position, size):
        assert self not in closed
        return whole(self, position, size)

    monkeypatch.setattr(LocalFile, "read", read)
    monkeypatch.setattr(LocalFile, "close", lambda self: closed.append(self) or close(self))
    assert once(copy) is None
    assert len(closed) == 1


@pytest.mark.parametrize(
    "contents",
    [
        [(0, one(0) + one(3) + one(4) + one(1) + one(2))],
        [(0, one(0) + one(0))],
        [(0, one(0) + one(1)), (2, one(1) + one(2))],
        [(0, one(0) + one(1)), (0, one(0) + one(1) + one(2))],
    ],
    ids=["swapped", "doubled", "in two segments", "in segments of one name"],
)
def test_what_does_not_stand_in_order_is_written_in_two_passes(tmp_path, contents):
    copy = segments(tmp_path / "in", *contents)
    assert once(copy) is None
    written, account = writer.write("orders-0", [copy], tmp_path / "out", writer.SegmentLimits())
    (made,) = (tmp_path / "out/logs/orders-0").glob("*.log")
    assert (made.read_bytes(), reported(account)) == twice(copy)
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


def test_what_is_read_of_a_disk_that_dies_is_written(tmp_path, monkeypatch):
    copy = segments(tmp_path, (0, one(0) + one(1) + one(2, attributes=TIMESTAMP_TYPE_FLAG)), (3, one(3)))
    whole = resync.read

    def dies(source, *place, **rest):
        regions = list(whole(source, *place, **rest))
        yield from regions[:1]
        if len(regions) > 1:
            raise UnreadableError("disk", "Input/output error")

    monkeypatch.setattr(resync, "read", dies)
    content, account = once(copy)
    assert content == one(0) + one(1) + one(3)
    assert [(lost.kind, lost.position, lost.size) for lost in account["lost"]] == [
        ("unreadable", len(one(0) + one(1)), len(one(2)))
    ]
    assert account["gaps"] == [range(2, 3)]


def test_a_file_that_cannot_be_opened_is_lost(tmp_path):
    copy = segments(tmp_path / "in", (0, one(0)), (1, one(1)), (2, one(2)))
    (tmp_path / "in/orders-0" / f"{1:020}.log").unlink()
    content, account = once(copy)
    assert (content, account) == twice(copy)
    assert [(lost.kind, lost.size) for lost in account["lost"]] == [("unreadable", len(one(1)))]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("later_first", [True, False])
def test_of_two_leaders_of_one_log_the_later_epoch_is_placed(tmp_path, later_first):
    """The batches of the two leaders alternate, without contradicting each other's offsets."""
    first = one(0, leader_epoch=3) + one(1, leader_epoch=3)
    later = [one(offset, leader_epoch=4) for offset in (2, 3, 4)]
    older = [one(offset, leader_epoch=3) for offset in (2, 3)]
    turns = [(4, 3), (4, 3)] if later_first else [(3, 4), (3, 4)]
    taken = {4: iter(later), 3: iter(older)}
    log = first + b"".join(next(taken[epoch]) for pair in turns for epoch in pair) + later[2]
    content, account = twice(segments(tmp_path, (0, log)))
    assert content == first + b"".join(later)
    assert [lost.kind for lost in account["lost"]] == ["conflict", "conflict"]


@pytest.mark.usefixtures("small")
def test_a_leader_that_a_later_one_replaced_does_not_cost_batches_of_the_later_log(tmp_path):
    """The batch of epoch 2 overlaps one of epoch 1 and one of epoch 3, which do not overlap each other."""

    def batch(first, last, epoch):
        return data(first, last - first + 1, leader_epoch=epoch)

    copies = [
        segments(tmp_path / "1", (0, batch(0, 4, 1) + batch(5, 9, 1) + batch(10, 14, 1))),
        segments(tmp_path / "2", (0, batch(0, 4, 1) + batch(5, 12, 2))),
        segments(tmp_path / "3", (0, batch(0, 4, 1) + batch(5, 9, 1) + batch(10, 19, 3))),
    ]
    placed, account = merge.merge(copies)
    content = b"".join(bytes(region.raw) for region in merge.batches(placed))
    assert content == batch(0, 4, 1) + batch(5, 9, 1) + batch(10, 19, 3)
    assert [(lost.missing_from, lost.missing_until) for lost in account.lost] == [(5, 13), (10, 15)]
    assert (account.duplicates, list(account.gaps)) == (3, [])
