"""The segments that a broker opens for file names: what LogFileUtils and LogSegment.open make of a name."""

import pytest

from kdump.findings.codes import Code
from kdump.log_dirs.finder import Finder, Wanted
from kdump.recovery.opened_names import content_of, opened
from testing import forge


def batch(base):
    return forge.batch([forge.record(None, b"a"), forge.record(None, b"b", offset=1)], base_offset=base)


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "t-0"
    place.mkdir()
    (place / f"{0:020}.log").write_bytes(batch(0))
    return place


def of(folder):
    """The base offset and size of each segment that is opened, and the names of the files that are not read."""
    (found,) = Finder(Wanted(leftovers=True)).find([str(folder)])
    made = opened(found)
    segments = sorted((each.base_offset, each.size) for each in made.partition.segments)
    return segments, sorted(each.path.rpartition("/")[2] for each in made.unread)


def test_names_of_20_digits_are_opened_as_they_are(folder):
    (found,) = Finder(Wanted(leftovers=True)).find([str(folder)])
    made = opened(found)
    assert made.partition is found
    assert made.unread == ()


@pytest.mark.parametrize("name", ["2.log", "+2.log", "2.x.log", f"{2:025}.log", "٢.log"])
def test_a_number_of_other_digits_opens_an_empty_segment(folder, name):
    (folder / name).write_bytes(batch(2))
    size = len(batch(0))
    assert of(folder) == ([(0, size), (2, 0)], [name])
    (found,) = Finder(Wanted(leftovers=True)).find([str(folder)])
    made = opened(found)
    (empty,) = (each for each in made.partition.segments if not each.size)
    with empty.open() as source:
        assert source.size == 0
    (unread,) = made.unread
    cut = content_of(unread, Code.SEGMENT_NAME)
    assert (cut.records, cut.first_offset, cut.last_offset) == (2, 2, 3)
    assert f"{2:020}.log instead" in cut.reason


def test_a_name_beside_the_right_one_is_not_opened_twice(folder):
    (folder / "0.log").write_bytes(batch(0))
    assert of(folder) == ([(0, len(batch(0)))], [])


def test_two_names_of_one_number_are_one_empty_segment(folder):
    for name in ("2.log", "+2.log"):
        (folder / name).write_bytes(batch(2))
    assert of(folder) == ([(0, len(batch(0))), (2, 0)], ["+2.log", "2.log"])


def test_a_copy_of_another_segment_has_no_records_of_its_own(folder):
    (folder / "9.log").write_bytes(batch(0))
    (found,) = Finder(Wanted(leftovers=True)).find([str(folder)])
    (unread,) = opened(found).unread
    assert content_of(unread, Code.SEGMENT_NAME).records == 0


def test_a_name_without_a_number_is_no_segment(folder):
    (folder / "copy.log").write_bytes(batch(2))
    assert of(folder)[1] == []
