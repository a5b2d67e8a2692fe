"""The end of the batches of a segment, for any bytes after them and any index."""

from kdump.formats import offset_index
from kdump.formats.offset_index import OffsetPosition
from kdump.log_dirs.finder import Finder
from kdump.segments.log_end import SMALL, end_of_segment
from kdump.segments.regions import Damage, Trailing
from tests.helpers.segments import data

BATCHES = [data(offset * 2, 2, timestamp=1000 + offset) for offset in range(300)]
LOG = b"".join(BATCHES)


def end_of(folder, log, index=None):
    folder.mkdir(exist_ok=True)
    (folder / "00000000000000000000.log").write_bytes(log)
    if index is not None:
        (folder / "00000000000000000000.index").write_bytes(index)
    (partition,) = Finder().find([str(folder)])
    return end_of_segment(partition.segments[0])


def indexed(*numbers, tail=0):
    entries = [OffsetPosition(number * 2 + 1, number * len(BATCHES[0])) for number in numbers]
    return offset_index.encode(entries, 0) + bytes(tail)


def test_the_end_is_the_last_batch_with_and_without_an_index(tmp_path):
    assert len(LOG) > SMALL
    wrong = offset_index.encode([OffsetPosition(5, 77)], 0)
    for index in (None, b"", indexed(10, 250), indexed(10, 250, tail=8 * 1000), wrong, bytes(80), b"\1\2\3"):
        for zeros in (0, 1, 17, 100_000):
            end = end_of(tmp_path / "t-0", LOG + bytes(zeros), index)
            assert (end.last.last_offset, end.position, end.damage) == (599, len(LOG), None), (index, zeros)


def test_an_index_spares_what_lies_before_its_last_entry(tmp_path):
    broken = bytes([255]) * 100 + LOG[100:]
    assert end_of(tmp_path / "t-0", broken, indexed(10, 250)).last.last_offset == 599


def test_a_cut_batch_is_trailing_and_what_follows_damage_is_found(tmp_path):
    end = end_of(tmp_path / "t-0", LOG[:-5])
    assert end.last.last_offset == 597
    assert isinstance(end.damage, Trailing)
    assert end.position == len(LOG) - 5
    end = end_of(tmp_path / "t-0", LOG[: 7 * 100] + b"garbage!" * 9 + LOG)
    assert (end.last.last_offset, end.position) == (599, len(LOG) + 700 + 72)
    assert isinstance(end.damage, Damage)


def test_a_torn_last_batch_is_not_believed(tmp_path):
    end = end_of(tmp_path / "t-0", LOG[:-1] + b"\xff")
    assert end.last.last_offset == 597
    assert end.damage.kind == "crc"


def test_an_empty_segment_ends_where_it_begins(tmp_path):
    assert end_of(tmp_path / "t-0", b"") == (None, 0, 0, None, None)
    assert end_of(tmp_path / "t-0", bytes(5000)) == (None, 0, 0, None, None)
