"""The position in a segment from which to read, according to an index."""

from kdump.formats import offset_index
from kdump.formats.offset_index import OffsetPosition
from kdump.log_dirs.finder import Finder, Wanted
from kdump.segments.index_lookup import SMALL, Seeker
from tests.helpers.segments import data


def positions(folder, entries):
    """Return the index entry before each position in question, and the damage of the index."""
    batches = [data(offset, size=1000) for offset in range(SMALL // 1000 + 10)]
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(b"".join(batches))
    (folder / f"{0:020}.index").write_bytes(offset_index.encode(entries(len(batches[0])), 0))
    (partition,) = Finder(Wanted(siblings=True)).find([str(folder)])
    wrong = []
    with partition.segments[0].open() as source:
        seeker = Seeker(partition.segments[0], source, wrong.append)
        size = len(batches[0])
        return [seeker.by_position(at) / size for at in (0, 5 * size - 1, 5 * size, 6 * size, 10**9)], wrong


def test_the_nearest_entry_at_or_before_a_byte_is_where_to_begin(tmp_path):
    def entries(size):
        return [OffsetPosition(offset, offset * size) for offset in (5, 9)]

    assert positions(tmp_path / "orders-0", entries) == ([0, 0, 5, 5, 9], [])


def test_an_entry_that_points_into_a_batch_is_not_believed(tmp_path):
    def entries(size):
        return [OffsetPosition(5, 5 * size), OffsetPosition(9, 9 * size + 1)]

    found, wrong = positions(tmp_path / "orders-0", entries)
    assert found == [0, 0, 5, 5, 0]
    assert "no valid batch starts" in wrong[0]
