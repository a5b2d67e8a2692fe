"""The segments that ``__remote_log_metadata`` lists, and how far a partition is copied."""

import pytest

from kdump.errors import SILENT
from kdump.log_dirs.finder import Finder
from kdump.log_reader.remote_segments import TopicIdPartition, of_partitions
from testing import tiered
from testing.tiered import COPIED, DELETED, DELETING


@pytest.mark.parametrize(
    ("states", "end", "listed"),
    [
        ([COPIED], 99, 1),
        ([COPIED, DELETING], 99, 1),
        ([COPIED, DELETING, DELETED], 99, 0),
        ([], None, 1),
        ([DELETING], None, 1),  # a copy that failed: a broker copies the segment again
        ([DELETING, DELETED], None, 0),
    ],
)
def test_only_a_copy_that_ended_counts(tmp_path, states, end, listed):
    """RemoteLogMetadataCache raises the highest offset of a leader epoch at COPY_SEGMENT_FINISHED only."""
    segment = tiered.Segment(0, 99)
    tiered.write_metadata(tmp_path, [segment.added(), *map(segment.changed, states)])
    found = of_partitions(Finder().find([str(tmp_path)]), SILENT)
    assert found.last_copied.get(TopicIdPartition("t", tiered.TOPIC_ID, 0)) == end
    assert len(found.segments) == listed
