"""The place that collectors get: the ends of segments are read once for all of them."""

import pytest

from kdump.answers import collector
from kdump.answers.collector import Place
from kdump.errors import SILENT, UnreadableError
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_dirs.log_dir_state import LogDirStates
from tests.helpers.log_dirs import replica
from tests.helpers.segments import data


@pytest.fixture
def partition(tmp_path):
    replica(tmp_path, {0: data(0, 5), 5: data(5, 2)})
    (found,) = Finder(Wanted(siblings=True)).find([str(tmp_path)])
    return found


def counted(monkeypatch):
    """Count the segments whose end is read."""
    read, of_segment = [], collector.end_of_segment

    def end(segment):
        read.append(segment.path)
        return of_segment(segment)

    monkeypatch.setattr(collector, "end_of_segment", end)
    return read


@pytest.mark.parametrize(("parsed", "times"), [({}, 1), (None, 3)], ids=["kept", "not kept"])
def test_the_end_of_each_segment_is_read_once_for_all_collectors(partition, monkeypatch, parsed, times):
    read = counted(monkeypatch)
    place = Place(partition, LogDirStates(SILENT).of(partition), parsed=parsed)
    segments = partition.segments
    found = [[place._replace().end_of(segment).offset for segment in segments] for _ in range(3)]
    assert found == [[5, 7]] * 3
    assert read == [segment.path for segment in segments] * times


def test_an_end_that_cannot_be_read_is_tried_again(partition, monkeypatch):
    segment = partition.segments[0]
    place = Place(partition, LogDirStates(SILENT).of(partition), parsed={})

    def away(segment):
        raise UnreadableError(segment.name, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(collector, "end_of_segment", away)
        with pytest.raises(UnreadableError):
            place.end_of(segment)
    assert place.end_of(segment).offset == 5
